"""Figures whose numbers other commands make: what each is called, and the command that redoes it.

A command often redoes several figures, and then all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import click

HALF_SPACE, DEEP_GATED, THESIS = "half-space", "deep-gated", "thesis"
SOURCES: Mapping[str, str] = {
    HALF_SPACE: "half-space feature learning",
    DEEP_GATED: "deep gated networks",
    THESIS: "Phuong's thesis",
    "notes": "notes on gated deep linear networks",
}
# By source: words of a command, and the figures that it redoes.
COMMANDS: Final[Mapping[str, Mapping[tuple[str, ...], tuple[str, ...]]]] = {
    HALF_SPACE: {
        ("experiments.path_regions",): ("1",),
        ("experiments.circle",): ("2", "3", "4", "5", "6", "9", "10"),
        ("experiments.simple_half",): ("7", "11", "12"),
        ("experiments.simple_half_figures",): ("13", "14", "15", "16"),
    },
    DEEP_GATED: {
        ("experiments.gram_figures", "--only", "random-gates"): ("1", "2", "3"),
        ("experiments.gram_figures", "--only", "galu"): ("4",),
        ("experiments.random_labels",): ("5",),
        ("experiments.path_kernels",): ("6",),
        ("experiments.soft_gates",): ("7", "8"),
        ("experiments.gram_figures", "--only", "linear"): ("10",),
    },
    THESIS: {
        ("experiments.thesis", "surfaces"): ("2.1", "2.2", "2.3", "2.4"),
        ("experiments.thesis", "layers"): ("3.1", "3.2"),
        ("experiments.convolution",): ("3.3", "3.4"),
        ("experiments.thesis", "labels"): ("4.2", "4.3"),
        ("experiments.distillation",): ("5.1", "5.2", "5.3", "5.4", "5.5"),
        ("experiments.thesis", "exits"): ("6.6", "6.7", "E.1"),
    },
    "notes": {("experiments.activations",): ("units",)},
}
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    f"{source}-{figure}": words
    for source, commands in COMMANDS.items()
    for words, figures in commands.items()
    for figure in figures
}


class Elsewhere(click.Command):
    """A figure that another command redoes: what follows its name are options of that command.

    Parameters
    ----------
    name : str
        One of `ELSEWHERE`.
    """

    def __init__(self, name: str) -> None:
        source, figure = name.rsplit("-", 1)
        self.words = ELSEWHERE[name]
        super().__init__(
            name,
            callback=self._redo,
            params=[click.Argument(["options"], nargs=-1, type=click.UNPROCESSED)],
            context_settings={"ignore_unknown_options": True},
            add_help_option=False,  # that of the other command
            short_help=f"{SOURCES[source]}, {figure}: {' '.join(self.words)}",
        )

    def _redo(self, options: tuple[str, ...]) -> None:
        name, *first = self.words
        main = main_of(name)
        if main is None:
            raise RuntimeError(f"{name} has no command")
        # A group says itself which of its commands this is.
        said = [name] if isinstance(main, click.Group) else self.words
        main.main([*first, *options], prog_name=" ".join(["python -m", *said]))


def main_of(name: str) -> click.Command | None:
    """Return the command of a module, or of a package; None of one that takes no options."""
    module = import_module(name)
    if hasattr(module, "__path__") and find_spec(f"{name}.__main__"):
        module = import_module(f"{name}.__main__")
    found = getattr(module, "main", None)
    return found if isinstance(found, click.Command) else None
