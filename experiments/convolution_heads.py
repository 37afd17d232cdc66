"""The last two layers of `experiments.convolution` beside what theory has them be."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn

import implicit_bias as ib
from implicit_bias.measures.scalars import error_rate, scores
from implicit_bias.models.orthosep import (
    NotOrthogonallySeparable,
    OrthosepDiagnosis,
    diagnose_orthosep,
    halving_phases,
    ratio,
)
from implicit_bias.networks.balanced_relu import BalancedReLU

from .interrupts import finished
from .spectra import Array

# Training images whose pairs are looked at layer by layer: 90,000 pairs across the classes.
PAIRED = 600
# Of the head that is fitted anew: the theorem holds at any width that leaves both signs alive.
REFITTED, PHASES = 16, 5


def head(network: nn.Sequential, sample: ib.Sample) -> tuple[BalancedReLU, ib.Sample]:
    """The last two layers as a two-layer network without biases, and what comes into it.

    With biases the inputs end in a constant 1, whose weights the biases of layer 7 are. That of
    the output is one more neuron, which is active on the constant alone.
    """
    *below, first, _, last = network
    assert isinstance(first, nn.Linear) and isinstance(last, nn.Linear)
    with torch.no_grad():
        X = nn.Sequential(*below)(torch.tensor(sample.X).float()).double().numpy()
        W, a = _matrix(first), _matrix(last)[0]
        if first.bias is not None:
            X = np.column_stack([X, np.ones(len(X))])
            output = last.bias.item()
            W = np.vstack([np.column_stack([W, first.bias.numpy()]), np.zeros(X.shape[1])])
            W[-1, -1] = math.sqrt(abs(output))
            a = np.append(a, math.copysign(W[-1, -1], output))
    return BalancedReLU.from_weights(W, a), ib.Sample(X, sample.y, None)


def two_vectors(train: ib.Sample) -> ib.limits.OrthosepLimit:
    """The prediction of theorem 3.1, which the data may be outside of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotOrthogonallySeparable)
        return ib.solve_orthosep(train.X, train.y)


def refitted(train: ib.Sample, seed: int) -> BalancedReLU:
    """Two layers from near zero, balanced, by gradient steps far along the flow."""
    network = BalancedReLU(train.X.shape[1], REFITTED, random_state=seed)
    settings = ib.TrainingSettings(
        trainer="normalised", batch_size=0, schedule=halving_phases(train.X, n_phases=PHASES)
    )
    finished(ib.train(network, *train, settings=settings))
    return network


def beside(
    limit: ib.limits.OrthosepLimit, network: BalancedReLU, train: ib.Sample, held_out: ib.Sample
) -> tuple[dict[str, Any], OrthosepDiagnosis]:
    """How near two layers have come to the two vectors of their inputs.

    The margin ratio is the least margin over `sum_j |a_j| ||w_j||`, times the certified bound of
    `||w_plus|| + ||w_minus||`. Inputs that come out of a ReLU have no negative products, and then
    it is at most 1 for every network, whether or not the classes are orthogonally separable: with
    lam the multipliers of one class, `sum_i lam_i relu(<v, x_i>)` is `<v, sum_S lam_i x_i>`, S the
    samples that v sees, and no part of the sum is longer than the whole.
    """
    found = diagnose_orthosep(network, limit, train, held_out)
    live = found.cosines[found.group != 0]
    normalised = _normalised_margin(network, train)
    kkt = ib.kkt_distance(network, *train) if normalised > 0 else None
    row = {
        "log_inverse_loss": found.log_inverse_loss,
        "train_error": error_rate(train.y, scores(network, train)),
        "error": error_rate(held_out.y, scores(network, held_out)),
        "mean_cosine": found.mean_cosine,
        "least_cosine": float(live.min()) if len(live) else math.nan,
        "above_0.9": float(np.mean(live > 0.9)) if len(live) else math.nan,
        "function_cosine": found.function_cosine,
        "margin_ratio": normalised * float(limit.dual_objective),
        "kkt_cosine": math.nan if kkt is None else kkt.cosine,
        "kkt_residual": math.nan if kkt is None else kkt.residual,
        "share_positive": found.share_positive,
        "share_negative": found.share_negative,
        "share_dead": found.share_dead,
        "imbalance": found.imbalance,
    }
    return row, found


def _normalised_margin(network: BalancedReLU, sample: ib.Sample) -> float:
    """Least margin over `sum_j |a_j| ||w_j||`, which rescaled neurons leave as it is."""
    norm = float(network.unit_norms().detach().sum())
    return float(np.min(sample.y * scores(network, sample))) / norm


def beside_cones(
    pair: ib.limits.ConePair, network: BalancedReLU, train: ib.Sample, groups: NDArray[np.int64]
) -> dict[str, Any]:
    """How near they have come to the two vectors that are silent on the other class."""
    W = network.W.detach().numpy()
    norms, size = np.linalg.norm(W, axis=1), {1: pair.w_plus, -1: pair.w_minus}
    along = sum(
        float(np.sum(W[groups == sign] @ w)) / float(np.linalg.norm(w)) for sign, w in size.items()
    )
    return {
        "cone_gap": max(certificate.gap for certificate in pair.certificates),
        "cone_violation": max(certificate.violation for certificate in pair.certificates),
        "cone_excess": pair.excess,
        "cone_cosine": ratio(along, float(norms[groups != 0].sum())),
        "cone_ratio": _normalised_margin(network, train) * pair.objective,
    }


def prediction(
    limit: ib.limits.OrthosepLimit, train: ib.Sample, held_out: ib.Sample
) -> dict[str, Any]:
    """The two vectors, with their certificate, and what they are worth as a classifier."""
    plus, minus = limit.w_plus, limit.w_minus
    found = ib.datasets.is_orthogonally_separable(train.X[:PAIRED], train.y[:PAIRED])
    return {
        "n_inputs": train.X.shape[1],
        "cross_positive": found.share_across,
        "status": limit.status.name,
        "gap": limit.gap,
        "norm_plus": float(np.linalg.norm(plus)),
        "norm_minus": float(np.linalg.norm(minus)),
        "cosine_pair": float(plus @ minus / np.linalg.norm(plus) / np.linalg.norm(minus)),
        "limit_margin": float(np.min(train.y * limit.predictor(train.X))),
        "limit_train_error": error_rate(train.y, np.asarray(limit.predictor(train.X))),
        "limit_error": error_rate(held_out.y, np.asarray(limit.predictor(held_out.X))),
    }


def head_rows(
    network: nn.Sequential, train: ib.Sample, held_out: ib.Sample, *, seed: int | None
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """The last two layers, a head fitted anew if there is a `seed`, and the neurons of layer 7."""
    trained_head, inside = head(network, train)
    _, outside = head(network, held_out)
    limit, pair = two_vectors(inside), ib.limits.solve_cone_pair(inside.X, inside.y)
    heads = {"trained": trained_head}
    if seed is not None:
        heads["refitted"] = refitted(inside, seed)
    rows, diagnoses = [], {}
    for name, one in heads.items():
        row, diagnoses[name] = beside(limit, one, inside, outside)
        values = diagnoses[name].singular_values
        if name == "trained":
            # Of W_7 as the thesis shows them, without its biases.
            values = np.asarray(np.linalg.svd(_matrix(network[-3]), compute_uv=False), float)
        rows.append({"head": name} | prediction(limit, inside, outside) | row)
        rows[-1] |= beside_cones(pair, one, inside, diagnoses[name].group)
        rows[-1] |= numbered("s", values, 10)
    return rows, _neurons(diagnoses["trained"], trained_head, pair)


def _matrix(layer: nn.Module) -> Array:
    assert isinstance(layer, nn.Linear)
    return np.asarray(layer.weight.detach().double().numpy())


def _neurons(
    found: OrthosepDiagnosis, network: BalancedReLU, pair: ib.limits.ConePair
) -> pd.DataFrame:
    """Neurons and both predictions, at unit length, in the plane of the top singular vectors."""
    W = network.W.detach().numpy()
    # The diagnosis has the plane's coordinates, of which a basis follows.
    basis = np.linalg.lstsq(found.plane, W, rcond=None)[0]
    silent = [w / np.linalg.norm(w) @ basis.T for w in (pair.w_plus, pair.w_minus)]
    table = pd.DataFrame(
        {"x": found.plane[:, 0], "y": found.plane[:, 1], "group": found.group,
         "norm": found.norms, "cosine": found.cosines}
    )  # fmt: skip
    for kind, vectors in (("two vectors", found.directions), ("silent pair", silent)):
        for name, vector in zip(("plus", "minus"), vectors, strict=True):
            for axis, value in zip("xy", vector, strict=True):
                table[f"{name} {kind} {axis}"] = float(value)
    return table


def numbered(name: str, values: Array, most: int) -> dict[str, float]:
    return {f"{name}{k}": float(value) for k, value in enumerate(values[:most], start=1)}
