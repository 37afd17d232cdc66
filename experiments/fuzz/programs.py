"""Random small programs of every kind that the structured solver takes, easy and hard ones.

A seed draws a kind (which design), a twist (what is hard about the data) and a setting (which of
the solver's working sets is used).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from implicit_bias.limits.exact.frelu import SVMFReLU
from implicit_bias.limits.exact.l1 import L1Margin
from implicit_bias.limits.exact.linear import HardMarginSVM
from implicit_bias.models.gln.formulation import SVMGLN
from implicit_bias.models.gln.l2 import SVML2
from implicit_bias.models.gln.shallow import ContextSVMs
from implicit_bias.models.orthosep import OrthogonallySeparable
from solvers import GatedDesign, MaxMarginProgram, Settings

Array = np.ndarray[Any, np.dtype[np.float64]]
Generator = np.random.Generator


@dataclass(frozen=True)
class Drawn:
    """A program, how it came about, and whether it is separable if that is known by construction.

    `separable` is None where nothing but a solver can tell.
    """

    seed: int
    kind: str
    twist: str
    setting: str
    program: MaxMarginProgram
    settings: Settings
    separable: bool | None


def draw(seed: int) -> Drawn:
    """The program of `seed`: always the same."""
    rng = np.random.default_rng(seed)
    twists = TIED if rng.random() < TIES else TWISTS
    kind, twist, setting = (str(rng.choice(list(names))) for names in (KINDS, twists, SETTINGS))
    design = KINDS[kind](rng, _inputs(rng, twist)).design
    design, y, separable = TWISTS[twist](rng, design, *_labels(rng, design, kind, twist))
    return Drawn(
        seed, kind, twist, setting, MaxMarginProgram(design, y), SETTINGS[setting], separable
    )


SETTINGS = {
    "all at once": Settings(),
    "samples": Settings(working_set_from=1),
    "groups": Settings(group_set_from=1),
    "loose": Settings(tol=1e-4),
}


# The share that is tied for certain: an active set meets its exceptional cases on exact ties.
TIES = 0.4
# Twists whose inputs are exactly tied, and the entries that these are drawn from.
TIED = {
    "ties": [-2.0, -1.0, 0.0, 1.0, 2.0],
    "bits": [0.0, 1.0],
    "signs": [-1.0, 1.0],
    "tied duplicates": [-1.0, 0.0, 1.0],
}


def _inputs(rng: Generator, twist: str) -> Array:
    """(n, D): wide, square or tall; few and tied, none of them zero, where ties are asked for."""
    if twist in TIED:
        X = rng.choice(TIED[twist], size=(int(rng.integers(2, 17)), int(rng.integers(1, 8))))
        X[~X.any(axis=1), 0] = 1.0
        return np.asarray(X)
    return rng.normal(size=(int(rng.integers(2, 40)), int(rng.integers(1, 15))))


def _labels(
    rng: Generator, design: GatedDesign, kind: str, twist: str
) -> tuple[Array, bool | None]:
    """A teacher's labels, or those of a coin now and then; of margins against others all +1.

    The teacher of tied inputs is tied as well: samples of score 0 are labelled by the coin.
    """
    shape = design.Z.shape[1], design.X.shape[1]
    tied = twist in TIED
    scores = design.scores(
        rng.integers(-1, 2, size=shape).astype(float) if tied else rng.normal(size=shape)
    )
    if kind.startswith("classes"):
        return np.ones(len(scores)), None
    coin = rng.choice([-1.0, 1.0], size=len(scores))
    if rng.random() < 0.2:
        return coin, None
    return np.where(scores == 0, coin, np.sign(scores)), None if np.any(scores == 0) else True


# Kinds: programs whose labels are drawn anew.


def _coin(rng: Generator, X: Array) -> Array:
    return np.asarray(rng.choice([-1.0, 1.0], size=len(X)))


def _contexts(rng: Generator, X: Array) -> tuple[Any, int]:
    n_contexts = int(rng.integers(1, 5))
    return rng.integers(0, n_contexts, size=(len(X), int(rng.integers(1, 5)))), n_contexts


def _gln(rng: Generator, X: Array) -> MaxMarginProgram:
    contexts, n_contexts = _contexts(rng, X)
    return SVMGLN(n_contexts).program(X, _coin(rng, X), contexts)


def _l2(rng: Generator, X: Array) -> MaxMarginProgram:
    contexts, n_contexts = _contexts(rng, X)
    return SVML2(n_contexts).program(X, _coin(rng, X), contexts)


def _frelu(rng: Generator, X: Array) -> MaxMarginProgram:
    gates = X @ rng.normal(size=(X.shape[1], int(rng.integers(1, 12)))) > 0
    return SVMFReLU().program(X, _coin(rng, X), gates.astype(np.int64))


def _orthosep(rng: Generator, X: Array) -> MaxMarginProgram:
    y = _coin(rng, X)
    return OrthogonallySeparable().program(np.abs(X) * y[:, None], y)


def _classes(rng: Generator, X: Array) -> MaxMarginProgram:
    """Crammer and Singer: a row for every sample and wrong class, `e_right - e_wrong`."""
    return _against_others(rng, X, np.ones((len(X), 1)))


def _gated_classes(rng: Generator, X: Array) -> MaxMarginProgram:
    """The same behind gates, a group for every unit's block of all classes."""
    gates = (rng.random((len(X), int(rng.integers(1, 5)))) < 0.6).astype(float)
    gates[:, 0] = 1.0
    return _against_others(rng, X, gates)


def _against_others(rng: Generator, X: Array, gates: Array) -> MaxMarginProgram:
    n_classes = int(rng.integers(2, 5))
    labels = np.argmax(X @ rng.normal(size=(X.shape[1], n_classes)), axis=1)
    if rng.random() < 0.2:
        labels = rng.integers(0, n_classes, size=len(X))
    rows = [(n, k) for n, label in enumerate(labels) for k in range(n_classes) if k != label]
    sample, wrong = np.array(rows).T
    differences = np.eye(n_classes)[labels[sample]] - np.eye(n_classes)[wrong]
    Z = np.einsum("nh,nk->nhk", gates[sample], differences).reshape(len(rows), -1)
    group = np.repeat(np.arange(gates.shape[1]), n_classes)
    return MaxMarginProgram(GatedDesign(X[sample], Z, group), np.ones(len(rows)))


def _l1(rng: Generator, X: Array) -> MaxMarginProgram:
    return L1Margin().program(X, _coin(rng, X))


def _kernel_root(rng: Generator, X: Array) -> MaxMarginProgram:
    """The kernel `exp(-||x - x'||^2)` by its root: a column of ones behind one group of gates."""
    squares = np.sum((X[:, None] - X) ** 2, axis=2)
    values, vectors = np.linalg.eigh(np.exp(-squares))
    Z = vectors * np.sqrt(np.clip(values, 0, None))
    ones = np.ones((len(X), 1))
    return MaxMarginProgram(GatedDesign(ones, Z, np.zeros(len(X), dtype=np.int64)), _coin(rng, X))


def _real_gates(rng: Generator, X: Array) -> MaxMarginProgram:
    """Real gates, some of them closed, in interleaved groups of unequal sizes."""
    Z = rng.normal(size=(len(X), int(rng.integers(3, 8)))) * (rng.random((1, 1)) < 0.9)
    Z *= rng.random(Z.shape) < 0.7
    group = rng.permutation(np.arange(Z.shape[1]) % 3)
    return MaxMarginProgram(GatedDesign(X, Z, group), _coin(rng, X))


def _integer_gates(rng: Generator, X: Array) -> MaxMarginProgram:
    """Gates of 0, 1 and 2 in up to three interleaved groups."""
    Z = rng.integers(0, 3, size=(len(X), int(rng.integers(1, 5)))).astype(float)
    group = np.arange(Z.shape[1]) % int(rng.integers(1, 4))
    return MaxMarginProgram(GatedDesign(X, Z, group), _coin(rng, X))


def _paths(rng: Generator, X: Array) -> MaxMarginProgram:
    """Products of the gates of two layers: more groups than samples."""
    width = int(rng.integers(4, 9))
    first, second = (rng.random((2, len(X), width)) < 0.6).astype(float)
    Z = np.einsum("nh,nk->nhk", first, second).reshape(len(X), -1)
    return MaxMarginProgram(GatedDesign(X, Z, np.arange(Z.shape[1])), _coin(rng, X))


KINDS: dict[str, Callable[[Generator, Array], MaxMarginProgram]] = {
    "linear": lambda rng, X: HardMarginSVM().program(X, _coin(rng, X)),
    "GLN": _gln,
    "a context each": lambda rng, X: ContextSVMs().program(X, _coin(rng, X), _contexts(rng, X)[0]),
    "L2": _l2,
    "FReLU": _frelu,
    "orthosep": _orthosep,
    "classes": _classes,
    "classes behind gates": _gated_classes,
    "L1": _l1,
    "kernel root": _kernel_root,
    "real gates": _real_gates,
    "integer gates": _integer_gates,
    "paths": _paths,
}

# Twists: what is done to the data, and what remains known of their separability.

Twisted = tuple[GatedDesign, Array, bool | None]


def _plain(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    return design, y, known


def _scaled(low: float, high: float) -> Callable[..., Twisted]:
    """All inputs times one number of 10^low to 10^high."""

    def twist(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
        return replace(design, X=design.X * 10 ** rng.uniform(low, high)), y, known

    return twist


def _ill_conditioned(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    """Inputs of sizes that differ by up to eight decades."""
    factors = np.logspace(0, -rng.uniform(2, 8), design.X.shape[1])
    return replace(design, X=design.X * factors), y, known


def _uneven_rows(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    """Samples of sizes that differ by up to eight decades."""
    factors = 10 ** rng.uniform(-4, 4, size=(len(y), 1))
    return replace(design, X=design.X * factors), y, known


def _offset(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    """A large constant beside the inputs."""
    column = np.full((len(y), 1), 10 ** rng.uniform(2, 6))
    return replace(design, X=np.hstack([design.X, column])), y, known


def _duplicates(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    rows = np.concatenate([np.arange(len(y)), rng.integers(0, len(y), size=len(y))])
    return design.subset(rows), y[rows], known


def _contradiction(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    """One sample again with the other label: the exact opposite of a constraint."""
    rows = np.append(np.arange(len(y)), rng.integers(len(y)))
    labels = y[rows]
    labels[-1] *= -1
    return design.subset(rows), labels, False


def _closed(rng: Generator, design: GatedDesign, y: Array, known: bool | None) -> Twisted:
    """A sample of zeros: no coefficients give it a margin."""
    rows = np.append(np.arange(len(y)), 0)
    X = design.X[rows]
    X[-1] = 0
    return replace(design.subset(rows), X=X), y[rows], False


def _nearly_inseparable(
    rng: Generator, design: GatedDesign, y: Array, known: bool | None
) -> Twisted:
    """One sample again with the other label, moved by 1e-2 to 1e-12 of its size."""
    rows = np.append(np.arange(len(y)), rng.integers(len(y)))
    X, labels = design.X[rows], y[rows]
    X[-1] += 10 ** rng.uniform(-12, -2) * rng.normal(size=X.shape[1])
    labels[-1] *= -1
    return replace(design.subset(rows), X=X), labels, None


TWISTS: dict[str, Callable[..., Twisted]] = {
    "plain": _plain,
    "ties": _plain,
    "bits": _plain,
    "signs": _plain,
    "small": _scaled(-120, -6),
    "large": _scaled(6, 120),
    "ill-conditioned": _ill_conditioned,
    "uneven samples": _uneven_rows,
    "large constant": _offset,
    "duplicates": _duplicates,
    "tied duplicates": _duplicates,
    "nearly inseparable": _nearly_inseparable,
    "contradiction": _contradiction,
    "a sample of zeros": _closed,
}
