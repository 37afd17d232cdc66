"""A report: the contents of a run with their forms for people, disks and pictures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Generic

from ..._support.doors import door, result
from ..._support.files import harmless, write_atomically
from .contents import Contents
from .held import (
    ClassesT,
    HeldComparison,
    HeldLimit,
    HeldNetwork,
    HeldTrajectory,
    ModelT,
    NetworkT,
    RegimeT,
)
from .saved.files import REPORT, RESULTS
from .shown.screen import render_screen

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@result()
@dataclass(frozen=True, eq=False, repr=False)
class Report(Contents, Generic[ModelT, ClassesT, NetworkT, RegimeT]):
    """The outcome of one run, which prints, draws and saves itself.

    Its attributes and its methods `row`, `to_json` and `figure` are those of `Contents`. Type
    checkers know what it holds from the model and from the options `classes`, `network` and
    `regime` that `run` was called with: `Report[Literal["gln"]]` is a report of the model `gln`,
    and `Report` one of any model with the limit of the SVM's kind.

    Attributes
    ----------
    limit
        The predicted limit: a mapping of them where there are several, by class with
        `classes="all"`; for `relu` the four machines by their names in results, the limit of the
        copy that froze its gates being `objects["frozen_limit"]`.
    network
        The network as it ended: by class with `classes="all"`, "relu" and "gated" for `gdln`.
    trajectory
        The trajectory of training, by the keys of `network` where there are several.
    comparison
        The measured differences of limit and network, by class with `classes="all"`. This and the
        three above raise AttributeError where there is nothing of the kind, and say why.

    Examples
    --------
    >>> report = ib.run("linear", n_train=40, steps=0)
    >>> report.status.name, report.finished, report.row()["n_train"]
    ('SOLVED', True, 40)
    """

    limit = HeldLimit("limit")
    network = HeldNetwork("network")
    trajectory = HeldTrajectory("trajectory")
    comparison = HeldComparison("comparison")

    if not TYPE_CHECKING:
        # `Report[Literal["gln"]]` alone: type variables have no defaults before Python 3.13.
        __class_getitem__ = classmethod(GenericAlias)

    def __str__(self) -> str:
        return self.first_screen()

    @door()
    def first_screen(self, width: int = 80, *, explain: bool = False) -> str:
        """Render the verdicts, what they rest on and the theory, in 24 lines.

        Parameters
        ----------
        width : int
            Columns of a line; at most 80 are used.
        explain : bool
            True to say below what each row of the table is.
        """
        return render_screen(self, width, explain=explain)

    @door()
    def details(self, width: int = 100) -> str:
        """Render verdicts, theorem, data, assumptions and all tables as text.

        Parameters
        ----------
        width : int
            Columns of a line.
        """
        from .shown.text import render_text

        return render_text(self, width)

    def __repr__(self) -> str:
        ending = "" if self.finished else ", interrupted"
        return harmless(
            f"Report({self.heading.model}: {self.verdict}{ending}{', ' * bool(self.failure)}"
            f"{self.failure or ''}\n  {self.heading.setup}\n  {', '.join(self.objects)})"
        )

    def _repr_html_(self) -> str:
        from .shown.page import render_cell

        return render_cell(self)

    def plot(self) -> Figure | None:
        """Draw the picture of the run; None where nothing was trained. The same as `figure`."""
        return self.figure()

    @door()
    def save(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write the results into a folder, last of all the report itself, which `load` reads.

        Parameters
        ----------
        folder : path
            Made if it is not there; files of the same names are replaced.

        Returns
        -------
        list of str
            The names of the files.

        Raises
        ------
        OSError
            If one of them cannot be written; the message names it.
        """
        from .saved.saving import write_report

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / RESULTS, (self.to_json() + "\n").encode())
        for name, write in self.files.items():
            write(folder / name)
        write_report(self, folder / REPORT)
        return [RESULTS, *self.files, REPORT]
