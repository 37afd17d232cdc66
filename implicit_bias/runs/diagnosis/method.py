"""How a network was trained: the norm in which its optimiser's steps are steepest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import torch

from ..._support.solve import Norm
from ...quantities.assumptions import Assumption
from ...quantities.premises import FULL_BATCHES
from ...training.catalogue import TRAINERS

Batches = Literal["full", "mini"]
"""Whether every step takes all samples."""

# Optimisers of torch, and others of these names, by the norm in which steps are steepest once
# constants and averages are left out; those of matrices take single entries of other tensors.
_STEEPEST: Mapping[str, str] = MappingProxyType(
    {
        "SGD": "l2",
        **dict.fromkeys(("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"), "linf"),
        **dict.fromkeys(("Lion", "Signum", "SignSGD"), "linf"),
        "Muon": "spectral",
    }
)
# Those whose decay stands beside the step and not in the gradient, where no group says so.
_DECOUPLED = ("AdamW", "Lion", "Muon")
# Names beside those of the trainers.
_ALIASES = {"gd": "constant", "sgd": "constant"}
# Share of the entries that has to be on one side of a constant for it to be without effect, or for
# the method to be gradient descent.
_MOST = 0.99


@dataclass(frozen=True)
class Method:
    """What an optimiser maximises margins by, as far as it is known.

    Attributes
    ----------
    name : str
        As its user knows it.
    norms : mapping of name to norm, or None
        The norm of every trained tensor, of which the largest counts; None where steps are
        steepest in no norm that is known.
    joint : bool
        Whether it is the l2 norm of all tensors together, as of gradient descent.
    remark : str
        What its constants do, or why no norm is known.
    decay, decoupled : float, bool
        Weight decay, in the gradient or beside the step; the largest of all groups.
    still : tuple of str
        Tensors that it was not given: they stay as they are.
    given : bool
        False where nothing was said, and gradient descent is assumed.
    batches : {"full", "mini"} or None
        None where nothing was said.
    rates : mapping of name to float
        Learning rates of the tensors of gradient descent, where groups have rates of their own:
        it is descent at one rate on the weights over the roots of theirs. Empty elsewhere.
    """

    name: str = "gradient descent"
    norms: Mapping[str, str] | None = field(default_factory=dict)
    joint: bool = True
    remark: str = ""
    decay: float = 0.0
    decoupled: bool = False
    still: tuple[str, ...] = ()
    given: bool = True
    batches: Batches | None = None
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def scales(self) -> dict[str, float]:
        """Roots of the rates, over the largest."""
        return {name: (one / max(self.rates.values())) ** 0.5 for name, one in self.rates.items()}

    @property
    def is_descent(self) -> bool:
        """True of gradient descent without decay, in the l2 norm of all weights."""
        return self.joint and self.decay == 0

    @property
    def of_batches(self) -> Assumption:
        """What is known of its batches."""
        holds = None if self.batches is None else self.batches == "full"
        how = "not known here" if holds is None else "as was said"
        return FULL_BATCHES.found(how=how, holds=holds)

    @property
    def in_words(self) -> str:
        """How it trained, in a few words."""
        sizes = {None: "", "full": ", full batches", "mini": ", mini-batches"}[self.batches]
        if self.rates:
            several = ", ".join(f"{one:g}" for one in sorted(set(self.rates.values())))
            sizes += f", weights over the roots of their rates {several}"
        return f"trained by {self.name}{sizes}" if self.given else f"gradient descent{sizes}"

    @property
    def norm_in_words(self) -> str:
        """The norm of all tensors together, in a few words."""
        if self.norms is None:
            return "no known norm"
        if self.joint:
            return "Euclidean norm" + " over the roots of rates" * bool(self.rates)
        kinds = sorted(set(self.norms.values()))
        return f"largest {' or '.join(kinds)} norm of a tensor"


def read_method(optimizer: Any, network: torch.nn.Module, batches: Batches | None = None) -> Method:
    """Read how a network was trained off its optimiser, or off a name.

    Parameters
    ----------
    optimizer : None, str, Optimizer or sequence of Optimizer
        None: gradient descent. A name of `TrainingSettings.trainer`, "gd" or "sgd". An optimiser of
        torch, of this package, or another of a known name, with the network's own parameters;
        several where tensors are shared out among them.
    network : Module
        The user's own, not a copy.
    batches : {"full", "mini"}, optional

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If the name is unknown, or an optimiser has none of the network's parameters.

    Examples
    --------
    >>> import torch
    >>> from implicit_bias.runs.diagnosis import read_method
    >>> network = torch.nn.Linear(3, 2)
    >>> read_method(torch.optim.SGD(network.parameters(), lr=0.1), network).joint
    True
    >>> read_method("sign", network).norms["weight"]
    'linf'
    """
    names = {
        id(p): name for name, p in network.named_parameters() if p.requires_grad
    }  # tied tensors once
    if optimizer is None:
        norms = dict.fromkeys(names.values(), "l2")
        return Method(norms=norms, given=False, batches=batches)
    if isinstance(optimizer, str):
        return replace(_named(optimizer, tuple(names.values())), batches=batches)
    several = tuple(optimizer) if isinstance(optimizer, Sequence) else (optimizer,)
    if not several or not all(isinstance(one, torch.optim.Optimizer) for one in several):
        raise TypeError(
            "`optimizer` must be the name of a trainer, a torch.optim.Optimizer or a list of them, "
            f"got {optimizer!r}"
        )
    groups = [group for one in several for group in _groups(one, names)]
    known = {name for group in groups for name in group.norms}
    if not known:
        raise ValueError(
            "`optimizer` holds none of the trained weights of `network`: give the one that trained "
            "it, with `network.parameters()` of this very module, or its name"
        )
    found = {name: norm for group in groups for name, norm in group.norms.items()}
    called = " and ".join(dict.fromkeys(group.name for group in groups))
    unknown = next((group.remark for group in groups if None in group.norms.values()), None)
    rates = sorted({group.rate for group in groups if group.rate is not None})
    plain = all(group.joint and group.decay == 0 and group.rate for group in groups)
    weighed = {name: float(g.rate or 0) for g in groups for name in g.norms if plain}
    if len(rates) < 2:
        weighed = {}
    if unknown is None and len(rates) > 1 and not plain:
        unknown = (
            f"its groups have rates of their own ({', '.join(f'{rate:g}' for rate in rates)}), by "
            "which its norm weighs tensors"
        )
    return Method(
        name=called,
        norms=None if unknown is not None else {name: str(norm) for name, norm in found.items()},
        joint=unknown is None and all(group.joint for group in groups),
        remark=unknown or "; ".join(dict.fromkeys(filter(None, (g.remark for g in groups)))),
        decay=max(group.decay for group in groups),
        decoupled=any(group.decoupled and group.decay > 0 for group in groups),
        still=tuple(name for name in names.values() if name not in known),
        batches=batches,
        rates=weighed,
    )


@dataclass(frozen=True)
class _Group:
    """One group of one optimiser: the norm of its tensors by name, None where none is known."""

    name: str
    norms: Mapping[str, str | None]
    joint: bool
    remark: str
    decay: float
    decoupled: bool
    rate: float | None


def _named(name: str, weights: tuple[str, ...]) -> Method:
    trainer = _ALIASES.get(name.lower(), name)
    if trainer not in TRAINERS:
        raise ValueError(
            f"`optimizer` must be one of {sorted([*_ALIASES, *TRAINERS])}, or an optimiser of "
            f"torch, got {name!r}"
        )
    norms = dict(zip(weights, TRAINERS[trainer].norms_of(len(weights)), strict=True))
    return Method(name, norms, joint=set(norms.values()) == {"l2"})


def _groups(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> Iterator[_Group]:
    kind = type(optimizer).__name__
    trainer = getattr(optimizer, "trainer", None)
    for group in optimizer.param_groups:
        own = {names[id(p)]: p for p in group["params"] if id(p) in names}
        if not own:
            continue
        norms, joint, remark = _norms_of(optimizer, kind, group, own)
        settings = getattr(optimizer, "_settings", None) if trainer is not None else None
        decay = group.get("weight_decay", 0.0) if settings is None else settings.weight_decay
        decoupled = (
            group.get("decoupled_weight_decay", kind in _DECOUPLED)
            if settings is None
            else settings.decay == "decoupled"
        )
        # Steps of SGD with momentum add up to so many of the gradient.
        lasting = 1.0
        if "dampening" in group:
            lasting = (1 - group["dampening"]) / (1 - group["momentum"])
        rate = None if "lr" not in group else float(group["lr"]) * lasting
        yield _Group(kind, norms, joint, remark, float(decay), bool(decoupled), rate)


def _norms_of(
    optimizer: torch.optim.Optimizer,
    kind: str,
    group: Mapping[str, Any],
    own: Mapping[str, torch.Tensor],
) -> tuple[Mapping[str, str | None], bool, str]:
    """Return the norms of a group's tensors, whether they are one l2 norm, and what to remark."""
    trainer = str(getattr(optimizer, "trainer", ""))
    if trainer in TRAINERS:
        if "norm" in group:
            return dict.fromkeys(own, Norm.of(group["norm"]).name), False, ""
        norms = TRAINERS[trainer].norms_of(len(own))
        return dict(zip(own, norms, strict=True)), set(norms) == {"l2"}, ""
    norm = next((_STEEPEST[c.__name__] for c in type(optimizer).__mro__ if c.__name__ in _STEEPEST),
                None)  # fmt: skip
    if norm is None:
        remark = f"{kind}: its steps are steepest in no norm that is known"
        return dict.fromkeys(own), False, remark
    if norm == "spectral":
        flat = {name: "spectral" if p.ndim >= 2 else "linf" for name, p in own.items()}
        return flat, False, "Muon's five Newton-Schulz steps are near polar factors, not equal"
    if norm == "l2":
        return dict.fromkeys(own, "l2"), True, ""
    return _of_entries(optimizer, kind, group, own)


def _of_entries(
    optimizer: torch.optim.Optimizer,
    kind: str,
    group: Mapping[str, Any],
    own: Mapping[str, torch.Tensor],
) -> tuple[Mapping[str, str | None], bool, str]:
    """Return the norm of a method that divides by averages of squares, beside its constant."""
    eps = float(group.get("eps", 0.0))
    sizes = _root_mean_squares(optimizer, group, own)
    if eps == 0.0:
        return dict.fromkeys(own, "linf"), False, ""
    if not len(sizes):
        return dict.fromkeys(own, "linf"), False, f"if gradients are above its eps of {eps:g}"
    above = float((sizes > eps).double().mean())
    if above >= _MOST:
        return dict.fromkeys(own, "linf"), False, f"gradients are above its eps of {eps:g}"
    if above <= 1 - _MOST:
        remark = f"gradients are below {kind}'s eps of {eps:g}: its steps are gradient descent's"
        return dict.fromkeys(own, "l2"), True, remark
    remark = f"{kind}'s eps of {eps:g} is above {1 - above:.0%} of its gradients: in between norms"
    return dict.fromkeys(own), False, remark


def _root_mean_squares(
    optimizer: torch.optim.Optimizer, group: Mapping[str, Any], own: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    """Return what gradients other than 0 were divided by; empty before the first step."""
    found = []
    for p in own.values():
        state = optimizer.state.get(p, {})
        if "exp_avg_sq" in state:
            beta = float(group["betas"][1])
            found.append((state["exp_avg_sq"] / (1 - beta ** float(state["step"]))).sqrt())
        elif "square_avg" in state:
            found.append(state["square_avg"].sqrt())
        elif "exp_inf" in state:
            found.append(state["exp_inf"])
    sizes = torch.cat([one.detach().flatten().cpu() for one in found]) if found else torch.zeros(0)
    return sizes[sizes > 0]
