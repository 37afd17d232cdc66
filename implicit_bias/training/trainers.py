"""The gradient methods that the catalogue names, made for networks that they can train."""

from __future__ import annotations

from pkgutil import resolve_name

import torch

from ..networks.adapted import plain
from ..networks.losses.objectives import get_loss
from ..networks.protocols import Homogeneous
from .catalogue import get_trainer
from .network_stack import NetworkStack
from .settings import TrainingSettings
from .steppers.stepper import Stepper


def make_stepper(stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> Stepper:
    """Return the gradient method that `settings` name, at its start.

    Raises
    ------
    ValueError
        If it cannot train the networks, as `check_trainer` says.
    """
    check_trainer(settings.trainer, stack.networks[0])
    name = settings.trainer
    if name == "normalised" and not settings.automatic:
        name = "constant"  # steps of a given size, along another gradient
    elif name == "normalised" and get_loss(settings.loss).of_tokens:
        name = "sign"  # measured steps in the norm of the trainer, here l2: losses may rise as
        # attention goes from one token to another, which no line search passes
    stepper: Stepper = resolve_name(f"{__package__}.steppers.{get_trainer(name).stepper}")(
        stack, settings, n_samples
    )
    return stepper


def check_trainer(name: str, network: torch.nn.Module) -> None:
    """Check that a trainer can train a network; raises ValueError if it cannot."""
    if get_trainer(name).kinks:
        from ..networks.relu import DeepReLU

        if not isinstance(plain(network), DeepReLU):
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
