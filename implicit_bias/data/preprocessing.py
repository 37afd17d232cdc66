"""Preprocessing of inputs: a standard scale, by the training part, and a constant column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats
from .table import listed

# A column that varies by no more than this share of its largest entry is constant to rounding.
ROUNDING = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of inputs.

    Attributes
    ----------
    standardize : bool
        Whether the mean of each column is subtracted and its standard deviation divided by, both of
        the training part.
    constant : bool
        Whether a column of ones is appended, the only bias that the theory knows.
    """

    standardize: bool
    constant: bool

    def apply(
        self, X_train: Floats, X_val: Floats, columns: Sequence[str]
    ) -> tuple[Floats, Floats]:
        """Return both parts, preprocessed.

        Parameters
        ----------
        X_train, X_val : (n, D) and (m, D) arrays
        columns : sequence of str
            Names of the columns, for messages.

        Raises
        ------
        ValueError
            If a column is constant and has no deviation, or there would be two constant ones.
        """
        largest = np.abs(X_train).max(axis=0)
        still = np.flatnonzero(X_train.max(axis=0) - X_train.min(axis=0) <= ROUNDING * largest)
        if self.standardize:
            if len(still):
                what = listed([columns[int(d)] for d in still])
                raise ValueError(
                    "`standardize`: constant on the training part, with no deviation to divide by, "
                    f"{'are' if len(still) > 1 else 'is'} {what}: "
                    "leave such columns out, or train on more samples (`constant` adds a bias)"
                )
            # In units of a power of two, which round nothing: squares neither overflow nor vanish.
            units = 2.0 ** np.clip(np.frexp(largest)[1], -1000, 1000)
            X_train, X_val = X_train / units, X_val / units
            mean, deviation = X_train.mean(axis=0), X_train.std(axis=0)
            X_train, X_val = (X_train - mean) / deviation, (X_val - mean) / deviation
        elif self.constant:
            bias = [columns[int(d)] for d in still if X_train[0, d] != 0]
            if bias:
                raise ValueError(
                    f"`constant`: {bias[0]!r} is a constant column already, and a second one would "
                    "change what a bias costs: leave one of them out"
                )
        if not self.constant:
            return X_train, X_val
        ended = [np.column_stack([X, np.ones(len(X))]) for X in (X_train, X_val)]
        return ended[0], ended[1]

    @property
    def text(self) -> str:
        """Description of the preprocessing."""
        scale = "standardised by the training part" if self.standardize else "columns as they are"
        return (
            f"{scale}, {'constant 1 in the last column' if self.constant else 'no constant added'}"
        )


def check_no_contradiction(X: Floats, labels: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """Check that equal inputs have equal labels.

    Parameters
    ----------
    X : (n, D) array
        The training part.
    labels : (n,) array
    rows : (n,) array
        Numbers of these samples in their source, for the message.

    Raises
    ------
    ValueError
        With the first two samples that contradict each other, and how many do.
    """
    # Rows as bytes: sorting numbers by column would take D comparisons each. 0 and -0 are equal.
    keys = np.ascontiguousarray(X + 0.0).view(np.dtype((np.void, X.shape[1] * X.itemsize)))[:, 0]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    against = np.flatnonzero(labels != labels[first[group]])
    if len(against):
        pair = sorted(int(rows[i]) for i in (first[group[against[0]]], against[0]))
        raise ValueError(
            f"samples {pair[0]} and {pair[1]} (from 0) have equal inputs and different labels, and "
            f"no predictor tells them apart ({len(against)} samples contradict earlier ones): "
            "correct the labels, or drop such samples"
        )
