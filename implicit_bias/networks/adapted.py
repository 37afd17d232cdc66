"""Modules of the user's own as this package calls them: copied, in float64, scores alone."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

N = TypeVar("N", bound=torch.nn.Module)

# Attributes that a network may have beside `forward`: see the protocols.
OPTIONAL = (
    "degree", "zeta", "unit_norms", "dual_norms", "imbalance", "gradient_factors", "gates",
)  # fmt: skip
# Names that outputs of several parts have for scores.
_SCORES = ("logits", "scores", "score", "output", "outputs", "out", "predictions", "prediction")


class GateFree(torch.nn.Module):
    """A module with ``forward(X)`` as one with ``forward(X, gates)``, whose gates are None.

    It shares the weights, and has the module's attributes among `OPTIONAL` as its own: protocols do
    not ask `__getattr__`. Of several outputs it returns the scores, see `named_scores`.

    Parameters
    ----------
    module : Module
    gated : bool
        Whether the module takes gates all the same, and it is its scores alone that are wanted.
    """

    def __init__(self, module: torch.nn.Module, *, gated: bool = False) -> None:
        super().__init__()
        self.module, self.gated = module, gated
        for name in OPTIONAL:
            if hasattr(module, name):
                object.__setattr__(self, name, getattr(module, name))

    def forward(self, X: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the scores (n,), or (n, K), of inputs (n, ...)."""
        return self.named_scores(X, gates)[1]

    def named_scores(self, X: Tensor, gates: Tensor | None) -> tuple[str, Tensor]:
        """Return the scores with the name of the part of the module's output that they are."""
        output = self.module(X, gates) if self.gated else self.module(X)
        return named_scores(output, len(X))


class InDouble(GateFree):
    """A `GateFree` in float64 on one device, whatever its module's `forward` casts and moves to.

    Attention is written out in it, as its fused kernels have no second derivatives.
    """

    def __init__(
        self, module: torch.nn.Module, *, gated: bool = False, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(module, gated=gated)
        self._device = torch.device(device)

    def named_scores(self, X: Tensor, gates: Tensor | None) -> tuple[str, Tensor]:
        """Return the scores with the name of the part of the module's output that they are."""
        with _Casting(self._device), sdpa_kernel(SDPBackend.MATH):
            return super().named_scores(X, gates)


class _Casting(TorchFunctionMode):
    """Lets a `forward` that casts to a shorter type, or to another device, stay where it is."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __enter__(self) -> Any:
        self.given = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.set_default_dtype(self.given)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        def longer(value: Any) -> Any:
            if isinstance(value, torch.device):
                return self.device
            shorter = isinstance(value, torch.dtype) and value.is_floating_point
            return torch.float64 if shorter else value

        if func in _MOVES:
            return args[0]
        named = {key: longer(value) for key, value in (kwargs or {}).items()}
        if "device" in named:
            named["device"] = self.device
        if func is Tensor.to and len(args) > 1 and isinstance(args[1], str):
            args = (args[0], self.device, *args[2:])
        func = Tensor.double if func in _CASTS else func
        return func(*map(longer, args), **named)


_CASTS = (Tensor.float, Tensor.half, Tensor.bfloat16)
_MOVES = (Tensor.cuda, Tensor.cpu)


def named_scores(output: Any, n: int) -> tuple[str, Tensor]:
    """Return the scores in what a module returned, with the name of the part that they are.

    Of several parts they are the one that is called so, "logits" for instance, or else the first
    with a row a sample. Axes of length 1 are dropped: scores are (n,), or (n, K) of K outputs.

    Parameters
    ----------
    output : Tensor, or tuple, list, mapping or dataclass of tensors
    n : int
        Number of samples.

    Raises
    ------
    TypeError
        If no part of it is a tensor with a row a sample.
    """
    if isinstance(output, Tensor):
        return "", _without_axes(output, n)
    parts = dict(_parts(output))
    rows = {
        name: part for name, part in parts.items()
        if isinstance(part, Tensor) and part.is_floating_point() and part.shape[:1] == (n,)
    }  # fmt: skip
    if not rows:
        raise TypeError(
            f"`forward` returned {type(output).__name__}({', '.join(map(str, parts))}), in which "
            f"no part is a tensor with {n} rows, one a sample: let it return the scores"
        )
    name = next((name for name in _SCORES if name in rows), next(iter(rows)))
    return str(name), _without_axes(rows[name], n)


def _parts(output: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of an output of several, by their names or numbers."""
    if isinstance(output, Mapping):
        yield from output.items()
    elif is_dataclass(output) and not isinstance(output, type):
        yield from ((one.name, getattr(output, one.name)) for one in fields(output))
    elif hasattr(output, "_asdict"):
        yield from output._asdict().items()
    elif isinstance(output, list | tuple):
        yield from enumerate(output)
    else:
        yield from vars(output).items() if hasattr(output, "__dict__") else ()


def _without_axes(scores: Tensor, n: int) -> Tensor:
    """Return scores (n,), or (n, K), without axes of length 1."""
    if scores.numel() == n:
        return scores.flatten()
    lone = n == 1 and scores.ndim == 1  # of a `forward` that squeezes all axes
    long = [size for size in scores.shape[1:] if size != 1]
    return scores.reshape(n, -1) if lone or len(long) == 1 else scores


class _Copying(TorchFunctionMode):
    """Copies tensors as constants: those that hang on a graph are refused by `copy.deepcopy`."""

    def __init__(self, dtype: torch.dtype | None, device: torch.device | str | None) -> None:
        super().__init__()
        self.dtype, self.device = dtype, device

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is not Tensor.__deepcopy__ or isinstance(args[0], torch.nn.Parameter):
            return func(*args, **(kwargs or {}))
        tensor, memo = args
        dtype = self.dtype if tensor.is_floating_point() else None
        made = tensor.detach().to(self.device, dtype, copy=True)
        # A constant leaf stays one that asks for gradients: that it is trained is the user's word.
        memo[id(tensor)] = made.requires_grad_(tensor.requires_grad and tensor.is_leaf)
        return made


def detached_copy(
    network: N, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> N:
    """Return a deep copy, in which what `forward` remembered of its last call is constant.

    Kept activations and weights of `weight_norm` hang on a graph; the copy makes its own when it is
    called. What cannot be copied, such as a lock or an open file, is shared.

    Parameters
    ----------
    network : Module
    dtype, device : optional
        Of tensors that are kept as plain attributes, and of buffers.
    """
    with _Copying(dtype, device):
        try:
            return copy.deepcopy(network)
        except Exception:  # whatever an object of the user's own raises
            return copy.deepcopy(network, _shared(network))


def _shared(network: torch.nn.Module) -> dict[int, Any]:
    """Return those attributes of a module's parts that cannot be copied, as they are."""
    found = {}
    for part in network.modules():
        for name, value in vars(part).items():
            if name in ("_parameters", "_buffers", "_modules"):
                continue
            try:
                copy.deepcopy(value)
            except Exception:  # whatever an object of the user's own raises
                found[id(value)] = value
    return found


def in_float64(network: torch.nn.Module, device: torch.device | str = "cpu") -> InDouble:
    """Return a copy of a module on a device, uncompiled, with all of its numbers in float64.

    Tensors that are kept as plain attributes, which no module moves, are among them.
    """
    copied = detached_copy(network, torch.float64, device)
    module = _uncompiled(copied).to(device).double()
    return InDouble(plain(module), gated=takes_gates(module), device=device)


def _uncompiled(network: torch.nn.Module) -> torch.nn.Module:
    """Return the module inside what `torch.compile` or a parallel wrapper made of it or a part."""
    network = uncompiled(network)
    for name, child in network.named_children():
        inner = _uncompiled(child)
        if inner is not child:
            setattr(network, name, inner)
    return network


def uncompiled(network: torch.nn.Module) -> torch.nn.Module:
    """Return the module that `torch.compile`, or a parallel wrapper, made this one of, or itself.

    They share their weights. Compiled modules hide the parameters of `forward`, and protocols do
    not see their attributes.
    """
    while True:
        wrapped = isinstance(network, _PARALLEL)
        inner = network.module if wrapped else getattr(network, "_orig_mod", None)
        if not isinstance(inner, torch.nn.Module):
            return network
        network = inner


_PARALLEL = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)


def with_gates(network: torch.nn.Module) -> torch.nn.Module:
    """Return the network itself if it takes gates, a `GateFree` of it if it takes inputs alone.

    Of a compiled network the module that it was made of.
    """
    network = uncompiled(network)
    return network if takes_gates(network) or isinstance(network, GateFree) else GateFree(network)


def compiled_with_gates(network: torch.nn.Module) -> torch.nn.Module:
    """Return the same, but a compiled network as it is compiled."""
    if uncompiled(network) is network:
        return with_gates(network)
    return network if takes_gates(uncompiled(network)) else GateFree(network)


def plain(network: torch.nn.Module) -> torch.nn.Module:
    """Return the user's own module inside what `with_gates` returned."""
    inner = network.module if isinstance(network, GateFree) else network
    assert isinstance(inner, torch.nn.Module)
    return inner


def takes_gates(network: torch.nn.Module) -> bool:
    """Return whether ``forward`` has a positional parameter for gates, after the inputs.

    A second parameter with a default other than None is an option of the user's own.
    """
    if isinstance(network, GateFree):
        return network.gated
    forward = network.forward
    if inspect.ismethod(forward):
        return _gates_of_class(forward.__func__, 2)  # behind the network itself
    return _gates_at(forward, 1)


def _gates_at(function: Callable[..., Any], place: int) -> bool:
    """Return whether the positional parameter at a place, or ``*args``, may be for gates."""
    try:
        every = list(inspect.signature(function).parameters.values())
    except ValueError:  # compiled by torch.jit, which keeps none
        return False
    several = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in every)
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [one.default for one in every if one.kind in by_place][place : place + 1]
    return several or found in ([None], [inspect.Parameter.empty])


_gates_of_class = lru_cache(maxsize=64)(_gates_at)  # what one instance has may hold the network
