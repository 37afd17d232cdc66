"""The rows of a trajectory, measured on the whole training set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..networks.adapted import plain
from ..networks.protocols import HasUnitNorms, check_scores
from .data import GatedData, trained_weights
from .objectives import get_loss, log_mean_loss
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
        self._kind, self._objective, self._observer = kind, get_loss(kind), observer
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
        """log(loss) after `step` steps, with a row if `keep` and it has not diverged."""
        with torch.no_grad():
            scores = self._network(self._data.X, self._data.gates)
            check_scores(scores, tuple(self._data.y.shape), self._network)
            row = self._of_margins(scores) if self._objective.logarithm else self._of_fit(scores)
            log_loss: float = row["log_loss"]
            if keep and not self.diverged(log_loss):
                row |= {"step": step, "seconds": seconds} | self._of_network(row)
                observed = {} if self._observer is None else self._observer(plain(self._network))
                row |= {f"observed.{k}": v for k, v in observed.items()}
                if self.rows and row.keys() != self.rows[0].keys():
                    raise ValueError(
                        "the observer must measure the same names at every checkpoint, got others "
                        f"at step {step}: {sorted(row.keys() ^ self.rows[0].keys())}"
                    )
                self.rows.append(row)
        return log_loss

    def diverged(self, log_loss: float) -> bool:
        """Whether what `measure` gave is no longer that of a run that descends.

        The squared loss may come to 0; far above where it began, or where scores of 0 would
        leave it, it is on its way to overflow.
        """
        if self._objective.logarithm is not None:
            return not math.isfinite(log_loss)
        if not self.rows:
            return not log_loss < math.inf
        targets = self._data.y.double()
        # Below 0 for what a network returns as its loss, of which a score of 0 says nothing.
        at_zero = max(0.0, float(self._objective.value(torch.zeros_like(targets), targets).mean()))
        return not math.exp(min(log_loss, 700.0)) <= 1e3 * (self.rows[0]["loss"] + at_zero)

    def _of_margins(self, scores: Tensor) -> dict[str, Any]:
        margins = (self._data.y * scores).double()
        log_loss = float(log_mean_loss(margins, self._kind))
        with np.errstate(over="ignore"):
            loss = float(np.exp(log_loss))
        return {"loss": loss, "log_loss": log_loss, "smallest_margin": float(margins.min())}

    def _of_fit(self, scores: Tensor) -> dict[str, Any]:
        values = self._objective.value(scores.double(), self._data.y.double())
        loss = float(values.mean())
        return {
            "loss": loss,
            "log_loss": math.log(loss) if loss > 0 else loss - math.inf,
            "smallest_margin": math.nan,
        }

    def _of_network(self, row: dict[str, Any]) -> dict[str, Any]:
        norms, scores = np.empty(0), np.empty(0)
        if isinstance(self._network, HasUnitNorms):
            norms = _to_numpy(self._network.unit_norms())
        if self._watched is not None:
            scores = _to_numpy(self._network(self._watched.X, self._watched.gates))
        total = float(norms.sum()) or math.nan
        log_sum = row["log_loss"] + math.log(len(self._data.y))
        weights = trained_weights(self._network)
        return {
            "normalised_margin": row["smallest_margin"] / total,
            "smooth_margin": -log_sum / total if self._objective.logarithm else math.nan,
            "weight_norm": math.hypot(*(float(w.double().norm()) for w in weights)),
            "unit_norms": norms,
            "scores": scores,
        }

    def trajectory(self, *, finished: bool) -> Trajectory:
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        prefix = "observed."
        observed = {k.removeprefix(prefix): v for k, v in columns.items() if k.startswith(prefix)}
        own = {k: v for k, v in columns.items() if not k.startswith(prefix)}
        return Trajectory(**own, observed=observed, finished=finished)


def _to_numpy(values: Tensor) -> Array:
    return values.detach().double().cpu().numpy()
