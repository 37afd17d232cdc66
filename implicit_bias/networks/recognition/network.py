"""Recognised modules with the methods that measuring asks for."""

from __future__ import annotations

import torch
from torch import Tensor

from ..placed_data import GatedData
from .structure import Structure
from .subject import Subject, own_weights
from .units import UnitsForm


class RecognisedNetwork(torch.nn.Module):
    """A homogeneous module with its degree, which the module itself need not state.

    Parameters
    ----------
    subject : Subject
        Its network is shared, not copied.
    structure : Structure
        Homogeneous of a whole degree.
    """

    def __init__(self, subject: Subject, structure: Structure) -> None:
        super().__init__()
        degree = structure.homogeneity.whole_degree
        assert degree is not None
        self.module, self.degree = subject.network, degree

    def forward(self, X: Tensor, gates: Tensor | None) -> Tensor:
        """Return the scores (n,)."""
        scores: Tensor = self.module(X, gates)
        return scores


class UnitsNetwork(RecognisedNetwork):
    """A module of units below linear layers, with its coefficients and the norms of its units.

    Parameters
    ----------
    subject : Subject
    structure : Structure
        Of the form UNITS or LINEAR.
    """

    def __init__(self, subject: Subject, structure: Structure) -> None:
        super().__init__(subject, structure)
        assert structure.units is not None
        self.form: UnitsForm = structure.units

    def zeta(self) -> Tensor:
        """Return the coefficients (H, P) of every unit."""
        return self.form.zeta(own_weights(self.module))

    def unit_norms(self) -> Tensor:
        """Return the norms (H,) of the coefficients of every unit."""
        norms: Tensor = torch.linalg.vector_norm(self.zeta(), dim=1)
        return norms

    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: Tensor | None) -> Tensor:
        """Return the norms (H,) of ``sum_n coefficients_n phi_h(x_n)``."""
        features = self.form.features(Subject(self.module, GatedData(X, X[:, 0], gates)))
        v = torch.einsum("n,nhp->hp", coefficients, features)
        norms: Tensor = torch.linalg.vector_norm(v, dim=1)
        return norms
