"""Training with weight decay ends at the finite limit, and every checkpoint certifies how near."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.limits import solve_fit
from tests.long import some_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 8))
GATES = (X @ RNG.normal(size=(8, 6)) > 0).astype(float)
GATES[:, 0] = 1
Y = np.sign(RNG.normal(size=40))
CONTEXTS = GATES[:, 1:3].astype(int)


def trained(network: torch.nn.Module, gates: Any, limit: Any, **own: Any) -> ib.Trajectory:
    settings = {"schedule": ((3000, 0.3),), "batch_size": 0, "momentum": 0.9, "n_checkpoints": 12}
    return ib.train(
        network, X, Y, gates, settings=ib.TrainingSettings(**settings | own),
        observer=lambda one: {"gap": limit.gap_of(one, X, Y, gates)},
    )  # fmt: skip


@pytest.mark.parametrize("seed", some_of([0, 1], one_in=2))
@pytest.mark.parametrize(
    ("make", "gates", "own"),
    [
        (lambda seed: ib.FReLU(8, 6, random_state=seed), GATES, {"penalty": 0.1}),
        (lambda seed: ib.GLN(8, 2, 2, random_state=seed), CONTEXTS,
         {"penalty": 0.02, "n_contexts": 2}),
        (lambda seed: ib.DeepLinear(8, hidden_widths=(3,), random_state=seed), None,
         {"penalty": 0.05}),
        (lambda seed: ib.DeepLinear(8, random_state=seed), None,
         {"penalty": 0.05, "norm": "ridge"}),
    ],
)  # fmt: skip
def test_coupled_decay_ends_at_the_certified_optimum(make, gates, own, seed) -> None:
    limit = solve_fit(X, Y, gates, **own).require()
    network = make(seed)
    trajectory = trained(network, gates, limit, weight_decay=own["penalty"])
    gaps = trajectory.observed["gap"]
    assert np.all(gaps >= 0) and gaps[0] > 0.1 and gaps[-1] < 1e-10
    zeta = network.zeta().detach().numpy()
    np.testing.assert_allclose(zeta, limit.zeta, atol=1e-4)
    if isinstance(network, ib.FReLU):  # units die as predicted, and the others are balanced
        norms = network.unit_norms().detach().numpy()
        assert ((norms < 1e-6) == ~limit.live).all() and limit.live.sum() == 2
        first = np.linalg.norm(network.w1.detach().numpy(), axis=1)
        np.testing.assert_allclose(first**2, norms, atol=1e-8)


def test_squared_loss_and_decay_that_is_torchs_own() -> None:
    """`weight_decay` of torch.optim.SGD is the lam of the program, for mean losses."""
    limit = solve_fit(X, Y, GATES, loss="squared", penalty=0.05).require()
    ours, theirs = (ib.FReLU(8, 6, random_state=3) for _ in range(2))
    own = {"loss": "squared", "schedule": ((40, 0.05),), "weight_decay": 0.05, "momentum": 0.5}
    trained(ours, GATES, limit, **own)
    optimiser = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.5, weight_decay=0.05)
    for _ in range(40):
        optimiser.zero_grad()
        f = theirs(torch.tensor(X), torch.tensor(GATES))
        ((f - torch.tensor(Y)) ** 2 / 2).mean().backward()
        optimiser.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    gaps = trained(ours, GATES, limit, **own | {"schedule": ((4000, 0.05),)}).observed["gap"]
    assert gaps[-1] < 1e-6


@pytest.mark.parametrize(
    ("trainer", "norm", "gap"), some_of([("sign", "linf", 1e-2), ("signum", "linf", 1e-2),
                                 ("spectral", "l2", 1e-6), ("adam", "linf", 1e-2),
                                 ("lion", "linf", 1e-2)], one_in=5),
)  # fmt: skip
def test_decoupled_decay_ends_in_the_ball_of_the_trainer(trainer, norm, gap) -> None:
    limit = solve_fit(X, Y, radius=1 / 5, norm=norm).require()
    network = ib.DeepLinear(8, random_state=0)
    trajectory = trained(
        network, None, limit, trainer=trainer, schedule=((3000, 3e-3),), momentum=0.0,
        weight_decay=5.0, decay="decoupled",
    )  # fmt: skip
    assert limit.binds and trajectory.observed["gap"][-1] < gap
    bounds = limit.bounds_of(network, X, Y)
    assert bounds.objective == pytest.approx(limit.objective, rel=gap)


@pytest.mark.parametrize("trainer", some_of(["sign", "lion"], one_in=2))
def test_steps_that_are_found_come_to_rest_at_the_optimum_of_the_ball(trainer) -> None:
    limit = solve_fit(X, Y, radius=1.0, norm="linf").require()
    assert np.sum(np.abs(limit.zeta) < 0.9) > 5  # most entries are inside, where signs alternate
    network = ib.DeepLinear(8, random_state=0)
    own = {"momentum": 0.0, "weight_decay": 1.0, "decay": "decoupled"}
    trained(network, None, limit, trainer=trainer, schedule=((4000, None),), **own)
    assert limit.bounds_of(network, X, Y).objective == pytest.approx(limit.objective, rel=1e-6)


def test_a_step_of_decoupled_decay_shrinks_before_it_moves() -> None:
    limit = solve_fit(X, Y, penalty=1.0)
    network = ib.DeepLinear(8, random_state=0)
    before = network.zeta().detach().clone()
    own = {"trainer": "sign", "momentum": 0.0, "weight_decay": 2.0, "decay": "decoupled"}
    trained(network, None, limit, schedule=((1, 0.01),), **own)
    moved = network.zeta().detach() - (1 - 0.02) * before
    torch.testing.assert_close(moved.abs(), torch.full((8,), 0.01).double())


def test_rates_that_are_found_shrink_weights_too() -> None:
    limit = solve_fit(X, Y, penalty=1.0)
    network = ib.DeepLinear(8, random_state=0)
    w = network.zeta().detach().numpy().copy()
    own = {"trainer": "sign", "momentum": 0.0, "weight_decay": 2.0, "decay": "decoupled"}
    trained(network, None, limit, schedule=((1, None),), **own)
    slope = -(Y / (1 + np.exp(Y * (X @ w)))) @ X
    rates = (w - network.zeta().detach().numpy()) / (2 * w + np.sign(slope))
    np.testing.assert_allclose(rates, rates[0], rtol=1e-9)
    assert rates[0] > 0


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"weight_decay": -1.0}, "`weight_decay` must be at least 0"),
        ({"weight_decay": 0.1, "trainer": "dual"}, "'dual' has no coupled weight decay"),
        ({"weight_decay": 0.1, "trainer": "sign"}, "give it decay='decoupled'"),
        ({"decay": "other"}, "`decay`"),
        ({"weight_decay": "much"}, "`weight_decay` must be a number"),
    ],
)
def test_decay_that_a_trainer_has_not_is_refused(own, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ib.TrainingSettings(**own)


@pytest.mark.parametrize("trainer", ["constant", "signum"])
def test_a_run_with_decay_resumes_to_the_bit(trainer, tmp_path) -> None:
    decay = "coupled" if trainer == "constant" else "decoupled"
    settings = ib.TrainingSettings(
        trainer=trainer, schedule=((60, 0.05),), batch_size=0, weight_decay=0.3, decay=decay
    )

    def stop(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 25:
            raise StopIteration

    ends = []
    for callback in (None, stop):
        network, state = ib.FReLU(8, 6, random_state=0), tmp_path / f"run-{callback is None}"
        own = {"settings": settings, "state": state}
        ib.train(network, X, Y, GATES, callback=callback, **own)
        if callback is not None:
            network = ib.FReLU(8, 6, random_state=0)
            ib.train(network, X, Y, GATES, resume=True, **own)
        ends.append([w.detach().numpy().copy() for w in network.parameters()])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def _margins_of(network: torch.nn.Module, weights: dict[str, torch.nn.Parameter]) -> torch.Tensor:
    called = torch.func.functional_call(network, weights, (torch.tensor(X), torch.tensor(GATES)))
    return torch.tensor(Y) * called


DECAYING: list[tuple[Any, Any, bool]] = [
    (
        lambda w: ib.optim.GradientDescent(w, n_samples=40, lr=0.1, momentum=0.5, weight_decay=0.2),
        lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.5, weight_decay=0.2),
        False,
    ),
    (
        lambda w: ib.optim.Adam(
            w, n_samples=40, degree=2, lr=0.01, betas=(0.9, 0.95), epsilon=1e-4, weight_decay=0.7
        ),
        lambda w: torch.optim.AdamW(w, lr=0.01, betas=(0.9, 0.95), eps=1e-4, weight_decay=0.7),
        True,
    ),
]


@pytest.mark.parametrize(("make", "of_torch", "falls"), DECAYING)
def test_optimisers_with_decay_step_as_torchs_and_go_on_to_the_bit(make, of_torch, falls) -> None:
    networks = [ib.FReLU(8, 6, random_state=4) for _ in range(2)]
    weights = [dict(network.named_parameters()) for network in networks]
    ours, theirs = make(list(weights[0].values())), of_torch(list(weights[1].values()))
    for step in range(30):
        if step == 15:  # a new optimiser, of the state that the first one left
            saved = ours.state_dict()
            ours = make(list(weights[0].values()))
            ours.load_state_dict(saved)
        ours.step(lambda: _margins_of(networks[0], weights[0]))
        theirs.zero_grad()
        loss = torch.nn.functional.softplus(-_margins_of(networks[1], weights[1])).mean()
        loss.backward()
        if falls:
            theirs.param_groups[0]["lr"] = 0.01 / (1 + step / 1000) ** 0.5
        theirs.step()
    for one, other in zip(weights[0].values(), weights[1].values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_signs_with_decay_shrink_weights_before_they_move() -> None:
    w = torch.nn.Parameter(torch.tensor([0.5, -2.0]).double())
    optimiser = ib.optim.SteepestDescent([w], norm="linf", n_samples=1, lr=0.1, weight_decay=2.0)
    optimiser.step(lambda: w.sum()[None])
    np.testing.assert_allclose(w.detach(), [0.8 * 0.5 + 0.1, 0.8 * -2.0 + 0.1], rtol=1e-12)
    with pytest.raises(ValueError, match="`weight_decay` must be at least 0"):
        ib.optim.Adam([w], n_samples=1, weight_decay=-1.0)


# Runs


@pytest.mark.parametrize(
    ("model", "own", "norm"),
    [
        ("linear", {}, "ridge"), ("deep-linear", {"depth": 2}, "l2"),
        ("frelu", {"hidden_units": 3}, "units"), ("gln", {"hidden_units": 2}, "units"),
    ],
)  # fmt: skip
def test_a_run_with_decay_is_at_its_limit(model, own, norm, tmp_path) -> None:
    report = ib.run(model, weight_decay=0.03, n_train=30, n_val=20, steps=1500, **own)
    assert report.verdict.word == "AT ITS LIMIT"
    found = report.comparison
    assert found.value_gap < 1e-6 and abs(found.over_optimum) < 1e-6
    assert found.score_distance < 1e-3 and report.limit.norm == norm
    assert found.n_dead == found.n_dead_predicted and found.same_units
    assert found.limit_margin_ratio < 1
    row = report.row()
    assert row["value_gap"] == found.value_gap and row["penalty"] == 0.03
    report.save(tmp_path / "report")
    again = ib.load(tmp_path / "report")
    assert again.limit.objective == report.limit.objective
    assert json.loads((tmp_path / "report" / "results.json").read_text())["limit"]["norm"] == norm


@pytest.mark.parametrize(
    ("model", "own"),
    some_of([("linear", {}), ("deep-linear", {"depth": 2}), ("frelu", {"hidden_units": 3}),
             ("gln", {"hidden_units": 2})], one_in=2),
)  # fmt: skip
def test_a_run_with_decay_on_the_squared_loss_is_at_its_limit(model, own) -> None:
    asked = {"n_train": 30, "n_val": 10, "steps": 4000, "weight_decay": 0.03}
    report = ib.run(model, loss="squared", **asked, **own)
    assert report.verdict.word == "AT ITS LIMIT" and report.limit.loss == "squared"
    assert report.comparison.value_gap < 1e-6 and abs(report.comparison.over_optimum) < 1e-6


def test_a_run_with_decoupled_decay_uses_its_ball() -> None:
    own = {"n_train": 30, "n_val": 20, "steps": 3000, "learning_rate": 0.003}
    report = ib.run("linear", weight_decay=4.0, decoupled=True, **own)
    assert report.verdict.word == "AT ITS LIMIT" and report.limit.norm == "linf"
    assert report.comparison.radius == 0.25
    assert report.comparison.radius_used == pytest.approx(1, abs=1e-2)
    assert report.limit.binds and "does not bind" not in report.verdict.sentence
    wide = ib.run("linear", weight_decay=0.05, decoupled=True, **own)
    assert wide.limit.binds and "does not bind" not in wide.verdict.sentence  # as of all separable


@pytest.mark.parametrize(
    ("model", "own", "message"),
    [
        ("deep-linear", {}, "`depth` 3 with weight decay has no convex form"),
        ("linear", {"classes": "all"}, "`classes`"),
        ("linear", {"trainer": "constant,normalised"}, "trainer"),
        ("linear", {"batch_size": 5}, "`batch_size` must be 0"),
        ("linear", {"loss": "exponential"}, "`loss` 'exponential'"),
        ("linear", {"loss": "squared", "weight_decay": 0.0}, "`loss` 'squared' has a program"),
        ("linear", {"decoupled": True, "trainer": "constant", "batch_size": 0}, "leave it out"),
        ("gln", {"decoupled": True, "trainer": "muon"}, "no ball is known"),
        ("linear", {"weight_decay": 0.0, "decoupled": True}, "give `--weight-decay`"),
        ("linear", {"weight_decay": -1.0}, "weight_decay"),
    ],
)
def test_what_is_not_predicted_is_refused_before_long_work(model, own, message) -> None:
    with pytest.raises(ValueError, match=message):
        ib.run(model, **{"weight_decay": 0.1, "n_train": 30, "n_val": 20} | own)
