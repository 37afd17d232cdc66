"""A run as a list of stages, and the one driver of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .._support.extras import require
from .gathering import gather
from .reports.finding import Finding
from .reports.heading import Heading
from .reports.report import Report
from .setup import Setup

if TYPE_CHECKING:
    from .programs import RunPrograms, StatedProgram

S = TypeVar("S", bound=Setup)
S_contra = TypeVar("S_contra", bound=Setup, contravariant=True)

Found = Mapping[str, Any]
"""What the stages before have found, by the names that scripts get it by."""


@dataclass(frozen=True, kw_only=True)
class Stage(Generic[S_contra]):
    """One stage of a run.

    Attributes
    ----------
    finds : callable
        `finds(setup, found)` yields findings, each as soon as it is known; and a setup in which
        more is settled, such as gates that were learned, for the stages after it.
    says : str
        For the progress, such as "training for {setup.settings.n_steps} steps"; empty where it
        reports its own.
    needs : tuple of str
        Names of things without which it is left out.
    trains : bool
        True for one that is left out of a prediction alone, and after an interrupted one.
    required : bool
        True for one that nothing follows once it was interrupted.
    when : callable, optional
        `when(setup, found)`; it is left out where that is False.
    states : callable, optional
        `states(setup)` yields the programs that it solves, nothing being solved or trained.
    """

    finds: Callable[[S_contra, Found], Iterable[Finding | Setup]]
    says: str = ""
    needs: tuple[str, ...] = ()
    trains: bool = False
    required: bool = False
    when: Callable[[S_contra, Found], bool] | None = None
    states: Callable[[S_contra], Iterable[StatedProgram]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(Generic[S]):
    """A run before any long work.

    Attributes
    ----------
    setup : Setup
        With the data and all choices settled.
    heading : Heading
    stages : tuple of Stage
        In their order.
    checks : callable, optional
        What could still refuse the run, but not keep its programs from being stated.
    """

    setup: S
    heading: Heading
    stages: tuple[Stage[S], ...]
    checks: Callable[[], object] | None = None


def later(place: str) -> Callable[[Any, Found], Iterable[Finding]]:
    """Return the function "module:function", imported when it is called, as torch is with it."""

    def call(setup: Any, found: Found) -> Iterable[Finding]:
        """Import the function and call it."""
        findings: Iterable[Finding] = resolve_name(place)(setup, found)
        return findings

    return call


def run_stages(run: Run[Any]) -> Report:
    """Run the stages one after the other, and gather what they find.

    Raises
    ------
    ValueError
        If the checks of the run refuse it.
    """
    if run.checks is not None:
        run.checks()
    return gather(run.heading, _find(run), run.setup.folder)


def _find(run: Run[S]) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    setup, found, finished = run.setup, dict[str, Any](), True
    for stage in run.stages:
        if stage.trains and not (setup.trains and finished):
            continue
        if not set(stage.needs) <= set(found) or (stage.when and not stage.when(setup, found)):
            continue
        if stage.says:
            setup.progress.stage(stage.says.format(setup=setup))
        for one in stage.finds(setup, found):
            if not isinstance(one, Finding):
                setup = cast("S", one)
                continue
            found |= one.views.objects
            finished = finished and one.views.finished
            yield one
        if stage.required and not finished:
            return


def state_programs(run: Run[Any]) -> RunPrograms:
    """State the programs of all stages: nothing is solved, nothing trained.

    Raises
    ------
    MissingExtra
        If there are any, and cvxpy is not installed.
    """
    from .programs import RunPrograms

    if not any(stage.states for stage in run.stages):
        return RunPrograms(run.setup.model)
    require("cvxpy")
    programs = tuple(
        program for stage in run.stages if stage.states for program in stage.states(run.setup)
    )
    return RunPrograms(run.setup.model, run.heading.record["data"]["description"], programs)
