"""A trunk of ReLU layers with linear heads behind some, the trunk drawn or trained, then frozen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

__all__ = ["ExitNetwork", "LabelledHead", "SoftLabelHead", "Trunk", "train_trunk"]


class Trunk(torch.nn.Module):
    """Layers `h_l = relu(W_l h_{l-1})` without biases; an exit's features are the h of its layer.

    Parameters
    ----------
    n_inputs : int
    widths : sequence of int
        One a layer.
    random_state : int
        Seeds Gaussian weights of variance 2 over the number of inputs of a layer.
    """

    def __init__(self, n_inputs: int, *, widths: Sequence[int], random_state: int = 0) -> None:
        super().__init__()
        sizes = [n_inputs, *widths]
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(
                f"`n_inputs` and `widths` must be positive, one exit at least, got {sizes}"
            )
        rng = np.random.default_rng(random_state)
        self.layers = torch.nn.ParameterList(
            torch.as_tensor(rng.normal(scale=(2 / below) ** 0.5, size=(above, below)))
            for below, above in pairwise(sizes)
        )

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """Features (n, width) of every layer."""
        exits = []
        for weight in self.layers:
            X = torch.relu(X @ weight.T)
            exits.append(X)
        return tuple(exits)

    def features(self, X: object) -> tuple[np.ndarray, ...]:
        """Features of every layer as NumPy arrays: frozen, without a gradient."""
        with torch.no_grad():
            return tuple(h.numpy() for h in self(_tensor(X)))


def train_trunk(
    trunk: Trunk,
    X: object,
    labels: object,
    *,
    n_steps: int = 200,
    learning_rate: float = 3e-3,
    head_alone: bool = False,
) -> np.ndarray:
    """Train a trunk under one head at its last layer by Adam on cross entropy.

    Adam, which is no trainer of the package: nothing is predicted of what comes out, which is
    frozen. Any weights will do that tell classes apart.

    Parameters
    ----------
    trunk : Trunk
        Trained in place.
    X : (n, D) array
    labels : (n,) ints
        Classes from 0; samples labelled -1 are not trained on.
    n_steps : int
        Full batches.
    learning_rate : float
    head_alone : bool
        Leave the trunk as it was drawn, under a head that is trained.

    Returns
    -------
    (n, K) array
        Logits of that head on X: a teacher for the exits before it.
    """
    inputs = _tensor(X)
    classes = torch.tensor(np.asarray(labels), dtype=torch.int64)
    known = classes >= 0
    head = torch.zeros(
        int(classes.max()) + 1, trunk.layers[-1].shape[0], dtype=torch.float64, requires_grad=True
    )
    trained = [head] if head_alone else [*trunk.parameters(), head]
    optimizer = torch.optim.Adam(trained, lr=learning_rate)
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss = cross_entropy(trunk(inputs[known])[-1] @ head.T, classes[known])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        logits: np.ndarray = (trunk(inputs)[-1] @ head.T).numpy()
    return logits


class _Head(torch.nn.Module):
    """Weights (K, D) that begin at 0."""

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        *,
        dtype: torch.dtype = torch.float64,
        device: str = "cpu",
    ) -> None:
        super().__init__()
        zeros = torch.zeros(n_classes, n_features, dtype=dtype, device=device)
        self.weight = torch.nn.Parameter(zeros)

    def logits(self, X: Tensor) -> Tensor:
        """(n, K) of features (n, D)."""
        return X @ self.weight.T


class LabelledHead(_Head):
    """A head that learns from hard labels: its score is the margin of which cross entropy is made.

        log(1 + exp(-m)) = -log softmax(u)_y     for  m = u_y - log sum_{k != y} exp(u_k),

    so that the logistic loss of m is cross entropy, and trainers that work with the logarithm of a
    loss of margins can descend it.
    """

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """m (n,) of features (n, D) and one-hot labels (n, K)."""
        u = self.logits(X)
        others = u.masked_fill(gates > 0, -torch.inf)
        return (gates * u).sum(dim=1) - torch.logsumexp(others, dim=1)


class SoftLabelHead(_Head):
    """A head that learns from soft labels, and perhaps from hard ones: its score is the loss.

    Parameters
    ----------
    n_classes, n_features, dtype, device
        As of the weights (K, D).
    temperature : float
        tau, of teacher and student.
    """

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        *,
        temperature: float,
        dtype: torch.dtype = torch.float64,
        device: str = "cpu",
    ) -> None:
        super().__init__(n_classes, n_features, dtype=dtype, device=device)
        self.temperature = temperature

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Losses (n,) of features (n, D) under weighed labels (n, 2 K), hard ones first."""
        u = self.logits(X)
        hard, soft = gates.chunk(2, dim=1)
        tau = self.temperature
        own = -(hard * log_softmax(u, dim=1)).sum(dim=1)
        return own - tau**2 * (soft * log_softmax(u / tau, dim=1)).sum(dim=1)


class ExitNetwork(torch.nn.Module):
    """A frozen trunk with a head behind each of several layers.

    Parameters
    ----------
    trunk : Trunk
        Its weights ask for no gradient any more.
    heads : sequence of LabelledHead or SoftLabelHead
    exits : sequence of int
        The layer of each head, from 1.
    """

    def __init__(self, trunk: Trunk, heads: Sequence[_Head], exits: Sequence[int]) -> None:
        super().__init__()
        self.trunk, self.heads = trunk.requires_grad_(False), torch.nn.ModuleList(heads)
        self.exits = tuple(exits)

    def forward(self, X: Tensor) -> tuple[Tensor, ...]:
        """Logits (n, K) of every exit, of inputs (n, D)."""
        features = self.trunk(X.to(self.trunk.layers[0]))
        return tuple(
            features[layer - 1].to(weight) @ weight.T
            for weight, layer in zip(self.heads.parameters(), self.exits, strict=True)
        )

    def predict(self, X: object) -> tuple[np.ndarray, ...]:
        """Class probabilities (n, K) of the first 1, 2, ... exits: the mean of their softmaxes."""
        with torch.no_grad():
            own = [softmax(u, dim=1).double().cpu().numpy() for u in self(_tensor(X))]
        return tuple(np.mean(own[: m + 1], axis=0) for m in range(len(own)))


def _tensor(X: object) -> Tensor:
    """A copy in float64: arrays of data sets are read-only, which torch warns of."""
    return torch.tensor(np.asarray(X), dtype=torch.float64)
