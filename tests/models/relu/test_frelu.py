"""The frozen-gate ReLU limit and its network: literal programs, closed forms, proofs, training."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.typing import NDArray

from implicit_bias import (
    FReLU,
    Sample,
    Status,
    TrainingSettings,
    compare,
    solve_frelu_svm,
    solve_gln_svm,
    train,
)
from implicit_bias.limits import FReLULimit
from implicit_bias.programs import SVMFReLU
from tests.oracles import frelu_kernels, hard_margin
from tests.problems import Construction, constructed

Array = NDArray[np.float64]
SOLVERS = ["interior-point", "cvxpy:CLARABEL"]
NORMS = (0.4, 3.0, 9.0, 0.0, 1.5)  # of the constructed optimum: very unequal, one unit dead


def random_problem(n: int = 30, D: int = 5, H: int = 4, seed: int = 0):
    """Gaussian inputs, gates open on all to a third of them, labels of a random such network."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    gates = (rng.random(size=(n, H)) < np.linspace(1.0, 0.3, H)).astype(np.int64)
    y = np.sign(np.sum((X @ rng.normal(size=(H, D)).T) * gates, axis=1))
    return X, y, gates


def known_optimum() -> Construction:
    rng = np.random.default_rng(4)
    gates = (rng.random(size=(50, 5)) < 0.5).astype(np.int64)
    gates[:, 2] = 1
    return constructed(gates, np.arange(5), NORMS, n_support=20, n_inputs=18, random_state=1)


def quadrants(a: float = 2.0, b: float = 1.0) -> tuple[Array, Array, NDArray[np.int64]]:
    """Exclusive or, a unit for each quadrant: each solves its own sample, sum of 1 / ||x||."""
    X = np.array([[a, b], [-a, -b], [-a, b], [a, -b]])
    return X, np.array([1.0, 1.0, -1.0, -1.0]), np.eye(4, dtype=np.int64)


def two_units() -> tuple[Array, Array, NDArray[np.int64]]:
    """Unit 0 open on samples 0, 1, unit 1 on sample 2: zeta (1/2, 0) and (0, -1)."""
    X = np.array([[2.0, 0.0], [3.0, 1.0], [0.0, 1.0]])
    return X, np.array([1.0, 1.0, -1.0]), np.array([[1, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("H", [1, 2, 7])
def test_the_optimum_is_that_of_the_printed_program_written_sample_by_sample(solver, H) -> None:
    X, y, gates = random_problem(H=H)
    zeta = [cp.Variable(X.shape[1]) for _ in range(H)]
    margins = [
        y[n] * sum(int(gates[n, h]) * (zeta[h] @ X[n]) for h in range(H)) >= 1
        for n in range(len(y))
    ]
    objective = cp.Minimize(sum(cp.norm(z, 2) for z in zeta))
    cp.Problem(objective, margins).solve(solver="CLARABEL")
    limit = solve_frelu_svm(X, y, gates, solver=solver, tol=1e-7).require()
    assert limit.objective == pytest.approx(objective.value, rel=1e-6)
    if solver == "interior-point":
        np.testing.assert_allclose(limit.zeta, [z.value for z in zeta], atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_constructed_optimum_is_found_with_its_dead_unit(solver) -> None:
    known = known_optimum()
    design = known.program.design
    limit = solve_frelu_svm(design.X, known.program.y, design.Z, solver=solver, tol=1e-7).require()
    assert limit.objective == pytest.approx(known.optimum, rel=2e-7)
    assert limit.dual_objective == pytest.approx(known.optimum, rel=2e-7)
    np.testing.assert_allclose(limit.unit_norms, NORMS, atol=1e-2)
    # Blocks of live units have norm 1; the dead one's was made 1/2.
    np.testing.assert_allclose(limit.dual_norms, [1, 1, 1, 0.5, 1], atol=1e-3)
    assert limit.live.tolist() == [True, True, True, False, True]
    assert np.flatnonzero(limit.support).tolist() == list(range(20))


@pytest.mark.parametrize("solver", SOLVERS)
def test_closed_forms(solver) -> None:
    X, y, gates = quadrants()
    limit = solve_frelu_svm(X, y, gates, solver=solver, tol=1e-7).require()
    assert limit.objective == pytest.approx(4 / np.sqrt(5), rel=1e-6)
    np.testing.assert_allclose(limit.zeta, y[:, None] * X / 5, atol=1e-6)
    limit = solve_frelu_svm(*two_units(), solver=solver, tol=1e-7).require()
    np.testing.assert_allclose(limit.zeta, [[0.5, 0], [0, -1]], atol=1e-4)
    assert limit.objective == pytest.approx(1.5, rel=1e-6)


def test_the_kernel_machine_has_the_optimum_of_the_explicit_program() -> None:
    X, y, gates = random_problem()
    lam = cp.Variable(len(y), nonneg=True)
    signed = cp.multiply(y, lam)
    constraints = [cp.quad_form(signed, cp.psd_wrap(K)) <= 1 for K in frelu_kernels(X, gates)]
    problem = cp.Problem(cp.Maximize(cp.sum(lam)), constraints)
    problem.solve(solver="CLARABEL")
    limit = solve_frelu_svm(X, y, gates).require()
    assert limit.objective == pytest.approx(problem.value, rel=1e-6)


def test_one_unit_that_is_always_open_is_the_hard_margin_svm() -> None:
    X, _, _ = random_problem(n=40)
    y = np.sign(X @ np.arange(1.0, 6.0))
    limit = solve_frelu_svm(X, y, np.ones((40, 1)), tol=1e-11).require()
    np.testing.assert_allclose(limit.zeta[0], hard_margin(y[:, None] * X), rtol=1e-4, atol=1e-6)


def test_a_closed_gate_differs_from_a_second_context() -> None:
    # A GLN unit of two contexts acts in both; its closed half may not in an FReLU unit.
    X, y, gates = random_problem(H=3)
    frelu, gln = solve_frelu_svm(X, y, gates).require(), solve_gln_svm(X, y, gates).require()
    assert gln.objective < frelu.objective * (1 - 1e-3)
    everywhere = np.zeros((len(y), 3), dtype=np.int64)
    linear = np.sign(X @ np.ones(5))
    assert solve_frelu_svm(X, linear, everywhere + 1).objective == pytest.approx(
        solve_gln_svm(X, linear, everywhere).objective, rel=1e-7
    )


@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.float32, np.float64])
def test_gates_of_every_kind_are_the_same_gates(kind) -> None:
    X, y, gates = random_problem()
    expected = solve_frelu_svm(X, y, gates)
    np.testing.assert_array_equal(solve_frelu_svm(X, y, gates.astype(kind)).zeta, expected.zeta)
    scores = expected.predictor(X, gates.astype(kind))
    np.testing.assert_allclose(y * scores, expected.margins)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y, g: (X, y, 0.5 * g), "exactly 0"),
        (lambda X, y, g: (X, y, -g), "exactly 0"),
        (lambda X, y, g: (X, y, np.where(g == 1, np.nan, 0.0)), "NaN or infinite"),
    ],
)
def test_wrong_input_is_refused_by_name(spoil, message) -> None:
    with pytest.raises(ValueError, match=message):
        SVMFReLU().program(*spoil(*random_problem()))


def assert_proves_inseparability(limit: FReLULimit, X: Array, y: Array, gates: Array) -> None:
    assert limit.status is Status.NOT_SEPARABLE
    assert np.all(limit.dual >= 0)
    assert sum(limit.dual) == pytest.approx(1, abs=1e-12)
    for h in range(gates.shape[1]):
        v = sum(limit.dual[n] * y[n] * gates[n, h] * X[n] for n in range(len(y)))
        assert np.linalg.norm(v) < 1e-12 * np.abs(X).max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sample_on_which_no_gate_opens_is_its_own_proof(solver) -> None:
    X, y, gates = random_problem()
    gates[11] = 0
    limit = solve_frelu_svm(X, y, gates, solver=solver)
    assert_proves_inseparability(limit, X, y, gates)
    # The others are separable, by the teacher: nothing else can carry the proof.
    assert limit.dual[11] == pytest.approx(1, abs=1e-6)
    others = np.arange(30) != 11
    assert solve_frelu_svm(X[others], y[others], gates[others], solver=solver).require()


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_units_come_back_with_their_proof(solver) -> None:
    X, y, gates = quadrants()
    for few in ([0, 1, 2], [0]):
        assert_proves_inseparability(
            solve_frelu_svm(X, y, gates[:, few], solver=solver), X, y, gates[:, few]
        )
    everywhere = np.ones((4, 1))  # exclusive or is not linear
    assert_proves_inseparability(solve_frelu_svm(X, y, everywhere, solver=solver), X, y, everywhere)


def test_a_unit_that_never_opens_is_dead_and_changes_nothing() -> None:
    X, y, gates = random_problem()
    closed = np.hstack([gates[:, :1], np.zeros((30, 1), dtype=int), gates[:, 1:]])
    limit = solve_frelu_svm(X, y, closed).require()
    assert limit.objective == pytest.approx(solve_frelu_svm(X, y, gates).objective, rel=1e-7)
    assert limit.unit_norms[1] == 0
    assert limit.dual_norms[1] == 0
    assert not limit.live[1]
    w1, w2 = limit.balanced_weights()
    assert np.all(w1[1] == 0)
    assert w2[1] == 0


def test_the_optimum_keeps_to_its_symmetries() -> None:
    X, y, gates = random_problem()
    limit = solve_frelu_svm(X, y, gates, tol=1e-10).require()
    order, samples = np.array([2, 0, 3, 1]), np.random.default_rng(1).permutation(30)
    relabelled = solve_frelu_svm(X, y, gates[:, order], tol=1e-10)
    np.testing.assert_allclose(relabelled.zeta, limit.zeta[order], atol=1e-5)
    permuted = solve_frelu_svm(X[samples], y[samples], gates[samples], tol=1e-10)
    np.testing.assert_allclose(permuted.zeta, limit.zeta, atol=1e-5)
    twins = solve_frelu_svm(X, y, np.hstack([gates, gates]), tol=1e-10)
    assert twins.objective == pytest.approx(limit.objective, rel=1e-9)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    rotated = solve_frelu_svm(1e3 * X @ rotation, y, gates, tol=1e-10)
    np.testing.assert_allclose(1e3 * rotated.zeta, limit.zeta @ rotation, atol=1e-5)


def test_the_predictor_refuses_what_does_not_fit() -> None:
    X, y, gates = random_problem(n=6)
    predictor = solve_frelu_svm(X, y, gates).require().predictor
    for args, message in [
        ((X[:, :4], gates), "made from 5 inputs"),
        ((X, gates[:, :3]), r"got \(6, 3\): one row per row of X, one column per unit"),
        ((X, gates[:5]), r"shape \(6, 4\)"),
        ((X, gates + 1), "exactly 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            predictor(*args)


@pytest.mark.long
def test_training_comes_to_the_predicted_limit() -> None:
    X, y, gates = two_units()
    # Besides, a third unit open on sample 1 alone, which the optimum does without.
    gates = np.hstack([gates, [[0], [1], [0]]])
    limit = solve_frelu_svm(X, y, gates).require()
    assert limit.objective == pytest.approx(1.5, rel=1e-6)
    network = FReLU(2, 3, init="balanced", init_scale=0.3, random_state=1)
    settings = TrainingSettings(
        batch_size=None,
        trainer="normalised",
        schedule=((3000, 0.02), (1000, 0.005), (1000, 0.001)),
        n_checkpoints=10,
    )
    trajectory = train(network, X, y, gates, settings=settings)
    assert trajectory.log_loss[-1] < -20
    sample = Sample(X, y, gates)
    found = compare(limit, network, sample, sample)
    assert 0.99 < found.margin_ratio < 1 + 1e-8
    assert found.zeta_cosine > 0.99
    assert found.agreement == 1
    assert found.kkt_cosine > 0.999
