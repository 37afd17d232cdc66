"""Results as JSON and arrays, and back, with no code in them: what a saved report is made of.

A tree of plain values, lists and mappings by text stands for itself. Every other node is a mapping
whose tag says what it is: an array or a tensor by its name among the arrays of the file, a tuple or
another mapping by its entries, a class or function of this package by its promised name. Nothing
else can be named, and no constructor but a gating's is called, so that a file of a stranger's can
do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...._support.doors import check_fields
from ...._support.names import Unreadable, found, name_of
from ...._support.saved import filled, text_array

if TYPE_CHECKING:
    from torch.nn import Module


# The key of a mapping that stands for something else, with what that is.
TAG = "#"
# Of a torch module: all else that it begins with are hooks, which belong to a session.
MODULE_STATE = ("training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
SEQUENCES = MappingProxyType({"tuple": tuple, "set": set, "frozenset": frozenset})

Node = dict[str, Any]


class NotSavable(TypeError):
    """Something that no file can hold: it has no promised name."""


class Encoder:
    """From results to JSON; `arrays` grows with what is encoded.

    Each object and each array is written once, however often it is met.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._known: dict[int, tuple[str, Any]] = {}

    def attempt(self, value: Any) -> Any:
        """Encode a value, leaving nothing behind where that fails.

        Raises
        ------
        NotSavable
            With the class of what has no promised name.
        """
        arrays, known = dict(self.arrays), dict(self._known)
        try:
            return self.encode(value)
        except NotSavable:
            self.arrays, self._known = arrays, known
            raise

    def encode(self, value: Any) -> Any:
        """Return the tree of a value."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.encode(one) for one in value]
        if type(value) is dict and all(type(key) is str and key != TAG for key in value):
            return {key: self.encode(one) for key, one in value.items()}
        if id(value) in self._known:
            return {TAG: "known", "id": self._known[id(value)][0]}
        node = self._node(value)
        if _sort(node) in _SHARED:
            # Held beside its name: no other object may get its address.
            node["id"] = str(len(self._known))
            self._known[id(value)] = (node["id"], value)
        return node

    def _node(self, value: Any) -> Node:
        thing = value if isinstance(value, FunctionType) else type(value)
        name = name_of(thing)
        if name is not None:
            state = _STATES[name.partition(":")[0]](value)
            return {TAG: name} | {key: self.encode(one) for key, one in state.items()}
        for fits, write in _PLAIN:
            if fits(value):
                return write(self, value)
        raise NotSavable(f"{thing.__module__}.{thing.__qualname__}")

    def _add(self, array: NDArray[Any]) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _array(self, value: Any) -> Node:
        array = np.asarray(value)
        if array.dtype.kind in "OUSMmV":
            return {TAG: "texts", "of": array.astype(np.str_).tolist()}
        fixed = isinstance(value, np.ndarray) and not value.flags.writeable
        return {TAG: "array", "name": self._add(array), "fixed": fixed,
                "scalar": isinstance(value, np.generic)}  # fmt: skip

    def _tensor(self, value: Any) -> Node:
        name = self._add(value.detach().cpu().numpy())
        parameter = type(value).__name__ == "Parameter"
        return {TAG: "tensor", "name": name, "grad": value.requires_grad, "parameter": parameter}

    def _mapping(self, value: Any) -> Node:
        items = [[self.encode(key), self.encode(one)] for key, one in value.items()]
        return {TAG: "mapping", "of": items, "fixed": isinstance(value, MappingProxyType)}

    def _sequence(self, value: Any) -> Node:
        return {TAG: type(value).__name__, "of": [self.encode(one) for one in value]}

    def _partial(self, value: partial[Any]) -> Node:
        return {TAG: "partial", "of": self.encode(value.func),
                "arguments": self.encode(list(value.args)),
                "keywords": self.encode(dict(value.keywords))}  # fmt: skip


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
        """Return the value of a tree.

        Raises
        ------
        Unreadable
            If the tree is none, or names what this version does not know.
        """
        if isinstance(tree, list):
            return [self.decode(one) for one in tree]
        if not isinstance(tree, dict):
            return tree
        if TAG not in tree:
            return {key: self.decode(one) for key, one in tree.items()}
        sort = _sort(tree)
        if sort not in _READERS:
            raise Unreadable(f"{tree.get(TAG)!r} is no part of results")
        value = _READERS[sort](self, tree)
        if sort in _SHARED:
            self._known[entry(tree, "id", str)] = value
        return value

    def _met_before(self, node: Node) -> Any:
        name = entry(node, "id", str)
        if name not in self._known:
            raise Unreadable(f"it speaks of a part {name!r} before it has one")
        return self._known[name]

    def _stored(self, node: Node) -> NDArray[Any]:
        name = entry(node, "name", str)
        if name not in self._arrays:
            raise Unreadable(f"it has no array {name!r}")
        return self._arrays[name]

    def _array(self, node: Node) -> Any:
        array = self._stored(node)
        if entry(node, "scalar", bool):
            return array[()]
        if entry(node, "fixed", bool):
            array.flags.writeable = False
        return array

    def _texts(self, node: Node) -> Any:
        return text_array(entry(node, "of", str, list))

    def _tensor(self, node: Node) -> Any:
        import torch

        tensor, grad = torch.from_numpy(self._stored(node)), entry(node, "grad", bool)
        if entry(node, "parameter", bool):
            return torch.nn.Parameter(tensor, requires_grad=grad)
        return tensor.requires_grad_(grad)

    def _mapping(self, node: Node) -> Any:
        value = dict(self.decode(pair) for pair in entry(node, "of", list))
        return MappingProxyType(value) if entry(node, "fixed", bool) else value

    def _sequence(self, node: Node) -> Any:
        return SEQUENCES[node[TAG]](self.decode(one) for one in entry(node, "of", list))

    def _partial(self, node: Node) -> Any:
        function = self.decode(entry(node, "of", dict))
        arguments = self.decode(entry(node, "arguments", list))
        return partial(function, *arguments, **self.decode(entry(node, "keywords", dict)))

    def _member(self, node: Node) -> Any:
        kind, member = found(node[TAG], "enum"), entry(node, "member", str)
        if member not in kind.__members__:
            raise Unreadable(f"{member!r} is none of {kind.__name__}")
        return kind[member]

    def _function(self, node: Node) -> Any:
        return found(node[TAG], "panel", "function")

    def _state(self, node: Node) -> Any:
        state = self.decode(entry(node, "state", dict))
        if not (isinstance(state, dict) and all(isinstance(name, str) for name in state)):
            raise Unreadable(f"the state of {node[TAG]!r} has no names")
        return state

    def _object(self, node: Node) -> Any:
        kind = found(node[TAG], "class")
        state = filled(kind, self._state(node))
        if issubclass(kind, tuple):
            return tuple.__new__(kind, state.values())
        check_fields(kind, state)
        value = object.__new__(kind)
        value.__dict__.update(state)
        return value

    def _module(self, node: Node) -> Any:
        from torch.nn import Module

        kind = found(node[TAG], "network")
        value = kind.__new__(kind)
        Module.__init__(value)
        value.__dict__.update(self._state(node))
        return value

    def _gating(self, node: Node) -> Any:
        return found(node[TAG], "gating").from_arrays(self._state(node))


def entry(tree: Any, name: str, *kinds: type) -> Any:
    """Return the value that a mapping in a file has under a name.

    Raises
    ------
    Unreadable
        If it is no mapping, or has nothing of one of these kinds there.
    """
    if not isinstance(tree, dict):
        raise Unreadable(f"{type(tree).__name__} stands where {name!r} of something should be")
    value = tree.get(name)
    if not isinstance(value, kinds):
        there = f"is {type(value).__name__}" if name in tree else "is missing"
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise Unreadable(f"{name!r} {there} where {wanted} should be")
    return value


def _sort(node: Node) -> str:
    return str(node.get(TAG)).partition(":")[0]


def _fields_of(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    names = kind._fields if issubclass(kind, tuple) else [one.name for one in fields(kind)]
    return {"state": {name: getattr(value, name) for name in names}}


def _module_state(value: Module) -> dict[str, Any]:
    from torch.nn import Module

    hooks = set(vars(Module())) - set(MODULE_STATE)
    return {"state": {name: one for name, one in vars(value).items() if name not in hooks}}


def _is_tensor(value: Any) -> bool:
    """Test for a tensor without loading torch: where it is not loaded nothing is one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


Write = Callable[[Encoder, Any], Node]
# What is written of a thing beside its promised name.
_STATES: Mapping[str, Callable[[Any], dict[str, Any]]] = MappingProxyType(
    {
        "class": _fields_of,
        "network": _module_state,
        "gating": lambda value: {"state": value.to_arrays()},
        "enum": lambda value: {"member": value.name},
        **dict.fromkeys(("panel", "function"), lambda value: {}),
    }
)
_PLAIN: Sequence[tuple[Callable[[Any], bool], Write]] = (
    (lambda value: isinstance(value, np.ndarray | np.generic), Encoder._array),
    (_is_tensor, Encoder._tensor),
    (lambda value: isinstance(value, dict | MappingProxyType), Encoder._mapping),
    (lambda value: type(value) in SEQUENCES.values(), Encoder._sequence),
    (lambda value: isinstance(value, partial), Encoder._partial),
)
_READERS: Mapping[str, Callable[[Decoder, Node], Any]] = MappingProxyType(
    {
        "array": Decoder._array, "texts": Decoder._texts, "tensor": Decoder._tensor,
        "mapping": Decoder._mapping, **dict.fromkeys(SEQUENCES, Decoder._sequence),
        "partial": Decoder._partial, "known": Decoder._met_before,
        "class": Decoder._object, "enum": Decoder._member, "network": Decoder._module,
        "gating": Decoder._gating, "panel": Decoder._function, "function": Decoder._function,
    }
)  # fmt: skip
# Met twice in a file, they are one thing again.
_SHARED = frozenset({"array", "tensor", "class", "network", "gating"})
