"""Random gates of single samples, which are not functions of the input."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.doors import check_parameters
from .._support.kinds import between
from .._support.solve import require_sizes
from ..data.arrays import Floats
from .gating import Gating, seed_from, seed_text
from .layered import check_widths


class RandomGates(Gating):
    r"""Fixed random gates (FRG): open with probability `rate`, independently, sample by sample.

    The gates are a table with a row for each sample, not a function of the input: equal inputs
    have different rows, and there is no row for an input that was not there at `fit`.

    Parameters
    ----------
    widths : sequence of int
        Number of gates of every layer.
    rate : float
        Share of open gates, in [0, 1].
    random_state : int, numpy.random.Generator or None
        Source of the gates. None draws afresh at each fit.

    Attributes
    ----------
    table_ : (n, sum of widths) array of int64
    n_features_in_ : int
        D.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, "Neural path features and neural path kernel": deep gated
    networks with fixed random gates.

    Examples
    --------
    >>> ib.gates.RandomGates(widths=(2, 3), rate=1.0).fit_transform(np.ones((4, 1))).tolist()[0]
    [1, 1, 1, 1, 1]
    """

    saved = ("table", "widths", "rate", "random_state", "n_inputs", "samples")

    table_: NDArray[np.int64]
    n_features_in_: int
    _samples: str

    def __init__(
        self,
        *,
        widths: Sequence[int],
        rate: float = 0.5,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.widths = widths
        self.rate = rate
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw gates for the rows of `X` (n, D).

        Raises
        ------
        TypeError
            If a width is not an integer.
        ValueError
            If a width is not positive, `rate` is not in [0, 1], or `X` is not finite.
        """
        check_parameters(self, rate=between(0, 1))
        check_widths(self.widths)
        inputs = self._inputs(X, reset=True)
        shape = (len(inputs), sum(self.widths))
        sizes = {f"widths[{i}]": width for i, width in enumerate(self.widths)}
        require_sizes("gates", sizes, shape)
        rng = np.random.default_rng(self.random_state)
        drawn = rng.random(shape) < self.rate
        self.table_, self._samples = drawn.astype(np.int64), _digest(inputs)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the gates (n, sum of widths) of the samples of `fit`, all of them in their order.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If no gates have been drawn.
        ValueError
            If `X` is anything else: it has no gates.
        """
        inputs = self._inputs(X)
        if _digest(inputs) != self._samples:
            raise ValueError(
                f"random gates belong to the {len(self.table_)} samples that they were drawn for, "
                f"and `X` ({len(inputs)} rows) is not these: a network with such gates does not "
                "predict other inputs. For gates that are functions of the input take LinearGates "
                "or NetworkGates"
            )
        return self.table_.copy()

    @property
    def _n_features_out(self) -> int:
        return int(self.table_.shape[1])

    def _arrays(self) -> dict[str, Any]:
        return {
            "table": self.table_,
            "widths": np.array(self.widths, dtype=np.int64),
            "rate": np.array(float(self.rate)),
            "random_state": seed_text(self.random_state),
            "n_inputs": np.array(self.n_features_in_),
            "samples": np.array(self._samples),
        }

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        table, widths = arrays["table"], arrays["widths"]
        if table.ndim != 2 or widths.ndim != 1 or table.shape[1] != widths.sum():
            raise ValueError(
                f"{wanted}, got a table of shape {table.shape} for widths {widths.tolist()}: save "
                "the gates again"
            )
        gating = cls(
            widths=tuple(widths.tolist()),
            rate=float(arrays["rate"]),
            random_state=seed_from(arrays["random_state"]),
        )
        gating.table_, gating._samples = table.astype(np.int64), str(arrays["samples"])
        gating.n_features_in_ = int(arrays["n_inputs"])
        return gating


def _digest(X: Floats) -> str:
    """SHA-256 of the shape and the values, minus zero as zero."""
    values = np.ascontiguousarray(X) + 0.0
    return hashlib.sha256(str(X.shape).encode() + values.tobytes()).hexdigest()
