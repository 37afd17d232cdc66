"""Parts of a run of gated linear networks: contexts, formulations, networks.

Networks are imported, and torch with them, where one is made.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...gates.hyperplanes import HyperplaneContexts
from ...limits.exact.architecture import Architecture
from ...runs.parts import ClassNetwork, Parts, n_outputs
from ...runs.setup import start
from .formulation import SVMGLN

if TYPE_CHECKING:
    from ...networks.copied import CopiedUnits
    from ...networks.gated.gln import GLN
    from ...networks.gated.shallow_gln import ColumnGLN, ShallowGLN
    from .model import GLNOptions


def gln(options: GLNOptions) -> Parts:
    """The GLN beside its limit."""
    return Parts(
        SVMGLN(options.contexts),
        partial(_deep, options),
        "GLN",
        partial(_contexts, options),
        architecture=Architecture(2, gated=True, n_contexts=options.contexts),
        joint=ClassNetwork(partial(_deep_of_classes, options)),
        size=_size(options),
    )


def gln_l2(options: GLNOptions) -> Parts:
    """The GLN beside its predictors under the plain norm, which is no network's limit here."""
    from .l2 import SVML2

    return Parts(
        SVML2(options.contexts),
        partial(_deep, options),
        "GLN",
        partial(_contexts, options),
        control=True,
        size=_size(options),
    )


def shallow_gln(options: GLNOptions) -> Parts:
    """One free predictor a global context."""
    from .shallow import ContextSVMs, context_columns

    return Parts(
        ContextSVMs(),
        partial(_shallow, options),
        "shallow GLN",
        partial(_contexts, options),
        architecture=Architecture(1, gated=True, n_contexts=options.contexts),
        joint=ClassNetwork(partial(_shallow_of_classes, options), context_columns),
        size=_size(options),
    )


def _size(options: GLNOptions) -> str:
    """Say how many units there are, and how many contexts each has."""
    counts = {"unit": options.hidden_units, "context": options.contexts}
    return " x ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items())


def _contexts(options: GLNOptions, seed: int) -> HyperplaneContexts:
    """Return unfitted contexts drawn by a seed."""
    return HyperplaneContexts(
        options.hidden_units, options.contexts, cutoffs=options.cutoffs, random_state=seed
    )


def _deep(options: GLNOptions, sample: Sample, seed: int) -> GLN:
    """Return an untrained network for a training sample."""
    from ...networks.gated.gln import GLN

    inputs = sample.X.shape[1]
    return GLN(inputs, options.hidden_units, options.contexts, **start(options, seed))


def _deep_of_classes(options: GLNOptions, sample: Sample, seed: int) -> CopiedUnits:
    """Return an untrained network with a unit a class of the same contexts."""
    from ...networks.copied import CopiedUnits
    from ...networks.gated.gln import GLN

    n_inputs, copies = sample.X.shape[1], n_outputs(sample)
    n_units = sample.required_gates.shape[1] * copies
    begin = start(options, seed)
    return CopiedUnits(GLN(n_inputs, n_units, options.contexts, n_outputs=copies, **begin), copies)


def _shallow(options: GLNOptions, sample: Sample, seed: int) -> ShallowGLN:
    """Return an untrained network for a training sample."""
    from ...networks.gated.shallow_gln import ShallowGLN

    return ShallowGLN(sample.X.shape[1], sample.required_gates, **start(options, seed))


def _shallow_of_classes(options: GLNOptions, sample: Sample, seed: int) -> ColumnGLN:
    """Return an untrained network of as many outputs as there are classes."""
    from ...networks.gated.shallow_gln import ColumnGLN

    n_inputs, K = sample.X.shape[1], n_outputs(sample)
    return ColumnGLN(n_inputs, sample.required_gates, n_outputs=K, **start(options, seed))
