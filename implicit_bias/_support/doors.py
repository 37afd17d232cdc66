"""Doors: arguments of public functions, checked against what their signatures say.

The annotation of an argument says what it is: ``n: int`` is a whole number from 0 on, ``X: Array``
an array of finite real numbers, ``network: Module`` a torch module. `door` refuses everything else
before the function runs, by a TypeError or ValueError that names the argument. What an annotation
does not say, such as a range, the decorator adds, ``@door(n=count(1))``, and shapes in letters that
arguments share, ``@door(X="n D", y="n: one label per row of X")``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from .kinds import (
    RESULTS,
    ArrayKind,
    Check,
    axes_of,
    check_of,
    extended,
    or_none,
    threads,
    tolerance,
)  # fmt: skip

# What may be no number below 0, whatever the function.
_TOLERANCES = ("tol", "rtol", "rcond")

Checks = Mapping[str, Check | str]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Made = TypeVar("Made", bound=type)


def door(**checks: Check | str) -> Callable[[Decorated], Decorated]:
    """Return a decorator that checks the arguments of a function or method before it runs.

    Parameters
    ----------
    **checks : callables
        ``check(name, value)`` by the names of arguments whose annotation says too little, or the
        text of their `Axes` where it says all but the shape. None passes unseen where the
        annotation or the default is None.
    """

    def decorate(function: Decorated) -> Decorated:
        return typing.cast("Decorated", _checked(_with_few_threads(function), checks, None))

    return decorate


def parameters(**checks: Check | str) -> Callable[[Made], Made]:
    """Return a decorator that checks the fields of a dataclass of choices, as `door` does."""
    return lambda cls: _made(cls, checks, None)


def result(**checks: Check | str) -> Callable[[Made], Made]:
    """Return a decorator that checks the fields of a dataclass of results, kind by kind.

    Their numbers and arrays may be negative, infinite and NaN.
    """
    return lambda cls: _made(cls, checks, RESULTS)


def check_fields(kind: Any, state: Mapping[str, Any]) -> None:
    """Check the fields of a dataclass of results that no constructor has seen, kind by kind.

    Raises
    ------
    TypeError, ValueError
    """
    for name, check in _kinds(kind).items():
        check(name, state[name])


@functools.cache
def _kinds(kind: Any) -> dict[str, Check]:
    """Return the check of each field, in the names of the module that declares it."""
    return {
        name: _check(check_of(hint, RESULTS, vars(sys.modules[base.__module__])))
        for base in reversed(kind.__mro__)
        for name, hint in inspect.get_annotations(base).items()
        if name in {one.name for one in dataclasses.fields(kind)}
    }


def _with_few_threads(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function within which numerical libraries have the threads that pay."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        held = threads()
        held.begin(None)
        try:
            return function(*args, **kwargs)
        finally:
            held.end(None)

    return called


def _made(cls: Made, checks: Checks, named: Mapping[str, Check] | None) -> Made:
    made: Any = cls
    made.__init__ = _checked(made.__init__, checks, named)
    return cls


def check_parameters(estimator: object, **checks: Check | str) -> None:
    """Check the parameters of an estimator of scikit-learn, which it is given unchecked, at `fit`.

    Raises
    ------
    TypeError, ValueError
    """
    for name, check in _plan(type(estimator).__init__, checks, None).names.items():
        if name != "self":
            check(name, getattr(estimator, name))


def _checked(
    function: Callable[..., Any],
    checks: Checks,
    named: Mapping[str, Check] | None,
) -> Callable[..., Any]:
    plan = functools.cache(lambda: _plan(function, checks, named))

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        places, names, rest, shapes = plan()
        given = list(args)
        for k, ((name, check), value) in enumerate(zip(chain(places, rest), args, strict=False)):
            made = check(name, value)
            if made is not None:
                given[k] = made
        for name, value in kwargs.items():
            made = names[name](name, value) if name in names else None
            if made is not None:
                kwargs[name] = made
        if shapes:
            by_place = zip(map(itemgetter(0), places), given, strict=False)
            _fit(shapes, dict(by_place) | kwargs)
        return function(*given, **kwargs)

    return checked


def _fit(shapes: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse arrays whose shapes do not fit each other, or whose numbers are not what is wanted."""
    sizes: dict[str, Any] = {}
    for name, (axes, rules) in shapes.items():
        for asked in axes.asked - sizes.keys():
            known = _ASKED[asked[0]](values, asked[1:])
            sizes |= {} if known is None else {asked: known}
        value = values.get(name)
        several = isinstance(value, list | tuple)
        arrays: list[Any] = [] if value is None else [*value] if several else [value]
        for k, array in enumerate(arrays):
            own = f"{name}[{k}]" if several else name
            axes.fit(own, tuple(array.shape), sizes)
            for rule in rules:
                rule(own, array)


# Lengths and shapes that another argument tells: an object, widths, an array.
_ASKED: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    ".": lambda values, name: getattr(values["self"], name),
    "+": lambda values, name: sum(values[name]),
    "=": lambda values, name: tuple(values[name].shape),
}


class _Plan(NamedTuple):
    """The checks of a function's arguments: by their places, by their names, and of ``*args``."""

    places: list[tuple[str, Check]]
    names: dict[str, Check]
    rest: Iterable[tuple[str, Check]]  # endless, or none
    shapes: dict[str, Any]  # `Axes` and rules of arrays


def _plan(
    function: Callable[..., Any],
    checks: Checks,
    named: Mapping[str, Check] | None,
) -> _Plan:
    plan, words = _Plan([], {}, (), {}), _names(function)
    kinds = {name: one for name, one in checks.items() if not isinstance(one, str)}
    for name, parameter in inspect.signature(function).parameters.items():
        hint, given = parameter.annotation, kinds.get(name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            plan = plan._replace(rest=repeat((name, given or check_of(hint, named, words)[0])))
        elif parameter.kind is parameter.VAR_KEYWORD and given is not None:
            plan.names[name] = given  # they have checks of their own
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords = _keywords(hint, function)
            of_keywords = vars(sys.modules[keywords.__module__]) if keywords else {}
            for own, kind in getattr(keywords, "__annotations__", {}).items():
                plan.names[own] = _check(check_of(kind, named, of_keywords), kinds.get(own))
        else:
            optional = parameter.default is None
            endless = isinstance(parameter.default, float) and math.isinf(parameter.default)
            if given is None and named is None and endless:
                given = extended
            if given is None and name in _TOLERANCES:
                given = tolerance
            plan.names[name] = _check(check_of(hint, named, words), given, optional)
            if parameter.kind is not parameter.KEYWORD_ONLY:
                plan.places.append((name, plan.names[name]))
            declared = checks.get(name)
            if isinstance(declared, ArrayKind):
                plan.shapes[name] = axes_of(declared.shape), declared.rules
            elif isinstance(declared, str):
                plan.shapes[name] = axes_of(declared), ()
    unknown = set(checks) - set(inspect.signature(function).parameters) - set(plan.names)
    if unknown:
        raise LookupError(f"{function.__qualname__} has no argument {', '.join(unknown)}")
    return plan


def _check(found: tuple[Check, bool], given: Check | None = None, optional: bool = False) -> Check:
    check = given or found[0]
    return or_none(check) if found[1] or optional else check


def _names(function: Callable[..., Any]) -> dict[str, Any]:
    return vars(sys.modules[function.__module__])


def _keywords(hint: Any, function: Callable[..., Any]) -> type | None:
    """Return the typed dictionary in ``Unpack[...]``; None of ``Any``."""
    if isinstance(hint, str):
        name = re.fullmatch(r"Unpack\[(\w+)\]", hint)
        hint = _names(function)[name[1]] if name else None
    found = (typing.get_args(hint) or (hint,))[0]
    return found if hasattr(found, "__annotations__") else None
