"""Which certified local optimum do trainers, widths and scales of the start reach?

    python -m experiments.relu_limits --out experiments/results

One row a data set, trainer, width, scale and start: the value of the network after half its steps
and after all, that of the local optimum next to it at both, its status, gap and angle, beside the
least norm of all widths. `relu_limits.csv`, in some minutes; rows that are there are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import implicit_bias as ib

from .tables import begun, keep_rows

KEY = ("data", "trainer", "width", "scale", "seed")
STEPS = {"momentum": 3000, "annealed": 3000, "smoothed": 3000}
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
# Trainers at one width and scale; then widths, then scales, of one trainer.
GRID = [
    *((trainer, 24, 0.3) for trainer in STEPS),
    *(("annealed", width, 0.3) for width in (8, 96)),
    *(("annealed", 24, scale) for scale in (0.01, 1.0)),
]


def row(
    data: str, trainer: Any, width: int, scale: float, seed: int, best: float
) -> dict[str, Any]:
    """Train one network, and find the local optimum next to it at half of the steps and the end."""
    X, y = DATA[data]()
    network = ib.ReLU(X.shape[1], width, init="kaiming", init_scale=scale, random_state=seed)
    half: list[Any] = []

    def keep(step: int, n_steps: int, log_loss: float) -> None:
        if 2 * step >= n_steps and not half:
            half.append(copy.deepcopy(network))

    settings = ib.TrainingSettings(trainer=trainer, schedule=((STEPS[trainer], None),))
    ib.train(network, X, y, settings=settings, callback=keep)
    then, limit = (
        ib.limits.relu_local_limit(one, X, y, max_patterns=PATTERNS) for one in (half[0], network)
    )
    return {
        "data": data, "trainer": trainer, "width": width, "scale": scale, "seed": seed,
        "value": limit.start_value, "local": limit.value, "status": limit.status.name,
        "gap": limit.gap, "degrees": limit.certificate.smallest_turn, "units": len(limit.units),
        "spare": limit.n_spare, "escape": limit.escape_dual, "kinks": limit.kinks_helping,
        "half_value": then.start_value, "half_local": then.value, "best": best,
        "programs": limit.programs, "seconds": limit.seconds,
    }  # fmt: skip


def rows(data: str, starts: int, done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """The rows of a data set that are not there yet."""
    wanted = [(data, *one, seed) for one in GRID for seed in range(starts)]
    missing = [one for one in wanted if one not in done]
    if not missing:
        return
    best = ib.limits.solve_relu_minnorm(*DATA[data]())
    for one in missing:
        yield row(*one, best.value if best.status.severity == 0 else float("nan"))


@click.command()
@click.option("--starts", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--data", type=click.Choice(sorted(DATA)), multiple=True, help="All if none is given."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write to.")
def main(starts: int, data: tuple[str, ...], out: Path) -> None:
    """Certified local optima next to trained ReLU networks."""
    path = out / "relu_limits.csv"
    table, done = begun(path, KEY)
    before = table.to_dict("records")

    def every() -> Iterator[dict[str, Any]]:
        yield from before
        for name in data or DATA:
            yield from rows(name, starts, done)

    keep_rows(every(), path, digits=".6g")


if __name__ == "__main__":
    main()
