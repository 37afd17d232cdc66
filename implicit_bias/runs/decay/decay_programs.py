"""The finite program of a network that is trained with weight decay, by its layers and trainer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...data.sample import Sample
from ...limits.exact.architecture import Architecture
from ...limits.exact.optimiser_norms import INDUCED, Form, LayerNorms
from ...limits.finite.fit import solve_fit
from ...limits.finite.limit import FitLimit
from ...limits.finite.program import WeightDecay
from ...quantities.assumptions import Premise
from ...quantities.premises import FULL_BATCHES, GATES
from ...training.catalogue import get_trainer


@dataclass(frozen=True)
class DecayProgram:
    """A finite program, and why it is that of the network.

    Attributes
    ----------
    literal : WeightDecay
        For cvxpy.
    theorem, source : str
    """

    literal: WeightDecay
    theorem: str
    source: str

    @property
    def name(self) -> str:
        """Name for tables and pictures."""
        norm = self.literal.norm
        if self.literal.radius is not None:
            return f"{norm} ball"
        return {"ridge": "ridge", "units": "group lasso"}.get(norm, f"{norm} penalty")

    @property
    def text(self) -> str:
        """The program in a line."""
        norm, penalty, radius = self.literal.norm, self.literal.penalty, self.literal.radius
        if radius is not None:
            return f"min mean loss  s.t.  N(zeta) <= {radius:g}, N = {norm}"
        terms = {"ridge": "||zeta||^2 / 2", "units": "sum_h ||zeta_h||"}
        return f"min mean loss + {penalty:g} {terms.get(norm, f'N(zeta), N = {norm}')}"

    def solve(self, sample: Sample, tol: float) -> FitLimit:
        """Solve it on training samples."""
        return solve_fit(*sample, **vars(self.literal), tol=tol)

    @property
    def premises(self) -> tuple[Premise, ...]:
        """What it assumes."""
        return (GATES, FULL_BATCHES, ENDED if self.literal.radius is None else CONVERGES)


ENDED = Premise(
    name="no saddle",
    text="training ends at no strict saddle: dead units have a dual norm of at most the penalty",
    said="training ends at no strict saddle: dead units have dual norms of at most the penalty",
    holds=lambda largest: largest <= 1.01,
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
CHEN = "Chen, Liu, Liang and Liu 2024; of two layers own proof"
CONVEX = "one layer with coupled weight decay ends at the one minimiser of a strongly convex loss"
STRONGLY_CONVEX = "a strongly convex loss has one minimiser"


# Norms of layers whose balls multiply to a ball of the coefficients in the induced norm, whatever
# the width, and to which the proof of two layers reaches.
FILLED: Mapping[Form, Collection[LayerNorms]] = MappingProxyType(
    {
        "one layer": tuple(INDUCED["one layer"]),
        "columns": (),
        "linear layers": (("spectral", "spectral"),),
        "gated layer": (("linf", "linf"), ("spectral", "linf")),
    }
)


def decay_program(options: Any, layers: Architecture) -> DecayProgram:
    """Return the program of the finite limit.

    Parameters
    ----------
    options : Options
        With those of a trainer and of weight decay.
    layers : Architecture

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


def _coupled(lam: float, layers: Architecture, loss: str) -> DecayProgram:
    norm = "ridge" if layers.depth == 1 else ("units" if layers.gated else "l2")
    theorem, source = (CONVEX, STRONGLY_CONVEX) if layers.depth == 1 else (COUPLED, NEYSHABUR)
    program = WeightDecay(loss, norm, penalty=lam, n_contexts=layers.n_contexts)
    return DecayProgram(program, theorem, source)


def _ball(lam: float, layers: Architecture, options: Any) -> DecayProgram:
    trainer = options.trainer
    own = get_trainer(trainer)
    if trainer == "constant":
        raise ValueError(
            "`decoupled` decay of the trainer 'constant' is the coupled one: leave it out, or take "
            "sign, signum, adam, lion, spectral, muon or coordinate"
        )
    theorem = (
        "normalised steps with decoupled weight decay end at the least loss in a ball of their "
        "norm, if they converge"
    )
    induced = layers.induced(own.norms)
    if induced is not None and own.norms in FILLED[layers.form]:
        # Of one row the spectral norm is the l2 norm; of contexts it is not solved.
        row = induced.norm == "spectral" and not layers.gated
        norm = "l2" if row else induced.norm
        if norm != "spectral" or layers.n_contexts is None:
            program = WeightDecay(
                options.loss, norm, radius=lam**-layers.depth, n_contexts=layers.n_contexts
            )
            return DecayProgram(program, theorem, CHEN if trainer == "lion" else XIE)
    raise ValueError(
        f"no ball is known of the trainer {trainer!r} and these layers: take sign, signum, adam or "
        "lion with gated units, muon with frelu, spectral with linear layers"
    )
