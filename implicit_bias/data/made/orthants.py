"""Orthogonally separable data: a check that names an offending pair, and a generator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door, result
from ..._support.kinds import count
from ..._support.solve import ArrayLike, require_sizes
from ..arrays import Floats, checked_data
from ..dataset import Dataset, drawn_dataset

# Rows of the Gram matrix that are formed at once.
_BLOCK = 1024


@result()
@dataclass(frozen=True)
class OrthogonalSeparability:
    """Result of `is_orthogonally_separable`, with an offending pair; true if there is none.

    Attributes
    ----------
    smallest_within : float
        Least `<x_i, x_j>` over samples of equal labels, i = j included; above 0 if separable.
    largest_across : float
        Largest `<x_i, x_j>` over samples of different labels, `-inf` if there are none; at most 0
        if separable.
    pair : (int, int) or None
        The offending pair with the largest absolute cosine, i <= j; None if there is none. A
        zero row offends together with itself.
    product : float
        Its inner product; NaN without a pair.
    n_offending, n_pairs : int
        Numbers of pairs i <= j that offend, and of all.
    n_offending_across, n_across : int
        Those of different labels among them.
    message : str
        One sentence, with the pair and its inner product.

    Examples
    --------
    >>> found = ib.datasets.is_orthogonally_separable([[1.0, 0.0], [1.0, 1.0]], [1, -1])
    >>> bool(found), found.pair, found.product
    (False, (0, 1), 1.0)
    """

    smallest_within: float
    largest_across: float
    pair: tuple[int, int] | None
    product: float
    n_offending: int
    n_pairs: int
    n_offending_across: int
    n_across: int
    message: str

    def __bool__(self) -> bool:
        return self.pair is None

    @property
    def share_across(self) -> float:
        """Share of the pairs of different labels whose product is above 0; NaN without any."""
        return self.n_offending_across / self.n_across if self.n_across else math.nan

    @property
    def share_within(self) -> float:
        """Share of the pairs i <= j of equal labels whose product is at most 0."""
        n_offending = self.n_offending - self.n_offending_across
        return n_offending / (self.n_pairs - self.n_across)


@door()
def is_orthogonally_separable(X: ArrayLike, y: ArrayLike) -> OrthogonalSeparability:
    """Check that inner products are positive within a class and at most 0 across classes.

        <x_i, x_j> > 0  if y_i = y_j,      <x_i, x_j> <= 0  if y_i != y_j.

    Products that rounding alone can account for count as 0.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor.
    y : (n,) array
        Labels in {-1, +1}; one class alone is fine.

    Returns
    -------
    OrthogonalSeparability
        True in a condition exactly if the data are orthogonally separable.

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite or labels are not -1 and +1.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equation (3.1).

    Examples
    --------
    >>> print(ib.datasets.is_orthogonally_separable([[1.0, 0.0], [1.0, 1.0]], [1, -1]).message)
    not orthogonally separable: samples 0 and 1 have different labels but <x_0, x_1> = 1 > 0 \
(1 of 3 pairs offend); the largest product across classes must be at most 0
    """
    X, y = checked_data(X, y)
    blocks = (inner_products(X[rows], X) for rows in _blocks(len(y)))
    return _judge(blocks, np.linalg.norm(X, axis=1), y)


def separability_of_products(products: Floats, y: Floats) -> OrthogonalSeparability:
    """Check orthogonal separability from the `inner_products` (n, n) of samples.

    Parameters
    ----------
    products : (n, n) array
    y : (n,) array
        Labels in {-1, +1}.

    Returns
    -------
    OrthogonalSeparability
    """
    norms = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    return _judge((products[rows] for rows in _blocks(len(y))), norms, y)


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]


def _judge(blocks: Iterable[Floats], norms: Floats, y: Floats) -> OrthogonalSeparability:
    """The result, from the rows of the Gram matrix, `_BLOCK` at a time."""
    n = len(y)
    least, largest, n_offending, n_offending_across = math.inf, -math.inf, 0, 0
    worst, pair, product = -1.0, None, math.nan
    for rows, products in zip(_blocks(n), blocks, strict=True):
        same = y[rows, None] == y
        least = min(least, float(products.min(where=same, initial=math.inf)))
        largest = max(largest, float(products.max(where=~same, initial=-math.inf)))
        offends = np.triu(np.where(same, products <= 0, products > 0), k=rows.start)
        n_offending += int(offends.sum())
        n_offending_across += int(offends.sum(where=~same))
        cosine, i, j = _worst(offends, products, norms[rows, None] * norms)
        if cosine > worst:
            worst, pair = cosine, (rows.start + i, j)
            product = float(products[i, j])
    n_pairs = n * (n + 1) // 2
    share = f"{n_offending} of {n_pairs} pairs offend"
    return OrthogonalSeparability(
        smallest_within=least,
        largest_across=largest,
        pair=pair,
        product=product,
        n_offending=n_offending,
        n_pairs=n_pairs,
        n_offending_across=n_offending_across,
        n_across=int(np.sum(y > 0)) * int(np.sum(y < 0)),
        message=(
            f"orthogonally separable: inner products within a class are at least {least:.4g}, "
            f"across classes at most {largest:.4g}"
            if pair is None
            else _describe(pair, product, bool(y[pair[0]] == y[pair[1]]), share)
        ),
    )


def _worst(offends: NDArray[np.bool_], products: Floats, size: Floats) -> tuple[float, int, int]:
    """Largest absolute cosine of an offending pair, and its place; -1 without one."""
    cosines = np.abs(np.divide(products, size, out=np.zeros_like(products), where=size > 0))
    shown = np.where(offends, cosines, -1.0)
    i, j = np.unravel_index(np.argmax(shown), shown.shape)
    return float(shown[i, j]), int(i), int(j)


@door(n=count(1), d=count(1))
def make_orthosep(
    n: int = 500, d: int = 20, *, random_state: int | np.random.Generator = 0
) -> tuple[Floats, Floats]:
    """Draw orthogonally separable data in two opposite orthants, cut by one half-space.

    Rows x ~ N(0, I) are accepted with label +1 in the positive orthant and with label -1 in the
    negative one, in both cases if `<x, z> >= 0` with z = (1, -1, 1, -1, ...), so that the two
    max-margin directions are not opposite.

    Parameters
    ----------
    n, d : int
        Numbers of samples and inputs.
    random_state : int or numpy.random.Generator
        Source of the samples.

    Returns
    -------
    X (n, d), y (n,) : float64 arrays
        Labels in {-1, +1}, drawn with the rows: balanced in expectation for even d.

    Raises
    ------
    ValueError
        If `n` or `d` is not positive.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", section 3.4.1.

    Examples
    --------
    >>> X, y = ib.datasets.make_orthosep(50, 4)
    >>> X.shape, bool(ib.datasets.is_orthogonally_separable(X, y))
    ((50, 4), True)
    """
    require_sizes("samples", {"n": n, "d": d}, (n, d), (n, d))
    rng = np.random.default_rng(random_state)
    # Of the two points +|g| and -|g| that a draw has in the orthants, exactly one is in the
    # half-space, sign(<|g|, z>) |g|, and both are equally likely. So conditioning on it does not
    # change the law of |g|, and nothing needs to be rejected.
    g = np.abs(rng.normal(size=(n, d)))
    z = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    y = np.where(g @ z >= 0, 1.0, -1.0)
    return y[:, None] * g, y


def orthosep_dataset(
    *,
    n_train: int = 500,
    n_val: int = 1000,
    d: int = 20,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """Draw the data of `make_orthosep` as a training and a validation part.

    Raises
    ------
    ValueError
        If a size is not positive, or the training part lacks a class (take more samples).
    """
    X, y = make_orthosep(n_train + n_val, d, random_state=random_state)
    text = f"orthogonally separable: two opposite orthants of R^{d} (+1 and -1) cut by "
    return drawn_dataset("orthosep", X, y, n_train, f"{text}one half-space")


def inner_products(A: Floats, B: Floats) -> Floats:
    """Return the inner products (n, m) of rows, 0 where rounding alone can account for them."""
    products = np.asarray(A @ B.T, dtype=np.float64)
    # |fl(<a, b>) - <a, b>| <= D eps ||a|| ||b||, whatever the order of summation.
    size = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    products[np.abs(products) <= A.shape[1] * np.finfo(np.float64).eps * size] = 0.0
    return products


def _describe(pair: tuple[int, int], product: float, same: bool, share: str) -> str:
    (i, j), start = pair, "not orthogonally separable: "
    if i == j:
        return (
            f"{start}sample {i} is zero, <x_{i}, x_{i}> = {product:.4g} ({share}); "
            "leave it out, no classifier without bias can place it"
        )
    kind, sign, wanted = (
        ("equal", "<=", "the least product within a class must be above 0")
        if same
        else ("different", ">", "the largest product across classes must be at most 0")
    )
    return (
        f"{start}samples {i} and {j} have {kind} labels but <x_{i}, x_{j}> = {product:.4g} "
        f"{sign} 0 ({share}); {wanted}"
    )
