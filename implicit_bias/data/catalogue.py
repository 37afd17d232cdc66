"""Data sets by name, as a run asks for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .circle import circle_dataset
from .dataset import Dataset
from .images import load_digit_classes, load_digits, load_idx, load_idx_classes
from .labelled import ClassDataset
from .orthants import orthosep_dataset
from .quadrants import quadrant_dataset

__all__ = ["CLASS_DATA", "DATA", "check_classes", "load_class_data", "load_data"]

IMAGES = 500
PLANE = 100  # more would hide the decision map that they are drawn on

Folder = str | os.PathLike[str] | None
Sizes = Mapping[str, Any]  # n_train, n_val, random_state


def _from_folder(load: Callable[..., Any]) -> Callable[[Folder, Sizes], Any]:
    def loader(folder: Folder, sizes: Sizes) -> Any:
        if folder is None:
            raise ValueError("`--data mnist` needs `--data-dir DIR`, the folder of its IDX files")
        return load(folder, **_filled(sizes, IMAGES, None))

    return loader


def _bundled(
    load: Callable[..., Any], n_train: int, n_val: int | None
) -> Callable[[Folder, Sizes], Any]:
    def loader(folder: Folder, sizes: Sizes) -> Any:
        if folder is not None:
            raise ValueError(
                f"`--data-dir {os.fspath(folder)}` is for `--data mnist`, the files of a folder: "
                "give both, or leave it out"
            )
        return load(**_filled(sizes, n_train, n_val))

    return loader


def _filled(sizes: Sizes, n_train: int, n_val: int | None) -> dict[str, Any]:
    return dict(sizes) | {
        "n_train": sizes["n_train"] or n_train,
        "n_val": sizes["n_val"] or n_val,
    }


DATA: Mapping[str, Callable[[Folder, Sizes], Dataset]] = MappingProxyType(
    {
        "digits": _bundled(load_digits, IMAGES, None),
        "mnist": _from_folder(load_idx),
        "orthants": _bundled(orthosep_dataset, IMAGES, 2 * IMAGES),
        "circle": _bundled(circle_dataset, PLANE, 10 * PLANE),
        "quadrants": _bundled(quadrant_dataset, PLANE, 10 * PLANE),
    }
)
CLASS_DATA: Mapping[str, Callable[[Folder, Sizes], ClassDataset]] = MappingProxyType(
    {
        "digits": _bundled(load_digit_classes, IMAGES, None),
        "mnist": _from_folder(load_idx_classes),
    }
)


def load_data(
    name: str,
    *,
    folder: Folder = None,
    n_train: int | None = None,
    n_val: int | None = None,
    random_state: int = 0,
) -> Dataset:
    """The data set of that name, in sizes of its own where none are given.

    Parameters
    ----------
    name : str
        In `DATA`.
    folder : path, optional
        Of the files, for the sets that are read from files.
    n_train, n_val : int, optional
    random_state : int

    Raises
    ------
    ValueError, FileNotFoundError
        If there are no such data, or not enough of them.
    """
    sizes = {"n_train": n_train, "n_val": n_val, "random_state": random_state}
    dataset = DATA[name](folder, sizes)
    _check_held_out(len(dataset.y_train), len(dataset.y_val))
    return dataset


def load_class_data(
    name: str,
    *,
    folder: Folder = None,
    n_train: int | None = None,
    n_val: int | None = None,
    random_state: int = 0,
) -> ClassDataset:
    """The data set of that name with its classes; arguments as in `load_data`.

    Raises
    ------
    ValueError, FileNotFoundError
        If there are no such data, they have two labels only, or a class or part is missing.
    """
    if name not in CLASS_DATA:
        raise ValueError(
            "`--classes all` needs data of several classes, "
            f"{' or '.join(f'`--data {known}`' for known in CLASS_DATA)}, got {name!r}"
        )
    sizes = {"n_train": n_train, "n_val": n_val, "random_state": random_state}
    dataset = CLASS_DATA[name](folder, sizes)
    _check_held_out(len(dataset.labels_train), len(dataset.labels_val))
    check_classes(dataset)
    return dataset


def check_classes(dataset: ClassDataset) -> None:
    """See that every class can be trained on; raises ValueError if one is held out alone."""
    missing = sorted(set(dataset.classes) - set(dataset.labels_train.tolist()))
    if missing:
        raise ValueError(
            f"the training part has no sample of class {', '.join(map(str, missing))}: "
            "give a larger `--n-train` or another `--seed`"
        )


def _check_held_out(n_train: int, n_val: int) -> None:
    if n_val == 0:
        raise ValueError(
            f"`--n-train {n_train}` leaves no held-out samples to compare on: train on fewer"
        )
