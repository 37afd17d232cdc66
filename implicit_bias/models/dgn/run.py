"""The run of deep gated networks: margins in the rich regime, the kernel of the start in the lazy.

Where a statement is made, it says what it is: theorem, certified number, or measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...data.sample import Sample
from ...measures.scalars import scores
from ...quantities.assumptions import Assumption
from ...runs.reports.finding import Finding
from ...runs.reports.findings import gating_file
from ...runs.setup import Setup, data_record, prepare
from ...runs.stages import Found, Run, Stage
from ...training.trainers import check_trainer
from .lazy_run import LAZY
from .lazy_run import STAGES as LAZY_STAGES
from .model import GATES_SEPARATE
from .parts import DGNSetup, gated, network_name, resolved, train_gates
from .rich_run import STAGES as RICH_STAGES


def run_dgn(setup: Setup) -> Run[DGNSetup]:
    """Bound, train, find the local limits and compare; or train beside the kernel of the start.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or without effect, or the data are not there, before any long
        work.
    """
    options = resolved(setup.options, setup.user_data)
    whole = DGNSetup(**prepare(replace(setup, options=options)).shared)
    lazy = options.regime == "lazy"
    beside = "the kernel of its start" if lazy else "its local limits"
    heading = whole.heading(
        data_record(whole.dataset),
        title=f"{network_name(options)}, beside {beside}",
        theorem=LAZY if lazy else "",
        source="Jacot, Gabriel and Hongler 2018; Chizat, Oyallon and Bach 2019",
    )
    stages = (Stage(finds=_gates, required=True), *(LAZY_STAGES if lazy else RICH_STAGES))
    return Run(setup=whole, heading=heading, stages=stages, checks=lambda: _check(whole))


def _check(setup: DGNSetup) -> None:
    """See that the run can learn its gates, and that the trainer takes the network."""
    if setup.options.gating == "learned" and not setup.trains:
        raise ValueError("`steps` 0 trains nothing, and `--gating learned` learns in half of them")
    check_trainer(setup.options.trainer, setup.network)


def _gates(setup: DGNSetup, found: Found) -> Iterator[Finding | Setup]:
    """Learn the gates, where they are learned, and go on behind them."""
    relu, ready = train_gates(setup)
    setup = gated(setup, relu)
    assumptions: tuple[Assumption, ...] = ()
    if setup.options.gating == "learned" and relu is not None:
        X, y = setup.train.X, setup.train.y
        separates = bool((y * scores(relu, Sample(X, y, None))).min() > 0)
        assumptions = (GATES_SEPARATE.found(holds=separates),)
    files = gating_file(setup.gating).views.files
    yield Finding.said("gating", files=files, assumptions=assumptions, finished=ready)
    yield setup
