"""Networks that torch.compile has made: trained by every method, to the same weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.training import TRAINERS
from tests.long import some_of

# What the default backend hands over to a compiler of C++, which not every machine has.
BACKEND = "aot_eager"
RNG = np.random.default_rng(3)
N, D, H = 24, 5, 4
X = RNG.normal(size=(N, D))
Y = np.where(X @ np.arange(1.0, D + 1) > 0, 1.0, -1.0)
STEPS = 20
OF_EVERY_TRAINER = "sequential"
OF_EVERY_NETWORK = ("annealed", "constant", "dual", "momentum", "smoothed")
CONTEXTS = RNG.integers(0, 2, size=(N, H))


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def sequential() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.Linear(D, 6, bias=False), torch.nn.ReLU(), torch.nn.Linear(6, 1, bias=False)
    network = torch.nn.Sequential(*layers).double()
    network.degree = 2
    return network


def linear() -> torch.nn.Module:
    torch.manual_seed(0)
    network = torch.nn.Linear(D, 1, bias=False).double()
    network.degree = 1
    return network


NETWORKS: dict[str, tuple[Callable[[], torch.nn.Module], np.ndarray | None]] = {
    "linear": (linear, None),
    "sequential": (sequential, None),
    "relu": (lambda: ib.ReLU(D, H), None),
    "gln": (lambda: ib.GLN(D, H, 2), CONTEXTS),
}


def settings(trainer: str) -> ib.TrainingSettings:
    rate = 0.05 if trainer == "constant" else None
    return ib.TrainingSettings(
        trainer=trainer, batch_size=0, schedule=((STEPS, rate),), n_checkpoints=4
    )


# Every trainer with a module of a user's own, and every network with those that look at scores in
# three ways: by their gradient, along a line, and on the sphere.
PAIRS = [
    (name, trainer)
    for name in sorted(NETWORKS)
    for trainer in sorted(TRAINERS)
    if name == OF_EVERY_TRAINER or trainer in OF_EVERY_NETWORK
]


@pytest.mark.parametrize(("name", "trainer"), some_of(PAIRS, one_in=3))
def test_every_trainer_takes_a_compiled_network_where_it_takes_it_as_it_is(name, trainer) -> None:
    make, gates = NETWORKS[name]
    elsewhere = {"dual": name != "linear", "smoothed": name != "relu", "newton": True}
    if elsewhere.get(trainer):  # newton minimises losses that have a least value
        with pytest.raises(ValueError, match=f"trainer '{trainer}'"):
            ib.train(
                torch.compile(make(), backend=BACKEND), X, Y, gates, settings=settings(trainer)
            )
        return
    network, expected = make(), make()
    compiled = torch.compile(network, backend=BACKEND)
    found = ib.train(compiled, X, Y, gates, settings=settings(trainer))
    trajectory = ib.train(expected, X, Y, gates, settings=settings(trainer))
    for one, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)
    assert found.log_loss == pytest.approx(trajectory.log_loss, rel=1e-6)
    assert found.log_loss[-1] < found.log_loss[0]


def test_what_was_compiled_computes_the_scores_of_every_step() -> None:
    calls: list[int] = []

    def counting(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            calls.append(1)
            return graph(*arguments)

        return run

    ib.train(
        torch.compile(sequential(), backend=counting), X, Y, None, settings=settings("constant")
    )
    assert len(calls) >= STEPS


@pytest.mark.parametrize("how", ["module", "in place", "a part"])
@pytest.mark.parametrize("optimiser", ["Annealed", "Momentum", "Normalised", "Dual"])
def test_every_optimiser_takes_compiled_networks(optimiser, how) -> None:
    network = linear() if optimiser == "Dual" else sequential()
    expected = copy.deepcopy(network)
    called = network
    if how == "module":
        called = torch.compile(network, backend=BACKEND)
    elif how == "in place":
        network.compile(backend=BACKEND)
    elif optimiser != "Dual":
        network[0].compile(backend=BACKEND)
    inputs, labels = torch.tensor(X), torch.tensor(Y)
    further = {} if optimiser == "Dual" else {"degree": 2}
    results = []
    for one, trained in ((called, network), (expected, expected)):
        method = getattr(ib.optim, optimiser)(trained.parameters(), n_samples=N, **further)
        for _ in range(12):
            margins = method.step(lambda one=one: labels * one(inputs).flatten())
        results.append(margins)
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-8)


def test_measurements_take_compiled_networks() -> None:
    network = sequential()
    compiled = torch.compile(network, backend=BACKEND)
    ib.train(compiled, X, Y, None, settings=settings("annealed"))
    found, expected = (ib.kkt_distance(one, X, Y, None) for one in (compiled, network))
    assert found.to_dict() == expected.to_dict()


def test_compiled_networks_train_side_by_side_as_those_that_they_were_made_of() -> None:
    networks = [sequential(), sequential()]
    compiled = [torch.compile(copy.deepcopy(one), backend=BACKEND) for one in networks]
    found = ib.train_many(compiled, X, Y, None, settings=settings("momentum"))
    expected = ib.train_many(networks, X, Y, None, settings=settings("momentum"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.log_loss, other.log_loss)
