"""The run of deep gated networks: margins in the rich regime, the kernel of the start in the lazy.

Where a statement is made, it says what it is: theorem, certified number, or measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...data.sample import Sample
from ...measures.scalars import scores
from ...quantities.assumptions import Assumption
from ...quantities.atlas import ENTRIES
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.findings import gating_file
from ...runs.setup import Setup, data_record, prepare
from ...runs.stages import Found, Run, Stage
from ...training.trainers import check_trainer
from .gated_layers import DGNSetup, gated, gates_network, network_name, resolved
from .lazy_regime import LAZY
from .lazy_regime import STAGES as LAZY_STAGES
from .model import GATES_SEPARATE
from .rich_regime import STAGES as RICH_STAGES

# The file of the unfinished network that learns gates.
GATES_RUN = "gates-run.safetensors"


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
        source=ENTRIES["lazy"].source,
    )
    stages = (Stage(finds=_gates, required=True), *(LAZY_STAGES if lazy else RICH_STAGES))
    return Run(setup=whole, heading=heading, stages=stages, checks=lambda: _check(whole))


def _check(setup: DGNSetup) -> None:
    """See that the run can learn its gates, and that the trainer takes the network."""
    if setup.options.gating == "learned" and not setup.trains:
        raise ValueError("`steps` 0 trains nothing, and `--gating learned` learns in half of them")
    check_trainer(setup.options.trainer, setup.network)


def _gates(setup: DGNSetup, found: Found) -> Iterator[Finding | Setup]:
    """Learn the gates in half of the steps, where they are learned, and go on behind them."""
    relu, finished = gates_network(setup), True
    assumptions: tuple[Assumption, ...] = ()
    if setup.options.gating == "learned" and relu is not None:
        settings = setup.settings
        first, _ = settings.split_phases(max(settings.n_steps // 2, 1))
        half = replace(settings, schedule=first)
        setup.progress.stage(f"training a ReLU network for {half.n_steps} steps, to learn gates")
        trajectory = fit(setup, relu, *setup.train, settings=half, state=GATES_RUN, first=False)
        margins = setup.train.y * scores(relu, Sample(setup.train.X, setup.train.y, None))
        finished = trajectory.finished
        assumptions = (GATES_SEPARATE.found(holds=bool(margins.min() > 0)),)
    setup = gated(setup, relu)
    files = gating_file(setup.gating).views.files
    yield Finding.said("gating", files=files, assumptions=assumptions, finished=finished)
    yield setup
