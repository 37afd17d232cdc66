"""The text of a cvxpy problem, with data by name or shape, and its size."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.doors import door, result
from .._support.shown import Shown
from .literal import cvxpy_module

if TYPE_CHECKING:
    import cvxpy

WIDTH = 100
# Terms of a sum, and constraints, of which all are shown; of more the first and the last.
MOST_TERMS, MOST_CONSTRAINTS = 3, 6
# Where the name of an atom's class is not that of its function.
FUNCTIONS = {"Sum": "sum", "QuadForm": "quad_form", "Vstack": "vstack", "Hstack": "hstack"}
# What stands in parentheses as a term of a sum, and elsewhere: before an index, within a product.
SUMS = {"AddExpression", "NegExpression"}
LOOSE = SUMS | {"MulExpression", "DivExpression"}
# Kept on one line: brackets of either kind.
WHOLE = r"<[^>]*>|\[[^\[\]]*\]"
# From the most general cone on: the atoms and the constraints that need it.
CONES = (
    ("semidefinite program", "PSD_ATOMS", "PSD"),
    ("exponential cone program", "EXP_ATOMS", "ExpCone"),
    ("power cone program", "POWCONE_ATOMS", "PowCone3D"),
)


@result()
@dataclass(frozen=True, repr=False)
class ProgramText(Shown):
    """A convex program as text, and its size.

    Expressions are in the syntax of cvxpy, with variables and constants by name. In angle brackets
    stands what is left out: numbers of a constant without a name, indices, terms of long sums.

    Attributes
    ----------
    objective : str
        "minimise ..." or "maximise ...".
    constraints : tuple of str
        Each with its label, where it has one; of many the first and the last.
    variables, constants : mapping of str to tuple of int
        Shapes by name.
    kind : str
        "linear program", "quadratic program", "second-order cone program", ...: the simplest that
        it is.
    n_variables, n_equalities, n_inequalities : int
        Counted by entries.
    n_nonzero : int
        Entries of constants that are not zero, single numbers left out.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> text = ib.programs.describe_program(ib.programs.HardMarginSVM().literal(X, y))
    >>> text.objective, text.n_variables, text.kind
    ('minimise norm(b)', 2, 'second-order cone program')
    """

    objective: str
    constraints: tuple[str, ...]
    variables: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, tuple[int, ...]]
    kind: str
    n_variables: int
    n_equalities: int
    n_inequalities: int
    n_nonzero: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, ready for JSON."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Return label and text of every line."""
        sense, _, objective = self.objective.partition(" ")
        labels = ["subject to", *[""] * (len(self.constraints) - 1)]
        return [
            (sense, objective),
            *zip(labels, self.constraints, strict=False),
            ("variables", _shapes(self.variables)),
            ("constants", _shapes(self.constants)),
            ("size", f"{self.kind} of {self._size()}"),
        ]

    def __str__(self) -> str:
        """Return the text in lines of at most 100 characters."""
        lines = []
        for label, text in self.rows():
            lead = f"{label:<12}"
            whole = re.sub(WHOLE, lambda found: found[0].replace(" ", "\0"), text)
            lines += textwrap.wrap(
                whole, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead),
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        return "\n".join(lines).replace("\0", " ")

    def _size(self) -> str:
        counts = (
            (self.n_variables, "variable", "variables"),
            (self.n_equalities, "equality", "equalities"),
            (self.n_inequalities, "inequality", "inequalities"),
            (self.n_nonzero, "nonzero of data", "nonzeros of data"),
        )
        return ", ".join(
            f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count
        )

    def _shown_rows(self) -> list[tuple[str, str]]:
        return self.rows()


@door()
def describe_program(problem: cvxpy.Problem) -> ProgramText:
    """Write a cvxpy problem as text of 100 columns, and count its size; nothing is solved.

    Parameters
    ----------
    problem : cvxpy.Problem
        Such as `literal` of a formulation returns.

    Returns
    -------
    ProgramText
        `print` shows it, `to_dict()` is ready for JSON.

    Raises
    ------
    MissingExtra
        Without cvxpy.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> print(ib.programs.describe_program(ib.programs.HardMarginSVM().literal(X, y)))
    minimise    norm(b)
    subject to  margins: multiply(y, X @ b) >= 1
    variables   b (2,)
    constants   y (2,), X (2, 2)
    size        second-order cone program of 2 variables, 2 inequalities, 4 nonzeros of data
    """
    metrics, constants = problem.size_metrics, problem.constants()
    sense = "minimise" if type(problem.objective).__name__ == "Minimize" else "maximise"
    return ProgramText(
        objective=f"{sense} {_words(problem.objective.args[0])}",
        constraints=_elided([_constraint(one) for one in problem.constraints], MOST_CONSTRAINTS),
        variables={one.name(): _shape(one) for one in problem.variables()},
        constants={one.name(): _shape(one) for one in constants if _is_named(one)},
        kind=_kind(problem),
        n_variables=int(metrics.num_scalar_variables),
        n_equalities=int(metrics.num_scalar_eq_constr),
        n_inequalities=int(metrics.num_scalar_leq_constr),
        n_nonzero=sum(_nonzero(one.value) for one in constants if not one.is_scalar()),
    )


def _kind(problem: cvxpy.Problem) -> str:
    """Return the simplest class of programs that it belongs to, by atoms and constraints."""
    whole = "mixed-integer " if problem.is_mixed_integer() else ""
    if not problem.is_dcp():
        return f"{whole}program that cvxpy does not know to be convex"
    if problem.is_qp():
        linear = problem.objective.args[0].is_pwl()
        return whole + ("linear program" if linear else "quadratic program")
    atoms, known = set(problem.atoms()), cvxpy_module().atoms
    constraints = {type(one).__name__ for one in problem.constraints}
    for kind, needing, cone in CONES:
        if atoms & set(getattr(known, needing, ())) or cone in constraints:
            return whole + kind
    return f"{whole}second-order cone program"


def _nonzero(value: Any) -> int:
    return int(value.nnz) if hasattr(value, "nnz") else int(np.count_nonzero(value))


def _shape(expression: cvxpy.Expression) -> tuple[int, ...]:
    return tuple(int(size) for size in expression.shape)


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"


def _elided(texts: Sequence[str], most: int) -> tuple[str, ...]:
    """Return a few texts as they are; of many the first, the number between and the last."""
    if len(texts) <= most:
        return tuple(texts)
    return (texts[0], f"<{len(texts) - 2} more>", texts[-1])


def _constraint(constraint: cvxpy.Constraint) -> str:
    label, kind = getattr(constraint, "label", None), type(constraint).__name__
    sides = [_words(side) for side in constraint.args]
    if kind == "Inequality":  # kept as "less than", read with the expression first
        below, above = sides
        constant = constraint.args[0].is_constant()
        text = f"{above} >= {below}" if constant else f"{below} <= {above}"
    elif kind in ("Equality", "Zero"):
        text = " == ".join(sides if len(sides) == 2 else [*sides, "0"])
    else:
        text = f"{kind}({', '.join(sides)})"
    return f"{label}: {text}" if label else text


def _words(expression: cvxpy.Expression) -> str:
    """Return an expression in the syntax of cvxpy."""
    kind, args = type(expression).__name__, expression.args
    if not args:
        return _leaf(expression)
    inner = args[0]
    match kind:
        case "AddExpression":
            return _added(args)
        case "NegExpression":
            return f"-{_tight(inner)}"
        case "MulExpression" | "DivExpression":
            first = _words(inner) if type(inner).__name__ == kind else _tight(inner)
            return f"{first} {'@' if kind == 'MulExpression' else '/'} {_tight(args[1])}"
        case "multiply" if inner.is_scalar() or _is_promoted(inner):
            return f"{_tight(inner)} * {_tight(args[1])}"
        case "Promote" | "psd_wrap":
            return _words(inner)
        case "transpose":
            return f"{_tight(inner)}.T"
        case "index" | "special_index":
            return f"{_tight(inner)}[{_key(expression.get_data()[-1])}]"
        case "reshape":
            return f'reshape({_words(inner)}, {_shape(expression)}, order="{expression.order}")'
        case "norm1":
            return f"norm({_words(inner)}, 1{_axis(expression)})"
        case "Pnorm" | "PnormApprox":
            return _norm(expression, inner)
        case "quad_over_lin" if args[1].is_constant() and np.all(args[1].value == 1):
            return f"sum_squares({_words(inner)})"
        case _:
            texts = ", ".join(map(_words, args))
            return f"{FUNCTIONS.get(kind, kind)}({texts}{_axis(expression)})"


def _leaf(expression: cvxpy.Expression) -> str:
    if not expression.is_constant() or expression.parameters() or _is_named(expression):
        return str(expression.name())
    if expression.is_scalar():
        return f"{float(expression.value):.6g}"
    return f"<{_shape(expression)} constant>"


def _is_named(constant: cvxpy.Constant) -> bool:
    """Return whether a constant was named; otherwise its name is its numbers."""
    return getattr(constant, "_name", None) is not None


def _is_promoted(expression: cvxpy.Expression) -> bool:
    return type(expression).__name__ == "Promote"


def _tight(expression: cvxpy.Expression) -> str:
    """Return an expression in parentheses unless it binds as tightly as a name."""
    inner = expression
    while _is_promoted(inner):
        inner = inner.args[0]
    text = _words(expression)
    product = type(inner).__name__ == "multiply" and not text.startswith("multiply(")
    return f"({text})" if product or type(inner).__name__ in LOOSE else text


def _added(args: Sequence[cvxpy.Expression]) -> str:
    texts = []
    for number, arg in enumerate(args):
        minus = type(arg).__name__ == "NegExpression"
        term = arg.args[0] if minus else arg
        text = f"({_words(term)})" if type(term).__name__ in SUMS else _words(term)
        lead = " - " if minus and number else "-" if minus else " + " if number else ""
        texts.append(lead + text)
    first, *rest = _elided(texts, MOST_TERMS)
    return first + "".join(f" + {text}" if text.startswith("<") else text for text in rest)


def _norm(expression: cvxpy.Expression, inner: cvxpy.Expression) -> str:
    p, axis = expression.p, _axis(expression)
    flat = type(inner).__name__ == "reshape" and inner.ndim == 1
    if p == 2 and flat and inner.args[0].ndim == 2:
        return f'norm({_words(inner.args[0])}, "fro")'
    order = "" if p == 2 and not axis else f", {float(p):g}"
    return f"norm({_words(inner)}{order}{axis})"


def _axis(expression: cvxpy.Expression) -> str:
    axis = getattr(expression, "axis", None)
    kept = ", keepdims=True" if axis is not None and getattr(expression, "keepdims", False) else ""
    return "" if axis is None else f", axis={axis}{kept}"


def _key(key: Any) -> str:
    """Return an index as it is typed; arrays of indices by their number."""
    if isinstance(key, tuple):
        return ", ".join(map(_key, key))
    if isinstance(key, slice):
        ends = ["" if end is None else str(end) for end in (key.start, key.stop)]
        return ":".join(ends if key.step in (None, 1) else [*ends, str(key.step)])
    if isinstance(key, np.ndarray | list):
        return f"<{len(key)} indices>"
    return "..." if key is Ellipsis else str(key)
