"""Measurement of the rows of a trajectory, on the whole training set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..networks.adapted import plain
from ..networks.losses.attended import attended_loss
from ..networks.losses.margins import least_margins
from ..networks.losses.objectives import get_loss, log_loss
from ..networks.placed_data import GatedData, trained_weights
from ..networks.protocols import HasUnitNorms, check_scores
from .settings import TrainingSettings
from .trajectory import Trajectory

if TYPE_CHECKING:
    from .stops import Stop

Array = NDArray[np.float64]
Observer = Callable[[torch.nn.Module], Mapping[str, Any]]

# A network stands still whose loss and length of weights change by less than this share of
# themselves from the last row within this part of the steps on.
STILL, FROM = 1e-6, 0.75


class TrajectoryRecorder:
    """The rows of one network's trajectory, measured as training goes on.

    Parameters
    ----------
    network : Module
    samples : pair of GatedData, the second one or None
        Training samples, and held-out ones whose scores are recorded.
    kind : str
        The loss.
    observer : callable or None
        ``observer(network)`` returns further measurements by name. One with `steps` is also given
        the network at these, by ``observer.see(step, network)``, whether they have a row or not.

    Attributes
    ----------
    rows : list of dict
        One a checkpoint: the fields of `Trajectory`, and the observer's measurements under keys
        that begin with "observed.".
    seen : set of int
        Steps at which the observer is to see the network.
    """

    def __init__(
        self,
        network: torch.nn.Module,
        samples: tuple[GatedData, GatedData | None],
        kind: str,
        observer: Observer | None,
    ) -> None:
        self._network = network
        self._data, self._held_out = samples
        self._targets = self._data.y.double()
        self._kind, self._objective, self._observer = kind, get_loss(kind), observer
        self.rows: list[dict[str, Any]] = []
        self.seen: frozenset[int] = getattr(observer, "steps", frozenset())

    @property
    def last_step(self) -> int:
        """Step of the last row, -1 without any."""
        return int(self.rows[-1]["step"]) if self.rows else -1

    def observer_state(self) -> Mapping[str, Any]:
        """Return the state of the observer; nothing for one that has none."""
        state_dict = getattr(self._observer, "state_dict", None)
        return {} if state_dict is None else state_dict()

    def restore_observer(self, state: Mapping[str, Any]) -> None:
        """Load what `observer_state` returned into the observer."""
        load_state_dict = getattr(self._observer, "load_state_dict", None)
        if load_state_dict is not None:
            load_state_dict(state)

    def measure(self, step: int, seconds: float, *, keep: bool) -> float:
        """Return log(loss) after `step` steps; with `keep` add a row, unless it has diverged.

        NaN where the norm of the weights overflows.

        Raises
        ------
        ValueError
            If the network returns scores of another shape, or the observer other names than before.
        """
        with torch.no_grad():
            if step in self.seen:
                self._observer.see(step, plain(self._network))  # type: ignore[union-attr]
            scores = self._network(self._data.X, self._data.gates)
            check_scores(scores, tuple(self._data.y.shape), self._network)
            known = self._objective.in_logarithms
            row = self._margin_row(scores) if known else self._fit_row(scores)
            log_loss: float = row["log_loss"]
            if keep and not self.diverged(log_loss):
                row |= {"step": step, "seconds": seconds} | self._network_row(row)
                if not math.isfinite(row["weight_norm"]):
                    return math.nan
                observed = {} if self._observer is None else self._observer(plain(self._network))
                row |= {f"observed.{k}": _kept(v) for k, v in observed.items()}
                if self.rows and row.keys() != self.rows[0].keys():
                    raise ValueError(
                        "the observer must measure the same names at every checkpoint, got others "
                        f"at step {step}: {sorted(row.keys() ^ self.rows[0].keys())}"
                    )
                self.rows.append(row)
        return log_loss

    def diverged(self, log_loss: float) -> bool:
        """Return whether a run with this log(loss) no longer descends.

        A loss of margins must be finite. Another one may come to 0, but a thousand times its first
        value and that of scores 0 it is on its way to overflow.
        """
        if self._objective.in_logarithms:
            return not math.isfinite(log_loss)
        if not self.rows:
            return not log_loss < math.inf
        zero = torch.zeros_like(self._targets)
        # Below 0 for a network that returns its loss, of which a score of 0 says nothing.
        at_zero = max(0.0, float(self._objective.value(zero, self._targets).mean()))
        return not math.exp(min(log_loss, 700.0)) <= 1e3 * (self.rows[0]["loss"] + at_zero)

    def _margin_row(self, scores: Tensor) -> dict[str, Any]:
        known = scores.double()
        if self._objective.of_tokens:
            mean, _, least = attended_loss(known, self._targets)
        else:
            mean = log_loss(known, self._targets, self._kind)
            least = least_margins(known, self._targets).min()
        log, smallest = float(mean), float(least)
        with np.errstate(over="ignore"):
            loss = float(np.exp(log))
        return {"loss": loss, "log_loss": log, "smallest_margin": smallest}

    def _fit_row(self, scores: Tensor) -> dict[str, Any]:
        values = self._objective.value(scores.double(), self._targets)
        loss = float(values.mean())
        return {
            "loss": loss,
            "log_loss": math.log(loss) if loss > 0 else loss - math.inf,
            "smallest_margin": math.nan,
        }

    def _network_row(self, row: dict[str, Any]) -> dict[str, Any]:
        norms, scores = np.empty(0), np.empty(0)
        if isinstance(self._network, HasUnitNorms):
            norms = _to_numpy(self._network.unit_norms())
        if self._held_out is not None:
            scores = _to_numpy(self._network(self._held_out.X, self._held_out.gates))
        total = float(norms.sum()) or math.nan
        log_sum = row["log_loss"] + math.log(len(self._data.y))
        weights = trained_weights(self._network)
        return {
            "normalised_margin": row["smallest_margin"] / total,
            "smooth_margin": -log_sum / total if self._objective.in_logarithms else math.nan,
            "weight_norm": math.hypot(*(float(w.double().norm()) for w in weights)),
            "unit_norms": norms,
            "scores": scores,
        }

    def still_since(self) -> int | None:
        """Return the step since which the network stands still; None where it does not."""
        last = self.rows[-1]
        since = last["step"]
        for row in reversed(self.rows):
            same = row["log_loss"] == last["log_loss"]  # as losses of 0 have no logarithm
            fallen = 0.0 if same else abs(row["log_loss"] - last["log_loss"])
            moved = abs(row["weight_norm"] - last["weight_norm"])
            if fallen > STILL or moved > STILL * last["weight_norm"]:
                break
            since = row["step"]
        return since if since <= FROM * last["step"] and last["step"] > 0 else None

    def stop(self, settings: TrainingSettings) -> Stop | None:
        """Return why the network stands still; None where it does not."""
        since = self.still_since()
        if since is None:
            return None
        from .stops import find_stop  # of few runs

        return find_stop(self._network, self._data, settings, self.rows[0]["loss"], since)

    def trajectory(self, *, finished: bool, stopped: str) -> Trajectory:
        """Return the rows as a trajectory."""
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        prefix = "observed."
        observed = {k.removeprefix(prefix): v for k, v in columns.items() if k.startswith(prefix)}
        own = {k: v for k, v in columns.items() if not k.startswith(prefix)}
        return Trajectory(**own, observed=observed, finished=finished, stopped=stopped)


def _to_numpy(values: Tensor) -> Array:
    return values.detach().double().cpu().numpy()


def _kept(measured: Any) -> Any:
    """Return a copy of an array, which may be a view of weights that train on."""
    return measured.copy() if isinstance(measured, np.ndarray) else measured
