"""Options: each a field of a dataclass, declared once, where it is obeyed.

A model's options are the groups that its run reads, put together by inheritance. The command line,
its help, the record of a run and its messages follow from the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._support.words import (
    Cutoffs,
    DtypeName,
    MarginLoss,
    MarginTrainer,
    SeparableClasses,
    UnitInit,
    words,
)
from ..data.names import NAMES


@dataclass(frozen=True, kw_only=True)
class About:
    """All that is declared of an option beside its name, type and default.

    Attributes
    ----------
    help : str
    least : int or None
        The smallest value of a number, or of each of several.
    above : float or None
        What a number, or each of several, must be greater than.
    below : float or None
        What it must be less than.
    power_of_two : bool
    choices : tuple of str
        The values of a string, where its type does not name them.
    example : str
        A list of numbers as it is typed, for messages.
    words : mapping of str to value
        Words that stand for a value, beside the values themselves.
    unset : str
        The meaning of None, for the help.
    joined : bool
        True where a string may name several of its choices, commas between them.
    files : bool
        True where a string may name a file in place of its choices.
    numbers : bool
        True where whole numbers are taken for strings, as they are typed.
    """

    help: str
    least: int | None = None
    above: float | None = None
    below: float | None = None
    power_of_two: bool = False
    choices: tuple[str, ...] = ()
    example: str = ""
    words: Mapping[str, Any] = field(default_factory=dict)
    unset: str = ""
    joined: bool = False
    files: bool = False
    numbers: bool = False


def option(default: Any, help: str, **further: Any) -> Any:
    """Declare an option: a field of a dataclass of options.

    Parameters
    ----------
    default
        Its value where neither the user nor the model nor the trainer says otherwise.
    help : str
    **further
        The other attributes of `About`.
    """
    return field(default=default, metadata={"about": About(help=help, **further)})


def flag(name: str) -> str:
    """Return an option as it is typed: `--n-train` for `n_train`."""
    return "--" + name.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every run."""

    seed: int = option(0, "Seed of data split, gates, weights and batches.", least=0)


@dataclass(frozen=True, kw_only=True)
class SplitOptions(Options):
    """Numbers of samples; `None` leaves them to the data."""

    n_train: int | None = option(None, "Training samples.", least=1, unset="by data")
    n_val: int | None = option(None, "Held-out samples.", least=1, unset="by data")


@dataclass(frozen=True, kw_only=True)
class ImageOptions(SplitOptions):
    """Data of two labels."""

    data: str = option(
        "digits",
        "scikit-learn's bundled digits or IDX files of MNIST's kind, 0-4 against 5-9; its iris, "
        "wine and breast cancer; orthogonally separable orthants; nearly orthogonal clusters; four "
        "quadrants of the plane; arcs of a circle, wide ones on one half. Or a FILE of your own: "
        ".npz with X and y, X.npy beside y.npy, .csv or .parquet with a column of labels; or a "
        "folder of IDX files.",
        choices=NAMES,
        files=True,
    )
    data_dir: Path | None = option(None, "Folder of the IDX files of --data mnist, gzipped or not.")
    label: str | None = option(
        None,
        "Column of the labels in a table, or array in an .npz file.",
        unset="y, or the column called label, target, class or y",
    )
    positive: tuple[str, ...] | None = option(
        None,
        "Labels that are +1, all others are -1.",
        example="0,1,2,3,4",
        numbers=True,
        unset="the second of two, digits 0-4, the first of iris and wine",
    )
    standardize: bool | None = option(
        None,
        "Take every column less its mean and over its deviation, those of the training part.",
        unset="for iris, wine and breast-cancer alone",
    )
    constant: bool | None = option(
        None,
        "Append a constant 1, the only bias there is.",
        unset="what is bundled has it, files are taken as they are",
    )


@dataclass(frozen=True, kw_only=True)
class ClassOptions(ImageOptions):
    """Data of two labels or of several classes."""

    classes: SeparableClasses = option(
        "two",
        "Two, such as 0-4 against 5-9; all: each of the classes against the rest, in a network of "
        "its own; joint: one network with a score a class, by softmax.",
    )


@dataclass(frozen=True, kw_only=True)
class SolverOptions(Options):
    """The solver of limits and its tolerance."""

    solver: str = option("interior-point", "interior-point, or cvxpy:NAME (CLARABEL, ECOS, SCS).")
    tol: float = option(1e-8, "Relative duality gap to reach.", above=0, below=1)


@dataclass(frozen=True, kw_only=True)
class UnitOptions(Options):
    """The width of a network."""

    hidden_units: int = option(10, "Units H.", least=1)


@dataclass(frozen=True, kw_only=True)
class GateOptions(UnitOptions):
    """Units gated by hyperplanes."""

    cutoffs: Cutoffs = option(
        "median", "Where the hyperplanes cut; axes: one coordinate plane each."
    )


@dataclass(frozen=True, kw_only=True)
class SlopeOptions(Options):
    """Leaky units."""

    slope: float = option(
        0.0,
        "Slope of a unit where its gate is closed; above 0 it is leaky.",
        least=0,
        below=1,
    )


@dataclass(frozen=True, kw_only=True)
class ContextOptions(GateOptions):
    """Units with several contexts each."""

    contexts: int = option(2, "Contexts C of a unit, a power of two.", least=1, power_of_two=True)


@dataclass(frozen=True, kw_only=True)
class StartOptions(Options):
    """The weights that a network begins with."""

    init: UnitInit = option("orthogonal", "Initial weights.")
    init_scale: float = option(
        1.0, "Factor on the initial weights; 0.1 where a trainer descends in a norm of its own."
    )


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions(Options):
    """Device and precision of a trained network, and its steps of gradient descent, in phases."""

    device: str = option("cpu", "Device of the network: cpu, cuda, cuda:1, ...")
    dtype: DtypeName = option(
        "float64", "Precision of the network; the limit is always solved in float64."
    )
    steps: tuple[int, ...] | None = option(
        None,
        "Gradient steps of each phase of training; 0: the limit alone, nothing is trained.",
        least=0,
        example="1600,1600",
        unset="by data",
    )
    learning_rate: tuple[float, ...] | None = option(
        None,
        "Learning rate of each phase, or auto: found by the trainer.",
        above=0,
        example="0.04,0.01 (or auto)",
        words={"auto": ()},
        unset="by data",
    )
    batch_size: int | None = option(
        None, "Samples of a step; 0 is the full batch.", least=0, unset="by trainer"
    )
    checkpoints: int = option(
        40,
        "Steps at which the network is measured, at most: the first, the last, and between them "
        "by equal factors.",
        least=2,
    )


@dataclass(frozen=True, kw_only=True)
class TrainerOptions(ScheduleOptions):
    """Gradient methods for exponential-like losses."""

    trainer: str = option(
        "constant",
        "Gradient method: constant steps, or one that goes far along; several, each from the same "
        "weights, side by side.",
        choices=tuple(sorted(words(MarginTrainer))),
        joined=True,
    )
    loss: str = option("logistic", "Loss of a margin.", choices=words(MarginLoss))
    momentum: float = option(
        0.0, "Momentum of the trainers constant, normalised, sign, spectral and coordinate."
    )


@dataclass(frozen=True, kw_only=True)
class DecayOptions(TrainerOptions):
    """Gradient methods with weight decay, which makes limits finite."""

    loss: str = option(
        "logistic",
        "Loss of a margin; with weight decay also squared, (f - y)^2 / 2 of the labels -1 and +1.",
        choices=(*words(MarginLoss), "squared"),
    )
    weight_decay: float = option(
        0.0,
        "Decay lam of all weights, lam ||w||^2 / 2 in the loss; makes the limit finite.",
        least=0,
    )
    decoupled: bool = option(
        False, "Decay beside the step, as of AdamW: with sign, signum, adam, muon and others."
    )


class Positive:
    """Equal to every number above 0, and to True: the value of an option that is set."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and other > 0

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "above 0"


# What converges with weight decay: in the gradient of the loss, and beside steps that fall.
DECAYED: Mapping[tuple[str, Any], Mapping[str, Any]] = {
    ("weight_decay", Positive()): {
        "trainer": "constant", "batch_size": 0, "steps": (20000,), "learning_rate": (0.1,),
        "momentum": 0.98,
    },
    ("loss", "squared"): {  # of larger curvature
        "trainer": "constant", "batch_size": 0, "steps": (20000,), "learning_rate": (0.01,),
        "momentum": 0.99,
    },
    ("decoupled", Positive()): {
        "trainer": "sign", "steps": (20000,), "learning_rate": (), "momentum": 0.9,
    },
}  # fmt: skip
# Training ten networks, or on the plane: the defaults of models that take these options.
EVERY_CLASS: Mapping[tuple[str, str], Mapping[str, Any]] = {("classes", "all"): {"steps": (1500,)}}
# What descent does beside what reaches the limit, in the time of 2000 steps of the latter alone.
TWO_TRAINERS: Mapping[str, Any] = {"trainer": "momentum,annealed", "steps": (700,)}
ONE_TRAINER: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("classes", "all"): {**EVERY_CLASS["classes", "all"], "trainer": "annealed"}
}
# The smallest gated network: two units, each gated by the sign of one coordinate of the plane.
PLANE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("data", "quadrants"): {"hidden_units": 2, "contexts": 2, "cutoffs": "axes"}
}
