"""Intake of a module of the user's own and its data: copied, checked, called, labels read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import UninitializedParameter

from ..._support.solve import require_real
from ..adapted import detached_copy, in_float64, plain
from ..losses.labels import read_labels
from ..placed_data import GatedData, Inputs, place_data, trained_weights
from ..weights import as_tensor
from .subject import Subject, misfit


def take_subject(
    network: torch.nn.Module, X: Inputs, y: Any, gates: Inputs | None = None
) -> Subject:
    """Check a module and its data and copy both into float64 on the CPU.

    Parameters
    ----------
    network : Module
        Takes ``forward(X, gates)`` or ``forward(X)`` and returns scores (n,), (n, 1) or (n, K),
        alone or with others in a tuple, mapping or dataclass; compiled and parallel ones too.
        Outside evaluation mode statistics over batches are those of all of `X`.
    X : (n, D) or (n, ...) array
        Whole numbers stay such where the module takes them alone, as token ids.
    y : (n,), (n, 1) or (n, K) array
        Labels: numbers, booleans or strings, or rows with a single one; see `read_labels`.
    gates : (n, ...) array, optional

    Raises
    ------
    TypeError
        If it is no module, or an array is of another kind.
    ValueError
        If the module has no weights to train or some that are not finite, cannot be copied or
        called on these data, has no scores of samples, or random ones; if labels are of another
        number of classes than there are outputs; or if data are malformed.
    """
    if not isinstance(network, torch.nn.Module):
        raise TypeError(f"`network` must be a torch.nn.Module, got {type(network).__name__}")
    _require_weights(network)
    require_real("X", X)
    module = in_float64(network)
    subject = _called_on(Subject(module, _placed(module, X, gates)), X)
    by_sample, twice = _is_by_sample(subject), _has_slopes(subject)
    few = subject.few(2).data
    part, _ = detached_copy(module).named_scores(few.X, few.gates)
    n = len(subject.data.X)
    classes, targets = read_labels(y, n, subject.n_outputs)
    data = subject.data._replace(y=targets)
    return replace(subject, data=data, classes=classes, by_sample=by_sample, twice=twice, part=part)


def held_out(subject: Subject, X: Inputs, y: Any, gates: Inputs | None) -> Subject:
    """Return the same module on other data, checked as the first were.

    Outside evaluation mode it is put into that: statistics over batches are those that it kept.

    Raises
    ------
    TypeError, ValueError
        If data are malformed, the module cannot be called on them, or labels are others than those
        of the first data.
    """
    network = subject.network if subject.by_sample else detached_copy(subject.network).eval()
    other = replace(subject, network=network, data=_placed(network, X, gates))
    other = _called_on(other, X, "X_val")
    targets = subject.classes.targets("y_val", y, len(other.data.X))
    return replace(other, data=other.data._replace(y=targets))


def _require_weights(network: torch.nn.Module) -> None:
    if any(isinstance(p, UninitializedParameter) for p in network.parameters()):
        raise ValueError("`network` has lazy layers without weights: call it once on `X` before")
    trained_weights(network)
    for name, p in network.named_parameters():
        if p.is_meta:
            raise ValueError(f"`network` has no values in {name!r}, which is on the device meta")
        if p.is_complex():
            raise ValueError(
                f"`network` has complex weights in {name!r}: let it keep their real and imaginary "
                "parts, and make complex numbers of them in `forward`"
            )
        if not bool(torch.isfinite(p).all()):
            raise ValueError(
                f"`network` has NaN or infinite entries in {name!r}: its training has diverged, "
                "take an earlier checkpoint"
            )


def _placed(network: torch.nn.Module, X: Inputs, gates: Inputs | None) -> GatedData:
    """Place inputs and gates, with a message about gates that the network does not take."""
    try:
        return place_data(network, X, None, gates)
    except ValueError as error:
        if "`contexts`" not in str(error):
            raise
        # The name that networks with contexts have for them.
        raise ValueError(f"`gates` do not fit `network`: {error}") from error


def _called_on(subject: Subject, given: Inputs, name: str = "X") -> Subject:
    """Return the subject on inputs that its module takes: numbers, or whole ones as token ids.

    Its scores must be one a sample and output, and finite.
    """
    whole = as_tensor(given)
    try:
        scores = subject.scores({})
    except Exception as error:  # whatever a module of the user's own raises
        if subject.data.X.is_floating_point() and not whole.is_floating_point():
            data = subject.data._replace(X=whole.cpu().long())
            return _called_on(replace(subject, data=data), given, name)
        said = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"`network` ({subject.name}) cannot be called on `{name}` of shape "
            f"{tuple(subject.data.X.shape)} ({type(error).__name__}: {said}): give the inputs, "
            "and the gates, that it was trained on"
        ) from error
    n = len(subject.data.X)
    if scores.ndim not in (1, 2) or len(scores) != n or 0 in scores.shape:
        raise ValueError(
            f"`network` ({subject.name}) must give one score a sample, ({n},), or K of K classes, "
            f"({n}, K), got {tuple(scores.shape)}: of several positions or steps let `forward` "
            "return the scores of one, or give each as a sample"
        )
    wrong = ~torch.isfinite(scores).view(n, -1).all(1)
    if bool(wrong.any()):
        raise ValueError(
            f"`network` ({subject.name}) gives NaN or infinite scores to {int(wrong.sum())} of {n} "
            f"samples, though its weights are finite: look at the scale of `{name}`"
        )
    return subject


def _is_by_sample(subject: Subject) -> bool:
    """Return whether each score is of its sample alone; refuse random ones."""
    few = subject.few_of_many()
    scores = few.scores({})
    if misfit(scores, few.scores({})) > 1e-6:
        raise ValueError(
            f"two calls of `network` ({subject.name}) give different scores: "
            f"{_random_parts(subject.network)}"
        )
    first = few.data.take(torch.arange((len(scores) + 1) // 2))
    try:
        alone = replace(few, data=first).scores({})
    except Exception:  # of a module that takes all samples and not one, which has no statistics
        return False
    return not misfit(scores[: len(first.X)], alone) > 1e-6


def _has_slopes(subject: Subject) -> bool:
    """Return whether derivatives of gradients are right; refuse a module without gradients.

    A backward that is marked as differentiable but once drops out of them without an error.
    """
    few = subject.few(2)
    w, direction = few.drawn(0), few.drawn(1)
    try:
        rows = few.gradients(w)
    except Exception as error:  # of the module's own backward, or of torch under it
        said = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"gradients of the scores of `network` ({subject.name}) cannot be computed "
            f"({type(error).__name__}: {said}): if it computes activations anew in its backward "
            "(checkpointing), switch that off"
        ) from error
    along = few.along(rows, direction)
    try:
        return misfit(along, few.slopes(w, direction)) <= 1e-6
    except RuntimeError:
        return False


def _random_parts(network: torch.nn.Module) -> str:
    """Return the way out of random scores, with the names of the parts that drop units."""
    parts = [
        name or type(part).__name__ for name, part in plain(network).named_modules()
        if part.training and isinstance(part, _DropoutNd) and part.p > 0
    ]  # fmt: skip
    if not parts:
        return "call `.eval()` on it, or take out what is random (dropout) or remembers"
    listed = ", ".join(map(repr, parts))
    return (
        f"call `.eval()` on it, or, to keep statistics over batches, on its dropout alone, {listed}"
    )
