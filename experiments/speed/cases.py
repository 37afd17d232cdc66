"""The programs that solvers are timed on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import implicit_bias as ib
from implicit_bias.data.made.pairs import load_pair
from implicit_bias.limits.exact.frelu import SVMFReLU
from implicit_bias.limits.exact.linear import HardMarginSVM
from implicit_bias.models.gln.formulation import SVMGLN
from solvers import MaxMarginProgram

Array = np.ndarray[Any, np.dtype[np.float64]]
Case = Callable[[], MaxMarginProgram]

SEED = 1
PAIRS = ((0, 1), (3, 8), (4, 9))


def pair_program(data_dir: Path | None, classes: tuple[int, int]) -> MaxMarginProgram:
    """Every image of one digit against every one of another: pixels in [0, 1] and a constant."""
    data = load_pair(data_dir, classes=classes, n_train=50)
    X = np.concatenate([data.X_train, data.X_val])
    return HardMarginSVM().program((X + 1) / 2, np.concatenate([data.y_train, data.y_val]))


def halves(data_dir: Path | None, n: int, *, seed: int = SEED) -> tuple[Array, Array]:
    """`n` images, or all, digits 0 to 4 against 5 to 9, pixels in [-1, 1] and a constant."""
    if data_dir is None:
        data = ib.load_digits(n_train=n, n_val=0, random_state=seed)
    else:
        data = ib.datasets.load_idx(data_dir, n_train=n, n_val=0, random_state=seed)
    return data.X_train, data.y_train


def halves_program(data_dir: Path | None, n: int) -> MaxMarginProgram:
    """Linear."""
    return HardMarginSVM().program(*halves(data_dir, n))


def halves_gln(data_dir: Path | None, size: tuple[int, int, int]) -> MaxMarginProgram:
    """SVM-GLN in median contexts, of size (H, C, n)."""
    n_units, n_contexts, n = size
    X, y = halves(data_dir, n)
    contexts = ib.HyperplaneContexts(n_units, n_contexts, random_state=SEED).fit_transform(X)
    return SVMGLN(n_contexts).program(X, y, contexts)


def gaussian_gates(X: Array, n_units: int) -> Array:
    """Gates (n, H) of random Gaussian units."""
    weights = np.random.default_rng(SEED).normal(size=(n_units, X.shape[1]))
    gates: Array = ib.gates.ReLUGates(weights).fit_transform(X)
    return gates


def halves_frelu(data_dir: Path | None, n: int, n_units: int) -> MaxMarginProgram:
    """SVM-FReLU behind the gates of random Gaussian units."""
    X, y = halves(data_dir, n)
    return SVMFReLU().program(X, y, gaussian_gates(X, n_units))


def gaussian_program(n: int, n_inputs: int) -> MaxMarginProgram:
    """Linear: Gaussian inputs, the labels of a random direction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_inputs))
    return HardMarginSVM().program(X, np.sign(X @ rng.normal(size=n_inputs)))


def peer_cases(data_dir: Path | None) -> dict[str, Case]:
    """By name: on the bundled digits, and on the images in `data_dir` if one is given."""
    cases: dict[str, Case] = {}
    for folder, images in ((None, "digits"), (data_dir, "images")):
        if folder is None and images == "images":
            continue
        for a, b in PAIRS:
            cases[f"linear, {images} {a}/{b}"] = partial(pair_program, folder, (a, b))
    if data_dir is not None:
        cases["linear, images, halves, n = 700"] = partial(halves_program, data_dir, 700)
    cases["linear, Gaussian, 20,000 x 50"] = partial(gaussian_program, 20_000, 50)
    cases["FReLU, digits, H = 20, n = 500"] = partial(halves_frelu, None, 500, 20)
    cases["GLN, digits, (10, 2, 500)"] = partial(halves_gln, None, (10, 2, 500))
    if data_dir is not None:
        for size in ((20, 2, 1000), (100, 4, 2000)):
            cases[f"GLN, images, {size}"] = partial(halves_gln, data_dir, size)
    return cases
