"""Gradients of the scores in the weights, sample by sample: their products, sums and slopes."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from ...networks.placed_data import GatedData
from ...networks.protocols import HasGradientFactors

# Most float64 entries of per-sample gradients held at once: half a gigabyte.
_MAX_ENTRIES = 2**26
# Samples whose scores are differentiated at once: a GLN of 100 units and 4 contexts holds 50 MB an
# array then.
_AT_ONCE = 2**14


def gradient_gram(network: torch.nn.Module, data: GatedData) -> Tensor:
    """(n, n) inner products of y_n grad_w f(x_n)."""
    with torch.no_grad():
        factors = trained_factors(network, data)
        if factors is None:
            gram = _gram_of_jacobian(network, data)
        else:
            gram = torch.zeros((len(data.y),) * 2).to(data.y)
            for outer, inner in factors:
                gram.add_((outer @ outer.T) * (inner @ inner.T))
        return gram.mul_(data.y[:, None]).mul_(data.y)


def trained_factors(
    network: torch.nn.Module, data: GatedData
) -> list[tuple[Tensor, Tensor]] | None:
    """Return what `gradient_factors` gives; None without it or if it counts frozen weights."""
    all_trained = all(p.requires_grad for p in network.parameters())
    if not isinstance(network, HasGradientFactors) or not all_trained:
        return None
    return network.gradient_factors(data.X, data.gates)


def _gram_of_jacobian(network: torch.nn.Module, data: GatedData) -> Tensor:
    # For any module, by the gradient of every sample, in slabs of weights: no more entries are
    # held at once than `_MAX_ENTRIES`.
    weights = {k: p.detach() for k, p in network.named_parameters() if p.requires_grad}
    slab = max(_MAX_ENTRIES // len(data.y), 1)
    gram = torch.zeros((len(data.y),) * 2).to(data.y)
    for start in range(0, sum(p.numel() for p in weights.values()), slab):
        part = _jacobian(network, weights, data, slice(start, start + slab))
        gram.addmm_(part, part.T)
    return gram


def _jacobian(
    network: torch.nn.Module, weights: dict[str, Tensor], data: GatedData, part: slice
) -> Tensor:
    # Rows grad_w f(x_n), the columns in `part` of them.
    from ...networks.derivatives import row_gradients  # which few runs need

    def score(weights: dict[str, Tensor], x: Tensor, gate: Tensor | None) -> Tensor:
        """Score one sample as a function of the weights."""
        gates = None if gate is None else gate[None]
        scores: Tensor = functional_call(network, weights, (x[None], gates))
        return scores[0]

    n_weights = sum(p.numel() for p in weights.values())
    samples = torch.arange(len(data.y), device=data.y.device)
    at_once = max(_MAX_ENTRIES // n_weights, 1)
    blocks = []
    for index in torch.split(samples, at_once):
        some = data.take(index)
        gradients = row_gradients(score, weights, some.X, some.gates, at_once=at_once)
        rows = torch.cat([gradients[k].flatten(1) for k in weights], dim=1)
        blocks.append(rows[:, part].clone())
    return torch.cat(blocks)


def combined_gradient(network: torch.nn.Module, data: GatedData, lam: Tensor) -> Tensor:
    """``sum_n lam_n y_n grad_w f(x_n)`` (P,), lam >= 0."""
    trained = [p for p in network.parameters() if p.requires_grad]
    total = torch.zeros_like(flat(trained))
    for used in torch.split((lam > 0).nonzero()[:, 0], _AT_ONCE):
        if len(used) == 0:
            break
        some = data.take(used)
        with torch.enable_grad():
            combined = torch.dot(lam[used] * some.y, network(some.X, some.gates))
        total += flat(torch.autograd.grad(combined, trained))
    return total


def slopes(network: torch.nn.Module, data: GatedData, direction: Tensor) -> Tensor:
    """``<y_n grad_w f(x_n), direction>`` (n,), from one pass forward and two back."""
    every = torch.arange(len(data.y), device=data.y.device)
    parts = [
        _slopes(network, data.take(index) if len(index) < len(data.y) else data, direction)
        for index in torch.split(every, _AT_ONCE)
    ]
    return torch.cat(parts)


def _slopes(network: torch.nn.Module, data: GatedData, direction: Tensor) -> Tensor:
    # sum_n u_n <grad f_n, direction> is linear in u: its gradient in u is what is wanted.
    trained = [p for p in network.parameters() if p.requires_grad]
    with torch.enable_grad():
        u = torch.zeros_like(data.y, requires_grad=True)
        scores = network(data.X, data.gates)
        combined = torch.autograd.grad(torch.dot(scores, u), trained, create_graph=True)
        slopes: Tensor = torch.autograd.grad(torch.dot(flat(combined), direction), u)[0]
    return data.y * slopes


def margins(network: torch.nn.Module, data: GatedData) -> Tensor:
    """y_n f(x_n) (n,)."""
    with torch.no_grad():
        scores: Tensor = network(data.X, data.gates)
    return data.y * scores


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """One vector of all their entries."""
    return torch.cat([t.flatten() for t in tensors])


def to_float64(data: GatedData) -> GatedData:
    """The same data in float64; integer gates and token ids keep their type."""
    X, gates = (
        one.double() if one is not None and one.is_floating_point() else one
        for one in (data.X, data.gates)
    )
    assert X is not None
    return GatedData(X, data.y.double(), gates)
