"""What a training run went through."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Trajectory"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a training run went through: one entry a checkpoint, read-only float64 arrays.

    Attributes
    ----------
    step : (T,)
        Gradient steps done.
    loss, log_loss : (T,)
        Mean loss over the whole training set and its natural logarithm, which stays finite where
        the loss underflows to 0.
    smallest_margin : (T,)
        ``min_n y_n f(x_n)``.
    normalised_margin : (T,)
        ``smallest_margin / sum_h ||zeta_h||``; NaN for a network without `unit_norms`.
    weight_norm : (T,)
        Euclidean norm of all trained weights.
    unit_norms : (T, H)
        ``||zeta_h||``; (T, 0) for a network without `unit_norms`.
    scores : (T, m)
        Scores of the monitored inputs; (T, 0) if there are none.
    seconds : (T,)
        Wall-clock time since the start, in seconds.
    finished : bool
        False if training was interrupted.
    """

    step: Array
    loss: Array
    log_loss: Array
    smallest_margin: Array
    normalised_margin: Array
    weight_norm: Array
    unit_norms: Array
    scores: Array
    seconds: Array
    finished: bool

    def __post_init__(self) -> None:
        n_rows = len(self.step)
        for name in self._array_names():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != (2 if name in {"unit_norms", "scores"} else 1) or len(array) != n_rows:
                raise ValueError(
                    f"`{name}` must have one entry for each of {n_rows} checkpoints, "
                    f"got shape {array.shape}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def _array_names(cls) -> list[str]:
        return [f.name for f in fields(cls) if f.name != "finished"]

    def to_dict(self) -> dict[str, Any]:
        """Return nested lists and one bool, ready for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in self._array_names()}
        return arrays | {"finished": self.finished}

    def to_frame(self) -> "pd.DataFrame":
        """Return the one-dimensional quantities as a pandas frame, one row a checkpoint."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in self._array_names()}
        return pd.DataFrame({name: a for name, a in columns.items() if a.ndim == 1})
