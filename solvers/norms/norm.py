"""Norms of coefficients: blocks of entries, a norm inside each, and what is made of these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..numerics.arrays import Array, array_namespace, as_float64, float_of, to_numpy
from ..numerics.checks import require_choice, require_finite, require_shape, shown
from ..numerics.intake import real_array
from ..numerics.summation import TINY, power_of_two, rounding
from .factored import largest_nuclear, least_spectral

Floats = NDArray[np.float64]
Inside = Literal["l2", "spectral", "nuclear"]
Over = Literal["sum", "max", "factored", "weighted"]
Blocks = Literal["whole", "rows", "columns", "entries", "units"]
NormName = Literal[
    "l2", "linf", "l1", "spectral", "nuclear",
    "rows", "columns", "largest-row", "largest-column",
    "units", "largest-unit", "sum-spectral", "max-spectral", "sum-nuclear", "max-nuclear",
    "muon", "muon-dual",
]  # fmt: skip
"""Names of norms: `Norm.of` says what each stands for"""

# Each norm in its one form (inside, over, blocks): of one block nothing is summed, and of a row all
# three norms inside are one.
TABLE: dict[NormName, tuple[Inside, Over, Blocks]] = {
    "l2": ("l2", "sum", "whole"),
    "linf": ("l2", "max", "entries"),
    "l1": ("l2", "sum", "entries"),
    "spectral": ("spectral", "sum", "whole"),
    "nuclear": ("nuclear", "sum", "whole"),
    "rows": ("l2", "sum", "rows"),
    "columns": ("l2", "sum", "columns"),
    "largest-row": ("l2", "max", "rows"),
    "largest-column": ("l2", "max", "columns"),
    "units": ("l2", "sum", "units"),
    "largest-unit": ("l2", "max", "units"),
    "sum-spectral": ("spectral", "sum", "units"),
    "max-spectral": ("spectral", "max", "units"),
    "sum-nuclear": ("nuclear", "sum", "units"),
    "max-nuclear": ("nuclear", "max", "units"),
    "muon": ("spectral", "factored", "rows"),
    "muon-dual": ("nuclear", "weighted", "rows"),
}
DUAL_OVER: dict[Over, Over] = {
    "sum": "max", "max": "sum", "factored": "weighted", "weighted": "factored",
}  # fmt: skip
# Of rows as factors a times rows W, what the l2 norm inside comes to.
OF_L2: dict[Over, Over] = {"factored": "sum", "weighted": "max"}
DUAL_INSIDE: dict[Inside, Inside] = {"l2": "l2", "spectral": "nuclear", "nuclear": "spectral"}
# Singular values below this share of the largest are rounding: gradients of relative margins
# have columns of sum 0, and so a singular value that is 0.
RANGE = 1e-12


@dataclass(frozen=True)
class Norm:
    r"""A norm of an array of coefficients: one inside each block, a sum or a maximum over blocks.

    .. math:: N(B) = \sum_b \|B_b\| \quad \text{or} \quad N(B) = \max_b \|B_b\|

    Its dual has the dual norm inside and the other of sum and maximum. Of rows there are two more:
    rows as weights a times the rows of a matrix W, with the l2 norm of a and the norm inside of W,

    .. math:: N(B) = \min_{\mathrm{diag}(a) W = B} \|a\| \, \|W\|, \qquad
              N^*(V) = \max_{\|a\| \le 1} \|\mathrm{diag}(a) V\|_*.

    Two norms that are equal are written in one form: `Norm("spectral", "sum", "rows") ==
    Norm.of("rows")`.

    Parameters
    ----------
    inside : {"l2", "spectral", "nuclear"}
        Root of the sum of squares, largest singular value, sum of singular values.
    over : {"sum", "max", "factored", "weighted"}
        Over blocks; of one block nothing is summed. "factored", of the spectral norm, and its dual
        "weighted", of the nuclear one: of rows.
    blocks : {"whole", "rows", "columns", "entries", "units"}
        All entries; the rows or columns of a matrix; each entry; each `B[h]`, a matrix or a row.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Norm
    >>> B = np.array([[3.0, 0.0], [0.0, -4.0]])
    >>> [(name, round(Norm.of(name).value(B), 12)) for name in ("l2", "l1", "spectral", "nuclear")]
    [('l2', 5.0), ('l1', 7.0), ('spectral', 4.0), ('nuclear', 7.0)]
    >>> Norm.of("spectral").dual
    Norm('nuclear')
    >>> Norm.of("linf").steepest(B).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """

    inside: Inside = "l2"
    over: Over = "sum"
    blocks: Blocks = "whole"

    def __post_init__(self) -> None:
        require_choice("inside", self.inside, get_args(Inside))
        require_choice("over", self.over, get_args(Over))
        require_choice("blocks", self.blocks, get_args(Blocks))
        if self.blocks == "whole":
            object.__setattr__(self, "over", "sum")
        elif self.over in OF_L2:
            if self.blocks == "rows" and self.inside == "l2":
                object.__setattr__(self, "over", OF_L2[self.over])
            elif (self.inside, self.over, self.blocks) not in TABLE.values():
                raise ValueError(
                    "`over` 'factored' takes the spectral norm inside, 'weighted' the nuclear one, "
                    f"and `blocks` 'rows': got {self.inside!r} and {self.blocks!r}"
                )
        elif self.blocks != "units":
            object.__setattr__(self, "inside", "l2")

    @classmethod
    def of(cls, norm: Norm | NormName | Literal["frobenius"]) -> Norm:
        """Return the norm of a name, or a norm as it is.

        Parameters
        ----------
        norm : Norm or str
            "l2" (or "frobenius"), "linf" (largest entry), "l1" (sum of absolute values),
            "spectral", "nuclear"; "rows", "columns" (sum of their l2 norms), "largest-row",
            "largest-column"; over units `B[h]` "units" (sum of l2 norms), "largest-unit",
            "sum-spectral", "max-spectral", "sum-nuclear", "max-nuclear"; "muon", least product of
            the l2 norm of a and the spectral norm of W with diag(a) W = B, and "muon-dual".

        Raises
        ------
        TypeError
            If it is neither a norm nor a string.
        ValueError
            If no norm has this name, with all names.
        """
        if isinstance(norm, Norm):
            return norm
        if not isinstance(norm, str):
            raise TypeError(f"`norm` must be a Norm or the name of one, got {shown(norm)}")
        name = "l2" if norm == "frobenius" else norm
        require_choice("norm", name, tuple(TABLE))
        return cls(*TABLE[name])

    @property
    def name(self) -> NormName:
        """Name of the norm, which `Norm.of` takes."""
        own = (self.inside, self.over, self.blocks)
        return next(name for name, form in TABLE.items() if form == own)

    @property
    def dual(self) -> Norm:
        """Norm `N*(G) = max <G, U>` over `N(U) <= 1`."""
        return Norm(DUAL_INSIDE[self.inside], DUAL_OVER[self.over], self.blocks)

    @property
    def is_factored(self) -> bool:
        """True for "muon" and its dual, of rows that share a matrix."""
        return self.over in OF_L2

    def value(self, B: Array) -> float:
        """Return N(B) of an array, as accurate as its arithmetic.

        Parameters
        ----------
        B : (K, D) or (H, K, D) array, NumPy or torch
            A matrix; units may be matrices. Norms "l2", "linf" and "l1" take vectors too.

        Raises
        ------
        ValueError
            If the array has no such blocks, or an entry is not finite.
        """
        stack, scale = self._scaled("B", B)
        if self.is_factored:
            return scale * _factored(np.asarray(to_numpy(stack[0]), np.float64), self.over)
        return scale * float_of(self._over(self._sizes(stack)))

    def steepest(self, G: Array) -> Array:
        """Return the direction of steepest ascent: U of N(U) <= 1 with the largest <G, U> = N*(G).

        Where several are, the one that is 0 wherever it may be: sign(0) = 0, the polar factor on
        the range of G, the first of several largest blocks. Zero for G = 0.

        Parameters
        ----------
        G : (K, D) or (H, K, D) array, NumPy or torch

        Returns
        -------
        array of the shape, kind and dtype of G

        Raises
        ------
        ValueError
            If the array has no such blocks, or an entry is not finite.
        """
        G = real_array("G", G)
        stack, _ = self._scaled("G", G)
        xp = array_namespace(stack)
        if self.is_factored:
            U = _factored_step(np.asarray(to_numpy(stack[0]), np.float64), self.over)
            return xp.astype(as_float64(U, like=stack), stack.dtype)
        if self.over == "max" or self.blocks == "whole":
            return self._unstacked(self._steps(stack), G)
        best = int(xp.argmax(self.dual._sizes(stack)))
        U = xp.zeros_like(stack)
        U[best] = self._steps(stack[best : best + 1])[0]
        return self._unstacked(U, G)

    def factors(self, B: Floats) -> tuple[Floats, Floats]:
        """Return weights a (H,) and rows W (H, Q) of the least product, for "muon".

        Parameters
        ----------
        B : (H, Q) array

        Returns
        -------
        a, W : arrays
            diag(a) W = B, a of the l2 norm and W of the spectral norm sqrt(N(B)); zeros where a row
            of B is zero.

        Raises
        ------
        ValueError
            If the norm is another, or the array no finite matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from solvers import Norm
        >>> a, W = Norm.of("muon").factors(np.diag([1.0, 3.0]))
        >>> round(float(np.linalg.norm(a) ** 2), 9), (a[:, None] * W).round(9).tolist()
        (3.16227766, [[1.0, 0.0], [0.0, 3.0]])
        """
        if self.over != "factored":
            raise ValueError(f"`factors` are those of the norm 'muon', not of {self.name!r}")
        stack, scale = self._scaled("B", B)
        matrix = np.asarray(to_numpy(stack[0]), np.float64)
        t, _ = least_spectral(matrix)
        a = np.sqrt(t)[:, None]
        W = np.divide(matrix, a, out=np.zeros_like(matrix), where=a > 0)
        size = float(np.linalg.norm(W, 2))
        if size == 0:
            return np.zeros(len(W)), W
        root = math.sqrt(size * scale)
        return a[:, 0] * root, W / size * root

    def above(self, B: Array, lost: Array | None = None) -> float:
        """Return an upper bound of N of every array within `lost` of B, rounding included.

        No singular value decomposition is trusted: with any U, s, W and the rest R = B - U s W,
        `||B|| <= ||U|| ||W|| max s + ||R||_F`, and `sum s`, `sqrt(rank)` for the nuclear norm,
        where `||U||^2 <= 1 + ||U'U - I||_F`.

        Parameters
        ----------
        B : float64 array
            As `value` takes it.
        lost : array of the same shape, optional
            Bounds of the errors of its entries, not negative.

        Raises
        ------
        ValueError
            If the array has no such blocks, or an entry is not finite.

        References
        ----------
        N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1.

        Examples
        --------
        >>> import numpy as np
        >>> from solvers import Norm
        >>> 0 <= Norm.of("nuclear").above(np.eye(3)) - 3 < 1e-12
        True
        >>> round(Norm.of("l1").above(np.eye(3), lost=np.full((3, 3), 0.5)), 9)
        7.5
        """
        B = as_float64(real_array("B", B))
        if lost is not None:
            lost = as_float64(real_array("lost", lost), like=B)
            require_shape("lost", lost, tuple(B.shape), "one error an entry of B")
        stack, scale = self._scaled("B", B)
        if self.is_factored:
            matrix = np.asarray(to_numpy(stack[0]))
            errors = np.zeros_like(matrix)
            if lost is not None:
                errors = np.abs(to_numpy(lost)) / scale
            return scale * _factored_above(matrix, errors, self.over) + TINY
        sizes = self._sizes(stack) if self.inside == "l2" else self._sizes_above(stack)
        # A norm of squares rounds once an entry, a sum once a block; the rest is the scaling.
        steps = sum(int(length) for length in stack.shape) + 8
        known = scale * float_of(self._over(sizes)) * (1 + rounding(steps)) + TINY
        if lost is None:
            return known
        # |E| <= lost: l2 norms of blocks are monotone in sizes, and the others at most sqrt(rank)
        # times as large.
        xp = array_namespace(B)
        errors, scale = self._scaled("lost", xp.abs(lost))
        share = math.sqrt(min(errors.shape[1:])) if self.inside == "nuclear" else 1.0
        spread = xp.sqrt(xp.sum(errors * errors, axis=(1, 2)))
        added = scale * share * float_of(self._over(spread)) * (1 + rounding(steps)) + TINY
        return (known + added) * (1 + rounding(1))

    def __repr__(self) -> str:
        return f"Norm({self.name!r})"

    def _scaled(self, name: str, B: Array) -> tuple[Array, float]:
        """Blocks (b, p, q) over a power of two, so that no square overflows, and the power."""
        B = real_array(name, B)
        if math.prod(B.shape) == 0:
            raise ValueError(f"`{name}` must have entries, got shape {tuple(B.shape)}")
        require_finite(name, B)
        stack = self._stacked(name, B)
        xp = array_namespace(stack)
        scale = power_of_two(float_of(xp.max(xp.abs(stack))))
        return stack / scale, scale

    def _stacked(self, name: str, B: Array) -> Array:
        """Blocks (b, p, q) of an array."""
        xp = array_namespace(B)
        if self.is_factored and B.ndim == 2:
            return B[None, :, :]
        if B.ndim <= 3 and (self.blocks == "entries" or self == Norm()):
            shape = (-1, 1, 1) if self.blocks == "entries" else (1, 1, -1)
            return xp.reshape(B, shape)
        if B.ndim == 2 and self.blocks != "whole":
            return (B.T if self.blocks == "columns" else B)[:, None, :]
        if B.ndim == 2:
            return B[None, :, :]
        if B.ndim == 3 and self.blocks == "units":
            return B
        several = self.blocks in ("entries", "units") or self == Norm()
        wanted = "a matrix or a stack of matrices" if several else "a matrix"
        raise ValueError(
            f"`{name}` must be {wanted} for the norm {self.name!r}, got shape {tuple(B.shape)}"
        )

    def _unstacked(self, stack: Array, B: Array) -> Array:
        xp = array_namespace(stack)
        if self.blocks == "columns":
            return stack[:, 0, :].T
        return xp.reshape(stack, tuple(B.shape))

    def _over(self, sizes: Array) -> Array:
        xp = array_namespace(sizes)
        return xp.max(sizes) if self.over == "max" else xp.sum(sizes)

    def _sizes(self, stack: Array) -> Array:
        """Norms (b,) inside blocks."""
        xp = array_namespace(stack)
        if self.blocks == "entries":
            return xp.abs(stack[:, 0, 0])
        if self.inside == "l2":
            return xp.sqrt(xp.sum(stack * stack, axis=(1, 2)))
        s = xp.linalg.svdvals(stack)
        return s[:, 0] if self.inside == "spectral" else xp.sum(s, axis=1)

    def _steps(self, stack: Array) -> Array:
        """Steepest steps inside blocks, each of norm one or zero."""
        xp = array_namespace(stack)
        if self.blocks == "entries":
            return xp.sign(stack)
        if self.inside == "l2":
            sizes = self._sizes(stack)[:, None, None]
            return stack / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        U, s, W = xp.linalg.svd(stack, full_matrices=False)
        if self.inside == "nuclear":
            kept = xp.zeros_like(s)
            kept[:, 0] = xp.sign(s[:, 0])
        else:
            kept = xp.astype((s > RANGE * s[:, :1]), s.dtype)
        return (U * kept[:, None, :]) @ W

    def _sizes_above(self, stack: Array) -> Array:
        """Upper bounds (b,) of largest or summed singular values, rounding of all but two sums."""
        xp = array_namespace(stack)
        U, s, W = xp.linalg.svd(stack, full_matrices=False)
        rank = int(s.shape[1])
        rest = stack - (U * s[:, None, :]) @ W
        terms = (xp.abs(U) * s[:, None, :]) @ xp.abs(W)
        lost = _length(rest) + rounding(rank + 2) * _length(terms + xp.abs(stack))
        stretch = xp.sqrt(_gain(xp.matrix_transpose(U)) * _gain(W))
        if self.inside == "spectral":
            bound = stretch * s[:, 0] + lost
        else:
            bound = stretch * xp.sum(s, axis=1) + math.sqrt(rank) * lost
        return bound * (1 + rounding(sum(stack.shape) + rank + 20)) + TINY


def blocks_of(norm: Norm, B: Array) -> Array:
    """Blocks (b, p, q) of an array: those whose norms are summed or compared."""
    return norm._stacked("B", B)


def _factored(B: Floats, over: Over) -> float:
    """Norm of rows that share a matrix."""
    if over == "weighted":
        _, Y, L = largest_nuclear(B)
        return float(np.linalg.norm(Y, axis=1).max() * np.linalg.norm(L))
    t, _ = least_spectral(B)
    live = t > 0
    rows = B[live] / np.sqrt(t[live])[:, None]
    return float(np.linalg.norm(rows, 2) * np.sqrt(t.sum())) if live.any() else 0.0


def _factored_step(G: Floats, over: Over) -> Floats:
    """Steepest step of such a norm, of norm one or zero."""
    if over == "weighted":
        _, V = least_spectral(G)
        size = _factored(V, "weighted")
        return np.asarray(V / size) if size > 0 else V
    a = np.sqrt(largest_nuclear(G)[0])[:, None]
    return np.asarray(a * np.asarray(Norm("spectral").steepest(a * G)))


def _factored_above(B: Floats, errors: Floats, over: Over) -> float:
    """Upper bound of such a norm of every matrix within `errors`, whatever weights are found.

    Of any a with diag(a) W = B the norm is at most |a| ||W||, of any Y L' = V the dual norm at most
    the longest row of Y times |L|. What is left of V, and errors, are charged by norms that are
    larger: the sum of the lengths of rows, and the longest times the root of the rank.
    """
    if over == "factored":
        t, _ = least_spectral(B)
        live = t > 0
        bound = Norm("l2", "sum", "rows").above(np.where(live[:, None], 0.0, B), errors)
        if live.any():
            a = np.sqrt(t[live])
            W = B[live] / a[:, None]
            spectral = Norm("spectral").above(W, rounding(2) * np.abs(W))
            bound += spectral * Norm().above(a[None, :])
    else:
        _, Y, L = largest_nuclear(B)
        terms = np.abs(Y) @ np.abs(L).T + np.abs(B)
        rest = np.abs(B - Y @ L.T) + rounding(Y.shape[1] + 3) * terms + errors
        longest = Norm("l2", "max", "rows")
        bound = longest.above(Y) * Norm().above(L)
        bound += math.sqrt(min(B.shape)) * longest.above(rest, rounding(3) * rest)
    return bound * (1 + rounding(6)) + TINY


def _gain(W: Array) -> Array:
    """Bounds (b,) of the squared spectral norms of W (b, r, q) with nearly orthonormal rows."""
    xp = array_namespace(W)
    eye = xp.eye(int(W.shape[1]), dtype=W.dtype, device=W.device)
    off = W @ xp.matrix_transpose(W) - eye
    sizes = xp.abs(W) @ xp.matrix_transpose(xp.abs(W)) + eye
    return 1 + _length(off) + rounding(int(W.shape[2]) + 2) * _length(sizes)


def _length(stack: Array) -> Array:
    """Frobenius norms (b,) of matrices (b, p, q)."""
    xp = array_namespace(stack)
    return xp.sqrt(xp.sum(stack * stack, axis=(1, 2)))
