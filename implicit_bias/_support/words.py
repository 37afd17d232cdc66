"""Words that arguments and options take, each set of them declared once.

Checks, the command line and type checkers read these declarations; the models of the table are
`models.MODELS`, data are named in `data.names`, and solvers by `solvers.SolverName`. Loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Literal, get_args

# Gradient methods, and those whose steps follow gradient flow at a pace of their own.
PacedTrainer = Literal["normalised", "momentum"]
# And those of steepest descent in a norm other than the Euclidean one, or with its momentum.
SteepestTrainer = Literal["sign", "spectral", "coordinate", "signum", "muon", "adam", "lion"]
MarginTrainer = Literal["constant", PacedTrainer, "dual", "annealed", "smoothed", SteepestTrainer]
# And one for losses that have a least value.
TrainerName = Literal[MarginTrainer, "newton"]

# Losses that fall exponentially in the margin y f, y in {-1, +1}, without ever being 0: they have a
# logarithm, which trainers that go far along work with.
MarginLoss = Literal["logistic", "exponential"]
LossName = Literal[MarginLoss, "squared", "cross-entropy", "excess", "softmax", "attention"]
# Those of students, on soft labels.
SoftLoss = Literal["cross-entropy", "squared"]

# Initial weights: each matrix filled by itself; layers that fit each other; all there are.
PlainInit = Literal["orthogonal", "kaiming"]
UnitInit = Literal[PlainInit, "balanced"]
ConvolutionInit = Literal["kaiming", "balanced"]
InitName = Literal[UnitInit, "sign", "gaussian"]

# Weight decay as a term of the loss, or beside the step.
DecayName = Literal["coupled", "decoupled"]
# Norms on one layer of weights in which a trainer descends, by their names in `solvers.norms.norm`.
WeightNorm = Literal["l2", "linf", "l1", "spectral"]

DtypeName = Literal["float32", "float64"]
DeviceName = Literal[
    "cpu", "cuda", "mps", "xpu",
    "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7",
]  # fmt: skip

# What runs the cells of a sweep.
EngineName = Literal["joblib", "dask", "slurm"]

Cutoffs = Literal["median", "random", "axes"]
OnInseparable = Literal["penalty", "raise"]
# What a program returns where nothing separates: the proof, or the limit of data separable in part.
Inseparable = Literal["prove", "split"]
MultiClass = Literal["one-vs-rest", "joint"]
ClassesName = Literal["two", "all"]
# "all": each of them against the rest; "joint": all of them by one network and its softmax.
SeparableClasses = Literal["two", "all", "joint"]
Experts = Literal["linear", "constant"]


def words(declared: object) -> tuple[str, ...]:
    """Return the words of one of the declarations above, in their order."""
    return get_args(declared)


def nearest(value: object, choices: Iterable[str], shown: Callable[[str], str] = repr) -> str:
    """Return `: did you mean ...?` with the nearest choice; empty where nothing is near."""
    close = get_close_matches(str(value), list(choices), n=1)
    return f": did you mean {shown(close[0])}?" if close else ""


def check_word(name: str, value: object, declared: object) -> None:
    """Refuse what is none of the words of a declaration.

    Raises
    ------
    ValueError
        With the name of the argument and all words.
    """
    if not isinstance(value, str) or value not in get_args(declared):
        known = ", ".join(map(repr, get_args(declared)))
        raise ValueError(f"`{name}` must be one of {known}, got {value!r}: choose one")
