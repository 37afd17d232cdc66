"""The gradient methods as optimisers of torch, for training loops that are not ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .margin_optimizer import MarginOptimizer, whole

__all__ = ["Annealed", "Dual", "Momentum", "Normalised"]


class Annealed(MarginOptimizer):
    """Limited-memory BFGS on the smoothed margin, at a temperature that falls as it converges.

    The method "annealed" of `train`, which `implicit_bias.training.annealed` describes.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group; float32 or float64.
    degree : int
        Of homogeneity of the margins in these weights: the number of layers of a network without
        biases. The first step tests it.
    n_samples : int
        How many margins the closure returns.
    loss : {"logistic", "exponential"}

    Examples
    --------
    >>> import torch
    >>> X, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([1.0, -1.0])
    >>> w = torch.nn.Parameter(torch.tensor([1.0, 1.0]).double())
    >>> optimiser = Annealed([w], degree=1, n_samples=2)
    >>> for _ in range(300):
    ...     margins = optimiser.step(lambda: y * (X @ w))
    >>> (w / w.norm()).detach().numpy().round(3).tolist()  # the limit is (1/2, -1)
    [0.447, -0.894]
    """

    trainer = "annealed"

    def __init__(
        self, params: Iterable[Any], *, degree: int, n_samples: int, loss: str = "logistic"
    ) -> None:
        super().__init__(params, n_samples=n_samples, degree=whole("degree", degree), loss=loss)


class Momentum(MarginOptimizer):
    """Steps along the gradient of log(loss) with momentum, dropped where they would do harm.

    The method "momentum" of `train`.

    Parameters
    ----------
    params, n_samples, loss
        As in `Annealed`.
    degree : int, optional
        With it the smoothed margin may not fall either; without it the loss alone bounds a step.
    """

    trainer = "momentum"

    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        degree: int | None = None,
        loss: str = "logistic",
    ) -> None:
        super().__init__(params, n_samples=n_samples, degree=degree, loss=loss)


class Normalised(MarginOptimizer):
    """Steps along the gradient of log(loss): the method "normalised" of `train`.

    Parameters
    ----------
    params, n_samples, degree, loss
        As in `Momentum`; `degree` is for the line search.
    lr : float, optional
        A rate, which a scheduler may change; by default a line search finds the steps.
    momentum : float
        Of heavy balls, in [0, 1).
    """

    trainer = "normalised"

    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        degree: int | None = None,
        lr: float | None = None,
        momentum: float = 0.0,
        loss: str = "logistic",
    ) -> None:
        super().__init__(
            params, n_samples=n_samples, degree=degree, lr=lr, momentum=momentum, loss=loss
        )


class Dual(MarginOptimizer):
    """Nesterov's method on the dual: the method "dual" of `train`, for scores linear in weights.

    Parameters
    ----------
    params, n_samples, loss
        As in `Annealed`; the degree is 1.
    """

    trainer = "dual"

    def __init__(self, params: Iterable[Any], *, n_samples: int, loss: str = "logistic") -> None:
        super().__init__(params, n_samples=n_samples, degree=1, loss=loss)
