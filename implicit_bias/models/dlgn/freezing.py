"""A DLGN with its gates frozen: the data as its value network sees them, and their program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...data.arrays import Floats
from ...data.sample import Sample
from ...gates.layered import LinearGates
from ...limits.exact.frelu import SVMFReLU
from ...limits.exact.path_lasso import PathLasso
from ...limits.formulation import Formulation
from ...networks.gated.dlgn import DLGN
from ...runs.reports.bounds import BOUND
from ...runs.setup import SampleSetup
from .formulation import ConstantExperts
from .training import gating_of


@dataclass(frozen=True, eq=False, kw_only=True)
class DLGNSetup(SampleSetup):
    """The setup of a run, with its network, whose half-spaces train first.

    Attributes
    ----------
    network : DLGN
    phases : tuple of (float, int)
        Steepness of the soft gates, and steps at it.
    """

    network: DLGN
    phases: tuple[tuple[float, int], ...]

    @property
    def constant(self) -> bool:
        """True with constant experts."""
        return self.network.constant_experts

    @property
    def exact(self) -> bool:
        """True if a theorem names the limit: with one hidden layer."""
        return len(self.network.widths) == 1

    @cached_property
    def half_spaces(self) -> LinearGates:
        """The gates, frozen as they are when they are first asked for."""
        return gating_of(self.network)

    @cached_property
    def seen(self) -> tuple[Sample, Sample]:
        """Both parts of the data as the value network sees them, behind frozen gates."""
        train, held_out = (
            seen_inputs(self.half_spaces, self.constant, one.X, one.y) for one in self.samples
        )
        return train, held_out

    @property
    def formulation(self) -> Formulation[Any]:
        """The program: the limit itself with one hidden layer, the bound with more."""
        if not self.exact:
            return PathLasso(self.network.widths)
        return ConstantExperts() if self.constant else SVMFReLU()

    @property
    def program_name(self) -> str:
        """Name of the program that is solved."""
        if not self.exact:
            return BOUND
        return ConstantExperts.name if self.constant else "group lasso"


def seen_inputs(gating: LinearGates, constant: bool, X: Floats, y: Any) -> Sample:
    """Samples as the value network sees them: inputs are ones where its experts are constant."""
    return Sample(np.ones_like(X) if constant else X, y, gating.transform(X).astype(float))
