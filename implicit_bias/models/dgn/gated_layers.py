"""Parts of a run of deep gated networks: gates of every layer, networks behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._support.kinds import require_sizes
from ...data.arrays import Floats
from ...data.sample import Sample
from ...gates.hyperplanes import HyperplaneContexts
from ...gates.layered import LinearGates, NetworkGates
from ...gates.random_gates import RandomGates
from ...limits.kernels.tangent import empirical_ntk
from ...networks.gated.deep_gln import DeepGLN
from ...networks.gated.dgn import DGN
from ...networks.relu import DeepReLU
from ...options.fields import flag
from ...runs.setup import SampleSetup, start
from ...runs.user_data import USERS_OWN, UserData, gates_of
from .model import DGNOptions

# An option, when it is obeyed, and what it is then if nothing was said.
_OBEYED: tuple[tuple[str, str, str, Any], ...] = (
    ("contexts", "gating", "contexts", 2),
    ("gate_rate", "gating", "random", 0.5),
    ("starts", "regime", "rich", 4),
    ("output_scales", "regime", "lazy", (1e2, 1e3, 1e4)),
)


@dataclass(frozen=True, kw_only=True)
class OwnGating(DGNOptions):
    """The options behind gates of the user's own, whose layers may differ in width."""

    widths: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class DGNSetup(SampleSetup):
    """The setup of a run, with its first network."""

    @cached_property
    def network(self) -> DGN | DeepGLN:
        """The untrained network."""
        return make_network(self.options, self.dataset.X_train.shape[1], self.seeds.weights)

    @cached_property
    def kernel(self) -> Floats:
        """The tangent kernel (n, n) of the untrained network on the training data."""
        return empirical_ntk(self.network, self.train.X, self.train.gates)


def resolved(options: DGNOptions, given: UserData) -> DGNOptions:
    """Fill in the options that follow from others, or from gates of the user's own.

    Raises
    ------
    ValueError
        If an option is given that the others leave without effect, a number is out of range, or
        the user's gates do not come in layers.
    """
    if given.gates is None:
        return _obeyed(options)
    rest = _obeyed(replace(options, contexts=None))
    widths = _layers_of(given, rest.depth)
    largest = max(int(gates.max()) for gates in given.gates)
    of_contexts = largest > 1 or hasattr(given.gating, "n_contexts")
    follow = {
        "contexts": options.contexts if of_contexts else None,
        "depth": len(widths) + 1,
        "hidden_units": max(widths),
        "widths": widths,
    }
    return OwnGating(**{**asdict(rest), **follow})


def _layers_of(given: UserData, depth: int) -> tuple[int, ...]:
    """Return the units of every layer of a user's gates: as these say, or equal shares."""
    assert given.gates is not None
    name, n_columns = type(given.gating).__name__, given.gates[0].shape[1]
    if given.widths is not None:
        if sum(given.widths) == n_columns:
            return given.widths
        raise ValueError(
            f"`gating` ({name}) says it has layers of {given.widths} units, and gives {n_columns} "
            "columns: one a unit, layer after layer"
        )
    if n_columns % (depth - 1):
        raise ValueError(
            f"`gating` ({name}) gives {n_columns} columns, which the {depth - 1} gated layers of "
            f"`depth` {depth} cannot share equally: give it `widths`, the units of every layer, or "
            "choose another `depth`"
        )
    return (n_columns // (depth - 1),) * (depth - 1)


def _obeyed(options: DGNOptions) -> DGNOptions:
    """Fill in the defaults of options that others bring in; refuse those without effect."""
    if options.depth < 2:
        raise ValueError(
            f"`--depth {options.depth}` leaves a network without a gated layer: take 2 or more, or "
            "the model linear"
        )
    found: dict[str, Any] = {}
    for name, other, value, usual in _OBEYED:
        given, obeyed = getattr(options, name), getattr(options, other) == value
        if given is not None and not obeyed:
            raise ValueError(
                f"`{flag(name)}` is for `{flag(other)} {value}`, and this run has "
                f"`{flag(other)} {getattr(options, other)}`: leave one of them out"
            )
        found[name] = usual if obeyed and given is None else given
    rate, scales = found["gate_rate"], found["output_scales"]
    if rate is not None and not 0 < rate <= 1:
        raise ValueError(f"`--gate-rate` must lie in (0, 1], got {rate}: the share of open gates")
    if scales is not None and not all(0 < scale < np.inf for scale in scales):
        raise ValueError(f"`--output-scales` must be positive and finite, got {scales}")
    return replace(options, **found)


def widths_of(options: DGNOptions) -> tuple[int, ...]:
    """Units of each hidden layer."""
    if isinstance(options, OwnGating):
        return options.widths
    units, n_square = options.hidden_units, max(options.depth - 2, 0)
    require_sizes("weights", {"hidden_units": units}, (n_square, units, units))
    return (units,) * (options.depth - 1)


def make_network(options: DGNOptions, n_inputs: int, seed: int) -> DGN | DeepGLN:
    """The untrained network."""
    begins, widths = start(options, seed), widths_of(options)
    if options.contexts is not None:
        return DeepGLN(n_inputs, widths=widths, n_contexts=options.contexts, **begins)
    return DGN(n_inputs, widths=widths, gate_rate=options.gate_rate or 0.5, **begins)


def network_name(options: DGNOptions) -> str:
    """Name of the network, its size included."""
    widths = widths_of(options)
    n_hidden = len(widths)
    units = widths[0] if len(set(widths)) == 1 else "-".join(map(str, widths))
    behind = {
        USERS_OWN: "gates of the caller's own",
        "random": "random gates",
        "relu": "the gates of an untrained ReLU network",
        "learned": "gates that a ReLU network has learned",
        "dlgn": "half-spaces of a deep linear network",
        "contexts": f"{options.contexts} contexts a unit",
    }
    layers = f"{n_hidden} gated layer" + ("" if n_hidden == 1 else "s")
    return f"network of {layers} of {units} behind {behind[options.gating]}"


def gates_network(setup: DGNSetup) -> DeepReLU | None:
    """The untrained ReLU network that gates are copied from, of their widths; None without."""
    options = setup.options
    if options.gating not in ("relu", "learned"):
        return None
    begins = start(options, setup.seeds.gating)
    # The starts of gated networks that a ReLU network has not are of about the size of this one.
    if begins["init"] in ("sign", "gaussian"):
        begins["init"] = "kaiming"
    return DeepReLU(setup.train.X.shape[1], widths_of(options), **begins)


def gated(setup: DGNSetup, relu: DeepReLU | None) -> DGNSetup:
    """The run with its gates: of the training inputs, and of held-out ones where there are any."""
    options, X = setup.options, setup.dataset.X_train
    if options.gating == USERS_OWN:
        return setup
    widths, seed = widths_of(options), setup.seeds.gating
    gating: Any
    if options.gating == "random":
        gating = RandomGates(widths=widths, rate=options.gate_rate, random_state=seed)
    elif options.gating == "dlgn":
        gating = LinearGates(X.shape[1], widths=widths, random_state=seed)
    elif options.gating == "contexts":
        gating = HyperplaneContexts(sum(widths), options.contexts, random_state=seed)
    else:
        gating = NetworkGates(relu)
    gating.fit(X)
    # Random gates belong to the samples that they were drawn for.
    held_out = None if options.gating == "random" else gates_of(gating, setup.dataset.X_val)
    return replace(setup, gating=gating, gates=(gates_of(gating, X), held_out))


def as_begun(setup: DGNSetup) -> tuple[DGNSetup, str]:
    """The run with its gates before any are learned, and what that leaves out of its programs."""
    note = ""
    if setup.options.gating == "learned":
        note = "gates are those of the ReLU network as it starts, and a run trains it first"
    return gated(setup, gates_network(setup)), note


def held_out_of(setup: SampleSetup) -> Sample | None:
    """The held-out data with their gates; None where these say nothing of new inputs."""
    return None if setup.gates[1] is None else setup.held_out


def path_gates(options: DGNOptions, gates: Any) -> Any:
    """Gates of path features: contexts become one column each."""
    if options.contexts is None:
        return gates
    opened = gates[:, :, None] == np.arange(options.contexts)
    return opened.reshape(len(gates), -1).astype(float)
