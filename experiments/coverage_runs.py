"""The runs that `experiments.coverage` scores: which there are, and how each one is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from implicit_bias import (
    GLN,
    DeepLinear,
    FReLU,
    HyperplaneContexts,
    HyperplaneGates,
    Sample,
    TrainingSettings,
    Trajectory,
    load_digits,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
    train_many,
)
from implicit_bias._support.solve import to_numpy
from implicit_bias.data.made.quadrants import make_quadrants
from implicit_bias.limits.limit import Limit
from implicit_bias.measures import Distances
from implicit_bias.options import TrainerName

Array = NDArray[np.float64]

# Steps of a whole run by trainer, and rows of its trajectory: bars are made of the first twentieth,
# which then has about forty rows, as many as a run of the command line.
STEPS: Mapping[str, int] = MappingProxyType(
    {"constant": 6000, "normalised": 2000, "momentum": 2000, "dual": 2000}
)
N_CHECKPOINTS = 61
# Constant steps, in units of one over the mean squared length of an input. Deep linear networks
# leave the saddle at 0 late, and separate nothing in a twentieth of so few.
RATE = 2.0
DEEP_STEPS, DEEP_RATE = 15000, 4.0
# Every case begins these ways, side by side: as drawn, near the saddle at 0, and balanced.
STARTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "orthogonal": {"init": "orthogonal"},
        "small": {"init": "kaiming", "init_scale": 0.3},
        "balanced": {"init": "balanced"},
    }
)
# A gated network begins once more as balanced, but for the unit with the limit's largest norm: its
# weights are this small, its share of the norm the square of that. It wakes long after the run.
ASLEEP, FACTOR = "one unit asleep", 1e-3


@dataclass(frozen=True)
class Case:
    """One network on one kind of data by one trainer."""

    model: str
    data: str
    trainer: TrainerName

    def __str__(self) -> str:
        return f"{self.model} on {self.data}, {self.trainer}"


GATED, DEEP = ("gln", "frelu"), ("deep-linear-2", "deep-linear-3")
DESCENT: tuple[TrainerName, ...] = ("constant", "normalised", "momentum")
CASES = (
    *(Case(m, d, t) for m in GATED for d in ("digits", "gaussian", "quadrants") for t in DESCENT),
    *(Case(m, d, t) for m in DEEP for d in ("digits", "gaussian") for t in DESCENT),
    *(Case("linear", data, "dual") for data in ("digits", "gaussian")),
)


@dataclass(frozen=True, eq=False)
class Series:
    """What bars are made of, one row a checkpoint: (T,) arrays, and (T, H) of the units."""

    step: Array
    log_loss: Array
    margin_ratio: Array
    dual_norms: Array
    unit_norms: Array

    @classmethod
    def of(cls, trajectory: Trajectory) -> Self:
        """The series of a run that `Distances` observed."""
        seen = trajectory.observed
        return cls(
            trajectory.step,
            trajectory.log_loss,
            seen["margin_ratio"],
            seen["dual_norms"],
            trajectory.unit_norms,
        )

    @classmethod
    def load(cls, path: Path) -> dict[str, Self]:
        """What `save` has written, by start."""
        with np.load(path) as file:
            starts = sorted({name.split("/")[0] for name in file.files})
            names = [field.name for field in fields(cls)]
            return {start: cls(*(file[f"{start}/{name}"] for name in names)) for start in starts}

    @staticmethod
    def save(path: Path, runs: Mapping[str, Series]) -> None:
        """Write the series of one case and seed, by start, as one file."""
        arrays = {
            f"{start}/{field.name}": getattr(series, field.name)
            for start, series in runs.items()
            for field in fields(series)
        }
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def degree_of(case: Case) -> int:
    """Degree of homogeneity of its networks."""
    return {"linear": 1, "deep-linear-3": 3}.get(case.model, 2)


def run_case(case: Case, seed: int) -> dict[str, Series]:
    """Train a network a start, distances observed; nothing where no such network can separate.

    Raises
    ------
    KeyboardInterrupt
        If a signal ended the training: half a run is no run.
    """
    X, y = DATA[case.data](seed)
    limit, gates, make = MODELS[case.model](X, y, seed)
    if not limit.certificate.proves_separability():
        return {}
    sample = Sample(X, y, gates)
    settings = TrainingSettings(
        trainer=case.trainer,
        batch_size=0,
        schedule=(_phase(case, X),),
        n_checkpoints=N_CHECKPOINTS,
    )
    networks = {name: make(random_state=seed, **start) for name, start in STARTS.items()}
    if len(limit.unit_norms) > 1:
        networks[ASLEEP] = _asleep(make(random_state=seed, init="balanced"), limit)
    trajectories = train_many(
        list(networks.values()),
        *sample,
        settings=settings,
        # No held-out data: what is extrapolated is a matter of the training data alone.
        observers=[Distances(limit, sample, sample) for _ in networks],
    )
    if not any(trajectory.finished for trajectory in trajectories):
        raise KeyboardInterrupt
    named = zip(networks, trajectories, strict=True)
    return {name: Series.of(trajectory) for name, trajectory in named if trajectory.finished}


def _phase(case: Case, X: Array) -> tuple[int, float | None]:
    if case.trainer != "constant":
        return STEPS[case.trainer], None
    deep = case.model in DEEP
    steps, rate = (DEEP_STEPS, DEEP_RATE) if deep else (STEPS["constant"], RATE)
    return steps, rate / float(np.mean(np.sum(X**2, axis=1)))


def _asleep(network: torch.nn.Module, limit: Limit) -> torch.nn.Module:
    unit = int(np.argmax(to_numpy(limit.unit_norms)))
    with torch.no_grad():
        network.w1[unit] *= FACTOR  # type: ignore[index,operator]
        network.upper[0][:, unit] *= FACTOR  # type: ignore[index]
    return network


def _digits(seed: int) -> tuple[Array, Array]:
    # 0-4 against 5-9 of 80 images: a linear predictor of 65 inputs hardly ever fails to separate.
    data = load_digits(n_train=80, n_val=1, random_state=seed)
    return np.asarray(data.X_train), np.asarray(data.y_train)


def _gaussian(seed: int) -> tuple[Array, Array]:
    # Labels at random, fewer than twice as many samples as inputs: nearly always separable.
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, 40)), rng.permutation(np.repeat([-1.0, 1.0], 30))


def _quadrants(seed: int) -> tuple[Array, Array]:
    return make_quadrants(60, random_state=seed)


DATA: Mapping[str, Callable[[int], tuple[Array, Array]]] = MappingProxyType(
    {"digits": _digits, "gaussian": _gaussian, "quadrants": _quadrants}
)
Make = Callable[..., torch.nn.Module]


def _gln(X: Array, y: Array, seed: int) -> tuple[Any, Any, Make]:
    plane = X.shape[1] == 3
    gating = HyperplaneContexts(
        2 if plane else 6, 2, cutoffs="axes" if plane else "median", random_state=seed
    )
    gates = gating.fit_transform(X)
    limit = solve_gln_svm(X, y, gates, n_contexts=2)
    return limit, gates, partial(GLN, X.shape[1], gates.shape[1], 2)


def _frelu(X: Array, y: Array, seed: int) -> tuple[Any, Any, Make]:
    gating = HyperplaneGates(30 if X.shape[1] == 3 else 8, random_state=seed)
    gates = gating.fit_transform(X)
    return solve_frelu_svm(X, y, gates), gates, partial(FReLU, X.shape[1], gates.shape[1])


def _linear(*widths: int) -> Callable[[Array, Array, int], tuple[Any, Any, Make]]:
    def made(X: Array, y: Array, seed: int) -> tuple[Any, Any, Make]:
        return solve_linear_svm(X, y), None, partial(DeepLinear, X.shape[1], hidden_widths=widths)

    return made


MODELS: Mapping[str, Callable[[Array, Array, int], tuple[Any, Any, Make]]] = MappingProxyType(
    {
        "gln": _gln,
        "frelu": _frelu,
        "deep-linear-2": _linear(8),
        "deep-linear-3": _linear(8, 8),
        "linear": _linear(),
    }
)
