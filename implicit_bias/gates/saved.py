"""What gatings share: integer output, and files that they are made from again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (  # type: ignore[import-untyped,unused-ignore]
    BaseEstimator,
    TransformerMixin,
)
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin as Named,
)
from sklearn.utils.validation import (  # type: ignore[import-untyped,unused-ignore]
    check_is_fitted,
)

from .._names import Unreadable
from .._saved import Kind, read_saved, text_array, write_saved

__all__ = ["MADE_FOR", "Gating"]

MADE_FOR = "the units were made for that many inputs, the constant column included"


class Gating(Named, TransformerMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    """A transformer from inputs to gates or contexts, that can be saved: integers, if not soft.

    `set_output(transform="pandas")`, or "polars", gives data frames; their columns are called by
    `get_feature_names_out()`, the class's name and the number of the gate.

    Attributes
    ----------
    saved : tuple of str
        Names of the arrays that it is made from again.
    """

    saved: ClassVar[tuple[str, ...]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # int64 for every input
        return tags

    @property
    def _n_features_out(self) -> int:
        """How many columns `transform` has; AttributeError where nothing is fitted yet."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is fitted and the parameters to one safetensors file.

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
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted gating that `save` wrote: the same inputs get the same gates.

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
        """Return all that it is made from again, by the names `saved`: numbers and texts.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing is fitted yet.
        """
        check_is_fitted(self)
        return {name: np.asarray(value) for name, value in self._arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], wanted: str = "") -> Self:
        """Make a fitted gating from what `to_arrays` returned; more than that is left out.

        `wanted` begins the message where it is none.

        Raises
        ------
        Unreadable, ValueError
            If an array is missing, or is none of such a gating.
        """
        lacking = [name for name in cls.saved if name not in arrays]
        if lacking:
            raise Unreadable(f"it has no {', '.join(lacking)} of a {cls.__name__}")
        made = {name: arrays[name] for name in cls.saved}
        wanted = wanted or f"it must hold a {cls.__name__}"
        for name, array in made.items():
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise ValueError(f"{wanted}, got numbers in {name!r} that are not finite")
        return cls._made_from(made, wanted)

    def _arrays(self) -> dict[str, Any]:
        """What is saved, under the names `saved`."""
        raise NotImplementedError

    @classmethod
    def _made_from(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        """A gating from what `_arrays` gave; `wanted` begins the message where it is no gating."""
        raise NotImplementedError


def _kind(gating_class: type[Gating]) -> Kind:
    return Kind.of(gating_class, "save the gates again")
