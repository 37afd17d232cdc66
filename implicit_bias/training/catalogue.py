"""Tables of the losses and the gradient methods: what each of them takes, and its defaults.

Nothing here needs torch, so that the command line can offer every choice before it loads anything.
`TrainingSettings` says what the methods are, and what is known about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .._support.words import DecayName, LossName, MarginLoss, WeightNorm, words

MARGIN_LOSSES, LOSSES = words(MarginLoss), words(LossName)
# Those with a logarithm that steps can follow: attention has one beside its tokens.
LOG_LOSSES = (*MARGIN_LOSSES, "attention")
# Those that have a least value, which losses of margins only tend to.
LEAST_LOSSES = tuple(loss for loss in LOSSES if loss not in LOG_LOSSES)


@dataclass(frozen=True)
class Trainer:
    """One gradient method: what it takes, and the settings that it has by default.

    Attributes
    ----------
    full_batch : bool
        Whether it needs all samples in every step; mini-batches would change its limit.
    automatic : set of bool
        Whether it may find its step sizes by itself (True), and take learning rates (False).
    takes_momentum : bool
        Whether `momentum` may be set.
    degree : int or None
        Degree of homogeneity that a network must have; None: any, or 0: none at all.
    losses : tuple of str
        Losses that it descends: those of margins where it works with log(loss), which others lack.
    kinks : bool
        Whether it needs a network of ReLUs, whose kinks it rounds.
    stepper : str
        "module:class" of what takes its steps, in `training.steppers`.
    norms : pair of str
        Norms on the weights in which its steps are steepest: of every layer but the last, and of
        the last one. A network of one layer has the first.
    own_momentum : float
        Momentum of its own, where it has one.
    init_scale : float
        Factor on the initial weights of a network of several layers that it is best begun from.
    decays : tuple of str
        Forms of weight decay that may be set, "coupled" and "decoupled".
    batch_size : int
        Default number of samples a step; 0 is the full batch.
    steps : tuple of int
        Default steps of the phases.
    learning_rates : tuple of float
        Default rates of those phases; empty where it finds its own.
    """

    full_batch: bool = True
    automatic: frozenset[bool] = frozenset({True})
    takes_momentum: bool = False
    degree: int | None = 0
    losses: tuple[str, ...] = MARGIN_LOSSES
    kinks: bool = False
    stepper: str = "line_search:LineSearchDescent"
    norms: tuple[WeightNorm, WeightNorm] = ("l2", "l2")
    own_momentum: float = 0.0
    init_scale: float = 1.0
    decays: tuple[DecayName, ...] = ()
    batch_size: int = 0
    steps: tuple[int, ...] = (3000,)
    learning_rates: tuple[float, ...] = ()

    @property
    def schedule(self) -> tuple[tuple[int, float | None], ...]:
        """The default phases, as `TrainingSettings` takes them."""
        rates = self.learning_rates or (None,) * len(self.steps)
        return tuple(zip(self.steps, rates, strict=True))

    def norms_of(self, n_layers: int) -> tuple[WeightNorm, ...]:
        """Return the norm of each of so many layers, the first layer first."""
        below, last = self.norms
        return (below,) * (n_layers - 1) + (last,) if n_layers > 1 else (below,)


def _steepest(
    below: WeightNorm,
    last: WeightNorm,
    *,
    takes_momentum: bool = False,
    own_momentum: float = 0.0,
    steps: int = 20000,
    stepper: str = "SteepestDescent",
) -> Trainer:
    """Return a method of normalised steps, of rates that it finds or is given."""
    return Trainer(
        full_batch=False,
        automatic=frozenset({False, True}),
        takes_momentum=takes_momentum,
        losses=LOG_LOSSES,
        stepper=f"steepest_descent:{stepper}",
        norms=(below, last),
        own_momentum=own_momentum,
        # What is there at the start goes no sooner than weights grow, which is slow.
        init_scale=0.1,
        decays=("decoupled",),
        steps=(steps,),
    )


# By the words of `TrainerName`.
TRAINERS: Mapping[str, Trainer] = MappingProxyType(
    {
        "constant": Trainer(
            full_batch=False,
            automatic=frozenset({False}),
            takes_momentum=True,
            losses=LOSSES,
            stepper="gradient_descent:GradientDescent",
            decays=("coupled", "decoupled"),
            # The published GLN experiment (Lippl, Abbott and Chung, appendix A.2).
            batch_size=128,
            steps=(1600, 1600),
            learning_rates=(0.04, 0.01),
        ),
        "normalised": Trainer(
            automatic=frozenset({False, True}), takes_momentum=True, losses=LOG_LOSSES
        ),
        "momentum": Trainer(own_momentum=0.9),
        "dual": Trainer(degree=1, stepper="dual_acceleration:DualAcceleration"),
        "annealed": Trainer(degree=None, stepper="annealed_lbfgs:AnnealedLBFGS", steps=(2000,)),
        "smoothed": Trainer(
            degree=None, kinks=True, stepper="smoothed_relu:SmoothedReLU", steps=(12000,)
        ),
        # All entries turn at once between samples, and only short steps get on.
        "sign": _steepest("linf", "linf", takes_momentum=True, steps=150_000),
        "spectral": _steepest("spectral", "spectral", takes_momentum=True),
        "coordinate": _steepest("l1", "l1", takes_momentum=True),
        "signum": _steepest("linf", "linf", own_momentum=0.9),
        "muon": _steepest("spectral", "linf", own_momentum=0.9),
        "adam": _steepest("linf", "linf", own_momentum=0.9, stepper="AdamDescent"),
        "lion": _steepest("linf", "linf", own_momentum=0.99, stepper="LionDescent"),
        "newton": Trainer(losses=LEAST_LOSSES, stepper="newton:Newton", steps=(30,)),
    }
)


def get_trainer(name: str) -> Trainer:
    """Look a trainer up in `TRAINERS`; raises ValueError for a name that is not there."""
    if not isinstance(name, str) or name not in TRAINERS:
        raise ValueError(f"`trainer` must be one of {sorted(TRAINERS)}, got {name!r}")
    return TRAINERS[name]


def losses_of(trainer: str) -> tuple[str, ...]:
    """Return the losses that a trainer can descend."""
    return get_trainer(trainer).losses


def check_loss(loss: str, trainer: str) -> None:
    """Check that there is such a loss and that the trainer takes it; raises ValueError if not."""
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(f"`loss` must be one of {sorted(LOSSES)}, got {loss!r}")
    taken = losses_of(trainer)
    if loss not in taken and loss in LOG_LOSSES and taken != LEAST_LOSSES:
        able = sorted(name for name, one in TRAINERS.items() if loss in one.losses)
        raise ValueError(
            f"trainer {trainer!r} asks that the loss {loss!r} fall in every step, and it may rise "
            f"as attention goes from one token to another: take one of {able}"
        )
    if loss not in taken and taken == LEAST_LOSSES:
        raise ValueError(
            f"trainer {trainer!r} goes to the least value of the loss, which {loss!r} has not: "
            f"take one of {sorted(taken)}, or the trainer 'annealed'"
        )
    if loss not in taken:
        raise ValueError(
            f"trainer {trainer!r} works with the logarithm of the loss, which {loss!r} has not: "
            f"take one of {sorted(taken)}, or the trainer 'constant'"
        )
