"""Training of a decoder of next tokens: its parts one after the other, or all weights at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...data.arrays import Floats
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
NEWTON = 30


def train_parts(setup: NextTokenSetup, found: Found) -> Iterator[Finding]:
    """Train the part in F to its least loss, and then the rest along the logarithm of its own."""
    limit: NextTokenLimit = found["limit"]
    decoder, observer = _decoder(setup), Beside(limit, setup.counts)
    path: Trajectory | None = None
    if limit.rank:
        setup.progress.stage("training the finite part by Newton's method")
        newton = TrainingSettings(trainer="newton", loss="excess", schedule=((NEWTON, None),))
        path = _fit(setup, decoder.of("inside"), newton, observer, "inside.safetensors")
    if limit.n_separable and (path is None or path.finished):
        setup.progress.stage(f"training the direction for {setup.settings.n_steps} steps")
        first = {"first": path is None}
        path = _fit(
            setup, decoder.of("outside"), setup.settings, observer, "run.safetensors", **first
        )
    if path is not None:
        yield _found(setup, limit, {PARTS: (decoder, path)})


def descend(setup: NextTokenSetup, found: Found) -> Iterator[Finding]:
    """Train all weights by gradient descent on their cross-entropy, beside what there is."""
    options, counts, limit = setup.options, setup.counts, found["limit"]
    if not options.descent_steps:
        return
    setup.progress.stage(f"descending for {options.descent_steps} steps")
    # 1 over a bound of the curvature: that of softmax is at most 1/2.
    size = float(np.linalg.norm(np.sqrt(counts.shares)[:, None] * counts.contexts, 2))
    plain = TrainingSettings(
        loss="excess",
        batch_size=options.batch_size,
        schedule=((options.descent_steps, 2 / size**2),),
        n_checkpoints=options.checkpoints,
        random_state=setup.seeds.batches,
    )
    decoder, before = _decoder(setup), dict(found.get("network", {}))
    observer = Beside(limit, counts)
    path = _fit(setup, decoder, plain, observer, "descent.safetensors", first=not before)
    trained = {name: (before[name], found["trajectory"][name]) for name in before}
    yield _found(setup, limit, trained | {DESCENT: (decoder, path)})


def _decoder(setup: NextTokenSetup) -> TokenDecoder:
    counts, options = setup.counts, setup.options
    how: Any = {"dtype": torch_dtype(options.dtype), "device": options.device}
    return TokenDecoder(counts.contexts, counts.probabilities > 0, **how)


def _fit(
    setup: NextTokenSetup,
    decoder: TokenDecoder,
    settings: TrainingSettings,
    observer: Beside,
    state: str,
    *,
    first: bool = True,
) -> Trajectory:
    """Train the part of a decoder that it is of, on losses of weighted contexts or on margins."""
    counts = setup.counts
    weights = len(counts.shares) * counts.shares
    y = np.ones(len(weights)) if decoder.part == "outside" else weights * counts.entropies
    gates = weights[:, None] * counts.probabilities
    how: Any = {"settings": settings, "observer": observer, "state": state, "first": first}
    return fit(setup, decoder, counts.contexts, y, gates, **how)


def _found(
    setup: NextTokenSetup,
    limit: NextTokenLimit,
    trained: Mapping[str, tuple[TokenDecoder, Trajectory]],
) -> Finding:
    """Return the finding of decoders, with their comparison and pictures."""
    beside = Beside(limit, setup.counts)
    compared = {name: beside.compare(_weights(decoder)) for name, (decoder, _) in trained.items()}
    paths = {name: path for name, (_, path) in trained.items()}
    words = {"limit": cosines(limit.zeta)} | {
        name: one.word_cosines for name, one in compared.items()
    }
    panels: list[Any] = [
        partial(plot_course, name, paths) for name in ("margin_ratio", "limit_error")
    ]
    if limit.n_separable:
        panels.append(Row(len(words), partial(plot_words, words, setup.words), height=4.4))
    networks = {
        name: Trained(decoder, path, margins=False) for name, (decoder, path) in trained.items()
    }
    return Finding(
        "network",
        {
            "network": Several(networks, row=first_of),
            "comparison": Several(compared, row=first_of),
        },
        evidence=tuple(_evidence(limit, name, compared[name], paths[name]) for name in compared),
        panels=tuple(panels),
    )


def _weights(decoder: TokenDecoder) -> Floats:
    return np.asarray(decoder.weight.detach().double().cpu())


def first_of(cells: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the row of the first of several things."""
    return cells[0]


def _evidence(
    limit: NextTokenLimit, name: str, found: DecoderComparison, path: Trajectory
) -> Evidence:
    near = {"limit_error": found.limit_error}
    if limit.n_separable:
        near = {"margin_ratio": found.margin_ratio} | near
    return Evidence(
        status=limit.status,
        near=near,
        reason="margins grow like the logarithm of the steps" if name == DESCENT else path.stopped,
        remark="" if path.finished else "interrupted",
        network=name,
    )
