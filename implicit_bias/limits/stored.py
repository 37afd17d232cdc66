"""Encoding of a result's fields as arrays and a JSON record, and decoding by their types.

Arrays are stored by name, a status by its name, dataclasses and mappings as objects, tuples as
lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .._support.saved import filled
from .._support.solve import Array, DenseArray, is_torch_array, to_numpy

Arrays = dict[str, NDArray[Any]]

NOT_STORED = {"stored": False}
"""Metadata of a dataclass field that no file holds; it has a default."""


def encoded(value: Any, name: str, arrays: Arrays) -> Any:
    """Return the JSON record of a value, and add its arrays to `arrays` under `name` and below.

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
    """Return the value of type `hint` that `encoded` recorded, and remove its arrays from `arrays`.

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
    """Return the names of the fields typed `DenseArray`, of the kind of the inputs."""
    return {name for name, hint in get_type_hints(cls).items() if _not_none(hint) is DenseArray}


def array_device(array: Array) -> str | None:
    """Return the name of a torch tensor's device; None for a NumPy array."""
    return str(array.device) if is_torch_array(array) else None


def placed(array: Array, device: str | None) -> Array:
    """Return a NumPy array as a tensor on the named device; unchanged where that is None.

    Raises
    ------
    ValueError
        If this machine has no such device.
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
    """Return the type of an optional value that is not None."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return next(kind for kind in get_args(hint) if kind is not type(None))
