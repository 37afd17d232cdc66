"""Rates at which a run approaches its limit: exponents with standard errors, and known ones.

A rate is the slope of log(distance) against log(variable) over the last part of a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import linregress

from ..._support.doors import door
from ..._support.kinds import floats, mapping, measured
from ..._support.solve import Status
from ..._support.words import TrainerName
from ...quantities.formatting import DASH
from ...quantities.table import TABLE
from ...training.catalogue import get_trainer
from ...training.settings import TrainingSettings
from .series import usable

Array = NDArray[np.float64]

# Fewest points of a slope, and of either half of them.
LEAST, LEAST_HALF = 8, 4

SOUDRY = "Soudry et al. 2018"
JI_T = "Ji and Telgarsky 2021"
JI_SREBRO = "Ji, Srebro and Telgarsky 2021"
LYU_LI = "Lyu and Li 2020"


@dataclass(frozen=True)
class KnownRate:
    """A proved rate: `distance ~ variable ** exponent`.

    Attributes
    ----------
    exponent : float
    of : str
        What it is proved of, in words.
    source : str
    """

    exponent: float
    of: str
    source: str


MARGIN = TABLE["margin_ratio"].distance_label
ANGLE, WEIGHTS = "angle of direction", "norm of the weights"
_CONSTANT = KnownRate(-1.0, "linear predictors, constant steps", SOUDRY)
_NORMALISED = KnownRate(-1.0, "linear predictors, steps over the loss", JI_T)

KNOWN_RATES: Mapping[tuple[str, str, str], KnownRate] = MappingProxyType(
    {
        **{("constant", distance, "log t"): _CONSTANT for distance in (MARGIN, ANGLE)},
        **{("constant", distance, "log(1/loss)"): _CONSTANT for distance in (MARGIN, ANGLE)},
        **{("normalised", distance, "t"): _NORMALISED for distance in (MARGIN, ANGLE)},
        **{("normalised", distance, "log(1/loss)"): _NORMALISED for distance in (MARGIN, ANGLE)},
        ("dual", MARGIN, "t"): KnownRate(-2.0, "linear predictors, dual acceleration", JI_SREBRO),
    }
)
"""By trainer, distance and variable, up to logarithms; of predictors linear in their weights."""


@dataclass(frozen=True)
class Rate:
    """One measured exponent.

    Attributes
    ----------
    quantity, variable : str
        `quantity ~ variable ** exponent` at the end of the run.
    exponent : float
        NaN unless `status` is ESTIMATED.
    error : float
        The slope's standard error, or half the difference of the slopes in both halves of the
        window if that is more. It is of the window, not of infinity: in log t, constants fade so
        slowly that 10^4 constant steps show -1.3 to -1.5 where -1 is proved.
    window : int
        Checkpoints in the fit.
    status : Status
    known : KnownRate or None
        What is proved of this quantity under such steps, if anything is.
    """

    quantity: str
    variable: str
    exponent: float
    error: float
    window: int
    status: Status
    known: KnownRate | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        exponent, of, source = (None,) * 3 if self.known is None else astuple(self.known)
        known = {"known_exponent": exponent, "known_of": of, "source": source}
        own = {name: one for name, one in vars(self).items() if name != "known"}
        return own | {"status": self.status.name} | known

    def row(self) -> tuple[str, str, str, str]:
        """Return the cells of a table: quantity, measured rate, known rate, theorem."""
        measured = "no estimate"
        if self.status is Status.ESTIMATED:
            measured = f"{self.exponent:+.3f} +- {self.error:.2g}"
        known, source = DASH, DASH
        if self.known is not None:
            known, source = f"{self.known.exponent:+.3g}", f"{self.known.of} ({self.known.source})"
        return f"{self.quantity} against {self.variable}", measured, known, source


@door(variable=measured("T>=0"), values=measured("T: one entry a checkpoint"))
def fit_rate(
    variable: ArrayLike,
    values: ArrayLike,
    *,
    names: tuple[str, str] = ("distance", "variable"),
    known: KnownRate | None = None,
) -> Rate:
    """Fit `values ~ variable ** exponent` to the last half of a series.

    Parameters
    ----------
    variable, values : (T,)
        In the order of the run. Checkpoints at which one of them is not positive and finite are
        left out.
    names : (str, str)
        Of the values and of the variable.
    known : KnownRate, optional
        What is proved of the exponent; the rate has it beside the measured one.

    Returns
    -------
    Rate
        With a status that says why where there is no estimate.

    Raises
    ------
    ValueError
        If the shapes differ or are not one-dimensional.

    Examples
    --------
    >>> t = np.arange(1.0, 21.0)
    >>> rate = ib.measures.fit_rate(t, 3 / t**2)
    >>> rate.status.name, round(rate.exponent, 6), rate.window
    ('ESTIMATED', -2.0, 10)
    """
    x, y = np.asarray(variable), np.asarray(values)
    status, x, y = usable(x, np.where(y > 0, y, np.nan), LEAST)
    window = max(LEAST, math.ceil(len(x) / 2))
    if status is Status.ESTIMATED:
        x, y = np.log(x[-window:]), np.log(y[-window:])
        if not np.all(np.diff(x) > 0):
            status = Status.NOT_MONOTONE
    if status is not Status.ESTIMATED:
        return Rate(*names, math.nan, math.nan, 0, status, known)
    whole, half = linregress(x, y), window // 2
    early, late = (linregress(x[part], y[part]).slope for part in (slice(half), slice(-half, None)))
    # Of values that do not vary at all the regression divides 0 by 0: they are on the line.
    spread = float(whole.stderr) if np.any(y[-window:] != y[-1]) else 0.0
    error = max(spread, abs(early - late) / 2)
    return Rate(*names, float(whole.slope), error, window, status, known)


@door(
    step=floats("T>=0"),
    log_loss=measured("T: one entry a checkpoint"),
    distances=mapping,
    weight_norm=measured("T"),
)
def measure_rates(
    step: ArrayLike,
    log_loss: ArrayLike,
    distances: Mapping[str, ArrayLike],
    *,
    weight_norm: ArrayLike | None = None,
    degree: int = 1,
    trainer: TrainerName | None = None,
) -> tuple[Rate, ...]:
    """Measure how distances fall and weights grow, against t, log t and log(1/loss).

    Parameters
    ----------
    step, log_loss : (T,) arrays
        Gradient steps done and natural logarithm of the mean loss.
    distances : mapping of str to (T,) array
        Quantities that tend to 0. Rates are known of those named `MARGIN` and `ANGLE`.
    weight_norm : (T,) array, optional
        Euclidean norm of all trained weights.
    degree : int
        Degree of homogeneity of the network.
    trainer : str, optional
        The method of the run, to add the known rates to the measured ones: `proved_method` of its
        settings.

    Returns
    -------
    tuple of Rate
        Three for each distance; two for the weight norm, if it is given.

    Raises
    ------
    ValueError
        If shapes disagree or there is no such trainer.

    Notes
    -----
    Rates of directions and margins are known for predictors linear in their weights: degree 1. The
    weights of a network of degree L grow like log(1/loss) and, as loss and steps go together, like
    log(t) to the power 1/L under constant steps.

    Examples
    --------
    >>> t = np.arange(1.0, 200.0)
    >>> rates = ib.dynamics.measure_rates(t, -2 * np.log(t), {"distance": t**-0.5})
    >>> rates[0].variable, round(rates[0].exponent, 6)
    ('t', -0.5)
    """
    if trainer is not None:
        get_trainer(trainer)
    t = np.asarray(step)
    variables = {
        "t": t,
        "log t": np.log(np.maximum(t, 1.0)),
        "log(1/loss)": -np.asarray(log_loss),
    }
    proved: Mapping[Any, KnownRate] = KNOWN_RATES if degree == 1 else {}
    rates = [
        fit_rate(x, distance, names=(quantity, name), known=proved.get((trainer, quantity, name)))
        for quantity, distance in distances.items()
        for name, x in variables.items()
    ]
    if weight_norm is not None:
        growth = KnownRate(1 / degree, f"homogeneous networks of degree {degree}", LYU_LI)
        known = growth if trainer == "constant" else None
        rates += [
            fit_rate(variables[name], weight_norm, names=(WEIGHTS, name), known=known)
            for name in ("log t", "log(1/loss)")
        ]
    return tuple(rates)


@door()
def proved_method(settings: TrainingSettings) -> TrainerName | None:
    """Return the trainer of a run if its steps are such as rates are proved of.

    They are proved of full batches without momentum, at rates that are given in advance; of dual
    acceleration as it is.

    Parameters
    ----------
    settings : TrainingSettings

    Returns
    -------
    str or None
        The name of the trainer; None for steps of which nothing is proved.

    Examples
    --------
    >>> ib.measures.proved_method(ib.TrainingSettings(batch_size=0))
    'constant'
    >>> print(ib.measures.proved_method(ib.TrainingSettings(batch_size=32)))
    None
    """
    if settings.batch_size or settings.momentum:
        return None
    return None if settings.automatic and settings.trainer != "dual" else settings.trainer
