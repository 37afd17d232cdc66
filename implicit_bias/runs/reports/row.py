"""One flat record a run: the same columns, of the same types, for every model.

A quantity that a run has not is null. Rows of mixed models are one data set for pyarrow, pandas
and polars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..._support.extras import naming_extras
from ...options.of_models import options_of_models
from ...options.values import Kind
from ...quantities.definition import Quantity, Type
from ...quantities.table import MEASURED

if TYPE_CHECKING:
    import pyarrow as pa

# Counts up when a column is renamed, goes, or changes its meaning; new ones leave it.
ROW_VERSION = 1

READ: Mapping[Type, Callable[[Any], Any]] = MappingProxyType(
    {"bool": bool, "float64": float, "int64": int, "string": str}
)


@dataclass(frozen=True)
class Column:
    """One column: its name, its type, and what it holds."""

    name: str
    type: Type
    doc: str


def _of_option(name: str, taken: Sequence[Kind]) -> Column:
    """Return the column of an option; lists are strings, as they are typed: they group and sort."""
    if any(kind.several or kind.about.joined for kind in taken):
        return Column(name, "string", f"The option `{name}`, as it is typed on the command line.")
    types: Mapping[type, Type] = {int: "int64", float: "float64", bool: "bool"}
    return Column(name, types.get(taken[0].base, "string"), f"The option `{name}`.")


def _of_quantity(quantity: Quantity) -> Column:
    """Return the column of a quantity; `MEASURED` has those with a type alone."""
    assert quantity.type is not None
    rule = quantity.over_classes
    words = {"least": "the least", "largest": "the largest", "sum": "the sum", None: ""}[rule]
    doc = f"{quantity.doc} Of several classes {words}." if rule else quantity.doc
    return Column(quantity.name, quantity.type, doc)


PACKAGES = ("numpy", "scipy", "torch", "cvxpy")
OPTIONS: tuple[Column, ...] = tuple(
    _of_option(name, taken)
    for name, taken in options_of_models().items()
    if name not in ("data", "gating")  # which have columns of their own
)
COLUMNS: tuple[Column, ...] = (
    Column("row_version", "int64", "Version of these columns."),
    Column("model", "string", "The row of the table of models."),
    Column("status", "string", "The worst status of the limits."),
    Column("verdict", "string", "The word of the run's verdict."),
    Column("verdict_sentence", "string", "Its sentence."),
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
    *map(_of_quantity, MEASURED),
    Column("version", "string", "Of implicit-bias."),
    Column("python_version", "string", "Of Python."),
    *(Column(f"{name}_version", "string", "Of the package.") for name in PACKAGES),
)
NAMES = frozenset(column.name for column in COLUMNS)


def heading_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a heading's record: which model, data, options, versions."""
    data, options = record.get("data", {}), record.get("options", {})
    gating, packages = record.get("gating", {}), record.get("packages", {})
    return {
        # Those of an older version that have gone since are left out.
        **{name: value for name, value in options.items() if name in NAMES},
        "model": record["model"],
        "data_digest": data.get("sha256"),
        "n_inputs": data.get("n_inputs"),
        "n_train": data.get("n_train"),
        "n_val": data.get("n_val"),
        "gating": gating.get("name", options.get("gating")),
        "gating_digest": gating.get("sha256"),
        "version": record.get("version"),
        "python_version": record.get("python"),
        **{f"{name}_version": packages.get(name) for name in PACKAGES},
    }


def make_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all columns in their order, each a value of its type or None; NaN is None.

    Raises
    ------
    KeyError
        For a value that has no column.
    """
    unknown = sorted(set(values) - NAMES)
    if unknown:
        raise KeyError(f"{', '.join(unknown)} have no column in `COLUMNS`")
    row = {column.name: _value(column, values.get(column.name)) for column in COLUMNS}
    return row | {"row_version": ROW_VERSION}


@naming_extras()
def row_schema() -> pa.Schema:
    """Return the columns of `Report.row` as a pyarrow schema, descriptions as metadata.

    Returns
    -------
    pyarrow.Schema
        One nullable field for each column, its description under ``b"doc"``, and the version of
        the columns under ``b"row_version"``.

    Raises
    ------
    MissingExtra
        Without pyarrow.

    Examples
    --------
    >>> import pyarrow as pa
    >>> reports = [ib.run("linear", n_train=40, steps=0, seed=seed) for seed in range(2)]
    >>> schema = ib.sweeps.row_schema()
    >>> table = pa.Table.from_pylist([report.row() for report in reports], schema=schema)
    >>> table["status"].to_pylist()
    ['SOLVED', 'SOLVED']
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
