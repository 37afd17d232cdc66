"""How far trained weights are from a KKT point of the margin problem, at any depth.

Needs no formulation: frozen gates and homogeneity in the weights are enough.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor
from torch.func import functional_call, grad, vmap

from implicit_bias.training import GatedData, Inputs, place_data

Array = NDArray[np.float64]

# Most float64 entries of per-sample gradients held at once: half a gigabyte.
_MAX_ENTRIES = 2**26
# Weight of complementarity in the fit: enough to choose among equal fits, too little to spoil one.
TIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class KKTDistance:
    """Where rescaled weights w, smallest margin 1, stand to the KKT conditions.

    Attributes
    ----------
    cosine : float
        Between w and its fit ``sum_n lam_n y_n grad_w f(x_n)``, lam >= 0; 1 at a KKT point.
    residual : float
        ``||w - fit|| / ||w||``; 0 at a KKT point.
    complementarity : float
        ``sum_n lam_n (m_n - 1) / sum_n lam_n``; 0 at a KKT point, NaN if every lam_n is 0.
    multipliers : (n,) array
        lam, read-only.
    dual_norms : (H,) array or None
        Norms ``||v_h(lam)||`` in the units of the convex program (see Notes of `kkt_distance`);
        None for a network without `dual_norms`.
    """

    cosine: float
    residual: float
    complementarity: float
    multipliers: Array
    dual_norms: Array | None

    def __post_init__(self) -> None:
        for array in (self.multipliers, self.dual_norms):
            if array is not None:
                array.flags.writeable = False


def kkt_distance(
    network: torch.nn.Module, X: Inputs, y: Inputs, gates: Inputs | None
) -> KKTDistance:
    r"""Measure how well weights satisfy the KKT conditions of the margin problem.

    .. math:: \min_w \tfrac12 \|w\|^2 \quad\text{s.t.}\quad y_n f_w(x_n; g(n)) \ge 1

    Parameters
    ----------
    network : Module
        Homogeneous of degree ``network.degree`` in its trained weights; computed with in float64.
    X : (n, D)
    y : (n,)
        Labels in {-1, +1}.
    gates : (n, ...) or None
        As in `training.train`.

    Raises
    ------
    TypeError
        If the network has no positive `degree`.
    ValueError
        If data are malformed, or some training sample has no positive margin.

    Notes
    -----
    The conditions are necessary, not sufficient: a unit with zero weights satisfies them whatever
    it could contribute. It is rightly dead only if its entry in `dual_norms` is at most 1. With
    degree L > 2 weight-space multipliers differ from those of the convex program by the factor
    :math:`(\|w\|^2 / L)^{(L - 2)/2}` at a balanced KKT point; `dual_norms` contains it, so live
    units have 1 at every depth.

    References
    ----------
    Seed 004, theorem 3.1 (equal degrees) and proposition B.8 with its condition on dead units.
    """
    degree = getattr(network, "degree", None)
    if not isinstance(degree, int) or degree < 1:
        raise TypeError(
            f"`network.degree` must be a positive int, got {degree!r}: the degree of homogeneity "
            "of the scores in the trained weights"
        )
    data = _to_float64(place_data(network, X, y, gates))
    weights = {k: p.detach().double() for k, p in network.named_parameters() if p.requires_grad}
    fixed = _fixed_tensors(network)
    margins = _margins(network, weights, fixed, data)
    smallest = float(margins.min())
    if not smallest > 0:
        raise ValueError(
            f"the smallest margin on (X, y) is {smallest:g}, but the conditions need every "
            "training sample on the right side: train longer, or check that the data are separable"
        )
    # Homogeneity: margins scale with the degree-th power of the weights.
    weights = {k: p / smallest ** (1 / degree) for k, p in weights.items()}
    margins = margins / smallest
    w = torch.cat([p.flatten() for p in weights.values()])
    reduced = _reduced_system(network, weights, fixed, data, w)
    columns, target = reduced[:, :-1], reduced[:, -1]
    norm = float(w.norm())
    excess = margins.cpu().numpy() - 1
    # With more samples than weights many fits are as good: this row prefers those on the margin.
    # Multipliers sum to ||w||^2 / degree at a KKT point, which puts the row in units of ||w||.
    tight = TIGHT * degree / norm * excess
    system = np.vstack([columns, tight])
    lam, _ = nnls(system, np.append(target, 0.0), maxiter=30 * columns.shape[1])
    fit = columns @ lam
    fit_norm = float(np.linalg.norm(fit))
    residual = float(np.linalg.norm(target - fit))
    return KKTDistance(
        cosine=float(target @ fit) / (norm * fit_norm) if fit_norm > 0 else 0.0,
        residual=residual / norm,
        complementarity=float(lam @ excess / lam.sum()) if lam.sum() > 0 else math.nan,
        multipliers=np.array(lam),
        dual_norms=_dual_norms(network, lam, data, (norm**2 / degree) ** ((degree - 2) / 2)),
    )


def _reduced_system(
    network: torch.nn.Module,
    weights: dict[str, Tensor],
    fixed: dict[str, Tensor],
    data: GatedData,
    w: Tensor,
) -> Array:
    # With [J^T w] = Q R, ||J^T lam - w|| = ||R[:, :n] lam - R[:, n]||, and likewise every inner
    # product: a system of n + 1 rows at most, without the squared condition number of J J^T.
    # Tall matrices are reduced in slabs of parameters, R_new from [R_old; slab].
    n = len(data.y)
    slab = max(_MAX_ENTRIES // n, 1)
    R = w.new_empty(0, n + 1)
    for start in range(0, len(w), slab):
        part = slice(start, start + slab)
        rows = torch.cat([_jacobian(network, weights, fixed, data, part).T, w[part, None]], dim=1)
        R = torch.linalg.qr(torch.cat([R, rows]), mode="r").R
    return R.cpu().numpy()


def _jacobian(
    network: torch.nn.Module,
    weights: dict[str, Tensor],
    fixed: dict[str, Tensor],
    data: GatedData,
    part: slice,
) -> Tensor:
    # Rows y_n grad_w f(x_n), the columns in `part` of them: gradients of a chunk of samples at
    # once, no more of which are held than fit in _MAX_ENTRIES.
    def margin(weights: dict[str, Tensor], x: Tensor, y: Tensor, gate: Tensor | None) -> Tensor:
        sample = GatedData(x[None], y[None], None if gate is None else gate[None])
        return _margins(network, weights, fixed, sample)[0]

    in_dims = (None, 0, 0, None if data.gates is None else 0)
    per_sample = vmap(grad(margin), in_dims=in_dims)
    n_weights = sum(p.numel() for p in weights.values())
    samples = torch.arange(len(data.y), device=data.y.device)
    blocks = []
    for index in torch.split(samples, max(_MAX_ENTRIES // n_weights, 1)):
        gradients = per_sample(weights, *data.take(index))
        rows = torch.cat([gradients[k].flatten(1) for k in weights], dim=1)
        blocks.append(rows[:, part].clone())
    return torch.cat(blocks)


def _margins(
    network: torch.nn.Module,
    weights: dict[str, Tensor],
    fixed: dict[str, Tensor],
    data: GatedData,
) -> Tensor:
    scores: Tensor = functional_call(network, (weights, fixed), (data.X, data.gates))
    return data.y * scores


def _fixed_tensors(network: torch.nn.Module) -> dict[str, Tensor]:
    # Buffers and frozen parameters, in float64 like the weights.
    frozen = {k: p.detach() for k, p in network.named_parameters() if not p.requires_grad}
    tensors = frozen | dict(network.named_buffers())
    return {k: t.double() if t.is_floating_point() else t for k, t in tensors.items()}


def _to_float64(data: GatedData) -> GatedData:
    gates = data.gates
    if gates is not None and gates.is_floating_point():
        gates = gates.double()
    return GatedData(data.X.double(), data.y.double(), gates)


def _dual_norms(
    network: torch.nn.Module, lam: Array, data: GatedData, scale: float
) -> Array | None:
    dual_norms = getattr(network, "dual_norms", None)
    if dual_norms is None:
        return None
    coefficients = torch.as_tensor(lam, device=data.y.device) * data.y
    norms: Tensor = dual_norms(coefficients, data.X, data.gates)
    return scale * norms.cpu().numpy()
