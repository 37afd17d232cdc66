"""Statuses of answers, each with its severity and its advice."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Status(Enum):
    """Verdict on an answer: what its certificate proves, or what came of a fit.

    Every kind of answer uses some of the members. A kind whose certificate measures something of
    its own says the same in its own words: `Answer.advice`.

    Attributes
    ----------
    severity : int
        0: as was asked for. 1: what is reported holds, and is less than was asked for. 2: nothing
        is decided. 3: nothing was found, or not all can be true. From 4 on: there is no such
        answer, for all that can be told, or by proof.
    advice : str
        A sentence that explains the status, with the way out.
    """

    SOLVED = (
        0,
        "solved: all that the certificate measures, recomputed from the returned arrays, is within "
        "the tolerance",
    )
    INACCURATE = (
        1,
        "inaccurate: something that the certificate measures is above the tolerance. Its numbers "
        "hold as reported: raise `tol` to what they support, or rescale the data",
    )
    UNDECIDED = (
        2,
        "undecided: neither coefficients with positive margins nor a proof that there are none "
        "were found. "
        "The margin, if any, is below what float64 resolves on these data: rescale the features, "
        "remove near-duplicate samples of opposite labels, or treat the data as not separable",
    )
    FAILED = (
        3,
        "failed: nothing was found that could be certified. Allow more iterations",
    )
    NO_MINIMISER = (
        4,
        "no minimiser was found: on hard labels alone weights may grow without end along a "
        "direction that leaves some samples undecided. Give soft labels some weight (share < 1)",
    )
    INCONSISTENT = (
        5,
        "inconsistent: no inputs and targets have these moments, since b has a part outside the "
        "range of A or the second moment is too small. Check the moments; if they are averages "
        "over samples, use the samples themselves",
    )
    NOT_SEPARABLE = (
        6,
        "not separable: the returned multipliers prove that every choice of coefficients leaves "
        "some sample a margin no larger than the resolution of float64 on its own terms. Look for "
        "contradictory samples among those with positive multipliers, drop samples, or use a "
        "predictor that tells more of them apart",
    )
    NOT_INTERPOLABLE = (
        6,
        "not interpolable: multipliers nu in the kernel of the features' transpose, with <y, nu> "
        "above 0, prove that no coefficients give these targets. Give a `penalty`, look for equal "
        "samples of different targets, or use features that tell more samples apart",
    )
    # Points to which training is heading.
    LOCAL_OPTIMUM = (
        0,
        "local optimum: first-order conditions hold, multipliers are positive, and the Lagrangian "
        "curves upwards wherever active margins stay, but for rotations of units that no active "
        "sample sees. In floating point; other local optima may be better",
    )
    GLOBAL_OPTIMUM = (
        0,
        "global optimum: no network of this kind, of any width, has a value below it by more than "
        "the tolerance",
    )
    LIVE_OPTIMUM = (
        1,
        "live optimum: a local optimum among networks of the live units. Units are to spare, dead "
        "or parallel to another, and `reason` tells what is known of them",
    )
    SADDLE = (
        1,
        "saddle: first-order conditions hold, but `escape` leads to larger margins. Training from "
        "general weights leaves such a point: train longer, or restart from off it",
    )
    FLAT = (
        1,
        "flat: first-order conditions hold and no direction curves downwards, but some have no "
        "curvature that rotations of units would explain. Higher orders decide",
    )
    STATIONARY = (
        1,
        "stationary: first-order conditions hold to `residual`, and nothing is said about second "
        "order; `reason` tells why",
    )
    # Two networks that are to be one function.
    EQUIVALENT = (
        0,
        "equivalent: these permutations and positive scales turn one network into the other up to "
        "`distance`, so that they are one function",
    )
    HEURISTIC = (
        1,
        "heuristic: no permutations and scales that make them equal were found, and weight "
        "matching gives no guarantee. `distance` is an upper bound of the distance modulo "
        "permutations at balanced scales; networks of different weights may still be one function",
    )
    # Series that are extrapolated.
    ESTIMATED = (0, "the series was long enough and under way to its limit")
    TOO_FEW = (
        2,
        "fewer than 8 usable checkpoints in the window of a fit: record more of them, or train "
        "longer",
    )
    NOT_SEPARATING = (
        2,
        "the last checkpoint has no value, or a loss that is not below 1: train until the data "
        "are separated",
    )
    NOT_MONOTONE = (
        2,
        "the variable goes to and fro between checkpoints of the last part of the run, so there is "
        "nothing to fit against: use a smaller learning rate or larger batches",
    )
    ABOVE_BOUND = (
        3,
        "a value of the last part of the run lies above its bound, so one of the two is wrong: "
        "check the limit's certificate and that network and limit have the same gates",
    )

    severity: int
    advice: str

    def __init__(self, severity: int, advice: str) -> None:
        self.severity = severity
        self.advice = advice

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


def worst_status(statuses: Iterable[Status]) -> Status:
    """Select the status of largest severity, the first of several such.

    Parameters
    ----------
    statuses : iterable of Status
        At least one.

    Returns
    -------
    Status

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> worst_status([Status.SOLVED, Status.FAILED, Status.INACCURATE]).name
    'FAILED'
    """
    return max(statuses, key=lambda status: status.severity)
