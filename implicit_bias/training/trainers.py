"""The table of gradient methods: a stepper for every name in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from ..networks.adapted import plain
from ..networks.protocols import Homogeneous
from ..networks.relu import DeepReLU
from .catalogue import get_trainer
from .network_stack import NetworkStack
from .settings import TrainingSettings
from .steppers.annealed_lbfgs import AnnealedLBFGS
from .steppers.dual_acceleration import DualAcceleration
from .steppers.gradient_descent import GradientDescent
from .steppers.line_search import LineSearchDescent
from .steppers.newton import Newton
from .steppers.smoothed_relu import SmoothedReLU
from .steppers.steepest_descent import AdamDescent, LionDescent, SteepestDescent
from .steppers.stepper import Stepper

HEAVY_BALL = 0.9
Making = Callable[[NetworkStack, TrainingSettings, int], Stepper]


def _normalised(stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> Stepper:
    if settings.automatic:
        return LineSearchDescent(stack, settings.loss, settings.momentum)
    return GradientDescent(stack, settings)


def _of(method: type[AdamDescent | LionDescent | SteepestDescent]) -> Making:
    return lambda stack, settings, n_samples: method(stack, settings, settings.n_steps)


STEPPERS: Mapping[str, Making] = MappingProxyType(
    {
        "constant": lambda stack, settings, n: GradientDescent(stack, settings),
        "normalised": _normalised,
        "momentum": lambda stack, settings, n: LineSearchDescent(stack, settings.loss, HEAVY_BALL),
        "dual": lambda stack, settings, n: DualAcceleration(stack, settings.loss),
        "annealed": lambda stack, settings, n_samples: AnnealedLBFGS(
            stack, settings.loss, n_samples
        ),
        "smoothed": lambda stack, settings, n_samples: SmoothedReLU(
            stack, settings.loss, n_samples, settings.n_steps
        ),
        **dict.fromkeys(("sign", "spectral", "coordinate", "signum", "muon"), _of(SteepestDescent)),
        "adam": _of(AdamDescent),
        "lion": _of(LionDescent),
        "newton": lambda stack, settings, n: Newton(stack, settings.loss),
    }
)


def make_stepper(stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> Stepper:
    """Return the gradient method that `settings` name, at its start.

    Raises
    ------
    ValueError
        If it cannot train the networks, as `check_trainer` says.
    """
    check_trainer(settings.trainer, stack.networks[0])
    return STEPPERS[settings.trainer](stack, settings, n_samples)


def check_trainer(name: str, network: torch.nn.Module) -> None:
    """Check that a trainer can train a network; raises ValueError if it cannot."""
    if get_trainer(name).kinks and not isinstance(plain(network), DeepReLU):
        raise ValueError(
            f"the trainer {name!r} rounds the kinks of ReLU networks, networks.ReLU and "
            f"networks.DeepReLU, and got {type(plain(network)).__name__}: use 'annealed'"
        )
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
