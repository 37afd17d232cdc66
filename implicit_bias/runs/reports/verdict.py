"""The verdict on a network: one function that decides, from declared quantities, where it stands.

Every model, every trainer and a network of one's own are judged by `decide`, in the words of
`WORDS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from ..._support.shown import Shown
from ..._support.solve import Status
from ...quantities.definition import distance_from_ideal
from ...quantities.table import TABLE

Word = Literal[
    "PROBLEM NAMED", "ANOTHER REGIME", "AT ITS LIMIT", "AT A LOCAL LIMIT", "NOT THERE YET",
    "NOT THIS LIMIT", "NO THEOREM", "NOT SEPARATED", "DIVERGED", "PREDICTED", "BOUND",
    "NOT SOLVED", "NOT SEPARABLE",
]  # fmt: skip
WORDS: tuple[Word, ...] = get_args(Word)
"""All words of verdicts; of a run with several the first of them is the run's."""
Theory = Literal["limit", "local limit", "problem", "regime", "bound", "control", "none"]
"""What theory says of a network: names its limit, names none but the local limit next to it was
found, names the problem of whose KKT points one is its limit, names another problem than that of
networks of its architecture in general, bounds all networks from below, names a limit of other
networks alone, or says nothing."""

WITHIN = 0.01
"""A network is at its limit if every quantity that decides is this near to its ideal value."""
ALIKE = 0.95
"""Share of equal labels held out below which a network at its limit is said to differ, and why."""
# Of a decimal that stands for the edge itself: 0.99 is 0.01 away from 1.
ROUNDING = 1e-12
# What a ratio that no network can exceed may exceed 1 by, as scores are rounded.
EXCESS = 1e-6
# Of these ratios the certified lower bound of the optimum is a part: they hold as they are where
# the gap is above its tolerance, and none can exceed 1.
BOUNDED = ("margin_ratio",)


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """The place of a network beside its predicted limit, in a word and a sentence.

    Attributes
    ----------
    word : str
        One of `WORDS`. "AT ITS LIMIT": within 1 %, measured. "NOT THERE YET": farther from a limit
        that a theorem names. "AT A LOCAL LIMIT": within 1 % of a point that is proved to be a
        strict local optimum. "PROBLEM NAMED": training goes to some KKT point of a problem that is
        named. "ANOTHER REGIME": weights that vanish in most networks of its architecture carry its
        scores. "BOUND": what is proved of all networks. "NOT THIS LIMIT": the limit
        is another network's. "NO THEOREM": none names the limit. "NOT SEPARABLE": proved of the
        data. "NOT SEPARATED": the network leaves a sample on the wrong side. "DIVERGED": training
        did. "PREDICTED": nothing was trained. "NOT SOLVED": the prediction is not certified.
    sentence : str
        What was measured, what keeps it away, and what is predicted.
    numbers : mapping of str to float
        The numbers that it rests on, by the names of their quantities.
    trainer : str
        The trainer of the network; empty where there is no choice of them.
    network : str
        Which of several networks it is of; empty where there is one.

    Examples
    --------
    >>> report = ib.run("linear", n_train=40)
    >>> report.verdict.word, report.verdict.numbers["margin_ratio"] > 0.99
    ('AT ITS LIMIT', True)
    """

    word: Word
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    trainer: str = ""
    network: str = ""

    @property
    def subject(self) -> str:
        """The network and its trainer, as far as they are named."""
        return " by ".join(filter(None, (self.network, self.trainer)))

    @property
    def text(self) -> str:
        """The sentence, after the network that it is of."""
        return ": ".join(filter(None, (self.subject, self.sentence)))

    @property
    def alone(self) -> str:
        """The sentence where no other trainer stands beside it."""
        return ": ".join(filter(None, (self.network, self.sentence)))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values."""
        return asdict(self) | {"numbers": dict(self.numbers)}

    def __str__(self) -> str:
        return f"{self.word}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that decides on a verdict.

    Attributes
    ----------
    theory : {"limit", "local limit", "problem", "regime", "bound", "control", "none"}
        What theory says of the network, see `Theory`.
    status : Status, optional
        Status of the limit, or of the local limit; None where there is none.
    near : mapping of str to float
        The quantities of the network that decide, by their names in `quantities.TABLE`, where they
        have an ideal value; all of them must be near it. NaN is not known, and so not near.
    beside : mapping of str to float
        Further quantities that the sentence says.
    smallest_margin : float, optional
        Of the network; None where it has nothing to separate.
    trained : bool
        False for a prediction alone.
    diverged : str
        How training diverged; empty if it did not.
    reason : str
        What keeps the network from its limit; of a control and of no theorem, why.
    predicted : str
        What is predicted of the network if it trains on.
    remark : str
        What is said of the network wherever it stands.
    proof : str
        What is proved of the local limit; that it is strict if this is left out. Of a limit that is
        not solved, what its solver says instead; the advice of the status if this is left out.
    numbers : str
        The numbers in words of their own, where a list of quantities does not say it.
    trainer, network : str
        As of `Verdict`.
    """

    theory: Theory = "limit"
    status: Status | None = None
    near: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, float] = field(default_factory=dict)
    smallest_margin: float | None = None
    trained: bool = True
    diverged: str = ""
    reason: str = ""
    predicted: str = ""
    remark: str = ""
    proof: str = ""
    numbers: str = ""
    trainer: str = ""
    network: str = ""


# Statuses of points that are proved to be local optima, of all networks nearby or of live units.
OPTIMA = (Status.LOCAL_OPTIMUM, Status.GLOBAL_OPTIMUM, Status.LIVE_OPTIMUM)
# Words of networks whose numbers say nothing yet.
SILENT = ("DIVERGED", "NOT SEPARABLE", "NOT SEPARATED", "NOT SOLVED")


def decide(found: Evidence) -> Verdict:
    """Decide on the verdict of a network, or of a prediction alone.

    Parameters
    ----------
    found : Evidence

    Returns
    -------
    Verdict

    Raises
    ------
    KeyError
        If a quantity is not declared in `quantities.TABLE`.
    ValueError
        If a quantity that is to decide has no ideal value.

    Examples
    --------
    >>> from implicit_bias.runs.reports import Evidence, decide
    >>> print(decide(Evidence(near={"margin_ratio": 0.9996}, beside={"agreement": 1.0})))
    AT ITS LIMIT: margin ratio 0.9996, same label on 100.00% held out
    >>> decide(Evidence(near={"margin_ratio": 0.92}, reason="units 3, 6 still grow")).word
    'NOT THERE YET'
    """
    word = _word(found)
    known = {name: one for name, one in {**found.near, **found.beside}.items() if one == one}
    numbers = found.numbers or ", ".join(TABLE[name].said(one) for name, one in known.items())
    numbers *= word not in SILENT
    sentence = "; ".join(filter(None, (numbers, *_explained(word, found), found.remark)))
    return Verdict(word, sentence, known, found.trainer, found.network)


def nearest_first(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Sort verdicts by their words, of one word the nearest to its ideal values first."""
    return tuple(sorted(verdicts, key=lambda one: (WORDS.index(one.word), _farthest(one.numbers))))


def _word(found: Evidence) -> Word:
    """Return the word, the first that the evidence leaves no choice about."""
    if found.diverged:
        return "DIVERGED"
    if found.status is Status.NOT_SEPARABLE and found.theory != "none":
        return "NOT SEPARABLE"
    if _is_unsolved(found):
        return "NOT SOLVED"
    if found.theory == "bound":
        return "BOUND"
    if not found.trained:
        return "PREDICTED"
    if found.smallest_margin is not None and not found.smallest_margin > 0:
        return "NOT SEPARATED"
    if found.theory == "problem":
        return "PROBLEM NAMED"
    if found.theory == "regime":
        return "ANOTHER REGIME"
    if found.theory == "control" or _exceeds_one(found):
        return "NOT THIS LIMIT"
    return _place(found)


def _explained(word: Word, found: Evidence) -> tuple[str, ...]:
    """Return what the sentence says beside numbers."""
    if word == "DIVERGED":
        return (found.diverged,)
    if word == "NOT THERE YET":
        saddle = "the point next to it is a saddle" * (found.status is Status.SADDLE)
        return saddle, found.reason, found.predicted
    if word == "AT ITS LIMIT":
        # A margin decides on labels held out only as far as few networks have it.
        other = found.beside.get("agreement", 1.0) < ALIKE
        return ("this margin leaves labels held out open: networks near it differ there",) * other
    if word == "NOT SOLVED":  # whatever would keep a network away: it is not known from what
        return (found.proof or (found.status.advice if found.status is not None else ""),)
    if word == "AT A LOCAL LIMIT":
        return (found.proof or "proved strict",)
    if word == "NOT THIS LIMIT" and found.theory != "control":
        return ("no network of this limit exceeds 1: it has other gates, data or units",)
    return (found.reason or _usual_reason(word, found),)


def _usual_reason(word: Word, found: Evidence) -> str:
    """Return what is said where the evidence gives no reason."""
    if word == "NOT SEPARABLE":
        return "proved: no such network separates these samples"
    if word == "NOT SEPARATED":
        return TABLE["smallest_margin"].said(found.smallest_margin)
    return ""


def _is_unsolved(found: Evidence) -> bool:
    """Return True where nothing that is certified says where the limit is."""
    if found.status is None or found.theory in ("none", "local limit", "problem", "regime"):
        return False
    if found.status is Status.INACCURATE:
        # What a certified lower bound says holds at any gap.
        bounded = bool(found.near) and set(found.near) <= set(BOUNDED)
        return not (bounded or found.theory == "bound")
    return found.status.severity > 0


def _exceeds_one(found: Evidence) -> bool:
    return any(found.near[name] > 1 + EXCESS for name in BOUNDED if name in found.near)


def _place(found: Evidence) -> Word:
    """Return the word of a network that separates its data, beside what theory says of it."""
    near = bool(found.near) and all(_is_near(name, value) for name, value in found.near.items())
    if found.theory == "limit":
        return "AT ITS LIMIT" if near else "NOT THERE YET"
    local = found.status if found.theory == "local limit" else None
    if found.near.get("local_ratio", 0.0) > 1 + EXCESS:
        return "NO THEOREM"  # what is above the network is no optimum next to it
    if local in OPTIMA and near:
        return "AT A LOCAL LIMIT"
    return "NOT THERE YET" if local in (*OPTIMA, Status.SADDLE) else "NO THEOREM"


def _is_near(name: str, value: float) -> bool:
    one = TABLE[name]
    if one.ideal is None:
        raise ValueError(f"`{name}` has no ideal value, so that it decides nothing")
    far = distance_from_ideal(one, value)
    return far <= WITHIN + ROUNDING


def _farthest(numbers: Mapping[str, float]) -> float:
    """Return the largest distance from an ideal value; infinite where none is known."""
    known = (distance_from_ideal(TABLE[name], value) for name, value in numbers.items())
    return max((far for far in known if not math.isnan(far)), default=math.inf)
