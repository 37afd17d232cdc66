"""Two-layer ReLU networks of which the inner layer alone is trained, read off from scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .subject import SAME, SAMPLES, Subject, Weights, misfit

# By how much slopes of units may differ from each other, as quotients of gradients.
_ALIKE = 1e-9


@dataclass(frozen=True, eq=False)
class FixedOuterForm:
    r"""Scores ``sum_h a_h rho(<w_h, x>)`` of one trained matrix, the weights a fixed.

    Attributes
    ----------
    name : str
        Parameter that holds W (H, D).
    outer : (H,) tensor
        The fixed weights; 0 of units that no score sees.
    slope : float
        Of the activation left of its kink, in [0, 1).
    """

    name: str
    outer: Tensor
    slope: float

    def scores(self, X: Tensor, w: Weights) -> Tensor:
        """Return the scores (n,) of inputs (n, D) at weights."""
        z = X @ w[self.name].T
        return torch.where(z >= 0, z, self.slope * z) @ self.outer


def find_fixed_outer(subject: Subject) -> FixedOuterForm | None:
    """Read outer weights and slope off gradients, and check the form at random weights.

    With all rows along one sample the gradient in a row is ``a_h`` times that sample, and with all
    of them opposite to it ``a_h`` times the slope times the sample.

    Returns
    -------
    FixedOuterForm or None
        None for scores of another form.
    """
    X, (name, *others) = subject.inputs, subject.weights
    W = subject.weights[name]
    if others or W.ndim != 2 or W.shape[1] != X.shape[1] or not bool(X.any()):
        return None
    row = int(X.square().sum(dim=1).argmax())
    one, x = subject.on(subject.data.X[row : row + 1], None), X[row]
    along = x.expand_as(W).clone()
    found = [one.jacobian({name: side * along}, (name,))[name][0] @ x / (x @ x)
             for side in (1.0, -1.0)]  # fmt: skip
    open_, closed = found
    live = open_.abs() > _ALIKE * open_.abs().max()
    if not bool(live.any()):
        return None
    slopes = closed[live] / open_[live]
    slope = float(slopes.mean())
    if float((slopes - slope).abs().max()) > _ALIKE or not -_ALIKE <= slope < 1:
        return None
    form = FixedOuterForm(name, torch.where(live, open_, 0.0), max(slope, 0.0))
    few = subject.few(SAMPLES)
    fits = (misfit(form.scores(few.inputs, w), few.scores(w)) <= SAME for w in few.points())
    return form if all(fits) else None
