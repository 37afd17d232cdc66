"""Units grow by the powers that their dual norms set: networks whose dual norms are constructed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from implicit_bias import (
    GLN,
    DeepLinear,
    FReLU,
    ShallowGLN,
    TrainingSettings,
    Trajectory,
    solve_frelu_svm,
    solve_gln_svm,
    train,
)
from implicit_bias.dynamics import (
    ConstantClock,
    PowerClock,
    UnitGrowth,
    clock_of,
    pace_of,
    unit_growth,
)
from implicit_bias.limits import FReLULimit
from tests.long import some_of

Array = NDArray[np.float64]
START = 20.0


@dataclass(frozen=True)
class Pair:
    """Two samples with y x = (1, +-k); unit 0 is open on both, unit 1 on the first alone.

    With unit 0 alone zeta = (1, 0) is the least of margin 1, both multipliers are 1/2, and so the
    dual norm of unit 1 is half the length of a sample: sqrt(1 + k^2) / 2, above 1 for k^2 > 3.
    """

    k: float
    share: float  # of unit 1, to that of unit 0
    degree: int = 2

    y = np.array([1.0, -1.0])
    gates = np.array([[1, 1], [1, 0]])

    @property
    def X(self) -> Array:
        return np.array([[1.0, self.k], [-1.0, self.k]])

    @property
    def dual_norm(self) -> float:
        return math.hypot(1, self.k) / 2

    def network(self, log_inverse_loss: float = START) -> FReLU:
        """At that log(1/loss), near the KKT point of unit 0; unit 1 along its dual vector."""
        small = self.share * np.array([1, self.k]) / math.hypot(1, self.k)
        zeta = log_inverse_loss * np.stack([[1.0, 0.0], small])
        return FReLU.from_zeta(zeta, upper_widths=(1,) * (self.degree - 2))

    def growth(self, **options) -> UnitGrowth:
        return unit_growth(self.network(), self.X, self.y, self.gates, **options)

    def limit(self) -> FReLULimit:
        return solve_frelu_svm(self.X, self.y, self.gates, tol=1e-10)

    def flow(self, end: float) -> tuple[float, Array]:
        """Gradient flow of all layers, in the time in which the mean margin grows like exp(t).

        Written without the package: gradients by hand, the log(1/loss) and unit norms it ends with.
        """
        layers = [p.detach().numpy() for p in self.network().parameters()]
        cuts, shapes = np.cumsum([p.size for p in layers])[:-1], [p.shape for p in layers]
        signed = self.y[:, None] * self.X

        def unpack(w: Array) -> list[Array]:
            return [p.reshape(shape) for p, shape in zip(np.split(w, cuts), shapes, strict=True)]

        def velocity(_: float, w: Array) -> Array:
            first, *upper = unpack(w)
            hidden = [signed @ first.T * self.gates]
            for V in upper:
                hidden.append(hidden[-1] @ V.T)
            margins = hidden[-1][:, 0]
            q = np.exp(margins.min() - margins)
            back, gradients = (q / q.sum())[:, None], []
            for V, below in zip(reversed(upper), reversed(hidden[:-1]), strict=True):
                gradients.append(back.T @ below)
                back = back @ V
            gradients.append((back * self.gates).T @ signed)
            gradient = np.concatenate([g.ravel() for g in reversed(gradients)])
            return gradient * (w @ w) / (self.degree**2 * (q @ margins / q.sum()))

        start = np.concatenate([p.ravel() for p in layers])
        span, tiny = (0, math.log(end / START)), 1e-8 * np.abs(start[start != 0]).min()
        w = solve_ivp(velocity, span, start, "LSODA", rtol=1e-7, atol=tiny).y[:, -1]
        first, *upper = unpack(w)
        head = np.linalg.multi_dot([*reversed(upper)]) if len(upper) > 1 else upper[0]
        zeta = head[0][:, None] * first
        margins = np.einsum("nh,hd,nd->n", self.gates, zeta, signed)
        reached = margins.min() - np.log(np.exp(margins.min() - margins).mean())
        return reached, np.linalg.norm(zeta, axis=1)


WAKING = [Pair(2.4, 1e-6), Pair(2.4, 1e-6, degree=3), Pair(2.4, 1e-6, degree=4)]
DYING = [Pair(1.0, 2e-3), Pair(1.0, 2e-3, degree=3)]


@pytest.mark.parametrize("pair", WAKING + DYING, ids=str)
def test_beside_live_units_one_goes_like_log_inverse_loss_to_2_nu_minus_1_over_depth(pair) -> None:
    growth, far = pair.growth(), 400.0
    power = 2 * (pair.dual_norm - 1) / pair.degree
    assert growth.dual_norms[1] == pytest.approx(pair.dual_norm, rel=2e-3)
    assert growth.exponents[1] == pytest.approx(power, abs=2e-3)
    # Aligned and balanced from the start, the unit grows as it will.
    assert growth.growth_now[1] == pytest.approx(power, abs=2e-3)
    reached, norms = pair.flow(far)
    assert reached > 0.9 * far
    assert growth.shares_at(reached)[1] == pytest.approx(norms[1] / norms.sum(), rel=5e-3)
    observed = math.log(norms[1] / norms[0] / pair.share) / math.log(reached / START)
    assert observed == pytest.approx(power, abs=2e-3)


def test_descent_far_along_comes_to_the_predicted_shares() -> None:
    pair = Pair(2.4, 1e-6)
    network, growth = pair.network(), pair.growth()
    settings = TrainingSettings("normalised", schedule=((400, 0.005),))
    run = train(network, pair.X, pair.y, pair.gates, settings=settings)
    reached = -float(run.log_loss[-1])
    assert reached > 50 * START
    grown = float(run.unit_norms[-1, 1] / run.unit_norms[-1].sum())
    # Steps of 1 % of the norm: second-order errors of that size.
    assert math.log(grown / growth.shares[1]) == pytest.approx(
        math.log(growth.shares_at(reached)[1] / growth.shares[1]), rel=0.03
    )


def test_arrivals_are_where_the_shares_are_the_marks_and_the_limits() -> None:
    pair = Pair(2.4, 1e-6)
    limit = pair.limit()
    growth = pair.growth(limit=limit)
    (change,) = growth.changes
    predicted = limit.unit_norms[1] / limit.unit_norms.sum()
    assert change.unit == 1
    assert change.predicted_share == pytest.approx(predicted)
    assert [arrival.share for arrival in change.arrivals] == pytest.approx([0.01, 0.1, predicted])
    for arrival in change.arrivals:
        shares = growth.shares_at(arrival.log_inverse_loss)
        assert shares[1] == pytest.approx(arrival.share, rel=2e-3)
        assert arrival.earliest < arrival.log_inverse_loss < arrival.latest


def test_a_dying_unit_comes_down_through_the_marks_and_one_that_holds_nothing_is_left_out() -> None:
    assert Pair(1.0, 5e-4).growth().changes == ()
    pair = Pair(1.0, 0.02)
    (change,) = pair.growth(limit=pair.limit()).changes
    assert change.predicted_share == 0
    (arrival,) = change.arrivals
    assert arrival.share == 0.01
    assert arrival.log_inverse_loss > START


def test_constant_steps_come_to_a_loss_when_their_clock_says() -> None:
    pair = Pair(1.0, 0.02)
    network = pair.network(6.0)
    before = unit_growth(network, pair.X, pair.y, pair.gates)
    rate, n_steps = 0.5, 2000
    settings = TrainingSettings("constant", batch_size=0, schedule=((n_steps, rate),))
    run = train(network, pair.X, pair.y, pair.gates, settings=settings)
    after = unit_growth(network, pair.X, pair.y, pair.gates)
    clock, (begun, ended) = ConstantClock(rate), -run.log_loss[[0, -1]]
    assert ended > begun + 2
    # By the network at the end, and by the one at the start, from which it is foretold.
    for state in (after, before):
        steps = 10 ** clock.log10_steps(ended, state) - 10 ** clock.log10_steps(begun, state)
        assert steps == pytest.approx(n_steps, rel=0.1)


def run_of(trainer: str, log_inverse_loss: Array, step: Array) -> PowerClock | None:
    empty = np.zeros((len(step), 0))
    none = dict.fromkeys(
        ["loss", "smallest_margin", "normalised_margin", "smooth_margin", "weight_norm", "seconds"],
        step,
    )
    run = Trajectory(
        step=step, log_loss=-log_inverse_loss, unit_norms=empty, scores=empty, finished=True, **none
    )
    return clock_of(run, TrainingSettings(trainer))


def test_a_run_measures_its_own_clock() -> None:
    step = np.geomspace(1, 1000, 30)
    clock = run_of("momentum", 3 * step**1.25, step)
    assert clock is not None
    assert clock.is_flow
    growth = Pair(2.4, 1e-6).growth(clocks=[clock])
    for arrival in growth.changes[0].arrivals:
        ((name, steps),) = arrival.log10_steps
        assert name == "momentum"
        assert 3 * 10 ** (1.25 * steps) == pytest.approx(arrival.log_inverse_loss)


@pytest.mark.parametrize("trainer", some_of(["momentum", "normalised"], one_in=2))
def test_a_pace_foretells_the_steps_of_a_run_five_times_longer(trainer) -> None:
    pair = Pair(1.0, 0.02)
    network = pair.network(1.0)
    clock = pace_of(pair.network(), pair.X, pair.y, pair.gates, trainer=trainer)
    assert clock is not None
    assert clock.name == trainer
    n_steps = int(5 * clock.steps)
    settings = TrainingSettings(trainer, batch_size=0, schedule=((n_steps, None),))
    run = train(network, pair.X, pair.y, pair.gates, settings=settings)
    state = pair.growth()
    foretold = 10 ** clock.log10_steps(float(-run.log_loss[-1]), state)
    assert foretold == pytest.approx(n_steps, rel=0.5)
    with pytest.raises(ValueError, match="constant steps have a law"):
        pace_of(network, pair.X, pair.y, pair.gates, trainer="constant")


def test_annealed_steps_are_no_flow_and_count_no_arrivals() -> None:
    step = np.geomspace(1, 1000, 30)
    clock = run_of("annealed", step, step)
    assert clock is not None
    assert not clock.is_flow
    assert Pair(2.4, 1e-6).growth(clocks=[clock]).changes[0].arrivals[0].log10_steps == ()
    assert run_of("constant", step, step) is None


def test_a_gln_that_lacks_a_unit_of_its_limit_says_so() -> None:
    rng = np.random.default_rng(0)
    X, contexts = rng.normal(size=(20, 8)), rng.integers(0, 2, size=(20, 3))
    y = np.where(rng.random(20) < 0.5, -1.0, 1.0)
    limit = solve_gln_svm(X, y, contexts, n_contexts=2).require()
    # The optimum without unit 2 is a KKT point of the network that has it, as small as it likes.
    part = solve_gln_svm(X, y, contexts[:, :2], n_contexts=2, tol=1e-10).require()
    zeta = np.concatenate([part.zeta, 1e-9 * rng.normal(size=(1, 2, 8))])
    growth = unit_growth(GLN.from_zeta(100 * zeta), X, y, contexts, limit=limit)
    assert growth.residual < 1e-4
    (change,) = growth.changes
    assert change.unit == 2
    # Oracle: multipliers of the smaller program, features of the unit that it does not have.
    blocks = [(part.dual * y * (contexts[:, 2] == context)) @ X for context in range(2)]
    assert change.dual_norm == pytest.approx(np.linalg.norm(blocks), rel=1e-3)
    assert change.dual_norm > 1.01
    assert change.predicted_share > 0.01
    # Its weights point anywhere, so that it is not growing yet as it will.
    assert change.growth_now < change.exponent - 0.1


def test_the_law_is_refused_where_it_does_not_hold() -> None:
    pair = Pair(2.4, 0.5)
    growth = pair.growth()
    assert growth.changes == ()
    # Its second margin is far beyond the first, though both have the same multiplier.
    assert growth.complementarity > 0.2
    assert "not near a KKT point" in growth.reason
    with pytest.raises(ValueError, match="no shares are predicted"):
        growth.shares_at(1e3)
    with pytest.raises(ValueError, match="smallest margin"):
        unit_growth(pair.network(), pair.X, -pair.y, pair.gates)
    with pytest.raises(TypeError, match="`degree`"):
        unit_growth(torch.nn.Linear(2, 1), pair.X, pair.y, None)


@pytest.mark.parametrize(
    ("network", "gates", "reason"),
    [
        (DeepLinear.from_zeta([1.0, 0.0]), None, "linear in its weights"),
        (DeepLinear.from_zeta([1.0, 0.0], hidden_widths=(3, 3)), None, "a single unit"),
        (ShallowGLN(2, np.eye(2, dtype=int)), np.eye(2, dtype=int), "linear in its weights"),
    ],
)
def test_linear_and_shallow_networks_have_no_units_of_a_power_of_their_own(
    network, gates, reason
) -> None:
    pair = Pair(1.0, 0.0)
    if gates is not None:
        settings = TrainingSettings("normalised", schedule=((50, None),))
        train(network, pair.X, pair.y, gates, settings=settings)
    growth = unit_growth(network, pair.X, pair.y, gates)
    assert growth.changes == ()
    assert reason in growth.reason
