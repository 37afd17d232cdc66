"""Degrees of the terms of scores that are sums of powers of a linear function."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from implicit_bias.networks.recognition import measure_homogeneity, take_subject
from tests.own_modules import drawn

X = np.random.default_rng(0).normal(size=(30, 3))


class Sum(nn.Module):
    """``sum_k c_k <w, x>^k``, of a product cut off at `most`."""

    def __init__(self, terms: dict[int, float], most: float = math.inf) -> None:
        super().__init__()
        self.terms, self.most, self.w = terms, most, drawn(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores (n,)."""
        z = (x @ self.w).clamp(-self.most, self.most)
        return sum((c * z**k for k, c in self.terms.items()), torch.zeros(len(x)))


@pytest.mark.parametrize(
    "powers", [(0, 1), (0, 3), (1, 2), (1, 2, 4), (2, 5), (9, 10), (0, 1, 2, 3, 4)]
)
def test_the_degrees_of_all_terms_are_named_and_no_others(powers) -> None:
    network = Sum({k: 1 + 0.5 * k for k in powers})
    found = measure_homogeneity(take_subject(network, X, np.sign(X[:, 0]), None))
    assert found.degree is None and found.powers == powers


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_one_power_is_a_degree_and_no_sum(degree) -> None:
    subject = take_subject(Sum({degree: 2.0}), X, np.sign(X[:, 0]), None)
    found = measure_homogeneity(subject)
    assert found.degree == degree and found.powers == ()


def test_a_sum_that_is_cut_off_far_away_has_no_degrees() -> None:
    network = Sum({1: 1.0, 3: 2.0}, most=20.0)
    found = measure_homogeneity(take_subject(network, X, np.sign(X[:, 0]), None))
    assert found.degree is None and found.powers == ()
