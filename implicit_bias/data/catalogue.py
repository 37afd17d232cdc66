"""Data by name or by file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door
from .._support.words import nearest
from .bundled import DEFAULT_POSITIVE, TABLES, bundled_table
from .dataset import Dataset
from .images import halves, load_digit_classes, load_idx_classes
from .labelled import ClassDataset
from .names import NAMES, is_file
from .preprocessing import Preprocessing, check_no_contradiction
from .splitting import split
from .table import Table

IMAGES = 500
PLANE = 100  # more would hide the decision map that they are drawn on
FEW = 20  # so many are nearly orthogonal
# Share of a file or a table that is trained on by default, and the most samples. The KKT distance,
# which every run measures, takes seconds for thousands of samples and grows like their cube.
TRAIN_SHARE, MAX_TRAIN = 0.75, 1000

Folder = str | os.PathLike[str] | None
Rows = NDArray[np.int64]


class Loading(TypedDict, total=False):
    """Keywords of `load_data` and `load_class_data`.

    Attributes
    ----------
    data_dir : path
        Folder of the IDX files of "mnist".
    label : str
        Column of a table, or array of an .npz file, that holds the labels.
    positive : word or whole number, or a sequence of them
        Labels that are +1, all others being -1. By default the second of two, digits 0 to 4, and
        the first of the three classes of iris and wine.
    standardize : bool
        Whether the mean of every column is subtracted and its standard deviation divided by, both
        of the training part. True by default for tables that scikit-learn bundles.
    constant : bool
        Whether a constant 1 is appended as the last column. True by default for bundled data and
        IDX files, False for other files; drawn data have one of their own.
    n_train, n_val : int
        Sizes of the parts: by default 500 images, 100 points of the plane, three quarters of a
        table or file but at most 1000, and all the rest for validation.
    random_state : int
        Source of the split, or of drawn data; 0 by default.

    Examples
    --------
    >>> how: ib.datasets.Loading = {"n_train": 20, "random_state": 1}
    >>> ib.load_data("iris", **how).X_train.shape
    (20, 5)
    """

    data_dir: Folder
    label: str | None
    positive: Sequence[str | int] | str | int | None
    standardize: bool | None
    constant: bool | None
    n_train: int | None
    n_val: int | None
    random_state: int


class _Wanted(SimpleNamespace):
    """The keywords of `Loading`, with defaults."""

    def sizes(self, n_train: int, n_val: int | None) -> dict[str, Any]:
        """Return the sizes of the parts, these by default, and the seed."""
        return {
            "n_train": self.n_train or n_train,
            "n_val": self.n_val or n_val,
            "random_state": self.random_state,
        }

    def refuse(self, data: str, names: Sequence[str], reason: str) -> None:
        """Raise ValueError for the first of `names` that was given, for this reason."""
        for name in names:
            if getattr(self, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"`{option}` is not for `--data {data}`, {reason}: leave it out")


def _read(choices: Loading) -> _Wanted:
    known = Loading.__annotations__
    for name in choices:
        if name not in known:
            raise TypeError(f"there is no option {name!r} of data{nearest(name, known)}")
    return _Wanted(**{**dict.fromkeys(known), "random_state": 0, **choices})


# Data drawn with labels, scale and bias of their own: default sizes, and the function that draws.
DRAWN: Mapping[str, tuple[tuple[int, int], str]] = MappingProxyType(
    {
        "orthants": ((IMAGES, 2 * IMAGES), f"{__package__}.made.orthants:orthosep_dataset"),
        "near-orthogonal": (
            (FEW, 2 * IMAGES),
            f"{__package__}.made.near_orthogonal:near_orthogonal_dataset",
        ),
        "circle": ((PLANE, 10 * PLANE), f"{__package__}.made.circle:circle_dataset"),
        "quadrants": ((PLANE, 10 * PLANE), f"{__package__}.made.quadrants:quadrant_dataset"),
    }
)
IMAGE_SETS = ("digits", "mnist")


@door()
def load_data(data: str | os.PathLike[str], **choices: Unpack[Loading]) -> Dataset:
    """Load data of two classes: a bundled set, images in IDX files, or a file of your own.

    Parameters
    ----------
    data : str or path
        A name, "digits", "iris", "wine", "breast-cancer", "mnist", "orthants",
        "near-orthogonal", "quadrants" or "circle"; or a file: .npz with the arrays X and y, the
        X.npy of a pair X.npy and y.npy, .csv whose first line names the columns, .parquet; or a
        folder of IDX files.
    **choices : Loading
        `data_dir`, `label`, `positive`, `standardize`, `constant`, `n_train`, `n_val` and
        `random_state`: labels, preprocessing and sizes.

    Returns
    -------
    Dataset
        Its description names the preprocessing.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there are no such data, or not enough of them; if numbers or labels are missing, equal
        inputs have different labels, or there are more than two classes and `positive` is not
        given.
    MissingExtra
        If a .csv or .parquet file needs packages that are not installed.

    Examples
    --------
    >>> ib.load_data("wine", positive=["class_2"], n_train=100).X_train.shape
    (100, 14)
    """
    name, wanted = os.fspath(data), _read(choices)
    if name in DRAWN:
        own = ("data_dir", "label", "positive", "standardize", "constant")
        wanted.refuse(name, own, "which is drawn with labels and scale of its own")
        sizes, draw = DRAWN[name]
        dataset: Dataset = resolve_name(draw)(**wanted.sizes(*sizes))
    else:
        classes, rows = _classes(name, wanted)
        positive = DEFAULT_POSITIVE.get(name) if wanted.positive is None else wanted.positive
        dataset = _binary(classes, positive, by_halves=rows is None and positive is None)
        if rows is not None:
            check_no_contradiction(dataset.X_train, dataset.y_train, rows)
    _check_held_out(len(dataset.y_train), len(dataset.y_val))
    return dataset


@door()
def load_class_data(data: str | os.PathLike[str], **choices: Unpack[Loading]) -> ClassDataset:
    """Load data with all their classes, for one-vs-rest classification.

    Parameters
    ----------
    data : str or path
        A name, "digits", "iris", "wine", "breast-cancer" or "mnist"; or a file, .npz, .npy, .csv or
        .parquet; or a folder of IDX files, as `load_data` takes them.
    **choices : Loading
        `data_dir`, `label`, `standardize`, `constant`, `n_train`, `n_val` and `random_state`.

    Returns
    -------
    ClassDataset

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there are no such data, or not enough of them; if numbers or labels are missing, equal
        inputs have different labels, or the training part lacks a class.
    MissingExtra
        If a .csv or .parquet file needs packages that are not installed.

    Examples
    --------
    >>> data = ib.datasets.load_class_data("iris", n_train=100)
    >>> data.classes, data.name_of(2)
    ((0, 1, 2), 'virginica')
    """
    name, wanted = os.fspath(data), _read(choices)
    if name in DRAWN:
        several = [known for known in NAMES if known not in DRAWN]
        raise ValueError(
            "`--classes all` needs data of several classes, "
            f"{' or '.join(f'`--data {known}`' for known in several)} or a file, got {name!r}"
        )
    if wanted.positive is not None:
        raise ValueError("`--positive` names one of two labels: leave it out of `--classes all`")
    dataset, rows = _classes(name, wanted)
    if rows is not None:
        check_no_contradiction(dataset.X_train, dataset.labels_train, rows)
    _check_held_out(len(dataset.labels_train), len(dataset.labels_val))
    check_classes(dataset)
    return dataset


def check_classes(dataset: ClassDataset) -> None:
    """Check that the training part has all of several classes; raises ValueError if not."""
    if len(dataset.classes) < 2:
        raise ValueError(f"the labels have one class only, {dataset.name_of(dataset.classes[0])!r}")
    missing = sorted(set(dataset.classes) - set(dataset.labels_train.tolist()))
    if missing:
        raise ValueError(
            f"the training part has no sample of class {', '.join(map(dataset.name_of, missing))}: "
            "give a larger `--n-train` or another `--seed`"
        )


def _classes(name: str, wanted: _Wanted) -> tuple[ClassDataset, Rows | None]:
    """The samples with their classes, and the rows of a table that are trained on."""
    folder = _folder(name, wanted)
    if folder is not None or name in IMAGE_SETS:
        wanted.refuse(name, ("label",), "which has no columns to name")
        return _images(folder, wanted), None
    own = is_file(name)
    default = not own  # files are taken as they are
    preprocessing = Preprocessing(
        default if wanted.standardize is None else wanted.standardize,
        default if wanted.constant is None else wanted.constant,
    )
    return _split_table(_table(name, wanted), preprocessing, wanted)


def _folder(name: str, wanted: _Wanted) -> Path | None:
    """The folder of IDX files, where data are one."""
    if name == "mnist":
        if wanted.data_dir is None:
            raise ValueError("`--data mnist` needs `--data-dir DIR`, the folder of its IDX files")
        return Path(wanted.data_dir)
    if wanted.data_dir is not None:
        raise ValueError(
            f"`--data-dir {os.fspath(wanted.data_dir)}` is for `--data mnist`, the files of a "
            "folder: give both, or leave it out"
        )
    return Path(name) if is_file(name) and Path(name).is_dir() else None


def _table(name: str, wanted: _Wanted) -> Table:
    if is_file(name):
        from .files.readers import read_table

        return read_table(Path(name), wanted.label)
    if name not in TABLES:
        raise ValueError(
            f"`data` must be one of {', '.join(NAMES)} or a file, got {name!r}"
            f"{nearest(name, NAMES)}"
        )
    wanted.refuse(name, ("label",), "whose labels are known")
    return bundled_table(name)


def _binary(classes: ClassDataset, positive: Any, *, by_halves: bool) -> Dataset:
    """Return the data with two labels: of digits by halves, or of the classes that are +1."""
    if by_halves:
        return halves(classes)
    from .files.binary import with_binary_labels

    return with_binary_labels(classes, positive)


def _images(folder: Path | None, wanted: _Wanted) -> ClassDataset:
    constant = wanted.constant is not False
    plain = constant and not wanted.standardize  # as the images have it themselves
    how = {**wanted.sizes(IMAGES, None), "constant": plain}
    dataset = load_digit_classes(**how) if folder is None else load_idx_classes(folder, **how)
    if not wanted.standardize:
        return dataset
    preprocessing = Preprocessing(True, constant)
    pixels = [f"pixel {d}" for d in range(dataset.X_train.shape[1])]
    X_train, X_val = preprocessing.apply(dataset.X_train, dataset.X_val, pixels)
    source = f"{dataset.source}, {preprocessing.text}"
    return replace(dataset, X_train=X_train, X_val=X_val, source=source)


def _split_table(
    table: Table, preprocessing: Preprocessing, wanted: _Wanted
) -> tuple[ClassDataset, Rows]:
    n_train = min(max(1, round(TRAIN_SHARE * len(table.X))), MAX_TRAIN)
    if wanted.n_val is not None and wanted.n_train is None:
        n_train = max(1, min(n_train, len(table.X) - wanted.n_val))
    sizes = wanted.sizes(n_train, None)
    train, val = split(len(table.X), **sizes)
    X_train, X_val = preprocessing.apply(table.X[train], table.X[val], table.columns)
    labels = table.labels[train], table.labels[val]
    source = f"{table.source}, {preprocessing.text}"
    return ClassDataset(
        table.name, X_train, labels[0], X_val, labels[1], source, table.names
    ), train


def _check_held_out(n_train: int, n_val: int) -> None:
    if n_val == 0:
        raise ValueError(
            f"`--n-train {n_train}` leaves no held-out samples to compare on: train on fewer"
        )
