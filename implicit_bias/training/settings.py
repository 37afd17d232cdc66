"""Settings of a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from .._support.doors import door
from .._support.kinds import fraction, is_a, tolerance, whole_number
from .._support.words import DecayName, LossName, TrainerName, check_word
from .catalogue import Trainer, check_loss, get_trainer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Phases = tuple[tuple[int, float | None], ...]

# A trajectory counts steps in float64, which knows every whole number up to here.
MOST_STEPS = 2**53


@dataclass(frozen=True)
class TrainingSettings:
    r"""Settings of a training run; the defaults are those of the published GLN experiment.

    Parameters
    ----------
    trainer : str
        Gradient method, a name in `TRAINERS`. Gradient flow, and full-batch descent in steps small
        enough, of a homogeneous network that separates the data goes to KKT points of the margin
        problem [2]_; more is known, or less, of

        "constant": steps of a given size along the gradient of the mean loss. For linear predictors
        and full batches the direction errs by O(1 / log steps) [3]_; nothing is proved with
        mini-batches or momentum.
        "normalised": steps along the gradient of log(loss), at given rates or as long as a line
        search allows. For linear predictors at a given rate that is small enough the margin errs by
        O(1 / steps) [4]_; nothing is proved with the line search or momentum.
        "momentum": those steps by line search with heavy-ball momentum 0.9, dropped where the loss
        would rise or the smoothed margin fall. Nothing is proved.
        "dual": Nesterov's method on the dual of the margin problem, as momentum on normalised
        steps, for predictors that are linear in their weights: their margin errs by
        O(log n / steps^2) up to a factor log(steps) for the exponential loss [5]_.
        "annealed": limited-memory BFGS on log(loss) until the data are separated, restarted from a
        perturbed copy of the best weights where it stalls, then on the smoothed margin as a
        function of the weights' direction, at a temperature that falls as the steps converge, for
        homogeneous networks. Nothing is proved; margin ratios above 0.99 are observed.
        log(1 / loss) follows its temperature and compares with that of no other trainer.
        "smoothed": after steps of "annealed", limited-memory BFGS on the smoothed margin of a ReLU
        network whose kinks are rounded, at temperatures and widths that fall in stages. Nothing is
        proved; networks of two layers end within 1e-5 of their own certified local optimum, not
        always that which "annealed" goes to. Its log(1 / loss) compares with no other either.
        "sign", "spectral", "muon" and others: steps in a norm. Of linear predictors the margin goes
        to the largest in that norm [6]_ [7]_; of several layers directions go to KKT points [8]_.
    loss : {"logistic", "exponential", "squared", "cross-entropy", "excess", "softmax", "attention"}
        Of a score f and a target y: log(1 + exp(-y f)), exp(-y f), (y - f)^2 / 2,
        KL(y, sigmoid(f)) of soft labels y, f - y for a network that returns its loss and its least
        value y, and KL(y, softmax(f)) of soft labels of K classes; of logits f of attention to T
        tokens and their scores y, exp(-<softmax(f), y>), of which trajectories have what is above
        the loss of the tokens with the largest logits. Trainers other than "constant" take the
        first two, and "normalised" and those of a norm the last.
    batch_size : int, optional
        Samples a step: each epoch is a new permutation cut into batches, the last one the rest. 0:
        the full training set in every step, the default of all but "constant", which has 128, and
        the only choice of those that divide by the loss, since batches that each divide by one of
        their own have another limit. So do batches under steps of a norm [9]_, which are taken.
    schedule : tuple of (steps, learning rate), optional
        Phases, one after the other. A rate of None leaves the step size to the trainer; "constant"
        needs numbers, "momentum", "dual", "annealed" and "smoothed" take None alone. By default two
        phases of 1600 steps at 0.04 and 0.01 for "constant" [1]_, 2000 steps for "annealed",
        12000 for "smoothed", 150000 for "sign", 20000 for others in a norm, 3000 else. Steps in a
        norm at a given rate fall, of a network of L layers like t^-p with p = max(1/2, 1 - 1/L)
        after the first thousand. Those that the trainer chooses are without momentum a share of
        what a quadratic along the step would ask for, measured in every step, 0.6 of one layer
        (0.3 of several outputs) and 0.13 of several at the start, which falls like t^(-1/4)
        after 20000; with momentum they are equal for half of the run and then fall to 0, in size
        like the root of 1 / steps. With decay they are a hundredth of 1 / lam for a quarter of the
        run and then fall geometrically by 1e-4.
    momentum : float
        Momentum in [0, 1) of "constant", "normalised", "sign", "spectral" and "coordinate".
    weight_decay : float
        lam >= 0 on every weight; 0 is none. It makes the limit finite (`limits.solve_fit`).
    decay : {"coupled", "decoupled"}
        "coupled": ``lam ||w||^2 / 2`` is a term of the loss, as of torch.optim.SGD and Adam; of
        "constant" alone. "decoupled": ``w <- (1 - rate lam) w`` beside every step, as of AdamW;
        of "constant", for which it is nearly the same, "sign", "signum", "spectral", "coordinate",
        "muon", "adam" and "lion".
    n_checkpoints : int
        Rows of the trajectory at most, spaced logarithmically, the first and last step included.
    random_state : int or numpy Generator
        Order of the mini-batches; drawn on the CPU, so the same for every device.

    Raises
    ------
    TypeError
        If a number of steps, samples or checkpoints is not a whole number.
    ValueError
        If a setting is out of its range, or not one that the trainer has.

    References
    ----------
    .. [1] S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized
       gated linear networks", appendix A.2: the defaults.
    .. [2] K. Lyu, J. Li, "Gradient descent maximizes the margin of homogeneous neural networks".
    .. [3] D. Soudry et al., "The implicit bias of gradient descent on separable data".
    .. [4] Z. Ji, M. Telgarsky, "Characterizing the implicit bias via a primal-dual analysis".
    .. [5] Z. Ji, N. Srebro, M. Telgarsky, "Fast margin maximization via dual acceleration".
    .. [6] Z. Fan, M. Schmidt, C. Thrampoulidis, "Implicit bias of spectral descent and Muon on
       multiclass separable data".
    .. [7] C. Zhang, D. Zou, Y. Cao, "The implicit bias of Adam on separable data".
    .. [8] N. Tsilivis, E. Gronich, G. Vardi, J. Kempe, "Flavors of margin: implicit bias of
       steepest descent in homogeneous neural networks". E. Gronich, G. Vardi, arXiv 2602.16340.
    .. [9] Li, Tang, Zou, arXiv 2602.11557. Baek, Song, Yun, arXiv 2510.26303.

    Examples
    --------
    >>> settings = ib.TrainingSettings(trainer="annealed")
    >>> settings.schedule, settings.batch_size
    (((2000, None),), 0)
    >>> ib.TrainingSettings(schedule=((100, 0.1), (50, 0.01)), batch_size=0).n_steps
    150
    """

    trainer: TrainerName = "constant"
    loss: LossName = "logistic"
    batch_size: int | None = None
    schedule: Phases | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0
    decay: DecayName = "coupled"
    n_checkpoints: int = 40
    random_state: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        trainer = get_trainer(self.trainer)
        check_loss(self.loss, self.trainer)
        size = trainer.batch_size if self.batch_size is None else self.batch_size
        phases = trainer.schedule if self.schedule is None else _read_schedule(self.schedule)
        object.__setattr__(self, "batch_size", whole_number("`batch_size`", size, least=0))
        object.__setattr__(self, "schedule", phases)
        whole_number("`n_checkpoints`", self.n_checkpoints, least=2)
        fraction("momentum", self.momentum)
        _check_decay(self, trainer)
        if not is_a(self.random_state, "Generator"):
            whole_number("random_state", self.random_state, least=0)
        _check_fit(self, trainer)

    @property
    def phases(self) -> Phases:
        """The schedule, the trainer's own where none was given."""
        return self.schedule or ()

    @property
    def n_steps(self) -> int:
        """Number of gradient steps of all phases together."""
        return sum(steps for steps, _ in self.phases)

    @door()
    def split_phases(self, at: int) -> tuple[Phases, Phases]:
        """Return the phases of the first `at` steps and those of the rest, either may be empty.

        Examples
        --------
        >>> ib.TrainingSettings(schedule=((60, 0.05), (40, 0.01))).split_phases(70)
        (((60, 0.05), (10, 0.01)), ((30, 0.01),))
        """
        first, second, start = [], [], 0
        for steps, rate in self.phases:
            early = min(max(at - start, 0), steps)
            first.append((early, rate))
            second.append((steps - early, rate))
            start += steps
        before, after = (tuple(one for one in part if one[0] > 0) for part in (first, second))
        return before, after

    @property
    def automatic(self) -> bool:
        """True if the trainer finds its step sizes by itself."""
        return self.phases[0][1] is None

    def checkpoints(self) -> list[int]:
        """Return the steps at which a trajectory has a row: 0, and 1 to `n_steps` by factors."""
        import numpy as np

        spaced = np.geomspace(self.n_steps, 1, self.n_checkpoints - 1).round().astype(int)
        return sorted({0, self.n_steps, *spaced.tolist()})

    @door()
    def flow_times(self, step: ArrayLike) -> NDArray[np.float64]:
        """Return the times (T,) of the gradient flow that so many steps (T,) approximate.

        Examples
        --------
        >>> settings = ib.TrainingSettings(schedule=((10, 0.5), (10, 0.1)))
        >>> settings.flow_times([0, 10, 15]).tolist()
        [0.0, 5.0, 5.5]
        """
        import numpy as np

        left = np.asarray(step, dtype=np.float64)
        times = np.zeros_like(left)
        for count, rate in self.phases:
            times += np.clip(left, 0, count) * (rate or 0.0)
            left = left - count
        return times


def _read_schedule(schedule: Any) -> Phases:
    """Check a schedule and return its phases."""
    wanted = "`schedule` must be pairs (steps, learning rate) such as ((1600, 0.04), (1600, 0.01))"
    try:
        pairs = [(steps, rate) for steps, rate in schedule]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wanted}, got {schedule!r}") from error
    if not pairs:
        raise ValueError(f"{wanted}, at least one; got none")
    counts = [whole_number("the steps of `schedule`", steps) for steps, _ in pairs]
    if sum(counts) > MOST_STEPS:
        raise ValueError(
            f"the steps of `schedule` must be together at most {MOST_STEPS} (2^53, as far as a "
            f"trajectory can count), got {', '.join(map(str, counts))}"
        )
    rates = [None if rate is None else _positive(rate) for _, rate in pairs]
    return tuple(zip(counts, rates, strict=True))


def _positive(rate: Any) -> float:
    if not isinstance(rate, Real) or not 0 < float(rate) < math.inf:
        raise ValueError(
            f"the learning rates of `schedule` must be positive and finite numbers, got {rate!r}"
        )
    return float(rate)


def _check_fit(settings: TrainingSettings, trainer: Trainer) -> None:
    """Check that the trainer has what the settings ask of it."""
    name = settings.trainer
    if settings.batch_size and trainer.full_batch:
        raise ValueError(
            f"trainer {name!r} works with the loss over all samples: let `batch_size` be 0, the "
            f"full batch, got {settings.batch_size}"
        )
    found = {rate is None for _, rate in settings.phases}
    if len(found) > 1:
        raise ValueError(
            "`learning_rate`, that of each phase of `schedule`, must be a number in all of them or "
            f"None in all, got {_rates(settings)}"
        )
    if not found <= trainer.automatic:
        wanted = "None (auto on the command line), since it finds its own,"
        if trainer.automatic == {False}:
            wanted = "numbers"
        raise ValueError(
            f"`learning_rate`, that of each phase of `schedule`, must be {wanted} for trainer "
            f"{name!r}, got {_rates(settings)}"
        )
    if settings.momentum and not trainer.takes_momentum:
        raise ValueError(
            f"trainer {name!r} has a momentum of its own: leave `momentum` out, got "
            f"{settings.momentum}"
        )


def _rates(settings: TrainingSettings) -> str:
    return ", ".join(str(rate) for _, rate in settings.phases)


def _check_decay(settings: TrainingSettings, trainer: Trainer) -> None:
    """Check that the trainer has this form of weight decay."""
    check_word("decay", settings.decay, DecayName)
    lam = settings.weight_decay
    tolerance("weight_decay", lam)
    if lam and settings.decay not in trainer.decays:
        other = " or ".join(f"decay={one!r}" for one in trainer.decays)
        way = f"give it {other}" if other else "take the trainer 'constant'"
        raise ValueError(
            f"trainer {settings.trainer!r} has no {settings.decay} weight decay, got "
            f"weight_decay={lam}: {way}"
        )
