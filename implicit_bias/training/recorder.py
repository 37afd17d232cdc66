"""The rows of a trajectory, measured on the whole training set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .data import GatedData, trained_weights
from .objectives import log_mean_loss
from .trajectory import Trajectory

__all__ = ["Observer", "Recorder"]

Array = NDArray[np.float64]
Observer = Callable[[torch.nn.Module], Mapping[str, Any]]


class Recorder:
    """Measures one network and keeps the rows of its trajectory.

    Attributes
    ----------
    rows : list of dict
        One a kept checkpoint: the fields of `Trajectory`, and what the observer measured under
        keys that begin with "observed.".
    """

    def __init__(
        self,
        network: torch.nn.Module,
        samples: tuple[GatedData, GatedData | None],
        kind: str,
        observer: Observer | None,
    ) -> None:
        self._network = network
        self._data, self._watched = samples
        self._kind, self._observer = kind, observer
        self.rows: list[dict[str, Any]] = []

    @property
    def last_step(self) -> int:
        return int(self.rows[-1]["step"]) if self.rows else -1

    def observer_state(self) -> Mapping[str, Any]:
        """What the observer remembers; nothing for one that does not."""
        remember = getattr(self._observer, "state_dict", None)
        return {} if remember is None else remember()

    def restore_observer(self, state: Mapping[str, Any]) -> None:
        """Remind the observer of what `observer_state` gave."""
        remind = getattr(self._observer, "load_state_dict", None)
        if remind is not None:
            remind(state)

    def measure(self, step: int, seconds: float, *, keep: bool) -> float:
        """log(loss) after `step` steps, with a row if `keep`; not finite where it diverged."""
        with torch.no_grad():
            margins = (self._data.y * self._network(self._data.X, self._data.gates)).double()
            log_loss = float(log_mean_loss(margins, self._kind))
            if keep and math.isfinite(log_loss):
                row = self._row(step, log_loss, float(margins.min()), seconds)
                observed = {} if self._observer is None else self._observer(self._network)
                row |= {f"observed.{k}": v for k, v in observed.items()}
                if self.rows and row.keys() != self.rows[0].keys():
                    raise ValueError(
                        "the observer must measure the same names at every checkpoint, got others "
                        f"at step {step}: {sorted(row.keys() ^ self.rows[0].keys())}"
                    )
                self.rows.append(row)
        return log_loss

    def _row(
        self, step: int, log_loss: float, smallest_margin: float, seconds: float
    ) -> dict[str, Any]:
        norms = np.empty(0)
        unit_norms = getattr(self._network, "unit_norms", None)
        if unit_norms is not None:
            norms = _to_numpy(unit_norms())
        total = float(norms.sum()) or math.nan
        log_sum = log_loss + math.log(len(self._data.y))
        scores = np.empty(0)
        if self._watched is not None:
            scores = _to_numpy(self._network(self._watched.X, self._watched.gates))
        with np.errstate(over="ignore"):
            loss = float(np.exp(log_loss))
        weights = trained_weights(self._network)
        return {
            "step": step,
            "loss": loss,
            "log_loss": log_loss,
            "smallest_margin": smallest_margin,
            "normalised_margin": smallest_margin / total,
            "smooth_margin": -log_sum / total,
            "weight_norm": math.hypot(*(float(w.double().norm()) for w in weights)),
            "unit_norms": norms,
            "scores": scores,
            "seconds": seconds,
        }

    def trajectory(self, *, finished: bool) -> Trajectory:
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        prefix = "observed."
        observed = {k.removeprefix(prefix): v for k, v in columns.items() if k.startswith(prefix)}
        own = {k: v for k, v in columns.items() if not k.startswith(prefix)}
        return Trajectory(**own, observed=observed, finished=finished)


def _to_numpy(values: Tensor) -> Array:
    return values.detach().double().cpu().numpy()
