"""The regime that weights are in: which of their tensors carry the margins as all of them grow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from ..._support.words import LossName
from ..losses.margins import loss_margins
from ..losses.objectives import log_mean_loss
from .homogenised import Homogenised, homogenise
from .rates import ExactRates, are_scale_free, exact_rates, with_zeros
from .subject import Subject

# A regime that is read at a smaller log(1/loss) may be another one later.
EARLY = 10.0


class RegimeName(Enum):
    """What carries the margins, and so which program the direction of the weights solves."""

    TOP = "the homogenised network separates the data"
    HIGHEST_RATE = "tensors of the highest rate carry the margins"
    OPEN = "no theorem says what carries the margins"
    NOT_SEPARATED = "the network does not separate the data"


@dataclass(frozen=True, eq=False)
class Regime:
    """The regime of given weights on labelled samples.

    Attributes
    ----------
    name : RegimeName
    subject : Subject or None
        The network that the limit is of: the homogenised one at the top, the module without
        `zeroed` where tensors of the highest rate carry the margins; None where it is open.
    kept : tuple of str
        Tensors that would vanish, without which these weights do not separate the data. That no
        other weights do without them is not said.
    zeroed : tuple of str
        Those that they separate without.
    rates : ExactRates
        Of the module without `zeroed`.
    early : bool
        Whether log(1/loss) is below 10: the regime may change.
    log_inverse_loss : float
        log(1/loss) of the mean loss.
    margin_ratio : float
        The least margin of `subject` over that of the module; NaN where it is open.
    """

    name: RegimeName
    subject: Subject | None
    kept: tuple[str, ...]
    zeroed: tuple[str, ...]
    rates: ExactRates
    early: bool
    log_inverse_loss: float
    margin_ratio: float

    @property
    def minimised(self) -> tuple[str, ...]:
        """Tensors whose norm the limit has least: all at the top, else those of highest rate."""
        if self.subject is None:
            return ()
        return tuple(self.subject.weights) if self.name is RegimeName.TOP else self.rates.highest


@dataclass(frozen=True, eq=False)
class Rates:
    """What is known of how the weights of a module grow as its loss tends to 0.

    Attributes
    ----------
    exact : ExactRates
    homogenised : Homogenised
    regime : Regime
    """

    exact: ExactRates
    homogenised: Homogenised
    regime: Regime


def find_rates(subject: Subject, loss: LossName = "logistic") -> Rates:
    """Find the exact rates of a module, its homogenised network, and the regime of its weights.

    Parameters
    ----------
    subject : Subject
        On labelled samples. All trained tensors have gradients, as those of a `Structure`.
    loss : str
        That it was trained with.

    Returns
    -------
    Rates
    """
    exact = exact_rates(subject)
    homogenised = homogenise(subject, exact)
    return Rates(exact, homogenised, find_regime(subject, exact, homogenised, loss))


def find_regime(
    subject: Subject, rates: ExactRates, homogenised: Homogenised, loss: LossName = "logistic"
) -> Regime:
    """Find which tensors carry the margins, from the weights as they are given.

    Where the homogenised network separates the data, Cai et al. name the limit. Else tensors whose
    absence lets the others grow slower are left out one at a time, highest rate first, unless the
    data are not separated then: the limit of what is left is that of Kunin et al.

    Parameters
    ----------
    subject : Subject
        On labelled samples.
    rates : ExactRates
    homogenised : Homogenised
        Both of the same subject.
    loss : str
        That it was trained with.
    """
    margin = _least(subject)
    u = log_inverse_loss(subject, loss)

    def regime(
        name: RegimeName, found: Subject | None, kept: tuple[str, ...] = (),
        zeroed: tuple[str, ...] = (), of: ExactRates = rates,
    ) -> Regime:  # fmt: skip
        ratio = math.nan if found is None else _least(found) / margin
        return Regime(name, found, kept, zeroed, of, u < EARLY, u, ratio)

    if not margin > 0:
        return regime(RegimeName.NOT_SEPARATED, None)
    top = homogenised.subject
    if top is not None and _least(top) > 0:
        return regime(RegimeName.TOP, top, zeroed=homogenised.vanishing)
    zeroed, left, of = _without_needless(subject, rates, homogenised)
    kept = tuple(name for name in homogenised.vanishing if name not in zeroed)
    if not _is_settled(left, of, homogenised.near):
        return regime(RegimeName.OPEN, None, kept, zeroed, of)
    return regime(RegimeName.HIGHEST_RATE, left, kept, zeroed, of)


def _is_settled(subject: Subject, rates: ExactRates, near: bool) -> bool:
    """Test whether the weights can converge but for the growth at their rates.

    Tensors of rate 0 grow all the same, unless scores depend on their directions alone.
    """
    still = [name for name, rate in rates.lam.items() if rate == 0]
    return bool(rates.lam) and (not still or (not near and are_scale_free(subject, still)))


def log_inverse_loss(subject: Subject, loss: LossName = "logistic") -> float:
    """Return log(1/loss) of the mean loss of the subject's margins, at any size of them."""
    return -float(log_mean_loss(loss_margins(subject.scores({}), subject.data.y), loss))


def _least(subject: Subject) -> float:
    return float(subject.margins({}).min())


def _without_needless(
    subject: Subject, rates: ExactRates, homogenised: Homogenised
) -> tuple[tuple[str, ...], Subject, ExactRates]:
    """Leave out tensors that the margins do not need, while the rates of the others fall."""
    zeroed: tuple[str, ...] = ()
    left, tried = subject, set()
    while True:
        candidates = [name for name in _candidates(rates, homogenised) if name not in tried]
        if not candidates:
            return zeroed, left, rates
        name = candidates[0]
        tried.add(name)
        if rates.lam and not rates.falls_without(name):
            continue
        without = with_zeros(left, (name,))
        if _least(without) > 0:
            zeroed, left = (*zeroed, name), without
            rates = exact_rates(left)


def _candidates(rates: ExactRates, homogenised: Homogenised) -> list[str]:
    """Return the tensors to leave out, those of highest order, and so of highest rate, first."""
    if homogenised.near:
        return sorted(homogenised.vanishing, key=lambda name: -homogenised.orders[name])
    return list(rates.highest)
