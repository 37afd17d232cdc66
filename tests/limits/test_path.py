"""Limits of growing numbers of samples: the same as one by one, in fewer iterations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import implicit_bias as ib
from tests.problems import random_gln

SIZES = [1500, 1600, 1700]
X, Y, CONTEXTS = random_gln(1700, 20, 3, 2)


def test_every_limit_of_a_path_is_that_of_its_samples_alone_in_fewer_iterations() -> None:
    path = ib.limits.solve_path(ib.programs.SVMGLN(2), X, Y, CONTEXTS, sizes=SIZES)
    for n, limit in zip(SIZES, path, strict=True):
        alone = ib.solve_gln_svm(X[:n], Y[:n], CONTEXTS[:n], n_contexts=2)
        # The first size begins without a guess, the others from the support vectors before.
        first = n == SIZES[0]
        assert (
            limit.iterations == alone.iterations if first else limit.iterations < alone.iterations
        )
        assert limit.require().certificate.gap <= 1e-8
        assert limit.objective == pytest.approx(alone.objective, rel=2e-8)
        assert limit.zeta.shape == alone.zeta.shape
        assert limit.dual.shape == (n,)
        gap = ib.certify(
            ib.programs.SVMGLN(2).program(X[:n], Y[:n], CONTEXTS[:n]),
            limit.zeta.reshape(6, 20),
            limit.dual,
        ).gap
        assert gap <= 1e-8


def test_a_path_goes_on_after_samples_that_no_network_separates() -> None:
    labels = Y.copy()
    labels[1550:] = -labels[1550:]  # of 120 coefficients
    path = ib.limits.solve_path(ib.programs.SVMGLN(2), X, labels, CONTEXTS, sizes=SIZES)
    assert [limit.status.name for limit in path] == ["SOLVED", "NOT_SEPARABLE", "NOT_SEPARABLE"]


def test_small_sizes_tensors_and_other_solvers_are_solved_one_by_one() -> None:
    inputs, labels = torch.as_tensor(X[:40]), torch.as_tensor(np.sign(X[:40, 0]))
    for solver in ("interior-point", "cvxpy:CLARABEL"):
        path = ib.limits.solve_path(
            ib.programs.HardMarginSVM(), inputs, labels, sizes=[20, 40], solver=solver, tol=1e-6
        )
        alone = ib.solve_linear_svm(X[:20], np.sign(X[:20, 0]))
        assert path[0].objective == pytest.approx(alone.objective, rel=1e-5)
        assert [len(limit.dual) for limit in path] == [20, 40]


@pytest.mark.parametrize("sizes", [[], [0, 10], [20, 20], [30, 20], [10, 1701]])
def test_sizes_that_do_not_rise_within_the_samples_are_refused(sizes) -> None:
    with pytest.raises(ValueError, match="`sizes` must rise from 1 to at most 1700"):
        ib.limits.solve_path(ib.programs.SVMGLN(2), X, Y, CONTEXTS, sizes=sizes)
