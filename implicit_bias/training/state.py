"""What an unfinished run keeps on disk, and how it is taken up again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .data import GatedData
from .settings import TrainingSettings

__all__ = ["RunState", "Saved"]

FORMAT = "implicit-bias run 1"


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
        from safetensors.torch import save

        tensors = {f"weight.{i}": w for i, w in enumerate(weights)}
        tensors |= {f"stepper.{name}": value for name, value in stepper.items()}
        for name in rows[0] if rows else ():
            stacked = np.array([row[name] for row in rows], dtype=np.float64)
            tensors[f"row.{name}"] = torch.from_numpy(stacked)
        for name, value in observer.items():
            tensors[f"observer.{name}"] = torch.as_tensor(np.array(value))
        metadata = {
            "format": FORMAT,
            "fingerprint": self._fingerprint,
            "began": self._began,
            "run": json.dumps({
                "step": step, "seconds": seconds, "batches": batches,
                # Tensors come back in another order.
                "columns": list(rows[0]) if rows else [],
            }),
        }  # fmt: skip
        content = save({k: v.contiguous().cpu() for k, v in tensors.items()}, metadata=metadata)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_bytes(content)
        os.replace(beside, self._path)

    def read(self, weights: list[Tensor], stepper: dict[str, Tensor]) -> Saved:
        """The run that was kept; `weights` and `stepper` say what it must look like.

        Raises
        ------
        ValueError
            If there is none, or it is of other settings, other data or another network, or of
            a network that began from other weights. Where it stopped is a place to go on from.
        """
        from safetensors import SafetensorError, safe_open

        if not self._path.is_file():
            raise ValueError(
                f"there is no run to resume: {str(self._path)!r} does not exist; leave `resume` "
                "out to begin one"
            )
        device = str(weights[0].device)
        try:
            with safe_open(self._path, framework="pt", device=device) as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise ValueError(
                f"{str(self._path)!r} is no file of a run: {error}; delete it and begin anew"
            ) from error
        if metadata.get("format") != FORMAT or metadata["fingerprint"] != self._fingerprint:
            raise ValueError(
                f"the run in {str(self._path)!r} is of other data or other settings: resume with "
                "the options that it began with, or begin anew in another place"
            )
        run = json.loads(metadata["run"])
        wanted = {f"weight.{i}": w for i, w in enumerate(weights)}
        wanted |= {f"stepper.{name}": value for name, value in stepper.items()}
        for name, like in wanted.items():
            found = tensors.get(name)
            if found is None or found.shape != like.shape or found.dtype != like.dtype:
                raise ValueError(
                    f"the run in {str(self._path)!r} is of another network: its {name} does not "
                    f"have shape {tuple(like.shape)} and dtype {like.dtype}"
                )
        stopped = _digest([tensors[f"weight.{i}"] for i in range(len(weights))])
        if _digest(weights) not in (metadata["began"], stopped):
            raise ValueError(
                f"the run in {str(self._path)!r} began from other weights: make the network as it "
                "was made then, from the same seed and at the same scale"
            )
        self._began = metadata["began"]
        columns = {name: tensors[f"row.{name}"].cpu().numpy() for name in run["columns"]}
        n_rows = len(columns["step"]) if columns else 0
        return Saved(
            step=run["step"],
            seconds=run["seconds"],
            weights=[tensors[f"weight.{i}"] for i in range(len(weights))],
            stepper={name: tensors[f"stepper.{name}"] for name in stepper},
            batches=run["batches"],
            rows=[{k: column[t] for k, column in columns.items()} for t in range(n_rows)],
            observer={
                k.removeprefix("observer."): v.cpu().numpy()
                for k, v in tensors.items()
                if k.startswith("observer.")
            },
        )


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
