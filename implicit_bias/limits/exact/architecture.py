"""How coefficients follow from trained layers: all that norms, classes and decay depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .optimiser_norms import INDUCED, Form, InducedNorm, LayerNorms

if TYPE_CHECKING:
    from .class_norms import InducedOfClasses


@dataclass(frozen=True)
class Architecture:
    """The trained layers of a network with fixed gates, from the inputs to the scores.

    Attributes
    ----------
    depth : int
        Trained layers: the coefficients themselves with one, and a product with two or more.
    gated : bool
        Behind gates or contexts. Of two layers and more the first then has a row a unit, and of K
        outputs as many units behind each gate, or of the same contexts.
    n_contexts : int or None
        Contexts of a unit; None where it has a gate, or nothing.
    narrowest : int or None
        Units of the narrowest layer of linear layers.
    """

    depth: int = 1
    gated: bool = False
    n_contexts: int | None = None
    narrowest: int | None = None

    @property
    def form(self) -> Form:
        """What the tables of induced norms know it by."""
        if self.depth == 1:
            return "columns" if self.gated else "one layer"
        return "gated layer" if self.gated else "linear layers"

    def induced(self, norms: LayerNorms) -> InducedNorm | None:
        """Return the norm on the coefficients of one output; None where no table has it.

        Parameters
        ----------
        norms : pair of str
            Norms in which all layers but the last, and the last, go steepest.
        """
        return INDUCED[self.form].get(norms)

    def induced_of_classes(
        self, norms: LayerNorms, n_classes: int | None = None
    ) -> InducedOfClasses | None:
        """Return the norm on the coefficients of K outputs; None where no table has it.

        Parameters
        ----------
        norms : pair of str
            Norms in which all layers but the last, and the last, go steepest.
        n_classes : int, optional
            K: through a layer of less than K - 1 units the program is a bound alone.
        """
        from .class_norms import INDUCED_OF_CLASSES, MORE_LAYERS, OF_CONTEXTS

        found = INDUCED_OF_CLASSES[self.form].get(norms)
        if found is None:
            return None
        if self.n_contexts is not None and self.form == "gated layer":
            found = OF_CONTEXTS
        if self.depth > 2 and found.norm == "nuclear":
            found = MORE_LAYERS
        narrow = None not in (self.narrowest, n_classes) and self.narrowest < n_classes - 1  # type: ignore[operator]
        return replace(found, exact=found.exact and not narrow)
