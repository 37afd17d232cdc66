"""The table of models: what each limit is called, which theorem predicts it, what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .options import Options, Reporter

if TYPE_CHECKING:
    from .report import Report

__all__ = ["MODELS", "Model"]

LIPPL = (
    "Lippl, Abbott and Chung, The implicit bias of gradient descent on generalized gated linear "
    "networks"
)
SOUDRY = "Soudry et al., The implicit bias of gradient descent on separable data"
JI = "Ji and Telgarsky, Gradient descent aligns the layers of deep linear networks"


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
    defaults : mapping
        Options that differ from those of `Options` unless they are given, so that the
        assumptions of the theorem hold on the bundled data.
    """

    theorem: str
    program: str
    run: Callable[[Options, Reporter], Report]
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _separable(model: str) -> Callable[[Options, Reporter], Report]:
    """The pipeline of the family of that name, imported when it runs."""

    def run(options: Options, reporter: Reporter) -> Report:
        from .pipelines.families import FAMILIES
        from .pipelines.separable import run_separable

        return run_separable(model, FAMILIES[model], options, reporter)

    return run


MODELS: dict[str, Model] = {
    "deep-linear": Model(
        theorem="directional limit of a deep linear network, end to end, is the hard-margin SVM "
        f"({JI})",
        program="min ||b||  s.t.  y_n <b, x_n> >= 1",
        run=_separable("deep-linear"),
        defaults={"n_train": 100},
    ),
    "frelu": Model(
        theorem="directional limit of a two-layer frozen-gate ReLU network is the group lasso over "
        f"its units ({LIPPL}, equation 22)",
        program="min sum_h ||zeta_h||  s.t.  y_n sum_h g_h(x_n) <zeta_h, x_n> >= 1",
        run=_separable("frelu"),
        defaults={"init": "kaiming"},
    ),
    "gln": Model(
        theorem=f"directional limit of a two-layer GLN is SVM-GLN ({LIPPL}, proposition B.8)",
        program="min sum_h ||zeta_h||_F  s.t.  y_n sum_h <zeta_h,c_h(n), x_n> >= 1",
        run=_separable("gln"),
    ),
    "gln-l2": Model(
        theorem="control experiment, the limit of no network here: SVM-L2 has the GLN's predictors "
        f"but the plain norm ({LIPPL}, equations 23-25, corrected)",
        program="min ||beta||_2  s.t.  y_n <beta_c(n), x_n> >= 1,  beta_c = sum_h zeta_h,c_h",
        run=_separable("gln-l2"),
    ),
    "linear": Model(
        theorem=f"directional limit of a linear predictor is the hard-margin SVM ({SOUDRY}, "
        "theorem 3)",
        program="min ||b||  s.t.  y_n <b, x_n> >= 1",
        run=_separable("linear"),
        defaults={"n_train": 100},
    ),
    "shallow-gln": Model(
        theorem="directional limit of a shallow GLN is one hard-margin SVM per global context, "
        f"weighed by their norms ({LIPPL}, theorem 3.1)",
        program="min sum_g ||beta_g||^2  s.t.  y_n <beta_g(n), x_n> >= 1",
        run=_separable("shallow-gln"),
        defaults={"hidden_units": 2, "n_train": 300},
    ),
}
