"""The run of next tokens: counts of a text, the limit, and what is trained beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...data.files.array_files import read_arrays
from ...data.files.readers import read_table
from ...data.made.text import text_contexts
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.setup import Setup, training_settings
from ...runs.stages import Found, Run, Stage, later
from ...training.settings import TrainingSettings
from .limit import solve_next_token
from .model import COMPATIBLE, SEPARABLE, SOME
from .program import InSupportLoss, NextTokenSVM
from .tokens import TokenCounts, token_counts

NAME = NextTokenSVM.name


@dataclass(frozen=True, eq=False, kw_only=True)
class NextTokenSetup(Setup):
    """The setup of a run, with its contexts.

    Attributes
    ----------
    counts : TokenCounts
    words : tuple of str
        Names of the tokens.
    settings : TrainingSettings
        Of the part that grows.
    """

    counts: TokenCounts
    words: tuple[str, ...]
    settings: TrainingSettings


def run_next_token(setup: Setup) -> Run[NextTokenSetup]:
    """Count tokens, predict a linear decoder of them, train it in two parts and as a whole.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    counts, words, about, n_train = _read(setup)
    options, (m, V) = setup.options, counts.probabilities.shape
    # Mini-batches are of descent alone.
    settings = training_settings(replace(options, batch_size=0), setup.seeds, loss="logistic")
    whole = NextTokenSetup(**setup.shared, counts=counts, words=words, settings=settings)
    heading = setup.heading(
        {
            "description": f"{about}: {m} contexts, {V} tokens",
            "n_train": n_train,
            "n_inputs": int(counts.contexts.shape[1]),
            "sha256": counts.digest(),
        },
        title="a linear decoder of next tokens beside its limit",
    )
    return Run(setup=whole, heading=heading, stages=STAGES)


def _read(setup: Setup) -> tuple[TokenCounts, tuple[str, ...], str, int]:
    """Return the contexts, names of the tokens, a description, and how many were counted."""
    options, own, words = setup.options, setup.user_data, tuple[str, ...]()
    is_text = own.X is None and options.data == "text"
    for name in ("label",) if is_text else ("context", "dimension"):
        if getattr(options, name) is not None:
            of = "a file" if is_text else "`--data text`"
            raise ValueError(f"`--{name}` is of {of}, not of these data: leave it out")
    if own.X is not None and np.ndim(own.y) == 2:
        counts = _own(TokenCounts, own.X, own.y)
        return counts, _numbered(counts), "contexts of the caller's own", len(own.X)
    if own.X is not None:
        X, tokens, about = own.X, own.y, "tokens of the caller's own"
    elif is_text:
        k, D = options.context or 1, options.dimension or 32
        X, tokens, words = text_contexts(k, D, random_state=setup.seeds.data)
        about = f"words of the bundled text after {k} of them, embedded at random"
    elif stored := _chances(Path(options.data), options.label or "y"):
        counts = _own(TokenCounts, *(one[: options.n_train or None] for one in stored))
        about = f"contexts of {Path(options.data).name}"
        return counts, _numbered(counts), about, len(counts.contexts)
    else:
        table = read_table(Path(options.data), options.label)
        labels, tokens = np.unique(table.labels, return_inverse=True)
        X, words = table.X, tuple(table.names.get(int(k), str(k)) for k in labels)
        about = f"tokens of {table.source}"
    n = min(options.n_train or len(X), len(X))
    count = token_counts if own.X is None else partial(_own, token_counts)
    counts = count(X[:n], tokens[:n], len(words) or None)
    return counts, words or _numbered(counts), f"{n} {about}", n


def _chances(path: Path, name: str) -> tuple[Any, ...]:
    """Return X, the chances (m, V) and, if there, the weights of an .npz file; () for tokens."""
    if path.suffix.lower() != ".npz":
        return ()
    y = read_arrays(path, (name,), ())[name]
    if y.ndim != 2 or y.shape[1] == 1:
        return ()
    return tuple(read_arrays(path, ("X", name), ("weights",)).values())


def _own(make: Callable[..., TokenCounts], *arrays: Any) -> TokenCounts:
    """Make counts of `X` and `y`, which messages call so."""
    try:
        return make(*arrays)
    except (TypeError, ValueError) as error:
        said = str(error).replace("`contexts`", "`X`")
        raise type(error)(re.sub("`(tokens|probabilities)`", "`y`", said)) from error


def _numbered(counts: TokenCounts) -> tuple[str, ...]:
    return tuple(map(str, range(counts.probabilities.shape[1])))


def _predict(setup: NextTokenSetup, found: Found) -> Iterator[Finding]:
    counts = setup.counts
    setup.progress.stage(f"solving the {NAME} of {len(counts.contexts)} contexts")
    arrays = counts.contexts, counts.probabilities, counts.weights
    limit = solve_next_token(*arrays, tol=setup.options.tol)
    out = limit.n_separable + limit.n_stuck
    assumptions = (
        COMPATIBLE.found(holds=limit.compatible, excess=limit.excess),
        SEPARABLE.found(stuck=limit.n_stuck, n=out),
        SOME.found(n=out),
    )
    yield Finding("limit", {"limit": limit}, NAME, assumptions=assumptions)


def _state(setup: NextTokenSetup) -> Iterator[StatedProgram]:
    counts = setup.counts
    yield stated(NAME, NextTokenSVM().literal(counts.contexts, counts.probabilities))
    loss = InSupportLoss().literal(counts.contexts, counts.probabilities, counts.weights)
    yield stated(InSupportLoss.name, loss, "the finite part is its minimiser of least norm")


STAGES: tuple[Stage[NextTokenSetup], ...] = (
    Stage(finds=_predict, states=_state),
    Stage(finds=later(f"{__package__}.training:train"), trains=True),
)
