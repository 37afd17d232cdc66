"""Pages of the documentation that are written from declarations.

python -m tests.generated    writes them; a test compares
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from implicit_bias.models import MODELS
from implicit_bias.runs import KNOWN, Premise

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


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def escaped(text: str) -> str:
    """Text within a table of Markdown."""
    return re.sub(r"(?<!\\)\|", r"\\|", text)


PAGES: dict[str, Callable[[], str]] = {"assumptions.md": assumptions_page}


if __name__ == "__main__":
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")
