"""Every choice of a run: from those that are given, a model's defaults and the trainers'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..training.catalogue import get_trainer
from .fields import Options

__all__ = ["OF_TRAINING", "each_trainer", "resolve"]

# What a model's own defaults say of training goes with its own trainer.
OF_TRAINING = ("batch_size", "learning_rate", "momentum", "steps", "trainer")


def resolve(
    options: type[Options], defaults: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Every choice of a run, from those given, a model's defaults and the trainer's.

    A model's defaults for training go with its own trainer; another one begins from its own. Of
    several trainers each does: what they do not share is None, and `each_trainer` fills it in.

    Raises
    ------
    ValueError
        If steps and learning rates name different numbers of phases, or one phase has no steps.
    """
    known = {field.name: field.default for field in fields(options)}
    usual = dict(defaults)
    if "trainer" in known:
        own = str(usual.get("trainer", known["trainer"]))
        trainer = str(given.get("trainer", own))
        if trainer != own:
            usual = {name: value for name, value in usual.items() if name not in OF_TRAINING}
        usual = {**_beginning(trainer), **usual, "trainer": trainer}
        if "," in trainer:
            return {**known, **usual, **given}
        # Phases that follow from the data are of rates that were chosen with them.
        if usual["steps"] is None and given.get("learning_rate") is not None:
            usual["steps"] = get_trainer(trainer).steps
    if "steps" in known:
        usual |= _phases(usual, given)
    return {**known, **usual, **given}


def each_trainer(options: Any) -> tuple[Any, ...]:
    """The options of every trainer that they name, in that order; themselves if they name one.

    Raises
    ------
    ValueError
        If steps and learning rates name different numbers of phases for one of them.
    """
    names = options.trainer.split(",")
    if len(names) == 1:
        return (options,)
    given = {
        name: value
        for name in ("batch_size", "learning_rate", "momentum", "steps")
        if (value := getattr(options, name)) is not None
    }
    every = []
    for name in names:
        usual = _beginning(name)
        every.append(replace(options, **{**usual, **_phases(usual, given), **given}, trainer=name))
    return tuple(every)


def _beginning(trainer: str) -> dict[str, Any]:
    """Where a trainer begins; None where several begin from what is their own."""
    if "," in trainer:
        return dict.fromkeys(("batch_size", "steps", "learning_rate"))
    begins = get_trainer(trainer)
    return {
        "batch_size": begins.batch_size,
        "steps": begins.steps,
        "learning_rate": begins.learning_rates,
    }


def _phases(usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Steps and learning rates where one of them was given, the other cut to as many phases."""
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
