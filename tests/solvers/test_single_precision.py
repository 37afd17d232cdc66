"""Newton matrices in single precision, starts from similar answers: the certificate decides."""

from __future__ import annotations

import numpy as np
import pytest

from solvers import MaxMarginProgram, Settings, Status, solve
from solvers.methods import interior_point
from solvers.methods.interior.game import play
from solvers.methods.interior.group_kernels import GroupKernels, group_kernels
from solvers.methods.interior.group_starts import Start, starting_point
from solvers.methods.interior.group_system import GroupSystem, Targets
from solvers.numerics.central_path import Best
from tests.problems import (
    Construction,
    as_torch,
    gln_construction,
    gln_program,
    near_inseparable_construction,
    random_gln,
    tall_construction,
    unequal_construction,
)

SINGLE = Settings(single_from=1)
CONSTRUCTIONS = (gln_construction(), tall_construction(), unequal_construction())


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each game that is played is one in single precision."""
    singles: list[bool] = []

    def noted(kernels: GroupKernels, settings: Settings, start: Start | None = None) -> Best[Start]:
        singles.append(kernels.single)
        return play(kernels, settings, start)

    monkeypatch.setattr(interior_point, "play", noted)
    return singles


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=("gln", "tall", "unequal"))
def test_single_precision_certifies_the_optimum_to_1e_8(played, construction) -> None:
    solution = solve(construction.program, settings=SINGLE)
    assert solution.status is Status.SOLVED
    assert solution.certificate.objective == pytest.approx(construction.optimum, rel=1e-8)
    assert played == [True]


@pytest.mark.parametrize("optimum", [1e4, 1e6])
def test_what_single_precision_cannot_certify_is_played_in_double(played, optimum) -> None:
    construction = near_inseparable_construction(optimum)
    found, expected = (solve(construction.program, settings=s) for s in (SINGLE, None))
    assert played[:2] == [True, False]
    assert found.status is expected.status is Status.SOLVED
    assert found.certificate.objective == pytest.approx(optimum, rel=1e-7)


def test_small_programs_those_of_many_inputs_and_tensors_stay_in_double(played) -> None:
    program = tall_construction().program
    solve(program)
    solve(as_torch(program), settings=SINGLE)
    X, y, contexts = random_gln(14, 20, 3, 4)
    solve(gln_program(X, y, contexts, 4), settings=SINGLE)
    assert played == [False] * 3


def test_kernels_in_single_precision_differ_by_rounding_and_products_not_at_all() -> None:
    program = gln_construction().program
    double, single = group_kernels(program), group_kernels(program, single=True)
    lam, d = np.linspace(0, 1, program.n_samples), np.arange(1.0, 5.0)
    matrix, exact = np.tril(single.weighted(d)), np.tril(double.weighted(d))
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, exact, rtol=0, atol=1e-6 * exact.max())
    np.testing.assert_allclose(single.products(lam), double.products(lam), rtol=1e-12)
    np.testing.assert_allclose(
        single.rough_products(lam), double.products(lam), rtol=0, atol=1e-5 * exact.max()
    )


def test_a_direction_of_a_single_precision_factor_solves_the_equations() -> None:
    program = gln_construction().program
    kernels = group_kernels(program)
    point = starting_point(kernels)
    rng = np.random.default_rng(0)
    targets = Targets(*(rng.normal(size=m) for m in (60, 4, 60, 4)))
    directions = [
        GroupSystem(group_kernels(program, single=single), point).solve(targets)
        for single in (False, True)
    ]
    for name in ("lam", "d", "z", "w"):
        exact, found = (getattr(direction, name) for direction in directions)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


def warm(construction: Construction) -> Start:
    return Start(lam=construction.dual, d=construction.d)


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=("gln", "tall", "unequal"))
def test_a_start_at_the_optimum_saves_iterations_and_a_wrong_one_does_no_harm(construction) -> None:
    program: MaxMarginProgram = construction.program
    kernels = group_kernels(program)
    cold = play(kernels, Settings())
    near = play(kernels, Settings(), warm(construction))
    wrong = play(
        kernels,
        Settings(),
        Start(lam=construction.dual[::-1] + 0, d=np.eye(len(construction.d))[0]),
    )
    assert near.iterations < cold.iterations
    for game in (cold, near, wrong):
        assert game.gap <= 1e-8
        assert game.lower == pytest.approx(1 / (construction.optimum * kernels.scale), rel=1e-7)
