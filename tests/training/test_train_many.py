"""Networks that train as one: the trajectories of training them one by one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import (
    GLN,
    DeepLinear,
    FReLU,
    ReLU,
    ShallowGLN,
    TrainingSettings,
    train,
    train_many,
)
from tests.long import each_pairwise

Array = NDArray[np.float64]

N, D, H, C = 19, 5, 4, 2
SEEDS = (1, 2, 3)


def samples() -> tuple[Array, Array, NDArray[np.int64], Array]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, D))
    gates = (rng.random((N, H)) < 0.6).astype(np.float64)
    return X, np.sign(X @ np.linspace(-1, 1, D)), rng.integers(0, C, size=(N, H)), gates


X, Y, CONTEXTS, GATES = samples()

Make = Callable[..., torch.nn.Module]
NETWORKS: dict[str, tuple[Make, Any]] = {
    "linear": (lambda **k: DeepLinear(D, **k), None),
    "deep-linear": (lambda **k: DeepLinear(D, hidden_widths=(4, 3), **k), None),
    "shallow-gln": (lambda **k: ShallowGLN(D, CONTEXTS, **k), CONTEXTS),
    "gln": (lambda **k: GLN(D, H, C, **k), CONTEXTS),
    "gln of three layers": (lambda **k: GLN(D, H, C, upper_widths=(3,), **k), CONTEXTS),
    "frelu": (lambda **k: FReLU(D, H, **k), GATES),
    "relu": (lambda **k: ReLU(D, H, **k), None),
}
TRAINERS: dict[str, dict[str, Any]] = {
    "constant": {"schedule": ((20, 0.3), (10, 0.1))},
    "constant, momentum, mini-batches": {
        "schedule": ((30, 0.2),), "momentum": 0.8, "batch_size": 7, "random_state": 4,
    },
    "squared": {"loss": "squared", "schedule": ((30, 0.1),)},
    "normalised": {"trainer": "normalised", "schedule": ((30, 0.02),)},
    "normalised, automatic": {"trainer": "normalised", "schedule": ((30, None),)},
    "momentum": {"trainer": "momentum", "schedule": ((30, None),)},
    "annealed": {"trainer": "annealed", "schedule": ((25, None),)},
    "dual": {"trainer": "dual", "schedule": ((30, None),)},
    "spectral": {"trainer": "spectral", "schedule": ((30, None),)},
    "signum": {"trainer": "signum", "schedule": ((30, 0.01),)},
    "adam": {"trainer": "adam", "schedule": ((30, None),)},
    "lion": {"trainer": "lion", "schedule": ((30, 0.01),)},
}  # fmt: skip


def settings_for(trainer: str, **changes: Any) -> TrainingSettings:
    given = {"batch_size": 0, "n_checkpoints": 12} | TRAINERS[trainer] | changes
    return TrainingSettings(**given)


def assert_same_runs(
    model: str, settings: list[TrainingSettings], together: list[Any], rtol: float = 1e-9
) -> None:
    """Train `together` as one and copies of them one by one, with observers and held-out inputs."""
    gates = NETWORKS[model][1]
    alone = copy.deepcopy(together)
    watched = {"X_val": X[:6] + 0.1, "gates_val": None if gates is None else gates[:6]}

    def weighed(network: torch.nn.Module) -> dict[str, float]:
        return {"size": sum(float(p.abs().sum()) for p in network.parameters())}

    many = train_many(
        together, X, Y, gates, settings=settings, **watched, observers=[weighed] * len(alone)
    )
    for network, other, trajectory, one in zip(together, alone, many, settings, strict=True):
        expected = train(other, X, Y, gates, settings=one, **watched, observer=weighed)
        for name in ("log_loss", "smallest_margin", "unit_norms", "scores", "weight_norm"):
            np.testing.assert_allclose(
                getattr(trajectory, name), getattr(expected, name), rtol=rtol, atol=1e-9
            )
        np.testing.assert_array_equal(trajectory.step, expected.step)
        np.testing.assert_allclose(
            trajectory.observed["size"], expected.observed["size"], rtol=rtol
        )
        assert trajectory.finished
        for a, b in zip(network.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize(
    ("trainer", "model"), each_pairwise([*product(TRAINERS, NETWORKS)], times=1)
)
def test_networks_that_train_as_one_have_the_trajectories_of_each_alone(trainer, model) -> None:
    make, gates = NETWORKS[model]
    networks = [make(random_state=seed) for seed in SEEDS]
    settings = settings_for(trainer)
    if trainer == "dual" and model not in ("linear", "shallow-gln"):
        with pytest.raises(ValueError, match="linear in its weights"):
            train_many(networks, X, Y, gates, settings=settings)
    else:
        assert_same_runs(model, [settings] * len(SEEDS), networks)


@pytest.mark.parametrize("trainer", ["annealed", "momentum", "constant"])
def test_initial_scales_may_differ_by_orders_of_magnitude(trainer) -> None:
    networks = [NETWORKS["gln"][0](random_state=1, init_scale=scale) for scale in (0.01, 1.0, 20.0)]
    assert_same_runs("gln", [settings_for(trainer)] * 3, networks, rtol=1e-8)


@pytest.mark.parametrize("trainer", ["constant", "constant, momentum, mini-batches", "normalised"])
@pytest.mark.parametrize("model", ["gln", "linear"])
def test_learning_rates_may_differ(trainer, model) -> None:
    base = settings_for(trainer)
    settings = [
        replace(base, schedule=tuple((k, rate * factor) for k, rate in base.schedule))
        for factor in (0.1, 1.0, 1.7)
    ]
    networks = [NETWORKS[model][0](random_state=1) for _ in settings]
    assert_same_runs(model, settings, networks)
    ends = [next(network.parameters()).detach().numpy() for network in networks]
    assert np.abs(ends[0] - ends[2]).max() > 1e-2


def test_learning_rates_may_agree_in_some_phases() -> None:
    settings = [settings_for("constant", schedule=((9, 0.2), (9, rate))) for rate in (0.01, 0.4)]
    assert_same_runs("gln", settings, [NETWORKS["gln"][0](random_state=s) for s in (1, 2)])


def test_frozen_weights_stay_those_of_each_network() -> None:
    networks = [NETWORKS["gln"][0](random_state=seed) for seed in SEEDS]
    for network in networks:
        network.upper[0].requires_grad_(False)
    before = [network.upper[0].detach().clone() for network in networks]
    assert_same_runs("gln", [settings_for("constant")] * 3, networks)
    for network, weight in zip(networks, before, strict=True):
        assert torch.equal(network.upper[0], weight)


def test_float32_networks_go_together_too() -> None:
    networks = [NETWORKS["gln"][0](random_state=s, dtype=torch.float32) for s in SEEDS]
    alone = copy.deepcopy(networks)
    settings = settings_for("constant")
    train_many(networks, X, Y, CONTEXTS, settings=settings)
    for network, other in zip(networks, alone, strict=True):
        train(other, X, Y, CONTEXTS, settings=settings)
        torch.testing.assert_close(network.w1, other.w1, rtol=1e-4, atol=1e-5)
        assert network.w1.dtype == torch.float32


def diverging(*factors: float) -> list[TrainingSettings]:
    return [
        settings_for("constant", loss="exponential", schedule=((200, 0.05 * factor),))
        for factor in factors
    ]


def test_a_run_that_diverges_ends_alone_and_the_others_go_on() -> None:
    settings = diverging(1.0, 1e8, 2.0)
    networks = [NETWORKS["gln"][0](random_state=s) for s in SEEDS]
    alone = copy.deepcopy(networks)
    heard: list[float] = []
    many = train_many(
        networks, X, Y, CONTEXTS, settings=settings,
        callback=lambda step, n_steps, log_loss: heard.append(log_loss),
    )  # fmt: skip
    assert [trajectory.finished for trajectory in many] == [True, False, True]
    assert many[1].step[-1] < 200
    assert all(np.all(np.isfinite(trajectory.log_loss)) for trajectory in many)
    assert np.all(np.isfinite(heard))
    for index in (0, 2):
        train(alone[index], X, Y, CONTEXTS, settings=settings[index])
        torch.testing.assert_close(networks[index].w1, alone[index].w1, rtol=1e-9, atol=1e-10)


def test_a_run_that_diverges_is_left_behind_by_line_searches_too() -> None:
    class Fragile(torch.nn.Module):
        degree = 1

        def __init__(self, limit: float) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(D, dtype=torch.float64))
            self.limit = torch.nn.Parameter(torch.tensor(limit).double(), requires_grad=False)

        def forward(self, X: torch.Tensor, gates: None) -> torch.Tensor:
            return torch.where(self.w.norm() < self.limit, X @ self.w, math.nan)

    for trainer in ("normalised, automatic", "annealed"):
        networks = [Fragile(math.inf), Fragile(0.5)]
        together = train_many(networks, X, Y, None, settings=settings_for(trainer))
        alone = train(Fragile(math.inf), X, Y, None, settings=settings_for(trainer))
        np.testing.assert_allclose(together[0].log_loss, alone.log_loss, rtol=1e-9)


def test_if_all_diverge_nothing_is_left_to_return() -> None:
    networks = [NETWORKS["gln"][0](random_state=s) for s in (1, 2)]
    with pytest.raises(FloatingPointError, match=r"diverged.*\(learning rate 5e\+06"):
        train_many(networks, X, Y, CONTEXTS, settings=diverging(1e8, 1e9))


def test_weights_whose_norm_overflows_have_diverged_though_their_loss_is_0() -> None:
    network = DeepLinear(X.shape[1], random_state=0)
    settings = TrainingSettings(trainer="constant", batch_size=0, schedule=((5, 1e200),))
    with pytest.raises(FloatingPointError, match="norm of weights or loss overflows"):
        train(network, X, Y, settings=settings)


@pytest.mark.parametrize("trainer", ["constant", "normalised", "sign", "adam", "muon"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rates_that_no_weight_can_follow_are_said_to_be_too_large(trainer, dtype) -> None:
    network = torch.nn.Linear(X.shape[1], 1, dtype=dtype)
    settings = TrainingSettings(trainer=trainer, batch_size=0, schedule=((5, 1e308),))
    with pytest.raises(FloatingPointError, match="use a smaller learning rate"):
        train(network, X, Y, settings=settings)


@pytest.mark.parametrize("many", [False, True])
def test_a_network_without_a_finite_loss_to_begin_with_is_refused(many) -> None:
    networks = [NETWORKS["gln"][0](random_state=s) for s in (1, 2)]
    with torch.no_grad():
        networks[1].w1.fill_(math.inf)
    with pytest.raises(FloatingPointError, match=r"at step 0 \(.*from the start\)"):
        if many:
            train_many(networks, X, Y, CONTEXTS)
        else:
            train(networks[1], X, Y, CONTEXTS)


def test_an_interrupt_leaves_every_network_and_trajectory_at_the_same_step() -> None:
    networks = [NETWORKS["gln"][0](random_state=s) for s in SEEDS]
    alone = copy.deepcopy(networks)

    def interrupt(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 17:
            raise KeyboardInterrupt

    many = train_many(networks, X, Y, CONTEXTS, settings=settings_for("constant"),
                      callback=interrupt)  # fmt: skip
    assert [trajectory.step[-1] for trajectory in many] == [17] * 3
    assert not any(trajectory.finished for trajectory in many)
    for network, other in zip(networks, alone, strict=True):
        train(other, X, Y, CONTEXTS, settings=settings_for("constant", schedule=((17, 0.3),)))
        torch.testing.assert_close(network.w1, other.w1, rtol=1e-10, atol=1e-12)


def test_one_network_is_a_batch_of_one_and_takes_the_default_settings() -> None:
    network = NETWORKS["linear"][0](random_state=1)
    other = copy.deepcopy(network)
    (trajectory,) = train_many([network], X, Y)
    np.testing.assert_array_equal(trajectory.log_loss, train(other, X, Y).log_loss)


class Buffered(torch.nn.Module):
    """The same weights, other fixed numbers."""

    degree = 1

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(D, dtype=torch.float64))
        self.register_buffer("factor", torch.tensor(factor, dtype=torch.float64))

    def forward(self, X: torch.Tensor, gates: None) -> torch.Tensor:
        return self.factor * (X @ self.w)


def refused() -> list[Any]:
    one, two = GLN(D, H, C, random_state=1), GLN(D, H, C, random_state=2)
    frozen = GLN(D, H, C)
    frozen.upper[0].requires_grad_(False)
    base = settings_for("constant")
    automatic = settings_for("normalised, automatic")
    fixed = settings_for("normalised")
    return [
        ([], base, None, "`networks` is empty"),
        ([one, FReLU(D, H)], base, None, "must be of one class"),
        ([one, GLN(D, H + 1, C)], base, None, "of the same shapes"),
        ([one, GLN(D, H, C, dtype=torch.float32)], base, None, "of the same shapes, dtype"),
        ([one, frozen], base, None, "same trained weights"),
        ([frozen, one], base, None, "same trained weights"),
        ([Buffered(1.0), Buffered(2.0)], base, None, "must have equal buffers"),
        ([one, one], base, None, "one is there twice"),
        ([one, two], [base], None, None),
        ([one, two], [base] * 3, None, "got 3 settings for 2 networks"),
        ([one, two], [], None, "got 0 settings for 2 networks"),
        ([one, two], [base, replace(base, loss="exponential")], None, "in learning rates alone"),
        ([one, two], [base, replace(base, momentum=0.5)], None, "in learning rates alone"),
        ([one, two], [base, replace(base, random_state=1)], None, "in learning rates alone"),
        ([one, two], [base, replace(base, schedule=((30, 0.1),))], None, "learning rates alone"),
        ([one, two], [automatic, fixed], None, "all of them numbers or all None"),
        ([one, two], [fixed, automatic], None, "all of them numbers or all None"),
        ([one, two], base, [lambda _: {}], "got 1 observers for 2 networks"),
    ]


@pytest.mark.parametrize("number", range(len(refused())))
def test_what_cannot_go_together_is_refused_before_any_step(number) -> None:
    networks, settings, observers, message = refused()[number]
    gates = CONTEXTS if networks and isinstance(networks[0], GLN) else None
    before = [copy.deepcopy(network.state_dict()) for network in networks]
    if message is None:
        assert len(train_many(networks, X, Y, gates, settings=settings)) == len(networks)
        return
    with pytest.raises(ValueError, match=message):
        train_many(networks, X, Y, gates, settings=settings, observers=observers)
    for network, state in zip(networks, before, strict=True):
        assert all(torch.equal(network.state_dict()[name], state[name]) for name in state)


def test_an_observer_must_measure_the_same_names_every_time() -> None:
    names = iter("aab")
    with pytest.raises(ValueError, match=r"same names at every checkpoint.*'observed.a'"):
        train(
            NETWORKS["gln"][0](), X, Y, CONTEXTS, settings=settings_for("constant"),
            observer=lambda network: {next(names): 1.0},
        )  # fmt: skip


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("trainer", [t for t in TRAINERS if t != "dual"])
def test_networks_train_as_one_on_a_gpu(trainer) -> None:
    networks = [NETWORKS["gln"][0](random_state=seed, device="cuda") for seed in SEEDS]
    assert_same_runs("gln", [settings_for(trainer)] * 3, networks, rtol=1e-7)
