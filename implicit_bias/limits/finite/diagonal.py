"""Limits of diagonal networks from any start, with their certificate."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..._support.doors import door, result
from ..._support.kinds import count, floats
from ..._support.solve import (
    ArrayLike,
    Potential,
    Status,
    gap_between,
    infeasibility,
    least_potential,
    least_potential_of_margins,
    potential_of,
    require_labels,
    require_positive,
    require_scale,
)
from ...data.arrays import Floats
from ...quantities.definition import Quantity
from ..predictors import LinearPredictor
from ..result import Result, proved, size_of

_SIDE = "m: one weight a column of features"
DATA = {
    "features": floats("n m", require_scale),
    "y": floats("n: one target per row of features"),
}
"""What doors check of features and targets."""
START = {"u0": floats(_SIDE, require_scale), "v0": floats(_SIDE, require_scale)}
"""The same of the weights at the start."""

EPS = float(np.finfo(np.float64).eps)


@result()
@dataclass(frozen=True)
class DiagonalCertificate:
    """Bounds of the optimum of a potential, recomputed from coefficients and multipliers.

    Attributes
    ----------
    objective : float
        Potential of the coefficients: that of the start is the least.
    dual_objective : float
        Lower bound of the potential of whatever interpolates, or has the margins.
    divergence : float
        Potential above that of the start.
    gap : float
        ``(objective - dual_objective) / divergence``, a sum of Fenchel-Young terms, none of them
        negative; 0 where the bounds differ by no more than rounding coefficients moves them.
    misfit : float
        ``||features zeta - y|| / ||y||``; with margins the largest shortfall of one, relative.
    distance : float
        Upper bound of the distance of any coefficient from its value at the optimum.
    """

    objective: float
    dual_objective: float
    divergence: float
    gap: float
    misfit: float
    distance: float


class DiagonalLimit(Result):
    r"""The limit of gradient flow of a diagonal network, from the start that it has.

    .. math:: \min_b \sum_i \phi_i(b_i) \quad\text{s.t.}\quad \Phi b = y
              \quad\text{(or } y_n (\Phi b)_n \ge m\text{)}

    Attributes
    ----------
    zeta : (m,) array
        Coefficients b.
    dual : (n,) array
        Multipliers nu: ``grad phi(b) = features' nu``. Of margins, y times multipliers >= 0.
    u0, v0 : (m,) arrays
        The start.
    depth : int
        2: ``b = u v``; L from 3 on: ``b = u^L - v^L``.
    margin : float or None
        Smallest margin that was asked for; None for interpolation.
    scores : (n,) array
        Of the training samples.
    proof : (n,) array or None
        Multipliers that prove that no coefficients of the kind exist.
    status : Status
        SOLVED, INACCURATE, or NOT_INTERPOLABLE, where `zeta` interpolates the part of the targets
        in the range of the features, to which the squared loss leads all the same.
    certificate : DiagonalCertificate
    tol : float
        The relative gap and misfit that were required.
    iterations : int
        Steps of Newton's method.
    seconds : float

    Examples
    --------
    >>> start = np.full(2, 0.01)
    >>> limit = ib.limits.solve_diagonal(np.array([[2.0, 1.0]]), [4.0], start)
    >>> limit.status.name, limit.zeta.round(3).tolist()  # all but the least l1 norm, (2, 0)
    ('SOLVED', [1.996, 0.007])
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: the coefficients fit the samples, and no others that do have a "
        "potential lower by more than the tolerance",
        Status.INACCURATE: "inaccurate: the gap or the misfit is above the tolerance. Features "
        "that are nearly dependent decide here: rescale them, move `rcond` off their singular "
        "values, allow more iterations, or raise `tol`",
    }
    RECORD = ("n_samples", "n_features")
    BRIEF = (
        "{status.name}: {_asked}, depth {depth}\n"
        "  potential {objective:.10g}, gap {gap:.2g} of the {certificate.divergence:.6g} above the "
        "start, misfit {certificate.misfit:.2g}\n"
        "  coefficients within {certificate.distance:.2g}; {n_features} features, {n_samples} "
        "samples, {iterations} steps, {seconds:.3g} s"
    )

    ROW: ClassVar = {
        "objective": "objective", "lower_bound": "certificate.dual_objective", "gap": "gap",
        "n_units": "n_features", "iterations": "iterations", "limit_seconds": "seconds",
        "l1_limit": "l1_norm", "l2_limit": "l2_norm",
    }  # fmt: skip
    SCREEN = ("status", "lower_bound", "gap", "l1_norm", "l2_norm")
    TITLE, HEADS = "prediction", ("", "{}")
    LINES = (
        "status",
        Quantity("objective", "least potential", "{:.10g}".format),
        "lower_bound",
        "gap",
        Quantity("margin", "margin", "{:.6g}".format),
        Quantity("certificate.misfit", "misfit", "{:.2e}".format),
        Quantity("certificate.distance", "every coefficient within", "{:.2e}".format),
        "l1_limit",
        "l2_limit",
        "n_units",
        "iterations",
        "limit_seconds",
    )

    zeta: Floats
    dual: Floats
    u0: Floats
    v0: Floats
    depth: int
    margin: float | None
    scores: Floats
    proof: Floats | None
    status: Status
    certificate: DiagonalCertificate
    tol: float
    iterations: int
    seconds: float

    objective = proved("objective", "Potential of the coefficients.")
    gap = proved("gap", "Relative gap, of the certificate.")
    n_samples = size_of("dual", "Number of samples.")
    n_features = size_of("zeta", "Number of features.")

    @property
    def start(self) -> Floats:
        """(m,) coefficients of the start."""
        if self.depth == 2:
            return np.asarray(self.u0 * self.v0)
        return np.asarray(self.u0**self.depth - self.v0**self.depth)

    @property
    def predictor(self) -> LinearPredictor:
        """The limit as a function of new features."""
        return LinearPredictor(self.zeta)

    @property
    def _potential(self) -> Potential:
        return potential_of(self.u0, self.v0, self.depth)

    @door(
        features=floats("n .n_features: those of the limit"),
        zeta=floats(".n_features: one coefficient a feature"),
    )
    def off_span(self, features: ArrayLike, zeta: ArrayLike) -> float:
        """Return the share of a network's ``grad phi`` outside the row space of the features.

        Gradient flow of any loss keeps it at 0, at every time: the network is then that of least
        potential among all with its scores. Steps of finite size move it.

        Parameters
        ----------
        features : (n, m) array
        zeta : (m,) array
            Coefficients of the network.

        Returns
        -------
        float
            Between 0 and 1; NaN where a coefficient has a sign that the start does not allow.

        Raises
        ------
        TypeError, ValueError
            If an array has another shape, or is not finite.

        Examples
        --------
        >>> features, start = np.array([[2.0, 1.0]]), np.full(2, 0.5)
        >>> limit = ib.limits.solve_diagonal(features, [4.0], start)
        >>> limit.off_span(features, limit.zeta) < 1e-12, limit.off_span(features, [1.0, -1.0]) > .1
        (True, True)
        """
        Phi, b = np.asarray(features), np.asarray(zeta)
        z = self._potential.inverse(b, np.zeros_like(b))
        if not np.all(np.isfinite(z)):
            return math.nan
        rows = np.linalg.svd(Phi, full_matrices=False)
        kept = rows[2][rows[1] > max(Phi.shape) * EPS * rows[1][0]]
        size = float(np.linalg.norm(z))
        return float(np.linalg.norm(z - kept.T @ (kept @ z))) / size if size > 0 else 0.0

    @door(
        features=floats("n .n_features: those of the limit", require_scale),
        y=floats(".n_samples: the samples of the limit"),
    )
    def certify(self, features: ArrayLike, y: ArrayLike) -> Self:
        """Prove coefficients and multipliers anew on the data, whoever found or stored them.

        Parameters
        ----------
        features : (n, m) array
        y : (n,) array

        Returns
        -------
        DiagonalLimit
            With the certificate and the status of these data.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or of another number of samples or features.

        Examples
        --------
        >>> features, y = np.array([[2.0, 1.0]]), np.array([4.0])
        >>> limit = ib.limits.solve_diagonal(features, y, [0.1, 0.1])
        >>> limit.certify(features, y).status.name, limit.certify(features, 2 * y).status.name
        ('SOLVED', 'INACCURATE')
        """
        Phi, targets = np.asarray(features), checked_targets(y, self.margin)
        found = vars(self) | _proved(
            self._potential, Phi, targets, self.zeta, self.dual, self.margin, self.proof, self.tol
        )
        return type(self)(**found)

    @property
    def l1_norm(self) -> float:
        """l1 norm of the coefficients."""
        return float(np.abs(self.zeta).sum())

    @property
    def l2_norm(self) -> float:
        """l2 norm of the coefficients."""
        return float(np.linalg.norm(self.zeta))

    @property
    def _asked(self) -> str:
        return "interpolation" if self.margin is None else f"margins of {self.margin:.6g}"


@door(**DATA, **START, depth=count(2), max_iterations=count(1))
def solve_diagonal(
    features: ArrayLike,
    y: ArrayLike,
    u0: ArrayLike,
    v0: ArrayLike | None = None,
    *,
    depth: int = 2,
    margin: float | None = None,
    tol: float = 1e-8,
    rcond: float | None = None,
    max_iterations: int = 500,
) -> DiagonalLimit:
    r"""Solve for the limit of gradient flow of a diagonal network from a given start.

    For ``f = <u o v, features>`` and the squared loss the flow ends at

        argmin sum_i phi_i(b_i)  s.t.  features b = y,
        phi(b) = (b (asinh(2b/c) - s) - sqrt(b^2 + c^2/4)) / 2,
        c = |u0^2 - v0^2|,  s = log|u0 + v0| - log|u0 - v0|

    from any start: near the least l1 norm for small c, near the least distance from the start in
    l2 for large c. A coefficient whose u0 and v0 are equal up to sign keeps its sign. The dual has
    one unknown a sample, and no constraint. With an `EffectiveStart` of a run in place of u0 and
    v0 it is exact for steps of any size, mini-batches and label noise.

    Parameters
    ----------
    features : (n, m) real array
        Inputs, Fourier features of a convolution, or the gates of constant experts.
    y : (n,) array
        Targets; labels in {-1, +1} with `margin`.
    u0 : (m,) array
        Weights at the start.
    v0 : (m,) array, optional
        By default zeros at depth 2, so that the network starts at 0, and `u0` at larger depths.
    depth : int
        2: ``b = u v``. L from 3 on: ``b = u^L - v^L``, from positive u0 and v0.
    margin : float, optional
        Instead of interpolation all margins ``y f`` are to be at least this positive number: the
        network of the least potential among those of its margin. Exact where weights and log(1 /
        loss) become large together; at finite values the ratio of potentials tells how near.
    tol : float
        Relative gap and misfit to reach, in (0, 1).
    rcond : float, optional
        Singular values of the features up to this share of the largest count as zero, in [0, 1).
    max_iterations : int
        Steps of Newton's method.

    Returns
    -------
    DiagonalLimit
        With its certificate; call `.require()` to insist on `SOLVED`. Where no coefficients
        interpolate, `proof` shows it: ``features' nu = 0`` and ``<y, nu> > 0``.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, shapes disagree or values are not finite.

    References
    ----------
    B. Woodworth et al., "Kernel and rich regimes in overparametrized models", theorems 1 and 3; S.
    Azulay et al., "On the implicit bias of initialization shape"; E. Moroshko et al., "Implicit
    bias in deep linear classification", for margins.

    Examples
    --------
    >>> features, y = np.array([[2.0, 1.0]]), [4.0]
    >>> for scale in (1e-3, 0.1, 1.0, 10.0):  # from least l1 to least l2
    ...     limit = ib.limits.solve_diagonal(features, y, np.full(2, scale))
    ...     print(limit.zeta.round(3).tolist())
    [2.0, 0.001]
    [1.965, 0.07]
    [1.716, 0.567]
    [1.6, 0.8]
    """
    begun = time.perf_counter()
    Phi, targets = np.asarray(features), checked_targets(y, margin)
    first, second = checked_start(u0, v0, depth)
    potential = potential_of(first, second, depth)
    cut = max(Phi.shape) * EPS if rcond is None else rcond
    proof = None
    if margin is None:
        found = least_potential(potential, Phi, targets, rcond=cut, max_iterations=max_iterations)
        zeta, dual = found.b, found.nu
    else:
        signed = targets[:, None] * Phi
        found = least_potential_of_margins(potential, signed, margin, max_iterations=max_iterations)
        zeta, dual = found.b, targets * found.nu
    proved = _proved(potential, Phi, targets, zeta, dual, margin, None, tol)
    if proved["status"] is not Status.SOLVED:
        proof = _proof(potential, Phi, targets, zeta, margin)
        proved = _proved(potential, Phi, targets, zeta, dual, margin, proof, tol)
    return DiagonalLimit(
        zeta=zeta,
        dual=dual,
        u0=first,
        v0=second,
        depth=depth,
        margin=margin,
        proof=proof,
        tol=tol,
        iterations=found.iterations,
        seconds=time.perf_counter() - begun,
        **proved,
    )


def _proved(
    potential: Potential,
    Phi: Floats,
    y: Floats,
    b: Floats,
    nu: Floats,
    margin: float | None,
    proof: Floats | None,
    tol: float,
) -> dict[str, Any]:
    """Return scores, certificate and status of coefficients and multipliers."""
    scores, z = Phi @ b, Phi.T @ nu
    at = potential.inverse(b, z)
    allowed = bool(np.all(np.isfinite(b))) and not np.any(np.isnan(at))
    if margin is None:
        left, missing = scores - y, float(np.linalg.norm(scores - y))
        misfit = missing / (float(np.linalg.norm(y)) or 1.0)
        charge = abs(float(nu @ left))
        if proof is not None:  # of the targets in the range of the features
            charge = 0.0
    else:
        slack = y * scores - margin
        misfit = max(0.0, -float(slack.min())) / margin
        charge = float(np.abs(nu) @ np.abs(slack))
        allowed = allowed and bool(np.all(y * nu >= 0))
    objective = divergence = excess = distance = math.inf
    if allowed:
        objective = float(potential.value(b, at).sum())
        divergence = float(potential.divergence(np.zeros_like(z), at).sum())
        excess = float(potential.divergence(z, at).sum()) + charge
    if math.isnan(excess):  # multipliers outside of the domain of the conjugate
        excess = math.inf
    gap = math.inf
    if math.isfinite(excess):
        distance = float(potential.reach(b, excess).max())
        # At coefficients within rounding of the start's there is no divergence to compare with.
        rounded = (64 * EPS) ** 2 * float(potential.size(b).sum())
        gap = 0.0 if abs(excess) <= rounded else gap_between(excess, 0.0, divergence)
    certificate = DiagonalCertificate(
        objective=objective,
        dual_objective=objective - excess if allowed else -math.inf,
        divergence=divergence,
        gap=gap,
        misfit=misfit,
        distance=distance,
    )
    status = Status.SOLVED if gap <= tol and misfit <= tol else Status.INACCURATE
    if proof is not None and _proves(potential, Phi, y, margin, proof):
        status = Status.NOT_INTERPOLABLE if margin is None else Status.NOT_SEPARABLE
    return {"scores": scores, "certificate": certificate, "status": status}


def _proof(
    potential: Potential, Phi: Floats, y: Floats, b: Floats, margin: float | None
) -> Floats | None:
    """Return multipliers that prove infeasibility, if they are found and do."""
    found = y - Phi @ np.linalg.lstsq(Phi, y, rcond=None)[0] if margin is None else None
    for candidate in (found, infeasibility(potential.signs, Phi, y, margin)):
        if candidate is None:
            continue
        nu = candidate if margin is None else y * candidate
        if _proves(potential, Phi, y, margin, nu):
            return np.asarray(nu)
    return None


def _proves(potential: Potential, Phi: Floats, y: Floats, margin: float | None, nu: Floats) -> bool:
    """Return whether nu rules coefficients out, but for those of sizes that rounding hides."""
    reached = Phi.T @ nu
    signs = potential.signs
    wrong = np.where(
        signs == 0, np.abs(reached), np.where(signs == 2, 0.0, np.maximum(signs * reached, 0.0))
    )
    gain = float(y @ nu)
    if margin is not None and np.any(y * nu < 0):
        return False
    sizes = float(np.abs(Phi).max() * np.abs(nu).sum())
    return bool(wrong.max() <= 1e-10 * sizes and gain > 1e-8 * np.abs(y) @ np.abs(nu))


def checked_targets(y: ArrayLike, margin: float | None) -> Floats:
    """Return targets (n,), labels where a margin is asked for, as floats that fit."""
    targets = np.asarray(y, dtype=np.float64)
    if margin is None:
        require_scale("y", targets)
    else:
        require_positive("margin", margin)
        require_labels(targets)
    return targets


def checked_start(u0: ArrayLike, v0: ArrayLike | None, depth: int) -> tuple[Floats, Floats]:
    """Return copies of both weights of the start; where `v0` is None as `solve_diagonal` says."""
    first = np.array(u0, dtype=np.float64)
    second = np.zeros_like(first) if depth == 2 else first.copy()
    if v0 is not None:
        second = np.array(v0, dtype=np.float64)
    for name, weights in (("u0", first), ("v0", second)):
        if depth > 2 and not np.all(weights > 0):
            raise ValueError(f"`{name}` must be positive at a depth of {depth}: u^L - v^L")
    return first, second
