"""Limits proved anew on the data: what a file claims counts for nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias import Status
from implicit_bias.limits import ConstantExpertsLimit, Limit
from tests.certificate_checker import recompute

RNG = np.random.default_rng(7)
N, D, H, C = 24, 4, 3, 2
X = RNG.normal(size=(N, D))
Y = np.where(X @ np.array([1.0, -1.0, 0.5, 2.0]) > 0, 1.0, -1.0)
CONTEXTS = RNG.integers(0, C, size=(N, H))
GATES = np.concatenate([np.ones((N, 1)), RNG.integers(0, 2, size=(N, H - 1))], axis=1)
LAYERS = [GATES, np.concatenate([np.ones((N, 1)), RNG.integers(0, 2, size=(N, 1))], axis=1)]
ORTHANTS = np.abs(X) * Y[:, None]
TABLE = np.bitwise_xor.outer(range(D), range(D))
EXPERTS = np.concatenate([np.eye(2)[(Y > 0).astype(int)], GATES], axis=1)

Case = tuple[Callable[[], Limit], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "linear": (lambda: ib.solve_linear_svm(X, Y), (X, Y)),
    "features": (
        lambda: ib.limits.solve_limit(ib.programs.UnitFeatures(2), X, Y), (X, Y),
    ),
    "l1": (lambda: ib.limits.solve_l1_svm(X, Y), (X, Y)),
    "convolution": (lambda: ib.limits.solve_convolution(X, Y), (X, Y)),
    "convolution, a table": (lambda: ib.limits.solve_convolution(X, Y, group=TABLE), (X, Y)),
    "frelu": (lambda: ib.solve_frelu_svm(X, Y, GATES), (X, Y, GATES)),
    "path": (lambda: ib.solve_path_lasso(X, Y, LAYERS), (X, Y, LAYERS)),
    "path of contexts": (
        lambda: ib.solve_path_lasso(X, Y, CONTEXTS, widths=(2, 1), contexts=True),
        (X, Y, CONTEXTS),
    ),
    "gln": (lambda: ib.solve_gln_svm(X, Y, CONTEXTS, n_contexts=3), (X, Y, CONTEXTS)),
    "gln-l2": (lambda: ib.solve_gln_l2_svm(X, Y, CONTEXTS, n_contexts=3), (X, Y, CONTEXTS)),
    "shallow": (lambda: ib.solve_shallow_gln_svm(X, Y, CONTEXTS), (X, Y, CONTEXTS)),
    "orthosep": (lambda: ib.solve_orthosep(ORTHANTS, Y), (ORTHANTS, Y)),
    "experts": (
        lambda: ib.limits.solve_dlgn_svm(X, Y, EXPERTS, experts="constant"), (X, Y, EXPERTS),
    ),
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", sorted(CASES))


def concrete(base: type) -> set[type]:
    below = set().union(*(concrete(one) for one in base.__subclasses__()))
    return below | ({base} if not base.__abstractmethods__ else set())


def test_every_limit_of_the_package_is_among_the_cases() -> None:
    solved = {type(solve()) for solve, _ in CASES.values()}
    of_package = {one for one in concrete(Limit) if one.__module__.startswith("implicit_bias.")}
    assert solved == of_package and ConstantExpertsLimit in solved


@EVERY
def test_a_limit_is_proved_again_on_its_data(name) -> None:
    solve, data = CASES[name]
    limit = solve()
    assert limit.status is Status.SOLVED
    again = limit.certify(*data)
    assert type(again) is type(limit) and again.status is Status.SOLVED
    assert again.gap <= limit.tol
    assert again.objective == pytest.approx(limit.objective, rel=1e-9)
    assert again.dual_objective == pytest.approx(limit.dual_objective, rel=1e-9)
    for field in fields(limit):
        one, other = getattr(again, field.name), getattr(limit, field.name)
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7, err_msg=field.name)
        elif field.name in ("tol", "solver", "iterations", "seconds"):
            assert one == other
    assert again._fault() == ""


@EVERY
def test_coefficients_that_a_file_made_up_are_found_out(name, tmp_path) -> None:
    """Random coefficients with arrays that fit them, under the certificate of the optimum."""
    solve, data = CASES[name]
    limit = solve()
    forged = replace(limit, zeta=RNG.normal(size=limit.zeta.shape))
    assert forged.status is Status.SOLVED
    found = forged.certify(*data)
    assert found.status is not Status.SOLVED and found.gap > limit.tol
    # Nor do multipliers count that prove less than the file says.
    weak = replace(limit, dual=np.ones_like(limit.dual)).certify(*data)
    assert weak.status is Status.INACCURATE
    assert weak.dual_objective < limit.dual_objective


def test_the_proof_is_that_of_exact_arithmetic() -> None:
    limit = ib.solve_gln_svm(X, Y, CONTEXTS)
    formulation = ib.programs.SVMGLN()
    rough = replace(limit, zeta=np.round(limit.zeta, 3), dual=np.round(limit.dual, 3))
    found = rough.certify(X, Y, CONTEXTS)
    program = formulation.program(X, Y, CONTEXTS)
    exact = recompute(program, rough.zeta.reshape(-1, D), rough.dual)
    assert found.objective == pytest.approx(exact.objective, rel=1e-9)
    assert found.dual_objective == pytest.approx(exact.dual_objective, rel=1e-9)


@EVERY
def test_other_data_are_another_program(name) -> None:
    solve, (inputs, labels, *gates) = CASES[name]
    limit = solve()
    flipped = labels.copy()
    flipped[0] = -flipped[0]
    assert limit.certify(inputs, flipped, *gates).status is not Status.SOLVED
    with pytest.raises(ValueError, match=r"`X`|`y`|gates|contexts"):
        limit.certify(inputs[:-1], labels, *gates)
    fewer = [[one[:-1] for one in gate] if isinstance(gate, list) else gate[:-1] for gate in gates]
    with pytest.raises(ValueError, match="`X` has 23 rows, and the limit multipliers of 24"):
        limit.certify(inputs[:-1], labels[:-1], *fewer)
    if name not in ("l1", "features"):
        wider = np.concatenate([inputs, inputs[:, :1]], axis=1)
        with pytest.raises(ValueError, match="give the data that it was solved on"):
            limit.certify(wider, labels, *gates)


def test_a_loaded_limit_is_proved_in_the_kind_of_the_data(tmp_path) -> None:
    ib.solve_gln_svm(X, Y, CONTEXTS).save(tmp_path / "x")
    limit = ib.load(tmp_path / "x")
    tensors = [torch.tensor(one) for one in (X, Y, CONTEXTS)]
    found = limit.certify(*tensors)
    assert found.status is Status.SOLVED and isinstance(found.zeta, torch.Tensor)


@EVERY
def test_no_points_at_all_bound_the_optimum_from_the_wrong_side(name) -> None:
    """Multipliers below 0, of the wrong sample, too large; coefficients that are far off."""
    solve, data = CASES[name]
    limit, rng = solve(), np.random.default_rng(1)
    bounds = []
    for scale in np.repeat([1e-3, 0.03, 1.0, 30.0], 4):
        dual = limit.dual + scale * np.abs(limit.dual).max() * rng.normal(size=limit.dual.shape)
        zeta = limit.zeta + scale * np.abs(limit.zeta).max() * rng.normal(size=limit.zeta.shape)
        found = replace(limit, zeta=zeta, dual=dual).certify(*data)
        assert found.objective >= limit.dual_objective and found.gap > limit.tol
        assert found.dual_objective <= limit.objective and found.status is not Status.SOLVED
        bounds.append(found.dual_objective)
    assert max(bounds) > 0.5 * limit.objective  # small noise still proves something
    for dual in (-limit.dual, limit.dual[::-1].copy()):
        assert replace(limit, dual=dual).certify(*data).dual_objective < 0.99 * limit.objective
