"""A model of the table: which limit, by which theorem, with which options, run by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._extras import naming_extras
from ..data.names import has_own_size
from ..options.fields import Options
from ..options.resolve import resolve
from ..options.values import check_choices, kinds

if TYPE_CHECKING:
    from ..reports.report import Report
    from .folder import Keeping
    from .progress import Progress
    from .user_data import Given

__all__ = ["Model", "Run", "own_run", "separable_run", "takers"]


SIZES = ("n_train", "n_val")
Run = Callable[["Model", Any, "Progress", "Keeping"], "Report"]


@dataclass(frozen=True)
class Model:
    """One predicted limit, and how a run of it is put together.

    Attributes
    ----------
    name : str
    theorem : str
        The statement in a sentence, and where it stands.
    program : str
        The convex program in one line.
    options : type
        The dataclass of the options that its run obeys; a model without a field has no such option.
    run : callable
        `run(model, options, progress, keeping)` predicts, trains, compares and returns a `Report`.
    defaults : mapping
        Choices that differ from those of the fields unless they are given, so that the
        assumptions of the theorem hold on the bundled data.
    variants : mapping of (option, value) to mapping
        Further ones where that option has that value.
    refuses : mapping of "data", "gating" or "trainers" to str
        Why a user cannot bring data or a gating of their own, or name several trainers, where the
        reason is the model's.
    given : Given or None
        What a user has brought in place of the model's own data and gates: nothing in the table.
    """

    name: str
    theorem: str
    program: str
    options: type[Options]
    run: Run
    defaults: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[tuple[str, Any], Mapping[str, Any]] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)
    given: Given | None = None

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of its options, as fields."""
        return tuple(field.name for field in fields(self.options))

    def refusal(self, kind: str) -> str:
        """Why "data" or a "gating" of a user's own is not taken; empty where it is.

        Data are taken where they are an option, and gates where they or their hyperplanes are one.
        """
        if kind in self.refuses:
            return self.refuses[kind]
        known = {"data": {"data"}, "gating": {"gating", "cutoffs"}}[kind]
        return "" if known & set(self.option_names) else "it makes its own"

    def choose(self, **given: Any) -> Options:
        """The options of a run with these choices, all others by the model and the trainer.

        Sizes of parts are left to tables and files, which have as many samples as they have.

        Raises
        ------
        TypeError, ValueError
            If a choice is none of its option's, or choices do not go together.
        """
        usual = dict(self.defaults)
        for (option, value), further in self.variants.items():
            if given.get(option) == value:
                usual.update(further)
        chosen = check_choices(self.options, given)
        if "data" in chosen and self._has_own_size(chosen["data"]):
            usual = {name: value for name, value in usual.items() if name not in SIZES}
        options = self.options(**resolve(self.options, usual, chosen))
        self._check_trainers(options)
        return options

    def _has_own_size(self, data: str) -> bool:
        # Sizes of the model's own are of images and of what is drawn.
        return kinds(self.options)["data"].files and has_own_size(data)

    def _check_trainers(self, options: Any) -> None:
        trainer = getattr(options, "trainer", "")
        reason = self.refuses.get("trainers", "")
        if getattr(options, "classes", "two") == "all":
            reason = "with classes 'all' every class has a network of its own"
        if reason and "," in trainer:
            raise ValueError(
                f"`trainer`: {trainer!r} names several, but {self.name} takes one here, since "
                f"{reason}: name one of them"
            )


def takers(models: Mapping[str, Model]) -> dict[str, list[str]]:
    """The models that have an option, by the option's name."""
    found: dict[str, list[str]] = {}
    for model in models.values():
        for name in model.option_names:
            found.setdefault(name, []).append(model.name)
    return found


def separable_run(module: str, name: str) -> Run:
    """The run of separable data with the parts `module.name(options)`, imported when it begins."""

    @naming_extras()
    def run(model: Model, options: Any, progress: Progress, keeping: Keeping) -> Report:
        from .one_vs_rest import run_one_vs_rest
        from .separable import run_separable

        parts = getattr(import_module(module), name)(options)
        whole = run_one_vs_rest if options.classes == "all" else run_separable
        return whole(model, options, parts, progress, keeping)

    return run


def own_run(module: str, name: str) -> Run:
    """A theory's own run, `module.name(model, options, progress, keeping)`, imported likewise."""

    @naming_extras()
    def run(model: Model, options: Any, progress: Progress, keeping: Keeping) -> Report:
        report: Report = getattr(import_module(module), name)(model, options, progress, keeping)
        return report

    return run
