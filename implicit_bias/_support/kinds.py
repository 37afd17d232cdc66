"""Kinds of arguments: the check that goes with an annotation, and with what it does not say.

`solvers/numerics/checks.py` has the checks of numbers, words and arrays, with their messages; it is
loaded when the first argument is checked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

__all__ = [
    "RESULTS",
    "Check",
    "any_number",
    "anything",
    "arrays",
    "between",
    "check_of",
    "count",
    "counts",
    "extended",
    "function",
    "instance",
    "is_a",
    "mapping",
    "named_error",
    "number",
    "one_of",
    "or_none",
    "positive",
    "sequence",
    "series",
    "signed",
    "tolerance",
    "whole_number",
]

Check = Callable[[str, Any], object]
"""Called with an argument's name and value; raises TypeError or ValueError with the name."""


def _checks() -> Any:
    from .solve import checks

    return checks


def _named(check: str) -> Check:
    return lambda name, value: getattr(_checks(), check)(name, value)


def named_error(name: str, wanted: str, value: object) -> TypeError:
    """Return the error for an argument of another kind than is wanted."""
    return TypeError(f"`{name}` must be {wanted}, got {_checks().shown(value)}")


# Numbers


def whole_number(name: str, value: object, *, least: int = 1) -> int:
    """Return a whole number from `least` on as an int, and refuse all else."""
    if type(value) is int and value >= least:  # nothing to load for what is right
        return value
    return int(_checks().require_count(name, value, least=least))


def count(least: int = 1) -> Check:
    """Return the check of whole numbers from `least` on."""
    return lambda name, value: whole_number(name, value, least=least)


def counts(least: int = 1) -> Check:
    """Return the check of sequences of whole numbers from `least` on."""
    return lambda name, value: _checks().require_counts(name, value, least)


def signed(name: str, value: Any) -> None:
    """Refuse all but whole numbers, of either sign."""
    whole_number(name, value, least=value if hasattr(value, "__index__") else 0)


number = _named("require_number")
positive = _named("require_positive")


def tolerance(name: str, value: Any) -> None:
    """Refuse all but finite numbers from 0 on; the function itself says whether 0 will do."""
    number(name, value)
    if value < 0:
        raise ValueError(f"`{name}` must be at least 0, got {value}")


def extended(name: str, value: Any) -> None:
    """Refuse all but real numbers and infinities."""
    _checks().require_number(name, value, finite=False)
    if value != value:
        raise ValueError(f"`{name}` must be a number, got nan")


def between(low: float, high: float) -> Check:
    """Return the check of numbers from `low` to `high`, both included."""

    def check(name: str, value: Any) -> None:
        number(name, value)
        if not low <= value <= high:
            raise ValueError(f"`{name}` must lie in [{low:g}, {high:g}], got {value}")

    return check


def fraction(name: str, value: Any) -> None:
    """Refuse all but numbers from 0 to below 1, such as the slope of a leaky unit."""
    number(name, value)
    _checks().require_fraction(name, value)


def any_number(name: str, value: Any) -> None:
    """Refuse all but numbers; NaN, for one that is not known, and infinities pass."""
    _checks().require_number(name, value, finite=False)


# Words, arrays, objects


def one_of(choices: Iterable[str]) -> Check:
    """Return the check of strings that are among some."""
    taken = tuple(choices)
    return lambda name, value: _checks().require_choice(name, value, taken)


def series(name: str, value: Any) -> None:
    """Refuse what is no array of real numbers; NaN and infinities pass."""
    _checks().require_real(name, value)


def anything(name: str, value: Any) -> None:
    """Let every value pass: the function itself says what it takes."""


def function(name: str, value: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(value) or isinstance(value, type):
        raise named_error(name, "a function", value)


def instance(kind: str) -> Check:
    """Return the check of instances of a class of this name."""

    def check(name: str, value: Any) -> None:
        if not is_a(value, kind):
            raise named_error(name, f"a {kind}", value)

    return check


def is_a(value: object, kind: str) -> bool:
    """Return whether a value is of a class of this name, which need not be imported for that."""
    return any(one.__name__ == kind for one in type(value).__mro__)


def or_none(check: Check) -> Check:
    """Return the check of what may also be None."""

    def optional(name: str, value: Any) -> None:
        if value is not None:
            check(name, value)

    return optional


def _array(name: str, value: Any) -> None:
    if not hasattr(value, "toarray"):  # sparse ones are for the functions that take them
        _checks().require_array(name, value)


def _tensor(name: str, value: Any) -> None:
    if not is_a(value, "Tensor"):
        raise named_error(name, "a torch tensor", value)
    if value.is_complex():
        raise named_error(name, "a tensor of real numbers", value)


def _network(name: str, value: Any) -> None:
    if not is_a(value, "Module"):
        raise named_error(name, "a torch.nn.Module", value)


def _device(name: str, value: Any) -> None:
    if not isinstance(value, str) and not is_a(value, "device"):
        raise named_error(name, "a torch device", value)


def _dtype(name: str, value: Any) -> None:
    if not is_a(value, "dtype") or not value.is_floating_point:
        raise named_error(name, "a floating-point dtype of torch", value)


def sequence(of: Check) -> Check:
    """Return the check of sequences, entry by entry."""

    def check(name: str, value: Any) -> None:
        single = isinstance(value, str | bytes | Mapping | type)
        if single or not (hasattr(value, "__len__") or hasattr(value, "__iter__")):
            raise named_error(name, "a sequence", value)
        if getattr(value, "ndim", 1) == 0:
            raise named_error(name, "a sequence", value)
        if hasattr(value, "__len__"):  # what can be gone through more than once
            for k, one in enumerate(value):
                of(f"{name}[{k}]", one)

    return check


def mapping(name: str, value: Any) -> None:
    """Refuse what has no values by name."""
    if not isinstance(value, Mapping):
        raise named_error(name, "a mapping", value)


def _fixed(entries: list[Check]) -> Check:
    """Return the check of tuples with one check an entry."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, tuple | list) or len(value) != len(entries):
            raise named_error(name, f"a tuple of {len(entries)}", value)
        for k, (of, one) in enumerate(zip(entries, value, strict=True)):
            of(f"{name}[{k}]", one)

    return check


def _mapping(of: Check) -> Check:
    def check(name: str, value: Any) -> None:
        mapping(name, value)
        for key, one in value.items():
            of(f"{name}[{key!r}]", one)

    return check


def arrays(name: str, value: Any) -> None:
    """Refuse what is neither an array nor a sequence of arrays."""
    if isinstance(value, list | tuple):
        for k, one in enumerate(value):
            _array(f"{name}[{k}]", one)
    else:
        _array(name, value)


def _protocol(kind: type) -> Check:
    """Return the check of objects with all that a protocol lists."""
    members = [key for key in {**vars(kind), **kind.__annotations__} if not key.startswith("_")]

    def check(name: str, value: Any) -> None:
        lacking = [member for member in members if not hasattr(value, member)]
        if lacking or isinstance(value, type):
            raise named_error(name, f"a {kind.__name__} with {', '.join(members)}", value)

    return check


def _either(checks: list[Check], name: str, value: Any, wanted: str) -> None:
    for check in checks:
        try:
            return void(check(name, value))
        except TypeError:
            continue
    raise named_error(name, wanted, value)


def void(_: object) -> None:
    """Return nothing."""


# Annotations

_ARRAYS = (
    *("Array", "ArrayLike", "DenseArray", "NDArray", "ndarray"),
    *("Floats", "Inputs", "Indices", "Mask"),
)
_NAMED: dict[str, Check] = {
    "int": count(0),
    "float": number,
    "bool": _named("require_flag"),
    "str": _named("require_text"),
    **dict.fromkeys(("Path", "PathLike"), _named("require_path")),
    "Generator": _named("require_seed"),
    **dict.fromkeys(_ARRAYS, _array),
    "Gates": arrays,
    "Tensor": _tensor,
    **dict.fromkeys(("Module", "Network"), _network),
    **dict.fromkeys(("Callable", "Callback", "Observer", "ProgressCallback"), function),
    "device": _device,
    "dtype": _dtype,
    **dict.fromkeys(("Any", "object", "_empty", "Self"), anything),
}
RESULTS: dict[str, Check] = {
    **_NAMED,
    "int": signed,
    "float": any_number,
    **dict.fromkeys(_ARRAYS, series),
}
"""What results are made of: their numbers may be negative, infinite and NaN."""

_SEQUENCES = ("Sequence", "Iterable", "Collection", "tuple", "list")
# Of two alternatives the first takes all that the second does.
_WIDER = {"PathLike": "str", "Generator": "int", "device": "str", "ArrayLike": "Tensor",
          "Array": "Tensor", "Inputs": "Tensor"}  # fmt: skip


def check_of(
    annotation: Any,
    named: Mapping[str, Check] | None = None,
    names: Mapping[str, Any] | None = None,
) -> tuple[Check, bool]:
    """Return the check that an annotation asks for, and whether it allows None.

    Parameters
    ----------
    annotation : str or type
        As `inspect.signature` gives it.
    named : mapping of str to check, optional
        Checks that names stand for; `RESULTS` for the fields of results.
    names : mapping of str to object, optional
        Names of the module, among them aliases and protocols. A class that is in neither stands
        for its instances.
    """
    reader = _Reader(_NAMED if named is None else named, {} if names is None else names)
    return reader.read(_node(annotation))


class _Reader:
    """Reads annotations, in the names of one module."""

    def __init__(self, named: Mapping[str, Check], names: Mapping[str, Any]) -> None:
        self.named, self.names = named, names

    def read(self, node: ast.expr) -> tuple[Check, bool]:
        heads = {_head(part): part for part in _alternatives(node)}
        optional = heads.pop("None", None) is not None
        for wide, narrow in _WIDER.items():
            if wide in heads:
                heads.pop(narrow, None)
        checks = [self._part(part) for part in heads.values()]
        if not checks:
            return anything, True
        if len(checks) == 1:
            return checks[0], optional
        wanted = " or ".join(_WORDS.get(head, f"a {head}") for head in heads)
        return lambda name, value: _either(checks, name, value, wanted), optional

    def _inner(self, node: ast.expr) -> Check:
        check, optional = self.read(node)
        return or_none(check) if optional else check

    def _part(self, node: ast.expr) -> Check:
        head = _head(node)
        inner: list[ast.expr] = []
        if isinstance(node, ast.Subscript):
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head == "Literal":
            return one_of(ast.literal_eval(one) for one in inner)
        if head == "tuple" and inner and "..." not in map(ast.unparse, inner):
            return _fixed([self._inner(one) for one in inner])
        if head in _SEQUENCES:
            alike = len({ast.unparse(one) for one in inner if ast.unparse(one) != "..."}) == 1
            return sequence(self._inner(inner[0]) if alike else anything)
        if head in ("Mapping", "dict"):
            return _mapping(self._inner(inner[1]) if len(inner) == 2 else anything)
        if head in self.named:
            return self.named[head]
        stands_for = self.names.get(head)
        if getattr(stands_for, "_is_protocol", False):
            return _protocol(stands_for)  # type: ignore[arg-type]
        if stands_for is not None and not isinstance(stands_for, type):  # an alias
            return self._inner(_node(stands_for))
        return instance(head)


_WORDS = {"float": "a number", "int": "an integer", "bool": "True or False", "str": "a string",
          "Module": "a torch.nn.Module", "Callable": "a function",
          "ProgressCallback": "a function"}  # fmt: skip


def _node(annotation: Any) -> ast.expr:
    """Return the expression of an annotation, which is a string or an object."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        text = annotation.__name__
    else:
        text = str(annotation)
    if isinstance(annotation, TypeVar):  # what it is of, the function itself says
        text = "Any"
    if "_array_like" in text:  # what ArrayLike stands for
        text = "ArrayLike"
    return ast.parse(text, mode="eval").body


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    if isinstance(node, ast.Subscript) and _head(node) in ("Union", "Optional"):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        found = [part for one in inner for part in _alternatives(one)]
        return [*found, ast.Constant(None)] if _head(node) == "Optional" else found
    return [node]


def _head(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _head(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else str(ast.literal_eval(node))
