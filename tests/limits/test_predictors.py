"""One predictor for every kind of gates: scores are the sum over the columns that gates open."""

import numpy as np
import pytest

from implicit_bias.limits.linear import Ungated
from implicit_bias.limits.predictors import ContextPredictor, GateColumns, Predictor
from implicit_bias.models.gln.shallow import GlobalContextColumns

# More rows than a block of the design has.
N, H, C, D = 2500, 3, 4, 5
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D))
CONTEXTS = RNG.integers(0, C, size=(N, H))
BINARY, REAL = RNG.integers(0, 2, size=(N, H)), RNG.normal(size=(N, H))
TABLE = np.array([[0, 0, 0], [0, 1, 2], [3, 3, 3]])


def seen_in(zeta: np.ndarray) -> np.ndarray:
    """(n, D): the row of zeta whose contexts a sample is in, zeros without one."""
    matches = (CONTEXTS[:, None] == TABLE).all(axis=2)
    return np.where(matches.any(axis=1)[:, None], zeta[matches.argmax(axis=1)], 0.0)


@pytest.mark.parametrize(
    ("predictor", "shape", "gates", "beta"),
    [
        (lambda zeta: Predictor(zeta, Ungated()), (D,), None, lambda zeta: zeta),
        (ContextPredictor, (H, C, D), CONTEXTS,
         lambda zeta: zeta[np.arange(H), CONTEXTS].sum(axis=1)),
        (lambda zeta: Predictor(zeta, GateColumns(H, binary=True)), (H, D), BINARY == 1,
         lambda zeta: BINARY @ zeta),
        (lambda zeta: Predictor(zeta, GateColumns(H, binary=False)), (H, D), REAL,
         lambda zeta: REAL @ zeta),
        (lambda zeta: Predictor(zeta, GlobalContextColumns(TABLE)), (3, D), CONTEXTS, seen_in),
    ],
    ids=["none", "contexts", "binary", "real", "global contexts"],
)  # fmt: skip
def test_a_score_is_the_product_with_the_sum_of_what_the_gates_open(
    predictor, shape, gates, beta
) -> None:
    zeta = RNG.normal(size=shape)
    scores = predictor(zeta)(X, gates)
    np.testing.assert_allclose(scores, np.sum(X * beta(zeta), axis=1), atol=1e-12)
    few = predictor(zeta)(X[:0], None if gates is None else gates[:0])
    assert few.shape == (0,)


def test_inputs_that_are_not_finite_are_refused_whatever_the_gates() -> None:
    with pytest.raises(ValueError, match="`X` has entries that are NaN or infinite"):
        Predictor(np.ones(D), Ungated())(np.full((2, D), np.nan))
