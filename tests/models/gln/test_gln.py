"""SVM-GLN through its public door: what comes in, what comes out, and what it must satisfy."""

from __future__ import annotations

import json
import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import GLN, NotCertified, Sample, TrainingSettings, compare, solve_gln_svm, train
from implicit_bias.limits import ContextPredictor, GLNLimit
from implicit_bias.programs import SVMGLN
from tests.long import some_of
from tests.oracles import RAYS_ZETA, A, B, quadrants, quadrants_zeta, rays
from tests.problems import gln_construction

Array = NDArray[np.float64]
H, C, D = 4, 3, 16  # of the construction
ARRAYS = ("zeta", "dual", "margins", "support", "unit_norms", "dual_norms")


CLOSED_FORMS = {
    "quadrants": (quadrants(), quadrants_zeta(1)),
    "rays": (rays(), RAYS_ZETA),
    # Orthogonal rows, one unit, one context: w = sum_n y_n x_n / ||x_n||^2.
    "orthogonal": (
        (np.diag([1.0, 2.0, 4.0]), np.array([1.0, -1.0, 1.0]), np.zeros((3, 1), dtype=np.int64)),
        np.array([[[1.0, -0.5, 0.25]]]),
    ),
}
EACH = pytest.mark.parametrize("name", CLOSED_FORMS)


def constructed() -> tuple[Array, Array, NDArray[np.int64]]:
    """Inputs for which coefficients of unit norms 0.4, 3, 9 and 0 are optimal by construction."""
    program = gln_construction().program
    contexts = np.empty((program.n_samples, H), dtype=np.int64)
    for n, row in enumerate(program.design.Z):
        for j in np.flatnonzero(row):
            contexts[n, j // C] = j % C
    return program.design.X, program.y, contexts


def constructed_zeta() -> Array:
    rows = gln_construction().primal
    return np.array([[rows[h * C + c] for c in range(C)] for h in range(H)])


def scores(zeta: Array, X: Array, contexts: NDArray[np.int64]) -> Array:
    """f(x) sample by sample, unit by unit."""
    return np.array(
        [sum(zeta[h, c] @ x for h, c in enumerate(row)) for x, row in zip(X, contexts, strict=True)]
    )


def blocks(lam: Array, X: Array, y: Array, contexts: NDArray[np.int64], n_contexts: int) -> Array:
    """v[h, c] = sum of lam_n y_n x_n over the samples that unit h puts into context c."""
    v = np.zeros((contexts.shape[1], n_contexts, X.shape[1]))
    for n, row in enumerate(contexts):
        for h, c in enumerate(row):
            v[h, c] += lam[n] * y[n] * X[n]
    return v


def norms(zeta: Array) -> Array:
    return np.sqrt(np.sum(zeta**2, axis=(1, 2)))


def dense_statement(
    X: Array, y: Array, contexts: NDArray[np.int64], n_contexts: int
) -> tuple[float, Array]:
    """Equation (20) with one matrix variable a unit, every score written out."""
    n_units = contexts.shape[1]
    zeta = [cp.Variable((n_contexts, X.shape[1])) for _ in range(n_units)]
    margins = [
        y[n] * sum(X[n] @ zeta[h][contexts[n, h]] for h in range(n_units)) for n in range(len(y))
    ]
    objective = sum(cp.norm(unit, "fro") for unit in zeta)
    problem = cp.Problem(cp.Minimize(objective), [margin >= 1 for margin in margins])
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    problem.solve(solver=cp.CLARABEL, **tight)
    return float(problem.value), np.array([unit.value for unit in zeta])


@pytest.fixture(scope="module")
def limit() -> GLNLimit:
    return solve_gln_svm(*constructed()).require()


def test_unit_h_context_c_of_the_design_is_column_h_times_c_plus_c() -> None:
    X, y, contexts = constructed()
    design = SVMGLN().program(X, y, contexts).design
    for n in range(len(y)):
        for h in range(H):
            for c in range(C):
                assert design.Z[n, h * C + c] == (contexts[n, h] == c)
    assert design.group.tolist() == [h for h in range(H) for _ in range(C)]


def test_coefficients_are_the_constructed_ones_unit_by_unit_and_context_by_context(limit) -> None:
    expected = constructed_zeta()
    # Unit norms 0.4, 3, 9, 0: rows taken in any other order would have other norms.
    assert norms(expected) == pytest.approx([0.4, 3.0, 9.0, 0.0])
    np.testing.assert_allclose(limit.zeta, expected, atol=2e-3)
    assert limit.objective == pytest.approx(12.4, rel=1e-8)
    wrong = gln_construction().primal.reshape((H, C, D), order="F")
    assert np.abs(norms(wrong) - norms(expected)).max() > 0.5


def test_a_dense_statement_of_equation_20_has_the_same_optimum_and_coefficients(limit) -> None:
    optimum, zeta = dense_statement(*constructed(), C)
    assert limit.dual_objective <= optimum * (1 + 1e-7)
    assert limit.objective >= optimum * (1 - 1e-7)
    np.testing.assert_allclose(limit.zeta, zeta, atol=2e-3)


@pytest.mark.parametrize("solver", ["interior-point", "cvxpy:CLARABEL"])
def test_bounds_hold_in_arithmetic_of_their_own(solver) -> None:
    X, y, contexts = constructed()
    limit = solve_gln_svm(X, y, contexts, solver=solver, tol=1e-7).require()
    margins = y * scores(limit.zeta, X, contexts)
    v = blocks(limit.dual, X, y, contexts, C)
    assert margins.min() == pytest.approx(1, rel=1e-12)
    assert np.all(limit.dual >= 0)
    assert norms(v).max() <= 1 + 1e-12
    assert limit.objective == pytest.approx(norms(limit.zeta).sum(), rel=1e-12)
    assert limit.dual_objective == pytest.approx(limit.dual.sum(), rel=1e-12)
    assert limit.gap == pytest.approx(norms(limit.zeta).sum() / limit.dual.sum() - 1, abs=1e-12)
    assert 0 <= limit.gap <= 1e-7
    np.testing.assert_allclose(limit.margins, margins, rtol=1e-10)
    np.testing.assert_allclose(limit.unit_norms, norms(limit.zeta), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(limit.dual_norms, norms(v), rtol=1e-10)


def test_zeta_of_every_unit_is_its_norm_times_its_dual_block(limit) -> None:
    # With d = ||zeta_h|| and ||v_h|| <= 1: ||zeta_h - d v_h||^2 <= 2 d (d - <zeta_h, v_h>), and
    # the brackets sum to P - sum lam_n m_n <= P - D.
    v = blocks(limit.dual, *constructed(), C)
    d = norms(limit.zeta)
    distance = norms(limit.zeta - d[:, None, None] * v)
    absolute_gap = limit.objective - limit.dual_objective
    assert np.all(distance <= np.sqrt(2 * d * absolute_gap) + 1e-12)
    np.testing.assert_allclose(norms(v)[:3], 1, rtol=1e-4)


def test_the_dead_unit_of_the_construction_is_dead_with_dual_norm_one_half(limit) -> None:
    # The construction gives it a block of norm 1/2.
    assert limit.dual_norms[3] == pytest.approx(0.5, rel=1e-3)
    assert limit.unit_norms[3] < 1e-6
    assert limit.live.tolist() == [True, True, True, False]
    assert limit.to_dict()["n_live"] == 3


def test_the_dead_unit_of_the_quadrants_has_dual_norm_b_over_a() -> None:
    limit = solve_gln_svm(*quadrants()).require()
    np.testing.assert_allclose(limit.dual_norms, [B / A, 1], rtol=1e-6)
    assert limit.live.tolist() == [False, True]


def test_support_vectors_are_the_samples_at_the_margin() -> None:
    limit = solve_gln_svm(*rays()).require()
    assert limit.support.tolist() == [True, False, True, True]
    np.testing.assert_allclose(limit.margins, [1, 1.5, 1, 1], atol=1e-6)


def test_support_vectors_of_the_construction_are_the_chosen_rows(limit) -> None:
    assert limit.support.tolist() == [n < 24 for n in range(60)]
    assert limit.to_dict()["n_support"] == 24


@EACH
def test_the_limit_of_a_closed_form_is_found(name) -> None:
    parts, zeta = CLOSED_FORMS[name]
    limit = solve_gln_svm(*parts).require()
    assert limit.objective == pytest.approx(norms(zeta).sum(), rel=1e-8)
    np.testing.assert_allclose(limit.zeta, zeta, atol=1e-4)


@pytest.mark.parametrize("n_units", [1, 5])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_sample_is_fitted_along_itself_whatever_the_units(n_units, label) -> None:
    x = np.array([3.0, 4.0])
    limit = solve_gln_svm(x[None], np.array([label]), np.full((1, n_units), 1), n_contexts=2)
    assert limit.objective == pytest.approx(1 / 5, rel=1e-8)
    np.testing.assert_allclose(limit.zeta[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(limit.zeta[:, 1].sum(axis=0), label * x / 25, rtol=1e-7)


def test_contexts_that_no_sample_uses_get_zeros_and_change_nothing(limit) -> None:
    wider = solve_gln_svm(*constructed(), n_contexts=5).require()
    assert wider.zeta.shape == (H, 5, D)
    assert np.all(wider.zeta[:, C:] == 0)
    assert wider.objective == pytest.approx(limit.objective, rel=2e-8)
    np.testing.assert_allclose(wider.zeta[:, :C], limit.zeta, atol=2e-3)


def test_balanced_weights_of_a_zero_unit_are_zero() -> None:
    limit = solve_gln_svm(np.zeros((1, 2)), np.ones(1), np.zeros((1, 3), dtype=int))
    w1, w2 = limit.balanced_weights()
    assert not np.any(w1)
    assert not np.any(w2)


@pytest.mark.parametrize(
    ("X", "contexts", "message"),
    [
        (np.ones((2, D + 1)), np.zeros((2, H), dtype=int), r"`X` must have shape \(n, 16\)"),
        (np.ones(D), np.zeros((1, H), dtype=int), r"`X` must have shape \(n, 16\)"),
        (np.ones((2, D)), np.zeros((1, H), dtype=int), r"`contexts` must have shape \(2, 4\)"),
        (np.ones((2, D)), np.zeros((2, 3), dtype=int), r"`contexts` must have shape \(2, 4\)"),
        (np.ones((1, D)), np.full((1, H), C), r"`contexts` must lie in 0 \.\. 2"),
        (np.ones((1, D)), np.full((1, H), -1), r"`contexts` must lie in 0 \.\. 2"),
    ],
)
def test_the_predictor_refuses_what_does_not_fit(limit, X, contexts, message) -> None:
    with pytest.raises(ValueError, match=message):
        limit.predictor(X, contexts)


def test_require_returns_a_solved_limit_and_raises_the_advice_otherwise(limit) -> None:
    assert limit.require() is limit
    X, y, contexts = constructed()
    rough = solve_gln_svm(X, y, contexts, max_iterations=1)
    with pytest.raises(NotCertified, match=r"gap .*, tol 1e-08, iterations 1, solver inter"):
        rough.require()
    bad = solve_gln_svm(np.ones((2, 1)), np.array([1, -1]), np.zeros((2, 1), dtype=int))
    with pytest.raises(NotCertified, match=r"NOT_SEPARABLE.*contradictory") as caught:
        bad.require()
    assert caught.value.result is bad


def test_the_repr_can_be_read(limit) -> None:
    text = repr(limit)
    for part in (
        "GLNLimit(SOLVED, coefficients 4 x 3 x 16",
        "24 support vectors of 60 samples",
        "3 live units of 4",
        "gap ",
        "interior-point",
        " s)",
    ):
        assert part in text
    low, high = text.split("[")[1].split("]")[0].split(", ")
    assert float(low) == pytest.approx(12.4, rel=1e-7)
    assert float(high) == pytest.approx(12.4, rel=1e-7)
    assert len(text) < 400


def test_to_dict_is_ready_for_json_and_holds_no_large_array(limit) -> None:
    record = json.loads(json.dumps(limit.to_dict(), allow_nan=False))
    assert record["status"] == "SOLVED"
    assert record["objective"] == limit.objective
    assert (record["n_samples"], record["n_units"]) == (60, H)
    assert record["unit_norms"] == limit.unit_norms.tolist()
    assert record["dual_norms"] == limit.dual_norms.tolist()
    assert not {"zeta", "dual", "margins", "support"} & set(record)


X0, Y0, C0 = rays()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": X0[:3]}, ValueError, r"`contexts` must have shape \(3, H\)"),
        ({"contexts": C0.astype(float)}, TypeError, "`contexts` must hold integers"),
        ({"contexts": C0 > 0}, TypeError, "`contexts` must hold integers"),
        ({"contexts": C0 - 1}, ValueError, "`contexts` must not be negative, got -1"),
        ({"n_contexts": 1}, ValueError, "`contexts` holds 1, but `n_contexts` is 1"),
        ({"tol": 0.0}, ValueError, "`tol` must lie strictly between 0 and 1"),
        ({"tol": math.nan}, ValueError, "`tol` must be finite, got nan"),
        ({"max_iterations": 0}, ValueError, "`max_iterations` must be at least 1"),
        (
            {"solver": "simplex"},
            ValueError,
            "one of .*'cvxpy:ECOS'.* got 'simplex'",
        ),
        ({"solver": "cvxpy:NOSUCH"}, ValueError, "`solver` must be one of .* got 'cvxpy:NOSUCH'"),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_bad_input_is_one_clear_message(change, error, message, kind) -> None:
    given = {"X": X0, "y": Y0, "contexts": C0} | change
    arrays = {key: kind(given.pop(key)) for key in ("X", "y", "contexts")}
    with pytest.raises(error, match=message) as caught:
        solve_gln_svm(**arrays, **given)
    assert "\n" not in str(caught.value)


def test_progress_is_reported_once_an_iteration() -> None:
    seen: list[tuple[int, float]] = []
    limit = solve_gln_svm(*constructed(), progress=lambda i, gap: seen.append((i, gap)))
    assert len(seen) == limit.iterations
    assert seen[-1][1] < seen[0][1]


def descend(
    network: GLN, X: Array, y: Array, contexts: NDArray[np.int64], shares: list[float]
) -> None:
    """Normalised descent whose steps are these shares of the weights, 25 steps each.

    The gradient of the log-loss is L m / ||w|| in size for degree L and margin m, so a rate of
    share ||w||^2 / (L m) moves the weights by that share.
    """
    for share in shares:
        with torch.no_grad():
            squared = sum(float((p**2).sum()) for p in network.parameters())
            f = network(torch.tensor(X), torch.tensor(contexts)).numpy()
        rate = share * squared / max(network.degree * float((y * f).min()), 1.0)
        settings = TrainingSettings(
            batch_size=None, trainer="normalised", schedule=((25, rate),), n_checkpoints=2
        )
        train(network, X, y, contexts, settings=settings)


@pytest.mark.parametrize("upper_widths", [(), (3,)], ids=["two layers", "three layers"])
@pytest.mark.parametrize("name", some_of(["quadrants", "rays"], one_in=2))
def test_a_trained_network_comes_to_the_closed_form_limit_at_any_depth(name, upper_widths) -> None:
    parts, zeta = CLOSED_FORMS[name]
    limit = solve_gln_svm(*parts).require()
    network = GLN(2, len(zeta), 2, upper_widths=upper_widths, init_scale=0.9, random_state=1)
    before = network.zeta().detach().flatten()
    descend(network, *parts, [0.01] * 40 + [0.003] * 30)
    sample = Sample(*parts)
    comparison = compare(limit, network, sample, sample)
    assert 0.99 < comparison.margin_ratio <= 1
    assert comparison.zeta_cosine > 0.9999
    assert comparison.score_cosine > 0.9999
    assert comparison.agreement == 1
    assert comparison.kkt_residual < 0.01
    assert all(norm <= 1 for norm in comparison.dead_dual_norms)
    # Against the closed form itself, with no solver in between, and far from where it began.
    exact = torch.tensor(zeta).flatten()
    cosine = torch.nn.functional.cosine_similarity
    assert cosine(network.zeta().detach().flatten(), exact, dim=0) > 0.9999
    assert cosine(before, exact, dim=0) < 0.9


@pytest.mark.parametrize("context_dtype", [torch.uint8, torch.int8, torch.int32])
def test_the_predictor_takes_contexts_of_every_integer_type(context_dtype) -> None:
    # As many samples as contexts: uint8 taken for a mask would go unnoticed.
    zeta = torch.tensor([[[1.0, 0.0], [0.0, 10.0]]], dtype=torch.float64)
    contexts = torch.tensor([[1], [0]]).to(context_dtype)
    scores = ContextPredictor(zeta)(torch.ones(2, 2, dtype=torch.float64), contexts)
    assert scores.tolist() == [10.0, 1.0]
