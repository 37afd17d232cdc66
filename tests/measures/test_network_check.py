"""A user's own modules: what is missing is said, and what is taken is what ours would be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch import nn

import implicit_bias as ib

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(30, 1, 4, 4))
ROWS = IMAGES.reshape(30, 16)
Y = np.where(ROWS @ RNG.normal(size=16) > 0, 1.0, -1.0)


def mlp(degree=2) -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(16, 6, bias=False), nn.ReLU(), nn.Linear(6, 1, bias=False)
    ).double()
    network.degree = degree
    return network


def ours(like: nn.Module) -> ib.ReLU:
    return ib.ReLU.from_weights(like[1].weight.detach(), like[3].weight.detach()[0])


def test_a_module_of_inputs_alone_trains_on_images_as_our_network_does_on_their_rows() -> None:
    theirs = mlp()
    network = ours(theirs)
    settings = ib.TrainingSettings(trainer="annealed", schedule=((60, None),))
    seen = []
    run = ib.train(theirs, IMAGES, Y, None, settings=settings,
                   observer=lambda module: seen.append(module is theirs) or {})  # fmt: skip
    other = ib.train(network, ROWS, Y, None, settings=settings)
    assert seen and all(seen)
    np.testing.assert_allclose(run.smallest_margin, other.smallest_margin, rtol=1e-6)
    np.testing.assert_allclose(theirs[1].weight.detach(), network.w1.detach(), rtol=1e-5)
    found, expected = (ib.kkt_distance(one, X, Y, None)
                       for one, X in ((theirs, IMAGES), (network, ROWS)))  # fmt: skip
    assert found.residual == pytest.approx(expected.residual, rel=1e-4)
    images, rows = ib.Sample(IMAGES, Y, None), ib.Sample(ROWS, Y, None)
    values, wanted = (ib.measures.Distances(None, one, one)(net)
                      for one, net in ((images, theirs), (rows, network)))  # fmt: skip
    assert np.isnan(values["kkt_margin_bound"])  # no dual norms are known
    assert 0 < wanted["kkt_margin_bound"] <= 1
    assert values["error_network"] == wanted["error_network"] == 0


def test_a_limit_of_the_rows_stands_beside_a_network_of_the_images() -> None:
    network = mlp()
    limit = ib.solve_linear_svm(ROWS, Y)
    sample = ib.Sample(IMAGES, Y, None)
    found = ib.compare(limit, network, sample, sample)
    signs = np.sign(network(torch.tensor(IMAGES)).detach().numpy()[:, 0])
    assert found.agreement == np.mean(signs == Y)  # the limit has all samples right


def test_modules_of_inputs_alone_train_side_by_side() -> None:
    several = [mlp(), mlp()]
    with torch.no_grad():
        several[1][1].weight.mul_(0.5)
    alone = mlp()
    settings = ib.TrainingSettings(trainer="constant", batch_size=0, schedule=((20, 0.1),))
    both = ib.train_many(several, IMAGES, Y, None, settings=settings)
    one = ib.train(alone, IMAGES, Y, None, settings=settings)
    np.testing.assert_allclose(both[0].loss, one.loss, rtol=1e-9)
    np.testing.assert_allclose(several[0][1].weight.detach(), alone[1].weight.detach(), rtol=1e-9)
    with pytest.raises(ValueError, match="one is there twice"):
        ib.train_many([alone, alone], IMAGES, Y, None, settings=settings)


def test_gates_are_refused_where_there_is_no_place_for_them() -> None:
    with pytest.raises(ValueError, match="Sequential takes inputs alone"):
        ib.train(mlp(), IMAGES, Y, np.ones((30, 2)))
    with pytest.raises(ValueError, match=r"shape \(n, 16\), got torch.float64 \(30, 1, 4, 4\)"):
        ib.train(ours(mlp()), IMAGES, Y, None)


class Mixed(nn.Module):
    """Of degree 1 in one unit and of degree 2 in another."""

    degree = 1

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, X, gates):
        return X[:, 0] * self.w[0] + X[:, 1] * self.w[1] ** 2


class Detached(Mixed):
    """Scores that their weights have no gradient of."""

    def forward(self, X, gates):
        return X[:, :2] @ (self.w + self.w.detach())


FAULTY = {
    "no degree": (nn.Linear(16, 1, bias=False), "`degree` is missing: on these data it is 1"),
    "another degree": (mlp(3), "`degree` is 3, but on these data it is 2"),
    "biases": (nn.Sequential(nn.Linear(16, 3), nn.ReLU(), nn.Linear(3, 1)),
               "take out the biases, 0.bias, 2.bias"),
    "tanh": (nn.Sequential(nn.Linear(16, 1, bias=False), nn.Tanh()), "what does not scale"),
    "mixed": (Mixed(), "not homogeneous in the trained weights"),
    "detached": (Detached(), "gradients do not belong to the scores"),
    "dropout": (nn.Sequential(nn.Dropout(), nn.Linear(16, 1, bias=False)), "give different scores"),
    "batches": (nn.Sequential(nn.Linear(16, 3, bias=False), nn.BatchNorm1d(3),
                              nn.Linear(3, 1, bias=False)), "depends on the other samples"),
    "positions": (nn.Sequential(nn.Unflatten(1, (4, 4)), nn.Linear(4, 2, bias=False)),
                  r"must return scores of shape \(30, 4\), .* got \(30, 4, 2\)"),
    "other inputs": (nn.Linear(9, 1, bias=False), "cannot be called on these data"),
    "no weights": (nn.Flatten(), "nothing to train"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTY)
def test_what_is_missing_is_said(case) -> None:
    module, message = FAULTY[case]
    found = ib.check_network(module, IMAGES if case == "another degree" else ROWS)
    assert not found and len(found.faults) == 1
    with pytest.raises(ValueError, match=message):
        found.require()
    assert found.faults[0] in str(found)


def test_several_scores_are_measured_together() -> None:
    network = nn.Sequential(nn.Linear(16, 4, bias=False), nn.ReLU(), nn.Linear(4, 3, bias=False))
    network.degree = 2
    assert ib.check_network(network, ROWS).require().degree == 2
    network = nn.Sequential(network, nn.Tanh())
    assert "not homogeneous" in ib.check_network(network, ROWS).faults[0]


def test_scores_that_are_all_zero_say_nothing() -> None:
    module = nn.Linear(16, 1, bias=False)
    nn.init.zeros_(module.weight)
    (fault,) = ib.check_network(module, ROWS).faults
    assert fault.startswith("all scores are 0")


def test_degrees_are_measured_and_what_a_network_has_is_listed() -> None:
    def layers(depth):
        inner = [nn.Linear(16, 16, bias=False) for _ in range(depth - 1)]
        return nn.Sequential(*inner, nn.Linear(16, 1, bias=False))

    assert [ib.check_network(layers(depth), ROWS).degree for depth in (1, 2, 5)] == [1, 2, 5]
    network = ib.GLN(16, 3, 2)
    found = ib.check_network(network, ROWS, RNG.integers(0, 2, (30, 3))).require()
    assert found and found.degree == found.stated == 2 and found.takes_gates
    assert isinstance(network, ib.protocols.HasDualNorms) and "dual_norms" in found.has
    assert found.lacks == {}
    bare = ib.check_network(mlp(), IMAGES).require()
    assert set(bare.lacks) == {
        "zeta", "unit_norms", "dual_norms", "imbalance", "gradient_factors", "gates"
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(bare)) == bare
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module"):
        ib.check_network(lambda X: X, ROWS)
