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
 Rows are written as they come: an interrupted run keeps what it has finished, and goes on
from there if it is started again.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import numpy as np
import torch

from implicit_bias import (
    DGN,
    GLN,
    DeepLinear,
    FReLU,
    HyperplaneContexts,
    Sample,
    TrainingSettings,
    kkt_distance,
    load_digits,
    local_limit,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
    solve_path_lasso,
    train_many,
)
from implicit_bias.data.quadrants import make_quadrants
from implicit_bias.limits.limit import Limit
from implicit_bias.local_limits.limit import LocalStatus
from implicit_bias.measures.comparison import compare
from implicit_bias.models.dgn.comparison import value_of
from implicit_bias.models.dgn.path_limit import PathLimit

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
MEASURES = (
    "margin_ratio", "bound_ratio", "kkt_residual", "kkt_complementarity", "largest_dual_norm"
)  # fmt: skip
# From so many units on, random hyperplanes alone separate the points of the plane now and then.
MANY = 10
DRAWS = 50


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


@dataclass(frozen=True, eq=False)
class Problem:
    """Data with gates, their limit, and the network that belongs to them.

    The limit of deep gated networks is that of their first hidden layer with linear ones above,
    which are among them if each layer has a unit that is open always: one that separates proves
    that they do. `bound` is theirs.
    """

    train: Sample
    limit: Limit
    network: Callable[..., torch.nn.Module]
    bound: PathLimit | None = None


Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def quadrants(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """200 points of the square, labelled by four tied predictors."""
    return make_quadrants(200, random_state=rng)


def digits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """60 images."""
    dataset = load_digits(n_train=60, n_val=1, random_state=rng)
    return dataset.X_train, dataset.y_train


def gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """120 to 145 samples of 30 inputs with random labels: two units can just separate them."""
    n = int(rng.integers(120, 146))
    return rng.normal(size=(n, 30)), np.sign(rng.normal(size=n))


def few_gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """40 to 48 samples of 30 inputs with random labels: a linear predictor can just do so."""
    n = int(rng.integers(40, 49))
    return rng.normal(size=(n, 30)), np.sign(rng.normal(size=n))


def middle_gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """65 to 80 samples of 30 inputs with random labels: no linear predictor can do so."""
    n = int(rng.integers(65, 81))
    return rng.normal(size=(n, 30)), np.sign(rng.normal(size=n))


def contexts_of(X: np.ndarray, units: int, rng: np.random.Generator) -> np.ndarray:
    """Two contexts a unit: halves of the data or, in the plane, the axes first if units are few."""
    axes = 2 if X.shape[1] == 3 and units < MANY else 0
    halves = HyperplaneContexts(max(units - axes, 1), 2, random_state=rng).fit_transform(X)
    along = HyperplaneContexts(max(axes, 1), 2, cutoffs="axes").fit_transform(X)
    return np.hstack([along[:, :axes], halves[:, : units - axes]])


def gln(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """A GLN."""
    return _gln(X, y, contexts_of(X, units, rng), ())


def deep_gln(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """The same with one more linear layer, as wide."""
    return _gln(X, y, contexts_of(X, units, rng), (units,))


def _gln(X: np.ndarray, y: np.ndarray, contexts: np.ndarray, above: tuple[int, ...]) -> Problem:
    size = (X.shape[1], contexts.shape[1], 2)
    return Problem(
        Sample(X, y, contexts),
        solve_gln_svm(X, y, contexts),
        lambda **start: GLN(*size, upper_widths=above, **start),
    )


def frelu(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """Units that are open in one of their two contexts, and one that is always open."""
    gates = np.hstack([contexts_of(X, units, rng), np.ones((len(X), 1), dtype=np.int64)])
    size = (X.shape[1], units + 1)
    return Problem(
        Sample(X, y, gates), solve_frelu_svm(X, y, gates), lambda **start: FReLU(*size, **start)
    )


def dgn(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """One hidden layer of gated units, and one unit that is always open."""
    return _dgn(X, y, (units,), rng)


def deep_dgn(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """Two such layers, each with gates of its own."""
    return _dgn(X, y, (units, units), rng)


def _dgn(X: np.ndarray, y: np.ndarray, sizes: Sequence[int], rng: np.random.Generator) -> Problem:
    always = np.ones((len(X), 1), dtype=np.int64)
    layers = [np.hstack([contexts_of(X, units, rng), always]) for units in sizes]
    gates, widths = np.hstack(layers), tuple(units + 1 for units in sizes)
    return Problem(
        Sample(X, y, gates),
        solve_frelu_svm(X, y, layers[0]),
        lambda **start: DGN(X.shape[1], widths, **start),
        solve_path_lasso(X, y, gates, widths=widths),
    )


def deep_linear(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """Three linear layers, two of this width."""
    return Problem(
        Sample(X, y, None),
        solve_linear_svm(X, y),
        lambda **start: DeepLinear(X.shape[1], hidden_widths=(units, units), **start),
    )


KINDS: Mapping[str, tuple[Callable[..., Problem], Draw]] = MappingProxyType(
    {
        "gln quadrants": (gln, quadrants),
        "gln gaussian": (gln, gaussian),
        "gln digits": (gln, digits),
        "frelu quadrants": (frelu, quadrants),
        "frelu gaussian": (frelu, gaussian),
        "frelu digits": (frelu, digits),
        "deep-gln gaussian": (deep_gln, gaussian),
        "deep-linear gaussian": (deep_linear, few_gaussian),
        "deep-linear digits": (deep_linear, digits),
        "dgn gaussian": (dgn, middle_gaussian),
        "deep-dgn gaussian": (deep_dgn, middle_gaussian),
    }
)


def problem(kind: str, units: int, seed: int) -> Problem:
    """The first draw, among those of `seed`, that this network can separate."""
    make, draw = KINDS[kind]
    for rng in np.random.default_rng(seed).spawn(DRAWS):
        drawn = make(*draw(rng), units, rng)
        if drawn.limit.certificate.proves_separability():
            return drawn
    raise RuntimeError(f"{kind}, {units} units: none of {DRAWS} draws of seed {seed} is separable")


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
    if local.status is LocalStatus.FAILED and not tight:
        ratio = np.nan
    return {
        "yardstick": "limit" if tight else "local limit",
        "margin_ratio": ratio,
        "bound_ratio": reached,
        "kkt_residual": kkt.residual,
        "kkt_complementarity": kkt.complementarity,
        "largest_dual_norm": np.nan,
        "held_back_by": "" if ratio > ENOUGH else f"{local.status.name}: {local.reason}",
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
@click.option("--out", type=click.Path(path_type=Path), required=True, help="CSV file to write.")
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
    out.parent.mkdir(parents=True, exist_ok=True)
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
