"""The names and types of all that `run` takes: for editors, type checkers, rows of runs.

Generated from the options of the models by `python -m tests.choices`: change them there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .._solve import ArrayLike
    from ..data.dataset import Dataset
    from ..data.labelled import ClassDataset

__all__ = [
    "Choices",
    "ClassesT",
    "GridOptions",
    "ModelName",
    "ModelT",
    "NetworkT",
    "RegimeT",
    "RunOptions",
    "TellingOptions",
    "Transformer",
    "UserData",
]


class Transformer(Protocol):
    """A gating of the user's own: fitted, or with `fit(X)` too."""

    def transform(self, X: Any, /) -> Any:
        """Return the gates (n, H) of inputs (n, D)."""


ModelName = Literal[
    "deep-linear",
    "dgn",
    "diagonal",
    "distillation",
    "dlgn",
    "frelu",
    "gdln",
    "gln",
    "gln-l2",
    "heads",
    "linear",
    "orthosep",
    "relu",
    "shallow-gln",
]


class _PlainChoices(TypedDict, total=False):
    """The options that do not change what a report holds, beside `data` and `gating`."""

    batch_size: int | None
    beside: Literal["all", "machines"]
    beta: float
    checkpoints: int
    constant: bool | None
    contexts: int | None
    cutoffs: Literal["median", "random", "axes"]
    data_dir: str | os.PathLike[str] | None
    decoupled: bool
    depth: int
    device: Literal[
        "cpu",
        "cuda",
        "mps",
        "xpu",
        "cuda:0",
        "cuda:1",
        "cuda:2",
        "cuda:3",
        "cuda:4",
        "cuda:5",
        "cuda:6",
        "cuda:7",
    ]
    dtype: Literal["float32", "float64"]
    exits: int | Sequence[int] | None
    experts: Literal["linear", "constant"]
    final_beta: float | None
    freeze_at: int | None
    frozen_trainer: Literal["annealed", "momentum", "normalised", "same"]
    gate_rate: float | None
    gate_steps: int
    hidden_units: int
    init: Literal["orthogonal", "kaiming", "balanced", "sign", "gaussian"]
    init_scale: float
    kappa: float | None
    label: str | None
    learning_rate: float | Sequence[float] | Literal["auto"] | None
    length_scales: float | Sequence[float] | None
    loss: Literal["logistic", "exponential", "squared"]
    momentum: float
    n_labelled: int | None
    n_train: int | None
    n_val: int | None
    output_scales: float | Sequence[float] | None
    positive: int | str | Sequence[int | str] | None
    seed: int
    share: float
    slope: float
    solver: Literal[
        "interior-point",
        "highs",
        "cvxpy",
        "cvxpy:CLARABEL",
        "cvxpy:ECOS",
        "cvxpy:SCS",
        "cvxpy:OSQP",
        "cvxpy:HIGHS",
        "cvxpy:COPT",
        "cvxpy:CPLEX",
        "cvxpy:GUROBI",
        "cvxpy:MOSEK",
        "cvxpy:XPRESS",
    ]
    standardize: bool | None
    starts: int | None
    steps: int | Sequence[int] | None
    temperature: float | None
    tol: float
    trainer: (
        Literal[
            "adam",
            "annealed",
            "constant",
            "coordinate",
            "dual",
            "lion",
            "momentum",
            "muon",
            "normalised",
            "sign",
            "signum",
            "smoothed",
            "spectral",
            "newton",
        ]
        | Sequence[
            Literal[
                "adam",
                "annealed",
                "constant",
                "coordinate",
                "dual",
                "lion",
                "momentum",
                "muon",
                "normalised",
                "sign",
                "signum",
                "smoothed",
                "spectral",
            ]
        ]
    )
    trunk: Literal["trained", "random"]
    trunk_steps: int
    upper_units: int | None
    weight_decay: float


class Choices(_PlainChoices, total=False):
    """Every option of every model, beside `data` and `gating`."""

    classes: Literal["two", "all", "joint"]
    network: Literal["two-layer", "residual"]
    regime: Literal["rich", "lazy"]


class UserData(TypedDict, total=False):
    """Data and gates of the user, in place of bundled and drawn ones."""

    X: ArrayLike | None
    y: ArrayLike | None
    X_val: ArrayLike | None
    y_val: ArrayLike | None
    data: (
        Literal[
            "digits",
            "mnist",
            "orthants",
            "quadrants",
            "circle",
            "iris",
            "wine",
            "breast-cancer",
            "angles",
            "ring",
            "pulse",
        ]
        | str
        | os.PathLike[str]
        | Dataset
        | ClassDataset
    )
    gating: Literal["random", "relu", "learned", "dlgn", "contexts"] | Transformer | None


class RunOptions(Choices, UserData, total=False):
    """Everything that a model may be told."""


if TYPE_CHECKING:
    ValueT = TypeVar("ValueT")
    # One value, several, or a function of the cell.
    Values: TypeAlias = ValueT | Iterable[ValueT] | Callable[[Mapping[str, Any]], Any]


class GridOptions(TypedDict, total=False):
    """The grid of a sweep as a mapping: options by their names, with the values that each takes.

    Type checkers know the names and values of all models; whether the model at hand has an option
    is seen as the sweep begins. A mapping that is written into the call of `sweep` needs no
    annotation, and one that is computed goes through `product`.

    Examples
    --------
    >>> grid: ib.sweeps.GridOptions = {"n_train": [20, 40], "seed": "0:3"}
    >>> len(ib.sweep("linear", grid, out="runs", steps=0).cells)
    6
    """

    batch_size: Values[int | None] | str
    beside: Values[Literal["all", "machines"]]
    beta: Values[float]
    checkpoints: Values[int] | str
    classes: Values[Literal["two", "all", "joint"]]
    constant: Values[bool | None]
    contexts: Values[int | None] | str
    cutoffs: Values[Literal["median", "random", "axes"]]
    data: Values[
        Literal[
            "digits",
            "mnist",
            "orthants",
            "quadrants",
            "circle",
            "iris",
            "wine",
            "breast-cancer",
            "angles",
            "ring",
            "pulse",
        ]
        | str
        | os.PathLike[str]
    ]
    data_dir: Values[str | os.PathLike[str] | None]
    decoupled: Values[bool]
    depth: Values[int] | str
    device: Values[
        Literal[
            "cpu",
            "cuda",
            "mps",
            "xpu",
            "cuda:0",
            "cuda:1",
            "cuda:2",
            "cuda:3",
            "cuda:4",
            "cuda:5",
            "cuda:6",
            "cuda:7",
        ]
    ]
    dtype: Values[Literal["float32", "float64"]]
    exits: Values[int | Sequence[int] | None] | str
    experts: Values[Literal["linear", "constant"]]
    final_beta: Values[float | None]
    freeze_at: Values[int | None] | str
    frozen_trainer: Values[Literal["annealed", "momentum", "normalised", "same"]]
    gate_rate: Values[float | None]
    gate_steps: Values[int] | str
    hidden_units: Values[int] | str
    init: Values[Literal["orthogonal", "kaiming", "balanced", "sign", "gaussian"]]
    init_scale: Values[float]
    kappa: Values[float | None]
    label: Values[str | None]
    learning_rate: Values[float | Sequence[float] | Literal["auto"] | None]
    length_scales: Values[float | Sequence[float] | None]
    loss: Values[Literal["logistic", "exponential", "squared"]]
    momentum: Values[float]
    n_labelled: Values[int | None] | str
    n_train: Values[int | None] | str
    n_val: Values[int | None] | str
    network: Values[Literal["two-layer", "residual"]]
    output_scales: Values[float | Sequence[float] | None]
    positive: Values[int | str | Sequence[int | str] | None]
    regime: Values[Literal["rich", "lazy"]]
    seed: Values[int] | str
    share: Values[float]
    slope: Values[float]
    solver: Values[
        Literal[
            "interior-point",
            "highs",
            "cvxpy",
            "cvxpy:CLARABEL",
            "cvxpy:ECOS",
            "cvxpy:SCS",
            "cvxpy:OSQP",
            "cvxpy:HIGHS",
            "cvxpy:COPT",
            "cvxpy:CPLEX",
            "cvxpy:GUROBI",
            "cvxpy:MOSEK",
            "cvxpy:XPRESS",
        ]
    ]
    standardize: Values[bool | None]
    starts: Values[int | None] | str
    steps: Values[int | Sequence[int] | None] | str
    temperature: Values[float | None]
    tol: Values[float]
    trainer: Values[
        Literal[
            "adam",
            "annealed",
            "constant",
            "coordinate",
            "dual",
            "lion",
            "momentum",
            "muon",
            "normalised",
            "sign",
            "signum",
            "smoothed",
            "spectral",
            "newton",
        ]
        | Sequence[
            Literal[
                "adam",
                "annealed",
                "constant",
                "coordinate",
                "dual",
                "lion",
                "momentum",
                "muon",
                "normalised",
                "sign",
                "signum",
                "smoothed",
                "spectral",
            ]
        ]
    ]
    trunk: Values[Literal["trained", "random"]]
    trunk_steps: Values[int] | str
    upper_units: Values[int | None] | str
    weight_decay: Values[float]


# The model, and the values of the options of which the classes in a report depend.
if TYPE_CHECKING:
    ModelT = TypeVar("ModelT", bound=ModelName)
    ClassesT = TypeVar("ClassesT", bound=Literal["two", "all", "joint"], default=Literal["two"])
    NetworkT = TypeVar(
        "NetworkT", bound=Literal["two-layer", "residual"], default=Literal["two-layer"]
    )
    RegimeT = TypeVar("RegimeT", bound=Literal["rich", "lazy"], default=Literal["rich"])
else:  # Python 3.13 is the first whose type variables have defaults
    from typing import TypeVar

    ModelT = TypeVar("ModelT")
    ClassesT = TypeVar("ClassesT")
    NetworkT = TypeVar("NetworkT")
    RegimeT = TypeVar("RegimeT")


class TellingOptions(_PlainChoices, UserData, Generic[ClassesT, NetworkT, RegimeT], total=False):
    """The same, by whose values type checkers know what the report holds."""

    classes: ClassesT
    network: NetworkT
    regime: RegimeT
