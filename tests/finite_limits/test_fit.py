"""Limits of weight decay: known optima, certificates, closed forms, and what training ends at."""

from __future__ import annotations

import time
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import sklearn.datasets
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog

import implicit_bias as ib
from implicit_bias.limits import Norm, solve_adamw, solve_fit, solve_fit_path
from implicit_bias.programs import WeightDecay

Floats = NDArray[np.float64]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 8))
GATES = (X @ RNG.normal(size=(8, 6)) > 0).astype(float)
GATES[:, 0] = 1
Y = np.sign(RNG.normal(size=40))
CONTEXTS = GATES[:, 1:4].astype(int)
CLASSES = np.random.default_rng(5)
INPUTS = CLASSES.normal(size=(24, 9))
SHARES = np.eye(3)[np.argmax(INPUTS @ CLASSES.normal(size=(3, 9)).T, axis=1)]


@pytest.mark.parametrize(
    ("loss", "penalty", "optimum"),
    [
        ("squared", 0.1, 0.322400940805), ("squared", 0.01, 0.0827900368059),
        ("squared", 0.001, 0.0163781415598), ("logistic", 0.1, 0.5938831734),
        ("logistic", 0.01, 0.2068336719), ("logistic", 0.001, 0.03670311259),
    ],
)  # fmt: skip
def test_group_lassos_have_the_known_optima(loss, penalty, optimum) -> None:
    limit = solve_fit(X, Y, GATES, loss=loss, penalty=penalty).require()
    assert limit.objective == pytest.approx(optimum, rel=2e-10) and limit.gap < 1e-9
    assert limit.is_unique and limit.norm == "units"
    # The conditions of optimality, unit by unit.
    V = np.einsum("n,nh,nd->hd", limit.dual, GATES, X)
    sizes = np.linalg.norm(V, axis=1)
    assert np.all(sizes <= penalty * (1 + 1e-7))
    np.testing.assert_allclose(sizes[limit.live], penalty, rtol=1e-6)
    directions = limit.zeta[limit.live] / limit.unit_norms[limit.live, None]
    np.testing.assert_allclose(directions, V[limit.live] / penalty, atol=2e-6)
    assert limit.live.sum() == (2 if (loss, penalty) == ("logistic", 0.1) else 6)


@pytest.mark.parametrize(
    ("data", "own", "optimum"),
    [
        ("plain", {"loss": "logistic", "radius": 1 / 5, "norm": "linf"}, 0.574130761),
        ("plain", {"loss": "logistic", "radius": 1 / 10, "norm": "linf"}, 0.621079075),
        ("plain", {"loss": "squared", "radius": 1 / 5, "norm": "linf"}, 0.3456477),
        ("plain", {"loss": "squared", "radius": 1 / 10, "norm": "linf"}, 0.383440058),
        ("gated", {"radius": 1 / 1.5**2, "norm": "linf"}, 0.25395314),
        ("gated", {"radius": 1 / 2.5**2, "norm": "linf"}, 0.44067013),
        ("gated", {"radius": 1 / 1.5**2, "norm": "spectral"}, 0.42272408),
        ("gated", {"radius": 1 / 2.5**2, "norm": "spectral"}, 0.57189770),
        ("classes", {"loss": "squared", "penalty": 0.1}, 0.34703786),
        ("classes", {"loss": "squared", "penalty": 0.03}, 0.27069063),
        ("classes", {"loss": "softmax", "radius": 2.0, "norm": "spectral"}, 0.25371479),
        ("classes", {"loss": "softmax", "radius": 0.5, "norm": "spectral"}, 0.72220966),
    ],
)
def test_balls_and_nuclear_penalties_have_the_known_optima(data, own, optimum) -> None:
    given = {"plain": (X, Y), "gated": (X, Y, GATES), "classes": (INPUTS, SHARES)}[data]
    limit = solve_fit(*given, **own).require()
    assert limit.objective == pytest.approx(optimum, rel=3e-8)
    if "radius" in own:
        assert limit.binds and limit.size <= own["radius"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("gates", "own"),
    [
        (None, {"loss": "logistic", "norm": "ridge", "penalty": 0.02}),
        (None, {"loss": "logistic", "norm": "l2", "penalty": 0.02}),
        (None, {"loss": "squared", "norm": "l1", "penalty": 0.05}),
        (None, {"loss": "squared", "norm": "l2", "radius": 0.2}),
        (None, {"loss": "logistic", "norm": "l1", "radius": 0.5}),
        (CONTEXTS, {"loss": "squared", "norm": "units", "penalty": 0.05, "n_contexts": 2}),
        (GATES, {"loss": "squared", "norm": "nuclear", "penalty": 0.05}),
        (GATES, {"loss": "logistic", "norm": "units", "radius": 0.5}),
        (GATES, {"loss": "squared", "norm": "units"}),
        (GATES, {"loss": "squared", "norm": "l1"}),
    ],
)
def test_optima_are_those_of_the_program_in_cvxpy(gates, own) -> None:
    limit = solve_fit(X, Y, gates, **own).require()
    problem = WeightDecay(**own).literal(X, Y, gates)
    assert problem.solve(solver="CLARABEL") == pytest.approx(limit.objective, rel=2e-6)
    again = limit.certify(X, Y, gates)
    assert again.status is ib.Status.SOLVED and again.gap == pytest.approx(limit.gap, abs=1e-12)


OPENED = (INPUTS[:, :2] > 0).astype(int)


@pytest.mark.parametrize("n_contexts", [None, 2])
@pytest.mark.parametrize(
    "own", [{"norm": "sum-nuclear", "penalty": 0.02}, {"norm": "max-spectral", "radius": 0.4}]
)
def test_several_scores_behind_gates_have_the_optimum_of_a_matrix_a_unit(n_contexts, own) -> None:
    limit = solve_fit(
        INPUTS, SHARES, OPENED, loss="softmax", n_contexts=n_contexts, tol=1e-6, **own
    ).require()
    behind = np.eye(2)[OPENED] if n_contexts else OPENED[:, :, None]
    features = (behind[:, :, :, None] * INPUTS[:, None, None, :]).reshape(24, 2, -1)
    Z = [cp.Variable((3, features.shape[2])) for _ in range(2)]
    scores = sum(features[:, h] @ Z[h].T for h in range(2))
    loss = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(SHARES, scores))
    if "penalty" in own:
        program = cp.Problem(cp.Minimize(loss / 24 + 0.02 * sum(map(cp.normNuc, Z))))
    else:
        program = cp.Problem(cp.Minimize(loss / 24), [cp.sigma_max(one) <= 0.4 for one in Z])
    assert limit.objective == pytest.approx(program.solve(solver="CLARABEL"), rel=2e-6)
    assert limit.zeta.shape == ((2, 3, 2, 9) if n_contexts else (2, 3, 9))
    np.testing.assert_allclose(limit.predictor(INPUTS, OPENED), limit.scores, atol=1e-10)
    values = np.linalg.svd(limit.zeta.reshape(2, 3, -1), compute_uv=False)
    assert limit.size == pytest.approx(values.sum() if "penalty" in own else values.max())
    assert limit.gap_of(limit.zeta, INPUTS, SHARES, OPENED) == pytest.approx(limit.gap, abs=1e-9)
    assert limit.certify(INPUTS, SHARES, OPENED).status is ib.Status.SOLVED


def test_several_scores_in_cvxpy() -> None:
    for own in (
        {"loss": "softmax", "norm": "nuclear", "penalty": 0.02},
        {"loss": "softmax", "norm": "spectral", "radius": 1.0},
    ):
        problem = WeightDecay(**own).literal(INPUTS, SHARES)
        problem.solve(solver="CLARABEL")
        limit = solve_fit(INPUTS, SHARES, **own).require()
        assert problem.value == pytest.approx(limit.objective, rel=1e-5)


REGULARISED: list[dict[str, Any]] = [
    {"penalty": 0.1}, {"penalty": 0.1, "norm": "ridge"}, {"penalty": 0.1, "norm": "l1"},
    {"penalty": 0.1, "norm": "nuclear"}, {"radius": 0.7, "norm": "linf"},
    {"radius": 0.7, "norm": "spectral"}, {"radius": 0.7, "norm": "l2"},
    {"radius": 0.7, "norm": "units"},
]  # fmt: skip


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("own", REGULARISED)
def test_a_gap_of_any_coefficients_bounds_their_distance_from_the_optimum(loss, own) -> None:
    limit = solve_fit(X, Y, GATES, loss=loss, **own).require()
    rng = np.random.default_rng(1)
    scale = limit.mean_loss_at_zero if "radius" in own else None
    for size in (0.0, 1e-3, 0.1, 1.0, 30.0):
        B = limit.zeta + size * rng.normal(size=(6, 8))
        bounds = limit.bounds_of(B, X, Y, GATES)
        above = (bounds.objective - limit.certificate.dual_objective) / (scale or bounds.objective)
        assert bounds.dual_objective <= limit.objective + 1e-12
        assert above - 1e-12 <= bounds.gap and limit.gap_of(B, X, Y, GATES) == bounds.gap
        assert size < 0.1 or bounds.gap > 1e-3
    assert limit.gap_of(limit.zeta, X, Y, GATES) < 1e-6


def test_a_point_that_meets_the_conditions_by_construction_has_gap_0() -> None:
    """Multipliers are drawn, lengths of live units chosen, and targets follow."""
    rng = np.random.default_rng(2)
    r = rng.normal(size=40) / 40
    V = np.einsum("n,nh,nd->hd", r, GATES, X)
    penalty = float(np.median(np.linalg.norm(V, axis=1)))
    V_live = np.linalg.norm(V, axis=1, keepdims=True)
    r = r * penalty / V_live[3]
    V = V * penalty / V_live[3]
    inside = np.linalg.norm(V, axis=1) <= penalty * (1 + 1e-12)
    gates = GATES[:, inside]
    zeta = np.zeros((inside.sum(), 8))
    own = int(np.flatnonzero(np.flatnonzero(inside) == 3)[0])
    zeta[own] = 0.7 * V[3]
    y = np.einsum("nh,nd,hd->n", gates, X, zeta) + 40 * r
    limit = solve_fit(X, y, gates, loss="squared", penalty=penalty).require()
    np.testing.assert_allclose(limit.zeta, zeta, atol=1e-4)  # as the root of the gap
    assert limit.gap_of(zeta, X, y, gates) < 1e-14
    assert limit.live.tolist() == (np.arange(len(zeta)) == own).tolist()


def test_one_unit_is_a_ridge_whose_weight_solves_one_equation() -> None:
    penalty = 0.05

    def excess(log_lam: float) -> float:  # lam ||w|| = penalty
        lam = np.exp(log_lam)
        w = np.linalg.solve(X.T @ X / 40 + lam * np.eye(8), X.T @ Y / 40)
        return float(lam * np.linalg.norm(w) - penalty)

    lam = np.exp(brentq(excess, -15, 5, xtol=1e-13))
    w = np.linalg.solve(X.T @ X / 40 + lam * np.eye(8), X.T @ Y / 40)
    limit = solve_fit(X, Y, loss="squared", penalty=penalty, tol=1e-11).require()
    np.testing.assert_allclose(limit.zeta, w, atol=1e-7)
    ridge = solve_fit(X, Y, loss="squared", penalty=lam, norm="ridge").require()
    np.testing.assert_allclose(ridge.zeta, w, atol=1e-12)
    ball = solve_fit(X, Y, loss="squared", radius=np.linalg.norm(w), norm="l2").require()
    np.testing.assert_allclose(ball.zeta, w, atol=1e-9)


def test_units_die_at_once_from_the_critical_penalty_on() -> None:
    critical = np.linalg.norm(np.einsum("n,nh,nd->hd", Y / 80, GATES, X), axis=1).max()
    dead = solve_fit(X, Y, GATES, penalty=critical * (1 + 1e-9)).require()
    assert not dead.zeta.any() and dead.gap < 1e-15
    assert dead.objective == pytest.approx(np.log(2), rel=1e-15)
    alive = solve_fit(X, Y, GATES, penalty=critical * 0.99).require()
    assert alive.live.sum() == 1


def test_penalties_to_0_come_to_interpolation_and_to_the_margin() -> None:
    exact = solve_fit(X, Y, GATES, loss="squared").require()
    np.testing.assert_allclose(exact.scores, Y, atol=1e-7)
    small = solve_fit(X, Y, GATES, loss="squared", penalty=1e-7).require()
    assert small.objective / 1e-7 == pytest.approx(exact.objective, rel=1e-4)
    margin = ib.solve_frelu_svm(X, Y, GATES)
    ratios = []
    for penalty in (1e-3, 1e-6, 1e-9):
        limit = solve_fit(X, Y, GATES, penalty=penalty).require()
        smallest = (Y * limit.scores).min() / limit.unit_norms.sum()
        ratios.append(smallest * margin.objective)
    assert ratios == sorted(ratios) and 0.9 < ratios[-1] < 1
    # Like 1 - c / log(1 / penalty).
    slowness = [(1 - r) * np.log(1 / p) for r, p in zip(ratios, (1e-3, 1e-6, 1e-9), strict=True)]
    assert max(slowness) < 2 * min(slowness)


def test_least_norm_interpolants() -> None:
    A = (GATES[:, :, None] * X[:, None, :]).reshape(40, -1)
    l2 = solve_fit(X, Y, GATES, loss="squared", norm="l2").require()
    np.testing.assert_allclose(l2.zeta.reshape(-1), np.linalg.lstsq(A, Y, rcond=None)[0], atol=1e-6)
    l1 = solve_fit(X, Y, GATES, loss="squared", norm="l1").require()
    least = linprog(np.ones(96), A_eq=np.hstack([A, -A]), b_eq=Y).fun
    assert l1.objective == pytest.approx(least, rel=1e-7)
    limit = solve_fit(X, Y, loss="squared")
    assert limit.status is ib.Status.NOT_INTERPOLABLE and limit.proof is not None
    np.testing.assert_allclose(limit.proof @ X, 0, atol=1e-12)
    assert limit.proof @ Y > 0.1
    with pytest.raises(ib.NotCertified, match="NOT_INTERPOLABLE"):
        limit.require()


def test_a_ball_that_does_not_bind_says_so() -> None:
    least = np.abs(np.linalg.lstsq(X, Y, rcond=None)[0]).max()
    for factor, binds in ((1 - 1e-3, True), (1.5, False)):
        limit = solve_fit(X, Y, loss="squared", radius=factor * least, norm="linf").require()
        assert limit.binds is binds
    for norm in ("linf", "l2", "spectral"):
        wide = solve_fit(X, Y, GATES, loss="squared", radius=1e3, norm=norm)
        assert not wide.binds and wide.mean_loss < 1e-6


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("eps", [0.1, 1e-2, 1e-4, 1e-8])
def test_adamw_has_a_barrier_whose_fixed_points_are_its_own(loss, eps) -> None:
    limit = solve_adamw(X, Y, loss=loss, weight_decay=5.0, eps=eps).require()
    g = -limit.dual @ X
    np.testing.assert_allclose(5 * limit.zeta, -g / (np.abs(g) + eps), atol=1e-6)
    assert np.abs(limit.zeta).max() < 1 / 5
    u = 5 * np.abs(limit.zeta)
    walls = eps / 5 * np.sum(-u - np.log1p(-u))
    assert limit.objective == pytest.approx(limit.mean_loss + walls, rel=1e-12)
    box = solve_fit(X, Y, loss=loss, radius=1 / 5, norm="linf").require()
    assert limit.mean_loss > box.objective
    assert limit.objective - box.objective < 30 * eps
    largest = {"logistic": 0.94506031, "squared": 0.958942}[loss]
    if eps == 1e-2:
        assert np.abs(limit.zeta).max() * 5 == pytest.approx(largest, abs=2e-6)


@pytest.mark.parametrize("betas", [(0.9, 0.98), (0.0, 0.5)])
def test_torch_adamw_ends_there_whatever_its_betas(betas) -> None:
    import torch

    w = torch.nn.Parameter(torch.zeros(8).double())
    optimiser = torch.optim.AdamW([w], lr=3e-3, betas=betas, eps=0.05, weight_decay=5.0)
    inputs, y = torch.tensor(X), torch.tensor(Y)
    for _ in range(1500):
        optimiser.zero_grad()
        torch.nn.functional.softplus(-y * (inputs @ w)).mean().backward()
        optimiser.step()
    limit = solve_adamw(X, Y, weight_decay=5.0, eps=0.05).require()
    np.testing.assert_allclose(w.detach().numpy(), limit.zeta, atol=1e-6)


def test_a_path_is_that_of_single_solves_and_takes_fewer_steps() -> None:
    penalties = [0.1, 0.05, 0.02, 0.01]
    path = solve_fit_path(X, Y, GATES, penalties=penalties)
    single = [solve_fit(X, Y, GATES, penalty=penalty) for penalty in penalties]
    for one, other in zip(path, single, strict=True):
        assert one.require().objective == pytest.approx(other.objective, rel=1e-9)
        np.testing.assert_allclose(one.zeta, other.zeta, atol=1e-6)


def test_predictors_give_the_scores_of_the_samples() -> None:
    cases: list[tuple[Any, ...]] = [
        (X, Y, None, {}), (X, Y, GATES, {}), (X, Y, CONTEXTS, {"n_contexts": 2}),
        (INPUTS, SHARES, None, {"loss": "softmax"}),
        (INPUTS, SHARES, np.ones((24, 2)), {"loss": "softmax", "norm": "units"}),
    ]  # fmt: skip
    for inputs, y, gates, own in cases:
        limit = solve_fit(inputs, y, gates, penalty=0.02, **own).require()
        np.testing.assert_allclose(limit.predictor(inputs, gates), limit.scores, atol=1e-12)
        assert len(limit.predictor.predict(inputs, gates)) == len(inputs)


def test_digits_take_a_fraction_of_a_second_at_every_penalty() -> None:
    inputs, y, gates = digits()
    for loss in ("logistic", "squared"):
        for penalty in (1e-2, 1e-6):
            begun = time.process_time()
            limit = solve_fit(inputs, y, gates, loss=loss, penalty=penalty, tol=1e-9).require()
            assert limit.gap <= 1e-9 and time.process_time() - begun < 2


def digits() -> tuple[Floats, Floats, Floats]:
    """500 digits, odd against even, and 20 gates."""
    inputs, labels = sklearn.datasets.load_digits(return_X_y=True)
    inputs = np.hstack([inputs[:500] / 16, np.ones((500, 1))])
    columns = inputs @ np.random.default_rng(0).normal(size=(65, 20)) > 0
    columns[:, 0] = True
    return inputs, np.where(labels[:500] % 2 == 1, 1.0, -1.0), columns.astype(float)


def test_equal_units_share_a_limit_that_is_not_unique() -> None:
    limit = solve_fit(X, Y, GATES[:, [0, 0, 1]], penalty=0.05).require()
    assert not limit.is_unique
    alone = solve_fit(X, Y, GATES[:, :2], penalty=0.05).require()
    assert alone.objective == pytest.approx(limit.objective, rel=1e-8) and alone.is_unique


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"penalty": 0.1, "radius": 1.0}, "`penalty` and `radius` are two forms"),
        ({"penalty": 0.0}, "`penalty`"),
        ({"radius": -1.0}, "`radius`"),
        ({}, "`loss` 'logistic' has no interpolant"),
        ({"penalty": 0.1, "norm": "huber"}, "`norm`"),
        ({"penalty": 0.1, "norm": "spectral"}, "`norm` 'spectral' is one of matrices"),
        ({"norm": "ridge", "radius": 1.0}, "needs `penalty`"),
        ({"penalty": 0.1, "loss": "hinge"}, "`loss`"),
        ({"penalty": 0.1, "loss": "softmax"}, r"`y` must have shape \(40, K\)"),
        ({"penalty": 0.1, "n_contexts": 2}, "`n_contexts` are those of `gates`"),
        ({"penalty": 0.1, "gates": np.ones((3, 2))}, r"`gates` must have shape \(40, H\)"),
    ],
)
def test_bad_arguments_are_named(own, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        solve_fit(X, Y, **own)


def test_norms_of_the_library_and_their_names_are_one_thing() -> None:
    for name in ("units", "l1", "linf"):
        own = {"radius": 0.4} if name == "linf" else {"penalty": 0.05}
        one, other = (solve_fit(X, Y, GATES, norm=n, **own) for n in (name, Norm.of(name)))
        np.testing.assert_array_equal(one.zeta, other.zeta)


def test_cvxpy_stops_where_the_rows_do_not() -> None:
    """Its exponential cones lose digits that its own report does not miss."""
    problem = WeightDecay("logistic", "units", penalty=1e-3).literal(X, Y, GATES)
    problem.solve(solver="CLARABEL")
    limit = solve_fit(X, Y, GATES, penalty=1e-3).require()
    found = limit.bounds_of(problem.var_dict["zeta"].value, X, Y, GATES)
    assert isinstance(problem.objective, cp.Minimize) and limit.gap < found.gap


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_solved_at_every_penalty(seed) -> None:
    """Noisy labels and small penalties too, where multipliers of samples stay far from 0."""
    rng = np.random.default_rng(seed)
    n, D, H = (int(rng.integers(low, high)) for low, high in ((20, 300), (1, 12), (1, 8)))
    inputs = rng.normal(size=(n, D)) * 10 ** rng.uniform(-1, 1, size=D)
    gates = (rng.normal(size=(n, H)) > 0).astype(float)
    gates[:, 0] = 1
    targets = inputs[:, 0] + rng.choice([0, 0.5, 3]) * rng.normal(size=n)
    for loss, y in (("logistic", np.sign(targets)), ("squared", targets)):
        for penalty in 10 ** rng.uniform(-7, -0.5, size=2):
            limit = solve_fit(inputs, y, gates, loss=loss, penalty=penalty).require()
            assert limit.gap_of(limit.zeta, inputs, y, gates) < 1e-5


@pytest.mark.parametrize(
    ("loss", "norm"), [("logistic", "units"), ("logistic", "ridge"), ("squared", "units")]
)
def test_weights_of_samples_are_those_of_repeated_samples(loss, norm) -> None:
    counts = np.arange(len(X)) % 3 + 1
    asked = {"loss": loss, "norm": norm, "penalty": 0.02, "tol": 1e-10}
    weighted = solve_fit(X, Y, GATES, sample_weight=2.5 * counts, **asked).require()
    each = (np.repeat(one, counts, axis=0) for one in (X, Y, GATES))
    repeated = solve_fit(*each, **asked).require()
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)
    np.testing.assert_allclose(weighted.zeta, repeated.zeta, atol=1e-4)
    assert weighted.certify(X, Y, GATES).status.name == "SOLVED"
    assert weighted.gap_of(weighted.zeta, X, Y, GATES) < 1e-6
    plain = solve_fit(X, Y, GATES, **asked)
    assert plain.gap_of(weighted.zeta, X, Y, GATES) > 1e-3  # weights move a finite limit
    with pytest.raises(ValueError, match="`sample_weight` must be positive"):
        solve_fit(X, Y, GATES, sample_weight=counts - 1, **asked)


def test_steps_of_proximal_gradients_grow_where_the_loss_hardly_bends() -> None:
    # Open samples end far on the right side of 0, closed ones at log 2 whatever the weight is.
    inputs, gates = 100 * np.array([[1.0], [-1.0], [2.0], [0.5]]), np.array([[1], [1], [0], [0]])
    limit = solve_fit(inputs, [1.0, -1.0, 1.0, -1.0], gates, radius=1.0, norm="l1").require()
    assert limit.objective == pytest.approx(np.log(2) / 2, rel=1e-8)
    assert limit.solver == "proximal gradient" and limit.iterations < 2000
    # Three classes that a matrix of nuclear norm 30 separates, with a loss of 3e-4. Steps of one
    # size take 9,500; how many fewer are taken, 1,800 to 3,000, the processor's rounding decides.
    ball = solve_fit(INPUTS, SHARES, norm="nuclear", loss="softmax", radius=30.0, tol=4e-6)
    assert ball.iterations < 4500 and ball.size == pytest.approx(30, rel=1e-6)
