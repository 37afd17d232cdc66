"""Every model by every trainer on another device: the limit and the network of the CPU."""

from __future__ import annotations

import functools
import gc
from typing import Any

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.models import MODELS
from implicit_bias.training import LineSearchDescent
from tests.commands import option_kinds, small_runs
from tests.long import some_of

SMALL = small_runs(
    {"n_train": 30, "steps": 24, "hidden_units": 3, "batch_size": 0},
    {
        "collapse": {"n_train": None},
        "dgn": {"n_train": 20, "data": "quadrants"},
        "diagonal": {"n_train": 10},
        "distillation": {"n_train": 10, "n_val": 40},
        "dlgn": {"gate_steps": 24, "hidden_units": 8, "data": "circle"},
        "fixed-outer": {"n_train": 8},
        "frelu": {"data": "quadrants"},
        "gdln": {"n_train": 60, "hidden_units": 2, "batch_size": 60},
        "gln": {"hidden_units": 2, "data": "quadrants"},
        "heads": {"n_train": 60, "hidden_units": 6, "trunk_steps": 20, "exits": (1, 3)},
        "next-token": {"descent_steps": 0},
        "orthosep": {"learning_rate": None, "hidden_units": 4},
        "relu": {"hidden_units": 8, "data": "quadrants"},
    },
)


def trainers_of(model: str) -> tuple[str | None, ...]:
    """The trainers that a model has; one that it does not choose."""
    kinds = option_kinds(model)
    return tuple(kinds["trainer"].choices) if "trainer" in kinds else (None,)


# Where only the steps of a search matter.
FEW = small_runs({"checkpoints": 2, "starts": 1, "beside": "machines"}, {})
EVERY = [(model, trainer) for model in sorted(MODELS) for trainer in trainers_of(model)]
SEARCHING = ("momentum", "normalised")


def found(model: str, trainer: str | None, **options: Any) -> ib.Report | None:
    """The report of a short run; None of a trainer that is not for this network or its loss."""
    chosen = SMALL[model] | options | ({} if trainer is None else {"trainer": trainer})
    try:
        return ib.run(model, **chosen)
    except ValueError as error:
        assert f"the trainer {trainer!r}" in str(error) or "take the trainer" in str(error)
        return None


def tensors(report: ib.Report) -> dict[str, torch.Tensor]:
    network: Any = report.objects.get("network")
    several = network if isinstance(network, dict) else {"": network}
    return {
        f"{label}{name}": tensor
        for label, one in several.items() if one is not None
        for name, tensor in one.state_dict().items()
    }  # fmt: skip


def assert_same(one: ib.Report, other: ib.Report, *, exact: bool) -> None:
    near: dict[str, float] = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": 1e-5, "atol": 1e-7}
    assert one.status is other.status and one.finished and other.finished
    found = [each.objects.get("limit") for each in (one, other)]
    if isinstance(found[0], ib.limits.Limit):
        limits = [np.asarray(torch.as_tensor(limit.zeta).cpu()) for limit in found]
        np.testing.assert_allclose(*limits, rtol=1e-6, atol=1e-7)
    left, right = tensors(one), tensors(other)
    assert left.keys() == right.keys() and (left or "comparison" not in one.objects)
    for name, weight in left.items():
        torch.testing.assert_close(weight.cpu(), right[name].cpu(), **near)


# Attention has no search for steps: its loss may rise.
@pytest.mark.parametrize(
    ("model", "trainer"),
    some_of([(k, t) for k, t in EVERY if t in SEARCHING and k != "attention"], one_in=6),
)
def test_steps_that_go_ahead_are_those_that_wait(model, trainer, monkeypatch) -> None:
    """What runs on another device, here: to the bit."""
    expected = found(model, trainer, **FEW[model])
    made: list[bool] = []
    usual = LineSearchDescent.__init__

    def ahead(self: LineSearchDescent, *arguments: Any) -> None:
        made.append(True)
        usual(self, *arguments, ahead=True)

    monkeypatch.setattr(LineSearchDescent, "__init__", functools.wraps(usual)(ahead))
    report = found(model, trainer, **FEW[model])
    assert (report is None) == (expected is None)
    if report is not None and expected is not None:
        assert made
        assert_same(report, expected, exact=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("model", "trainer"), EVERY)
def test_a_gpu_finds_the_same_limit_and_network_and_is_left_empty(model, trainer) -> None:
    expected = found(model, trainer)
    if expected is None:
        return
    gc.collect()
    before = torch.cuda.memory_allocated()
    report = found(model, trainer, device="cuda")
    assert report is not None
    assert_same(report, expected, exact=False)
    assert all(tensor.device.type == "cuda" for tensor in tensors(report).values())
    del report
    gc.collect()
    assert torch.cuda.memory_allocated() == before
