"""What a step of the default trainer costs beside the passes over the data that it needs.

    python -m experiments.step_cost [--device cuda]

A GLN of ten units and two contexts on Gaussian samples with random labels, in float64 and on one
thread. Steps of "annealed" alternate, in one process, with a forward and backward pass of the
same network by autograd, and with one written by hand, without a graph; medians of both and their
ratio. Forward and backward passes a step are counted. Below stand the steps of every trainer that
takes such a network.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable

import click
import numpy as np
import torch
from torch import Tensor

from implicit_bias import GLN, HyperplaneContexts
from implicit_bias._support.words import TrainerName
from implicit_bias.networks.placed_data import GatedData, place_data
from implicit_bias.training.network_stack import SingleNetwork
from implicit_bias.training.settings import TrainingSettings
from implicit_bias.training.trainers import make_stepper

UNITS, CONTEXTS = 10, 2
# Steps before anything is timed: the memory is full, and the temperature falls.
WARM = 300
# The methods that take such a network.
TRAINERS: tuple[TrainerName, ...] = ("constant", "normalised", "momentum", "annealed")
ROUNDS, AT_ONCE = 40, 8


class Counted(SingleNetwork):
    """One network, with its passes counted."""

    forward = backward = 0

    def scores(self, batch: GatedData) -> Tensor:
        """Return the scores (1, n), and count the pass."""
        self.forward += 1
        return super().scores(batch)

    def vjp(self, scores: Tensor, coefficients: Tensor, *, keep: bool = False) -> list[Tensor]:
        """Return the gradients in the weights, and count the pass."""
        self.backward += 1
        return super().vjp(scores, coefficients, keep=keep)


def by_autograd(network: GLN, data: GatedData) -> Callable[[], object]:
    """Scores of a network and their gradient, as autograd has it."""
    weights = list(network.parameters())

    def passes() -> object:
        scores = network(data.X, data.gates)
        pull = -data.y * torch.softmax(-data.y * scores.detach(), dim=0)
        return torch.autograd.grad(scores, weights, pull)

    return passes


def by_hand(network: GLN, data: GatedData) -> Callable[[], object]:
    """The same without a graph: two products with the inputs, and what lies between."""
    w1, head = network.w1.detach().flatten(0, 1), network.head().detach()
    assert data.gates is not None
    chosen = data.gates.T[:, None]
    shape = (UNITS, CONTEXTS, len(data.y))

    def passes() -> object:
        hidden = (w1 @ data.X.T).view(shape).gather(1, chosen)[:, 0]
        pull = -data.y * torch.softmax(-data.y * (head @ hidden), dim=0)
        back = hidden.new_zeros(shape).scatter_(1, chosen, (head[:, None] * pull)[:, None])
        return back.view(-1, len(data.y)) @ data.X, hidden @ pull

    return passes


def wait(device: str) -> None:
    """Wait until a device has done all that it was told to."""
    if device != "cpu":
        torch.accelerator.synchronize(device)


def problem(n: int, n_inputs: int, device: str) -> tuple[GLN, GatedData]:
    """A network and its samples."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n, n_inputs)), np.sign(rng.normal(size=n))
    contexts = HyperplaneContexts(UNITS, CONTEXTS, random_state=1).fit_transform(X)
    network = GLN(n_inputs, UNITS, CONTEXTS, random_state=1, device=device)
    return network, place_data(network, X, y, contexts)


def by_trainers(n: int, n_inputs: int, device: str) -> str:
    """Microseconds a step of every trainer, in a line."""
    parts = []
    for name in TRAINERS:
        network, data = problem(n, n_inputs, device)
        rate = 0.01 if name == "constant" else None
        settings = TrainingSettings(trainer=name, batch_size=0, schedule=((1, rate),))
        stepper = make_stepper(SingleNetwork(network), settings, n)
        seconds = []
        for done in range(ROUNDS + 5):
            wait(device)
            start = time.perf_counter()
            for _ in range(AT_ONCE):
                stepper.step(data, rate)
            stepper.settle()
            wait(device)
            if done >= 5:
                seconds.append((time.perf_counter() - start) / AT_ONCE)
        parts.append(f"{name} {1e6 * statistics.median(seconds):.0f} us")
    return f"n = {n}, {n_inputs} inputs, a step: {', '.join(parts)}"


def measure(n: int, n_inputs: int, device: str) -> str:
    """One size, in a line."""
    network, data = problem(n, n_inputs, device)
    runs = Counted(network)
    settings = TrainingSettings(trainer="annealed", schedule=((1, None),))
    stepper = make_stepper(runs, settings, n)
    timed = {
        "step": lambda: stepper.step(data, None),
        "autograd": by_autograd(network, data),
        "by hand": by_hand(network, data),
    }
    for _ in range(WARM):
        timed["step"]()
    runs.forward = runs.backward = 0
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(ROUNDS):
        for name, run in timed.items():
            wait(device)
            start = time.perf_counter()
            for _ in range(AT_ONCE):
                run()
            wait(device)
            seconds[name].append((time.perf_counter() - start) / AT_ONCE)
    step, autograd, hand = (statistics.median(seconds[name]) for name in timed)
    steps = ROUNDS * AT_ONCE
    return (
        f"n = {n}, {n_inputs} inputs: {runs.forward / steps:.2f} forward and "
        f"{runs.backward / steps:.2f} backward passes a step; {1e6 * step:.0f} us, "
        f"{step / autograd:.2f} x autograd's passes, {step / hand:.2f} x those by hand"
    )


@click.command()
@click.option("--inputs", type=int, multiple=True, default=(65, 785), show_default=True)
@click.option("--samples", type=int, multiple=True, default=(500, 2000), show_default=True)
@click.option("--device", default="cpu", show_default=True)
def main(inputs: tuple[int, ...], samples: tuple[int, ...], device: str) -> None:
    """Time steps beside the passes in them."""
    torch.set_num_threads(1)
    click.echo(
        f"{platform.machine()}, {platform.processor() or 'processor unnamed'}, "
        f"Python {platform.python_version()}, torch {torch.__version__}, one thread, {device}"
    )
    for n_inputs in inputs:
        for n in samples:
            click.echo(measure(n, n_inputs, device))
            click.echo(by_trainers(n, n_inputs, device))


if __name__ == "__main__":
    main()
