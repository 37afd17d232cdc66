"""The finite limit of scores that are linear in weights which decay."""

from __future__ import annotations

import torch

from ..._support.words import MarginLoss
from ...limits.finite.fit import solve_fit
from ...networks.recognition.structure import Form
from ..reports.finding import Finding
from ..reports.verdict import Evidence
from .method import Method
from .optimum import score_gradients
from .state import MeasuredNetwork
from .theory import Theory

RIDGE = Theory(
    "limit",
    "gradient descent with weight decay on scores that are linear in the weights goes to the one "
    "minimum of a strictly convex function",
    "min mean loss + lam / 2 ||w||^2",
    "strict convexity",
    (),
)


def finite_finding(found: MeasuredNetwork, method: Method, loss: MarginLoss) -> Finding | None:
    """Return the finite limit of weights that decay, and the network beside it.

    Parameters
    ----------
    found : MeasuredNetwork
    method : Method
    loss : {"logistic", "exponential"}

    Returns
    -------
    Finding or None
        None without decay in the gradient, of other forms and losses, and of several outputs.
    """
    structure, subject = found.structure, found.structure.subject
    decays = method.joint and method.decay > 0 and not method.decoupled
    linear = structure.form is Form.FEATURES and subject.n_outputs == 1 and loss == "logistic"
    if not (decays and linear):
        return None
    phi, y = score_gradients(subject).numpy(), subject.data.y.numpy()
    limit = solve_fit(phi, y, penalty=method.decay, norm="ridge", loss=loss)
    w = torch.cat([p.flatten() for p in subject.weights.values()]).numpy()
    evidence = Evidence(
        status=limit.status,
        near={"value_gap": limit.gap_of(w, phi, y)},
        reason=f"the gradient and the decay {method.decay:g} of {method.name} are not in balance "
        "yet: steps have not converged, or went by mini-batches, or by another mean of the loss",
        proof=f"{limit.advice} (gap {limit.gap:.1e}, tolerance {limit.tol:.0e})",
    )
    return Finding("finite limit", {"limit": limit}, "finite limit", evidence=(evidence,))
