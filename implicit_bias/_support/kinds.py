"""Kinds of arguments: the check that goes with an annotation, and with what it does not say.

`solvers/numerics/checks.py` has the checks of numbers, words and arrays, with their messages; it is
loaded when the first argument is checked.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

Check = Callable[[str, Any], object]
"""Called with an argument's name and value; raises TypeError or ValueError with the name.

It returns what the function is given for the value, None for the value itself.
"""


@cache
def _checks() -> Any:
    from .solve import checks

    return checks


@cache
def _intake() -> Any:
    from .solve import intake

    return intake


@cache
def threads() -> Any:
    """Return who sets the threads of numerical libraries."""
    from .solve import THREADS

    return THREADS


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


def require_sizes(what: str, sizes: Mapping[str, int], *shapes: Sequence[int]) -> None:
    """Refuse sizes by name whose arrays, of these shapes, no memory holds."""
    from .solve import require_sizes

    require_sizes(what, sizes, *shapes)


number = _named("require_number")
positive = _named("require_positive")


def tolerance(name: str, value: Any) -> None:
    """Refuse all but finite numbers from 0 on; the function itself says whether 0 will do."""
    if type(value) is float and 0 <= value < math.inf:  # nothing to load for what is right
        return
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
    if type(value) is float and 0 <= value < 1:
        return
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


def series(name: str, value: Any) -> Any:
    """Return an array of real numbers, among them NaN and infinities, and refuse all else."""
    return _intake().real_array(name, value)


def _of_numpy(check: Check) -> Check:
    """Return the check of what is an array of NumPy's, whatever it came as."""
    return lambda name, value: _intake().to_numpy(check(name, value))


def _float64(check: Check) -> Check:
    """Return the check of what is an array of NumPy's in float64, whatever it came as."""
    of_numpy = _of_numpy(check)

    def floats(name: str, value: Any) -> Any:
        array: Any = of_numpy(name, value)
        return array.astype("f8", copy=False)

    return floats


on_host = _of_numpy(series)
"""Returns real numbers, whatever they came in, as an array of NumPy's, and refuses all else."""


@dataclass(frozen=True)
class ArrayKind:
    """The check of an array: what it is made into, its shape, and what its numbers must be.

    A door looks at the shapes, and then at the numbers, when all arrays are made.
    """

    made: Check
    shape: str
    rules: tuple[Check, ...]

    def __call__(self, name: str, value: Any) -> Any:
        """Return the array of real numbers, and refuse all else."""
        return self.made(name, value)


def floats(shape: str = "...", *rules: Check) -> Check:
    """Return the check of finite numbers, which become an array of NumPy's in float64.

    Parameters
    ----------
    shape : str
        Text of its `Axes`; any shape by default.
    *rules : callables
        Further checks, of the array.
    """
    return ArrayKind(_float64(_array), shape, rules)


def measured(shape: str = "...", *rules: Check) -> Check:
    """Return the check of numbers that may be NaN and infinite, made as `floats` are."""
    return ArrayKind(_float64(series), shape, rules)


def numbers(shape: str = "...", *rules: Check) -> Check:
    """Return the check of finite numbers in float64, in a tensor where they come in one."""
    return ArrayKind(lambda name, value: _intake().as_float64(_array(name, value)), shape, rules)


def weights(shape: str = "...", *rules: Check) -> Check:
    """Return the check of finite numbers in floating point: single precision stays that."""

    def made(name: str, value: Any) -> Any:
        array = _array(name, value)
        return array if "float" in str(array.dtype) else _intake().as_float64(array)

    return ArrayKind(made, shape, rules)


def axes_of(shape: str) -> Any:
    """Return the `Axes` of a text."""
    return _intake().Axes(shape)


def anything(name: str, value: Any) -> None:
    """Let every value pass: the function itself says what it takes."""


def that(wanted: str, fits: Callable[[Any], bool]) -> Check:
    """Return the check of what a function says that it fits."""

    def check(name: str, value: Any) -> None:
        if not fits(value):
            raise named_error(name, wanted, value)

    return check


def instance(kind: str, wanted: str = "") -> Check:
    """Return the check of instances of a class of this name."""
    return that(wanted or f"a {kind}", lambda value: is_a(value, kind))


function = that("a function", lambda value: callable(value) and not isinstance(value, type))
mapping = that("a mapping", lambda value: isinstance(value, Mapping))


def is_a(value: object, kind: str) -> bool:
    """Return whether a value is of a class of this name, which need not be imported for that."""
    return any(one.__name__ == kind for one in type(value).__mro__)


def or_none(check: Check) -> Check:
    """Return the check of what may also be None."""

    def optional(name: str, value: Any) -> Any:
        return None if value is None else check(name, value)

    return optional


def _array(name: str, value: Any) -> Any:
    array = series(name, value)
    _checks().require_finite(name, array)
    return array


def _sparse(name: str, value: Any) -> Any:
    return None if hasattr(value, "toarray") else _array(name, value)


def _tensor(name: str, value: Any) -> None:
    if not is_a(value, "Tensor"):
        raise named_error(name, "a torch tensor", value)
    if value.is_complex():
        raise named_error(name, "a tensor of real numbers", value)


def sequence(of: Check) -> Check:
    """Return the check of sequences, entry by entry."""

    def check(name: str, value: Any) -> Any:
        single = isinstance(value, str | bytes | Mapping | type)
        if single or not (hasattr(value, "__len__") or hasattr(value, "__iter__")):
            raise named_error(name, "a sequence", value)
        if getattr(value, "ndim", 1) == 0:
            raise named_error(name, "a sequence", value)
        if not hasattr(value, "__len__"):  # what can be gone through only once
            return None
        return _made(value, [of(f"{name}[{k}]", one) for k, one in enumerate(value)])

    return check


def _made(value: Any, made: list[Any]) -> Any:
    """Return a sequence with what its entries were made into; None where nothing was."""
    if all(new is None or new is old for old, new in zip(value, made, strict=True)):
        return None
    entries = [old if new is None else new for old, new in zip(value, made, strict=True)]
    return tuple(entries) if isinstance(value, tuple) else entries


def _fixed(entries: list[Check]) -> Check:
    """Return the check of tuples with one check an entry."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(entries):
            raise named_error(name, f"a tuple of {len(entries)}", value)
        pairs = enumerate(zip(entries, value, strict=True))
        return _made(value, [of(f"{name}[{k}]", one) for k, (of, one) in pairs])

    return check


def _mapping(of: Check) -> Check:
    def check(name: str, value: Any) -> Any:
        mapping(name, value)
        made = _made([*value.values()], [of(f"{name}[{key!r}]", one) for key, one in value.items()])
        return None if made is None else dict(zip(value, made, strict=True))

    return check


def arrays(name: str, value: Any) -> Any:
    """Return an array or a sequence of arrays, of which there may be none, and refuse all else."""
    if isinstance(value, list | tuple) and not value:
        return None
    if isinstance(value, list | tuple) and any(_has_rows(one) for one in value):
        return _made(value, [_array(f"{name}[{k}]", one) for k, one in enumerate(value)])
    return _array(name, value)


def _has_rows(value: Any) -> bool:
    """Return whether an entry of a list is a table, not a row or a number of one."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return getattr(first, "ndim", 0) + (first is not value) > 1 or isinstance(first, list | tuple)


def _protocol(kind: type) -> Check:
    """Return the check of objects with all that a protocol lists."""
    members = [key for key in {**vars(kind), **kind.__annotations__} if not key.startswith("_")]
    return that(
        f"a {kind.__name__} with {', '.join(members)}",
        lambda value: all(hasattr(value, one) for one in members) and not isinstance(value, type),
    )


def _either(checks: list[Check], name: str, value: Any, wanted: str) -> Any:
    for check in checks:
        try:
            return check(name, value)
        except TypeError:
            continue
    raise named_error(name, wanted, value)


# Annotations


def _arrays(check: Check) -> dict[str, Check]:
    """Return the checks of names of arrays: of either kind, of NumPy's, and of those in float64."""
    return {
        **dict.fromkeys(("Array", "ArrayLike", "DenseArray", "Inputs"), check),
        **dict.fromkeys(("NDArray", "ndarray"), _of_numpy(check)),
        "Floats": _float64(check),
    }


_NAMED: dict[str, Check] = {
    "int": count(0),
    "float": number,
    "bool": _named("require_flag"),
    "str": _named("require_text"),
    **dict.fromkeys(("Path", "PathLike"), _named("require_path")),
    "Generator": _named("require_seed"),
    **_arrays(_array),
    **dict.fromkeys(("SparseArray", "SparseLike"), _sparse),
    "Gates": arrays,
    "Tensor": _tensor,
    **dict.fromkeys(("Module", "Network"), instance("Module", "a torch.nn.Module")),
    **dict.fromkeys(("Callable", "Callback", "Observer", "ProgressCallback"), function),
    "device": that("a torch device", lambda one: isinstance(one, str) or is_a(one, "device")),
    "dtype": that(
        "a floating-point dtype of torch",
        lambda one: is_a(one, "dtype") and one.is_floating_point,
    ),
    **dict.fromkeys(("Any", "object", "_empty", "Self"), anything),
}
RESULTS: dict[str, Check] = {
    **_NAMED,
    "int": signed,
    "float": any_number,
    **_arrays(series),
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
        stands_for = self.names.get(head)
        if str(stands_for).startswith("numpy.ndarray"):  # a module's own name of an array
            return self._inner(_node(stands_for))
        if head in ("NDArray", "ndarray") and "float64" in ast.unparse(node):
            return self.named["Floats"]
        if head in self.named:
            return self.named[head]
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
