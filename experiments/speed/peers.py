"""Other solvers of the same programs, each called as its users would call it.

A peer gets a program and a tolerance and returns coefficients (J, D) and multipliers (n,), at any
scale, or None for what it does not tell. What they prove is for `certify` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from solvers import MaxMarginProgram, Settings, certify, solve

Array = np.ndarray[Any, np.dtype[np.float64]]
Answer = tuple[Array | None, Array | None]

OURS = "interior-point"
TARGETS = (1e-4, 1e-6, 1e-8)
# Tolerances from loose to tight: by decades where a tighter one costs in proportion, by two where
# it costs an interior point a few more iterations.
DECADES = tuple(10.0**-k for k in range(3, 11))
STEPS = (1e-4, 1e-6, 1e-8, 1e-10)
# Hard margins: far above any multiplier of these programs, which end between 1e-6 and 1e3.
HARD = 1e10
MANY = 10**7
# The literal program holds the entries of its constraint matrix that are not zero in several
# copies of 12 bytes or more each: beyond so many, 5 GB, it is not started.
ENTRIES = 1e8


def signed_rows(program: MaxMarginProgram) -> Array:
    """(n, J D): the rows `y[n] Z[n, j] X[n]`, with which a program of one group reads A w >= 1."""
    design = program.design
    rows = np.einsum("n,nj,nd->njd", program.y, design.Z, design.X)
    return np.asarray(rows.reshape(len(rows), -1))


def _half_negated(A: Array) -> tuple[Array, Array]:
    """The same program with labels of both kinds, as classifiers want them."""
    y = np.where(np.arange(len(A)) % 2 == 0, 1.0, -1.0)
    return A * y[:, None], y


def _libsvm(A: Array, tol: float) -> Answer:
    """Every sample and its negative: by symmetry the intercept that libsvm always fits is zero."""
    svm = import_module("sklearn.svm")
    n = len(A)
    y = np.repeat([1.0, -1.0], n)
    found = svm.SVC(kernel="linear", C=HARD, tol=tol, cache_size=1000).fit(np.vstack([A, -A]), y)
    lam = np.zeros(2 * n)
    lam[found.support_] = np.abs(found.dual_coef_[0])
    return found.coef_[0], lam[:n] + lam[n:]


def _libsvm_intercept(A: Array, tol: float) -> Answer:
    """The samples as they are, with an intercept that costs nothing: another program."""
    svm = import_module("sklearn.svm")
    X, y = _half_negated(A)
    found = svm.SVC(kernel="linear", C=HARD, tol=tol, cache_size=1000).fit(X, y)
    lam = np.zeros(len(A))
    lam[found.support_] = np.abs(found.dual_coef_[0])
    return found.coef_[0], lam


def _liblinear(A: Array, tol: float) -> Answer:
    svm = import_module("sklearn.svm")
    found = svm.LinearSVC(
        loss="hinge", dual=True, C=HARD, fit_intercept=False, tol=tol, max_iter=MANY, random_state=0
    ).fit(*_half_negated(A))
    return found.coef_[0], None


def _skglm(A: Array, tol: float) -> Answer:
    estimators = import_module("skglm.estimators")
    found = estimators.LinearSVC(C=HARD, tol=tol, max_iter=1000, fit_intercept=False)
    return found.fit(*_half_negated(A)).coef_.ravel(), None


def _nnls(A: Array, tol: float) -> Answer:
    """Lawson and Hanson's reduction: least squares of [A'; 1'] u = e_last, u >= 0."""
    E, last = np.vstack([A.T, np.ones(len(A))]), np.append(np.zeros(A.shape[1]), 1.0)
    lam = nnls(E, last, maxiter=100 * len(A))[0]
    r = E @ lam - last
    return -r[:-1] / r[-1], lam


def _quadprog(A: Array, tol: float) -> Answer:
    n_inputs = A.shape[1]
    solve_qp = import_module("quadprog").solve_qp
    found = solve_qp(
        np.eye(n_inputs), np.zeros(n_inputs), np.ascontiguousarray(A.T), np.ones(len(A))
    )
    return found[0], found[4]


def _daqp(A: Array, tol: float) -> Answer:
    n, n_inputs = A.shape
    w, _, _, info = import_module("daqp").solve(
        np.eye(n_inputs), np.zeros(n_inputs), np.ascontiguousarray(A), np.full(n, 1e30),
        np.ones(n), np.zeros(n, dtype=np.int32), primal_tol=tol, iter_limit=MANY,
    )  # fmt: skip
    return w, -info["lam"]


def _piqp(A: Array, tol: float) -> Answer:
    n, n_inputs = A.shape
    solver = import_module("piqp").DenseSolver()
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, tol)
    solver.setup(np.eye(n_inputs), np.zeros(n_inputs), None, None, A, np.ones(n), None, None, None)
    solver.solve()
    return solver.result.x, solver.result.z_l


def _osqp(A: Array, tol: float) -> Answer:
    n, n_inputs = A.shape
    solver = import_module("osqp").OSQP()
    solver.setup(
        sp.identity(n_inputs, format="csc"), np.zeros(n_inputs), sp.csc_matrix(A), np.ones(n),
        np.full(n, np.inf), eps_abs=tol, eps_rel=tol, max_iter=MANY, verbose=False,
    )  # fmt: skip
    found = solver.solve()
    return found.x, -found.y


def _clarabel(A: Array, tol: float) -> Answer:
    clarabel = import_module("clarabel")
    n, n_inputs = A.shape
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    found = clarabel.DefaultSolver(
        sp.identity(n_inputs, format="csc"), np.zeros(n_inputs), sp.csc_matrix(-A), -np.ones(n),
        [clarabel.NonnegativeConeT(n)], settings,
    ).solve()  # fmt: skip
    return np.array(found.x), np.array(found.z)


def _scs(A: Array, tol: float) -> Answer:
    n, n_inputs = A.shape
    data = {
        "P": sp.identity(n_inputs, format="csc"), "A": sp.csc_matrix(-A),
        "b": -np.ones(n), "c": np.zeros(n_inputs),
    }  # fmt: skip
    found = import_module("scs").SCS(
        data, {"l": n}, eps_abs=tol, eps_rel=tol, max_iters=MANY, verbose=False
    ).solve()  # fmt: skip
    return found["x"], found["y"]


def _one_group(
    run: Callable[[Array, float], Answer],
) -> Callable[[MaxMarginProgram, float], Answer]:
    """A quadratic program in w as a peer of programs with one group."""

    def peer(program: MaxMarginProgram, tol: float) -> Answer:
        w, lam = run(signed_rows(program), tol)
        shape = (program.design.Z.shape[1], program.design.X.shape[1])
        return None if w is None else np.asarray(w).reshape(shape), lam

    return peer


def _through(name: Any, program: MaxMarginProgram, tol: float) -> Answer:
    found = solve(program, solver=name, settings=Settings(tol=tol))
    return np.asarray(found.primal), np.asarray(found.dual)


def gap_of(program: MaxMarginProgram, answer: Answer, bound: float) -> float:
    """The certified gap of a peer's own pair; without multipliers, that above `bound`.

    `bound` is a certified lower bound of the optimum. Multipliers are clipped at zero.
    """
    primal, dual = answer
    if dual is None:
        return float(certify(program, primal).objective / bound - 1)
    return float(certify(program, primal, np.clip(dual, 0, None)).gap)


def gap_with_intercept(program: MaxMarginProgram, answer: Answer, bound: float) -> float:
    """The gap of the program `min ||w||  s.t.  y (<w, x> + b) >= 1`, of rows as `_half_negated`.

    The best b takes the smallest margins of both classes to their mean. Its dual asks for equal
    sums of multipliers of both, and has the value `sum(lam) / ||sum_n lam_n y_n x_n||`.
    """
    X, y = _half_negated(signed_rows(program))
    w, lam = answer
    if w is None or lam is None:
        return np.inf
    margins, positive = X @ np.ravel(w) * y, y > 0
    smallest = (margins[positive].min() + margins[~positive].min()) / 2
    lam = lam / np.where(positive, lam[positive].sum(), lam[~positive].sum())
    upper, lower = np.linalg.norm(w) / smallest, 2 / np.linalg.norm((lam * y) @ X)
    return float(upper / lower - 1) if smallest > 0 else np.inf


@dataclass(frozen=True)
class Peer:
    """A solver: what it needs installed, its tolerances from loose to tight, and what it takes."""

    name: str
    package: str
    run: Callable[[MaxMarginProgram, float], Answer]
    tolerances: tuple[float, ...]
    one_group: bool = True
    gap: Callable[[MaxMarginProgram, Answer, float], float] = gap_of

    @property
    def installed(self) -> bool:
        """Whether its package can be imported."""
        return find_spec(self.package) is not None

    def takes(self, program: MaxMarginProgram) -> bool:
        """Whether it states programs of this kind at all."""
        return program.n_groups == 1 or not self.one_group

    def entries(self, program: MaxMarginProgram) -> float:
        """Entries of the constraint matrix that it multiplies out; 0 if it does not."""
        if self.name == OURS:
            return 0.0
        return float(np.count_nonzero(program.design.Z)) * float(program.design.X.shape[1])


def _quadratic(name: str, package: str, run: Any, tolerances: tuple[float, ...]) -> Peer:
    return Peer(name, package, _one_group(run), tolerances)


def _cvxpy(name: str, tolerances: tuple[float, ...], *, one_group: bool = False) -> Peer:
    run = partial(_through, f"cvxpy:{name.upper()}")
    return Peer(f"{name}, cvxpy", name.lower(), run, tolerances, one_group)


PEERS = (
    Peer(OURS, "solvers", partial(_through, OURS), TARGETS, one_group=False),
    _quadratic("libsvm", "sklearn", _libsvm, DECADES),
    replace(
        _quadratic("libsvm, free intercept", "sklearn", _libsvm_intercept, DECADES),
        gap=gap_with_intercept,
    ),
    _quadratic("liblinear", "sklearn", _liblinear, DECADES),
    _quadratic("skglm", "skglm", _skglm, DECADES),
    _quadratic("NNLS", "scipy", _nnls, (0.0,)),
    _quadratic("quadprog", "quadprog", _quadprog, (0.0,)),
    _quadratic("DAQP", "daqp", _daqp, STEPS),
    _quadratic("PIQP", "piqp", _piqp, STEPS),
    _quadratic("OSQP", "osqp", _osqp, DECADES),
    _quadratic("Clarabel", "clarabel", _clarabel, STEPS),
    _quadratic("SCS", "scs", _scs, DECADES),
    _cvxpy("OSQP", STEPS, one_group=True),
    _cvxpy("Clarabel", STEPS),
    _cvxpy("SCS", STEPS),
    _cvxpy("ECOS", STEPS),
)
