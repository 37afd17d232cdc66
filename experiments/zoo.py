"""Modules as people write them, each taken by `diagnose`: what it is, what is said, and how long.

    python -m experiments.zoo --out experiments/results

The first thirteen are what public programs of the field train, written anew and small: attention
with its activations kept, next tokens, neural collapse, convolutions, gates, fixed outer layers.
The others are blocks of which networks are built. Each is trained a little, by Adam on labels that
nothing explains, and diagnosed in the mode that it was trained in. One row a module, `zoo.csv`:

    known            what its scores are in all trained weights, by hand: a degree of homogeneity,
                     "no degree", "random", or "surrogate" where the backward is no derivative of
                     the forward. torch's RMS norm has no constant but the rounding, 1e-16
    found            what was measured
    said             the verdict, or the sentence of the refusal
    seconds          of one thread
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import implicit_bias as ib
from implicit_bias.networks.adapted import named_scores
from implicit_bias.networks.recognition import Form, recognise, take_subject

from .tables import keep_rows, out_folder

N, D, WIDTH, TOKENS, VOCABULARY = 24, 6, 8, 5, 9
IMAGE, CHANNELS = 8, 3
STEPS, RATE = 200, 0.03


@dataclass(frozen=True)
class Case:
    """A module with its data.

    Attributes
    ----------
    make : callable
        Returns the module, of weights of torch's own seed.
    known : str
    inputs : str
        Kind of inputs, see `inputs_of`.
    classes : int
        2 for one score, K for K of them.
    """

    make: Callable[[], Any]
    known: str = "no degree"
    inputs: str = "rows"
    classes: int = 2


def inputs_of(kind: str) -> Any:
    """Inputs of a kind: rows, images, sequences of vectors, token ids, or one row a sample."""
    rng = np.random.default_rng(0)
    shapes = {"rows": (N, D), "images": (N, CHANNELS, IMAGE, IMAGE), "vectors": (N, TOKENS, D)}
    if kind == "tokens":
        return rng.integers(0, VOCABULARY, (N, TOKENS))
    return np.eye(N) if kind == "samples" else rng.normal(size=shapes[kind])


def labels_of(classes: int) -> Any:
    """Labels of so many classes: booleans of two, numbers of several."""
    return np.arange(N) % 2 == 0 if classes == 2 else np.arange(N) % classes


class Calls(nn.Module):
    """A module that is its parts and one expression of them."""

    def __init__(self, call: Callable[..., Any], **parts: Any):
        super().__init__()
        self.call = call
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        """Return what the expression gives."""
        return self.call(self, x)


def drawn(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-1]))


def line(below: int, above: int, *, bias: bool = False) -> nn.Linear:
    return nn.Linear(below, above, bias=bias)


def mlp(act: Callable[[], nn.Module], *, bias: bool = False, out: int = 1) -> nn.Sequential:
    return nn.Sequential(line(D, WIDTH, bias=bias), act(), line(WIDTH, out, bias=bias))


def normed(norm: Callable[[], nn.Module]) -> nn.Sequential:
    return nn.Sequential(line(D, WIDTH), norm(), nn.ReLU(), line(WIDTH, 1))


def conv(below: int, above: int, size: int = 3, **more: Any) -> nn.Conv2d:
    return nn.Conv2d(below, above, size, padding=size // 2, bias=False, **more)


def on_images(*body: nn.Module, channels: int = 4) -> nn.Sequential:
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), line(channels, 1))


def frozen(part: nn.Module) -> nn.Module:
    return part.requires_grad_(False)


# What programs of the field train


def _attends(self: Any, x: Tensor) -> Any:
    self.weights = torch.softmax(x @ self.w @ x[:, 0, :, None], dim=1)
    return (x * self.weights).sum(1) @ self.v


def _attends_by_parts(self: Any, x: Tensor) -> Any:
    self.attention = torch.softmax(x @ self.k.T @ self.q @ x[:, 0, :, None], dim=1)
    return (x * self.attention).sum(1) @ self.v


def _circular(self: Any, x: Tensor) -> Any:
    places = (torch.arange(D)[:, None] + torch.arange(D)) % D
    return (x[:, places] @ self.w) @ self.v


def _fixed_outer(self: Any, x: Tensor) -> Any:
    hidden = F.leaky_relu(self.inner(x), 0.1)
    return hidden @ self.signs, hidden


def _gated(self: Any, x: Tensor) -> Any:
    return ((x @ self.gates.T > 0) * (x @ self.w.T)).sum(1)


def _lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1),
    )  # fmt: skip


FIELD: dict[str, Case] = {
    "attention, W": Case(
        lambda: Calls(_attends, w=drawn(D, D), v=torch.ones(D)), "no degree", "vectors"
    ),
    "attention, K and Q": Case(
        lambda: Calls(_attends_by_parts, k=drawn(4, D), q=drawn(4, D), v=torch.ones(D)),
        "no degree", "vectors",
    ),
    "next tokens, tied": Case(
        lambda: Calls(lambda m, x: m.table(x).mean(1) @ m.table.weight.T,
                      table=nn.Embedding(VOCABULARY, 4)), "2", "tokens", VOCABULARY,
    ),
    "next tokens, linear": Case(
        lambda: Calls(lambda m, x: {"logits": m.out(m.table(x).mean(1))},
                      table=frozen(nn.Embedding(VOCABULARY, 4)), out=line(4, VOCABULARY)),
        "1", "tokens", VOCABULARY,
    ),
    "unconstrained features": Case(
        lambda: nn.Sequential(line(N, 5), line(5, 5), line(5, 3)), "3", "samples", 3
    ),
    "linear, several classes": Case(lambda: line(D, 3), "1", "rows", 3),
    "circular convolution": Case(lambda: Calls(_circular, w=drawn(D), v=drawn(D)), "2"),
    "gated ReLU, fixed gates": Case(
        lambda: Calls(_gated, gates=torch.randn(WIDTH, D), w=drawn(WIDTH, D)), "1"
    ),
    "diagonal, u u - v v": Case(
        lambda: Calls(lambda m, x: x @ (m.u * m.u - m.v * m.v), u=drawn(D), v=drawn(D)), "2"
    ),
    "two-layer ReLU": Case(lambda: mlp(nn.ReLU), "2"),
    "leaky, fixed outer signs": Case(
        lambda: Calls(_fixed_outer, inner=line(D, WIDTH),
                      signs=torch.tensor([1.0, -1.0]).repeat(WIDTH // 2)), "1",
    ),
    "two-layer ReLU, first bias": Case(
        lambda: nn.Sequential(line(D, WIDTH, bias=True), nn.ReLU(), line(WIDTH, 1)), "2"
    ),
    "LeNet": Case(_lenet, "no degree", "images"),
}  # fmt: skip


# Blocks


class Residual(nn.Module):
    """x + body(x), or act(skip(x) + body(x))."""

    def __init__(self, body: nn.Module, *, skip: nn.Module | None = None, last: bool = False):
        super().__init__()
        self.body, self.skip, self.last = body, skip or nn.Identity(), last

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        total = self.skip(x) + self.body(x)
        return torch.relu(total) if self.last else total


def _conv_bn_relu(below: int, above: int, size: int = 3, **more: Any) -> nn.Sequential:
    return nn.Sequential(conv(below, above, size, **more), nn.BatchNorm2d(above), nn.ReLU())


def _bottleneck() -> nn.Module:
    body = nn.Sequential(
        _conv_bn_relu(4, 2, 1), _conv_bn_relu(2, 2), conv(2, 4, 1), nn.BatchNorm2d(4)
    )
    return on_images(conv(CHANNELS, 4), Residual(body, last=True))


def _squeeze(self: Any, x: Tensor) -> Any:
    scale = torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3))))))
    return x * scale[:, :, None, None]


def _mixer() -> nn.Module:
    return nn.Sequential(
        Residual(Calls(lambda m, x: m.up(F.gelu(m.down(m.norm(x).mT))).mT, norm=nn.LayerNorm(D),
                       down=line(TOKENS, 7, bias=True), up=line(7, TOKENS, bias=True))),
        Residual(nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 7), nn.GELU(), nn.Linear(7, D))),
        Calls(lambda m, x: m.out(x.mean(1)), out=nn.Linear(D, 1)),
    )  # fmt: skip


class Attention(nn.Module):
    """Heads of softmax attention by torch's fused kernel."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the attended values (n, T, d)."""
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        scores: Tensor = self.out(mixed.reshape(n, t, d))
        return scores


def _transformer(width: int, body: nn.Module) -> nn.Sequential:
    return nn.Sequential(
        body,
        Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, 2))),
        Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(),
                               nn.Linear(2 * width, width))),
        Calls(lambda m, x: {"features": x, "logits": m.head(m.norm(x.mean(1)))},
              norm=nn.LayerNorm(width), head=nn.Linear(width, 3)),
    )  # fmt: skip


def _patches() -> nn.Module:
    cut = nn.Sequential(nn.Conv2d(CHANNELS, 8, 4, stride=4), nn.Flatten(2))
    return _transformer(8, Calls(lambda m, x: m.cut(x).mT + m.place, cut=cut, place=drawn(4, 8)))


class Signs(torch.autograd.Function):
    """Signs, of which the backward is that of the identity."""

    @staticmethod
    def forward(_: Any, w: Tensor) -> Tensor:
        """Return the signs."""
        return w.sign()

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        """Return the gradient as it came."""
        return gradient


def _experts(self: Any, x: Tensor) -> Any:
    return (torch.softmax(self.gate(x), 1) * torch.relu(self.inner(x))).sum(1)


def _low_rank(self: Any, x: Tensor) -> Any:
    return self.out(torch.relu(self.base(x) + self.up(self.down(x))))


def _recurrent(self: Any, x: Tensor) -> Any:
    start = torch.zeros(1, len(x), 4)
    return self.out(self.cell(x, start)[0][:, -1])


def _lstm(self: Any, x: Tensor) -> Any:
    return self.out(self.cell(x)[1][0][-1])


def _dense(self: Any, x: Tensor) -> Any:
    for part in self.parts:
        x = torch.cat([x, torch.relu(part(x))], dim=1)
    return self.out(x.mean((2, 3)))


def _inception(self: Any, x: Tensor) -> Any:
    return self.out(torch.cat([torch.relu(part(x)).mean((2, 3)) for part in self.parts], dim=1))


class Maxout(nn.Module):
    """The largest of several linear units."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = line(D, 3 * WIDTH), line(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1)."""
        scores: Tensor = self.outer(self.inner(x).view(len(x), WIDTH, 3).amax(2))
        return scores


class Act(nn.Module):
    """An activation by its function."""

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Return its values."""
        return self.function(x)


BLOCKS: dict[str, Case] = {
    # Convolutions
    "conv, batch norm, ReLU": Case(
        lambda: on_images(_conv_bn_relu(CHANNELS, 4)), "no degree", "images"),
    "the same, evaluation mode": Case(
        lambda: on_images(_conv_bn_relu(CHANNELS, 4)).eval(), "no degree", "images"),
    "residual": Case(
        lambda: on_images(conv(CHANNELS, 4), Residual(nn.Sequential(
            _conv_bn_relu(4, 4), conv(4, 4), nn.BatchNorm2d(4)), last=True)),
        "no degree", "images"),
    "residual without norms": Case(
        lambda: on_images(conv(CHANNELS, 4), Residual(nn.Sequential(
            conv(4, 4), nn.ReLU(), conv(4, 4)))), "no degree", "images"),
    "bottleneck": Case(_bottleneck, "no degree", "images"),
    "depthwise separable": Case(
        lambda: on_images(conv(CHANNELS, 4), nn.ReLU(), conv(4, 4, groups=4), nn.ReLU(),
                          conv(4, 4, 1)), "4", "images"),
    "squeeze-excite": Case(
        lambda: on_images(conv(CHANNELS, 4), nn.ReLU(),
                          Calls(_squeeze, down=line(4, 2), up=line(2, 4))), "no degree", "images"),
    "dense concatenation": Case(
        lambda: Calls(_dense, parts=nn.ModuleList([conv(3, 3), conv(6, 3)]), out=line(9, 1)),
        "no degree", "images"),
    "inception": Case(
        lambda: Calls(_inception, parts=nn.ModuleList([conv(3, 3, 1), conv(3, 3), conv(3, 3, 5)]),
                      out=line(9, 1)), "2", "images"),
    "transposed convolution": Case(
        lambda: on_images(conv(CHANNELS, 4), nn.ReLU(), nn.ConvTranspose2d(4, 4, 2, bias=False)),
        "3", "images"),
    "max pooling": Case(
        lambda: on_images(conv(CHANNELS, 4), nn.MaxPool2d(2), conv(4, 4)), "3", "images"),
    # Tokens and sequences
    "MLP-mixer": Case(_mixer, "no degree", "vectors"),
    "pre-norm transformer": Case(
        lambda: _transformer(8, nn.Embedding(VOCABULARY, 8)), "no degree", "tokens", 3),
    "ViT patchifier": Case(_patches, "no degree", "images", 3),
    "GRU": Case(lambda: Calls(_recurrent, cell=nn.GRU(D, 4, batch_first=True), out=line(4, 1)),
                "no degree", "vectors"),
    "LSTM": Case(lambda: Calls(_lstm, cell=nn.LSTM(D, 4, batch_first=True), out=line(4, 1)),
                 "no degree", "vectors"),
    "embedding bag": Case(lambda: nn.Sequential(nn.EmbeddingBag(VOCABULARY, 4), line(4, 1)), "2",
                          "tokens"),
    "deep set": Case(
        lambda: Calls(lambda m, x: m.out(torch.relu(m.inner(x)).sum(1)), inner=line(D, 4),
                      out=line(4, 1)), "2", "vectors"),
    "graph, fixed neighbours": Case(
        lambda: Calls(lambda m, x: m.out(torch.relu(m.near @ m.inner(x)).mean(1)),
                      inner=line(D, 4), out=line(4, 1),
                      near=torch.eye(TOKENS) + torch.eye(TOKENS).roll(1, 0)), "2", "vectors"),
    # Normalised
    "weight norm": Case(
        lambda: nn.Sequential(parametrizations.weight_norm(line(D, WIDTH)), nn.ReLU(),
                              line(WIDTH, 1)), "2"),
    "spectral norm, training mode": Case(
        lambda: nn.Sequential(parametrizations.spectral_norm(line(D, WIDTH)), nn.ReLU(),
                              line(WIDTH, 1)), "surrogate"),
    "spectral norm, evaluation mode": Case(
        lambda: nn.Sequential(parametrizations.spectral_norm(line(D, WIDTH)), nn.ReLU(),
                              line(WIDTH, 1)).eval(), "1"),
    "batch norm 1d": Case(lambda: normed(lambda: nn.BatchNorm1d(WIDTH))),
    "layer norm": Case(lambda: normed(lambda: nn.LayerNorm(WIDTH))),
    "group norm": Case(lambda: normed(lambda: nn.GroupNorm(2, WIDTH))),
    "RMS norm": Case(lambda: normed(lambda: nn.RMSNorm(WIDTH)), "2"),
    "cosine head": Case(
        lambda: Calls(lambda m, x: F.normalize(m.inner(x)) @ F.normalize(m.head, dim=1).T,
                      inner=line(D, WIDTH), head=drawn(3, WIDTH)), "0", "rows", 3),
    # Activations and gates
    "MLP with biases": Case(lambda: mlp(nn.ReLU, bias=True)),
    "MLP with biases, three classes": Case(lambda: mlp(nn.ReLU, bias=True, out=3), classes=3),
    "dropout, evaluation mode": Case(lambda: mlp(lambda: nn.Sequential(
        nn.ReLU(), nn.Dropout())).eval(), "2"),
    "dropout, training mode": Case(lambda: mlp(lambda: nn.Sequential(
        nn.ReLU(), nn.Dropout())), "random"),
    "GLU": Case(lambda: nn.Sequential(line(D, 2 * WIDTH), nn.GLU(), line(WIDTH, 1))),
    "SwiGLU": Case(
        lambda: Calls(lambda m, x: m.out(F.silu(m.gate(x)) * m.inner(x)), gate=line(D, WIDTH),
                      inner=line(D, WIDTH), out=line(WIDTH, 1))),
    "bilinear": Case(
        lambda: Calls(lambda m, x: m.out(m.gate(x) * m.inner(x)), gate=line(D, WIDTH),
                      inner=line(D, WIDTH), out=line(WIDTH, 1)), "3"),
    "maxout": Case(Maxout, "2"),
    "leaky": Case(lambda: mlp(nn.LeakyReLU), "2"),
    "PReLU": Case(lambda: mlp(nn.PReLU)),
    "GELU": Case(lambda: mlp(nn.GELU)),
    "SiLU": Case(lambda: mlp(nn.SiLU)),
    "tanh": Case(lambda: mlp(nn.Tanh)),
    "ELU": Case(lambda: mlp(nn.ELU)),
    "ReLU6": Case(lambda: mlp(nn.ReLU6)),
    "softplus": Case(lambda: mlp(nn.Softplus)),
    "squares": Case(lambda: mlp(lambda: Act(torch.square)), "3"),
    "sine": Case(lambda: mlp(lambda: Act(torch.sin))),
    # Parts that are fixed, shared or not differentiated
    "frozen trunk": Case(lambda: nn.Sequential(frozen(mlp(nn.Tanh, out=4)), line(4, 1, bias=True)),
                         "1"),
    "low rank beside a frozen layer": Case(
        lambda: Calls(_low_rank, base=frozen(line(D, WIDTH)), down=line(D, 2), up=line(2, WIDTH),
                      out=line(WIDTH, 1))),
    "tied autoencoder": Case(
        lambda: Calls(lambda m, x: torch.relu(x @ m.code.T) @ m.code, code=drawn(4, D)), "2",
        "rows", D),
    "mixture of experts": Case(
        lambda: Calls(_experts, gate=line(D, 4), inner=line(D, 4))),
    "straight-through signs": Case(
        lambda: Calls(lambda m, x: torch.relu(x @ m.signs(m.w).T) @ m.v, w=drawn(WIDTH, D),
                      v=drawn(WIDTH), signs=Signs.apply), "surrogate"),
    "hard gates": Case(
        lambda: Calls(_gated, gates=drawn(WIDTH, D), w=drawn(WIDTH, D)), "1"),
    "compiled": Case(lambda: torch.compile(mlp(nn.ReLU)), "2"),
    "data parallel": Case(lambda: nn.DataParallel(mlp(nn.ReLU)), "2"),
}  # fmt: skip
ZOO = FIELD | BLOCKS


def train(network: nn.Module, X: Any, labels: Any) -> None:
    """Take `STEPS` steps of Adam on the logistic loss, or the cross-entropy of K scores."""
    inputs = torch.tensor(X, dtype=torch.long if X.dtype.kind == "i" else torch.float32)
    targets = torch.tensor(labels)
    optimizer = torch.optim.Adam((p for p in network.parameters() if p.requires_grad), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = named_scores(network(inputs), len(inputs))[1]
        if scores.ndim == 1:
            loss = F.softplus(torch.where(targets, -scores, scores)).mean()
        else:
            loss = F.cross_entropy(scores, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def found_of(network: nn.Module, X: Any, labels: Any) -> str:
    """What is measured: the degree, or why there is none."""
    try:
        structure = recognise(take_subject(network, X, labels))
    except ValueError as error:
        return "random" if "different scores" in str(error) else "refused"
    if structure.form is Form.SURROGATE:
        return "surrogate"
    degree = structure.homogeneity.degree
    return "no degree" if degree is None else f"{degree:g}"


def said_of(network: nn.Module, X: Any, labels: Any) -> str:
    """The verdict with its sentence, or the sentence of the refusal."""
    try:
        verdict = ib.diagnose(network, X, labels).verdict
    except ValueError as error:
        return str(error)
    return f"{verdict.word}: {verdict.sentence}"


def row(name: str) -> dict[str, Any]:
    """The row of one module."""
    torch.manual_seed(0)
    case = ZOO[name]
    network, X, labels = case.make(), inputs_of(case.inputs), labels_of(case.classes)
    train(network, X, labels)
    start = time.perf_counter()
    said = said_of(network, X, labels)
    seconds = time.perf_counter() - start
    return {
        "module": name,
        "weights": sum(p.numel() for p in network.parameters() if p.requires_grad),
        "known": case.known,
        "found": found_of(network, X, labels),
        "said": " ".join(said.split()),
        "seconds": round(seconds, 2),
    }


@click.command()
@out_folder
def main(out: Path) -> None:
    """Take every module, and write what was found of it."""
    torch.set_num_threads(1)
    keep_rows((row(name) for name in ZOO), out / "zoo.csv", digits=".2f")


if __name__ == "__main__":
    main()
