"""A trunk of ReLU layers with an exit behind each, drawn at random or trained, then frozen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

__all__ = ["Trunk", "train_trunk"]


class Trunk(torch.nn.Module):
    """Layers `h_l = relu(W_l h_{l-1})` without biases; an exit's features are the h of its layer.

    Parameters
    ----------
    n_inputs : int
    widths : sequence of int
        One a layer, hence one an exit.
    random_state : int
        Seeds Gaussian weights of variance 2 over the number of inputs of a layer.
    """

    def __init__(self, n_inputs: int, widths: Sequence[int], *, random_state: int = 0) -> None:
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
        """Features (n, width) of every exit."""
        exits = []
        for weight in self.layers:
            X = torch.relu(X @ weight.T)
            exits.append(X)
        return tuple(exits)

    def features(self, X: object) -> tuple[np.ndarray, ...]:
        """Features of every exit as NumPy arrays: frozen, without a gradient."""
        with torch.no_grad():
            return tuple(h.numpy() for h in self(torch.as_tensor(X, dtype=torch.float64)))


def train_trunk(
    trunk: Trunk, X: object, labels: object, *, n_steps: int = 200, rate: float = 3e-3
) -> np.ndarray:
    """Train a trunk under one head at its last exit by Adam on cross entropy.

    Parameters
    ----------
    trunk : Trunk
        Trained in place.
    X : (n, D) array
    labels : (n,) ints
        Classes from 0.
    n_steps : int
        Full batches.
    rate : float

    Returns
    -------
    (n, K) array
        Logits of that head on X: a teacher for the exits before it.
    """
    inputs = torch.as_tensor(X, dtype=torch.float64)
    classes = torch.as_tensor(labels, dtype=torch.int64)
    head = torch.zeros(
        int(classes.max()) + 1, trunk.layers[-1].shape[0], dtype=torch.float64, requires_grad=True
    )
    optimizer = torch.optim.Adam([*trunk.parameters(), head], lr=rate)
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(trunk(inputs)[-1] @ head.T, classes)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        logits: np.ndarray = (trunk(inputs)[-1] @ head.T).numpy()
    return logits
