"""A linear decoder of next tokens whose finite part and direction can be trained apart.

Cross-entropy of the tokens that may follow a context is that in support, plus log(1 + e^-m) with

    m = log sum_(z in support) e^(u_z) - log sum_(v out of support) e^(u_v),

the chance of all tokens out of support being 1 / (1 + e^m). The first depends on the part F of the
weights in the span of `(e_z - e_z') h'` alone, z and z' in support, and has a least value there.
The second falls to 0 as the others grow: a logistic loss of one margin a context, so that trainers
that work with log(loss) go on where softmax has rounded to 1.
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import floats
from .protocols import check_device, check_gates, check_inputs
from .weights import as_tensor

# Singular values of the rows of F below this share of the largest are those of dependent ones.
DEPENDENT = 1e-10


class TokenDecoder(torch.nn.Module):
    """A linear decoder W of contexts to tokens: its part in F, and what is orthogonal to that.

    Parameters
    ----------
    contexts : (m, D) array
        Embeddings of the contexts.
    in_support : (m, V) array
        1 where a token may follow a context, 0 elsewhere.
    part : {"whole", "inside", "outside"}
        What is trained: all weights, those in F, or those out of it.
    dtype : torch.dtype
    device : str

    Attributes
    ----------
    inside : Parameter (r,)
        Coordinates of the part in F, of dimension r; 0 at first.
    outside : Parameter (V, D)
        Weights whose part in F does not count; 0 at first.
    basis : Tensor (r, V D)
        Orthonormal rows that span F.

    Raises
    ------
    ValueError
        If no token may follow a context, or there is no such part.

    Examples
    --------
    >>> import torch
    >>> decoder = ib.networks.TokenDecoder(np.eye(2), [[1, 1, 0], [0, 0, 1]])
    >>> decoder.inside.shape, decoder.weight.shape
    (torch.Size([1]), torch.Size([3, 2]))
    >>> X, p = torch.eye(2).double(), torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]).double()
    >>> [decoder.of(part)(X, p).exp().detach().numpy().round(9).tolist()
    ...  for part in ("whole", "inside", "outside")]
    [[3.0, 3.0], [2.0, 1.0], [2.0, 0.5]]
    """

    basis: Tensor

    @door(contexts=floats("m D"), in_support=floats("m V>=2"))
    def __init__(
        self,
        contexts: ArrayLike,
        in_support: ArrayLike,
        *,
        part: Literal["whole", "inside", "outside"] = "whole",
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        check_device(device)
        h, inside = as_tensor(contexts).double(), as_tensor(in_support) > 0
        if not bool(inside.any(dim=1).all()):
            raise ValueError("`in_support` must have a token in every row: leave other rows out")
        eye = torch.eye(inside.shape[1], dtype=torch.float64)
        own = eye[inside.int().argmax(dim=1)]
        pairs = (own[:, None] - eye)[..., None] * h[:, None, None, :]  # (m, V, V, D)
        rows = pairs[inside & (own == 0)].flatten(1)
        basis = torch.linalg.svd(rows, full_matrices=False)
        kept = basis.S > DEPENDENT * basis.S[:1]
        self.register_buffer("basis", basis.Vh[kept].to(device, dtype))
        zeros = torch.zeros(inside.shape[1], h.shape[1], dtype=dtype, device=device)
        self.inside = torch.nn.Parameter(zeros.new_zeros(int(kept.sum())))
        self.outside = torch.nn.Parameter(zeros)
        self.of(part)

    @door()
    def of(self, part: Literal["whole", "inside", "outside"]) -> Self:
        """Train this part from now on, and return the same decoder."""
        self.part = part
        self.inside.requires_grad_(part != "outside")
        self.outside.requires_grad_(part != "inside")
        return self

    @property
    def weight(self) -> Tensor:
        """Weights W (V, D), of both parts."""
        whole = self.outside.flatten()
        free = self.basis.T @ (self.inside - self.basis @ whole)
        return (whole + free).view_as(self.outside)

    def forward(self, X: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the scores (n, V) of contexts X (n, D); with chances what its part is trained on.

        Under `gates` (n, V), the chances of the tokens times any weights, these are cross-entropies
        (n,) of all tokens or of those in support, for the loss "excess"; of the part out of F the
        margins m (n,), for losses of margins.
        """
        check_inputs(X, self.outside, self.outside.shape[1])
        u = X @ self.weight.T
        if gates is None:
            return u
        check_gates("gates", gates, tuple(u.shape), "the chances of the tokens")
        out = gates == 0
        within = torch.logsumexp(u if self.part == "whole" else u.masked_fill(out, -torch.inf), 1)
        if self.part == "outside":
            return within - torch.logsumexp(u.masked_fill(~out, -torch.inf), 1)
        return (gates * (within[:, None] - u)).sum(1)
