"""Runs that stop and go on: the same as if they had never stopped, to the bit."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file

from implicit_bias import (
    GLN,
    DeepLinear,
    ReLU,
    TrainingSettings,
    Trajectory,
    train,
    train_many,
)
from implicit_bias.runs.reports import RUN, read_saved, write_saved
from tests.commands import full_disk
from tests.long import some_of

Array = NDArray[np.float64]

N, D, H, C = 23, 5, 3, 2
RNG = np.random.default_rng(6)
X = RNG.normal(size=(N, D))
Y = np.sign(X @ np.linspace(-1, 1, D))
CONTEXTS = RNG.integers(0, C, size=(N, H))
X_VAL, GATES_VAL = X[:7] - 0.2, CONTEXTS[:7]

SETTINGS: dict[str, dict[str, Any]] = {
    "constant": {"schedule": ((30, 0.3), (30, 0.1))},
    "mini-batches with momentum": {
        "schedule": ((25, 0.2), (35, 0.05)), "momentum": 0.8, "batch_size": 5, "random_state": 4,
    },
    "normalised": {"trainer": "normalised", "schedule": ((60, 0.02),), "momentum": 0.5},
    "normalised, automatic": {"trainer": "normalised", "schedule": ((60, None),)},
    "momentum": {"trainer": "momentum", "schedule": ((60, None),)},
    "annealed": {"trainer": "annealed", "schedule": ((60, None),)},
    "dual": {"trainer": "dual", "schedule": ((60, None),)},
    "sign": {"trainer": "sign", "schedule": ((60, None),), "batch_size": 7},
    "muon": {"trainer": "muon", "schedule": ((60, None),)},
    "adam": {"trainer": "adam", "schedule": ((60, None),)},
}  # fmt: skip


def settings_for(name: str, **changes: Any) -> TrainingSettings:
    return TrainingSettings(**{"batch_size": 0, "n_checkpoints": 9} | SETTINGS[name] | changes)


class Remembering:
    """An observer whose measurements depend on all the earlier ones."""

    def __init__(self) -> None:
        self.total, self.last = 0.0, np.zeros(2)

    def __call__(self, network: torch.nn.Module) -> dict[str, Any]:
        now = next(network.parameters()).detach().double().flatten()[:2].numpy().copy()
        self.total += float(now.sum())
        moved, self.last = now - self.last, now
        return {"total": self.total, "moved": moved}

    def state_dict(self) -> dict[str, Any]:
        return {"total": self.total, "last": self.last}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total, self.last = float(state["total"]), np.array(state["last"])


def network_for(trainer: str, **kwargs: Any) -> torch.nn.Module:
    start = {"random_state": 2} | kwargs
    return DeepLinear(D, **start) if trainer == "dual" else GLN(D, H, C, **start)


def run(network: torch.nn.Module, name: str, **kwargs: Any) -> Trajectory:
    gated = isinstance(network, GLN)
    return train(
        network, X, Y, CONTEXTS if gated else None, settings=settings_for(name),
        X_val=X_VAL, gates_val=GATES_VAL if gated else None, observer=Remembering(), **kwargs,
    )  # fmt: skip


def interrupting(at: int, how: Callable[[], None]) -> Callable[[int, int, float], None]:
    def callback(step: int, n_steps: int, log_loss: float) -> None:
        if step == at:
            how()

    return callback


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def assert_equal_trajectories(a: Trajectory, b: Trajectory) -> None:
    left, right = a.to_dict(), b.to_dict()
    assert list(a.to_frame().columns) == list(b.to_frame().columns)
    assert left.pop("seconds") != []
    right.pop("seconds")
    np.testing.assert_equal(left, right)


def assert_equal_weights(a: torch.nn.Module, b: torch.nn.Module) -> None:
    for one, other in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(one, other)


def saved_step(file: Path) -> int:
    """The step at which a run was saved, from the header of its file."""
    with safe_open(file, framework="numpy") as saved:
        return int(json.loads(saved.metadata()["implicit-bias"])["record"]["step"])


class PowerCut(Exception):
    pass


def cut_power() -> None:
    raise PowerCut


# The same as if it had never stopped


STOPS = [
    (raise_interrupt, 0), (terminate, 1), (press_ctrl_c, 33), (terminate, 33), (press_ctrl_c, 60),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "how", "at"),
    some_of([(name, *stop) for name in SETTINGS for stop in STOPS], one_in=3),
)
def test_a_resumed_run_equals_one_that_never_stopped_to_the_bit(tmp_path, name, at, how) -> None:
    whole = network_for(name)
    expected = run(whole, name)
    stopped = network_for(name)
    file = tmp_path / "deep" / "run"
    part = run(stopped, name, state=file, callback=interrupting(at, how))
    assert part.step[-1] == at
    assert part.finished == (at == 60)
    resumed = network_for(name)
    trajectory = run(resumed, name, state=file, resume=True)
    assert_equal_trajectories(trajectory, expected)
    assert_equal_weights(resumed, whole)
    assert np.all(np.diff(trajectory.seconds) >= 0)
    rows = list(part.step).index(at) if at == 33 else len(part.step)
    np.testing.assert_array_equal(trajectory.seconds[:rows], part.seconds[:rows])


@pytest.mark.parametrize("name", ["mini-batches with momentum", "annealed", "momentum"])
def test_stopping_at_every_report_changes_nothing(tmp_path, name) -> None:
    whole = network_for(name)
    expected = run(whole, name)
    for at in range(0, 60, 4):
        network = network_for(name)
        run(network, name, state=tmp_path / "run", resume=at > 0,
            callback=interrupting(at, press_ctrl_c))  # fmt: skip
    network = network_for(name)
    assert_equal_trajectories(run(network, name, state=tmp_path / "run", resume=True), expected)
    assert_equal_weights(network, whole)


def test_the_network_goes_on_from_where_it_stopped_in_the_same_process_too(tmp_path) -> None:
    whole, network = network_for("annealed"), network_for("annealed")
    expected = run(whole, "annealed")
    run(network, "annealed", state=tmp_path / "run", callback=interrupting(24, press_ctrl_c))
    trajectory = run(network, "annealed", state=tmp_path / "run", resume=True)
    assert_equal_trajectories(trajectory, expected)
    assert_equal_weights(network, whole)


def test_a_run_that_went_on_once_goes_on_from_its_first_weights_again(tmp_path) -> None:
    whole, network = network_for("annealed"), network_for("annealed")
    expected = run(whole, "annealed")
    file = tmp_path / "run"
    run(network, "annealed", state=file, callback=interrupting(24, press_ctrl_c))
    run(network, "annealed", state=file, resume=True, callback=interrupting(40, press_ctrl_c))
    fresh = network_for("annealed")
    assert_equal_trajectories(run(fresh, "annealed", state=file, resume=True), expected)
    assert_equal_weights(fresh, whole)


def test_float32_and_a_relu_network_go_on_as_well(tmp_path) -> None:
    def relu() -> torch.nn.Module:
        return ReLU(D, 4, random_state=1, dtype=torch.float32)

    def go(network: torch.nn.Module, **kwargs: Any) -> Trajectory:
        return train(network, X, Y, None, settings=settings_for("momentum"), **kwargs)

    whole, stopped, resumed = relu(), relu(), relu()
    expected = go(whole)
    go(stopped, state=tmp_path / "run", callback=interrupting(33, press_ctrl_c))
    assert_equal_trajectories(go(resumed, state=tmp_path / "run", resume=True), expected)
    assert_equal_weights(resumed, whole)


def test_a_machine_that_stops_costs_what_was_done_since_the_last_checkpoint(tmp_path) -> None:
    whole = network_for("mini-batches with momentum")
    expected = run(whole, "mini-batches with momentum")
    with pytest.raises(PowerCut):
        run(
            network_for("mini-batches with momentum"), "mini-batches with momentum",
            state=tmp_path / "run", callback=interrupting(47, cut_power),
        )  # fmt: skip
    assert saved_step(tmp_path / "run") == max(step for step in expected.step if step < 47)
    network = network_for("mini-batches with momentum")
    trajectory = run(network, "mini-batches with momentum", state=tmp_path / "run", resume=True)
    assert_equal_trajectories(trajectory, expected)
    assert_equal_weights(network, whole)


@pytest.mark.parametrize(("save_every", "saved"), [(0.0, 523), (1e6, 0)])
def test_runs_are_saved_between_checkpoints_when_these_are_far_apart(
    tmp_path, save_every, saved
) -> None:
    def cut(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 523:
            raise PowerCut

    settings = TrainingSettings(batch_size=0, schedule=((1000, 1e-3),), n_checkpoints=2)
    with pytest.raises(PowerCut):
        train(
            DeepLinear(D), X[:3], Y[:3], settings=settings, callback=cut,
            state=tmp_path / "run", save_every=save_every,
        )  # fmt: skip
    assert saved_step(tmp_path / "run") == saved


# Interrupts


def stop() -> None:
    raise StopIteration


@pytest.mark.parametrize("name", some_of(sorted(SETTINGS), one_in=3))
def test_a_callback_ends_a_run_that_keeps_what_it_has_and_can_go_on(name, tmp_path) -> None:
    whole, network = network_for(name), network_for(name)
    expected = run(whole, name)
    trajectory = run(network, name, state=tmp_path / "run", callback=interrupting(24, stop))
    assert not trajectory.finished and trajectory.step[-1] == 24 == saved_step(tmp_path / "run")
    kept = trajectory.step < 24
    np.testing.assert_array_equal(trajectory.loss[kept], expected.loss[: kept.sum()])
    fresh = network_for(name)
    assert_equal_trajectories(run(fresh, name, state=tmp_path / "run", resume=True), expected)
    assert_equal_weights(fresh, whole)


def test_a_callback_ends_networks_that_train_side_by_side() -> None:
    networks = [network_for("constant", random_state=seed) for seed in (1, 2)]
    settings = settings_for("constant")
    found = train_many(networks, X, Y, CONTEXTS, settings=settings, callback=interrupting(30, stop))
    assert [one.finished for one in found] == [False, False]
    assert [int(one.step[-1]) for one in found] == [30, 30]


@pytest.mark.parametrize("name", ["mini-batches with momentum", "annealed"])
def test_networks_side_by_side_that_were_stopped_go_on_to_the_bit(tmp_path, name) -> None:
    def train_three(**kwargs: Any) -> tuple[list[torch.nn.Module], list[Trajectory]]:
        networks: list[torch.nn.Module] = [GLN(D, H, C, random_state=seed) for seed in range(3)]
        each = [settings_for(name) for _ in networks]
        if not each[1].automatic:  # and diverges on its way
            steps = [(n, 1e300) for n, _ in each[1].phases]
            each[1] = settings_for(name, schedule=tuple(steps))
        observers = [Remembering() for _ in networks]
        return networks, train_many(
            networks, X, Y, CONTEXTS, settings=each, observers=observers, **kwargs
        )

    whole, end = train_three()
    state = tmp_path / "run.safetensors"
    train_three(state=state, callback=interrupting(40, stop))
    again, resumed = train_three(state=state, resume=True)
    for one, other in zip(end, resumed, strict=True):
        assert_equal_trajectories(one, other)
        assert one.finished == other.finished
    assert [one.finished for one in end] == [True, name == "annealed", True]
    for b in (0, 2):
        assert_equal_weights(whole[b], again[b])
    with pytest.raises(ValueError, match="of another network"):
        train(whole[0], X, Y, CONTEXTS, settings=settings_for(name), state=state, resume=True)


@pytest.mark.parametrize("error", [ValueError, RuntimeError, StopAsyncIteration])
def test_another_error_of_a_callback_is_its_caller_s(error) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(error):
        run(network_for("constant"), "constant", callback=interrupting(30, fail))


def test_ctrl_c_waits_for_the_step_to_end_and_the_handler_comes_back() -> None:
    handlers = [signal.getsignal(signal.SIGINT)]
    network, reference = network_for("momentum"), network_for("momentum")
    inside: list[int] = []
    forward = network.forward

    def press_in_step_12(*arguments: Any) -> torch.Tensor:
        inside.append(1)
        if len(inside) == 25:
            press_ctrl_c()
        return forward(*arguments)

    network.forward = press_in_step_12  # type: ignore[method-assign]
    trajectory = run(network, "momentum")
    handlers.append(signal.getsignal(signal.SIGINT))
    assert handlers[0] is handlers[1]
    assert not trajectory.finished
    done = int(trajectory.step[-1])
    assert 0 < done < 60
    # Its weights are those of whole steps.
    train(reference, X, Y, CONTEXTS, settings=settings_for("momentum", schedule=((done, None),)))
    assert_equal_weights(network, reference)


def test_a_second_ctrl_c_does_not_wait_and_leaves_the_file_of_before(tmp_path) -> None:
    handler = signal.getsignal(signal.SIGINT)
    whole, network = network_for("annealed"), network_for("annealed")
    expected = run(whole, "annealed")
    calls: list[int] = []
    forward = network.forward

    def press_twice(*arguments: Any) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 60:
            press_ctrl_c()
            press_ctrl_c()
        return forward(*arguments)

    network.forward = press_twice  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run(network, "annealed", state=tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is handler
    resumed = network_for("annealed")
    assert_equal_trajectories(
        run(resumed, "annealed", state=tmp_path / "run", resume=True), expected
    )
    assert_equal_weights(resumed, whole)


def test_a_second_ctrl_c_leaves_networks_that_train_as_one_at_their_last_report() -> None:
    class Pressing(DeepLinear):
        calls = 0

        def forward(self, X: torch.Tensor, gates: object = None) -> torch.Tensor:
            Pressing.calls += torch.is_grad_enabled()  # in steps, not in measurements
            if Pressing.calls == 20:
                Pressing.calls += 1
                press_ctrl_c()
                press_ctrl_c()
            return super().forward(X, gates)

    networks = [Pressing(D, random_state=seed) for seed in (1, 2)]
    seen: dict[int, torch.Tensor] = {}

    def note(network: torch.nn.Module) -> dict[str, float]:
        seen[id(network)] = network.layers[0].detach().clone()
        return {}

    with pytest.raises(KeyboardInterrupt):
        train_many(networks, X, Y, None, settings=settings_for("annealed"), observers=[note] * 2)
    for network in networks:
        assert torch.equal(network.layers[0], seen[id(network)])


def test_training_in_another_thread_leaves_signals_alone() -> None:
    found: list[Any] = []
    network, reference = network_for("constant"), network_for("constant")
    thread = threading.Thread(target=lambda: found.append(run(network, "constant")))
    thread.start()
    thread.join()
    assert_equal_trajectories(found[0], run(reference, "constant"))


def test_a_process_that_ignores_interrupts_goes_on_ignoring_them() -> None:
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        trajectory = run(
            network_for("constant"), "constant", callback=interrupting(30, press_ctrl_c)
        )
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)
    assert trajectory.finished


@pytest.mark.parametrize("how", [press_ctrl_c, terminate])
@pytest.mark.parametrize("many", [False, True])
def test_an_interrupt_before_the_first_step_returns_the_row_of_the_start(how, many) -> None:
    class Stopping(GLN):
        def prepare(self, contexts: Any) -> torch.Tensor:
            how()
            return super().prepare(contexts)

    network = Stopping(D, H, C, random_state=2)
    if many:
        (trajectory,) = train_many([network], X, Y, CONTEXTS)
    else:
        trajectory = train(network, X, Y, CONTEXTS)
    assert trajectory.step.tolist() == [0]
    assert not trajectory.finished
    assert_equal_weights(network, network_for("constant"))


def test_a_handler_from_outside_of_python_is_left_alone(monkeypatch) -> None:
    def fail(number: int, handler: object) -> None:
        raise AssertionError("the handler was changed")

    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", fail)
    assert run(network_for("constant"), "constant").finished


def test_an_interrupt_of_a_run_that_has_diverged_keeps_the_last_finite_state(tmp_path) -> None:
    network = network_for("constant")
    settings = TrainingSettings(
        loss="exponential", batch_size=0, schedule=((2000, 1e9),), n_checkpoints=3
    )  # rows at 0, 1 and 2000, reports every 20 steps
    forward, calls = network.forward, []

    def press_in_step_7(*arguments: Any) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 9:
            assert not torch.isfinite(network.w1).all()
            press_ctrl_c()
        return forward(*arguments)

    network.forward = press_in_step_7  # type: ignore[method-assign]
    trajectory = train(network, X, Y, CONTEXTS, settings=settings, state=tmp_path / "run")
    assert trajectory.step.tolist() == [0, 1]
    assert not trajectory.finished
    with safe_open(tmp_path / "run", framework="pt") as file:
        assert all(torch.isfinite(file.get_tensor(f"weight.{i}")).all() for i in range(2))


# Files


@pytest.fixture
def kept(tmp_path) -> Path:
    file: Path = tmp_path / "run"
    run(network_for("constant"), "constant", state=file, callback=interrupting(30, raise_interrupt))
    return file


def go_on(file: Path, **changes: Any) -> Trajectory:
    given: dict[str, Any] = {
        "network": network_for("constant"), "X": X, "y": Y, "gates": CONTEXTS,
        "settings": settings_for("constant"), "X_val": X_VAL, "gates_val": GATES_VAL,
    } | changes  # fmt: skip
    network = given.pop("network")
    before = copy.deepcopy(network.state_dict())
    try:
        return train(network, **given, state=file, resume=True, observer=Remembering())
    except ValueError:
        for name, value in before.items():
            assert torch.equal(network.state_dict()[name], value)
        raise


def frozen_above() -> torch.nn.Module:
    network = network_for("constant")
    network.upper[0].requires_grad_(False)
    return network


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": X + 1e-12}, "other data or other settings"),
        ({"y": -Y}, "other data or other settings"),
        ({"gates": 1 - CONTEXTS}, "other data or other settings"),
        ({"X_val": None, "gates_val": None}, "other data or other settings"),
        ({"X_val": X_VAL[:5], "gates_val": GATES_VAL[:5]}, "other data or other settings"),
        ({"settings": settings_for("constant", loss="exponential")}, "other settings"),
        ({"settings": settings_for("constant", schedule=((61, 0.3),))}, "other settings"),
        ({"settings": settings_for("annealed")}, "other settings"),
        ({"network": network_for("constant", upper_widths=(2,))}, "of another network"),
        ({"network": frozen_above()}, "other settings"),
        ({"network": network_for("constant", random_state=3)}, "began from other weights"),
        ({"network": network_for("constant", init_scale=0.5)}, "began from other weights"),
        ({"network": network_for("constant", dtype=torch.float32)}, "other data"),
    ],
)
def test_a_run_of_something_else_is_refused_and_the_network_left_alone(
    kept, changes, message
) -> None:
    content = kept.read_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        go_on(kept, **changes)
    assert str(kept) in str(caught.value)
    assert kept.read_bytes() == content
    assert go_on(kept).finished


def test_a_run_of_a_network_of_other_widths_is_refused(tmp_path) -> None:
    file = tmp_path / "run"
    run(network_for("constant", upper_widths=(2,)), "constant", state=file)
    with pytest.raises(ValueError, match=r"of another network: its weight.1 does not have shape"):
        run(network_for("constant", upper_widths=(4,)), "constant", state=file, resume=True)


def test_buffers_belong_to_what_a_run_is_of(tmp_path) -> None:
    class Buffered(torch.nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(D, dtype=torch.float64))
            self.register_buffer("factor", torch.tensor(factor, dtype=torch.float64))

        def forward(self, X: torch.Tensor, gates: None) -> torch.Tensor:
            return self.factor * (X @ self.w)

    settings = settings_for("constant")
    train(Buffered(1.0), X, Y, None, settings=settings, state=tmp_path / "run")
    with pytest.raises(ValueError, match="other data or other settings"):
        train(Buffered(2.0), X, Y, None, settings=settings, state=tmp_path / "run", resume=True)


@pytest.mark.parametrize("length", [0, 5, 200, -1])
def test_a_truncated_file_is_refused_in_one_sentence(kept, length) -> None:
    kept.write_bytes(kept.read_bytes()[:length])
    with pytest.raises(
        ValueError, match=r"is not a safetensors file: .*; delete it and begin anew"
    ):
        go_on(kept)


def test_a_flipped_bit_anywhere_is_refused(kept) -> None:
    content = kept.read_bytes()
    for place in np.linspace(0, len(content) - 1, 200).astype(int):
        damaged = bytearray(content)
        damaged[place] ^= 4
        kept.write_bytes(damaged)
        with pytest.raises(
            ValueError, match=r"not a safetensors file|no saved run|in format|damaged"
        ):
            go_on(kept)
    kept.write_bytes(content)
    assert go_on(kept).finished


def test_other_files_are_refused(kept, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"no run to resume: .* does not exist"):
        go_on(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="it is a folder, name a file"):
        go_on(tmp_path)
    with pytest.raises(ValueError, match="is a file: name a folder"):
        go_on(kept / "below")
    save_file({"weight.0": torch.zeros(2)}, tmp_path / "weights")
    with pytest.raises(ValueError, match="holds no saved run"):
        go_on(tmp_path / "weights")
    (tmp_path / "text").write_text("not a run at all, but longer than a header\n" * 3)
    with pytest.raises(ValueError, match="is not a safetensors file"):
        go_on(tmp_path / "text")


def test_a_full_disk_takes_no_training_with_it_and_leaves_the_file_of_before(
    kept, tmp_path, caplog
) -> None:
    content, whole = kept.read_bytes(), network_for("constant")
    expected = run(whole, "constant", state=tmp_path / "whole")
    with full_disk():
        trajectory = go_on(kept)
    assert_equal_trajectories(trajectory, expected)
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert re.search(rf"could not be saved at step \d+ .*File too large: '{kept}'.*goes on", said)
    assert sorted(os.listdir(kept.parent)) == [kept.name, "whole"]
    assert kept.read_bytes() == content
    assert go_on(kept).finished


def test_a_disk_with_room_again_is_written_to_again(tmp_path, caplog) -> None:
    with full_disk() as emptied:

        def empty(step: int, n_steps: int, log_loss: float) -> None:
            if step >= 30:
                emptied()
            if step >= 50:
                raise PowerCut

        with pytest.raises(PowerCut):
            run(network_for("constant"), "constant", state=tmp_path / "run", callback=empty)
    assert sum("could not be saved" in message for message in caplog.messages) == 1
    assert 30 <= saved_step(tmp_path / "run") <= 50


def test_a_run_that_began_with_other_threads_goes_on_to_the_bit(tmp_path) -> None:
    def wide() -> GLN:
        return GLN(60, 100, C, init="orthogonal", random_state=5)

    contexts, X = np.tile(CONTEXTS, 34)[:, :100], np.random.default_rng(8).normal(size=(N, 60))
    settings = settings_for("annealed")
    usual, results = torch.get_num_threads(), []
    try:
        for begun, went_on in ((1, 2), (2, 1), (1, 1)):
            file = tmp_path / f"{begun}{went_on}"
            torch.set_num_threads(begun)
            train(wide(), X, Y, contexts, settings=settings, state=file,
                  callback=interrupting(24, raise_interrupt))  # fmt: skip
            torch.set_num_threads(went_on)
            network = wide()
            train(network, X, Y, contexts, settings=settings, state=file, resume=True)
            results.append(network)
    finally:
        torch.set_num_threads(usual)
    for network in results[:-1]:
        assert_equal_weights(network, results[-1])


def test_weights_that_another_processor_rounds_otherwise_are_the_same_seed(kept) -> None:
    network = network_for("constant")
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1 + 2e-16).add_(1e-16)
    before = network_for("constant")
    assert not all(map(torch.equal, network.parameters(), before.parameters()))
    assert go_on(kept, network=network).finished
    with torch.no_grad():
        network = network_for("constant")
        next(network.parameters())[0, 0, 0] += 1e-9
    with pytest.raises(ValueError, match="began from other weights"):
        go_on(kept, network=network)


@pytest.mark.parametrize("entry", ["torch", "threads", "processor"])
def test_a_run_goes_on_where_rounding_differs_and_says_so(entry, kept, caplog) -> None:
    expected = run(network_for("constant"), "constant")
    arrays, record = read_saved(kept, RUN)
    record["made_by"][entry] = "another"
    write_saved(kept, RUN, arrays, record)
    assert_equal_trajectories(go_on(kept), expected)
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"{entry} another then, " in said and "up to rounding" in said
    caplog.clear()
    assert go_on(kept).finished and caplog.messages == []


def test_what_cannot_be_kept_or_resumed_is_refused_at_once(tmp_path) -> None:
    network = network_for("constant")
    with pytest.raises(ValueError, match="`resume` needs `state`"):
        run(network, "constant", resume=True)
    with pytest.raises(ValueError, match="needs an integer `random_state`"):
        train(
            network, X, Y, CONTEXTS, state=tmp_path / "run",
            settings=settings_for("constant", random_state=np.random.default_rng(0)),
        )  # fmt: skip
    assert_equal_weights(network, network_for("constant"))
    assert os.listdir(tmp_path) == []
