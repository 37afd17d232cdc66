"""Samples in the dtype and on the device of a network's weights."""

from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.words import LossName
from .adapted import plain, takes_gates
from .losses.objectives import get_loss
from .protocols import Gated
from .weights import as_tensor

Inputs = ArrayLike | Tensor

# Of the root of the largest number, and of the smallest normal one, that inputs stay away: in
# float64 they lie between 1e-152 and 1e152.
ROOM = 100.0


class GatedData(NamedTuple):
    """Inputs (n, ...), targets (n,) or (n, K) and gates (n, ...) as a network takes them."""

    X: Tensor
    y: Tensor
    gates: Tensor | None

    def take(self, index: Tensor) -> "GatedData":
        """Return the samples with these indices (k,)."""
        gates = None if self.gates is None else self.gates[index]
        return GatedData(self.X[index], self.y[index], gates)


def place_data(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs | None,
    gates: Inputs | None,
    loss: LossName = "logistic",
) -> GatedData:
    """Check data for a loss and move them to the dtype and device of the network's weights.

    Parameters
    ----------
    network : Module
        Floating-point gates take the dtype of its weights too, integer ones (contexts) keep theirs;
        a `Gated` network prepares them itself.
    X : (n, D), or (n, ...) as the network takes it
        Whole numbers stay such in a network with embeddings, as token ids.
    y : (n,) or (n, K), or None
        Targets of the loss; None stands for ones.
    gates : (n, ...) or None
    loss : str
        A name in `LOSSES`.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, the square of the largest input overflows or
        vanishes in the dtype of the weights, a target is not one of the loss, a `Gated`
        network gets no gates, or the network has no weights to train.
    """
    weight = trained_weights(network)[0]
    given = as_tensor(X)
    inputs = given.to(weight.device).long() if _are_tokens(network, given) else given.to(weight)
    if inputs.ndim < 2 or len(inputs) == 0 or not bool(torch.isfinite(given).all()):
        raise ValueError(
            "`X` must be finite, of shape (n, D), or (n, ...) with n >= 1, got shape "
            f"{tuple(inputs.shape)}: look for NaN and infinite entries"
        )
    if inputs.is_floating_point():
        _check_scale(given, inputs.dtype)
    targets = weight.new_ones(len(inputs)) if y is None else as_tensor(y).to(weight)
    objective = get_loss(loss)
    fits = targets.ndim in objective.axes and len(targets) == len(inputs)
    fits = fits and targets.shape[-1] >= targets.ndim
    if not fits or not bool(objective.accepts(targets).all()):
        shapes = {1: f"({len(inputs)},)", 2: f"({len(inputs)}, K)"}
        shape = " or ".join(shapes[n_axes] for n_axes in objective.axes)
        raise ValueError(
            f"`y` must have shape {shape}, one target a row of X, got shape "
            f"{tuple(targets.shape)}, and {objective.targets}"
        )
    return GatedData(inputs, targets, _place_gates(network, gates, inputs))


def _are_tokens(network: torch.nn.Module, X: Tensor) -> bool:
    """Return whether inputs are whole numbers that a module with embeddings looks up."""
    whole = not X.is_floating_point() and X.dtype != torch.bool
    return whole and any(isinstance(part, _EMBEDDINGS) for part in network.modules())


_EMBEDDINGS = (torch.nn.Embedding, torch.nn.EmbeddingBag)


def _check_scale(X: Tensor, dtype: torch.dtype) -> None:
    """Check that squares of the largest input neither overflow nor vanish, with room for sums."""
    size, numbers = max(float(X.max()), -float(X.min())), torch.finfo(dtype)
    least, most = numbers.tiny**0.5 * ROOM, numbers.max**0.5 / ROOM
    if 0 < size < least or size > most:
        raise ValueError(
            f"`X` has a largest entry of {size:.3g}: rescale it to lie between {least:.0e} and "
            f"{most:.0e}, in whose middle a network in {dtype} computes"
        )


def _place_gates(network: torch.nn.Module, gates: Inputs | None, inputs: Tensor) -> Tensor | None:
    own = plain(network)
    if gates is None:
        if isinstance(own, Gated):
            raise ValueError(
                f"`gates` is None, but {type(own).__name__} needs the gates or contexts of "
                "every sample: give them, one row a row of X"
            )
        return None
    if not takes_gates(network):
        raise ValueError(
            f"`gates` were given, but {type(own).__name__} takes inputs alone, "
            "`forward(X)`: give None, or let it take `forward(X, gates)`"
        )
    placed = as_tensor(gates)
    if placed.shape[:1] != inputs.shape[:1]:
        raise ValueError(
            f"`gates` must have {len(inputs)} rows, got shape {tuple(placed.shape)}: one a row of X"
        )
    if placed.is_floating_point():
        placed = placed.to(trained_weights(network)[0])
    placed = placed.to(inputs.device)
    return own.prepare(placed) if isinstance(own, Gated) else placed


def trained_weights(network: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Return the parameters that require a gradient; raises ValueError where there is none."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("`network` has no parameter with requires_grad=True: nothing to train")
    return parameters
