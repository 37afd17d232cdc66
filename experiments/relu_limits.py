"""Which certified local optimum do trainers, widths, scales of the start and batches reach?

    python -m experiments.relu_limits --out experiments/results

One row a data set, trainer, width, scale, batch size and start: the value of the network after some
shares of its steps and after all, that of the local optimum next to it at each, its status, gap and
angle, beside the least norm of all widths and that of SVM-LC, the group lasso on the gates that the
network has learned. `relu_limits.csv` and `relu_limits.png`, in some minutes; rows that are there
are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib

from .interrupts import finished
from .tables import Kept, keep_rows, out_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY = ("data", "trainer", "width", "scale", "batch", "seed")
# Steps and their length; that of most trainers is their own.
STEPS: dict[str, tuple[int, float | None]] = {
    "constant": (10_000, 0.03),
    "momentum": (3000, None),
    "annealed": (3000, None),
    "smoothed": (3000, None),
}
SHARES = (1, 3, 10, 25, 50)
"""Per cent of the steps after which the local optimum is found as well."""
PATTERNS = 2**20


def random() -> tuple[np.ndarray, np.ndarray]:
    """Thirty normal points in eight dimensions, labels at random."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    return X, np.sign(rng.normal(size=30))


def plane() -> tuple[np.ndarray, np.ndarray]:
    """Forty points of a square, by whether they are in a diamond, with a constant column."""
    points = np.random.default_rng(1).uniform(-1, 1, (40, 2))
    y = np.where(np.abs(points).sum(axis=1) < 0.8, 1.0, -1.0)
    return np.column_stack([points, np.ones(40)]), y


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Sixty bundled digits."""
    data = ib.load_digits(n_train=60, random_state=0)
    return data.X_train, data.y_train


DATA = {"random": random, "plane": plane, "digits": digits}
# Trainers at one width and scale; then widths, then scales, of one trainer; then batches. 0: all.
GRID = [
    *((trainer, 24, 0.3, 0) for trainer in STEPS),
    *(("annealed", width, 0.3, 0) for width in (8, 96)),
    *(("annealed", 24, scale, 0) for scale in (0.01, 1.0)),
    *(("constant", 24, 0.3, batch) for batch in (5, 1)),
]


def row(
    data: str, trainer: Any, width: int, scale: float, batch: int, seed: int, best: float
) -> dict[str, Any]:
    """Train one network, and find the local optimum next to it on the way and at the end."""
    X, y = DATA[data]()
    network = ib.ReLU(X.shape[1], width, init="kaiming", init_scale=scale, random_state=seed)
    kept: dict[int, ib.ReLU] = {}

    def keep(step: int, n_steps: int, log_loss: float) -> None:
        for share in SHARES:
            if 100 * step >= share * n_steps and share not in kept:
                kept[share] = copy.deepcopy(network)

    settings = ib.TrainingSettings(
        trainer=trainer, batch_size=batch, schedule=(STEPS[trainer],), random_state=seed,
        momentum=0.9 if trainer == "constant" else 0.0,
    )  # fmt: skip
    finished(ib.train(network, X, y, settings=settings, callback=keep))
    limit = ib.limits.relu_local_limit(network, X, y, max_patterns=PATTERNS)
    # Values alone: no bound of all widths is looked for.
    then = {
        share: ib.limits.relu_local_limit(kept[share], X, y, max_patterns=1) for share in SHARES
    }
    machine = ib.solve_frelu_svm(X, y, network.gates(X))
    return {
        "data": data, "trainer": trainer, "width": width, "scale": scale, "batch": batch,
        "seed": seed, "value": limit.start_value, "local": limit.value,
        "status": limit.status.name, "gap": limit.gap, "degrees": limit.certificate.smallest_turn,
        "units": len(limit.units), "spare": limit.n_spare, "escape": limit.escape_dual,
        "kinks": limit.kinks_helping, "best": best, "machine": machine.objective,
        "machine_status": machine.status.name,
        **{f"value_{share}": one.start_value for share, one in then.items()},
        **{f"local_{share}": one.value for share, one in then.items()},
        "programs": limit.programs, "seconds": limit.seconds,
    }  # fmt: skip


def rows(data: str, starts: int, done: Container[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """The rows of a data set that are not there yet."""
    wanted = [(data, *one, seed) for one in GRID for seed in range(starts)]
    missing = [one for one in wanted if one not in done]
    if not missing:
        return
    best = ib.limits.solve_relu_minnorm(*DATA[data]())
    for one in missing:
        yield row(*one, best.value if best.status.severity == 0 else float("nan"))


def draw(frame: pd.DataFrame) -> Figure:
    """Local optima over the best of all widths, and how early each is next to the network."""
    from matplotlib.figure import Figure

    from implicit_bias.runs.drawing import BLUE, GREEN, ORANGE, VERMILLION

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    reached, decided, far = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    found = frame[frame.status != "FAILED"]
    colours = dict(zip(DATA, (BLUE, ORANGE, GREEN), strict=True))
    for height, (trainer, width, scale, batch) in enumerate(GRID):
        same = (found.trainer == trainer) & (found.width == width) & (found.batch == batch)
        for name, colour in colours.items():
            here = found[same & (found.scale == scale) & (found.data == name)]
            above = 100 * (here.local / here.best - 1).clip(lower=0)
            reached.plot(
                above, np.full(len(here), height), "o", color=colour, alpha=0.6,
                label=name if height == 0 else None,
            )  # fmt: skip
    reached.set_yticks(range(len(GRID)), [_setting(*one) for one in GRID], fontsize="small")
    reached.set_ylim(len(GRID) - 0.5, -0.5)
    reached.set_xscale("symlog", linthresh=0.01)
    reached.set_xticks([0, 0.01, 0.1, 1, 10], ["0", "0.01", "0.1", "1", "10"])
    reached.set_xlim(-0.003, 50)
    reached.set_xlabel("local optimum above the least of all widths, %")
    reached.legend(frameon=False, fontsize="small", title="data")
    ticks = (*SHARES, 100)
    full = found[(found.width == 24) & (found.scale == 0.3) & (found.batch == 0)]
    for trainer, colour in zip(STEPS, (VERMILLION, ORANGE, BLUE, GREEN), strict=True):
        here = full[full.trainer == trainer]
        at = np.column_stack([*(here[f"local_{share}"] for share in SHARES), here.local])
        values = np.column_stack([*(here[f"value_{share}"] for share in SHARES), here.value])
        decided.plot(ticks, 100 * same_optimum(at, at[:, -1:]).mean(axis=0), "o-", color=colour)
        middle = np.median(100 * (values / at[:, -1:] - 1), axis=0)
        shown = np.where(np.isfinite(middle), middle, np.nan)
        far.plot(ticks, shown, "o-", color=colour, label=trainer)
    decided.set_ylabel("networks next to the optimum of the end, %")
    decided.set_ylim(-3, 103)
    far.set_ylabel("network above the optimum of the end, %, median")
    far.set_yscale("log")
    far.legend(frameon=False, fontsize="small", title="trainer")
    for axes in (decided, far):
        axes.set_xscale("log")
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("steps, % of all")
    return figure


def same_optimum(values: np.ndarray, end: np.ndarray) -> np.ndarray:
    """True where a local optimum has the value of that of the end, to a millionth."""
    return np.asarray(np.isfinite(values) & (np.abs(values - end) <= 1e-6 * end))


def _setting(trainer: str, width: int, scale: float, batch: int) -> str:
    """Name a row of the picture by what is not as in the others."""
    parts = [trainer]
    parts += [f"{width} units"] * (width != 24) + [f"scale {scale:g}"] * (scale != 0.3)
    return ", ".join(parts + [f"batches of {batch}"] * (batch > 0))


@click.command()
@click.option("--starts", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--data", type=click.Choice(sorted(DATA)), multiple=True, help="All if none is given."
)
@out_folder
def main(starts: int, data: tuple[str, ...], out: Path) -> None:
    """Write certified local optima next to trained ReLU networks, and their picture."""
    kept = Kept(out / "relu_limits.csv", KEY)
    missing = (one for name in data or DATA for one in rows(name, starts, kept))
    keep_rows(missing, kept, digits=".6g")
    draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
