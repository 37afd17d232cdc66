"""The value of a homogeneous network, between a bound of all networks and its own local limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.doors import door, result
from .._support.solve import Status, to_numpy
from ..data.arrays import Floats
from ..data.sample import Sample
from ..limits.exact.aligned import network_value
from ..limits.local.limit import LocalLimit
from ..limits.local.orbits import lowest_curvature
from ..limits.local.search import local_limit
from ..quantities.formatting import number
from ..quantities.measured import Measured, derived, part, quantity
from .classifiers import ClassifierComparison
from .scalars import cosine, sample_margins, scores

if TYPE_CHECKING:
    import torch


@result()
class BoundedValue(Measured):
    """The value of a network, its own local limit, and a bound of all networks.

    The value is ``(||w||^2 / L)^(L/2)`` over the smallest margin of L layers; smaller is better. It
    and what compares weights is measured; the bound, the local limit and the ratio of the two are
    certified. Numbers about a local limit are NaN where there is none, or its search failed.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> found = ib.measures.measure_bounded_value(network, sample, 0.2)
    >>> round(found.bound_ratio, 6), round(found.weight_cosine, 6)
    (1.0, 1.0)
    """

    value: float = quantity()
    bound: float = quantity(
        "every network's value is at least (theorem)",
        ".8g",
        doc="Certified lower bound of the value of every network with these gates; NaN where none "
        "is known.",
    )
    local: LocalLimit | None = part("The KKT point next to the network.", recorded=False)

    @derived(recorded=True)
    def bound_ratio(self) -> float:
        """`bound / value`: 1 only if no network with these gates is better."""
        return self.bound / self.value

    @derived(recorded=True)
    def local_value(self) -> float:
        """Value of the local limit."""
        return math.nan if self.limit is None else self.limit.value

    @derived(recorded=True)
    def local_ratio(self) -> float:
        """`local_value / value`, 1 at the end of all training."""
        return self.local_value / self.value

    @derived(recorded=True)
    def local_bound_ratio(self) -> float:
        """`bound / local_value`: the limit is at most 1 over this times the best of all."""
        return self.bound / self.local_value

    weight_cosine: float = quantity("cosine of weights", ".4f", ideal=1.0)

    @derived("distance of weights", ideal=0.0, recorded=True)
    def distance(self) -> float:
        """Distance of the weights from those of the local limit, as a share of its length.

        Both at smallest margin 1.
        """
        return math.nan if self.limit is None else self.limit.distance

    earlier_step: int | None = quantity("  earlier, at step", "d")
    earlier_distance: float | None = quantity(
        "  distance of weights then",
        doc="Distance of the weights at that step from the local limit of the end.",
    )
    earlier_same: bool | None = quantity(
        "  their own local limit is the same", {True: "yes", False: "no"}.__getitem__
    )

    @property
    def limit(self) -> LocalLimit | None:
        """The local limit, if first-order conditions hold there."""
        failed = self.local is None or self.local.status is Status.FAILED
        return None if failed else self.local

    @derived()
    def local_status(self) -> str | None:
        """Name of the status of the local limit; None where none was looked for."""
        return None if self.local is None else self.local.status.name

    @derived()
    def local_residual(self) -> float | None:
        """Relative residual of its first-order conditions."""
        return None if self.local is None else self.local.residual

    @derived()
    def local_curvature(self) -> float | None:
        """Lowest curvature there but for zero modes."""
        return None if self.local is None else lowest_curvature(self.local)

    def rows(self) -> list[tuple[str, ...]]:
        """Label, text, and what it is, of every line of a table."""
        measured, certified = "measured", "certified"
        interval = f"[{number(self.bound, '.5g')}, {number(self.local_value, '.5g')}]"
        groups = (
            (measured, self.lines("value")),
            (certified, self.lines("local_value", "local_status", "local_residual")),
            (certified, self._second_order()),
            (measured, self.lines("local_ratio", "weight_cosine", "distance")),
            (measured, self.lines("earlier_step", "earlier_distance", "earlier_same")),
            (certified, self.lines("bound_ratio", "local_bound_ratio")),
            (certified, [("least value of all networks is in", interval)]),
        )
        return [(*line, kind) for kind, lines in groups for line in lines]

    def _second_order(self) -> list[tuple[str, ...]]:
        local = self.local
        if local is None:
            return []
        modes = f"{local.n_zero_modes}, {local.n_explained} of them rotations of units"
        return [
            ("  smallest multiplier (> 0)", number(local.certificate.smallest_multiplier)),
            ("  zero modes", modes),
            *self.lines("local_curvature"),
            ("  active samples", f"{int(local.active.sum())} of {len(local.active)}"),
            *([("  units at their kinks there", f"{local.n_kinks}")] if local.n_kinks else []),
        ]


@result()
class BoundedComparison(BoundedValue):
    """A network compared with a bound, its own local limit, and classifiers on held-out data.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> value = ib.measures.measure_bounded_value(network, sample, 0.2)
    >>> found = ib.measures.BoundedComparison(**vars(value), error_network=0.25, classifiers={})
    >>> round(found.bound_ratio, 6), found.error_network
    (1.0, 0.25)
    """

    error_network: float = quantity()
    classifiers: Mapping[str, ClassifierComparison] = part("Comparisons by classifier name.")


@door()
def value_of(network: torch.nn.Module, sample: Sample[Any]) -> float:
    """Measure ``(||w||^2 / L)^(L/2)`` over the smallest margin of a network.

    Parameters
    ----------
    network : Module
        Homogeneous of degree ``network.degree``, L.
    sample : Sample
        Inputs (n, D), labels (n,) in {-1, +1} and the gates behind which the network is.

    Returns
    -------
    float
        The same at every scale of the weights; NaN where the smallest margin is not positive.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[3.0, 4.0]]))
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> ib.measures.value_of(network, sample)
    0.2
    """
    margins = sample_margins(to_numpy(sample.y), scores(network, sample))
    squares = sum(float(p.detach().double().square().sum()) for p in network.parameters())
    value = network_value(squares, margins, int(network.degree))  # type: ignore[arg-type]
    return value if math.isfinite(value) else math.nan


@door()
def flat_weights(network: torch.nn.Module) -> Floats:
    """Return the weights of a network in float64, in the order of its parameters.

    Parameters
    ----------
    network : Module
        With P weights in all.

    Returns
    -------
    (P,) array
        A copy.

    Examples
    --------
    >>> network = ib.FReLU.from_zeta(np.array([[0.0, 4.0]]))
    >>> ib.measures.flat_weights(network).tolist()
    [0.0, 2.0, 2.0]
    """
    return np.concatenate([to_numpy(w.double()).ravel() for w in network.parameters()])


@door()
def measure_bounded_value(
    network: torch.nn.Module,
    sample: Sample[Any],
    bound: float = math.nan,
    *,
    search: tuple[torch.nn.Module, Sample[Any]] | None = None,
    max_weights: int | None = None,
) -> BoundedValue:
    """Measure the value of a network and find its local limit.

    Parameters
    ----------
    network : Module
        Homogeneous of degree ``network.degree``.
    sample : Sample
        Inputs (n, D), labels (n,) in {-1, +1} and the gates behind which the network is.
    bound : float
        Certified lower bound of the value of all networks with the same gates.
    search : (Module, Sample), optional
        The network and data whose local limit is searched, where these are others: with gates that
        are frozen, or of fewer inputs. The same two if it is left out.
    max_weights : int, optional
        Networks of more weights are given no local limit: the search takes a second or two with
        200 weights, half a minute with 3000.

    Returns
    -------
    BoundedValue
        Without a local limit for a network that does not separate the data, too. A search that
        failed has its status and reason there.

    Raises
    ------
    ValueError
        If the network is not homogeneous, or the sample is malformed.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> network = ib.FReLU.from_zeta(np.array([[1.0, 0.0]]))
    >>> found = ib.measures.measure_bounded_value(network, sample, 0.2)
    >>> round(found.value, 6), round(found.local_value, 6), found.local_status
    (0.333333, 0.2, 'LOCAL_OPTIMUM')
    """
    posed, data = search or (network, sample)
    n_weights = sum(p.numel() for p in posed.parameters())
    small = max_weights is None or n_weights <= max_weights
    local = None
    if small and not math.isnan(value_of(posed, data)):
        local = local_limit(posed, *data)
    return BoundedValue(
        value=value_of(network, sample),
        bound=bound,
        local=local,
        weight_cosine=math.nan
        if local is None
        else cosine(flat_weights(posed), flat_weights(local.network)),
        earlier_step=None,
        earlier_distance=None,
        earlier_same=None,
    )
