"""Training of a decoder of next tokens: its parts one after the other, and all weights at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...networks.token_decoder import TokenDecoder
from ...runs.drawing.figures import Row
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.telling import Several
from ...runs.reports.trained import Trained
from ...runs.reports.verdict import Evidence
from ...runs.setup import torch_dtype
from ...runs.stages import Found
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .comparison import Beside, DecoderComparison, cosines
from .figure import plot_course, plot_words
from .limit import NextTokenLimit
from .run import NextTokenSetup

PARTS, DESCENT = "in two parts", "descent"
# Newton steps of the part in F, whose loss is smooth and strictly convex.
NEWTON = 12

Decoders = Mapping[str, tuple[TokenDecoder, Trajectory]]


def train(setup: NextTokenSetup, found: Found) -> Iterator[Finding]:
    """Train the part in F to its least loss and then the rest, and beside it all by descent."""
    limit, trained = found["limit"], dict[str, tuple[TokenDecoder, Trajectory]]()
    beside = Beside(limit, setup.counts)
    if limit.n_stuck == 0:  # else what grows does not follow from the contexts alone
        trained[PARTS] = _in_parts(setup, limit, beside)
        yield _found(setup, limit, trained, beside)
        if not trained[PARTS][1].finished:
            return
    options, counts = setup.options, setup.counts
    if options.descent_steps:
        setup.progress.stage(f"descending for {options.descent_steps} steps")
        # 1 over a bound of the curvature: that of softmax is at most 1/2.
        size = float(np.linalg.norm(np.sqrt(counts.shares)[:, None] * counts.contexts, 2))
        settings = TrainingSettings(
            loss="excess",
            batch_size=options.batch_size,
            schedule=((options.descent_steps, 2 / size**2),),
            n_checkpoints=options.checkpoints,
            random_state=setup.seeds.batches,
        )
        decoder = _decoder(setup)
        path = _fit(setup, decoder, settings, beside, first=not trained)
        yield _found(setup, limit, trained | {DESCENT: (decoder, path)}, beside)


def _in_parts(
    setup: NextTokenSetup, limit: NextTokenLimit, beside: Beside
) -> tuple[TokenDecoder, Trajectory]:
    decoder = _decoder(setup).of("inside")
    if limit.rank:
        setup.progress.stage("training the finite part by Newton's method")
        newton = TrainingSettings(
            trainer="newton",
            loss="excess",
            schedule=((NEWTON, None),),
            n_checkpoints=setup.options.checkpoints,
        )
        path = _fit(setup, decoder, newton, beside)
    if limit.n_separable and not (limit.rank and not path.finished):
        setup.progress.stage(f"training the direction for {setup.settings.n_steps} steps")
        path = _fit(setup, decoder.of("outside"), setup.settings, beside, first=not limit.rank)
    return decoder, path


def _decoder(setup: NextTokenSetup) -> TokenDecoder:
    counts, options = setup.counts, setup.options
    how: Any = {"dtype": torch_dtype(options.dtype), "device": options.device}
    return TokenDecoder(counts.contexts, counts.probabilities > 0, **how)


def _fit(
    setup: NextTokenSetup,
    decoder: TokenDecoder,
    settings: TrainingSettings,
    beside: Beside,
    *,
    first: bool = True,
) -> Trajectory:
    """Train the part of a decoder that it is of, on losses of weighted contexts or on margins."""
    counts, part = setup.counts, decoder.part
    weights = len(counts.shares) * counts.shares
    y = np.ones(len(weights)) if part == "outside" else weights * counts.entropies
    gates = weights[:, None] * counts.probabilities
    how: Any = {"observer": beside, "state": f"{part}-run.safetensors", "first": first}
    return fit(setup, decoder, counts.contexts, y, gates, settings=settings, **how)


def _found(
    setup: NextTokenSetup, limit: NextTokenLimit, trained: Decoders, beside: Beside
) -> Finding:
    """Return the finding of decoders, with their comparison and pictures."""
    compared = {name: beside.compare(decoder) for name, (decoder, _) in trained.items()}
    paths = {name: path for name, (_, path) in trained.items()}
    networks = {name: Trained(*both, margins=False) for name, both in trained.items()}
    panels: list[Any] = [
        partial(plot_course, name, paths) for name in ("margin_ratio", "limit_error")
    ]
    if limit.n_separable:
        words = {name: one.word_cosines for name, one in compared.items()}
        words = {"limit": cosines(limit.zeta)} | words
        panels.append(Row(len(words), partial(plot_words, words, setup.words), height=4.4))
    return Finding(
        "network",
        {
            "network": Several(networks, row=_first),
            "comparison": Several(compared, row=_first),
        },
        evidence=tuple(_evidence(limit, name, compared[name], paths[name]) for name in compared),
        panels=tuple(panels),
    )


def _first(cells: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the row of the first of several things."""
    return cells[0]


def _evidence(
    limit: NextTokenLimit, name: str, found: DecoderComparison, path: Trajectory
) -> Evidence:
    near, reason = {"limit_error": found.limit_error}, "give more `--descent-steps`"
    if limit.n_separable:
        near = {"margin_ratio": found.margin_ratio} | near
        reason = "its margins grow like the logarithm of the steps"
    return Evidence(
        status=limit.status,
        near=near,
        reason=reason if name == DESCENT else path.stopped,
        remark="" if path.finished else "interrupted",
        network=name,
    )
