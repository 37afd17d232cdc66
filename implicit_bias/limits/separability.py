"""Separability of data under gates or contexts, with a proof either way."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .._support.doors import door
from .._support.solve import (
    Array,
    ArrayLike,
    Certificate,
    DenseArray,
    GatedDesign,
    MaxMarginProgram,
    Settings,
    Solution,
    Status,
    array_namespace,
    as_float64,
    certify,
    require_inputs,
    require_memory,
    solve,
    to_numpy,
)
from .formulation import real_data
from .predictors import checked_columns, count_units
from .result import Result

# Multipliers, relative to the largest, that count as those of support vectors: those of others
# fall below it by many digits. And most entries of the features of these, seconds to factorise.
SUPPORT = 1e-4
ENTRIES = 2**24


class Separability(Result):
    """Separability of data by a gated linear predictor, with its proof.

    True as a condition exactly where separability is proved. Where neither answer is proved,
    `separable` is None and `message` says why.

    Attributes
    ----------
    status : Status
        SOLVED if coefficients separate the data, NOT_SEPARABLE, or UNDECIDED: see `separable`.
    direction : array or None
        Coefficients at smallest margin 1, of the least norm: (D,) without gates, (H, D) with
        gates, (H, C, D) with contexts. None unless they separate.
    margin : float
        Smallest margin of `direction` at Frobenius norm 1, rounding at its worst; 0 without one.
    largest_margin : float
        Upper bound of the smallest margin of any coefficients of norm 1.
    multipliers : (n,) array or None
        Farkas multipliers: lam >= 0 with sum 1 and ``sum_n lam_n y_n phi(x_n) = 0`` up to
        `residual`, phi the features. None unless they prove that nothing separates.
    residual : float
        What is left of that sum, entry by entry relative to the sizes of its terms, rounded up.
        At most `certificate.separation_rounding`, 2^-52, where it proves something: every choice
        of coefficients leaves some sample a margin no larger than this share of its own terms.
    certificate : Certificate
        All bounds, recomputed from the arrays by code that knows no solver.
    message : str
        One sentence for people.

    Examples
    --------
    >>> found = ib.is_separable([[2.0], [-1.0]], [1, -1])
    >>> bool(found), found.direction.round(6).tolist(), round(found.margin, 6)
    (True, [1.0], 1.0)
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "separable: the returned coefficients have positive margins, rounding at "
        "its worst"
    }
    RECORD = ("separable",)

    status: Status
    direction: DenseArray | None
    margin: float
    largest_margin: float
    multipliers: DenseArray | None
    residual: float
    certificate: Certificate
    message: str

    @property
    def separable(self) -> bool | None:
        """True or False where it is proved; None where neither is."""
        return {Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(self.status)

    def __bool__(self) -> bool:
        return self.separable is True


@door()
def is_separable(
    X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None, *, contexts: ArrayLike | None = None
) -> Separability:
    r"""Decide whether coefficients zeta classify every sample correctly.

    .. math:: y_n \langle \zeta, x_n \rangle > 0, \qquad
              y_n \sum_h g_{nh} \langle \zeta_h, x_n \rangle > 0, \qquad
              y_n \sum_h \langle \zeta_{h, c_{nh}}, x_n \rangle > 0

    without gates, with gates (frozen ReLU networks) and with contexts (gated linear networks).
    Networks of any depth on these gates separate the data exactly if such coefficients do.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}; one class alone is fine.
    gates : (n, H) array, optional
        Real numbers, usually 0 and 1: those of `HyperplaneGates`, or a ReLU network's gates.
    contexts : (n, H) integer array, optional
        Numbers from 0 on, such as those of `HyperplaneContexts`.

    Returns
    -------
    Separability
        Status, coefficients or Farkas multipliers, and the certificate.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, values are not finite, labels are not -1 and +1, or gates and contexts
        are both given.

    References
    ----------
    J. Farkas, "Theorie der einfachen Ungleichungen", 1902: exactly one of the two proofs exists.

    Examples
    --------
    >>> corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    >>> xor = np.array([1.0, 1.0, -1.0, -1.0])
    >>> found = ib.is_separable(corners, xor)
    >>> found.separable, found.multipliers.tolist()
    (False, [0.25, 0.25, 0.25, 0.25])
    >>> bool(ib.is_separable(corners, xor, corners[:, :1] > 0))
    False
    >>> bool(ib.is_separable(corners, xor, contexts=(corners[:, :1] > 0).astype(int)))
    True
    """
    program, shape = _program(X, y, gates, contexts)
    solution = solve(program, settings=Settings())
    proved, primal = solution.certificate, solution.primal
    if not (proved.proves_separability() or proved.proves_inseparability()):
        proved, primal = _on_the_support(program, solution)
    status = Status.SOLVED if proved.proves_separability() else Status.UNDECIDED
    if proved.proves_inseparability():
        status = Status.NOT_SEPARABLE
    separable = status is Status.SOLVED
    margin = (1 - proved.separation_rounding) / proved.objective if separable else 0.0
    largest = (
        (1 + proved.separation_rounding) / proved.dual_objective
        if proved.dual_objective > 0
        else float("inf")
    )
    return Separability(
        status,
        primal.reshape(shape) if separable else None,
        margin,
        largest,
        solution.dual if status is Status.NOT_SEPARABLE else None,
        proved.separation_bound,
        proved,
        _message(status, margin, largest, proved, int((solution.dual > 0).sum())),
    )


def _on_the_support(program: MaxMarginProgram, solution: Solution) -> tuple[Certificate, Array]:
    """Return the coefficients of least norm with margin 1 on the support, if they separate.

    An orthogonal factorisation loses eps / margin of a margin, where products of features, which
    the solver works with, lose eps / margin^2: margins between 1e-14 and 1e-8 of the data's size
    are found here alone.
    """
    xp, design = array_namespace(program.y), program.design
    rows = xp.nonzero(solution.dual > SUPPORT * xp.max(solution.dual))[0]
    n_columns = int(design.Z.shape[1]) * int(design.X.shape[1])
    if not 0 < int(rows.shape[0]) * n_columns <= ENTRIES:
        return solution.certificate, solution.primal
    some = program.subset(rows)
    Z, X, y = (to_numpy(a) for a in (some.design.Z, some.design.X, some.y))
    A = (y[:, None, None] * Z[:, :, None] * X[:, None, :]).reshape(len(y), -1)
    found = np.linalg.lstsq(A, np.ones(len(y)), rcond=np.finfo(np.float64).eps)[0]
    primal = as_float64(found.reshape(Z.shape[1], X.shape[1]), like=design.X)
    proved = certify(program, primal, solution.dual)
    if not proved.proves_separability():
        return solution.certificate, solution.primal
    return proved, primal / proved.smallest_margin


def _program(
    X: Array, y: Array, gates: Array | None, contexts: Array | None
) -> tuple[MaxMarginProgram, tuple[int, ...]]:
    """The program of one group, whose norm is the plain one, and the shape of its coefficients."""
    if gates is not None and contexts is not None:
        raise ValueError("`gates` and `contexts` were both given: give what the network has")
    X, y = real_data(X, y)
    require_inputs(X)
    n_inputs = int(X.shape[1])
    Z, axes = _columns(X, gates, contexts)
    group = array_namespace(X).zeros(int(Z.shape[1]), dtype=array_namespace(X).int64)
    design = GatedDesign(X=X, Z=Z, group=array_namespace(X).asarray(group, device=X.device))
    return MaxMarginProgram(design=design, y=y), (*axes, n_inputs)


def _columns(
    X: Array, gates: Array | None, contexts: Array | None
) -> tuple[Array, tuple[int, ...]]:
    """Gate columns (n, J), and the axes of the coefficients but the last."""
    xp = array_namespace(X)
    if gates is None and contexts is None:
        return xp.ones((X.shape[0], 1), dtype=xp.float64, device=X.device), ()
    if contexts is None:
        Z, n_units = checked_columns("gates", gates, X)
        return Z, (n_units,)
    n_units = count_units("contexts", contexts, int(X.shape[0]))
    n_contexts = 1 + max(0, int(contexts.max()))
    require_memory(
        n_units * n_contexts * (int(X.shape[0]) + int(X.shape[1])),
        f"gates of {n_units} units x {n_contexts} contexts",
        "number the contexts of each unit from 0 on",
    )
    return checked_columns("contexts", contexts, X, n_contexts)[0], (n_units, n_contexts)


def _message(
    status: Status, margin: float, largest: float, proved: Certificate, n_used: int
) -> str:
    if status is Status.SOLVED:
        return (
            f"separable: at norm 1 every margin is at least {margin:.6g}, and no coefficients have "
            f"more than {largest:.6g}"
        )
    if status is Status.NOT_SEPARABLE:
        return (
            f"not separable: multipliers of {n_used} samples cancel, with "
            f"{proved.separation_bound:.2g} of their terms left"
        )
    return (
        f"undecided: the best coefficients found have the smallest margin "
        f"{proved.smallest_margin:.3g}, give or take {proved.margin_rounding:.2g} of rounding, and "
        f"the best multipliers leave {proved.separation_bound:.2g} of their terms, where "
        f"{proved.separation_rounding:.2g} would prove that nothing separates: rescale the "
        "features, or look for near-duplicates of opposite labels"
    )
