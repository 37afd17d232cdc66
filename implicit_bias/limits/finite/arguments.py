"""Arguments of a fit that depend on each other: norm, penalty, radius, and coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._support.solve import (
    FitProgram,
    Norm,
    Regulariser,
    has_proximal,
    regulariser_of,
    require_finite,
    require_positive,
    require_real,
    require_shape,
    shown,
    to_numpy,
)
from ...data.arrays import Floats


def norm_name(norm: Any, problem: FitProgram, gated: bool) -> str:
    if norm is None:
        if problem.several:
            return "sum-nuclear" if gated else "nuclear"
        return "units" if gated else "l2"
    if isinstance(norm, str) and norm == "ridge":
        return norm
    found = Norm.of(norm)
    if not gated and not problem.several and found.name not in ("l2", "linf", "l1"):
        raise ValueError(
            f"`norm` {found.name!r} is one of matrices: coefficients of one score without gates "
            "have 'l2', 'linf', 'l1' or 'ridge'"
        )
    return found.name


def require_one_form(penalty: float | None, radius: float | None) -> None:
    """Refuse a penalty beside a radius, and one that is not positive."""
    if penalty is not None and radius is not None:
        raise ValueError("`penalty` and `radius` are two forms of one regulariser: give one")
    for name, value in (("penalty", penalty), ("radius", radius)):
        if value is not None:
            require_positive(name, value)


def checked_regulariser(
    norm: str, penalty: float | None, radius: float | None, loss: str
) -> Regulariser:
    require_one_form(penalty, radius)
    if norm == "ridge" and penalty is None:
        raise ValueError('`norm` "ridge" is half a squared norm: it needs `penalty`')
    if penalty is None and radius is None and loss != "squared":
        raise ValueError(
            f'`loss` {loss!r} has no interpolant: give `penalty` or `radius`, or loss="squared"'
        )
    if norm not in ("ridge",) and not has_proximal(Norm.of(norm)):  # type: ignore[arg-type]
        raise ValueError(
            f"`norm` {norm!r} has no solver here: one matrix has 'nuclear', 'spectral', and one a "
            "unit 'sum-nuclear', 'max-spectral'"
        )
    return regulariser_of(norm, penalty, radius, None)


def coefficients_of(network: Any, problem: FitProgram) -> Floats:
    """Return the coefficients of a network, or an array of them, in the shape of the problem's."""
    given = network
    if hasattr(network, "zeta") and callable(network.zeta):
        given = network.zeta()
        if hasattr(given, "detach"):
            given = given.detach()
    elif not hasattr(network, "shape") and not isinstance(network, list | tuple):
        raise TypeError(
            f"`network` must have `zeta`, or be an array of coefficients, got {shown(network)}"
        )
    require_real("network", given)
    B = np.asarray(to_numpy(given), dtype=np.float64)
    require_shape("network", B, problem.own_shape, "coefficients as the limit has them")
    require_finite("network", B)
    return B.reshape(problem.shape)
