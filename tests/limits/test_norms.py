"""Limits in the norms of other optimisers than gradient descent: networks of fixed gates."""

from __future__ import annotations

import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.limits import Norm

# Least norms of the coefficients of six units on 40 samples, by Clarabel.
OPTIMA = {"linf": 0.6377642, "spectral": 1.6340048, "rows": 7.0591560, "muon": 3.8431196}
every_norm = pytest.mark.parametrize("norm", [*OPTIMA, "l2", "l1"])


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    gates = (X @ rng.normal(size=(8, 6)) > 0).astype(float)
    gates[:, 0] = 1
    return X, np.sign(rng.normal(size=40)), gates


def test_a_point_that_reaches_the_wall_in_rounding_ends_the_solve_and_its_proof_stands() -> None:
    # Inputs of 0 leave no score but 0.
    X = np.array([[0.0], [0.0], [-1.0], [1.0], [1.0], [2.0], [2.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    gates = np.array([[1], [0], [0], [0], [0], [1], [1]])
    limit = ib.solve_frelu_svm(X, y, gates, norm="l1")
    assert limit.status is ib.Status.NOT_SEPARABLE and limit.certificate.separation_bound == 0


@every_norm
def test_gated_networks_have_the_least_norm_of_their_optimiser(norm, tmp_path) -> None:
    X, y, gates = data()
    frelu = ib.solve_frelu_svm(X, y, gates, norm=norm).require()
    if norm in OPTIMA:
        assert frelu.objective == pytest.approx(OPTIMA[norm], rel=1e-7)
    gln = ib.solve_gln_svm(X, y, gates.astype(int), norm=norm).require()
    # A gated unit is one with two contexts, of which one has no weights.
    assert gln.objective < frelu.objective
    for limit, given, program in (
        (frelu, gates, ib.programs.SVMFReLU(norm)),
        (gln, gates.astype(int), ib.programs.SVMGLN(norm=norm)),
    ):
        rows = limit.zeta.reshape(6, -1)
        assert limit.norm == norm
        assert Norm.of(norm).value(rows) == pytest.approx(limit.objective)
        assert y * limit.predictor(X, given) == pytest.approx(limit.margins)
        assert limit.margins.min() == pytest.approx(1)
        assert limit.certify(X, y, given).status is ib.Status.SOLVED
        assert limit.certify(X, -y, given).status is not ib.Status.SOLVED
        value = program.literal(X, y, given).solve(solver="CLARABEL")
        assert value == pytest.approx(limit.objective, rel=2e-6)
        limit.save(tmp_path / "limit")
        again = type(limit).load(tmp_path / "limit")
        assert again.norm == norm and (again.zeta == limit.zeta).all()


@pytest.mark.parametrize("norm", ["linf", "spectral", "l2"])
def test_the_induced_norm_is_the_least_product_of_the_norms_of_both_layers(norm) -> None:
    X, y, gates = data()
    limit = ib.solve_frelu_svm(X, y, gates, norm=norm).require()

    def value(W: np.ndarray, a: np.ndarray) -> float:
        margin = (y * ((X @ W.T) * gates * a).sum(axis=1)).min()
        return Norm.of(norm).value(W) * np.abs(a).max() / margin if margin > 0 else np.inf

    # The solution as weights attains the optimum, and no other weights have less.
    assert value(*limit.balanced_weights()) == pytest.approx(limit.objective)
    rng = np.random.default_rng(1)
    for _ in range(300):
        a = np.exp(rng.normal(size=6)) * rng.choice([-1, 1], 6)
        W = limit.zeta / a[:, None] + 0.2 * rng.normal(size=limit.zeta.shape)
        assert value(W, a) > limit.objective


def test_muon_on_both_layers_has_the_least_product_of_spectral_norms() -> None:
    torch = pytest.importorskip("torch")
    X, y, gates = data()
    limit = ib.solve_frelu_svm(X, y, gates, norm="muon").require()

    def value(W: np.ndarray, a: np.ndarray) -> float:
        margin = (y * ((X @ W.T) * gates * a).sum(axis=1)).min()
        return np.linalg.norm(W, 2) * np.linalg.norm(a) / margin if margin > 0 else np.inf

    W, a = limit.balanced_weights()
    assert value(W, a) == pytest.approx(limit.objective)
    assert np.linalg.norm(W, 2) == pytest.approx(np.linalg.norm(a))
    rng = np.random.default_rng(1)
    for _ in range(300):
        b = a * np.exp(0.3 * rng.normal(size=6))
        assert value(limit.zeta / b[:, None] + 0.05 * rng.normal(size=W.shape), b) > limit.objective
    # Layers are no stronger than one: between the spectral norm and the sum over units.
    assert OPTIMA["spectral"] < limit.objective < OPTIMA["rows"]
    with pytest.raises(ValueError, match="`norm` 'muon' is one of coefficients"):
        ib.optim.SteepestDescent(torch.nn.Linear(8, 1).parameters(), norm="muon", n_samples=40)


@pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
def test_a_linear_predictor_has_the_margin_of_its_norm(norm) -> None:
    X, _, _ = data()
    y = np.sign(X[:, 0] + 0.1 * X[:, 1])
    limit = ib.solve_linear_svm(X, y, norm=norm).require()
    order = {"l2": 2, "linf": np.inf, "l1": 1}[norm]
    assert limit.objective == pytest.approx(np.linalg.norm(limit.zeta, order))
    dual = np.linalg.norm((limit.dual * y) @ X, {2: 2, np.inf: 1, 1: np.inf}[order])
    assert limit.dual.sum() / dual == pytest.approx(limit.objective, rel=1e-7)
    value = ib.programs.HardMarginSVM(norm).literal(X, y).solve(solver="CLARABEL")
    assert value == pytest.approx(limit.objective, rel=1e-6)
    if norm == "l1":
        features = ib.limits.solve_l1_svm(X, y).require()
        assert features.objective == pytest.approx(limit.objective, rel=1e-7)


def test_contradictory_samples_are_proved_inseparable_in_every_norm() -> None:
    X, y, gates = data()
    X, gates, y = X[[0, 0]], gates[[0, 0]], np.array([1.0, -1.0])
    for norm in ("linf", "spectral", "l2"):
        limit = ib.solve_frelu_svm(X, y, gates, norm=norm)
        assert limit.status is ib.Status.NOT_SEPARABLE
        assert limit.certificate.separation_bound <= 2.0**-52


def test_inputs_may_be_tensors_and_sparse() -> None:
    torch = pytest.importorskip("torch")
    sparse = pytest.importorskip("scipy.sparse")
    X, _, _ = data()
    y = np.sign(X[:, 0])
    plain = ib.solve_linear_svm(X, y, norm="linf").require()
    for given in (torch.as_tensor(X), sparse.csr_array(X)):
        limit = ib.solve_linear_svm(given, y, norm="linf").require()
        assert limit.objective == pytest.approx(plain.objective, rel=1e-8)


def test_what_takes_one_norm_alone_says_so() -> None:
    X, y, gates = data()
    with pytest.raises(ValueError, match="`formulation` must have its own norm"):
        ib.limits.solve_path(ib.programs.SVMFReLU("linf"), X, y, gates, sizes=[3])
    with pytest.raises(ValueError, match="`norm` must be one of"):
        ib.solve_frelu_svm(X, y, gates, norm="l3")  # type: ignore[arg-type]
