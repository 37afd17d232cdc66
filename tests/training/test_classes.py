"""Networks of K outputs under softmax: losses, trainers, and where they end."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import (
    GLN,
    DeepLinear,
    FReLU,
    ReLU,
    Sample,
    ShallowGLN,
    TrainingSettings,
    Trajectory,
    kkt_distance,
    train,
    train_many,
)
from implicit_bias.limits import solve_multiclass_svm
from implicit_bias.networks import CopiedUnits
from implicit_bias.training import log_mean_loss_gradient, mean_loss_gradient
from tests.long import some_of

Array = NDArray[np.float64]

# Separable by construction: labels are those of a linear predictor.
K, N, D = 3, 24, 9
RNG = np.random.default_rng(5)
X, B0 = RNG.normal(size=(N, D)), RNG.normal(size=(K, D))
LABELS = (X @ B0.T).argmax(axis=1)
Y = np.eye(K)[LABELS]
CONTEXTS = np.stack([X[:, 0] > 0, X[:, 1] > 0.3], axis=1).astype(int)
# Two units behind each gate: a lone one has the same input weights for every class.
GATES = np.repeat(np.stack([X[:, 0] > 0, X[:, 0] <= 0], axis=1).astype(float), 2, axis=1)
# cvxpy with Clarabel, to the printed digits (least norm at relative margins 1).
FROBENIUS, NUCLEAR = 2.93201800, 4.02655404

TRAINERS: dict[str, dict[str, Any]] = {
    "constant": {"trainer": "constant", "schedule": ((60, 0.5),), "batch_size": 0},
    "mini-batches": {"trainer": "constant", "schedule": ((60, 0.5),), "batch_size": 7},
    "normalised": {"trainer": "normalised", "schedule": ((60, 0.1),), "momentum": 0.5},
    "line search": {"trainer": "normalised", "schedule": ((60, None),)},
    "momentum": {"trainer": "momentum", "schedule": ((60, None),)},
    "dual": {"trainer": "dual", "schedule": ((60, None),)},
    "annealed": {"trainer": "annealed", "schedule": ((60, None),)},
}


def relative_margins(scores: Array) -> Array:
    """Of every sample over every other class, (n (K - 1),)."""
    others = scores[np.arange(N), LABELS][:, None] - scores
    return others[np.eye(K)[LABELS] == 0]


@pytest.mark.parametrize("scale", [0.3, 30.0])
def test_logistic_loss_of_classes_is_the_cross_entropy_of_softmax(scale: float) -> None:
    scores = torch.tensor(scale * X @ B0.T, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(scores, torch.tensor(LABELS))
    (expected,) = torch.autograd.grad(loss, scores)
    y = torch.tensor(Y)
    found = mean_loss_gradient(scores.detach(), y, "logistic")
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-15)
    found = log_mean_loss_gradient(scores.detach(), y, "logistic")
    torch.testing.assert_close(found, expected / loss.detach(), rtol=1e-7, atol=1e-12)


def exact_log_loss(scores: Array, kind: str) -> float:
    """Log of the mean loss of all samples, in 1500 digits."""
    with decimal.localcontext() as context:
        context.prec = 1500
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        total = decimal.Decimal(0)
        for row, own in zip(scores, LABELS, strict=True):
            terms = [
                (decimal.Decimal(float(f)) - decimal.Decimal(float(row[own]))).exp()
                for k, f in enumerate(row) if k != own
            ]  # fmt: skip
            total += (1 + sum(terms)).ln() if kind == "logistic" else sum(terms)
        return float((total / N).ln())


@pytest.mark.parametrize("kind", ["logistic", "exponential"])
def test_log_loss_and_its_steps_go_on_beyond_the_smallest_number(kind: str) -> None:
    network = DeepLinear.from_zeta(B0 * 2e4)
    settings = TrainingSettings(
        trainer="normalised", loss=kind, schedule=((5, 0.1),), n_checkpoints=6
    )
    trajectory = train(network, X, Y, settings=settings)
    expected = exact_log_loss(2e4 * X @ B0.T, kind)
    assert expected < -700 and trajectory.loss[0] == 0  # below what a float holds
    assert trajectory.log_loss[0] == pytest.approx(expected, rel=1e-12)
    assert np.all(np.diff(trajectory.log_loss) < 0)
    exact = relative_margins(2e4 * X @ B0.T).min()
    assert trajectory.smallest_margin[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", TRAINERS)
def test_two_classes_train_as_the_difference_of_both_scores_does(name: str) -> None:
    y = np.where(LABELS == 0, 1.0, -1.0)
    settings = TrainingSettings(**TRAINERS[name], random_state=3)
    both = DeepLinear.from_zeta(np.zeros((2, D)) + 1e-3 * np.array([[1.0], [-1.0]]) * B0[0])
    one = DeepLinear.from_zeta(2e-3 * B0[0])
    # Each of two outputs gets the gradient of one, so that their difference goes at twice its rate.
    rates = [rate if rate is None else 2 * rate for _, rate in settings.phases]
    schedule = tuple((k, r) for (k, _), r in zip(settings.phases, rates, strict=True))
    doubled = TrainingSettings(**{**TRAINERS[name], "schedule": schedule}, random_state=3)
    of_two = train(both, X, np.stack([y == 1, y == -1], axis=1), settings=settings)
    of_one = train(one, X, y, settings=doubled)
    difference = both.zeta()[0] - both.zeta()[1]
    if name == "annealed":  # whose temperature is in units of the weights' length
        cosine = torch.nn.functional.cosine_similarity(difference, one.zeta(), dim=0)
        assert float(cosine.detach()) > 0.999
        return
    np.testing.assert_allclose(of_two.log_loss, of_one.log_loss, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(difference, one.zeta(), rtol=1e-7, atol=1e-9)


ENDS: dict[str, tuple[Callable[[], torch.nn.Module], float, str, float]] = {
    "one layer, momentum": (lambda: DeepLinear(D, n_outputs=K), FROBENIUS, "momentum", 0.995),
    "one layer, dual": (lambda: DeepLinear(D, n_outputs=K), FROBENIUS, "dual", 0.995),
    "one layer, annealed": (lambda: DeepLinear(D, n_outputs=K), FROBENIUS, "annealed", 0.9999),
    "two layers, annealed": (
        lambda: DeepLinear(D, hidden_widths=(5,), n_outputs=K), NUCLEAR, "annealed", 0.9999,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some_of(ENDS, one_in=2))
def test_training_ends_at_the_program_of_its_depth_and_never_beyond(name: str) -> None:
    make, optimum, trainer, least = ENDS[name]
    network = make()
    settings = TrainingSettings(trainer=trainer, schedule=((500, None),))
    trajectory = train(network, X, Y, settings=settings)
    ratios = trajectory.normalised_margin * optimum
    assert least < ratios[-1] and np.all(ratios <= 1 + 1e-7)
    margin = relative_margins(X @ network.zeta().detach().numpy().T).min()
    assert trajectory.smallest_margin[-1] == pytest.approx(margin, rel=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_balanced_weights_of_a_matrix_are_the_shortest(depth: int) -> None:
    network = DeepLinear.from_zeta(B0, hidden_widths=(4,) * (depth - 1))
    np.testing.assert_allclose(network.zeta().detach(), B0, atol=1e-12)
    values = np.linalg.svd(B0, compute_uv=False)
    squared = sum(float(w.detach().square().sum()) for w in network.parameters())
    assert squared == pytest.approx(depth * np.sum(values ** (2 / depth)), rel=1e-12)
    norm = np.sum(values ** (2 / depth)) ** (depth / 2)
    assert float(network.unit_norms().detach()[0]) == pytest.approx(norm, rel=1e-12)
    balanced = DeepLinear(D, hidden_widths=(4,) * (depth - 1), n_outputs=K, init="balanced")
    for below, above in zip(balanced.layers[:-1], balanced.layers[1:], strict=True):
        torch.testing.assert_close(above.T @ above, below @ below.T)
    if depth > 1:
        with pytest.raises(ValueError, match="rank 3, more than a layer of width 2"):
            DeepLinear.from_zeta(B0, hidden_widths=(2,) * (depth - 1))


NETWORKS: dict[str, tuple[Callable[..., torch.nn.Module], Any]] = {
    "linear": (lambda **k: DeepLinear(D, n_outputs=K, **k), None),
    "deep-linear": (lambda **k: DeepLinear(D, hidden_widths=(4, 5), n_outputs=K, **k), None),
    "shallow-gln": (lambda **k: ShallowGLN(D, CONTEXTS, n_outputs=K, **k), CONTEXTS),
    "gln": (lambda **k: GLN(D, 2, 2, n_outputs=K, **k), CONTEXTS),
    "frelu": (lambda **k: FReLU(D, 4, upper_widths=(5,), n_outputs=K, **k), GATES),
    "balanced frelu": (lambda **k: FReLU(D, 4, n_outputs=K, init="balanced", **k), GATES),
    "copied gln": (lambda **k: CopiedUnits(GLN(D, 2 * K, 2, n_outputs=K, **k), K), CONTEXTS),
}


def features(name: str) -> Array:
    """Features (n, J, D) on which the scores of K outputs are linear: scores = <zeta, features>."""
    if name in ("linear", "deep-linear"):
        return X[:, None, :]
    if name == "shallow-gln":
        _, row = np.unique(CONTEXTS, axis=0, return_inverse=True)
        return np.eye(int(row.max()) + 1)[row.ravel()][:, :, None] * X[:, None, :]
    if name in ("gln", "copied gln"):
        return np.eye(2)[CONTEXTS].reshape(N, 4)[:, :, None] * X[:, None, :]
    return GATES[:, :, None] * X[:, None, :]


@pytest.mark.parametrize("name", NETWORKS)
def test_scores_are_linear_in_the_coefficients_of_every_output(name: str) -> None:
    make, gates = NETWORKS[name]
    network = make(random_state=2)
    sample = Sample(X, Y, gates)
    prepared = None if gates is None else network.prepare(gates)
    found = network(torch.tensor(sample.X), prepared).detach().numpy()
    zeta = network.zeta().detach().numpy()
    if name not in ("linear", "deep-linear"):  # units or contexts come first
        zeta = np.moveaxis(zeta, 1, 0)
    zeta = zeta.reshape(K, -1, D)
    np.testing.assert_allclose(found, np.einsum("kjd,njd->nk", zeta, features(name)), atol=1e-12)


@pytest.mark.parametrize("contexts", [False, True])
def test_copied_units_attain_the_sum_of_nuclear_norms(contexts: bool) -> None:
    gates, C = (CONTEXTS, 2) if contexts else (GATES[:, ::2], None)
    limit = solve_multiclass_svm(X, LABELS, gates, norm="sum-nuclear", n_contexts=C).require()
    # The least weights of a gate's matrix: balanced factors, a copy a singular value.
    U, s, W = np.linalg.svd(limit.zeta.reshape(2, K, -1), full_matrices=False)
    outer = (U * np.sqrt(s)[:, None, :]).transpose(1, 0, 2).reshape(K, 2 * K)
    inner = (np.sqrt(s)[:, :, None] * W).reshape(2 * K, *((2, D) if contexts else (D,)))
    units = (GLN if contexts else FReLU).from_weights(inner, outer)
    network = CopiedUnits(units, K)
    np.testing.assert_allclose(network.zeta().detach(), limit.zeta, atol=1e-9)
    squared = sum(float(w.detach().square().sum()) for w in network.parameters())
    assert squared / 2 == pytest.approx(limit.objective, rel=1e-7)
    assert float(network.unit_norms().detach().sum()) == pytest.approx(limit.objective, rel=1e-7)
    with torch.no_grad():
        scores = network(torch.tensor(X), network.prepare(gates)).numpy()
    assert relative_margins(scores).min() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_classes_train_side_by_side_as_they_do_alone(name: str) -> None:
    make, gates = NETWORKS[name]
    settings = TrainingSettings(trainer="constant", schedule=((15, 0.2),), batch_size=8)
    together = train_many(
        [make(random_state=seed) for seed in (1, 2)], X, Y, gates, settings=settings,
        X_val=X[:4], gates_val=None if gates is None else gates[:4],
    )  # fmt: skip
    for seed, one in zip((1, 2), together, strict=True):
        alone = train(
            make(random_state=seed), X, Y, gates, settings=settings,
            X_val=X[:4], gates_val=None if gates is None else gates[:4],
        )  # fmt: skip
        np.testing.assert_allclose(one.log_loss, alone.log_loss, rtol=1e-10)
        np.testing.assert_allclose(one.scores, alone.scores, rtol=1e-9, atol=1e-12)
        assert one.scores.shape[1:] == (4, K)


@pytest.mark.parametrize("name", ["momentum", "annealed", "mini-batches"])
def test_a_resumed_run_of_classes_equals_one_that_never_stopped(tmp_path, name: str) -> None:
    settings = TrainingSettings(**TRAINERS[name], n_checkpoints=10)
    make = NETWORKS["deep-linear"][0]
    whole = train(make(), X, Y, settings=settings)

    def stop(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 20:
            raise StopIteration

    state = tmp_path / "run.safetensors"
    part = train(make(), X, Y, settings=settings, callback=stop, state=state)
    network = make()
    resumed: Trajectory = train(network, X, Y, settings=settings, state=state, resume=True)
    assert not part.finished and resumed.finished
    np.testing.assert_array_equal(resumed.log_loss, whole.log_loss)


def linearised_distance(network: torch.nn.Module) -> float:
    """Relative residual of the KKT conditions, by cvxpy on all relative margins' gradients."""
    weights = list(network.parameters())
    scores = network(torch.tensor(X), None)
    rows, margins = [], []
    for n, own in enumerate(LABELS):
        for k in range(K):
            if k == own:
                continue
            margin = scores[n, own] - scores[n, k]
            gradient = torch.autograd.grad(margin, weights, retain_graph=True)
            rows.append(torch.cat([g.flatten() for g in gradient]).numpy())
            margins.append(float(margin.detach()))
    w = torch.cat([p.detach().flatten() for p in weights]).numpy()
    scale = min(margins) ** (1 / network.degree)  # type: ignore[operator]
    matrix = np.array(rows) / scale ** (network.degree - 1)  # type: ignore[operator]
    lam = cp.Variable(len(matrix), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.norm(matrix.T @ lam - w / scale)))
    problem.solve(solver="CLARABEL")
    return float(problem.value) / float(np.linalg.norm(w / scale))


@pytest.mark.parametrize("width", [None, 5])
def test_kkt_distance_of_classes_is_that_of_their_relative_margins(width: int | None) -> None:
    widths = () if width is None else (width,)
    network = DeepLinear(D, hidden_widths=widths, n_outputs=K, random_state=1)
    train(network, X, Y, settings=TrainingSettings(trainer="momentum", schedule=((40, None),)))
    found = kkt_distance(network, X, Y, None)
    expected = linearised_distance(network)
    assert found.residual_bound <= expected * (1 + 1e-6)
    assert found.residual == pytest.approx(expected, rel=1e-3) and expected > 1e-3
    assert found.multipliers.shape == (N, K)
    assert np.all(found.multipliers[Y == 1] == 0) and found.multipliers.sum() > 0


@pytest.mark.parametrize("name", some_of(["shallow-gln", "balanced frelu", "copied gln"], one_in=3))
def test_kkt_distance_takes_gates_of_classes(name: str) -> None:
    make, gates = NETWORKS[name]
    network = make(random_state=1)
    settings = TrainingSettings(trainer="annealed", schedule=((300, None),))
    train(network, X, Y, gates, settings=settings)
    assert kkt_distance(network, X, Y, gates).residual < 1e-2


@pytest.mark.parametrize(
    ("network", "y", "settings", "message"),
    [
        (DeepLinear(D, n_outputs=K), LABELS, {}, r"give K classes as the rows np\.eye\(K\)"),
        (DeepLinear(D, n_outputs=K), 1.0 - 2 * (LABELS > 0), {}, r"y = np\.eye\(K\)\[labels\]"),
        (DeepLinear(D), Y, {}, r"scores of shape \(24, 3\)"),
        (DeepLinear(D, n_outputs=K), Y[:, :2], {}, "one target a row of X"),
        (DeepLinear(D, n_outputs=K), Y, {"trainer": "newton"}, "'newton'"),
        (DeepLinear(D, n_outputs=K), Y, {"trainer": "smoothed"}, "'smoothed'.*ReLU"),
        (ReLU(D, 3), Y, {"trainer": "smoothed"}, r"scores of shape \(24, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(network, y, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        train(network, X, y, settings=TrainingSettings(**settings))
