"""The trainer: steps against NumPy and torch, batches seen by a spy, limits in closed form."""

import json
import math
import pickle
from itertools import chain

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import GLN, DeepLinear, TrainingSettings, Trajectory, train
from implicit_bias.training import place_data

Array = NDArray[np.float64]


def quadrants(a: float = 2.0, b: float = 1.0) -> tuple[Array, Array, NDArray[np.int64]]:
    """Exclusive or on (+-a, +-b), unit h gated by the sign of coordinate h, a > b.

    Signed inputs y x in one context of unit 1 cancel in the first coordinate and add up in the
    second, so ||v_1||^2 = 8 lam^2 b^2, ||v_2||^2 = 8 lam^2 a^2 for equal multipliers, which
    symmetry allows. Dual optimum: lam = 1 / (sqrt(8) a), value 4 lam = sqrt(2) / a.
    """
    X = np.array([[a, b], [-a, -b], [-a, b], [a, -b]])
    return X, np.array([1.0, 1.0, -1.0, -1.0]), (X >= 0).astype(np.int64)


def two_rays() -> tuple[Array, Array, NDArray[np.int64]]:
    """H = 1, C = 2: a hard-margin SVM a context, (1/2, 0) and (1, 0); value sqrt(1/4 + 1)."""
    X = np.array([[2.0, 0.0], [-3.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return X, np.array([1.0, -1.0, 1.0, -1.0]), np.array([[0], [0], [1], [1]])


def random_problem(n: int = 23) -> tuple[Array, Array, NDArray[np.int64]]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(n, 6)), np.sign(rng.normal(size=n)), rng.integers(0, 3, size=(n, 4))


def network_for(contexts: NDArray[np.int64], n_inputs: int, n_contexts: int, **kwargs) -> GLN:
    return GLN(n_inputs, contexts.shape[1], n_contexts, **kwargs)


def normalised(*schedule: tuple[int, float], **kwargs) -> TrainingSettings:
    return TrainingSettings(batch_size=0, trainer="normalised", schedule=schedule, **kwargs)


class Spy(torch.nn.Module):
    """A linear network, degree 1, that notes the first gate column of every batch it sees."""

    degree = 1

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(n_inputs, dtype=torch.float64))
        self.seen: list[list[int]] = []

    def forward(self, X: torch.Tensor, gates: torch.Tensor | None) -> torch.Tensor:
        if gates is not None:
            self.seen.append(gates[:, 0].tolist())
        return X @ self.w


def numpy_step(w1, w2, X, y, contexts, rate, loss, normalise):
    """One step of gradient descent on the two-layer GLN, sample by sample."""
    margins = np.array(
        [
            y[i] * sum(w2[h] * w1[h, contexts[i, h]] @ X[i] for h in range(len(w2)))
            for i in range(len(y))
        ]
    )
    value = np.log1p(np.exp(-margins)) if loss == "logistic" else np.exp(-margins)
    slope = -1 / (1 + np.exp(margins)) if loss == "logistic" else -np.exp(-margins)
    slope = slope / (value.sum() if normalise else len(y))
    new1, new2 = w1.copy(), w2.copy()
    for i in range(len(y)):
        for h in range(len(w2)):
            c = contexts[i, h]
            new1[h, c] -= rate * slope[i] * y[i] * w2[h] * X[i]
            new2[h] -= rate * slope[i] * y[i] * (w1[h, c] @ X[i])
    return new1, new2


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("normalise", [False, True])
def test_two_steps_equal_gradient_descent_written_in_numpy(loss, normalise) -> None:
    X, y, contexts = random_problem()
    network = network_for(contexts, 6, 3, random_state=1)
    w1, w2 = network.w1.detach().numpy().copy(), network.head().detach().numpy().copy()
    settings = TrainingSettings(
        loss=loss,
        batch_size=0,
        schedule=((1, 0.1), (1, 0.03)),
        trainer="normalised" if normalise else "constant",
    )
    train(network, X, y, contexts, settings=settings)
    for rate in (0.1, 0.03):
        w1, w2 = numpy_step(w1, w2, X, y, contexts, rate, loss, normalise)
    np.testing.assert_allclose(network.w1.detach(), w1, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(network.head().detach(), w2, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_equal_those_of_torch_sgd_on_a_deeper_network(momentum) -> None:
    X, y, contexts = random_problem()
    ours, theirs = (network_for(contexts, 6, 3, upper_widths=(5,)) for _ in range(2))
    settings = TrainingSettings(batch_size=0, schedule=((6, 0.2),), momentum=momentum)
    train(ours, X, y, contexts, settings=settings)
    optimiser = torch.optim.SGD(theirs.parameters(), lr=0.2, momentum=momentum)
    for _ in range(6):
        optimiser.zero_grad()
        margins = torch.tensor(y) * theirs(torch.tensor(X), torch.tensor(contexts))
        torch.nn.functional.softplus(-margins).mean().backward()
        optimiser.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)


def batches_seen(random_state, n_steps: int = 11) -> list[list[int]]:
    X, y, _ = random_problem(23)
    spy = Spy(6)
    settings = TrainingSettings(
        batch_size=5, schedule=((n_steps, 0.1),), random_state=random_state, n_checkpoints=2
    )
    train(spy, X, y, np.arange(23)[:, None], settings=settings)
    assert spy.seen[0] == spy.seen[-1] == list(range(23))  # the two checkpoints
    return spy.seen[1:-1]


def test_each_epoch_is_a_new_permutation_cut_into_batches_with_a_partial_last_one() -> None:
    seen = batches_seen(0)
    assert [len(b) for b in seen] == [5, 5, 5, 5, 3, 5, 5, 5, 5, 3, 5]
    epochs = [list(chain(*seen[:5])), list(chain(*seen[5:10]))]
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert epochs[0] != list(range(23))


def test_the_order_of_batches_depends_on_random_state_and_on_no_global_generator() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    first = batches_seen(3)
    torch.manual_seed(1)
    np.random.seed(1)
    state = torch.get_rng_state()
    assert batches_seen(3) == first
    assert torch.equal(torch.get_rng_state(), state)
    assert batches_seen(np.random.default_rng(3)) == first
    assert batches_seen(4) != first


def test_the_normalised_trainer_passes_log_loss_minus_2000_with_growing_margin() -> None:
    X, y, contexts = two_rays()
    network = network_for(contexts, 2, 2, init="balanced", init_scale=0.5, random_state=1)
    settings = normalised((200, 0.02), (400, 0.005), (600, 0.001))
    trajectory = train(network, X, y, contexts, settings=settings)
    assert trajectory.log_loss[-1] < -2000
    assert trajectory.loss[-1] == 0.0
    separated = trajectory.normalised_margin[trajectory.smallest_margin > 0]
    assert len(separated) > 10
    assert np.all(np.diff(separated) > 0)
    assert separated[-1] * math.sqrt(1.25) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("random_state", [1, 2])
def test_the_normalised_trainer_reaches_the_closed_form_margin_of_the_quadrants(
    random_state,
) -> None:
    X, y, contexts = quadrants()
    network = network_for(
        contexts, 2, 2, init="balanced", init_scale=0.5, random_state=random_state
    )
    trajectory = train(network, X, y, contexts, settings=normalised((200, 0.01), (400, 0.005)))
    ratio = trajectory.normalised_margin * math.sqrt(2) / 2
    assert np.all(ratio <= 1 + 1e-12)
    assert ratio[-1] > 0.99
    # The gate along the short side dies out: all of the limit is unit 2.
    assert trajectory.unit_norms[-1, 0] < 0.01 * trajectory.unit_norms[-1, 1]


def test_plain_mini_batch_training_in_float32_separates_the_quadrants() -> None:
    X, y, contexts = quadrants()
    network = network_for(contexts, 2, 2, dtype=torch.float32)
    settings = TrainingSettings(batch_size=3, schedule=((600, 0.1),))
    trajectory = train(network, X, y, contexts, settings=settings)
    assert network.w1.dtype == torch.float32
    assert trajectory.loss[-1] < 0.1 * trajectory.loss[0]
    assert trajectory.smallest_margin[-1] > 0


def test_a_row_of_the_trajectory_is_measured_on_the_whole_training_set() -> None:
    X, y, contexts = random_problem()
    network = network_for(contexts, 6, 3)
    settings = TrainingSettings(batch_size=4, schedule=((30, 0.05),), n_checkpoints=5)
    other = random_problem(9)
    trajectory = train(
        network, X, y, contexts, settings=settings, X_val=other[0], gates_val=other[2]
    )
    zeta, w1 = network.zeta().detach().numpy(), network.w1.detach().numpy()
    head = network.head().detach().numpy()

    def scores(X, contexts):
        return np.array(
            [sum(zeta[h, c[h]] @ x for h in range(4)) for x, c in zip(X, contexts, strict=True)]
        )

    margins = y * scores(X, contexts)
    norms = [np.linalg.norm(zeta[h]) for h in range(4)]
    loss = np.log1p(np.exp(-margins)).mean()
    assert trajectory.finished
    assert trajectory.loss[-1] == pytest.approx(loss, rel=1e-12)
    assert trajectory.log_loss[-1] == pytest.approx(math.log(loss), rel=1e-12)
    assert trajectory.smallest_margin[-1] == pytest.approx(margins.min(), rel=1e-12)
    assert trajectory.normalised_margin[-1] == pytest.approx(margins.min() / sum(norms), rel=1e-12)
    assert trajectory.weight_norm[-1] == pytest.approx(
        math.sqrt((w1**2).sum() + (head**2).sum()), rel=1e-12
    )
    np.testing.assert_allclose(trajectory.unit_norms[-1], norms, rtol=1e-12)
    np.testing.assert_allclose(trajectory.scores[-1], scores(other[0], other[2]), rtol=1e-10)
    assert trajectory.scores.shape == (len(trajectory.step), 9)
    assert np.all(np.diff(trajectory.seconds) >= 0)


def test_checkpoints_start_at_zero_end_at_the_last_step_and_thin_out_geometrically() -> None:
    steps = np.array(TrainingSettings().checkpoints())
    assert (steps[0], steps[1], steps[-1]) == (0, 1, 3200)
    assert len(steps) <= 40
    late = steps[steps > 100]
    np.testing.assert_allclose(late[1:] / late[:-1], 3200 ** (1 / 38), rtol=0.01)
    assert TrainingSettings(schedule=((1, 0.1),), n_checkpoints=2).checkpoints() == [0, 1]
    assert TrainingSettings(n_checkpoints=2).checkpoints() == [0, 3200]
    assert TrainingSettings(n_checkpoints=3).checkpoints() == [0, 1, 3200]


def test_a_callback_hears_start_and_end_at_a_modest_rate_and_changes_nothing() -> None:
    X, y, contexts = random_problem()
    calls: list[tuple[int, int, float]] = []
    settings = TrainingSettings(batch_size=4, schedule=((1000, 0.01),), n_checkpoints=10)
    quiet, watched = (network_for(contexts, 6, 3) for _ in range(2))
    reference = train(quiet, X, y, contexts, settings=settings)
    trajectory = train(
        watched, X, y, contexts, settings=settings, callback=lambda *args: calls.append(args)
    )
    steps = [step for step, _, _ in calls]
    assert (steps[0], steps[-1]) == (0, 1000)
    assert max(np.diff(steps)) <= 10
    assert len(steps) <= 101 + 10
    assert {n for _, n, _ in calls} == {1000}
    heard = {step: log_loss for step, _, log_loss in calls}
    assert [heard[step] for step in trajectory.step] == trajectory.log_loss.tolist()
    assert torch.equal(quiet.w1, watched.w1)
    np.testing.assert_array_equal(reference.step, trajectory.step)


def test_an_interrupt_returns_what_is_done_with_a_last_row_of_the_network_as_it_is() -> None:
    X, y, contexts = random_problem()
    network = network_for(contexts, 6, 3)

    def interrupt(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 730:
            raise KeyboardInterrupt

    settings = TrainingSettings(schedule=((1000, 0.01),), n_checkpoints=6)
    trajectory = train(network, X, y, contexts, settings=settings, callback=interrupt)
    assert not trajectory.finished
    assert trajectory.step[0] == 0
    assert trajectory.step[-1] == 730
    assert 730 not in settings.checkpoints()
    margins = y * network(torch.tensor(X), torch.tensor(contexts)).detach().numpy()
    assert trajectory.smallest_margin[-1] == pytest.approx(margins.min(), rel=1e-12)


def test_an_interrupt_at_once_still_returns_the_initial_row() -> None:
    X, y, contexts = random_problem()

    def interrupt(*args: float) -> None:
        raise KeyboardInterrupt

    trajectory = train(network_for(contexts, 6, 3), X, y, contexts, callback=interrupt)
    assert trajectory.step.tolist() == [0]
    assert not trajectory.finished


def test_divergence_names_step_learning_rate_and_way_out() -> None:
    X, y, contexts = random_problem()
    settings = TrainingSettings(batch_size=0, schedule=((200, 1e8),), loss="exponential")
    with pytest.raises(FloatingPointError, match=r"step \d+ .*1e\+08.*smaller learning rate"):
        train(network_for(contexts, 6, 3), X, y, contexts, settings=settings)


def test_a_network_without_units_or_gates_is_trained_to_its_maximum_margin() -> None:
    # argmin ||w|| with 2 w_1 >= 1 and 3 w_1 + w_2 >= 1 is (1/2, 0).
    X, y = np.array([[2.0, 0.0], [3.0, 1.0]]), np.array([1.0, 1.0])
    spy = Spy(2)
    trajectory = train(spy, X, y, None, settings=normalised((2000, 0.1), n_checkpoints=9))
    direction = spy.w.detach().numpy() / np.linalg.norm(spy.w.detach().numpy())
    np.testing.assert_allclose(direction, [1, 0], atol=0.01)
    assert trajectory.unit_norms.shape == trajectory.scores.shape == (len(trajectory.step), 0)
    assert np.all(np.isnan(trajectory.normalised_margin))


def test_frozen_parameters_stay_and_do_not_count() -> None:
    X, y, contexts = random_problem()
    network = network_for(contexts, 6, 3)
    network.upper[0].requires_grad_(False)
    before = network.upper[0].detach().clone()
    trajectory = train(
        network, X, y, contexts, settings=TrainingSettings(schedule=((5, 0.1),), n_checkpoints=2)
    )
    assert torch.equal(network.upper[0], before)
    assert trajectory.weight_norm[-1] == pytest.approx(float(network.w1.detach().norm()), rel=1e-12)


def test_a_trajectory_is_read_only_and_exports_to_json_and_pandas() -> None:
    X, y, contexts = random_problem()
    trajectory = train(
        network_for(contexts, 6, 3), X, y, contexts,
        settings=TrainingSettings(schedule=((5, 0.1),), n_checkpoints=3),
    )  # fmt: skip
    with pytest.raises(ValueError, match="read-only"):
        trajectory.log_loss[0] = 0.0
    loaded = json.loads(json.dumps(trajectory.to_dict()))
    assert loaded["finished"] is True
    assert loaded["unit_norms"] == trajectory.unit_norms.tolist()
    frame = trajectory.to_frame()
    assert list(frame.columns) == [
        "step", "loss", "log_loss", "smallest_margin", "normalised_margin", "smooth_margin",
        "weight_norm", "seconds",
    ]  # fmt: skip
    np.testing.assert_array_equal(frame["log_loss"], trajectory.log_loss)


def trajectory_of_zeros(**changes) -> Trajectory:
    arrays = set(Trajectory.__dataclass_fields__) - {"finished", "observed", "stopped"}
    given = {name: np.zeros(3) for name in arrays}
    given |= {"scores": np.zeros((3, 0)), "unit_norms": np.zeros((3, 4))}
    return Trajectory(**given | {"finished": True} | changes)


def test_what_an_observer_measured_is_kept_read_only_and_exported() -> None:
    observed = {"kkt_residual": [3.0, 2.0, 1.0], "dual_norms": np.ones((3, 4))}
    trajectory = trajectory_of_zeros(observed=observed)
    np.testing.assert_array_equal(trajectory.observed["kkt_residual"], [3, 2, 1])
    with pytest.raises(ValueError, match="read-only"):
        trajectory.observed["dual_norms"][0, 0] = 2.0
    frame = trajectory.to_frame()
    assert frame["kkt_residual"].tolist() == [3, 2, 1]
    assert "dual_norms" not in frame
    loaded = json.loads(json.dumps(trajectory.to_dict()))
    assert loaded["observed"] == {"kkt_residual": [3, 2, 1], "dual_norms": [[1.0] * 4] * 3}
    # Worker processes hand trajectories over.
    assert pickle.loads(pickle.dumps(trajectory)).observed["kkt_residual"].tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        ({"x": np.zeros(2)}, "`x` must have one entry for each of 3"),
        ({"x": 1.0}, "`x` must have one entry for each of 3"),
        ({"loss": np.zeros(3)}, "which the trajectory measures itself"),
    ],
)
def test_what_an_observer_measured_must_fit(observed, message) -> None:
    with pytest.raises(ValueError, match=message):
        trajectory_of_zeros(observed=observed)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_smooth_margin_is_that_of_the_summed_loss_below_the_exact_one(loss) -> None:
    X, y, contexts = random_problem()
    network = network_for(contexts, 6, 3)
    settings = TrainingSettings(loss=loss, schedule=((300, 0.5),), batch_size=0)
    last = train(network, X, y, contexts, settings=settings)
    with torch.no_grad():
        margins = y * network(torch.tensor(X), torch.tensor(contexts)).numpy()
        norm = float(network.unit_norms().sum())
    losses = np.exp(-margins) if loss == "exponential" else np.log1p(np.exp(-margins))
    assert last.smooth_margin[-1] == pytest.approx(-np.log(losses.sum()) / norm, rel=1e-10)
    separates = last.smallest_margin > 0
    assert separates[-1]
    excess = 0 if loss == "exponential" else np.log(1 / np.log(2)) / last.unit_norms.sum(axis=1)
    assert np.all((last.smooth_margin - last.normalised_margin < excess + 1e-12)[separates])


def test_a_trajectory_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="`unit_norms` must have one entry for each of 3"):
        trajectory_of_zeros(unit_norms=np.zeros((2, 4)))
    with pytest.raises(ValueError, match="`loss` must have one entry"):
        trajectory_of_zeros(loss=np.zeros((3, 1)))


def test_malformed_data_are_refused_before_training() -> None:
    X, y, contexts = random_problem()
    network = network_for(contexts, 6, 3)
    bad = X.copy()
    bad[3, 2] = math.nan
    for arguments, message in [
        ((bad, y, contexts), "`X` has entries that are NaN or infinite"),
        ((X[0], y, contexts), "`X` must be finite, of shape"),
        ((X[:0], y[:0], contexts[:0]), "`X` must be finite, of shape"),
        ((X, y[:-1], contexts), r"`y` must have shape \(23,\)"),
        ((X, (y + 1) / 2, contexts), r"values in \{-1, \+1\}"),
        ((X, y, contexts[:-1]), "`gates` must have 23 rows"),
        ((X, y, contexts + 1), "`contexts` must lie in 0..2"),
    ]:
        with pytest.raises(ValueError, match=message):
            train(network, *arguments)
    with pytest.raises(ValueError, match="no parameter"):
        train(torch.nn.Identity(), X, y, contexts)


def test_data_are_placed_in_the_dtype_of_the_network_and_read_only_arrays_are_fine() -> None:
    X, y, contexts = random_problem()
    for array in (X, y, contexts):
        array.flags.writeable = False
    data = place_data(network_for(contexts, 6, 3, dtype=torch.float32), X, y, contexts)
    assert (data.X.dtype, data.y.dtype) == (torch.float32, torch.float32)
    assert data.gates is not None
    assert data.gates.dtype == torch.int64
    masks = place_data(Spy(6), X, None, contexts.astype(np.float32))
    assert masks.gates is not None
    assert masks.gates.dtype == torch.float64


def test_an_observer_sees_the_network_at_its_own_steps_and_no_row_is_added() -> None:
    X, y, _ = random_problem()

    class Looking:
        """Keeps the weights of some steps."""

        def __init__(self, *steps: int) -> None:
            self.steps, self.seen = frozenset(steps), dict[int, torch.Tensor]()

        def __call__(self, network: torch.nn.Module) -> dict[str, float]:
            """Measure nothing."""
            return {}

        def see(self, step: int, network: torch.nn.Module) -> None:
            """Keep the weights."""
            self.seen[step] = next(network.parameters()).detach().clone()

    def settings(steps: int) -> TrainingSettings:
        return TrainingSettings(batch_size=0, schedule=((steps, 0.01),), n_checkpoints=3)

    looking = Looking(0, 7, 20)
    network, short = (DeepLinear(X.shape[1], random_state=0) for _ in range(2))
    start = next(network.parameters()).detach().clone()
    trajectory = train(network, X, y, settings=settings(20), observer=looking)
    train(short, X, y, settings=settings(7))
    assert trajectory.step.tolist() == [0, 1, 20]
    expected = {0: start, 7: next(short.parameters()), 20: next(network.parameters())}
    assert looking.seen.keys() == expected.keys()
    for step, weights in expected.items():
        assert torch.equal(looking.seen[step], weights)


def test_what_an_observer_returns_of_the_weights_themselves_is_kept_as_it_was() -> None:
    X, y = np.array([[1.0, 0.5], [-1.0, 0.25]]), np.array([1.0, -1.0])
    network = DeepLinear(2, dtype=torch.float64)
    (layer,) = network.layers
    begin = layer.detach().numpy().copy()
    path = train(
        network, X, y, settings=TrainingSettings("constant", schedule=((20, 0.5),)),
        observer=lambda _: {"weights": layer.detach().numpy()},
    )  # fmt: skip
    np.testing.assert_array_equal(path.observed["weights"][0], begin)
    assert np.linalg.norm(path.observed["weights"][-1] - begin) > 0.1
