"""The file of an unfinished run, of one network or several, from which it is resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._support.files import check_writable
from .._support.saved import RUN, read_saved, write_saved
from ..networks.placed_data import GatedData
from .settings import TrainingSettings


@dataclass(frozen=True, eq=False)
class RunState:
    """A run between two steps: everything on which its remaining steps depend.

    Attributes
    ----------
    step : int
        Steps done.
    seconds : float
        Seconds spent on them.
    weights : list of tensors
    stepper : dict of tensors
        State of the gradient method.
    batches : dict
        State of the mini-batches.
    rows : list of lists of dict
        Rows of the trajectory of each network.
    observers : list of mappings of str to array
        State of the observer of each network.
    failures : list of str or None
        Why each network has ended, where it has diverged.
    made_by : mapping of str to str
        On what rounding depends beside the run itself: versions, threads, the device.
    """

    step: int
    seconds: float
    weights: list[Tensor]
    stepper: dict[str, Tensor]
    batches: dict[str, Any]
    rows: list[list[dict[str, Any]]]
    observers: list[Mapping[str, Any]]
    failures: list[str | None]
    made_by: Mapping[str, str]


class RunFile:
    """The file of one run: safetensors, with single numbers and texts as its metadata.

    Parameters
    ----------
    path : Path
    settings : TrainingSettings
    data : sequence of GatedData
    network : Module
        As it is before the first step.
    weights : list of tensors
        Its trained weights.

    Raises
    ------
    ValueError
        If the file cannot be written, or the order of the batches comes from a Generator, which
        cannot be compared with another.
    """

    def __init__(
        self,
        path: Path,
        settings: TrainingSettings,
        data: Sequence[GatedData],
        network: torch.nn.Module,
        weights: list[Tensor],
    ) -> None:
        self._path = Path(path)
        check_writable(self._path.parent, folder=True)
        if self._path.parent.exists():
            check_writable(self._path, folder=False)
        self._fingerprint = _fingerprint(settings, data, network)
        self._initial = _sizes_of(weights)

    def write(self, state: RunState) -> None:
        """Save a run in place of what was saved before; never half of it."""
        tensors = _tensors(state.weights, state.stepper)
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        columns = [list(rows[0]) if rows else [] for rows in state.rows]
        for b, (rows, observer) in enumerate(zip(state.rows, state.observers, strict=True)):
            for name in columns[b]:
                values = np.array([row[name] for row in rows], dtype=np.float64)
                arrays[f"{_of(b)}row.{name}"] = values
            arrays |= {f"{_of(b)}observer.{name}": np.array(v) for name, v in observer.items()}
        record = {
            "fingerprint": self._fingerprint, "initial_weights": self._initial,
            "step": state.step, "seconds": state.seconds, "batches": state.batches,
            "made_by": dict(state.made_by), "failures": state.failures,
            # Arrays come back in another order.
            "columns": columns[0], "further_columns": columns[1:],
        }  # fmt: skip
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_saved(self._path, RUN, arrays, record)

    def read(self, weights: list[Tensor], stepper: dict[str, Tensor]) -> RunState:
        """Return the run that was saved.

        Parameters
        ----------
        weights, stepper : tensors
            Those of the run that is to go on from it, with the same shapes.

        Raises
        ------
        ValueError
            If there is none, or it is of other settings, other data or another network, or of
            a network that began from other weights. `weights` where it stopped are such to go on
            from.
        """
        try:
            arrays, record = read_saved(self._path, RUN)
        except FileNotFoundError:
            raise ValueError(
                f"there is no run to resume: {str(self._path)!r} does not exist; leave `resume` "
                "out to begin one"
            ) from None
        if record["fingerprint"] != self._fingerprint:
            raise ValueError(
                f"the run in {str(self._path)!r} is of other data or other settings: resume with "
                "the options that it began with, or begin anew in another place"
            )
        wanted = _tensors(weights, stepper)
        tensors = {
            # Some numbers of a method stay on the CPU wherever the weights are.
            name: torch.from_numpy(array).to(wanted[name].device)
            for name, array in arrays.items()
            if name in wanted
        }
        self._check_network(tensors, wanted)
        saved = [tensors[f"weight.{i}"] for i in range(len(weights))]
        # Not by their bits: another processor may round them otherwise.
        begun = _alike(_sizes_of(weights), record["initial_weights"], weights)
        if not begun and digest_of(weights) != digest_of(saved):
            raise ValueError(
                f"the run in {str(self._path)!r} began from other weights: make the network as it "
                "was made then, from the same seed and at the same scale"
            )
        self._initial = record["initial_weights"]
        # Runs of one network once were all that is saved.
        columns = [record["columns"], *record.get("further_columns", [])]
        return RunState(
            step=record["step"],
            seconds=record["seconds"],
            weights=saved,
            stepper={name: tensors[f"stepper.{name}"] for name in stepper},
            batches=record["batches"],
            rows=[
                _rows({name: arrays[f"{_of(b)}row.{name}"] for name in names})
                for b, names in enumerate(columns)
            ],
            observers=[_below(f"{_of(b)}observer.", arrays) for b in range(len(columns))],
            failures=record.get("failures", [None]),
            made_by=record["made_by"],
        )

    def _check_network(self, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
        for name, like in wanted.items():
            found = tensors.get(name)
            if found is None or found.shape != like.shape or found.dtype != like.dtype:
                raise ValueError(
                    f"the run in {str(self._path)!r} is of another network: its {name} does not "
                    f"have shape {tuple(like.shape)} and dtype {like.dtype}"
                )


def _tensors(weights: Sequence[Tensor], stepper: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights and state of the gradient method, by their names in the file."""
    named = {f"weight.{i}": w for i, w in enumerate(weights)}
    return named | {f"stepper.{name}": value for name, value in stepper.items()}


def _of(b: int) -> str:
    """What begins the names of arrays of network b."""
    return f"{b}." if b else ""


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays whose names begin with a prefix, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _rows(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """The rows of a trajectory, from its columns."""
    n_rows = len(columns["step"]) if columns else 0
    return [{name: column[t] for name, column in columns.items()} for t in range(n_rows)]


def _fingerprint(
    settings: TrainingSettings, data: Sequence[GatedData], network: torch.nn.Module
) -> str:
    """A digest of what must be the same for a run to go on."""
    if isinstance(settings.random_state, np.random.Generator):
        raise ValueError(
            "a run that is saved needs an integer `random_state`: a Generator cannot be compared "
            "with the one it began with"
        )
    fixed = [p for p in network.parameters() if not p.requires_grad]
    parts = [part for sample in data for part in sample] + [*fixed, *network.buffers()]
    return digest_of(parts, f"{settings!r} {type(network).__qualname__}")


def _sizes_of(weights: Sequence[Tensor]) -> list[list[float]]:
    """Return norm and one projection of each weight: alike up to rounding if the weights are."""
    sizes = []
    for weight in weights:
        flat = weight.detach().cpu().double().flatten()
        along = torch.cos(torch.arange(1, len(flat) + 1, dtype=torch.float64))
        sizes.append([float(flat.norm()), float(flat @ along)])
    return sizes


def _alike(found: list[list[float]], kept: Any, weights: Sequence[Tensor]) -> bool:
    """Return True for the sizes of the same weights, to the rounding of their dtype."""
    one, other = np.array(found), np.array(kept, dtype=np.float64)
    if one.shape != other.shape:
        return False
    close = 1e3 * max(torch.finfo(weight.dtype).eps for weight in weights)
    return bool(np.all(np.abs(one - other) <= close * other[:, :1]))


def digest_of(tensors: Sequence[Tensor | None], text: str = "") -> str:
    """Return SHA-256, in 64 hexadecimal digits, of shapes, dtypes and bytes of tensors."""
    digest = hashlib.sha256(text.encode())
    for tensor in tensors:
        if tensor is None:
            digest.update(b"None")
        else:
            digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
