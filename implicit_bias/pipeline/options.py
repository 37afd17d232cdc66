"""The choices of one comparison, and the seeds that follow from one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["TRAINERS", "Options", "Reporter", "Seeds", "resolve"]

# What the trainers of `training.TRAINERS` begin from, unless told otherwise: constant steps from
# the published experiment, the others from the full batch and step sizes of their own.
_AUTOMATIC: Mapping[str, Any] = {"batch_size": 0, "steps": (3000,), "learning_rates": ()}
TRAINERS: Mapping[str, Mapping[str, Any]] = {
    "annealed": _AUTOMATIC,
    "constant": {"batch_size": 128, "steps": (1600, 1600), "learning_rates": (0.04, 0.01)},
    "dual": _AUTOMATIC,
    "momentum": _AUTOMATIC,
    "normalised": _AUTOMATIC,
}
_OF_TRAINING = ("batch_size", "learning_rates", "momentum", "steps", "trainer")


@dataclass(frozen=True)
class Options:
    """What `compare` was asked for; None leaves a choice to the model.

    Attributes
    ----------
    data : {"digits", "mnist", "orthants", "pulse", "quadrants", "ring"}
        scikit-learn's bundled digits; IDX files in `data_dir`; orthogonally separable data; four
        quadrants of the plane; two length scales on a ring, of single pulses or of a nonlinear
        Gaussian process.
    classes : {"two", "all"}
        Digits 0-4 against 5-9, or every class against the rest.
    n_train, n_val : int or None
    hidden_units, contexts : int
        H and C.
    depth : int or None
        Layers of a deep linear or a ReLU network; for the latter 2 is one hidden layer.
    length_scales : (xi_1, xi_0) or None
        Of the classes y = 1 and y = 0 on the ring, for the model gdln.
    network : {"two-layer", "residual"}
        Of the model orthosep.
    cutoffs : {"median", "random", "axes"}
    solver : str
    tol : float
        Relative duality gap.
    trainer : str
        A name in `training.TRAINERS`.
    loss : {"logistic", "exponential"}
    steps : tuple of int
        Steps of the phases of training; empty for a schedule of the model's own.
    learning_rates : tuple of float
        One for each phase; empty where the trainer finds its own.
    momentum : float
    batch_size : int
        0 for the full batch.
    freeze_at : int or None
        Step at which a ReLU network's gates are frozen, for the model relu; half of the steps.
    init : str
    init_scale : float
    device, dtype : str
    seed : int
    """

    data: str = "digits"
    data_dir: Path | None = None
    classes: str = "two"
    n_train: int | None = None
    n_val: int | None = None
    hidden_units: int = 10
    depth: int | None = None
    length_scales: tuple[float, ...] | None = None
    contexts: int = 2
    network: str = "two-layer"
    cutoffs: str = "median"
    solver: str = "interior-point"
    tol: float = 1e-8
    trainer: str = "constant"
    loss: str = "logistic"
    steps: tuple[int, ...] = (1600, 1600)
    learning_rates: tuple[float, ...] = (0.04, 0.01)
    momentum: float = 0.0
    batch_size: int = 128
    freeze_at: int | None = None
    init: str = "orthogonal"
    init_scale: float = 1.0
    device: str = "cpu"
    dtype: str = "float64"
    seed: int = 0


def resolve(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Options:
    """The options that follow from those given, from a model's defaults and from the trainer's.

    A model's defaults for training go with its own trainer; another one begins from its own.
    """
    usual = str(defaults.get("trainer", "constant"))
    trainer = str(given.get("trainer", usual))
    own = {k: v for k, v in defaults.items() if trainer == usual or k not in _OF_TRAINING}
    return Options(**{"trainer": trainer, **TRAINERS[trainer], **own, **given})


@dataclass(frozen=True)
class Seeds:
    """Independent seeds of the parts of a run.

    Contexts and weights drawn from one seed would be correlated, so each part has its own child.
    """

    data: int
    gating: int
    weights: int
    batches: int

    @classmethod
    def from_seed(cls, seed: int) -> Seeds:
        """The children of `seed`, a non-negative integer."""
        import numpy as np

        if seed < 0:
            raise ValueError(f"`seed` must not be negative, got {seed}")
        children = np.random.SeedSequence(seed).spawn(4)
        return cls(*(int(child.generate_state(1)[0]) for child in children))


@dataclass(frozen=True)
class Reporter:
    """How a run tells of its progress, and where it keeps it.

    Attributes
    ----------
    stage, advance : callable
        `stage(text)` once, `advance(done, of)` along it.
    folder : Path or None
        Where an unfinished run is kept.
    resume : bool
        Whether to go on from there.
    """

    stage: Callable[[str], None] = lambda text: None
    advance: Callable[[int, int], None] = lambda done, of: None
    folder: Path | None = None
    resume: bool = False

    def state(self, name: str) -> Path | None:
        """The file of that name in `folder`, if there is one to keep runs in."""
        return None if self.folder is None else self.folder / name

    def check_resumable(self) -> None:
        """See, before any work, that there is a run to go on with if that was asked for.

        Raises
        ------
        ValueError
            If there is none.
        """
        if not self.resume or self.folder is None:
            return
        if not any(self.folder.glob("*run*.safetensors")):
            raise ValueError(
                f"there is no run to resume in {str(self.folder)!r}: leave `--resume` out to begin "
                "one"
            )
