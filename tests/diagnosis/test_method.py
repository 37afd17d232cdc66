"""What is read off an optimiser, beside what its own first steps do to weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import implicit_bias as ib
from implicit_bias.runs.diagnosis import read_method
from tests.commands import home

Method = home(read_method).Method


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
        module.bias = nn.Parameter(torch.zeros(1).double())
        both = read_method([optimiser, torch.optim.SGD([module.bias], lr=0.1)], module)
        assert both.norms is None and both.rates == {} and not both.joint
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
    assert method.still == ("0.bias", "2.bias") and not method.joint


def test_trainers_and_optimisers_of_this_package_have_the_norms_of_their_steps() -> None:
    module = network()
    groups = [
        {"params": [p], "norm": ("linf", "spectral")[p.ndim - 1]} for p in module.parameters()
    ]
    mine = ib.optim.SteepestDescent(groups, norm="l2", n_samples=2)
    method = read_method(mine, module)
    assert list(method.norms.values()) == ["spectral", "linf", "spectral", "linf"]
    assert not method.joint
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
    both = [torch.optim.SGD([module[0].weight], lr=0.1), torch.optim.Adagrad([module[0].bias])]
    method = read_method(both, module)
    assert method.norms is None and method.rates == {} and not method.joint


def with_sizes(kind: type[torch.optim.Optimizer], sizes: list[float], **options: float):
    """An optimiser after steps in which gradients have such sizes: of Adam three, or one."""
    module = nn.Linear(len(sizes), 1, bias=False).double()
    optimiser = kind(module.parameters(), lr=1e-3, **options)
    module.weight.grad = torch.tensor([sizes]).double()
    for _ in range(3 if kind is torch.optim.Adam else 1):
        optimiser.step()
    return optimiser, module


@pytest.mark.parametrize(
    ("n_above", "norm"), [(100, "linf"), (99, "linf"), (98, None), (2, None), (1, "l2"), (0, "l2")]
)
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adamax])
def test_a_constant_is_without_effect_where_a_hundredth_is_on_its_other_side(
    kind, n_above, norm
) -> None:
    # After one step RMSprop divides by a tenth of the gradient, as its average begins at 0.
    share = 0.1 if kind is torch.optim.RMSprop else 1.0
    sizes = [1.01e-3 / share] * n_above + [0.99e-3 / share] * (100 - n_above) + [0.0] * 20
    if kind is torch.optim.Adamax:  # whose maximum is of the gradient and its constant
        sizes = [1.02e-3] * n_above + [0.5e-3] * (100 - n_above)
        optimiser, module = with_sizes(kind, sizes, eps=1e-8)
        optimiser.param_groups[0]["eps"] = 1.01e-3
    else:
        optimiser, module = with_sizes(kind, sizes, eps=1e-3)
    method = read_method(optimiser, module)
    if norm is None:
        assert method.norms is None and f"is above {100 - n_above}% of its" in method.remark
    else:
        assert method.norms == {"weight": norm} and method.joint is (norm == "l2")
        assert f"gradients are {'above' if norm == 'linf' else 'below'}" in method.remark
    if kind is torch.optim.Adam:
        exact, same = with_sizes(kind, sizes, eps=0.0)
        assert read_method(exact, same).remark == ""


def test_before_the_first_step_a_constant_is_a_condition() -> None:
    module = network()
    method = read_method(torch.optim.Adam(module.parameters(), eps=1e-5), module)
    assert method.remark == "if gradients are above its eps of 1e-05"
    assert set(method.norms.values()) == {"linf"} and not method.joint


def test_rates_of_groups_are_of_all_their_steps() -> None:
    module = nn.Linear(3, 1).double()
    weight, bias = module.parameters()

    def read(first: dict, second: dict):
        groups = [{"params": [weight]} | first, {"params": [bias]} | second]
        return read_method(torch.optim.SGD(groups, lr=0.5), module)

    method = read({"lr": 0.1, "momentum": 0.5, "dampening": 0.2}, {"lr": 0.01})
    assert method.rates == pytest.approx({"weight": 0.16, "bias": 0.01}) and method.joint
    assert method.scales == pytest.approx({"weight": 1.0, "bias": 0.25}) and method.is_descent
    assert read({}, {}).rates == {} and read({}, {}).norms == {"weight": "l2", "bias": "l2"}
    for decays in ((0.1, 0.0), (0.0, 0.2)):
        method = read(*({"weight_decay": one} for one in decays))
        assert method.decay == max(decays) and not method.decoupled and not method.is_descent
        assert method.norms is not None and method.rates == {}
        method = read(*({"lr": 1 + one, "weight_decay": one} for one in decays))
        assert method.norms is None and "rates of their own (1, 1." in method.remark
    assert read({"lr": 0.0}, {"lr": 0.1}).norms is None


def test_decay_is_in_the_gradient_or_beside_the_step() -> None:
    module = network()
    for kind, options, decoupled in (
        (torch.optim.AdamW, {"weight_decay": 0.1}, True),
        (torch.optim.Adam, {"weight_decay": 0.1}, False),
        (torch.optim.Adam, {"weight_decay": 0.1, "decoupled_weight_decay": True}, True),
        (torch.optim.AdamW, {"weight_decay": 0.0}, False),
        (torch.optim.SGD, {"weight_decay": 0.1}, False),
        (torch.optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}, True),
    ):
        method = read_method(kind(module.parameters(), lr=0.1, **options), module)
        assert method.decoupled is decoupled and method.decay == options["weight_decay"]
    own = ib.optim.GradientDescent(module.parameters(), n_samples=2, lr=0.1, weight_decay=0.1)
    for how in ("coupled", "decoupled"):
        own._settings = replace(own._settings, decay=how)
        assert read_method(own, module).decoupled is (how == "decoupled")


def test_a_method_is_said_in_a_few_words() -> None:
    norms = {"a": "l2", "b": "l2"}
    plain = Method(norms=norms, given=False)
    assert plain.in_words == "gradient descent" and plain.norm_in_words == "Euclidean norm"
    assert plain.of_batches.holds is None and Method(batches="full").of_batches.holds is True
    assert plain.of_batches.mark == "not known here"
    assert Method(batches="full").of_batches.mark == "holds (as was said)"
    assert Method(batches="mini").of_batches.holds is False
    assert Method(given=False, batches="full").in_words == "gradient descent, full batches"
    weighed = Method("SGD", norms, rates={"a": 0.1, "b": 0.01}, batches="mini")
    assert weighed.in_words == (
        "trained by SGD, mini-batches, weights over the roots of their rates 0.01, 0.1"
    )
    assert weighed.norm_in_words == "Euclidean norm over the roots of rates"
    signs = Method("mixed", {"a": "spectral", "b": "linf"}, joint=False)
    assert signs.norm_in_words == "largest linf or spectral norm of a tensor"
    assert not signs.is_descent and not Method(decay=0.1).is_descent and Method().is_descent
    assert Method(norms=None, joint=False).norm_in_words == "no known norm"
    assert plain.scales == {} and not Method(norms=norms).decoupled and Method().given


def test_optimisers_of_no_tensors_of_the_network_are_left_out() -> None:
    module, other = network(), network()
    module[0].bias.requires_grad_(False)
    both = [torch.optim.SGD(module.parameters(), lr=0.1), torch.optim.Adam(other.parameters())]
    method = read_method(both, module, "full")
    assert method.name == "SGD" and method.joint and method.batches == "full"
    assert set(method.norms) == {"0.weight", "2.weight", "2.bias"} and method.still == ()
    one = torch.optim.SGD([{"params": list(part.parameters())} for part in (other, module)], lr=0.1)
    assert read_method(one, module, "full") == method
    named = read_method("sgd", module, "mini")
    assert named.batches == "mini" and set(named.norms) == set(method.norms) and named.given
    for wrong in ([], [3]):
        with pytest.raises(TypeError, match="`optimizer` must be the name"):
            read_method(wrong, module)

    class Lion(torch.optim.SGD):
        """An optimiser of another's, known by its name."""

    class Own(torch.optim.Optimizer):
        """One of a name that is not known, and without a rate."""

    own = read_method(Own(module.parameters(), {}), module)
    assert own.norms is None and own.remark.startswith("Own: its steps") and not own.joint
    assert own.decay == 0
    signs = read_method(Lion(module.parameters(), lr=0.1), module)
    assert set(signs.norms.values()) == {"linf"} and not signs.joint and signs.remark == ""
