"""Figures and axes that a notebook shows as the last line of a cell, without pyplot."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

RESOLUTION = 100  # dots per inch of what a notebook shows


class ShownFigure(Figure):
    """A figure that notebooks display."""

    def draw(self, renderer: Any) -> None:
        """Draw it, laid out twice where panels have a fixed aspect.

        The first layout takes such panels for larger than they come out, and may cut their labels.
        """
        engine = self.get_layout_engine()
        if engine is not None and any(ax.get_aspect() != "auto" for ax in self.axes):
            engine.execute(self)
        super().draw(renderer)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=RESOLUTION)
        return content.getvalue()


class ShownAxes(Axes):
    """Axes for which notebooks display their figure."""

    def _repr_png_(self) -> bytes:
        figure: Any = self.figure
        picture: bytes = figure._repr_png_()
        return picture


def own_axes() -> Axes:
    """Return axes on a new figure."""
    figure = ShownFigure(figsize=(6.4, 4.0), layout="constrained")
    axes: Axes = figure.subplots(subplot_kw={"axes_class": ShownAxes})
    return axes
