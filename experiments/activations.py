"""Which units localise: the mean of K units by ReLU, erf and sigmoid, on a ring of two lengths.

    python -m experiments.activations --full --out experiments/results

The notes on gated deep linear networks report, without numbers, that units of erf and sigmoid come
out alike, and that ReLU units localise if the positive class has the longer length scale and
oscillate otherwise, without biases too, which sigmoids need. y = mean_k s(w_k x + b_k) + c, all of
w, b and c trained by full batches on the squared loss, or w alone at b = c = 0. ReLU units are also
trained where the process is nearly binary (gain 100 and not 3), on five times as many samples. One
row a unit, `activations.csv`, and the picture, `activations.png`:

    loss             of its network at the end; 1/8 is that of the constant 1/2
    bias             of the unit. erf(-u) = -erf(u), and sigmoid(-u) = 1 - sigmoid(u): networks of
                     exchanged classes are mirror images, and signs of biases tell the kinds apart
    localisation     sum w^4 / (sum w^2)^2; 3 / (D + 2) = 0.071 for noise, 1.5 / D for a wave
    fast             share of power at wavelengths of at most four inputs; about a half for noise
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from implicit_bias.models.gdln import inverse_participation_ratio, make_nlgp

from .tables import Kept, keep_rows, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "erf": lambda u: torch.erf(u / math.sqrt(2)),
    "sigmoid": torch.sigmoid,
}
ORDERS = ((5.0, 1.0), (1.0, 5.0))
# Activation, with biases b and c or without, gain of the process, and samples over `SAMPLES`.
CASES = (
    ("relu", True, 3.0, 1), ("relu", True, 100.0, 5), ("erf", True, 3.0, 1),
    ("sigmoid", True, 3.0, 1), ("relu", False, 3.0, 1), ("sigmoid", False, 3.0, 1),
)  # fmt: skip
INPUTS, UNITS, SAMPLES, STEPS, SEEDS = 40, 8, 4000, 2500, 3
# Steps of units, whose mean divides gradients by their number, and of the constant.
RATE, CONSTANT_RATE = {"relu": 2.0, "erf": 2.0, "sigmoid": 20.0}, 0.5


@dataclass(frozen=True, eq=False)
class Units:
    """Weights w (K, D), biases b (K,) and a constant c: y = mean_k s(w_k x + b_k) + c."""

    w: Tensor
    b: Tensor
    c: Tensor

    @classmethod
    def random(cls, seed: int, *, biases: bool = True) -> Units:
        rng = np.random.default_rng(seed)
        w = torch.tensor(0.1 / math.sqrt(INPUTS) * rng.normal(size=(UNITS, INPUTS)))
        b = torch.tensor(0.1 * biases * rng.normal(size=UNITS))
        return cls(w, b, torch.zeros((), dtype=w.dtype))


def train(
    name: str, start: Units, X: np.ndarray, y: np.ndarray, *, steps: int, biases: bool = True
) -> tuple[Units, float]:
    """Units after so many steps, and the loss that they began the last one with.

    Without `biases` b and c stay.
    """
    inputs, targets = torch.tensor(X), torch.tensor(y)
    w, b, c = (one.clone().requires_grad_() for one in (start.w, start.b, start.c))
    optimizer = torch.optim.SGD([
        {"params": [w, b] if biases else [w], "lr": RATE[name]},
        {"params": [c] if biases else [], "lr": CONSTANT_RATE},
    ])  # fmt: skip
    loss = torch.zeros(())
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = ACTIVATIONS[name](inputs @ w.T + b).mean(1) + c
        loss = 0.5 * torch.mean((outputs - targets) ** 2)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return Units(w.detach(), b.detach(), c.detach()), float(loss.detach())


def fast_share(w: np.ndarray) -> float:
    """Share of the power of weights (..., D) on a ring at wavelengths of at most four inputs."""
    power = np.abs(np.fft.fft(w)) ** 2
    return float(power[..., np.abs(np.fft.fftfreq(w.shape[-1])) >= 0.25].sum() / power.sum())


def rows(
    seeds: int = SEEDS, *, samples: int = SAMPLES, steps: int = STEPS
) -> Iterator[dict[str, Any]]:
    for name, biases, gain, factor in CASES:
        for order in ORDERS:
            for seed in range(seeds):
                data = make_nlgp(
                    factor * samples, xi_1=order[0], xi_0=order[1], gain=gain, random_state=seed
                )
                start = Units.random(seed, biases=biases)
                found, loss = train(name, start, data.X, data.y, steps=steps, biases=biases)
                for k, (w, bias) in enumerate(zip(found.w.numpy(), found.b.tolist(), strict=True)):
                    yield {
                        "activation": name, "biases": biases, "gain": gain,
                        "samples": factor * samples, "xi_1": order[0], "xi_0": order[1],
                        "seed": seed, "unit": k, "loss": loss, "bias": bias,
                        "localisation": float(inverse_participation_ratio(w)),
                        "fast": fast_share(w), "norm": float(np.linalg.norm(w)),
                        "weights": " ".join(f"{x:.3g}" for x in w) if seed == 0 else "",
                    }  # fmt: skip


def draw(table: pd.DataFrame) -> Figure:
    """The largest unit of the first seed on either side of a bias of 0, as far as there is one.

    Of ReLU networks without biases the largest unit; sigmoid ones learn nothing.
    """
    from matplotlib.figure import Figure

    shown = [one for one in CASES if one[:2] != ("sigmoid", False)]
    figure = Figure(figsize=(17, 5.8), layout="constrained")
    axes = figure.subplots(len(ORDERS), len(shown))
    first = table[table.seed == 0]
    for line, order in zip(axes, ORDERS, strict=True):
        for ax, (name, biases, gain, _) in zip(line, shown, strict=True):
            here = first[(first.activation == name) & (first.gain == gain)]
            here = here[(here.xi_1 == order[0]) & (here.biases == biases)]
            sides = {
                "bias > 0": here.bias > 0,
                "bias < 0": here.bias < 0,
                "no bias": here.bias == 0,
            }
            for said, side in ((said, here[which]) for said, which in sides.items()):
                if len(side):
                    largest = side.loc[side.norm.idxmax()]
                    ax.plot(np.array(largest.weights.split(), dtype=float), label=said)
            ax.axhline(0, color="0.8", zorder=0)
            ax.legend(frameon=False, fontsize=8)
            ax.set(xlabel="input on the ring", ylabel="weight",
                   title=f"{name}, gain {gain:g}, {here.samples.iloc[0]:,} samples\n"
                         f"lengths {order[0]:g} (y = 1), {order[1]:g} (y = 0)")  # fmt: skip
    figure.suptitle(
        "nonlinear Gaussian process on a ring: largest units with either sign of the bias, seed 0"
    )
    return figure


@click.command()
@sizes(seeds=(1, SEEDS), steps=(500, STEPS))
@out_folder
def main(seeds: int, steps: int, out: Path) -> None:
    """Train the units, and write what became of them."""
    kept = Kept(out / "activations.csv", options={"seeds": seeds, "steps": steps})
    keep_rows(rows(seeds, steps=steps), kept, digits=".3g")
    draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
