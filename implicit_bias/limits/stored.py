"""The fields of a result as arrays and a record that JSON can hold, and back.

Types of fields say what is what: arrays have names of their own in a file, a status is its name,
dataclasses and mappings are objects, tuples are lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .._saved import filled
from .._solve import Array, is_torch_array, to_numpy

__all__ = ["NOT_STORED", "array_device", "decoded", "encoded", "movable", "placed"]

Arrays = dict[str, NDArray[Any]]

NOT_STORED = {"stored": False}
"""Metadata of a dataclass field that no file holds; it has a default."""


def encoded(value: Any, name: str, arrays: Arrays) -> Any:
    """The record of a value, whose arrays are added to `arrays` under names that begin with `name`.

    The record of an array is None.
    """
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {key: encoded(entry, f"{name}.{key}", arrays) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(entry, f"{name}.{k}", arrays) for k, entry in enumerate(value)]
    if is_dataclass(value):
        return {
            f.name: encoded(getattr(value, f.name), f"{name}.{f.name}", arrays)
            for f in fields(value)
        }
    arrays[name] = to_numpy(value)
    return None


def decoded(hint: Any, record: Any, name: str, arrays: Arrays) -> Any:
    """The value of type `hint` that `encoded` made a record of; its arrays leave `arrays`.

    Raises
    ------
    Unreadable, KeyError, TypeError
        If the record lacks or misnames something.
    """
    if name in arrays:
        return arrays.pop(name)
    if record is None:
        return None
    hint = _not_none(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[record]
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        state = {
            key: decoded(hints.get(key), entry, f"{name}.{key}", arrays)
            for key, entry in record.items()
        }
        return hint(**filled(hint, state))
    parts = get_args(hint)
    if isinstance(record, Mapping):
        return {key: decoded(parts[1], one, f"{name}.{key}", arrays) for key, one in record.items()}
    if isinstance(record, list):
        # All entries are of one type, which is named first.
        return tuple(decoded(parts[0], one, f"{name}.{k}", arrays) for k, one in enumerate(record))
    return record


def movable(cls: type) -> set[str]:
    """Fields of arrays that are of the kind of the inputs: those that are typed `Array`."""
    return {name for name, hint in get_type_hints(cls).items() if _not_none(hint) is Array}


def array_device(array: Array) -> str | None:
    """The device of a torch tensor by its name; None of a NumPy array."""
    return str(array.device) if is_torch_array(array) else None


def placed(array: Array, device: str | None) -> Array:
    """A NumPy array as a tensor on the device of that name; as it is where that is None.

    Raises
    ------
    ValueError
        If there is no such device here.
    """
    if device is None:
        return array
    import torch

    try:
        return torch.from_numpy(array).to(device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"`device` {device!r} is not here ({str(error).splitlines()[0]}): load with "
            'device="cpu", or leave it out for NumPy arrays'
        ) from error


def _not_none(hint: Any) -> Any:
    """The type of what an optional value is if it is not None."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return next(kind for kind in get_args(hint) if kind is not type(None))
