"""What the theorems behind the models assume, as data: each assumption is declared once, here.

A model lists its theorem's (`Model.assumes`). Reports print all of them: what a run proves or
measures of one, by its name, stands in place of what is declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .._words import SteepestTrainer, words

__all__ = [
    "DIRECTION",
    "DUAL_NORMS",
    "FULL_BATCHES",
    "GATES",
    "GRADIENTS",
    "HOMOGENEOUS",
    "KNOWN",
    "LINEAR_METHODS",
    "LOCAL_OPTIMUM",
    "LOSS",
    "LOSS_TO_0",
    "MARGINS",
    "METHOD",
    "ONE_LAYER",
    "PROPOSITION_B8",
    "SEPARABLE",
    "STEEPEST",
    "Known",
    "Premise",
]

Known = Literal["by construction", "proved", "measured", "cannot be checked"]
KNOWN: Mapping[Known, str] = {
    "by construction": "holds by construction, under the options that the table names",
    "proved": "a run proves it, or that it does not hold, by a certificate",
    "measured": "a run measures it, at a finite time and in floating point",
    "cannot be checked": "no finite run can tell; what it has measured stands beside",
}


@dataclass(frozen=True, kw_only=True)
class Premise:
    """One assumption of a theorem, and how a run knows whether it holds.

    Attributes
    ----------
    name : str
        What the first screen calls it, and what findings about it are called.
    text : str
        As the theorem has it.
    known : str
        How it is known, one of `KNOWN`.
    needs : mapping of option to values
        Without these values of options it does not hold.
    where : mapping of option to values
        With other values of these options the theorem does without it.
    unless : mapping of option to values
        With these values of options the theorem does without it.
    """

    name: str
    text: str
    known: Known
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    unless: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def applies(self, options: Any) -> bool:
        """Return False where the theorem does without it under these options."""
        given = {name: getattr(options, name, None) for name in {**self.where, **self.unless}}
        return all(
            any(one in values for one in _each(given[name])) for name, values in self.where.items()
        ) and not any(given[name] in values for name, values in self.unless.items())

    def broken_by(self, options: Any) -> str:
        """Return the options that it does not hold with, in words; empty if there are none."""
        found = []
        for option, values in self.needs.items():
            # None: the model takes no such option, or every trainer has its own default of it.
            wrong = [
                str(one)
                for one in _each(getattr(options, option, None))
                if one is not None and one not in values
            ]
            found += [f"{option} {', '.join(wrong)}"] if wrong else []
        return "; ".join(found)


def _each(given: Any) -> Sequence[Any]:
    """Return the values that an option names, several where it names several."""
    several = given.split(",") if isinstance(given, str) else given
    return several if isinstance(several, Sequence) else [several]


SEPARABLE = Premise(
    name="separable",
    text="the data are separable, by a network of this kind in these gates",
    known="proved",
)
HOMOGENEOUS = Premise(
    name="homogeneous",
    text="the network is homogeneous in its weights, of one degree in all contexts",
    known="by construction",
)
GATES = Premise(
    name="fixed gates",
    text="gates do not depend on the weights that are trained",
    known="by construction",
)
LOSS = Premise(
    name="exponential-like loss",
    text="the loss is exponential-like: it falls to 0, its derivative is Lipschitz and has a tight "
    "exponential tail",
    known="by construction",
    needs={"loss": ("logistic", "exponential")},
)
METHOD = Premise(
    name="gradient flow",
    text="training follows gradient flow, along gradients with steps small enough and without "
    "momentum",
    known="cannot be checked",
    needs={"trainer": ("constant", "normalised"), "momentum": (0, 0.0)},
)
LINEAR_METHODS = Premise(
    name="step rule and size",
    text="steps are those of a theorem: along the gradient and small enough (Soudry et al.), "
    "along that of log(loss) at small rates (Ji and Telgarsky), or `dual` (Ji, Srebro and "
    "Telgarsky, for the exponential loss)",
    known="cannot be checked",
    needs={"trainer": ("constant", "normalised", "dual"), "momentum": (0, 0.0)},
)
STEEPEST = Premise(
    name="limit in the trainer's norm",
    text="a trainer that descends in another norm has the limit of that norm, which stands beside "
    "it: margins of linear predictors go to the largest (Fan, Schmidt and Thrampoulidis, of steps "
    "like t^(-1/2); of sizes measured in every step by a line of this project; Adam without its "
    "constant: Zhang, Zou and Cao; of Lion it is measured); of more layers directions "
    "go to KKT points in the layers' norms, for smooth networks and falling steps (Gronich and "
    "Vardi), and the program of the global optimum is this project's own",
    known="cannot be checked",
    where={"trainer": words(SteepestTrainer)},
)
FULL_BATCHES = Premise(
    name="full batches",
    text="every step sees all samples",
    known="by construction",
    needs={"batch_size": (0,)},
)
LOSS_TO_0 = Premise(name="loss to 0", text="the loss tends to 0", known="cannot be checked")
DIRECTION = Premise(
    name="weights converge in direction",
    text="the weights converge in direction",
    known="cannot be checked",
)
MARGINS = Premise(
    name="positive limit margins",
    text="the limit direction has a positive margin on every sample",
    known="measured",
)
GRADIENTS = Premise(
    name="gradients converge in direction",
    text="the gradients of the loss with respect to the predictor of each context converge in "
    "direction",
    known="cannot be checked",
)
DUAL_NORMS = Premise(
    name="dual norms at most 1",
    text="every unit has a dual norm of at most 1: without it units may be wrongly dead, and the "
    "end is a KKT point that is not the optimum",
    known="measured",
)

ONE_LAYER = Premise(
    name="one hidden layer",
    text="there is one hidden layer: with more no theorem names the limit",
    known="measured",
)
LOCAL_OPTIMUM = Premise(
    name="strict local optimum",
    text="the point next to the network is a strict local optimum, up to rotations of units",
    known="proved",
)

PROPOSITION_B8 = (
    SEPARABLE, HOMOGENEOUS, GATES, LOSS, METHOD, STEEPEST, FULL_BATCHES, LOSS_TO_0,
    DIRECTION, MARGINS, GRADIENTS, DUAL_NORMS,
)  # fmt: skip
"""Those of proposition B.8 of Lippl, Abbott and Chung, and the last, which is left out there."""
