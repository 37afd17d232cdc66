"""The certified local optimum next to a trained two-layer ReLU network, in a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ..._support.solve import Status
from ...limits.relu.limit import ReLULocalLimit
from ...limits.relu.search import relu_local_limit, settled_limit
from ...networks.relu import ReLU
from ...quantities.assumptions import Assumption
from ...quantities.said import Side, Table
from ...runs.drawing.relu_limits import plot_relu_limit
from ...runs.reports.bounds import value_in_words
from ...runs.reports.finding import Finding
from ...runs.reports.trained import divergence, held_back
from ...runs.reports.verdict import OPTIMA, Evidence, decide
from ...runs.setup import SampleSetup
from ...runs.stages import Found
from ...training.trajectory import Trajectory
from .learning import LEARNS, ReLUSetup
from .limit_comparison import NAME, ReLULimitComparison, compare_with_relu_limit
from .model import OPTIMAL

if TYPE_CHECKING:
    pass

# Seconds after which the search for a local optimum gives up, programs falling or not.
MAX_SECONDS = 600.0
# Gate patterns that the bound of all widths may look at in a run: some seconds.
MAX_PATTERNS = 2**16


def limit_of(setup: SampleSetup, network: ReLU) -> ReLULocalLimit:
    """Return the local optimum next to a network, within the time that a run has for it."""
    return relu_local_limit(
        network,
        *(setup.train.X, setup.train.y),
        tol=max(setup.options.tol, 1e-8),
        max_seconds=MAX_SECONDS,
        max_patterns=MAX_PATTERNS,
    )


def find_local_limit(setup: ReLUSetup, found: Found) -> Iterator[Finding]:
    """Find the local optimum next to the network, and that at half of its steps."""
    network, trajectory = found["network"], found["trajectory"]
    setup.progress.stage("finding the local limit next to the network")
    limit = limit_of(setup, network)
    earlier = None
    then = setup.network_at(setup.half_step)
    if isinstance(then, ReLU) and setup.half_step is not None and trajectory.finished:
        # Its value alone is told: no further units are looked at.
        own = {"tol": max(setup.options.tol, 1e-8), "max_seconds": MAX_SECONDS}
        earlier = setup.half_step, settled_limit(then, setup.train.X, setup.train.y, **own)
    beside = compare_with_relu_limit(limit, network, setup.held_out, earlier)
    title = "the network beside the certified local optimum next to it"
    record = limit.to_dict()
    del record["seconds"]  # which differ from run to run
    yield Finding.said(
        "relu limit",
        record={"local_limit": record | {"comparison": beside.to_dict()}},
        tables=(Table(title, ("", "value"), tuple(beside.rows())),),
        panels=(partial(plot_relu_limit, limit),) if beside.found else (),
        files={"local-limit.safetensors": limit.save} if beside.found else {},
        assumptions=(_proved(limit),),
        certificates={NAME: limit.to_dict()},
        objects={"local_limit": limit, "limit_comparison": beside},
        row={name: one for name, one in beside.cells().items() if name.startswith("local_")},
        verdicts=(decide(_evidence(beside, trajectory)),),
        sides=_sides(beside),
    )


def _proved(limit: ReLULocalLimit) -> Assumption:
    """Return what is proved of the local optimum, as the first screen says assumptions."""
    known = limit.status not in (Status.FAILED, Status.STATIONARY)
    why = f"; {limit.reason}" if limit.reason and not known else ""
    return OPTIMAL.found(
        turn=limit.certificate.smallest_turn,
        gap=limit.gap,
        why=why,
        holds=True if known else None,
        how="proved" if known else "not proved",
    )


def _evidence(found: ReLULimitComparison, trajectory: Trajectory) -> Evidence:
    limit = found.limit
    proof = f"optimal among all whose units turn by less than {found.local_turn:.2g} degrees"
    if limit.status is Status.GLOBAL_OPTIMUM:
        proof = "the best of all widths"
    half = "from the weights at half the steps"
    same = {True: f", also found {half}", False: f", another is found {half}", None: ""}
    proof = f"{proof} (proved, gap {found.local_gap:.0e}){same[found.half_same]}"
    proved = limit.status in OPTIMA
    far = (
        f"the optimum next to it is proved: {proof}" if proved
        else f"no local optimum was certified: {limit.reason}"
    )  # fmt: skip
    beside = {"value": found.value}
    if proved:
        beside["local_value"] = found.local_value
    return Evidence(
        theory="local limit",
        status=limit.status,
        near={"local_ratio": found.local_ratio} if proved else {},
        beside=beside,
        numbers=value_in_words(found.value, found.local_value if proved else None),
        smallest_margin=float(trajectory.smallest_margin[-1]),
        diverged=divergence(trajectory),
        proof=proof,
        reason=held_back(trajectory, far),
        network=LEARNS,
    )


def _sides(found: ReLULimitComparison) -> tuple[Side, ...]:
    """Return the local optimum and the network as columns of the first screen."""
    network = {
        "value": found.value,
        "local_ratio": found.local_ratio,
        "error": found.error_network,
    }
    limit = {
        "value": found.local_value,
        "gap": found.local_gap,
        "local_turn": found.local_turn,
        "local_ratio": 1.0,
        "agreement": found.local_agreement,
        "score_cosine": found.local_score_cosine,
        "error": found.local_error,
    }
    if found.limit.certificate.lower_bound > 0:
        limit["local_bound_ratio"] = found.local_bound_ratio
        network["local_bound_ratio"] = found.local_bound_ratio * found.local_ratio
    predicted = (Side(NAME, limit, predicted=True),) if found.found else ()
    return (*predicted, Side("network", network))
