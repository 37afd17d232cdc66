"""Networks whose outer layer is fixed: certified optima, nearly orthogonal data, rank two."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import implicit_bias as ib
from experiments import fixed_outer_programs as programs
from implicit_bias.datasets import make_near_orthogonal, near_orthogonality
from implicit_bias.limits import solve_fixed_outer
from tests.commands import run

SLOPE, N, D, H = 0.5, 8, 20, 6
X, Y = make_near_orthogonal(N, D)
OUTER = np.array([1.0, -1.0] * (H // 2)) / math.sqrt(H)
RNG = np.random.default_rng(0)
FAR = ib.TrainingSettings(trainer="annealed", schedule=((200, None),), n_checkpoints=2)


# Solved from the labels' gates, local from them, local from a network; slopes of all three kinds.
@pytest.mark.parametrize("problem", [0, 7, 10, 198, 199])
def test_the_optimum_is_that_of_the_convex_program_of_its_gates_stated_anew(problem) -> None:
    found = programs.row(problem)
    assert found["status"] in ("SOLVED", "LOCAL_OPTIMUM") and found["difference"] < 1e-6
    assert found["random_over_bound"] >= 1 and found["bound_over_value"] <= 1 + 1e-9


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_orthonormal_inputs_have_a_closed_form(slope) -> None:
    # Each sample has K = sum_h a_h^2 g_h^2 = (1 + slope^2) / 2, and nothing to do with others.
    limit = solve_fixed_outer(np.eye(N), Y, OUTER, slope=slope)
    assert limit.value == pytest.approx(math.sqrt(2 * N / (1 + slope**2)), rel=1e-7)
    assert limit.status.name == "SOLVED" and limit.rank == 2 and limit.n_support == N


def test_nearly_orthogonal_data_have_one_optimum_of_rank_two_whatever_the_start() -> None:
    condition = near_orthogonality(X, Y, slope=SLOPE)
    products = X @ X.T - np.eye(N)
    assert np.abs(products).max() == pytest.approx(1e-3, rel=1e-6)
    assert condition.largest == pytest.approx(1e-3, rel=1e-6)
    assert condition.needed == pytest.approx(2 * N * condition.largest / SLOPE**3, rel=1e-6)
    assert condition and condition.published > condition.needed
    assert not near_orthogonality(X, Y, slope=0.05) and not near_orthogonality(X, Y, slope=0.0)
    limit = solve_fixed_outer(X, Y, OUTER, slope=SLOPE)
    assert limit.status.name == "SOLVED" and limit.rank == 2 and limit.n_support == N
    np.testing.assert_allclose(limit.margins, 1, atol=1e-6)
    for _ in range(3):
        start = RNG.normal(size=(H, D)) + 3 * np.outer(OUTER, Y @ X)
        other = solve_fixed_outer(X, Y, OUTER, slope=SLOPE, start=start)
        np.testing.assert_allclose(other.zeta, limit.zeta, atol=1e-6)


def test_its_boundary_is_linear_with_the_share_of_the_largest_margin_that_is_proved() -> None:
    limit = solve_fixed_outer(X, Y, OUTER, slope=SLOPE)
    z, points = limit.classifier, RNG.normal(size=(500, D))
    assert np.array_equal(np.sign(limit.predictor(points)), np.sign(points @ z))
    share = np.min(Y * (X @ z)) / np.linalg.norm(z) * ib.solve_linear_svm(X, Y).objective
    assert (1 + SLOPE) / 2 - 1e-9 <= share <= 1 + 1e-9


def test_a_local_optimum_is_one_and_its_proof_is_recomputed_from_arrays() -> None:
    rng = np.random.default_rng(3)
    inputs, labels = rng.normal(size=(12, 20)), np.sign(rng.normal(size=12))
    start = 5 * rng.normal(size=(8, 20)) + 3 * np.outer(np.tile([1.0, -1.0], 4), labels @ inputs)
    outer = np.tile([1.0, -1.0], 4)
    limit = solve_fixed_outer(inputs, labels, outer, slope=0.1, start=start)
    assert limit.status.name == "LOCAL_OPTIMUM"

    def value(W: np.ndarray) -> float:
        z = inputs @ W.T
        margin = float(np.min(labels * (np.maximum(z, 0.1 * z) @ outer)))
        return float(np.linalg.norm(W)) / margin if margin > 0 else math.inf

    assert value(limit.zeta) == pytest.approx(limit.value, rel=1e-9)
    size = np.abs(limit.zeta).max()
    near = [value(limit.zeta + 1e-4 * size * RNG.normal(size=limit.zeta.shape)) for _ in range(300)]
    assert min(near) > limit.value
    assert limit.certify(inputs, labels).value == pytest.approx(limit.value)
    moved = replace(limit, zeta=limit.zeta + 0.05 * size * RNG.normal(size=limit.zeta.shape))
    assert moved.certify(inputs, labels).status.name == "FAILED"
    lighter = replace(limit, dual=limit.dual * np.linspace(0.5, 1, 12))
    assert lighter.certify(inputs, labels).certificate.dual_objective < limit.value * 0.999


def test_training_comes_to_the_limit_and_to_rank_two() -> None:
    limit = solve_fixed_outer(X, Y, OUTER, slope=SLOPE)
    network = ib.networks.FixedOuterReLU(D, H, slope=SLOPE, init_scale=0.01, random_state=1)
    np.testing.assert_allclose(network.outer.numpy(), OUTER)
    ib.train(network, X, Y, settings=FAR)
    value = ib.measures.value_of(network, ib.Sample(X, Y, None))
    assert limit.certificate.lower_bound <= value <= limit.value * 1.001
    sizes = np.linalg.svd(network.W.detach().numpy(), compute_uv=False)
    assert sizes[2] < 1e-3 * sizes[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: solve_fixed_outer(X, Y, [1.0, 0.0]), "`outer` must have no weight of 0"),
        (lambda: solve_fixed_outer(X, Y, OUTER, start=X), r"`start` must have shape \(6, D\)"),
        (lambda: solve_fixed_outer(X, Y, OUTER, slope=1.0), "slope"),
        (lambda: make_near_orthogonal(9, 8), "`d` must be at least `n` = 9"),
    ],
)
def test_wrong_input_is_refused_in_one_message(call, said) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_a_start_that_does_not_separate_has_no_limit_and_says_so() -> None:
    found = solve_fixed_outer(X, Y, OUTER, start=-np.outer(OUTER, Y @ X))
    assert found.status.name == "FAILED" and found.reason == "it does not separate"


class Fixed(nn.Module):
    """Leaky units whose signs are a plain tensor, neither a parameter nor a buffer."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(D, H, bias=False, dtype=torch.double)
        self.signs, self.slope, self.degree = torch.tensor(OUTER), slope, 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.leaky_relu(self.inner(x), self.slope) @ self.signs


def test_a_module_with_constant_signs_is_recognised_with_its_slope_and_its_limit() -> None:
    network = Fixed(SLOPE)
    ib.train(network, X, Y, settings=FAR)
    report = ib.diagnose(network, X, Y)
    limit = report.objects["local_limit"]
    assert report.verdict.word == "AT A LOCAL LIMIT" and "nearly orthogonal" in str(report)
    assert limit.slope == pytest.approx(SLOPE) and limit.status.name == "SOLVED"
    np.testing.assert_allclose(limit.outer, OUTER)
    trained = Fixed(SLOPE)
    trained.signs = nn.Parameter(torch.tensor(OUTER))
    assert "outer layer is fixed" not in str(ib.diagnose(trained, X, Y))


def test_a_run_checks_its_data_and_says_where_the_network_is() -> None:
    small = ("--n-train", 8, "--n-val", 20, "--hidden-units", 4, "--steps", 150,
             "--checkpoints", 3, "--json", "--quiet")  # fmt: skip
    record = json.loads(run("--model", "fixed-outer", *small).stdout)
    assert record["verdicts"][0]["word"] == "AT ITS LIMIT"
    assert record["comparison"]["third"] < 1e-3 and record["comparison"]["linear_ratio"] > 0.75
    other = json.loads(run("--model", "fixed-outer", "--data", "digits", *small).stdout)
    nearly = next(one for one in other["assumptions"] if one["name"] == "nearly orthogonal")
    assert nearly["holds"] is False and other["verdicts"][0]["word"] != "AT ITS LIMIT"
    assert other["comparison"]["local_ratio"] <= 1 + 1e-6
