"""The quantities that runs of all theories share, in the order of their columns in a run's row.

A quantity that only one class has and no row is declared at its field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from .definition import Format, Quantity, Rule, Type, by_name
from .formatting import degrees

__all__ = ["MEASURED", "TABLE", "columns", "lines", "record_lines", "stacked", "title_of"]


def _column(
    name: str,
    label: str,
    doc: str,
    format: Format = ".4g",
    *,
    type: Type = "float64",
    ideal: float | None = None,
    at_most: float | None = None,
    over_classes: Rule | None = None,
    head: str = "",
    phrase: str = "",
) -> Quantity:
    return Quantity(name, label, format, ideal, at_most, doc, type, over_classes, head, phrase)


def _like(name: str, other: Quantity, doc: str) -> Quantity:
    """Return the column of a quantity that another column has of another network."""
    return replace(other, name=name, doc=doc, over_classes=None)


_L1_NORM = _column("l1_norm", "l1 norm", "l1 norm of the network's coefficients.", ".6g")
_L2_NORM = _column("l2_norm", "l2 norm", "l2 norm of the network's coefficients.", ".6g")
_GAP = _column(
    "gap",
    "  duality gap",
    "Relative duality gap.",
    ".2e",
    ideal=0.0,
    over_classes="largest",
    head="gap",
)
_MARGIN_RATIO = _column(
    "margin_ratio",
    "margin ratio",
    "Margin of the network per unit of the limit's norm, times the certified lower bound of the "
    "optimum: at most 1, and 1 exactly at the limit.",
    ".4f",
    ideal=1.0,
    over_classes="least",
)
_SCORE_COSINE = _column(
    "score_cosine",
    "cosine of held-out scores",
    "Cosine between the scores of limit and network on held-out data.",
    ".4f",
    ideal=1.0,
    over_classes="least",
    head="cosine of scores",
)
_AGREEMENT = _column(
    "agreement",
    "agreement on held-out labels",
    "Share of held-out samples that limit and network give the same label.",
    ".2%",
    ideal=1.0,
    head="agreement",
    phrase="same label on {:.2%} held out",
)
_KKT_RESIDUAL = _column(
    "kkt_residual",
    "KKT stationarity, relative residual",
    "Distance of the weights from their fit by gradients, relative to them: 0 at a KKT point of "
    "`min ||w||` at margin 1. NaN while the network does not separate the training data, and for "
    "one that is not homogeneous.",
    ideal=0.0,
    over_classes="largest",
)
_ERROR = _column(
    "error", "held-out error", "Share of held-out samples that are not on the right side.", ".2%"
)
_NEURON_DISTANCE = _column(
    "neuron_distance",
    "optimal transport to the predicted neurons",
    "Optimal transport of the network's neurons to the predicted ones.",
    ".3g",
    ideal=0.0,
)
_WEIGHT_DRIFT = _column(
    "weight_drift", "|dw| / |w0|", "|w - w_0| / |w_0| at the last output scale."
)
_NULL_NORM = _column(
    "null_norm",
    "off the projection",
    "Length of the trained student off the span of the samples.",
    ".6g",
)
_ANGLE = _column(
    "angle",
    "angle with the teacher, degrees",
    "Angle between trained student and teacher, in radians.",
    degrees,
)
_RISK = _column(
    "risk",
    "transfer risk, held out",
    "Share of held-out inputs that the trained student labels unlike the teacher.",
    ".2%",
)


def _of_machine(key: str, name: str, *, ratio: bool = False) -> tuple[Quantity, ...]:
    """Return the columns of a machine that stands in for a ReLU network."""
    return (
        _column(f"{key}_status", "status", f"Status of {name}.", type="string"),
        _like(f"{key}_gap", _GAP, f"Relative duality gap of {name}."),
        *(
            [_like(f"{key}_margin_ratio", _MARGIN_RATIO, f"Margin ratio beside {name}.")]
            if ratio
            else []
        ),
        _like(f"{key}_agreement", _AGREEMENT, f"Share of held-out labels that {name} shares."),
        _like(f"{key}_error", _ERROR, f"Held-out error of {name}."),
    )


MEASURED: tuple[Quantity, ...] = (
    _column("limit", "program", "Program that the columns of the limit belong to.", type="string"),
    _column(
        "objective",
        "norm per unit margin",
        "Least norm at margin 1, the certified upper bound.",
        ".8g",
        head="optimum",
    ),
    _column(
        "lower_bound", "  certified lower bound", "Certified lower bound of the optimum.", ".8g"
    ),
    _GAP,
    _column("n_support", "support vectors", "Support vectors of the limit.", "d", type="int64"),
    _column("n_units", "units", "Units of the limit.", "d", type="int64"),
    _column("n_live", "live units", "Units of the limit that are not zero.", "d", type="int64"),
    _column("iterations", "iterations", "Iterations of the solver.", "d", type="int64"),
    _column("limit_seconds", "seconds", "Seconds of the solver.", ".2f", over_classes="sum"),
    _column(
        "stationarity",
        "  stationarity residual",
        "Residual of the stationarity of a least-squares limit.",
        ".2e",
        ideal=0.0,
    ),
    _column("optimal_loss", "optimal loss", "Loss of a least-squares limit.", ".6g"),
    _column("n_steps", "steps", "Gradient steps done.", "d", type="int64", over_classes="largest"),
    _column("final_loss", "loss", "Mean loss at the end."),
    _column("log_inverse_loss", "log(1/loss)", "log(1/loss) at the end.", over_classes="least"),
    _column(
        "training_seconds",
        "seconds of training",
        "Seconds of training.",
        ".2f",
        over_classes="sum",
    ),
    _column(
        "smallest_margin",
        "smallest margin",
        "Smallest margin of the network on the training data.",
        ".6g",
        over_classes="least",
    ),
    _column(
        "network_norm",
        "norm",
        "Norm of the network's coefficients, at its own scale, in the limit's norm.",
        ".6g",
    ),
    _MARGIN_RATIO,
    _column(
        "zeta_cosine",
        "cosine of direction",
        "Cosine between the coefficients of limit and network; NaN where the network has none.",
        ".4f",
        ideal=1.0,
        over_classes="least",
        head="cosine",
    ),
    _SCORE_COSINE,
    _AGREEMENT,
    _column(
        "agreement_independent",
        "  if errors were independent",
        "Agreement of two classifiers with these error rates, p and q, whose errors are "
        "independent: `p q + (1 - p) (1 - q)`.",
        ".2%",
    ),
    _column(
        "agreement_from",
        "labels agree with the limit's from log(1/loss)",
        "log(1/loss) from which descent agrees to 99 %, by the flow of the smallest margin.",
    ),
    _column(
        "error_limit",
        "held-out error, limit",
        "Held-out error of the limit.",
        ".2%",
        head="error, limit",
    ),
    _column(
        "error_network",
        "held-out error, network",
        "Held-out error of the network.",
        ".2%",
        head="error, network",
    ),
    _column("train_error_limit", "training error, limit", "Training error of the limit.", ".2%"),
    _column(
        "train_error_network", "training error, network", "Training error of the network.", ".2%"
    ),
    _column(
        "kkt_cosine",
        "KKT stationarity, cosine",
        "Cosine between the weights and their fit by gradients: 1 at a KKT point.",
        ".4f",
        ideal=1.0,
        over_classes="least",
    ),
    _KKT_RESIDUAL,
    _column(
        "norm",
        "norm that the trainer induces",
        "Norm on the coefficients of the network that its trainer's steps induce.",
        type="string",
    ),
    _column(
        "certified_ratio",
        "margin ratio, certified by the loss weights",
        "Margin of the network per unit of its trainer's norm over the least of the upper bounds "
        "that the weights of its loss proved on the way: at most 1.",
        ".4f",
        ideal=1.0,
    ),
    _column(
        "kkt_ratio",
        "KKT ratio in the norms of the layers, at least",
        "Certified lower bound of the least norm of the linearised margin problem over the norm of "
        "the weights: 1 at a KKT point in these norms.",
        ".4f",
        ideal=1.0,
    ),
    _column(
        "kkt_complementarity",
        "KKT complementarity, multipliers beyond the margin",
        "Mean distance of samples beyond the smallest margin, weighted by their multipliers: 0 at "
        "a KKT point.",
        ideal=0.0,
        over_classes="largest",
    ),
    _column(
        "largest_dual_norm",
        "largest dual norm of a unit",
        "Largest dual norm of the network's units.",
        at_most=1.0,
        over_classes="largest",
    ),
    _column("n_dead", "dead units of the network", "Dead units of the network.", "d", type="int64"),
    _column(
        "n_wrongly_small",
        "units wrongly small",
        "Units that would have to be larger at the optimum.",
        "d",
        type="int64",
        ideal=0.0,
    ),
    _column(
        "dual_condition",
        "every dual norm is at most 1",
        "True if every unit's dual norm is at most 1, to a hundredth.",
        type="bool",
    ),
    _column(
        "gate_changes",
        "gates changed since the start",
        "Share of gates that changed in training.",
        ".2%",
        head="gates changed",
    ),
    _column(
        "path_error",
        "trained network off its predicted path",
        "Largest distance of training from the closed form, or the flow, relative to that.",
        ".2e",
        ideal=0.0,
        head="off its path",
        phrase="on its predicted path to {:.1e}",
    ),
    _column(
        "limit_error",
        "off the limit, relative",
        "Distance of a student's weights from their limit, relative to that.",
        ".3g",
        ideal=0.0,
        head="off the limit",
        phrase="weights {:.2g} off the limit (relative)",
    ),
    _column(
        "value_gap",
        "value above the optimum, certified by its own slopes",
        "By how much the network's value is above the optimum of its finite program at most, "
        "relative, certified by the slopes of its own loss.",
        ".2e",
        ideal=0.0,
        head="value gap",
        phrase="value within {:.1e} of the optimum",
    ),
    _column(
        "over_optimum",
        "  above the certified lower bound of the limit",
        "Value of the network above the certified lower bound of the optimum, relative.",
        ".2e",
        ideal=0.0,
        head="over the optimum",
        phrase="value {:.1e} above the optimum",
    ),
    _column(
        "score_distance",
        "distance of scores from the limit's, relative",
        "Distance of the training scores of network and limit, relative to the limit's.",
        ".2e",
        ideal=0.0,
        head="distance of scores",
    ),
    _column("penalty", "penalty", "Penalty of the finite program.", ".4g"),
    _column("radius", "radius of the ball", "Radius of the ball of decoupled decay.", ".4g"),
    _column(
        "radius_used",
        "  of which the network uses",
        "Norm of the network's coefficients over the radius of its ball.",
        ".6f",
    ),
    _column(
        "limit_margin_ratio",
        "margin of the finite limit beside the largest",
        "Margin per unit norm of the finite limit over the largest there is: 1 as the penalty "
        "goes to 0, like 1 - c / log(1 / penalty).",
        ".4f",
        ideal=1.0,
    ),
    _column(
        "start_error",
        "  off the limit of the start its steps amount to",
        "Distance of a diagonal network from the limit of its effective start, relative to that.",
        ".2e",
        ideal=0.0,
        head="off the effective limit",
        phrase="{:.1e} off that of the start its steps amount to",
    ),
    _column(
        "potential_ratio",
        "least potential of its scores over its own",
        "Least potential of all diagonal networks with the network's scores, certified, over its "
        "own: 1 for gradient flow at every time.",
        ".6f",
        ideal=1.0,
        head="potential ratio",
    ),
    _column(
        "off_span",
        "share of its dual off the span of the samples",
        "Share of the gradient of a network's potential outside the row space of the features: 0 "
        "for gradient flow at every time.",
        ".2e",
        ideal=0.0,
        head="off the span",
    ),
    _column(
        "effective_scale",
        "scale of the start its steps amount to",
        "Geometric mean of the scales of the effective start of a diagonal network.",
        ".6g",
    ),
    _like("l1_limit", replace(_L1_NORM, label="l1 norm of the limit"), "l1 norm of the limit."),
    _L1_NORM,
    _like("l2_limit", replace(_L2_NORM, label="l2 norm of the limit"), "l2 norm of the limit."),
    _L2_NORM,
    _like("null_norm_limit", _NULL_NORM, "Length of the limit off the span of the samples."),
    _NULL_NORM,
    _like("angle_limit", _ANGLE, "Angle between limit and teacher, in radians."),
    _ANGLE,
    _like("risk_limit", _RISK, "Share of held-out inputs that limit and teacher label apart."),
    _RISK,
    _column(
        "risk_bound",
        "bound of the expected risk",
        "Bound of the expected risk, by the angles of the inputs.",
        ".2%",
    ),
    _column(
        "frozen_status",
        "status",
        "Status of the limit of the copy that froze its gates.",
        type="string",
    ),
    _like("frozen_gap", _GAP, "Relative duality gap of that limit."),
    _like("frozen_margin_ratio", _MARGIN_RATIO, "Margin ratio of the copy beside its limit."),
    _like("frozen_agreement", _AGREEMENT, "Share of held-out labels that copy and limit share."),
    _like("frozen_kkt_residual", _KKT_RESIDUAL, "KKT residual of the copy, 0 at a KKT point."),
    *_of_machine("rc", "SVM-RC, on random gates"),
    *_of_machine("lc", "SVM-LC, on the learned gates", ratio=True),
    *_of_machine("hl", "SVM-HL, on the last hidden activations", ratio=True),
    *_of_machine("gates_only", "the SVM on the pattern of gates alone"),
    _column(
        "local_status",
        "  status",
        "Certified kind of the KKT point next to a network that no theorem names the limit of.",
        type="string",
    ),
    _column(
        "local_value",
        "value of its local limit",
        "(||w||^2 / L)^(L/2) over the smallest margin, of that point.",
        ".8g",
    ),
    _column(
        "local_residual",
        "  residual of first-order conditions",
        "Residual of its first-order conditions.",
        ideal=0.0,
    ),
    _column(
        "local_gap",
        "  gap among networks in its cones",
        "Relative duality gap of the proof that no ReLU network in its cones has a lower value.",
        ".1e",
        ideal=0.0,
    ),
    _column(
        "local_turn",
        "  degrees that its units may turn",
        "Angle in degrees by which all units may turn without leaving the cones of that proof.",
        ".3g",
    ),
    _column(
        "local_curvature",
        "  lowest curvature beyond them (> 0)",
        "Lowest curvature there beyond zero modes; positive at a strict optimum.",
    ),
    _column(
        "local_ratio",
        "local limit / network",
        "Value of that point over that of the network, 1 at the end of all training.",
        ".4f",
        ideal=1.0,
    ),
    _column(
        "local_bound_ratio",
        "bound / local limit",
        "Lower bound of every network's value over the value of that point: 1 if it is proved to "
        "be a global optimum.",
        ".4f",
        at_most=1.0,
    ),
    _like("local_score_cosine", _SCORE_COSINE, "Cosine of its held-out scores with the network's."),
    _like("local_agreement", _AGREEMENT, "Share of held-out labels that it and the network share."),
    _like("local_error", _ERROR, "Held-out error of that point."),
    _column(
        "n_limits",
        "local limits",
        "Local limits that the starts of a run are heading to.",
        "d",
        type="int64",
    ),
    _column(
        "n_networks",
        "networks up to symmetry",
        "Networks, up to symmetry, that the starts of a run came to.",
        "d",
        type="int64",
    ),
    _NEURON_DISTANCE,
    _like(
        "local_neuron_distance",
        _NEURON_DISTANCE,
        "Optimal transport of the network's neurons to those of its local limit.",
    ),
    _column(
        "best_local_value",
        "least value of a local limit",
        "Least value of its starts' limits.",
        ".8g",
    ),
    _column(
        "lazy_law_error",
        "errors off (I - eta K)^N e_0, at most",
        "Errors at the last output scale off the kernel's law, relative to the first.",
        ideal=0.0,
    ),
    _column(
        "lazy_held_out_error",
        "held-out scores off kernel descent",
        "Held-out scores off those of kernel descent after as many steps, relative to these.",
        ideal=0.0,
    ),
    _WEIGHT_DRIFT,
    _column(
        "kernel_alignment",
        "cosine of K and K0",
        "Cosine of the tangent kernel with that of the start.",
    ),
    _like("departure_weight_drift", _WEIGHT_DRIFT, "Weight drift under an exponential-like loss."),
    _column(
        "departure_kernel_ratio",
        "margin gained per |dw|, over the SVM's",
        "Margin per weight moved over the linearised best.",
    ),
)
"""Quantities with a column in a run's row, in its order."""

SHARED: tuple[Quantity, ...] = (
    Quantity("status", "status", doc="Status of the answer."),
    Quantity(
        "value", "value of the network", ".8g", doc="Value of the network; smaller is better."
    ),
    Quantity("advice", "what it means", doc="Meaning of the status, and what can be done."),
    Quantity("tol", "gap asked for", doc="Tolerance of the status."),
    Quantity("rank", "rank", "d", doc="Rank of the linear system."),
    Quantity("n_samples", "samples", "d", doc="Number of training samples."),
    Quantity("solver", "solver", doc="Name of the solver."),
    Quantity(
        "separation_bound",
        "relative margin of any coefficients, at most (proved)",
        ".3e",
        doc="No coefficients have a larger smallest margin, relative to the sum of the absolute "
        "values of its terms.",
    ),
    Quantity(
        "separation_rounding",
        "  counts as zero at or below",
        ".3e",
        doc="Resolution of float64, below which a bound of the margins counts as zero.",
    ),
    Quantity(
        "train_accuracy",
        "training accuracy",
        ".2%",
        doc="Share of training samples on the right side; a score of exactly 0 is on neither.",
    ),
    Quantity(
        "val_accuracy",
        "held-out accuracy",
        ".2%",
        doc="Share of held-out samples on the right side; a score of exactly 0 is on neither.",
    ),
    Quantity(
        "certificate",
        "gap | residual (certified)",
        ".1e",
        head="gap or residual",
        doc="Relative duality gap of a convex program; residual of the first-order conditions of a "
        "local limit.",
    ),
    replace(_ERROR, type=None),
    Quantity(
        "bound_ratio",
        "proved bound over value",
        ".4f",
        at_most=1.0,
        doc="Lower bound of all networks over the value of this one: 1 only if none is better.",
    ),
    Quantity(
        "gates_that_changed_later",
        "gates that the other network changed since",
        ".2%",
        doc="Share of gates that a network changed after a copy of it had frozen them.",
    ),
    Quantity(
        "kkt_margin_bound",
        "  margin ratio that multipliers prove, at least",
        ".4f",
        doc="Margin ratio, beside the limit of this network, that its KKT distance and dual norms "
        "imply at least: see `KKTDistance.margin_bound`.",
    ),
)
"""Quantities of several classes without a column."""

TABLE: Mapping[str, Quantity] = MappingProxyType(by_name((*MEASURED, *SHARED)))

RECORDED = {"dual_objective": "lower_bound", "loss": "optimal_loss", "seconds": "limit_seconds"}
"""Quantities by the names that they have in the record of a result, where these differ."""


def title_of(entry: str) -> str:
    """Return the title of an entry of a result's record; its name as words where none is declared.

    Examples
    --------
    >>> title_of("dual_objective"), title_of("rounding_error")
    ('certified lower bound', 'rounding error')
    """
    name = RECORDED.get(entry, entry)
    return TABLE[name].title.strip() if name in TABLE else entry.replace("_", " ")


def record_lines(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the titles and texts of the single values of a result's record, to ten digits."""
    return [
        (title_of(name), f"{value:.10g}" if isinstance(value, float) else str(value))
        for name, value in record.items()
        if value is None or isinstance(value, str | bool | int | float)
    ]


def lines(values: Mapping[str, Any], *names: str) -> list[tuple[str, ...]]:
    """Return titles and texts of values under names of `TABLE`, as in the cells of a run's row.

    Parameters
    ----------
    values : mapping of name to value
        Numbers, or texts that stand for themselves.
    names : str
        Which of them, in the order of a reader; those that are None or not there have no line.

    Examples
    --------
    >>> lines({"gap": 1e-9, "margin_ratio": None}, "gap", "margin_ratio")
    [('  duality gap (0)', '1.00e-09')]
    """
    return columns([values], *names)


def columns(several: Sequence[Mapping[str, Any]], *names: str) -> list[tuple[str, ...]]:
    """Return `lines` with one column for each mapping, a dash where it has no value.

    Examples
    --------
    >>> columns([{"smallest_margin": 1.0}, {"gap": 1e-9}], "smallest_margin", "gap")
    [('smallest margin', '1', '-'), ('  duality gap (0)', '-', '1.00e-09')]
    """
    found = []
    for name in names:
        cells = [values.get(name) for values in several]
        if any(cell is not None for cell in cells):
            found.append((TABLE[name].title, *map(TABLE[name].text, cells)))
    return found


def stacked(
    several: Mapping[str, Mapping[str, Any]], *names: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and lines of a table: a line for each mapping, a column for each name.

    Examples
    --------
    >>> stacked({"a": {"gap": 1e-9}, "b": {}}, "gap")
    (('', 'gap (0)'), [('a', '1.00e-09'), ('b', '-')])
    """
    heads = ("", *(TABLE[name].column_title for name in names))
    rows = [
        (label, *(TABLE[name].text(values.get(name)) for name in names))
        for label, values in several.items()
    ]
    return heads, rows
