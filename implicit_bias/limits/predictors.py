"""Predictors: a gating and coefficients, scoring new inputs."""

from __future__ import annotations

from dataclasses import dataclass

from .._solve import Array, array_namespace, as_float64

__all__ = ["ContextPredictor"]


@dataclass(frozen=True, eq=False)
class ContextPredictor:
    """Scores of the gated linear network with the coefficients `zeta`.

        f(x) = sum_h <zeta[h, c_h(x)], x>

    Parameters
    ----------
    zeta : (H, C, D) float64 array
        NumPy array or torch tensor; inputs must be of the same kind.
    """

    zeta: Array

    def __call__(self, X: Array, contexts: Array) -> Array:
        """(n,) float64 scores of `X` (n, D) in `contexts` (n, H) integers in 0 .. C-1.

        Raises
        ------
        TypeError
            If `contexts` does not hold integers.
        ValueError
            If `X` is not finite, if shapes disagree or a context is out of range.
        """
        xp = array_namespace(self.zeta)
        n_units, n_contexts, n_inputs = (int(size) for size in self.zeta.shape)
        X = as_float64(X, like=self.zeta)
        contexts = xp.asarray(contexts, device=X.device)
        if not xp.isdtype(contexts.dtype, "integral"):
            raise TypeError(f"`contexts` must hold integers, got dtype {contexts.dtype}")
        # Unsigned bytes are taken for a mask by torch where they index.
        contexts = xp.astype(contexts, xp.int64)
        if not bool(xp.all(xp.isfinite(X))):
            raise ValueError("`X` has NaN or infinite entries: remove them first")
        if X.ndim != 2 or X.shape[1] != n_inputs:
            raise ValueError(
                f"`X` must have shape (n, {n_inputs}), got {tuple(X.shape)}: the predictor was "
                f"made from {n_inputs} inputs, the constant column included"
            )
        if tuple(contexts.shape) != (int(X.shape[0]), n_units):
            raise ValueError(
                f"`contexts` must have shape ({X.shape[0]}, {n_units}), "
                f"got {tuple(contexts.shape)}: one row per row of X, one column per unit"
            )
        if contexts.shape[0] and not (
            0 <= int(contexts.min()) and int(contexts.max()) < n_contexts
        ):
            raise ValueError(f"`contexts` must lie in 0 .. {n_contexts - 1}")
        scores = xp.zeros_like(X[:, 0])
        rows = xp.arange(X.shape[0], device=X.device)
        for h in range(n_units):
            scores = scores + (X @ self.zeta[h].T)[rows, contexts[:, h]]
        return scores
