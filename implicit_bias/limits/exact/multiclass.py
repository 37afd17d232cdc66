"""The joint limit of K classes: softmax under the optimiser whose norm is minimised."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np

from ..._support.doors import door
from ..._support.kinds import anything, count
from ..._support.solve import (
    Array,
    ArrayLike,
    DenseArray,
    Norm,
    NormName,
    NormProgram,
    NormSolution,
    RelativeMargins,
    Status,
    array_namespace,
    as_float64,
    conclude_norm,
    require_real,
    require_scale,
    require_shape,
    solve_norm,
    solver_of,
    to_numpy,
)
from ..._support.words import Inseparable
from ...data.arrays import Floats
from ..formulation import Solving, chosen
from ..limit import Limit
from ..predictors import MulticlassPredictor, unit_matrices
from ..result import SeparatingLimit
from .joint_margin import JointMargin, class_labels, class_matrix
from .split import WAY_OUT, SplitLimit, solve_split

# A pair supports if its multiplier over the largest exceeds its slack, margins in their own units.
_CLOSE = 1e-9
# Share of the largest unit's norm at which an interior point leaves units that are 0.
LIVE = 1e-6


class MulticlassLimit(SeparatingLimit):
    """The max-margin solution of K classes at once, in the norm of an optimiser.

    Arrays are of the kind and on the device of the inputs that were given, in float64.

    Attributes
    ----------
    zeta : (K, D), (H, K, D) or (H, K, C, D) array
        Coefficients, a matrix a gate where there are gates, or a unit and context, at smallest
        relative margin 1.
    dual : (n, K) array
        Multipliers of the relative margins, 0 at the own class; with sum 1 where they prove
        inseparability.
    margins : (n,) array
        By how much the score of the own class is above the largest other.
    support : (n, K) boolean array
        Pairs of sample and other class that support: multiplier, relative to the largest, above the
        slack.
    norm : str
        Name of the norm that is least: see `Norm.of`.
    status : Status
    certificate : Certificate
        Bounds of the optimum, recomputed from `zeta` and `dual`.
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.

    Examples
    --------
    >>> limit = ib.limits.solve_multiclass_svm(np.eye(3), [0, 1, 2], norm="spectral")
    >>> limit.status.name, round(limit.objective, 6), limit.n_classes, limit.is_unique
    ('SOLVED', 1.0, 3, False)
    """

    ADVICE: ClassVar = {
        **SeparatingLimit.ADVICE,
        Status.NOT_SEPARABLE: WAY_OUT.format("solve_multiclass_svm"),
    }
    RECORD = (*SeparatingLimit.RECORD, "n_classes", "n_support", "is_unique")
    BRIEF = (
        "{status.name}, {norm}, coefficients {_sizes}\n"
        "  optimum in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g})\n"
        "  {n_support} support pairs of {n_samples} samples and {n_classes} classes\n"
        "  {solver}, {iterations} iterations, {seconds:.3g} s"
    )

    norm: NormName

    @property
    def n_classes(self) -> int:
        """Number K of classes."""
        return int(self.dual.shape[1])

    @property
    def n_contexts(self) -> int | None:
        """Number C of contexts of a unit; None where coefficients have none."""
        return int(self.zeta.shape[2]) if self.zeta.ndim == 4 else None

    @property
    def unit_norms(self) -> DenseArray:
        """Norms (H,) whose sum is least, of every unit; (1,), of all coefficients, without units.

        A network behind gates is measured unit by unit, any other as a whole.
        """
        xp, norm, every = array_namespace(self.zeta), Norm.of(self.norm), _host(self.zeta)
        if norm.over == "sum" and norm.blocks == "units":
            sizes = [Norm(norm.inside).value(unit) for unit in every]
        else:
            sizes = [norm.value(every)]
        found: DenseArray = xp.asarray(sizes, dtype=xp.float64, device=self.zeta.device)
        return found

    @property
    def live(self) -> DenseArray:
        """(H,) booleans: units whose norm is above a millionth of the largest."""
        norms = self.unit_norms
        found: DenseArray = norms > LIVE * array_namespace(norms).max(norms)
        return found

    @door()
    def norm_of(self, zeta: ArrayLike) -> float:
        """Return the norm of coefficients in the shape of `zeta`, a network's for instance.

        Raises
        ------
        ValueError
            If they have another shape.

        Examples
        --------
        >>> limit = ib.limits.solve_multiclass_svm(np.eye(3), [0, 1, 2], norm="spectral")
        >>> limit.norm_of(np.diag([1.0, 2.0, 3.0]))
        3.0
        """
        given = np.asarray(to_numpy(zeta), dtype=np.float64)
        require_shape("zeta", given, tuple(self.zeta.shape), "that of the limit's")
        return Norm.of(self.norm).value(unit_matrices(given))

    @property
    def is_unique(self) -> bool:
        """True if the norm has one least solution, so that directions may be compared."""
        return self.norm == "l2"

    @property
    def predictor(self) -> MulticlassPredictor:
        """The limit as a function of new inputs and gates, at smallest relative margin 1."""
        return MulticlassPredictor(self.zeta)

    @door(gates=anything)
    def certify(
        self, X: ArrayLike, labels: ArrayLike, gates: ArrayLike | None = None
    ) -> MulticlassLimit:
        """Prove coefficients and multipliers anew on the data, whoever found or stored them.

        Parameters
        ----------
        X : (n, D) real array
        labels : (n,) ints
            Classes from 0 to K - 1.
        gates : (n, H) array, optional
            Contexts where the coefficients have some.

        Returns
        -------
        MulticlassLimit
            With status, certificate and margins computed from these data, to the same tolerance.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or the coefficients are of other sizes.

        Examples
        --------
        >>> limit = ib.limits.solve_multiclass_svm(np.eye(3), [0, 1, 2])
        >>> limit.certify(np.eye(3), [0, 1, 2]).status.name
        'SOLVED'
        """
        class_matrix("X", X, len(class_labels(labels, self.n_classes)), "D")
        stated = JointMargin(self.n_classes, self.norm, self.n_contexts)
        program = stated.margins(X, labels, gates)
        shape = _shape(program, self.n_contexts)
        if shape != tuple(self.zeta.shape) or len(self.dual) != program.image.n_rows // (
            self.n_classes - 1
        ):
            raise ValueError(
                f"`X`, `labels` and `gates` make a program of coefficients {shape}, "
                f"and the limit has {tuple(self.zeta.shape)} of {len(self.dual)} samples: give the "
                "data that it was solved on"
            )
        solution = conclude_norm(
            program,
            _host(self.zeta),
            np.asarray(to_numpy(self.dual))[_image(program).wrong],
            **self._how,
        )
        return _read(program, solution, self.zeta, self.n_contexts)

    def _fault(self) -> str:
        n, K = self.dual.shape if self.dual.ndim == 2 else (0, 0)
        classes = {2: 0, 3: 1, 4: 1}.get(self.zeta.ndim)  # which axis of the coefficients they are
        if self.margins.shape != (n,) or self.support.shape != (n, K) or (
            classes is None or self.zeta.shape[classes] != K
        ):  # fmt: skip
            return "its arrays are not of one number of samples and classes"
        if not all(np.all(np.isfinite(one)) for one in (self.zeta, self.dual, self.margins)):
            return "an array is not finite"
        margin = float(self.margins.min())
        above = Norm.of(self.norm).value(unit_matrices(self.zeta))
        supported = (
            margin > 0
            and self.dual.min() >= 0
            and above <= self.objective * margin * (1 + _CLOSE)
            and self.gap <= self.tol
        )
        if self.status is Status.SOLVED and not supported:
            return "its arrays do not support its certificate"
        return ""


MarginLimit = Limit | MulticlassLimit
"""What networks that separate their data are compared with: of two labels, or of K classes."""


@overload
def solve_multiclass_svm(
    X: ArrayLike,
    labels: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    norm: Norm | NormName = "l2",
    n_classes: int | None = None,
    n_contexts: int | None = None,
    inseparable: Literal["prove"] = "prove",
    **solving: Unpack[Solving],
) -> MulticlassLimit: ...
@overload
def solve_multiclass_svm(
    X: ArrayLike,
    labels: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    norm: Norm | NormName = "l2",
    n_classes: int | None = None,
    n_contexts: int | None = None,
    inseparable: Literal["split"],
    **solving: Unpack[Solving],
) -> SplitLimit: ...
@door(norm=anything, gates=anything, n_contexts=count(1))
def solve_multiclass_svm(
    X: ArrayLike,
    labels: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    norm: Norm | NormName = "l2",
    n_classes: int | None = None,
    n_contexts: int | None = None,
    inseparable: Inseparable = "prove",
    **solving: Unpack[Solving],
) -> MulticlassLimit | SplitLimit:
    r"""Solve for the limit of a predictor of K classes trained jointly, as softmax trains it.

    .. math:: \min N(\zeta) \quad \text{s.t.} \quad
              \langle \zeta_{y_n} - \zeta_k, x_n \rangle \ge 1 \quad (k \ne y_n)

    The optimiser names the norm: gradient descent "l2" (of which the direction is the limit);
    normalised steepest descent, full batch, reaches the optimum's *margin* in its own norm: sign
    descent, Signum and Adam without its constant "linf", spectral descent and Muon with exact polar
    factors "spectral", coordinate descent "l1". For norms other than "l2" optima need not be
    unique: compare margins, never directions.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor; a bias is a constant column.
    labels : (n,) ints
        Classes from 0 to K - 1. A class without samples still has scores to stay above.
    gates : (n, H) array, optional
        Any real numbers: coefficients are then (H, K, D), and scores
        ``sum_h gates[n, h] <zeta[h, k], x[n]>``.
    norm : str or Norm
        See `Norm.of`; behind gates "l2", "linf", "l1" and those of units, such as "sum-nuclear",
        the norm of gradient descent on two layers behind enough copies of each gate or unit.
    n_classes : int, optional
        K, by default one more than the largest label.
    n_contexts : int, optional
        C, of gates that are contexts: integers from 0 to C - 1. Coefficients are then
        (H, K, C, D), scores ``sum_h <zeta[h, k, gates[n, h]], x[n]>``, and the matrix of a unit is
        (K, C D).
    inseparable : {"prove", "split"}
        Where nothing separates, the proof of that, or the limit that there is all the same: with E
        the pairs that contradict each other and A the others, a direction that separates A, is 0 on
        E and has the least norm, beside the minimiser of the loss of E,

        .. math:: \min_{W \in \mathrm{span} E}
                  \sum_n \log\bigl(1 + \sum_{k \in E_n} e^{-E(W)_{nk}}\bigr).

        That gradient descent goes to the direction is proved for "l2"; for other norms it is the
        program that margins would follow. Data that separate throughout have no finite part.
    **solving
        `solver`, by default the best for the norm, `tol`, `max_iterations`, `progress`, `threads`:
        see `Solving`.

    Returns
    -------
    MulticlassLimit
        With its certificate; call `.require()` to insist on `SOLVED`. Where nothing separates, its
        `dual` holds multipliers that prove it, in every norm.
    SplitLimit
        With `inseparable="split"`: direction, finite part, and the proof of the split.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, or the norm or solver does not take the program.

    References
    ----------
    D. Soudry et al., "The implicit bias of gradient descent on separable data", 2018; H. Ravi,
    C. Scott, D. Soudry, Y. Wang, "The implicit bias of gradient descent on separable multiclass
    data", 2024 ("l2"); C. Fan, M. Schmidt, C. Thrampoulidis, "Implicit bias of spectral descent and
    Muon on multiclass separable data", 2025 (other norms); Z. Ji, M. Telgarsky, "The implicit bias
    of gradient descent on nonseparable data", 2019, theorem 1.1 (the split of two classes; of K by
    the same argument).

    Examples
    --------
    One sample a class: sqrt(K - 1) in the l2 norm, 1/2 in the largest entry.

    >>> limit = ib.limits.solve_multiclass_svm(np.eye(3), [0, 1, 2])
    >>> limit.status.name, round(limit.objective, 6), limit.predictor.predict(np.eye(3)).tolist()
    ('SOLVED', 1.414214, [0, 1, 2])
    >>> round(ib.limits.solve_multiclass_svm(np.eye(3), [0, 1, 2], norm="linf").objective, 6)
    0.5
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> limit = ib.limits.solve_multiclass_svm(X, [0, 0, 1], inseparable="split")
    >>> limit.separable[:, 1].tolist(), round(limit.objective, 6)
    ([True, False, False], 0.707107)
    """
    if n_classes is not None and n_classes < 2:
        raise ValueError(f"`n_classes` must be at least 2, got {n_classes}")
    require_real("X", X)
    class_matrix("X", X, len(class_labels(labels, n_classes)), "D")
    inputs, wanted = as_float64(X), Norm.of(norm)
    require_scale("X", inputs)
    program = JointMargin(n_classes, wanted, n_contexts).margins(inputs, labels, gates)
    wanted.value(np.ones(program.image.shape))  # that it is one of such coefficients
    if inseparable == "split":
        image = _image(program)
        samples = np.nonzero(image.wrong)[0]
        shape = _shape(program, n_contexts)
        return solve_split(program, samples, shape, image.pairs, **solving)
    solver, settings = chosen(**({"solver": solver_of(wanted)} | solving))  # type: ignore[arg-type]
    solution = solve_norm(program, solver=solver, settings=settings)
    return _read(program, solution, inputs, n_contexts)


def _image(program: NormProgram) -> RelativeMargins:
    assert isinstance(program.image, RelativeMargins)
    return program.image


def _shape(program: NormProgram, n_contexts: int | None) -> tuple[int, ...]:
    """Return the shape of coefficients as the limit has them: contexts have an axis."""
    shape = program.image.shape
    return shape if n_contexts is None else (*shape[:2], n_contexts, shape[2] // n_contexts)


def _host(zeta: Any) -> Any:
    """Return coefficients in NumPy, as the norm takes them."""
    return unit_matrices(np.asarray(to_numpy(zeta), dtype=np.float64))


def _read(
    program: NormProgram, solution: NormSolution, like: Array, n_contexts: int | None
) -> MulticlassLimit:
    """Read a solution as the limit of K classes, its arrays as those that were given."""
    image = _image(program)
    margins = image.scores(solution.primal)
    smallest = max(float(margins.min()), 2.0**-52 * float(np.abs(margins).max()))
    largest = float(solution.dual.max())
    supports = solution.dual > 0
    if smallest > 0 and largest > 0:
        supports = solution.dual / largest > margins / smallest - 1
    own = np.where(image.wrong, image.pairs(margins), np.inf)
    support = np.zeros(image.wrong.shape, dtype=bool)
    support[image.wrong] = supports
    xp = array_namespace(like)

    def placed(values: Floats) -> Array:
        return as_float64(values, like=like)

    return MulticlassLimit.read(
        solution,
        zeta=placed(solution.primal.reshape(_shape(program, n_contexts))),
        dual=placed(image.pairs(solution.dual)),
        margins=placed(own.min(axis=1)),
        support=xp.asarray(support, device=like.device),
        norm=program.norm.name,
    )
