"""Ctrl-C at any time of a command: one word or the results, exit code 130, never a traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

import implicit_bias as ib
from tests.commands import environment
from tests.long import some_of

COMMAND = ("-m", "implicit_bias")
LONG = ("compare", "--model", "linear", "--trainer", "constant", "--n-train", "40", "--steps",
        "100000000")  # fmt: skip


def started(*words: str, flags: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *flags, *COMMAND, *words], text=True, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # A parent in the background ignores SIGINT, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def wait_for(process: subprocess.Popen[str], word: str) -> Iterator[str]:
    """The lines of stderr up to one with this word."""
    assert process.stderr is not None
    for line in process.stderr:
        yield line
        if word in line:
            return
    raise AssertionError(f"{word!r} never came")


def ended(process: subprocess.Popen[str], said: str) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, said + err
    for word in ("Traceback", "Exception ignored", "KeyboardInterrupt", "Aborted"):
        assert word not in said + err
    return out, err


@pytest.mark.parametrize(
    ("module", "times"),
    [("implicit_bias._support.interrupts", 1), ("click", 2), ("numpy", 1), ("torch.nn", 2)],
)
def test_ctrl_c_while_a_command_starts_ends_it_in_a_word(module, times) -> None:
    process = started(*LONG, flags=("-X", "importtime"))
    said = "".join(wait_for(process, f" {module}\n"))
    if module.endswith(".interrupts"):  # which the command enters right after
        said += "".join(wait_for(process, " implicit_bias.options.fields\n"))
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    _, err = ended(process, said)
    # Torch is loaded when there is something to train, by a run that says what it has.
    assert err.rstrip().endswith(("interrupted", "interrupted before there was anything to report"))


@pytest.mark.parametrize("times", some_of([3, 1], one_in=2))
def test_ctrl_c_in_training_reports_what_was_finished_however_often(times, tmp_path) -> None:
    process = started(*LONG, "--json", "--save", str(tmp_path))
    said = "".join(wait_for(process, "training"))
    while times == 1 and not (tmp_path / "run.safetensors").exists():  # at the first checkpoint
        time.sleep(0.02)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    out, err = ended(process, said)
    if times == 1 or out:
        record = json.loads(out)
        assert record["limit"]["status"] == "SOLVED"
        assert "interrupted: what was finished is reported" in err
    if times == 1:
        assert record["network"]["finished"] is False and record["network"]["steps"] < 1e8
        assert json.loads((tmp_path / "results.json").read_text()) == record
        saved = ib.load(tmp_path)
        assert not saved.finished and saved.limit is not None and saved.network is not None


def test_ctrl_c_while_a_sweep_starts_ends_it_in_a_word(tmp_path) -> None:
    words = ("sweep", "--model", "linear", "--seed", "0:40", "--out", str(tmp_path / "x"))
    process = started(*words, flags=("-X", "importtime"))
    said = "".join(wait_for(process, " numpy\n"))
    process.send_signal(signal.SIGINT)
    ended(process, said)
