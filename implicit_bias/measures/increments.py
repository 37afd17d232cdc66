"""Stationarity from training itself: two checkpoints, or the gradients that were met on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .._support.doors import door
from .._support.kinds import anything
from .._support.solve import Norm, NormName
from .._support.words import WeightNorm
from ..networks.adapted import plain, uncompiled
from ..networks.recognition.subject import SAME, Subject, misfit
from .fit.gradients import flat
from .kkt_ratio import LayerNorms

Weights = torch.nn.Module | Mapping[str, Tensor]

# What batch norm keeps in a state dict beside weights.
_KEPT = ("running_mean", "running_var", "num_batches_tracked")


@door()
def increment_residual(
    earlier: torch.nn.Module | Mapping[str, Tensor],
    later: torch.nn.Module | Mapping[str, Tensor],
    *,
    head: Sequence[str] = (),
) -> float:
    r"""Return a KKT residual from two checkpoints of one training, without data or a solver.

    .. math:: \sin \angle(\theta_2 - \theta_1, \theta_2)

    Gradient descent moves by a sum of gradients of margins with positive coefficients, those that
    it met between the checkpoints. If the increment points along the weights, they are such a sum
    themselves, as they are at a KKT point.

    Parameters
    ----------
    earlier, later : Module or mapping of str to Tensor
        The network, or its `state_dict`, at the two times. Compared are the weights that are
        trained, as far as a module is given that says so; else all floating-point tensors of the
        state dicts but the statistics of batch norm.
    head : sequence of str
        Names of the last layer's weights of a network of K classes, their first axis the classes:
        what all classes share is taken out, as `centred_head` does.

    Returns
    -------
    float
        In [0, 1]; 1 if the increment points away from the weights.

    Raises
    ------
    ValueError
        If the two do not hold the same tensors, `head` names none of them, weights are not finite,
        or nothing has moved.

    Notes
    -----
    It is the residual over gradients at weights between the two, so it means something where these
    have turned little: take checkpoints between which log(1/loss) has grown by a factor of 2 to 10.
    It holds for gradient descent, stochastic or not, with any positive steps; with momentum but for
    steps that are under way; not for Adam, sign descent or Muon, whose steps are no sums of
    gradients (see `GradientSum`), nor with weight decay.

    Examples
    --------
    >>> import torch
    >>> one = {"weight": torch.tensor([[3.0, 0.0]])}
    >>> round(ib.dynamics.increment_residual(one, {"weight": torch.tensor([[6.0, 4.0]])}), 4)
    0.3328
    """
    first, second = _trained(earlier, later)
    for name, w in (*first.items(), *second.items()):
        if not bool(torch.isfinite(w).all()):
            raise ValueError(
                f"the weights {name!r} are NaN or infinite: training has diverged, take earlier "
                "checkpoints"
            )
    if head:
        first, second = centred_head(first, head), centred_head(second, head)
    at = flat(list(second.values()))
    moved = at - flat(list(first.values()))
    size, length = float(at.norm()), float(moved.norm())
    if not length > 0 or not size > 0:
        raise ValueError(
            "`earlier` and `later` have the same weights, or these are 0: give two checkpoints "
            "between which training went on"
        )
    cosine = float(moved @ at) / length / size
    # Of small angles the sine is not to be had from the cosine.
    off = moved / length - cosine * at / size
    return min(float(off.norm()), 1.0) if cosine > 0 else 1.0


@door()
def centred_head(weights: Mapping[str, Tensor], head: Sequence[str]) -> dict[str, Tensor]:
    """Return weights without what all classes share in the last layer.

    Softmax and relative margins do not depend on it, and gradient flow conserves it, so directions
    and shares are compared without it. The steps of sign descent and Adam do not conserve it.

    Parameters
    ----------
    weights : mapping of str to Tensor
    head : sequence of str
        Names of the weights and the bias of the last layer, their first axis the K classes.

    Returns
    -------
    dict of str to Tensor
        New tensors for those of the head, the others as they are.

    Raises
    ------
    ValueError
        If a name is not among the weights.

    Examples
    --------
    >>> import torch
    >>> ib.dynamics.centred_head({"bias": torch.tensor([1.0, 2.0, 6.0])}, ["bias"])
    {'bias': tensor([-2., -1.,  3.])}
    """
    if isinstance(head, str):
        head = (head,)
    for name in head:
        if name not in weights:
            raise ValueError(
                f"`head` names {name!r}, which is not among the weights {', '.join(weights)}"
            )
    return {name: w - w.mean(0, keepdim=True) if name in head else w for name, w in weights.items()}


def head_of(subject: Subject) -> tuple[str, ...]:
    """Return the tensors whose rows, one a class, may all be shifted alike; measured.

    Empty for a network of one score.
    """
    w = subject.weights
    scores = subject.scores(w)
    if scores.ndim == 1:
        return ()
    found = []
    rng = torch.Generator().manual_seed(0)
    for name, p in w.items():
        if p.shape[:1] != scores.shape[1:]:
            continue
        shift = torch.randn((1, *p.shape[1:]), generator=rng, dtype=p.dtype)
        moved = subject.scores({**w, name: p + (1 + p.abs().max()) * shift})
        relative = [one - one[:, :1] for one in (scores, moved)]
        if misfit(*relative) <= SAME and not torch.equal(scores, moved):
            found.append(name)
    return tuple(found)


class GradientSum:
    r"""The sum of the gradients that a training loop met, normalised, beside its weights.

    .. math:: \frac{\langle G, \theta \rangle}{N^*(G) N(\theta)}, \qquad
              G = -\sum_t \nabla \mathcal{L}_t / \|\nabla \mathcal{L}_t\|

    G is a sum of gradients of margins with positive coefficients, for any optimiser. The ratio is 1
    at a KKT point of the margin problem in the norm N, if gradients turn little while they are
    added, and at most 1.

    Parameters
    ----------
    network : Module
        The one that is trained.
    norm : mapping of str to Norm or str, optional
        Norms of the layers that the optimiser's steps induce, by the names of the trained weights
        (`kkt_level`): "linf" for sign descent and Adam, "spectral" for Muon. By default the l2 norm
        of all weights, that of gradient descent.

    Raises
    ------
    TypeError
        If it is no module, or `norm` no mapping of norms.
    ValueError
        If nothing is trained, or `norm` names other weights.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Linear(2, 1, bias=False)
    >>> met = ib.dynamics.GradientSum(network)
    >>> optimiser = torch.optim.SGD(network.parameters(), lr=1.0)
    >>> for _ in range(200):
    ...     optimiser.zero_grad()
    ...     torch.exp(-network(torch.tensor([[3.0, 4.0]]))).sum().backward()
    ...     met.add()
    ...     optimiser.step()
    >>> met.alignment() > 0.98
    True
    """

    @door(norm=anything)
    def __init__(
        self,
        network: torch.nn.Module,
        *,
        norm: Mapping[str, Norm] | Mapping[str, NormName] | Mapping[str, WeightNorm] | None = None,
    ) -> None:
        self._trained = {
            name: p for name, p in uncompiled(network).named_parameters() if p.requires_grad
        }
        if not self._trained:
            raise ValueError("`network` has no parameter with requires_grad=True: nothing to train")
        self._norm = None if norm is None else LayerNorms.named(self._trained, norm)
        self.restart()

    def restart(self) -> None:
        """Forget the gradients so far, for instance once the loss is small."""
        self._sum: Tensor | None = None
        self.n_steps = 0

    def add(self) -> None:
        """Add the gradients that the parameters hold: call it between `backward` and `zero_grad`.

        Gradients of 0, of a loss that has underflowed, add nothing.

        Raises
        ------
        FloatingPointError
            If a gradient is NaN or infinite.
        """
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._trained.values()]
        gradient = flat([part.detach().double() for part in parts])
        largest = float(gradient.abs().max())
        if not math.isfinite(largest):
            raise FloatingPointError(
                "a gradient is NaN or infinite: training has diverged, or its loss overflows"
            )
        if largest > 0:
            # By the largest entry first, since squares of small gradients underflow.
            gradient = gradient / largest
            unit = gradient / gradient.norm()
            self._sum = -unit if self._sum is None else self._sum - unit
            self.n_steps += 1

    def alignment(self) -> float:
        """Return the ratio at the weights as they are; NaN before the first gradient."""
        if self._sum is None:
            return math.nan
        w = flat([p.detach().double() for p in self._trained.values()])
        if self._norm is None:
            sizes = float(self._sum.norm()) * float(w.norm())
        else:
            sizes = self._norm.dual(self._sum) * self._norm.value(w)
        return float(self._sum @ w) / sizes if sizes > 0 else math.nan


def _trained(earlier: Weights, later: Weights) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights of two checkpoints that are compared, in float64."""
    held = [_tensors(one) for one in (earlier, later)]
    said = [set(trained) for trained, _ in held if trained]
    names = list(said[-1]) if said else [
        name for name, w in held[1][1].items()
        if w.is_floating_point() and name.split(".")[-1] not in _KEPT
    ]  # fmt: skip
    for role, (_, tensors) in zip(("earlier", "later"), held, strict=True):
        for name in names:
            if (
                name not in tensors
                or tensors[name].shape != held[1][1].get(name, tensors[name]).shape
            ):
                raise ValueError(
                    f"`{role}` has no tensor {name!r} of the shape that the other has: give two "
                    "checkpoints of one network"
                )
    if not names:
        raise ValueError("`later` holds no floating-point tensors: give weights, a state dict")
    order = [name for name in held[1][1] if name in names]
    first, second = (
        {name: tensors[name].detach().double().cpu() for name in order} for _, tensors in held
    )
    return first, second


def _tensors(given: Any) -> tuple[tuple[str, ...], dict[str, Tensor]]:
    """Return the names that are trained, if a module says so, and all tensors by name."""
    if isinstance(given, torch.nn.Module):
        module = plain(uncompiled(given))
        trained = tuple(name for name, p in module.named_parameters() if p.requires_grad)
        return trained, dict(module.state_dict())
    return (), {name: w for name, w in given.items() if isinstance(w, Tensor)}
