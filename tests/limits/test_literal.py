"""The programs as the papers print them have the optima that the library finds without them."""

import numpy as np
import pytest

from implicit_bias.limits.formulation import Formulation, solve_limit
from implicit_bias.models.gdln import formulation as gdln
from implicit_bias.models.gln import norms
from implicit_bias.models.gln.formulation import SVMGLN
from implicit_bias.models.gln.l2 import SVML2
from implicit_bias.models.gln.shallow import ContextSVMs
from implicit_bias.models.linear.formulation import HardMarginSVM
from implicit_bias.models.orthosep import formulation as orthosep
from implicit_bias.models.relu.formulation import SVMFReLU
from implicit_bias.models.relu.machines import ReLUView

RNG = np.random.default_rng(5)
N, H, C, D = 24, 3, 4, 5
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.0, 3.0]
Y = np.where(X @ RNG.normal(size=D) > 0, 1.0, -1.0)
# One context more than occurs; one gate always open, so that no sample is without.
CONTEXTS = RNG.integers(0, C - 1, size=(N, H))
GATES = np.hstack([RNG.integers(0, 2, size=(N, H)), np.ones((N, 1), dtype=int)])
VIEW = ReLUView(X, Y, random_gates=GATES, learned_gates=GATES[::-1], features=X**3)

FORMULATIONS: dict[str, tuple[Formulation, np.ndarray, np.ndarray | None, float]] = {
    "linear": (HardMarginSVM(), X, None, 1.0),
    "gln": (SVMGLN(C), X, CONTEXTS, 1.0),
    "gln-l2": (SVML2(C), X, CONTEXTS, C),
    "shallow-gln": (ContextSVMs(), X, CONTEXTS, 1.0),
    "frelu": (SVMFReLU(), X, GATES == 1, 1.0),
    **{
        f"relu {name}": (*machine, 1.0)
        for name, machine in VIEW.machines().items()
        if name != "gates_only"  # one pattern for all samples separates nothing
    },
}


@pytest.mark.parametrize(
    ("formulation", "inputs", "gates", "factor"), FORMULATIONS.values(), ids=FORMULATIONS
)
def test_the_literal_program_has_the_optimum_of_the_standard_form(
    formulation, inputs, gates, factor
) -> None:
    literal = formulation.literal(inputs, Y, gates)
    literal.solve(solver="CLARABEL")
    limit = solve_limit(formulation, inputs, Y, gates).require()
    assert literal.value == pytest.approx(factor * limit.objective, rel=1e-6)
    assert "margins" in str(literal)
    assert {variable.name() for variable in literal.variables()} <= {"zeta", "b", "beta"}
    # And the multipliers are those of the library, of which it has proved that they are optimal.
    multipliers = literal.constraints[0].dual_value / factor
    np.testing.assert_allclose(multipliers, limit.dual * limit.objective / limit.dual.sum(),
                               atol=1e-3 * multipliers.max())  # fmt: skip


def test_the_one_sided_programs_have_the_sum_of_their_optima() -> None:
    inputs = Y[:, None] * np.abs(X)
    literal = orthosep.literal(inputs, Y)
    literal.solve(solver="CLARABEL")
    limit = orthosep.solve_orthosep(inputs, Y).require()
    assert literal.value == pytest.approx(limit.objective, rel=1e-6)
    assert {variable.name() for variable in literal.variables()} == {"w_positive", "w_negative"}


def test_least_squares_behind_gates_have_the_loss_of_the_limit() -> None:
    literal = gdln.literal(X, Y, GATES)
    literal.solve(solver="CLARABEL")
    assert literal.value == pytest.approx(gdln.solve_gated_ols(X, Y, GATES).loss, rel=1e-6)


def test_the_norm_of_a_family_has_its_closed_form() -> None:
    beta = norms.predictor_family(RNG.normal(size=(H, C, D)))
    literal = norms.literal(beta)
    literal.solve(solver="CLARABEL")
    assert literal.value == pytest.approx(norms.gln_norm(beta), rel=1e-6)
