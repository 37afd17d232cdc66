"""Shallow gated linear network: one linear predictor for every global context."""

from typing import Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import weights
from ..protocols import check_gates, check_inputs, check_integers, check_tensor
from ..weights import Start, Starting, as_tensor, draw_matrices, layer_imbalance


class ShallowGLN(torch.nn.Module):
    r"""One layer of free predictors: ``f(x) = <weight[g(x)], x>``, g(x) the global context of x.

    A global context is the tuple of the contexts of all units. Only those that occur in the
    contexts given here have a predictor; inputs in any other one get the score 0, which is on
    neither side. The network is linear in its weights (degree 1).

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    contexts : (n, H) integers
        Contexts of the training data; their distinct rows, in lexicographic order, are the
        global contexts with a predictor.
    n_outputs : int
        K, the scores of a sample: by default 1. From 2 on they are (n, K).
    **start : Starting
        `init`: "orthogonal" (default) or "kaiming"; `init_scale`, `random_state`, `dtype`,
        `device`.

    Attributes
    ----------
    weight : Parameter (G, D), or (G, K, D) with K outputs
    global_contexts : buffer (G, H) of int64
        Context of every row of `weight`; saved with the weights.

    Raises
    ------
    TypeError
        If the contexts are not integers.
    ValueError
        If a shape is wrong, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    Its limit is the least ``sum_g ||weight[g]||^2`` under the margin constraints, which
    separates into one hard-margin SVM per global context (S. Lippl, L. F. Abbott, S. Chung, "The
    implicit bias of gradient descent on generalized gated linear networks", theorem 3.1).

    Examples
    --------
    >>> import torch
    >>> network = ib.ShallowGLN(3, contexts=[[0, 1], [1, 1], [0, 1]])
    >>> unseen = network(torch.ones(1, 3).double(), torch.tensor([[0, 0]]))
    >>> network.weight.shape, bool(unseen == 0)
    (torch.Size([2, 3]), True)
    """

    global_contexts: Tensor

    @door(contexts="n H")
    def __init__(
        self,
        n_inputs: int,
        contexts: ArrayLike | Tensor,
        *,
        n_outputs: int = 1,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_outputs": n_outputs}
        table = torch.unique(_integers(contexts), dim=0)
        shape = (len(table), *_outputs(n_outputs), n_inputs)
        begin = Start.checked(sizes, ("orthogonal", "kaiming"), shape, **start)
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        self.register_buffer("global_contexts", table.to(begin.device))
        (self.weight,) = begin.parameters(lambda rng: _draw(begin.init, shape, rng))

    @classmethod
    @door(
        zeta=weights("G D | G K>=2 D"),
        global_contexts="G H: one predictor per row",
    )
    def from_zeta(
        cls,
        zeta: ArrayLike | Tensor,
        global_contexts: ArrayLike | Tensor,
        *,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build the network with predictors zeta (G, D), or (G, K, D), one a global context.

        Raises
        ------
        ValueError
            If `global_contexts` has equal rows, or another number of rows than zeta.
        """
        target, rows = as_tensor(zeta), _integers(global_contexts, "global_contexts")
        n_outputs = target.shape[1] if target.ndim == 3 else 1
        network = cls(
            target.shape[-1], rows, n_outputs=n_outputs, dtype=target.dtype, device=device
        )
        if network.weight.shape != target.shape:
            raise ValueError("`global_contexts` must have distinct rows: one predictor each")
        with torch.no_grad():
            network.weight[network.prepare(rows)] = target.to(device)
        return network

    @property
    def degree(self) -> int:
        """Degree of homogeneity in the weights: 1."""
        return 1

    @door(contexts="n>=0 | n>=0 H: one context a sample and unit")
    def prepare(self, contexts: ArrayLike | Tensor) -> Tensor:
        """Replace contexts (n, H) by the rows (n,) of `weight` that they select.

        G, one past the last row, stands for a context without predictor. Prepared contexts are
        returned as they are.

        Raises
        ------
        TypeError
            If the contexts are not integers.
        ValueError
            If their shape or range is wrong.
        """
        table = self.global_contexts
        c = as_tensor(contexts).to(table.device)
        if c.ndim == 1 and c.dtype == torch.int64:
            if c.numel() and not (0 <= int(c.min()) and int(c.max()) <= len(table)):
                raise ValueError(
                    f"prepared contexts must lie in 0..{len(table)}, got values from "
                    f"{int(c.min())} to {int(c.max())}: prepare them with this network"
                )
            return c
        c = _integers(c)
        check_gates("contexts", c, (len(c), table.shape[1]), "one context a sample and unit")
        distinct, which = torch.unique(torch.cat([table, c]), dim=0, return_inverse=True)
        row = torch.full((len(distinct),), len(table), device=table.device)
        row[which[: len(table)]] = torch.arange(len(table), device=table.device)
        return row[which[len(table) :]]

    def forward(self, X: Tensor, contexts: Tensor) -> Tensor:
        """Return the scores (n,), or (n, K), of X (n, D) in contexts (n, H), or prepared ones."""
        check_inputs(X, self.weight, self.n_inputs)
        check_tensor("contexts", contexts)
        rows = contexts if contexts.ndim == 1 else self.prepare(contexts)
        check_gates("contexts", contexts, (len(X), *contexts.shape[1:]), "one row a row of X")
        last = len(self.global_contexts) - 1
        chosen = rows.clamp(max=last)
        if self.n_outputs > 1:
            # Weights first, as a gradient of the rows chosen would be one of all samples.
            every = (X @ self.weight.flatten(0, 1).T).view(len(X), -1, self.n_outputs)
            own = chosen[:, None, None].expand(-1, 1, self.n_outputs)
            return every.gather(1, own)[:, 0] * (rows <= last)[:, None]
        scores = torch.einsum("nd,nd->n", X, self.weight[chosen])
        return scores * (rows <= last)

    def zeta(self) -> Tensor:
        """Return the predictors (G, D), or (G, K, D): the weights themselves."""
        return self.weight

    def unit_norms(self) -> Tensor:
        """Return the norm of all predictors together (1,): the program has one group."""
        norm: Tensor = torch.linalg.vector_norm(self.weight)
        return norm.view(1)

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, contexts: Tensor) -> Tensor:
        """Return ``||v||_F`` (1,), ``v[g] = sum of coefficients_n x_n over g(n) = g``.

        Of a network of one output.
        """
        v = X.new_zeros(len(self.weight) + 1, self.n_inputs)
        v = v.index_add(0, self.prepare(contexts), coefficients[:, None] * X)
        norm: Tensor = torch.linalg.vector_norm(v[:-1])
        return norm.view(1)

    def imbalance(self) -> Tensor:
        """Return an empty tensor (0,): the network has no hidden units."""
        return layer_imbalance([self.weight.flatten(0, -2)])

    @door()
    def gradient_factors(self, X: Tensor, contexts: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        rows = torch.nn.functional.one_hot(self.prepare(contexts), len(self.weight) + 1)
        return [(rows[:, :-1].to(X), X)]


class ColumnGLN(ShallowGLN):
    """Shallow GLN whose global contexts are given as columns, a one in that of the sample.

    Contexts (n, G) are rows of the identity, or zeros for an input in none of them, and the
    predictors are in the order of the columns. It is otherwise a `ShallowGLN`.

    Examples
    --------
    >>> zeta = np.arange(12.0).reshape(2, 3, 2)
    >>> bool((ib.networks.ColumnGLN.from_zeta(zeta, np.eye(2, dtype=int)).zeta() == zeta).all())
    True
    """

    def zeta(self) -> Tensor:
        """Return the predictors (G, D), or (G, K, D), in the order of the columns."""
        return self.weight.flip(0)  # sorted rows of the identity begin with the last column


def _outputs(n_outputs: int) -> tuple[int, ...]:
    """Return the axes of the outputs: none for one."""
    return (n_outputs,) if n_outputs > 1 else ()


def _draw(init: str, shape: tuple[int, ...], rng: torch.Generator) -> list[Tensor]:
    """Return the predictors, those of every output filled by themselves."""
    n_contexts, *several, n_inputs = shape
    drawn = draw_matrices(init, [(n_contexts, n_inputs)] * (several[0] if several else 1), rng)
    return [torch.stack(drawn, dim=1)] if several else drawn


def _integers(contexts: ArrayLike | Tensor, name: str = "contexts") -> Tensor:
    c = as_tensor(contexts)
    check_integers(c, name)
    return c.to(torch.int64)
