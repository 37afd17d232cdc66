"""Arrays that users give: as NumPy or torch computes with them, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, is_torch_array, to_numpy
from .arrays import as_float64 as as_float64
from .shapes import Axes as Axes

# Kinds of NumPy's dtypes that are real numbers: booleans, integers, unsigned ones, floats.
REAL = "biuf"


def real_array(name: str, value: Any, wanted: str = "real numbers") -> Array:
    """Return real numbers as an array of NumPy's or the tensor that they are in; refuse all else.

    An array that both can compute with is returned as it is, and nothing is copied. Others are
    made so: nested lists and data frames become NumPy arrays, another byte order the machine's
    own, half and extended precision float64, unsigned integers of more than a byte int64, and what
    runs backwards in memory is copied; tensors leave their graph of derivatives.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    value : array, tensor, data frame or nested sequence, of any shape
    wanted : str
        What it must hold, in the message.

    Returns
    -------
    NumPy array, or torch tensor on the device where it was

    Raises
    ------
    TypeError
        If it is complex, masked, sparse, ragged, or holds dates, strings or other objects.

    Examples
    --------
    >>> real_array("X", [[1, 2]]).dtype
    dtype('int64')
    >>> real_array("X", [1j])
    Traceback (most recent call last):
    TypeError: `X` must hold real numbers, got dtype complex128: take real features of it
    """
    if is_torch_array(value):
        return _real_tensor(name, value, wanted)
    refuse_masked(name, value)
    if hasattr(value, "toarray"):
        raise _not_dense(name, "toarray")
    array = value if type(value) in (np.ndarray, np.memmap) else _as_numpy(name, value)
    if array.dtype.kind in "US":
        raise _strings(name)
    if array.dtype.kind == "c":
        raise _complex(name, array.dtype, wanted)
    if array.dtype.kind not in REAL:
        got = "None" if value is None else f"dtype {array.dtype}"
        raise TypeError(f"`{name}` must hold {wanted}, got {got}: convert it to float64")
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float64)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:  # torch has no arithmetic for them
        fits = array.max(initial=0) <= np.iinfo(np.int64).max
        return array.astype(np.int64 if fits else np.float64)
    if array.dtype.isnative:
        return array if min(array.strides, default=0) >= 0 else array.copy()
    return array.astype(array.dtype.newbyteorder("="))


def _real_tensor(name: str, value: Any, wanted: str) -> Any:
    if value.is_complex():
        raise _complex(name, value.dtype, wanted)
    if str(value.layout) != "torch.strided":
        raise _not_dense(name, "to_dense")
    tensor = value.detach() if value.requires_grad else value
    if str(tensor.dtype) in ("torch.uint16", "torch.uint32"):
        return tensor.long()
    if str(tensor.dtype) == "torch.uint64":
        return tensor.double()
    return tensor.double() if tensor.is_floating_point() and tensor.itemsize < 4 else tensor


def _strings(name: str) -> TypeError:
    return TypeError(f"`{name}` must hold numbers, got strings: convert it to float64")


def _complex(name: str, dtype: object, wanted: str) -> TypeError:
    return TypeError(f"`{name}` must hold {wanted}, got dtype {dtype}: take real features of it")


def _not_dense(name: str, way_out: str) -> TypeError:
    return TypeError(
        f"`{name}` must be dense, got a sparse array: give `{name}.{way_out}()`; linear SVMs, "
        "kernels and LinearLimitClassifier take sparse inputs as they are"
    )


def undisguised(name: str, value: Any) -> Any:
    """Return inputs for the checks of scikit-learn, and refuse what it reads as numbers silently.

    Data frames and sparse matrices stay what they are; a tensor becomes an array of NumPy's.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    value : object

    Returns
    -------
    NumPy array, data frame or sparse matrix

    Raises
    ------
    TypeError
        If it is masked, or holds strings or dates.
    """
    if is_torch_array(value):
        return to_numpy(real_array(name, value))
    refuse_masked(name, value)
    kinds = {"O"} if hasattr(value, "toarray") else {_as_numpy(name, value).dtype.kind}
    kinds |= _columns(value)
    if kinds & {*"US"}:
        raise _strings(name)
    if kinds & {*"mM"}:
        raise TypeError(f"`{name}` must hold numbers, got dates: convert them to float64")
    return value


def refuse_masked(name: str, value: Any) -> None:
    """Refuse masked arrays, whose mask NumPy drops silently.

    Parameters
    ----------
    name : str
        Name of the array in the message.
    value : object

    Raises
    ------
    TypeError
    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"`{name}` is a masked array, whose mask would be lost: drop the samples that it marks "
            "or fill them in"
        )


def _as_numpy(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:  # a ragged list, or another object
        raise TypeError(
            f"`{name}` must be an array of numbers, got {type(value).__name__} ({error}): "
            "encode the samples as float64"
        ) from error
    kinds = _columns(value)
    if array.dtype.kind == "O" and kinds and kinds <= {*REAL}:  # columns of several dtypes
        return np.asarray(value.to_numpy(dtype=np.float64))
    return array


def _columns(value: Any) -> set[str]:
    """Return the kinds of the dtypes of a data frame's columns; none of anything else."""
    if not hasattr(value, "dtypes"):
        return set()
    return {getattr(dtype, "kind", "O") for dtype in np.atleast_1d(value.dtypes)}
