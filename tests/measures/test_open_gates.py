"""Activations and maxima with gates that are given, beside their formulas."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn
from torch.nn import functional as F

OpenGates = pkgutil.resolve_name("implicit_bias.networks.gated.open_gates:OpenGates")
Call = Callable[[Tensor], Tensor]

IMAGES = torch.tensor(np.random.default_rng(0).normal(size=(3, 2, 7, 6)))
SLOPES = torch.tensor([0.1, 0.3], dtype=torch.float64)

# Calls, their slopes of closed units, and whether they write over their inputs.
ACTIVATIONS: dict[str, tuple[Call, float | Tensor, bool]] = {
    "relu": (F.relu, 0.0, False),
    "relu, in place": (lambda z: F.relu(z, inplace=True), 0.0, True),
    "relu, in place by position": (lambda z: F.relu(z, True), 0.0, True),
    "relu, by position": (lambda z: F.relu(z, False), 0.0, False),
    "relu_": (lambda z: z.relu_(), 0.0, True),
    "leaky": (F.leaky_relu, 0.01, False),
    "leaky of slope 1": (lambda z: F.leaky_relu(z, 1.0), 1.0, False),
    "leaky, by name": (lambda z: F.leaky_relu(z, negative_slope=0.3), 0.3, False),
    "leaky, in place": (lambda z: F.leaky_relu(z, 0.3, True), 0.3, True),
    "leaky_": (F.leaky_relu_, 0.01, True),
    "module": (nn.LeakyReLU(0.2, inplace=True), 0.2, True),
    "clamp": (lambda z: z.clamp(0), 0.0, False),
    "clamp, by name": (lambda z: torch.clamp(z, min=0.0), 0.0, False),
    "clamp_min": (lambda z: torch.clamp_min(input=z, min=0), 0.0, False),
    "prelu": (lambda z: F.prelu(z, SLOPES[:1]), 0.1, False),
    "prelu of channels": (lambda z: F.prelu(z, SLOPES), SLOPES[:, None, None], False),
    "prelu, by name": (lambda z: torch.prelu(input=z, weight=SLOPES), SLOPES[:, None, None], False),
}


@pytest.mark.parametrize("call, slope, in_place", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_a_unit_is_open_or_closed_as_it_is_told(call, slope, in_place) -> None:
    with OpenGates() as own, torch.no_grad():
        exact = call(IMAGES.clone())
    (seen,) = own.seen
    assert torch.equal(seen, IMAGES)
    for gates in ((IMAGES > 0).double(), (IMAGES <= 0).double()):
        z = IMAGES.clone()
        with OpenGates([gates]) as mode, torch.no_grad():
            made = call(z)
        torch.testing.assert_close(made, torch.where(gates > 0, IMAGES, slope * IMAGES))
        assert (made is z) == in_place
        assert torch.equal(z, made if in_place else IMAGES)
        assert torch.equal(mode.opened[0], gates * IMAGES)
    torch.testing.assert_close(exact, torch.where(IMAGES > 0, IMAGES, slope * IMAGES))


def windows(
    size: tuple[int, ...], step: tuple[int, ...] = (), pad: tuple[int, ...] = (0, 0), gap: int = 1
) -> Tensor:
    """Windows of the images, side by side along the last axis."""
    around = np.pad(IMAGES.numpy(), [(0, 0), (0, 0), *((one, one) for one in pad)], mode="edge")
    spans = tuple(gap * (one - 1) + 1 for one in size)
    found = sliding_window_view(around, spans, axis=(2, 3))[..., ::gap, ::gap]
    found = found[:, :, :: (step or size)[0], :: (step or size)[1]]
    return torch.tensor(found.reshape(*found.shape[:4], -1).copy())


# Calls, and the values that they compare.
MAXIMA: dict[str, tuple[Call, Tensor]] = {
    "maximum": (lambda z: torch.maximum(z, z.flip(0)), torch.stack([IMAGES, IMAGES.flip(0)], -1)),
    "maximum, method": (lambda z: z.maximum(-z), torch.stack([IMAGES, -IMAGES], -1)),
    "max of two": (lambda z: torch.max(z, other=-z), torch.stack([IMAGES, -IMAGES], -1)),
    "max with one for all": (
        lambda z: torch.max(z, torch.zeros((), dtype=z.dtype)),
        torch.stack([IMAGES, torch.zeros_like(IMAGES)], -1)),
    "max": (lambda z: z.max(2).values, IMAGES.movedim(2, -1)),
    "max, by name": (lambda z: torch.max(z, dim=-2)[0], IMAGES.movedim(2, -1)),
    "max, inputs by name": (lambda z: torch.max(dim=2, input=z)[0], IMAGES.movedim(2, -1)),
    "max, axis kept": (lambda z: z.max(1, keepdim=True)[0][:, 0], IMAGES.movedim(1, -1)),
    "amax": (lambda z: z.amax((3, 1)), IMAGES.movedim(2, 1).flatten(2)),
    "amax, by name": (lambda z: torch.amax(z, dim=-1), IMAGES),
    "images": (lambda z: F.max_pool2d(z, 2), windows((2, 2))),
    "images by name": (lambda z: F.max_pool2d(kernel_size=2, input=z), windows((2, 2))),
    "images of three": (nn.MaxPool2d((3, 2)), windows((3, 2))),
    "overlapping": (nn.MaxPool2d(3, 2, 1), windows((3, 3), (2, 2), (1, 1))),
    "padded along one": (nn.MaxPool2d((2, 3), (1, 2), (0, 1)), windows((2, 3), (1, 2), (0, 1))),
    "spread": (nn.MaxPool2d(2, 1, dilation=2), windows((2, 2), (1, 1), gap=2)),
    "lines": (
        lambda z: F.max_pool1d(z.flatten(1, 2), 3, 2, 1),
        windows((1, 3), (1, 2), (0, 1)).flatten(1, 2)),
    "lines of torch": (
        lambda z: torch.max_pool1d(z.flatten(1, 2), 2), windows((1, 2)).flatten(1, 2)),
    "images of torch": (lambda z: torch.max_pool2d(z, [2, 3]), windows((2, 3))),
    "boxes": (lambda z: nn.MaxPool3d((1, 2, 2))(z[:, None]), windows((2, 2))[:, None]),
    "boxes of torch": (
        lambda z: torch.max_pool3d(z[:, None], (1, 2, 2)), windows((2, 2))[:, None]),
    "adaptive": (lambda z: F.adaptive_max_pool2d(z, (1, 3)), windows((7, 2))),
    "adaptive, all": (nn.AdaptiveMaxPool2d((None, 2)), windows((1, 3))),
    "adaptive, of one size": (lambda z: F.adaptive_max_pool2d(z[:, :, :6], 2),
                              windows((3, 3))[:, :, :2]),
    "adaptive lines": (
        lambda z: nn.AdaptiveMaxPool1d(3)(z.flatten(1, 2)), windows((1, 2)).flatten(1, 2)),
    "adaptive boxes": (
        lambda z: F.adaptive_max_pool3d(z[:, None], (2, 7, 3)), windows((1, 2))[:, None]),
}  # fmt: skip


@pytest.mark.parametrize("call, compared", MAXIMA.values(), ids=MAXIMA)
def test_a_maximum_is_the_value_that_it_is_told(call, compared) -> None:
    with OpenGates() as own:
        exact = call(IMAGES)
    torch.testing.assert_close(exact.flatten(), compared.amax(-1).flatten())
    gates = [(z > 0).to(z) for z in own.seen]
    # Of each pair the former is open; with all closed the last of all is left.
    for given, chosen in (
        (gates, compared.amax(-1)),
        ([torch.ones_like(one) for one in gates], compared[..., 0]),
        ([torch.zeros_like(one) for one in gates], compared[..., -1]),
    ):
        with OpenGates(given) as mode:
            made = call(IMAGES)
        assert made.shape == exact.shape
        torch.testing.assert_close(made.flatten(), chosen.flatten())
        assert [one.shape for one in mode.opened] == [one.shape for one in mode.seen]
        assert all(one.shape[0] == len(IMAGES) for one in mode.seen)
    torch.testing.assert_close(own.beside[0].flatten(), compared.flatten())


# Calls that are left as they are.
OTHERS: dict[str, Call] = {
    "clamp from 1": lambda z: z.clamp(min=1),
    "clamp to 2": lambda z: z.clamp(0, 2),
    "clamp to 1, by name": lambda z: z.clamp(min=0.0, max=1.0),
    "clamp by tensors": lambda z: z.clamp(min=torch.zeros_like(z)),
    "clamp from above": lambda z: z.clamp(max=0.0),
    "largest of all": lambda z: z.max(),
    "largest of all, amax": lambda z: z.amax(),
    "largest of the samples": lambda z: z.amax((0, 1)),
    "largest of the samples, max": lambda z: z.max(0).values,
    "whole numbers": lambda z: z.long().max(1).values,
    "whole numbers, two": lambda z: torch.maximum(z.long(), -z.long()),
    "partial windows": nn.MaxPool2d(2, ceil_mode=True),
    "where they lie": lambda z: F.max_pool2d(z, 2, return_indices=True)[0],
    "where they lie, adaptive": lambda z: F.adaptive_max_pool2d(z, (1, 1), return_indices=True)[0],
    "spread and padded": nn.MaxPool2d(2, 1, 1, dilation=2),
    "uneven parts": nn.AdaptiveMaxPool2d(4),
    "no samples": lambda z: F.max_pool2d(z[0], 2),
    "smooth": F.gelu,
}


@pytest.mark.parametrize("call", OTHERS.values(), ids=OTHERS)
def test_other_calls_are_left_as_they_are(call) -> None:
    exact = call(IMAGES)
    for given in (None, []):
        with OpenGates(given) as mode:
            assert torch.equal(call(IMAGES), exact)
        assert mode.seen == mode.opened == []
