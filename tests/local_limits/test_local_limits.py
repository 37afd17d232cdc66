"""Local limits: closed forms, convex optima, and certificates computed here a second time."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.linalg import null_space

from implicit_bias import (
    DGN,
    GLN,
    DeepLinear,
    FReLU,
    Status,
    TrainingSettings,
    local_limit,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
    train,
)
from implicit_bias.limits import same_limit, solve_multiclass_svm
from implicit_bias.limits.local import (
    Point,
    approaches,
    polish,
    pose_problem,
    second_order_steps,
)
from tests.commands import home
from tests.oracles import A, B, gln_problem, hard_margin, quadrants, quadrants_zeta

N, D = 16, 5
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(N, D)), np.sign(RNG.normal(size=N))
GATES = (RNG.random((N, 14)) < 0.7).astype(float)


def trained(network, X, y, gates, steps=300):
    network = copy.deepcopy(network)
    settings = TrainingSettings(trainer="annealed", schedule=((steps, None),))
    train(network, X, y, gates=gates, settings=settings)
    return network


@pytest.fixture(scope="module")
def run() -> list[torch.nn.Module]:
    """A network gated in two layers after 100, 300 and 900 steps."""
    start = DGN(D, widths=(7, 7), init="gaussian", random_state=4)
    return [trained(start, X, Y, GATES, steps) for steps in (100, 300, 900)]


@pytest.fixture(scope="module")
def limit(run):
    return local_limit(run[-1], X, Y, GATES)


class Diagonal(torch.nn.Module):
    """`f(x) = sum_j u_1j ... u_Lj x_j`."""

    def __init__(self, depth: int, n_inputs: int) -> None:
        super().__init__()
        start = torch.zeros(depth, n_inputs, dtype=torch.float64)
        start[:, 0] = 1
        self.u = torch.nn.Parameter(start)

    @property
    def degree(self) -> int:
        return len(self.u)

    def forward(self, X: torch.Tensor, gates: None = None) -> torch.Tensor:
        return X @ self.u.prod(0)


# Second order, in closed form


@pytest.mark.parametrize(
    ("unit", "norm", "status"),
    [(0, A / B, Status.SADDLE), (1, B / A, Status.LOCAL_OPTIMUM)],
)
def test_curvature_of_a_dead_unit_is_one_less_its_dual_norm(unit, norm, status) -> None:
    found = local_limit(GLN.from_zeta(quadrants_zeta(unit)), *quadrants())
    assert found.status is status
    assert found.curvature[0] == pytest.approx(1 - norm, abs=1e-12)
    assert (found.escape is not None) == (norm > 1)


def test_a_way_down_from_a_saddle_does_not_depend_on_the_length_of_its_direction(
    monkeypatch,
) -> None:
    ways = []

    def watched(problem, point, direction):
        found = original(problem, point, direction)
        assert found is not None
        for length in (1e-6, 1e6):
            again = original(problem, point, length * direction)
            assert torch.allclose(again, found, rtol=1e-9)
        ways.append(found)
        return found

    original = home(local_limit).escaped
    monkeypatch.setattr(home(local_limit), "escaped", watched)
    assert local_limit(GLN.from_zeta(quadrants_zeta(0)), *quadrants()).status is Status.SADDLE
    assert ways


def test_a_kkt_point_of_two_layers_may_be_no_local_optimum_and_one_of_three_not_global() -> None:
    # One sample (1, 2): all weight on the first input, where lam = 1. Second order in the dead
    # column is 1 -+ 2 lam for two layers; products of three have none, though half the value is
    # reached with the second input.
    sample = np.array([[1.0, 2.0]]), np.array([1.0])
    two, three = (local_limit(Diagonal(depth, 2), *sample, None) for depth in (2, 3))
    assert two.status is Status.SADDLE
    assert two.curvature[0] == pytest.approx(-1, abs=1e-12)
    assert three.status is Status.LOCAL_OPTIMUM
    assert three.value == pytest.approx(1, abs=1e-12)
    assert three.curvature[:2] == pytest.approx([1, 1], abs=1e-12)


def test_a_dead_unit_of_dual_norm_one_leaves_the_point_flat() -> None:
    # With A = B both units of the quadrants are as good, and norm moves freely between them.
    X, y, contexts = quadrants()
    found = local_limit(GLN.from_zeta(quadrants_zeta(0)), X / [A, B], y, contexts)
    assert found.status is Status.FLAT
    assert (found.n_zero_modes, found.n_symmetry_modes) == (1, 0)


@pytest.mark.parametrize("status", ["SADDLE", "LOCAL_OPTIMUM"])
def test_from_off_a_saddle_the_limit_is_the_one_beyond_it(status) -> None:
    network = GLN.from_zeta(quadrants_zeta(0))
    with torch.no_grad():
        network.w1[1] += 1e-4 * (status != "SADDLE") * torch.tensor(quadrants_zeta(1)[1])
    found = local_limit(network, *quadrants())
    assert found.status.name == status
    assert found.value == pytest.approx(math.sqrt(2) / (B if status == "SADDLE" else A), rel=1e-10)


# Convex cases


@pytest.mark.parametrize("upper_widths", [(), (4,)])
def test_with_one_gated_layer_the_local_limit_is_the_convex_optimum(upper_widths) -> None:
    frelu = solve_frelu_svm(X, Y, GATES[:, :8]).require()
    inputs, y, contexts = gln_problem(3, 2, n=N, D=D)
    gln = solve_gln_svm(inputs, y, contexts).require()
    for limit, network, data in (
        (frelu, FReLU(D, 8, upper_widths=upper_widths), (X, Y, GATES[:, :8])),
        (gln, GLN(D, 3, 2, upper_widths=upper_widths), (inputs, y, contexts)),
    ):
        found = local_limit(trained(network, *data), *data)
        assert found.status is Status.LOCAL_OPTIMUM
        assert found.residual < 1e-12
        assert found.value == pytest.approx(limit.objective, rel=1e-7)
        np.testing.assert_allclose(found.scores, limit.predictor(*data[::2]), rtol=1e-3)


def test_rotations_of_linear_layers_are_no_flatness() -> None:
    # W_1 of rank one moves with the unit sphere of its left factor: one dimension less than the
    # width, for each hidden layer.
    y = np.sign(X @ np.arange(1, D + 1))
    found = local_limit(trained(DeepLinear(D, hidden_widths=(4, 3)), X, y, None), X, y, None)
    assert found.status is Status.LOCAL_OPTIMUM
    assert found.n_zero_modes == found.n_symmetry_modes == 3 + 2
    assert found.value == pytest.approx(solve_linear_svm(X, y).objective, rel=1e-7)


def test_units_with_equal_gates_on_active_samples_rotate_too() -> None:
    once = GATES[:, :4].copy()
    once[:, 0] = 1
    gates, y = np.hstack([once, once]), np.sign(X @ np.arange(1, D + 1))
    found = local_limit(trained(FReLU(D, 8), X, y, gates), X, y, gates)
    limit = solve_frelu_svm(X, y, once).require()
    live = limit.unit_norms > 1e-6
    patterns = np.unique(once[limit.support][:, live], axis=1)
    # All that k units with one pattern compute is a point of the sphere of dimension k - 1.
    expected = 2 * live.sum() - patterns.shape[1]
    assert found.status is Status.LOCAL_OPTIMUM
    assert found.n_zero_modes == found.n_symmetry_modes == expected == 4


# Gates in two layers: nothing convex


def test_first_order_conditions_hold_as_computed_from_the_network_alone(limit) -> None:
    assert limit.status is Status.LOCAL_OPTIMUM
    network, lam = limit.network, torch.tensor(limit.multipliers)
    margins = torch.tensor(Y) * network(torch.tensor(X), torch.tensor(GATES))
    fit = torch.autograd.grad(lam @ margins, list(network.parameters()))
    for weights, part in zip(network.parameters(), fit, strict=True):
        torch.testing.assert_close(weights.detach(), part, rtol=0, atol=1e-11)
    assert limit.certificate.smallest_margin == pytest.approx(1, abs=1e-11)
    assert np.all(limit.multipliers[limit.active] > 0)
    assert np.all(limit.multipliers[~limit.active] == 0)
    np.testing.assert_allclose(margins.detach()[limit.active.copy()], 1, atol=1e-11)
    norm = sum(float(p.detach().square().sum()) for p in network.parameters())
    assert limit.value == pytest.approx((norm / 3) ** 1.5, rel=1e-10)


def test_multipliers_of_classes_are_those_of_the_differences_of_two_scores() -> None:
    classes = np.argmax(X @ RNG.normal(size=(D, 3)), axis=1)
    start = FReLU(D, GATES.shape[1], n_outputs=3, random_state=2)
    network = trained(start, X, np.eye(3)[classes], GATES, 600)
    found = local_limit(network, X, np.eye(3)[classes], GATES).require()
    assert found.multipliers.shape == found.active.shape == found.scores.shape == (N, 3)
    # With hand-written scores of the weights, the derivative of every pair by itself.
    w = [torch.tensor(one, requires_grad=True) for one in found.weights.values()]
    hidden = torch.tensor(GATES) * (torch.tensor(X) @ w[0].T)
    scores = hidden @ w[1].T
    np.testing.assert_allclose(scores.detach().numpy(), found.scores, atol=1e-10)
    margins = scores[range(N), classes][:, None] - scores
    total = (torch.tensor(found.multipliers) * margins).sum()
    for one, slope in zip(w, torch.autograd.grad(total, w), strict=True):
        np.testing.assert_allclose(slope.numpy(), one.detach().numpy(), atol=1e-9)
    least = margins.detach().numpy() + 2 * np.eye(3)[classes]
    assert least.min() == pytest.approx(1, abs=1e-9) and found.multipliers.min() >= 0
    np.testing.assert_allclose(least[found.active], 1, atol=1e-9)
    assert not found.active[range(N), classes].any()
    predicted = found.predictor(X, GATES)
    np.testing.assert_allclose(predicted, found.scores, atol=1e-12)


def test_curvature_is_that_of_the_literal_lagrangian(limit) -> None:
    names, shapes = list(limit.weights), [w.shape for w in limit.weights.values()]
    w = torch.tensor(np.concatenate([part.ravel() for part in limit.weights.values()]))
    lam = torch.tensor(limit.multipliers)

    def margins(w):
        W1, W2, W3 = (
            part.view(shape)
            for part, shape in zip(w.split([math.prod(s) for s in shapes]), shapes, strict=True)
        )
        first = torch.tensor(GATES[:, :7]) * (torch.tensor(X) @ W1.T)
        return torch.tensor(Y) * (torch.tensor(GATES[:, 7:]) * (first @ W2.T) @ W3.T)[:, 0]

    assert len(names) == 3
    hessian = torch.autograd.functional.hessian(lambda w: w @ w / 2 - lam @ (margins(w) - 1), w)
    gradients = torch.autograd.functional.jacobian(margins, w)[torch.tensor(limit.active.copy())]
    Z = null_space(gradients.numpy())
    eigenvalues = np.linalg.eigvalsh(Z.T @ hessian.numpy() @ Z)
    np.testing.assert_allclose(limit.curvature, eigenvalues[: len(limit.curvature)], atol=1e-9)
    assert limit.curvature[0] > 1e-4


def test_no_weights_near_by_have_a_larger_margin(limit) -> None:
    rng = np.random.default_rng(0)
    network = copy.deepcopy(limit.network)
    data = torch.tensor(X), torch.tensor(GATES)
    for _ in range(300):
        squared = 0.0
        with torch.no_grad():
            for p, w in zip(network.parameters(), limit.weights.values(), strict=True):
                p.copy_(torch.tensor(w + 1e-3 * rng.normal(size=w.shape)))
                squared += float(p.square().sum())
            smallest = float((torch.tensor(Y) * network(*data)).min())
        assert (squared / 3) ** 1.5 / smallest > limit.value


def test_the_limit_does_not_depend_on_the_checkpoint_and_the_run_comes_nearer(run, limit) -> None:
    found = [local_limit(network, X, Y, GATES) for network in run]
    assert all(point.status is Status.LOCAL_OPTIMUM for point in found)
    assert all(same_limit(point, limit) for point in found)
    distances = [point.distance for point in found]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.2 < distances[0]
    assert limit.value < limit.start_value < 1.01 * limit.value


def test_another_start_can_share_the_limit_to_rounding(limit) -> None:
    network = trained(DGN(D, widths=(7, 7), init="gaussian", random_state=5), X, Y, GATES, 200)
    other = local_limit(network, X, Y, GATES)
    assert other.value == pytest.approx(limit.value, rel=1e-11)
    assert same_limit(other, limit)


def test_a_wrong_active_set_is_corrected(limit) -> None:
    problem = pose_problem(limit.network, X, Y, GATES)
    active = torch.tensor(limit.active.copy())
    active[np.flatnonzero(limit.active)[0]] = False
    active[np.flatnonzero(~limit.active)[0]] = True
    lam = torch.tensor(limit.multipliers.copy())
    found = polish(problem, Point(problem.start, lam, active), 1e-10)
    assert found is not None
    np.testing.assert_array_equal(found.active.numpy(), limit.active)
    assert problem.value(found.w) == pytest.approx(limit.value, rel=1e-12)


def test_second_order_steps_converge_where_first_order_programs_creep(run) -> None:
    problem = pose_problem(run[0], X, Y, GATES)
    programs = list(approaches(problem, problem.start, 80))
    assert programs[-1].residual > 1e-5
    steps = [programs[19], *second_order_steps(problem, programs[19], 20)]
    assert steps[-1].residual < 1e-10
    # Faster than any factor at the end, and never uphill.
    small = [one.residual for one in steps if one.residual < 1e-3]
    assert all(after < 10 * before**1.5 for before, after in pairwise(small) if after > 1e-12)
    values = [problem.value(one.w) for one in steps]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))
    assert values[-1] == pytest.approx(local_limit(run[0], X, Y, GATES).value, rel=1e-10)


def test_layers_that_are_each_optimal_are_not_yet_a_limit() -> None:
    # One layer at a time by its hard-margin SVM: it stalls at multipliers that layers do not share.
    network = trained(DGN(D, widths=(7, 7), init="gaussian", random_state=5), X, Y, GATES, 100)
    for _ in range(20):
        for p in network.parameters():
            scores = network(torch.tensor(X), torch.tensor(GATES))
            rows = [
                Y[n] * torch.autograd.grad(scores[n], p, retain_graph=True)[0] for n in range(N)
            ]
            best = hard_margin(torch.stack(rows).flatten(1).numpy())
            with torch.no_grad():
                p.copy_(torch.tensor(best).view_as(p))
    found = local_limit(network, X, Y, GATES)
    assert found.status is Status.LOCAL_OPTIMUM
    assert found.value < 0.97 * found.start_value
    assert found.distance > 0.1


# The answer itself


def test_above_the_largest_size_programs_alone_lead_to_a_stationary_point() -> None:
    gates = GATES[:, :8]
    network = trained(FReLU(D, 8), X, Y, gates)
    exact = local_limit(network, X, Y, gates)
    found = local_limit(network, X, Y, gates, max_weights=10)
    assert found.status is Status.STATIONARY
    assert "48 weights are more than `max_weights` = 10" in found.reason
    assert 1e-12 < found.residual < 1e-4
    assert found.value == pytest.approx(exact.value, rel=1e-4)
    assert same_limit(found, exact, tol=1e-3)
    assert len(found.curvature) == 0


def test_more_weights_than_memory_holds_matrices_of_are_refused_before_any_program() -> None:
    wide = DGN(1000, widths=(150,), init="gaussian")
    inputs, gates = np.random.default_rng(0).normal(size=(2, 1000)), np.ones((2, 150))
    with torch.no_grad():
        y = np.sign(wide(torch.tensor(inputs), torch.tensor(gates)).numpy())
    with pytest.raises(ValueError, match=r"150150 weights would take 840 GiB.* `max_weights`"):
        local_limit(wide, inputs, y, gates, max_weights=10**6)


def test_the_network_stays_as_it_is_and_the_predictor_is_the_limit(run, limit) -> None:
    network = copy.deepcopy(run[-1]).float()
    before = copy.deepcopy(network.state_dict())
    found = local_limit(network, X, Y, GATES)
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    assert same_limit(found, limit)
    np.testing.assert_allclose(found.predictor(X, GATES), found.scores, rtol=1e-12)
    np.testing.assert_array_equal(found.predictor.predict(X, GATES), Y)
    assert json.loads(json.dumps(found.to_dict()))["status"] == "LOCAL_OPTIMUM"
    assert "LOCAL_OPTIMUM" in str(found) and f"{found.value:.10g}" in str(found)


def test_limits_of_other_values_or_scores_differ_and_failures_equal_none(limit) -> None:
    assert same_limit(limit, limit)
    moved = limit.scores + 1e-5 * (np.arange(N) == 2)
    for change in (
        {"value": limit.value * (1 + 1e-5)},
        {"scores": moved},
        {"status": Status.FAILED},
    ):
        assert not same_limit(limit, replace(limit, **change))
    with pytest.raises(ValueError, match="same data, got 16 and 1"):
        same_limit(limit, local_limit(Diagonal(2, D), np.ones((1, D)), [1.0], None))


class Sliced(DGN):
    """A slice of a ParameterList makes new parameters of its tensors: no gradient reaches them."""

    def forward(self, X, gates):
        hidden = X
        for W, gate in zip(self.layers[:-1], gates.split(self.widths, dim=1), strict=True):
            hidden = gate * (hidden @ W.T)
        return (hidden @ self.layers[-1].T)[:, 0]


def test_what_has_no_limit_is_refused_with_the_reason(run) -> None:
    network = run[0]
    with pytest.raises(ValueError, match=r"smallest margin on \(`X`, `y`\) is -"):
        local_limit(network, X, -Y, GATES)
    closed = GATES.copy()
    closed[3, :7] = 0
    with pytest.raises(ValueError, match="sample 3 has the score 0, and no weight changes it"):
        local_limit(network, X, Y, closed)
    broken = copy.deepcopy(network)
    with torch.no_grad():
        broken.layers[1][0, 0] = math.nan
    with pytest.raises(ValueError, match=r"NaN or infinite entries in 'layers.1'"):
        local_limit(broken, X, Y, GATES)
    with pytest.raises(ValueError, match="gradients of Sliced do not belong to its scores"):
        local_limit(Sliced.from_weights(*network.layers), X, Y, GATES)
    with pytest.raises(ValueError, match="homogeneous of degree 1"):
        local_limit(Mixed(), np.ones((2, 1)), np.ones(2), np.array([0, 1]))
    with pytest.raises(ValueError, match="`tol` must be finite, got nan"):
        local_limit(network, X, Y, GATES, tol=math.nan)


class Mixed(torch.nn.Module):
    """Two contexts of degree one and two: training ends where only the latter would be tight."""

    degree = 1

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((2,), math.sqrt(10.0), dtype=torch.float64))

    def forward(self, X, gates):
        return torch.stack([self.w.sum() / math.sqrt(2), 0.1 * self.w[0] ** 2])[gates] * X[:, 0]


@pytest.mark.parametrize(("zero", "rotations", "explained"), [(2, 7, 2), (7, 2, 2), (0, 3, 0)])
def test_rotations_explain_no_more_zero_modes_than_there_are(
    limit, zero, rotations, explained
) -> None:
    found = replace(limit, n_zero_modes=zero, n_symmetry_modes=rotations)
    assert found.n_explained == explained
    said = f"{zero} zero modes, {explained} of them symmetries"
    assert (said in repr(found)) == (zero > 0)


def test_the_limit_of_several_outputs_is_of_all_relative_margins() -> None:
    """One input a class of sizes 4, 1, 1: two linear layers have the least nuclear norm."""
    X, Y = np.diag([0.5, 1.0, 1.0]), np.eye(3)
    rng = np.random.default_rng(0)
    start = Y + 0.2 * rng.normal(size=(3, 3))
    limit = local_limit(DeepLinear.from_zeta(start, hidden_widths=(3,)), X, Y)
    best = solve_multiclass_svm(X, [0, 1, 2], norm="nuclear")
    assert limit.status is Status.LOCAL_OPTIMUM
    assert limit.value == pytest.approx(best.objective, rel=1e-7)
    # As the limit of the program has them: a row a sample, 0 at the own class.
    np.testing.assert_allclose(limit.multipliers.sum(), best.objective, rtol=1e-6)
    np.testing.assert_allclose(limit.multipliers / limit.multipliers.sum(),
                               best.dual / best.dual.sum(), atol=1e-4)  # fmt: skip
    assert limit.active.shape == (3, 3) and limit.n_active == 6 and limit.n_samples == 3
    np.testing.assert_allclose(limit.scores, X @ best.zeta.T, atol=1e-5)
    np.testing.assert_allclose(limit.predictor(X), limit.scores, atol=1e-12)
    with pytest.raises(ValueError, match="is -1, of sample 2"):
        local_limit(DeepLinear.from_weights(np.diag([1.0, 1.0, -1.0])), np.eye(3), Y)
