"""Multi-exit networks: a trunk of ReLU layers with linear heads behind some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from .._support.doors import door
from .protocols import check_inputs, check_start, check_tensor


class Trunk(torch.nn.Module):
    """Layers `h_l = relu(W_l h_{l-1})` without biases, whose outputs are the features of exits.

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    widths : sequence of int
        Units of every layer, one layer at least.
    random_state : int
        Source of Gaussian weights of variance 2 over the number of inputs of a layer.

    Attributes
    ----------
    layers : ParameterList
        W_1 (width_1, D), W_2 (width_2, width_1), ..., in float64.

    Raises
    ------
    TypeError
        If a size is not a whole number.
    ValueError
        If a size is not positive, or there is no layer.

    Examples
    --------
    >>> trunk = ib.heads.Trunk(3, widths=(4, 2))
    >>> [h.shape for h in trunk.features(np.ones((5, 3)))]
    [(5, 4), (5, 2)]
    """

    @door()
    def __init__(self, n_inputs: int, *, widths: Sequence[int], random_state: int = 0) -> None:
        super().__init__()
        if len(widths) == 0:
            raise ValueError("`widths` must name a layer at least, got none")
        sizes = {"n_inputs": n_inputs} | {f"widths[{i}]": w for i, w in enumerate(widths)}
        shapes = [(above, below) for below, above in pairwise(sizes.values())]
        check_start(sizes, 1.0, *shapes)
        rng = np.random.default_rng(random_state)
        self.layers = torch.nn.ParameterList(
            torch.as_tensor(rng.normal(scale=(2 / shape[1]) ** 0.5, size=shape)) for shape in shapes
        )

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """Return the features (n, width) of every layer, for inputs X (n, D)."""
        check_inputs(X, self.layers[0], self.layers[0].shape[1])
        exits = []
        for weight in self.layers:
            X = torch.relu(X @ weight.T)
            exits.append(X)
        return tuple(exits)

    @door()
    def features(self, X: ArrayLike) -> tuple[np.ndarray, ...]:
        """Return the features (n, width) of every layer as NumPy arrays, without a gradient."""
        with torch.no_grad():
            return tuple(h.numpy() for h in self(_tensor(X)))


@door()
def train_trunk(
    trunk: Trunk,
    X: ArrayLike,
    labels: ArrayLike,
    *,
    n_steps: int = 200,
    learning_rate: float = 3e-3,
    head_alone: bool = False,
) -> np.ndarray:
    """Train a trunk under one head at its last layer by Adam on cross entropy.

    Nothing is predicted of these weights: the heads behind a frozen trunk are, and any weights
    will do that separate the classes.

    Parameters
    ----------
    trunk : Trunk
        Trained in place.
    X : (n, D) array
    labels : (n,) ints
        Classes from 0; samples labelled -1 are not trained on.
    n_steps : int
        Steps with all samples.
    learning_rate : float
        Adam's.
    head_alone : bool
        Train the head and leave the trunk as it is.

    Returns
    -------
    (n, K) float64 array
        Logits of that head on X: a teacher for the exits before it.

    Examples
    --------
    >>> trunk, X = ib.heads.Trunk(2, widths=(8,)), np.array([[1.0, 0.2], [-1.0, 0.1]])
    >>> ib.heads.train_trunk(trunk, X, [0, 1]).argmax(axis=1).tolist()
    [0, 1]
    """
    inputs = _tensor(X)
    check_inputs(inputs, trunk.layers[0], trunk.layers[0].shape[1])
    given = np.asarray(labels)
    if given.shape != (len(inputs),) or given.dtype.kind not in "iu" or not np.any(given >= 0):
        raise ValueError(
            f"`labels` must be integers of shape ({len(inputs)},), one a row of X and one of them "
            f"0 or more, got dtype {given.dtype} and shape {given.shape}"
        )
    classes = torch.tensor(given, dtype=torch.int64)
    known = classes >= 0
    head = torch.zeros(
        int(classes.max()) + 1, trunk.layers[-1].shape[0], dtype=torch.float64, requires_grad=True
    )
    trained = [head] if head_alone else [*trunk.parameters(), head]
    means = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in trained]
    for step in range(1, n_steps + 1):
        loss = cross_entropy(trunk(inputs[known])[-1] @ head.T, classes[known])
        gradients = torch.autograd.grad(loss, trained)
        _adam_step(trained, gradients, means, learning_rate, step)
    with torch.no_grad():
        logits: np.ndarray = (trunk(inputs)[-1] @ head.T).numpy()
    return logits


@torch.no_grad()
def _adam_step(
    weights: Sequence[Tensor],
    gradients: Sequence[Tensor],
    means: Sequence[tuple[Tensor, Tensor]],
    rate: float,
    step: int,
) -> None:
    """Take a step of Adam, as `torch.optim.Adam` does, which loads the compiler of torch."""
    for weight, gradient, (first, second) in zip(weights, gradients, means, strict=True):
        first.lerp_(gradient, 1 - 0.9)
        second.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        size = (second.sqrt() / math.sqrt(1 - 0.999**step)).add_(1e-8)
        weight.addcdiv_(first, size, value=-rate / (1 - 0.9**step))


class _Head(torch.nn.Module):
    """A linear head: weights (K, D), 0 at first."""

    @door()
    def __init__(
        self,
        n_classes: int,
        n_features: int,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"n_classes": n_classes, "n_features": n_features}
        check_start(sizes, 1.0, (n_classes, n_features), device=device)
        zeros = torch.zeros(n_classes, n_features, dtype=dtype, device=device)
        self.weight = torch.nn.Parameter(zeros)

    def logits(self, X: Tensor) -> Tensor:
        """Return the logits (n, K) of features (n, D)."""
        check_inputs(X, self.weight, self.weight.shape[1])
        return X @ self.weight.T


class LabelledHead(_Head):
    """A linear head for hard labels, whose score is a margin with cross entropy as logistic loss.

        log(1 + exp(-m)) = -log softmax(u)_y     for  m = u_y - log sum_{k != y} exp(u_k),

    so that trainers that work with the logarithm of a loss of margins can descend cross entropy.

    Parameters
    ----------
    n_classes, n_features : int
        K and D.
    dtype : torch.dtype
    device : str
        Dtype and device of the weights.

    Attributes
    ----------
    weight : Parameter (K, D)
        0 at first.

    Examples
    --------
    >>> import torch
    >>> head, labels = ib.networks.LabelledHead(3, 2), torch.eye(3).double()
    >>> losses = torch.log1p(torch.exp(-head(torch.ones(3, 2).double(), labels)))
    >>> bool(torch.allclose(losses, torch.tensor(3.0).double().log()))
    True
    """

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the margins m (n,) of features (n, D) under one-hot labels (n, K)."""
        u = self.logits(X)
        _check_labels(gates, tuple(u.shape))
        others = u.masked_fill(gates > 0, -torch.inf)
        return (gates * u).sum(dim=1) - torch.logsumexp(others, dim=1)


class SoftLabelHead(_Head):
    """A linear head for soft labels, and for hard ones beside them, whose score is its loss.

    The loss is cross entropy under the hard labels, plus tau^2 times cross entropy under the soft
    ones at temperature tau.

    Parameters
    ----------
    n_classes, n_features : int
        K and D.
    temperature : float
        tau, of teacher and student.
    dtype : torch.dtype
    device : str
        Dtype and device of the weights.

    Attributes
    ----------
    weight : Parameter (K, D)
        0 at first.

    Examples
    --------
    >>> import torch
    >>> head = ib.networks.SoftLabelHead(2, 3, temperature=1.0)
    >>> labels = torch.tensor([[0.0, 0.0, 0.3, 0.7]]).double()  # no hard label
    >>> losses = head(torch.ones(1, 3).double(), labels)  # log 2 each
    >>> losses.exp().detach().numpy().round(12).tolist()
    [2.0]
    """

    @door()
    def __init__(
        self,
        n_classes: int,
        n_features: int,
        *,
        temperature: float,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(n_classes, n_features, dtype=dtype, device=device)
        self.temperature = temperature

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the losses (n,) of features (n, D) under labels (n, 2 K), the hard ones first."""
        u = self.logits(X)
        _check_labels(gates, (u.shape[0], 2 * u.shape[1]))
        hard, soft = gates.chunk(2, dim=1)
        tau = self.temperature
        own = -(hard * log_softmax(u, dim=1)).sum(dim=1)
        return own - tau**2 * (soft * log_softmax(u / tau, dim=1)).sum(dim=1)


class ExitNetwork(torch.nn.Module):
    """A frozen trunk with a linear head behind each of several layers.

    Parameters
    ----------
    trunk : Trunk
        Its weights no longer require a gradient.
    heads : sequence of LabelledHead or SoftLabelHead
    exits : sequence of int
        The layer of each head, from 1.

    Examples
    --------
    >>> trunk = ib.heads.Trunk(3, widths=(4, 2))
    >>> heads = [ib.networks.LabelledHead(5, width) for width in (4, 2)]
    >>> network = ib.networks.ExitNetwork(trunk, heads, exits=(1, 2))
    >>> [p.shape for p in network.predict(np.ones((7, 3)))]
    [(7, 5), (7, 5)]
    """

    @door()
    def __init__(self, trunk: Trunk, heads: Sequence[_Head], exits: Sequence[int]) -> None:
        super().__init__()
        self.trunk, self.heads = trunk.requires_grad_(False), torch.nn.ModuleList(heads)
        self.exits = tuple(exits)

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """Return the logits (n, K) of every exit, for inputs X (n, D)."""
        check_tensor("X", X)
        features = self.trunk(X.to(self.trunk.layers[0]))
        return tuple(
            features[layer - 1].to(weight) @ weight.T
            for weight, layer in zip(self.heads.parameters(), self.exits, strict=True)
        )

    @door()
    def predict(self, X: ArrayLike) -> tuple[np.ndarray, ...]:
        """Return class probabilities (n, K): means over the first 1, 2, ... exits."""
        with torch.no_grad():
            own = [softmax(u, dim=1).double().cpu().numpy() for u in self(_tensor(X))]
        return tuple(np.mean(own[: m + 1], axis=0) for m in range(len(own)))


def _check_labels(gates: object, shape: tuple[int, ...]) -> None:
    check_tensor("gates", gates)
    assert isinstance(gates, Tensor)
    if tuple(gates.shape) != shape:
        raise ValueError(
            f"`gates` must hold the labels, of shape {shape}, got shape {tuple(gates.shape)}"
        )


def _tensor(X: ArrayLike) -> Tensor:
    """A copy in float64: torch warns of the read-only arrays of data sets."""
    return torch.tensor(np.asarray(X), dtype=torch.float64)
