"""Convex programs as their papers state them, for cvxpy, which is imported when one is stated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from .._support.extras import naming_extras
from .._support.solve import Array, to_numpy

if TYPE_CHECKING:
    import cvxpy


class LiteralProgram(ABC):
    """A convex program that can be stated in cvxpy: a frozen dataclass of its parameters.

    Attributes
    ----------
    name : str
        The program's name in the literature, for messages and pictures.
    """

    name: ClassVar[str]

    @abstractmethod
    def literal(self, *args: Any, **kwargs: Any) -> cvxpy.Problem:
        """State the program as the paper does; what is printed wrongly there is mended.

        Variables and constants have the paper's letters, so that `print` reads like the paper;
        `describe_program` adds the size. Each class says what it takes.

        Returns
        -------
        cvxpy.Problem
            For any solver that cvxpy has, or to add terms and constraints to.

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            If an array is not what the class takes.
        """


@naming_extras()
def cvxpy_module() -> ModuleType:
    """Import cvxpy; raises `MissingExtra` where it is not installed."""
    import cvxpy

    module: ModuleType = cvxpy
    return module


def constant(value: Array, name: str) -> cvxpy.Constant:
    """Name data: a problem prints its constants by these names instead of their numbers."""
    return cvxpy_module().Constant(to_numpy(value), name=name)


def labelled(constraint: cvxpy.Constraint, name: str) -> cvxpy.Constraint:
    """Label a constraint, for a cvxpy that prints labels (from 1.8 on)."""
    return constraint.set_label(name) if hasattr(constraint, "set_label") else constraint


def max_margin(
    norm: cvxpy.Expression,
    y: Array,
    scores: cvxpy.Expression,
    stated: Sequence[cvxpy.Constraint] = (),
) -> cvxpy.Problem:
    """Minimise a norm subject to margins ``y[n] * scores[n]`` of at least 1, and what states it."""
    cp = cvxpy_module()
    margins = cp.multiply(constant(y, "y"), scores)
    return cp.Problem(cp.Minimize(norm), [labelled(margins >= 1, "margins"), *stated])
