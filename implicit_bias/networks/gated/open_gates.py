"""Gates of ReLU-like activations in a module of any kind: read as it is called, or set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_RELU = (
    functional.relu, functional.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_,
)  # fmt: skip
_CLAMP = (
    torch.clamp, Tensor.clamp, torch.clip, Tensor.clip, torch.clamp_min, Tensor.clamp_min,
)  # fmt: skip
_LEAKY = (functional.leaky_relu, functional.leaky_relu_)
_PRELU = (functional.prelu, torch.prelu, Tensor.prelu)


class OpenGates(TorchFunctionMode):
    r"""Meets every activation :math:`z \mapsto (a + (1 - a) c) z`, c = 1 where z > 0 and else 0.

    These are `relu`, `leaky_relu`, `prelu` and `clamp(min=0)`, as functions, methods and modules.
    Maximum pooling and products with a comparison are not among them.

    Parameters
    ----------
    given : sequence of tensors, optional
        Gates c to compute with, in place of the module's own: one tensor an activation, in the
        order of the calls, with as many entries as its inputs.

    Attributes
    ----------
    seen, opened : lists of tensors
        Inputs z of the activations, and their products c z with gates that were given.
    """

    def __init__(self, given: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.given, self.seen, self.opened = given, list[Tensor](), list[Tensor]()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        slope = _slope(func, args, kwargs)
        if slope is None:
            return func(*args, **kwargs)
        z: Tensor = args[0] if args else kwargs["input"]
        place = len(self.seen)
        # A copy: an activation in place overwrites its inputs.
        self.seen.append(z.clone())
        if self.given is None:
            return func(*args, **kwargs)
        self.opened.append(self.given[place].reshape(z.shape) * self.seen[-1])
        made = slope * self.seen[-1] + (1 - slope) * self.opened[-1]
        in_place = func.__name__.endswith("_") or kwargs.get("inplace") or True in args[1:]
        return z.copy_(made) if in_place else made


def _slope(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | Tensor | None:
    """Return the slope of closed units of an activation; None for any other function."""
    if func in _RELU:
        return 0.0
    rest = dict(zip(("first", "second"), args[1:], strict=False)) | kwargs
    if func in _CLAMP:
        least, most = rest.get("min", rest.get("first")), rest.get("max", rest.get("second"))
        is_zero = isinstance(least, int | float) and least == 0
        return 0.0 if is_zero and most is None else None
    if func in _LEAKY:
        return float(rest.get("negative_slope", rest.get("first", 0.01)))
    if func in _PRELU:
        weight: Any = rest.get("weight", rest.get("first"))
        axes = (args[0] if args else kwargs["input"]).ndim - 2
        each: Tensor = weight if weight.numel() == 1 else weight.view(1, -1, *[1] * axes)
        return each
    return None
