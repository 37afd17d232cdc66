"""Base of the transformers from inputs to gates: data frames, and files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (  # type: ignore[import-untyped,unused-ignore]
    BaseEstimator,
    TransformerMixin,
)
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin as Named,
)
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
    validate_data,
)

from .._support.doors import door
from .._support.kinds import mapping
from .._support.names import Unreadable
from .._support.saved import Kind, read_saved, text_array, write_saved
from .._support.solve import undisguised
from ..data.arrays import Floats

MADE_FOR = "the units were made for that many inputs, the constant column included"


class Gating(Named, TransformerMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    """A transformer from inputs to gates or contexts: integers, unless gates are soft or leaky.

    `set_output(transform="pandas")`, or "polars", gives data frames; their columns are called by
    `get_feature_names_out()`, the class's name and the number of the gate.

    Attributes
    ----------
    saved : tuple of str
        Names of the arrays in its files.
    absent : mapping of str to float
        Numbers that older files lack, with what they mean by that.

    Examples
    --------
    >>> import tempfile
    >>> gating, path = ib.HyperplaneGates(2).fit(np.eye(3)), tempfile.mkdtemp() + "/gates"
    >>> gating.save(path)
    >>> isinstance(gating, ib.gates.Gating), type(gating).load(path).transform(np.eye(3)).shape
    (True, (3, 3))
    """

    saved: ClassVar[tuple[str, ...]]
    absent: ClassVar[Mapping[str, float]] = MappingProxyType({})

    if TYPE_CHECKING:  # of a base class whose types nobody knows

        def fit_transform(self, X: ArrayLike, y: object = None) -> NDArray[Any]:
            """Fit to inputs (n, D), and return their gates (n, H)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # int64 for every input
        return tags

    @property
    def _n_features_out(self) -> int:
        """Number of columns of `transform`; AttributeError where nothing is fitted yet."""
        raise NotImplementedError

    @door()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted attributes and the parameters to one safetensors file.

        A Generator as `random_state` is not stored; it loads as None.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing is fitted yet.
        OSError
            If the file cannot be written, with its path.
        """
        made = self.to_arrays()
        # Texts, which are no tensors, go into the record.
        texts = {name: array.tolist() for name, array in made.items() if array.dtype.kind == "U"}
        arrays = {name: array for name, array in made.items() if name not in texts}
        write_saved(path, _kind(type(self)), arrays, texts)

    @classmethod
    @door()
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote: the same inputs get the same gates.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is damaged or was not written by `save`.
        """
        kind = _kind(cls)
        arrays, texts = read_saved(path, kind)
        with kind.complete(path):
            made = arrays | {name: text_array(text) for name, text in texts.items()}
            return cls.from_arrays(
                made, f"{os.fspath(path)!r} must be a file that {kind.writer} wrote"
            )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return parameters and fitted attributes as arrays, numbers and texts, named in `saved`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing is fitted yet.
        """
        check_is_fitted(self)
        return {name: np.asarray(value) for name, value in self._arrays().items()}

    @classmethod
    @door(arrays=mapping)
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], wanted: str = "") -> Self:
        """Make a fitted gating from the arrays that `to_arrays` returned.

        Parameters
        ----------
        arrays : mapping of str to array
            Those named in `saved`; others are ignored.
        wanted : str, optional
            Beginning of the message where they are not such arrays.

        Raises
        ------
        Unreadable, ValueError
            If an array is missing, or does not fit the others.
        """
        arrays = {name: np.array(value) for name, value in cls.absent.items()} | dict(arrays)
        lacking = [name for name in cls.saved if name not in arrays]
        if lacking:
            raise Unreadable(f"it has no {', '.join(lacking)} of a {cls.__name__}")
        made = {name: arrays[name] for name in cls.saved}
        wanted = wanted or f"it must hold a {cls.__name__}"
        for name, array in made.items():
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise ValueError(f"{wanted}, got numbers in {name!r} that are not finite")
        return cls._from_checked_arrays(made, wanted)

    def _inputs(self, X: ArrayLike, *, reset: bool = False) -> Floats:
        """Return `X` (n, D) as checked float64; with `reset` remember its width and names."""
        if not reset:
            check_is_fitted(self)
        X = undisguised("X", X)
        inputs: Floats = validate_data(self, X, dtype=np.float64, reset=reset)
        return inputs

    def _arrays(self) -> dict[str, Any]:
        """The arrays of the file, under the names in `saved`."""
        raise NotImplementedError

    @classmethod
    def _from_checked_arrays(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        """The transformer of what `_arrays` returned; `wanted` begins the message if it is none."""
        raise NotImplementedError


def with_slope(gates: NDArray[np.int64], slope: float) -> NDArray[Any]:
    """Return gates in {0, 1}; with a slope those of leaky units, it in place of 0."""
    return np.where(gates == 1, 1.0, slope) if slope else gates


def seed_text(random_state: Any) -> NDArray[Any]:
    """Return a seed as an array of text, which is empty for what is no seed."""
    return np.array(str(random_state) if isinstance(random_state, Integral) else "")


def seed_from(text: NDArray[Any]) -> int | None:
    """Return the seed that `seed_text` wrote, None where there was none."""
    return int(str(text)) if str(text) else None


def _kind(gating_class: type[Gating]) -> Kind:
    return Kind.of(gating_class, "save the gates again")
