r"""Figures 4.2 and 4.3: mutual autoencoders of ten labels and of a normal variable.

x is uniform on ten labels, z ~ N(0, 1), p(x|z) a network of three layers with a softmax, and q(z|x)
a normal of its own for every label, or that normal resampled among k draws; or x ~ N(0, 1), and
decoder and encoder are normals whose means and deviations are networks of three layers. Algorithm
4.1 as printed: the information is a critic's bound r(z|x), which is one step of its own a step, and
its gradient for the decoder is that of REINFORCE (C.19), E[grad log p(x|z) log r(z|x)], or of a
normal x that of draws that are reparametrised. The information that is reported is none of the
estimates: it is a sum over a fine grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Normal

from implicit_bias.runs.drawing import Row, compose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_LABELS, N_DRAWS = 10, 5
LOG_LABELS = math.log(N_LABELS)
ENTROPY = 0.5 * math.log(2 * math.pi * math.e)  # of z
GRID = torch.linspace(-5, 5, 1001)
# Of the rows of figure 4.3b, as shares of the largest information, log 10.
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
TARGETS_A = (0.0, 0.3, 0.8, 1.5, 2.5)  # nats of figure 4.3a
SLICES = (-2.1, -1.3, -0.4, 0.4, 1.3, 2.1)


PRIOR = Normal(0.0, 1.0)


def log_density(of: Normal | Categorical, at: Tensor) -> Tensor:
    """Log densities, or probabilities, of values."""
    found: Tensor = of.log_prob(at)  # type: ignore[no-untyped-call]
    return found


class LabelNormals(nn.Module):
    """A normal N(m_x, s_x^2) for each label: the encoder, and the critic.

    Parameters
    ----------
    spread : float
        Standard deviation of the first means.
    """

    def __init__(self, spread: float) -> None:
        super().__init__()
        self.mean = nn.Parameter(spread * torch.randn(N_LABELS))
        self.log_deviation = nn.Parameter(torch.zeros(N_LABELS))

    def forward(self, labels: Tensor) -> Normal:
        return Normal(self.mean[labels], self.log_deviation[labels].exp())


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """Decoder, encoder and critic; with `n_draws` > 1 the encoder resamples among so many."""

    decoder: nn.Module
    encoder: LabelNormals
    critic: LabelNormals
    n_draws: int

    @classmethod
    def random(cls, n_draws: int, seed: int) -> Autoencoder:
        torch.manual_seed(seed)
        return cls(layers(N_LABELS), LabelNormals(0.5), LabelNormals(0.5), n_draws)

    def data(self, size: int) -> Tensor:
        return torch.randint(N_LABELS, (size,))

    def likelihood(self, z: Tensor) -> Categorical:
        return Categorical(logits=self.decoder(z[..., None]))

    def elbo(self, labels: Tensor) -> Tensor:
        """Estimate the bound at labels (B,): of resampled draws it is that of importance weights.

        Drawing one of k in proportion to w_i = p(x, z_i) / q(z_i|x) is an encoder whose bound is at
        least E log(sum_i w_i / k) (Cremer, Morris and Duvenaud, 2017); k = 1 is the usual one.
        """
        z = self.encoder(labels.expand(self.n_draws, -1)).rsample()
        found: Tensor = torch.logsumexp(self._log_weights(z, labels), 0) - math.log(self.n_draws)
        return found.mean()

    def _log_weights(self, z: Tensor, labels: Tensor) -> Tensor:
        of = labels.expand(z.shape)
        joint = log_density(self.likelihood(z), of) + log_density(PRIOR, z)
        return joint - log_density(self.encoder(of), z)

    def sample(self, size: int) -> tuple[Tensor, Tensor]:
        z = torch.randn(size)
        with torch.no_grad():
            return z, self.likelihood(z).sample()  # type: ignore[no-untyped-call]

    def information_slope(self, z: Tensor, labels: Tensor) -> Tensor:
        """A term whose gradient for the decoder is (C.19): that of REINFORCE."""
        reward = log_density(self.critic(labels), z).detach()
        # A constant leaves the mean as it is, since E grad log p(x|z) = 0, and the variance not.
        chosen = log_density(self.likelihood(z), labels)
        return ((reward - reward.mean()) * chosen).mean()

    @torch.no_grad()
    def joint(self) -> Tensor:
        """p(z) p(x|z) (1001, 10) on the grid, as shares that sum to 1."""
        prior = torch.softmax(log_density(PRIOR, GRID), 0)
        given: Tensor = self.likelihood(GRID).probs
        return prior[:, None] * given

    def information(self) -> float:
        """I_p(z, x) in nats, by a sum over the grid."""
        joint = self.joint().double()
        apart = joint.sum(0) * joint.sum(1, keepdim=True)
        return float(torch.xlogy(joint, joint / apart).sum())

    @torch.no_grad()
    def posterior(self) -> Tensor:
        """p(z|x) (1001, 10) as densities."""
        joint = self.joint()
        return joint / joint.sum(0) / float(GRID[1] - GRID[0])

    @torch.no_grad()
    def encoded(self, n_samples: int = 1000) -> Tensor:
        """q(z|x) (1001, 10) as densities; of resampled draws by an average over the others.

        q_k(z|x) = q(z) E[k w(z) / (w(z) + sum of the w of k - 1 draws)].
        """
        labels = torch.arange(N_LABELS)
        z = GRID[:, None].expand(-1, N_LABELS)
        log_single = log_density(self.encoder(labels), z)
        if self.n_draws == 1:
            return log_single.exp()
        others = self.encoder(labels).sample((n_samples, self.n_draws - 1))
        rest = torch.logsumexp(self._log_weights(others, labels), 1)  # (n_samples, 10)
        own = self._log_weights(z, labels)
        share = torch.sigmoid(own[:, None] - rest).mean(1)
        found: Tensor = self.n_draws * log_single.exp() * share
        return found


def layers(n_outputs: int, width: int = 32) -> nn.Sequential:
    """A network of three layers."""
    return nn.Sequential(
        nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
        nn.Linear(width, n_outputs),
    )  # fmt: skip


class NetworkNormal(nn.Module):
    """A normal whose mean and log deviation are a network of three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = layers(2)

    def forward(self, at: Tensor) -> Normal:
        mean, log_deviation = self.layers(at[..., None]).unbind(-1)
        return Normal(mean, log_deviation.exp())


@dataclass(frozen=True, eq=False)
class Splitting:
    """Decoder, encoder and critic of a normal variable."""

    decoder: NetworkNormal
    encoder: NetworkNormal
    critic: NetworkNormal

    @classmethod
    def random(cls, seed: int) -> Splitting:
        torch.manual_seed(seed)
        return cls(NetworkNormal(), NetworkNormal(), NetworkNormal())

    def data(self, size: int) -> Tensor:
        return torch.randn(size)

    def elbo(self, x: Tensor) -> Tensor:
        given = self.encoder(x)
        z = given.rsample()
        joint = log_density(self.decoder(z), x) + log_density(PRIOR, z)
        return (joint - log_density(given, z)).mean()

    def sample(self, size: int) -> tuple[Tensor, Tensor]:
        z = torch.randn(size)
        return z, self.decoder(z).rsample()

    def information_slope(self, z: Tensor, x: Tensor) -> Tensor:
        """The critic's bound but for a constant: x is a function of the decoder and of noise."""
        return log_density(self.critic(x), z).mean()

    @torch.no_grad()
    def _on_grid(self) -> tuple[Tensor, Tensor]:
        """log p(z) + log p(x|z) and log q(x) + log q(z|x), both (z, x)."""
        given, back = self.decoder(GRID), self.encoder(GRID)
        prior = log_density(PRIOR, GRID).double()
        joint = prior[:, None] + log_density(_column(given), GRID).double()
        return joint, prior + log_density(back, GRID[:, None]).double()

    def information(self) -> float:
        """I_p(z, x) in nats, by a sum over the grid."""
        joint = self._on_grid()[0].exp()
        joint = joint / joint.sum()
        apart = joint.sum(0) * joint.sum(1, keepdim=True)
        return float((torch.xlogy(joint, joint) - torch.xlogy(joint, apart)).sum())

    def gap(self) -> float:
        """What the bound lacks of its largest value: KL(q(x) q(z|x), p(z) p(x|z)) in nats."""
        joint, encoded = self._on_grid()
        return float((encoded.exp() * (encoded - joint)).sum() * (GRID[1] - GRID[0]) ** 2)


def _column(of: Normal) -> Normal:
    return Normal(of.mean[:, None], of.stddev[:, None])


class Mutual(Protocol):
    """What algorithm 4.1 asks of a model."""

    @property
    def decoder(self) -> nn.Module: ...
    @property
    def encoder(self) -> nn.Module: ...
    @property
    def critic(self) -> nn.Module: ...
    def data(self, size: int) -> Tensor: ...
    def elbo(self, x: Tensor, /) -> Tensor: ...
    def sample(self, size: int) -> tuple[Tensor, Tensor]: ...
    def information_slope(self, z: Tensor, x: Tensor, /) -> Tensor: ...


def train(
    information: float, *, n_draws: int, seed: int, n_steps: int, penalty: float = 3.0,
) -> Autoencoder:  # fmt: skip
    """Train on labels."""
    model = Autoencoder.random(n_draws, seed)
    descend(model, information, n_steps=n_steps, penalty=penalty)
    return model


def descend(
    model: Mutual, information: float, *, n_steps: int, penalty: float = 3.0, batch: int = 256
) -> None:
    """Train by algorithm 4.1; the step size falls by 100 over the last half."""
    own = [*model.decoder.parameters(), *model.encoder.parameters()]
    steps = torch.optim.Adam(own, lr=5e-3), torch.optim.Adam(model.critic.parameters(), lr=2e-2)
    falls = [
        torch.optim.lr_scheduler.LambdaLR(one, lambda k: 0.01 ** max(0.0, 2 * k / n_steps - 1))
        for one in steps
    ]
    for _ in range(n_steps):
        z, x = model.sample(batch)
        x = x.detach()
        objective = model.elbo(model.data(batch))
        if penalty:
            estimate = ENTROPY + float(log_density(model.critic(x), z).mean().detach())
            sign = math.copysign(1.0, estimate - information)
            objective = objective - penalty * sign * model.information_slope(*model.sample(batch))
        bound = log_density(model.critic(x), z).mean()
        for optimizer, value in zip(steps, (objective, bound), strict=True):
            optimizer.zero_grad()
            (-value).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        for one in falls:
            one.step()


def rows(*, full: bool) -> Iterator[dict[str, Any]]:
    """A row a point of the grid for figure 4.3a, and for each target and encoder of ten labels.

    Of the seeds after the first there is a row a network, without curves.
    """
    n_steps, seeds = (2_000, (0, 1)) if full else (1_000, (0,))
    for target in TARGETS_A:
        split = Splitting.random(seeds[0])
        descend(split, target, n_steps=n_steps)
        about = {"figure": "4.3a", "target": target, "information": split.information(),
                 "gap": split.gap()}  # fmt: skip
        for z in SLICES:
            with torch.no_grad():
                curve = log_density(split.decoder(torch.tensor(z)), GRID).exp()
                curve *= float(log_density(PRIOR, torch.tensor(z)).exp())
            for k in range(150, 851, 4):
                yield about | {"label": z, "z": float(GRID[k]), "p": float(curve[k])}
    for seed in seeds:
        for share in SHARES:
            target = share * LOG_LABELS
            for n_draws in (1, N_DRAWS) if share == 1 else (N_DRAWS,):
                model = train(target, n_draws=n_draws, seed=seed, n_steps=n_steps)
                every = 4 if share == 1 else 10
                yield from _curves(model, target, seed, every=every if seed == seeds[0] else 0)


def _curves(
    model: Autoencoder, target: float, seed: int, *, every: int
) -> Iterator[dict[str, Any]]:
    joint, posterior, encoded = model.joint(), model.posterior(), model.encoded()
    given = joint / joint.sum(1, keepdim=True)
    log_ratio = torch.log(encoded + 1e-30) - torch.log(posterior + 1e-30)
    apart = float((encoded * log_ratio).sum(0).mean() * (GRID[1] - GRID[0]))
    about = {"figure": "labels", "target": target, "seed": seed, "draws": model.n_draws,
             "information": model.information(), "divergence": apart}  # fmt: skip
    if not every:
        yield about
        return
    for k in range(150, 851, every):
        for label in range(N_LABELS):
            yield about | {
                "label": label, "z": float(GRID[k]), "p": float(given[k, label]),
                "posterior": float(posterior[k, label]), "encoder": float(encoded[k, label]),
            }  # fmt: skip


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Information reached and E KL(q(z|x) || p(z|x)), by target and encoder: least and most."""
    labels = table[table.figure == "labels"]
    ends = labels.drop_duplicates(["target", "draws", "seed"])
    return ends.groupby(["target", "draws"])[["information", "divergence"]].agg(["min", "max"])


def draw(table: pd.DataFrame) -> Figure:
    """Figures 4.2, 4.3a and 4.3b; ten labels of the first seed."""
    colors = [f"C{k}" for k in range(8)] + ["0.3", "0.7"]
    normal = table[table.figure == "4.3a"]
    labels = table[(table.figure == "labels") & (table.seed == table.seed.min())]
    largest = labels[labels.target == labels.target.max()]

    def flexibility(name: str, what: str) -> Any:
        def on(axes: list[Axes]) -> None:
            for ax, draws in zip(axes, (1, N_DRAWS), strict=True):
                here = largest[largest.draws == draws]
                for label, one in here.groupby("label"):
                    ax.plot(one.z, one[name], color=colors[int(label)])
                said = "one draw (a normal)" if draws == 1 else f"resampled among {draws}"
                ax.set(xlabel=f"z; encoder: {said}; I = {here.information.iloc[0]:.2f} nats",
                       ylabel=what, ylim=(0, None))  # fmt: skip

        return on

    def splits(axes: list[Axes]) -> None:
        for ax, (target, one) in zip(axes, normal.groupby("target"), strict=True):
            for _, curve in one.groupby("label"):
                ax.plot(curve.z, curve.p)
            ax.set(xlabel=f"x; M = {target:g}, I = {one.information.iloc[0]:.2f}", yticks=[],
                   ylim=(0, None))  # fmt: skip
        axes[0].set_ylabel("4.3a: p(x|z) p(z)")

    def stacks(axes: list[Axes]) -> None:
        here = labels[labels.draws == N_DRAWS]
        for ax, (target, one) in zip(axes, here.groupby("target"), strict=True):
            wide = one.pivot(index="z", columns="label", values="p")
            ax.stackplot(wide.index, wide.to_numpy().T, colors=colors)
            ax.set(xlabel=f"z; M = {target:.2f}, I = {one.information.iloc[0]:.2f}",
                   xlim=(-3, 3), ylim=(0, 1))  # fmt: skip
        axes[0].set_ylabel("4.3b: p(x|z), stacked")

    return compose(
        [
            Row(2, flexibility("posterior", "4.2 top: p(z|x)"), height=2.6),
            Row(2, flexibility("encoder", "4.2 bottom: q(z|x)"), height=2.6),
            Row(len(TARGETS_A), splits, height=2.6),
            Row(len(SHARES), stacks, height=2.8),
        ],
        title="Figures 4.2 and 4.3 of the thesis: ten equally likely labels, a curve or colour "
        "each (4.2: M = log 10), and a normal x\n(4.3a: z = -2.1, -1.3, -0.4, 0.4, 1.3 and 2.1); "
        "M and I in nats, first seed",
    )
