"""What an unfinished run keeps on disk, and how it is taken up again."""

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

from .._saved import Kind, read_saved, write_saved
from .data import GatedData
from .settings import TrainingSettings

__all__ = ["RunState", "Saved", "digest_of"]

KIND = Kind("run", "training", "delete it and begin anew")


@dataclass(frozen=True, eq=False)
class Saved:
    """A run between two steps: everything that what follows depends on."""

    step: int
    seconds: float
    weights: list[Tensor]
    stepper: dict[str, Tensor]
    batches: dict[str, Any]
    rows: list[dict[str, Any]]
    observer: dict[str, Any]


class RunState:
    """The file of one run: safetensors, with the numbers that are no tensors as its metadata."""

    def __init__(
        self,
        path: Path,
        settings: TrainingSettings,
        data: Sequence[GatedData],
        network: torch.nn.Module,
        weights: list[Tensor],
    ) -> None:
        self._path = Path(path)
        self._fingerprint = _fingerprint(settings, data, network)
        self._began = _digest(weights)

    def write(
        self,
        *,
        step: int,
        seconds: float,
        weights: list[Tensor],
        stepper: dict[str, Tensor],
        batches: dict[str, Any],
        rows: list[dict[str, Any]],
        observer: Mapping[str, Any],
    ) -> None:
        """Keep the run, in place of what was kept before; never half of it."""
        tensors = {f"weight.{i}": w for i, w in enumerate(weights)}
        tensors |= {f"stepper.{name}": value for name, value in stepper.items()}
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        for name in rows[0] if rows else ():
            arrays[f"row.{name}"] = np.array([row[name] for row in rows], dtype=np.float64)
        arrays |= {f"observer.{name}": np.array(value) for name, value in observer.items()}
        record = {
            "fingerprint": self._fingerprint, "began": self._began,
            "step": step, "seconds": seconds, "batches": batches,
            # Arrays come back in another order.
            "columns": list(rows[0]) if rows else [],
        }  # fmt: skip
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_saved(self._path, KIND, arrays, record)

    def read(self, weights: list[Tensor], stepper: dict[str, Tensor]) -> Saved:
        """The run that was kept; `weights` and `stepper` say what it must look like.

        Raises
        ------
        ValueError
            If there is none, or it is of other settings, other data or another network, or of
            a network that began from other weights. Where it stopped is a place to go on from.
        """
        run, arrays = self._load()
        if run["fingerprint"] != self._fingerprint:
            raise ValueError(
                f"the run in {str(self._path)!r} is of other data or other settings: resume with "
                "the options that it began with, or begin anew in another place"
            )
        wanted = {f"weight.{i}": w for i, w in enumerate(weights)}
        wanted |= {f"stepper.{name}": value for name, value in stepper.items()}
        where = weights[0].device
        tensors = {
            name: torch.from_numpy(array).to(where)
            for name, array in arrays.items()
            if name.startswith(("weight.", "stepper."))
        }
        self._check_network(tensors, wanted)
        kept = [tensors[f"weight.{i}"] for i in range(len(weights))]
        if _digest(weights) not in (run["began"], _digest(kept)):
            raise ValueError(
                f"the run in {str(self._path)!r} began from other weights: make the network as it "
                "was made then, from the same seed and at the same scale"
            )
        self._began = run["began"]
        observed = {k: v for k, v in arrays.items() if k.startswith("observer.")}
        return Saved(
            step=run["step"],
            seconds=run["seconds"],
            weights=kept,
            stepper={name: tensors[f"stepper.{name}"] for name in stepper},
            batches=run["batches"],
            rows=_rows(run["columns"], arrays),
            observer={name.removeprefix("observer."): value for name, value in observed.items()},
        )

    def _load(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What is in the file, if it is one of a run and as it was written."""
        try:
            arrays, run = read_saved(self._path, KIND)
        except FileNotFoundError:
            raise ValueError(
                f"there is no run to resume: {str(self._path)!r} does not exist; leave `resume` "
                "out to begin one"
            ) from None
        return run, arrays

    def _check_network(self, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
        for name, like in wanted.items():
            found = tensors.get(name)
            if found is None or found.shape != like.shape or found.dtype != like.dtype:
                raise ValueError(
                    f"the run in {str(self._path)!r} is of another network: its {name} does not "
                    f"have shape {tuple(like.shape)} and dtype {like.dtype}"
                )


def _rows(names: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """The rows of a trajectory, from the columns that are kept of it."""
    columns = {name: arrays[f"row.{name}"] for name in names}
    n_rows = len(columns["step"]) if columns else 0
    return [{name: column[t] for name, column in columns.items()} for t in range(n_rows)]


def _fingerprint(
    settings: TrainingSettings, data: Sequence[GatedData], network: torch.nn.Module
) -> str:
    """A digest of what must be the same for a run to go on."""
    if isinstance(settings.random_state, np.random.Generator):
        raise ValueError(
            "a run that is kept needs an integer `random_state`: a Generator cannot be compared "
            "with the one it began with"
        )
    fixed = [p for p in network.parameters() if not p.requires_grad]
    parts = [part for sample in data for part in sample] + [*fixed, *network.buffers()]
    return _digest(parts, f"{settings!r} {type(network).__qualname__}")


def _digest(tensors: Sequence[Tensor | None], text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for tensor in tensors:
        if tensor is None:
            digest.update(b"None")
        else:
            digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def digest_of(weights: Sequence[Tensor]) -> str:
    """What tells these weights from any others, in 64 hexadecimal digits."""
    return _digest(weights)
