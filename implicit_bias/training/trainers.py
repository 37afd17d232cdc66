"""The gradient methods at work: a stepper for every name in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from ..networks.adapted import plain
from ..networks.protocols import Homogeneous
from .annealed import Annealed
from .catalogue import get_trainer
from .descent import Descent, Stepper
from .dual import DualAcceleration
from .line_search import SafeDescent
from .settings import TrainingSettings
from .stacked import Runs

__all__ = ["STEPPERS", "check_trainer", "make_stepper"]

HEAVY = 0.9


def _constant(runs: Runs, settings: TrainingSettings, n_samples: int) -> Stepper:
    return Descent(runs, settings.loss, settings.momentum, logarithmic=False)


def _normalised(runs: Runs, settings: TrainingSettings, n_samples: int) -> Stepper:
    if settings.automatic:
        return SafeDescent(runs, settings.loss, settings.momentum)
    return Descent(runs, settings.loss, settings.momentum, logarithmic=True)


def _momentum(runs: Runs, settings: TrainingSettings, n_samples: int) -> Stepper:
    return SafeDescent(runs, settings.loss, HEAVY)


def _dual(runs: Runs, settings: TrainingSettings, n_samples: int) -> Stepper:
    return DualAcceleration(runs, settings.loss)


def _annealed(runs: Runs, settings: TrainingSettings, n_samples: int) -> Stepper:
    return Annealed(runs, settings.loss, n_samples)


STEPPERS: Mapping[str, Callable[[Runs, TrainingSettings, int], Stepper]] = MappingProxyType(
    {
        "constant": _constant,
        "normalised": _normalised,
        "momentum": _momentum,
        "dual": _dual,
        "annealed": _annealed,
    }
)


def make_stepper(runs: Runs, settings: TrainingSettings, n_samples: int) -> Stepper:
    """The gradient method that `settings` name, at its start; raises as `check_trainer` does."""
    check_trainer(settings.trainer, runs.networks[0])
    return STEPPERS[settings.trainer](runs, settings, n_samples)


def check_trainer(name: str, network: torch.nn.Module) -> None:
    """See that a trainer can train a network; raises ValueError if it cannot."""
    wanted = get_trainer(name).degree
    degree = network.degree if isinstance(network, Homogeneous) else None
    if wanted == 0 or (isinstance(degree, int) and degree >= 1 and wanted in (None, degree)):
        return
    need = "homogeneous" if wanted is None else "linear in its weights"
    other = "'momentum'" if wanted is None else "'annealed'"
    kind = type(plain(network)).__name__
    if degree is None:
        raise ValueError(
            f"the trainer {name!r} needs a network that is {need}, and {kind} does not say "
            f"whether it is: give it `degree` (1 if scores are linear in the weights, L "
            "if they scale like their L-th power), or use 'momentum'"
        )
    raise ValueError(
        f"the trainer {name!r} needs a network that is {need}, and {kind} is not: use {other}"
    )
