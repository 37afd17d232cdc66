"""Leaky units: their gates hold the slope, in networks, limits, machines and runs."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.equivalence import ReLUWeights, canonical_form, measure_distance
from implicit_bias.gates import HyperplaneGates, NetworkGates, ReLUGates, gate_changes
from implicit_bias.limits import relu_local_limit, relu_lower_bound
from implicit_bias.models.relu import view_relu
from implicit_bias.networks import BalancedReLU, DeepReLU
from tests.commands import cut, results, run, typed

SLOPE = 0.2
SMALL = {"n_train": 40, "n_val": 60, "hidden_units": 6, "steps": 40}


def sample(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 8)), np.sign(rng.normal(size=n))


def network(slope: float = SLOPE, seed: int = 0) -> ib.ReLU:
    return ib.ReLU(8, 12, slope=slope, init_scale=0.3, random_state=seed)


def leaky(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0) + SLOPE * np.minimum(z, 0)


@pytest.fixture(scope="module")
def trained() -> ib.ReLU:
    X, y = sample()
    found = network()
    settings = ib.TrainingSettings(trainer="smoothed", schedule=((500, None),))
    ib.train(found, X, y, settings=settings)
    return found


# Networks and gates


def test_a_closed_unit_passes_its_slope_on() -> None:
    X, _ = sample()
    deep = DeepReLU(8, (5, 3), slope=SLOPE, random_state=1)
    first, second, last = (W.detach().numpy() for W in deep.layers)
    below = X @ first.T
    above = leaky(below) @ second.T
    with torch.no_grad():
        scores = deep(torch.tensor(X)).numpy()
    np.testing.assert_allclose(scores, leaky(above) @ last[0], rtol=1e-12)
    np.testing.assert_allclose(deep.features(X).detach(), leaky(above), rtol=1e-12)
    both = np.hstack([below, above])
    np.testing.assert_array_equal(deep.gates(X), np.where(both >= 0, 1, SLOPE))
    # The kink of an open unit has slope 1, as its gate says.
    at_kink = ib.ReLU.from_weights([[1.0]], [1.0], slope=SLOPE)
    x = torch.zeros((1, 1), dtype=torch.float64, requires_grad=True)
    at_kink(x).backward()
    assert x.grad.item() == 1.0


def test_a_network_is_its_copy_with_frozen_gates_and_both_have_the_units_of_pytorch() -> None:
    X, _ = sample()
    one = network()
    gates = ReLUGates.from_network(one).transform(X)
    np.testing.assert_array_equal(gates, one.gates(X))
    inputs = torch.tensor(X)
    frozen = one.freeze_gates()
    torch.testing.assert_close(frozen(inputs, frozen.prepare(gates)), one(inputs))
    units = inputs @ one.w1.T
    expected = torch.nn.functional.leaky_relu(units, SLOPE) @ one.head()
    torch.testing.assert_close(one(inputs), expected)
    balanced = BalancedReLU.from_weights(one.w1, one.head(), slope=SLOPE)
    torch.testing.assert_close(balanced(inputs), expected)


@pytest.mark.parametrize(
    "gating", [HyperplaneGates(3, slope=SLOPE), ReLUGates(np.eye(8), slope=SLOPE)]
)
def test_gates_keep_their_slope_in_files_and_older_files_have_none(gating, tmp_path) -> None:
    X, _ = sample()
    gating.fit(X)
    found = gating.transform(X)
    assert set(np.unique(found)) == {SLOPE, 1.0}
    gating.save(tmp_path / "gates")
    np.testing.assert_array_equal(type(gating).load(tmp_path / "gates").transform(X), found)
    older = {name: array for name, array in gating.to_arrays().items() if name != "slope"}
    np.testing.assert_array_equal(type(gating).from_arrays(older).transform(X), found == 1)


def test_gates_that_change_are_counted_whatever_they_let_through() -> None:
    before, after = np.array([[SLOPE, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [SLOPE, 1.0]])
    assert gate_changes(before, after).tolist() == [1.0, 0.0]


def test_weights_are_read_with_their_slope_and_needless_units_are_those_of_leaky_ones() -> None:
    X, _ = sample()
    one = network()
    weights = ib.equivalence.canonical_form(one).weights
    assert weights.slope == SLOPE
    with torch.no_grad():
        np.testing.assert_allclose(weights.scores(X)[:, 0], one(torch.tensor(X)), rtol=1e-9)
    # A unit of negative weights on positive ones below is dead, unless it leaks.
    matrices = [np.eye(2), [[-1.0, -2.0], [1.0, 0.5]], [[1.0, 1.0]]]
    biases = [np.zeros(2), [-1.0, 0.0], [0.0]]
    for slope, n_dead in ((0.0, 1), (SLOPE, 0)):
        given = ReLUWeights.from_arrays(matrices, biases, slope=slope)
        form = canonical_form(given)
        assert form.n_dead == n_dead
        np.testing.assert_allclose(
            form.weights.scores(X[:, :2]), given.scores(X[:, :2]), atol=1e-12
        )
    # One without weights is a constant, of a negative bias too.
    given = ReLUWeights.from_arrays(
        [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 3.0]]], [[0.0, -2.0], [0.0]], slope=SLOPE
    )
    form = canonical_form(given)
    assert form.n_constant == 1
    np.testing.assert_allclose(form.weights.scores(X[:, :2]), given.scores(X[:, :2]), atol=1e-12)


# Limits


def test_the_group_lasso_on_leaky_gates_is_that_of_cvxpy() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8)), np.sign(rng.normal(size=30))
    for slope, optimum in ((0.0, 3.739), (0.1, 4.902), (0.5, 9.928)):
        W, _ = rng.normal(size=(16, 8)), rng.normal(size=16)
        gates = np.where(X @ W.T > 0, 1.0, slope)
        limit = ib.solve_frelu_svm(X, y, gates)
        assert limit.objective == pytest.approx(optimum, abs=6e-4) and limit.gap <= 1e-8
        zeta = cp.Variable((16, 8))
        margins = cp.multiply(y, cp.sum(cp.multiply(gates, X @ zeta.T), axis=1))
        norm = cp.sum(cp.norm(zeta, 2, axis=1))
        stated = cp.Problem(cp.Minimize(norm), [margins >= 1]).solve(solver="CLARABEL")
        assert limit.objective == pytest.approx(float(stated), rel=1e-6)
        np.testing.assert_allclose(limit.predictor(X, gates), limit.margins * y, atol=1e-9)


@pytest.mark.long
def test_the_network_of_a_leaky_limit_is_the_limit(trained) -> None:
    X, y = sample()
    limit = relu_local_limit(trained, X, y)
    assert limit.slope == SLOPE and limit.gap < 1e-8
    # The smoothed trainer goes there, by gradients alone.
    assert 0 <= limit.start_value / limit.value - 1 < 0.05
    found = limit.network
    assert isinstance(found, ib.ReLU) and found.slope == SLOPE and limit.covers(found)
    with torch.no_grad():
        np.testing.assert_allclose(found(torch.tensor(X)), limit.predictor(X), rtol=1e-9)
        half_norm = sum(float((p**2).sum()) for p in found.parameters()) / 2
    assert half_norm == pytest.approx(limit.value, rel=1e-9)
    assert relu_local_limit(found, X, y).value == pytest.approx(limit.value, rel=1e-8)
    bound = relu_lower_bound(limit.multipliers, X, y, slope=SLOPE)
    assert bound <= limit.value * (1 + 1e-9)


def test_networks_of_other_slopes_are_neither_compared_nor_trained_together() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="units of one slope"):
        measure_distance(network(), network(0.0))
    with pytest.raises(ValueError, match="units of one slope"):
        ib.train_many([network(), network(0.1)], X, y)
    with pytest.raises(ValueError, match="has leaky units, of slope"):
        NetworkGates(network()).fit(X)
    with pytest.raises(ValueError, match="the lemmas are about ReLUs"):
        ib.equivalence.check_general(ReLUWeights.from_arrays([np.eye(2), [[1, 1]]], slope=SLOPE))


def test_leaky_networks_trained_together_take_the_steps_of_each() -> None:
    X, y = sample()
    settings = ib.TrainingSettings(trainer="smoothed", schedule=((40, None),))
    together, alone = ([network(seed=seed) for seed in range(2)] for _ in range(2))
    ib.train_many(together, X, y, settings=settings)
    for one, other in zip(together, alone, strict=True):
        ib.train(other, X, y, settings=settings)
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


# Runs


@pytest.fixture(scope="module")
def whole() -> ib.Report:
    return ib.run("relu", slope=SLOPE, **SMALL)


@pytest.mark.long
def test_a_run_has_leaky_machines_a_leaky_local_limit_and_a_leaky_copy(whole) -> None:
    report = whole
    network, limit = report.network, report.objects["local_limit"]
    assert network.slope == limit.slope == SLOPE
    data = ib.load_digits(n_train=40, n_val=60, random_state=report.results["seeds"]["data"])
    X, y = data.X_train, data.y_train
    assert relu_local_limit(network, X, y).value == pytest.approx(limit.value, rel=1e-9)
    lc = ib.solve_frelu_svm(X, y, network.gates(X))
    assert report.objects["limit"]["lc"].objective == pytest.approx(lc.objective, rel=1e-7)
    copy = report.objects["frozen"]
    assert copy.gating.slope == SLOPE
    frozen = ib.solve_frelu_svm(X, y, copy.gating.transform(X))
    assert report.objects["frozen_limit"].objective == pytest.approx(frozen.objective, rel=1e-7)
    half = report.results["local_limit"]["comparison"]
    assert 20 <= half["half_step"] < 40
    assert half["half_value"] == pytest.approx(limit.value, rel=0.1)
    # Gates alone are open or closed.
    machines = view_relu(network, X, y, copy.gating).machines()
    np.testing.assert_array_equal(machines["gates_only"][1], network.gates(X).numpy() == 1)
    np.testing.assert_array_equal(machines["lc"][2], network.gates(X).numpy())
    gates = HyperplaneGates(6, slope=SLOPE, random_state=report.results["seeds"]["gating"])
    rc = ib.solve_frelu_svm(X, y, gates.fit(X).transform(X))
    assert report.objects["limit"]["rc"].objective == pytest.approx(rc.objective, rel=1e-7)
    assert "leaky ReLU network (slope 0.2)" in " ".join(report.first_screen().split())


def test_neurons_of_the_frozen_copy_carry_the_slope(whole) -> None:
    copy, limit = whole.objects["frozen"], whole.objects["frozen_limit"]
    neurons = whole.objects["frozen_neurons"]
    assert neurons.weights.slope == SLOPE
    live, (zeta, roots) = limit.live, limit.balanced_weights()
    head = copy.network.head().detach().numpy()
    signs = np.where(head[live] < 0, -1.0, 1.0)
    own = ReLUWeights.from_arrays(
        [signs[:, None] * zeta[live], (signs * roots[live])[None]], slope=SLOPE
    )
    for found, expected in zip(neurons.weights.matrices, own.matrices, strict=True):
        np.testing.assert_allclose(found, expected)
    trained = ReLUWeights.from_arrays([copy.network.w1.detach().numpy(), head[None]], slope=SLOPE)
    # Weights of one slope alone are compared, so that the copy's carry it too.
    assert neurons.neuron_distance == pytest.approx(measure_distance(trained, own).distance)
    with pytest.raises(ValueError, match="one slope"):
        measure_distance(trained, ReLUWeights.from_arrays(own.matrices))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("frelu", "frozen-gate leaky ReLU network (slope 0.2) of 3 units"),
        ("orthosep", "two-layer leaky (slope 0.2) ReLU network"),
    ],
)
def test_titles_of_first_screens_name_the_slope(model, words) -> None:
    small = {"hidden_units": 3, "n_train": 30, "n_val": 30, "steps": 0}
    for slope in (0.2, 0.0):
        screen = " ".join(ib.run(model, slope=slope, **small).first_screen().split())
        assert (words in screen) == (slope > 0), screen
        assert ("leaky" in screen) == (slope > 0), screen


def test_gates_of_leaky_units_may_be_given() -> None:
    data = ib.load_digits(n_train=40, n_val=60, random_state=0)
    X, y = data.X_train, data.y_train
    given = {"X": X, "y": y, "X_val": data.X_val, "y_val": data.y_val, "steps": 0}
    gating = HyperplaneGates(6, slope=SLOPE, random_state=3)
    report = ib.run("frelu", gating=gating, **given)
    assert report.results["options"]["slope"] == SLOPE
    limit = ib.solve_frelu_svm(X, y, gating.fit(X).transform(X))
    assert report.limit.objective == pytest.approx(limit.objective, rel=1e-8)
    with pytest.raises(ValueError, match="`slope`"):
        ib.run("frelu", gating=gating, slope=0.5, **given)
    with pytest.raises(ValueError, match="gln must give whole numbers"):
        ib.run("gln", gating=gating, **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model relu --depth 3 --freeze-at 2 --slope 0.1", "`--freeze-at` needs `--slope 0`"),
        ("--model orthosep --network residual --slope 0.1", "is for `--network two-layer`"),
        ("--model relu --slope 1", "1.0 is not below 1"),
        ("--model frelu --slope -0.1", "-0.1 is below 0"),
    ],
)
def test_what_has_no_leaky_units_is_refused_before_work(arguments, message) -> None:
    result = run(*arguments.split())
    assert result.exit_code != 0 and message in " ".join(result.output.split())


@pytest.mark.long
def test_an_interrupted_leaky_run_goes_on_as_if_it_had_not_stopped(
    whole, tmp_path, monkeypatch
) -> None:
    call = ["--model", "relu", *typed({**SMALL, "slope": SLOPE})]
    saved = (*call, "--save", tmp_path)
    cut(monkeypatch, saved, "training a leaky", at=0.7)
    record = results(*saved, "--resume")
    assert record["local_limit"]["slope"] == SLOPE
    found = ib.load(tmp_path).row()
    # The optimum at half the steps is that of weights from the file.
    for name in ("local_value", "local_ratio", "frozen_margin_ratio"):
        assert found[name] == pytest.approx(whole.row()[name], rel=1e-9)
    assert record["local_limit"]["comparison"]["half_value"] == pytest.approx(
        whole.results["local_limit"]["comparison"]["half_value"], rel=1e-9
    )
