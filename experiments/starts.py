"""From which starts the default trainer of gated networks comes to the limit, and how near.

    python -m experiments.starts --out experiments/results/starts.csv

105 starts a kind: two, three and ten units on seven draws of the data and gates, each from five
initial weights (orthogonal, Kaiming, balanced, and Kaiming a million times smaller or a thousand
times larger), at the trainer's default settings. Starts that share data and gates train side by
side.

The yardstick of a run is the certified limit, a theorem, except of deep gated networks with more
than one hidden layer: there it is the run's own local limit, the KKT point that its weights are
next to, and says that the trainer has converged, not that no network is better; `bound_ratio` is
what is certified of that, the margin beside a bound of every network with these gates.

Rows are written as they come: an interrupted run keeps what it has finished, and goes on from there
if it is started again. Several at a time need a file each, of kinds (`--kind`) or seeds of its own.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import numpy as np
import torch

from implicit_bias import Sample, Status, TrainingSettings, kkt_distance, local_limit, train_many
from implicit_bias.limits.exact.path_limit import PathLimit
from implicit_bias.limits.local.limit import LocalLimit
from implicit_bias.measures.bounded_value import value_of
from implicit_bias.measures.comparison import compare

from .starts_problems import KINDS, Problem, problem
from .tables import out_file

UNITS = (2, 3, 10)
SEEDS = tuple(range(1, 8))
# How weights begin: the fill of each layer, and a factor on all of them.
INITS = MappingProxyType(
    {
        "orthogonal": ("orthogonal", 1.0),
        "kaiming": ("kaiming", 1.0),
        "balanced": ("balanced", 1.0),
        "tiny": ("kaiming", 1e-6),
        "huge": ("kaiming", 1e3),
    }
)
ENOUGH = 0.99
# A unit with less than this part of the share of the squared norm that it has in the local limit,
# among those with at least the second, is slow.
HALF, LIVE = 0.5, 0.01
MEASURES = (
    "margin_ratio", "bound_ratio", "kkt_residual", "kkt_complementarity", "largest_dual_norm"
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One start: what it was, and where the run from it ended."""

    model: str
    data: str
    units: int
    init: str
    seed: int
    n: int
    gap: float
    steps: int
    seconds: float
    separated: bool
    yardstick: str
    margin_ratio: float
    bound_ratio: float
    kkt_residual: float
    kkt_complementarity: float
    largest_dual_norm: float
    held_back_by: str


def run(kind: str, units: int, seed: int, settings: TrainingSettings) -> list[Row]:
    """Train from every init on one draw of data and gates; a row each."""
    given = problem(kind, units, seed)
    model, data = kind.split()
    networks = [
        # Of seeds of their own: the trainer does not see the scale of the weights.
        given.network(init=fill, init_scale=scale, random_state=100 * seed + i)
        for i, (fill, scale) in enumerate(INITS.values())
    ]
    sample = given.train
    runs = train_many(networks, sample.X, sample.y, sample.gates, settings=settings)
    if any(run.step[-1] < settings.n_steps for run in runs):
        raise KeyboardInterrupt  # training heard it, and ended where it was
    rows = []
    for init, network, trajectory in zip(INITS, networks, runs, strict=True):
        separated = bool(trajectory.smallest_margin[-1] > 0)
        rows.append(
            Row(
                model=model,
                data=data,
                units=units,
                init=init,
                seed=seed,
                n=len(sample.y),
                gap=given.limit.gap if given.bound is None else given.bound.gap,
                steps=int(trajectory.step[-1]),
                seconds=float(trajectory.seconds[-1]) / len(networks),
                separated=separated,
                **measured(given, network, separated=separated),
            )
        )
    return rows


def measured(given: Problem, network: torch.nn.Module, *, separated: bool) -> dict[str, Any]:
    """How near a run came, by its yardstick."""
    sample = given.train
    if given.bound is not None:
        return _beside_bound(given.bound, network, sample, separated=separated)
    found = compare(given.limit, network, sample, sample)
    return {
        "yardstick": "limit",
        "margin_ratio": found.margin_ratio,
        "bound_ratio": found.margin_ratio,
        "kkt_residual": found.kkt_residual,
        "kkt_complementarity": found.kkt_complementarity,
        "largest_dual_norm": found.largest_dual_norm,
        "held_back_by": found.held_back_by,
    }


def _beside_bound(
    bound: PathLimit, network: torch.nn.Module, sample: Sample, *, separated: bool
) -> dict[str, Any]:
    """Beside a bound that is the limit where it is tight, and the network's own local limit."""
    if not separated:
        unknown = dict.fromkeys(MEASURES, np.nan)
        return {**unknown, "yardstick": "none", "held_back_by": "the data are not separated"}
    kkt = kkt_distance(network, *sample)
    local = local_limit(network, *sample)
    reached = float(bound.dual_objective) / value_of(network, sample)
    tight = bound.is_tight()
    ratio = reached if tight else local.value / local.start_value
    if local.status is Status.FAILED and not tight:
        ratio = np.nan
    return {
        "yardstick": "limit" if tight else "local limit",
        "margin_ratio": ratio,
        "bound_ratio": reached,
        "kkt_residual": kkt.residual,
        "kkt_complementarity": kkt.complementarity,
        "largest_dual_norm": np.nan,
        "held_back_by": "" if ratio > ENOUGH else reason(network, local, kkt.residual),
    }


def reason(network: torch.nn.Module, local: LocalLimit, residual: float) -> str:
    """What keeps a network that has separated the data from its local limit."""
    if local.status is Status.FAILED:
        return f"no local limit: {local.reason}"
    if local.status is Status.SADDLE:
        return f"a saddle: its local limit is one; KKT residual {residual:.2g}"
    own, there = unit_shares(network), unit_shares(local.network)
    slow = [unit for unit, part in there.items() if part >= LIVE and own[unit] < HALF * part]
    if slow:
        shares = ", ".join(
            f"unit {j} of layer {i}, {own[i, j]:.2%} of |w|^2 and there {there[i, j]:.2%}"
            for i, j in slow
        )
        return f"slow units, on the way to the local limit: {shares}; KKT residual {residual:.2g}"
    if residual < 1 - ENOUGH:
        return (
            f"the loss or a saddle: KKT residual {residual:.2g}, at {local.distance:.2g} of its "
            "length from the local limit"
        )
    return f"time: not stationary yet, KKT residual {residual:.2g}"


def unit_shares(network: torch.nn.Module) -> dict[tuple[int, int], float]:
    """Of every unit, by layer and number from 1 on, its incoming weights' share of |w|^2."""
    layers = [weight.detach().square().flatten(1).sum(dim=1) for weight in network.parameters()]
    total = sum(float(layer.sum()) for layer in layers)
    return {
        (i, j): float(unit) / total
        for i, layer in enumerate(layers, start=1)
        for j, unit in enumerate(layer, start=1)
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many came how far, in a line."""
    ratios = np.nan_to_num(np.array([row["margin_ratio"] for row in rows], dtype=float))
    apart = sum(bool(row["separated"]) for row in rows)
    return (
        f"{len(ratios)} starts, {apart} separate, {np.mean(ratios > ENOUGH):.1%} above {ENOUGH}, "
        f"least {ratios.min():.4f}, median {np.median(ratios):.4f}"
    )


@click.command()
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="These alone.")
@click.option("--units", "sizes", type=int, multiple=True, default=UNITS, show_default=True)
@click.option("--seed", "seeds", type=int, multiple=True, default=SEEDS, show_default=True)
@click.option("--steps", type=int, help="In place of the trainer's own.")
@out_file(Path("runs/starts.csv"))
def main(
    kinds: Sequence[str], sizes: Sequence[int], seeds: Sequence[int], steps: int | None, out: Path
) -> None:
    """Train from many starts and write how near each one came to its limit."""
    import pandas as pd

    click.echo(
        f"{platform.machine()}, {platform.processor() or 'processor unnamed'}, "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )
    schedule = None if steps is None else ((steps, None),)
    settings = TrainingSettings(trainer="annealed", schedule=schedule, n_checkpoints=2)
    rows = pd.read_csv(out).to_dict("records") if out.exists() else []
    done = {(f"{row['model']} {row['data']}", row["units"], row["seed"]) for row in rows}
    for seed, kind, units in itertools.product(seeds, kinds or KINDS, sizes):
        if (kind, units, seed) in done:
            continue
        found = [asdict(row) for row in run(kind, units, seed, settings)]
        rows += found
        pd.DataFrame(rows).to_csv(out, index=False, float_format="%.6g")
        click.echo(f"{kind}, {units} units, seed {seed}: {summary(found)}")
    for kind in kinds or KINDS:
        own = [row for row in rows if f"{row['model']} {row['data']}" == kind]
        if own:
            click.echo(f"{kind}: {summary(own)}")


if __name__ == "__main__":
    main()
