"""The gradient methods, by name, each with what theory promises for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from .annealed import Annealed
from .descent import Descent, Stepper
from .dual import DualAcceleration
from .line_search import SafeDescent

if TYPE_CHECKING:
    import torch

    from .settings import TrainingSettings
    from .stacked import Runs

__all__ = ["TRAINERS", "Trainer", "check_trainer", "get_trainer"]


@dataclass(frozen=True)
class Trainer:
    """One gradient method.

    Attributes
    ----------
    method : str
        What a step does, in a line.
    promise : str
        What is known about where it goes, and how fast.
    make : callable
        `make(runs, settings, n_samples)` returns the `Stepper`.
    full_batch : bool
        Whether mini-batches would change its limit.
    rates : set of bool
        Whether learning rates may be given (False) or left to it (True).
    takes_momentum : bool
    degree : int or None
        Degree of homogeneity that a network must have; None: any, or 0: none at all.
    """

    method: str
    promise: str
    make: Callable[[Runs, TrainingSettings, int], Stepper]
    full_batch: bool = True
    rates: frozenset[bool] = field(default=frozenset({True}))
    takes_momentum: bool = False
    degree: int | None = 0


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


HEAVY = 0.9
_FLOW = (
    "gradient flow, and full-batch descent in steps small enough, of a homogeneous network that "
    "separates the data goes to KKT points of the margin problem (Lyu and Li)"
)

TRAINERS: Mapping[str, Trainer] = MappingProxyType(
    {
        "constant": Trainer(
            method="steps of a given size along the gradient of the mean loss; (mini-batch) SGD",
            promise=f"{_FLOW}; nothing of the kind is proved with mini-batches or momentum; for "
            "linear predictors the direction errs by O(1 / log steps) (Soudry et al.)",
            make=_constant,
            full_batch=False,
            rates=frozenset({False}),
            takes_momentum=True,
        ),
        "normalised": Trainer(
            method="steps along the gradient of log(loss), at given rates or as long as a line "
            "search allows",
            promise=f"{_FLOW}; nothing of the kind is proved of a line search or momentum; for "
            "linear predictors at a rate given and small enough the margin errs by O(1 / steps) "
            "(Ji and Telgarsky)",
            make=_normalised,
            rates=frozenset({False, True}),
            takes_momentum=True,
        ),
        "momentum": Trainer(
            method="the normalised steps with heavy-ball momentum 0.9, dropped where the "
            "loss would rise or the smoothed margin fall",
            promise="none is proved; without momentum these are the normalised steps",
            make=_momentum,
        ),
        "dual": Trainer(
            method="Nesterov's method on the dual of the margin problem, as momentum on normalised "
            "steps; for predictors that are linear in their weights",
            promise="margins of linear predictors err by O(log n / steps^2), proved for the "
            "exponential loss (Ji, Srebro and Telgarsky)",
            make=_dual,
            degree=1,
        ),
        "annealed": Trainer(
            method="Nesterov's steps on log(loss) until the data are separated, then for the "
            "smoothed margin on the sphere of weights, its temperature lowered in proportion to "
            "the steps done",
            promise="none is proved: Nesterov's O(sqrt(log n) / steps) is for linear predictors, a "
            "fixed temperature and no restarts; log(1 / loss) follows the temperature, and "
            "compares with that of no other trainer",
            make=_annealed,
            degree=None,
        ),
    }
)


def check_trainer(name: str, network: torch.nn.Module) -> None:
    """See that a trainer can train a network; raises ValueError if it cannot."""
    wanted, degree = get_trainer(name).degree, getattr(network, "degree", None)
    if wanted == 0 or (isinstance(degree, int) and degree >= 1 and wanted in (None, degree)):
        return
    need = "homogeneous" if wanted is None else "linear in its weights"
    other = "'momentum'" if wanted is None else "'annealed'"
    raise ValueError(
        f"the trainer {name!r} needs a network that is {need}, and {type(network).__name__} is "
        f"not: use {other}"
    )


def get_trainer(name: str) -> Trainer:
    """Look a trainer up in `TRAINERS`; raises ValueError for a name that is not there."""
    if name not in TRAINERS:
        raise ValueError(f"`trainer` must be one of {sorted(TRAINERS)}, got {name!r}")
    return TRAINERS[name]
