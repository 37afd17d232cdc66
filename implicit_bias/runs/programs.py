"""The convex programs of a run, stated in cvxpy on its data and gates, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .model import Model
from .reports.shown.text import WIDTH, wrapped

if TYPE_CHECKING:
    import cvxpy

    from ..limits.program_text import ProgramText

NONE = "no convex program is solved: the limit has the closed form above"


@dataclass(frozen=True)
class StatedProgram:
    """A program of a run as text, with its size.

    Attributes
    ----------
    name : str
        The program's name in the results.
    text : ProgramText
    note : str
        What differs in the run, such as gates that it learns first; empty where nothing does.
    """

    name: str
    text: ProgramText
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values, those of the text among them."""
        return {"name": self.name, "note": self.note} | self.text.to_dict()

    def __str__(self) -> str:
        note = wrapped(f"note        {self.note}", WIDTH, " " * 12) if self.note else []
        return "\n".join([self.name, str(self.text), *note])


@dataclass(frozen=True)
class RunPrograms:
    """All programs of a run, below what its model says of them.

    Attributes
    ----------
    model : Model
    data : str
        A description of the data.
    programs : tuple of StatedProgram
        None where the limit is a closed form.
    """

    model: Model
    data: str = ""
    programs: tuple[StatedProgram, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON."""
        return {
            "model": self.model.name,
            "theorem": self.model.theorem,
            "program": self.model.program,
            "data": self.data,
            "programs": [one.to_dict() for one in self.programs],
        }

    def __str__(self) -> str:
        """Format the programs in lines of at most 100 characters."""
        head = [
            *wrapped(f"model {self.model.name}: {self.model.theorem}", WIDTH),
            *wrapped(f"program: {self.model.program}", WIDTH),
            *(wrapped(f"data: {self.data}", WIDTH) if self.data else []),
        ]
        below = [str(one) for one in self.programs] or [NONE]
        return "\n\n".join(["\n".join(head), *below])


def stated(name: str, problem: cvxpy.Problem, note: str = "") -> StatedProgram:
    """Describe a problem as text; the problem, with its copy of the data, is not kept."""
    from ..limits.program_text import describe_program

    return StatedProgram(name, describe_program(problem), note)
