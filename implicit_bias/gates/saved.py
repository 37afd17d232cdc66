"""What gatings share: integer output, and npz archives without pickles that hold them."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
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

from .._files import write_atomically

__all__ = ["Gating"]


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
        """Write what is fitted and the parameters to `path`, an npz archive without pickles.

        A Generator as `random_state` is not stored; it loads as None.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing is fitted yet.
        OSError
            If the file cannot be written, with its path.
        """
        check_is_fitted(self)
        content = io.BytesIO()
        np.savez(content, gating=np.array(type(self).__name__), **self._arrays())
        write_atomically(path, content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted gating that `save` wrote: the same inputs get the same gates.

        Raises
        ------
        ValueError
            If the file is damaged or was not written by `save`.
        """
        wanted = f"{os.fspath(path)!r} must be a file that {cls.__name__}.save wrote"
        return cls._made_from(_read(path, cls, wanted), wanted)

    def _arrays(self) -> dict[str, Any]:
        """What is saved, under the names `saved`."""
        raise NotImplementedError

    @classmethod
    def _made_from(cls, arrays: dict[str, NDArray[Any]], wanted: str) -> Self:
        """A gating from what `_arrays` gave; `wanted` begins the message where it is no gating."""
        raise NotImplementedError


def _read(
    path: str | os.PathLike[str], gating_class: type[Gating], wanted: str
) -> dict[str, NDArray[Any]]:
    names = gating_class.saved
    try:
        # Given a name, np.load would leave the file of a damaged archive open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            kind = str(archive["gating"])
            saved = {name: archive[name] for name in names} if kind == gating_class.__name__ else {}
    except (
        KeyError,
        EOFError,
        IndexError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(f"{wanted}, got {error}: save the gates again") from error
    if not saved:
        raise ValueError(f"{wanted}, but it holds {kind}: load it with {kind}.load")
    for name, array in saved.items():
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise ValueError(f"{wanted}, got numbers in {name!r} that are not finite")
    return saved
