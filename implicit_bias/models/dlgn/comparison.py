"""A frozen DLGN beside its limit or bound, its own local limit, and kernel machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ...data.sample import Sample
from ...limits.kernels.margin import solve_kernel_svm
from ...limits.kernels.overlap import neural_path_kernel
from ...limits.limit import Limit
from ...limits.local.depth3 import depth3_kernel
from ...limits.local.limit import LocalLimit
from ...measures.bounded_value import BoundedComparison, BoundedValue, measure_bounded_value
from ...measures.classifiers import compare_classifier
from ...measures.scalars import error_rate, scores
from ...networks.gated.dgn import DGN
from ...quantities.assumptions import Assumption
from ...quantities.formatting import number
from ...quantities.measured import derived, part, quantity
from ...quantities.premises import GATES, ONE_LAYER
from ...runs.reports.bounds import LOCAL, strict_local_optimum
from .depth3 import MOST_GATES, Depth3Interval, certify_depth3
from .freezing import DLGNSetup
from .model import HEADING

OVERLAP = "overlap kernel"
# Of the ratio of certified values: a hundred times the gap of the limit.
GLOBAL = 1e-6


class DLGNComparison(BoundedComparison):
    """A network with frozen gates compared with its limit, or a bound with more hidden layers.

    With one hidden layer the bound is the limit's own value, and `exact`.
    """

    exact: bool = part("True if the bound belongs to the limit itself: one hidden layer.")
    upper: float = part("Certified upper bound of the program's optimum.")
    machine_value: float | None = quantity(
        "kernel machine at the local limit's layer weights, least norm",
        ".8g",
        doc="Least norm of the kernel machine at the local limit's own layer weights; None unless "
        "there are two hidden layers.",
    )
    interval: Depth3Interval | None = part(
        "Bounds of the least value of all networks, where branch and bound can tell."
    )

    @derived()
    def margin_ratio(self) -> float | None:
        """`bound_ratio` where the bound is the limit; None otherwise."""
        return self.bound_ratio if self.exact else None

    def rows(self) -> list[tuple[str, ...]]:
        """Label, text, and what it is, of every line of a table."""
        found = self.lines("margin_ratio", "machine_value")
        if self.interval is not None:
            text = f"least value of all networks is in ({self.interval.programs} programs)"
            ends = (number(end, ".6g") for end in (self.interval.lower, self.interval.upper))
            found.append((text, f"[{', '.join(ends)}]"))
        return [*super().rows(), *((*line, "certified") for line in found)]


def distinct(sample: Sample) -> Sample:
    """Return one sample of each kind that the value network does not distinguish.

    Behind constant experts all samples of one activation pattern are one: as copies of each other
    they have one constraint, and multipliers that nothing decides between.
    """
    rows = np.column_stack([sample.X, np.asarray(sample.gates, dtype=float), sample.y])
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return Sample(sample.X[first], sample.y[first], np.asarray(sample.gates)[first])


def along_the_ones(network: DGN) -> DGN:
    """Return the network of one input `sqrt(D)` with the scores of one of D ones.

    Gradients of the first layer's rows are along the ones, so that at every KKT point rows are,
    and only what lies along them ever grows. Its values are those of the network without the rest.
    """
    first, *above = (layer.detach() for layer in network.layers)
    along = first.sum(dim=1, keepdim=True) / first.shape[1] ** 0.5
    return DGN.from_weights(along, *above, device=along.device)


def one_input(sample: Sample) -> Sample:
    """Return a sample of D ones as one of the single input `sqrt(D)`."""
    X = np.full((len(sample.X), 1), math.sqrt(sample.X.shape[1]))
    return Sample(X, sample.y, sample.gates)


def bounded_value(setup: DLGNSetup, network: DGN, limit: Limit) -> BoundedValue:
    """Measure the value of a network with frozen gates between its limit or bound and its own.

    Its local limit is that of distinct samples, and behind constant experts has the one input of
    `along_the_ones`.

    Parameters
    ----------
    setup : DLGNSetup
    network : DGN
    limit : Limit
        The limit itself with one hidden layer, the path lasso with more.
    """
    posed, sample = network, setup.seen[0]
    if setup.constant:
        posed, sample = along_the_ones(network), one_input(sample)
    bound = float(limit.dual_objective)
    return measure_bounded_value(network, setup.seen[0], bound, search=(posed, distinct(sample)))


def compare_dlgn(
    setup: DLGNSetup, network: DGN, value: BoundedValue, limit: Limit
) -> DLGNComparison:
    """Compare a network with its limit or bound, its local limit and a kernel machine.

    Parameters
    ----------
    setup : DLGNSetup
    network : DGN
        With frozen gates; separates the training sample.
    value : BoundedValue
        Answer of `bounded_value` for the network.
    limit : Limit
        The limit itself with one hidden layer, the path lasso with more.
    """
    (train, held_out), widths, local = setup.seen, setup.network.widths, value.limit
    trained, two = scores(network, held_out), len(widths) == 2
    seen = [one_input(one) if setup.constant else one for one in setup.seen]
    # The program's solution, the machine of the overlap kernel, and the local limit.
    kernel = partial(neural_path_kernel, widths=widths)
    of_train, of_held_out = ((one.X, one.gates) for one in setup.seen)
    machine = solve_kernel_svm(kernel(*of_train), train.y, tol=setup.options.tol)
    compare = partial(compare_classifier, trained=trained, y=held_out.y)
    classifiers = [
        compare(setup.program_name, limit, of_held_out),
        compare(OVERLAP, machine, (kernel(*of_held_out, *of_train),)),
    ]
    if local is not None:
        classifiers.append(compare(LOCAL, local, (seen[1].X, seen[1].gates)))
    return DLGNComparison(
        **vars(value),
        error_network=error_rate(held_out.y, trained),
        classifiers={one.name: one for one in classifiers},
        exact=setup.exact,
        upper=limit.objective,
        machine_value=_machine_value(local, seen[0]) if two else None,
        interval=_interval(train, widths) if setup.constant and two else None,
    )


def assumptions_of(comparison: DLGNComparison) -> tuple[Assumption, ...]:
    """Return the assumptions of the one-layer theorem, as far as they are known to hold."""
    found = (
        GATES.found(said="gates do not depend on the weights that go on", holds=True),
        ONE_LAYER.found(holds=comparison.exact),
        strict_local_optimum(comparison.local),
    )
    if not comparison.exact or comparison.limit is None:
        return found
    ratio = comparison.local_bound_ratio
    return (*found, HEADING.found(ratio=ratio, holds=ratio >= 1 - GLOBAL))


def _machine_value(local: LocalLimit | None, train: Sample) -> float:
    """Return the least norm at the layer weights of the local limit; its value at a KKT point."""
    if local is None:
        return math.nan
    kernel = depth3_kernel(local.network)(train.X, train.gates)
    machine = solve_kernel_svm(kernel, train.y)
    return machine.objective if machine.certificate.proves_separability() else math.nan


def _interval(train: Sample, widths: Sequence[int]) -> Depth3Interval | None:
    layers = np.split(np.asarray(train.gates), [int(widths[0])], axis=1)
    if min(np.unique(layer, axis=1).shape[1] for layer in layers) > MOST_GATES:
        return None
    one = distinct(train)
    return certify_depth3(one.y, one.gates, widths=widths, n_inputs=train.X.shape[1])
