"""A frozen trunk with its exits: features of the samples, labels, and a teacher's logits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.labelled import ClassDataset
from ...networks.exits import Trunk, train_trunk
from ...runs.setup import Setup
from .losses import UNLABELLED

TEMPERATURE = 3.0


@dataclass(frozen=True, eq=False)
class Labels:
    """Samples with classes numbered from 0.

    Attributes
    ----------
    X, X_val : (n, D) and (m, D) arrays
        Training and held-out inputs.
    train : (n,) ints
        Classes of the training samples; -1 for samples without a label.
    val : (m,) ints
        Classes of the held-out samples.
    n_classes : int
        Number of classes K.
    """

    X: Floats
    X_val: Floats
    train: NDArray[np.int64]
    val: NDArray[np.int64]
    n_classes: int

    @property
    def n_labelled(self) -> int:
        """Number of samples with a label."""
        return int(np.sum(self.train != UNLABELLED))


@dataclass(frozen=True, eq=False)
class Exits:
    """A frozen trunk, its features of the samples, and the teacher's logits.

    Attributes
    ----------
    labels : Labels
        Samples and their classes.
    trunk : Trunk
        The frozen network.
    layers : tuple of int
        Layers with an exit, from 1.
    features, features_val : tuples of (n, D_m) and (m, D_m) arrays
        Features at each exit of training and of held-out samples.
    teacher : (n, K) array
        Logits of the head that the trunk was trained with.
    share, temperature : float
        Weight of hard labels, and temperature of soft ones.
    """

    labels: Labels
    trunk: Trunk
    layers: tuple[int, ...]
    features: tuple[Floats, ...]
    features_val: tuple[Floats, ...]
    teacher: Floats
    share: float
    temperature: float

    @property
    def is_hard(self) -> bool:
        """True if hard labels alone have weight."""
        return self.share == 1

    @property
    def taught(self) -> dict[str, Any]:
        """What every head learns from, as arguments: those of `exit_loss`."""
        return {
            "labels": self.labels.train if self.share > 0 else None,
            "teacher": None if self.is_hard else self.teacher,
            "temperature": self.temperature,
            "share": self.share,
        }


def read_labels(dataset: Dataset | ClassDataset, n_labelled: int | None) -> Labels:
    """Number the classes of a data set 0, 1, ...; hide labels after the first `n_labelled`.

    Raises
    ------
    ValueError
        If there are fewer samples, or a class has no labelled sample.
    """
    if isinstance(dataset, ClassDataset):
        classes = np.array(dataset.classes)
        train, val = (
            np.searchsorted(classes, labels)
            for labels in (dataset.labels_train, dataset.labels_val)
        )
        names = [dataset.name_of(k) for k in dataset.classes]
    else:
        train, val = ((y > 0).astype(np.int64) for y in (dataset.y_train, dataset.y_val))
        names = ["-1", "+1"]
    n = len(train)
    if n_labelled is not None and n_labelled > n:
        raise ValueError(f"`--n-labelled` {n_labelled} is more than the {n} training samples")
    known = train.copy()
    known[n_labelled or n :] = UNLABELLED
    missing = [name for k, name in enumerate(names) if not np.any(known == k)]
    if missing:
        raise ValueError(
            f"no labelled sample is of class {', '.join(missing)}: give a larger `--n-labelled`, "
            "or another `--seed`"
        )
    return Labels(dataset.X_train, dataset.X_val, known, val, len(names))


def check_exits(options: Any) -> tuple[int, ...]:
    """Check that the options of heads are consistent, and return the layers with an exit.

    Raises
    ------
    ValueError
        If an option is out of range, or does not go with another.
    """
    layers = options.exits or tuple(range(1, options.depth + 1))
    if list(layers) != sorted(set(layers)) or layers[-1] > options.depth:
        raise ValueError(
            f"`--exits` must be layers of the trunk, ascending from 1 to `--depth` "
            f"{options.depth}, got {','.join(map(str, layers))}"
        )
    if not 0 <= options.share <= 1:
        raise ValueError(f"`--share` of hard labels must lie in [0, 1], got {options.share:g}")
    if not 0 < options.tol < 1:
        raise ValueError(f"`--tol` must lie in (0, 1), got {options.tol:g}")
    if options.share == 1 and options.temperature is not None:
        raise ValueError(
            f"`--temperature {options.temperature:g}` is of soft labels, and with `--share 1` "
            "there are none: leave it out, or give a smaller share"
        )
    if options.temperature is not None and not 0 < options.temperature < np.inf:
        raise ValueError(
            f"`--temperature` must be positive and finite, got {options.temperature:g}"
        )
    if options.share < 1 and options.trainer not in ("constant", "newton"):
        raise ValueError(
            f"`--trainer {options.trainer}` works with the logarithm of a loss that tends to 0, "
            "which that of soft labels does not: give `--share 1`, or take the trainer newton"
        )
    if options.share == 1 and options.trainer == "newton":
        raise ValueError(
            "`--trainer newton` goes to the least value of the loss, which that of hard labels "
            "alone does not have: give a smaller `--share`, or take the trainer momentum"
        )
    return layers


def make_exits(labels: Labels, options: Any, layers: tuple[int, ...], seed: int) -> Exits:
    """Draw the trunk, train it and its teacher on the labelled samples, and freeze them."""
    trunk = Trunk(
        labels.X.shape[1], widths=(options.hidden_units,) * options.depth, random_state=seed
    )
    teacher = train_trunk(
        trunk,
        labels.X,
        labels.train,
        n_steps=options.trunk_steps,
        head_alone=options.trunk == "random",
    )
    inner, held_out = trunk.features(labels.X), trunk.features(labels.X_val)
    dead = [layer for layer in layers if not inner[layer - 1][labels.train != UNLABELLED].any()]
    if dead:
        raise ValueError(
            f"no unit of layer {dead[0]} is open on a labelled sample, so that no head tells any "
            "apart: give more `--hidden-units`, another `--seed`, or other `--exits`"
        )
    return Exits(
        labels=labels,
        trunk=trunk,
        layers=layers,
        features=tuple(inner[layer - 1] for layer in layers),
        features_val=tuple(held_out[layer - 1] for layer in layers),
        teacher=teacher,
        share=options.share,
        temperature=options.temperature or TEMPERATURE,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsSetup(Setup):
    """The setup of a run, with its labels and exits.

    Attributes
    ----------
    labels : Labels
    layers : tuple of int
        Those with an exit.
    """

    labels: Labels
    layers: tuple[int, ...]

    @cached_property
    def exits(self) -> Exits:
        """The trunk with its teacher, trained and frozen when they are first asked for."""
        return make_exits(self.labels, self.options, self.layers, self.seeds.weights)
