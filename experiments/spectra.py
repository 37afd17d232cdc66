"""Spectra of deep gated networks with random gates, and what spoils them, predicted and measured.

    python -m experiments.spectra --full --out experiments/results

The published setting: n = 200 copies of x = 1, targets uniform in [-1, 1], gates open at random
with rate 1/2, weights of random signs and variance 2 / w, widths 25 and 500, rate 0.1 over the
largest eigenvalue of K_0. On average over gates and weights K_0 / d is the `ideal` matrix, which
depth turns into the identity. One row a width, depth and draw compares it with

    gates        the exact mean over the weights behind the gates that were drawn: what finite width
                 costs by gates alone
    predicted    a Wishart matrix of that mean, whose degrees of freedom make the mean square of its
                 eigenvalues the exact one of `ntk_moments`: gates and weights together
    (no prefix)  K_0 of one network

by least, median and largest eigenvalue and by the steps until a tenth of the error is left; for
the first --trained draws the network is trained too, on its targets and on targets that are at 0.01
of the distance from its first scores. `spectra.csv` is written as rows come, `spectra.png`
of all of them in the end; draws that are there are not run again.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib

from .interrupts import finished
from .tables import Kept, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, np.dtype[np.float64]]
RATE, SHARE = 0.5, 0.1
SMALL = 0.01  # of the first errors: so near its targets a network keeps its kernel
# Of a trained network: 25 units in 20 layers take 1 ms a step, so that this is half a minute.
MOST_STEPS = 20_000
KEY = ["width", "depth", "seed"]


@dataclass(frozen=True)
class Case:
    """A network behind random gates, at its start."""

    width: int
    depth: int
    seed: int
    n: int = 200

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,) * (self.depth - 1)

    @property
    def X(self) -> Array:
        return np.ones((self.n, 1))

    def targets(self) -> Array:
        return np.random.default_rng(self.seed).uniform(-1, 1, self.n)

    def gates(self) -> Any:
        gating = ib.gates.RandomGates(widths=self.widths, rate=RATE, random_state=self.seed)
        return gating.fit(self.X).transform(self.X)

    def network(self) -> Any:
        return ib.DGN(1, widths=self.widths, gate_rate=RATE, random_state=self.seed)


def ideal_matrix(n: int, depth: int) -> Array:
    """(n, n) mean of K_0 / d over gates and weights."""
    shared = RATE ** (depth - 1)
    return np.asarray((1 - shared) * np.eye(n) + shared)


def degrees_of_freedom(mean: Array, variance: Array) -> float:
    r"""Of the Wishart matrix K of this mean M with the same :math:`E \operatorname{tr} K^2`.

    With p degrees that is (1 + 1/p) tr M^2 + (tr M)^2 / p, and here tr M^2 + the sum of variances.
    """
    spread, trace = float(variance.sum()), float(np.trace(mean))
    # Signs in two layers have no variance at all but for the rounding of its second moment.
    if spread <= len(mean) * np.finfo(np.float64).eps * trace**2:
        return math.inf
    return (float(np.sum(mean * mean)) + trace**2) / spread


def wishart(mean: Array, degrees: float, rng: np.random.Generator) -> Array:
    """A Wishart matrix over its degrees of freedom: its mean is `mean`."""
    n = len(mean)
    if math.isinf(degrees):
        return mean
    if degrees >= n:  # Bartlett's factor, which needs no whole number
        factor = np.tril(rng.normal(size=(n, n)), -1)
        factor += np.diag(np.sqrt(rng.chisquare(degrees - np.arange(n))))
    else:
        degrees = max(1, round(degrees))
        factor = rng.normal(size=(n, degrees))
    values, vectors = np.linalg.eigh(mean)
    half = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T @ factor
    return np.asarray(half @ half.T / degrees)


def steps_until(regression: Any, share: float = SHARE) -> float:
    """Steps of rate 0.1 over the largest eigenvalue until this share of the error is left."""
    left = share * float(np.linalg.norm(regression.start))
    rate = 0.1 / float(regression.eigenvalues[-1])
    if regression.certificate.remaining > share:
        return math.inf
    low, high = 0, 1
    while np.linalg.norm(regression.after(high, rate)) > left:
        low, high = high, 2 * high
        if high > 2**40:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        above = np.linalg.norm(regression.after(middle, rate)) > left
        low, high = (middle, high) if above else (low, middle)
    return float(high)


def measure(K: Array, y: Array, f0: Array, prefix: str = "") -> dict[str, float]:
    """Least, median and largest eigenvalue, and the steps that a constant kernel K needs."""
    regression = ib.kernels.kernel_regression(K, y, f0)
    values = np.maximum(regression.eigenvalues, 0.0)
    return {
        f"{prefix}least": float(values[0]),
        f"{prefix}median": float(np.median(values)),
        f"{prefix}largest": float(values[-1]),
        f"{prefix}steps": steps_until(regression),
    }


def trained_steps(case: Case, errors: Array, rate: float, most: int) -> tuple[float, float]:
    """Steps to a tenth of these first errors (n,), and how the trace of the kernel grew.

    To 3 %, infinite for more than `most`. In float32, which is half the time and takes nothing from
    errors that are a thousandth of the scores. `rate` is that of half the sum of squares; training
    takes their mean.
    """
    import torch

    X, gates, network = case.X, case.gates(), case.network()
    start = float(np.trace(ib.kernels.empirical_ntk(network, X, gates)))
    y = scores(network, X, gates) - errors
    settings = ib.TrainingSettings(
        trainer="constant", loss="squared", batch_size=0, n_checkpoints=300,
        schedule=((most, rate * case.n),),
    )  # fmt: skip
    run = finished(ib.train(network.to(torch.float32), X, y, gates, settings=settings))
    reached = np.flatnonzero(run.log_loss - run.log_loss[0] <= 2 * math.log(SHARE))
    growth = float(np.trace(ib.kernels.empirical_ntk(network, X, gates))) / start
    return (float(run.step[reached[0]]) if len(reached) else math.inf), growth


def row(case: Case, *, train: bool, most: int = MOST_STEPS) -> dict[str, Any]:
    """Everything about one draw."""
    X, y, gates, d = case.X, case.targets(), case.gates(), case.depth
    network = case.network()
    moments = ib.kernels.ntk_moments(
        X, gates, widths=case.widths, kurtosis=1.0,
        variance=ib.networks.initial_variance(widths=case.widths, gate_rate=RATE),
    )  # fmt: skip
    mean, variance = moments.mean / d, moments.variance / d**2
    K, f0 = ib.kernels.empirical_ntk(network, X, gates) / d, scores(network, X, gates)
    degrees = degrees_of_freedom(mean, variance)
    surrogate = wishart(mean, degrees, np.random.default_rng(case.seed))
    found: dict[str, Any] = {"width": case.width, "depth": d, "seed": case.seed, "n": case.n}
    found |= measure(ideal_matrix(case.n, d), y, f0, "ideal_")
    found |= measure(mean, y, f0, "gates_") | measure(surrogate, y, f0, "predicted_")
    found |= measure(K, y, f0) | {
        "degrees_of_freedom": degrees,
        "mean_square": float(np.sum(K * K) / case.n),
        "predicted_mean_square": float((np.sum(mean * mean) + variance.sum()) / case.n),
        "variance": float(np.mean(np.diag(moments.variance))),
        "printed_variance": printed_variance(RATE * case.width, d),
    }
    found |= dict.fromkeys(
        ("trained_steps", "trained_growth", "small_steps", "small_growth"), math.nan
    )
    if train:
        ahead, rate = int(min(most, 1.2 * found["steps"])), 0.1 / (d * found["largest"])
        for name, scale in (("trained", 1.0), ("small", SMALL)):
            steps, growth = trained_steps(case, scale * (f0 - y), rate, ahead)
            found |= {f"{name}_steps": steps, f"{name}_growth": growth}
    return found


def printed_variance(width: float, depth: int) -> float:
    """The published order of an entry's variance, for as many open units in every layer."""
    return max(depth**2 / width, depth**3 / width**2)


def scores(network: Any, X: Array, gates: Any) -> Array:
    """(n,) of the network as it is."""
    import torch

    with torch.no_grad():
        placed = None if gates is None else network.prepare(gates)
        return np.asarray(network(torch.tensor(X), placed).numpy(), dtype=np.float64)


LINES: Mapping[str, tuple[str, str]] = {
    "ideal_": ("ideal", "k:"),
    "gates_": ("exact mean behind these gates", "C0--"),
    "predicted_": ("with the exact variance", "C1-"),
    "": ("measured", "C3o"),
}


def draw(rows: pd.DataFrame) -> Figure:
    """Least eigenvalues and steps over the depth, a row of panels a width; variances."""
    from matplotlib.figure import Figure

    widths = sorted(rows["width"].unique())
    figure = Figure(figsize=(13, 3.6 * len(widths)), layout="constrained")
    panels = figure.subplots(len(widths), 3, squeeze=False)
    for width, (least, steps, variances) in zip(widths, panels, strict=True):
        own = rows[rows["width"] == width]
        _over_depth(least, own, "least", floor=1e-4)
        _over_depth(steps, own, "steps", floor=1)
        steps.plot(own["depth"], own["trained_steps"], "C2x", ms=8, label="trained network")
        steps.plot(own["depth"], own["small_steps"], "k+", ms=8, label="trained, errors times 0.01")
        for ax in (least, steps, variances):
            ax.set_xticks(sorted(set(own["depth"])))
        least.set(ylabel="least eigenvalue of K_0 / d (at least 1e-4)", title=f"width {width}")
        steps.set(ylabel="steps to a tenth of the error")
        deep = own[own["depth"] > 2]  # signs in two layers have no variance
        mean = (deep["variance"] / deep["printed_variance"]).groupby(deep["depth"]).mean()
        variances.plot(mean.index, mean, "C1o-")
        variances.set(xlabel="depth", yscale="log", ylabel="exact variance / published bound")
    panels[-1][0].legend(frameon=False, fontsize="small")
    panels[-1][1].legend(frameon=False, fontsize="small")
    figure.suptitle(
        f"random gates on {rows['n'].iloc[0]} copies of x = 1, {rows['seed'].nunique()} draws"
    )
    return figure


def _over_depth(panel: Axes, rows: pd.DataFrame, name: str, floor: float) -> None:
    """Medians over draws of what is predicted, every draw that is measured."""
    for prefix, (label, style) in LINES.items():
        one = rows if prefix == "" else rows.groupby("depth", as_index=False).median()
        values = one[prefix + name].clip(lower=floor).replace(math.inf, math.nan)
        panel.plot(one["depth"], values, style, ms=4, label=label)
    panel.set(xlabel="depth", yscale="log")


def machine() -> str:
    """What rows were made on."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}"
    )


@click.command()
@click.option(
    "--width", "widths", type=click.IntRange(min=1), multiple=True, default=(25, 500),
    show_default=True,
)  # fmt: skip
@click.option(
    "--depth", "depths", type=click.IntRange(min=2), multiple=True,
    default=(2, 4, 6, 8, 12, 16, 20), show_default=True,
)  # fmt: skip
@sizes({"trained": 0}, draws=(2, 11), trained=(0, 5))
@out_folder
def main(
    widths: tuple[int, ...], depths: tuple[int, ...], draws: int, trained: int, out: Path
) -> None:
    """Spectra of tangent kernels behind random gates beside what their moments predict."""
    click.echo(machine())
    kept = Kept(out / "spectra.csv", KEY, float_format="%.6g")
    cases = [Case(w, d, s) for s in range(1, draws + 1) for w in widths for d in depths]
    cases.sort(key=lambda case: case.seed <= trained)  # what takes long comes last
    for case in cases:
        others, train = kept.table, case.seed <= trained
        if (case.width, case.depth, case.seed) in kept:
            own = (others[KEY] == [case.width, case.depth, case.seed]).all(axis=1)
            if not train or others[own]["trained_steps"].notna().all():
                continue
            others = others[~own]  # of a draw that was measured, and is to be trained too
        one = row(case, train=train)
        table = pd.concat([others, pd.DataFrame([one])]) if len(others) else pd.DataFrame([one])
        kept.replace(table.sort_values(KEY, ignore_index=True))
        click.echo(
            f"{case}: least {one['least']:.4f} (ideal {one['ideal_least']:.4f}, gates "
            f"{one['gates_least']:.4f}, predicted {one['predicted_least']:.4f}), steps "
            f"{one['steps']:.0f} (predicted {one['predicted_steps']:.0f}, trained "
            f"{one['trained_steps']:.0f})"
        )
    draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
