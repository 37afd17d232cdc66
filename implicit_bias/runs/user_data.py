"""Data and gates that a user brings in place of a model's own."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.kinds import on_host
from .._support.solve import to_numpy
from ..data.catalogue import check_classes, load_class_data, load_data
from ..data.dataset import Dataset, digest, frozen
from ..data.labelled import ClassDataset
from ..data.splitting import parts_text
from ..options.fields import Options
from .model import Model
from .seeds import Seeds

USERS_OWN = "given"  # the value of the options `data`, `gating` in the record of such a run
TRAINED = 0.75  # the share of the samples that are trained on, where nothing says how many
ARRAYS = ("X", "y", "X_val", "y_val", "queries")
# Options by which files are read and prepared.
OF_FILES = ("label", "positive", "standardize", "constant")
# Options that follow from data and gates of a user, so that they cannot be chosen as well.
OF_DATA = ("data", "data_dir", *OF_FILES, "n_train", "n_val")
OF_GATING = ("hidden_units", "contexts", "cutoffs", "slope")


@dataclass(frozen=True, eq=False)
class UserData:
    """Data and gates of a user, checked; nothing of a run on data and gates of the model.

    Attributes
    ----------
    X, y, queries : arrays or None
        Samples of a model that holds none out, as they came, and what sequences are asked with.
    dataset : Dataset, ClassDataset or None
        The samples of all other models.
    gating : fitted transformer or None
    gates : pair of (n, H) and (m, H) arrays, or None
        Those of the training and of the held-out inputs: int64, float64 of leaky units.
    """

    X: Any = None
    y: Any = None
    queries: Any = None
    dataset: Dataset | ClassDataset | None = None
    gating: Any = None
    gates: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def widths(self) -> tuple[int, ...] | None:
        """Units of every layer, where the gating says so; None otherwise."""
        widths = getattr(self.gating, "widths_", getattr(self.gating, "widths", None))
        return None if widths is None else tuple(int(width) for width in widths)

    @property
    def record(self) -> dict[str, Any]:
        """The name and digest of the gating, for the record of a run; empty without one."""
        if self.gates is None:
            return {}
        about = {"name": type(self.gating).__name__, "sha256": digest(*self.gates)}
        return {"gating": about | {"n_units": self.gates[0].shape[1]}}


def bind_data(
    model: Model, provided: Mapping[str, Any], choices: Mapping[str, Any]
) -> tuple[UserData, Options]:
    """Check data and gates of a user, and fill in the options that follow from them.

    Parameters
    ----------
    model : Model
    provided : mapping
        Data and gates: those of `X`, `y`, `X_val`, `y_val`, `data` and `gating` that there are.
    choices : mapping
        Options that the user has set.

    Raises
    ------
    TypeError, ValueError
        If the model does not take them, a choice contradicts them, or they are no such things.
    """
    _check_taken(model, provided, choices)
    options: Any = model.choose(**choices)
    given = UserData()
    if len(provided) > ("gating" in provided):
        # The model's own sizes are of bundled data.
        sizes = {"n_train", "n_val"} & set(model.option_names)
        unset = {name: None for name in sizes if choices.get(name) is None}
        options = replace(options, **unset)
        given, follow = _read_data(model, options, provided)
        options = replace(options, data=USERS_OWN, **follow)
    if "gating" in provided:
        given = _with_gating(given, model, options, provided["gating"])
        if "gating" in model.option_names and "depth" in choices and given.widths is not None:
            raise ValueError("`depth` follows from the layers of your `gating`: leave it out")
        options = replace(options, **_derived(given, options))
    return given, options


def load_chosen(options: Any) -> Dataset | ClassDataset:
    """Load the data that the options name, of two labels or with all classes.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, MissingExtra
        If the data are not there, an option is out of range, or a package is not installed.
    """
    load = load_class_data if _several(options) else load_data
    choices = {name: getattr(options, name) for name in OF_DATA if name != "data"}
    return load(options.data, **choices, random_state=Seeds.from_seed(options.seed).data)


def gates_of(gating: Any, X: Any) -> Any:
    """Return the gates of inputs (n, D), (n, H); None without a gating.

    They are whole numbers; of leaky units their slope or 1, in float64.

    Raises
    ------
    ValueError
        If the fitted gating returns anything else.
    """
    if gating is None:
        return None
    try:
        gates = np.asarray(to_numpy(gating.transform(X)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"`gating` cannot transform inputs of shape {X.shape}: {error}") from error
    shape = gates.shape
    if len(shape) != 2 or shape[0] != len(X) or shape[1] < 1 or gates.dtype.kind not in "biuf":
        raise ValueError(
            f"`gating` must transform inputs {X.shape} into numbers ({len(X)}, H), a column a "
            f"unit, got shape {shape} of {gates.dtype}"
        )
    whole = gates.astype(np.int64)
    if 0 < gates.min() < 1 and set(np.unique(gates)) <= {gates.min(), 1}:
        return gates.astype(np.float64)
    if (whole != gates).any() or whole.min() < 0:
        raise ValueError(
            "`gating` must give whole numbers from 0 on, the context of every unit or whether its "
            "gate is open, or 1 and one slope in (0, 1) of leaky units, got "
            f"{gates[(whole != gates) | (whole < 0)][0]:g}"
        )
    return whole


def _slope(gates: Sequence[NDArray[Any]]) -> float:
    """Return the slope of closed gates of leaky units; 0 of others."""
    least = min(float(part.min()) for part in gates)
    return least if least < 1 else 0.0


def _check_taken(model: Model, provided: Mapping[str, Any], choices: Mapping[str, Any]) -> None:
    names = [name for name in provided if name != "gating"]
    asked = ("queries", ["queries"], ())
    for kind, of_kind, follow in (
        ("data", names, OF_DATA), asked, ("gating", ["gating"], OF_GATING)
    ):  # fmt: skip
        if not of_kind or of_kind[0] not in provided:
            continue
        reason = model.refusal(kind)
        if reason:
            raise ValueError(f"the model {model.name} takes no `{of_kind[0]}`: {reason}")
        # Samples without held-out ones are split here, in the sizes that are asked for.
        free = {"n_train", "n_val"} if "X" in provided and "X_val" not in provided else set()
        for name in (name for name in follow if name in choices and name not in free):
            if name in OF_FILES:
                raise ValueError(f"`{name}` is of data by name or file: prepare your own before")
            raise ValueError(f"`{name}` follows from `{of_kind[0]}` of your own: leave it out")


def _read_data(
    model: Model, options: Any, provided: Mapping[str, Any]
) -> tuple[UserData, dict[str, int]]:
    """Return the samples, and the options that follow from them."""
    if "data" in provided and any(name in provided for name in ARRAYS):
        raise ValueError("`data` and arrays were both given: give a Dataset, or `X` and `y`")
    if "n_val" not in model.option_names:
        X, y = _all_samples(model, provided)
        if options.n_train is not None:
            raise ValueError("`n_train` follows from `X` of your own: leave it out")
        queries = provided.get("queries")
        own = None if queries is None else on_host("queries", queries)
        return UserData(X=X, y=y, queries=own), {"n_train": len(X)}
    dataset = provided["data"] if "data" in provided else _split(options, provided)
    wanted = ClassDataset if _several(options) else Dataset
    if not isinstance(dataset, wanted):
        raise TypeError(
            f"`data` must be the name of bundled data or a {wanted.__name__} "
            f"(classes={getattr(options, 'classes', 'two')!r}), got {type(dataset).__name__}: give "
            "arrays as `X` and `y`"
        )
    n_train, n_val = len(dataset.X_train), len(dataset.X_val)
    if n_val == 0:
        raise ValueError("there are no held-out samples to compare on: give `X_val` and `y_val`")
    if isinstance(dataset, ClassDataset):
        check_classes(dataset)
    return UserData(dataset=dataset), {"n_train": n_train, "n_val": n_val}


def _all_samples(model: Model, provided: Mapping[str, Any]) -> tuple[Any, Any]:
    if "data" in provided or "X_val" in provided or "y_val" in provided:
        raise ValueError(
            f"the model {model.name} holds no samples out: give all of them as `X` and `y`"
        )
    return _pair(provided, "X", "y")


def _split(options: Any, provided: Mapping[str, Any]) -> Dataset | ClassDataset:
    """Return both parts of the data; one array without held-out ones is cut at random."""
    X, y = _pair(provided, "X", "y")
    if "X_val" in provided or "y_val" in provided:
        return _dataset(options, (X, y, *_pair(provided, "X_val", "y_val")))
    X, y = frozen("X", X, 2), np.asarray(to_numpy(y))
    n_train = options.n_train or max(1, round(TRAINED * len(X)))
    n_val = options.n_val or len(X) - n_train
    if y.shape != (len(X),):
        raise ValueError(f"`y` must have shape ({len(X)},), one label a row of `X`, got {y.shape}")
    if n_train + n_val > len(X) or n_val < 1:
        raise ValueError(
            f"`X` has {len(X)} samples, too few for {n_train} to train on and at least one to "
            "hold out: give more, a smaller `n_train`, or `X_val` and `y_val`"
        )
    order = np.random.default_rng(Seeds.from_seed(options.seed).data).permutation(len(X))
    train, held_out = order[:n_train], order[len(X) - n_val :]
    return _dataset(options, (X[train], y[train], X[held_out], y[held_out]))


def _several(options: Any) -> bool:
    """Return whether the options ask for data of several classes."""
    return getattr(options, "classes", "two") != "two"


def _pair(provided: Mapping[str, Any], X: str, y: str) -> tuple[Any, Any]:
    for name in (X, y):
        if name not in provided:
            raise ValueError(f"`{name}` is missing: give `{X}` (n, D) and `{y}` (n,) together")
    return on_host(X, provided[X]), on_host(y, provided[y])


def _dataset(options: Any, arrays: tuple[Any, Any, Any, Any]) -> Dataset | ClassDataset:
    if _several(options):
        return ClassDataset(USERS_OWN, *arrays, "data of the caller's own")
    n_train, n_val = len(arrays[0]), len(arrays[2])
    about = f"data of the caller's own; {parts_text(n_train, n_val)}"
    classes = np.unique(arrays[1])
    if len(classes) < 2:
        raise ValueError(
            f"`y` must hold both classes, -1 and +1, got {classes.tolist()} only in the part "
            "that is trained on: give samples of the other, or a larger `n_train`"
        )
    return Dataset(USERS_OWN, *arrays, about)


def _with_gating(given: UserData, model: Model, options: Any, gating: Any) -> UserData:
    """Add the gating, fitted on the training inputs and tried on both parts."""
    dataset = given.dataset or load_chosen(options)
    fitted = _fitted(gating, dataset.X_train)
    gates = gates_of(fitted, dataset.X_train), gates_of(fitted, dataset.X_val)
    widths = [part.shape[1] for part in gates]
    if widths[0] != widths[1]:
        raise ValueError(
            f"`gating` gives {widths[0]} columns for training and {widths[1]} for held-out inputs"
        )
    largest = int(max(part.max() for part in gates))
    if "contexts" not in model.option_names and largest > 1:
        raise ValueError(
            f"`gating` of the model {model.name} must give gates in {{0, 1}}, got {largest}: take "
            "HyperplaneGates, or a model with contexts"
        )
    if _slope(gates) and "slope" not in model.option_names:
        raise ValueError(
            f"`gating` of the model {model.name} must give whole numbers, got {_slope(gates):g}: "
            "leaky units are those of the model frelu"
        )
    return replace(given, dataset=dataset, gating=fitted, gates=gates)


def _fitted(gating: Any, X: Any) -> Any:
    if isinstance(gating, type) or not hasattr(gating, "transform"):
        raise TypeError(
            "`gating` must have `transform(X)`, like HyperplaneContexts(10, 2), got "
            f"{gating if isinstance(gating, type) else type(gating)}"
        )
    if _is_fitted(gating):
        return gating
    try:
        return copy.deepcopy(gating).fit(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`gating` cannot be fitted on inputs {X.shape}: {error}") from error


def _is_fitted(gating: Any) -> bool:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(gating, BaseEstimator):
        # By scikit-learn's convention, what fitting has found ends in an underscore.
        known = vars(gating) if hasattr(gating, "__dict__") else ()
        return not hasattr(gating, "fit") or any(name.endswith("_") for name in known)
    try:
        check_is_fitted(gating)
    except NotFittedError:
        return False
    return True


def _derived(given: UserData, options: Any) -> dict[str, Any]:
    """Return the options that follow from a gating: by its attributes, or by its gates."""
    from ..gates.hyperplanes import HyperplaneContexts, HyperplaneGates  # with scikit-learn

    assert given.gates is not None
    gating, n_columns = given.gating, given.gates[0].shape[1]
    known = isinstance(gating, HyperplaneContexts | HyperplaneGates)
    values = {
        # Without the unit that is always open, as the option counts them.
        "hidden_units": gating.n_units if isinstance(gating, HyperplaneGates) else n_columns,
        "contexts": getattr(gating, "n_contexts", 0) or 1 + max(int(g.max()) for g in given.gates),
        "cutoffs": gating.cutoffs if known else None,
        "slope": _slope(given.gates),
        "gating": USERS_OWN,
    }
    return {name: value for name, value in values.items() if hasattr(options, name)}
