"""Norms of coefficients that optimisers induce: the table, the program, and its bounds."""

from __future__ import annotations

from pkgutil import resolve_name

import numpy as np
import pytest

from implicit_bias.limits import Norm
from implicit_bias.programs import SVMGLN

optimiser_norms = resolve_name("implicit_bias.limits.exact.optimiser_norms")
INDUCED, solve_in_norm = optimiser_norms.INDUCED, optimiser_norms.solve_in_norm
coefficient_program = optimiser_norms.coefficient_program
FOUND = {found.norm: found for table in INDUCED.values() for found in table.values() if found.exact}


def test_one_norm_of_the_table_is_a_bound_alone() -> None:
    bounds = [
        (form, norms)
        for form, table in INDUCED.items() for norms, found in table.items() if not found.exact
    ]  # fmt: skip
    assert bounds == [("gated layer", ("l1", "l1"))]
    assert set(FOUND) == {"l2", "l1", "linf", "spectral", "rows", "muon"}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_coefficients_have_a_row_a_unit_and_bounds_above_their_norms(name, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 4))
    program = SVMGLN(2).program(X, np.sign(X[:, 0]), rng.integers(0, 2, (5, 3)))
    image = coefficient_program(program, 3)
    assert image.shape == (3, 8) and coefficient_program(program, 1).shape == (1, 24)
    found, V = FOUND[name], rng.normal(size=(3, 8))
    norm = Norm.of(name)
    assert found.dual_above(V) == pytest.approx(norm.dual.value(V), rel=1e-8)
    above = found.value_above(V, 7.0)
    assert above == 7 if name == "muon" else above == pytest.approx(norm.value(V), rel=1e-8)
    assert (found.described == f"{name} norm of the coefficients") is (name not in ("rows", "muon"))
    solution = solve_in_norm(image, found)
    assert solution is not None and solution.status.name == "SOLVED"
    assert ("highs" in solution.solver.lower()) is (name in ("l1", "linf"))
    monkeypatch.setattr(optimiser_norms, "MOST_OF_MATRICES", 23)
    large = name == "spectral" or (norm.inside == "spectral")
    assert (solve_in_norm(image, found) is None) is large
    monkeypatch.setattr(optimiser_norms, "MOST_OF_MATRICES", 24)
    assert solve_in_norm(image, found) is not None
