"""Networks with soft gates beside ReLU and GaLU networks: what adapts, learns, and what nu does.

    python -m experiments.soft_gates --data-dir DIR --out experiments/results

Experiments 3 to 5 of the source, its figures 7 and 8: images of 4 against 7 in MNIST's files
(scikit-learn's digits without --data-dir), five hidden layers of 100 units, squared loss on labels
in {-1, 1}, RMSprop at 1e-4, beta 4, batches of 32. Of one seed all kinds begin with the same value
weights but for `learned gates`, which begins afresh behind the gates that `relu` ends with:

    soft-galu, soft-relu, relu     gates that adapt: soft with weights of their own, soft, hard
    galu            frozen gates of another ReLU network
    own start       frozen gates of the start of `relu`
    learned gates   frozen gates of the end of `relu`
    gates only      soft-GaLU whose value weights stay: gates alone are trained
    ours            soft-GaLU whose gating network hands on relu(q), as `SoftGates` has it

Weights begin as the source assumes, of random signs and variance 2 / w in every layer ("sign"),
which makes the first scores of images large, or of variance 2 / fan-in ("kaiming").

One row an init, kind, seed and checkpoint: the loss, errors on images that are learned and held
out, and on 200 of the former nu = y' (H / tr H)^-1 y of the tangent kernel K, of the path kernel M
of its gates, and of the part K^a of gates' weights, with the trace of K^a. `soft_gates_NAME.csv`,
and `.png` for figure 7, `_nu.png` for figure 8, are written as runs end; runs that are there are
not run again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np
import pandas as pd

import implicit_bias as ib
from implicit_bias.runs.drawing.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

from .curves import mean_and_range
from .path_kernels import error, pair
from .spectra import machine, scores
from .tables import Kept, data_folder, images_of, out_folder, refused, sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Init = Literal["sign", "kaiming"]
WIDTHS, BETA, RATE, BATCH, SHOWN = (100,) * 5, 4.0, 1e-4, 32, 200
KINDS = ("soft-galu", "soft-relu", "relu", "galu", "own start", "learned gates", "gates only",
         "ours")  # fmt: skip
KEY = ["init", "seed"]
INITS: tuple[Init, ...] = ("sign", "kaiming")
LEAST_SHOWN = {"sign": 70, "kaiming": 80}  # accuracies in %, with room for the legends
COLORS = dict(zip(KINDS, (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, "0.5", "k"), strict=True))


def network_of(
    kind: str, n_inputs: int, seed: int, init: Init, widths: tuple[int, ...], learner: Any
) -> Any:
    """A network before training; `learner` is the trained ReLU network, for `learned gates`."""
    import torch

    soft = kind in ("soft-galu", "soft-relu", "gates only", "ours")
    network = ib.networks.SoftDGN(
        n_inputs, widths=widths, beta=BETA if soft else None, shared="relu" in kind,
        signals="relu" if kind == "ours" else "soft", dtype=torch.float32, init=init,
        random_state=1000 + seed if kind == "learned gates" else seed,
    )  # fmt: skip
    source = {"own start": network.value, "learned gates": learner and learner.value}.get(kind)
    if source is not None:
        with torch.no_grad():
            for gate, layer in zip(network.gating, source.layers, strict=False):
                gate.copy_(layer)
    if not soft:
        network.gating.requires_grad_(False)
    if kind == "gates only":
        network.value.requires_grad_(False)
    return network


def measure(network: Any, train: ib.Sample, held_out: ib.Sample) -> dict[str, float]:
    """What a checkpoint is worth."""
    import torch

    X, y = train.X[:SHOWN], train.y[:SHOWN]
    found, f = {}, scores(network.double(), train.X, None)
    found["loss"] = float(np.mean((f - train.y) ** 2) / 2)
    found["train_error"] = error(f, train.y)
    found["error"] = error(scores(network, held_out.X, None), held_out.y)
    with torch.no_grad():
        gates = network.soft_gates(torch.tensor(X)).numpy()
    found["nu_m"] = ib.kernels.nu(ib.kernels.neural_path_kernel(X, gates, widths=network.widths), y)
    found["nu_k"] = ib.kernels.nu(ib.kernels.empirical_ntk(network, X, None), y)
    found |= {"nu_a": math.nan, "trace_a": math.nan}
    if network.beta is not None and not network.shared:
        alone = copy.deepcopy(network)
        alone.value.requires_grad_(False)
        kernel = ib.kernels.empirical_ntk(alone, X, None)
        found |= {"nu_a": ib.kernels.nu(kernel, y), "trace_a": float(np.trace(kernel))}
    network.float()
    return found


def checkpoints(epochs: int) -> list[int]:
    """Epochs at which a network is measured."""
    return sorted({0, 1, 2, 5, *range(10, epochs, 10), epochs} & set(range(epochs + 1)))


def train_network(
    network: Any, train: ib.Sample, held_out: ib.Sample, epochs: int, seed: int
) -> Iterator[dict[str, float]]:
    """RMSprop in place; one row a checkpoint."""
    import torch

    X, y = (torch.tensor(array).float() for array in (train.X, train.y))
    optimiser = torch.optim.RMSprop([p for p in network.parameters() if p.requires_grad], lr=RATE)
    order = torch.Generator().manual_seed(seed)
    for epoch in range(epochs + 1):
        if epoch in checkpoints(epochs):
            yield {"epoch": epoch, **measure(network, train, held_out)}
        if epoch == epochs:
            return
        for batch in torch.split(torch.randperm(len(y), generator=order), BATCH):  # type: ignore[no-untyped-call]
            loss = (network(X[batch]) - y[batch]).square().mean() / 2
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def rows(
    train: ib.Sample, held_out: ib.Sample, init: Init, seed: int, epochs: int,
    widths: tuple[int, ...] = WIDTHS,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """All kinds on one draw of images and weights."""
    learner = None
    for kind in KINDS:
        network = network_of(kind, train.X.shape[1], seed, init, widths, learner)
        for row in train_network(network, train, held_out, epochs, seed):
            yield {"init": init, "seed": seed, "kind": kind, **row}
        learner = network if kind == "relu" else learner


def line(ax: Axes, table: pd.DataFrame, kind: str, name: str, style: str, label: str = "") -> None:
    """The mean over seeds with their range."""
    own = table[table["kind"] == kind]
    mean_and_range(
        ax, own, "epoch", name, style, color=COLORS[kind], alpha=0.12, linewidth=1.3,
        label=label or None,
    )  # fmt: skip


def draw(table: pd.DataFrame, data: str) -> Figure:
    """Figure 7: accuracies on learned and held-out images along training."""
    from matplotlib.figure import Figure

    table = table.assign(
        train=100 * (1 - table["train_error"]), test=100 * (1 - table["error"])
    )  # fmt: skip
    titles = (
        "training, four networks", "held out, four networks",
        "held out: learned, unlearned gates", "held out: adaptable, frozen gates",
    )  # fmt: skip
    inits = list(dict.fromkeys(table["init"]))
    figure = Figure(figsize=(15, 3.7 * len(inits)), layout="constrained")
    for init, panels in zip(inits, figure.subplots(len(inits), 4, squeeze=False), strict=True):
        own = table[table["init"] == init]
        for kind in KINDS[:4]:
            line(panels[0], own, kind, "train", "-", kind)
            line(panels[1], own, kind, "test", ":", kind)
        for ax, kinds in zip(
            panels[2:], (("learned gates", "galu", "gates only"), ("relu", "own start", "ours")),
            strict=True,
        ):  # fmt: skip
            for kind in kinds:
                line(ax, own, kind, "test", ":", kind)
        for ax, title in zip(panels, titles, strict=True):
            ax.set(title=title, xlabel="epochs", ylim=(LEAST_SHOWN[init], 100.5))
            ax.legend(frameon=False, fontsize="small", loc="lower right")
        panels[0].set_ylabel(f"accuracy, % ({init}, {own['seed'].nunique()} runs)")
    figure.suptitle(f"figure 7, {data}: mean and range")
    return figure


def draw_nu(table: pd.DataFrame, data: str) -> Figure:
    """Figure 8: nu of the tangent kernel and of the gates' part; of the path kernel beside."""
    from matplotlib.figure import Figure

    table = table.assign(plain_a=table["nu_a"] / table["trace_a"])
    inits = list(dict.fromkeys(table["init"]))
    figure = Figure(figsize=(17, 3.5 * len(inits)), layout="constrained")
    chosen: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("nu_k", "K / tr K: learned, unlearned", ("learned gates", "galu")),
        ("nu_k", "K / tr K: adaptable, frozen", ("soft-galu", "soft-relu", "relu", "own start")),
        ("plain_a", "$K^a$", ("soft-galu", "gates only", "ours")),
        ("nu_a", "$K^a$ / tr $K^a$", ("soft-galu", "gates only", "ours")),
        ("nu_m", "M / tr M (not printed)", KINDS[:4]),
    )
    for init, panels in zip(inits, figure.subplots(len(inits), 5, squeeze=False), strict=True):
        own = table[table["init"] == init]
        for ax, (name, title, kinds) in zip(panels, chosen, strict=True):
            for kind in kinds:
                line(ax, own, kind, name, "-", kind)
            ax.set(title=title, xlabel="epochs", yscale="log")
            ax.legend(frameon=False, fontsize="small")
        panels[0].set_ylabel(f"$y' H^{{-1}} y$ ({init}, {own['seed'].nunique()} runs)")
    figure.suptitle(f"figure 8, {data}: mean and range")
    return figure


@click.command()
@data_folder
@sizes(seeds=(5, 5), epochs=(40, 100))
@click.option("--init", "inits", type=click.Choice(INITS), multiple=True, default=INITS)
@click.option("--n-train", type=click.IntRange(min=2), help="1000 of MNIST, 200 digits.")
@out_folder
def main(
    data_dir: Path | None, seeds: int, epochs: int, inits: tuple[Init, ...], n_train: int | None,
    out: Path,
) -> None:  # fmt: skip
    """Train networks with soft, hard, frozen and learned gates on 4 against 7."""
    click.echo(machine())
    images = images_of(data_dir)
    n_train = n_train or (200 if data_dir is None else 1000)
    kept = Kept(
        out / f"soft_gates_{images.file}.csv", KEY, options={"epochs": epochs, "n_train": n_train},
        float_format="%.6g",
    )  # fmt: skip
    for init, seed in product(inits, range(1, seeds + 1)):
        if (init, seed) in kept:
            continue
        with refused("--n-train"):
            train, held_out = pair(data_dir, n_train, seed)
        found = pd.DataFrame(rows(train, held_out, init, seed, epochs))
        kept.add(found)
        ends = found[found["epoch"] == epochs].set_index("kind")
        click.echo(ends.drop(columns=["init", "seed"]).to_string(float_format="%.4g"))
    table = kept.table
    for suffix, picture in (("", draw(table, images.said)), ("_nu", draw_nu(table, images.said))):
        picture.savefig(kept.path.with_name(f"{kept.path.stem}{suffix}.png"), dpi=100)
    last = table[table["epoch"] == table["epoch"].max()]
    means = last.groupby(["init", "kind"], sort=False)[
        ["train_error", "error", "nu_k", "nu_m", "nu_a"]
    ]
    click.echo(means.agg(["mean", "min", "max"]).to_string(float_format="%.4g"))


if __name__ == "__main__":
    main()
