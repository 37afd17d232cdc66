"""Bounds of the KKT ratio, beside the linearised margin problem in cvxpy."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch

import implicit_bias as ib

LayerNorms, ratio_of_fit, steepest_bracket = (
    resolve_name(f"implicit_bias.measures.kkt_ratio:{name}")
    for name in ("LayerNorms", "ratio_of_fit", "steepest_bracket")
)

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


def test_one_fit_brackets_the_ratio_by_its_own_arithmetic() -> None:
    w, fit = torch.tensor([3.0, 4.0]).double(), torch.tensor([0.0, 2.0]).double()
    slope, lam = torch.tensor([1.0, 0.5]).double(), torch.tensor([0.5, 0.25]).double()
    wanted = torch.tensor([1.0, 2.0]).double()
    found = ratio_of_fit(w, fit, 4 * slope, lam, wanted)
    assert (found.above, found.below) == (2 / 1 / 5, 1 / 2 / 5)
    assert ratio_of_fit(w, fit, slope, lam, wanted).above == 1.0  # no more than at w itself
    assert ratio_of_fit(w, fit, -slope, lam, wanted).above == 1.0
    assert ratio_of_fit(w, fit, 0 * slope, lam, wanted).above == 1.0
    short = ratio_of_fit(w, 0.25 * fit, slope, lam, wanted)
    assert (short.above, short.below) == (0.5 / 0.25 / 5, 1 / 0.5 / 5)
    nothing = ratio_of_fit(w, 0 * fit, slope, lam, wanted)
    assert (nothing.above, nothing.below) == (1.0, 0.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("norm", ["l2", "linf", "spectral"])
def test_brackets_carry_what_proves_them(norm, scale, monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.measures.kkt_ratio.STEPS", 100)
    rng = np.random.default_rng(3)
    G, wanted = scale * rng.normal(size=(4, 6)), np.array([1.0, 1.5, 1.2, 2.0])
    w = np.linalg.lstsq(G, wanted + np.array([0.0, 0.3, 1.0, 0.5]), rcond=None)[0]
    weights = torch.tensor(w).reshape(2, 3)
    norms = LayerNorms.named({"w": weights}, {"w": norm})
    slopes, asked = torch.tensor(G), torch.tensor(wanted)
    excess = slopes @ torch.tensor(w) - asked
    found = steepest_bracket(
        torch.tensor(w), excess, asked, lambda lam: lam @ slopes, lambda u: slopes @ u, norms
    )
    value = {"l2": lambda u: cp.norm(u, "fro"), **OF_LAYERS}[norm]
    u = cp.Variable((2, 3))
    rows = G @ cp.vec(u, order="C") >= wanted
    exact = cp.Problem(cp.Minimize(value(u)), [rows]).solve(solver="CLARABEL")
    size = float(value(cp.Constant(w.reshape(2, 3))).value)
    ratio = exact / size
    assert found.ratio.below <= ratio * (1 + 1e-7) and ratio <= found.ratio.above * (1 + 1e-7)
    assert found.ratio.below > 0.95 * ratio and found.ratio.above < 1.05 * ratio
    lam, v = found.lam.numpy(), found.v.numpy()
    dual = {
        "l2": np.linalg.norm, "linf": lambda V: np.abs(V).sum(),
        "spectral": lambda V: np.linalg.norm(V, "nuc"),
    }[norm]  # fmt: skip
    proved = lam @ wanted / dual((lam @ G).reshape(2, 3)) / size
    assert lam.min() >= 0 and found.ratio.below == pytest.approx(proved, rel=1e-12)
    assert np.all(G @ v >= wanted * (1 - 1e-12))
    above = float(value(cp.Constant(v.reshape(2, 3))).value) / size
    assert found.ratio.above == pytest.approx(above, rel=1e-12)


def test_layers_have_a_norm_each_and_a_metric_each() -> None:
    weights = {"a": torch.ones(2, 3).double(), "b": torch.ones(1, 4).double()}
    norms = LayerNorms.named(weights, {"a": "l2", "b": "l2"})
    rng = np.random.default_rng(5)
    v, gradients = torch.tensor(rng.normal(size=10)), torch.tensor(rng.normal(size=(3, 10)))
    over_metric = resolve_name("implicit_bias.training.steppers.steepest_steps:over_metric")
    parts = [
        over_metric(
            norms._norms[k], v[at].reshape(shape), 1e-9, gradients[:, at].reshape(3, *shape)
        )
        for k, (at, shape) in enumerate([(slice(6), (2, 3)), (slice(6, 10), (1, 4))])
    ]
    found = norms.over_metric(v, 1e-9, gradients)
    torch.testing.assert_close(found, torch.cat([part.flatten(1) for part in parts], dim=1))
    assert found.shape == (3, 10) and norms.has_metric
    for given, said in (({}, "got none"), ({"a": "l2"}, "got a")):
        with pytest.raises(ValueError, match=rf"trained weights a, b, {said}"):
            LayerNorms.named(weights, given)


def test_steps_that_leave_what_is_feasible_prove_nothing(monkeypatch) -> None:
    for name, value in (("STEPS", 1), ("CHANGE", -1e3)):  # one step, far backwards
        monkeypatch.setattr(f"implicit_bias.measures.kkt_ratio.{name}", value)
    w, one = torch.tensor([1.0, 2.0]).double(), torch.ones(2).double()
    norms = LayerNorms.named({"w": w}, {"w": "l2"})
    found = steepest_bracket(w, w - one, one, lambda lam: lam, lambda u: u, norms)
    assert found.ratio.above == 1.0 and torch.equal(found.v, w)
