"""The gradient methods and the losses, by name, as data: what each is, takes and begins from.

Nothing here needs torch, so that the command line can offer every choice before it loads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["LOSSES", "TRAINERS", "Loss", "Trainer", "check_loss", "get_trainer", "losses_of"]


@dataclass(frozen=True)
class Loss:
    """One loss of scores and targets, averaged over samples.

    Attributes
    ----------
    formula : str
    of_margins : bool
        Whether it falls exponentially in the margin y f, y in {-1, +1}, without ever being 0: such
        a loss has a logarithm, which trainers that go far along work with.
    """

    formula: str
    of_margins: bool = True


@dataclass(frozen=True)
class Trainer:
    """One gradient method.

    Attributes
    ----------
    method : str
        What a step does, in a line.
    promise : str
        What is known about where it goes, and how fast.
    full_batch : bool
        Whether mini-batches would change its limit.
    rates : set of bool
        Whether learning rates may be given (False) or left to it (True).
    takes_momentum : bool
    degree : int or None
        Degree of homogeneity that a network must have; None: any, or 0: none at all.
    logarithmic : bool
        Whether it works with log(loss), which only a loss of margins has.
    batch_size : int
        Samples a step where it begins; 0 is the full batch.
    steps : tuple of int
        Steps of the phases where it begins.
    learning_rates : tuple of float
        Rates of those phases; empty where it finds its own.
    """

    method: str
    promise: str
    full_batch: bool = True
    rates: frozenset[bool] = frozenset({True})
    takes_momentum: bool = False
    degree: int | None = 0
    logarithmic: bool = True
    batch_size: int = 0
    steps: tuple[int, ...] = (3000,)
    learning_rates: tuple[float, ...] = ()

    @property
    def schedule(self) -> tuple[tuple[int, float | None], ...]:
        """The phases where it begins, as `TrainingSettings` takes them."""
        rates = self.learning_rates or (None,) * len(self.steps)
        return tuple(zip(self.steps, rates, strict=True))


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "logistic": Loss("log(1 + exp(-y f))"),
        "exponential": Loss("exp(-y f)"),
        "squared": Loss("1/2 (y - f)^2", of_margins=False),
        "cross-entropy": Loss("KL(y, sigmoid(f)) of soft labels y", of_margins=False),
        "excess": Loss("f - y, f a loss that the network returns, y its least", of_margins=False),
        "softmax": Loss("KL(y, softmax(f)) of soft labels y of K classes", of_margins=False),
    }
)

_FLOW = (
    "gradient flow, and full-batch descent in steps small enough, of a homogeneous network that "
    "separates the data goes to KKT points of the margin problem (Lyu and Li)"
)

TRAINERS: Mapping[str, Trainer] = MappingProxyType(
    {
        "constant": Trainer(
            method="steps of a given size along the gradient of the mean loss; (mini-batch) SGD",
            promise=f"{_FLOW}; nothing of the kind is proved with mini-batches or momentum; for "
            "linear predictors and full batches the direction errs by O(1 / log steps) (Soudry et "
            "al.)",
            full_batch=False,
            rates=frozenset({False}),
            takes_momentum=True,
            logarithmic=False,
            # The published GLN experiment (Lippl, Abbott and Chung, appendix A.2).
            batch_size=128,
            steps=(1600, 1600),
            learning_rates=(0.04, 0.01),
        ),
        "normalised": Trainer(
            method="steps along the gradient of log(loss), at given rates or as long as a line "
            "search allows",
            promise=f"{_FLOW}; nothing of the kind is proved of a line search or momentum; for "
            "linear predictors at a rate given and small enough the margin errs by O(1 / steps) "
            "(Ji and Telgarsky)",
            rates=frozenset({False, True}),
            takes_momentum=True,
        ),
        "momentum": Trainer(
            method="the normalised steps with heavy-ball momentum 0.9, dropped where the "
            "loss would rise or the smoothed margin fall",
            promise="none is proved; of a relative, the flow without momentum, what is said of "
            "normalised. Observed: margin ratios of 0.92 to 0.95 where constant steps stop at 0.4",
        ),
        "dual": Trainer(
            method="Nesterov's method on the dual of the margin problem, as momentum on normalised "
            "steps; for predictors that are linear in their weights",
            promise="margins of linear predictors err by O(log n / steps^2), up to a factor "
            "log(steps), proved of exactly these steps for the exponential loss (Ji, Srebro and "
            "Telgarsky); observed for the logistic loss too",
            degree=1,
        ),
        "annealed": Trainer(
            method="limited-memory BFGS on log(loss) until the data are separated (gradient steps "
            "with momentum from saddles, and a random kick where it rests for 200 steps, three "
            "at most), then of the weights' direction, at a temperature that falls as the steps "
            "converge",
            promise="none is proved of this method; of a relative, limited-memory BFGS with a "
            "Wolfe line search at one temperature, linear convergence where log(loss) is "
            "uniformly convex, which that of two layers is not (Liu and Nocedal). Observed: margin "
            "ratios above 0.99. log(1 / loss) follows the temperature, and compares with that of "
            "no other trainer",
            degree=None,
            steps=(2000,),
        ),
    }
)


def get_trainer(name: str) -> Trainer:
    """Look a trainer up in `TRAINERS`; raises ValueError for a name that is not there."""
    if name not in TRAINERS:
        raise ValueError(f"`trainer` must be one of {sorted(TRAINERS)}, got {name!r}")
    return TRAINERS[name]


def losses_of(trainer: str) -> tuple[str, ...]:
    """The losses that a trainer can descend."""
    logarithmic = get_trainer(trainer).logarithmic
    return tuple(name for name, loss in LOSSES.items() if loss.of_margins or not logarithmic)


def check_loss(loss: str, trainer: str) -> None:
    """See that there is such a loss and that the trainer takes it; raises ValueError if not."""
    if loss not in LOSSES:
        raise ValueError(f"`loss` must be one of {sorted(LOSSES)}, got {loss!r}")
    taken = losses_of(trainer)
    if loss not in taken:
        raise ValueError(
            f"trainer {trainer!r} works with the logarithm of the loss, which {loss!r} has not: "
            f"take one of {sorted(taken)}, or the trainer 'constant'"
        )
