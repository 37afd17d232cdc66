"""The limit on orthogonally separable data: programs, certificates, constants, theorem facts."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

from implicit_bias import NotCertified, Status, kkt_distance, solve_orthosep
from implicit_bias.datasets import make_orthosep
from implicit_bias.limits import relu_lower_bound
from implicit_bias.models.orthosep import NotOrthogonallySeparable, RampFunction
from implicit_bias.networks import BalancedReLU
from implicit_bias.programs import OrthogonallySeparable
from solvers import GatedDesign, MaxMarginProgram, solve
from tests.oracles import PLANE, PLANE_LABELS, hard_margin

NORMS = (math.sqrt(2) / 3, 1.0)
DUAL = np.array([1 / 9, 1 / 9, 0, 5 / 7, 2 / 7, 0]) / np.repeat(NORMS, 3)


@pytest.mark.parametrize("solver", ["interior-point", "cvxpy:CLARABEL", "cvxpy:OSQP"])
def test_a_case_in_closed_form_with_both_margins_at_plus_1(solver) -> None:
    X, y = PLANE, PLANE_LABELS
    tol = 1e-6 if solver.endswith("OSQP") else 1e-8
    limit = solve_orthosep(X, y, solver=solver, tol=tol).require()
    accuracy = math.sqrt(tol)  # of the minimiser, from the strong convexity of the squared norm
    np.testing.assert_allclose(limit.w_plus, [1 / 3, 1 / 3], atol=accuracy)
    np.testing.assert_allclose(limit.w_minus, [-1, 0], atol=accuracy)
    np.testing.assert_allclose(limit.unit_norms, NORMS, rtol=2 * tol)
    assert limit.objective == pytest.approx(sum(NORMS), rel=2 * tol)
    assert limit.gap <= tol
    np.testing.assert_allclose(limit.dual, DUAL, atol=10 * accuracy)
    np.testing.assert_array_equal(limit.support, DUAL > 0)
    # E3.7: w_minus has positive products with the negatives, without the label.
    assert np.all(X[y < 0] @ limit.w_minus > 0.999)
    np.testing.assert_allclose(limit.margins.min(), 1)


@pytest.mark.parametrize("seed", range(4))
def test_each_class_is_a_one_sided_program_of_its_own_with_its_own_certificate(seed) -> None:
    X, y = make_orthosep(60, 6, random_state=seed)
    limit = solve_orthosep(X, y, tol=1e-10)
    assert [part.label for part in limit.classes] == [1, -1]
    for part, w in ((limit.positive, limit.w_plus), (limit.negative, limit.w_minus)):
        oracle = hard_margin(X[y == part.label])
        np.testing.assert_allclose(w, oracle, atol=1e-5 * np.linalg.norm(oracle))
        assert part.status is Status.SOLVED
        assert part.certificate.gap <= 1e-10
        assert part.certificate.objective == pytest.approx(np.linalg.norm(oracle), rel=1e-9)
        assert part.n_samples == np.sum(y == part.label)
        active = X[y == part.label] @ oracle < 1 + 1e-9
        assert part.n_support == active.sum()
        assert part.support_rank == np.linalg.matrix_rank(X[y == part.label][active])
    total = limit.positive.certificate.objective + limit.negative.certificate.objective
    assert limit.objective == pytest.approx(total, rel=1e-12)
    assert limit.iterations == sum(part.iterations for part in limit.classes)


def test_one_sided_vectors_equal_a_support_vector_machine_on_a_class_and_its_mirror_image() -> None:
    X, y = make_orthosep(50, 5, random_state=9)
    limit = solve_orthosep(X, y)
    for label, w in ((1, limit.w_plus), (-1, limit.w_minus)):
        own = X[y == label]
        svc = SVC(kernel="linear", C=1e8, tol=1e-10)
        svc.fit(np.vstack([own, -own]), np.repeat([1, -1], len(own)))
        assert abs(svc.intercept_[0]) < 1e-6
        np.testing.assert_allclose(w, svc.coef_[0], atol=1e-5)


def test_the_joint_program_solved_at_once_equals_the_two_one_sided_programs() -> None:
    X, y = make_orthosep(80, 7, random_state=4)
    limit = solve_orthosep(X, y)
    for solver in ("interior-point", "cvxpy:CLARABEL"):
        joint = solve(OrthogonallySeparable().program(X, y), solver=solver).require()
        assert joint.certificate.objective == pytest.approx(limit.objective, rel=1e-7)
        np.testing.assert_allclose(joint.primal, limit.zeta, atol=1e-4)
    with pytest.raises(ValueError, match="no sample has the label -1"):
        OrthogonallySeparable().one_sided(X[y > 0], y[y > 0], label=-1)
    with pytest.raises(ValueError, match="`label` must be"):
        OrthogonallySeparable().one_sided(X, y, label=0)


def test_scaling_inputs_scales_the_vectors_inversely_and_flipping_labels_swaps_them() -> None:
    X, y = make_orthosep(40, 5, random_state=6)
    limit, scaled, flipped = (
        solve_orthosep(*d, tol=1e-11) for d in ((X, y), (1e4 * X, y), (X, -y))
    )
    np.testing.assert_allclose(1e4 * scaled.zeta, limit.zeta, atol=1e-5)
    np.testing.assert_allclose(flipped.zeta, -limit.zeta[::-1], atol=1e-5)


def test_torch_data_give_a_torch_limit_with_the_same_numbers() -> None:
    X, y = make_orthosep(40, 5, random_state=6)
    limit = solve_orthosep(X, y)
    of_torch = solve_orthosep(torch.tensor(X), torch.tensor(y))
    assert isinstance(of_torch.zeta, torch.Tensor)
    np.testing.assert_allclose(of_torch.zeta.numpy(), limit.zeta, atol=1e-6)
    function, same = limit.limit_function(), of_torch.limit_function()
    np.testing.assert_allclose(same(torch.tensor(X)).numpy(), function(X), atol=1e-6)
    np.testing.assert_allclose(of_torch.balanced_weights()[0].numpy(), limit.balanced_weights()[0],
                               atol=1e-6)  # fmt: skip


def test_the_limit_function_has_the_constants_that_the_seed_leaves_open() -> None:
    X, y = PLANE, PLANE_LABELS
    limit = solve_orthosep(X, y, tol=1e-12)
    f = limit.limit_function()
    expected = 1 / (2 * (math.sqrt(2) / 3 + 1))
    assert f.u == pytest.approx(expected, rel=1e-9)
    assert f.z == pytest.approx(expected, rel=1e-9)
    # On (3, 3): relu(2) - relu(-3); on (-3, 1): relu(-2/3) - relu(3).
    np.testing.assert_allclose(
        f(np.array([[3.0, 3.0], [-3.0, 1.0]])), [2 * expected, -3 * expected], rtol=1e-6
    )
    # It is min y f at ||theta|| = 1 of the least-norm network, homogeneous of degree two.
    W, a = limit.balanced_weights()
    size = np.sum(W**2) + np.sum(a**2)
    scores = np.maximum(X @ W.T, 0) @ a
    assert np.min(y * scores) / size == pytest.approx(expected, rel=1e-6)


def test_with_one_surviving_group_the_other_ramp_and_its_norm_drop_out() -> None:
    limit = solve_orthosep(PLANE, PLANE_LABELS, tol=1e-12)
    only_plus = limit.limit_function(surviving="positive")
    only_minus = limit.limit_function(surviving="negative")
    assert (only_plus.u, only_plus.z) == pytest.approx((3 / (2 * math.sqrt(2)), 0.0), rel=1e-9)
    assert (only_minus.u, only_minus.z) == pytest.approx((0.0, 0.5), rel=1e-9)
    with pytest.raises(ValueError, match="`surviving` must be"):
        limit.limit_function(surviving="none")


def test_data_of_one_class_leave_one_program_and_one_ramp() -> None:
    X, y = PLANE, PLANE_LABELS
    limit = solve_orthosep(X[y > 0], y[y > 0]).require()
    assert limit.negative is None
    assert limit.positive.certificate.gap <= 1e-8
    np.testing.assert_array_equal(limit.w_minus, [0, 0])
    assert limit.objective == pytest.approx(NORMS[0], rel=1e-8)
    assert limit.limit_function().u == pytest.approx(0.5 / NORMS[0], rel=1e-8)
    with pytest.raises(ValueError, match="no samples"):
        limit.limit_function(surviving="negative")
    negative = solve_orthosep(X[y < 0], y[y < 0])
    assert negative.limit_function().z == pytest.approx(0.5, rel=1e-8)
    np.testing.assert_allclose(negative.predictor(X[y < 0]), X[y < 0, 0], atol=1e-6)


def test_other_data_are_solved_with_a_warning_that_names_a_pair() -> None:
    X = np.array([[2.0, 0.0], [2.0, 1.0], [-2.0, 0.0], [1.0, -3.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    with pytest.warns(NotOrthogonallySeparable, match=r"<x_0, x_3> = 2 > 0"):
        limit = solve_orthosep(X, y)
    np.testing.assert_allclose(limit.w_plus, [0.5, 0], atol=1e-4)
    assert limit.status is Status.SOLVED
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_orthosep(PLANE, PLANE_LABELS)


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_a_class_that_surrounds_the_origin_is_reported_with_its_proof(label) -> None:
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0], [0.0, -2.0]])
    y = label * np.array([1.0, 1.0, -1.0, -1.0])
    with pytest.warns(NotOrthogonallySeparable):
        limit = solve_orthosep(X, y)
    assert limit.status is Status.NOT_SEPARABLE
    bad, good = (limit.positive, limit.negative) if label > 0 else (limit.negative, limit.positive)
    assert bad.status is Status.NOT_SEPARABLE
    assert good.status is Status.SOLVED
    np.testing.assert_allclose(limit.dual, [0.5, 0.5, 0, 0], atol=1e-9)
    assert limit.certificate.proves_inseparability()
    with pytest.raises(NotCertified):
        limit.require()


def test_a_solve_cut_short_is_not_called_solved_and_its_bounds_hold() -> None:
    X, y = make_orthosep(60, 6, random_state=0)
    limit = solve_orthosep(X, y, solver="cvxpy:CLARABEL", max_iterations=3)
    assert limit.status is Status.INACCURATE
    optimum = sum(np.linalg.norm(hard_margin(X[y == label])) for label in (1, -1))
    assert limit.dual_objective < optimum < limit.objective


def test_a_whole_above_the_tolerance_is_not_solved_though_its_parts_are() -> None:
    tol = 1.2e-14  # the bound on rounding is 1e-14 for a part of these, 1.6e-14 for the whole
    limits = [solve_orthosep(*make_orthosep(40, 8, random_state=s), tol=tol) for s in range(12)]
    of_parts = [all(part.status is Status.SOLVED for part in limit.classes) for limit in limits]
    assert [limit.status is Status.SOLVED for limit in limits] == [
        solved and limit.gap <= tol for solved, limit in zip(of_parts, limits, strict=True)
    ]
    assert any(solved and limit.gap > tol for solved, limit in zip(of_parts, limits, strict=True))


def test_lemma_b6_neurons_on_both_rays_in_any_split_are_a_kkt_point() -> None:
    X, y = PLANE, PLANE_LABELS
    limit = solve_orthosep(X, y, tol=1e-13)
    W, a = limit.balanced_weights()
    assert (np.sum(W**2) + np.sum(a**2)) / 2 == pytest.approx(limit.objective, rel=1e-12)
    rng = np.random.default_rng(0)
    owner = np.array([0, 0, 0, 1, 1])
    shares = rng.uniform(0.2, 1, 5)
    for group in (0, 1):
        shares[owner == group] /= np.linalg.norm(shares[owner == group])
    network = BalancedReLU.from_weights(shares[:, None] * W[owner], shares * a[owner])
    kkt = kkt_distance(network, X, y, None)
    assert kkt.residual < 1e-5
    assert kkt.cosine > 1 - 1e-9
    np.testing.assert_allclose(kkt.dual_norms, 1, atol=1e-5)
    np.testing.assert_allclose(network.zeta().detach(), limit.zeta, atol=1e-12)
    spoiled = BalancedReLU.from_weights(1.1 * shares[:, None] * W[owner], shares * a[owner])
    assert kkt_distance(spoiled, X, y, None).residual > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_the_kkt_point_is_optimal_at_any_width_by_its_dual(seed) -> None:
    # For unit v, |sum_i mu_i y_i relu(<v, x_i>)| <= 1 with sum mu the optimum.
    X, y = make_orthosep(40, 4, random_state=seed)
    limit = solve_orthosep(X, y)
    assert limit.dual.sum() == pytest.approx(limit.objective, rel=1e-7)
    V = np.random.default_rng(seed).normal(size=(20_000, 4))
    V = np.vstack([V, limit.zeta, -limit.zeta])
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    values = np.abs(np.maximum(V @ X.T, 0) @ (limit.dual * y))
    assert values.max() <= 1 + 1e-7
    assert values.max() == pytest.approx(1, abs=1e-6)


def frelu_program(X: np.ndarray, y: np.ndarray, gates: np.ndarray) -> MaxMarginProgram:
    return MaxMarginProgram(GatedDesign(X, gates.astype(float), np.arange(gates.shape[1])), y)


def test_frozen_gates_of_the_limit_have_the_same_optimum_and_others_a_smaller_one() -> None:
    X, y = make_orthosep(60, 5, random_state=2)
    limit = solve_orthosep(X, y)
    gates = np.maximum(X @ limit.balanced_weights()[0].T, 0) > 0
    learned = solve(frelu_program(X, y, gates)).require()
    assert learned.certificate.objective == pytest.approx(limit.objective, rel=1e-7)
    with_linear_unit = np.column_stack([gates, np.ones(60)])
    lower = solve(frelu_program(X, y, with_linear_unit)).require()
    assert lower.certificate.objective < 0.95 * limit.objective


def test_support_examples_span_in_the_plane_but_not_in_the_seeds_own_experiment() -> None:
    assert solve_orthosep(PLANE, PLANE_LABELS).supports_span
    counts = []
    for seed in range(8):
        own = solve_orthosep(*make_orthosep(500, 20, random_state=seed))
        assert not own.supports_span
        counts += [part.n_support for part in own.classes]
    assert (min(counts), max(counts)) == (3, 9)


def test_the_predictor_has_margin_1_where_the_theorem_holds() -> None:
    X, y = make_orthosep(60, 5, random_state=1)
    limit = solve_orthosep(X, y)
    np.testing.assert_allclose(y * limit.predictor(X), limit.margins, rtol=1e-9)
    assert np.min(y * limit.predictor(X, None)) == pytest.approx(1)
    with pytest.raises(ValueError, match=r"\(n, 5\)"):
        limit.predictor(X[:, :4])
    np.testing.assert_allclose(
        RampFunction(np.array([1.0]), np.array([-1.0]), u=2.0, z=3.0)(np.array([[1.0], [-1.0]])),
        [2.0, -3.0],
    )


def test_the_record_has_both_certificates() -> None:
    X, y = make_orthosep(60, 5, random_state=1)
    limit = solve_orthosep(X, y)
    record = json.loads(json.dumps(limit.to_dict()))
    assert record["classes"][1]["label"] == -1
    assert record["classes"][0]["certificate"]["objective"] == limit.positive.certificate.objective
    assert "OrthosepLimit(SOLVED" in repr(limit)


# Leaky units


def two_orthants(n: int = 24) -> tuple[np.ndarray, np.ndarray]:
    X = np.abs(np.random.default_rng(0).normal(size=(n, 6)))
    y = np.where(np.arange(n) < 10, 1.0, -1.0)
    return X * y[:, None], y


@pytest.mark.parametrize("slope", [0.05, 0.5, 0.9])
def test_leaky_neurons_have_one_program_of_both_and_the_least_norm_of_all_widths(slope) -> None:
    X, y = two_orthants()
    limit = solve_orthosep(X, y, slope=slope)
    assert limit.status is Status.SOLVED and limit.slope == slope and limit.classes == ()
    stated = OrthogonallySeparable(slope).literal(X, y).solve(solver="CLARABEL")
    assert limit.objective == pytest.approx(float(stated), rel=1e-7)
    # Below every network of any width, by branch and bound over their gates.
    bound = relu_lower_bound(limit.dual, X, y, slope=slope)
    assert bound <= limit.objective * (1 + 1e-9) and bound >= limit.objective * (1 - 1e-6)
    # Its two neurons are a leaky network with these margins.
    W, a = limit.balanced_weights()
    network = BalancedReLU.from_weights(W, a, slope=slope)
    with torch.no_grad():
        scores = network(torch.tensor(X)).numpy()
    np.testing.assert_allclose(scores, limit.predictor(X), atol=1e-9)
    np.testing.assert_allclose(y * scores, limit.margins, atol=1e-9)
    half_norm = (np.sum(W**2) + np.sum(a**2)) / 2
    assert half_norm / (y * scores).min() == pytest.approx(limit.objective, rel=1e-7)
    assert kkt_distance(network, X, y, None).residual < 1e-3
    total = limit.unit_norms.sum()
    assert limit.limit_function().u == pytest.approx(1 / (2 * total), rel=1e-12)


def test_a_leaky_limit_of_a_file_is_proved_anew_with_its_slope(tmp_path) -> None:
    X, y = two_orthants()
    limit = solve_orthosep(X, y, slope=0.3)
    limit.save(tmp_path / "limit")
    again = type(limit).load(tmp_path / "limit")
    assert again.slope == 0.3
    assert again.certify(X, y).status is Status.SOLVED
    assert again.certify(X, y).objective == pytest.approx(limit.objective, rel=1e-12)
    np.testing.assert_array_equal(again.predictor(-X), limit.predictor(-X))


def test_leaky_survivors_of_one_sign_have_another_program() -> None:
    limit = solve_orthosep(*two_orthants(), slope=0.3)
    with pytest.raises(ValueError, match="must be 'both' with leaky units"):
        limit.limit_function(surviving="positive")
    with pytest.raises(ValueError, match="`slope`"):
        solve_orthosep(*two_orthants(), slope=1.0)
