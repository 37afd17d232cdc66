"""Orthogonal separability of the features of every layer of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._support.doors import door, result
from .._support.shown import ReadOnly, Shown
from .._support.solve import to_numpy
from ..data.made.orthants import OrthogonalSeparability, inner_products, separability_of_products
from ..data.sample import Sample
from ..networks.adapted import plain, with_gates
from ..networks.placed_data import GatedData, Inputs, place_data

Floats = NDArray[np.float64]

LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Quantiles of cosines that are recorded of every layer."""

# Samples that pass through the network at once: all layers of a batch are in memory, of the whole
# data one layer alone.
_BATCH = 256


@result()
@dataclass(frozen=True, eq=False, repr=False)
class LayerSeparability(ReadOnly, Shown):
    """Separability of two classes by the signs of inner products of one layer's features.

    Attributes
    ----------
    layer : str
        Name of the submodule whose outputs they are; "inputs" for the data.
    n_features : int
        Features of one sample, images flattened.
    separability : OrthogonalSeparability
        The verdict, the shares of offending pairs (`share_across`, `share_within`), the worst
        pair.
    across, positive, negative : (7,) arrays
        Quantiles `LEVELS` of the cosines of pairs i < j across the classes, within class +1 and
        within class -1; NaN where there are no such pairs. A zero vector has cosine 0.
    singular_values : (min(n, n_features),) array
        Singular values of the features, descending, from their Gram matrix: known to about 1e-8
        of the largest.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    >>> inputs = ib.measures.separability_by_layer(network, [[1.0], [-2.0]], [1, -1])[0]
    >>> inputs.layer, inputs.n_features, inputs.separability.share_across
    ('inputs', 1, 0.0)
    """

    layer: str
    n_features: int
    separability: OrthogonalSeparability
    across: Floats
    positive: Floats
    negative: Floats
    singular_values: Floats

    def __bool__(self) -> bool:
        return bool(self.separability)


@door()
def separability_by_layer(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None = None,
    *,
    layers: Sequence[str] | None = None,
) -> tuple[LayerSeparability, ...]:
    """Check the inputs, then the features of every layer, for orthogonal separability.

    Parameters
    ----------
    network : Module
        A module of submodules; takes `(X, gates)` or `X` alone.
    X : (n, ...) array
        Inputs, vectors or images.
    y : (n,) array
        Labels in {-1, +1}.
    gates : (n, ...) array, optional
        Gates of the samples, for a network that takes them.
    layers : sequence of str, optional
        Names of submodules, from `network.named_modules()`; by default all linear maps and
        convolutions.

    Returns
    -------
    tuple of LayerSeparability
        One for the inputs, and one a layer in the order that they are computed in. Each asks for
        three (n, n) arrays at a time.

    Raises
    ------
    ValueError
        If data are malformed, labels are not -1 and +1, a name is none of the network's, by
        default there is no layer, a layer is not called exactly once a pass, or its output is not
        one tensor with a row a sample.

    Notes
    -----
    Pre-activations are what is looked at unless `layers` says otherwise: after a ReLU no product
    is negative, and classes are orthogonally separable only where no feature serves both.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", section 3.4.3 and figure 3.3.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    >>> layers = ib.measures.separability_by_layer(network, [[1.0], [-2.0]], [1, -1])
    >>> bool(layers[0])
    True
    """
    given = None if gates is None else to_numpy(gates)
    labels = Sample(to_numpy(X), to_numpy(y), given).y.astype(np.float64)
    return tuple(
        _measure(name, features, labels)
        for name, features in layer_features(network, X, gates, layers=layers)
    )


@door()
def layer_features(
    network: torch.nn.Module,
    X: Inputs,
    gates: Inputs | None = None,
    *,
    layers: Sequence[str] | None = None,
) -> Iterator[tuple[str, Floats]]:
    """Yield name and features of the inputs, then of every layer, one at a time.

    The network computes in its own dtype, once for each layer.

    Parameters
    ----------
    network : Module
        A module of submodules; takes `(X, gates)` or `X` alone.
    X : (n, ...) array
        Inputs, vectors or images.
    gates : (n, ...) array, optional
        Gates of the samples, for a network that takes them.
    layers : sequence of str, optional
        Names of submodules, from `network.named_modules()`, whose outputs are the features. By
        default those that have no submodules and a weight of two or more axes: linear maps and
        convolutions, before what is applied to their outputs.

    Yields
    ------
    (str, (n, D_l) float64 array)
        "inputs" or the name of the submodule, and its features, flattened.

    Raises
    ------
    ValueError
        If data are malformed, a name is none of the network's, or by default there is no layer; if
        a layer is not called exactly once a pass, or its output is not one tensor with a row a
        sample.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> features = ib.measures.layer_features(network, np.ones((5, 2)))
    >>> [(name, values.shape) for name, values in features]
    [('inputs', (5, 2)), ('0', (5, 3)), ('2', (5, 1))]
    """
    data = place_data(network, X, None, gates)
    yield "inputs", _rows(data.X)
    for name, module in _chosen(plain(network), layers):
        yield name, _outputs(network, name, module, data)


def _chosen(
    network: torch.nn.Module, layers: Sequence[str] | None
) -> list[tuple[str, torch.nn.Module]]:
    known = dict(network.named_modules())
    if layers is not None:
        unknown = [name for name in layers if name not in known]
        if unknown:
            raise ValueError(
                f"`layers` must be names of submodules, got {unknown[0]!r}: one of {list(known)}"
            )
        return [(name, known[name]) for name in layers]
    found = [
        (name, module)
        for name, module in known.items()
        if not list(module.children()) and getattr(getattr(module, "weight", None), "ndim", 0) >= 2
    ]
    if not found:
        raise ValueError(
            f"{type(network).__name__} has no submodule with a weight matrix, such as nn.Linear: "
            "name in `layers` the submodules whose outputs to look at"
        )
    return found


def _outputs(
    network: torch.nn.Module, name: str, module: torch.nn.Module, data: GatedData
) -> Floats:
    """(n, D_l) outputs of one submodule while the network scores the data."""
    seen: list[Any] = []
    hook = module.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    try:
        with torch.no_grad():
            for start in range(0, len(data.X), _BATCH):
                end = min(start + _BATCH, len(data.X))
                part = data.take(torch.arange(start, end, device=data.X.device))
                before = len(seen)
                with_gates(network)(part.X, part.gates)
                if len(seen) != before + 1:
                    raise ValueError(
                        f"layer {name!r} must be called once a pass, was called "
                        f"{len(seen) - before} times: name others in `layers`"
                    )
                seen[-1] = _checked(name, seen[-1], end - start)
    finally:
        hook.remove()
    return np.concatenate(seen)


def _checked(name: str, output: Any, n: int) -> Floats:
    if not isinstance(output, Tensor) or output.ndim < 1 or len(output) != n:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"layer {name!r} must return one tensor with {n} rows, one a sample, got {shape}: name "
            "others in `layers`"
        )
    return _rows(output)


def _rows(X: Tensor) -> Floats:
    return np.asarray(to_numpy(X.reshape(len(X), -1).double()), dtype=np.float64)


def _measure(name: str, features: Floats, y: Floats) -> LayerSeparability:
    products = inner_products(features, features)
    # Both Gram matrices have the same eigenvalues but for zeros.
    smaller = products if len(features) <= features.shape[1] else features.T @ features
    values = np.linalg.eigvalsh(smaller)[::-1]
    separability = separability_of_products(products, y)
    norms = np.sqrt(np.diagonal(products))
    size = norms[:, None] * norms
    cosines = np.divide(products, size, out=np.zeros_like(products), where=size > 0)
    classes = [cosines[np.ix_(y == label, y == label)] for label in (1, -1)]
    within = [block[np.triu_indices(len(block), k=1)] for block in classes]
    pairs = [cosines[np.ix_(y > 0, y < 0)].ravel(), *within]
    across, positive, negative = (
        np.quantile(kind, LEVELS) if len(kind) else np.full(len(LEVELS), np.nan) for kind in pairs
    )
    return LayerSeparability(
        layer=name,
        n_features=features.shape[1],
        separability=separability,
        across=across,
        positive=positive,
        negative=negative,
        singular_values=np.sqrt(np.maximum(values, 0.0)),
    )
