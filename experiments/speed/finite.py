"""Processor seconds of penalised fits, the limits of training with weight decay, beside peers.

Each row is one program by one solver. Its gap is how far the value of the coefficients that it
returned is above the largest certified lower bound of the optimum, relative: that of the
structured solver's multipliers, or of the loss slopes at any coefficients. Peers that are not
installed are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import implicit_bias as ib

from .cases import halves
from .timing import Ended, OverTheLimit, in_child, machine, timed

Floats = NDArray[np.float64]
OURS, TOL, LIMIT = "solve_fit", 1e-9, 60.0
IMAGE_LIMIT = 3600.0


@dataclass(frozen=True)
class FiniteCase:
    """One program.

    Attributes
    ----------
    n, inputs : int
        Samples; inputs of a planted problem, 0 for bundled digits or images.
    units : int
        Gates; 0 for none.
    loss, norm : str
    penalty : float
    folder : Path or None
        Of images, digits 0 to 4 against 5 to 9; our own solver alone is timed on them.
    """

    n: int
    inputs: int
    units: int
    loss: str
    norm: str
    penalty: float
    folder: Path | None = None

    def data(self) -> tuple[Floats, Floats, Floats | None]:
        """Inputs, labels and gates."""
        if self.inputs:
            rng = np.random.default_rng(0)
            X = rng.normal(size=(self.n, self.inputs))
            y = np.sign(X[:, 0] + np.maximum(X[:, 1], 0) - 0.3 + 0.3 * rng.normal(size=self.n))
            gates = (X @ rng.normal(size=(self.inputs, self.units)) > 0).astype(np.float64)
            return X, y, gates if self.units else None
        if self.folder is not None:
            X, y = halves(self.folder, self.n)
        else:
            data = ib.datasets.load_digits(n_train=self.n, n_val=10, random_state=0)
            X, y = data.X_train, data.y_train
        if not self.units:
            return X, y, None
        gates = ib.HyperplaneGates(self.units, random_state=0).fit_transform(X)
        return X, y, gates.astype(np.float64)


DIGITS = tuple(
    FiniteCase(500, 0, 20, loss, "units", penalty)
    for loss in ("logistic", "squared")
    for penalty in (1e-2, 1e-3, 1e-4, 1e-6)
)
CASES = (
    *DIGITS,
    FiniteCase(500, 0, 0, "squared", "l1", 1e-3),
    FiniteCase(500, 0, 0, "logistic", "ridge", 1e-3),
    FiniteCase(5000, 250, 20, "logistic", "units", 1e-3),
    FiniteCase(5000, 250, 20, "squared", "units", 1e-3),
    FiniteCase(5000, 500, 0, "squared", "l1", 1e-3),
    FiniteCase(5000, 500, 0, "logistic", "ridge", 1e-3),
)


def of_images(folder: Path) -> tuple[FiniteCase, ...]:
    """Images behind gates, up to all test images of MNIST but the one that is held out."""
    return tuple(
        FiniteCase(n, 0, 20, loss, "units", 1e-3, folder)
        for n in (2000, 5000, 9999)
        for loss in ("logistic", "squared")
    )


@dataclass(frozen=True)
class FiniteRow:
    """One program by one solver."""

    n: int
    coefficients: int
    loss: str
    norm: str
    penalty: float
    solver: str
    outcome: str
    objective: float
    gap: float
    cpu_seconds: float


def run_finite(out: Path | None, limit: float | None = None, data_dir: Path | None = None) -> None:
    """Print rows as they come, and with `out` write them to a CSV file.

    Parameters
    ----------
    out : Path or None
    limit : float or None
        Processor seconds of one run, by default `LIMIT`, of images `IMAGE_LIMIT`.
    data_dir : Path or None
        Folder of images, which are then taken instead of `CASES`.
    """
    import pandas as pd

    rows, where = [], machine()
    limit = limit or (LIMIT if data_dir is None else IMAGE_LIMIT)
    for missing in ("celer", "skglm"):
        if find_spec(missing) is None:
            click.echo(f"{missing} is not installed, and left out")
    for case in CASES if data_dir is None else of_images(data_dir):
        for row in time_finite(case, limit):
            rows.append(row)
            click.echo(
                f"{row.n} x {row.coefficients}  {row.loss:9} {row.norm:6} {row.penalty:6g} "
                f"{row.solver:24} {row.outcome:10} gap {row.gap:8.1e}  {row.cpu_seconds:8.2f} s"
            )
            if out is not None:
                table = pd.DataFrame([asdict(one) for one in rows])
                table.assign(machine=where).to_csv(out, index=False)


def time_finite(case: FiniteCase, limit: float = LIMIT) -> Iterator[FiniteRow]:
    """Yield a row for every solver that takes a case.

    Parameters
    ----------
    case : FiniteCase
    limit : float
        Processor seconds of one run.
    """
    X, y, gates = case.data()
    asked: dict[str, Any] = {"loss": case.loss, "penalty": case.penalty, "norm": case.norm}
    # What bounds coefficients by plain arithmetic; its own are of no use here.
    judge = ib.limits.solve_fit(X[:1], y[:1], None if gates is None else gates[:1], **asked)
    n_coefficients = X.shape[1] * max(case.units, 1)
    lower = -np.inf
    for name, call in _solvers(case, X, y, gates).items():

        def produce(call: Callable[[], Found] = call) -> Iterator[tuple[Found, float]]:
            found, seconds = timed(call)
            yield found, seconds.cpu

        outcome, objective, gap, cpu = "", np.inf, np.inf, limit
        try:
            (zeta, proved), cpu = next(iter(in_child(produce, limit)))
            bounds = judge.bounds_of(zeta.reshape(judge.zeta.shape), X, y, gates)
            lower = max(lower, proved, bounds.dual_objective)
            outcome, objective = "returned", bounds.objective
            gap = max(objective - lower, 0.0) / objective
        except OverTheLimit:
            outcome = "over the limit"
        except Ended as error:
            outcome, cpu = f"failed: {error}", np.nan
        yield FiniteRow(
            case.n, n_coefficients, case.loss, case.norm, case.penalty, name, outcome, objective,
            gap, cpu,
        )  # fmt: skip


# Coefficients, and a lower bound that their solver certifies.
Found = tuple[Floats, float]


def _solvers(
    case: FiniteCase, X: Floats, y: Floats, gates: Floats | None
) -> dict[str, Callable[[], Found]]:
    asked: dict[str, Any] = {"loss": case.loss, "penalty": case.penalty, "norm": case.norm}

    def ours() -> Found:
        limit = ib.limits.solve_fit(X, y, gates, tol=TOL, **asked)
        return np.asarray(limit.zeta), limit.certificate.dual_objective

    found: dict[str, Callable[[], Found]] = {OURS: ours}
    if case.folder is not None:
        return found
    found["cvxpy:CLARABEL"] = lambda: _clarabel(case, X, y, gates)
    if (case.loss, case.norm) == ("squared", "l1"):
        found["sklearn:Lasso"] = lambda: _lasso("sklearn.linear_model", case, X, y)
        if find_spec("celer") is not None:
            found["celer:Lasso"] = lambda: _lasso("celer", case, X, y)
        if find_spec("skglm") is not None:
            found["skglm:Lasso"] = lambda: _lasso("skglm", case, X, y)
    if (case.loss, case.norm) == ("logistic", "ridge"):
        found["sklearn:LogisticRegression"] = lambda: _logistic(case, X, y)
    return found


def _clarabel(case: FiniteCase, X: Floats, y: Floats, gates: Floats | None) -> Found:
    formulation = ib.programs.WeightDecay(case.loss, case.norm, penalty=case.penalty)
    problem = formulation.literal(X, y, gates)
    problem.solve(solver="CLARABEL")
    (zeta,) = [one for one in problem.variables() if one.name() == "zeta"]
    return np.asarray(zeta.value, dtype=np.float64), -np.inf


def _lasso(module: str, case: FiniteCase, X: Floats, y: Floats) -> Found:
    """Lasso of scikit-learn's interface, whose penalty is that of half the mean square too."""
    from importlib import import_module

    model = import_module(module).Lasso(
        alpha=case.penalty, fit_intercept=False, tol=1e-12, max_iter=1_000_000
    )
    return np.asarray(model.fit(X, y).coef_, dtype=np.float64), -np.inf


def _logistic(case: FiniteCase, X: Floats, y: Floats) -> Found:
    from sklearn.linear_model import LogisticRegression

    weight = 1 / (case.penalty * len(y))  # its loss is a sum
    model = LogisticRegression(C=weight, fit_intercept=False, tol=1e-12, max_iter=100_000)
    return np.asarray(model.fit(X, y).coef_[0], dtype=np.float64), -np.inf
