"""One layer of softmax attention with a fixed value head, as a function of its logits."""

from __future__ import annotations

from typing import Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import count, or_none, weights
from .protocols import check_gates, check_tensor
from .weights import Start, Starting, as_tensor, copy_weights


class Attention(torch.nn.Module):
    r"""Logits ``x_t' W z`` of attention to T tokens, W one matrix or ``W = K Q'``.

    The value head is fixed, and what it makes of each token is data: the loss "attention" takes a
    score a token, and this network has the weights that are trained. Queries z are its gates.

    Parameters
    ----------
    n_inputs : int
        d, of a token.
    n_queries : int, optional
        q, of a query; by default d.
    width : int, optional
        m of keys K (d, m) and queries Q (q, m); None trains W (d, q) as one matrix.
    **start : Starting
        `init`: "gaussian" (default), entries of standard deviation 1; `init_scale`, `random_state`,
        `dtype`, `device`.

    Attributes
    ----------
    W : Parameter (d, q)
        Without a width.
    K, Q : Parameter (d, m), (q, m)
        With one.

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    D. A. Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak, "Transformers as support vector machines",
    arXiv 2308.16898; its limit is that of `limits.solve_token_svm`.

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.Attention.from_weights([[1.0], [0.0]])
    >>> X, z = torch.eye(2).double()[None], network.prepare([[1.0]])
    >>> network(X, z).tolist(), torch.softmax(network(X, z), -1).round(decimals=3).tolist()
    ([[1.0, 0.0]], [[0.731, 0.269]])
    """

    W: torch.nn.Parameter
    K: torch.nn.Parameter
    Q: torch.nn.Parameter

    @door(n_queries=or_none(count(1)), width=or_none(count(1)))
    def __init__(
        self,
        n_inputs: int,
        n_queries: int | None = None,
        *,
        width: int | None = None,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_queries": n_queries or n_inputs}
        self.n_inputs, self.n_queries, self.width = *sizes.values(), width
        shapes = [(self.n_inputs, self.n_queries)]
        if width is not None:
            sizes["width"] = width
            shapes = [(self.n_inputs, width), (self.n_queries, width)]
        begin = Start.checked(sizes, ("gaussian",), *shapes, **start)
        drawn = begin.parameters(lambda rng: [
            torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes
        ])  # fmt: skip
        for name, weight in zip(("W",) if width is None else ("K", "Q"), drawn, strict=True):
            setattr(self, name, weight)

    @classmethod
    @door(layers=weights())
    def from_weights(cls, *layers: ArrayLike | Tensor, device: torch.device | str = "cpu") -> Self:
        """Build a network from W (d, q), or from K (d, m) and Q (q, m), in the first one's dtype.

        Raises
        ------
        ValueError
            If they are not one or two matrices that fit.
        """
        given = [as_tensor(layer) for layer in layers]
        shapes = [tuple(layer.shape) for layer in given]
        pair = len(given) == 2
        fit = len(given) in (1, 2) and all(len(one) == 2 and 0 not in one for one in shapes)
        if not fit or (pair and shapes[0][1] != shapes[1][1]):
            raise ValueError(f"`layers` must be W (d, q), or K (d, m) and Q (q, m), got {shapes}")
        sizes = (shapes[0][0], shapes[1][0]) if pair else shapes[0]
        width = shapes[0][1] if pair else None
        network = cls(*sizes, width=width, dtype=given[0].dtype, device=device)
        copy_weights(network.parameters(), [layer.to(given[0].dtype) for layer in given])
        return network

    @property
    def degree(self) -> int:
        """1 of W, 2 of K and Q."""
        return 1 if self.width is None else 2

    def zeta(self) -> Tensor:
        """Return W (d, q)."""
        return self.W if self.width is None else self.K @ self.Q.T

    @door()
    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Return queries (n, q) as `forward` takes them; raises ValueError for other shapes."""
        queries = as_tensor(gates)
        check_gates("gates", queries, (len(queries), self.n_queries), "one query a sequence")
        return queries.to(next(self.parameters()))

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the logits (n, T) of tokens X (n, T, d), asked with queries `gates` (n, q)."""
        check_tensor("X", X)
        if X.ndim != 3 or X.shape[2] != self.n_inputs:
            raise ValueError(f"`X` must have shape (n, T, {self.n_inputs}), got {tuple(X.shape)}")
        check_gates("gates", gates, (len(X), self.n_queries), "one query a sequence")
        asked = gates @ self.W.T if self.width is None else (gates @ self.Q) @ self.K.T
        return (X @ asked[:, :, None])[:, :, 0]
