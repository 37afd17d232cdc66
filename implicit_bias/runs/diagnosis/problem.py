"""The margin problem of which training finds a KKT point: for biases, K outputs, any norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from ..._support.words import MarginLoss
from ...measures.level import KKTLevel, level_of
from ...networks.recognition.regime import EARLY, Rates, Regime, RegimeName, find_rates
from ...networks.recognition.shares import VanishingTensor, vanishing_tensors
from ...networks.recognition.structure import Form, recognise
from ...networks.recognition.subject import Weights
from ...quantities.assumptions import Assumption
from ...quantities.atlas import ENTRIES
from ...quantities.formatting import DASH, number
from ...quantities.premises import DIRECTION
from ...quantities.said import Side, Table
from ..reports.finding import Finding
from ..reports.verdict import Evidence
from ..reports.views import Views
from .method import Method
from .optimum import find_optimum
from .state import MeasuredNetwork, held_back_by, measure_own
from .theory import Theory, listed

GROWTH = "how the weights grow, and what is predicted at ten times log(1/loss) (measured)"
# KKT residual from which on multipliers predict nothing.
FAR = 0.2


@dataclass(frozen=True, eq=False)
class Problem:
    """What names the margin problem of a network, and how near the network is to a KKT point.

    Attributes
    ----------
    rates : Rates
        Exact rates of the weights, the homogenised network, and the regime.
    level : KKTLevel or None
        None where the network does not separate, or the norm is not known.
    increment : float
        Residual of the increment since an earlier checkpoint; NaN without one.
    vanishing : tuple of VanishingTensor
        The tensors that the homogenised network does not contain, now and later.
    method : Method
    homogeneous : bool
        True of a network that is homogeneous as it is.
    """

    rates: Rates
    level: KKTLevel | None
    increment: float
    vanishing: tuple[VanishingTensor, ...]
    method: Method
    homogeneous: bool

    @property
    def regime(self) -> Regime:
        """What carries the margins."""
        return self.rates.regime

    @property
    def unnamed(self) -> str:
        """Why no theorem names a problem; empty where one does."""
        method, regime = self.method, self.regime
        if method.decay > 0:
            return (
                f"the weight decay of {method.name}, {method.decay:g}, keeps weights finite: their "
                "limit is of `ib.limits.solve_fit`, where the scores are linear behind gates"
            )
        if method.norms is None:
            return method.remark
        if regime.name is RegimeName.OPEN and not self.rates.homogenised.near:
            return _why_open(self.rates)
        if regime.early:
            return (
                f"too early: log(1/loss) is {regime.log_inverse_loss:.3g}, and below {EARLY:g} "
                "other weights may come to carry the margins"
            )
        if regime.name is RegimeName.OPEN:
            return _why_open(self.rates)
        if not method.joint and not self.homogeneous:
            return (
                f"theorems in the {method.norm_in_words} are of homogeneous networks: what "
                "vanishes in others is observed alone"
            )
        return ""

    @property
    def theory(self) -> Theory:
        """What is proved of its training."""
        if self.unnamed:
            return Theory("none", f"no theorem: {self.unnamed}", "none", "none names a problem", ())
        if self.regime.name is RegimeName.HIGHEST_RATE:
            source = ENTRIES["quasi-homogeneous"].source + ", gradient flow"
        elif not self.homogeneous:
            source = ENTRIES["nearly-homogeneous"].source + ", gradient flow"
        else:
            source = ENTRIES["kkt" if self.method.joint else "steepest-kkt"].source
        theorem = f"directional limits are KKT points of a margin problem ({source})"
        return Theory("none", theorem, self.program, source, ())

    @property
    def program(self) -> str:
        """The problem in a line."""
        weighed = "sum of ||w_g||^2 / rate_g" if self.method.rates else "||w||^2 / 2"
        norm = weighed if self.method.joint else f"{self.method.norm_in_words} of w"
        if self.regime.name is RegimeName.HIGHEST_RATE:
            norm = f"sum of ||w_i||^2 over {listed(self.regime.minimised)}"
        without = f" with {listed(self.regime.zeroed)} at 0" if self.regime.zeroed else ""
        if not (self.homogeneous or without) and self.regime.name is RegimeName.TOP:
            without = " of what is left as all weights grow"
        return f"min {norm}  s.t.  every margin >= 1{without}, locally"


def find_problem(
    found: MeasuredNetwork,
    method: Method,
    loss: MarginLoss,
    earlier: Weights | None,
    tell: Callable[[str], None],
) -> Problem | None:
    """Find what names the margin problem of a network whose form has none by itself.

    Parameters
    ----------
    found : MeasuredNetwork
    method : Method
    loss : str
    earlier : mapping of name to tensor, optional
        Its weights at an earlier time of gradient descent.
    tell : callable
        Called with the problem, or why there is none, before the KKT conditions are measured.

    Returns
    -------
    Problem or None
        None for a network of one output, or without gates that its weights move, that is
        homogeneous and trained in the l2 norm, whose form says more; for one that does not
        separate; and where gradients are not those of the scores.
    """
    structure = found.structure
    subject, homogeneous = structure.subject, structure.homogeneity.whole_degree is not None
    of_its_form = subject.n_outputs == 1 or structure.form is Form.POLYNOMIAL
    usual = method.is_descent and (found.named or (homogeneous and of_its_form))
    if usual or structure.form is Form.SURROGATE or not found.separates:
        return None
    rates, increment = find_rates(subject, loss), found.state.increment_residual
    problem = Problem(rates, None, increment, (), method, homogeneous)
    tell(problem.unnamed or problem.program)
    norms = None if method.joint else method.norms
    level, lam = None, None
    if subject.twice and method.norms is not None:
        level = level_of(subject, norm=norms and {name: norms[name] for name in subject.weights})
    # Multipliers far from a KKT point say nothing of how weights grow.
    if earlier is None and method.is_descent and level is not None and level.residual < FAR:
        lam = torch.from_numpy(np.array(level.multipliers))
    vanishing = vanishing_tensors(subject, rates, multipliers=lam, earlier=earlier)
    return replace(problem, level=level, vanishing=vanishing)


def theory_of(found: MeasuredNetwork, method: Method) -> Theory:
    """Return what is proved of the training of a network of which no problem was looked for."""
    if method.is_descent:
        return found.theory
    return Theory("none", f"no theorem was looked for under {method.name}", "none", "none", ())


def problem_evidence(found: MeasuredNetwork, problem: Problem) -> Iterator[Evidence]:
    """Yield the evidence on a network whose margin problem is looked for."""
    regime = problem.regime
    beside = {} if problem.level is None else {"kkt_residual": problem.level.residual}
    if problem.unnamed:
        yield Evidence(theory="none", reason=problem.unnamed, beside=beside)
        return
    if regime.name is RegimeName.HIGHEST_RATE and regime.kept:
        carriers = listed(regime.kept)
        verb = "carries" if len(regime.kept) == 1 else "carry"
        yield Evidence(
            theory="regime",
            numbers=f"{carriers} {verb} the scores of {_n_lost(found, regime)} samples, which the "
            f"network does not separate without",
            reason=f"the limit, if it stays there, is of: {problem.program}",
        )
        return
    if regime.name is RegimeName.HIGHEST_RATE:
        yield Evidence(
            theory="problem",
            numbers=f"a KKT point with the least norm of {listed(regime.minimised)}, the weights "
            "of the highest rate, at margin 1",
            reason="if weights converge at their exact rates",
            beside=beside,
        )
        return
    what = "a KKT point of the network"
    if regime.zeroed:
        what += f" without {listed(regime.zeroed)}"
    elif not problem.homogeneous:
        what = "a KKT point of what is left of the network as all weights grow"
    degree = problem.rates.homogenised.degree or found.structure.homogeneity.degree
    numbers = f"{what} (degree {degree:g}), least {problem.method.norm_in_words} at margin 1"
    known = []
    if problem.level is not None:
        known.append(
            f"KKT residual {number(problem.level.residual, '.2g')}"
            if problem.method.joint
            else f"KKT ratio in this norm at least {number(problem.level.ratio_bound, '.4f')}"
        )
    if not math.isnan(problem.increment):
        known.append(f"of what was added since {number(problem.increment, '.2g')}")
    if not problem.homogeneous:
        known.append(f"that network has {regime.margin_ratio:.4f} of the margin")
    known += [_said(one) for one in sorted(problem.vanishing, key=lambda one: -one.share)[:1]]
    yield Evidence(theory="problem", numbers=numbers, reason="; ".join(known), beside=beside)


def _said(one: VanishingTensor) -> str:
    later = (
        ""
        if math.isnan(one.later_share)
        else f", predicted {one.later_share:.4f} at ten times log(1/loss)"
    )
    return f"share of {one.name} {one.share:.4f}{later}"


def problem_finding(found: MeasuredNetwork, problem: Problem) -> Finding:
    """Return the rates of the weights, what vanishes, and the KKT conditions at this level."""
    regime, level = problem.regime, problem.level
    exact = problem.rates.exact
    gone = {one.name: one for one in problem.vanishing}
    weights = found.structure.subject.weights
    shares = {name: float(p.norm()) / found.state.weight_norm for name, p in weights.items()}
    rows = tuple(
        (
            name,
            number(exact.lam.get(name, math.nan), ".4g"),
            number(share, ".4g"),
            *_of_vanishing(gone.get(name)),
        )
        for name, share in shares.items()
    )
    heads = (
        "weights",
        "exact rate",
        "share",
        "as all grow",
        "share later",
        "effect",
        "effect later",
    )
    values = {
        "kkt_residual": math.nan if level is None else level.residual,
        "kkt_ratio": math.nan if level is None else level.ratio_bound,
        "homogenised_ratio": math.nan if problem.homogeneous else regime.margin_ratio,
    }
    known = {name: value for name, value in values.items() if not math.isnan(value)}
    return Finding.said(
        "margin problem",
        record={"problem": _record(problem, shares) | known},
        tables=(Table(GROWTH, heads, rows),),
        assumptions=tuple(_assumptions(problem)),
        objects={"rates": problem.rates, "kkt": level},
        sides=(Side("network", known),),
        row={name: known[name] for name in ("kkt_residual", "kkt_ratio") if name in known},
    )


def homogenised_findings(
    found: MeasuredNetwork, problem: Problem, search: Callable[[MeasuredNetwork], Finding]
) -> Iterator[Finding]:
    """Yield what is proved of the network that is left as all weights grow, where it is known.

    Parameters
    ----------
    found : MeasuredNetwork
    problem : Problem
    search : callable
        Finds the local limit of a network, as `find_local` does.
    """
    regime, subject = problem.regime, problem.regime.subject
    top = regime.name is RegimeName.TOP and not problem.unnamed and problem.method.joint
    if not top or subject is None or not subject.by_sample:
        return
    if problem.homogeneous:
        yield search(found)
        return
    structure = recognise(subject)
    left = measure_own(structure, find_optimum(structure, subject.data.y.numpy()), None)
    name = f"without {listed(regime.zeroed)}" if regime.zeroed else "as all weights grow"
    limit = left.optimum.limit
    if left.named and limit is not None:
        yield Finding(
            "its homogenised network",
            evidence=(
                Evidence(
                    status=limit.status,
                    near={"margin_ratio": left.state.margin_ratio},
                    reason=held_back_by(left.state),
                    network=name,
                ),
            ),
            further=Views(objects={"limit": limit}, certificates={name: limit.to_dict()}),
        )
        return
    local = search(left)
    yield replace(local, evidence=tuple(replace(one, network=name) for one in local.evidence))


def _of_vanishing(one: VanishingTensor | None) -> tuple[str, ...]:
    if one is None:
        return "stays", DASH, DASH, DASH
    values = (one.later_share, one.effect, one.later_effect)
    return f"vanishes, order {one.order}", *(number(value, ".3g") for value in values)


def _record(problem: Problem, shares: Mapping[str, float]) -> dict[str, Any]:
    regime, homogenised = problem.regime, problem.rates.homogenised
    return {
        "regime": regime.name.name,
        "program": "" if problem.unnamed else problem.program,
        "unnamed": problem.unnamed,
        "degree": homogenised.degree,
        "near": homogenised.near,
        "vanishing": {one.name: asdict(one) for one in problem.vanishing},
        "rates": dict(problem.rates.exact.lam),
        "zeroed": list(regime.zeroed),
        "kept": list(regime.kept),
        "shares": dict(shares),
        "optimizer": problem.method.name,
        "norms": None if problem.method.norms is None else dict(problem.method.norms),
    }


def _assumptions(problem: Problem) -> Iterator[Assumption]:
    regime, homogenised = problem.regime, problem.rates.homogenised
    if regime.name is RegimeName.TOP and not problem.homogeneous:
        separates = f" without {listed(regime.zeroed)}" if regime.zeroed else " as all grow"
        yield Assumption(
            f"the network is near-homogeneous: <w, grad f> - {homogenised.degree} f is of lower "
            "degree over all weights (measured)", True, "near-homogeneous", "measured",
        )  # fmt: skip
        yield Assumption(
            f"it separates the data{separates} (measured)", True,
            "separates without them", "measured",
        )  # fmt: skip
        yield Assumption(
            "strong separability: the loss is below the theorem's threshold, and it is exponential",
            None, "the theorem's threshold", "not computed",
        )  # fmt: skip
    if regime.name is RegimeName.HIGHEST_RATE:
        carriers = listed(regime.kept or regime.minimised)
        yield Assumption(
            f"conditional separability: no weights separate with {carriers} at 0",
            None, "conditional separability", "other weights may do without",
        )  # fmt: skip
        yield Assumption(DIRECTION.text, None, DIRECTION.name, "cannot be checked")
    yield problem.method.of_batches
    if problem.method.remark:
        yield Assumption(problem.method.remark, None, "the optimiser's constants", "not computed")


def _why_open(rates: Rates) -> str:
    homogenised = rates.homogenised
    if homogenised.degree is None:
        return "scores have no degree however large the weights are, as where units saturate"
    if not homogenised.near:
        return (
            f"scores grow like degree {homogenised.degree}, but not where some weights stay small, "
            "as with tanh, attention and normalised layers: no theorem here is of such networks"
        )
    return "no theorem says which weights carry the margins"


def _n_lost(found: MeasuredNetwork, regime: Regime) -> int:
    """Return how many samples are not separated without what is kept."""
    subject = found.structure.subject
    zeros = {name: 0 * subject.weights[name] for name in (*regime.kept, *regime.zeroed)}
    margins = subject.margins({**subject.weights, **zeros})
    return len(set(subject.rows[margins <= 0, 0].tolist()))
