"""Networks with soft gates on images: which weights each kind has, and what is trained of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import implicit_bias as ib
from experiments import soft_gates
from experiments.soft_gates import KINDS, network_of, rows

WIDTHS = (12, 10)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
TRAIN, HELD_OUT = ib.Sample(X[:40], Y[:40], None), ib.Sample(X[40:], Y[40:], None)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """All kinds, trained for twelve epochs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soft_gates, "RATE", 1e-2)
        return pd.DataFrame(rows(TRAIN, HELD_OUT, "kaiming", 1, 12, WIDTHS))


def test_kinds_begin_with_the_weights_they_are_called_by() -> None:
    learner = network_of("relu", 6, 1, "sign", WIDTHS, None)
    made = {kind: network_of(kind, 6, 1, "sign", WIDTHS, learner) for kind in KINDS}
    first = {kind: network.value.layers[0] for kind, network in made.items()}
    assert all(torch.equal(first[k], first["relu"]) for k in KINDS if k != "learned gates")
    assert not torch.equal(first["learned gates"], first["relu"])
    for kind in ("own start", "learned gates"):
        assert torch.equal(made[kind].gating[0], first["relu"])
        np.testing.assert_array_equal(made[kind].gates(X), made["relu"].gates(X))
    assert not torch.equal(made["galu"].gating[0], first["galu"])
    moved = {kind: [name.split(".")[0] for name, p in network.named_parameters() if p.requires_grad]
             for kind, network in made.items()}  # fmt: skip
    assert set(moved["soft-galu"]) == set(moved["ours"]) == {"value", "gating"}
    assert set(moved["gates only"]) == {"gating"}
    assert all(set(moved[kind]) == {"value"} for kind in KINDS[1:6])


def test_learned_gates_are_those_that_the_relu_network_ends_with(table) -> None:
    ends = table[table["epoch"] == 12].set_index("kind")
    begun = table[table["epoch"] == 0].set_index("kind")
    # M knows of a hard network its gates alone.
    assert ends["nu_m"]["learned gates"] == begun["nu_m"]["learned gates"] == ends["nu_m"]["relu"]
    assert ends["nu_m"]["own start"] == begun["nu_m"]["relu"] != ends["nu_m"]["relu"]
    assert (ends["loss"] < begun["loss"]).all()


def test_parts_of_the_kernel_belong_to_soft_gates_of_their_own(table) -> None:
    known = table.groupby("kind")["nu_a"].count() > 0
    assert set(known[known].index) == {"soft-galu", "gates only", "ours"}
    alone = table[table["kind"] == "gates only"]
    np.testing.assert_allclose(alone["nu_k"], alone["nu_a"])
    both = table[table["kind"] == "soft-galu"]
    assert (both["nu_k"] < both["nu_a"]).any()
