"""Processor seconds of programs of several classes or behind gates, in every norm, beside peers.

Each row is one program by one solver: the gap is certified from the coefficients and multipliers
that it returned, or, for solvers without multipliers, from its coefficients and the best known
lower bound. Seconds are also given in units of the structured solver's on the l2 program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from implicit_bias.data.images import load_idx_classes
from solvers import (
    GatedRows,
    Norm,
    NormProgram,
    RelativeMargins,
    Settings,
    certify_norm,
    solve_norm,
)

from .cases import halves_frelu
from .timing import Ended, OverTheLimit, in_child, machine, peak_mib, timed

NORMS = ("l2", "spectral", "nuclear", "linf", "l1")
SOLVERS = ("interior-point", "highs", "cvxpy:CLARABEL", "cvxpy:SCS", "liblinear")
SIZES = (120, 500, 5000)
# Images, and the norms of their programs: of more the l2 norm alone.
IMAGES: dict[int, tuple[str, ...]] = {500: NORMS, 2000: ("l2",), 10_000: ("l2",), 60_000: ("l2",)}
# Of MNIST's 10,000 test images one is held out; beyond the others they come again, with noise of
# this standard deviation on pixels that lie in [-1, 1].
DIFFERENT = 9_999
NOISE = 0.1
IMAGE_LIMIT = 3600.0
# Images of two classes behind the gates of so many ReLU units.
GATED, UNITS = 500, 20
# Above this, only solvers that do not multiply the margins out.
MULTIPLIED = 1000
MATRIX_FREE = ("interior-point", "liblinear")
LIMIT = 30.0
# The median of so many runs, unless they take more processor seconds than this.
REPEATS = 5
SHORT = 5.0
# liblinear's weight of errors: large enough that none is left on separable digits.
WEIGHT = 1e3


@dataclass(frozen=True)
class NormRow:
    """One program by one solver."""

    n: int
    classes: int
    units: int
    norm: str
    solver: str
    outcome: str
    objective: float
    gap: float
    cpu_seconds: float
    l2_units: float
    mib: float


def digits(n: int) -> RelativeMargins:
    """Relative margins of `n` bundled digits of ten classes, with a constant column."""
    from sklearn.datasets import load_digits

    data = load_digits()
    chosen = np.random.default_rng(0).permutation(len(data.target))[:n]
    X = np.column_stack([data.data[chosen] / 16 - 0.5, np.ones(n)])
    return RelativeMargins(X, np.asarray(data.target[chosen], dtype=np.int64), 10)


def planted(n: int) -> RelativeMargins:
    """Relative margins of `n` normal inputs of ten classes, with a constant column.

    Labels are those of a planted matrix; samples close to a tie are left out.
    """
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(2 * n, 64)), np.ones(2 * n)])
    scores = X @ rng.normal(size=(10, 65)).T
    first, second = np.sort(scores, axis=1)[:, :-3:-1].T
    kept = np.sort(np.argsort(second - first)[:n])
    return RelativeMargins(X[kept], np.argmax(scores[kept], axis=1), 10)


def images(data_dir: Path, n: int) -> RelativeMargins:
    """Relative margins of `n` images of ten classes, pixels in [-1, 1] and a constant column."""
    data = load_idx_classes(data_dir, n_train=min(n, DIFFERENT), n_val=1, random_state=1)
    again = np.arange(n) % len(data.X_train)
    X = data.X_train[again]
    more = X[DIFFERENT:, :-1]
    more += NOISE * np.random.default_rng(0).normal(size=more.shape)
    return RelativeMargins(X, data.labels_train[again], 10)


def behind_gates(data_dir: Path) -> GatedRows:
    """Margins of `GATED` images, digits 0 to 4 against 5 to 9, behind the gates of ReLU units."""
    program = halves_frelu(data_dir, GATED, UNITS)
    return GatedRows(program, (UNITS, program.design.X.shape[1]))


def run_norms(
    out: Path | None,
    limit: float | None = None,
    sizes: tuple[int, ...] = SIZES,
    data_dir: Path | None = None,
) -> None:
    """Print rows as they come, and with `out` write them to a CSV file.

    Parameters
    ----------
    out : Path or None
    limit : float or None
        Processor seconds of one run, by default `LIMIT`, of images `IMAGE_LIMIT`.
    sizes : tuple of int
        Numbers of samples: bundled digits up to 1,000, planted classes above.
    data_dir : Path or None
        Folder of images, of which `IMAGES` and those behind gates are then taken instead, by our
        own solver alone.
    """
    import pandas as pd

    rows, where = [], machine()
    limit = limit or (LIMIT if data_dir is None else IMAGE_LIMIT)

    def programs() -> Iterator[
        tuple[RelativeMargins | GatedRows, tuple[str, ...], tuple[str, ...]]
    ]:
        """Yield images, norms and solvers."""
        if data_dir is None:
            for n in sizes:
                small = n <= MULTIPLIED
                solvers = SOLVERS if small else MATRIX_FREE
                yield digits(n) if small else planted(n), NORMS, solvers
            return
        yield behind_gates(data_dir), NORMS, SOLVERS[:1]
        for n, norms in IMAGES.items():
            yield images(data_dir, n), norms, SOLVERS[:1]

    for program in programs():
        for row in time_norms(*program, limit):
            rows.append(row)
            click.echo(
                f"{row.n} x {row.classes}  {row.units:2} units  {row.norm:9} {row.solver:15} "
                f"{row.outcome:10} "
                f"gap {row.gap:8.1e}  {row.cpu_seconds:8.2f} s  {row.l2_units:7.1f} l2  "
                f"{row.mib:6.0f} MiB"
            )
            if out is not None:
                table = pd.DataFrame([asdict(one) for one in rows])
                table.assign(machine=where).to_csv(out, index=False)


def time_norms(
    image: RelativeMargins | GatedRows,
    norms: tuple[str, ...] = NORMS,
    solvers: tuple[str, ...] = SOLVERS,
    limit: float = LIMIT,
) -> Iterator[NormRow]:
    """Yield a row for every norm and every solver that takes it.

    Parameters
    ----------
    image : RelativeMargins or GatedRows
    norms, solvers : tuple of str
    limit : float
        Processor seconds of one run.
    """
    if isinstance(image, GatedRows):
        sizes = image.n_rows, 2, image.shape[0]
    else:
        sizes = len(image.X), image.n_classes, 0
    base = _run(image, "l2", "interior-point", 0.0, limit)[2] if len(norms) > 1 else None
    for norm in norms:
        lower = 0.0
        for solver in solvers:
            if not _takes(solver, norm):
                continue
            outcome, found, cpu, mib = _run(image, norm, solver, lower, limit)
            objective, gap, dual = found
            lower = max(lower, dual)
            yield NormRow(
                *sizes, norm, solver, outcome, objective, gap, cpu, cpu / (base or cpu), mib
            )


def _takes(solver: str, norm: str) -> bool:
    return {"highs": norm in ("l1", "linf"), "liblinear": norm == "l2"}.get(solver, True)


def _run(
    image: RelativeMargins | GatedRows, norm: str, solver: str, lower: float, limit: float
) -> _Run:
    """Outcome, objective and gap and lower bound, processor seconds and peak memory of one run."""
    program = NormProgram(image, Norm.of(norm))  # type: ignore[arg-type]
    call = _liblinear(program, lower) if solver == "liblinear" else _ours(program, solver)

    def produce() -> Iterator[_Run]:
        found, seconds = timed(call)
        took = [seconds.cpu]
        while len(took) < REPEATS and sum(took) < SHORT:
            took.append(timed(call)[1].cpu)
        yield *found, float(np.median(took)), peak_mib()

    try:
        return next(iter(in_child(produce, limit)))
    except OverTheLimit:
        return "over the limit", (np.inf, np.inf, 0.0), limit, np.nan
    except Ended as error:
        return f"failed: {error}", (np.inf, np.inf, 0.0), np.nan, np.nan


Found = tuple[str, tuple[float, float, float]]
_Run = tuple[str, tuple[float, float, float], float, float]


def _ours(program: NormProgram, solver: str) -> Callable[[], Found]:
    def call() -> Found:
        found = solve_norm(program, solver=solver, settings=Settings(tol=1e-8))  # type: ignore[arg-type]
        proof = found.certificate
        return found.status.name, (proof.objective, proof.gap, proof.dual_objective)

    return call


def _liblinear(program: NormProgram, lower: float) -> Callable[[], Found]:
    """Crammer's and Singer's machine at a large weight, without the constant that it would add."""
    from sklearn.svm import LinearSVC

    image = program.image
    assert isinstance(image, RelativeMargins)

    def call() -> Found:
        model = LinearSVC(
            multi_class="crammer_singer", C=WEIGHT, fit_intercept=False, tol=1e-6,
            max_iter=1_000_000,
        )  # fmt: skip
        model.fit(image.X, image.labels)
        W = np.asarray(model.coef_, dtype=np.float64)
        if len(W) == 1:
            W = np.vstack([-W, W]) / 2
        objective = certify_norm(program, W).objective
        gap = objective / lower - 1 if lower > 0 else np.inf
        return "COEFFICIENTS", (objective, gap, 0.0)

    return call
