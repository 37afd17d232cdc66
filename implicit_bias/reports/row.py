"""One flat record a run: the same columns, of the same types, for every model.

A quantity that a run has not is null. Rows of mixed models are one data set for pyarrow, pandas
and polars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ..options.choices import Choices

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COLUMNS", "OPTIONS", "ROW_VERSION", "Column", "make_row", "row_schema"]

# Counts up when a column is renamed, goes, or changes its meaning; new ones leave it.
ROW_VERSION = 1

Type = Literal["bool", "float64", "int64", "string"]
READ: Mapping[Type, Callable[[Any], Any]] = MappingProxyType(
    {"bool": bool, "float64": float, "int64": int, "string": str}
)


@dataclass(frozen=True)
class Column:
    """One column: its name, its type, and what it holds."""

    name: str
    type: Type
    doc: str


def _of_option(name: str, hint: Any) -> Column:
    """The column of an option; lists are strings, as they are typed: they group and sort."""
    parts = (hint,) if get_origin(hint) in (None, Literal) else get_args(hint)
    if any(get_origin(part) is Sequence for part in parts):
        return Column(name, "string", f"The option `{name}`, as it is typed on the command line.")
    types: Mapping[Any, Type] = {int: "int64", float: "float64", bool: "bool"}
    return Column(name, types.get(parts[0], "string"), f"The option `{name}`.")


OPTIONS: tuple[Column, ...] = tuple(
    _of_option(name, hint) for name, hint in sorted(get_type_hints(Choices).items())
)
COLUMNS: tuple[Column, ...] = (
    Column("row_version", "int64", "Version of these columns."),
    Column("model", "string", "The row of the table of models."),
    Column("status", "string", "The worst status of the limits."),
    Column("finished", "bool", "False if training was interrupted."),
    Column("failure", "string", "Why there is a prediction but no comparison."),
    Column("shortfall", "string", "What training did not reach."),
    Column("data", "string", 'Name of the bundled data, its file, or "given".'),
    Column("data_digest", "string", "SHA-256 of the data."),
    Column("n_inputs", "int64", "Columns of the inputs."),
    Column("n_classes", "int64", "Classes, where there are not two labels alone."),
    Column("gating", "string", "Kind of gates, or class of a gating of the user's own."),
    Column("gating_digest", "string", "SHA-256 of its gates."),
    Column("widths", "string", "Units of its layers, where a deep network has it."),
    # Null for models without the option; n_train and n_val are the sizes that there were.
    *OPTIONS,
    Column("limit", "string", "The program that the columns of the limit are of."),
    Column("objective", "float64", "Least norm at margin 1, the certified upper bound."),
    Column("lower_bound", "float64", "Its certified lower bound."),
    Column("gap", "float64", "Relative duality gap; of several classes the largest."),
    Column("n_support", "int64", "Support vectors of the limit."),
    Column("n_units", "int64", "Units of the limit."),
    Column("n_live", "int64", "Those of them that are not zero."),
    Column("iterations", "int64", "Of the solver."),
    Column("limit_seconds", "float64", "Of the solver; of several classes together."),
    Column("stationarity", "float64", "Residual of a least-squares limit."),
    Column("optimal_loss", "float64", "Loss of a least-squares limit."),
    Column("n_steps", "int64", "Gradient steps done."),
    Column("final_loss", "float64", "Mean loss at the end."),
    Column("log_inverse_loss", "float64", "log(1/loss) at the end; of several classes the least."),
    Column("training_seconds", "float64", "Of training; of several classes together."),
    Column("smallest_margin", "float64", "Of the network; of several classes the least."),
    Column("network_norm", "float64", "Norm of the network in the limit's norm."),
    Column("margin_ratio", "float64", "At most 1, at the limit 1; of several classes the least."),
    Column("zeta_cosine", "float64", "Cosine of coefficients; of several classes the least."),
    Column("score_cosine", "float64", "Cosine of held-out scores; of several classes the least."),
    Column("agreement", "float64", "Share of held-out labels that limit and network share."),
    Column("agreement_independent", "float64", "The same if errors were independent."),
    Column("agreement_from", "float64", "log(1/loss) from which descent agrees to 99 %, by flow."),
    Column("error_limit", "float64", "Held-out error of the limit."),
    Column("error_network", "float64", "Held-out error of the network."),
    Column("train_error_limit", "float64", "Training error of the limit."),
    Column("train_error_network", "float64", "Training error of the network."),
    Column("kkt_cosine", "float64", "Stationarity, 1 at a KKT point; of several the least."),
    Column("kkt_residual", "float64", "Stationarity, 0 at a KKT point; of several the largest."),
    Column("kkt_complementarity", "float64", "Multipliers beyond the margin; the largest."),
    Column("largest_dual_norm", "float64", "Over the network's units; at most 1 at the limit."),
    Column("n_dead", "int64", "Dead units of the network."),
    Column("n_wrongly_small", "int64", "Units that would have to be larger at the optimum."),
    Column("dual_condition", "bool", "Whether every unit's dual norm is at most 1."),
    Column("gate_changes", "float64", "Share of gates that changed in training."),
    Column("path_error", "float64", "How far training came off the closed form, or the flow."),
    Column("limit_error", "float64", "How far a student is from its limit, relative to that."),
    Column("null_norm_limit", "float64", "Length of the limit off the span of the samples."),
    Column("null_norm", "float64", "That of the trained student."),
    Column("angle_limit", "float64", "Between limit and teacher, in radians."),
    Column("angle", "float64", "Between trained student and teacher."),
    Column("risk_limit", "float64", "Held-out labels that limit and teacher do not share."),
    Column("risk", "float64", "Those of the trained student."),
    Column("risk_bound", "float64", "Bound of the expected risk, by the angles of the inputs."),
    Column("frozen_status", "string", "Limit of the copy that froze its gates: status."),
    Column("frozen_gap", "float64", "Its relative duality gap."),
    Column("frozen_margin_ratio", "float64", "Margin ratio of the copy beside it."),
    Column("frozen_agreement", "float64", "Held-out labels that copy and limit share."),
    Column("frozen_kkt_residual", "float64", "Stationarity of the copy, 0 at a KKT point."),
    Column("local_status", "string", "KKT point next to a deep gated network: what is certified."),
    Column(
        "local_value", "float64", "(||w||^2 / L)^(L/2) over the smallest margin, of that point."
    ),
    Column("local_residual", "float64", "Residual of its first-order conditions."),
    Column("local_curvature", "float64", "Lowest curvature there; positive at a strict optimum."),
    Column("local_ratio", "float64", "Its value over that of the network."),
    Column("local_bound_ratio", "float64", "Lower bound of every network's value over its value."),
    Column("local_score_cosine", "float64", "Cosine of its held-out scores with the network's."),
    Column("local_agreement", "float64", "Held-out labels that it shares with the network."),
    Column("local_error", "float64", "Its held-out error."),
    Column("n_limits", "int64", "How many local limits the starts of a run are heading to."),
    Column("n_networks", "int64", "How many networks, up to symmetry, its starts came to."),
    Column("neuron_distance", "float64", "Optimal transport of its neurons to predicted ones."),
    Column("local_neuron_distance", "float64", "The same to those of its local limit."),
    Column("best_local_value", "float64", "The least value among them."),
    Column("lazy_law_error", "float64", "Errors at the last output scale off the kernel's law."),
    Column("lazy_held_out_error", "float64", "Held-out scores off those of kernel descent."),
    Column("weight_drift", "float64", "|w - w_0| / |w_0| at the last output scale."),
    Column("kernel_alignment", "float64", "Cosine of the tangent kernel with that of the start."),
    Column("departure_weight_drift", "float64", "Weight drift under an exponential-like loss."),
    Column(
        "departure_kernel_ratio", "float64", "Margin per weight moved over the linearised best."
    ),
    Column("version", "string", "Of implicit-bias."),
    Column("python_version", "string", "Of Python."),
    Column("numpy_version", "string", "Of the package."),
    Column("scipy_version", "string", "Of the package."),
    Column("torch_version", "string", "Of the package."),
    Column("cvxpy_version", "string", "Of the package."),
)


def make_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """All columns in their order, each a value of its type or None, NaN being None.

    Raises
    ------
    KeyError
        For a value that has no column.
    """
    unknown = sorted(set(values) - {column.name for column in COLUMNS})
    if unknown:
        raise KeyError(f"{', '.join(unknown)} have no column in `COLUMNS`")
    row = {column.name: _value(column, values.get(column.name)) for column in COLUMNS}
    return row | {"row_version": ROW_VERSION}


def row_schema() -> pa.Schema:
    """The columns as a schema of pyarrow, with what they hold as metadata.

    Examples
    --------
    `pa.Table.from_pylist([report.row() for report in reports], schema=row_schema())`
    """
    import pyarrow as pa

    types = {"bool": pa.bool_(), "float64": pa.float64(), "int64": pa.int64(),
             "string": pa.string()}  # fmt: skip
    return pa.schema(
        [pa.field(one.name, types[one.type], metadata={"doc": one.doc}) for one in COLUMNS],
        metadata={"row_version": str(ROW_VERSION)},
    )


def _value(column: Column, value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        # No learning rates: the trainer finds its own.
        value = ",".join(map(str, value)) or "auto"
    return READ[column.type](value)
