"""Verdicts and certificates that once were wrong, with their truth by own arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import implicit_bias as ib
from implicit_bias import Sample
from implicit_bias.limits.relu import ReLUProblem
from implicit_bias.runs.reports import Evidence, decide

compare_with_relu_limit = resolve_name(
    "implicit_bias.models.relu.limit_comparison:compare_with_relu_limit"
)
compare_decayed = resolve_name("implicit_bias.runs.decay.decay_comparison:compare_decayed")
relu_evidence = resolve_name("implicit_bias.models.relu.local_limit:_evidence")
decayed_near = resolve_name("implicit_bias.runs.decay.decayed:_near")
DECOUPLED = {"n_train": 30, "n_val": 60, "seed": 1, "decoupled": True, "trainer": "adam"}


def mean_loss(margins: np.ndarray) -> float:
    """The mean logistic loss in 40 digits' worth of terms: none is a difference."""
    return math.fsum(math.log1p(math.exp(-m)) for m in margins) / len(margins)


def own_bound(X: np.ndarray, y: np.ndarray, scores: np.ndarray, radius: float) -> float:
    """A lower bound of all losses in the box, by convexity: the tangent at these scores."""
    slopes = -y / (1 + np.exp(y * scores)) / len(y)
    return mean_loss(y * scores) - float(slopes @ scores) - radius * np.abs(X.T @ slopes).sum()


def digits(n_train: int, n_val: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The training samples of a run."""
    data = ib.load_data("digits", n_train=n_train, n_val=n_val, random_state=seed)
    return tuple(np.asarray(one, dtype=float) for one in (data.X_train, data.y_train))


@pytest.mark.parametrize("decay", [0.3, 0.1])
def test_a_network_of_many_times_the_least_loss_is_not_at_its_limit(decay) -> None:
    report = ib.run("linear", weight_decay=decay, steps=500, **DECOUPLED)
    assert report.verdict.word == "NOT THERE YET"
    # The same of samples that are known here.
    X, y = digits(30, 60, 1)
    own = {"X": X, "y": y, "X_val": X, "y_val": y, "decoupled": True, "trainer": "adam"}
    report = ib.run("linear", weight_decay=decay, steps=500, **own)
    assert report.limit.scores == pytest.approx(X @ report.limit.zeta, rel=1e-9)
    w = report.network.zeta().detach().double().numpy().reshape(-1)
    w = w * min(1, 1 / decay / np.abs(w).max())
    least, own = mean_loss(y * report.limit.scores), mean_loss(y * (X @ w))
    assert own_bound(X, y, report.limit.scores, 1 / decay) == pytest.approx(least, rel=1e-7)
    assert own > 2 * least
    # Over the loss of weights 0, which says nothing, what is between them is little.
    assert (own - least) / math.log(2) < 1e-2
    assert report.verdict.word == "NOT THERE YET"
    assert report.comparison.over_optimum == pytest.approx(own / least - 1, rel=1e-5)
    assert "times the optimum" in report.verdict.sentence
    assert "/ that bound" in str(report)


def test_a_least_squared_loss_of_0_is_judged_by_scores() -> None:
    X, y = np.eye(3), np.array([1.0, -1.0, 1.0])  # w = y has the loss 0, within the ball
    limit = ib.limits.solve_fit(X, y, loss="squared", radius=2.0, norm="linf").require()
    zeta = torch.tensor(1.05 * y)
    network = SimpleNamespace(zeta=lambda: zeta, unit_norms=lambda: zeta.norm()[None])
    train = Sample(X, y, None)
    found = compare_decayed(limit, network, train, train, math.nan)
    assert math.isnan(found.over_optimum)
    assert found.score_distance == pytest.approx(0.05, rel=1e-4)
    assert decayed_near(limit, found) == {"score_distance": found.score_distance}
    verdict = decide(Evidence(near=decayed_near(limit, found)))
    assert verdict.word == "NOT THERE YET" and "relative to these" in verdict.sentence


def test_a_ball_of_separable_data_always_binds() -> None:
    # The loss log(1 + exp(-w)) falls for every w: the least of |w| <= radius is at the radius.
    for norm in ("linf", "l2", "l1"):
        limit = ib.limits.solve_fit([[1.0]], [1.0], radius=20.0, norm=norm)
        assert limit.status.name == "SOLVED" and limit.binds and limit.is_unique
        assert limit.objective == pytest.approx(math.log1p(math.exp(-20)), rel=1e-8)
        assert limit.zeta == pytest.approx([20.0], rel=1e-10)
    X, y = digits(30, 60, 1)
    for radius in (3.0, 20.0, 50.0):
        limit = ib.limits.solve_fit(X, y, radius=radius, norm="linf")
        wider = ib.limits.solve_fit(X, y, radius=1.01 * radius, norm="linf")
        assert limit.binds and wider.objective < limit.certificate.dual_objective
    report = ib.run("linear", weight_decay=0.05, steps=100, **DECOUPLED)
    assert report.limit.binds and "does not bind" not in report.verdict.sentence


def test_a_ball_that_holds_the_least_of_all_does_not_bind() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.sign(rng.normal(size=60))
    free = minimize(lambda w: np.logaddexp(0, -y * (X @ w)).mean(), np.zeros(4), tol=1e-12).x
    for norm in ("linf", "l2"):
        wide = ib.limits.solve_fit(X, y, radius=100.0, norm=norm)
        assert not wide.binds and wide.is_unique
        assert wide.zeta == pytest.approx(free, abs=1e-4)
        assert ib.limits.solve_fit(X, y, radius=0.9 * np.abs(free).max(), norm=norm).binds
    # Its coefficients are unique, so that there are not many.
    own = {"X": X, "y": y, "X_val": X, "y_val": y}
    report = ib.run("linear", weight_decay=0.01, decoupled=True, steps=100, **own)
    assert not report.limit.binds and report.limit.is_unique
    assert "does not bind" in report.verdict.sentence and "many" not in report.verdict.sentence


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("radius", [3.0, 10.0, 50.0, 200.0])
def test_the_least_loss_of_a_ball_is_found_to_its_own_size(radius, norm) -> None:
    X, y = digits(30, 60, 1)
    limit = ib.limits.solve_fit(X, y, radius=radius, norm=norm)
    least = mean_loss(y * (X @ limit.zeta))
    slopes = -y * np.exp(-np.logaddexp(0, y * limit.scores)) / len(y)
    size = np.abs(X.T @ slopes).sum() if norm == "linf" else np.linalg.norm(X.T @ slopes)
    # By convexity no coefficients of the ball are below the tangent: this is the gap.
    gap = (radius * size + slopes @ (X @ limit.zeta)) / least
    assert limit.status.name == "SOLVED" and gap < 1e-8 and least < 0.2
    reached = np.abs(limit.zeta).max() if norm == "linf" else np.linalg.norm(limit.zeta)
    assert reached <= radius * (1 + 1e-12)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_box_of_gated_units_is_solved_and_reached(seed) -> None:
    own = {"n_train": 30, "n_val": 60, "hidden_units": 3, "trainer": "signum", "seed": seed}
    report = ib.run("gln", weight_decay=1.0, decoupled=True, steps=50, **own)
    assert report.limit.status.name == "SOLVED" and report.limit.gap < 1e-8
    assert report.verdict.word != "NOT SOLVED"


def test_a_limit_that_is_not_solved_says_what_the_solver_says() -> None:
    options = DECOUPLED | {"steps": 20, "tol": 1e-15}
    report = ib.run("linear", weight_decay=0.1, **options)
    assert report.verdict.word == "NOT SOLVED" and report.limit.gap > 1e-15
    assert "steps have not converged" not in report.verdict.sentence
    assert f"gap {report.limit.gap:.1e}, tolerance 1e-15" in report.verdict.sentence
    found = decide(Evidence(status=ib.Status.UNDECIDED, reason="give more steps"))
    assert found.sentence == ib.Status.UNDECIDED.advice


# Networks beside the points next to them


def test_what_is_above_the_network_is_no_local_optimum_next_to_it() -> None:
    for status in (ib.Status.LOCAL_OPTIMUM, ib.Status.LIVE_OPTIMUM):
        for ratio, word in ((1.0024, "NO THEOREM"), (0.9976, "AT A LOCAL LIMIT")):
            near = {"local_ratio": ratio}
            assert decide(Evidence(theory="local limit", status=status, near=near)).word == word


def relu_problem(seed: int) -> tuple[ib.ReLU, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(10, 3)), np.sign(rng.normal(size=10))
    return ib.ReLU.from_weights(rng.normal(size=(8, 3)), np.tile([1.0, -1.0], 4)), X, y


def test_a_run_names_no_local_optimum_that_is_not_certified() -> None:
    network, X, y = relu_problem(0)
    limit = ib.limits.relu_local_limit(network, X, y)
    margin, loss = np.array([1.0]), np.array([0.0])
    paths = SimpleNamespace(
        smallest_margin=margin, log_loss=loss, weight_norm=margin, finished=True, stopped=""
    )
    for status in (ib.Status.FAILED, ib.Status.STATIONARY):
        why = replace(limit, status=status, reason="the gap is 0.012, above `tol`", start_value=3.0)
        beside = compare_with_relu_limit(why, network, Sample(X, y, None), (5, why))
        verdict = decide(relu_evidence(beside, paths))
        assert verdict.word == "NO THEOREM" and "local_ratio" not in verdict.numbers
        assert verdict.sentence.startswith("network that learns its gates: ") is False
        assert "value 3;" in verdict.sentence and ", local optimum" not in verdict.sentence
        assert "no local optimum was certified: the gap is 0.012" in verdict.sentence
        if status is ib.Status.FAILED:
            assert math.isinf(beside.local_value) and math.isnan(beside.local_ratio)
            # Nothing was found at half the steps, which is not another one.
            assert beside.half_same is None and "another" not in verdict.sentence


def test_the_cap_of_programs_is_named_where_it_ended_the_search() -> None:
    network, X, y = relu_problem(2)
    whole = ib.limits.relu_local_limit(network, X, y)
    assert whole.programs > 2
    found = ib.limits.relu_local_limit(network, X, y, max_programs=1)
    # Of its units in the cones of other gates nothing is proved, and rounding is not why.
    assert found.value > whole.value and not found.in_own_cones
    assert found.status is ib.Status.FAILED
    assert found.reason == "no program was left for the gates of the last one"


def test_what_is_above_its_start_is_not_called_optimal(monkeypatch) -> None:
    network, X, y = relu_problem(0)
    whole = ib.limits.relu_local_limit(network, X, y)
    assert whole.status.name != "FAILED"
    # A start that is said to be better than what was found from it.
    monkeypatch.setattr(ReLUProblem, "value_of_network", lambda *_: 0.9 * whole.value)
    found = ib.limits.relu_local_limit(network, X, y)
    assert found.status.name == "FAILED" and "is above the network's own" in found.reason


def test_no_word_claims_more_of_a_search_than_its_network_has() -> None:
    for seed, caps in ((0, (1,)), (1, (1, 2))):
        network, X, y = relu_problem(seed)
        for cap in caps:
            found = ib.limits.relu_local_limit(network, X, y, max_programs=cap)
            margins = y * (np.maximum(X @ found.units.T, 0) @ found.signs)
            value = np.linalg.norm(found.units, axis=1).sum() / margins.min()
            assert found.value == pytest.approx(value, rel=1e-9)
            if found.status is not ib.Status.FAILED:
                assert found.in_own_cones and found.bound <= value * (1 + 1e-12)
                assert found.value <= found.start_value * (1 + 1e-8)
