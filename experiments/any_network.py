"""Small networks with biases, skips or normalisation, trained far: KKT residuals on the way.

    python -m experiments.any_network --full --out experiments/results

Full batches, the logistic loss or the cross-entropy of softmax, steps along the gradient of
u = log(1/loss), of the smaller of 0.01 ||theta|| and 0.3 over its norm, in float64; torch's start
after `torch.manual_seed`. One row a network and level of u, `any_network.csv`:

    shares           ||theta_i|| / ||theta|| of every tensor, the head's centred where there are K
                     classes
    ratio_bound      lower bound of the KKT ratio rho of the network as it is, and `ratio` the upper
    residual         its KKT residual with gradients of both sides of kinks; `one_sided` without
    h_margin         smallest margin of the homogenised network f_H over that of the network
    h_residual       KKT residual of f_H, if it separates
    increment        sine of the angle between the weights and what they moved by since they had a
                     third of this u
    ..._least, _most the same over the next 100 steps: samples on the margin take turns from step to
                     step, and kinks with them
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import numpy as np
import torch
from torch import Tensor

import implicit_bias as ib
from implicit_bias.dynamics import centred_head, increment_residual

from .tables import Kept, keep_rows, out_folder, sizes

# A level of u, and that of the checkpoint before it.
Levels = tuple[tuple[float, float], ...]
LEVELS: Levels = ((30.0, 9.5), (300.0, 95.0), (3000.0, 949.0))
SMALL, FULL = 30, 10_000
# Steps after a level over which ranges are taken, and one in how many of them has its residuals.
N_AFTER, ONE_IN = 100, 5
Weights = dict[str, Tensor]


class Residual(torch.nn.Module):
    """x + V relu(U x + b) + b', and a linear head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.below, self.above = torch.nn.Linear(2, width), torch.nn.Linear(width, 2)
        self.head = torch.nn.Linear(2, 1)

    def forward(self, X: Tensor) -> Tensor:
        scores: Tensor = self.head(X + self.above(torch.relu(self.below(X))))
        return scores


def layers(*widths: int, act: type[torch.nn.Module] = torch.nn.ReLU) -> torch.nn.Sequential:
    """Linear layers with biases, and ReLUs or others between them."""
    parts: list[torch.nn.Module] = []
    for below, above in pairwise(widths):
        parts += [torch.nn.Linear(below, above), act()]
    return torch.nn.Sequential(*parts[:-1])


def normalised() -> torch.nn.Sequential:
    """Return a layer of ten units behind statistics of the batch."""
    return torch.nn.Sequential(
        torch.nn.Linear(2, 10, bias=False),
        torch.nn.BatchNorm1d(10),
        torch.nn.ReLU(),
        torch.nn.Linear(10, 1),
    )


def two_classes() -> tuple[np.ndarray, np.ndarray]:
    """Return 20 points of the plane with labels in {-1, +1}, 17 of them of one."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    return X, np.sign(X[:, 0] * X[:, 1] + 0.4 * X[:, 0] + 0.3)


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    """Return 24 points of the plane, rows of whose class have a one: the disc and two sides."""
    X = np.random.default_rng(1).normal(size=(24, 2))
    side = np.where(X[:, 0] > 0, 1, 2)
    return X, np.eye(3)[np.where(np.linalg.norm(X, axis=1) < 0.9, 0, side)]


@dataclass(frozen=True)
class Run:
    """A network, its start and data; and the tensors that f_H is without, where they are known."""

    make: Callable[[], torch.nn.Module]
    seed: int = 1
    data: Callable[[], tuple[np.ndarray, np.ndarray]] = two_classes
    vanishing: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    levels: Levels = LEVELS


RUNS: Mapping[str, Run] = MappingProxyType(
    {
        "2-16-1": Run(lambda: layers(2, 16, 1), vanishing=("2.bias",)),
        "2-10-10-1": Run(lambda: layers(2, 10, 10, 1), vanishing=("2.bias", "4.bias")),
        "residual": Run(lambda: Residual(12)),
        "softmax": Run(
            lambda: layers(2, 16, 3),
            data=three_classes,
            vanishing=("2.bias",),
            head=("2.weight", "2.bias"),
            levels=(*LEVELS[:2], (9487.0, 3000.0)),
        ),
        "batch norm": Run(normalised, vanishing=("3.bias",), levels=LEVELS[:2]),
        "2-10-10-1, seed 0": Run(
            lambda: layers(2, 10, 10, 1),
            0,
            vanishing=("2.bias", "4.bias"),
            levels=((30.0, 9.5), (95.0, 30.0), (949.0, 300.0)),
        ),
        "GELU 2-16-1": Run(lambda: layers(2, 16, 1, act=torch.nn.GELU), vanishing=("2.bias",)),
        "2-4-4-1, seed 0": Run(
            lambda: layers(2, 4, 4, 1),
            0,
            vanishing=("2.bias", "4.bias"),
            levels=((30.0, 9.5), (300.0, 95.0), (1925.0, 609.0)),
        ),
    }
)


def log_loss(scores: Tensor, y: Tensor) -> Tensor:
    """Return the logarithm of the mean loss, of margins as large as they like."""
    if y.ndim == 1:
        a = -y * scores[:, 0]
    else:
        own = (scores * y).sum(1, keepdim=True)
        a = torch.logsumexp((scores - own).masked_fill(y > 0, -torch.inf), dim=1)
    body = a.clamp(min=-30.0)
    each = torch.where(a < -30, a, torch.log(torch.nn.functional.softplus(body)))
    return torch.logsumexp(each, 0) - math.log(len(y))


def start(run: Run) -> torch.nn.Module:
    torch.manual_seed(run.seed)
    given = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    network = run.make()
    torch.set_default_dtype(given)
    return network


def iterates(run: Run, network: torch.nn.Module) -> Iterator[float]:
    """Yield u of the network, and take a step of it before the next."""
    X, y = (torch.tensor(one) for one in run.data())
    weights = list(network.parameters())
    while True:
        u = -log_loss(network(X), y)
        yield float(u.detach())
        gradients = torch.autograd.grad(u, weights)
        with torch.no_grad():
            length = float(torch.stack([g.square().sum() for g in gradients]).sum().sqrt())
            size = float(torch.stack([w.square().sum() for w in weights]).sum().sqrt())
            step = min(0.01 * size, 0.3 / length) / length
            for w, g in zip(weights, gradients, strict=True):
                w.add_(g, alpha=step)


def trained(run: Run, levels: list[float]) -> Iterator[tuple[float, int, Weights]]:
    """Yield u, the number of steps and the weights as soon as u has reached each level."""
    network, left = start(run), sorted(levels)
    for n_steps, u in enumerate(iterates(run, network)):
        while left and u >= left[0]:
            yield u, n_steps, copy.deepcopy(network.state_dict())
            left.pop(0)
        if not left:
            return


def rows(names: tuple[str, ...] = tuple(RUNS), most: float = SMALL) -> Iterator[dict[str, Any]]:
    for name in names:
        run = RUNS[name]
        levels = [pair for pair in run.levels if pair[0] <= most]
        kept: dict[float, Weights] = {}
        wanted = sorted({u for pair in levels for u in pair})
        for level, (u, n_steps, weights) in zip(wanted, trained(run, wanted), strict=True):
            kept[level] = weights
            for upper, lower in levels:
                if upper == level:
                    found = measured(run, weights, kept[lower])
                    yield {"network": name, "u": u, "steps": n_steps, **found}


def measured(run: Run, weights: Weights, earlier: Weights) -> dict[str, Any]:
    """Return the columns of one row that are measured."""
    network = run.make().double()
    network.load_state_dict(weights)
    X, y = run.data()
    level, rest = ib.measures.kkt_level(network, X, y), homogenised(run, network)
    return {
        "margin": level.smallest_margin, "shares": shares(run, network),
        "ratio_bound": level.ratio_bound, "ratio": level.ratio,
        "residual": level.residual, "one_sided": level.one_sided, "kinks": level.n_kinks,
        "h_margin": least_margin(rest, X, y) / level.smallest_margin,
        "h_residual": residual_if_separating(rest, X, y),
        "increment": increment_residual(earlier, network, head=run.head),
        **ranges(run, network),
    }  # fmt: skip


def ranges(run: Run, network: torch.nn.Module) -> dict[str, float]:
    """Return the least and the most of f_H's margin over further steps, and the least residuals."""
    X, y = run.data()
    after = copy.deepcopy(network)
    margins, own, rest = [], [], []
    for n_steps, _ in zip(range(N_AFTER + 1), iterates(run, after), strict=False):
        left = homogenised(run, after)
        margins.append(least_margin(left, X, y) / least_margin(after, X, y))
        if n_steps % ONE_IN == 0:
            own.append(ib.measures.kkt_level(after, X, y).residual)
            rest.append(residual_if_separating(left, X, y))
    return {
        "h_margin_least": min(margins), "h_margin_most": max(margins),
        "residual_least": min(own), "h_residual_least": float(np.min(rest)),
    }  # fmt: skip


def shares(run: Run, network: torch.nn.Module) -> str:
    """Return the share of every tensor in the norm of all, by name."""
    own = {name: p.detach() for name, p in network.named_parameters()}
    own = centred_head(own, run.head)
    size = math.sqrt(sum(float(p.square().sum()) for p in own.values()))
    return " ".join(f"{name} {float(p.norm()) / size:.4f}" for name, p in own.items())


def homogenised(run: Run, network: torch.nn.Module) -> torch.nn.Module:
    """Return f_H, in which some tensors are 0 and not trained, and GELU is ReLU."""
    rest = copy.deepcopy(network)
    if isinstance(rest, torch.nn.Sequential):
        left = [torch.nn.ReLU() if isinstance(one, torch.nn.GELU) else one for one in rest]
        rest = torch.nn.Sequential(*left)
    if isinstance(rest, Residual):
        rest = _Branch(rest)
    for name, p in rest.named_parameters():
        if name in run.vanishing:
            p.data.zero_()
            p.requires_grad_(False)
    return rest


def least_margin(network: torch.nn.Module, X: np.ndarray, y: np.ndarray) -> float:
    with torch.no_grad():
        scores = network(torch.tensor(X)).numpy()
    if y.ndim == 1:
        return float((y * scores[:, 0]).min())
    return float(((scores * y).sum(1, keepdims=True) - scores)[y == 0].min())


def residual_if_separating(network: torch.nn.Module, X: np.ndarray, y: np.ndarray) -> float:
    separates = least_margin(network, X, y) > 0
    return ib.measures.kkt_level(network, X, y).residual if separates else math.nan


class _Branch(torch.nn.Module):
    """The homogenised network of `Residual`: its skip and upper biases are of lower degree."""

    def __init__(self, network: Residual) -> None:
        super().__init__()
        self.below, self.above = network.below, network.above.weight
        self.head = network.head.weight

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(self.below(X)) @ self.above.T @ self.head.T


@click.command()
@sizes(u=(SMALL, FULL))
@out_folder
def main(u: int, out: Path) -> None:
    """Train the networks, and write what is measured on the way."""
    kept = Kept(out / "any_network.csv", options={"u": u})
    keep_rows(rows(most=u), kept, digits=".4g")


if __name__ == "__main__":
    main()
