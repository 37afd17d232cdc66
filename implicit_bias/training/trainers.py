"""The table of gradient methods: a stepper for every name in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

import torch

from ..networks.adapted import plain
from ..networks.protocols import Homogeneous
from .catalogue import get_trainer
from .network_stack import NetworkStack
from .settings import TrainingSettings
from .steppers.stepper import Stepper

HEAVY_BALL = 0.9
Making = Callable[[NetworkStack, TrainingSettings, int], Stepper]


def _of(place: str, chosen: Callable[[TrainingSettings, int], tuple[Any, ...]]) -> Making:
    """Return what makes a stepper of a class, loaded when one is made, with what it is given."""

    def make(stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> Stepper:
        """Return a stepper at its start."""
        cls = resolve_name(f"{__package__}.steppers.{place}")
        stepper: Stepper = cls(stack, *chosen(settings, n_samples))
        return stepper

    return make


_gradient = _of("gradient_descent:GradientDescent", lambda settings, n: (settings,))
_steepest = _of(
    "steepest_descent:SteepestDescent", lambda settings, n: (settings, settings.n_steps)
)


def _line_search(momentum: float | None = None) -> Making:
    return _of(
        "line_search:LineSearchDescent",
        lambda settings, n: (settings.loss, settings.momentum if momentum is None else momentum),
    )


def _normalised(stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> Stepper:
    make = _line_search() if settings.automatic else _gradient
    return make(stack, settings, n_samples)


STEPPERS: Mapping[str, Making] = MappingProxyType(
    {
        "constant": _gradient,
        "normalised": _normalised,
        "momentum": _line_search(HEAVY_BALL),
        "dual": _of("dual_acceleration:DualAcceleration", lambda settings, n: (settings.loss,)),
        "annealed": _of("annealed_lbfgs:AnnealedLBFGS", lambda settings, n: (settings.loss, n)),
        "smoothed": _of(
            "smoothed_relu:SmoothedReLU", lambda settings, n: (settings.loss, n, settings.n_steps)
        ),
        **dict.fromkeys(("sign", "spectral", "coordinate", "signum", "muon"), _steepest),
        "adam": _of(
            "steepest_descent:AdamDescent", lambda settings, n: (settings, settings.n_steps)
        ),
        "lion": _of(
            "steepest_descent:LionDescent", lambda settings, n: (settings, settings.n_steps)
        ),
        "newton": _of("newton:Newton", lambda settings, n: (settings.loss,)),
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
    if get_trainer(name).kinks and not _is_deep_relu(plain(network)):
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


def _is_deep_relu(network: torch.nn.Module) -> bool:
    from ..networks.relu import DeepReLU

    return isinstance(network, DeepReLU)
