"""The L1 margin: the literal program, HiGHS and the interior point, vertices, refusals."""

import numpy as np
import pytest
import torch

from implicit_bias import Status, solve_linear_svm
from implicit_bias.limits import L1Limit, solve_l1_svm
from implicit_bias.programs import L1Margin

RNG = np.random.default_rng(4)
GATES = RNG.normal(size=(40, 60))
FEATURES = np.hstack([GATES, GATES[:, :20]])  # columns twice, so that no optimum is unique
Y = np.where(RNG.random(40) < 0.5, 1.0, -1.0)


def test_highs_the_interior_point_and_the_literal_program_agree() -> None:
    inner = solve_l1_svm(FEATURES, Y).require()
    vertex = solve_l1_svm(FEATURES, Y, solver="highs").require()
    once = solve_l1_svm(GATES, Y, solver="highs").require()
    literal = L1Margin().literal(FEATURES, Y)
    literal.solve(solver="CLARABEL")
    for other in (vertex.objective, once.objective, literal.value):
        assert inner.objective == pytest.approx(other, rel=1e-7)
    assert np.count_nonzero(vertex.zeta) <= len(Y) < np.count_nonzero(inner.zeta)
    np.testing.assert_allclose(Y * vertex.predictor(FEATURES), vertex.margins, rtol=1e-12)
    np.testing.assert_array_equal(vertex.predictor.predict(FEATURES), Y)
    assert np.abs(vertex.zeta).sum() / vertex.margins.min() == pytest.approx(vertex.objective)


@pytest.mark.parametrize("solver", ["interior-point", "highs"])
def test_data_that_no_coefficients_separate_come_with_a_proof(solver) -> None:
    features = np.abs(np.vstack([GATES, GATES[3]]))
    limit = solve_l1_svm(features, np.append(Y, -Y[3]), solver=solver)
    assert limit.status is Status.NOT_SEPARABLE
    assert np.flatnonzero(limit.dual > 1e-9).tolist() == [3, 40]


def test_tensors_and_files_hold_the_vertex(tmp_path) -> None:
    vertex = solve_l1_svm(torch.tensor(FEATURES), torch.tensor(Y), solver="highs").require()
    assert isinstance(vertex.zeta, torch.Tensor)
    vertex.save(tmp_path / "l1.safetensors")
    np.testing.assert_array_equal(L1Limit.load(tmp_path / "l1.safetensors").zeta, vertex.zeta)


def test_highs_refuses_norms_that_are_no_absolute_values() -> None:
    with pytest.raises(ValueError, match=r"one coefficient a group.*use 'interior-point'"):
        solve_linear_svm(FEATURES, Y, solver="highs")


def test_malformed_features_are_named() -> None:
    with pytest.raises(ValueError, match="`features` has entries that are NaN"):
        solve_l1_svm(FEATURES * np.nan, Y)
    with pytest.raises(ValueError, match=r"`features` must have shape \(n, m\)"):
        solve_l1_svm(FEATURES[:, 0], Y)
    with pytest.raises(ValueError, match=r"`features` must have shape \(n, 80\)"):
        solve_l1_svm(FEATURES, Y).predictor(GATES)
