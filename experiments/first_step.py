"""The first step of a deep linear network on one sample, predicted by the moments of its kernel.

    python -m experiments.first_step --full --out experiments/results

The published setting: (x, y) = (1, 1), width 100, weights of variance 1 / w, rate 0.1 / d on half
the squared error. A constant kernel of its mean d would leave the share 0.81 of the squared error
after one step. One row a depth, over many draws of signs: the share that the network has after a
step, the mean and variance of K_0 as measured and as `ntk_moments` has them, the variance as it was
published, and K / d after ten further steps. `first_step.csv`, in seconds.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

import implicit_bias as ib

from .interrupts import finished
from .spectra import machine, printed_variance, scores
from .tables import Kept, out_folder, sizes

WIDTH, LATER = 100, 11


def one_draw(depth: int, width: int, seed: int) -> tuple[float, float, float]:
    """K_0, squared error after a step over that before, and K after `LATER` steps."""
    widths = (width,) * (depth - 1)
    network = ib.DGN(1, widths=widths, gate_rate=1.0, random_state=seed)
    X, y, gates = np.ones((1, 1)), np.ones(1), np.ones((1, sum(widths)))
    kernels, errors = [], []
    for steps in (1, LATER - 1):
        kernels.append(float(ib.kernels.empirical_ntk(network, X, gates)[0, 0]))
        errors.append(float(scores(network, X, gates)[0]) - 1.0)
        settings = ib.TrainingSettings(
            trainer="constant", loss="squared", batch_size=0, n_checkpoints=2,
            schedule=((steps, 0.1 / depth),),
        )  # fmt: skip
        finished(ib.train(network, X, y, gates, settings=settings))
    last = float(ib.kernels.empirical_ntk(network, X, gates)[0, 0])
    return kernels[0], (errors[1] / errors[0]) ** 2, last


def first_kernel(depth: int, width: int, seed: int) -> float:
    """K_0 alone."""
    widths = (width,) * (depth - 1)
    network = ib.DGN(1, widths=widths, gate_rate=1.0, random_state=seed)
    return float(
        ib.kernels.empirical_ntk(network, np.ones((1, 1)), np.ones((1, sum(widths))))[0, 0]
    )


def row(depth: int, width: int, draws: int, kernels: int) -> dict[str, Any]:
    """Means over draws beside what is predicted of them."""
    drawn = np.array([one_draw(depth, width, seed) for seed in range(1, draws + 1)])
    first, share, last = drawn.T
    # The variance of a variance: ten times the draws for the kernel, which needs no training.
    more = [first_kernel(depth, width, seed) for seed in range(draws + 1, kernels + 1)]
    kernel = np.append(first, more)
    widths = (width,) * (depth - 1)
    moments = ib.kernels.ntk_moments(
        [[1.0]], np.ones((1, sum(widths))), widths=widths, variance=1 / width, kurtosis=1.0
    )
    mean, variance = float(moments.mean[0, 0]), float(moments.variance[0, 0])
    return {
        "depth": depth,
        "width": width,
        "draws": draws,
        "kernels": len(kernel),
        "share": float(share.mean()),
        "share_least": float(share.min()),
        "share_largest": float(share.max()),
        "predicted_share": (1 - 0.1 * mean / depth) ** 2 + 0.01 * variance / depth**2,
        "mean": float(kernel.mean()),
        "mean_error": float(kernel.std(ddof=1) / math.sqrt(len(kernel))),
        "predicted_mean": mean,
        "variance": float(kernel.var(ddof=1)),
        "predicted_variance": variance,
        "printed_variance": printed_variance(width, depth),
        "growth": float((last / first).mean()),
    }


@click.command()
@click.option("--width", type=click.IntRange(min=1), default=WIDTH, show_default=True)
@sizes({"draws": 2, "kernels": 2}, draws=(10, 50), kernels=(200, 2000))
@out_folder
def main(width: int, draws: int, kernels: int, out: Path) -> None:
    """One step of deep linear networks, and the moments of their kernels."""
    sized = {"width": width, "draws": draws, "kernels": kernels}
    kept = Kept(out / "first_step.csv", options=sized, float_format="%.6g")
    click.echo(machine())
    for depth in (2, 4, 6, 8, 10):
        one = row(depth, width, draws, kernels)
        kept.add([one])
        click.echo(
            f"depth {depth}: share {one['share']:.3f} ({one['predicted_share']:.3f}), variance "
            f"{one['variance']:.3g} ({one['predicted_variance']:.3g}, published "
            f"{one['printed_variance']:.3g})"
        )


if __name__ == "__main__":
    main()
