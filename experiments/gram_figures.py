"""Cumulative spectra, entries and error curves of Gram matrices behind gates, by depth and width.

    python -m experiments.gram_figures --full --out experiments/results

The source's figures 1 to 4 and 10 as it draws them; what is predicted of the same numbers is in
`experiments.spectra`, `galu` and `first_step`, whose settings these are. Eigenvalues are those of
K_0 / d, summed in ascending order; errors are ||e_t|| / ||e_0|| at the rate 0.1 over the largest
eigenvalue, by the law of a constant kernel and of the trained network.

    gram_spectra.csv    gates, width, depth, k: the sum of the k least eigenvalues, and that over
                        the largest one
    gram_errors.csv     gates, width, depth, how, step: the share of the error that is left
    gram_entries.csv    depth: a diagonal and another entry of K_0 / d at width 500
    gram_linear.csv     depth, step: of deep linear networks on (x, y) = (1, 1) the squared error
                        over the first one, K_t / d, and the norm of the weights

each as the mean over draws, with the least and the largest. Pictures: `gram_random_gates.png`
(figures 1 to 3), `gram_galu.png` (4), `gram_linear.png` (10).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
from click.core import ParameterSource
from numpy.typing import NDArray

import implicit_bias as ib
from implicit_bias.runs.drawing.palette import SERIES

from . import galu
from .interrupts import finished
from .spectra import RATE, Array, Case, ideal_matrix, machine, scores
from .tables import Kept, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEPTHS = (2, 4, 6, 8, 12, 16, 20)
WIDTHS, GALU_WIDTH, GALU_DEPTHS = (500, 25), 100, (2, 4, 6, 8)
LINEAR_DEPTHS, LINEAR_WIDTH, LINEAR_STEPS = (2, 4, 6, 8, 10), 100, 30
ENTRY_WIDTH = 500
# The trained networks of width 500 take 0.1 s a step; by then most of them are done.
STEPS = {25: 1000, 100: 1000, 500: 100}
Rows = list[dict[str, Any]]


def cumulated(K: Array) -> Array:
    """(n,) sums of the k least eigenvalues of a kernel, k from 1 to n."""
    return np.cumsum(np.maximum(np.linalg.eigvalsh(K), 0.0))


def shown(n: int) -> NDArray[np.int64]:
    """Numbers of eigenvalues that are written: the first, every tenth or so, and the last two."""
    return np.unique(np.concatenate([[1], np.arange(10, n, 10), [n - 1, n]]))


def spread(draws: Iterable[Mapping[str, Array]], name: str, at: NDArray[Any]) -> Rows:
    """One row a position: of every number its mean over draws, the least and the largest."""
    stacked = list(draws)
    found: Rows = []
    for place, position in enumerate(at):
        row: dict[str, Any] = {name: int(position)}
        for key in stacked[0]:
            values = np.array([one[key][place] for one in stacked])
            row |= {key: values.mean(), f"{key}_least": values.min(), f"{key}_most": values.max()}
        found.append(row)
    return found


def spectrum(K: Array) -> dict[str, Array]:
    """Cumulative eigenvalues where they are written, and over the largest eigenvalue."""
    sums, at = cumulated(K), shown(len(K)) - 1
    return {"sum": sums[at], "scaled": (sums / (sums[-1] - sums[-2]))[at]}


def moments_in_time(steps: int) -> NDArray[np.int64]:
    """Steps at which errors are written."""
    later = np.geomspace(10, steps, 40).round()
    return np.unique(np.concatenate([np.arange(11), later])).astype(np.int64)


def errors(
    network: Any, X: Array, y: Array, gates: Any, steps: int, *, train: bool
) -> dict[str, Array]:
    """Shares of the error that are left, by the law of a constant kernel and trained."""
    import torch

    K, at = ib.kernels.empirical_ntk(network, X, gates), moments_in_time(steps)
    regression = ib.kernels.kernel_regression(K, y, scores(network, X, gates))
    rate, first = 0.1 / float(regression.eigenvalues[-1]), float(np.linalg.norm(regression.start))
    by_law = [float(np.linalg.norm(regression.after(int(t), rate))) / first for t in at]
    found = {"law": np.array(by_law)}
    if train:
        settings = ib.TrainingSettings(
            trainer="constant", loss="squared", batch_size=0, n_checkpoints=steps,
            schedule=((steps, rate * len(y)),),
        )  # fmt: skip
        single = copy.deepcopy(network).to(torch.float32)
        run = finished(ib.train(single, X, y, gates, settings=settings))
        left = np.exp((run.log_loss - run.log_loss[0]) / 2)
        found["trained"] = np.interp(at, run.step, left)
    return found


def random_gates(
    widths: Iterable[int], depths: Iterable[int], draws: int, n: int = 200
) -> tuple[Rows, Rows]:
    """Spectra and errors behind random gates; of the width 500 the first draw is trained."""
    spectra: Rows = []
    along: Rows = []
    for depth in depths:
        keys: dict[str, Any] = {"gates": "ideal", "width": math.inf, "depth": depth}
        spectra += [keys | row for row in spread([spectrum(ideal_matrix(n, depth))], "k", shown(n))]
        for width in widths:
            keys = {"gates": "random", "width": width, "depth": depth}
            kernels: list[dict[str, Array]] = []
            laws: dict[str, list[dict[str, Array]]] = {"law": [], "trained": []}
            for seed in range(1, draws + 1):
                case = Case(width, depth, seed, n)
                network, gates = case.network(), case.gates()
                K = ib.kernels.empirical_ntk(network, case.X, gates) / depth
                kernels.append(spectrum(K))
                found = errors(
                    network, case.X, case.targets(), gates, STEPS[width],
                    train=width < 500 or seed == 1,
                )  # fmt: skip
                for how, left in found.items():
                    laws[how].append({"left": left})
            spectra += [keys | row for row in spread(kernels, "k", shown(n))]
            at = moments_in_time(STEPS[width])
            for how, one in laws.items():
                along += [keys | {"how": how} | row for row in spread(one, "step", at)]
    return spectra, along


def other_gates(depths: Iterable[int], draws: int, n: int = 100) -> tuple[Rows, Rows]:
    """Spectra and errors of GaLU and ReLU networks."""
    spectra: Rows = []
    along: Rows = []
    for depth in depths:
        kernels: dict[str, list[dict[str, Array]]] = {kind: [] for kind in galu.KINDS}
        laws: dict[tuple[str, str], list[dict[str, Array]]] = {}
        for seed in range(1, draws + 1):
            rng = np.random.default_rng(seed)
            X, y = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, n)
            found = galu.networks(depth, GALU_WIDTH, seed, X)
            for kind, (network, given, _) in found.items():
                kernels[kind].append(spectrum(ib.kernels.empirical_ntk(network, X, given) / depth))
                left = errors(network, X, y, given, STEPS[GALU_WIDTH], train=True)
                for how, one in left.items():
                    laws.setdefault((kind, how), []).append({"left": one})
        keys: dict[str, Any] = {"width": GALU_WIDTH, "depth": depth}
        for kind, drawn in kernels.items():
            spectra += [{"gates": kind} | keys | row for row in spread(drawn, "k", shown(n))]
        at = moments_in_time(STEPS[GALU_WIDTH])
        for (kind, how), curves in laws.items():
            shared = {"gates": kind} | keys | {"how": how}
            along += [shared | row for row in spread(curves, "step", at)]
    return spectra, along


def entries(depth: int, draws: int, width: int = ENTRY_WIDTH) -> dict[str, Any]:
    """A diagonal and another entry of K_0 / d over draws of gates and weights."""
    found = []
    for seed in range(1, draws + 1):
        case = Case(width, depth, seed, n=2)
        found.append(ib.kernels.empirical_ntk(case.network(), case.X, case.gates())[0] / depth)
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / math.sqrt(draws)
    return {
        "depth": depth, "width": width, "draws": draws, "diagonal": mean[0],
        "diagonal_error": error[0], "ideal_diagonal": 1.0, "other": mean[1],
        "other_error": error[1], "ideal_other": RATE ** (depth - 1),
    }  # fmt: skip


def linear(depth: int, draws: int, steps: int = LINEAR_STEPS) -> Rows:
    """Deep linear networks on one sample: squared error, K_t / d, norm of the weights by step."""
    import torch

    widths = (LINEAR_WIDTH,) * (depth - 1)
    X, gates = torch.ones(1, 1).double(), torch.ones(1, sum(widths)).double()
    curves = []
    for seed in range(1, draws + 1):
        network = ib.DGN(1, widths=widths, gate_rate=1.0, random_state=seed)
        found: list[tuple[float, float, float]] = []
        for _ in range(steps + 1):
            f = network(X, gates)[0]
            slopes = torch.autograd.grad(f, list(network.parameters()))
            kernel = sum(float(slope.square().sum()) for slope in slopes) / depth
            norm = math.sqrt(sum(float(p.detach().square().sum()) for p in network.parameters()))
            error = float(f.detach()) - 1.0
            found.append((error**2, kernel, norm))
            with torch.no_grad():
                for p, slope in zip(network.parameters(), slopes, strict=True):
                    p.sub_(0.1 / depth * error * slope)
        squares, kernels, norms = np.array(found).T
        curves.append({"left": squares / squares[0], "kernel": kernels, "norm": norms})
    return [{"depth": depth} | row for row in spread(curves, "step", np.arange(steps + 1))]


def band(ax: Axes, table: pd.DataFrame, x: str, y: str, number: int, style: str = "-") -> None:
    """The mean over draws of one depth, and its range."""
    color = SERIES[number % len(SERIES)]
    label = f"d = {table['depth'].iloc[0]}" if style == "-" else None
    ax.plot(table[x], table[y], style, color=color, linewidth=1.2, label=label)
    if style == "-":
        ax.fill_between(
            table[x], table[f"{y}_least"], table[f"{y}_most"], color=color, alpha=0.12, linewidth=0
        )


def by_depth(
    ax: Axes, table: pd.DataFrame, x: str, y: str, title: str, style: str = "-", **query: Any
) -> None:
    """A curve a depth."""
    for name, value in query.items():
        table = table[table[name] == value]
    for number, (_, own) in enumerate(table.groupby("depth")):
        band(ax, own, x, y, number, style)
    ax.set_title(title, fontsize="medium")


def draw_random_gates(
    spectra: pd.DataFrame, along: pd.DataFrame, entry: pd.DataFrame, draws: int
) -> Figure:
    """Figures 1, 2 and 3, a row each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 10.5), layout="constrained")
    bands: Any = figure.subfigures(3, 1)
    first, second, third = (band.subplots(1, n) for band, n in zip(bands, (3, 2, 4), strict=True))
    query: dict[str, Any]
    for ax, width in zip(first, (math.inf, *WIDTHS), strict=True):
        ideal = math.isinf(width)
        query = {"gates": "ideal"} if ideal else {"gates": "random", "width": width}
        title = "ideal" if ideal else f"w = {width}"
        by_depth(ax, spectra, "k", "sum", f"figure 1: {title}", **query)
        ax.set(xlabel="k", ylabel="sum of the k least eigenvalues")
    for ax, name in zip(second, ("diagonal", "other"), strict=True):
        ax.errorbar(entry["depth"], entry[name], entry[f"{name}_error"], marker="o", capsize=3,
                    label=f"mean of {entry['draws'].iloc[0]} draws, standard error")  # fmt: skip
        ax.plot(entry["depth"], entry[f"ideal_{name}"], "k:", label="ideal")
        ax.set_title(f"figure 2: {name} entry of K_0 / d, w = 500", fontsize="medium")
        ax.set(xlabel="depth", ylim=(0, 1.3 if name == "diagonal" else None))
        ax.set_xticks(entry["depth"])
        ax.legend(frameon=False)
    for ax, width in zip(third[:2], (25, 500), strict=True):
        query = {"gates": "random", "width": width}
        title = f"figure 3: error left, w = {width}" + ", one draw trained" * (width == 500)
        for how, style in (("trained", "-"), ("law", ":")):
            by_depth(ax, along, "step", "left", title, style, how=how, **query)
        ax.plot([], [], "k-", label="trained")
        ax.plot([], [], "k:", label="constant K_0")
        ax.set(xlabel="steps", ylim=(0, 1.05))
    for ax, width in zip(third[2:], (25, 500), strict=True):
        by_depth(ax, spectra, "k", "scaled", f"figure 3: sums over the largest, w = {width}",
                 gates="random", width=width)  # fmt: skip
        ax.set(xlabel="k")
    handles, labels = third[0].get_legend_handles_labels()
    chosen = dict(zip(labels, handles, strict=True))
    figure.legend(chosen.values(), chosen.keys(), loc="outside right upper", frameon=False)
    figure.suptitle(f"random gates on 200 copies of x = 1: mean and range of {draws} draws")
    return figure


def draw_galu(spectra: pd.DataFrame, along: pd.DataFrame, draws: int) -> Figure:
    """Figure 4: spectra and errors of GaLU, then of ReLU."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 3.8), layout="constrained")
    panels = figure.subplots(1, 4)
    for number, kind in enumerate(galu.KINDS):
        sums, left = panels[2 * number : 2 * number + 2]
        by_depth(sums, spectra, "k", "scaled", f"figure 4: {kind}, sums over the largest",
                 gates=kind)  # fmt: skip
        for how, style in (("trained", "-"), ("law", ":")):
            by_depth(left, along, "step", "left", f"figure 4: {kind}, error left", style,
                     gates=kind, how=how)  # fmt: skip
        sums.set(xlabel="k")
        left.set(xlabel="steps", ylim=(0, 1.05))
    most = max(ax.get_ylim()[1] for ax in panels[::2])
    for ax in panels[::2]:
        ax.set_ylim(0, most)
    panels[0].legend(frameon=False, fontsize="small")
    figure.suptitle(
        f"100 points of the square, w = 100: mean and range of {draws} draws; dotted: constant K_0"
    )
    return figure


def draw_linear(table: pd.DataFrame, draws: int) -> Figure:
    """Figure 10: K_0 by depth; error, kernel and norm along training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 3.8), layout="constrained")
    start, left, kernel, norm = figure.subplots(1, 4)
    first = table[table["step"] == 0]
    low, high = (first["kernel"] - first["kernel_least"], first["kernel_most"] - first["kernel"])
    start.errorbar(first["depth"], first["kernel"], [low, high], marker="o", capsize=3)
    start.plot(first["depth"], np.ones(len(first)), "k:", label="mean, d (w s^2)^(d-1) / d")
    start.set_title("figure 10: K_0 / d", fontsize="medium")
    start.set(xlabel="depth", ylim=(0, None))
    start.legend(frameon=False, fontsize="small")
    titles = {"left": "squared error over the first", "kernel": "K_t / d",
              "grown": "norm of the weights over the first"}  # fmt: skip
    first_norm = table["depth"].map(first.set_index("depth")["norm"])
    grown = {f"grown{end}": table[f"norm{end}"] / first_norm for end in ("", "_least", "_most")}
    table = table.assign(**grown)
    for ax, (name, title) in zip((left, kernel, norm), titles.items(), strict=True):
        by_depth(ax, table, "step", name, f"figure 10: {title}")
        ax.set(xlabel="steps")
    steps = np.arange(table["step"].max() + 1)
    left.plot(steps, 0.81**steps, "k:", label="0.81^t")
    left.set(yscale="log", ylim=(1e-9, 2))
    left.legend(frameon=False, fontsize="small")
    figure.suptitle(f"deep linear networks on one sample: mean and range of {draws} draws")
    return figure


PARTS = ("random-gates", "galu", "linear")


@click.command()
@click.option("--only", type=click.Choice(PARTS), multiple=True, default=PARTS, show_default=True)
@sizes({"draws": 2, "entry_draws": 2}, draws=(2, 5), entry_draws=(5, 20))
@out_folder
def main(only: tuple[str, ...], draws: int, entry_draws: int, out: Path) -> None:
    """Spectra and error curves by depth and width, as the source draws them."""
    typed = click.get_current_context().get_parameter_source("entry_draws")
    if "random-gates" not in only and typed is ParameterSource.COMMANDLINE:
        raise click.UsageError("--entry-draws is of the part random-gates, which --only leaves out")
    click.echo(machine())

    def kept(name: str, key: tuple[str, ...] = (), **options: int) -> Kept:
        return Kept(out / f"gram_{name}.csv", key, options=options, float_format="%.5g")

    tables: dict[str, Kept] = {}
    if {"random-gates", "galu"} & set(only):  # both write to these
        tables |= {name: kept(name, ("gates",), draws=draws) for name in ("spectra", "errors")}
    if "random-gates" in only:
        tables["entries"] = kept("entries", entry_draws=entry_draws)
    if "linear" in only:
        tables["linear"] = kept("linear", draws=draws)

    def written(name: str, rows: Rows) -> pd.DataFrame:
        found, before = pd.DataFrame(rows), tables[name].table
        if len(before):
            others = before[~before["gates"].isin(set(found["gates"]))]
            found = pd.concat([others, found], ignore_index=True)
        tables[name].replace(found)
        return found

    parts: dict[str, Callable[[], tuple[Rows, Rows]]] = {
        "random-gates": lambda: random_gates(WIDTHS, DEPTHS, draws),
        "galu": lambda: other_gates(GALU_DEPTHS, draws),
    }
    for name, make in parts.items():
        if name not in only:
            continue
        spectra, along = (
            written(table, rows) for table, rows in zip(("spectra", "errors"), make(), strict=True)
        )
        if name == "galu":
            picture = draw_galu(spectra, along, draws)
        else:
            entry = written("entries", [entries(depth, entry_draws) for depth in DEPTHS])
            picture = draw_random_gates(spectra, along, entry, draws)
            click.echo(entry.to_string(float_format="%.3f"))
        picture.savefig(out / f"gram_{name.replace('-', '_')}.png", dpi=100)
    if "linear" in only:
        table = written("linear", [row for d in LINEAR_DEPTHS for row in linear(d, draws)])
        draw_linear(table, draws).savefig(out / "gram_linear.png", dpi=100)
        first = table[table["step"] == 1]
        click.echo(first.to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
