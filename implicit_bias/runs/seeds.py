"""The seeds of a run's parts, which follow from one number."""

from __future__ import annotations

from dataclasses import dataclass


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
        """Return the children of `seed`, a non-negative integer."""
        import numpy as np

        if seed < 0:
            raise ValueError(f"`seed` must not be negative, got {seed}")
        children = np.random.SeedSequence(seed).spawn(4)
        return cls(*(int(child.generate_state(1)[0]) for child in children))
