"""The run of attention: the program of the best tokens, and that of those that training selects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._support.solve import NormName
from ...data.tokens import TokenData, make_tokens, read_tokens, token_data
from ...limits.exact.tokens import TokenLimit, TokenMargin, solve_token_svm
from ...quantities.premises import FEASIBLE, KEY_QUERY
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.setup import Setup, training_settings
from ...runs.stages import Found, Run, Stage, later
from ...runs.user_data import USERS_OWN
from ...training.catalogue import TRAINERS
from ...training.settings import TrainingSettings
from .model import DRAWN, LOSS

NAME = TokenMargin.name
SIZES = {"n_train": 60, "tokens": 8, "inputs": 12}


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionSetup(Setup):
    """The setup of a run, with its sequences, the norm that is least, and the settings of training.

    Attributes
    ----------
    data : TokenData
    norm : str
    settings : TrainingSettings
    """

    data: TokenData
    norm: NormName
    settings: TrainingSettings

    def solve(self, tokens: Any) -> TokenLimit:
        """Solve the program of these tokens (n,)."""
        data, tol = self.data, self.options.tol
        return solve_token_svm(data.X, data.queries, data.scores, tokens, norm=self.norm, tol=tol)


def run_attention(setup: Setup) -> Run[AttentionSetup]:
    """Predict attention to the best tokens, train it, and compare it with those that it selects.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range, the data are not there, or no norm follows from the trainer.
    """
    data, options = _data(setup), setup.options
    whole = AttentionSetup(
        **setup.shared,
        data=data,
        norm=_norm(options),
        settings=training_settings(options, setup.seeds, loss=LOSS),
    )
    n, T, d = data.X.shape
    heading = setup.heading(
        {
            "description": data.description,
            "n_train": n,
            "n_inputs": d,
            "n_tokens": T,
            "sha256": data.digest(),
        },
        title="attention to the tokens that training selects, beside their max-margin program",
        choices=f"{n} sequences of {T} tokens; {options.parameters} parameters",
    )
    return Run(setup=whole, heading=heading, stages=STAGES)


def _norm(options: Any) -> NormName:
    """Return the norm of W that is least under the trainer of the options."""
    trainer, pair = options.trainer, options.parameters == KEY_QUERY[1]
    norm: NormName = TRAINERS[trainer].norms[0]
    if pair and norm != "l2":
        raise ValueError(
            f"`--trainer {trainer}` has no norm of W = K Q' that is known to be least: take "
            "normalised or constant, or `--parameters combined`"
        )
    return "nuclear" if pair else norm


def _data(setup: Setup) -> TokenData:
    """Return the sequences of the user's own, those of a file, or drawn ones."""
    options, own = setup.options, setup.user_data
    sizes = {name: getattr(options, name) for name in SIZES}
    if options.data in DRAWN:
        n, T, d = (sizes[name] or usual for name, usual in SIZES.items())
        equal = options.data == DRAWN[1]
        return make_tokens(n, T, d, equal=equal, random_state=setup.seeds.data)
    for name, given in sizes.items():
        if given is not None and not (options.data == USERS_OWN and name == "n_train"):
            raise ValueError(f"`{name}` is of drawn tokens, beside `X` of your own: leave it out")
    if options.data == USERS_OWN:
        return token_data(own.X, own.queries, own.y)
    return read_tokens(Path(options.data))


def _predict(setup: AttentionSetup, found: Found) -> Iterator[Finding]:
    limit = setup.solve(setup.data.best)
    separates = {"SOLVED": True, "NOT_SEPARABLE": False}.get(limit.status.name)
    yield Finding("limit", {"limit": limit}, NAME, assumptions=(FEASIBLE.found(holds=separates),))


def _state(setup: AttentionSetup) -> Iterator[StatedProgram]:
    data = setup.data
    problem = TokenMargin(setup.norm).literal(data.X, data.queries, data.scores, data.best)
    yield stated(NAME, problem, "of the best tokens; training may select others")


STAGES: tuple[Stage[AttentionSetup], ...] = (
    Stage(
        finds=_predict,
        says="solving for the attention SVM of the best tokens",
        states=_state,
    ),
    Stage(
        finds=later(f"{__package__}.training:train"),
        says="training for {setup.settings.n_steps} steps",
        trains=True,
    ),
)
