"""Reports and names that every later version of one format has to read, and what writes them.

    python -m tests.reports.kept          all, into data/format-N, N being the `FORMAT` of now
    python -m tests.reports.kept --names  new names alone, behind those that stand there

The first is for a `FORMAT` that has gone up, and for no other time: what has been committed is
promised. The folders of earlier formats stay; they are refused in words. The second is for a class
or function that has come into the table of `implicit_bias._support.names`.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import implicit_bias as ib
from implicit_bias.runs.reports import FORMAT, PROMISED, found

DATA = Path(__file__).parent / "data"
NOW = DATA / f"format-{FORMAT}"
NAMES = NOW / "names.json"

# The corners of a square, labelled by the product of their coordinates.
CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
PRODUCTS = CORNERS.prod(axis=1)
HELD_OUT = CORNERS * [2.0, 1.0]
# Six points with a constant column, in two classes.
POINTS = np.array([[1, 0, 1], [0, 1, 1], [-1, 0, 1], [0, -1, 1], [1, 1, 1], [-1, -1, 1]]) / 1.0
TARGETS = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])


def run_gln() -> ib.Report:
    """A gated linear network of two units, whose contexts are the half-planes of the axes."""
    gating = ib.HyperplaneContexts(2, 2, cutoffs="axes").fit(CORNERS)
    return ib.run(
        "gln", X=CORNERS, y=PRODUCTS, X_val=HELD_OUT, y_val=PRODUCTS, gating=gating,
        trainer="annealed", steps=4,
    )  # fmt: skip


def run_gdln() -> ib.Report:
    """A ReLU network of two units beside gated linear ones."""
    return ib.run("gdln", X=POINTS, y=TARGETS, hidden_units=2, steps=3)


RUNS = {"gln": run_gln, "gdln": run_gdln}
# One of each, to see its attributes; containers are torch's own.
NETWORKS: dict[str, Callable[[Any], torch.nn.Module]] = {
    "network:Attention": lambda kind: kind(2, 3, width=4),
    "network:BalancedReLU": lambda kind: kind(2, 3),
    "network:ResidualReLU": lambda kind: kind(2, 3),
    "network:FixedOuterReLU": lambda kind: kind(2, 3),
    "network:LinearConvolution": lambda kind: kind(3),
    "network:CopiedUnits": lambda kind: kind(ib.FReLU(2, 6, n_outputs=3), copies=3),
    "network:DeepGLN": lambda kind: kind(2, widths=(3, 2), n_contexts=2),
    "network:DeepLinear": lambda kind: kind(2, hidden_widths=(3,)),
    "network:DiagonalLinear": lambda kind: kind(2),
    "network:DGN": lambda kind: kind(2, widths=(3, 2)),
    "network:DLGN": lambda kind: kind(2, widths=(3, 2), beta=4.0),
    "network:ExitNetwork": lambda kind: kind(
        an("network:Trunk"), [an("network:SoftLabelHead")], [1]
    ),
    "network:LabelledHead": lambda kind: kind(2, 3),
    "network:SoftLabelHead": lambda kind: kind(2, 3, temperature=1.0),
    "network:Trunk": lambda kind: kind(2, widths=(3, 2)),
    "network:FReLU": lambda kind: kind(2, 3),
    "network:GLN": lambda kind: kind(2, 3, 2),
    "network:ScaledNetwork": lambda kind: kind(an("network:ReLU"), 2.0),
    "network:DeepReLU": lambda kind: kind(2, (3, 2)),
    "network:ReLU": lambda kind: kind(2, 3),
    "network:GDLN": lambda kind: kind(2, 3),
    "network:ReLUMean": lambda kind: kind(2, 3),
    "network:ColumnGLN": lambda kind: kind(2, np.array([[0, 1], [1, 1]]), n_outputs=3),
    "network:ShallowGLN": lambda kind: kind(2, np.array([[0, 1], [1, 1]])),
    "network:SoftDGN": lambda kind: kind(2, widths=(3, 2)),
    "network:UnconstrainedFeatures": lambda kind: kind(4, hidden_widths=(3,), n_outputs=2),
    "network:LinearStudent": lambda kind: kind(np.ones((2, 3))),
    "network:TokenDecoder": lambda kind: kind(np.eye(2), [[1, 1, 0], [0, 0, 1]]),
}


def an(name: str) -> torch.nn.Module:
    """A network of that name."""
    return NETWORKS[name](found(name))


def attributes(network: torch.nn.Module) -> list[str]:
    """What a network has beyond any module, and the names of its weights."""
    return [*sorted(set(vars(network)) - set(vars(torch.nn.Module()))), *network.state_dict()]


def parts_of(name: str) -> list[str]:
    """What a file says beside a name: fields, members, arguments, arrays or attributes."""
    thing = found(name)
    sort = name.partition(":")[0]
    if sort == "enum":
        return list(thing.__members__)
    if sort == "gating":
        return list(thing.saved)
    if sort in ("panel", "function"):
        return list(inspect.signature(thing).parameters)
    if sort == "network":
        containers = thing.__module__.startswith("torch.")
        return [] if containers else attributes(an(name))
    if issubclass(thing, tuple):
        return list(thing._fields)
    return [one.name for one in dataclasses.fields(thing)]


def names_file(before: dict[str, list[str]]) -> str:
    """The names of `before`, and behind them those that are new, a line each."""
    names = before | {name: parts_of(name) for name in PROMISED if name not in before}
    lines = (f" {json.dumps(name)}: {json.dumps(parts)}" for name, parts in names.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def add_names() -> None:
    """Promise what is new in the table."""
    NAMES.write_text(names_file(json.loads(NAMES.read_text())))


def write_all() -> None:
    """Write reports and names in place of those of this format."""
    reports, names = {name: run() for name, run in RUNS.items()}, names_file({})
    shutil.rmtree(NOW, ignore_errors=True)
    for name, report in reports.items():
        report.save(NOW / name)
        for table in (NOW / name).glob("*.parquet"):
            table.unlink()  # a third of the size, and no report is loaded from it
    NAMES.write_text(names)


if __name__ == "__main__":
    (add_names if "--names" in sys.argv else write_all)()
