"""The choices of one comparison, and the seeds that follow from one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Options", "Reporter", "Seeds"]


@dataclass(frozen=True)
class Options:
    """What `compare` was asked for; None leaves a choice to the model.

    Attributes
    ----------
    data : {"digits", "mnist", "orthants", "ring"}
        scikit-learn's bundled digits; IDX files in `data_dir`; orthogonally separable data; two
        length scales on a ring.
    classes : {"two", "all"}
        Digits 0-4 against 5-9, or every class against the rest.
    n_train, n_val : int or None
    hidden_units, contexts : int
        H and C.
    depth : int
        Layers of a deep linear network.
    cutoffs : {"median", "random"}
    solver : str
    tol : float
        Relative duality gap.
    loss : {"logistic", "exponential"}
    steps : tuple of int
        Steps of the phases of training; empty for a schedule of the model's own.
    learning_rates : tuple of float
        One for each phase.
    momentum : float
    batch_size : int
        0 for the full batch.
    normalise : bool
        Descend the logarithm of the loss (full batch).
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
    depth: int = 3
    contexts: int = 2
    cutoffs: str = "median"
    solver: str = "interior-point"
    tol: float = 1e-8
    loss: str = "logistic"
    steps: tuple[int, ...] = (1600, 1600)
    learning_rates: tuple[float, ...] = (0.04, 0.01)
    momentum: float = 0.0
    batch_size: int = 128
    normalise: bool = False
    init: str = "orthogonal"
    init_scale: float = 1.0
    device: str = "cpu"
    dtype: str = "float64"
    seed: int = 0


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
    """How a run tells of its progress: `stage(text)` once, `advance(done, of)` along it."""

    stage: Callable[[str], None] = lambda text: None
    advance: Callable[[int, int], None] = lambda done, of: None
