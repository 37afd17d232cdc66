r"""The mutual autoencoder of one normal variable: its optimum in closed form, and a trainer.

    x ~ N(0, 1),   z ~ N(0, 1),   decoder p(x|z) = N(a z, s^2),   encoder q(z|x) = N(b x, t^2)

The evidence lower bound has its maximum on a whole curve of models, from the one that ignores z to
ones that copy it; the information I_p(z, x) asked for picks one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..._support.doors import door, parameters, result
from ..._support.extras import naming_extras
from ..._support.kinds import count, positive, tolerance
from ...data.arrays import Floats
from ...runs.drawing.figures import Row, compose, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

# Expectation of log q(x) for x ~ N(0, 1): no model has a larger likelihood, hence no larger bound.
MOST = -0.5 * math.log(2 * math.pi * math.e)
# Two nodes of Gauss and Hermite integrate cubics exactly; log densities here are quadratic.
NODES = (-1.0, 1.0)
CURVE = 300  # points of a curve, about


@parameters(deviation=positive, encoder_deviation=positive)
@dataclass(frozen=True)
class GaussianMAE:
    """A linear Gaussian decoder and encoder, with their bound and information on x ~ N(0, 1).

    Attributes
    ----------
    slope, deviation : float
        a and s of the decoder N(a z, s^2).
    encoder_slope, encoder_deviation : float
        b and t of the encoder N(b x, t^2).

    Examples
    --------
    >>> model = ib.autoencoders.GaussianMAE(0.6, 0.8, 0.6, 0.8)
    >>> round(model.rho, 6), round(model.gap, 6)
    (0.6, 0.0)
    """

    slope: float
    deviation: float
    encoder_slope: float
    encoder_deviation: float

    @property
    def rho(self) -> float:
        """Correlation of z and x in the model p: a / sqrt(a^2 + s^2)."""
        return self.slope / math.hypot(self.slope, self.deviation)

    @property
    def information(self) -> float:
        """I_p(z, x) in nats: -1/2 log(1 - rho^2) = 1/2 log(1 + a^2 / s^2)."""
        return 0.5 * math.log1p((self.slope / self.deviation) ** 2)

    @property
    def elbo(self) -> float:
        """E_x[E_q log p(x|z) - KL(q(z|x) || p(z))], equation (4.2) of the thesis."""
        return MOST - self.gap

    @property
    def gap(self) -> float:
        """Distance of the bound from its maximum: a sum of two divergences, 0 on the curve alone.

        KL(N(0, 1) || p(x)) + E_x KL(q(z|x) || p(z|x)), with p(x) = N(0, v), v = a^2 + s^2 and
        p(z|x) = N(a x / v, s^2 / v).
        """
        v = self.slope**2 + self.deviation**2
        share = self.encoder_deviation**2 * v / self.deviation**2
        shift = (self.encoder_slope - self.slope / v) ** 2 * v / self.deviation**2
        return _divergence(1 / v) + _divergence(share) + 0.5 * shift

    @door()
    def objective(self, information: float, penalty: float) -> float:
        """Return the exact penalty problem's value (4.7): `elbo - penalty |I - information|`."""
        return self.elbo - penalty * abs(self.information - information)

    @door()
    def infomax_bound(self, slope: float, deviation: float) -> float:
        """Return H(z) + E_p log r(z|x) for r = N(slope x, deviation^2).

        It is at most I_p(z, x), by theorem 4.1. Equality holds at the posterior alone.
        """
        missed = (1 - slope * self.slope) ** 2 + (slope * self.deviation) ** 2
        return 0.5 - math.log(deviation) - missed / (2 * deviation**2)


START = GaussianMAE(0.2, 0.8, 0.2, 0.8)


@result()
@dataclass(frozen=True, eq=False)
class GaussianMAERun:
    """Model and training curves of `train_gaussian_mae`.

    Attributes
    ----------
    model : GaussianMAE
    information : float
        Information asked for, in nats.
    steps : (T,) array
        Steps of the curves, from 0.
    elbo, information_bound : (T,) arrays
        Values of the model at these steps; the bound is the critic's, below the information.

    Examples
    --------
    >>> run = ib.autoencoders.train_gaussian_mae(0.5, n_steps=10)
    >>> run.steps[[0, -1]].tolist(), run.elbo.shape
    ([0.0, 10.0], (11,))
    """

    model: GaussianMAE
    information: float
    steps: Floats
    elbo: Floats
    information_bound: Floats


@door(information=tolerance)
def gaussian_mae(information: float) -> GaussianMAE:
    r"""Return the maximiser of `elbo - C |I - information|`, C > 0: rho = sqrt(1 - e^(-2M)).

    `elbo` is at most -1/2 log(2 pi e), with equality exactly if a^2 + s^2 = 1 and the encoder is
    the posterior, a = b, s = t; its information is then -1/2 log(1 - a^2). The maximum is unique
    but for the sign of a = b: here it is positive. Without the penalty every rho is a maximum.

    Parameters
    ----------
    information : float
        M in nats, at least 0. The entropy of x is no upper limit of it, x being continuous.

    Returns
    -------
    GaussianMAE

    Raises
    ------
    ValueError
        If it is negative or not finite, or so large that 1 - rho^2 is 0 in float64.

    References
    ----------
    Phuong, "Underspecification in Deep Learning" (2021), section 4.6.1, which has no closed form
    and takes H(x) for the largest information.

    Examples
    --------
    >>> model = ib.autoencoders.gaussian_mae(0.5)
    >>> round(model.rho**2, 6), round(model.information, 12), round(model.elbo, 6)
    (0.632121, 0.5, -1.418939)
    """
    rho, deviation = math.sqrt(-math.expm1(-2 * information)), math.exp(-information)
    if deviation < np.finfo(np.float64).eps:
        raise ValueError(f"`information` must be below 36 nats in float64, got {information}")
    return GaussianMAE(rho, deviation, rho, deviation)


@naming_extras()
@door(information=tolerance, penalty=tolerance, n_steps=count(1), learning_rate=positive)
def train_gaussian_mae(
    information: float,
    *,
    penalty: float = 1.0,
    n_steps: int = 3000,
    learning_rate: float = 0.03,
    start: GaussianMAE = START,
) -> GaussianMAERun:
    """Train the four parameters by algorithm 4.1, without use of the closed form.

    The information is bounded from below by a critic, a third normal r(z|x) with one step of its
    own a step. Expectations run over reparametrised quadrature nodes, which makes them exact; over
    the second half the learning rate falls geometrically by 1e4, and with it the oscillation about
    the kink of `|I - M|`.

    Parameters
    ----------
    information : float
        M in nats, at least 0.
    penalty : float
        C; with 0 it is a plain variational autoencoder, whose end depends on its start.
    n_steps : int
        Steps of Adam.
    learning_rate : float
        Initial step size of Adam.
    start : GaussianMAE
        Initial parameters.

    Returns
    -------
    GaussianMAERun

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Phuong, "Underspecification in Deep Learning" (2021), algorithm 4.1.

    Examples
    --------
    >>> run = ib.autoencoders.train_gaussian_mae(0.5, n_steps=200)
    >>> round(run.model.information, 3)
    0.5
    """
    import torch

    a, s, b, t = astuple(start)
    # Slopes and log deviations of decoder, encoder and critic; the critic begins as the encoder.
    weights = [
        torch.tensor([slope, math.log(deviation)], dtype=torch.float64, requires_grad=True)
        for slope, deviation in ((a, s), (b, t), (b, t))
    ]
    optimizer = torch.optim.Adam(weights, lr=learning_rate, maximize=True)
    fall = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 1e-4 ** max(0.0, 2 * step / n_steps - 1)
    )
    curves: list[tuple[float, float, float]] = []
    for step in range(n_steps):
        elbo, bound = _objectives(*weights)
        if step % max(1, n_steps // CURVE) == 0:
            curves.append((step, elbo.item(), bound.item()))
        _set_gradients(weights, elbo - penalty * (bound - information).abs(), bound)
        optimizer.step()
        fall.step()
    elbo, bound = _objectives(*weights)
    curves.append((n_steps, elbo.item(), bound.item()))
    (a, log_s), (b, log_t), _ = (pair.tolist() for pair in weights)
    model = GaussianMAE(a, math.exp(log_s), b, math.exp(log_t))
    return GaussianMAERun(model, information, *np.array(curves).T)


@door()
def plot_gaussian_mae(runs: Sequence[GaussianMAERun]) -> Figure:
    """Draw information and the missing part of the ELBO along training, and the final models.

    Dashed lines and open circles are the closed form.

    Parameters
    ----------
    runs : sequence of GaussianMAERun

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no run.

    Examples
    --------
    >>> run = ib.autoencoders.train_gaussian_mae(0.5, n_steps=10)
    >>> len(ib.autoencoders.plot_gaussian_mae([run]).axes)
    3
    """
    if not runs:
        raise ValueError("`runs` must not be empty: there is nothing to draw")

    def draw(axes: list[Axes]) -> None:
        """Draw every run on these axes."""
        for i, run in enumerate(runs):
            label = f"M = {run.information:g}"
            axes[0].plot(run.steps, run.information_bound, label=label)
            axes[0].axhline(run.information, color=f"C{i}", linestyle="--", linewidth=0.8)
            axes[1].semilogy(run.steps, np.maximum(MOST - run.elbo, 1e-16), label=label)
            axes[2].plot(run.model.information, abs(run.model.rho), "+", markersize=10)
        grid = np.linspace(0, 1.1 * max(run.information for run in runs) + 1e-3, 200)
        axes[2].plot(grid, [gaussian_mae(m).rho for m in grid], color="0.6", zorder=0)
        asked = [run.information for run in runs]
        axes[2].plot(asked, [gaussian_mae(m).rho for m in asked], "o", mfc="none", color="0.3")
        axes[0].set(xlabel="step", ylabel="information bound, nats")
        axes[1].set(xlabel="step", ylabel="missing of the largest ELBO")
        axes[2].set(xlabel="information, nats", ylabel="correlation |rho|")
        legend_above(axes[0])

    return compose([Row(3, draw)], title="Gaussian mutual autoencoder: trained and closed form")


def _divergence(ratio: float) -> float:
    """Return the KL divergence of two centred normals from the ratio of their variances."""
    return 0.5 * (ratio - 1 - math.log(ratio))


def _objectives(decoder: Tensor, encoder: Tensor, critic: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ELBO and the critic's bound of the information, by quadrature."""
    import torch

    nodes = torch.tensor(NODES, dtype=torch.float64)
    first, noise = torch.meshgrid(nodes, nodes, indexing="ij")
    z = encoder[0] * first + encoder[1].exp() * noise
    prior = _log_density(z, torch.zeros_like(decoder))
    posterior = _log_density(z, encoder, first)
    elbo = (_log_density(first, decoder, z) + prior - posterior).mean()
    x = decoder[0] * first + decoder[1].exp() * noise
    return elbo, -MOST + _log_density(first, critic, x).mean()


def _log_density(value: Tensor, weights: Tensor, given: Tensor | float = 0.0) -> Tensor:
    """Return log N(value; slope given, e^(2 log deviation)), elementwise."""
    error = (value - weights[0] * given) / weights[1].exp()
    return -0.5 * error**2 - weights[1] - 0.5 * math.log(2 * math.pi)


def _set_gradients(weights: Sequence[Tensor], objective: Tensor, bound: Tensor) -> None:
    """Set gradients of the objective for decoder and encoder, of the bound for the critic."""
    import torch

    decoder, encoder, critic = weights
    decoder.grad, encoder.grad = torch.autograd.grad(
        objective, (decoder, encoder), retain_graph=True
    )
    (critic.grad,) = torch.autograd.grad(bound, (critic,))
