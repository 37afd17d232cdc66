r"""Bounds of two layers of K outputs that go steepest in largest entries, as sign descent does.

Let no entry of the first layer W exceed p and none of the last, A, exceed q. Behind a gate of h
units the coefficients are a sum of h products :math:`a_i w_i^\top` of vectors in boxes. So they lie
in h p q times the convex hull of the matrices :math:`s t^\top` of signs, whose polar is

.. math:: \|V\|_{\infty \to 1} = \max_{s \in \{\pm 1\}^K} \|V^\top s\|_1,

a maximum over 2^(K-1) signs. Over several gates the entries share p and q: the hull is that of one
such matrix a gate. Relative margins over this hull are a matrix game: a linear program over the
sign matrices found so far bounds its value on one side, the maximum over all of them on the other.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..._support.doors import door, result
from ..._support.kinds import anything, count, tolerance
from ..._support.solve import ArrayLike, RelativeMargins, require_sizes
from ...data.arrays import Floats
from .joint_margin import JointMargin

# Classes whose 2^(K-1) signs are looked at, in every iteration.
MOST_CLASSES = 14
# Sign matrices that an iteration adds.
ADDED = 20
# A share of a sign matrix below this is rounding of the linear program.
SHARE = 1e-10
# And a relative gap below this.
FINEST = 1e-9
_UNIT = 2.0**-52


@result()
@dataclass(frozen=True, eq=False)
class SignLayerBounds:
    """Bounds of the least product of two layers' largest entries, at smallest relative margin 1.

    Attributes
    ----------
    lower : float
        No layers of so many units have a smaller product.
    upper : float
        Product of `first` and `last`; infinite where there are fewer units than sign matrices.
    first : (width, D) array
        First layer, the units of a gate beside each other; (width, C, D) of contexts. Zeros where
        `upper` is infinite.
    last : (K, width) array
        Last layer.
    n_matrices : int
        Sign matrices of which the best coefficients are made.
    dual : (n, K) array
        Multipliers of relative margins, of sum 1, that prove the lower bound.

    Examples
    --------
    >>> found = ib.limits.sign_layer_bounds(np.eye(3), [0, 1, 2], width=6)
    >>> product = np.abs(found.first).max() * np.abs(found.last).max()
    >>> bool(product == found.upper), found.first.shape, found.last.shape
    (True, (6, 3), (3, 6))
    """

    lower: float
    upper: float
    first: Floats
    last: Floats
    n_matrices: int
    dual: Floats


@door(gates=anything, n_classes=count(2), n_contexts=count(1), width=count(1), tol=tolerance)
def sign_layer_bounds(
    X: ArrayLike,
    labels: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    width: int,
    n_classes: int | None = None,
    n_contexts: int | None = None,
    tol: float = 1e-6,
    max_iterations: int = 500,
) -> SignLayerBounds:
    r"""Bound what sign descent on two layers of K outputs can reach, from both sides.

    .. math:: \frac{1}{h \gamma} \;\le\; \min \max_{ij} |A_{ij}| \max_{ij} |W_{ij}|
              \;\le\; \frac{1}{\gamma} \max_i \frac{c_i}{h_i}

    over the layers of h units behind each gate at smallest relative margin 1. No convex program is
    known for the least product, but there is one for its lower bound, and the more units the closer
    it is. The coefficients of largest margin gamma are a mean of N sign matrices with shares c_i,
    of sum 1. Of h_i units each, of h in all, they are layers, and h_i = ceil((h - N) c_i) makes the
    upper bound at most h / (h - N) times the lower one. Own result, by these lines; no published
    source was found.

    Parameters
    ----------
    X : (n, D) real array
    labels : (n,) ints
        Classes from 0 to K - 1.
    gates : (n, H) array, optional
        Any real numbers; contexts, integers from 0, with `n_contexts`. None: linear layers.
    width : int
        Units h, behind each gate or of the same contexts where there are some.
    n_classes : int, optional
        K, by default one more than the largest label; at most 14.
    n_contexts : int, optional
        C, of gates that are contexts.
    tol : float
        Relative gap of gamma to reach, in (0, 1), no narrower than 1e-9. A wider one leaves both
        bounds true.
    max_iterations : int
        Linear programs to solve.

    Returns
    -------
    SignLayerBounds

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, K is larger, or no multipliers and coefficients with positive
        margins are found.

    Examples
    --------
    One sample a class: one sign matrix separates two, and a mean of three separates three.

    >>> found = ib.limits.sign_layer_bounds(np.eye(2), [0, 1], width=1)
    >>> round(found.lower, 9), round(found.upper, 9), found.n_matrices
    (0.5, 0.5, 1)
    >>> three = ib.limits.sign_layer_bounds(np.eye(3), [0, 1, 2], width=12)
    >>> round(three.lower * 12, 6), round(three.upper * 12, 6)
    (0.75, 0.75)
    """
    image = JointMargin(n_classes, "l2", n_contexts).margins(X, labels, gates).image
    assert isinstance(image, RelativeMargins)
    if image.n_classes > MOST_CLASSES:
        raise ValueError(
            f"`labels` have {image.n_classes} classes, or `n_classes` says so, and the bound "
            f"looks at the signs of {MOST_CLASSES} at most: take fewer"
        )
    require_sizes("layers", {"width": width}, (*image.shape, width))
    game = _Game(image)
    gamma, above, lam, shares = game.solved(tol, max_iterations)
    if not gamma > 0:
        raise ValueError(
            "`X` and `labels`: no coefficients with positive margins were found; "
            "`solve_multiclass_svm` decides whether there are any"
        )
    kept = np.flatnonzero(shares > SHARE)
    first, last, upper = game.layers(kept, shares[kept], width)
    shape = (-1, image.X.shape[1]) if n_contexts is None else (-1, n_contexts, image.X.shape[1])
    return SignLayerBounds(
        lower=1 / (width * above) * (1 - 4 * _UNIT),
        upper=upper,
        first=first.reshape(shape),
        last=last,
        n_matrices=len(kept),
        dual=image.pairs(lam),
    )


class _Game:
    """Relative margins against sign matrices, one a gate, of those that were found so far."""

    def __init__(self, image: RelativeMargins) -> None:
        self.image = image
        self.shape = image.shape if len(image.shape) == 3 else (1, *image.shape)
        K = image.n_classes
        # The sign of the first class is that of t as well.
        self.signs = np.array(
            [(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=K - 1)]
        )
        self.left: list[Floats] = []  # (H, K) each
        self.right: list[Floats] = []  # (H, Q) each
        self.columns: list[Floats] = []  # (m,) margins each
        self.known: set[bytes] = set()
        self.sizes = image.absolute()

    def solved(self, tol: float, max_iterations: int) -> tuple[float, float, Floats, Floats]:
        """Return gamma, an upper bound of it, multipliers that prove that, and shares."""
        m = self.image.n_rows
        lam, shares, gamma = np.full(m, 1 / m), np.zeros(0), -math.inf
        above, proof = self.added(lam), lam
        nothing = SHARE * float(self.sizes.adjoint(lam).sum())
        tol = max(tol, FINEST)
        for _ in range(max_iterations):
            gamma, found, shares = self._over_found()
            before = len(self.columns)
            bound = self.added(found)
            if bound < above:
                above, proof = bound, found
            # Without a further matrix the next program is this one: no gap is narrower.
            if above <= max(gamma * (1 + tol), nothing) or len(self.columns) == before:
                break
        shares = np.append(shares, np.zeros(len(self.columns) - len(shares)))
        return gamma, above, proof, shares

    def added(self, lam: Floats) -> float:
        """Add the best sign matrices against multipliers; return a bound of all that there are."""
        V = self.image.adjoint(lam).reshape(self.shape)
        products = self.signs @ V  # (H, 2^(K-1), Q)
        norms = np.abs(products).sum(axis=2)
        order = np.argsort(-norms, axis=1)[:, :ADDED]
        gate = np.arange(len(V))
        for best in order.T:  # of every gate its j-th
            s, t = self.signs[best], np.where(products[gate, best] >= 0, 1.0, -1.0)
            name = s.tobytes() + t.tobytes()
            if name in self.known:
                continue
            self.known.add(name)
            matrices = s[:, :, None] * t[:, None, :]
            self.left.append(s)
            self.right.append(t)
            self.columns.append(self.image.scores(matrices.reshape(self.image.shape)))
        # Rounding of V, relative to the sizes of its terms, and of sums over entries.
        terms = float(self.sizes.adjoint(lam).sum())
        steps = self.image.n_roundings[1] + sum(V.shape) + 8
        return (float(norms.max(axis=1).sum()) + steps * _UNIT * terms) / float(lam.sum())

    def _over_found(self) -> tuple[float, Floats, Floats]:
        """Solve the game over the matrices found so far: gamma, multipliers and shares."""
        A = np.array(self.columns).T
        m, n = A.shape
        solved = linprog(
            np.append(np.zeros(n), -1.0),
            A_ub=np.hstack([-A, np.ones((m, 1))]), b_ub=np.zeros(m),
            A_eq=np.append(np.ones(n), 0.0)[None], b_eq=[1.0],
            bounds=[(0, None)] * n + [(None, None)], method="highs",
        )  # fmt: skip
        lam = np.maximum(-solved.ineqlin.marginals, 0.0)
        return float(solved.x[-1]), lam / lam.sum(), np.asarray(solved.x[:-1])

    def layers(
        self, kept: NDArray[np.int64], c: Floats, width: int
    ) -> tuple[Floats, Floats, float]:
        """Return both layers of `width` units a gate, and the product of their largest entries."""
        H, K, Q = self.shape
        first, last = np.zeros((H, width, Q)), np.zeros((K, H, width))
        if width < len(kept):
            return first.reshape(H * width, Q), last.reshape(K, -1), math.inf
        copies = np.ones(len(kept), dtype=np.int64)
        for _ in range(width - len(kept)):  # each further unit where entries are largest
            copies[np.argmax(c / copies)] += 1
        unit = np.repeat(np.arange(len(kept)), copies)
        for i, matrix in enumerate(unit):
            first[:, i] = self.right[kept[matrix]]
            last[:, :, i] = (self.left[kept[matrix]] * (c / copies)[matrix]).T
        B = np.einsum("khi,hiq->hkq", last, first)
        margin = float(self.image.scores(B.reshape(self.image.shape)).min())
        last = last / margin
        return first.reshape(H * width, Q), last.reshape(K, -1), float(np.abs(last).max())
