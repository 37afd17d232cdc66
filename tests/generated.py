"""Pages of the documentation that are written from declarations.

python -m tests.generated    writes them; a test compares
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path

import implicit_bias as ib
from implicit_bias.models import MODELS
from implicit_bias.runs import KNOWN, Premise
from tests.test_package import NAMESPACES

DOCS = Path(__file__).parents[1] / "docs"
ASSUMPTIONS = """\
# What each theorem assumes, and how it is known

Written from the table of models (`python -m tests.generated`). A run prints the same with what it
has found of each: in short on the first screen, in full with `--details`, in the page (`--report`)
and under `assumptions` in the record (`report.assumptions`).
"""
METHODS = """\
Trainers other than those named are not the theorem's method: that `momentum`, `annealed`,
mini-batches or large steps come to the same limit is measured, with the certificate of the limit
beside the network, and not proved ([trainers](trainers.md))."""
API = """\
# Every public name

Written from the docstrings (`python -m tests.generated`), which `help(ib.NAME)` shows whole:
arguments with shapes and units, what is returned and raised, the theorem behind it, and an example
that runs."""


def assumptions_page() -> str:
    """Every model with all that its theorem assumes, and how a run knows it."""
    lines = [ASSUMPTIONS, *(f"- *{known}*: {said}" for known, said in KNOWN.items()), "", METHODS]
    for name, model in MODELS.items():
        lines += [
            "", f"## {name}", "", f"{escaped(sentence(model.theorem))}", "",
            "| assumption | how it is known | only with |", "| --- | --- | --- |",
        ]  # fmt: skip
        lines += [f"| {escaped(one.text)} | {one.known} | {only_with(one)} |"
                  for one in model.assumes]  # fmt: skip
    return "\n".join(lines) + "\n"


def only_with(premise: Premise) -> str:
    """The options that a premise needs to hold, and those to which it belongs."""
    said = [f"`{name}` {words(values)}" for name, values in premise.needs.items()]
    said += [f"asked where `{name}` is {words(values)}" for name, values in premise.where.items()]
    said += [f"not asked where `{name}` is {words(values)}"
             for name, values in premise.unless.items()]  # fmt: skip
    return "; ".join(said)


def words(values: tuple[object, ...]) -> str:
    return " or ".join(dict.fromkeys(f"{value:g}" if isinstance(value, float) else str(value)
                                     for value in values))  # fmt: skip


def api_page() -> str:
    """Every public name with its signature and the first line of its docstring."""
    lines = [API]
    for space, names in spaces():
        lines += ["", f"## {space}", "", "| name | what it is |", "| --- | --- |"]
        lines += [f"| {signed(f'{space}.{name}', attrgetter(name)(within(space)))} |"
                  for name in names]  # fmt: skip
    return "\n".join(lines) + "\n"


def spaces() -> Iterator[tuple[str, list[str]]]:
    """The namespaces with their names; what the top has as well stands there alone."""
    top = [name for name in ib.__all__ if name not in NAMESPACES and not name.startswith("__")]
    yield "implicit_bias", sorted(top)
    for space in NAMESPACES:
        yield f"implicit_bias.{space}", sorted(set(getattr(ib, space).__all__) - set(ib.__all__))


def within(space: str) -> object:
    return attrgetter(space.partition(".")[2])(ib) if "." in space else ib


def signed(path: str, thing: object) -> str:
    """A row: a class or constant by its name, a function with the names of its arguments."""
    name = path.rpartition(".")[2]
    called = inspect.isfunction(thing)
    if called:
        name += f"({', '.join(arguments(thing))})"  # type: ignore[arg-type]
    # A constant has the docstring of its class, which says nothing of it.
    documented = called or inspect.isclass(thing)
    said = (inspect.getdoc(thing) or "").split("\n\n")[0] if documented else "a constant"
    return f"`{escaped(name)}` | {escaped(' '.join(said.split()))}"


def arguments(function: Callable[..., object]) -> Iterator[str]:
    # As it is written: `run` and `sweep` show editors each option in place of ``**options``.
    for one in inspect.signature(inspect.unwrap(function)).parameters.values():
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        yield f"{stars}{one.name}" + ("=" if one.default is not one.empty else "")


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def escaped(text: str) -> str:
    """Text within a table of Markdown."""
    return re.sub(r"(?<!\\)\|", r"\\|", text)


PAGES: dict[str, Callable[[], str]] = {"assumptions.md": assumptions_page, "api.md": api_page}


if __name__ == "__main__":
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")
