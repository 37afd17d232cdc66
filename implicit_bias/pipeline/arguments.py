"""The command line of a dataclass of options: its parameters, their help, their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from .model import Model
from .options import Options, flag

__all__ = ["ModelCommand", "given", "model_parameters"]

MODEL = "implicit_bias.model"
ARGUMENTS = "implicit_bias.arguments"


class ModelCommand(click.Command):
    """A command whose further options are those of the model that `--model` names.

    It keeps its arguments as they were typed, for the report.
    """

    def __init__(self, *args: Any, models: Mapping[str, Model], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.models = models

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        ctx.meta[MODEL] = self.models.get(_named_model(args))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            self._explain(ctx, error.option_name)
            raise

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own, *rest = super().get_params(ctx)
        model = ctx.meta.get(MODEL)
        if model is not None:
            return [own, *model_parameters(model), *rest]
        return [own, *_shared([one.choose() for one in self.models.values()]), *rest]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        if ctx.meta.get(MODEL) is not None:
            return
        takers: dict[str, list[str]] = {}
        for model in self.models.values():
            for name in model.option_names:
                takers.setdefault(flag(name), []).append(model.name)
        rest = [(name, ", ".join(models)) for name, models in sorted(takers.items())
                if len(models) < len(self.models)]  # fmt: skip
        with formatter.section("Options of some models; `--model NAME --help` explains NAME's own"):
            formatter.write_dl(rest)

    def _explain(self, ctx: click.Context, name: str) -> None:
        """Say which models take an option that this one does not."""
        takers = [key for key, one in self.models.items()
                  if name in map(flag, one.option_names)]  # fmt: skip
        model = ctx.meta[MODEL]
        if not takers or model is None:
            return
        typed = ctx.meta[ARGUMENTS]
        values = [value for option, value in pairwise(typed) if option == name]
        raise click.UsageError(
            f"`{' '.join([name, *values[:1]])}` is not for the model {model.name}: leave it out, "
            f"or take one of {', '.join(takers)}",
            ctx,
        )


def given(context: click.Context, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `choices` that the user made."""
    source = context.get_parameter_source
    return {name: value for name, value in choices.items()
            if source(name) is not ParameterSource.DEFAULT}  # fmt: skip


def _named_model(args: Iterable[str]) -> str:
    words = list(args)
    for i, word in enumerate(words):
        if word.startswith("--model="):
            return word.removeprefix("--model=")
        if word == "--model" and i + 1 < len(words):
            return words[i + 1]
    return ""


def _shared(models: list[Options]) -> list[click.Parameter]:
    """The parameters of the options that all models take, to be read before there is a model."""
    shared = [one for one in fields(models[0]) if all(hasattr(model, one.name) for model in models)]
    hints = get_type_hints(type(models[0]))
    found: list[click.Parameter] = []
    for field in shared:
        values = {getattr(model, field.name) for model in models}
        default = _shown(values.pop(), field.metadata) if len(values) == 1 else "by model"
        found.append(_parameter(field, hints[field.name], default))
    return found


def model_parameters(model: Model) -> list[click.Parameter]:
    """A parameter for each option of a model, with its defaults in the help."""
    usual = model.choose()
    hints = get_type_hints(model.options)
    return [
        _parameter(field, hints[field.name], _shown(getattr(usual, field.name), field.metadata))
        for field in fields(model.options)
    ]


def _parameter(field: Field[Any], hint: Any, default: str) -> click.Option:
    about = field.metadata
    return click.Option(
        [flag(field.name), field.name],
        default=None,
        help=f"{about['help']}  [default: {default}]",
        **_reader(hint, about),
    )


def _shown(value: Any, about: Mapping[str, Any]) -> str:
    if value is None:
        return about["unset"] or "none"
    for word, meaning in about["words"].items():
        if value == meaning:
            return str(word)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _reader(hint: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """How click is to read values of a type."""
    hint = next((part for part in get_args(hint) if part is not NoneType), hint) \
        if NoneType in get_args(hint) else hint  # fmt: skip
    if get_origin(hint) is tuple:
        return {"callback": _numbers(get_args(hint)[0], about), "metavar": "LIST"}
    choices = get_args(hint) if get_origin(hint) is Literal else about["choices"]
    if choices:
        return {"type": click.Choice(choices)}
    if hint is int:
        return {"type": click.IntRange(min=about["least"])}
    return {"type": click.Path(path_type=Path) if hint is Path else hint}


def _numbers(kind: type, about: Mapping[str, Any]) -> Callable[..., Any]:
    def read(
        context: click.Context, parameter: click.Parameter, value: str | None
    ) -> tuple[Any, ...] | None:
        if value is None:
            return None
        if value in about["words"]:
            word: tuple[Any, ...] = about["words"][value]
            return word
        try:
            numbers = tuple(kind(part) for part in value.split(","))
        except ValueError as error:
            raise click.BadParameter(
                f"{value!r} is not a list such as {about['example']}"
            ) from error
        if about["least"] is not None and min(numbers) < about["least"]:
            raise click.BadParameter(f"{min(numbers)} is below {about['least']}")
        return numbers

    return read
