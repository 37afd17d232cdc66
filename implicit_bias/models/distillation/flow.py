"""Gradient flow of a linear student of any depth, integrated numerically."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import DOP853, Radau

from ..._support.doors import door
from ..._support.kinds import floats
from ..._support.solve import Array
from ..._support.words import SoftLoss
from ...data.arrays import Floats
from .closed_form import INPUTS, TEACHER, checked_start, orthogonal_part, sample_span
from .losses import centred, get_student_loss

# The flow of more layers is this one's to four digits and takes steps in proportion to their count.
MOST_LAYERS = 10_000
MOST_EVALUATIONS = 500_000  # of the velocity, some ten seconds
_STIFF_FROM = 20_000  # evaluations, from which on steps are implicit
_REST = 8 * float(np.finfo(np.float64).eps)


@door(X=INPUTS, teacher=TEACHER, w0=floats(), times=floats("T"))
def distillation_flow(
    X: Array,
    teacher: Array,
    w0: Array,
    times: Array,
    *,
    depth: int = 1,
    loss: SoftLoss = "cross-entropy",
    rtol: float = 1e-10,
) -> Floats:
    """Integrate gradient flow of a linear student on its teacher's soft labels.

        w' = -||w||^(2 - 2/L) (g + (L - 1) <g, w> w / ||w||^2),    g the gradient of the mean loss

    A gradient step of learning rate eta on the layers advances time by eta, up to O(eta).

    Parameters
    ----------
    X : (n, D) real array
        Inputs of the transfer set.
    teacher : (D,) or (K, D) real array
        The teacher's weights: soft labels `sigmoid(<w_*, x>)`, or softmax of K scores.
    w0 : array like `teacher`
        The student's end-to-end weights at time 0.
    times : (T,) array
        Non-negative and not decreasing.
    depth : int
        Layers L of the student, balanced, at most 10,000; one for K classes.
    loss : str
        "cross-entropy", or "squared" on the teacher's scores.
    rtol : float
        Relative tolerance of the Runge-Kutta steps, in [1e-13, 1): of order 8, and implicit ones of
        order 5 where those become too many. The flow stays where its gradient is rounding.

    Returns
    -------
    (T, D) or (T, K, D) array
        End-to-end weights at these times.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, shapes disagree, values are not finite, times are negative
        or decrease, or a deep student does not begin below the loss of 0.
    RuntimeError
        If the integration failed; the message has the integrator's reason, or the time that it had
        come to after 500,000 evaluations of the velocity.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (D.22), after Arora, Cohen and Hazan, "On the
    optimization of deep networks", claim 2.

    Examples
    --------
    Under the squared loss a student of one layer approaches its teacher exponentially:

    >>> path = ib.distillation.distillation_flow(
    ...     [[1.0]], [2.0], [0.0], [0.0, np.log(2.0), 50.0], loss="squared"
    ... )
    >>> path.ravel().round(6).tolist()
    [0.0, 1.0, 2.0]
    """
    start = checked_start(X, teacher, w0, depth, loss)
    if depth > MOST_LAYERS:
        raise ValueError(
            f"`depth` must be at most {MOST_LAYERS} to be integrated, got {depth}: the flow hardly "
            "changes beyond, and `distillation_limit` takes any"
        )
    if not (np.diff(times, prepend=0.0) >= 0).all():
        raise ValueError("`times` must be non-negative, and not decreasing")
    if not 1e-13 <= rtol < 1:
        raise ValueError(f"`rtol` must lie in [1e-13, 1), got {rtol}")
    span = sample_span(X)
    seen, unseen = centred(start, loss) @ span.basis, orthogonal_part(start, span, loss)
    inputs = X @ span.basis
    slope = get_student_loss(loss, of_classes=teacher.ndim == 2).slope
    if teacher.ndim == 2:  # one layer, which leaves the unseen part as it is
        moving = _integrate(
            _Flow(inputs, X @ teacher.T, slope, depth, seen.shape), seen, times, rtol
        )
        return np.asarray(moving @ span.basis.T + unseen)
    # The unseen part keeps its direction. Its length is a last coordinate, 0 in all samples by
    # definition: computed, it would be rounding over that length.
    size = float(np.linalg.norm(unseen))
    direction = unseen / size if size > 0 else unseen
    begin = np.append(seen, size)
    inputs = np.column_stack([inputs, np.zeros(len(X))])
    path = _integrate(_Flow(inputs, X @ teacher, slope, depth, begin.shape), begin, times, rtol)
    return np.asarray(path[:, :-1] @ span.basis.T + path[:, -1:] * direction)


class _Flow(NamedTuple):
    """The flow of weights (D,), or (K, D) of one layer, flat, on inputs (n, D) and scores."""

    X: Floats
    teacher: Floats
    slope: Callable[[Floats, Floats], Floats]
    depth: int
    shape: tuple[int, ...]

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient of the mean loss."""
        slopes = self.slope(self.X @ w.reshape(self.shape).T, self.teacher)
        return np.asarray(slopes.T @ self.X / len(self.X)).ravel()

    def velocity(self, _: float, w: Floats) -> Floats:
        """Return the velocity of the weights of the student."""
        gradient = self.gradient(w)
        if self.depth == 1:
            return -gradient
        size = float(w @ w)
        along = (self.depth - 1) * float(gradient @ w) / size
        return np.asarray(-(size ** (1 - 1 / self.depth)) * (gradient + along * w))

    def is_at_rest(self, w: Floats) -> bool:
        """True where rounding of its terms alone can account for the gradient."""
        inputs = np.abs(self.X)
        terms = 1 + inputs @ np.abs(w.reshape(self.shape)).T + np.abs(self.teacher)
        rounding = np.asarray(terms.T @ inputs).ravel() / len(inputs)
        return bool(np.all(np.abs(self.gradient(w)) <= _REST * rounding))


def _integrate(flow: _Flow, start: Floats, times: Floats, rtol: float) -> Floats:
    evaluations, end = 0, float(times[-1])

    def counted(time: float, w: Floats) -> Floats:
        """Return the velocity; raise RuntimeError where it has been asked for too often."""
        nonlocal evaluations
        evaluations += 1
        if evaluations > MOST_EVALUATIONS:
            raise RuntimeError(
                f"the flow has come to the time {time:.3g} of {end:.3g} after "
                f"{MOST_EVALUATIONS} evaluations: ask for earlier `times`; `distillation_limit` "
                "has its end"
            )
        return flow.velocity(time, w)

    found = np.repeat(start.ravel()[None], len(times), axis=0)
    # Starts of a thousandth have components of 1e-4 of it: relative errors decide there too.
    accuracy = {"rtol": rtol, "atol": 1e-4 * rtol}
    solver = DOP853(counted, 0.0, start.ravel(), end, **accuracy)
    while solver.status == "running" and not flow.is_at_rest(solver.y):
        if evaluations > _STIFF_FROM and isinstance(solver, DOP853):
            solver = Radau(counted, solver.t, solver.y, end, **accuracy)
        message = solver.step()
        if solver.status == "failed":
            raise RuntimeError(f"the flow could not be integrated: {message}")
        passed = (times > solver.t_old) & (times <= solver.t)
        if passed.any():
            found[passed] = solver.dense_output()(times[passed]).T
    found[times > solver.t] = solver.y
    return np.asarray(found.reshape(len(times), *start.shape))
