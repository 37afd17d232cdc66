"""The ReLU network that trains for a while, freezes its gates and goes on: beside its limit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._solve import Status, to_numpy
from ...data.sample import Sample
from ...measures.comparison import NetworkState, measure_network
from ...pipeline.classification import trace, write_frame, write_weights
from ...pipeline.options import Options, Reporter
from ...pipeline.report import Assumption
from ...training.settings import TrainingSettings
from .comparison import FrozenComparison, compare_frozen
from .formulation import FReLULimit, solve_frelu_svm
from .freezing import PartlyTrained, train_then_freeze
from .network import ReLU

__all__ = ["FrozenRun", "forget_frozen", "freezing_step", "run_frozen"]

# Where the two parts of an unfinished run are kept: before and after the freeze.
RUNS = ("frozen-run-before.safetensors", "frozen-run-after.safetensors")


@dataclass(frozen=True, eq=False)
class FrozenRun:
    """A partly trained network and the limit on its frozen gates.

    Attributes
    ----------
    parts : PartlyTrained
    limit : FReLULimit
    comparison : FrozenComparison
    state : NetworkState
    gates : (n, H) array
        Of the training samples, as they were frozen.
    finished : bool
    """

    parts: PartlyTrained
    limit: FReLULimit
    comparison: FrozenComparison
    state: NetworkState
    gates: NDArray[Any]
    finished: bool

    @property
    def name(self) -> str:
        """What to call the limit in a message."""
        return f"SVM-FReLU on the gates of step {self.comparison.freeze_at}"

    @property
    def log_loss(self) -> float:
        """Logarithm of the last loss; NaN if there was no step after the freeze."""
        return math.nan if self.parts.after is None else float(self.parts.after.log_loss[-1])

    def assumptions(self) -> tuple[Assumption, ...]:
        """Of the theorem about networks whose gates do not change."""
        step = self.comparison.freeze_at
        separable = self.limit.certificate.proves_separability() or None
        return (
            Assumption(
                f"the data are separable in the gates of step {step} (certified)",
                False if self.limit.status is Status.NOT_SEPARABLE else separable,
            ),
            Assumption(
                f"the loss of the copy that froze them tends to 0: log(1/loss) is "
                f"{-self.log_loss:.3g} at the end, and directions converge like its inverse",
                None,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        after = self.parts.after
        steps = {"steps_since": 0 if after is None else int(after.step[-1])}
        return {
            "freeze_at": self.comparison.freeze_at,
            "limit": self.limit.to_dict(),
            "network": asdict(self.state)
            | steps
            | {"log_loss": self.log_loss, "finished": self.finished},
            "comparison": self.comparison.to_dict(),
        }

    def artefacts(self) -> dict[str, Any]:
        """Files to keep, by name."""
        files: dict[str, Any] = {
            "frozen-limit.safetensors": self.limit.save,
            "frozen-network.safetensors": write_weights(self.parts.network),
            "frozen-gating.npz": self.parts.gating.save,
        }
        if self.parts.after is not None:
            files["frozen-trajectory.parquet"] = write_frame(self.parts.after)
        return files


def freezing_step(options: Options, settings: TrainingSettings) -> int:
    """The step that the options name, or half of the steps.

    Raises
    ------
    ValueError
        If training ends before it.
    """
    if options.freeze_at is None:
        return settings.n_steps // 2
    if options.freeze_at > settings.n_steps:
        raise ValueError(
            f"`--freeze-at {options.freeze_at}` lies beyond the {settings.n_steps} steps of the "
            "schedule: freeze earlier, or give more `--steps`"
        )
    return options.freeze_at


def forget_frozen(reporter: Reporter) -> None:
    """Delete what an earlier run has kept: another one would take it for its own unfinished one."""
    for path in map(reporter.state, RUNS):
        if path is not None:
            path.unlink(missing_ok=True)


def run_frozen(
    network: ReLU,
    samples: tuple[Sample, Sample],
    settings: TrainingSettings,
    options: Options,
    reporter: Reporter,
    *,
    freeze_at: int,
) -> FrozenRun | None:
    """Train `network`, not yet trained, up to `freeze_at`, freeze its gates, go on, compare.

    None if it was interrupted before it had frozen them.

    Raises
    ------
    FloatingPointError
        If training diverges.
    """
    train_part, held_out = samples
    reporter.stage(f"training it again, with its gates frozen at step {freeze_at}")
    before, after = map(reporter.state, RUNS)
    parts = train_then_freeze(
        network, train_part.X, train_part.y, freeze_at=freeze_at, settings=settings,
        monitor=held_out.X, callback=trace(reporter),
        states=None if before is None or after is None else (before, after),
        resume=reporter.resume,
    )  # fmt: skip
    if parts.before is not None and not parts.before.finished:
        return None
    reporter.stage(f"solving SVM-FReLU on the gates of step {freeze_at} ({options.solver})")
    # Limit and network get the same gates: those that the ReLU network had when it stopped.
    gated_train, gated_held_out = (
        Sample(sample.X, sample.y, to_numpy(network.gates(sample.X)).astype(np.float64))
        for sample in samples
    )
    limit = solve_frelu_svm(*gated_train, solver=options.solver, tol=options.tol)
    return FrozenRun(
        parts=parts,
        limit=limit,
        comparison=compare_frozen(
            limit, parts.network, gated_train, gated_held_out, freeze_at=freeze_at
        ),
        state=measure_network(parts.network, gated_train, gated_held_out),
        gates=gated_train.gates,
        finished=parts.after is None or parts.after.finished,
    )
