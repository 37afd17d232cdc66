"""Nearly orthogonal data: the condition of a theorem on leaky networks, and a generator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._support.doors import door, result
from ..._support.kinds import between, count, fraction
from ..._support.solve import ArrayLike, require_sizes
from ..arrays import Floats, checked_data
from ..dataset import Dataset, drawn_dataset


@result()
@dataclass(frozen=True)
class NearOrthogonality:
    """How nearly orthogonal inputs are, beside what a leaky slope asks; true if they are enough.

    Attributes
    ----------
    shortest, longest : float
        Squared norms of inputs.
    largest : float
        Largest size of an inner product of two inputs.
    needed : float
        What the shortest squared norm must exceed, ``slope^-3 (R^2 + 2 slope) n largest`` with R^2
        the longest over the shortest: under it there is one KKT point. Infinite for a slope of 0.
    published : float
        ``3 slope^-3 R^2 n largest``, with which Frei et al. state it; never below `needed`.
    message : str

    Examples
    --------
    >>> found = ib.datasets.near_orthogonality([[1.0, 0.0], [0.01, 1.0]], [1, -1], slope=0.5)
    >>> bool(found), round(found.needed, 3)
    (True, 0.32)
    """

    shortest: float
    longest: float
    largest: float
    needed: float
    published: float
    message: str

    def __bool__(self) -> bool:
        return self.shortest > self.needed


@door(slope=fraction)
def near_orthogonality(X: ArrayLike, y: ArrayLike, *, slope: float) -> NearOrthogonality:
    r"""Check whether inputs are nearly orthogonal enough for a leaky slope.

    Parameters
    ----------
    X : (n, D) array
    y : (n,) array
        Labels in {-1, +1}; the condition does not depend on them.
    slope : float
        Of units where they are inactive, in [0, 1).

    Returns
    -------
    NearOrthogonality

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, or the slope out of range.

    Notes
    -----
    Let P be the largest size of a product, g the slope, a the fixed outer weights, and W a KKT
    point of norm ``w_j = a_j sum_i lam_i y_i g_ij x_i``, each g_ij in [g, 1]. A support sample has
    margin ``1 >= ||a||^2 (g^2 lam_i R_min^2 - P sum lam)``, so that with
    ``q = n P / (g^2 R_min^2)`` ``||a||^2 P sum lam <= e = q / (1 - q)``. Every sample has
    ``1 <= ||a||^2 (lam_k R_max^2 + P sum lam)``, hence ``||a||^2 lam_k >= (1 - e) / R_max^2``, and
    ``y_k sign(a_j) <w_j, x_k> >= |a_j| (g lam_k R_min^2 - P sum lam) > 0`` if
    ``g (1 - e) / R^2 > e``: the condition. Then all gates are those of the labels, W is the one
    optimum of a convex program, all samples support, and neurons of one sign are parallel.

    References
    ----------
    S. Frei, G. Vardi, P. L. Bartlett, N. Srebro, W. Hu, "Implicit bias in leaky ReLU networks
    trained on high-dimensional data".

    Examples
    --------
    >>> bool(ib.datasets.near_orthogonality([[1.0, 0.0], [0.5, 1.0]], [1, -1], slope=0.5))
    False
    """
    X, _ = checked_data(X, y)
    products = np.asarray(X @ X.T, dtype=np.float64)
    squares = np.diagonal(products).copy()
    np.fill_diagonal(products, 0.0)
    n, shortest, longest = len(products), float(squares.min()), float(squares.max())
    largest = float(np.abs(products).max())
    ratio = longest / shortest if shortest > 0 else math.inf
    needed = published = math.inf
    if slope > 0 and ratio < math.inf:
        needed = (ratio + 2 * slope) * n * largest / slope**3
        published = 3 * ratio * n * largest / slope**3
    enough = "" if shortest > needed else "not "
    message = (
        f"{enough}nearly orthogonal enough for slope {slope:g}: the shortest squared norm is "
        f"{shortest:.4g}, and more than {needed:.4g} is asked"
    )
    return NearOrthogonality(shortest, longest, largest, needed, published, message)


@door(n=count(1), d=count(1), n_more=count(0), coherence=fraction, signal=between(0, 1e6))
def make_near_orthogonal(
    n: int = 20,
    d: int = 200,
    *,
    coherence: float = 1e-3,
    signal: float = 0.5,
    n_more: int = 0,
    random_state: int | np.random.Generator = 0,
) -> tuple[Floats, Floats]:
    """Draw two Gaussian clusters, the first n of them of length 1 and of small inner products.

    Rows are ``z / sqrt(d) + signal y u / sqrt(n)`` with z Gaussian and u a unit vector; those of
    the first n are moved, as little as is needed, until their Gram matrix is the identity with
    entries of at most `coherence` off the diagonal, in the pattern that they had.

    Parameters
    ----------
    n, d : int
        Samples that are nearly orthogonal, and inputs, at least as many.
    coherence : float
        Largest size of an inner product, in [0, 1).
    signal : float
        Distance of the clusters.
    n_more : int
        Further samples, such as held-out ones, which are left as they are drawn.
    random_state : int or numpy.random.Generator

    Returns
    -------
    X (n + n_more, d), y (n + n_more,) : float64 arrays

    Raises
    ------
    ValueError
        If there are fewer inputs than samples, or a number is out of range.

    Examples
    --------
    >>> X, y = ib.datasets.make_near_orthogonal(6, 30, coherence=0.001)
    >>> bool(ib.datasets.near_orthogonality(X, y, slope=0.5))
    True
    """
    if d < n:
        raise ValueError(f"`d` must be at least `n` = {n}, got {d}: no more rows are orthogonal")
    require_sizes("samples", {"n": n, "d": d}, (n + n_more, d), (n, d))
    rng = np.random.default_rng(random_state)
    u = rng.normal(size=d)
    u *= math.sqrt(d / n) / float(np.linalg.norm(u))
    y = np.where(np.arange(n + n_more) % 2 == 0, 1.0, -1.0)
    X = (rng.normal(size=(n + n_more, d)) + signal * y[:, None] * u) / math.sqrt(d)
    left, _, right = np.linalg.svd(X[:n], full_matrices=False)
    G = X[:n] @ X[:n].T
    np.fill_diagonal(G, 0.0)
    wanted = np.eye(n) + coherence * G / (float(np.abs(G).max()) or 1.0)
    sizes, vectors = np.linalg.eigh(wanted)
    if sizes[0] <= 0:
        raise ValueError(f"`coherence` {coherence} is too large for {n} samples: take less")
    X[:n] = (vectors * np.sqrt(sizes)) @ vectors.T @ left @ right
    return X, y


def near_orthogonal_dataset(
    *,
    n_train: int = 20,
    n_val: int = 1000,
    d: int = 200,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """Draw the data of `make_near_orthogonal` as a training and a validation part.

    Raises
    ------
    ValueError
        If a size is not positive, or there are more training samples than inputs.
    """
    X, y = make_near_orthogonal(n_train, max(d, n_train), n_more=n_val, random_state=random_state)
    text = f"nearly orthogonal: two Gaussian clusters in R^{X.shape[1]}, products at most 0.001"
    return drawn_dataset("near-orthogonal", X, y, n_train, text)
