"""Steepest descent in norms, with momentum, and Adam: steps, scales, and where they end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog

from implicit_bias import DeepLinear, FReLU, TrainingSettings, optim, solve_linear_svm, train
from implicit_bias.limits import Norm
from implicit_bias.training import TRAINERS, dual_norms, norms_of, steepest
from tests.long import some_of

Array = NDArray[np.float64]

RNG = np.random.default_rng(5)
N, D, H = 12, 6, 3
X = RNG.normal(size=(N, D))
Y = np.sign(X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 2.0]))
GATES = np.column_stack([np.ones(N), RNG.random((N, H - 1)) < 0.6]).astype(float)
NAMES = (
    "l2", "linf", "l1", "spectral", "nuclear", "rows", "columns", "largest-row", "largest-column",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_steps_of_several_networks_are_the_steepest_of_the_norm(name) -> None:
    norm = Norm.of(name)
    gradients = RNG.normal(size=(4, 5, 3))
    gradients[1, :, 2] = -gradients[1, :, 0] - gradients[1, :, 1]  # of rank 2
    gradients[2] = np.outer(gradients[2, :, 0], gradients[2, 0])
    gradients[3] = 0.0
    steps = steepest(norm, torch.from_numpy(gradients)).numpy()
    for one, G in zip(steps, gradients, strict=True):
        np.testing.assert_allclose(one, norm.steepest(G), atol=1e-12)
    # Of the definition: of norm 1 or 0, and as steep as the dual norm says.
    inner = (steps * gradients).sum((1, 2))
    np.testing.assert_allclose(inner, dual_norms(norm, torch.from_numpy(gradients)), atol=1e-12)
    sizes = norms_of(norm, torch.from_numpy(steps)).numpy()
    np.testing.assert_allclose(sizes, [1, 1, 1, 0], atol=1e-12)


def test_axes_after_the_first_are_one_and_vectors_are_rows() -> None:
    spectral, units = Norm.of("spectral"), torch.from_numpy(RNG.normal(size=(2, H, 2, D)))
    whole = steepest(spectral, units.flatten(2)).view_as(units)
    torch.testing.assert_close(steepest(spectral, units), whole)
    vectors = units[:, 0, 0]
    torch.testing.assert_close(
        steepest(spectral, vectors), vectors / vectors.norm(dim=1, keepdim=True)
    )


def margins_of(w: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(Y) * (torch.from_numpy(X) @ w)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
def test_adam_takes_the_steps_of_torch(epsilon) -> None:
    """Torch has the same formula on the mean loss, without a scale of its own."""
    ours, theirs = (torch.nn.Parameter(torch.full((D,), 0.1).double()) for _ in range(2))
    adam = optim.Adam([ours], n_samples=N, lr=0.05, betas=(0.8, 0.95), epsilon=epsilon)
    peer = torch.optim.Adam([theirs], lr=0.05, betas=(0.8, 0.95), eps=epsilon)
    falling = torch.optim.lr_scheduler.LambdaLR(peer, lambda t: (1 + t / 1000) ** -0.5)
    for _ in range(40):
        adam.step(lambda: margins_of(ours))
        peer.zero_grad()
        torch.nn.functional.softplus(-margins_of(theirs)).mean().backward()
        peer.step()
        falling.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_steps_are_those_of_the_formula(momentum) -> None:
    """Of two layers, each in its norm, with the gradient of the mean loss as it is."""
    start = {"init_scale": 0.4, "random_state": 1}
    network, copy = FReLU(D, H, **start), FReLU(D, H, **start)
    groups = [{"params": [network.w1]}, {"params": list(network.upper), "norm": "linf"}]
    optimiser = optim.SteepestDescent(
        groups, norm="spectral", n_samples=N, degree=2, lr=0.02, momentum=momentum
    )
    gates, y = torch.from_numpy(GATES), torch.from_numpy(Y)
    averages = [torch.zeros_like(w) for w in copy.parameters()]
    for t in range(30):
        optimiser.step(lambda: y * network(torch.from_numpy(X), gates))
        loss = torch.nn.functional.softplus(-y * copy(torch.from_numpy(X), gates)).mean()
        gradients = torch.autograd.grad(loss, list(copy.parameters()))
        names = ("spectral", "linf")
        for w, average, gradient, name in zip(
            copy.parameters(), averages, gradients, names, strict=True
        ):
            average.mul_(momentum).add_(gradient)
            with torch.no_grad():
                w -= 0.02 * (1 + t / 1000) ** -0.5 * Norm.of(name).steepest(average)
    for ours, theirs in zip(network.parameters(), copy.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def best_margin(norm: str) -> float:
    """Largest margin of vectors of norm 1, by a linear program or the certified SVM."""
    if norm in ("l2", "spectral"):
        return 1 / solve_linear_svm(X, Y).objective
    A = Y[:, None] * X
    if norm == "linf":
        rows, bounds = np.zeros((0, D + 1)), [(-1, 1)] * D
        margins = np.column_stack([-A, np.ones(N)])
    else:
        rows, bounds = np.array([[1.0] * 2 * D + [0.0]]), [(0, None)] * (2 * D)
        margins = np.column_stack([-A, A, np.ones(N)])
    found = linprog(
        -np.eye(margins.shape[1])[-1],
        A_ub=np.vstack([margins, rows]),
        b_ub=np.r_[np.zeros(N), np.ones(len(rows))],
        bounds=[*bounds, (None, None)],
    )
    return float(-found.fun)


@pytest.mark.parametrize(
    "trainer",
    some_of(["sign", "spectral", "coordinate", "signum", "muon", "adam", "lion"], one_in=7),
)
def test_linear_predictors_go_to_the_largest_margin_in_the_norm_of_the_trainer(trainer) -> None:
    network = DeepLinear(D, init_scale=0.1)
    settings = TrainingSettings(trainer=trainer, schedule=((3000, None),), n_checkpoints=4)
    trajectory = train(network, X, Y, settings=settings)
    (name,) = TRAINERS[trainer].norms_of(1)
    size = Norm.of(name).value(network.zeta().detach().numpy()[None])
    ratio = float(trajectory.smallest_margin[-1]) / size / best_margin(name)
    assert 0.96 < ratio <= 1 + 1e-9


def largest_in_the_largest_entry(inputs: Array, y: Array) -> float:
    """Largest margin of vectors in [-1, 1], by a linear program."""
    A = y[:, None] * inputs
    n_inputs = inputs.shape[1]
    found = linprog(
        -np.eye(n_inputs + 1)[-1],
        A_ub=np.column_stack([-A, np.ones(len(A))]),
        b_ub=np.zeros(len(A)),
        bounds=[(-1, 1)] * n_inputs + [(None, None)],
    )
    return float(-found.fun)


@pytest.mark.parametrize(
    ("measured", "least", "most"), some_of([(True, 0.9, 1.0), (False, -1.0, 0.5)], one_in=2)
)
def test_signs_of_inputs_with_a_common_part_need_sizes_that_are_measured(
    measured, least, most
) -> None:
    """All entries turn with the balance of the labels, and steps that fall go to and fro."""
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    inputs = np.random.default_rng(0).normal(size=(12, 16)) + 4
    rate = None if measured else 0.3 / float(np.abs(inputs).sum(1).max())
    network = DeepLinear(16, init_scale=0.1)
    settings = TrainingSettings(trainer="sign", schedule=((2500, rate),))
    trajectory = train(network, inputs, y, settings=settings)
    size = float(network.zeta().detach().abs().max())
    ratio = float(trajectory.smallest_margin[-1]) / size
    assert least < ratio / largest_in_the_largest_entry(inputs, y) <= most


def test_measured_sizes_are_those_of_the_formula_and_lower_the_loss_as_promised() -> None:
    """The exponential loss falls by (1 - kappa) times the size times the slope, at the least."""
    w = torch.nn.Parameter(torch.from_numpy(0.1 * X[0]))
    optimiser = optim.SteepestDescent([w], norm="linf", n_samples=N, degree=1, loss="exponential")
    A = Y[:, None] * X
    sizes = []
    for t in range(40):
        before = w.detach().numpy().copy()
        p = np.exp(-A @ before)
        loss = p.mean()
        p /= p.sum()
        step = np.sign(p @ A)
        rates, kappa = A @ step, 0.6 * (1 + t / 20000) ** -0.25
        size = min(kappa * (p @ rates) / (p @ rates**2), 1 / np.abs(rates).max())
        margins = optimiser.step(lambda: margins_of(w))
        np.testing.assert_allclose(w.detach().numpy(), before + size * step, rtol=1e-9)
        np.testing.assert_allclose(margins.numpy(), A @ before, rtol=1e-12)  # before the step
        fall = np.log(loss) - np.log(np.exp(-A @ w.detach().numpy()).mean())
        assert fall >= (1 - kappa) * size * (p @ rates)
        sizes.append(size)
    assert max(sizes) > 2 * min(sizes)


def test_measured_sizes_of_classes_weigh_every_pair() -> None:
    """Beside the same rows of margins f_y - f_k under the exponential loss of each."""
    labels = np.arange(N) % 3
    network = DeepLinear(D, n_outputs=3, random_state=1)
    B = network.zeta().detach().numpy().copy()
    settings = TrainingSettings(trainer="sign", loss="exponential", schedule=((15, None),))
    train(network, X, np.eye(3)[labels], settings=settings)
    for t in range(15):
        scores = X @ B.T
        margins = scores[np.arange(N), labels][:, None] - scores
        wrong = np.arange(3) != labels[:, None]
        p = np.where(wrong, np.exp(-margins), 0.0)
        p /= p.sum()
        weights = p * -1.0
        weights[np.arange(N), labels] = p.sum(1)
        step = np.sign(weights.T @ X)
        moved = X @ step.T
        rates = np.where(wrong, moved[np.arange(N), labels][:, None] - moved, 0.0)
        kappa = 0.3 * (1 + t / 20000) ** -0.25
        best = kappa * (p * rates).sum() / (p * rates**2).sum()
        B += min(best, 1 / np.abs(rates).max()) * step
    np.testing.assert_allclose(network.zeta().detach().numpy(), B, rtol=1e-8)


def test_a_gradient_of_0_leaves_weights_where_they_are() -> None:
    """Two equal inputs of both labels, at equal scores: nothing is steepest."""
    w, y = torch.nn.Parameter(torch.zeros(2).double()), torch.tensor([1.0, -1.0]).double()
    optimiser = optim.SteepestDescent([w], norm="linf", n_samples=2, degree=1)
    for _ in range(3):
        optimiser.step(lambda: y * (torch.ones(2, 2).double() @ w))
    assert w.tolist() == [0.0, 0.0]


def test_lion_takes_the_steps_of_its_own_two_lines() -> None:
    network = DeepLinear(D, random_state=1)
    w, m = network.zeta().detach().numpy().copy(), np.zeros(D)
    decay, rate = 0.3, 0.02
    settings = TrainingSettings(
        trainer="lion", schedule=((12, rate),), weight_decay=decay, decay="decoupled"
    )
    train(network, X, Y, settings=settings)
    for step in range(12):
        slope = -np.mean((Y / (1 + np.exp(Y * (X @ w))))[:, None] * X, axis=0)
        size = rate / (1 + step / 1000) ** 0.5
        w = (1 - size * decay) * w - size * np.sign(0.9 * m + 0.1 * slope)
        m = 0.99 * m + 0.01 * slope
    np.testing.assert_allclose(network.zeta().detach().numpy(), w, rtol=1e-12)


@pytest.mark.parametrize(("trainer", "rate"), [("signum", 50.0), ("adam", 5000.0)])
def test_what_is_remembered_outlives_the_range_of_floats(trainer, rate) -> None:
    """The loss falls below all that a float holds, squares of gradients long before."""
    network = DeepLinear(D)
    settings = TrainingSettings(trainer=trainer, schedule=((600, rate),))
    trajectory = train(network, X, Y, settings=settings)
    assert trajectory.loss[-1] == 0 and trajectory.log_loss[-1] < -1000
    assert trajectory.smallest_margin[-1] > 0
    assert bool(torch.isfinite(network.zeta()).all())


def test_muon_as_shipped_has_no_polar_factors() -> None:
    network, exact = DeepLinear(D, hidden_widths=(4,)), DeepLinear(D, hidden_widths=(4,))
    steps = {}
    for one, polar in ((network, "newton-schulz"), (exact, "exact")):
        before = one.layers[0].detach().clone()
        optimiser = optim.SteepestDescent(
            one.parameters(), norm="spectral", n_samples=N, degree=2, lr=1.0, polar=polar
        )
        optimiser.step(lambda one=one: torch.from_numpy(Y) * one(torch.from_numpy(X)))
        steps[polar] = torch.linalg.svdvals(before - one.layers[0].detach())
    assert float(steps["exact"][0]) == pytest.approx(1, abs=1e-12)
    assert float(abs(steps["newton-schulz"][0] - 1)) > 1e-3
    assert 0.6 < float(steps["newton-schulz"][0]) < 1.3


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"norm": "l3"}, ValueError, "`norm` must be one of"),
        ({"norm": "linf", "momentum": 1.0}, ValueError, "`momentum`"),
        ({"norm": "linf", "polar": "cubic"}, ValueError, "`polar` must be one of"),
        ({"norm": "linf", "loss": "squared"}, ValueError, "logarithm of the loss"),
    ],
)
def test_arguments_out_of_range_are_refused(keywords, error, message) -> None:
    with pytest.raises(error, match=message):
        optim.SteepestDescent([torch.nn.Parameter(torch.ones(3))], n_samples=2, **keywords)


@pytest.mark.parametrize("betas", [(0.9,), (0.9, 1.0), "ab", 0.9])
def test_adams_betas_are_two_shares(betas) -> None:
    with pytest.raises((TypeError, ValueError), match="`betas` must be two numbers"):
        optim.Adam([torch.nn.Parameter(torch.ones(3))], n_samples=2, betas=betas)


def test_groups_have_norms_and_no_rates() -> None:
    one, two = (torch.nn.Parameter(torch.ones(2, 2)) for _ in range(2))
    group: dict[str, Any] = {"params": [two], "lr": 0.1}
    with pytest.raises(ValueError, match="groups of SteepestDescent have norm of their own"):
        optim.SteepestDescent([{"params": [one]}, group], norm="linf", n_samples=2, lr=0.2)
    with pytest.raises(ValueError, match="`norm` must be one of"):
        optim.SteepestDescent([{"params": [one], "norm": "l3"}], norm="linf", n_samples=2)


def test_every_trainer_has_norms_that_there_are() -> None:
    for trainer in TRAINERS.values():
        assert all(Norm.of(name).name == name for name in trainer.norms_of(3))
    assert TRAINERS["muon"].norms_of(3) == ("spectral", "spectral", "linf")
    assert TRAINERS["muon"].norms_of(1) == ("spectral",)
    assert math.isclose(TRAINERS["signum"].own_momentum, 0.9)
