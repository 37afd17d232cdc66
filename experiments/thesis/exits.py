"""Figures 6.2 to 6.7 and E.1: exits behind convolutions, of which the last can know the most.

Four convolutions of stride 2 with batch normalisation; behind each an exit that sees means over
ninths of the image. Trained by Nesterov's momentum, weight decay, batches of 64, and a learning
rate that falls at a half and at three quarters, as printed; but the rate is a tenth of the printed
one, and the two losses of (6.1) have weights of a half. The first exit has looked at patches of
three by three pixels, so that later ones have something to teach where labels suffice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from implicit_bias.data.catalogue import load_class_data
from implicit_bias.models.heads import confidence, exits_loss
from implicit_bias.runs.drawing import Row, compose, legend_above
from implicit_bias.runs.drawing.palette import BLUE, GREEN, VERMILLION

from ..exit_heads import COLORS, Draw, Floats, accuracies, accuracy, reported
from ..tables import images_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHANNELS = (16, 24, 32, 48)
BATCH, RATE, DECAY = 64, 0.05, 1e-4
SEEDS = (0, 1, 2, 3)
# Images that choose the exit of a budget.
CHOOSING = 500
MOST_CONFIDENT = 0.5  # mu of CIFAR100
METHODS: dict[str, dict[str, Any]] = {
    "exit-wise": {"share": 1.0},
    "distilled": {"annealed": True},
    "semi-supervised": {"annealed": True, "unlabelled": True},
}
COURSES: dict[str, dict[str, Any]] = {
    **{f"tau = {tau}": {"temperature": float(tau)} for tau in (1, 2, 3, 4)},
    "annealed": {"annealed": True},
    "annealed, all later teach": {"annealed": True, "later": True},
}


class Convolutions(nn.Module):
    """Four blocks of a convolution, batch normalisation and ReLU, with a linear exit behind each.

    Parameters
    ----------
    side : int
        Pixels of a side of the images.
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side
        blocks, exits, below = [], [], 1
        for channels in CHANNELS:
            side = (side + 1) // 2
            conv = nn.Conv2d(below, channels, 3, stride=2, padding=1, bias=False)
            blocks.append(nn.Sequential(conv, nn.BatchNorm2d(channels), nn.ReLU()))
            seen = min(3, side)
            exits.append(
                nn.Sequential(nn.AdaptiveAvgPool2d(seen), nn.Flatten(),
                              nn.Linear(channels * seen**2, 10))
            )  # fmt: skip
            below = channels
        self.blocks, self.exits = nn.ModuleList(blocks), nn.ModuleList(exits)

    def forward(self, X: Tensor) -> list[Tensor]:
        """Return the logits (n, 10) of every exit, for images (n, side^2)."""
        images, found = X.view(len(X), 1, self.side, self.side), []
        for block, leave in zip(self.blocks, self.exits, strict=True):
            images = block(images)
            found.append(leave(images))
        return found

    @torch.no_grad()
    def logits(self, X: Floats) -> list[Floats]:
        self.eval()
        images = torch.tensor(X, dtype=torch.float32)
        parts = [self(images[k : k + 1000]) for k in range(0, len(images), 1000)]
        return [torch.cat(exits).double().numpy() for exits in zip(*parts, strict=True)]


def draw_images(data_dir: Path | None, per_class: int, seed: int, *, unlabelled: int) -> Draw:
    """Images of ten classes of which so many a class keep their label, so many more none."""
    where: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir}
    sizes = (700, 1097) if data_dir is None else (5000, 5000)
    data = load_class_data(images_of(data_dir).data, n_train=sizes[0],
                           n_val=sizes[1], constant=False, random_state=seed, **where)  # fmt: skip
    y = data.labels_train
    rows = np.concatenate([np.flatnonzero(y == k)[:per_class] for k in range(10)])
    others = np.setdiff1d(np.arange(len(y)), rows)[:unlabelled]
    labels = np.concatenate([y[rows], np.full(len(others), -1)])
    X, known = data.X_val, data.labels_val
    return Draw(
        data.X_train[np.concatenate([rows, others])], labels, X[:CHOOSING], known[:CHOOSING],
        X[CHOOSING:], known[CHOOSING:],
    )  # fmt: skip


def train(
    draw: Draw, seed: int, *, n_steps: int, share: float = 0.5, temperature: float = 1.0,
    annealed: bool = False, later: bool = False, unlabelled: bool = False,
) -> tuple[Convolutions, Floats]:  # fmt: skip
    """Train by algorithm 6.1 with teachers tempered once.

    Returns
    -------
    Convolutions
    (n_steps, 3) array
        Confidence of the last exit on each batch, the same tempered, and the temperature.
    """
    torch.manual_seed(seed)
    network = Convolutions(math.isqrt(draw.X.shape[1]))
    known = np.flatnonzero(draw.labelled)
    rows = np.arange(len(draw.labels)) if unlabelled else known
    X = torch.tensor(draw.X, dtype=torch.float32)
    labels = torch.tensor(draw.labels)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=RATE, momentum=0.9, nesterov=True, weight_decay=DECAY
    )
    falling = torch.optim.lr_scheduler.MultiStepLR(optimizer, [n_steps // 2, 3 * n_steps // 4])
    rng, course = np.random.default_rng(seed), np.empty((n_steps, 3))
    for step in range(n_steps):
        batch = rng.choice(rows, min(BATCH, len(rows)), replace=False)
        if unlabelled:  # as many labelled ones beside them, as (6.6) has a mean over each
            batch = np.concatenate([batch, rng.choice(known, min(BATCH, len(known)), False)])
        network.train()
        logits = network(X[batch])
        taught = _teachers(logits, later=later)
        loss = exits_loss(logits, labels[batch], teachers=taught, temperature=temperature,
                          share=share)  # fmt: skip
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        falling.step()
        sure = [confidence(taught[0], tau) for tau in (1.0, temperature)]
        course[step] = (*sure, temperature)
        if annealed and sure[1] > MOST_CONFIDENT:
            temperature *= 1.05
    return network, course


def _teachers(logits: Sequence[Tensor], *, later: bool) -> list[list[Tensor]]:
    first = [m + 1 if later else len(logits) - 1 for m in range(len(logits) - 1)]
    return [*(list(logits[m:]) for m in first), []]


def rows(data_dir: Path | None, *, full: bool) -> Iterator[dict[str, Any]]:
    """A row an exit of each network; of figure 6.6 one every tenth step.

    `alone` is the accuracy of the exit by itself, `budget` that of the one of the first exits that
    `CHOOSING` images choose, and `anytime` that of the mean of the first exits.
    """
    labels, seeds, n_steps = ((5, 10, 30), SEEDS, 400) if full else ((10,), SEEDS[:1], 200)
    middle = 10
    for seed in seeds:
        for per_class in labels:
            ways = METHODS | (COURSES if per_class == middle else {})
            draw = draw_images(data_dir, per_class, seed, unlabelled=2000)
            done: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
            for name, how in ways.items():
                # Distilled and annealed are one network under two names.
                found = next((rows for ways, rows in done if ways == how), None)
                if found is None:
                    sure = seed == seeds[0] and name in ("tau = 1", "distilled")
                    found = list(_network(draw, seed, n_steps, how, course=sure))
                    done.append((how, found))
                about = {"labels": per_class, "method": name, "seed": seed}
                yield from (about | row for row in found if name != "distilled" or "exit" in row)


def _network(
    draw: Draw, seed: int, n_steps: int, how: dict[str, Any], *, course: bool
) -> Iterator[dict[str, Any]]:
    network, run = train(draw, seed, n_steps=n_steps, **how)
    alone = [accuracy(u, draw.tested) for u in network.logits(draw.test)]
    modes = zip(alone, *accuracies(network.logits, draw), strict=True)
    for m, (own, budget, anytime) in enumerate(modes, start=1):
        yield {"exit": m, "alone": 100 * own, "budget": 100 * budget, "anytime": 100 * anytime,
               "temperature": run[-1, 2]}  # fmt: skip
    for step in range(0, n_steps if course else 0, 10):
        sure, tempered, tau = run[step : step + 10].mean(0)
        yield {"step": step, "sure": sure, "tempered": tempered, "temperature": tau}


MODES = ["alone", "budget", "anytime"]


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, least and most, by labels, method and exit."""
    found = table.dropna(subset="exit").groupby(["labels", "method", "exit"])[MODES]
    return found.mean().join(found.min().add_suffix("_least")).join(found.max().add_suffix("_most"))


def draw(table: pd.DataFrame) -> Figure:
    """Tables 6.2 and 6.4 as figures 6.3 and 6.5 show them; ours below; temperatures."""
    means, printed = summary(table), reported()
    counts = sorted(set(table.labels))

    def in_print(mode: str) -> Any:
        def on(axes: list[Axes]) -> None:
            for ax, name in zip(axes, ("CIFAR(150)", "CIFAR(250)", "CIFAR(350)"), strict=True):
                one = printed[(printed["mode"] == mode) & (printed.data == name)]
                for method, column in zip(METHODS, ("exit_wise", "distilled", "semi"), strict=True):
                    ax.errorbar(one.exit, one[column], one[f"{column}_error"], marker="o", ms=3,
                                color=COLORS[method], label=method)  # fmt: skip
                ax.set(xlabel=f"exits, {mode} mode: {name}, in print", ylabel="top-5 accuracy, %")
                legend_above(ax)

        return on

    def ours(mode: str) -> Any:
        def on(axes: list[Axes]) -> None:
            what = "an exit by itself" if mode == "alone" else f"exits, {mode} mode"
            for ax, count in zip(axes, counts, strict=True):
                for k, method in enumerate(METHODS):
                    _curve(ax, means.loc[count, method], mode, method, 0.08 * (k - 1))
                ax.set(xlabel=f"{what}: {count:.0f} labels a class, ours",
                       ylabel="accuracy, %", xticks=[1, 2, 3, 4])  # fmt: skip

        return on

    def courses(axes: list[Axes]) -> None:
        for mode, ax in zip(("budget", "anytime"), axes[1:], strict=True):
            for k, name in enumerate(("exit-wise", *COURSES)):
                _curve(ax, means.loc[10, name], mode, name, 0.05 * (k - 3))
            ax.set(xlabel=f"6.7, E.1: exits, {mode} mode, 10 labels a class", ylabel="accuracy, %",
                   xticks=[1, 2, 3, 4])  # fmt: skip
        for ax in axes[1:]:
            legend_above(ax)
        _confidence(axes[0], table.dropna(subset="step"))

    rows = [Row(3, in_print("budget"), height=3.2), Row(len(counts), ours("budget"), height=2.9),
            Row(3, in_print("anytime"), height=3.2), Row(len(counts), ours("anytime"), height=2.9),
            Row(len(counts), ours("alone"), height=2.9), Row(3, courses, height=4.2)]  # fmt: skip
    title = (
        "Figures 6.3, 6.5, 6.6, 6.7 and E.1 of the thesis: printed of CIFAR100 (bars: 1.96 standard"
        " errors), and\nconvolutions on images of digits, their top-1 accuracy (means of seeds; "
        "bars: least to most)"
    )
    return compose(rows, title=title)


def _curve(ax: Axes, one: pd.DataFrame, mode: str, name: str, shift: float) -> None:
    bars = [one[mode] - one[f"{mode}_least"], one[f"{mode}_most"] - one[mode]]
    ax.errorbar(one.index + shift, one[mode], np.array(bars), marker="o", ms=3, elinewidth=1,
                color=COLORS[name], label=name)  # fmt: skip


def _confidence(ax: Axes, sure: pd.DataFrame) -> None:
    """Figure 6.6: blue, green, purple and red as printed, dashed a network without annealing."""
    plain, annealed = (sure[sure.method == name] for name in ("tau = 1", "annealed"))
    ax.plot(annealed.step, annealed.sure, color=BLUE, label="confidence")
    ax.plot(annealed.step, annealed.tempered, color=GREEN, label="tempered")
    ax.plot(plain.step, plain.sure, "--", color="0.4", linewidth=1, label="of tau = 1")
    ax.axhline(MOST_CONFIDENT, color=VERMILLION, linewidth=0.8)
    ax.set(xlabel="6.6: steps", ylabel="confidence of the last exit", ylim=(0, 1.02))
    warmth = ax.twinx()
    warmth.plot(annealed.step, annealed.temperature, color="#7B4F9D", label="temperature (right)")
    warmth.set(ylim=(0, None))
    legend_above(ax, [*ax.get_legend_handles_labels()[0], *warmth.get_lines()])
