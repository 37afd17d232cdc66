"""The table of models: what each limit is called, which theorem predicts it, what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..pipeline.options import Options, Reporter

if TYPE_CHECKING:
    from ..pipeline.report import Report

__all__ = ["MODELS", "OWN_OPTIONS", "Model", "check_options"]

LIPPL = (
    "Lippl, Abbott and Chung, The implicit bias of gradient descent on generalized gated linear "
    "networks"
)
SOUDRY = "Soudry et al., The implicit bias of gradient descent on separable data"
JI = "Ji and Telgarsky, Gradient descent aligns the layers of deep linear networks"


PHUONG = "Phuong, Underspecification in Deep Learning"
NOTES = "notes on gated deep linear networks and least squares, corrected"

OWN_OPTIONS = ("classes", "depth", "freeze_at", "length_scales", "network")
"""Options that only some models take; others refuse them rather than ignore them."""


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
    variants : mapping of (option, value) to mapping
        Further ones where that option has that value.
    takes : frozenset of str
        Those of `OWN_OPTIONS` that the model takes.
    """

    theorem: str
    program: str
    run: Callable[[Options, Reporter], Report]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    takes: frozenset[str] = frozenset()

    def defaults_for(self, choices: Mapping[str, Any]) -> Mapping[str, Any]:
        """The defaults of a run with these options."""
        chosen = dict(self.defaults)
        for (option, value), further in self.variants.items():
            if choices.get(option) == value:
                chosen.update(further)
        return chosen


def _separable(model: str) -> Callable[[Options, Reporter], Report]:
    """The pipeline of the family of that name, imported when it runs."""

    def run(options: Options, reporter: Reporter) -> Report:
        from ..pipeline.families import FAMILIES
        from ..pipeline.one_vs_rest import run_multiclass
        from ..pipeline.separable import run_separable

        pipeline = run_multiclass if options.classes == "all" else run_separable
        return pipeline(model, FAMILIES[model], options, reporter)

    return run


def _gdln(options: Options, reporter: Reporter) -> Report:
    from .gdln.run import run_gdln_pipeline

    return run_gdln_pipeline(options, reporter)


def _orthosep(options: Options, reporter: Reporter) -> Report:
    from .orthosep.run import run_orthosep

    return run_orthosep(options, reporter)


def _relu(options: Options, reporter: Reporter) -> Report:
    from .relu.run import run_relu

    return run_relu(options, reporter)


# One network a class: every class against the rest.
EVERY_CLASS = frozenset({"classes"})
SHORTER: Mapping[str, Any] = {"steps": (1500,)}

# The smallest gated network: two units, each gated by the sign of one coordinate of the plane.
PLANE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("data", "quadrants"): {"hidden_units": 2, "contexts": 2, "cutoffs": "axes"}
}

MODELS: dict[str, Model] = {
    "deep-linear": Model(
        theorem="directional limit of a deep linear network, end to end, is the hard-margin SVM "
        f"({JI})",
        program="min ||b||  s.t.  y_n <b, x_n> >= 1",
        run=_separable("deep-linear"),
        takes=EVERY_CLASS | {"depth"},
        variants={("classes", "all"): SHORTER},
        defaults={"depth": 3, "n_train": 60, "trainer": "annealed"},
    ),
    "frelu": Model(
        theorem="directional limit of a two-layer frozen-gate ReLU network is the group lasso over "
        f"its units ({LIPPL}, equation 22)",
        program="min sum_h ||zeta_h||  s.t.  y_n sum_h g_h(x_n) <zeta_h, x_n> >= 1",
        run=_separable("frelu"),
        takes=EVERY_CLASS,
        variants={("classes", "all"): SHORTER, **PLANE},
        defaults={"init": "kaiming", "trainer": "annealed"},
    ),
    "gdln": Model(
        theorem="gradient flow of a gated linear network with fixed gates, at every time, and its "
        f"limit, gated least squares ({NOTES})",
        program="min <(y - yhat)^2>, least norm;  w(t) = e^(-At/K^2) w(0) + K A^+ (I - "
        "e^(-At/K^2)) b",
        run=_gdln,
        takes=frozenset({"length_scales"}),
        defaults={
            "data": "ring",
            "hidden_units": 8,
            "batch_size": 0,
            "steps": (2000,),
            "learning_rates": (2.0,),
            "init_scale": 0.01,
        },
    ),
    "gln": Model(
        theorem=f"directional limit of a two-layer GLN is SVM-GLN ({LIPPL}, proposition B.8)",
        program="min sum_h ||zeta_h||_F  s.t.  y_n sum_h <zeta_h,c_h(n), x_n> >= 1",
        run=_separable("gln"),
        takes=EVERY_CLASS,
        variants={("classes", "all"): SHORTER, **PLANE},
        defaults={"trainer": "annealed"},
    ),
    "gln-l2": Model(
        theorem="control experiment, the limit of no network here: SVM-L2 has the GLN's predictors "
        f"but the plain norm ({LIPPL}, equations 23-25, corrected)",
        program="min ||beta||_2  s.t.  y_n <beta_c(n), x_n> >= 1,  beta_c = sum_h zeta_h,c_h",
        run=_separable("gln-l2"),
        takes=EVERY_CLASS,
        variants={("classes", "all"): SHORTER, **PLANE},
        defaults={"trainer": "annealed"},
    ),
    "linear": Model(
        theorem=f"directional limit of a linear predictor is the hard-margin SVM ({SOUDRY}, "
        "theorem 3)",
        program="min ||b||  s.t.  y_n <b, x_n> >= 1",
        run=_separable("linear"),
        takes=EVERY_CLASS,
        variants={("classes", "all"): SHORTER},
        defaults={"n_train": 60, "trainer": "dual"},
    ),
    "orthosep": Model(
        theorem="every surviving neuron of a small ReLU network turns to one of two max-margin "
        f"vectors ({PHUONG}, theorem 3.1 and corollary 3.1 with its constants)",
        program="w+- = argmin ||w||  s.t.  <w, x_n> >= 1 for the samples of one class",
        run=_orthosep,
        defaults={
            "data": "orthants",
            "hidden_units": 100,
            "init_scale": 0.01,
            "trainer": "normalised",
            "steps": (),
        },
        # As published: 500 epochs of 500 samples.
        variants={
            ("network", "residual"): {
                "trainer": "constant",
                "batch_size": 50,
                "steps": (5000,),
                "learning_rates": (0.1,),
                "init_scale": 0.05,
            }
        },
        takes=frozenset({"network"}),
    ),
    "relu": Model(
        theorem="no theorem names the limit of a ReLU network on general data; four machines that "
        f"freeze part of it stand in ({LIPPL}, section 5.2). Once its gates are frozen at a step, "
        "its limit is the group lasso on them (equation 22)",
        program="SVM-FReLU on random (RC) or learned gates (LC), hard-margin SVM on hidden "
        "activations (HL) or on gates alone",
        run=_relu,
        takes=frozenset({"depth", "freeze_at"}),
        defaults={"depth": 2, "hidden_units": 50, "init": "kaiming", "momentum": 0.9},
    ),
    "shallow-gln": Model(
        theorem="directional limit of a shallow GLN is one hard-margin SVM per global context, "
        f"weighed by their norms ({LIPPL}, theorem 3.1)",
        program="min sum_g ||beta_g||^2  s.t.  y_n <beta_g(n), x_n> >= 1",
        run=_separable("shallow-gln"),
        takes=EVERY_CLASS,
        variants={("classes", "all"): SHORTER, **PLANE},
        defaults={"hidden_units": 2, "n_train": 300, "trainer": "dual"},
    ),
}


def check_options(model: str, options: Options) -> None:
    """See that a model takes every one of `OWN_OPTIONS` that is not at its default.

    Raises
    ------
    ValueError
        With the models that take it.
    """
    for name in OWN_OPTIONS:
        value = getattr(options, name)
        if name in MODELS[model].takes or value == getattr(Options(), name):
            continue
        given = ",".join(f"{v:g}" for v in value) if isinstance(value, tuple) else value
        takers = ", ".join(key for key, entry in sorted(MODELS.items()) if name in entry.takes)
        raise ValueError(
            f"`--{name.replace('_', '-')} {given}` is not for the model {model}: "
            f"leave it out, or take one of {takers}"
        )
