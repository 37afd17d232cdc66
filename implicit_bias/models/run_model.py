"""Runs of models from Python: the function `run`, and the parts that the commands share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from .._support.doors import door
from .._support.extras import naming_extras, require
from .._support.files import check_writable, write_atomically
from .._support.kinds import anything, check_of
from ..options.resolve import showing_options, takers
from ..options.values import no_such_option, not_one_of
from ..runs.folder import RunFolder
from ..runs.progress import Progress, ProgressCallback, progress_of
from ..runs.reports.saved.files import PAGE, SCREEN
from . import MODELS

if TYPE_CHECKING:
    from .._typed_models import ModelName, TellingOptions
    from ..runs.programs import RunPrograms
    from ..runs.reports.held import ClassesT, NetworkT, RegimeT
    from ..runs.reports.report import Report
    from ..runs.setup import Setup

# Any text, as of a name that is computed; type checkers tell names of models from it.
ModelT = TypeVar("ModelT", bound="ModelName | str")

USER_DATA = ("X", "y", "X_val", "y_val", "queries", "gating")


class NotSaved(OSError):
    """The results of a run could not be written; `report` is what they are.

    Parameters
    ----------
    message : str
    report : Report

    Examples
    --------
    >>> try:
    ...     report = ib.run("linear", n_train=40, steps=20, save="results")
    ... except ib.NotSaved as error:
    ...     report = error.report
    >>> report.status.name
    'SOLVED'
    """

    @door()
    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


@showing_options
@naming_extras()
@door(model=check_of("str")[0], options=anything)
def run(
    model: ModelT,
    *,
    progress: bool | ProgressCallback | Progress = False,
    save: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **options: Unpack[TellingOptions[ClassesT, NetworkT, RegimeT]],  # type: ignore[misc]
) -> Report[ModelT, ClassesT, NetworkT, RegimeT]:
    """Predict the limit of a network, train one, and compare them, as ``compare --model`` does.

    Parameters
    ----------
    model : str
        A name of the table of models: "gln", "frelu", "linear", ...
    progress : bool or callable
        True: a bar. A function is called as ``progress(stage, done, of)``, with 0, 0 as a stage
        begins.
    save : path, optional
        Folder for the results; an unfinished run keeps its state there.
    resume : bool
        True to continue the unfinished run in `save`.
    overwrite : bool
        True to begin anew in `save` whatever it holds. Otherwise only a finished run of the same
        model is replaced: an unfinished one, one of another model, and files that no run has noted
        there are refused.
    **options
        The options of the model, by the names and with the defaults of the command:
        `hidden_units=20` is `--hidden-units 20`, and None leaves one to the model. Beside them
        samples of your own, ``X`` (n, D) and ``y`` (n,) in {-1, +1} (or classes, with
        ``classes="all"``), held-out ones ``X_val``, ``y_val`` (a quarter of `X`, drawn by `seed`,
        unless they or `n_train` and `n_val` say otherwise), or a `Dataset` as ``data``, which may
        also be the path of a file (see `load_data`); and a
        ``gating`` of your own with ``transform(X)``, fitted or to be fitted on the training
        inputs, from which hidden_units, contexts and cutoffs then follow. For `dgn` it is a word or
        a gating of all layers: their units by its `widths_` or `widths`, equal shares without.

    Returns
    -------
    Report
        Also of a run that Ctrl-C has ended, `finished` then being False, and of one whose
        training diverged, with the reason as `failure`. Its `status` says what its limit is worth.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If a name or a value is wrong, before any long work; the message names the nearest.
    MissingExtra
        If the run needs a package that is not installed.
    NotSaved
        If the results could not be written; it has them as `report`.

    Examples
    --------
    >>> report = ib.run("linear", n_train=40, steps=200)
    >>> report.status.name, report.limit.gap < 1e-8
    ('SOLVED', True)
    """
    shown = progress_of(progress)
    with running(
        model, options, progress=shown, save=save, resume=resume, overwrite=overwrite
    ) as report:
        return cast("Report[ModelT, ClassesT, NetworkT, RegimeT]", report)


@contextmanager
def running(
    name: str,
    options: Mapping[str, Any],
    *,
    progress: AbstractContextManager[Progress],
    save: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Iterator[Report]:
    """Run a model and yield its report, which is saved afterwards; its folder is locked until then.

    Parameters and errors are those of `run`, but for `progress`, which is opened here.
    """
    for given, asked in (("resume", resume), ("overwrite", overwrite)):
        if asked and save is None:
            raise ValueError(f"`{given}` needs `save`, the folder that the run was kept in")
    if resume and overwrite:
        raise ValueError("`resume` goes on with a run, `overwrite` begins anew: give one of them")
    setup = resolve(name, options)
    if save is not None:
        require("filelock", "jinja2", "pandas", "pyarrow")
        check_writable(save, folder=True)
    path = None if save is None else Path(save)
    folder = RunFolder(path, resume=resume, overwrite=overwrite)
    with folder.opened(name):
        _load(setup)
        with progress as shown:
            report = run_setup(replace(setup, progress=shown, folder=folder))
        report = replace(report, call=_call(name, options))
        yield report
        if path is not None:
            try:
                files = [*report.save(path), SCREEN, PAGE]
                folder.finish(name, files, finished=report.finished)
                _write_readable(report, path)
            except OSError as error:
                raise NotSaved(f"the results could not be written: {error}", report) from error


def _write_readable(report: Report, folder: Path) -> None:
    """Write what a person reads of a run beside its numbers: the first screen, and the page."""
    from ..runs.reports.shown.page import write_html

    write_atomically(folder / SCREEN, f"{report}\n".encode())
    write_html(report, folder / PAGE)


@naming_extras()
def _load(setup: Setup) -> None:
    """Import what runs the model, which takes longer than all before it."""
    resolve_name(setup.model.run)


@naming_extras()
def run_setup(setup: Setup) -> Report:
    """Run the model of a setup.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    if setup.options.device != "cpu":  # a limit alone is predicted without torch
        from ..networks.protocols import check_device

        check_device(setup.options.device)
    from ..runs.stages import run_stages

    return run_stages(resolve_name(setup.model.run)(setup))


@naming_extras()
def run_programs(
    name: str, options: Mapping[str, Any], *, progress: AbstractContextManager[Progress]
) -> RunPrograms:
    """State the programs of a run on its data and gates: nothing is solved, nothing trained.

    Parameters and errors are those of `running`; and `MissingExtra` is raised without cvxpy, where
    the model has a program.
    """
    setup = resolve(name, options)
    from ..runs.stages import state_programs

    with progress as shown:
        return state_programs(resolve_name(setup.model.run)(replace(setup, progress=shown)))


def resolve(name: str, options: Mapping[str, Any]) -> Setup:
    """Return the setup of a run: the model of that name, all its options, the user's data.

    Raises
    ------
    TypeError, ValueError
        If a name or a value is wrong.
    """
    if name not in MODELS:
        raise ValueError(f"`model`: {not_one_of(name, MODELS)}")
    model = MODELS[name]
    supplied, choices = parted(options)
    for name, value in choices.items():
        if name not in model.option_names:
            typed = f"{name}={value!r}"
            raise TypeError(no_such_option(name, typed, model.name, takers(MODELS), USER_DATA))
    own: dict[str, Any] = {}
    if supplied:
        from ..runs.user_data import bind_data

        own["user_data"], own["options"] = bind_data(model, supplied, choices)
    else:
        own["options"] = model.choose(**choices)  # refused before anything heavy is imported
    from ..runs.setup import Setup

    return Setup(model=model, **own)


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and gates of the user's own among the options of a run, and all others."""
    supplied = {name: options[name] for name in USER_DATA if options.get(name) is not None}
    choices = {name: value for name, value in options.items() if name not in USER_DATA}
    if isinstance(supplied.get("gating"), str):  # a kind of gates, not gates of the user's own
        choices["gating"] = supplied.pop("gating")
    if not isinstance(choices.get("data", ""), str | os.PathLike | None):
        supplied["data"] = choices.pop("data")
    return supplied, choices


def _call(name: str, options: Mapping[str, Any]) -> str:
    """Return the call in Python; data and gates of the user's own by the names of the arguments."""
    own = {*USER_DATA, "data"}
    own -= {name for name in ("data", "gating") if isinstance(options.get(name), str | os.PathLike)}
    words = [repr(name)]
    for key, value in options.items():
        if value is not None:
            shown = str(value) if isinstance(value, os.PathLike) else value
            words.append(f"{key}={key}" if key in own else f"{key}={shown!r}")
    return f"implicit_bias.run({', '.join(words)})"
