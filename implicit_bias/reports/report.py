"""A report: the contents of a run with their forms for people, disks and pictures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._files import write_atomically
from .contents import Contents
from .files import REPORT, RESULTS
from .page import render_cell
from .saving import write_report
from .text import render_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report"]


@dataclass(frozen=True, eq=False, repr=False)
class Report(Contents):
    """The outcome of one run, which prints, draws and saves itself.

    Its attributes and its methods `row`, `to_json` and `figure` are those of `Contents`.

    Examples
    --------
    >>> report = ib.run("linear", n_train=40, steps=0)
    >>> report.status.name, report.finished, report.row()["n_train"]
    ('SOLVED', True, 40)
    """

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        status = "no limit" if self.status is None else self.status.name
        ending = "finished" if self.finished else "interrupted"
        return (
            f"Report({self.heading.model}: {status}, {ending}{', ' * bool(self.failure)}"
            f"{self.failure or ''}\n  {self.heading.setup}\n  {', '.join(self.objects)})"
        )

    def _repr_html_(self) -> str:
        return render_cell(self)

    def plot(self) -> Figure | None:
        """Draw the picture of the run; None where nothing was trained. The same as `figure`."""
        return self.figure()

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
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / RESULTS, (self.to_json() + "\n").encode())
        for name, write in self.files.items():
            write(folder / name)
        write_report(self, folder / REPORT)
        return [RESULTS, *self.files, REPORT]
