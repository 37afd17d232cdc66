"""What is said of the things that were found, by what their classes declare: it knows no model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from ...quantities.said import Said
from ...training.trajectory import Trajectory
from .saved.writers import write_weights
from .trained import Trained, shortfall
from .views import Views

Cells = Mapping[str, Any]


def last(cells: Sequence[Cells]) -> Cells:
    """Return the cells of the last of several things; none where there is none."""
    return cells[-1] if cells else {}


@dataclass(frozen=True, eq=False)
class Several:
    """Several things of a kind, such as the networks of exits, scales, starts or classes.

    Attributes
    ----------
    of : mapping of label to thing
        Scripts get mappings with the same labels.
    label : str
        What one is called in records, tables and names of files, "{}" being its label.
    row : callable
        `row(cells)` returns the columns of the run's row from those of each.
    """

    of: Mapping[Any, Any]
    label: str = "{}"
    row: Callable[[Sequence[Cells]], Cells] = last


def told(name: str, thing: Any, called: str = "") -> Views:
    """Return all that is said of a thing that was found.

    Parameters
    ----------
    name : str
        In records, among the objects, and of its file.
    thing : object
        A `Said`, a `Trained`, a torch module, or `Several` of them; of any other nothing is said,
        and scripts get it as it is.
    called : str
        Its program or network in words; of `Several`, "{}" is what each is called.
    """
    if isinstance(thing, Several):
        return _of_several(name, thing, called)
    if isinstance(thing, Trained):
        return _of_trained(name, thing, called)
    if isinstance(thing, Said):
        return _of_said(name, thing, called)
    files = {f"{name}.safetensors": write_weights(thing)} if _is_network(thing) else {}
    return Views(objects={name: thing}, files=files)


def _of_said(name: str, thing: Said, called: str) -> Views:
    """Ask a thing that says itself."""
    cells, is_path = thing.cells(), isinstance(thing, Trajectory)
    if thing.PREDICTED and cells:
        cells = {"limit": called, **cells}
    return Views(
        record={"network" if is_path else name: thing.record()},
        tables=thing.tables(called),
        files=thing.files(name),
        panels=thing.panels(),
        statuses=thing.statuses(called),
        certificates=thing.proofs(called),
        objects={name: thing},
        row=cells,
        finished=thing.finished if isinstance(thing, Trajectory) else True,
        sides=thing.sides(called or "network"),
    )


def _of_trained(name: str, trained: Trained, called: str) -> Views:
    """Ask a network and its trajectory."""
    both = told(name, trained.network) + told("trajectory", trained.trajectory)
    files = {
        _labelled(file, trained.among) if trained.among else file: write
        for file, write in both.files.items()
        if trained.columns or not file.startswith("trajectory")
    }
    who = f"the network of {called}" if called else "the network"
    lacking = shortfall(trained.trajectory, who) if trained.margins else ""
    return replace(both, files=files, shortfall=lacking)


def _of_several(name: str, many: Several, called: str) -> Views:
    """Ask each; entries of one name become mappings by label."""
    names = {label: many.label.format(label) for label in many.of}
    each = {
        label: told(name, thing, called.format(names[label]) or names[label])
        for label, thing in many.of.items()
    }
    whole = sum(each.values(), start=Views())
    return replace(
        whole,
        record=_by_label({names[label]: one.record for label, one in each.items()}),
        files={
            _labelled(file, names[label]): write
            for label, one in each.items()
            for file, write in one.files.items()
        },
        objects=_by_label({label: one.objects for label, one in each.items()}),
        row=many.row([one.row for one in each.values()]),
        shortfall=next((one.shortfall for one in each.values() if one.shortfall), ""),
        sides=tuple(
            replace(side, name=names[label]) for label, one in each.items() for side in one.sides
        ),
    )


def _is_network(thing: Any) -> bool:
    """Return True for a torch module, of which there is none before torch is loaded."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def _by_label(entries: Mapping[Any, Mapping[str, Any]]) -> dict[str, dict[Any, Any]]:
    """Return mappings by the names of entries, each by label."""
    found: dict[str, dict[Any, Any]] = {}
    for label, own in entries.items():
        for name, entry in own.items():
            found.setdefault(name, {})[label] = entry
    return found


def _labelled(file: str, name: str) -> str:
    """Return the name of a file with that of the thing: "network-exit1.safetensors"."""
    path = PurePath(file)
    return f"{path.stem}-{name.replace(' ', '')}{path.suffix}"
