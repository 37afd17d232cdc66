"""The command as tests call it: in this process, in one of its own, interrupted, on small files."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner, Result
from safetensors.numpy import load_file

from implicit_bias import Dataset, cli, load_digits
from implicit_bias.data import load_digit_classes
from implicit_bias.datasets import ClassDataset, load_idx
from implicit_bias.models import MODELS
from implicit_bias.options import flag, kinds
from implicit_bias.runs import Progress

ROOT = Path(__file__).parents[1]
# Exit code 5: training ended before the network separates its data, as many short runs do.
DONE = (0, 5)


def run(*arguments: object) -> Result:
    """`compare` in this process; anything but a clean exit is an error here."""
    result = CliRunner().invoke(cli.compare, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert "Traceback" not in result.stderr
    return result


def results(*arguments: object, code: int | tuple[int, ...] = DONE) -> dict[str, Any]:
    """The JSON object of a run that ends with `code`, or one of several codes."""
    result = run(*arguments, "--json", "--quiet")
    codes = code if isinstance(code, tuple) else (code,)
    assert result.exit_code in codes, result.stderr
    return dict(json.loads(result.stdout))


def small_runs(
    usual: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Options of a short run of every model: the `usual` ones that it takes, changed by its `own`.

    None leaves an option to the model.
    """
    assert set(own) <= set(MODELS)
    runs = {}
    for name, model in MODELS.items():
        taken = {key: value for key, value in usual.items() if key in model.option_names}
        changed = taken | dict(own.get(name, {}))
        runs[name] = {key: value for key, value in changed.items() if value is not None}
    return runs


def option_kinds(model: str) -> Mapping[str, Any]:
    """The kinds of the options of a model, with their choices."""
    return kinds(MODELS[model].options)


def typed(options: Mapping[str, Any]) -> list[str]:
    """Options as they stand on a command line."""
    return [word for name, value in options.items() for word in (flag(name), str(value))]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """An interpreter of its own that finds the library."""
    how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    return subprocess.run([sys.executable, *arguments], **how, env=environment())


def entry_point(*arguments: object, code: int) -> subprocess.CompletedProcess[str]:
    """`python -m implicit_bias compare` in a process of its own."""
    done = python("-m", "implicit_bias", "compare", *map(str, arguments))
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def without_times(value: Any) -> Any:
    """A record without what clocks have to say."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k != "seconds"}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def interrupting(stage: str, *, at: float = 0.0, count: int = 1) -> Callable[[bool, Progress], Any]:
    """In place of `cli.watched`: presses Ctrl-C in the stage whose text begins so.

    That is in the `count`th of its reports at or after the share `at` of its work; with count 0 as
    it begins.
    """

    @contextlib.contextmanager
    def progress(quiet: bool, elsewhere: Progress) -> Iterator[Progress]:
        now = {"stage": "", "count": 0}

        def begin(text: str) -> None:
            now.update(stage=text, count=0)
            if count == 0 and text.startswith(stage):
                raise KeyboardInterrupt

        def advance(done: int, of: int) -> None:
            if str(now["stage"]).startswith(stage) and done >= of * at:
                now["count"] = int(now["count"]) + 1
                if now["count"] == count:
                    raise KeyboardInterrupt

        yield Progress(stage=begin, advance=advance)

    return progress


def cut(monkeypatch: Any, arguments: tuple[object, ...], stage: str, **where: Any) -> None:
    """A run that Ctrl-C ends in that stage."""
    with monkeypatch.context() as patched:
        patched.setattr(cli, "watched", interrupting(stage, **where))
        results(*arguments, code=130)


@contextlib.contextmanager
def full_disk(room: int = 100) -> Iterator[Callable[[], None]]:
    """A disk that has room for this many bytes a file, until the function is called."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def empty() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield empty
    finally:
        empty()


def saved_arrays(folder: Path) -> dict[str, Any]:
    """Weights and trajectories that were saved, without clocks."""
    content: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path).drop(columns="seconds")
            content |= {f"{path.name} {name}": frame[name].to_numpy() for name in frame}
        elif "network" in path.name:
            content |= {f"{path.name} {k}": v for k, v in load_file(path).items()}
    return content


def clocks(folder: Path) -> dict[str, list[float]]:
    """The seconds of every saved trajectory."""
    frames = {path.name: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}
    return {name: frame["seconds"].tolist() for name, frame in frames.items()}


def dataset_of(record: dict[str, Any]) -> Dataset:
    """The data that a run says it was given."""
    data, options = record["data"], record["options"]
    sizes = {"n_train": data["n_train"], "n_val": data["n_val"]}
    seed = record["seeds"]["data"]
    if options["data"] == "digits":
        return load_digits(**sizes, random_state=seed)
    return load_idx(options["data_dir"], **sizes, random_state=seed)


def classes_of(record: dict[str, Any]) -> ClassDataset:
    """The digits of ten classes that a run says it was given."""
    sizes = {"n_train": record["data"]["n_train"], "n_val": record["data"]["n_val"]}
    dataset = load_digit_classes(**sizes, random_state=record["seeds"]["data"])
    assert dataset.digest() == record["data"]["sha256"]
    return dataset


def write_idx(path: Path, array: np.ndarray, *, zipped: bool) -> None:
    """An IDX file of bytes."""
    content = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    content += array.astype(np.uint8).tobytes()
    if zipped:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


def write_mnist(folder: Path, *, pair: str = "t10k", zipped: bool = True, n: int = 130) -> Path:
    """A folder like MNIST's with random images of ten classes in turn."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(n, 28, 28))
    write_idx(folder / f"{pair}-images-idx3-ubyte", images, zipped=zipped)
    write_idx(folder / f"{pair}-labels-idx1-ubyte", np.arange(n) % 10, zipped=zipped)
    return folder


def home(thing: Any) -> ModuleType:
    """Return the module that defines a public thing, wherever that is, to replace a part of it."""
    return sys.modules[thing.__module__]
