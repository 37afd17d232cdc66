"""Bars below a bound: constructed sums of powers, what dual norms allow, trained networks."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from implicit_bias import (
    GLN,
    DeepLinear,
    HyperplaneContexts,
    Sample,
    Status,
    TrainingSettings,
    solve_gln_svm,
    train,
    train_many,
)
from implicit_bias.dynamics import extrapolate
from implicit_bias.measures import STEEPER, Distances, Powers, PowerSums, inverse_log_loss

U = 1 / np.geomspace(3, 60, 40)


@pytest.mark.long
def test_sums_of_the_prescribed_powers_are_continued_within_bars_that_say_something() -> None:
    widths = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        nu = np.append(rng.uniform(0.6, 1.0, 3), 1.0)
        shares = rng.dirichlet(np.ones(4))
        # Two layers; the shares are those of the last checkpoint.
        u = np.append(U, U[-1] / np.array([2.0, 20.0, 1000.0]))
        units = np.sum((1 - nu) * shares * (u[:, None] / U[-1]) ** (1 - nu), axis=1)
        ratio = 1 - rng.uniform(0.5, 3) * u - units
        found = extrapolate(U, ratio[: len(U)], upper=1.0, dual_norms=nu, unit_norms=shares)
        for x, later in zip(u[len(U) :], ratio[len(U) :], strict=True):
            assert found.predict(x).contains(later)
        widths.append((found.limit.high - found.limit.low) / (1 - ratio[len(U) - 1]))
    assert np.median(widths) < 0.8


def test_a_network_at_a_plateau_is_not_said_to_reach_the_limit() -> None:
    # A unit that cannot be seen, of dual norm 1.25: the KKT point without it lacks at most a fifth.
    y = 0.85 - 0.3 * U
    found = extrapolate(U, y, upper=1.0, dual_norms=[1.0, 1.25], unit_norms=[1.0, 1e-7])
    assert found.slow_units == (1,)
    assert all(found.predict(U[-1] / k).contains(0.85 - 0.3 * U[-1] / k) for k in (10, 1e3))
    assert found.limit.low < 0.85
    assert found.limit.low > 1 - 0.2 - 1e-9
    # Without units nothing else is known than that it need not stay.
    blind = extrapolate(U, y, upper=1.0)
    assert blind.limit.low < 0.85
    assert blind.slow_units == ()


@pytest.mark.parametrize(
    ("dual_norm", "share", "slow"),
    [(1.05, 0.01, True), (1.05, 0.06, False), (1.005, 0.01, False), (0.9, 0.01, False)],
)
def test_units_are_named_that_are_too_small_for_their_dual_norm(dual_norm, share, slow) -> None:
    norms = [1 - share, share]
    found = extrapolate(U, 1 - U, upper=1.0, dual_norms=[1.0, dual_norm], unit_norms=norms)
    assert found.slow_units == ((1,) if slow else ())


def test_slow_powers_weigh_no_more_than_the_units_do() -> None:
    powers = Powers.of_network(2, np.array([0.8, 1.0, 1.25]), np.array([0.2, 0.5, 0.3]))
    assert powers.budget == pytest.approx(0.2 * 0.2 + 0.25 * 0.3 + (1 - 1 / 1.25))
    slow = powers.values[: powers.n_slow]
    assert slow[0] == 0
    assert slow[-1] < 0.7 == powers.values[powers.n_slow]
    # One unit: nothing is slower than its own parts, which fade like u^(2 / L).
    alone = (np.array([1.0]), np.array([1.0]))
    assert Powers.of_network(2, *alone).values[0] == pytest.approx(0.7)
    assert Powers.of_network(4, *alone).values[0] == pytest.approx(0.35)
    assert Powers.of_network(1, *alone).values[0] == 1
    # With live units that fit their dual norms the limit is near, whatever the series could do.
    y = 1 - 0.5 * U**0.9
    norms = {"unit_norms": [0.5, 0.5]}
    sure, open_ = (
        extrapolate(U, y, upper=1.0, dual_norms=nu, **norms) for nu in ([1.001, 1.0], [1.2, 0.9])
    )
    assert sure.limit.low > 1 - 0.01
    assert open_.limit.low < sure.limit.low


@pytest.mark.parametrize(("degree", "steps", "rate"), [(1, 300, 0.5), (2, 80, 0.05), (3, 82, 0.01)])
def test_what_no_sample_asks_for_fades_like_the_root_that_the_degree_prescribes(
    degree, steps, rate
) -> None:
    # One sample (1, 0): the loss costs nothing, and the second coordinate of the first layer stays
    # while the others grow, so that 1 - ratio = 1 - cos(angle) falls like u^(2 / L).
    first = torch.tensor([[1.0, 0.2]], dtype=torch.float64)
    upper = [first.norm().view(1, 1)] * (degree - 1)
    network = DeepLinear.from_weights(first, *upper)

    def lack(net):
        zeta = net.zeta().detach().numpy()
        return {"lack": 1 - zeta[0] / np.linalg.norm(zeta)}

    settings = TrainingSettings(trainer="normalised", batch_size=0, schedule=((steps, rate),))
    run = train(network, np.array([[1.0, 0.0]]), np.ones(1), None, settings=settings, observer=lack)
    x, y = np.log(-run.log_loss[-5:]), np.log(run.observed["lack"][-5:])
    assert x[-1] > math.log(30)
    np.testing.assert_allclose(np.polyfit(x, y, 1)[0], -2 / degree, rtol=0.01)


def test_the_range_is_that_of_all_sums_and_steeper_ones() -> None:
    # Two points and two powers leave one sum: its value is known.
    u, powers = np.array([2.0, 1.0]), Powers(np.array([0.5, 1.0]), 0, np.inf)
    half = PowerSums(u, np.array([np.sqrt(2.0) + 2, 2.0]), powers)
    value, low, high = half.at(0.25)
    assert half.misfit == pytest.approx(0, abs=1e-9)
    assert value == pytest.approx(0.5 + 0.25)
    assert low < value < high
    # Errors of a hundredth at both points: c_1 + c_2 and sqrt(2) c_1 + 2 c_2 are known to that.
    ends = [c @ [0.5, 0.25] for c in _corners()]
    assert high == pytest.approx(2 * max(ends), rel=1e-6)
    assert low == pytest.approx(2 * min(ends) ** STEEPER, rel=1e-6)


def _corners():
    design = np.array([[np.sqrt(2.0), 2.0], [1.0, 1.0]])
    points = np.array([(np.sqrt(2.0) + 2) / 2, 1.0])
    return [
        np.linalg.solve(design, points * (1 + 0.01 * np.array(signs)))
        for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.2])
def test_bars_lie_between_what_is_reached_and_what_is_proved(noise) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.minimum(1 - U ** rng.uniform(0.05, 2) + noise * rng.normal(size=len(U)), 1.0)
        found = extrapolate(U, y, upper=1.0)
        if found.status is Status.ESTIMATED:
            for u in (U[-1], U[-1] / 10, 0.0):
                bar = found.predict(u)
                assert y[-1] <= bar.low <= bar.value <= bar.high <= 1


def test_a_bar_that_tells_nothing_says_so() -> None:
    flat = extrapolate(U, np.full(len(U), 0.9), upper=1.0)
    assert not flat.informative
    assert str(flat) == "not known: anything from what is reached, 0.9000, to 1.0000"
    sure = extrapolate(U, 1 - U, upper=1.0, dual_norms=[1.0], unit_norms=[3.0])
    assert sure.informative
    assert str(sure) == "1.0000"
    assert sure.to_dict()["slow_units"] == []


@pytest.mark.parametrize(
    ("values", "status"),
    [
        (1.01 - U / 10, Status.ABOVE_BOUND),
        (-U, Status.NOT_SEPARATING),
        (np.where(U < U[-6], 1 - U, np.nan), Status.TOO_FEW),
    ],
)
def test_series_that_fit_no_bound_are_refused_with_advice(values, status) -> None:
    found = extrapolate(U, values, upper=1.0)
    assert found.status is status
    assert str(found) == f"no estimate: {status.advice}"
    assert math.isnan(found.predict(0.1).low)


def test_units_must_fit_each_other() -> None:
    with pytest.raises(ValueError, match=r"`unit_norms` must have shape \(2,\), got \(3,\)"):
        extrapolate(U, 1 - U, upper=1.0, dual_norms=[1, 1], unit_norms=[1, 1, 1])


@pytest.mark.long
def test_later_ratios_of_gated_networks_lie_in_the_bars_of_their_beginnings() -> None:
    held, widths = [], []
    settings = TrainingSettings(
        trainer="constant", schedule=((1500, 0.2),), batch_size=0, n_checkpoints=61
    )
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 20)), rng.permutation(np.repeat([-1.0, 1.0], 15))
        contexts = HyperplaneContexts(3, 2, random_state=seed).fit_transform(X)
        sample = Sample(X, y, contexts)
        distances = partial(Distances, solve_gln_svm(X, y, contexts), sample, sample)
        networks = [GLN(20, 3, 2, init="balanced", random_state=k) for k in range(3)]
        observers = [distances() for _ in networks]
        for run in train_many(networks, *sample, settings=settings, observers=observers):
            u, ratio = inverse_log_loss(run.log_loss), run.observed["margin_ratio"]
            last = int(np.flatnonzero(run.step <= 75)[-1])
            bar = extrapolate(
                u[: last + 1],
                ratio[: last + 1],
                upper=1.0,
                dual_norms=run.observed["dual_norms"][last],
                unit_norms=run.unit_norms[last],
            ).predict(u[-1])
            held.append(bar.contains(ratio[-1]))
            # The run went on, and most bars know more than that it would.
            assert ratio[-1] - ratio[last] > 0.2 * (1 - ratio[last])
            widths.append((bar.high - bar.low) / (1 - ratio[last]))
    assert sum(held) >= 5
    assert np.median(widths) < 0.8
