"""Every trainer beside its own limit: the norm that it induces, and what proves how near it is."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import implicit_bias as ib
from implicit_bias import FReLU
from implicit_bias.limits import Norm
from implicit_bias.runs import INDUCED

Array = NDArray[np.float64]
RNG = np.random.default_rng(7)


@pytest.mark.parametrize(("form", "norms"), [(f, n) for f, of in INDUCED.items() for n in of])
def test_products_of_layer_norms_are_no_smaller_than_the_induced_norm(form, norms) -> None:
    """Of random weights; below what bounds alone the norm is smaller too."""
    induced = INDUCED[form][norms]
    if form in ("one layer", "columns"):
        return
    for _ in range(50):
        W, a = RNG.normal(size=(4, 6)), RNG.normal(size=4)
        zeta = a[:, None] * W if form == "gated layer" else (a @ W)[None]
        # The largest entry of a product of linear layers is at most the width times theirs.
        width = 4 if (form, norms) == ("linear layers", ("linf", "linf")) else 1
        width = 2 if (form, norms) == ("linear layers", ("spectral", "linf")) else width
        product = Norm.of(norms[0]).value(W) * Norm.of(norms[1]).value(a[None])
        assert Norm.of(induced.norm).value(zeta) <= width * product * (1 + 1e-12)


def test_the_dual_of_spectral_norms_on_both_layers_bounds_every_network() -> None:
    V, dual = RNG.normal(size=(4, 6)), Norm.of("muon").dual
    tight, best = dual.value(V), 0.0
    assert tight <= dual.above(V) <= (1 + 1e-10) * tight
    for _ in range(60):
        a, W = RNG.normal(size=4), RNG.normal(size=(4, 6))
        for _ in range(20):  # the best W for a, and the best a for W
            U, _, Vh = np.linalg.svd(a[:, None] * V, full_matrices=False)
            W = U @ Vh
            a = (W * V).sum(1)
            a /= np.linalg.norm(a)
        best = max(best, float((a[:, None] * W * V).sum()))
    assert 0.999 * tight < best <= tight * (1 + 1e-9)
    # Of one unit it is the l2 norm.
    assert dual.value(V[:1]) == pytest.approx(np.linalg.norm(V[0]))


def largest_entry_margin(X: Array, y: Array, gates: Array) -> float:
    """Largest margin of coefficients of entries at most 1 behind gates, by a linear program."""
    A = (y[:, None, None] * gates[:, :, None] * X[:, None, :]).reshape(len(y), -1)
    found = linprog(
        np.r_[np.zeros(A.shape[1]), -1.0],
        A_ub=np.column_stack([-A, np.ones(len(y))]),
        b_ub=np.zeros(len(y)),
        bounds=[(-1, 1)] * A.shape[1] + [(None, None)],
    )
    return float(-found.fun)


# Data G of eight units behind half-spaces, the first always open.
G = np.random.default_rng(0)
X = G.normal(size=(40, 8))
GATES = (X @ G.normal(size=(8, 6)) > 0).astype(float)
GATES[:, 0] = 1.0
Y = np.sign(G.normal(size=40))


@cache
def report(trainer: str = "sign", steps: int = 2500) -> Any:
    return ib.run(
        "frelu",
        X=X,
        y=Y,
        X_val=X[:9],
        y_val=Y[:9],
        gating=Given(),
        trainer=trainer,
        steps=steps,
        checkpoints=6,
    )


def norms_of_sign() -> dict[str, Any]:
    """What is recorded of the norm of sign descent, of its program and of its network."""
    record: dict[str, Any] = json.loads(report().to_json())["norms"]
    return record


class Given:
    """The gates of the data, and of held-out rows of them."""

    def fit(self, X: Any) -> Given:
        return self

    def transform(self, X: Any) -> Array:
        return GATES[: len(X)]


@pytest.mark.long
def test_every_trainer_is_nearest_to_its_own_limit() -> None:
    networks = json.loads(report("momentum,sign", 4000).to_json())["networks"]
    assert list(networks) == ["momentum", "sign"]
    for trainer, norm in zip(networks, ("rows", "linf"), strict=True):
        found = networks[trainer]["norms"]
        assert found["norm"] == norm
        assert 0.5 < found["certified_ratio"] <= found["margin_ratio"] + 1e-9 <= 1 + 1e-8
        for other, ratio in found["others"].items():
            assert ratio <= 1 + 1e-8
            if other != norm:
                assert ratio < found["margin_ratio"]


def test_the_optimum_of_sign_descent_is_that_of_a_linear_program() -> None:
    found = norms_of_sign()
    assert found["objective"] == pytest.approx(0.6377642, rel=1e-6)  # of the same data in print
    assert 1 / found["objective"] == pytest.approx(largest_entry_margin(X, Y, GATES), rel=1e-7)


def test_spectral_norms_on_both_layers_have_a_program_of_their_own() -> None:
    data = {"X": X, "y": Y, "X_val": X[:9], "y_val": Y[:9], "gating": Given()}
    short = ib.run("frelu", **data, trainer="spectral", steps=30)
    found = json.loads(short.to_json())["norms"]
    assert (found["norm"], found["exact"]) == ("muon", True)
    # Of the same data in print.
    assert found["lower_bound"] <= found["objective"] == pytest.approx(3.8431196, rel=1e-7)
    assert found["lower_bound"] == pytest.approx(found["objective"], rel=1e-7)


def test_certified_ratios_rise_with_training_and_never_pass_one() -> None:
    ratios = report().trajectory.observed["certified_ratio"]
    assert np.all(ratios <= 1 + 1e-9)
    assert ratios[-1] > max(ratios[0], 0.7)


def test_the_ratio_of_the_linearised_problem_is_high_in_the_own_norm_and_low_in_others() -> None:
    found = {}
    for norms in (("linf", "linf"), ("spectral", "linf")):
        layers = dict(zip(("w1", "upper.0"), norms, strict=True))
        one = ib.kkt_distance(report().network, X, Y, GATES, norm=layers)
        assert 0 < one.ratio_bound <= one.ratio <= 1
        found[norms] = one
    assert found["linf", "linf"].ratio_bound > 0.85
    # Proved from above: no multipliers make these weights as near a KKT point in other norms.
    assert found["spectral", "linf"].ratio < found["linf", "linf"].ratio_bound


def test_weights_of_the_solution_have_ratio_one() -> None:
    """The program's solution as weights, a = 1 and W = zeta, is a KKT point in largest entries."""
    A = (Y[:, None, None] * GATES[:, :, None] * X[:, None, :]).reshape(len(Y), -1)
    found = linprog(
        np.r_[np.zeros(A.shape[1]), -1.0],
        A_ub=np.column_stack([-A, np.ones(len(Y))]),
        b_ub=np.zeros(len(Y)),
        bounds=[(-1, 1)] * A.shape[1] + [(None, None)],
    )
    network = FReLU.from_weights(found.x[:-1].reshape(6, 8), np.ones(6))
    one = ib.kkt_distance(network, X, Y, GATES, norm={"w1": "linf", "upper.0": "linf"})
    assert one.ratio_bound > 0.97


@pytest.mark.parametrize(
    ("norm", "message"),
    [({"w1": "linf"}, "`norm` must have a norm for each"), ("linf", "`norm` must map")],
)
def test_norms_are_of_the_layers_that_there_are(norm, message) -> None:
    network = FReLU.from_weights(np.ones((6, 8)), np.ones(6))
    with pytest.raises((TypeError, ValueError), match=message):
        ib.kkt_distance(network, X, Y, GATES, norm=norm)


def test_an_interrupt_of_the_comparison_leaves_the_table_of_norms() -> None:
    def interrupt(stage: str, done: int, of: int) -> None:
        if stage == "comparing":
            raise KeyboardInterrupt

    data = {"X": X, "y": Y, "X_val": X[:9], "y_val": Y[:9], "gating": Given()}
    cut = ib.run("frelu", **data, trainer="sign", steps=20, progress=interrupt)
    record = json.loads(cut.to_json())
    assert cut.interrupted and "comparison" not in record
    assert record["norms"]["norm"] == "linf" and record["norms"]["objective"] > 0
    assert "each trainer at its own limit" in cut.details()


def test_loss_weights_bound_the_margin_of_any_coefficients() -> None:
    found = norms_of_sign()
    for _ in range(20):
        zeta = RNG.uniform(-1, 1, size=(6, 8))
        margins = Y * np.einsum("nh,hd,nd->n", GATES, zeta, X)
        assert margins.min() / np.abs(zeta).max() <= 1 / found["lower_bound"] * (1 + 1e-9)
