"""The gradient methods as optimisers of torch, for training loops of your own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._support.doors import door
from .._support.words import MarginLoss
from .margin_optimizer import MarginOptimizer


class Annealed(MarginOptimizer):
    """Limited-memory BFGS on the smoothed margin, at a temperature that falls as it converges.

    The method "annealed" of `TrainingSettings`.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group; float32 or float64.
    degree : int
        Degree of homogeneity of the margins in these weights: the number of layers of a network
        without biases. The first step tests it.
    n_samples : int
        Number of margins that the closure returns.
    loss : {"logistic", "exponential"}

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.tensor([1.0, 1.0]).double())
    >>> optimiser = ib.optim.Annealed([w], degree=1, n_samples=2)
    >>> for _ in range(300):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> (w / w.norm()).detach().numpy().round(3).tolist()  # the limit is (1/2, -1)
    [0.447, -0.894]
    """

    trainer = "annealed"

    @door()
    def __init__(
        self, params: Iterable[Any], *, degree: int, n_samples: int, loss: MarginLoss = "logistic"
    ) -> None:
        super().__init__(params, n_samples=n_samples, degree=degree, loss=loss)


class Momentum(MarginOptimizer):
    """Steps along the gradient of log(loss) with momentum, dropped where they would do harm.

    The method "momentum" of `TrainingSettings`.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group; float32 or float64.
    n_samples : int
        Number of margins that the closure returns.
    degree : int, optional
        Degree of homogeneity of the margins in these weights: with it no step may lower the
        smoothed margin either; without it the loss alone bounds a step.
    loss : {"logistic", "exponential"}

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.tensor([1.0, 1.0]).double())
    >>> optimiser = ib.optim.Momentum([w], n_samples=2, degree=1)
    >>> for _ in range(100):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> bool(margins.min() > 0)
    True
    """

    trainer = "momentum"

    @door()
    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        degree: int | None = None,
        loss: MarginLoss = "logistic",
    ) -> None:
        super().__init__(params, n_samples=n_samples, degree=degree, loss=loss)


class Normalised(MarginOptimizer):
    """Steps along the gradient of log(loss): the method "normalised" of `TrainingSettings`.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group; float32 or float64.
    n_samples : int
        Number of margins that the closure returns.
    degree : int, optional
        Degree of homogeneity of the margins in these weights, for the line search.
    lr : float, optional
        A rate, which a scheduler may change; by default a line search finds the steps.
    momentum : float
        Heavy-ball momentum in [0, 1).
    loss : {"logistic", "exponential"}

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    Warns
    -----
    UserWarning
        Once, if the line search comes to a kink of the network, where its steps go to 0 though the
        loss has a slope.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.tensor([1.0, 1.0]).double())
    >>> optimiser = ib.optim.Normalised([w], n_samples=2, lr=0.1)
    >>> margins = optimiser.step(lambda: y * (X @ w))
    >>> margins.tolist()  # before the step: nothing was searched
    [2.0, -1.0]
    """

    trainer = "normalised"


class Dual(MarginOptimizer):
    """Nesterov's method on the dual of the margin problem, for scores linear in the weights.

    The method "dual" of `TrainingSettings`.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the predictor, in one group; float32 or float64.
    n_samples : int
        Number of margins that the closure returns.
    loss : {"logistic", "exponential"}

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.zeros(2).double())
    >>> optimiser = ib.optim.Dual([w], n_samples=2)
    >>> for _ in range(300):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> (w / w.norm()).detach().numpy().round(3).tolist()  # the limit is (1/2, -1)
    [0.447, -0.894]
    """

    trainer = "dual"

    @door()
    def __init__(
        self, params: Iterable[Any], *, n_samples: int, loss: MarginLoss = "logistic"
    ) -> None:
        super().__init__(params, n_samples=n_samples, degree=1, loss=loss)


class GradientDescent(MarginOptimizer):
    """Gradient descent on the mean loss: the method "constant" of `TrainingSettings`.

    The steps are those of `torch.optim.SGD`, on closures that return margins.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group; float32 or float64.
    n_samples : int
        Number of margins that the closure returns.
    lr : float
        The rate, which a scheduler may change.
    momentum : float
        Heavy-ball momentum in [0, 1).
    weight_decay : float
        lam of ``lam / 2 ||w||^2`` in the loss: networks end at the limit of `ib.limits.solve_fit`
        with this `penalty`.
    loss : {"logistic", "exponential"}

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the weights cannot be trained together.

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.zeros(2).double())
    >>> optimiser = ib.optim.GradientDescent([w], n_samples=2, lr=0.5, weight_decay=0.1)
    >>> for _ in range(300):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> limit = ib.limits.solve_fit(X, y, penalty=0.1, norm="ridge")
    >>> limit.gap_of(w, X, y) < 1e-12
    True
    """

    trainer = "constant"

    @door()
    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        lr: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        loss: MarginLoss = "logistic",
    ) -> None:
        super().__init__(
            params,
            n_samples=n_samples,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            loss=loss,
        )
