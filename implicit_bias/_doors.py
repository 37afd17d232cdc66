"""Doors: arguments of public functions, checked against what their signatures say.

The annotation of an argument says what it is: ``n: int`` is a whole number from 0 on, ``X: Array``
an array of finite real numbers, ``network: Module`` a torch module. `door` refuses everything else
before the function runs, by a TypeError or ValueError that names the argument. What an annotation
does not say, such as a range, the decorator adds, ``@door(n=count(1))``, or the function itself,
such as a shape that follows another argument's.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ._kinds import RESULTS, Check, check_of, or_none

__all__ = ["check_parameters", "door", "parameters", "result"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Made = TypeVar("Made", bound=type)
Plan = tuple[list[tuple[str, Check]], dict[str, Check]]


def door(**checks: Check) -> Callable[[Decorated], Decorated]:
    """Return a decorator that checks the arguments of a function or method before it runs.

    Parameters
    ----------
    **checks : callables
        ``check(name, value)`` by the names of arguments whose annotation says too little. None
        passes unseen where the annotation or the default is None.
    """

    def decorate(function: Decorated) -> Decorated:
        return typing.cast("Decorated", _checked(function, checks, None))

    return decorate


def parameters(**checks: Check) -> Callable[[Made], Made]:
    """Return a decorator that checks the fields of a dataclass of choices, as `door` does."""
    return lambda cls: _made(cls, checks, None)


def result(**checks: Check) -> Callable[[Made], Made]:
    """Return a decorator that checks the fields of a dataclass of results, kind by kind.

    Their numbers and arrays may be negative, infinite and NaN.
    """
    return lambda cls: _made(cls, checks, RESULTS)


def _made(cls: Made, checks: Mapping[str, Check], named: Mapping[str, Check] | None) -> Made:
    made: Any = cls
    made.__init__ = _checked(made.__init__, checks, named)
    return cls


def check_parameters(estimator: object, **checks: Check) -> None:
    """Check the parameters of an estimator of scikit-learn, which it is given unchecked, at `fit`.

    Raises
    ------
    TypeError, ValueError
    """
    for name, check in _plan(type(estimator).__init__, checks, None)[1].items():
        if name != "self":
            check(name, getattr(estimator, name))


def _checked(
    function: Callable[..., Any], checks: Mapping[str, Check], named: Mapping[str, Check] | None
) -> Callable[..., Any]:
    plan = functools.cache(lambda: _plan(function, checks, named))

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        by_place, by_name = plan()
        for (name, check), value in zip(by_place, args, strict=False):
            check(name, value)
        for name, value in kwargs.items():
            if name in by_name:
                by_name[name](name, value)
        return function(*args, **kwargs)

    return checked


def _plan(
    function: Callable[..., Any], checks: Mapping[str, Check], named: Mapping[str, Check] | None
) -> Plan:
    """Return the checks of a function's arguments, by their places and by their names."""
    by_place: list[tuple[str, Check]] = []
    by_name: dict[str, Check] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            if name in checks:  # they have checks of their own
                by_name[name] = checks[name]
                continue
            keywords = _keywords(parameter.annotation, function)
            names = vars(sys.modules[keywords.__module__]) if keywords else {}
            by_name |= {
                own: _check(check_of(hint, named, names), checks.get(own), False)
                for own, hint in getattr(keywords, "__annotations__", {}).items()
            }
            continue
        optional = parameter.default is None
        found = check_of(parameter.annotation, named, _names(function))
        by_name[name] = _check(found, checks.get(name), optional)
        if parameter.kind is not parameter.KEYWORD_ONLY:
            by_place.append((name, by_name[name]))
    unknown = set(checks) - set(by_name)
    if unknown:
        raise LookupError(f"{function.__qualname__} has no argument {', '.join(unknown)}")
    return by_place, by_name


def _check(found: tuple[Check, bool], given: Check | None, optional: bool) -> Check:
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
