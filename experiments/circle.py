"""The circle: do gates that are trained learn faster, and do open paths move to the easy half?

    python -m experiments.circle --full --out experiments/results

A function of low frequency on one half of the circle, sin 2a, and of high frequency on the other,
sin 10a, fitted by least squares with Adam: by a ReLU network of 5 x 16 units, and by deep linearly
gated networks of as many half-spaces with soft gates of beta 4, either trained or left as they were
drawn, from equal weights. The source gives neither its function nor its optimiser; its moments are
therefore those at which the loss has fallen to a half of that of f = 0, and to 0.01. Its loss
begins at 0.5, the mean of y^2; ours, with a half in front, at 0.25, so that steps to 0.005 are
counted too. The first claim of the source is counted in steps; of the second every seed is shown,
since it does not hold in all of them. Losses with hard gates stand beside those with the soft ones
that were trained. Artefacts are what f - y has on the easy half above four periods: y has one.

Beside the table `circle.csv` stand pictures of the source's figures: `circle.png` (2),
`circle_kernels.png` (3, 4), `circle_outputs.png` (5), `circle_half_planes_start.png` (9) and
`circle_half_planes_end.png` (10, and 6 in its first columns); all but the first of seed 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import torch
from numpy.typing import NDArray

import implicit_bias as ib
from implicit_bias.data.made.circle import circle_values, is_easy
from implicit_bias.models.dlgn.regions import active_paths, count_patterns
from implicit_bias.models.dlgn.training import hard_scores
from implicit_bias.networks.gated.dlgn import DLGN
from implicit_bias.networks.relu import DeepReLU
from implicit_bias.runs.drawing.palette import BLACK, BLUE, GREEN, ORANGE, SERIES, VERMILLION

from .tables import Kept, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS, WIDTHS, BETA, RATE = 400, (16,) * 5, 4.0, 3e-3
HALF, REACHED = 0.125, 0.01  # means of 1/2 (f - y)^2, that of f = 0 being 1/4
PERIODS = 4  # on the easy half: what is faster is an artefact
EVERY = 4  # points of the tangent kernels
# Experts, and what becomes of the gates.
ARMS = (("relu", "own"), ("constant", "trained"), ("constant", "frozen"),
        ("linear", "trained"), ("linear", "frozen"))  # fmt: skip
COLORS = {"own": GREEN, "trained": BLUE, "frozen": VERMILLION}
SAID = {"own": "ReLU", "trained": "gates trained", "frozen": "gates frozen"}

Floats = NDArray[np.float64]
Row = dict[str, float | int | str]
Net = DLGN | DeepReLU


@dataclass(frozen=True, eq=False)
class Moment:
    """A network at one step.

    Attributes
    ----------
    name : {"start", "half", "end"}
        Before the first step; when the loss is a half of that of f = 0; when it is 0.01, or after
        the last step.
    step : int
    loss : float
    gates : (n, 80) array
        Hard ones.
    outputs : (n,) array
    kernel : (n / 4, n / 4) array
        The tangent kernel.
    normals : (80, 2) array, optional
        Of a DLGN's half-planes.
    """

    name: str
    step: int
    loss: float
    gates: Floats
    outputs: Floats
    kernel: Floats
    normals: Floats | None


def points() -> tuple[Floats, Floats]:
    """Equally spaced points of the circle, none at a change of sign, and the function on them."""
    angle = 2 * np.pi * (np.arange(POINTS) + 0.5) / POINTS
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X, circle_values(X)


def tangent_kernel(network: Net, X: Floats) -> Floats:
    """The tangent kernel in the weights that are trained, soft gates' own among them."""
    if isinstance(network, DeepReLU):
        return ib.kernels.empirical_ntk(network, X, None)
    layers = [layer.detach().numpy() for layer in network.gating]
    half_spaces = ib.gates.LinearGates(2, widths=network.widths, layers=layers)
    gating = ib.gates.SoftGates(half_spaces, beta=BETA).fit(X)
    inputs, gates = network.expert_inputs(torch.tensor(X)).numpy(), gating.transform(X)
    kernel = ib.kernels.empirical_ntk(network.value, inputs, gates)
    if network.gating[0].requires_grad:
        kernel += ib.kernels.activation_kernel(network.value, inputs, gates, gating.jacobian(X))
    return kernel


def moment(network: Net, name: str, step: int, loss: float) -> Moment:
    """What is shown of a network at a step."""
    X, _ = points()
    with torch.no_grad():
        outputs = network(torch.tensor(X)).numpy()
    normals = None if isinstance(network, DeepReLU) else network.normals().numpy()
    gates = network.gates(X).numpy().astype(float)
    return Moment(name, step, loss, gates, outputs, tangent_kernel(network, X[::EVERY]), normals)


def fit(network: Net, *, steps: int) -> tuple[list[float], dict[str, Moment]]:
    """Train with Adam what is to be trained; the loss before every step, and three moments."""
    X, y = (torch.tensor(array) for array in points())
    optimiser = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=RATE)
    losses: list[float] = []
    found: dict[str, Moment] = {}
    for step in range(steps):
        loss = (network(X) - y).square().mean() / 2
        losses.append(loss.item())
        bounds = {"start": math.inf, "half": HALF, "end": REACHED}
        for name, bound in bounds.items():
            if name not in found and losses[-1] <= bound:
                found[name] = moment(network, name, step, losses[-1])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    for name in ("half", "end"):
        if name not in found:
            found[name] = moment(network, name, steps, losses[-1])
    return losses, found


def log_ratio(gates: Floats) -> float:
    """log2 of the mean number of open paths on the easy half over that on the hard half."""
    paths, easy = np.exp(active_paths(gates, widths=WIDTHS)), is_easy(points()[0])
    return float(np.log2(paths[easy].mean() / paths[~easy].mean()))


def facing_up(normals: Floats) -> float:
    """Share of the last layer's half-planes that have three quarters of the easy half or more."""
    last = normals[-WIDTHS[-1] :]
    return float(np.mean(last[:, 1] >= np.abs(last[:, 0])))


def half_losses(outputs: Floats) -> tuple[float, float]:
    """Means of 1/2 (f - y)^2 on the easy half and on the hard half."""
    X, y = points()
    squares, easy = (outputs - y) ** 2 / 2, is_easy(X)
    return float(squares[easy].mean()), float(squares[~easy].mean())


def artefact(outputs: Floats) -> float:
    """Root mean square, over the easy half, of what f - y has there above `PERIODS` periods."""
    X, y = points()
    missed = (outputs - y)[is_easy(X)]
    parts = np.fft.rfft(missed)
    parts[: PERIODS + 1] = 0
    return float(np.sqrt(np.mean(np.fft.irfft(parts, len(missed)) ** 2)))


def made(experts: str, gates: str, seed: int) -> Net:
    """A network before training; one seed has the same weights with gates trained and frozen."""
    if experts == "relu":
        return DeepReLU(2, WIDTHS, random_state=seed)
    constant = experts == "constant"
    network = DLGN(2, widths=WIDTHS, constant_experts=constant, beta=BETA, random_state=seed)
    network.gating.requires_grad_(gates == "trained")
    return network


def run(
    experts: str, gates: str, seed: int, *, steps: int
) -> tuple[Row, list[float], dict[str, Moment]]:
    """One network, as a row of the table; its losses and moments."""
    network = made(experts, gates, seed)
    X, y = points()
    losses, moments = fit(network, steps=steps)
    below, well_below = (np.flatnonzero(np.array(losses) <= bound)
                         for bound in (REACHED, REACHED / 2))  # fmt: skip
    with torch.no_grad():
        outputs = network(torch.tensor(X)).numpy()
    hard = hard_scores(network, X) if isinstance(network, DLGN) else outputs
    easy_half, hard_half = half_losses(outputs)
    easy, last = is_easy(X), network.gates(X).numpy().astype(float)
    row: Row = {
        "experts": experts,
        "seed": seed,
        "gates": gates,
        "steps": steps,
        "steps_to_half": moments["half"].step,
        "steps_to_loss": int(below[0]) if len(below) else math.nan,
        "steps_to_half_of_it": int(well_below[0]) if len(well_below) else math.nan,
        "loss_soft": float(np.mean((outputs - y) ** 2 / 2)),
        "loss_hard": float(np.mean((hard - y) ** 2 / 2)),
        "loss_easy_half": easy_half,
        "loss_hard_half": hard_half,
        "artefact_last": artefact(outputs),
        **{f"log2_easy_hard_{name}": log_ratio(one.gates) for name, one in moments.items()},
        "log2_easy_hard_last": log_ratio(last),
        "patterns": count_patterns(last),
    }
    for name, one in moments.items():
        row[f"facing_up_{name}"] = math.nan if one.normals is None else facing_up(one.normals)
        diagonal = np.diag(one.kernel)
        halves = diagonal[easy[::EVERY]].mean() / diagonal[~easy[::EVERY]].mean()
        row[f"log2_kernel_{name}"] = float(np.log2(halves))
        row[f"easy_at_{name}"], row[f"hard_at_{name}"] = half_losses(one.outputs)
        row[f"artefact_at_{name}"] = artefact(one.outputs)
    return row, losses, moments


def draw_losses(
    curves: Mapping[tuple[str, str, int], Sequence[float]], rows: Sequence[Row]
) -> Figure:
    """The data, the losses of every network, and where open paths went in every seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.2), layout="constrained")
    panels = figure.subplot_mosaic(
        [["values", "linear", "relu"], ["points", "constant", "paths"]], width_ratios=(0.8, 1, 1)
    )
    X, y = points()
    degrees = 360 * (np.arange(POINTS) + 0.5) / POINTS
    panels["values"].plot(degrees, y, color="k", linewidth=1)
    panels["values"].set(xlabel="angle, degrees", ylabel="y", title="figure 2: the function")
    shown = panels["points"].scatter(X[:, 0], X[:, 1], c=y, cmap="coolwarm", s=9)
    figure.colorbar(shown, ax=panels["points"], label="y")
    panels["points"].set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    for (experts, gates, _), losses in curves.items():
        panels[experts].semilogy(losses, color=COLORS[gates], linewidth=0.8)
    for experts in ("relu", "constant", "linear"):
        ax = panels[experts]
        ax.axhline(REACHED, color="0.6", linewidth=0.8)
        kind = "ReLU network" if experts == "relu" else f"DLGN, {experts} experts"
        ax.set(
            title=kind,
            xlabel="Adam steps",
            ylabel="loss",
            ylim=(1e-5, 20),
            xlim=(1, None),
            xscale="log",
        )
        for gates in dict.fromkeys(gates for one, gates, _ in curves if one == experts):
            ax.plot([], [], color=COLORS[gates], label=SAID[gates])
        ax.legend(frameon=False, loc="upper right")
    for row in rows:
        if row["gates"] != "frozen":
            ends = [float(row[f"log2_easy_hard_{name}"]) for name in ("start", "half", "end")]
            style = {"relu": ":", "constant": "-", "linear": "--"}[str(row["experts"])]
            color = COLORS[str(row["gates"])]
            panels["paths"].plot(ends, style, color=color, marker="o", ms=3, linewidth=1)
    panels["paths"].axhline(0, color="0.6", linewidth=0.8)
    panels["paths"].set_xticks([0, 1, 2], ["start", "loss 0.125", "loss 0.01"])
    panels["paths"].set(title="open paths", ylabel="log2 easy half / hard half", ylim=(None, 3))
    for style, name in ((":", "ReLU"), ("-", "constant experts"), ("--", "linear experts")):
        panels["paths"].plot([], [], f"k{style}", label=name)
    panels["paths"].legend(frameon=False, fontsize="x-small", ncols=3, loc="upper center")
    seeds = len({row["seed"] for row in rows})
    figure.suptitle(f"sin 2a and sin 10a at {POINTS} points of the circle, seeds 0 to {seeds - 1}")
    return figure


def draw_kernels(shown: Mapping[str, Mapping[str, Moment]]) -> Figure:
    """Overlap and tangent kernels over their mean diagonal, three moments of each network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.5), layout="constrained")
    panels = figure.subplots(2, 3 * len(shown), squeeze=False)
    columns = [(kind, one) for kind, moments in shown.items() for one in moments.values()]
    for (kind, one), (above, below) in zip(columns, panels.T, strict=True):
        overlap = ib.kernels.path_overlap(one.gates, widths=WIDTHS)
        for ax, kernel in ((above, overlap), (below, one.kernel)):
            scaled = kernel / (np.trace(kernel) / len(kernel))
            most = float(np.quantile(np.abs(scaled), 0.999))
            image = ax.imshow(
                scaled, cmap="viridis", vmin=min(0.0, float(scaled.min())), vmax=most,
                extent=(0, 360, 360, 0), interpolation="nearest",
            )  # fmt: skip
            figure.colorbar(image, ax=ax, fraction=0.046, pad=0.02)
            ax.set_xticks([0, 180, 360])
            ax.set_yticks([0, 180, 360])
        above.set_title(f"{kind}, step {one.step}\nloss {one.loss:.3g}", fontsize="medium")
    panels[0][0].set_ylabel("figure 3: overlap\nangle, degrees")
    panels[1][0].set_ylabel("figure 4: tangent kernel\nangle, degrees")
    figure.suptitle("kernels over their mean diagonal, seed 0")
    return figure


def draw_outputs(
    shown: Mapping[str, Mapping[str, Moment]], ends: Mapping[str, Sequence[Floats]]
) -> Figure:
    """The function that each network has at three moments, and what is left of y on the easy half.

    `ends` are the last outputs of all seeds, behind frozen and behind trained gates.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 3.8), layout="constrained")
    _, y = points()
    degrees = 360 * (np.arange(POINTS) + 0.5) / POINTS
    *panels, missed = figure.subplots(1, len(shown) + 1)
    for ax, (kind, moments) in zip(panels, shown.items(), strict=True):
        ax.plot(degrees, y, color="0.75", linewidth=3, label="y")
        for color, one in zip((ORANGE, BLUE, BLACK), moments.values(), strict=True):
            ax.plot(degrees, one.outputs, color=color, linewidth=1, label=f"step {one.step}")
        ax.set(title=f"figure 5: {kind}, seed 0", xlabel="angle, degrees")
        ax.set_xticks([0, 90, 180, 270, 360])
        # A network before its first step may be far from everything that is to be seen.
        ax.set_ylim(-2, 2)
        ax.legend(frameon=False, fontsize="small", ncols=2)
    panels[0].set_ylabel("f, y")
    easy = degrees < 180
    for gates, outputs in ends.items():
        for number, last in enumerate(outputs):
            label = f"{SAID[gates]}, {len(outputs)} seeds" if number == 0 else None
            missed.plot(
                degrees[easy], (last - y)[easy], color=COLORS[gates], linewidth=1, label=label
            )
    missed.set(title="DLGN-PWC: f - y at the end, easy half", xlabel="angle, degrees")
    missed.set_xticks([0, 45, 90, 135, 180])
    missed.axhline(0, color="0.6", linewidth=0.8)
    missed.legend(frameon=False, fontsize="small", loc="lower center")
    return figure


def draw_half_planes(one: Moment, title: str) -> Figure:
    """Where each unit is open, a row of panels a layer."""
    from matplotlib.figure import Figure

    if one.normals is None:
        raise ValueError("`one` must be a moment of a DLGN: units of others have no half-planes")
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    panels = figure.subplots(len(WIDTHS), max(WIDTHS), squeeze=False)
    for layer, (row, own) in enumerate(
        zip(panels, np.split(one.normals, np.cumsum(WIDTHS)[:-1]), strict=True)
    ):
        for ax, normal in zip(row, own, strict=True):
            shade(ax, normal, SERIES[layer % len(SERIES)])
        row[0].text(-1.35, 0, f"layer {layer + 1}", rotation=90, va="center", ha="right")
    figure.suptitle(title)
    return figure


def shade(ax: Axes, normal: Floats, color: str) -> None:
    """The half of the disk on which <normal, x> >= 0; the axis parts easy and hard half."""
    from matplotlib.patches import Circle, Wedge

    middle = float(np.degrees(np.arctan2(normal[1], normal[0])))
    ax.add_patch(Wedge((0, 0), 1, middle - 90, middle + 90, color=color, linewidth=0))
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.3", linewidth=0.6))
    ax.plot([-1.15, 1.15], [0, 0], color="k", linewidth=0.6)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    ax.set_axis_off()


@click.command()
@sizes(seeds=(1, 5), steps=(300, 600), frozen_steps=(600, 8000))
@out_folder
def main(seeds: int, steps: int, frozen_steps: int, out: Path) -> None:
    """Train and freeze the gates of every seed; count steps, and paths on both halves."""
    sized = {"seeds": seeds, "steps": steps, "frozen_steps": frozen_steps}
    kept = Kept(out / "circle.csv", options=sized, float_format="%.6g")
    rows: list[Row] = []
    curves: dict[tuple[str, str, int], list[float]] = {}
    shown: dict[tuple[str, str], dict[str, Moment]] = {}
    outputs: dict[str, list[Floats]] = {"frozen": [], "trained": []}
    for experts, gates in ARMS:
        for seed in range(seeds):
            ahead = frozen_steps if gates == "frozen" else steps
            row, curves[experts, gates, seed], moments = run(experts, gates, seed, steps=ahead)
            if seed == 0:
                shown[experts, gates] = moments
            if experts == "constant":
                outputs[gates].append(moments["end"].outputs)
            rows.append(row)
            click.echo("  ".join(f"{key} {value}" for key, value in row.items()))
        kept.add(rows[-seeds:])
    names = {"ReLU": ("relu", "own"), "DLGN-PWC": ("constant", "trained"),
             "DLGN-PWC, frozen": ("constant", "frozen")}  # fmt: skip
    told = {name: shown[arm] for name, arm in names.items()}
    moving = {name: told[name] for name in ("ReLU", "DLGN-PWC")}
    ends = told["DLGN-PWC"]
    pictures = {
        "": draw_losses(curves, rows),
        "_kernels": draw_kernels(moving),
        "_outputs": draw_outputs(told, outputs),
        "_half_planes_start": draw_half_planes(
            ends["start"], "figure 9: where units of the DLGN-PWC are open before training, seed 0"
        ),
        "_half_planes_end": draw_half_planes(
            ends["end"], f"figures 6 and 10: the same units after {ends['end'].step} steps, seed 0"
        ),
    }
    for name, picture in pictures.items():
        picture.savefig(out / f"circle{name}.png", dpi=100)


if __name__ == "__main__":
    main()
