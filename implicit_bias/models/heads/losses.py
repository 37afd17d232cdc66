r"""The loss of one exit in its logits: hard labels, and a teacher's tempered once.

    F_n(u) = a_n (lse(u) - u_{y_n}) + b_n (tau^2 lse(u / tau) - tau <p_n, u>),

p_n = softmax(t_n / tau) of the teacher's logits t_n: cross entropy, and tau^2 cross entropy of p_n
with softmax(u / tau), equations (6.2) to (6.5). Softmax does not change if a number is added to all
logits, so that logits here have mean zero over classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from ..._support.doors import door, parameters
from ..._support.kinds import between, floats, positive
from ..._support.solve import FIT_LOSSES, Array, MeanLoss, require_scale
from ...data.arrays import Floats
from ...limits.literal import LiteralProgram, constant, cvxpy_module

if TYPE_CHECKING:
    import cvxpy

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class ExitLoss:
    """The loss of a head's logits u (n, K), a sum over samples.

    Attributes
    ----------
    hard : (n,) array
        Weights a_n of hard labels; 0 for unlabelled samples.
    soft : (n,) array
        Weights b_n of soft labels.
    one_hot : (n, K) array
        Hard labels; rows of zeros for unlabelled samples.
    teacher : (n, K) array
        The teacher's logits t_n, not tempered, with mean 0 over classes.
    temperature : float
    """

    hard: Floats
    soft: Floats
    one_hot: Floats
    teacher: Floats
    temperature: float

    @cached_property
    def soft_labels(self) -> Floats:
        """(n, K) soft labels p_n, tempered once."""
        return np.asarray(softmax(self.teacher / self.temperature, axis=1))

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return int(self.one_hot.shape[1])

    @property
    def is_hard(self) -> bool:
        """True if no soft label has weight."""
        return not np.any(self.soft)

    @property
    def weighted(self) -> NDArray[np.bool_]:
        """(n,) samples that the loss depends on."""
        return (self.hard + self.soft) > 0

    def subset(self, rows: NDArray[np.bool_]) -> ExitLoss:
        """Return the loss of some samples, with unchanged weights."""
        arrays = {
            name: getattr(self, name)[rows] for name in ("hard", "soft", "one_hot", "teacher")
        }
        return replace(self, **arrays)

    @property
    def is_soft(self) -> bool:
        """True if no hard label has weight."""
        return not np.any(self.hard)

    @property
    def least(self) -> float:
        """Weighted entropies of the soft labels: the loss of logits that match them exactly."""
        entropies = -np.sum(xlogy(self.soft_labels, self.soft_labels), axis=1)
        return float(self.temperature**2 * self.soft @ entropies)

    @property
    def _terms(self) -> tuple[tuple[MeanLoss, Floats, float], ...]:
        """Cross entropies of hard and of soft labels, and by what logits are divided in each."""
        of = FIT_LOSSES["softmax"]
        hard, soft = of(self.hard), of(self.soft)
        return (hard, self.one_hot, 1.0), (soft, self.soft_labels, self.temperature)

    def value(self, u: Floats) -> float:
        """Return the loss of logits (n, K)."""
        return sum(tau**2 * one.value(u / tau, p) for one, p, tau in self._terms)

    def gradient(self, u: Floats) -> Floats:
        """Return the gradient (n, K): `a (softmax(u) - e_y) + b tau (softmax(u / tau) - p)`."""
        return np.asarray(sum(-tau * one.multipliers(u / tau, p) for one, p, tau in self._terms))

    def curvature(self, u: Floats) -> Floats:
        """Return second derivatives (n, K, K) of every sample; tau cancels in the soft term."""
        return np.asarray(sum(one.curvature(u / tau, p) for one, p, tau in self._terms))

    def dual_value(self, u: Floats, correction: Floats) -> float:
        """Return a lower bound of the least loss, from the gradient at u plus a correction (n, K).

        Fenchel's: `-sum_n F_n*(v_n)` for v = gradient + correction with `sum_n v_n phi_n' = 0`.
        Conjugates of both terms are entropies; the correction is added to the soft term if there
        is one. -inf if the result is outside the simplex.
        """
        tau = self.temperature
        hard, soft = softmax(u, axis=1), softmax(u / tau, axis=1)
        if self.is_hard:
            hard = hard + correction / self.hard[:, None]
        else:
            soft = soft + correction / (tau * self.soft[:, None])
            # The labels themselves are feasible, at v = 0: mixed in until none is negative.
            below = soft < 0
            lifts = -soft[below] / (self.soft_labels[below] - soft[below])
            part = float(np.max(lifts, initial=0.0))
            hard = (1 - part) * hard + part * self.one_hot
            soft = np.maximum((1 - part) * soft + part * self.soft_labels, 0.0)  # to rounding
        if min(hard.min(), soft.min()) < 0:
            return -np.inf
        entropies = [np.sum(xlogy(q, q), axis=1) for q in (hard, soft)]
        return float(-self.hard @ entropies[0] - tau**2 * self.soft @ entropies[1])


@parameters()
@dataclass(frozen=True)
class HeadLoss(LiteralProgram):
    """The loss of a linear head on frozen features, minimised in its weights W.

        minimise  sum_n a_n (lse(u_n) - u_n[y_n]) + b_n (tau^2 lse(u_n / tau) - tau <p_n, u_n>),
        u_n = W phi_n,   p_n = softmax(t_n / tau),   lse = log sum exp

    If there are several minimisers, with equal probabilities on all samples, `solve_exit_heads`
    returns the one of least norm. On hard labels alone that are separable there is none, and the
    limit is the solution of `JointMargin`.

    Parameters
    ----------
    temperature : float
        tau, positive.
    share : float
        Weight of hard labels in [0, 1]: a_n is `share` over the number of labelled samples, b_n the
        rest over the number of samples.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equations (6.1) to (6.6) on a frozen trunk,
    the teacher's logits tempered once.
    """

    name: ClassVar[str] = "cross-entropy of a head"

    temperature: float = 1.0
    share: float = 0.5

    @door(
        features=floats("n D", require_scale),
        labels=floats("n: one class a sample"),
        teacher=floats("n _K: one row of logits a sample"),
    )
    def literal(
        self, features: Array, labels: Array | None = None, teacher: Array | None = None
    ) -> cvxpy.Problem:
        """State the program; its one variable is W (K, D).

        Parameters
        ----------
        features : (n, D) real array
            Features of the samples.
        labels : (n,) ints, optional
            Classes from 0, -1 for samples without a label; None if `share` is 0.
        teacher : (n, K) array, optional
            The teacher's logits; None if `share` is 1.

        Returns
        -------
        cvxpy.Problem
            Not yet solved.

        Raises
        ------
        MissingExtra
            If cvxpy is not installed.
        TypeError, ValueError
            If labels or teacher are missing though they have weight, or shapes or values are wrong.

        Examples
        --------
        >>> program = ib.programs.HeadLoss(share=0)
        >>> problem = program.literal([[1.0], [2.0]], teacher=[[0.0, 1.0], [0.0, 2.0]])
        >>> round(float(problem.solve(solver="CLARABEL")), 4)  # the entropy of the teacher's labels
        0.4738
        """
        cp, tau = cvxpy_module(), self.temperature
        loss = exit_loss(labels, teacher, temperature=tau, share=self.share)
        phi = constant(features, "phi")
        W = cp.Variable((loss.n_classes, phi.shape[1]), name="W")
        u, terms = phi @ W.T, []
        if not loss.is_soft:
            e = constant(loss.one_hot, "e")
            hard = cp.log_sum_exp(u, axis=1) - cp.sum(cp.multiply(e, u), axis=1)
            terms.append(constant(loss.hard, "a") @ hard)
        if not loss.is_hard:
            p = constant(loss.soft_labels, "p")
            taught = cp.sum(cp.multiply(p, u), axis=1)
            soft = tau**2 * cp.log_sum_exp(u / tau, axis=1) - tau * taught
            terms.append(constant(loss.soft, "b") @ soft)
        return cp.Problem(cp.Minimize(cp.sum(terms)))


@door(
    labels=floats("n: one class a sample"),
    teacher=floats("n _K>=2: one row of logits a sample"),
    temperature=positive,
    share=between(0, 1),
)
def exit_loss(
    labels: Array | None, teacher: Array | None, *, temperature: float = 1.0, share: float = 0.5
) -> ExitLoss:
    """Check labels and teacher, and return the loss: means over labelled and all samples, (6.6).

    Parameters
    ----------
    labels : (n,) ints or None
        Classes from 0; -1 for samples without a label. None if `share` is 0.
    teacher : (n, K) array or None
        Logits, at temperature 1: they are tempered here, once. None if `share` is 1.
    temperature : float
        tau, positive and finite.
    share : float
        Weight of hard labels in [0, 1]; soft ones have the rest.

    Raises
    ------
    TypeError, ValueError
        If labels or teacher are missing though they have weight, or shapes or values are wrong.
    """
    if (share > 0 and labels is None) or (share < 1 and teacher is None):
        missing = "labels" if share > 0 and labels is None else "teacher"
        raise ValueError(f"`share` {share} needs `{missing}`: give them, or another share")
    logits = None if share == 1 else teacher
    classes = None
    if share > 0 and labels is not None:
        classes = _checked_classes(labels, None if logits is None else logits.shape[1])
    if logits is None:
        assert classes is not None  # one of the two has weight
        logits = np.zeros((len(classes), int(classes.max()) + 1))
    n, k = logits.shape
    one_hot, hard = np.zeros((n, k)), np.zeros(n)
    if classes is not None:
        known = classes != UNLABELLED
        one_hot[known, classes[known]] = 1.0
        hard = share * known / known.sum()
    soft = np.full(n, (1 - share) / n)
    taught = logits - logits.mean(axis=1, keepdims=True)
    return ExitLoss(hard, soft, one_hot, taught, float(temperature))


def _checked_classes(labels: Floats, n_classes: int | None) -> NDArray[np.int64]:
    """Return classes (n,) from 0 to K - 1, -1 for samples without a label.

    Without a number of classes, that of the teacher, they must hold two at least.
    """
    most = np.inf if n_classes is None else n_classes - 1
    if not np.all((labels == np.floor(labels)) & (labels >= UNLABELLED) & (labels <= most)):
        raise ValueError(f"`labels` must be whole numbers from 0 to {most:g}, or -1 for none")
    known = labels[labels != UNLABELLED]
    if n_classes is None and len(np.unique(known)) < 2:
        raise ValueError("`labels` must hold two classes at least: one alone needs no head")
    if not len(known):
        raise ValueError("`labels` must hold one label at least: take share=0 for none")
    return labels.astype(np.int64)
