"""Gates of ReLU-like activations and of maxima in a module of any kind: read, or set."""

from __future__ import annotations

import itertools
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
_OF_TWO = (torch.maximum, Tensor.maximum)
_OF_AXES = (torch.amax, Tensor.amax)
_OF_TWO_OR_AXIS = (torch.max, Tensor.max)
# Axes of images that windows are moved along.
_POOLS = {
    torch.max_pool1d: 1, torch.max_pool2d: 2, torch.max_pool3d: 3,
    functional.max_pool1d: 1, functional.max_pool2d: 2, functional.max_pool3d: 3,
}  # fmt: skip
_ADAPTIVE = {
    functional.adaptive_max_pool1d: 1, functional.adaptive_max_pool2d: 2,
    functional.adaptive_max_pool3d: 3,
}  # fmt: skip


class OpenGates(TorchFunctionMode):
    r"""Meets every activation :math:`z \mapsto (a + (1 - a) c) z`, c = 1 where z > 0 and else 0.

    These are `relu`, `leaky_relu`, `prelu` and `clamp(min=0)`, as functions, methods and modules.
    A maximum, of two, along axes or in windows, is met as activations of differences, z = a - b in
    :math:`\max(a, b) = b + c z`, of neighbours and then of the larger ones, until one is left.
    Products with a comparison are not met.

    Parameters
    ----------
    given : sequence of tensors, optional
        Gates c to compute with, in place of the module's own: one tensor an activation, in the
        order of the calls, with as many entries as its inputs.

    Attributes
    ----------
    seen, opened : lists of tensors
        Inputs z of the activations, and their products c z with gates that were given.
    beside : list of tensors
        What the size of inputs is to be judged by: themselves, or the values compared.
    """

    def __init__(self, given: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.given, self.seen, self.opened = given, list[Tensor](), list[Tensor]()
        self.beside = list[Tensor]()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if "input" in kwargs:
            args = (kwargs.pop("input"), *args)
        values = _compared(func, args, kwargs)
        if values is not None:
            return self._largest(func, args, kwargs, values)
        slope = _slope(func, args, kwargs)
        if slope is None:
            return func(*args, **kwargs)
        z: Tensor = args[0]
        place = len(self.seen)
        # A copy: an activation in place overwrites its inputs.
        self.seen.append(z.clone())
        self.beside.append(self.seen[-1])
        if self.given is None:
            return func(*args, **kwargs)
        self.opened.append(self.given[place].reshape(z.shape) * self.seen[-1])
        made = slope * self.seen[-1] + (1 - slope) * self.opened[-1]
        said = kwargs.get("inplace") or any(one is True for one in args[1:])
        in_place = func.__name__.endswith("_") or said
        return z.copy_(made) if in_place else made

    def _largest(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: Tensor
    ) -> Any:
        """Return the maximum along the last axis of the values that a call compares."""
        exact = func(*args, **kwargs)
        while values.shape[-1] > 1:
            a, b = values[..., 0:-1:2], values[..., 1::2]
            alone = values[..., 2 * b.shape[-1] :]
            place = len(self.seen)
            self.seen.append(a - b)
            self.beside.append(values)
            if self.given is None:
                larger = torch.where(a > b, a, b)
            else:
                self.opened.append(self.given[place].reshape(b.shape) * self.seen[-1])
                larger = b + self.opened[-1]
            values = torch.cat([larger, alone], dim=-1)
        if self.given is None:
            return exact
        if isinstance(exact, Tensor):
            return values.reshape(exact.shape)
        return type(exact)((values.reshape(exact[0].shape), exact[1]))


def _compared(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the values whose maximum along the last axis a call is; None for other functions.

    The first axis is that of the samples, and no maximum is taken along it.
    """
    if func in _POOLS:
        return _windows(_POOLS[func], *args, **kwargs)
    if func in _ADAPTIVE:
        return _parts(_ADAPTIVE[func], *args, **kwargs)
    if func not in (*_OF_TWO, *_OF_AXES, *_OF_TWO_OR_AXIS):
        return None
    first: Tensor = args[0]
    second = args[1] if len(args) > 1 else kwargs.get("other", kwargs.get("dim"))
    if isinstance(second, Tensor):
        both = torch.broadcast_tensors(first, second)  # type: ignore[no-untyped-call]
        return torch.stack(both, dim=-1) if first.is_floating_point() else None
    if second is None or not first.is_floating_point():
        return None
    axes = {axis % first.ndim for axis in ([second] if isinstance(second, int) else second)}
    if 0 in axes or not axes:
        return None
    rest = [axis for axis in range(first.ndim) if axis not in axes]
    return first.permute(*rest, *sorted(axes)).flatten(len(rest))


def _windows(
    n_axes: int,
    image: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | None:
    """Return the entries of each window of a pooling along the last axis."""
    kernel, pad, apart = (_each(one, n_axes) for one in (kernel_size, padding, dilation))
    step, repeats = _each(stride or kernel_size, n_axes), any(pad)
    if image.ndim != n_axes + 2 or ceil_mode or return_indices or (repeats and max(apart) > 1):
        return None
    if repeats:
        # Entries of the border once more: each window has one that it repeats.
        around = [one for each in reversed(pad) for one in (each, each)]
        image = functional.pad(image, around, mode="replicate")
    sizes = zip(image.shape[2:], kernel, step, apart, strict=True)
    places = [
        [slice(gap * k, gap * k + size - gap * (width - 1), every) for k in range(width)]
        for size, width, every, gap in sizes
    ]
    every = itertools.product(*places)
    return torch.stack([image[(slice(None), slice(None), *one)] for one in every], dim=-1)


def _parts(
    n_axes: int,
    image: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
) -> Tensor | None:
    """Return the entries of windows of one size that cover the image, if there are such."""
    wanted = [output_size] if output_size is None or isinstance(output_size, int) else output_size
    sizes = list(image.shape[2:])
    parts = [part or size for part, size in zip([*wanted] * n_axes, sizes, strict=False)]
    if return_indices or any(size % part for size, part in zip(sizes, parts, strict=True)):
        return None
    return _windows(n_axes, image, [size // part for size, part in zip(sizes, parts, strict=True)])


def _each(sizes: int | Sequence[int], n_axes: int) -> list[int]:
    found = [sizes] if isinstance(sizes, int) else list(sizes)
    return found * n_axes if len(found) == 1 else found


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
        axes = args[0].ndim - 2
        each: Tensor = weight if weight.numel() == 1 else weight.view(1, -1, *[1] * axes)
        return each
    return None
