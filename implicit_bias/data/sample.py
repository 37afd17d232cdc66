"""One part of the data with its gates, as limits and networks are given it."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Sample"]


class Sample(NamedTuple):
    """Inputs (n, D), labels (n,) in {-1, +1} and gates (n, ...) of one part of the data."""

    X: Any
    y: Any
    gates: Any
