"""The run of deep gated networks: margins in the rich regime, the kernel of the start in the lazy.

Where a statement is made, it says what it is: theorem, certified number, or measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...measures.scalars import scores
from ...reports.finding import Assumption, Finding
from ...reports.findings import gating_file
from ...reports.report import Report, gather
from ...runs.setup import Setup, prepare, trains
from ...training.trainers import check_trainer
from .lazy_run import LAZY, find_lazy
from .parts import gated, make_network, network_name, resolved, train_gates
from .rich_run import find_rich

if TYPE_CHECKING:
    from ...runs.folder import Keeping
    from ...runs.model import Model
    from ...runs.progress import Progress
    from .model import DGNOptions

__all__ = ["run_dgn"]


def run_dgn(model: Model, options: DGNOptions, progress: Progress, keeping: Keeping) -> Report:
    """Bound, train, find the local limits and compare; or train beside the kernel of the start.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or without effect, or the data are not there, before any long
        work.
    """
    options = resolved(options, model.given)
    if options.gating == "learned" and not trains(options):
        raise ValueError("`steps` 0 trains nothing, and `--gating learned` learns in half of them")
    setup = prepare(model, options, progress, keeping)
    n_inputs = setup.dataset.X_train.shape[1]
    check_trainer(options.trainer, make_network(options, n_inputs, setup.seeds.weights))
    lazy = options.regime == "lazy"
    beside = "the kernel of its start" if lazy else "its local limits"
    heading = setup.heading(
        title=f"{network_name(options)}, beside {beside}", theorem=LAZY if lazy else ""
    )
    return gather(heading, _find(setup), keeping)


def _find(setup: Setup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    relu, ready = None, True
    if setup.options.gating in ("relu", "learned"):
        relu, ready = train_gates(setup)
    setup = gated(setup, relu)
    assumptions: tuple[Assumption, ...] = ()
    if setup.options.gating == "learned" and relu is not None:
        X, y = setup.train.X, setup.train.y
        separates = bool((y * scores(relu, Sample(X, y, None))).min() > 0)
        learned = "the network that learned the gates separates the training data"
        assumptions = (Assumption(learned, separates),)
    yield Finding(
        "gating", files=gating_file(setup.gating).files, assumptions=assumptions, finished=ready
    )
    if ready:
        yield from (find_lazy if setup.options.regime == "lazy" else find_rich)(setup)
