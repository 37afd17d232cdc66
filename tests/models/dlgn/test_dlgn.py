"""DLGNs: the network, its half-spaces, the limits of one hidden layer, and what depth 3 proves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from implicit_bias import (
    DLGN,
    NotCertified,
    Sample,
    Status,
    TrainingSettings,
    run,
    solve_frelu_svm,
    solve_kernel_svm,
    solve_path_lasso,
    train,
)
from implicit_bias.gates import LinearGates, active_paths, count_patterns
from implicit_bias.kernels import path_overlap
from implicit_bias.limits import certify_depth3, solve_dlgn_svm, solve_l1_svm
from implicit_bias.models.dlgn import (
    GateTraining,
    along_the_ones,
    closed_samples,
    distinct,
    gating_of,
    most_patterns,
    one_input,
    steepening,
    train_gates,
)
from implicit_bias.programs import ConstantExperts
from tests.oracles import hard_margin

RNG = np.random.default_rng(5)
X = RNG.normal(size=(24, 4))
GATES = (X @ RNG.normal(size=(4, 40)) >= 0).astype(float)
Y = np.where(GATES @ RNG.normal(size=40) > 0, 1.0, -1.0)  # separable by construction


def scores_of(network, X, gates=None):
    with torch.no_grad():
        return network(torch.tensor(X), gates).numpy()


# The network


@pytest.mark.parametrize("constant", [False, True])
def test_hard_scores_are_the_sum_over_paths_and_those_of_the_frozen_copy(constant) -> None:
    network = DLGN(4, widths=(3, 5), constant_experts=constant, random_state=1)
    gates = network.gates(X).numpy()
    strengths = network.freeze_gates().path_strengths().detach().numpy()
    seen = np.ones_like(X) if constant else X
    # Paths in the order of their first unit, then of the second.
    open_ = np.array([gates[:, i] & gates[:, 3 + j] for i, j in np.ndindex(3, 5)]).T
    expected = np.einsum("np,pd,nd->n", open_, strengths, seen)
    np.testing.assert_allclose(scores_of(network, X), expected, atol=1e-12)
    frozen = network.freeze_gates()
    found = scores_of(frozen, seen, frozen.prepare(network.gates(X)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_hard_gates_have_no_gradient_and_soft_ones_do() -> None:
    for beta, moves in ((None, False), (4.0, True)):
        network = DLGN(4, widths=(3, 5), beta=beta)
        network(torch.tensor(X)).square().sum().backward()
        assert all((layer.grad is not None) == moves for layer in network.gating)
        assert all(layer.grad is not None for layer in network.value.layers)


def test_a_gate_is_the_sign_of_its_half_space_and_all_are_open_at_zero() -> None:
    network = DLGN(4, widths=(3, 5, 2), random_state=2)
    gates = network.gates(X).numpy()
    np.testing.assert_array_equal(gates, X @ network.normals().numpy().T >= 0)
    np.testing.assert_array_equal(gating_of(network).transform(X), gates)
    assert network.gates(np.zeros((1, 4))).all()


def test_soft_gates_tend_to_hard_ones() -> None:
    network = DLGN(4, widths=(3, 5), random_state=2)
    hard = scores_of(network, X)
    errors = []
    for beta in (4.0, 40.0, 4e6):
        network.beta = beta
        errors.append(np.abs(scores_of(network, X) - hard).max())
    assert errors[0] > errors[1] > errors[2] < 1e-9
    network.harden()
    np.testing.assert_array_equal(scores_of(network, X), hard)


def test_what_no_dlgn_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match="must name a hidden layer"):
        DLGN(4, widths=())
    with pytest.raises(ValueError, match="`beta` must be positive"):
        DLGN(4, widths=(2,), beta=0.0)
    with pytest.raises(ValueError, match="`gates` must be None for a DLGN"):
        DLGN(4, widths=(2,))(torch.tensor(X), torch.tensor(GATES))
    with pytest.raises(ValueError, match="at least as large"):
        steepening(4.0, 2.0, 100)


# Half-spaces


def test_lines_of_the_plane_have_two_patterns_each() -> None:
    gating = LinearGates(2, widths=(16,) * 4, random_state=3).fit(np.zeros((1, 2)))
    normals = gating.normals()
    ends = np.sort(np.concatenate([np.arctan2(n[1], n[0]) + np.pi * np.array([0.5, -0.5])
                                   for n in normals]) % (2 * np.pi))  # fmt: skip
    middle = (ends + np.append(ends[1:], ends[0] + 2 * np.pi)) / 2
    gates = gating.transform(np.column_stack([np.cos(middle), np.sin(middle)]))
    assert count_patterns(gates) == most_patterns(64, 2) == 128
    # Equal normals, one after the other: a line less.
    assert count_patterns(np.hstack([gates, gates[:, :3]])) == 128


def test_patterns_in_space_stay_below_cover_s_number() -> None:
    points = RNG.normal(size=(20000, 3))
    gates = points @ np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]) >= 0
    assert count_patterns(gates) == most_patterns(4, 3) == 2 * (1 + 3 + 3)


def test_open_paths_are_those_that_one_counts() -> None:
    gates = (RNG.random((7, 6)) < 0.6).astype(int)
    gates[3, :2] = 0
    layers = np.split(gates, [2, 3], axis=1)
    paths = np.array([
        [np.prod(units) for units in itertools.product(*(layer[n] for layer in layers))]
        for n in range(7)
    ])  # fmt: skip
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(active_paths(gates, widths=(2, 1, 3)), np.log(paths.sum(axis=1)))
    np.testing.assert_array_equal(path_overlap(gates, widths=(2, 1, 3)), paths @ paths.T)
    assert active_paths(gates, widths=(2, 1, 3))[3] == -np.inf
    with pytest.raises(ValueError, match="must have 5 columns"):
        active_paths(gates, widths=(2, 3))


# One hidden layer


def test_constant_experts_are_the_l1_margin_over_the_root_of_d() -> None:
    inner = solve_dlgn_svm(X, Y, GATES, experts="constant").require()
    vertex = solve_dlgn_svm(X, Y, GATES, experts="constant", solver="highs").require()
    literal = ConstantExperts().literal(X, Y, GATES)
    literal.solve(solver="CLARABEL")
    l1 = solve_l1_svm(GATES, Y).require().objective
    for other in (vertex.objective, literal.value, l1 / 2):  # D = 4
        assert inner.objective == pytest.approx(other, rel=1e-7)
    assert np.count_nonzero(vertex.experts) <= len(Y)
    for limit in (inner, vertex):
        np.testing.assert_allclose(limit.margins, Y * (GATES @ limit.experts), atol=1e-12)
        np.testing.assert_allclose(limit.predictor(X, GATES), Y * limit.margins, atol=1e-12)
        w1, w2 = limit.balanced_weights()
        norm = (np.sum(w1**2) + np.sum(w2**2)) / 2
        assert norm / limit.margins.min() == pytest.approx(limit.objective)


def test_linear_experts_are_the_group_lasso_and_others_unknown() -> None:
    found, known = solve_dlgn_svm(X, Y, GATES), solve_frelu_svm(X, Y, GATES)
    assert found.objective == pytest.approx(known.objective, rel=1e-12)
    with pytest.raises(ValueError, match="`experts` must be one of"):
        solve_dlgn_svm(X, Y, GATES, experts="cubic")  # type: ignore[arg-type]


@pytest.mark.parametrize("experts", ["linear", "constant"])
def test_a_sample_in_no_region_or_at_zero_is_named(experts) -> None:
    gates, inputs = GATES.copy(), X.copy()
    gates[3], inputs[5] = 0, 0
    seen = inputs if experts == "linear" else np.ones_like(X)
    limit = solve_dlgn_svm(inputs, Y, gates, experts=experts)
    assert limit.status is Status.NOT_SEPARABLE
    closed = [3, 5] if experts == "linear" else [3]
    assert closed_samples(seen, gates, widths=(40,)).tolist() == closed
    assert set(np.flatnonzero(limit.dual > 1e-9)) <= set(closed)


def test_one_unit_has_one_constant() -> None:
    ones = np.ones((2, 1))
    limit = solve_dlgn_svm(X[:2], np.ones(2), ones, experts="constant")
    assert limit.objective == pytest.approx(0.5) and limit.experts == pytest.approx([1.0])
    limit = solve_dlgn_svm(X[:2], np.array([1.0, -1.0]), ones, experts="constant")
    assert limit.status is Status.NOT_SEPARABLE


def test_training_goes_to_the_l1_margin_and_not_to_the_overlap_kernel() -> None:
    limit = solve_dlgn_svm(X, Y, GATES, experts="constant").require()
    network = DLGN(4, widths=(40,), constant_experts=True).freeze_gates()
    settings = TrainingSettings(trainer="annealed", schedule=((1200, None),))
    train(network, np.ones_like(X), Y, GATES, settings=settings)
    found = scores_of(network, np.ones_like(X), torch.tensor(GATES))
    squares = sum(float(p.detach().square().sum()) for p in network.parameters())
    assert 0.97 < limit.objective / (squares / 2 / (Y * found).min()) <= 1
    machine = solve_kernel_svm(path_overlap(GATES, widths=(40,)), Y)
    # Free experts: the hard-margin SVM of the gates as features.
    assert machine.objective == pytest.approx(np.linalg.norm(hard_margin(Y[:, None] * GATES)))
    first, second = (layer.detach().numpy() for layer in network.layers)
    product = second[0] * first.sum(axis=1) / (Y * found).min()
    free = GATES.T @ machine.zeta / machine.margins.min()
    # Each is best in its own norm, at margin 1; the L1 norm is sqrt(D) = 2 times the objective.
    assert np.abs(product).sum() < 1.03 * 2 * limit.objective < 0.95 * np.abs(free).sum()
    assert np.linalg.norm(free) < 0.95 * np.linalg.norm(product)


# Training of the gates


def test_gates_learn_and_both_losses_are_told() -> None:
    network = DLGN(4, widths=(6,), beta=1.0, random_state=1)
    first = network.gates(X).numpy()
    settings = TrainingSettings(trainer="momentum")
    found = train_gates(network, Sample(X, Y, None), steepening(1.0, 64.0, 80), settings=settings)
    assert isinstance(found, GateTraining) and found.finished and found.n_steps == 80
    assert found.betas[0] == 1.0 and found.betas[-1] == network.beta == 64.0
    network.harden()
    margins = Y * scores_of(network, X)
    assert found.hard_log_loss == pytest.approx(np.log(np.mean(np.logaddexp(0, -margins))))
    assert found.hard_accuracy == np.mean(margins > 0)
    assert found.gate_changes == np.mean(first != network.gates(X).numpy()) > 0
    assert found.log_loss < found.trajectories[0].log_loss[0]


def test_gates_steepen_by_equal_factors_from_any_steepness() -> None:
    parts = steepening(2.0, 32.0, 800)
    betas = np.array([beta for beta, _ in parts])
    assert betas[0] == 2.0 and betas[-1] == pytest.approx(32.0, rel=1e-12)
    np.testing.assert_allclose(np.diff(np.log(betas)), np.log(16.0) / (len(betas) - 1))
    assert sum(steps for _, steps in parts) == 800 and parts[0][1] >= 400


def test_the_parts_of_a_training_follow_each_other_in_steps() -> None:
    settings, parts = TrainingSettings(trainer="momentum"), steepening(1.0, 64.0, 80)
    network = DLGN(4, widths=(6,), beta=1.0, random_state=1)
    found = train_gates(network, Sample(X, Y, None), parts, settings=settings)
    steps, losses = found.along("log_loss")
    assert steps[0] == 0 and steps[-1] == 80 and len(losses) == len(steps)
    assert (np.diff(steps) >= 0).all()
    ends = np.cumsum([n for _, n in parts])
    assert set(ends) <= set(steps.tolist())


# Two hidden layers of constant experts


def two_layers(n_upper, n=14, seed=0):
    rng = np.random.default_rng(seed)
    gates = rng.random((n, 8 + n_upper)) < 0.7
    gates[:, 0] = gates[:, 8] = True
    return gates.astype(float), np.where(rng.random(n) < 0.5, 1.0, -1.0)


def test_branch_and_bound_holds_what_a_grid_of_weights_finds() -> None:
    gates, y = two_layers(2, n=10)
    found = certify_depth3(y, gates, widths=(8, 2), n_inputs=4)
    lasso = solve_path_lasso(np.ones((10, 4)), y, gates, widths=(8, 2)).require()
    bound = found.require().certificate.path_bound
    assert bound == pytest.approx(lasso.objective, rel=1e-6)
    assert found.finished and bound <= found.lower <= found.upper <= 1.01 * found.lower
    wide = certify_depth3(y, gates, widths=(8, 2), n_inputs=4, tol=1e-12, max_programs=4)
    with pytest.raises(NotCertified, match=r"wider than `tol`\. Allow more programs"):
        wide.require()
    assert wide.lower <= found.upper and found.lower <= wide.upper
    # At given weights of the upper layer: a group lasso, here over pairs of columns.
    values = []
    for q in np.linspace(0.02, 0.98, 33):
        upper = gates[:, 8:] * np.sqrt([q, 1 - q])
        # Columns sqrt(p_j) g_j of the upper layer for inputs, times sqrt(D) = 2.
        values.append(solve_frelu_svm(2 * upper, y, gates[:, :8]).objective)
    assert found.lower <= min(values) and found.upper <= min(values) * 1.001
    np.testing.assert_allclose([found.t.sum(), found.p.sum()], 1)


def test_either_layer_may_be_the_small_one_and_equal_gates_count_once() -> None:
    gates, y = two_layers(2, n=10)
    found = certify_depth3(y, gates, widths=(8, 2))
    turned = np.hstack([gates[:, 8:], gates[:, 8:], gates[:, :8]])
    swapped = certify_depth3(y, turned, widths=(4, 8))
    assert swapped.upper == pytest.approx(found.upper, rel=1e-2)
    assert swapped.t.shape == (4,) and swapped.p.shape == (8,)
    with pytest.raises(ValueError, match="at most 3 distinct gates"):
        certify_depth3(y, two_layers(6, n=10)[0], widths=(8, 6))
    with pytest.raises(ValueError, match="no constant experts behind these gates"):
        certify_depth3(np.array([1.0, -1.0]), np.ones((2, 4)), widths=(2, 2))


def test_along_the_ones_a_network_of_constant_experts_has_one_input() -> None:
    network = DLGN(4, widths=(3, 5), constant_experts=True).freeze_gates()
    gates = (RNG.random((24, 8)) < 0.7).astype(float)
    sample = Sample(np.ones_like(X), Y, gates)
    small = one_input(sample)
    found = scores_of(along_the_ones(network), small.X, torch.tensor(gates))
    np.testing.assert_allclose(found, scores_of(network, sample.X, torch.tensor(gates)), atol=1e-12)
    twice = Sample(np.tile(small.X, (2, 1)), np.tile(Y, 2), np.tile(gates, (2, 1)))
    assert len(distinct(twice).y) == len(distinct(small).y) <= 24


@pytest.mark.parametrize(("data", "order"), [("quadrants", "angle"), ("digits", "class")])
def test_the_map_of_overlaps_says_what_its_sides_and_its_colours_are(data, order) -> None:
    report = run(
        "dlgn", data=data, n_train=12, n_val=10, hidden_units=4, steps=5, gate_steps=5,
        trainer="constant", learning_rate=0.1,
    )  # fmt: skip
    axes = report.figure().axes
    (shown,) = (ax for ax in axes if ax.get_title() == "overlap of open paths")
    assert shown.get_xlabel() == shown.get_ylabel() == f"samples, by {order}"
    assert shown.images[0].colorbar.ax.get_ylabel() == "paths open on both / mean open"
