"""Group penalties of many samples: optima of cvxpy, groups that are 0, and the way back."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.limits import solve_fit
from implicit_bias.programs import WeightDecay

ROUTES: Any = pkgutil.resolve_name("solvers.methods.fits.routes")
MANY: Any = pkgutil.resolve_name("solvers.methods.fits.conjugate")
NAME = "Newton by conjugate gradients"
RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 12))
GATES = (RNG.normal(size=(120, 12)) > 0).astype(float)
GATES[:, 0] = 1
Y = np.sign(X[:, 0] + np.maximum(X[:, 1], 0) - 0.3 + 0.5 * RNG.normal(size=120))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROUTES, "_MANY", 100)


@pytest.mark.parametrize(
    ("own", "n_dead"),
    [
        ({"loss": "logistic", "penalty": 0.1}, 11),
        ({"loss": "logistic", "penalty": 0.05}, 8),
        ({"loss": "logistic", "penalty": 1e-4}, 0),
        ({"loss": "squared", "penalty": 0.1}, None),
        ({"loss": "squared", "penalty": 1e-3}, 0),
        ({"loss": "squared", "norm": "l2", "penalty": 0.05}, 0),
        ({"loss": "logistic", "norm": "units", "penalty": 0.05, "n_contexts": 2}, None),
    ],
)
def test_optima_are_those_of_the_program_in_cvxpy(own, n_dead) -> None:
    gates = GATES.astype(int) if "n_contexts" in own else GATES
    limit = solve_fit(X, Y, gates, tol=1e-9, **own).require()
    assert limit.solver == NAME and limit.gap <= 1e-9
    problem = WeightDecay(**own).literal(X, Y, gates)
    assert problem.solve(solver="CLARABEL") == pytest.approx(limit.objective, rel=1e-6)
    dead = int(np.sum(np.linalg.norm(limit.zeta.reshape(len(limit.zeta), -1), axis=1) == 0))
    assert dead > 0 if n_dead is None else dead == n_dead
    again = limit.certify(X, Y, gates)
    assert again.status is ib.Status.SOLVED and again.gap == pytest.approx(limit.gap, abs=1e-12)


def test_what_does_not_come_through_is_left_to_the_rows(monkeypatch) -> None:
    monkeypatch.setattr(MANY, "_PATIENCE", 1)
    limit = solve_fit(X, Y, GATES, penalty=0.1, tol=1e-12).require()
    assert limit.solver == "interior point in the rows" and limit.gap <= 1e-12


def test_inputs_too_unequal_for_single_precision_are_left_to_the_rows(monkeypatch) -> None:
    far = X * 10.0 ** np.linspace(-15, 15, 12)
    found = solve_fit(far, Y, GATES, penalty=1e-3)
    monkeypatch.setattr(ROUTES, "_MANY", 1000)
    assert found.gap <= solve_fit(far, Y, GATES, penalty=1e-3).gap


@pytest.mark.parametrize("own", [False, True])
def test_the_preconditioner_inverts_what_its_samples_see(own) -> None:
    """Five columns behind three gates have no more directions than 60 samples see."""
    rng = np.random.default_rng(3)
    problem = pkgutil.resolve_name("solvers.programs.fits.FitProgram")(
        rng.normal(size=(120, 5)), Y, GATES[:, :3], np.arange(3), (3, 5),
        pkgutil.resolve_name("solvers.programs.mean_losses.Logistic")(np.full(120, 1 / 120)),
    )  # fmt: skip
    t, H = 10 ** rng.uniform(2, 3, 3), rng.uniform(0.1, 0.25, 120) / 120
    single = replace(problem, X=np.float32(problem.X), columns=np.float32(problem.columns))
    A = problem.matrix()
    matrix = A.T @ (H[:, None] * A) + np.diag(np.repeat(1 / t, 5))
    unit = rng.normal(size=(3, 5)) * own / 4
    program = MANY.ManySamples(problem, np.arange(3), 0.1)
    hessian = MANY._Hessian(program, single, H, t[:, None], unit, np.ones((3, 1), bool))
    inverse = MANY._Preconditioner(single, t, H)
    for Z in np.eye(15).reshape(15, 3, 5):
        kept = (Z - np.sum(unit * Z, axis=1)[:, None] * unit - Z) / t[:, None]
        np.testing.assert_allclose(hessian(Z), (matrix @ Z.ravel()).reshape(3, 5) + kept, rtol=1e-4,
                                   atol=1e-6)  # fmt: skip
        image = (matrix @ Z.ravel()).reshape(3, 5)
        found = inverse(np.ones((3, 1), bool), image)
        assert np.abs(found - Z).max() < 0.02
    assert inverse.apart(5 * t, H / 2) == pytest.approx(0, abs=1e-12)
    assert inverse.apart(t * [1, 1, np.e**3], H) == pytest.approx(1)


def test_groups_that_are_0_at_the_start_come_back() -> None:
    optimum = solve_fit(X, Y, GATES, penalty=1e-3, tol=1e-10).require().objective
    problem = pkgutil.resolve_name("solvers.programs.fits.FitProgram")(
        X, Y, GATES, np.arange(12), (12, 12),
        pkgutil.resolve_name("solvers.programs.mean_losses.Logistic")(np.full(120, 1 / 120)),
    )  # fmt: skip
    program = MANY.ManySamples(problem, np.arange(12), 1e-3)
    shut = Y * (GATES[:, 5] == 0)
    assert not np.any(problem.adjoint(shut)[5])

    def gap(blocks: Any) -> float:
        return float(program.at(blocks).value / optimum - 1)

    blocks, _ = MANY.solve_many(program, shut, gap, tol=1e-8, max_iterations=60)
    assert gap(blocks) <= 1e-8 and np.any(blocks[5])


def test_conjugate_gradients_end_after_as_many_steps_as_there_are_unknowns() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 20))
    matrix, solution = A @ A.T + np.eye(20), rng.normal(size=20)
    right = matrix @ solution
    found, steps = MANY._conjugate_gradients(lambda v: matrix @ v, lambda v: v, right, 1e-9)
    np.testing.assert_allclose(found, solution, rtol=1e-6)
    assert steps <= 30
