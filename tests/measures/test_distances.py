"""Distances from the limit at points where they are known, for every model with a network."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from implicit_bias import (
    GLN,
    DeepLinear,
    FReLU,
    HyperplaneGates,
    ReLU,
    Sample,
    ShallowGLN,
    TrainingSettings,
    compare,
    kkt_distance,
    solve_frelu_svm,
    solve_gln_l2_svm,
    solve_gln_svm,
    solve_linear_svm,
    solve_orthosep,
    solve_shallow_gln_svm,
    train,
)
from implicit_bias.measures import Distances
from implicit_bias.models.orthosep import OrthosepDistances
from implicit_bias.networks import BalancedReLU, DeepReLU
from tests.commands import home
from tests.long import some_of
from tests.oracles import quadrants, quadrants_zeta

# More weights than training samples: multipliers are determined.
N, H, C, D = 30, 3, 2, 12


@dataclass(frozen=True)
class Case:
    """A certified limit, its network, and weights at random in the same space."""

    limit: Any
    train: Sample
    held_out: Sample
    at_limit: Callable[[], torch.nn.Module]
    random: Callable[[int], torch.nn.Module]

    def distances(self) -> Distances:
        return Distances(self.limit, self.train, self.held_out)


def data(gates: Callable[[np.ndarray, np.random.Generator], Any]) -> tuple[Sample, Sample]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N + 60, D))
    y, g = np.sign(X @ np.linspace(-1, 1, D) + 0.3 * X[:, 0] ** 2 + 0.1), gates(X, rng)
    parts = [slice(0, N), slice(N, None)]
    return tuple(Sample(X[p], y[p], None if g is None else g[p]) for p in parts)


def linear(widths: tuple[int, ...]) -> Case:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N + 60, D))
    y = np.sign(X @ np.linspace(-1, 1, D))
    samples = Sample(X[:N], y[:N], None), Sample(X[N:], y[N:], None)
    limit = solve_linear_svm(X[:N], y[:N], tol=1e-11).require()
    return Case(
        limit, *samples, lambda: DeepLinear.from_zeta(limit.zeta, hidden_widths=widths),
        lambda seed: DeepLinear(D, hidden_widths=widths, random_state=seed),
    )  # fmt: skip


def contexts(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, C, size=(len(X), H))


def gln(widths: tuple[int, ...]) -> Case:
    samples = data(contexts)
    limit = solve_gln_svm(*samples[0], tol=1e-11).require()
    return Case(
        limit, *samples, lambda: GLN.from_zeta(limit.zeta, upper_widths=widths),
        lambda seed: GLN(D, H, C, upper_widths=widths, random_state=seed),
    )  # fmt: skip


def shallow() -> Case:
    samples = data(contexts)
    limit = solve_shallow_gln_svm(*samples[0], tol=1e-11).require()
    return Case(
        limit, *samples, lambda: ShallowGLN.from_zeta(limit.zeta, limit.global_contexts),
        lambda seed: ShallowGLN(D, samples[0].gates, random_state=seed),
    )  # fmt: skip


def frelu() -> Case:
    samples = data(lambda X, rng: HyperplaneGates(H, random_state=1).fit(X).transform(X))
    limit = solve_frelu_svm(*samples[0], tol=1e-11).require()
    units = limit.zeta.shape[0]
    return Case(
        limit, *samples, lambda: FReLU.from_zeta(limit.zeta),
        lambda seed: FReLU(D, units, random_state=seed),
    )  # fmt: skip


def orthants() -> tuple[Sample, Sample]:
    rng = np.random.default_rng(5)
    y = rng.choice([-1.0, 1.0], size=N + 60)
    X = y[:, None] * np.abs(rng.normal(size=(N + 60, D)))
    return Sample(X[:N], y[:N], None), Sample(X[N:], y[N:], None)


def relu(kind: type[torch.nn.Module]) -> Case:
    samples = orthants()
    limit = solve_orthosep(*samples[0][:2], tol=1e-11).require()

    def at_limit() -> torch.nn.Module:
        # One neuron a direction: a_j = +-||w_j||, so that the product is w+ and w-.
        sizes = np.linalg.norm(limit.zeta, axis=1)
        signs = np.array([1.0, -1.0])
        directions = np.abs(signs)[:, None] * np.stack([limit.w_plus, limit.w_minus])
        return kind.from_weights(directions / np.sqrt(sizes)[:, None], signs * np.sqrt(sizes))

    return Case(
        limit, *samples, at_limit, lambda seed: kind(D, 2, random_state=seed, init_scale=1.0)
    )


CASES = {
    "linear": lambda: linear(()),
    "deep-linear": lambda: linear((3, 4)),
    "gln": lambda: gln(()),
    "gln, four layers": lambda: gln((3, 2)),
    "shallow-gln": shallow,
    "frelu": frelu,
    "relu": lambda: relu(ReLU),
    "orthosep": lambda: relu(BalancedReLU),
}


@pytest.fixture(scope="module", params=list(CASES))
def case(request) -> Case:
    return CASES[request.param]()


def spoil(network: torch.nn.Module, size: float) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in network.parameters():
            noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
            p.add_(size * p.norm() / noise.norm() * noise)
    return network


def test_every_distance_is_zero_at_the_limit_of_every_model(case) -> None:
    now = case.distances()(case.at_limit())
    assert now["margin_ratio"] == pytest.approx(1, abs=1e-8)
    assert now["margin_ratio"] <= 1
    for name in ("zeta_cosine", "score_cosine", "kkt_cosine"):
        assert now[name] == pytest.approx(1, abs=1e-9)
    assert now["agreement"] == 1
    # ||w - fit|| is of the order of the root of the gap.
    assert now["kkt_residual"] < 1e-4
    assert abs(now["kkt_complementarity"]) < 1e-4
    assert now.get("balancedness", 0) < 1e-12
    assert now["n_wrongly_dead"] == 0
    # Live units have dual norm 1.
    np.testing.assert_allclose(now["dual_norms"].max(), 1, rtol=1e-4)
    np.testing.assert_allclose(now["dual_norms"], case.limit.dual_norms, atol=1e-3)


def test_distances_grow_as_the_weights_are_spoiled(case) -> None:
    values = [case.distances()(spoil(case.at_limit(), size)) for size in (0, 1e-3, 1e-2, 1e-1)]
    # More samples than weights, as here for `linear`, can leave weights in the cone of gradients:
    # then it is multipliers on samples beyond the margin that tell.
    kkt = [v["kkt_residual"] + v["kkt_complementarity"] for v in values]
    assert np.all(np.diff(kkt) > 0)
    assert kkt[-1] > 0.02
    assert np.all(np.diff([v["margin_ratio"] for v in values]) < 0)


def test_no_random_network_has_a_margin_ratio_above_one(case) -> None:
    distances = case.distances()
    for seed in range(10):
        assert distances(case.random(seed))["margin_ratio"] <= 1
        assert distances(spoil(case.at_limit(), 10.0 ** (-seed / 2)))["margin_ratio"] <= 1


def test_the_smoothed_margin_is_that_of_the_summed_loss_and_below_the_exact_one(case) -> None:
    for loss, value in (("logistic", lambda m: np.log1p(np.exp(-m))),
                        ("exponential", lambda m: np.exp(-m))):  # fmt: skip
        network = case.at_limit()
        with torch.no_grad():
            for p in network.parameters():
                p.mul_(5)
        now = Distances(case.limit, case.train, case.held_out, loss=loss)(network)
        X = torch.tensor(case.train.X)
        gates = None if case.train.gates is None else torch.tensor(case.train.gates)
        margins = case.train.y * network(X, gates).detach().numpy()
        expected = -np.log(value(margins).sum()) / now["network_norm"] * case.limit.objective
        assert now["smooth_margin_ratio"] == pytest.approx(expected, rel=1e-8)
        assert now["smooth_margin_ratio"] < now["margin_ratio"]


def test_what_compare_says_is_what_the_observer_says(case) -> None:
    network = spoil(case.at_limit(), 0.03)
    now = case.distances()(network)
    record = compare(case.limit, network, case.train, case.held_out).to_dict()
    shared = set(record) & set(now)
    assert {"margin_ratio", "agreement", "kkt_residual", "zeta_cosine"} <= shared
    for name in shared:
        np.testing.assert_array_equal(record[name], now[name])


def test_the_l2_limit_measures_a_gln_in_its_own_norm_and_is_no_kkt_point_of_it() -> None:
    samples = data(contexts)
    limit = solve_gln_l2_svm(*samples[0], tol=1e-10).require()
    now = Distances(limit, *samples)(GLN.from_zeta(limit.zeta))
    assert now["margin_ratio"] == pytest.approx(1, abs=1e-8)
    assert now["network_norm"] == pytest.approx(limit.objective, rel=1e-7)
    assert now["kkt_residual"] > 1e-2


@pytest.fixture(scope="module")
def saddle() -> Case:
    # Exclusive or on (+-2, +-1), unit h gated by the sign of coordinate h: unit 1 alone is
    # optimal, unit 0 alone is a saddle at which unit 1 is dead with a dual norm of 2.
    sample = Sample(*quadrants())
    limit = solve_gln_svm(*sample, tol=1e-11).require()
    return Case(
        limit, sample, sample, lambda: GLN.from_zeta(limit.zeta),
        lambda seed: GLN.from_zeta(quadrants_zeta(0)),
    )  # fmt: skip


def test_a_saddle_with_a_dead_unit_is_stationary_and_reported_as_not_optimal(saddle) -> None:
    at_saddle = saddle.distances()(saddle.random(0))
    assert at_saddle["kkt_residual"] < 1e-6
    assert (at_saddle["n_dead"], at_saddle["n_wrongly_dead"]) == (1, 1)
    np.testing.assert_allclose(at_saddle["dual_norms"], [1, 2], rtol=1e-9)
    alone = Distances(None, saddle.train, saddle.held_out)(saddle.random(0))
    assert at_saddle["n_wrongly_small"] == alone["n_wrongly_small"] == 1
    assert at_saddle["margin_ratio"] == pytest.approx(0.5, rel=1e-9)
    at_limit = saddle.distances()(saddle.at_limit())
    assert [at_limit[f"n_{name}"] for name in ("dead", "wrongly_dead", "wrongly_small")] == [
        1,
        0,
        0,
    ]
    for network, wrong in ((saddle.random(0), 1), (saddle.at_limit(), 0)):
        comparison = compare(saddle.limit, network, saddle.train, saddle.held_out)
        assert comparison.n_wrongly_dead == wrong


def test_a_network_that_does_not_separate_has_no_kkt_distance_and_all_the_rest(case) -> None:
    distances = case.distances()
    network = case.at_limit()
    keys = set(distances(network))
    last = list(network.parameters())[-1]
    with torch.no_grad():
        last.neg_()
    now = distances(network)
    assert set(now) == keys
    for name in ("kkt_cosine", "kkt_residual", "kkt_complementarity", "n_wrongly_dead"):
        assert math.isnan(now[name])
    assert np.isnan(now["dual_norms"]).all()
    assert now["margin_ratio"] <= 0


NETWORKS = {
    "deep-linear": lambda: (DeepLinear(D, hidden_widths=(3, 4), init_scale=0.5), None),
    "gln": lambda: (GLN(D, H, C, upper_widths=(4,), init_scale=0.5), "contexts"),
    "frelu": lambda: (FReLU(D, H, init_scale=0.5), "gates"),
    "relu": lambda: (ReLU(D, 4, init_scale=0.5), None),
    "deep relu": lambda: (DeepReLU(D, (4, 3), init_scale=0.7), None),
    "orthosep": lambda: (BalancedReLU(D, 5, init_scale=0.3), None),
}


@pytest.mark.parametrize("name", some_of(NETWORKS, one_in=3))
def test_small_steps_conserve_balancedness_and_rescaling_breaks_it(name) -> None:
    network, kind = NETWORKS[name]()
    rng = np.random.default_rng(0)
    gates = None if kind is None else rng.integers(0, 2, size=(N + 60, H))
    gates = gates.astype(float) if kind == "gates" else gates
    samples = [Sample(s.X, s.y, None if gates is None else gates[: len(s.y)]) for s in orthants()]
    drifts, before = [], None
    for rate in (1e-3, 1e-4):
        network, _ = NETWORKS[name]()
        distances = Distances(None, *samples)
        first = distances(network)
        assert first["balancedness_drift"] == 0
        before = [p.detach().clone() for p in network.parameters()]
        steps = round(0.3 / rate)
        settings = TrainingSettings(batch_size=None, schedule=((steps, rate),), n_checkpoints=2)
        train(network, *samples[0], settings=settings)
        drifts.append(distances(network)["balancedness_drift"])
    moved = [(p - q).norm() for p, q in zip(network.parameters(), before, strict=True)]
    assert max(moved) > 0.05
    # A step of size eta adds eta^2 (||grad_in||^2 - ||grad_out||^2): a run, in proportion to eta.
    assert 0 < drifts[1] < 0.2 * drifts[0] < 1e-3
    with torch.no_grad():
        layers = list(network.parameters())
        layers[0].mul_(2)
        layers[-1].div_(2)
    assert distances(network)["balancedness_drift"] > 0.1


def test_balancedness_is_the_largest_imbalance_of_a_unit_over_all_weights() -> None:
    w1 = np.array([[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]]])
    network = GLN.from_weights(w1, np.array([2.0, 3.0]))
    sample = Sample(np.eye(2), np.array([1.0, -1.0]), np.zeros((2, 2), dtype=int))
    # 25 - 4 and 1 - 9, over 25 + 4 + 1 + 9.
    assert Distances(None, sample, sample)(network)["balancedness"] == pytest.approx(21 / 39)


def test_one_layer_has_nothing_to_balance_and_given_gates_do_not_change() -> None:
    for name in ("linear", "shallow-gln"):
        case = CASES[name]()
        keys = set(case.distances()(case.at_limit()))
        assert keys.isdisjoint({"balancedness", "balancedness_drift", "gate_changes", "gate_flips"})


def test_gate_changes_count_since_the_first_and_since_the_last_call() -> None:
    train_sample, held_out = orthants()
    network = ReLU.from_weights(np.eye(D)[:2], np.array([1.0, -1.0]))
    distances = Distances(None, train_sample, held_out)
    seen = [distances(network)]
    for flips in ([0], [1], [1]):
        with torch.no_grad():
            network.layers[0][flips] *= -1
        seen.append(distances(network))
    # Each flip turns one of two units' gates on every sample.
    assert [now["gate_changes"] for now in seen] == [0, 0.5, 1, 0.5]
    assert [now["gate_flips"] for now in seen] == [0, 0.5, 0.5, 0.5]


def test_a_resumed_observer_goes_on_as_if_never_stopped() -> None:
    train_sample, held_out = orthants()
    network = ReLU(D, 4, random_state=2)
    whole = Distances(None, train_sample, held_out)
    whole(network)
    spoil(network, 0.5)
    whole(network)
    resumed = Distances(None, train_sample, held_out)
    resumed.load_state_dict(whole.state_dict())
    spoil(network, 1.0)
    a, b = whole(network), resumed(network)
    assert a["gate_changes"] > 0 and a["balancedness_drift"] > 0
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_without_a_limit_what_the_network_alone_decides_is_measured() -> None:
    case = CASES["gln"]()
    network = spoil(case.at_limit(), 0.1)
    alone, beside = Distances(None, case.train, case.held_out), case.distances()
    now, full = alone(network), beside(network)
    assert set(full) - set(now) == {
        "margin_ratio", "smooth_margin_ratio", "network_norm", "zeta_cosine", "score_cosine",
        "agreement",
    }  # fmt: skip
    for name, value in now.items():
        np.testing.assert_array_equal(value, full[name])
    with pytest.raises(ValueError, match="there is no limit to predict scores"):
        alone.predicted_scores()


def test_one_observer_serves_networks_of_any_dtype_one_after_the_other() -> None:
    case = CASES["shallow-gln"]()
    distances = case.distances()
    a = case.at_limit()
    rows = torch.arange(len(a.global_contexts)).flip(0)
    # Another network has another table, and wants the contexts prepared by its own.
    b = ShallowGLN.from_zeta(case.limit.zeta, case.limit.global_contexts)
    with torch.no_grad():
        b.weight.copy_(b.weight[rows])
        b.global_contexts.copy_(b.global_contexts[rows])
    first, second, single = distances(a), distances(b), distances(a.float())
    assert first["margin_ratio"] == pytest.approx(second["margin_ratio"], rel=1e-12)
    assert single["margin_ratio"] == pytest.approx(first["margin_ratio"], rel=1e-4)
    assert single["kkt_residual"] < 1e-3


def test_orthosep_runs_are_followed_neuron_by_neuron() -> None:
    case = CASES["orthosep"]()
    distances = OrthosepDistances(case.limit, case.train, case.held_out)
    now = distances(case.at_limit())
    assert now["mean_cosine"] == pytest.approx(1, abs=1e-9)
    assert now["smallest_cosine"] == pytest.approx(1, abs=1e-9)
    assert now["share_positive"] == now["share_negative"] == 0.5
    spoiled = distances(spoil(case.at_limit(), 0.3))
    assert spoiled["smallest_cosine"] < min(spoiled["mean_cosine"], 0.99)
    plain = case.distances()(case.at_limit())
    for name, value in plain.items():
        np.testing.assert_array_equal(now[name], value)


def test_bad_input_is_refused_before_anything_is_measured() -> None:
    case = CASES["linear"]()
    nothing = Sample(np.empty((0, D)), np.empty(0), None)
    with pytest.raises(ValueError, match="`val` has no samples"):
        Distances(case.limit, case.train, nothing)
    with pytest.raises(ValueError, match="`loss` must be one of"):
        Distances(case.limit, case.train, case.held_out, loss="hinge")


@pytest.mark.parametrize("name", CASES)
def test_a_fit_on_few_candidates_grows_into_the_fit_on_all(name, monkeypatch) -> None:
    case = CASES[name]()
    network = spoil(case.at_limit(), 0.05)
    whole = kkt_distance(network, *case.train)
    monkeypatch.setattr(home(kkt_distance), "_N_CANDIDATES", 2)
    grown = kkt_distance(network, *case.train)
    assert (whole.multipliers > 0).sum() > 4
    np.testing.assert_allclose(grown.multipliers, whole.multipliers, rtol=1e-6, atol=1e-9)
    assert grown.residual == pytest.approx(whole.residual, rel=1e-6)


def test_the_fit_can_be_left_out_and_the_direction_kept(case) -> None:
    network = spoil(case.at_limit(), 0.1)
    full = case.distances()(network)
    light = Distances(case.limit, case.train, case.held_out, kkt=False, direction=True)(network)
    assert set(light) == set(full) | {"direction"}
    assert math.isnan(light["kkt_residual"])
    assert light["margin_ratio"] == full["margin_ratio"]
    zeta = network.zeta().detach().numpy().ravel()
    np.testing.assert_allclose(light["direction"] * np.linalg.norm(zeta), zeta, atol=1e-12)
