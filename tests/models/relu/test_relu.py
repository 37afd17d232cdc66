"""ReLU networks, the four machines that stand in for them, and freezing their gates."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import (
    FReLU,
    HyperplaneGates,
    ReLU,
    Sample,
    Status,
    TrainingSettings,
    compare,
    kkt_distance,
    load_digits,
    solve_frelu_svm,
    train,
)
from implicit_bias.gates import ReLUGates
from implicit_bias.models.relu import (
    ReLUView,
    compare_frozen,
    compare_relu,
    solve_relu_svms,
    train_then_freeze,
    view_relu,
)
from implicit_bias.networks import DeepReLU
from tests.oracles import hard_margin

Array = NDArray[np.float64]
WIDTHS = [(4,), (4, 3), (5, 2, 6)]


def random_problem(n: int = 30, D: int = 5, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), np.sign(rng.normal(size=n))


def orthant_data(n: int = 24, D: int = 6, seed: int = 0) -> tuple[Array, Array]:
    """Positive samples in the first orthant, negative ones in the opposite one."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, -1.0, 1.0)
    return y[:, None] * rng.uniform(0.1, 2.0, size=(n, D)), y


def normalised(*schedule: tuple[int, float]) -> TrainingSettings:
    return TrainingSettings(
        batch_size=None, trainer="normalised", schedule=schedule, n_checkpoints=10
    )


# To the end of training: large steps to gain margin, small ones to settle.
FAR = normalised((3000, 0.02), (3000, 0.005), (3000, 0.001))
# To data separated, no further.
SHORT = TrainingSettings(batch_size=None, schedule=((2500, 0.1),), n_checkpoints=10)


@pytest.mark.parametrize("widths", WIDTHS)
def test_the_network_is_the_composition_of_its_layers(widths) -> None:
    X, _ = random_problem(n=7)
    network = DeepReLU(5, widths, random_state=3)
    hidden, opened = X, []
    for W in [layer.detach().numpy() for layer in network.layers][:-1]:
        hidden = hidden @ W.T
        opened.append(hidden >= 0)  # a layer that gets zeros is open
        hidden = np.maximum(hidden, 0)
    expected = hidden @ network.layers[-1].detach().numpy()[0]
    np.testing.assert_allclose(network(torch.tensor(X)).detach(), expected, rtol=1e-12)
    np.testing.assert_allclose(network.features(X), hidden, rtol=1e-12)
    np.testing.assert_array_equal(network.gates(X), np.hstack(opened))
    assert network.degree == len(widths) + 1
    with torch.no_grad():
        for layer in network.layers:
            layer.mul_(0.5)
    scaled = network(torch.tensor(X)).detach()
    np.testing.assert_allclose(scaled, 0.5**network.degree * expected, rtol=1e-12)
    np.testing.assert_array_equal(network.gates(X), np.hstack(opened))


def test_two_layers_are_the_two_layer_network() -> None:
    X = torch.tensor(random_problem()[0])
    deep, shallow = DeepReLU(5, (4,), random_state=1), ReLU(5, 4, random_state=1)
    torch.testing.assert_close(deep(X), shallow(X))


def test_a_network_from_weights_has_them() -> None:
    w1, w2 = np.array([[1.0, 2.0], [-1.0, 0.0]]), np.array([3.0, -5.0])
    X = torch.tensor([[1.0, 1.0], [-2.0, 0.5]]).double()
    # 3 relu(x_1 + 2 x_2) - 5 relu(-x_1)
    assert ReLU.from_weights(w1, w2)(X).tolist() == [9.0, -10.0]
    assert ReLU.from_weights(w1, w2[None])(X).tolist() == [9.0, -10.0]


def test_gates_of_float64_data_are_not_rounded_to_float32_weights() -> None:
    network = ReLU.from_weights(torch.tensor([[1.0, -1.0]]), torch.tensor([1.0]))
    X = np.array([[1.0, 1.0 + 1e-12], [1.0 + 1e-12, 1.0]])
    assert network.gates(X).tolist() == [[False], [True]]
    assert np.array_equal(ReLUGates.from_network(network).transform(X), network.gates(X))


def test_there_is_no_bias_but_the_constant_column() -> None:
    for widths in WIDTHS:
        network = DeepReLU(5, widths)
        shapes = [tuple(p.shape) for p in network.parameters()]
        assert shapes == list(zip((*widths, 1), (5, *widths), strict=True))
        assert torch.all(network(torch.zeros(3, 5).double()) == 0)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("widths", WIDTHS)
def test_steps_equal_those_of_torch_sgd_on_torch_layers(widths, momentum) -> None:
    X, y = random_problem()
    network = DeepReLU(5, widths, random_state=2)
    theirs = torch.nn.Sequential()
    for W in network.layers:
        layer = torch.nn.Linear(W.shape[1], W.shape[0], bias=False, dtype=torch.float64)
        layer.weight.data.copy_(W)
        theirs.extend([layer, torch.nn.ReLU()])
    theirs = theirs[:-1]
    optimiser = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=momentum)
    for _ in range(8):
        optimiser.zero_grad()
        margins = torch.tensor(y) * theirs(torch.tensor(X))[:, 0]
        torch.nn.functional.softplus(-margins).mean().backward()
        optimiser.step()
    settings = TrainingSettings(batch_size=None, schedule=((8, 0.1),), momentum=momentum)
    train(network, X, y, None, settings=settings)
    for a, b in zip(network.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frozen_gates_leave_the_function_on_the_data_and_the_network_alone(dtype) -> None:
    X = torch.tensor(random_problem()[0], dtype=dtype)
    network = ReLU(5, 8, random_state=1, dtype=dtype)
    frozen = network.freeze_gates()
    gates = frozen.prepare(network.gates(X))
    assert 0.2 < float(gates.mean()) < 0.8
    torch.testing.assert_close(frozen(X, gates), network(X))
    by_gating = frozen.prepare(ReLUGates.from_network(network).transform(X.numpy()))
    torch.testing.assert_close(by_gating, gates)
    torch.testing.assert_close(frozen.zeta(), network.zeta())
    torch.testing.assert_close(frozen.unit_norms(), network.unit_norms())
    before = network(X).detach().clone()
    with torch.no_grad():
        frozen.w1.neg_()
    torch.testing.assert_close(network(X).detach(), before)
    # Other gates, another function: a copy is not a ReLU network.
    torch.testing.assert_close(frozen(X, gates), -network(X))


def separating_network(X: Array, y: Array, dtype=torch.float64) -> ReLU:
    network = ReLU(X.shape[1], 12, random_state=4, dtype=dtype)
    trajectory = train(network, X, y, None, settings=normalised((2000, 0.01)))
    assert trajectory.smallest_margin[-1] > 0
    return network


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kkt_distance_with_current_gates_is_that_of_the_frozen_network(dtype) -> None:
    X, y = random_problem()
    network = separating_network(X, y, dtype)
    own = kkt_distance(network, X, y, None)
    frozen = kkt_distance(network.freeze_gates(), X, y, network.gates(X))
    assert own.residual == pytest.approx(frozen.residual, rel=1e-6)
    assert own.cosine == pytest.approx(frozen.cosine, rel=1e-9)
    np.testing.assert_allclose(own.multipliers, frozen.multipliers, atol=1e-6)
    np.testing.assert_allclose(own.dual_norms, frozen.dual_norms, rtol=1e-6)
    assert own.residual < 0.5  # it has been trained far


def test_kkt_distance_and_compare_take_a_deep_network() -> None:
    X, y = random_problem(n=10)
    network = DeepReLU(5, (12, 8), random_state=4)
    trajectory = train(network, X, y, None, settings=SHORT)
    assert trajectory.smallest_margin[-1] > 0
    assert np.all(np.isnan(trajectory.normalised_margin))
    distance = kkt_distance(network, X, y, None)
    assert distance.dual_norms is None
    assert 0 < distance.residual < 0.7


def learned_patterns(X: Array, y: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    directions = [hard_margin(X[y == 1]), hard_margin(X[y == -1])]
    w_plus, w_minus = directions
    return w_plus, w_minus, np.stack([X @ w >= 0 for w in directions], axis=1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_on_orthogonally_separable_data_the_limit_of_the_learned_gates_is_that_of_two_svms(
    seed,
) -> None:
    X, y = orthant_data(seed=seed)
    assert np.all(X @ X.T * np.outer(y, y) > 0)  # the assumption
    w_plus, w_minus, gates = learned_patterns(X, y)
    assert np.array_equal(gates, np.stack([y == 1, y == -1], axis=1))
    limit = solve_frelu_svm(X, y, gates, tol=1e-10).require()
    expected = np.linalg.norm(w_plus) + np.linalg.norm(w_minus)
    assert limit.objective == pytest.approx(expected, rel=1e-8)
    assert limit.dual_objective == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(limit.zeta, [w_plus, -w_minus], atol=1e-4)


@pytest.mark.long
def test_a_relu_network_trained_from_small_weights_comes_to_that_limit() -> None:
    X, y = orthant_data(n=9, D=4)
    w_plus, w_minus, _ = learned_patterns(X, y)
    network = ReLU(4, 8, init="balanced", init_scale=0.05, random_state=0)
    seen: list[Array] = []
    trajectory = train(
        network, X, y, None, settings=FAR, callback=lambda *_: seen.append(network.gates(X).numpy())
    )
    assert trajectory.log_loss[-1] < -20
    alive = (network.unit_norms() > 1e-3 * network.unit_norms().max()).numpy()
    gates = network.gates(X).numpy()[:, alive]
    # Units that are left know the classes: (1, 0) or (0, 1) on (positive, negative) samples.
    patterns = {tuple(gates[:, h]) for h in range(gates.shape[1])}
    assert patterns == {tuple(y == 1), tuple(y == -1)}
    optimum = float(np.linalg.norm(w_plus) + np.linalg.norm(w_minus))
    ratio = float(trajectory.normalised_margin[-1]) * optimum
    assert 0.99 < ratio < 1 + 1e-8
    assert np.mean(seen[0] != seen[-1]) > 0.1
    assert all(np.array_equal(gates, seen[-1]) for gates in seen[-20:])
    assert solve_frelu_svm(X, y, gates).objective == pytest.approx(optimum, rel=1e-7)


def split_view(network: ReLU, gating, X: Array, y: Array, n: int) -> tuple[ReLUView, ReLUView]:
    return (view_relu(network, X[:n], y[:n], gating), view_relu(network, X[n:], y[n:], gating))


def teacher_problem() -> tuple[ReLU, ReLUView, ReLUView]:
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(140, 4)), np.ones((140, 1))])
    y = np.where(np.abs(X[:, 0]) + 0.5 * X[:, 1] > 0.6, 1.0, -1.0)
    network = ReLU(5, 30, random_state=1)
    trajectory = train(network, X[:40], y[:40], None, settings=SHORT)
    assert trajectory.smallest_margin[-1] > 0
    gating = HyperplaneGates(12, random_state=2).fit(X[:40])
    return network, *split_view(network, gating, X, y, 40)


def test_the_four_machines_are_what_section_5_2_says_each_is() -> None:
    network, view, held_out = teacher_problem()
    limits = solve_relu_svms(view)
    for name in ("rc", "lc", "hl", "gates_only"):
        getattr(limits, name).require()
    scores = limits.scores(held_out)
    features = np.maximum(view.X @ network.w1.detach().numpy().T, 0)
    w = hard_margin(view.y[:, None] * features)
    new = np.maximum(held_out.X @ network.w1.detach().numpy().T, 0)
    np.testing.assert_allclose(scores["hl"], new @ w, atol=1e-3)
    assert limits.hl.objective == pytest.approx(np.linalg.norm(w), rel=1e-7)
    pattern = (view.X @ network.w1.detach().numpy().T >= 0).astype(float)
    w = hard_margin(view.y[:, None] * pattern)
    assert limits.gates_only.objective == pytest.approx(np.linalg.norm(w), rel=1e-7)
    new = (held_out.X @ network.w1.detach().numpy().T >= 0).astype(float)
    np.testing.assert_allclose(scores["gates_only"], new @ w, atol=1e-3)
    expected = solve_frelu_svm(view.X, view.y, pattern)
    assert limits.lc.objective == pytest.approx(expected.objective, rel=1e-7)
    assert view.random_gates.shape == (40, 13)
    assert np.all(view.random_gates[:, -1] == 1)
    expected = solve_frelu_svm(view.X, view.y, view.random_gates)
    assert limits.rc.objective == pytest.approx(expected.objective, rel=1e-7)
    np.testing.assert_allclose(
        scores["rc"], expected.predictor(held_out.X, held_out.random_gates), atol=1e-5
    )


@pytest.mark.long
def test_comparison_measures_errors_agreement_and_margins_on_the_given_data() -> None:
    network, view, held_out = teacher_problem()
    limits = solve_relu_svms(view)
    found = compare_relu(limits, network, view, held_out)
    trained = network(torch.tensor(held_out.X)).detach().numpy()
    error = np.mean(np.sign(trained) != held_out.y)
    assert found.error_network == pytest.approx(error)
    for name, scores in limits.scores(held_out).items():
        machine = getattr(found, name)
        p = np.mean(np.sign(scores) != held_out.y)
        assert machine.error == pytest.approx(p)
        assert machine.agreement == pytest.approx(np.mean(scores * trained > 0))
        assert machine.agreement_independent == pytest.approx(p * error + (1 - p) * (1 - error))
        cosine = scores @ trained / np.linalg.norm(scores) / np.linalg.norm(trained)
        assert machine.score_cosine == pytest.approx(cosine)
        assert machine.status == "SOLVED"
        assert machine.optimum == getattr(limits, name).objective
    smallest = (network(torch.tensor(view.X)).detach().numpy() * view.y).min()
    ratio = smallest / float(network.unit_norms().detach().sum()) * limits.lc.dual_objective
    assert found.lc.margin_ratio == pytest.approx(ratio)
    assert 0.1 < ratio <= 1
    ratio = smallest / float(network.head().detach().norm()) * limits.hl.dual_objective
    assert found.hl.margin_ratio == pytest.approx(ratio)
    assert 0.1 < ratio <= 1
    assert math.isnan(found.rc.margin_ratio)
    assert math.isnan(found.gates_only.margin_ratio)


@pytest.mark.long
def test_the_hidden_layer_svm_at_the_end_of_training_the_last_layer_alone() -> None:
    X, y = random_problem(n=12)
    network = ReLU(5, 30, random_state=1)
    network.layers[0].requires_grad_(False)
    settings = normalised((4000, 5.0), (2000, 1.0))
    train(network, X, y, None, settings=settings)
    view = view_relu(network, X, y, HyperplaneGates(3).fit(X))
    found = compare_relu(solve_relu_svms(view), network, view, view)
    assert 0.99 < found.hl.margin_ratio <= 1 + 1e-8


def test_machines_that_cannot_separate_say_so_in_every_form_of_the_result() -> None:
    # Two units and two samples of opposite labels in one linear region: same gate pattern, and
    # activations (1, 1) and (2, 2), which no vector without intercept tells apart.
    network = ReLU.from_weights(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([2.0, -1.0]))
    X, y = np.array([[1.0, 1.0], [2.0, -1.0]]), np.array([1.0, -1.0])
    gating = HyperplaneGates(1, random_state=0).fit(X)
    view = view_relu(network, X, y, gating)
    limits = solve_relu_svms(view)
    for limit, features in ((limits.hl, view.features), (limits.gates_only, view.learned_gates)):
        assert limit.status is Status.NOT_SEPARABLE
        assert np.all(limit.dual >= 0)
        assert np.linalg.norm((limit.dual * y) @ features) < 1e-12  # the proof
    assert limits.lc.status is limits.rc.status is Status.SOLVED
    assert set(limits.scores(view)) == {"rc", "lc"}
    found = compare_relu(limits, network, view, view)
    assert (found.hl.status, found.gates_only.status) == ("NOT_SEPARABLE",) * 2
    for machine in (found.hl, found.gates_only):
        numbers = (machine.error, machine.agreement, machine.score_cosine, machine.margin_ratio)
        assert all(math.isnan(number) for number in (*numbers, machine.agreement_independent))
        assert math.isinf(machine.optimum)
        assert machine.n_support == 0
    table = {row[0]: row[1:] for row in found.rows()}
    assert table[""] == ("SVM-RC", "SVM-LC", "SVM-HL", "gates-only")
    assert table["status"] == ("SOLVED", "SOLVED", "NOT_SEPARABLE", "NOT_SEPARABLE")
    assert table["held-out error"] == ("0.00%", "0.00%", "-", "-")
    assert table["agreement on held-out labels (ideal 100%)"][2:] == ("-", "-")
    assert len({len(row) for row in found.rows()}) == 1
    assert "NOT_SEPARABLE" in str(found)
    record = json.loads(json.dumps(found.to_dict()))
    assert record["gates_only"]["status"] == "NOT_SEPARABLE"
    frame = found.to_frame()
    assert frame["machine"].tolist() == list(table[""])
    assert frame["error"].isna().tolist() == [False, False, True, True]
    assert frame["error_network"].tolist() == [found.error_network] * 4


def test_views_refuse_parts_that_do_not_belong_together() -> None:
    network, view, _ = teacher_problem()
    fields = {name: getattr(view, name) for name in view.__dataclass_fields__}
    with pytest.raises(ValueError, match=r"`features` must have shape \(40, K\)"):
        ReLUView(**fields | {"features": view.features[:-1]})
    with pytest.raises(ValueError, match=r"`y` must have shape \(40,\)"):
        ReLUView(**fields | {"y": view.y[:, None]})
    with pytest.raises(ValueError, match="read-only"):
        view.features[0, 0] = 1.0
    empty = ReLUView(**{name: array[:0] for name, array in fields.items()})
    with pytest.raises(ValueError, match="`held_out` has no samples"):
        compare_relu(solve_relu_svms(view), network, view, empty)


def test_the_machines_take_a_deep_network() -> None:
    X, y = random_problem(n=20)
    network = DeepReLU(5, (12, 9), random_state=4)
    train(network, X, y, None, settings=SHORT)
    view = view_relu(network, X, y, HyperplaneGates(4).fit(X))
    assert view.learned_gates.shape == (20, 21)
    assert view.features.shape == (20, 9)
    found = compare_relu(solve_relu_svms(view), network, view, view)
    assert math.isnan(found.lc.margin_ratio)  # no norm of zeta beyond one hidden layer
    assert 0 < found.hl.margin_ratio <= 1
    assert (found.lc.verdict, found.hl.verdict) == ("NOT THIS LIMIT", "BOUND")


STAGES = TrainingSettings(
    batch_size=8, schedule=((6, 0.1), (10, 0.02)), momentum=0.9, n_checkpoints=5, random_state=3
)


@pytest.mark.parametrize("freeze_at", [0, 4, 6, 11, 16])
@pytest.mark.parametrize("one_stream", [True, False])
def test_training_freezes_once_and_follows_the_schedule_through_it(freeze_at, one_stream) -> None:
    X, y = random_problem()
    settings = replace(STAGES, random_state=np.random.default_rng(3)) if one_stream else STAGES
    network, by_hand = (ReLU(5, 6, random_state=2) for _ in range(2))
    seen: list[tuple[int, int]] = []
    result = train_then_freeze(
        network, X, y, freeze_at=freeze_at, settings=settings, X_val=X[:7],
        callback=lambda step, n_steps, _: seen.append((step, n_steps)),
    )  # fmt: skip
    # By hand: the rate of every step, a generator given or a seed each, gates of the freeze.
    rates = [0.1] * 6 + [0.02] * 10
    rng = np.random.default_rng(3)

    def part(steps: list[float]) -> TrainingSettings:
        return TrainingSettings(
            batch_size=8, schedule=tuple((1, r) for r in steps), momentum=0.9, random_state=rng
        )

    if freeze_at > 0:
        train(by_hand, X, y, None, settings=part(rates[:freeze_at]))
    gates, frozen = by_hand.gates(X), by_hand.freeze_gates()
    if not one_stream:
        rng = np.random.default_rng(np.random.SeedSequence(3).spawn(1)[0].generate_state(1)[0])
    if freeze_at < 16:
        train(frozen, X, y, gates, settings=part(rates[freeze_at:]))
    torch.testing.assert_close(network.w1, by_hand.w1)
    torch.testing.assert_close(result.network.w1, frozen.w1)
    torch.testing.assert_close(result.network.head(), frozen.head())
    assert np.array_equal(result.gating.transform(X), gates.numpy())
    assert (result.before is None) == (freeze_at == 0)
    assert (result.after is None) == (freeze_at == 16)
    if result.before is not None and result.after is not None:
        # The function does not jump at the freeze.
        assert result.after.log_loss[0] == pytest.approx(result.before.log_loss[-1], rel=1e-12)
        np.testing.assert_allclose(result.after.scores[0], result.before.scores[-1])
        assert result.before.step[-1] == freeze_at
        assert result.after.step[-1] == 16 - freeze_at
        assert not torch.equal(result.network.w1, network.w1)
    assert seen[0] == (0, 16)
    assert seen[-1] == (16, 16)
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)


def test_freezing_out_of_range_is_refused() -> None:
    for freeze_at in (-1, 17):
        with pytest.raises(ValueError, match=r"`freeze_at` must lie in 0 \.\. 16"):
            train_then_freeze(ReLU(5, 6), *random_problem(), freeze_at=freeze_at, settings=STAGES)


def test_an_interrupt_before_the_freeze_keeps_what_is_finished() -> None:
    def interrupt(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 5:
            raise KeyboardInterrupt

    network = ReLU(5, 6)
    result = train_then_freeze(
        network, *random_problem(), freeze_at=10, settings=STAGES, callback=interrupt
    )
    assert result.before is not None
    assert not result.before.finished
    assert result.after is None
    torch.testing.assert_close(result.network.w1, network.w1)


@pytest.mark.parametrize("stop_at", [4, 13])
def test_a_partly_trained_network_that_is_resumed_ends_like_one_that_never_stopped(
    stop_at, tmp_path
) -> None:
    def interrupt(step: int, n_steps: int, log_loss: float) -> None:
        if step >= stop_at:
            raise KeyboardInterrupt

    X, y = random_problem()
    states = tmp_path / "before", tmp_path / "after"
    how = {"freeze_at": 10, "settings": STAGES}
    whole = train_then_freeze(ReLU(5, 6), X, y, **how)
    cut = train_then_freeze(ReLU(5, 6), X, y, **how, callback=interrupt, states=states)
    assert not (cut.after or cut.before).finished
    resumed = train_then_freeze(ReLU(5, 6), X, y, **how, states=states, resume=True)
    for a, b in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(a, b)
    for a, b in ((whole.before, resumed.before), (whole.after, resumed.after)):
        np.testing.assert_array_equal(a.log_loss, b.log_loss)
        assert b.finished
    with pytest.raises(ValueError, match="`resume` needs `states`"):
        train_then_freeze(ReLU(5, 6), X, y, **how, resume=True)


@pytest.mark.long
def test_a_partly_trained_network_comes_to_the_limit_of_the_gates_it_froze() -> None:
    X, y = random_problem(n=8, D=4, seed=3)
    network = ReLU(4, 6, init="balanced", random_state=0)
    result = train_then_freeze(network, X, y, freeze_at=20, settings=FAR)
    gates = result.gating.transform(X)
    assert np.any(gates != ReLU(4, 6, init="balanced", random_state=0).gates(X).numpy())
    limit = solve_frelu_svm(X, y, gates).require()
    sample = Sample(X, y, gates)
    found = compare(limit, result.network, sample, sample)
    assert 0.99 < found.margin_ratio < 1 + 1e-8


def test_a_network_at_the_limit_on_its_gates_has_margin_ratio_and_cosine_one() -> None:
    rng = np.random.default_rng(0)
    X, gates = rng.normal(size=(20, 6)), (rng.random((20, 5)) < 0.6).astype(float)
    gates[:, 0] = 1
    y = np.sign(X[:, 0])
    limit = solve_frelu_svm(X, y, gates).require()
    sample = Sample(X, y, gates)
    found = compare_frozen(limit, FReLU.from_zeta(3 * limit.zeta), sample, sample, freeze_at=7)
    assert found.machine.margin_ratio == pytest.approx(1, abs=1e-6)
    assert found.zeta_cosine == pytest.approx(1) and found.machine.agreement == 1
    assert found.kkt_cosine == pytest.approx(1, abs=1e-6) and found.kkt_residual < 1e-3
    assert found.to_dict()["freeze_at"] == 7
    spoiled = limit.zeta.copy()
    spoiled[0] *= -1
    worse = compare_frozen(limit, FReLU.from_zeta(spoiled), sample, sample, freeze_at=7)
    assert worse.machine.margin_ratio < 0.9 and worse.zeta_cosine < 0.9


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_published_set_up_runs_on_digits_without_biases(momentum) -> None:
    data = load_digits(n_train=200, random_state=0)
    assert np.all(data.X_train[:, -1] == 1)
    network = ReLU(data.X_train.shape[1], 50, random_state=1)
    settings = TrainingSettings(schedule=((400, 0.04), (400, 0.01)), momentum=momentum)
    trajectory = train(network, data.X_train, data.y_train, None, settings=settings)
    assert trajectory.loss[-1] < (0.15 if momentum == 0 else 0.01)
    gating = HyperplaneGates(50, random_state=1).fit(data.X_train)
    view = view_relu(network, data.X_train, data.y_train, gating)
    held_out = view_relu(network, data.X_val, data.y_val, gating)
    limits = solve_relu_svms(view)
    found = compare_relu(limits, network, view, held_out)
    assert {limits.rc.status, limits.lc.status} == {Status.SOLVED}
    for machine in (found.rc, found.lc):
        assert machine.agreement > machine.agreement_independent
        assert machine.error < 0.25


def test_a_copy_with_frozen_gates_may_go_on_by_another_trainer() -> None:
    X, y = random_problem()
    left = TrainingSettings(trainer="annealed", schedule=((12, None),))
    result = train_then_freeze(ReLU(5, 6), X, y, freeze_at=4, settings=STAGES, after=left)
    by_hand = ReLU(5, 6)
    train(by_hand, X, y, None, settings=replace(STAGES, schedule=STAGES.split_phases(4)[0]))
    gates, frozen = by_hand.gates(X), by_hand.freeze_gates()
    train(frozen, X, y, gates, settings=left)
    torch.testing.assert_close(result.network.w1, frozen.w1)
    with pytest.raises(ValueError, match=r"`after` must have the 6 steps .* got 12"):
        train_then_freeze(ReLU(5, 6), X, y, freeze_at=10, settings=STAGES, after=left)
