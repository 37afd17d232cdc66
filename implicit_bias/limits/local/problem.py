"""The margin problem of a network with frozen gates, as a function of one flat weight vector."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from ..._support.solve import require_memory
from ...networks.adapted import detached_copy, with_gates
from ...networks.derivatives import row_gradients, slope_and_hessian
from ...networks.losses.labels import place_labelled
from ...networks.placed_data import GatedData, Inputs, trained_weights
from ...networks.protocols import check_homogeneous

# Float64 numbers of gradients computed at once, a quarter of a gibibyte, and how many gradients:
# each also carries the activations of its samples.
_BATCH_ENTRIES, _BATCH = 2**25, 256
# Rows of a Hessian that are computed together: more than these where all inputs, as often as there
# are rows, have so many entries at most. Beyond them, what layers return is no longer in the cache.
_FEW_ROWS, _IN_CACHE = 8, 2**18
# Of a score: what rounding may leave of Euler's identity where terms of the score cancel.
_EULER = 1e-6


@dataclass(frozen=True, eq=False)
class MarginProblem:
    r"""Minimise :math:`\tfrac12 \|w\|^2` subject to :math:`\langle c_i, f_w(x_i)\rangle \ge 1`.

    Of two labels c is y, of K classes there is a margin for every sample and other class k, with
    :math:`c = e_y - e_k`.

    Attributes
    ----------
    network : Module
        A copy in float64 on the CPU; never written to.
    data : GatedData
        In float64 on the CPU, a row for each of m margins: m = n, or n (K - 1) of K classes, with
        `y` the c_i, (m,) or (m, K).
    targets : tensor
        Labels (n,) in {-1, +1}, or (n, K) with a one at every sample's class and else zeros.
    degree : int
        L, of homogeneity of f in w.
    until : float
        Moment of `time.perf_counter` after which no further program begins.
    """

    network: torch.nn.Module
    data: GatedData
    degree: int
    targets: Tensor
    until: float = math.inf

    @property
    def is_late(self) -> bool:
        """True if no further program may begin."""
        return time.perf_counter() >= self.until

    @property
    def n_margins(self) -> int:
        """Number m of margins."""
        return len(self.data.y)

    def by_sample(self, values: Tensor) -> Tensor:
        """Return values (m,) of margins like the targets: (n,), or (n, K) with 0 at their own."""
        if self.targets.ndim == 1:
            return values
        every = values.new_zeros(self.targets.shape)
        every[self.targets == 0] = values
        return every

    @property
    def n_others(self) -> int:
        """Number of margins that each sample has."""
        return self.n_margins // len(self.targets)

    def scores(self, w: Tensor) -> Tensor:
        """Return the scores (n,) or (n, K) of the samples."""
        with torch.no_grad():
            return self.scores_at(w, self.data.take(torch.arange(0, self.n_margins, self.n_others)))

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Trained weights by name, in the order of the flat vector."""
        named = self.network.named_parameters()
        return {name: p.detach() for name, p in named if p.requires_grad}

    @property
    def start(self) -> Tensor:
        """Weights (P,) of the network as passed."""
        return torch.cat([p.flatten() for p in self.parameters.values()])

    def unflatten(self, w: Tensor) -> dict[str, Tensor]:
        """Return views of a flat vector (P,) in the shapes of the parameters."""
        shapes = {name: p.shape for name, p in self.parameters.items()}
        parts = torch.split(w, [math.prod(shape) for shape in shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def margins(self, w: Tensor) -> Tensor:
        """Return the margins (m,)."""
        with torch.no_grad():
            return self._margins(w, self.data)

    def gradients(self, w: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return gradients (m, P) of all margins, or of those in `rows`."""
        data = self.data if rows is None else self.data.take(rows)
        if not len(data.y):
            return w.new_zeros(0, len(w))

        def margin(weights: dict[str, Tensor], x: Tensor, y: Tensor, gate: Tensor | None) -> Tensor:
            """Return one margin."""
            one = GatedData(x[None], y[None], None if gate is None else gate[None])
            score: Tensor = self._margins(weights["w"], one)[0]
            return score

        rows_of = (data.X, data.y, data.gates)
        return row_gradients(margin, {"w": w}, *rows_of, at_once=_batch(len(w)))["w"]

    def held(self, point: Any) -> Tensor:
        """Return gradients (k, P) of what stays 0 near a KKT point beside the active margins."""
        nothing: Tensor = point.w.new_zeros(0, len(point.w))
        return nothing

    def hessian(self, w: Tensor, lam: Tensor) -> Tensor:
        """Return the Lagrangian's Hessian (P, P), ``I - sum_n lam_n hess m_n``."""
        used = (lam != 0).nonzero()[:, 0]
        some, weights = self.data.take(used), lam[used]
        in_cache = max(_FEW_ROWS, _IN_CACHE // max(some.X.numel(), 1))

        def combined(w: Tensor) -> Tensor:
            """Return the combination of the margins that count."""
            return weights @ self._margins(w, some)

        of_margins = slope_and_hessian(combined, w, min(_batch(len(w)), in_cache))[1]
        return torch.eye(len(w), dtype=w.dtype) - (of_margins + of_margins.T) / 2

    def value(self, w: Tensor) -> float:
        """Return ``(||w||^2 / L)^(L/2)`` over the smallest margin; infinite if that is not > 0."""
        smallest = float(self.margins(w).min())
        norm = float(w @ w) / self.degree
        return norm ** (self.degree / 2) / smallest if smallest > 0 else float("inf")

    def rescaled(self, w: Tensor) -> Tensor:
        """Return weights of smallest margin 1 in the direction of `w`, whose margins are > 0."""
        scale: float = float(self.margins(w).min()) ** (1 / self.degree)
        return w / scale

    def at(self, w: Tensor) -> torch.nn.Module:
        """Return a copy of the network with these weights."""
        network = detached_copy(self.network)
        with torch.no_grad():
            for p, value in zip(trained_weights(network), self.unflatten(w).values(), strict=True):
                p.copy_(value)
        return network

    def _margins(self, w: Tensor, data: GatedData) -> Tensor:
        each = data.y * self.scores_at(w, data)
        return each.sum(-1) if each.ndim == 2 else each

    def scores_at(self, w: Tensor, data: GatedData) -> Tensor:
        """Return the scores (k,) or (k, K) of other samples, differentiable in the weights."""
        scores: Tensor = functional_call(self.network, self.unflatten(w), (data.X, data.gates))
        return scores


def pose_problem(
    network: torch.nn.Module, X: Inputs, y: Any, gates: Inputs | None
) -> MarginProblem:
    """Check data and network and copy both into float64 on the CPU.

    Raises
    ------
    TypeError
        If the network has no positive integer `degree`.
    ValueError
        If data are malformed, weights are not finite, scores are not homogeneous of the degree, or
        a sample has no positive margin; memory cannot hold a gradient a sample.
    """
    network = with_gates(detached_copy(network).cpu().double())
    for name, p in network.named_parameters():
        if not bool(torch.isfinite(p).all()):
            raise ValueError(
                f"`network` has NaN or infinite entries in {name!r}: its training has diverged, "
                "take an earlier checkpoint"
            )
    data = place_labelled(network, X, y, gates)
    degree = check_homogeneous(network, data.X, data.gates)
    problem = MarginProblem(network, _rows(data), degree, data.y)
    size = problem.n_margins * len(problem.start)
    require_memory(size, "one gradient a sample", "take fewer samples or a smaller network")
    _require_separation(problem)
    _require_gradients(problem)
    return problem


def _rows(data: GatedData) -> GatedData:
    """Return a row for each margin, with the coefficients of the scores in place of the targets."""
    if data.y.ndim == 1:
        return data
    samples, others = (data.y == 0).nonzero(as_tuple=True)
    rows = data.take(samples)
    return rows._replace(y=rows.y - torch.nn.functional.one_hot(others, data.y.shape[1]))


def _require_separation(problem: MarginProblem) -> None:
    margins = problem.margins(problem.start)
    worst = int(margins.argmin())
    if float(margins[worst]) > 0:
        return
    row = torch.tensor([worst])
    worst, least = worst // problem.n_others, float(margins[worst])
    if not bool(problem.gradients(problem.start, row).any()):
        raise ValueError(
            f"sample {worst} has the score 0, and no weight changes it: all paths to it are "
            "closed, or its units are dead. Drop the sample, or give it gates that are open"
        )
    raise ValueError(
        f"the smallest margin on (`X`, `y`) is {least:g}, of sample {worst}, but a "
        "local limit takes a network that classifies every training sample correctly: train "
        "longer, or check that the data are separable under these gates"
    )


def _require_gradients(problem: MarginProblem) -> None:
    # Euler: <grad f, w> = L f. Weights that `forward` detaches have no gradient, silently.
    w = problem.start
    expected = problem.degree * problem.margins(w)
    error = (problem.gradients(w) @ w - expected).abs()
    if not bool((error <= _EULER * expected).all()):
        raise ValueError(
            f"gradients of {type(problem.network).__name__} do not belong to its scores: <grad f, "
            f"w> is off {problem.degree} f by up to {float((error / expected).max()):.2g} of it. "
            "Let `forward` use its parameters as they are: no `.data`, no `.detach()`, no slice of "
            "a ParameterList"
        )


def _batch(n_weights: int) -> int:
    return max(1, min(_BATCH, _BATCH_ENTRIES // n_weights))
