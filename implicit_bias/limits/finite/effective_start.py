"""The start from which gradient flow comes to where a run of finite steps has come."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.doors import door
from ...data.arrays import Floats

if TYPE_CHECKING:
    import torch

    from ...networks.diagonal_linear import DiagonalLinear

# A step x told by u + v and by u - v: how far beyond rounding the two may differ, and the rounding
# of weights in units of their resolution.
_AGREES, _ROUNDING = 1e-12, 256


class EffectiveStart:
    r"""Observer of a diagonal network: the start of the flow that ends where the run does.

    A step of gradient descent is ``p (1 + x)``, ``q (1 - x)`` for ``p = u + v`` and ``q = u - v``,
    x in the row space of the features whatever the step size, the batch and the noise of the
    labels. With S the sum of all x

    .. math:: p_{eff} = p \, e^{-S}, \qquad q_{eff} = q \, e^{S}

    are weights from which gradient flow reaches the run's own at ``z = S``. So at every step the
    network is the one of least potential, from the effective start, among all with its scores; and
    where it interpolates it is exactly `limits.solve_diagonal` of that start.

    Momentum and weight decay make other steps, and are refused when the start is asked for.

    Parameters
    ----------
    network : DiagonalLinear
        It is watched from here on, before every evaluation in training: make the observer first,
        then train the network by itself, with `train` or a loop of your own.

    Attributes
    ----------
    mismatch : float
        Largest difference of the steps x that u + v and u - v tell of; rounding for gradient
        descent.

    References
    ----------
    M. Even, S. Pesme, S. Gunasekar, N. Flammarion, "(S)GD over diagonal linear networks", theorem
    1, in the form of sums of log(1 - x^2).

    Examples
    --------
    >>> features, y = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([4.0, 0.5])
    >>> network = ib.networks.DiagonalLinear(2, init_scale=0.5)
    >>> observer = ib.limits.EffectiveStart(network)
    >>> settings = ib.TrainingSettings(loss="squared", schedule=((400, 0.1),), batch_size=1)
    >>> trajectory = ib.train(network, features, y, settings=settings, observer=observer)
    >>> limit = ib.limits.solve_diagonal(features, y, *observer.start)
    >>> float(np.abs(limit.zeta - network.zeta().detach().numpy()).max()) < 1e-10
    True
    """

    @door()
    def __init__(self, network: DiagonalLinear) -> None:
        self._before = _weights(network)
        self._sum = np.zeros_like(self._before[0])
        self.mismatch = 0.0
        self._network = network
        self._hook = network.register_forward_pre_hook(self._watch)

    @door()
    def __call__(self, network: torch.nn.Module) -> Mapping[str, Any]:
        """Return measurements at a checkpoint, of the network that is watched.

        ``effective_scale`` is the geometric mean of ``c = |p_eff q_eff|`` over the features.
        """
        self._look()
        p, q = self._effective()
        with np.errstate(divide="ignore"):
            return {"effective_scale": math.exp(float(np.log(np.abs(p * q)).mean()))}

    @property
    def start(self) -> tuple[Floats, Floats]:
        """``(u, v)`` of the effective start, as `limits.solve_diagonal` takes them.

        Raises
        ------
        ValueError
            If the network was not trained by gradient descent.
        """
        self._look()
        if not self.mismatch <= _AGREES:
            raise ValueError(
                "the weights u and v did not move by steps of gradient descent (the two sums of "
                f"its step differ by {self.mismatch:.2g}): no effective start is known of momentum "
                "and weight decay; train with momentum=0 and weight_decay=0"
            )
        p, q = self._effective()
        return np.asarray((p + q) / 2), np.asarray((p - q) / 2)

    def state_dict(self) -> dict[str, Floats]:
        """Return arrays by name, for runs that are resumed."""
        self._look()
        p, q = self._before
        return {"p": p, "q": q, "sum": self._sum, "mismatch": np.array(self.mismatch)}

    @door()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        p, q, total = (np.array(state[name], dtype=np.float64) for name in ("p", "q", "sum"))
        self._before, self._sum = (p, q), total
        self.mismatch = float(state["mismatch"])

    def _effective(self) -> tuple[Floats, Floats]:
        p, q = self._before
        return p * np.exp(-self._sum), q * np.exp(self._sum)

    def _watch(self, module: torch.nn.Module, _: object) -> None:
        if module is self._network:  # and no copy of it
            self._look()

    def _look(self) -> None:
        """Add the step that the weights have made since the last look."""
        p, q = _weights(self._network)
        before, other = self._before
        if np.array_equal(p, before) and np.array_equal(q, other):
            return
        one, two = np.abs(before), np.abs(other)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_p, by_q = p / before - 1, 1 - q / other
            blur = _ROUNDING * _resolution(self._network) * np.maximum(one, two)
            differ = np.abs(by_p - by_q) - blur / np.minimum(one, two)
        both = (before != 0) & (other != 0)
        self.mismatch = max(self.mismatch, float(np.max(differ[both], initial=0.0)))
        # The larger of the two has lost fewer digits; where both are 0 nothing moves.
        step = np.where(one >= two, by_p, by_q)
        self._sum = self._sum + np.where(np.maximum(one, two) > 0, step, 0.0)
        self._before = p, q


def _resolution(network: Any) -> float:
    """Return the spacing of the weights' numbers at 1."""
    import torch

    return float(torch.finfo(network.u.dtype).eps)


def _weights(network: Any) -> tuple[Floats, Floats]:
    """Return u + v and u - v in float64."""
    u, v = (w.detach().cpu().double().numpy() for w in (network.u, network.v))
    return u + v, u - v
