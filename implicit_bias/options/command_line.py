"""The command line of a dataclass of options: its parameters, their help, their messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import click
from click.core import ParameterSource

from .fields import About, flag
from .resolve import OptionTable, takers
from .values import Kind, kinds, no_such_option, not_one_of

MODEL = "implicit_bias.model"
ARGUMENTS = "implicit_bias.arguments"


class ModelCommand(click.Command):
    """A command whose further options are those of the model that `--model` names.

    It keeps its arguments as they were typed, for the report.
    """

    def __init__(self, *args: Any, models: Mapping[str, OptionTable], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.models = models

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the model first: it decides which further options there are."""
        ctx.meta[ARGUMENTS] = tuple(args)
        ctx.meta[MODEL] = self.models.get(_named_model(args))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(self._explain(ctx, error.option_name), ctx) from error

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters, and the model's behind `--model`."""
        own, *rest = super().get_params(ctx)
        model = ctx.meta.get(MODEL)
        models = self.models.values() if model is None else [model]
        return [own, *model_parameters(*models), *rest]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, and without a model those that some models have."""
        super().format_options(ctx, formatter)
        if ctx.meta.get(MODEL) is not None:
            return
        rest = [
            (flag(name), ", ".join(models))
            for name, models in sorted(takers(self.models).items())
            if len(models) < len(self.models)
        ]
        with formatter.section("Options of some models; `--model NAME --help` explains NAME's own"):
            formatter.write_dl(rest)

    def _explain(self, ctx: click.Context, name: str) -> str:
        """Return why there is no such option: no model has it, or others than this one."""
        model = ctx.meta[MODEL]
        own = {option for param in self.params for option in param.opts}
        typed = ctx.meta[ARGUMENTS]
        values = [value for option, value in pairwise(typed)
                  if option == name and not value.startswith("--")]  # fmt: skip
        known = {flag(key): one for key, one in takers(self.models).items()}
        return no_such_option(
            name, " ".join([name, *values[:1]]), model.name if model else None, known, own
        )


def typed_choices(context: click.Context, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `choices` that the user has typed."""
    source = context.get_parameter_source
    return {name: value for name, value in choices.items()
            if source(name) is not ParameterSource.DEFAULT}  # fmt: skip


def model_parameters(*models: OptionTable) -> list[click.Parameter]:
    """Return a parameter for each option that all of these models have, defaults in the help."""
    first, *others = models
    usual = [model.choose() for model in models]
    return [
        _parameter(name, kind, [getattr(options, name) for options in usual])
        for name, kind in kinds(first.options).items()
        if all(name in other.option_names for other in others)
    ]


def _named_model(args: Iterable[str]) -> str:
    words = list(args)
    for i, word in enumerate(words):
        if word.startswith("--model="):
            return word.removeprefix("--model=")
        if word == "--model" and i + 1 < len(words):
            return words[i + 1]
    return ""


def _parameter(name: str, kind: Kind, defaults: list[Any]) -> click.Option:
    """Return the parameter of an option, with the default that all models share, if they do."""
    about, typed = kind.about, flag(name)
    default = _shown(defaults[0], about) if len(set(defaults)) == 1 else "by model"
    if kind.base is bool:
        both = f"{typed}/--no-{typed.removeprefix('--')}"
        return click.Option([both, name], default=None, help=f"{about.help}  [default: {default}]")
    least = "" if about.least is None else f"; x>={about.least}"
    least += "" if about.below is None else f"; x<{about.below:g}"
    return click.Option(
        [typed, name],
        default=None,
        help=f"{about.help}  [default: {default}{least}]",
        type=_type(kind),
        metavar=_metavar(kind),
    )


def _metavar(kind: Kind) -> str | None:
    """Return the choices, where they are not all that there is."""
    known = "|".join(kind.choices)
    if kind.about.joined:
        return f"[{known}],..."
    return f"[{known}|FILE]" if kind.about.files else None


def _shown(value: Any, about: About) -> str:
    if value is None:
        return about.unset or "none"
    for word, meaning in about.words.items():
        if value == meaning:
            return str(word)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


class Choice(click.Choice):  # type: ignore[type-arg]
    """One of several words; where another was typed the message names the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` if it is one of the words."""
        if value not in self.choices:
            self.fail(not_one_of(value, map(str, self.choices)), param, ctx)
        return value


class Typed(click.ParamType):  # type: ignore[type-arg]
    """Values of a kind, read with the messages that Python has for them."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = "list" if kind.several else {str: "text", int: "integer"}.get(
            kind.base, kind.base.__name__
        )  # fmt: skip

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what `read` does; its messages are those of the command."""
        try:
            return self.read(value)
        except (TypeError, ValueError) as error:
            self.fail(str(error), param, ctx)

    def read(self, value: Any) -> Any:
        """Return the value of what was typed."""
        return self.kind.parse(value)


def _type(kind: Kind) -> Any:
    one_of = kind.choices and not (kind.several or kind.about.joined or kind.about.files)
    return Choice(kind.choices) if one_of else Typed(kind)
