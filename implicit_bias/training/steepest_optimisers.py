"""Steepest descent in a norm, and Adam, as optimisers of torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._support.doors import door
from .._support.kinds import anything, count
from .._support.solve import Norm, NormName
from .._support.words import MarginLoss, check_word
from .closure_network import ClosureNetwork
from .margin_optimizer import MarginOptimizer
from .steppers.steepest_descent import ADAM_BETAS, AdamDescent, Polar
from .steppers.steepest_descent import SteepestDescent as SteepestSteps
from .steppers.steepest_steps import norm_of_weights
from .steppers.stepper import Stepper


class SteepestDescent(MarginOptimizer):
    r"""Normalised steepest descent, every tensor of weights in a norm of its own.

    .. math:: m_t = \beta m_{t-1} + \nabla_t, \qquad
              W \leftarrow W - \eta_t \arg\max_{N(U) \le 1} \langle m_t, U \rangle

    without momentum in steps whose size every step measures by another call of the closure: a
    falling share of what a quadratic along it would ask for. With momentum or `lr` they fall like
    :math:`t^{-1/2}` after the first thousand (at three layers and more a little faster: see
    `TrainingSettings`). "linf" gives sign descent, with momentum Signum;
    "spectral" the descent of Muon, with exact polar factors; "l1" coordinate descent; "l2"
    normalised gradient descent of every layer by itself.

    Parameters
    ----------
    params : iterable of Parameter, or of groups
        All weights of the network; float32 or float64. Groups are dicts with "params" and their own
        "norm": hidden matrices by spectral steps and the head by signs, as Muon is used.
    norm : Norm or str
        Norm of groups that name none, as `ib.limits.Norm.of` takes it. A vector counts as a row,
        and of a tensor the first axis against all others.
    n_samples : int
        Number of margins that the closure returns.
    degree : int, optional
        Degree of homogeneity of the margins in these weights, by which steps are chosen; 1 without.
    lr : float, optional
        Size of the first step, in the norm; by default one that is measured, or changes no margin
        by much.
    momentum : float
        beta in [0, 1).
    polar : {"exact", "newton-schulz"}
        Polar factors of spectral steps: "newton-schulz" takes five steps of the polynomial that
        Muon is shipped with, which leave singular values between 0.7 and 1.2. Those are steepest in
        no norm, and end at another margin.
    weight_decay : float
        lam of ``W <- (1 - eta_t lam) W`` before every step, beside it.
    loss : {"logistic", "exponential"}
    n_steps : int, optional
        How many steps there will be, at least 1. With it, with momentum and without `lr`, steps are
        equal for the first half and fall to 0 at the end, as those of `train` are.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    References
    ----------
    Z. Fan, M. Schmidt, C. Thrampoulidis, "Implicit bias of spectral descent and Muon on
    multiclass separable data": margins of linear predictors go to the largest in the norm.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.zeros(2).double())
    >>> optimiser = ib.optim.SteepestDescent([w], norm="linf", n_samples=2, degree=1)
    >>> for _ in range(300):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> (w / w.abs().max()).detach().numpy().round(3).tolist()
    [1.0, -1.0]
    """

    trainer = "sign"
    group_options = ("norm",)
    _kept = ("_norm", "_polar")

    @door(norm=anything, loss=anything, polar=anything, n_steps=count(1))
    def __init__(
        self,
        params: Iterable[Any],
        *,
        norm: Norm | NormName,
        n_samples: int,
        degree: int | None = None,
        lr: float | None = None,
        momentum: float = 0.0,
        polar: Polar = "exact",
        weight_decay: float = 0.0,
        loss: MarginLoss = "logistic",
        n_steps: int | None = None,
    ) -> None:
        check_word("polar", polar, Polar)
        self._norm, self._polar, self._n_steps = norm_of_weights(norm).name, polar, n_steps
        super().__init__(
            params, n_samples=n_samples, degree=degree, lr=lr, momentum=momentum,
            weight_decay=weight_decay, loss=loss,
        )  # fmt: skip

    @door()
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with a norm of its own; called by the constructor.

        Raises
        ------
        TypeError, ValueError
            If it has other options, an unknown norm, or comes after the first step.
        """
        if "norm" in param_group:  # by its name, which a saved state can hold
            param_group["norm"] = norm_of_weights(param_group["norm"]).name
        super().add_param_group(param_group)

    def _group_defaults(self) -> dict[str, Any]:
        return {"norm": self._norm}

    def _method(self, network: ClosureNetwork) -> Stepper:
        norms = [
            group["norm"] for group in self.param_groups for p in group["params"] if p.requires_grad
        ]
        return SteepestSteps(network, self._settings, self._n_samples, norms, self._polar)


class Adam(MarginOptimizer):
    r"""Adam, on the margins of all samples, without its constant unless it is given.

    .. math:: W \leftarrow W - \eta_t \frac{m_t / (1 - \beta_1^t)}
              {\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    Averages are of gradients of the mean loss and of their squares, on a logarithmic scale: they
    neither under- nor overflow. Steps fall as those of `SteepestDescent`.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group; float32 or float64.
    n_samples : int
        Number of margins that the closure returns.
    degree : int, optional
        Degree of homogeneity of the margins in these weights, by which steps are chosen; 1 without.
    lr : float, optional
        Size of the first step of a weight; by default one that changes no margin by much.
    betas : pair of float
        Decay of both averages, in [0, 1).
    epsilon : float
        The constant, 0 or more. With it steps are in the end those of gradient descent.
    weight_decay : float
        lam of ``W <- (1 - eta_t lam) W`` before every step, as of AdamW: see
        `ib.limits.solve_adamw`.
    loss : {"logistic", "exponential"}
    n_steps : int, optional
        How many steps there will be, at least 1. With it, with momentum and without `lr`, steps are
        equal for the first half and fall to 0 at the end, as those of `train` are.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    References
    ----------
    C. Zhang, D. Zou, Y. Cao, "The implicit bias of Adam on separable data". B. Wang, Q. Meng,
    W. Chen, T.-Y. Liu, "The implicit bias for adaptive optimization algorithms on homogeneous
    neural networks": with the constant.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.zeros(2).double())
    >>> optimiser = ib.optim.Adam([w], n_samples=2, degree=1, lr=0.01)
    >>> for _ in range(300):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> bool((y * (X @ w)).min() / w.abs().max() > 0.95)  # 1 at the most
    True
    """

    trainer = "adam"
    _kept = ("_betas", "_epsilon")

    @door(betas=anything, loss=anything, n_steps=count(1))
    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        degree: int | None = None,
        lr: float | None = None,
        betas: tuple[float, float] = ADAM_BETAS,
        epsilon: float = 0.0,
        weight_decay: float = 0.0,
        loss: MarginLoss = "logistic",
        n_steps: int | None = None,
    ) -> None:
        self._betas, self._epsilon = _checked_betas(betas), epsilon
        self._n_steps = n_steps
        super().__init__(
            params, n_samples=n_samples, degree=degree, lr=lr, weight_decay=weight_decay, loss=loss
        )

    def _method(self, network: ClosureNetwork) -> Stepper:
        return AdamDescent(network, self._settings, self._n_samples, self._betas, self._epsilon)


def _checked_betas(betas: Any) -> tuple[float, float]:
    try:
        first, second = (float(beta) for beta in betas)
    except (TypeError, ValueError):
        raise TypeError(f"`betas` must be two numbers in [0, 1), got {betas!r}") from None
    if not (0 <= first < 1 and 0 <= second < 1):
        raise ValueError(f"`betas` must be two numbers in [0, 1), got {betas!r}")
    return first, second
