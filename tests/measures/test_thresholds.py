"""Where numbers become words: units that are too small, reasons, and norms of several layers."""

from __future__ import annotations

from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias import FReLU
from implicit_bias.runs import INDUCED
from implicit_bias.training import TRAINERS

X = np.random.default_rng(0).normal(size=(8, 3))
Y, GATES = np.sign(X[:, 0]), np.ones((8, 2))


@pytest.mark.parametrize(
    ("dual_norm", "small"), [(0.9, False), (1.0, False), (1.005, False), (1.0099, False),
                             (1.0101, True), (1.2, True)],
)  # fmt: skip
def test_a_unit_of_less_than_half_its_share_is_too_small_above_1_01(dual_norm, small) -> None:
    wrongly_small = resolve_name("implicit_bias.measures.scalars:wrongly_small")
    equal = SimpleNamespace(unit_norms=np.ones(2))
    duals = np.array([1.0, dual_norm])
    for share, behind in ((0.24, True), (0.26, False)):
        found = wrongly_small(np.array([1 - share, share]), duals, equal)
        assert found.tolist() == [1] * (small and behind)
    # A dead one is told from 1 on, up to rounding, without a limit too.
    for share, dead in ((0.9e-3, True), (1.1e-3, False)):
        found = wrongly_small(np.array([1.0, share]), duals, None)
        assert found.tolist() == [1] * (dead and dual_norm > 1)


@pytest.mark.parametrize(
    ("residual", "largest", "small", "said"),
    [
        (0.0099, 1.0099, (), "stationary, but"), (0.0099, 1.0101, (), "a saddle"),
        (0.0101, 1.5, (), "not stationary"), (0.5, 1.5, (2,), "unit 2"),
        (0.0, 1.5, (2, 5), "units 2, 5"),
    ],
)  # fmt: skip
def test_the_reason_changes_at_residuals_and_dual_norms_of_a_hundredth(
    residual, largest, small, said
) -> None:
    held_back_by = resolve_name("implicit_bias.runs.diagnosis.state:held_back_by")
    state = SimpleNamespace(kkt_residual=residual, largest_dual_norm=largest, small_units=small)
    assert said in held_back_by(state)


@pytest.mark.parametrize("trainer", ["muon", "spectral", "sign", "coordinate", "adam"])
@pytest.mark.parametrize("upper", [(), (3,), (3, 2)])
def test_the_value_of_several_layers_is_the_product_of_their_norms(trainer, upper) -> None:
    network = FReLU(5, 4, upper_widths=upper)
    weights = [p.detach().numpy() for p in network.parameters()]
    below, last = {
        "muon": ("spectral", "linf"), "spectral": ("spectral", "spectral"),
        "coordinate": ("l1", "l1"),
    }.get(trainer, ("linf", "linf"))  # fmt: skip
    size = {
        "linf": lambda W: np.abs(W).max(), "l1": lambda W: np.abs(W).sum(),
        "spectral": lambda W: np.linalg.norm(np.atleast_2d(W), 2),
    }  # fmt: skip
    expected = [size[below](W) for W in weights[:-1]] + [size[last](weights[-1])]
    layer_norms = resolve_name("implicit_bias.measures.own_norm:layer_norms")
    assert layer_norms(network, TRAINERS[trainer].norms) == pytest.approx(expected)
    # Of spectral norms on both sides of gates the product itself stands for the norm.
    induced = INDUCED["gated layer"]["spectral", "spectral"]
    product = float(np.prod(expected))
    assert induced.value_above(network.zeta().detach().numpy(), product) == product


def test_coordinate_descent_moves_one_weight_a_layer() -> None:
    network = FReLU.from_weights([[1.0, 0.2, 0.1], [0.5, 0.3, 0.4]], [1.0, 0.7])
    before = [p.detach().clone() for p in network.parameters()]
    settings = ib.TrainingSettings(trainer="coordinate", schedule=((1, 0.01),))
    ib.train(network, X, Y, GATES, settings=settings)
    moved = [int(torch.sum(p != q)) for p, q in zip(network.parameters(), before, strict=True)]
    assert moved == [1, 1]
