"""Data with gates from which `experiments.starts` trains, their limits, and their networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch

from implicit_bias import (
    DGN,
    GLN,
    DeepLinear,
    FReLU,
    HyperplaneContexts,
    Sample,
    load_digits,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
    solve_path_lasso,
)
from implicit_bias.data.made.quadrants import make_quadrants
from implicit_bias.limits.exact.path_limit import PathLimit
from implicit_bias.limits.limit import Limit

# From so many units on, random hyperplanes alone separate the points of the plane now and then.
MANY = 10
DRAWS = 50


@dataclass(frozen=True, eq=False)
class Problem:
    """Data with gates, their limit, and the network that belongs to them.

    The limit of deep gated networks is that of their first hidden layer with linear ones above,
    which are among them if each layer has a unit that is open always: one that separates proves
    that they do. `bound` is theirs.
    """

    train: Sample
    limit: Limit
    network: Callable[..., torch.nn.Module]
    bound: PathLimit | None = None


Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def quadrants(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """200 points of the square, labelled by four tied predictors."""
    return make_quadrants(200, random_state=rng)


def digits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """60 images."""
    dataset = load_digits(n_train=60, n_val=1, random_state=rng)
    return dataset.X_train, dataset.y_train


def gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """120 to 145 samples of 30 inputs with random labels: two units can just separate them."""
    n = int(rng.integers(120, 146))
    return rng.normal(size=(n, 30)), np.sign(rng.normal(size=n))


def few_gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """40 to 48 samples of 30 inputs with random labels: a linear predictor can just do so."""
    n = int(rng.integers(40, 49))
    return rng.normal(size=(n, 30)), np.sign(rng.normal(size=n))


def middle_gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """65 to 80 samples of 30 inputs with random labels: no linear predictor can do so."""
    n = int(rng.integers(65, 81))
    return rng.normal(size=(n, 30)), np.sign(rng.normal(size=n))


def contexts_of(X: np.ndarray, units: int, rng: np.random.Generator) -> np.ndarray:
    """Two contexts a unit: halves of the data or, in the plane, the axes first if units are few."""
    axes = 2 if X.shape[1] == 3 and units < MANY else 0
    halves = HyperplaneContexts(max(units - axes, 1), 2, random_state=rng).fit_transform(X)
    along = HyperplaneContexts(max(axes, 1), 2, cutoffs="axes").fit_transform(X)
    return np.hstack([along[:, :axes], halves[:, : units - axes]])


def gln(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """A GLN."""
    return _gln(X, y, contexts_of(X, units, rng), ())


def deep_gln(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """The same with one more linear layer, as wide."""
    return _gln(X, y, contexts_of(X, units, rng), (units,))


def _gln(X: np.ndarray, y: np.ndarray, contexts: np.ndarray, above: tuple[int, ...]) -> Problem:
    size = (X.shape[1], contexts.shape[1], 2)
    return Problem(
        Sample(X, y, contexts),
        solve_gln_svm(X, y, contexts),
        lambda **start: GLN(*size, upper_widths=above, **start),
    )


def frelu(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """Units that are open in one of their two contexts, and one that is always open."""
    gates = np.hstack([contexts_of(X, units, rng), np.ones((len(X), 1), dtype=np.int64)])
    size = (X.shape[1], units + 1)
    return Problem(
        Sample(X, y, gates), solve_frelu_svm(X, y, gates), lambda **start: FReLU(*size, **start)
    )


def dgn(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """One hidden layer of gated units, and one unit that is always open."""
    return _dgn(X, y, (units,), rng)


def deep_dgn(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """Two such layers, each with gates of its own."""
    return _dgn(X, y, (units, units), rng)


def _dgn(X: np.ndarray, y: np.ndarray, sizes: Sequence[int], rng: np.random.Generator) -> Problem:
    always = np.ones((len(X), 1), dtype=np.int64)
    layers = [np.hstack([contexts_of(X, units, rng), always]) for units in sizes]
    gates, widths = np.hstack(layers), tuple(units + 1 for units in sizes)
    return Problem(
        Sample(X, y, gates),
        solve_frelu_svm(X, y, layers[0]),
        lambda **start: DGN(X.shape[1], widths=widths, **start),
        solve_path_lasso(X, y, gates, widths=widths),
    )


def deep_linear(X: np.ndarray, y: np.ndarray, units: int, rng: np.random.Generator) -> Problem:
    """Three linear layers, two of this width."""
    return Problem(
        Sample(X, y, None),
        solve_linear_svm(X, y),
        lambda **start: DeepLinear(X.shape[1], hidden_widths=(units, units), **start),
    )


KINDS: Mapping[str, tuple[Callable[..., Problem], Draw]] = MappingProxyType(
    {
        "gln quadrants": (gln, quadrants),
        "gln gaussian": (gln, gaussian),
        "gln digits": (gln, digits),
        "frelu quadrants": (frelu, quadrants),
        "frelu gaussian": (frelu, gaussian),
        "frelu digits": (frelu, digits),
        "deep-gln gaussian": (deep_gln, gaussian),
        "deep-linear gaussian": (deep_linear, few_gaussian),
        "deep-linear digits": (deep_linear, digits),
        "dgn gaussian": (dgn, middle_gaussian),
        "deep-dgn gaussian": (deep_dgn, middle_gaussian),
    }
)


def problem(kind: str, units: int, seed: int) -> Problem:
    """The first draw, among those of `seed`, that this network can separate."""
    make, draw = KINDS[kind]
    for rng in np.random.default_rng(seed).spawn(DRAWS):
        drawn = make(*draw(rng), units, rng)
        if drawn.limit.certificate.proves_separability():
            return drawn
    raise RuntimeError(f"{kind}, {units} units: none of {DRAWS} draws of seed {seed} is separable")
