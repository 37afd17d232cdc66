"""Two-layer ReLU networks as measures of neurons, and the optimal transport between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.spatial.distance import cdist

from ..._support.doors import door
from ..._support.solve import Status, gap_between
from ...limits.result import Result, proved
from .reading import as_weights, check_slopes
from .reduction import unit_rows
from .weights import Array, Indices, ReLUWeights

if TYPE_CHECKING:
    import torch

# Cost of moving a neuron to one of the other sign: the diameter of the sphere, under which the
# triangle inequality and the bound of functions below hold.
OTHER_SIGN = 2.0


class NeuronMeasure(NamedTuple):
    """Neurons as points with masses: ``|a_j| ||w_j||`` at the sign of a_j and the direction of w_j.

    Attributes
    ----------
    units : (k,) integers
        Neurons with positive mass, in the network's numbering.
    masses : (k,) array
    signs : (k,) array
        1 and -1.
    directions : (k, D) array
        Unit rows; (k, D + 1), the bias last, if the first layer has biases.
    """

    units: Indices
    masses: Array
    signs: Array
    directions: Array


@dataclass(frozen=True)
class TransportCertificate:
    """Bounds of the least cost of a plan, and the plan's infeasibility.

    Attributes
    ----------
    distance : float
        Cost of the plan, between 0 and 2.
    lower_bound : float
        Value of a feasible point of the dual: no plan costs less.
    residual : float
        Largest error of a marginal of the plan.
    """

    distance: float
    lower_bound: float
    residual: float

    @property
    def gap(self) -> float:
        """Upper bound of the plan's excess cost over an optimal plan."""
        return gap_between(self.distance, self.lower_bound, 1.0)


class MeasureDistance(Result):
    r"""Transport distance of the neurons of two networks, masses normalised to sum 1.

    .. math:: W_1 = \min_{\pi \ge 0} \sum_{jk} \pi_{jk} c_{jk} \quad\text{s.t. marginals},\qquad
              c_{jk} = \|u_j - v_k\| \text{ if signs are equal, else } 2 .

    On the unit ball (of (x, 1) where there are biases) functions divided by their masses differ by
    no more than it, output biases aside, since neurons are 1-Lipschitz in their directions.

    Attributes
    ----------
    plan : (k_a, k_b) array
        Mass moved from each neuron of a to each one of b; sum 1.
    status : Status
        SOLVED where gap and residual are at most `tol`, else INACCURATE.
    certificate : TransportCertificate
    tol : float
    mass_a, mass_b : float
        ``sum_j |a_j| ||w_j||`` of both, which the distance does not see.
    positive_a, positive_b : float
        Shares of neurons with positive sign in them.
    units_a, units_b : (k_a,), (k_b,) integer arrays
        Neurons with a mass, in their networks' numbering.
    output_biases : tuple of two floats
        Output biases of both networks, which the distance does not see.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> distance = ib.equivalence.measure_distance(weights, weights)
    >>> distance.status.name, distance.distance, distance.mass_a
    ('SOLVED', 0.0, 2.0)
    """

    RECORD = ("gap",)
    BRIEF = (
        "{distance:.6g}, gap {gap:.2g}; {units_a.size} and {units_b.size} neurons, masses "
        "{mass_a:.6g} and {mass_b:.6g}, positive shares {positive_a:.4f} and {positive_b:.4f}"
    )

    plan: Array
    status: Status
    certificate: TransportCertificate
    tol: float
    mass_a: float
    mass_b: float
    positive_a: float
    positive_b: float
    units_a: Indices
    units_b: Indices
    output_biases: tuple[float, float]

    distance = proved("distance", "Cost of the plan.")
    gap = proved("gap", "Upper bound of the plan's excess cost over an optimal plan.")


@door()
def measure_distance(
    a: ReLUWeights | torch.nn.Module, b: ReLUWeights | torch.nn.Module, *, tol: float = 1e-7
) -> MeasureDistance:
    """Solve optimal transport between the neurons of two two-layer ReLU networks of any widths.

    It is 0 for networks that differ by splitting or merging parallel neurons, by permutations and
    scales, and by a positive factor of the function. Opposite neurons trade a linear map,
    ``relu(z) - relu(-z) = z``, so that networks far apart may still be one function.

    Parameters
    ----------
    a, b : ReLUWeights or Module
        Two-layer networks of one output each.
    tol : float
        Tolerance on the plan's optimality gap and on its marginals.

    Returns
    -------
    MeasureDistance

    Raises
    ------
    TypeError, ValueError
        If one is no two-layer ReLU network of one output, all its neurons are dead, or numbers of
        inputs differ.
    RuntimeError
        If the linear program is not solved.

    Examples
    --------
    >>> one = ib.equivalence.ReLUWeights.from_arrays([[[2.0, 0.0]], [[1.0]]])
    >>> split = ib.equivalence.ReLUWeights.from_arrays([[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5]]])
    >>> ib.equivalence.measure_distance(one, split).distance
    0.0
    """
    one, other = as_weights(a), as_weights(b)
    check_slopes(one, other)
    if one.n_inputs != other.n_inputs:
        raise ValueError(
            f"networks must have the same inputs, got {one.n_inputs} and {other.n_inputs}"
        )
    biased = bool(one.biases[0].any() or other.biases[0].any())
    first, second = (neuron_measure(weights, biased=biased) for weights in (one, other))
    cost = np.where(
        np.equal.outer(first.signs, second.signs),
        cdist(first.directions, second.directions),
        OTHER_SIGN,
    )
    shares = [m.masses / m.masses.sum() for m in (first, second)]
    plan, lower_bound = _transport(cost, *shares)
    certificate = TransportCertificate(
        distance=float((plan * cost).sum()),
        lower_bound=lower_bound,
        residual=max(float(np.abs(plan.sum(1 - k) - shares[k]).max()) for k in (0, 1)),
    )
    solved = certificate.gap <= tol and certificate.residual <= tol
    return MeasureDistance(
        plan=plan,
        status=Status.SOLVED if solved else Status.INACCURATE,
        certificate=certificate,
        tol=tol,
        mass_a=float(first.masses.sum()),
        mass_b=float(second.masses.sum()),
        positive_a=float(shares[0][first.signs > 0].sum()),
        positive_b=float(shares[1][second.signs > 0].sum()),
        units_a=first.units,
        units_b=second.units,
        output_biases=(float(one.biases[1][0]), float(other.biases[1][0])),
    )


def neuron_measure(weights: ReLUWeights, *, biased: bool) -> NeuronMeasure:
    """Return the neurons of a two-layer network that have positive mass.

    Raises
    ------
    ValueError
        If there are more layers or outputs, or no neuron has a mass.
    """
    if len(weights.matrices) != 2 or len(weights.matrices[1]) != 1:
        raise ValueError(
            f"a measure of neurons is of two layers and one output, got {weights!r}: `align` "
            "compares deeper networks"
        )
    rows = weights.rows(0) if biased else weights.matrices[0]
    output = weights.matrices[1][0]
    masses = np.abs(output) * np.linalg.norm(rows, axis=1)
    alive = np.flatnonzero(masses > 0)
    if len(alive) == 0:
        raise ValueError("no neuron has a mass: the network is constant")
    return NeuronMeasure(alive, masses[alive], np.sign(output[alive]), unit_rows(rows[alive]))


def _transport(cost: Array, p: Array, q: Array) -> tuple[Array, float]:
    """Return the plan of least cost between shares p (k_a,) and q (k_b,), and a lower bound.

    The bound is the value of dual variables u of the rows, with the largest v that
    ``u_j + v_k <= c_jk`` allows: feasible whatever the solver did.
    """
    rows, columns = cost.shape
    marginals = vstack(
        [kron(eye_array(rows), np.ones((1, columns))), kron(np.ones((1, rows)), eye_array(columns))]
    )
    # One marginal follows from the others: with it, sums that differ by rounding, or shares below
    # the solver's tolerance, are told to be infeasible.
    kept = np.delete(np.arange(rows + columns), rows + int(np.argmax(q)))
    found = linprog(
        cost.ravel(), A_eq=csr_array(marginals)[kept], b_eq=np.concatenate([p, q])[kept]
    )
    if found.status != 0:
        raise RuntimeError(f"optimal transport of neurons was not solved: {found.message}")
    u = found.eqlin.marginals[:rows]
    v = (cost - u[:, None]).min(axis=0)
    return found.x.reshape(cost.shape), float(u @ p + v @ q)
