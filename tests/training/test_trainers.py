"""Each trainer by itself: its steps against transcriptions, its end against certified limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from numpy.typing import NDArray
from sklearn.svm import SVC

from experiments import starts
from implicit_bias import (
    GLN,
    DeepLinear,
    FReLU,
    HyperplaneContexts,
    HyperplaneGates,
    ReLU,
    ShallowGLN,
    TrainingSettings,
    Trajectory,
    optim,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
    solve_shallow_gln_svm,
    train,
    train_many,
)
from implicit_bias.datasets import make_quadrants
from implicit_bias.training import (
    Convergence,
    DualAcceleration,
    SingleNetwork,
    StackedNetworks,
    check_trainer,
    growth_factors,
    make_stepper,
    place_data,
)
from tests.long import some_of

Array = NDArray[np.float64]

N, D, H, C = 16, 6, 3, 2


@dataclass(frozen=True)
class Problem:
    """Separable data, a network for them, and the certified optimum of its program."""

    X: Array
    y: Array
    gates: Any
    network: Callable[..., torch.nn.Module]
    optimum: float

    def train(self, settings: TrainingSettings, **kwargs: Any) -> Trajectory:
        return train(self.network(**kwargs), self.X, self.y, self.gates, settings=settings)


def samples() -> tuple[Array, Array, NDArray[np.int64], Array]:
    """Separable inputs with a clear margin, contexts, and gates of which the first is open."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    direction = np.linspace(-1, 1, D) / np.linalg.norm(np.linspace(-1, 1, D))
    y = np.where(X @ direction > 0, 1.0, -1.0)
    gates = (rng.random((N, H)) < 0.6).astype(np.float64)
    gates[:, 0] = 1
    return X + 0.7 * y[:, None] * direction, y, rng.integers(0, C, size=(N, H)), gates


@cache
def problem(name: str) -> Problem:
    X, y, contexts, gates = samples()
    start = {"random_state": 1}
    if name == "gln":
        limit = solve_gln_svm(X, y, contexts, tol=1e-11)
        return Problem(
            X, y, contexts, lambda **k: GLN(D, H, C, **start | k), limit.require().objective
        )
    if name == "frelu":
        limit = solve_frelu_svm(X, y, gates, tol=1e-11)
        return Problem(X, y, gates, lambda **k: FReLU(D, H, **start | k), limit.require().objective)
    if name == "shallow-gln":
        limit = solve_shallow_gln_svm(X, y, contexts, tol=1e-11)
        return Problem(
            X, y, contexts, lambda **k: ShallowGLN(D, contexts, **start | k),
            limit.require().objective,
        )  # fmt: skip
    limit = solve_linear_svm(X, y, tol=1e-11)
    widths = (4, 4) if name == "deep-linear" else ()
    return Problem(
        X, y, None, lambda **k: DeepLinear(D, hidden_widths=widths, **start | k),
        limit.require().objective,
    )  # fmt: skip


def full_batch(trainer: str, steps: int, rate: float | None = None, **kwargs) -> TrainingSettings:
    return TrainingSettings(trainer=trainer, batch_size=0, schedule=((steps, rate),), **kwargs)


MODELS = ["linear", "deep-linear", "shallow-gln", "gln", "frelu"]
LINEAR_IN_WEIGHTS = ["linear", "shallow-gln"]
AUTOMATIC = ["normalised", "momentum", "dual", "annealed"]
FITTING = [
    (trainer, model)
    for trainer in AUTOMATIC
    for model in (LINEAR_IN_WEIGHTS if trainer == "dual" else MODELS)
]
SOME = [(trainer, model) for trainer, model in FITTING if model in ("linear", "gln")]


# Limits


@pytest.mark.parametrize(("trainer", "model"), some_of(FITTING, one_in=2))
def test_every_trainer_comes_to_the_certified_limit_and_never_above_it(trainer, model) -> None:
    given = problem(model)
    trajectory = given.train(full_batch(trainer, 500))
    ratio = trajectory.normalised_margin * given.optimum
    if trainer in ("dual", "annealed"):
        assert ratio[-1] > (0.9985 if model in LINEAR_IN_WEIGHTS else 0.995)
    else:
        # The GLN loses one of its units, which takes as long as it takes.
        assert ratio[-1] > (0.93 if model == "gln" else 0.98)
    assert np.all(ratio <= 1 + 1e-9)
    assert trajectory.finished


@pytest.mark.parametrize("trainer", ["dual", "annealed"])
def test_a_linear_predictor_turns_to_the_support_vector_machine_of_scikit_learn(trainer) -> None:
    X, y, _, _ = samples()
    # No intercept: mirrored samples with mirrored labels leave it at 0.
    machine = SVC(kernel="linear", C=1e9, tol=1e-10).fit(np.vstack([X, -X]), np.append(y, -y))
    network = DeepLinear(D, random_state=1)
    train(network, X, y, None, settings=full_batch(trainer, 500))
    w = network.zeta().detach().numpy()
    expected = machine.coef_[0]
    assert w @ expected / np.linalg.norm(w) / np.linalg.norm(expected) > 0.999
    margin = np.min(y * (X @ w)) / np.linalg.norm(w)
    assert margin * np.linalg.norm(expected) == pytest.approx(1, abs=1e-3)


# Dual acceleration


def ji_srebro_telgarsky(X: Array, y: Array, w: Array, n_steps: int) -> Array:
    """Algorithm 1 of the paper on samples z_n = -y_n x_n / R, step size 1, momentum t / (t + 1)."""
    R = np.linalg.norm(X, axis=1).max()
    Z = -y[:, None] * X / R
    w, g = R * w, np.zeros(X.shape[1])
    for t in range(n_steps):
        q = np.exp(Z @ w)
        q /= q.sum()
        g = t / (t + 1) * (g + Z.T @ q)
        w = w - (g + Z.T @ q)
    return w / R


@pytest.mark.parametrize("start", [0.0, 0.01, 30.0])
def test_dual_acceleration_is_the_recursion_of_its_paper(start) -> None:
    X, y, _, _ = samples()
    w = start * np.array([1.0, -2.0, 0.5, 0.0, 1.0, 1.0])
    longest = 1 / np.linalg.norm(X, axis=1).max()
    shortened = w * min(1.0, longest / max(np.linalg.norm(w), 1e-300))
    assert (start == 30.0) == (not np.array_equal(w, shortened))
    for n_steps in (1, 2, 3, 25):
        network = DeepLinear.from_weights(w[None])
        train(network, X, y, None, settings=full_batch("dual", n_steps, loss="exponential"))
        expected = ji_srebro_telgarsky(X, y, shortened, n_steps)
        np.testing.assert_allclose(network.zeta().detach(), expected, rtol=1e-10, atol=1e-13)


def test_dual_acceleration_does_so_in_every_context_of_a_shallow_gln() -> None:
    # One predictor a context is a linear one of inputs spread over as many blocks.
    given = problem("shallow-gln")
    network = given.network()
    rows = network.prepare(given.gates).numpy()
    spread = np.zeros((N, len(network.weight), D))
    spread[np.arange(N), rows] = given.X
    with torch.no_grad():
        network.weight.zero_()
    settings = full_batch("dual", 30, loss="exponential")
    train(network, given.X, given.y, given.gates, settings=settings)
    flat = spread.reshape(N, -1)
    expected = ji_srebro_telgarsky(flat, given.y, np.zeros(flat.shape[1]), 30)
    np.testing.assert_allclose(network.weight.detach().flatten(), expected, rtol=1e-10, atol=1e-13)


def exponent(trajectory: Trajectory, optimum: float, first: int) -> float:
    """Slope of log(1 - margin ratio) over log(step) from step `first` on."""
    late = trajectory.step >= first
    error = 1 - trajectory.normalised_margin[late] * optimum
    return float(np.polyfit(np.log(trajectory.step[late]), np.log(error), 1)[0])


def test_the_margin_errs_like_the_inverse_square_of_steps_and_like_their_inverse_without() -> None:
    given = problem("linear")
    R = float(np.linalg.norm(given.X, axis=1).max())
    slow = given.train(
        full_batch("normalised", 1000, 1 / R**2, loss="exponential", n_checkpoints=80)
    )
    fast = given.train(full_batch("dual", 1000, loss="exponential", n_checkpoints=80))
    assert -1.3 < exponent(slow, given.optimum, 50) < -0.7
    assert exponent(fast, given.optimum, 50) < -1.5


# Annealing


def unit(w: Array) -> Array:
    return w / np.linalg.norm(w)


def smoothed(network: torch.nn.Module, given: Problem, u: Array, b: float) -> tuple[float, Array]:
    """log of the mean logistic loss at b^(1/L) u, by autograd, and its gradient in u."""
    flat = torch.tensor(u, requires_grad=True)
    parts = flat.split([p.numel() for p in network.parameters()])
    scaled = {
        name: (b ** (1 / network.degree) * part).view(p.shape)
        for (name, p), part in zip(network.named_parameters(), parts, strict=True)
    }
    gates = None if given.gates is None else torch.tensor(given.gates)
    scores = torch.func.functional_call(network, scaled, (torch.tensor(given.X), gates))
    loss = torch.nn.functional.softplus(-torch.tensor(given.y) * scores).mean().log()
    loss.backward()
    return loss.item(), flat.grad.numpy()


def weights_of(network: torch.nn.Module) -> Array:
    return torch.cat([p.detach().flatten() for p in network.parameters()]).numpy()


@pytest.mark.parametrize("model", ["linear", "gln", "deep-linear"])
def test_an_annealed_step_descends_free_until_the_data_are_separated_then_in_the_direction(
    model,
) -> None:
    given = problem(model)
    network = given.network()
    degree = network.degree
    stepper = make_stepper(SingleNetwork(network), full_batch("annealed", 60), N)
    data = place_data(network, given.X, given.y, given.gates)
    point = unit(weights_of(network))
    b = np.linalg.norm(weights_of(network)) ** degree / np.abs(margins_of(network, given)).max()
    on_sphere, cooled, fallen, earned = [], [], 0, math.log(N)
    for k in range(1, 61):
        on_sphere.append(bool(stepper.state["separated"]))
        place = unit if on_sphere[-1] else np.asarray
        before, _ = smoothed(network, given, place(point), b)
        stepper.step(data, None)
        # What the network has is the new point at this temperature: its loss is what is recorded.
        there = weights_of(network) / b ** (1 / degree)
        after, gradient = smoothed(network, given, there, b)
        assert after <= before + 1e-12 * (1 + abs(before))
        fallen += after < before
        assert not on_sphere[-1] or np.linalg.norm(there) == pytest.approx(1)
        if not on_sphere[-1] and margins_of(network, given).min() > 0:
            b *= np.linalg.norm(there) ** degree
        point = stepper.state["point"][0].numpy().copy()
        grown = float(stepper.state["inverse_temperature"])
        changed = grown / b
        if k % 5 or not bool(stepper.state["separated"]):
            assert changed == pytest.approx(1, abs=1e-12)
        elif changed < 1:  # log(1 / loss) had outrun what convergence has earned
            assert -after > 1.3 * earned
            assert changed == pytest.approx(earned / -after)
        else:
            if changed > 1:  # by the radial over the tangential part of the gradient
                tangent = np.linalg.norm(gradient - (gradient @ unit(there)) * unit(there))
                assert changed - 1 == pytest.approx(min(0.3, 0.003 * degree * -after / tangent))
            earned = float(stepper.state["converged_level"])
        cooled.append(grown > 1.001 * b)
        b = grown
        # What the next step begins from is the gradient at the temperature it will be taken at.
        place = unit if bool(stepper.state["separated"]) else np.asarray
        value, gradient = smoothed(network, given, place(point), b)
        tangent = gradient - (place is unit) * (gradient @ place(point)) * place(point)
        tangent /= np.linalg.norm(point) if place is unit else 1
        scale = np.linalg.norm(gradient)
        np.testing.assert_allclose(stepper.state["gradient"][0], tangent, atol=1e-9 * scale)
        assert float(stepper.state["log_loss"]) == pytest.approx(value, rel=1e-9)
    assert on_sphere[0] is False
    assert on_sphere == sorted(on_sphere)
    assert fallen > 30
    assert sum(cooled) >= 5


def margins_of(network: torch.nn.Module, given: Problem) -> Array:
    gates = None if given.gates is None else torch.tensor(given.gates)
    return given.y * network(torch.tensor(given.X), gates).detach().numpy()


def test_the_temperature_waits_for_the_weights_and_for_what_the_arithmetic_can_tell() -> None:
    def grown(
        level: float,
        tangent: float = 1e-3,
        *,
        converged: bool = True,
        separated: bool = True,
        converged_level: float = 1e9,
        eps: float = 2.2e-16,
    ) -> float:
        one = np.ones(1)
        now = Convergence(
            level=level * one,
            converged_level=converged_level * one,
            radial=2 * level * one,
            tangent=tangent * one,
            separated=one == separated,
            converged=one == converged,
        )
        return float(growth_factors(now, eps)[0][0]) - 1

    assert grown(50.0, 3.0) == pytest.approx(0.003 * 2 * 50 / 3)
    assert grown(50.0, 1e-3) == pytest.approx(0.3)
    assert grown(50.0, 0.0) == pytest.approx(0.3)
    assert grown(50.0, converged=False) == grown(50.0, separated=False) == 0
    assert grown(0.9e6) > 0
    assert grown(1.1e6) == 0
    assert grown(800.0, eps=1.2e-7) > 0
    assert grown(900.0, eps=1.2e-7) == 0
    # What is not converged may not be colder than what was: up to what one growth allows.
    assert grown(50.0, converged=False, converged_level=45.0) == 0
    assert grown(50.0, converged=False, converged_level=20.0) == pytest.approx(20 / 50 - 1)


@pytest.mark.parametrize(
    ("units", "seed", "weights", "steps", "least"),
    [
        # Random gates that hardly separate the points: plain accelerated steps came to 0.98.
        (10, 3, 300, 1000, 0.995),
        # A saddle on the way, one unit of three dead: quasi-Newton steps stayed at it.
        (2, 1, 102, 500, 0.999),
    ],
)
def test_annealing_comes_to_its_limit_from_the_hardest_starts(
    units, seed, weights, steps, least
) -> None:
    given = starts.problem("frelu quadrants", units, seed)
    network = given.network(init="balanced", random_state=weights)
    settings = full_batch("annealed", steps, n_checkpoints=2)
    trajectory = train(network, *given.train, settings=settings)
    assert trajectory.normalised_margin[-1] * given.limit.dual_objective > least


@pytest.mark.parametrize(("steepness", "shortened"), [(1.0, False), (100.0, True)])
def test_an_annealed_step_is_shortened_until_it_falls_by_what_the_slope_promises(
    steepness, shortened
) -> None:
    # log((2 cosh(s w_2) + exp(-w_1)) / 3): for large s the first step, by 1 / |gradient|, would
    # lead across the valley of w_2, and up again.
    w = torch.nn.Parameter(torch.tensor([1.0, 0.5 / steepness]).double())
    X = torch.tensor([[0.0, steepness], [0.0, steepness], [1.0, 0.0]]).double()
    y = torch.tensor([1.0, -1.0, 1.0]).double()

    def log_loss() -> torch.Tensor:
        return torch.logsumexp(-y * (X @ w), 0) - math.log(3)

    before, start = float(log_loss().detach()), w.detach().clone()
    (gradient,) = torch.autograd.grad(log_loss(), w)
    optim.Annealed([w], degree=1, n_samples=3, loss="exponential").step(lambda: y * (X @ w))
    moved = (w - start).detach()
    whole = min(1 / float(gradient.norm()), 0.3 * float(start.norm()))
    assert (float(moved.norm()) < 0.9 * whole) == shortened
    slope = float(gradient @ moved)
    assert float(log_loss().detach()) <= before + 1e-4 * slope < before


@pytest.mark.parametrize("model", ["linear", "gln"])
@pytest.mark.parametrize(("inputs", "weights"), [(10.0, 1.0), (0.1, 1.0), (1.0, 300.0)])
def test_annealing_does_not_see_the_scale_of_inputs_or_weights(model, inputs, weights) -> None:
    given = problem(model)
    plain, scaled = given.network(), given.network(init_scale=weights)
    settings = full_batch("annealed", 25)
    train(plain, given.X, given.y, given.gates, settings=settings)
    train(scaled, inputs * given.X, given.y, given.gates, settings=settings)
    np.testing.assert_allclose(unit(weights_of(scaled)), unit(weights_of(plain)), atol=1e-9)
    assert np.abs(unit(weights_of(plain)) - unit(weights_of(given.network()))).max() > 0.1


def test_annealing_does_not_see_a_power_of_two_at_all_in_a_linear_predictor() -> None:
    given = problem("linear")
    directions = []
    for inputs, weights in ((1.0, 1.0), (2.0**13, 1.0), (2.0**-20, 2.0**9)):
        network = given.network(init_scale=weights)
        train(network, inputs * given.X, given.y, None, settings=full_batch("annealed", 300))
        directions.append(inputs * weights_of(network))
    np.testing.assert_array_equal(directions[1], directions[0])
    np.testing.assert_array_equal(directions[2], directions[0])


@pytest.mark.parametrize("inputs", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("trainer", ["annealed", "dual", "normalised"])
def test_a_start_at_zero_is_as_good_as_any_whatever_the_scale_of_the_inputs(
    trainer, inputs
) -> None:
    given = problem("linear")
    network = DeepLinear.from_weights(np.zeros((1, D)))
    trajectory = train(network, inputs * given.X, given.y, None, settings=full_batch(trainer, 300))
    assert trajectory.normalised_margin[-1] / inputs * given.optimum > 0.98


def two_units(kind: str, seed: int) -> Problem:
    """Data that two units separate, and hardly more: points in quadrants, or random labels."""
    if kind == "gaussian":
        rng = np.random.default_rng(seed)
        X, y, cutoffs = rng.normal(size=(130, 30)), rng.choice([-1.0, 1.0], size=130), "median"
    else:
        X, y = make_quadrants(100, random_state=seed)
        cutoffs = "axes"
    if kind == "quadrants, frelu":
        gates = HyperplaneGates(2, cutoffs=cutoffs, random_state=seed).fit(X).transform(X)
        units = gates.shape[1]
        optimum = solve_frelu_svm(X, y, gates).require().objective
        return Problem(X, y, gates, lambda **k: FReLU(X.shape[1], units, **k), optimum)
    gates = HyperplaneContexts(2, 2, cutoffs=cutoffs, random_state=seed).fit(X).transform(X)
    optimum = solve_gln_svm(X, y, gates).require().objective
    return Problem(X, y, gates, lambda **k: GLN(X.shape[1], 2, 2, **k), optimum)


@pytest.mark.parametrize(
    ("kind", "seed"),
    some_of(
        [("quadrants", 4), ("quadrants", 5), ("quadrants, frelu", 1), ("gaussian", 1001)], one_in=3
    ),
)
def test_annealing_separates_where_the_sphere_would_freeze_two_units_before(kind, seed) -> None:
    given = two_units(kind, seed)
    networks = [
        given.network(init=init, random_state=seed)
        for init in ("orthogonal", "kaiming", "balanced")
    ]
    runs = train_many(networks, given.X, given.y, given.gates, settings=full_batch("annealed", 400))
    ratios = [run.normalised_margin[-1] * given.optimum for run in runs]
    assert min(ratios) > 0.8
    assert max(ratios) <= 1 + 1e-9


def test_annealing_comes_to_the_least_loss_where_no_weights_separate() -> None:
    X, y, _, _ = samples()
    X, y = np.vstack([X, X[:5]]), np.append(y, -y[:5])
    least = scipy.optimize.minimize(lambda w: np.logaddexp(0, -y * (X @ w)).mean(), np.zeros(D))
    network = DeepLinear(D, random_state=1)
    trajectory = train(network, X, y, None, settings=full_batch("annealed", 300))
    assert trajectory.loss[-1] == pytest.approx(least.fun, rel=1e-9)


# Step sizes that are safe by themselves


@pytest.mark.parametrize(
    ("w", "size", "enough"),
    [(1e-3, 0.95, True), (1e-3, 1.05, False), (1e-9, 0.95, True), (1.2e-7, 3.0, False)],
)
def test_a_step_is_shortened_unless_it_brings_half_of_its_promise_or_nothing_can_be_seen(
    w, size, enough
) -> None:
    # Of two samples the loss is cosh(w), log of which is w^2 / 2: a step of size s leaves
    # (1 - s)^2 of it, the promise is 2 s, and half of that is kept up to s = 1. At w = 1e-9 no
    # double shows a decrease; at 1.2e-7 the rise is a hundred units of its rounding.
    network = DeepLinear.from_weights(np.array([[w]]))
    data = place_data(network, np.ones((2, 1)), np.array([1.0, -1.0]), None)
    settings = full_batch("normalised", 1, loss="exponential")
    stepper = make_stepper(SingleNetwork(network), settings, 2)
    stepper.state["rate"] += size
    stepper.step(data, None)
    assert (float(stepper.state["rate"]) >= size) == enough


def log_loss_of(network: torch.nn.Module, data: Any) -> float:
    """log of the mean logistic loss: logaddexp(-m, -inf) at m = y f(x) has a series for large m."""
    m = (data.y * network(data.X, data.gates)).detach().double().numpy()
    logs = np.where(m > 30, -m, np.log(np.logaddexp(0, -np.minimum(m, 30.0))))
    return float(np.logaddexp.reduce(logs) - math.log(len(m)))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("model", ["linear", "gln", "deep-linear"])
@pytest.mark.parametrize(("inputs", "weights"), [(1.0, 1.0), (1e4, 1e3), (1e-4, 1e-2)])
def test_the_loss_never_rises_from_wherever_it_starts(model, momentum, inputs, weights) -> None:
    given = problem(model)
    network = given.network(init_scale=weights)
    data = place_data(network, inputs * given.X, given.y, given.gates)
    stepper = make_stepper(
        SingleNetwork(network), full_batch("normalised", 60, momentum=momentum), N
    )
    losses = [log_loss_of(network, data)]
    for _ in range(60):
        stepper.step(data, None)
        losses.append(log_loss_of(network, data))
    assert np.all(np.isfinite(losses))
    assert np.all(np.diff(losses) <= 1e-13 * (1 + np.abs(losses[1:])))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("trainer", "model"), some_of(SOME, one_in=3))
def test_an_absurd_start_neither_diverges_nor_stops(trainer, model) -> None:
    given = problem(model)
    network = given.network(init_scale=1e3)
    trajectory = train(
        network, 1e4 * given.X, given.y, given.gates, settings=full_batch(trainer, 250)
    )
    assert trajectory.finished
    assert all(torch.isfinite(p).all() for p in network.parameters())
    assert trajectory.log_loss[-1] < trajectory.log_loss[0] - 1
    if trainer in ("annealed", "dual"):
        assert trajectory.normalised_margin[-1] / 1e4 * given.optimum > 0.99


def test_a_step_that_is_too_long_is_halved_and_loses_its_momentum() -> None:
    given = problem("gln")
    network = given.network()
    data = place_data(network, given.X, given.y, given.gates)
    stepper = make_stepper(SingleNetwork(network), full_batch("momentum", 60), N)
    start, before = weights_of(network), log_loss_of(network, data)
    _, gradient = smoothed(network, given, start, 1.0)
    uphill = torch.tensor(5 * gradient).split([p.numel() for p in network.parameters()])
    rate = 1e5
    stepper.state["rate"] = torch.full((1,), rate, dtype=torch.float64)
    for i, part in enumerate(uphill):
        stepper.state[f"velocity.{i}"].copy_(-part.view(stepper.state[f"velocity.{i}"].shape))
    stepper.step(data, None)
    halvings = math.log2(rate / float(stepper.state["rate"]))
    assert halvings == int(halvings) > 0
    np.testing.assert_allclose(
        weights_of(network), start - float(stepper.state["rate"]) * gradient, rtol=1e-9, atol=1e-12
    )
    velocity = [stepper.state[f"velocity.{i}"].flatten() for i in range(len(uphill))]
    np.testing.assert_allclose(torch.cat(velocity).numpy(), gradient, rtol=1e-9, atol=1e-12)
    assert log_loss_of(network, data) <= before


def test_a_step_that_no_search_can_mend_is_not_taken() -> None:
    given = problem("gln")
    network = given.network()
    data = place_data(network, given.X, given.y, given.gates)
    stepper = make_stepper(SingleNetwork(network), full_batch("momentum", 60), N)
    start, before = weights_of(network), log_loss_of(network, data)
    stepper.state["rate"] = torch.full((1,), 1e40, dtype=torch.float64)
    stepper.step(data, None)
    np.testing.assert_array_equal(weights_of(network), start)
    for _ in range(30):
        stepper.step(data, None)
    assert log_loss_of(network, data) < before - 0.1


def test_the_first_step_is_within_the_weights_unless_these_are_the_predictor() -> None:
    for model, length in (("linear", None), ("gln", 1.0), ("deep-linear", 1.0)):
        given = problem(model)
        network = given.network(init_scale=1e-3)
        data = place_data(network, given.X, given.y, given.gates)
        start = weights_of(network)
        _, gradient = smoothed(network, given, start, 1.0)
        make_stepper(SingleNetwork(network), full_batch("normalised", 1), N).step(data, None)
        moved = np.linalg.norm(weights_of(network) - start)
        if length is None:
            # What lowers log(loss) by 1 if it goes on as it begins, or a power of two of it.
            halvings = -math.log2(moved * np.linalg.norm(gradient))
            assert halvings == pytest.approx(round(halvings), abs=1e-9)
            assert moved > np.linalg.norm(start)
        else:
            assert moved == pytest.approx(length * np.linalg.norm(start), rel=1e-9)


# The logarithmic frame


@pytest.mark.parametrize("model", ["linear", "gln"])
def test_a_normalised_step_is_a_plain_one_of_rate_over_loss(model) -> None:
    given = problem(model)
    warm = given.network()
    train(warm, given.X, given.y, given.gates, settings=full_batch("constant", 60, 1.0))
    data = place_data(warm, given.X, given.y, given.gates)
    loss = math.exp(log_loss_of(warm, data))
    assert 1e-4 < loss < 1e-1
    results = []
    for trainer, rate in (("normalised", 0.05), ("constant", 0.05 / loss)):
        network = given.network()
        network.load_state_dict(warm.state_dict())
        train(network, given.X, given.y, given.gates, settings=full_batch(trainer, 1, rate))
        results.append(weights_of(network))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10)
    assert np.abs(results[0] - weights_of(warm)).max() > 1e-3


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_normalised_step_goes_on_where_the_loss_is_zero_in_floating_point(loss) -> None:
    given = problem("linear")
    w = 1e4 * solve_linear_svm(given.X, given.y).zeta
    margins = given.y * (given.X @ w)
    assert margins.min() > 2000
    results = {}
    for trainer in ("normalised", "constant"):
        network = DeepLinear.from_weights(w[None])
        settings = full_batch(trainer, 1, 0.5, loss=loss)
        trajectory = train(network, given.X, given.y, None, settings=settings)
        assert trajectory.loss[-1] == 0
        assert trajectory.log_loss[-1] < -2000
        results[trainer] = weights_of(network)
    np.testing.assert_array_equal(results["constant"], w)
    shares = np.exp(margins.min() - margins)
    shares /= shares.sum()
    step = 0.5 * (shares * given.y) @ given.X
    np.testing.assert_allclose(results["normalised"] - w, step, rtol=1e-8, atol=1e-9)


# Work, precision, devices


class Counting(torch.nn.Module):
    """A network that counts its forward passes."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.inner, self.n_passes = network, 0
        self.degree = network.degree

    def forward(self, X: torch.Tensor, gates: torch.Tensor | None) -> torch.Tensor:
        self.n_passes += 1
        return self.inner(X, gates)


def test_steps_cost_one_forward_pass_and_now_and_then_one_more() -> None:
    given = problem("linear")

    def passes(trainer: str, rate: float | None, steps: int) -> int:
        network = Counting(given.network())
        settings = full_batch(trainer, steps, rate, n_checkpoints=2)
        train(network, given.X, given.y, None, settings=settings)
        return network.n_passes - 2  # the rows of the trajectory

    assert passes("constant", 0.1, 50) == 50
    assert passes("normalised", 0.1, 50) == 50
    assert passes("dual", None, 50) == 50 + 1  # the longest sample, once
    # Step sizes grow by 2 % and are halved again: one retry in 35 steps, and a few to begin with.
    assert 100 <= passes("normalised", None, 200) - passes("normalised", None, 100) <= 106
    # Quasi-Newton steps are taken whole but for one in ten or so; two more passes to begin with.
    assert 202 <= passes("annealed", None, 200) <= 230


@pytest.mark.parametrize(("trainer", "model"), SOME)
def test_networks_in_float32_come_as_far_as_their_precision_lets_them(trainer, model) -> None:
    given = problem(model)
    network = given.network(dtype=torch.float32)
    trajectory = train(network, given.X, given.y, given.gates, settings=full_batch(trainer, 200))
    ratio = trajectory.normalised_margin * given.optimum
    assert all(p.dtype == torch.float32 for p in network.parameters())
    assert ratio[-1] > (0.99 if trainer in ("dual", "annealed") else 0.85)
    assert np.all(ratio <= 1 + 1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("trainer", "model"), FITTING)
def test_trainers_do_the_same_on_a_gpu(trainer, model) -> None:
    given = problem(model)
    here, there = given.network(), given.network(device="cuda")
    for network in (here, there):
        train(network, given.X, given.y, given.gates, settings=full_batch(trainer, 20))
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        assert b.device.type == "cuda"
        torch.testing.assert_close(b.cpu(), a, rtol=1e-8, atol=1e-10)


# Side by side


def test_a_network_that_finds_no_step_stays_and_drops_its_pairs_while_the_others_go_on() -> None:
    given = problem("gln")
    networks = [given.network(random_state=seed) for seed in (1, 2)]
    alone = given.network(random_state=1)
    data = place_data(alone, given.X, given.y, given.gates)
    together, single = (
        make_stepper(StackedNetworks(networks), full_batch("annealed", 6), N),
        make_stepper(SingleNetwork(alone), full_batch("annealed", 6), N),
    )
    for step in range(6):
        if step == 3:
            together.state["log_loss"][1] -= 100.0  # below what any step will reach
            stuck = together.state["point"][1].clone()
        together.step(data, None)
        single.step(data, None)
        if step == 3:
            assert torch.equal(together.state["point"][1], stuck)
            assert float(together.state["initial_scale"][1]) == 0
    assert not torch.equal(together.state["point"][1], stuck)
    np.testing.assert_allclose(
        together.state["point"][0], single.state["point"][0], rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize(
    ("trainer", "rate", "model", "rtol"),
    some_of(
        [
            ("constant", 0.1, "gln", 1e-10),
            ("dual", None, "linear", 1e-10),
            ("annealed", None, "linear", 1e-3),
            ("annealed", None, "gln", 1e-3),
        ],
        one_in=3,
    ),
)
def test_margins_side_by_side_are_those_alone_to_rounding_or_to_what_is_left_where_it_tips_steps(
    trainer, rate, model, rtol
) -> None:
    given, settings = problem(model), full_batch(trainer, 400, rate)
    networks = [given.network(random_state=seed) for seed in (1, 2)]
    together = train_many(networks, given.X, given.y, given.gates, settings=settings)
    for seed, run in zip((1, 2), together, strict=True):
        alone = given.train(settings, random_state=seed)
        assert run.normalised_margin[-1] == pytest.approx(alone.normalised_margin[-1], rel=rtol)


@pytest.mark.parametrize("trainer", ["dual", "annealed", "normalised", "momentum"])
def test_inputs_that_are_all_zero_leave_the_weights_where_they_are(trainer) -> None:
    network = DeepLinear(D, random_state=1)
    before = unit(weights_of(network))
    trajectory = train(
        network, np.zeros((4, D)), np.array([1.0, -1, 1, -1]), None,
        settings=full_batch(trainer, 30),
    )  # fmt: skip
    np.testing.assert_allclose(trajectory.log_loss, math.log(math.log(2)), rtol=1e-12)
    np.testing.assert_allclose(unit(weights_of(network)), before, atol=1e-12)


# What is refused


class Shifted(torch.nn.Module):
    """Not homogeneous: it has a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(D, 1).double()

    def forward(self, X: torch.Tensor, gates: None) -> torch.Tensor:
        return self.inner(X)[:, 0]


@pytest.mark.parametrize(
    ("trainer", "network", "message"),
    [
        ("dual", lambda: GLN(D, H, C), "linear in its weights, and GLN is not: use 'annealed'"),
        ("dual", lambda: ReLU(D, H), "linear in its weights"),
        ("dual", Shifted, "linear in its weights, and Shifted does not say .* give .* `degree`"),
        ("annealed", Shifted, "homogeneous, and Shifted does not say .* or use 'momentum'"),
    ],
)
def test_a_network_that_a_trainer_is_not_for_is_refused_before_any_step(
    trainer, network, message
) -> None:
    X, y, contexts, _ = samples()
    made = network()
    before = weights_of(made)
    gates = contexts if isinstance(made, GLN) else None
    for attempt in (
        lambda: check_trainer(trainer, made),
        lambda: train(made, X, y, gates, settings=full_batch(trainer, 5)),
        lambda: train_many([made], X, y, gates, settings=full_batch(trainer, 5)),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()
    np.testing.assert_array_equal(weights_of(made), before)


@pytest.mark.parametrize("trainer", ["constant", "normalised", "momentum"])
def test_trainers_of_any_network_take_one_with_biases(trainer) -> None:
    X, y, _, _ = samples()
    torch.manual_seed(0)
    rate = 0.1 if trainer == "constant" else None
    trajectory = train(Shifted(), X, y, None, settings=full_batch(trainer, 60, rate))
    assert trajectory.loss[-1] < 0.5 * trajectory.loss[0]


def test_samples_of_a_dual_step_are_measured_in_parts_that_fit_in_memory() -> None:
    X, y, _, _ = samples()
    data = place_data(DeepLinear(D), X, y, None)
    sizes = []
    for entries in (1, 4 * D, 2**20):
        network = SingleNetwork(DeepLinear(D, random_state=1))
        stepper = DualAcceleration(network, full_batch("dual", 1), N, max_entries=entries)
        stepper.step(data, None)
        sizes.append(float(stepper.state["size"]))
    expected = 1 / (np.linalg.norm(X, axis=1) ** 2).max()
    np.testing.assert_allclose(sizes, expected, rtol=1e-12)
