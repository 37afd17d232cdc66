"""Results as JSON and arrays, and back, with no code in them: what a saved report is made of.

A tree of plain values stands for itself. Arrays and tensors are told by a name among the arrays of
the file, objects by their class and their attributes. Only classes and drawing functions of this
package are read, and no constructor is called, so that a file of a stranger's can do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..gates.saved import Gating
from .names import found_class, found_function, is_function, is_known, path_of

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["Decoder", "Encoder", "NotKept"]

# The key of a mapping that stands for something else, with what that is.
TAG = "#"
# Of a torch module: all else that it begins with are hooks, which belong to a session.
MODULE_STATE = ("training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class NotKept(TypeError):
    """Something that no file can hold: the class is not one of the package."""


class Encoder:
    """From results to JSON; `arrays` grows with what is encoded.

    Each object and each array is written once, however often it is met.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._known: dict[int, tuple[str, Any]] = {}

    def attempt(self, value: Any) -> Any:
        """`encode`, leaving nothing behind where it fails.

        Raises
        ------
        NotKept
            With the class of what is not the package's.
        """
        arrays, known = dict(self.arrays), dict(self._known)
        try:
            return self.encode(value)
        except NotKept:
            self.arrays, self._known = arrays, known
            raise

    def encode(self, value: Any) -> Any:
        """The tree of a value."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.encode(entry) for entry in value]
        if id(value) in self._known:
            return {TAG: "known", "id": self._known[id(value)][0]}
        tree = self._tree(value)
        if tree[TAG] in ("array", "tensor", "object", "module"):
            # Kept beside its name: no other object may get its address.
            tree["id"] = str(len(self._known))
            self._known[id(value)] = (tree["id"], value)
        return tree

    def _tree(self, value: Any) -> dict[str, Any]:
        for fits, write in _WRITERS:
            if fits(value):
                found: dict[str, Any] = write(self, value)
                return found
        raise NotKept(f"{type(value).__module__}.{type(value).__qualname__}")

    def _add(self, array: NDArray[Any]) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _array(self, value: Any) -> dict[str, Any]:
        array = np.asarray(value)
        if array.dtype.kind in "OUSMmV":
            return {TAG: "texts", "shape": array.shape, "of": [str(x) for x in array.ravel()]}
        fixed = isinstance(value, np.ndarray) and not value.flags.writeable
        return {TAG: "array", "name": self._add(array), "fixed": fixed,
                "scalar": isinstance(value, np.generic)}  # fmt: skip

    def _tensor(self, value: Any) -> dict[str, Any]:
        kept = self._add(value.detach().cpu().numpy())
        parameter = type(value).__name__ == "Parameter"
        return {TAG: "tensor", "name": kept, "grad": value.requires_grad, "parameter": parameter}

    def _mapping(self, value: Any) -> dict[str, Any]:
        items = [[self.encode(key), self.encode(entry)] for key, entry in value.items()]
        return {TAG: "mapping", "items": items, "fixed": isinstance(value, MappingProxyType)}

    def _named(self, value: Any) -> dict[str, Any]:
        return {TAG: "named", "class": path_of(type(value)), "of": self.encode(list(value))}

    def _sequence(self, value: Any) -> dict[str, Any]:
        return {TAG: type(value).__name__, "of": [self.encode(entry) for entry in value]}

    def _enum(self, value: Enum) -> dict[str, Any]:
        return {TAG: "enum", "class": path_of(type(value)), "name": value.name}

    def _partial(self, value: partial[Any]) -> dict[str, Any]:
        return {TAG: "partial", "function": self.encode(value.func),
                "args": self.encode(list(value.args)),
                "keywords": self.encode(dict(value.keywords))}  # fmt: skip

    def _function(self, value: Any) -> dict[str, Any]:
        return {TAG: "function", "path": path_of(value)}

    def _object(self, value: Any) -> dict[str, Any]:
        return {TAG: "object", "class": path_of(type(value)), "state": self.encode(vars(value))}

    def _module(self, value: Module) -> dict[str, Any]:
        hooks = set(_fresh_module()) - set(MODULE_STATE)
        state = {name: entry for name, entry in vars(value).items() if name not in hooks}
        return {TAG: "module", "class": path_of(type(value)), "state": self.encode(state)}


class Decoder:
    """From JSON and the arrays of a file to results, on the CPU.

    Parameters
    ----------
    arrays : mapping of str to array
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._known: dict[str, Any] = {}

    def decode(self, tree: Any) -> Any:
        """The value of a tree.

        Raises
        ------
        ValueError, KeyError
            If the tree names what this version does not know.
        """
        if isinstance(tree, list):
            return [self.decode(entry) for entry in tree]
        if not isinstance(tree, dict):
            return tree
        if tree[TAG] == "known":
            return self._known[tree["id"]]
        value = _READERS[tree[TAG]](self, tree)
        if "id" in tree:
            self._known[tree["id"]] = value
        return value

    def _array(self, tree: Mapping[str, Any]) -> Any:
        array = self._arrays[tree["name"]]
        if tree["scalar"]:
            return array[()]
        if tree["fixed"]:
            array.flags.writeable = False
        return array

    def _texts(self, tree: Mapping[str, Any]) -> Any:
        return np.array(tree["of"], dtype=np.str_).reshape(tree["shape"])

    def _tensor(self, tree: Mapping[str, Any]) -> Any:
        import torch

        tensor = torch.from_numpy(self._arrays[tree["name"]])
        if tree["parameter"]:
            return torch.nn.Parameter(tensor, requires_grad=tree["grad"])
        return tensor.requires_grad_(tree["grad"])

    def _mapping(self, tree: Mapping[str, Any]) -> Any:
        found = {self.decode(key): self.decode(entry) for key, entry in tree["items"]}
        return MappingProxyType(found) if tree["fixed"] else found

    def _sequence(self, tree: Mapping[str, Any]) -> Any:
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[tree[TAG]](
            self.decode(entry) for entry in tree["of"]
        )

    def _named(self, tree: Mapping[str, Any]) -> Any:
        return tuple.__new__(found_class(tree["class"], tuple), self.decode(tree["of"]))

    def _enum(self, tree: Mapping[str, Any]) -> Any:
        return found_class(tree["class"], Enum)[tree["name"]]

    def _partial(self, tree: Mapping[str, Any]) -> Any:
        function = self.decode(tree["function"])
        return partial(function, *self.decode(tree["args"]), **self.decode(tree["keywords"]))

    def _function(self, tree: Mapping[str, Any]) -> Any:
        return found_function(tree["path"])

    def _object(self, tree: Mapping[str, Any]) -> Any:
        kind = found_class(tree["class"], object)
        state = self.decode(tree["state"])
        if is_dataclass(kind):
            lacking = {field.name for field in fields(kind)} - set(state)
            if lacking:
                raise KeyError(f"{tree['class']} has {sorted(lacking)} now")
        elif not issubclass(kind, Gating):
            raise ValueError(f"{kind.__name__} is no class of results")
        value = object.__new__(kind)
        value.__dict__.update(state)
        return value

    def _module(self, tree: Mapping[str, Any]) -> Any:
        from torch.nn import Module

        kind = found_class(tree["class"], Module)
        value = kind.__new__(kind)
        Module.__init__(value)
        value.__dict__.update(self.decode(tree["state"]))
        return value


def _is_of_package(value: Any) -> bool:
    return is_known(value) and (is_dataclass(value) or isinstance(value, Gating))


def _torch_class(name: str) -> Callable[[Any], bool]:
    """A test that loads no torch: where it is not loaded nothing is of its classes."""

    def fits(value: Any) -> bool:
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        kind = torch.Tensor if name == "Tensor" else torch.nn.Module
        return isinstance(value, kind)

    return fits


def _is_own_module(value: Any) -> bool:
    return is_known(value) and _torch_class("Module")(value)


def _fresh_module() -> Mapping[str, Any]:
    from torch.nn import Module

    return vars(Module())


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


_WRITERS: tuple[tuple[Callable[[Any], bool], Callable[[Encoder, Any], dict[str, Any]]], ...] = (
    (_is(Enum), Encoder._enum),
    (_is(np.ndarray, np.generic), Encoder._array),
    (_torch_class("Tensor"), Encoder._tensor),
    (_is_own_module, Encoder._module),
    (_is(partial), Encoder._partial),
    (is_function, Encoder._function),
    (_is(dict, MappingProxyType), Encoder._mapping),
    (lambda value: type(value) in (tuple, set, frozenset), Encoder._sequence),
    (lambda value: isinstance(value, tuple) and is_known(value), Encoder._named),
    (_is_of_package, Encoder._object),
)
_READERS: Mapping[str, Callable[[Decoder, Mapping[str, Any]], Any]] = MappingProxyType(
    {
        "array": Decoder._array, "texts": Decoder._texts, "tensor": Decoder._tensor,
        "mapping": Decoder._mapping, "tuple": Decoder._sequence, "set": Decoder._sequence,
        "frozenset": Decoder._sequence, "enum": Decoder._enum, "partial": Decoder._partial,
        "function": Decoder._function, "named": Decoder._named,
        "object": Decoder._object, "module": Decoder._module,
    }
)  # fmt: skip
