"""The finite program of a network that is trained with weight decay, by its layers and trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..data.sample import Sample
from ..finite_limits.fit import solve_fit
from ..finite_limits.limit import FitLimit
from ..finite_limits.program import WeightDecay
from ..training.catalogue import get_trainer
from .premises import FULL_BATCHES, GATES, Premise

__all__ = ["DecayProgram", "Layers", "decay_program"]


@dataclass(frozen=True)
class Layers:
    """The weights of a network that decay, as far as its finite limit depends on them.

    Attributes
    ----------
    depth : int
        Layers: zeta itself is trained with one, and is a product of two or more.
    gated : bool
        Behind gates or contexts, a row of the first layer a unit.
    n_contexts : int or None
    """

    depth: int
    gated: bool = False
    n_contexts: int | None = None


@dataclass(frozen=True)
class DecayProgram:
    """A finite program, and why it is that of the network.

    Attributes
    ----------
    norm : str
        As `solve_fit` takes it.
    penalty, radius : float or None
    n_contexts : int or None
    theorem, source : str
    loss : str
    """

    norm: str
    penalty: float | None
    radius: float | None
    n_contexts: int | None
    theorem: str
    source: str
    loss: str

    @property
    def name(self) -> str:
        """Name for tables and pictures."""
        if self.norm == "ridge":
            return "ridge"
        if self.radius is None:
            return "group lasso" if self.norm == "units" else f"{self.norm} penalty"
        return f"{self.norm} ball"

    @property
    def text(self) -> str:
        """The program in a line."""
        if self.norm == "ridge":
            return f"min mean loss + {self.penalty:g} ||zeta||^2 / 2"
        if self.radius is None and self.norm == "units":
            return f"min mean loss + {self.penalty:g} sum_h ||zeta_h||"
        if self.radius is None:
            return f"min mean loss + {self.penalty:g} N(zeta), N = {self.norm}"
        return f"min mean loss  s.t.  N(zeta) <= {self.radius:g}, N = {self.norm}"

    def solve(self, sample: Sample, tol: float) -> FitLimit:
        """Solve it on training samples."""
        return solve_fit(
            *sample, loss=self.loss, penalty=self.penalty, radius=self.radius, norm=self.norm,
            n_contexts=self.n_contexts, tol=tol,
        )  # fmt: skip

    @property
    def literal(self) -> WeightDecay:
        """The same for cvxpy."""
        norm: Any = self.norm
        return WeightDecay(self.loss, norm, self.penalty, self.radius, self.n_contexts)

    @property
    def premises(self) -> tuple[Premise, ...]:
        """What it assumes."""
        return (GATES, FULL_BATCHES, ENDED if self.radius is None else CONVERGES)


ENDED = Premise(
    name="no saddle",
    text="training ends at no strict saddle: dead units have a dual norm of at most the penalty",
    known="measured",
)
CONVERGES = Premise(
    name="steps fall",
    text="steps fall to 0 and their sum is infinite",
    known="by construction",
)
COUPLED = (
    "training with coupled weight decay ends at the optimum of a convex program: stationary points "
    "of two layers without saddles meet its conditions"
)
NEYSHABUR = "Neyshabur, Tomioka and Srebro 2015; Yang et al. 2022; own proof of no bad minimum"
XIE = "Xie and Li 2024, theorem 1.1; of two layers own proof"
CONVEX = "one layer with coupled weight decay ends at the one minimiser of a strongly convex loss"
STRONGLY_CONVEX = "a strongly convex loss has one minimiser"


def decay_program(options: Any, layers: Layers) -> DecayProgram:
    """Return the program of the finite limit.

    Parameters
    ----------
    options : Options
        With those of a trainer and of weight decay.
    layers : Layers

    Raises
    ------
    ValueError
        If no convex program is known, with what has one.
    """
    lam = float(options.weight_decay)
    if options.loss not in ("logistic", "squared"):
        raise ValueError(
            f"`loss` {options.loss!r} with weight decay is not solved: take logistic or squared"
        )
    if layers.depth > 2:
        raise ValueError(
            f"`depth` {layers.depth} with weight decay has no convex form: take depth 2, or none"
        )
    if not options.decoupled:
        return _coupled(lam, layers, options.loss)
    return _ball(lam, layers, options)


def _coupled(lam: float, layers: Layers, loss: str) -> DecayProgram:
    norm = "ridge" if layers.depth == 1 else ("units" if layers.gated else "l2")
    theorem, source = (CONVEX, STRONGLY_CONVEX) if layers.depth == 1 else (COUPLED, NEYSHABUR)
    return DecayProgram(norm, lam, None, layers.n_contexts, theorem, source, loss)


def _ball(lam: float, layers: Layers, options: Any) -> DecayProgram:
    trainer = options.trainer
    own = get_trainer(trainer)
    if trainer == "constant":
        raise ValueError(
            "`decoupled` decay of the trainer 'constant' is the coupled one: leave it out, or take "
            "sign, signum, adam, spectral, muon or coordinate"
        )
    theorem = (
        "normalised steps with decoupled weight decay end at the least loss in a ball of their "
        "norm, if they converge"
    )
    if layers.depth == 1:
        (norm,) = own.norms_of(1)
        plain = {"spectral": "l2"}.get(norm, norm)  # of one row
        return DecayProgram(plain, None, 1 / lam, None, theorem, XIE, options.loss)
    below, last = own.norms_of(2)
    if not layers.gated and (below, last) == ("spectral", "spectral"):
        return DecayProgram("l2", None, 1 / lam**2, None, theorem, XIE, options.loss)
    if (
        layers.gated
        and last == "linf"
        and below in ("linf", "spectral")
        and (below == "linf" or layers.n_contexts is None)
    ):
        n_contexts = layers.n_contexts
        return DecayProgram(below, None, 1 / lam**2, n_contexts, theorem, XIE, options.loss)
    raise ValueError(
        f"no ball is known of the trainer {trainer!r} and these layers: take sign, signum or adam "
        "with gated units, muon with frelu, spectral with linear layers"
    )
