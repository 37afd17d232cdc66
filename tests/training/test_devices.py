"""What steps ask of the device that the weights are on: nothing, or a few numbers at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from implicit_bias import GLN, DeepLinear, TrainingSettings, train
from implicit_bias.training import (
    AnnealedLBFGS,
    GatedData,
    LineSearchDescent,
    SingleNetwork,
    StackedNetworks,
    make_stepper,
    place_data,
)
from tests.commands import home
from tests.long import some_of

N, D, H, C = 40, 6, 5, 2
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D))
Y = np.where(X @ np.arange(1.0, D + 1) > 0.3, 1.0, -1.0)
CONTEXTS = RNG.integers(0, C, size=(N, H))
BLOCK = home(LineSearchDescent).BLOCK
STEPS = 80
READS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default,
         torch.ops.aten.masked_select.default)  # fmt: skip


INDEXED = (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default)


class Reads(TorchDispatchMode):
    """Counts operations whose outcome the host waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        masked = func in INDEXED and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        self.count += func in READS or masked
        return func(*args, **(kwargs or {}))


def test_the_counter_sees_what_a_device_would_be_asked() -> None:
    with Reads() as reads:
        values = torch.arange(4.0)
        bool((values > 1).all())
        float(values.sum())
        values[values > 2]
    assert reads.count >= 3


def settings(trainer: str, steps: int) -> TrainingSettings:
    rate = 0.1 if trainer == "constant" else None
    return TrainingSettings(trainer=trainer, batch_size=0, schedule=((steps, rate),))


def stepper(trainer: str, network: torch.nn.Module, n_samples: int) -> Any:
    return make_stepper(SingleNetwork(network), settings(trainer, 1), n_samples)


IN_A_NORM = ("sign", "spectral", "coordinate", "signum", "muon", "adam", "lion")


@pytest.mark.parametrize("trainer", ["constant", "dual", "momentum", "normalised", *IN_A_NORM])
def test_steps_are_taken_where_no_number_can_be_read(trainer) -> None:
    """Tensors without data raise where the host asks for one."""
    network = DeepLinear(D).to("meta")
    like = {"device": "meta", "dtype": torch.float64}
    data = GatedData(torch.empty(N, D, **like), torch.empty(N, **like), None)
    method = stepper(trainer, network, N)
    if trainer == "dual":  # which asks for the size of its steps once
        method.state["size"] = torch.tensor(0.5, dtype=torch.float64)
    if trainer in IN_A_NORM:  # which ask whether their first rates are known, once
        method.begun = True
    rate = 0.1 if trainer == "constant" else None
    for _ in range(BLOCK - 1):
        method.step(data, rate)
    if trainer in ("momentum", "normalised"):
        with pytest.raises(RuntimeError, match="meta"):
            method.step(data, rate)
    assert all(weight.device.type == "meta" for weight in network.parameters())


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("several", some_of([True, False], one_in=2))
def test_blocks_of_steps_end_where_single_steps_do_to_the_bit(momentum, several) -> None:
    results, counts = [], []
    for ahead in (False, True):
        networks = [GLN(D, H, C, random_state=seed) for seed in range(2 if several else 1)]
        data = place_data(networks[0], X, Y, CONTEXTS)
        stack = StackedNetworks(networks) if several else SingleNetwork(networks[0])
        chosen = TrainingSettings(
            trainer="normalised", batch_size=0, schedule=((STEPS, None),), momentum=momentum
        )
        method = LineSearchDescent(stack, chosen, N, ahead=ahead)
        with Reads() as reads:
            for step in range(STEPS):
                method.step(data, None)
                if step == STEPS // 2:
                    method.settle()
                    method.settle()
            method.settle()
        counts.append(reads.count)
        results.append([w.clone() for w in stack.weights] + list(method.state.values()))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
    # Once a step and once more for each that was shortened; once a block and so often again for
    # the blocks of these.
    shortened = counts[0] - STEPS
    assert counts[0] >= STEPS and shortened > 0
    assert counts[1] <= STEPS // BLOCK + 3 + shortened * (BLOCK + 1)
    assert counts[1] < counts[0] or several


# Numbers that are on the CPU wherever the weights are: how many a step reads. (What `sign`,
# `spectral` and `coordinate` look at of scores on the CPU is skipped elsewhere.)
OWN = {"constant": 0, "dual": 3, "signum": 1, "muon": 1, "lion": 1, "adam": 2}


@pytest.mark.parametrize("trainer", OWN)
def test_reads_of_these_methods_do_not_grow_with_the_steps(trainer) -> None:
    network = DeepLinear(D)
    data = place_data(network, X, Y, None)
    method = stepper(trainer, network, N)
    rate = 0.1 if trainer == "constant" else None
    method.step(data, rate)
    counts = []
    for steps in (10, 40):
        with Reads() as reads:
            for _ in range(steps):
                method.step(data, rate)
        counts.append(reads.count - OWN[trainer] * steps)
    assert counts == [0, 0]
    assert all(value.device.type == "cpu" for value in method.state.values() if value.ndim == 0)


def test_annealing_asks_for_its_numbers_together(monkeypatch) -> None:
    """Four times a step, once more a shortened one, twice where the temperature may fall."""
    asked: list[str] = []
    for thing in (AnnealedLBFGS, AnnealedLBFGS.__mro__[1]):
        module = home(thing)
        usual = module.numbers
        monkeypatch.setattr(
            module, "numbers", lambda *values, usual=usual: asked.append("n") or usual(*values)
        )
    network = GLN(D, H, C)
    data = place_data(network, X, Y, CONTEXTS)
    method = stepper("annealed", network, N)
    for _ in range(30):
        method.step(data, None)
    counts = []
    for steps in (20, 80):
        asked.clear()
        for _ in range(steps):
            method.step(data, None)
        counts.append(len(asked) / steps)
    assert all(2 <= count <= 3.5 for count in counts)


def test_a_run_is_the_same_whatever_its_checkpoints_cut(monkeypatch) -> None:
    """Reports settle what went ahead."""
    usual = LineSearchDescent.__init__
    monkeypatch.setattr(
        LineSearchDescent, "__init__", lambda self, *given: usual(self, *given, ahead=True)
    )
    weights = []
    for n_checkpoints in (2, 50):
        network = GLN(D, H, C)
        given = TrainingSettings(
            trainer="momentum", batch_size=0, schedule=((90, None),), n_checkpoints=n_checkpoints
        )
        train(network, X, Y, CONTEXTS, settings=given)
        weights.append([w.detach().clone() for w in network.parameters()])
    for one, other in zip(*weights, strict=True):
        assert torch.equal(one, other)
