"""The exact tangent kernel layer by layer, beside the same from the gradients of single samples.

    python -m experiments.kernel_speed --out experiments/results

200 samples, six layers of weights, 200 units each, in one process: least times of both ways, their
ratio, how far the kernels differ, and the memory of the gradients. One row, `kernel_speed.csv`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import implicit_bias as ib

from .spectra import Array, machine
from .tables import Kept, out_folder


def jacobian(network: Any, X: Array, gates: Any) -> Any:
    """(n, weights) gradients of the scores, one sample at a time and all together."""
    import torch
    from torch.func import functional_call, jacrev, vmap

    weights = {name: p.detach() for name, p in network.named_parameters()}

    def score(given: Any, x: Any, g: Any) -> Any:
        return functional_call(network, given, (x[None], g[None]))[0]

    each = vmap(jacrev(score), (None, 0, 0))(weights, torch.tensor(X), network.prepare(gates))
    return torch.cat([part.flatten(1) for part in each.values()], dim=1)


def least(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest call, and what it returns."""
    times, found = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        found = function()
        times.append(time.perf_counter() - start)
    return min(times), found


def row(n: int, width: int, depth: int, repeats: int) -> dict[str, Any]:
    """Both ways to one kernel."""
    widths, inputs = (width,) * (depth - 1), 20
    X = np.random.default_rng(0).normal(size=(n, inputs))
    network = ib.DGN(inputs, widths=widths, random_state=0)
    gates = ib.gates.LinearGates(inputs, widths=widths).fit(X).transform(X)

    def by_gradients() -> Any:
        J = jacobian(network, X, gates)
        return (J @ J.T).numpy(), J.numel()

    seconds, K = least(lambda: ib.kernels.empirical_ntk(network, X, gates), 3 * repeats)
    slow, (other, entries) = least(by_gradients, repeats)
    return {
        "n": n, "width": width, "depth": depth, "layerwise_seconds": seconds,
        "jacobian_seconds": slow, "ratio": slow / seconds,
        "difference": float(np.abs(K - other).max() / np.abs(K).max()),
        "jacobian_megabytes": entries * 8 / 1e6,
    }  # fmt: skip


@click.command()
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@out_folder
def main(repeats: int, out: Path) -> None:
    """Time the tangent kernel both ways."""
    click.echo(machine())
    found = row(200, 200, 6, repeats)
    Kept(out / "kernel_speed.csv", float_format="%.4g").add([found])
    click.echo(", ".join(f"{name} {value:.4g}" for name, value in found.items()))


if __name__ == "__main__":
    main()
