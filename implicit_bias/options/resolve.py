"""All options of a run: from those that are given, a model's defaults and the trainers'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter, Signature, signature
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, TypeVar

from ..data.names import has_own_size
from ..training.catalogue import get_trainer
from .fields import Options
from .values import check_choices, kinds

# Options that a trainer has values of its own for.
SCHEDULE = ("batch_size", "learning_rate", "momentum", "steps")
SIZES = ("n_train", "n_val")


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class _Expanded(Signature):
    """A signature in which every option of every model is a parameter of its own.

    They are read from the table of models when they are asked for: that takes longer than all that
    else happens before a run.
    """

    @property
    def parameters(self) -> MappingProxyType[str, Parameter]:
        """The parameters of the function, and options by their names in place of ``**options``."""
        # By its path: it is made of the table of models, which is made with this module.
        choices = resolve_name(f"{__package__}.choices:RunOptions")
        own = dict(super().parameters)
        del own["options"]
        for name, hint in choices.__annotations__.items():
            hint = getattr(hint, "__forward_arg__", hint)
            own[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        return MappingProxyType(own)


def showing_options(function: Decorated) -> Decorated:
    """Let `help`, IPython and Jupyter see each option that a function takes as ``**options``."""
    plain = signature(function)
    function.__dict__["__signature__"] = _Expanded(
        list(plain.parameters.values()), return_annotation=plain.return_annotation
    )
    return function


@dataclass(frozen=True)
class OptionTable:
    """The options of one model, and their defaults.

    Attributes
    ----------
    name : str
        The model's.
    options : type
        The dataclass of the options that its run obeys; a model without a field has no such option.
    defaults : mapping
        The defaults that differ from those of the fields, so that the assumptions of the
        theorem hold on the bundled data.
    variants : mapping of (option, value) to mapping
        Further ones where that option has that value.
    refuses : mapping of "data", "gating" or "trainers" to str
        The reason why the model refuses the user's own data or gating, or several trainers.
    """

    name: str
    options: type[Options]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[tuple[str, Any], Mapping[str, Any]] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of its options, as fields."""
        return tuple(one.name for one in fields(self.options))

    def choose(self, **given: Any) -> Options:
        """Return the options of a run with these choices, all others by the model and the trainer.

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
        options = self.options(**_complete(self.options, usual, chosen))
        self._check_trainers(options)
        return options

    def _has_own_size(self, data: str) -> bool:
        # Sizes of the model's own are of images and of what is drawn.
        return kinds(self.options)["data"].about.files and has_own_size(data)

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


def takers(tables: Mapping[str, OptionTable]) -> dict[str, list[str]]:
    """Return the models that have an option, by the option's name."""
    found: dict[str, list[str]] = {}
    for table in tables.values():
        for name in table.option_names:
            found.setdefault(name, []).append(table.name)
    return found


def each_trainer(options: Any) -> tuple[Any, ...]:
    """Return the options of every trainer that they name, in that order.

    Raises
    ------
    ValueError
        If steps and learning rates name different numbers of phases for one of them.
    """
    names = options.trainer.split(",")
    if len(names) == 1:
        return (options,)
    given = {name: getattr(options, name) for name in SCHEDULE}
    given = {name: value for name, value in given.items() if value is not None}
    every = []
    for name in names:
        usual = _trainer_defaults(name)
        own = {**usual, **_phases(usual, given), **given, "trainer": name}
        every.append(replace(options, **own))
    return tuple(every)


def _complete(
    options: type[Options], defaults: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return every option, from those given, a model's defaults and the trainer's.

    A model's defaults for training go with its own trainer; another one begins from its own. Of
    several trainers each does: what they do not share is None, and `each_trainer` fills it in.
    """
    known = {one.name: one.default for one in fields(options)}
    usual = dict(defaults)
    if "trainer" in known:
        own = str(usual.get("trainer", known["trainer"]))
        trainer = str(given.get("trainer", own))
        if trainer != own:
            usual = {name: value for name, value in usual.items() if name not in SCHEDULE}
        usual = {**_trainer_defaults(trainer), **usual, "trainer": trainer}
        scale = min(get_trainer(name).init_scale for name in trainer.split(","))
        if "init_scale" in known and scale < 1:
            usual.setdefault("init_scale", scale)
        if "," in trainer:
            return {**known, **usual, **given}
        # Phases that follow from the data are of rates that were chosen with them.
        if usual["steps"] is None and given.get("learning_rate") is not None:
            usual["steps"] = get_trainer(trainer).steps
    if "steps" in known:
        usual |= _phases(usual, given)
    return {**known, **usual, **given}


def _trainer_defaults(trainer: str) -> dict[str, Any]:
    """Return what a trainer begins from; None where several begin from values of their own."""
    if "," in trainer:
        return dict.fromkeys(("batch_size", "steps", "learning_rate"))
    begins = get_trainer(trainer)
    return {
        "batch_size": begins.batch_size,
        "steps": begins.steps,
        "learning_rate": begins.learning_rates,
    }


def _phases(usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return steps and rates where one of them was given, the other cut to as many phases."""
    if "steps" not in given and "learning_rate" not in given:
        return {}
    if 0 in given.get("steps", ()) and len(given["steps"]) > 1:
        raise ValueError("a phase of 0 steps: `steps` 0 alone trains nothing, leave it out here")
    own_steps, own_rates = usual["steps"] or (), usual["learning_rate"] or ()
    steps: tuple[int, ...] = given.get("steps", own_steps)
    rates: tuple[float, ...] = given.get("learning_rate", own_rates[: len(steps)])
    if "steps" not in given and rates:
        steps = steps[: len(rates)]
    if rates and len(steps) != len(rates):
        raise ValueError(
            f"{_count(len(steps), 'phase')} of steps, but {_count(len(rates), 'learning rate')}: "
            "give as many of one as of the other"
        )
    return {"steps": steps, "learning_rate": rates}


def _count(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "s")
