"""What was made faster, beside what it took before or what a peer takes, as ratios of one run.

    python -m experiments.ratios --out experiments/results

Both ways of a row take turns in one process, on one thread: processor seconds, medians of the
rounds, and the median of the rounds' ratios. One row a comparison, `ratios.csv`. DAQP and Clarabel
are called directly on the arrays, liblinear through scikit-learn; what they leave out, the
certificate, is in ours.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

import implicit_bias as ib

from .spectra import machine
from .speed.timing import timed
from .tables import Kept, out_folder

Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """Processor seconds of one comparison, and the median of `seconds / other_seconds`."""

    what: str
    size: str
    seconds: float
    other: str
    other_seconds: float
    ratio: float


def compared(what: str, size: str, call: Call, other: str, peer: Call, rounds: int) -> Row:
    """Let both take turns, after one call of each that does not count."""
    call(), peer()
    pairs = [(timed(call)[1].cpu, timed(peer)[1].cpu) for _ in range(rounds)]
    ours, theirs = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return Row(what, size, statistics.median(ours), other, statistics.median(theirs), ratio)


def taught(X: Any, seed: int = 0) -> np.ndarray:
    """Labels (n,) of a linear teacher."""
    scores = X @ np.random.default_rng(seed).normal(size=X.shape[1])
    return np.where(scores < 0, -1.0, 1.0)


def few_dimensions(rounds: int, n: int = 3000, D: int = 20) -> list[Row]:
    """Gaussian samples, beside DAQP, and beside ours where DAQP is not installed."""
    import daqp

    from solvers.methods.backends import daqp as few_dimensions

    X = np.random.default_rng(0).normal(size=(n, D))
    y = taught(X, seed=1)

    def alone() -> object:
        no_upper, ones = np.full(n, 1e30), np.ones(n)
        return daqp.solve(np.eye(D), np.zeros(D), y[:, None] * X, no_upper, ones, primal_tol=1e-9)

    def without() -> object:
        known = few_dimensions._daqp
        few_dimensions._daqp = lambda: None  # type: ignore[assignment]
        try:
            return ib.solve_linear_svm(X, y)
        finally:
            few_dimensions._daqp = known

    def ours() -> object:
        return ib.solve_linear_svm(X, y)

    size, what = f"{n} x {D}", "linear SVM, few dimensions"
    found = [compared(what, size, ours, "DAQP alone", alone, rounds)]
    if n <= 3000:
        found.append(compared(what, size, ours, "active set of samples", without, rounds))
    return found


def linear_norms(rounds: int, n: int = 500, D: int = 785) -> list[Row]:
    """Gaussian samples in the norms of entries, beside HiGHS alone on the linear program."""
    from scipy.optimize import linprog

    X = np.random.default_rng(0).normal(size=(n, D))
    y = taught(X, seed=1)
    A, one = -y[:, None] * X, -np.ones(n)

    def largest() -> object:
        bounded = sp.vstack([sp.eye_array(D), -sp.eye_array(D)])
        A_ub = sp.block_array([[A, None], [bounded, -np.ones((2 * D, 1))]], format="csr")
        cost, b_ub = np.append(np.zeros(D), 1.0), np.append(one, np.zeros(2 * D))
        return linprog(cost, A_ub, b_ub, bounds=[(None, None)] * D + [(0, None)])

    def total() -> object:
        return linprog(np.ones(2 * D), np.hstack([A, -A]), one, bounds=(0, None))

    few = max(1, rounds // 4)
    return [
        compared(f"linear SVM, {norm}", f"{n} x {D}",
                 partial(ib.solve_linear_svm, X, y, norm=norm), "HiGHS alone", alone, few)
        for norm, alone in (("linf", largest), ("l1", total))
    ]  # fmt: skip


def sparse_inputs(rounds: int, n: int = 2000, D: int = 8000) -> list[Row]:
    """CSR inputs of density 1e-3, beside Clarabel, liblinear and the dense copy's kernel."""
    import clarabel
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = sp.random_array((n, D), density=1e-3, rng=rng, format="csr", data_sampler=rng.normal)
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr) > 0)])
    y = taught(X, seed=1)
    A = sp.csc_array(-sp.diags_array(y) @ X)

    def by_clarabel() -> object:
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        cones = [clarabel.NonnegativeConeT(A.shape[0])]
        P, zero, ones = sp.eye_array(D, format="csc"), np.zeros(D), -np.ones(A.shape[0])
        return clarabel.DefaultSolver(
            sp.csc_matrix(P), zero, sp.csc_matrix(A), ones, cones, settings
        ).solve()

    def by_liblinear() -> object:
        svm = LinearSVC(loss="hinge", C=1e6, fit_intercept=False, tol=1e-8, max_iter=10**6)
        return svm.fit(X, y)

    def ours() -> object:
        return ib.solve_linear_svm(X, y)

    def kernel() -> object:
        return ib.solve_kernel_svm(X @ X.T, y)

    def dense_kernel() -> object:
        return ib.solve_kernel_svm((X @ X.T).toarray(), y)

    size, few = f"{X.shape[0]} x {D}, {X.nnz} entries", max(1, rounds // 4)
    return [
        compared("linear SVM, CSR", size, ours, "Clarabel", by_clarabel, few),
        compared("linear SVM, CSR", size, ours, "liblinear", by_liblinear, rounds),
        compared("kernel SVM, CSR", size, kernel, "the kernel dense", dense_kernel, few),
    ]


def multiplier_fits(rounds: int) -> list[Row]:
    """A DLGN's run with the fit of multipliers that gives up, and with one that never does."""
    from solvers.methods.sets import nonnegative

    stalled = nonnegative.STALLED

    def patient() -> object:
        nonnegative.STALLED = 10**9
        try:
            return ib.run("dlgn")
        finally:
            nonnegative.STALLED = stalled

    few, never = max(1, rounds // 4), "a fit that never gives up"
    return [compared("dlgn, whole run", "500 x 65", lambda: ib.run("dlgn"), never, patient, few)]


def layers(rounds: int, n: int = 2000, width: int = 100) -> list[Row]:
    """Singular values of a layer's features by either Gram matrix."""
    features = np.random.default_rng(0).normal(size=(n, width))
    row = compared(
        "singular values of a layer",
        f"{n} x {width}",
        lambda: np.linalg.eigvalsh(features.T @ features),
        "the larger Gram matrix",
        lambda: np.linalg.eigvalsh(features @ features.T),
        max(1, rounds // 4),
    )
    return [row]


def surfaces(rounds: int) -> list[Row]:
    """Which chords of fold surfaces share a line: one table, and every pair by itself."""
    from implicit_bias.measures.equivalence import surfaces

    rng = np.random.default_rng(0)
    angles, offsets = rng.uniform(0, np.pi, 200), rng.normal(size=200)
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    along = np.column_stack([-normals[:, 1], normals[:, 0]])
    ends = -offsets[:, None, None] * normals[:, None] + along[:, None] * [[[-1.0], [1.0]]]
    chords = [
        surfaces._Chord(one, float(at), pair, 1, 0)
        for one, at, pair in zip(normals, offsets, ends, strict=True)
    ]

    def pairs() -> object:
        return [
            np.abs(b.ends @ a.normal + a.offset).max() <= 1e-9
            and abs(surfaces._cross(a.normal, b.normal)) <= 1e-9
            for a in chords for b in chords
        ]  # fmt: skip

    def table() -> object:
        return surfaces._Table.of(chords, 1.0)

    return [compared("chords on one line", "200 chords", table, "every pair", pairs, rounds)]


START = "from implicit_bias import cli\ncli.compare({words!r})"
HEAVY = "import torch, sklearn.datasets\n"


def start_up(rounds: int) -> list[Row]:
    """Predicting a limit from the command line, and the same with what it imported before."""

    def started(model: str, before: str) -> Call:
        words = ["--model", model, "--steps", "0", "--quiet"]
        code = before + START.format(words=words)
        return lambda: subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    return [
        compared_children(model, started(model, ""), started(model, HEAVY), max(2, rounds // 4))
        for model in ("gln", "linear")
    ]


def compared_children(model: str, call: Call, peer: Call, rounds: int) -> Row:
    """As `compared`, of the processor seconds of child processes."""
    import resource

    def spent(run: Call) -> float:
        def total() -> float:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        before = total()
        run()
        return total() - before

    spent(call), spent(peer)
    pairs = [(spent(call), spent(peer)) for _ in range(rounds)]
    ours, theirs = zip(*pairs, strict=True)
    return Row(
        f"compare --model {model} --steps 0", "whole process", statistics.median(ours),
        "with torch and sklearn.datasets", statistics.median(theirs),
        statistics.median(a / b for a, b in pairs),
    )  # fmt: skip


def many_samples(rounds: int) -> list[Row]:
    """Many times as many samples of fewer dimensions, where passes over the inputs count."""
    few = max(1, rounds // 4)
    return [row for n in (200_000, 1_000_000) for row in few_dimensions(few, n, 10)]


COMPARISONS = (
    few_dimensions,
    many_samples,
    linear_norms,
    sparse_inputs,
    multiplier_fits,
    layers,
    surfaces,
    start_up,
)


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=12, show_default=True)
@out_folder
def main(rounds: int, out: Path) -> None:
    """Time all comparisons."""
    click.echo(machine())
    rows = []
    for comparison in COMPARISONS:
        for row in comparison(rounds):
            rows.append(row)
            click.echo(f"{row.what}: {row.seconds:.3g} s, {row.ratio:.3g} x {row.other}")
    Kept(out / "ratios.csv", float_format="%.3g").add(map(asdict, rows))


if __name__ == "__main__":
    main()
