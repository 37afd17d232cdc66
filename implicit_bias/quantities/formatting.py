"""Numbers as the tables show them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

DASH = "-"
"""What a table shows where a quantity is not defined."""


def number(value: float, style: str = ".4g") -> str:
    """Format a number, a dash where it is NaN or infinite.

    Quantities are NaN where they are not defined, and bounds of a program without a solution are
    infinite.
    """
    return format(value, style) if math.isfinite(value) else DASH


def share(value: float) -> str:
    """Format a share in per cent, to two decimal places."""
    return number(value, ".2%")


def degrees(radians: float) -> str:
    """Format an angle in degrees, to three decimal places."""
    return number(math.degrees(radians), ".3f")


def spread(values: ArrayLike) -> str:
    """Format the mean, the smallest and the largest of several numbers."""
    values = np.asarray(values, dtype=np.float64)
    mean, least, most = (
        number(float(v), ".4f") for v in (values.mean(), values.min(), values.max())
    )
    return f"{mean} ({least} to {most})"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows of equally many cells as text, each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def loss_in_words(log_loss: float) -> str:
    """Format exp(log_loss), as a power of ten where that underflows."""
    if log_loss > -700:
        return (
            f"{math.exp(log_loss):.4g}" if log_loss < 700 else power_of_ten(log_loss / math.log(10))
        )
    return f"1e{log_loss / math.log(10):.0f}"


def rounded(value: float) -> str:
    """Round a positive number to one digit, to a power of ten beyond thousands: 40, 3e9."""
    if not math.isfinite(value):
        return "more than 1e250" if value > 0 else DASH
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{value:.0f}" if value < 1e4 else f"{mantissa}e{int(exponent)}"


def power_of_ten(value: float) -> str:
    """Format 10 to the power of `value`, which may itself be large: 3e9, 10^(4e8)."""
    if not math.isfinite(value):
        return DASH if math.isnan(value) else "no number of steps"
    if value < 300:
        return rounded(10**value)
    return f"1e{value:.0f}" if value < 1e4 else f"10^({rounded(value)})"
