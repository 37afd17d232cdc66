r"""The loss of one exit in its logits: hard labels, and a teacher's tempered once.

    F_n(u) = a_n (lse(u) - u_{y_n}) + b_n (tau^2 lse(u / tau) - tau <p_n, u>),

p_n = softmax(t_n / tau) of the teacher's logits t_n: cross entropy, and tau^2 cross entropy of p_n
with softmax(u / tau), equations (6.2) to (6.5). Softmax and its logarithm know no common shift of
the logits, so that everything happens in logits whose mean over classes is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax, xlogy

from ..._solve import require_positive, to_numpy
from ...data.arrays import Floats, require_real

__all__ = ["ExitLoss", "exit_loss"]

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
    def taught(self) -> Floats:
        """(n, K) soft labels p_n, tempered once."""
        return np.asarray(softmax(self.teacher / self.temperature, axis=1))

    @property
    def n_classes(self) -> int:
        return int(self.one_hot.shape[1])

    @property
    def is_hard(self) -> bool:
        """Whether no soft label has weight."""
        return not np.any(self.soft)

    @property
    def weighed(self) -> NDArray[np.bool_]:
        """(n,) samples that the loss depends on."""
        return (self.hard + self.soft) > 0

    def subset(self, rows: NDArray[np.bool_]) -> ExitLoss:
        """The loss of some samples, their weights as they are."""
        return ExitLoss(
            self.hard[rows],
            self.soft[rows],
            self.one_hot[rows],
            self.teacher[rows],
            self.temperature,
        )

    @property
    def is_soft(self) -> bool:
        """Whether no hard label has weight."""
        return not np.any(self.hard)

    @property
    def least(self) -> float:
        """Entropies of the labels: the loss where soft labels alone are matched exactly."""
        entropies = -np.sum(xlogy(self.taught, self.taught), axis=1)
        return float(self.temperature**2 * self.soft @ entropies)

    def value(self, u: Floats) -> float:
        """The loss of logits (n, K)."""
        tau = self.temperature
        hard = logsumexp(u, axis=1) - np.sum(self.one_hot * u, axis=1)
        soft = tau**2 * logsumexp(u / tau, axis=1) - tau * np.sum(self.taught * u, axis=1)
        return float(self.hard @ hard + self.soft @ soft)

    def gradient(self, u: Floats) -> Floats:
        """(n, K) derivative: `a (softmax(u) - e_y) + b tau (softmax(u / tau) - p)`."""
        tau = self.temperature
        hard = self.hard[:, None] * (softmax(u, axis=1) - self.one_hot)
        return np.asarray(
            hard + self.soft[:, None] * tau * (softmax(u / tau, axis=1) - self.taught)
        )

    def curvature(self, u: Floats) -> Floats:
        """(n, K, K) second derivatives of every sample; the temperature cancels in b's."""
        total = np.zeros((*u.shape, self.n_classes))
        for weight, scale in ((self.hard, 1.0), (self.soft, self.temperature)):
            q = softmax(u / scale, axis=1)
            spread = q[:, :, None] * (np.eye(self.n_classes) - q[:, None])
            total += weight[:, None, None] * spread
        return total

    def dual_value(self, u: Floats, correction: Floats) -> float:
        """A lower bound of the least loss, from slopes at u once `correction` (n, K) is added.

        Fenchel's: `-sum_n F_n*(v_n)` for v = gradient + correction with `sum_n v_n phi_n' = 0`.
        Conjugates of both terms are entropies; the correction goes into the soft term where there
        is one. -inf if it leads out of the simplex.
        """
        tau = self.temperature
        hard, soft = softmax(u, axis=1), softmax(u / tau, axis=1)
        if self.is_hard:
            hard = hard + correction / self.hard[:, None]
        else:
            soft = soft + correction / (tau * self.soft[:, None])
            # The labels themselves are feasible, at v = 0: mixed in until none is negative.
            below = soft < 0
            lifts = -soft[below] / (self.taught[below] - soft[below])
            part = float(np.max(lifts, initial=0.0))
            hard = (1 - part) * hard + part * self.one_hot
            soft = np.maximum((1 - part) * soft + part * self.taught, 0.0)  # to rounding
        if min(hard.min(), soft.min()) < 0:
            return -np.inf
        entropies = [np.sum(xlogy(q, q), axis=1) for q in (hard, soft)]
        return float(-self.hard @ entropies[0] - tau**2 * self.soft @ entropies[1])


def exit_loss(
    labels: Any | None, teacher: Any | None, *, temperature: float = 1.0, share: float = 0.5
) -> ExitLoss:
    """Check labels and teacher and weigh them: means over labelled and over all samples, (6.6).

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
        If something that has weight is missing, or shapes or values are none of these.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"`share` of hard labels must lie in [0, 1], got {share}")
    require_positive("temperature", temperature)
    if (share > 0 and labels is None) or (share < 1 and teacher is None):
        missing = "labels" if share > 0 and labels is None else "teacher"
        raise ValueError(f"`share` {share} needs `{missing}`: give them, or another share")
    logits = None if share == 1 else _logits(teacher)
    classes = None if share == 0 else _classes(labels, logits)
    n, k = _sizes(classes, logits)
    one_hot = np.zeros((n, k))
    hard, soft = np.zeros(n), np.zeros(n)
    if classes is not None:
        known = classes != UNLABELLED
        one_hot[known, classes[known]] = 1.0
        hard = share * known / known.sum()
    if logits is not None:
        soft = np.full(n, (1 - share) / n)
    taught = np.zeros((n, k)) if logits is None else logits - logits.mean(axis=1, keepdims=True)
    return ExitLoss(hard, soft, one_hot, taught, float(temperature))


def _sizes(classes: NDArray[np.int64] | None, logits: Floats | None) -> tuple[int, int]:
    """Numbers of samples and classes: the teacher's, or as many classes as labels name."""
    if logits is not None:
        return logits.shape[0], logits.shape[1]
    assert classes is not None  # one of the two has weight
    return len(classes), int(classes.max()) + 1


def _logits(teacher: Any) -> Floats:
    require_real("teacher", teacher)
    logits = np.asarray(to_numpy(teacher), dtype=np.float64)
    if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
        raise ValueError(f"`teacher` must be logits (n, K) with K >= 2, got shape {logits.shape}")
    if not np.all(np.isfinite(logits)):
        raise ValueError("`teacher` must be finite: its soft labels have to lie inside the simplex")
    return logits


def _classes(labels: Any, logits: Floats | None) -> NDArray[np.int64]:
    require_real("labels", labels)
    given = np.asarray(to_numpy(labels))
    most = np.inf if logits is None else logits.shape[1] - 1
    if given.ndim != 1 or len(given) == 0 or (logits is not None and len(given) != len(logits)):
        wanted = "(n,)" if logits is None else f"({len(logits)},), as the teacher has rows"
        raise ValueError(f"`labels` must have shape {wanted}, got {given.shape}")
    if not np.all((given == np.floor(given)) & (given >= UNLABELLED) & (given <= most)):
        raise ValueError(f"`labels` must be whole numbers from 0 to {most:g}, or -1 for none")
    if logits is None and len(np.unique(given[given != UNLABELLED])) < 2:
        raise ValueError("`labels` must hold two classes at least: one alone needs no head")
    if not np.any(given != UNLABELLED):
        raise ValueError("`labels` must hold one label at least: take share=0 for none")
    return given.astype(np.int64)
