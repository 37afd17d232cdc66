"""The trainers as optimisers of torch: the steps of `train`, in loops that are not ours."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import implicit_bias as ib
from implicit_bias import GLN, DeepLinear, TrainingSettings, optim, train
from tests.long import some_of

N, D, H, C = 18, 5, 3, 2
RNG = np.random.default_rng(8)
X = torch.from_numpy(RNG.normal(size=(N, D)))
Y = torch.sign(X @ torch.linspace(-1, 1, D).double())
CONTEXTS = torch.from_numpy(RNG.integers(0, C, size=(N, H)))

Make = Callable[[Any], torch.optim.Optimizer]
METHODS: dict[str, tuple[Make, dict[str, Any]]] = {
    "annealed": (lambda p: optim.Annealed(p, degree=2, n_samples=N), {}),
    "annealed, exponential": (
        lambda p: optim.Annealed(p, degree=2, n_samples=N, loss="exponential"),
        {"trainer": "annealed", "loss": "exponential"},
    ),
    "momentum": (lambda p: optim.Momentum(p, degree=2, n_samples=N), {}),
    "normalised": (
        lambda p: optim.Normalised(p, n_samples=N, lr=0.05, momentum=0.5),
        {"schedule": ((60, 0.05),), "momentum": 0.5},
    ),
    "normalised, automatic": (
        lambda p: optim.Normalised(p, n_samples=N, degree=2),
        {"trainer": "normalised"},
    ),
    "dual": (lambda p: optim.Dual(p, n_samples=N), {}),
    "sign": (
        lambda p: optim.SteepestDescent(p, norm="linf", degree=2, n_samples=N, lr=0.03),
        {"schedule": ((60, 0.03),)},
    ),
    "spectral": (
        lambda p: optim.SteepestDescent(
            p, norm="spectral", momentum=0.5, degree=2, n_samples=N, lr=0.1
        ),
        {"schedule": ((60, 0.1),), "momentum": 0.5},
    ),
    "muon": (
        lambda p: optim.SteepestDescent(
            _muon_groups(p), norm="spectral", momentum=0.9, degree=2, n_samples=N, lr=0.05
        ),
        {"schedule": ((60, 0.05),)},
    ),
    "adam": (lambda p: optim.Adam(p, degree=2, n_samples=N, lr=0.03), {"schedule": ((60, 0.03),)}),
    "sign, automatic": (
        lambda p: optim.SteepestDescent(
            p, norm="linf", momentum=0.5, degree=2, n_samples=N, loss="exponential", n_steps=1500
        ),
        {"trainer": "sign", "momentum": 0.5, "loss": "exponential", "schedule": ((1500, None),)},
    ),
}


def _muon_groups(weights: Any) -> list[dict[str, Any]]:
    *hidden, head = weights
    return [{"params": hidden}, {"params": [head], "norm": "linf"}]


def network_for(name: str, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    if name == "dual":
        return DeepLinear(D, dtype=dtype)
    return GLN(D, n_units=H, n_contexts=C, random_state=2, dtype=dtype)


def closure_of(network: torch.nn.Module) -> Callable[[], Tensor]:
    kind = next(network.parameters()).dtype
    return lambda: Y.to(kind) * network(X.to(kind), CONTEXTS)


def steps(network: torch.nn.Module, optimiser: torch.optim.Optimizer, n_steps: int) -> None:
    for _ in range(n_steps):
        optimiser.step(closure_of(network))


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(map(torch.equal, one.parameters(), other.parameters()))


@pytest.mark.parametrize(
    ("name", "dtype"), some_of(product(METHODS, [torch.float64, torch.float32]), one_in=3)
)
def test_an_optimiser_takes_the_steps_of_train_to_the_bit(name, dtype) -> None:
    make, changes = METHODS[name]
    ours, theirs = network_for(name, dtype), network_for(name, dtype)
    keywords = {"trainer": name, "schedule": ((60, None),), "batch_size": 0} | changes
    if name.startswith("normalised"):
        keywords["trainer"] = "normalised"
    trajectory = train(ours, X, Y, CONTEXTS, settings=TrainingSettings(**keywords))
    steps(theirs, make(theirs.parameters()), int(trajectory.step[-1]))
    assert same(ours, theirs)
    assert trajectory.smallest_margin[-1] > 0


@pytest.mark.parametrize(
    ("name", "dtype"), some_of(product(METHODS, [torch.float64, torch.float32]), one_in=2)
)
def test_what_stops_and_goes_on_is_what_never_stopped(name, dtype) -> None:
    make, _ = METHODS[name]
    whole, first = network_for(name, dtype), network_for(name, dtype)
    steps(whole, make(whole.parameters()), 50)
    stopped = make(first.parameters())
    steps(first, stopped, 23)
    kept = {"network": copy.deepcopy(first.state_dict()), "optimiser": stopped.state_dict()}
    steps(first, stopped, 5)  # nothing of what is kept may change with them
    file = io.BytesIO()
    torch.save(kept, file)
    file.seek(0)
    kept = torch.load(file, weights_only=True)
    for _ in range(2):  # the second time from what the first has used
        second = network_for(name, dtype)
        between, optimiser = make(second.parameters()), make(second.parameters())
        between.load_state_dict(kept["optimiser"])
        kept["optimiser"] = between.state_dict()  # kept once more before a step
        optimiser.load_state_dict(kept["optimiser"])
        second.load_state_dict(kept["network"])
        steps(second, optimiser, 27)
        assert same(whole, second)


@pytest.mark.parametrize("copying", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
def test_a_copy_of_network_and_optimiser_goes_on_by_itself(copying) -> None:
    network = network_for("annealed")
    optimiser = optim.Annealed(network.parameters(), degree=2, n_samples=N)
    steps(network, optimiser, 12)
    other, others = copying((network, optimiser))
    steps(network, optimiser, 12)
    assert not same(network, other)
    steps(other, others, 12)
    assert same(network, other)


def test_a_loop_that_wraps_the_closure_and_moves_the_state_gets_the_same_steps() -> None:
    """As Lightning does: closures are wrapped, hooks run, states are rebuilt on their device."""
    plain, looped = network_for("annealed"), network_for("annealed")
    steps(plain, optim.Annealed(plain.parameters(), degree=2, n_samples=N), 20)
    optimiser = optim.Annealed(looped.parameters(), degree=2, n_samples=N)
    seen: list[int] = []
    optimiser.register_step_post_hook(lambda *_: seen.append(len(seen)))

    def optimizer_step(closure: Callable[[], Tensor]) -> Tensor:
        def wrapped() -> Tensor:
            result = closure()
            assert result.requires_grad  # hooks may look at what came out
            return result

        for key, kept in optimiser.state.items():
            optimiser.state[key] = {name: value.to("cpu").clone() for name, value in kept.items()}
        return optimiser.step(closure=wrapped)

    with torch.no_grad():  # a foreign loop may hold gradients off outside closures
        for _ in range(20):
            optimiser.zero_grad()
            margins = optimizer_step(closure_of(looped))
    assert same(plain, looped)
    assert len(seen) == 20
    assert torch.equal(margins, closure_of(looped)().detach())
    assert all(p.grad is None for p in looped.parameters())


class CNN(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, bias=False), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(36, 1, bias=False),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.net(images)
        return scores.squeeze(-1)


def test_a_convolutional_network_gets_a_larger_margin_than_adam_gives_it() -> None:
    data = ib.load_digits(n_train=60, random_state=0)
    images = torch.from_numpy(data.X_train[:, :64].copy()).double().reshape(-1, 1, 8, 8)
    y = torch.from_numpy(data.y_train.copy()).double()
    torch.manual_seed(0)
    ours = CNN().double()
    theirs = copy.deepcopy(ours)
    annealed = optim.Annealed(ours.parameters(), degree=2, n_samples=len(y))
    for _ in range(300):
        annealed.step(lambda: y * ours(images))
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    for _ in range(300):
        adam.zero_grad()
        torch.nn.functional.softplus(-y * theirs(images)).mean().backward()
        adam.step()

    def margin(network: CNN) -> float:
        squared = sum(float(p.detach().square().sum()) for p in network.parameters())
        return float((y * network(images)).min().detach()) / squared

    assert margin(ours) > 1.3 * margin(theirs) > 0


def test_constant_steps_are_those_of_sgd() -> None:
    ours, theirs = network_for("annealed"), network_for("annealed")
    settings = TrainingSettings(batch_size=0, schedule=((40, 0.3),), momentum=0.8)
    train(ours, X, Y, CONTEXTS, settings=settings)
    sgd = torch.optim.SGD(theirs.parameters(), lr=0.3, momentum=0.8)
    for _ in range(40):
        sgd.zero_grad()
        torch.nn.functional.softplus(-closure_of(theirs)()).mean().backward()
        sgd.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_a_scheduler_sets_the_rate_that_the_next_step_takes() -> None:
    network = network_for("normalised")
    optimiser = optim.Normalised(network.parameters(), n_samples=N, lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, step_size=1, gamma=0.0)
    steps(network, optimiser, 1)
    before = copy.deepcopy(network)
    scheduler.step()
    steps(network, optimiser, 1)
    assert same(before, network)


def bad(**changes: Any) -> Callable[[], Any]:
    weights = list(network_for("annealed").parameters())
    keywords = {"params": weights, "degree": 2, "n_samples": N} | changes
    return lambda: optim.Annealed(keywords.pop("params"), **keywords)


W = torch.nn.Parameter(torch.ones(3))
V = torch.nn.Parameter(torch.ones(3).double())


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (bad(params=[{"params": [W]}, {"params": [V]}]), "one group.*length of all weights"),
        (bad(params=[{"params": [W], "lr": 0.1}]), r"without options, got options \['lr'\]"),
        (bad(params=[W, V]), "all of one dtype"),
        (bad(params=[torch.nn.Parameter(torch.ones(3).half())]), "float32 or float64"),
        (bad(params=[torch.nn.Parameter(torch.ones(3), requires_grad=False)]), "nothing to train"),
        (bad(degree=0), "`degree` must be at least 1"),
        (bad(n_samples=0), "`n_samples` must be at least 1"),
        (bad(loss="squared"), "`loss` must be one of"),
        (lambda: optim.Normalised([W], n_samples=3, lr=-1.0), "positive and finite"),
        (lambda: optim.Normalised([W], n_samples=3, momentum=1.0), "momentum"),
    ],
)
def test_bad_arguments_are_refused_when_it_is_made(make, match) -> None:
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.parametrize("name", ["degree", "n_samples"])
@pytest.mark.parametrize("value", [1.5, None, "2"])
def test_counts_that_are_no_whole_numbers_are_refused(name, value) -> None:
    with pytest.raises(TypeError, match=f"`{name}` must be an integer, got {value!r}"):
        bad(**{name: value})()


@pytest.mark.parametrize(
    ("closure", "error", "match"),
    [
        (None, TypeError, "needs a `closure`"),
        (lambda margins: 1.0, TypeError, "as a tensor, got float"),
        (lambda margins: margins.mean(), ValueError, r"got \(\): not their loss"),
        (lambda margins: margins[:3], ValueError, "mini-batch"),
        (lambda margins: margins.detach(), ValueError, "cannot be differentiated"),
        (lambda margins: margins + 1, ValueError, "homogeneous of degree 2"),
        (lambda margins: margins * margins, ValueError, "homogeneous of degree 2"),
    ],
)
def test_closures_that_return_no_margins_are_refused(closure, error, match) -> None:
    network = network_for("annealed")
    before = copy.deepcopy(network)
    optimiser = optim.Annealed(network.parameters(), degree=2, n_samples=N)
    with pytest.raises(error, match=match):
        optimiser.step(closure and (lambda: closure(closure_of(network)())))
    assert same(before, network)


def test_weights_without_margins_states_of_others_and_strange_hands_are_refused() -> None:
    network = network_for("annealed")
    idle = torch.nn.Parameter(torch.ones(2).double())
    with pytest.raises(ValueError, match=r"do not depend on weight 2 of 3, of shape \(2,\)"):
        optim.Momentum([*network.parameters(), idle], n_samples=N).step(closure_of(network))
    optimiser = optim.Annealed(network.parameters(), degree=2, n_samples=N)
    steps(network, optimiser, 3)
    kept = optimiser.state_dict()
    with pytest.raises(ValueError, match="no state of Momentum"):
        optim.Momentum(network.parameters(), n_samples=N).load_state_dict(kept)
    with pytest.raises(ValueError, match="no state of Annealed"):
        optim.Annealed([idle], degree=2, n_samples=N).load_state_dict(kept)
    with torch.no_grad():
        next(network.parameters()).mul_(2)
    with pytest.raises(ValueError, match="weights are not those that the last step"):
        optimiser.step(closure_of(network))
    optimiser.load_state_dict(kept)
    with pytest.raises(ValueError, match="state is of other weights"):
        optimiser.step(closure_of(network))


def test_a_method_without_a_memory_goes_on_from_its_state_too() -> None:
    def steps(weights: torch.Tensor, optimizer: torch.optim.Optimizer, n: int) -> None:
        for _ in range(n):
            optimizer.step(lambda: weights * torch.tensor([1.0, 2.0]).double())

    def begun() -> tuple[torch.nn.Parameter, ib.optim.Normalised]:
        weights = torch.nn.Parameter(torch.ones(2).double())
        return weights, ib.optim.Normalised([weights], n_samples=2, lr=0.1)

    whole, alone = begun()
    steps(whole, alone, 4)
    first, optimizer = begun()
    steps(first, optimizer, 2)
    second, again = begun()
    second.data.copy_(first)
    again.load_state_dict(optimizer.state_dict())
    steps(second, again, 2)
    assert torch.equal(second, whole)


@pytest.mark.parametrize("name", ["Annealed", "Momentum", "Normalised", "Dual"])
def test_a_scheduler_of_a_rate_that_there_is_not_is_told_so(name) -> None:
    weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    further = {} if name == "Dual" else {"degree": 1}
    optimiser = getattr(ib.optim, name)([weight], n_samples=2, **further)
    loaded = getattr(ib.optim, name)([weight], n_samples=2, **further)
    loaded.load_state_dict(optimiser.state_dict())
    for one in (optimiser, loaded, copy.deepcopy(optimiser), pickle.loads(pickle.dumps(optimiser))):
        with pytest.raises(ValueError, match=f"{name} finds its steps by itself and has no learn"):
            torch.optim.lr_scheduler.StepLR(one, 10)
        with pytest.raises(KeyError, match="weight_decay"):
            one.param_groups[0]["weight_decay"]
