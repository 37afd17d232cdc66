"""The table of models: what each limit is called, which theorem predicts it, what runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .options import Options, Reporter

if TYPE_CHECKING:
    from .report import Report

__all__ = ["MODELS", "Model"]

LIPPL = (
    "Lippl, Abbott and Chung, The implicit bias of gradient descent on generalized gated linear "
    "networks"
)


@dataclass(frozen=True)
class Model:
    """One predicted limit.

    Attributes
    ----------
    theorem : str
        The statement in a sentence, and where it stands.
    program : str
        The convex program in one line.
    run : callable
        `run(options, reporter)` predicts, trains, compares and returns a `Report`.
    """

    theorem: str
    program: str
    run: Callable[[Options, Reporter], Report]


def _gln(options: Options, reporter: Reporter) -> Report:
    from .pipelines.gln import run

    return run(options, reporter)


MODELS: dict[str, Model] = {
    "gln": Model(
        theorem=f"directional limit of a two-layer GLN is SVM-GLN ({LIPPL}, proposition B.8)",
        program="min sum_h ||zeta_h||_F  s.t.  y_n sum_h <zeta_h,c_h(n), x_n> >= 1",
        run=_gln,
    ),
}
