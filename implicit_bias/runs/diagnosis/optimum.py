"""The certified optimum of the limit's program, or a certified lower bound of every value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, hessian

from ..._support.solve import GatedDesign, MaxMarginProgram, Status, require_memory, to_numpy
from ...data.arrays import Floats
from ...limits.convolution.frequencies import FrequencyMargin
from ...limits.exact.features import FeatureLimit, UnitFeatures
from ...limits.exact.linear import HardMarginSVM
from ...limits.exact.multiclass import MarginLimit, solve_multiclass_svm
from ...limits.exact.path_lasso import PathLasso
from ...limits.formulation import solve_limit, solve_program
from ...limits.limit import Limit
from ...networks.recognition.structure import Form, Structure
from ...networks.recognition.subject import Subject

# Paths of a layered network that are listed at most.
MOST_PATHS = 20_000
_UNIT = 2.0**-53
# Part of the largest feature that is rounding.
_PRODUCT = 1e-12

Features = Callable[[Subject], Floats]


@dataclass(frozen=True, eq=False)
class Optimum:
    """The certified answer about the least value that networks of this form can have.

    Attributes
    ----------
    name : str
        Name of the program; empty where there is none.
    limit : Limit or None
        Its solution: the limit itself where a theorem names it, a bound otherwise.
    bound : float
        Certified lower bound of the value of every such network on these data; NaN where none is
        known, infinite where it is proved that none separates them.
    features : callable or None
        Features of a subject's scores, (n, P) or of K outputs (n K, P), in which those of the limit
        are linear; None where it is no function of new samples.
    present_gates : bool
        Whether it is of networks that have the gates of this one on these samples alone.
    remark : str
        Why there is no more; empty where there is.
    """

    name: str = ""
    limit: MarginLimit | None = None
    bound: float = math.nan
    features: Features | None = None
    present_gates: bool = False
    remark: str = ""

    def scores(self, subject: Subject) -> Floats:
        """Return the limit's scores, as the subject has them, at smallest margin 1."""
        assert self.limit is not None and self.features is not None
        found = to_numpy(self.limit.predictor(self.features(subject)))
        return found.reshape(len(subject.data.X), *subject.data.y.shape[1:])


def find_optimum(structure: Structure, y: Floats) -> Optimum:
    """Solve the program of the limit, or of a bound, that the form of the scores has.

    Parameters
    ----------
    structure : Structure
    y : (n,) array
        Labels in {-1, +1}.

    Returns
    -------
    Optimum
        Proved for networks of the form that was measured.
    """
    solver = {
        Form.FEATURES: _of_units,
        Form.LINEAR: _of_units,
        Form.UNCONSTRAINED: _of_picked_features,
        Form.UNITS: _of_units,
        Form.LAYERS: _of_layers,
        Form.CONVOLUTION: _of_convolution,
        Form.DEEP_CONVOLUTION: _of_convolution,
        Form.TWO_LAYER_RELU: _of_layers,
        Form.DEEP_RELU: _of_layers,
    }.get(structure.form)
    return Optimum() if solver is None else solver(structure, y)


def _of_units(structure: Structure, y: Floats) -> Optimum:
    units = structure.units
    shared = structure.form is Form.LINEAR
    if structure.subject.n_outputs > 1:
        return _of_classes(structure)

    def features(subject: Subject) -> Floats:
        """Return the features (n, H P) of all units, or (n, P) where there is one for all.

        Without units they are the gradients of the scores.
        """
        if units is None:
            return score_gradients(subject).numpy()
        phi = units.features(subject)
        return (phi[:, 0] if shared else phi.flatten(1)).numpy()

    require_memory(
        len(y) * structure.subject.n_weights,
        "one gradient a sample",
        "take fewer samples or a smaller network",
    )
    if units is None or shared:
        return _solved(HardMarginSVM(), features, structure, y)
    phi = features(structure.subject)
    gates = _gates_of_inputs(phi, structure.subject.inputs.numpy(), units.n_units)
    if gates is None:
        return _solved(UnitFeatures(units.n_units), features, structure, y)
    # The same program, with features that are never multiplied out.
    group = np.arange(gates.shape[1]) // (gates.shape[1] // units.n_units)
    design = GatedDesign(X=structure.subject.inputs.numpy(), Z=gates, group=group)
    program = MaxMarginProgram(design=design, y=y)
    shape = (units.n_units, phi.shape[1] // units.n_units)
    limit = FeatureLimit.from_solution(program, solve_program(program), shape)
    return Optimum(UnitFeatures.name, limit, _bound_of(limit), features)


def score_gradients(subject: Subject) -> torch.Tensor:
    """Return the gradients (n, P), or (n, K, P), of all scores in all weights."""
    rows = subject.jacobian(subject.weights, tuple(subject.weights))
    axes = 1 + (subject.n_outputs > 1)
    return torch.cat([part.flatten(axes) for part in rows.values()], dim=-1)


def _of_classes(structure: Structure) -> Optimum:
    """Solve for the least weights of which every relative margin of K linear outputs is 1."""
    subject = structure.subject
    require_memory(
        subject.data.y.numel() * subject.n_weights,
        "one gradient a score",
        "take fewer samples or a smaller network",
    )
    margins = subject.margins_of(score_gradients(subject))
    limit = solve_limit(HardMarginSVM(), margins.numpy(), np.ones(len(margins)))

    def features(other: Subject) -> Floats:
        """Return the gradients (n K, P) of all scores."""
        return score_gradients(other).flatten(0, 1).numpy()

    return Optimum("margins of all classes", limit, _bound_of(limit), features)


def _of_picked_features(structure: Structure, y: Floats) -> Optimum:
    """Solve for the least nuclear norm by one column a class, and prove it on all samples."""
    X, labels, sizes = structure.subject.inputs.numpy(), y.argmax(axis=1), y.sum(axis=0)
    root = np.sqrt(sizes)
    each = solve_multiclass_svm(np.diag(1 / root), np.arange(len(root)), norm="nuclear")
    zeta, dual = each.zeta / root, each.dual / sizes[:, None]
    limit = replace(each, zeta=zeta[:, labels] @ X, dual=dual[labels]).certify(X, labels)
    return Optimum("nuclear norm", limit, float(limit.dual_objective))


def _gates_of_inputs(features: Floats, X: Floats, n_units: int) -> Floats | None:
    """Return gates (n, H C) with features ``gates[n, h, c] x_n``; None for other features.

    C is the number of contexts of a unit; gates of those that a sample has not are 0.
    """
    n, n_inputs = X.shape
    squares = np.sum(X**2, axis=1)
    if features.shape[1] % (n_units * n_inputs) or not np.all(squares > 0):
        return None
    blocks = features.reshape(n, -1, n_inputs)
    gates: Floats = np.einsum("njd,nd->nj", blocks, X) / squares[:, None]
    rest = np.abs(blocks - gates[:, :, None] * X[:, None]).max()
    return gates if rest <= _PRODUCT * np.abs(features).max() else None


def _solved(formulation: Any, features: Features, structure: Structure, y: Floats) -> Optimum:
    limit = solve_limit(formulation, features(structure.subject), y)
    return Optimum(formulation.name, limit, _bound_of(limit), features)


def _of_convolution(structure: Structure, y: Floats) -> Optimum:
    """Solve for the least l1 norm of frequencies: of several convolutions a bound."""
    circles, depth = structure.circles, len(structure.subject.weights)
    D = math.prod(circles)
    require_memory(3 * D * (D + len(y)), f"kernels at {D} places", "take fewer inputs")

    def features(subject: Subject) -> Floats:
        """Return the scores (n, D) of a top layer at each place, of kernels at the first alone."""
        *below, top = subject.weights
        places = torch.eye(D, dtype=torch.float64)
        first = {name: places[0].view_as(subject.weights[name]) for name in below}
        shape = subject.weights[top].shape
        rows = [subject.scores({**first, top: place.view(shape)}) for place in places]
        found: Floats = D ** ((depth - 1) / 2) * torch.stack(rows, dim=1).numpy()
        return found

    limit = solve_limit(FrequencyMargin(depth, circles), features(structure.subject), y)
    return Optimum(FrequencyMargin.name, limit, _bound_of(limit), features)


def _of_layers(structure: Structure, y: Floats) -> Optimum:
    layers, subject = structure.layers, structure.subject
    assert layers is not None
    n_paths = math.prod(layers.widths)
    if n_paths > MOST_PATHS:
        return Optimum(remark=f"no bound: {n_paths:,} paths are more than {MOST_PATHS:,}")
    gates = [gate.numpy() for gate in layers.gates(subject, subject.weights)]
    limit = solve_limit(PathLasso(), layers.inputs(subject).numpy(), y, gates)
    if layers.relu:
        # A bound of networks that keep these gates, never a proof about all.
        bound = float(limit.dual_objective) if limit.certificate.proves_separability() else math.nan
        return Optimum("its gates frozen", limit, bound, present_gates=True)
    return Optimum("path lasso", limit, _bound_of(limit))


def _bound_of(limit: Limit) -> float:
    return math.inf if limit.status is Status.NOT_SEPARABLE else float(limit.dual_objective)


def quadratic_bound(subject: Subject, multipliers: NDArray[np.float64]) -> float:
    r"""Bound the value of every network whose scores are quadratic forms, from any multipliers.

    .. math:: \frac{\|w\|^2 / 2}{\min_n y_n f_w(x_n)} \ge
              \frac{\sum_n \lambda_n}
                   {\lambda_{\max}\big(\sum_n \lambda_n y_n \nabla^2 f(x_n)\big)}

    since :math:`\sum_n \lambda_n y_n f_w(x_n) = \tfrac12 w^T (\sum_n \lambda_n y_n \nabla^2 f) w`.
    With the multipliers of a KKT point it is that point's value exactly if the Lagrangian is convex
    there: then the point is the global optimum.

    Parameters
    ----------
    subject : Subject
        Of scores that are quadratic forms in the weights.
    multipliers : (n,) array
        Non-negative, not all zero.

    Returns
    -------
    float
        Rounding errors of the eigenvalue at their worst; infinite if the matrix has no positive
        eigenvalue, so that no weights separate the data.
    """
    names, shapes = list(subject.weights), [p.shape for p in subject.weights.values()]
    sizes = [shape.numel() for shape in shapes]
    lam = torch.as_tensor(np.array(multipliers)) * subject.data.y
    require_memory(3 * sum(sizes) ** 2, f"a Hessian in {sum(sizes)} weights", "take fewer weights")

    def combined(w: Tensor) -> Tensor:
        """Return the sum of the margins, weighed by the multipliers."""
        parts = torch.split(w, sizes)
        own = {name: part.view(shape)
               for name, part, shape in zip(names, parts, shapes, strict=True)}  # fmt: skip
        scores: Tensor = functional_call(
            subject.network, subject.named(own), (subject.data.X, subject.data.gates)
        )
        return lam @ scores

    start = torch.cat([p.flatten() for p in subject.weights.values()])
    matrix = hessian(combined)(start).detach().numpy()
    matrix = (matrix + matrix.T) / 2
    # Of a sum of n terms, each a few roundings, and of the eigenvalue: n + P of them in the norm.
    lost = 4 * (len(lam) + len(start)) * _UNIT * float(np.linalg.norm(matrix))
    largest = float(np.linalg.eigvalsh(matrix)[-1]) + lost
    total = float(np.sum(multipliers)) * (1 - (len(lam) + 2) * _UNIT)
    return total / largest if largest > 0 else math.inf


def unseparated_twins(subject: Subject) -> tuple[int, int] | None:
    """Return two samples with equal inputs and gates and different labels; None without any.

    They prove that no network whatever separates the data.
    """
    data = subject.data
    if not subject.by_sample:
        return None
    rows = [subject.inputs] + (
        [] if data.gates is None else [data.gates.reshape(len(data.X), -1).double()]
    )
    _, group = torch.unique(torch.cat(rows, dim=1), dim=0, return_inverse=True)
    seen: dict[int, int] = {}
    for n, (key, label) in enumerate(zip(group.tolist(), data.y.tolist(), strict=True)):
        first = seen.setdefault(key, n)
        if data.y[first].tolist() != label:
            return first, n
    return None
