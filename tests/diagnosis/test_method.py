"""What is read off an optimiser, beside what its own first steps do to weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import implicit_bias as ib
from implicit_bias.runs.diagnosis import read_method


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)).double()


def stepped(optimiser: torch.optim.Optimizer, module: nn.Module, size: float = 1.0) -> None:
    """Take one step along the gradient of a sum of scores of this size."""
    optimiser.zero_grad()
    (size * module(torch.ones(2, 4).double()).exp().sum()).backward()
    optimiser.step()


def test_the_norm_is_that_in_which_a_step_is_steepest() -> None:
    # The step U of steepest descent in N has <g, U> = N(U) N*(g): for l2 it lies along g, for the
    # largest entry all entries are equal.
    for kind, joint in ((torch.optim.SGD, True), (torch.optim.Adam, False)):
        module = network()
        before = [p.detach().clone() for p in module.parameters()]
        optimiser = kind(module.parameters(), lr=1e-3)
        stepped(optimiser, module)
        moved = torch.cat([
            (p.detach() - b).flatten() for p, b in zip(module.parameters(), before, strict=True)
        ])  # fmt: skip
        g = torch.cat([p.grad.flatten() for p in module.parameters()])
        method = read_method(optimiser, module)
        assert method.joint is joint
        moved, g = moved[g != 0], g[g != 0]
        if method.joint:
            assert abs(float(moved @ g)) == pytest.approx(float(moved.norm() * g.norm()))
        else:
            assert set(method.norms.values()) == {"linf"}
            assert abs(float(moved @ g)) == pytest.approx(
                float(moved.abs().max() * g.abs().sum()), rel=1e-4
            )


@pytest.mark.parametrize(("size", "norm"), [(1.0, "linf"), (1e-14, "l2"), (None, None)])
def test_the_constant_of_adam_decides_by_its_gradients(size, norm) -> None:
    module = nn.Linear(4, 1, bias=False).double()
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3, eps=1e-6)
    inputs = torch.ones(4) if size is not None else torch.tensor([1.0, 1.0, 1e-12, 1e-12])
    (module(inputs.double()) * (size or 1.0)).sum().backward()
    optimiser.step()
    method = read_method(optimiser, module)
    if norm is None:
        assert method.norms is None and "above 50% of its gradients" in method.remark
    else:
        assert method.norms == {"weight": norm} and method.joint is (norm == "l2")
        assert "1e-06" in method.remark


def test_matrices_by_muon_and_vectors_by_adam_have_norms_of_their_own() -> None:
    module = network()
    matrices = [p for p in module.parameters() if p.ndim == 2]
    vectors = [p for p in module.parameters() if p.ndim < 2]
    both = [torch.optim.Muon(matrices, lr=0.02, weight_decay=0.0),
            torch.optim.AdamW(vectors, lr=0.02, weight_decay=0.0)]  # fmt: skip
    method = read_method(both, module)
    assert method.norms == {
        "0.weight": "spectral", "0.bias": "linf", "2.weight": "spectral", "2.bias": "linf",
    }  # fmt: skip
    assert method.name == "Muon and AdamW" and method.decay == 0 and not method.joint
    other = [torch.optim.Muon(matrices, lr=0.02), torch.optim.AdamW(vectors, lr=3e-4)]
    method = read_method(other, module)
    assert method.norms is None and "0.0003, 0.02" in method.remark
    assert method.decay == 0.1 and method.decoupled
    method = read_method(torch.optim.Muon(matrices), module)
    assert method.still == ("0.bias", "2.bias")


def test_trainers_and_optimisers_of_this_package_have_the_norms_of_their_steps() -> None:
    module = network()
    groups = [
        {"params": [p], "norm": ("linf", "spectral")[p.ndim - 1]} for p in module.parameters()
    ]
    mine = ib.optim.SteepestDescent(groups, norm="l2", n_samples=2)
    method = read_method(mine, module)
    assert list(method.norms.values()) == ["spectral", "linf", "spectral", "linf"]
    decayed = ib.optim.GradientDescent(module.parameters(), n_samples=2, lr=0.1, weight_decay=0.01)
    method = read_method(decayed, module)
    assert method.joint and method.decay == 0.01 and not method.decoupled
    assert read_method("muon", module).norms["2.bias"] == "linf"
    assert read_method("SGD", module) == read_method("gd", module).__class__(
        name="SGD", norms=dict.fromkeys(dict(module.named_parameters()), "l2")
    )
    assert not read_method(None, module).given and read_method(None, module).joint


def test_what_is_no_optimiser_of_the_network_is_refused() -> None:
    module = network()
    with pytest.raises(ValueError, match=r"one of .*'adam'.* got 'adan'"):
        read_method("adan", module)
    with pytest.raises(TypeError, match="`optimizer` must be the name"):
        read_method(3, module)
    with pytest.raises(ValueError, match="holds none of the trained weights"):
        read_method(torch.optim.SGD(network().parameters(), lr=1), module)
    method = read_method(torch.optim.Adagrad(module.parameters()), module)
    assert method.norms is None and "Adagrad" in method.remark
