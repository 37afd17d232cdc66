"""Findings about a bound of all networks, and about one network between it and its local limit."""

from __future__ import annotations

import math
from typing import Any

from ..._support.solve import Status
from ...limits.exact.path_limit import PathLimit
from ...limits.local.limit import LocalLimit
from ...measures.bounded_value import BoundedComparison, BoundedValue
from ...measures.classifiers import ClassifierComparison, classifier_rows
from ...quantities.assumptions import Assumption
from ...quantities.formatting import DASH, number
from ...quantities.premises import LOCAL_OPTIMUM
from ...quantities.said import Side, Table
from ...quantities.table import lines
from .finding import Finding
from .findings import solved
from .verdict import EXCESS, OPTIMA, Evidence, decide

BOUND, LASSO, LOCAL = "path lasso (bound)", "path lasso", "local limit"


def bound_finding(bound: PathLimit) -> Finding:
    """Report the path lasso as a bound of every network with its gates.

    Parameters
    ----------
    bound : PathLimit
    """
    alone = solved(bound, BOUND)
    title = "a bound of every network with these gates"
    return alone.but(
        tables=(bound_table(bound, title, *alone.views.tables[0].rows[4:]),),
        verdicts=(decide(bound_evidence(bound)),),
        sides=(_bound_side(bound),),
    )


def _bound_side(bound: PathLimit, found: ClassifierComparison | None = None) -> Side:
    values = {"value": bound.dual_objective, "gap": bound.gap}
    return Side(BOUND, values | ({} if found is None else _labels(found)))


def _labels(found: ClassifierComparison) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("agreement", "error", "score_cosine")}


def bounded_sides(bound: PathLimit, found: BoundedComparison) -> tuple[Side, ...]:
    """Return the bound, the local limit and the network as columns of the first screen.

    Parameters
    ----------
    bound : PathLimit
    found : BoundedComparison
        Of a network with these gates.
    """
    known, local = found.classifiers, found.limit
    network = {"value": found.value, "error": found.error_network, "local_ratio": found.local_ratio,
               "bound_ratio": found.bound_ratio}  # fmt: skip
    sides = [_bound_side(bound, known.get(LASSO)), Side("network", network)]
    if local is not None:
        values = {"value": local.value, "local_residual": local.residual, "local_ratio": 1.0,
                  "bound_ratio": found.local_bound_ratio}  # fmt: skip
        sides.insert(1, Side(LOCAL, values | (_labels(known[LOCAL]) if LOCAL in known else {})))
    return tuple(sides)


def bound_evidence(bound: PathLimit, value: BoundedValue | None = None) -> Evidence:
    """Return what is proved of all networks with the same gates.

    Parameters
    ----------
    bound : PathLimit
    value : BoundedValue, optional
        Of one of them, whose local limit bounds the least value from above.
    """
    upper = bound.attained
    if value is not None:
        known = value.value, value.local_value, bound.attained
        upper = min(one for one in known if not math.isnan(one))
    attained = ", and one is known that attains it" if bound.is_tight() else ""
    who = "network with these gates"
    return least_evidence(who, bound.dual_objective, upper, attained, status=bound.status)


def least_evidence(
    who: str, least: float, best: float, attained: str = "", *, status: Status | None = None
) -> Evidence:
    """Return what is proved of all networks of a kind.

    Parameters
    ----------
    who : str
        Which networks, after "no".
    least : float
        A certified lower bound of their values.
    best : float
        The least value that one of them is known to have; infinite where none is known.
    attained : str
        What is said in place of it where one is known that attains the bound.
    status : Status, optional
    """
    said = f"no {who} is below {least:.5g} (proved){attained}"
    if not attained and math.isfinite(best):
        said += f": the best of all lies between {least:.5g} and {best:.5g}"
    return Evidence(theory="bound", status=status, beside={"lower_bound": least}, numbers=said)


def value_in_words(value: float, local: float | None, what: str = "local optimum") -> str:
    """Say the value of a network, and that of its local limit with their ratio; None for no such.

    Parameters
    ----------
    value : float
    local : float or None
    what : str
        What the local limit is.
    """
    said = f"value {value:.5g}"
    return said if local is None else f"{said}, {what} {local:.5g}, ratio {local / value:.4f}"


def local_evidence(value: BoundedValue, **further: Any) -> Evidence:
    """Return the evidence on a network whose limit no theorem names, beside its local limit.

    Parameters
    ----------
    value : BoundedValue
    further
        As of `Evidence`.
    """
    local, numbers = value.limit, value_in_words(value.value, None)
    if local is not None:
        near = local.status in OPTIMA and local.value <= value.value * (1 + EXCESS)
        what = "local optimum" if near else "point next to it"
        numbers = value_in_words(value.value, local.value, what)
    reason = "" if value.local is None else value.local.reason
    live = local is not None and local.status is Status.LIVE_OPTIMUM
    proof = "proved for its live units" if live else ""
    known = {"theory": "local limit", "reason": reason, "proof": proof} | further
    return Evidence(
        status=None if local is None else local.status,
        near={} if local is None else {"local_ratio": value.local_ratio},
        beside={"value": value.value, "local_value": value.local_value},
        numbers=numbers,
        **known,
    )


def bound_table(bound: PathLimit, title: str, *further: tuple[str, ...]) -> Table:
    """Make a table of a bound: its certificate, and if a network is known that attains it.

    Parameters
    ----------
    bound : PathLimit
    title : str
    further : tuples of label and text
        Lines at the end.
    """
    known, least = bound.certificate.proves_separability(), BoundedValue.declared["bound"].quantity
    tight = "attained by a network: it is the limit's value" if bound.is_tight() else (
        "not known to be attained: a bound, not the limit"
    )  # fmt: skip
    rows = (
        *lines({"status": bound.status.name}, "status"),
        (least.title, least.text(bound.dual_objective)),
        ("  optimum of the path lasso (certified)", f"{bound.objective:.8g}"),
        *lines({"gap": bound.gap}, "gap"),
        ("  tight?", tight if known else DASH),
        ("  a network made of it has the value", number(bound.attained, ".6g")),
        ("distinct paths", f"{len(bound.paths)} of {math.prod(map(int, bound.widths))}"),
    )
    return Table(title, ("", BOUND), (*rows, *further))


def comparison_finding(
    found: Finding,
    comparison: BoundedComparison,
    program: str,
    *further: tuple[str, str, str],
    title: str = "the network beside its local limit and the bound",
) -> Finding:
    """Add a network, its local limit and classifiers to a finding about their bound.

    Parameters
    ----------
    found : Finding
    comparison : BoundedComparison
    program : str
        Which of its classifiers the bound is.
    further : tuples of label, text, and what it is
        Lines of the first table after those of the comparison.
    title : str
        Of that table.
    """
    local, classifiers = comparison.local, comparison.classifiers
    lasso = classifiers[program]
    beside = "classifiers beside the network (measured)"
    rows = classifier_rows(classifiers, comparison.error_network)
    found = found.also(
        record={"comparison": comparison.to_dict()},
        tables=(
            Table(title, ("", "value", "what it is"), (*comparison.rows(), *further)),
            Table(beside, ("", *classifiers), tuple(rows)),
        ),
        objects={"comparison": comparison},
        row={
            "margin_ratio": comparison.bound_ratio,
            "score_cosine": lasso.score_cosine,
            "agreement": lasso.agreement,
            "error_limit": lasso.error,
            "error_network": comparison.error_network,
            **local_columns(comparison),
        },
    )
    if local is None:
        return found
    return found.also(
        record={"local_limit": local.to_dict()},
        certificates={LOCAL: certified(local)},
        objects={"local_limit": local},
    )


def certified(local: LocalLimit) -> dict[str, Any]:
    """Return the numbers of a local limit for the page."""
    return {"status": local.status.name, "seconds": local.seconds, "n_samples": local.n_samples}


def local_columns(one: BoundedValue) -> dict[str, Any]:
    """Return the columns of a run's row about the local limit of a network.

    Parameters
    ----------
    one : BoundedValue
        Without a local limit there are no columns; of a `BoundedComparison` those of the local
        limit as a classifier come with it.
    """
    if one.local is None:
        return {}
    found = {name: value for name, value in one.cells().items() if name.startswith("local_")}
    if isinstance(one, BoundedComparison) and LOCAL in one.classifiers:
        found |= {f"local_{name}": own for name, own in _labels(one.classifiers[LOCAL]).items()}
    return found


def strict_local_optimum(local: LocalLimit | None) -> Assumption:
    """Make the assumption that a local limit is a strict local optimum, as far as it is known.

    Parameters
    ----------
    local : LocalLimit or None
        None where none was found: there is nothing to compare.
    """
    why = f"; {local.reason}" if local is not None and local.reason else ""
    known = {Status.LOCAL_OPTIMUM: True, Status.SADDLE: False}
    return LOCAL_OPTIMUM.found(
        why=why,
        holds=None if local is None else known.get(local.status),
        how="proved in floating point" if local is not None and local.status in known else "",
    )
