"""The course of a training run, as arrays with one entry a checkpoint."""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, result
from .._support.extras import naming_extras
from .._support.files import write_atomically
from .._support.pictures import draw
from .._support.saved import Kind, filled, read_saved, write_saved
from .._support.solve import html_table
from ..quantities.said import Said, Writer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

# Prefix of the names of an observer's measurements, in a file.
_OBSERVED = "observed."
_NO_ARRAYS = {"finished", "observed", "stopped"}


@result()
@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Said):
    """The course of a training run: read-only float64 arrays with one entry a checkpoint.

    Attributes
    ----------
    step : (T,)
        Gradient steps done.
    loss, log_loss : (T,)
        Mean loss over the whole training set and its natural logarithm, which stays finite where
        the loss underflows to 0.
    smallest_margin : (T,)
        ``min_n y_n f(x_n)``; NaN, like the other margins, for a loss that is not one of margins.
    normalised_margin : (T,)
        ``smallest_margin / sum_h ||zeta_h||``; NaN for a network without `unit_norms`.
    smooth_margin : (T,)
        ``-log(sum_n loss_n) / sum_h ||zeta_h||``. For the exponential loss at most the normalised
        margin; for the logistic one, while all margins are positive, above it by at most
        ``log(1 / log 2) / sum_h ||zeta_h||``. NaN for a network without `unit_norms`.
    weight_norm : (T,)
        Euclidean norm of all trained weights.
    unit_norms : (T, H)
        ``||zeta_h||``; (T, 0) for a network without `unit_norms`.
    scores : (T, m) or (T, m, K)
        Scores of the held-out inputs; (T, 0) if there are none.
    seconds : (T,)
        Wall-clock time since the start, in seconds.
    finished : bool
        False if training was interrupted.
    observed : mapping of str to (T, ...)
        Measurements of an observer at the checkpoints, by the observer's names.
    stopped : str
        Since when loss and weights have stood still, and why; empty where they moved in the last
        quarter of the steps.

    Raises
    ------
    ValueError
        If an array has not T rows, or a name in `observed` is that of a field.

    Examples
    --------
    >>> settings = ib.TrainingSettings(schedule=((100, 0.1),), batch_size=0, n_checkpoints=3)
    >>> X, y = [[2.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    >>> trajectory = ib.train(ib.DeepLinear(2), X, y, settings=settings)
    >>> trajectory.step.tolist(), bool(np.all(np.diff(trajectory.loss) < 0))
    ([0.0, 1.0, 100.0], True)
    """

    step: Array
    loss: Array
    log_loss: Array
    smallest_margin: Array
    normalised_margin: Array
    smooth_margin: Array
    weight_norm: Array
    unit_norms: Array
    scores: Array
    seconds: Array
    finished: bool
    observed: Mapping[str, Array] = field(default_factory=dict)
    stopped: str = ""

    def __post_init__(self) -> None:
        n_rows = len(self.step)
        for name in self._array_names():
            n_axes = {"unit_norms": (2,), "scores": (2, 3)}.get(name, (1,))
            object.__setattr__(self, name, _rows(name, getattr(self, name), n_rows, n_axes))
        taken = sorted(set(self.observed) & {f.name for f in fields(self)})
        if taken:
            raise ValueError(
                f"`observed` has {taken}, which the trajectory measures itself: rename them"
            )
        observed = {name: _rows(name, a, n_rows) for name, a in self.observed.items()}
        object.__setattr__(self, "observed", observed)

    @classmethod
    def _array_names(cls) -> list[str]:
        return [f.name for f in fields(cls) if f.name not in _NO_ARRAYS]

    @property
    def _arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in self._array_names()}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as nested lists, those of `observed` in a dict of their own."""
        arrays = {name: array.tolist() for name, array in self._arrays.items()}
        observed = {name: array.tolist() for name, array in self.observed.items()}
        return arrays | {"finished": self.finished, "observed": observed, "stopped": self.stopped}

    def record(self) -> dict[str, Any]:
        """Return the outcome of training."""
        return {
            "steps": int(self.step[-1]),
            "loss": float(self.loss[-1]),
            "log_loss": float(self.log_loss[-1]),
            "seconds": float(self.seconds[-1]),
            "finished": self.finished,
        }

    def cells(self) -> dict[str, Any]:
        """Return the values of the run's row, at its end."""
        return {
            "n_steps": int(self.step[-1]),
            "final_loss": float(self.loss[-1]),
            "log_inverse_loss": -float(self.log_loss[-1]),
            "training_seconds": float(self.seconds[-1]),
            "smallest_margin": float(self.smallest_margin[-1]),
        }

    @door()
    def files(self, name: str) -> dict[str, Writer]:
        """Return the writer of its scalar columns, as Parquet."""
        return {f"{name}.parquet": self._write_frame}

    def _write_frame(self, path: Path) -> None:
        content = io.BytesIO()
        self.to_frame().to_parquet(content, index=False)
        write_atomically(path, content.getvalue())

    @door()
    def quantity(self, name: str) -> Array:
        """Return an array (T,) or (T, k) by its name, a field or one in `observed`.

        Raises
        ------
        ValueError
            If there is none of that name, or it has further axes.
        """
        known = self._arrays | dict(self.observed)
        found = {one: array for one, array in known.items() if array.ndim <= 2}
        if name not in found:
            raise ValueError(
                f"`name` {name!r} is no quantity of this trajectory (`quantity`): it has "
                f"{', '.join(found)}"
            )
        return found[name]

    @door()
    def plot(self, ax: "Axes | None" = None, *, quantity: str | None = None) -> "Axes":
        """Draw a quantity over the steps, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default axes of a new figure.
        quantity : str, optional
            Name of an array (T,) or (T, k), a field or one in `observed`. By default the normalised
            margin, or log(1 / loss) where there is none.

        Raises
        ------
        ValueError
            If there is no such quantity.
        MissingExtra
            If matplotlib is not installed.
        """
        return draw("runs.drawing.results:plot_quantity", self, quantity, ax=ax)

    @door()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, `observed` too, to one safetensors file; `load` reads it back.

        Raises
        ------
        OSError
            If the file cannot be written, with its path; an earlier file stays as it was.
        """
        observed = {f"{_OBSERVED}{name}": array for name, array in self.observed.items()}
        record = {
            "finished": self.finished, "observed": list(self.observed), "stopped": self.stopped,
        }  # fmt: skip
        write_saved(path, Kind.of(type(self)), self._arrays | observed, record)

    @classmethod
    @door()
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is not a saved trajectory, whole and unchanged.
        """
        kind = Kind.of(cls)
        arrays, record = read_saved(path, kind)
        with kind.complete(path, "it"):
            observed = {name: arrays[f"{_OBSERVED}{name}"] for name in record["observed"]}
            return cls(**filled(cls, arrays | record | {"observed": observed}))

    def __repr__(self) -> str:
        if not len(self.step):
            return "Trajectory(no checkpoints)"
        n_rows, ending = len(self.step), "finished" if self.finished else "interrupted"
        observed = f", {len(self.observed)} observed" if self.observed else ""
        return (
            f"Trajectory({n_rows} checkpoints to step {int(self.step[-1])}, {ending}\n"
            f"  log_loss {self.log_loss[-1]:.6g}, smallest_margin {self.smallest_margin[-1]:.6g}, "
            f"weight_norm {self.weight_norm[-1]:.6g}, {self.seconds[-1]:.3g} s\n"
            f"  {self.unit_norms.shape[1]} unit_norms, {self.scores.shape[1]} scores{observed})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (name, *(f"{array[place]:.6g}" for place in (0, len(array) // 2, -1)))
            for name, array in (self._arrays | dict(self.observed)).items()
            if len(array) and array.ndim == 1
        ]
        title = f"{len(self.step)} checkpoints{'' if self.finished else ', interrupted'}"
        return html_table(f"Trajectory: {title}", ("", "start", "half way", "end"), rows)

    @naming_extras()
    def to_frame(self) -> "pd.DataFrame":
        """Return the one-dimensional quantities as a pandas frame, one row a checkpoint."""
        import pandas as pd

        columns = self._arrays | dict(self.observed)
        return pd.DataFrame({name: a for name, a in columns.items() if a.ndim == 1})


def _rows(name: str, values: Any, n_rows: int, n_axes: tuple[int, ...] = ()) -> Array:
    """A read-only copy with one entry a checkpoint, along any further axes without `n_axes`."""
    array = np.array(values, dtype=np.float64)
    if array.ndim == 0 or len(array) != n_rows or (n_axes and array.ndim not in n_axes):
        raise ValueError(
            f"`{name}` must have one entry for each of {n_rows} checkpoints, got shape "
            f"{array.shape}"
        )
    array.flags.writeable = False
    return array
