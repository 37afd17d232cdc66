"""Linear network with one score for each of several classes."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import weights
from .protocols import check_device, check_inputs
from .weights import as_tensor


class LinearStudent(torch.nn.Module):
    """One layer without biases: scores `W x` of K classes.

    Parameters
    ----------
    zeta : (K, D) array or Tensor
        Initial weights, which are copied; the dtype is theirs.
    device : torch.device or str

    Attributes
    ----------
    weight : Parameter (K, D)

    Raises
    ------
    ValueError
        If there is no class or no input.

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.LinearStudent(np.eye(2))
    >>> network(torch.tensor([[3.0, 5.0]]).double()).tolist()
    [[3.0, 5.0]]
    """

    degree = 1

    @door(zeta=weights("K D"))
    def __init__(self, zeta: ArrayLike | Tensor, *, device: torch.device | str = "cpu") -> None:
        super().__init__()
        check_device(device)
        self.weight = torch.nn.Parameter(as_tensor(zeta).clone().to(device))

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n, K) of X (n, D); `gates` are not used."""
        check_inputs(X, self.weight, self.weight.shape[1])
        return X @ self.weight.T

    def zeta(self) -> Tensor:
        """Return the weights (K, D)."""
        return self.weight
