"""Bounds of the KKT ratio, beside the linearised margin problem in cvxpy."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch

import implicit_bias as ib

RNG = np.random.default_rng(2)
X, GATES = RNG.normal(size=(9, 4)), np.ones((9, 3))
Y = np.sign(X @ [1.0, -1.0, 0.5, 0.2])
GATES[:, 1:] = RNG.random((9, 2)) < 0.6
OF_LAYERS = {
    "linf": lambda u: cp.max(cp.abs(u)),
    "spectral": cp.sigma_max,
}


def network(noise: float) -> ib.FReLU:
    zeta = ib.solve_frelu_svm(X, Y, GATES).zeta
    zeta = zeta + noise * np.abs(zeta).max() * np.random.default_rng(1).uniform(-1, 1, zeta.shape)
    own = ib.FReLU.from_zeta(zeta)
    assert (Y * own(torch.tensor(X), torch.tensor(GATES)).detach().numpy()).min() > 0
    return own


def linearised(own: ib.FReLU, norm: str) -> float:
    """``min N(u)  s.t.  <grad m_n, u> >= 1 + (L - 1) m_n`` over N(w), at smallest margin 1."""
    scores = own(torch.tensor(X), torch.tensor(GATES))
    trained = [p for p in own.parameters() if p.requires_grad]
    least = float((torch.tensor(Y) * scores.detach()).min())
    shrunk = least**-0.5  # two layers: of degree 2, and their slopes of degree 1
    u = [cp.Variable(p.shape if p.ndim == 2 else (1, p.numel())) for p in trained]
    w = [shrunk * p.detach().numpy().reshape(v.shape) for p, v in zip(trained, u, strict=True)]
    rows: list[Any] = []
    for label, score in zip(Y, scores, strict=True):
        slopes = torch.autograd.grad(score, trained, retain_graph=True)
        along = sum(
            cp.sum(cp.multiply(label * shrunk * slope.numpy().reshape(v.shape), v))
            for slope, v in zip(slopes, u, strict=True)
        )
        rows.append(along >= 1 + label * float(score.detach()) / least)
    if norm == "l2":
        value = cp.norm(cp.hstack([cp.vec(v, order="F") for v in u]))
        size = np.sqrt(sum(np.sum(one**2) for one in w))
    else:
        value = cp.max(cp.hstack([OF_LAYERS[norm](v) for v in u]))
        size = max(float(OF_LAYERS[norm](cp.Constant(one)).value) for one in w)
    return float(cp.Problem(cp.Minimize(value), rows).solve(solver="CLARABEL")) / size


@pytest.mark.parametrize(
    ("norm", "noise"), [("l2", 0.05), ("l2", 0.15), ("linf", 0.15), ("spectral", 0.15)]
)
def test_the_ratio_of_the_linearised_problem_lies_between_its_bounds(norm, noise) -> None:
    own = network(noise)
    names = [name for name, p in own.named_parameters() if p.requires_grad]
    chosen = None if norm == "l2" else dict.fromkeys(names, norm)
    found = ib.kkt_distance(own, X, Y, GATES, norm=chosen)
    rho = linearised(own, norm)
    assert found.ratio_bound <= rho * (1 + 1e-6) and rho <= found.ratio * (1 + 1e-6)
    assert found.ratio_bound > 0.8 * rho
