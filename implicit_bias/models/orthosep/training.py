"""Training of small ReLU networks beside their limit on orthogonally separable data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch

from ..._support.solve import to_numpy
from ...data.arrays import Floats
from ...data.made.orthants import is_orthogonally_separable
from ...measures.comparison import compare as measure_beside
from ...measures.comparison import measure_network
from ...measures.equivalence.measure import measure_distance
from ...measures.equivalence.reading import as_weights
from ...measures.equivalence.weights import ReLUWeights
from ...measures.kkt import kkt_distance
from ...networks.balanced_relu import BalancedReLU, ResidualReLU
from ...quantities.assumptions import Assumption
from ...quantities.formatting import number
from ...quantities.said import Table
from ...quantities.table import TABLE
from ...runs.drawing.figures import Row
from ...runs.drawing.folds import fold_row
from ...runs.drawing.runs import run_panels
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.findings import compared, evidence
from ...runs.reports.trained import Trained
from ...runs.reports.verdict import decide
from ...runs.setup import SampleSetup, torch_dtype
from ...runs.stages import Found
from ...runs.starts import Start, starts_finding, train_starts
from ...training.trainers import check_trainer
from ...training.trajectory import Trajectory
from .diagnosis import OrthosepDistances, diagnose_orthosep, ratio
from .figure import plot_orthosep
from .formulation import OrthogonallySeparable
from .limit import OrthosepLimit
from .model import BOTH_STAY, LEAKY_SEPARATES, ORTHOGONAL, SUPPORTS_SPAN
from .run import OrthosepSetup

Network = BalancedReLU | ResidualReLU
NAME = OrthogonallySeparable.name
# Of a kind's share of the norms in the program: networks below are far from both kinds.
KINDS_STAY = 0.5
NETWORKS = {"two-layer": "ReLU network", "residual": "residual ReLU network"}


def begun(setup: SampleSetup) -> Network:
    """Return the untrained network of a run.

    Raises
    ------
    ValueError
        If the trainer does not take it.
    """
    network = _network(setup, setup.seeds.weights)
    check_trainer(setup.options.trainer, network)
    return network


def _network(setup: SampleSetup, seed: int) -> Network:
    options = setup.options
    residual = options.network == "residual"
    kind = ResidualReLU if residual else partial(BalancedReLU, slope=options.slope)
    return kind(
        setup.train.X.shape[1],
        options.hidden_units,
        init_scale=options.init_scale,
        random_state=seed,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )


def train(setup: OrthosepSetup, found: Found) -> Iterator[Finding]:
    """Train the network."""
    limit, network = found["limit"], setup.network
    kind, n_steps = NETWORKS[setup.options.network], setup.settings.n_steps
    setup.progress.stage(f"training a {kind} for {n_steps} steps")
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        observer=OrthosepDistances(limit, *setup.samples, loss=setup.options.loss),
    )
    panels = run_panels(trajectory, limit, to_numpy(limit.predictor(setup.held_out.X)))
    yield Finding("network", {"network": Trained(network, trajectory)}, panels=tuple(panels))


def compare(setup: OrthosepSetup, found: Found) -> Iterator[Finding]:
    """Compare the network with its limit, neuron by neuron too."""
    limit, network, trajectory = found["limit"], found["network"], found["trajectory"]
    homogeneous = isinstance(network, BalancedReLU)
    fitted = homogeneous and trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *setup.train) if fitted else None
    comparison = measure_beside(limit, network, *setup.samples, kkt=kkt)
    state = measure_network(network, *setup.samples, kkt)
    separability = is_orthogonally_separable(setup.train.X, setup.train.y)
    further: tuple[Assumption, ...] = (SUPPORTS_SPAN.found(holds=limit.supports_span),)
    if limit.slope:
        further = _of_leaky(limit, network, trajectory)
    assumptions = ORTHOGONAL.found(message=separability.message, holds=separability), *further
    beyond = "" if homogeneous else "nothing is proved for a network with skip connections"
    if not separability:
        beyond = "the theorem is about data that are orthogonally separable, and these are not"
    theory = {"theory": "none", "reason": beyond} if beyond else {}
    known = decide(evidence(limit, comparison, trajectory, **theory))
    beside = compared(limit, NAME, setup.samples, state, trajectory, comparison, assumptions)
    yield beside.but(verdicts=(known,))
    yield _neurons(setup, limit, network)


def train_others(setup: OrthosepSetup, found: Found) -> Iterator[Finding]:
    """Train from further weights, and measure how far each is from the theorem's two neurons."""
    first = Start(found["network"], found["trajectory"])
    name = NETWORKS[setup.options.network]
    starts = [first, *train_starts(setup, partial(_network, setup), name)]
    predicted = _predicted(found["limit"])
    far = [measure_distance(one.network, predicted).distance for one in starts]
    yield starts_finding(starts, {"off the prediction": far})


def _of_leaky(
    limit: OrthosepLimit, network: Network, trajectory: Trajectory
) -> tuple[Assumption, ...]:
    """What the argument for leaky units asks of the network, as it is now."""
    assert isinstance(network, BalancedReLU)
    masses, positive = to_numpy(network.unit_norms()), to_numpy(network.a) > 0
    found = np.array([masses[positive].sum(), masses[~positive].sum()]) / masses.sum()
    wanted = to_numpy(limit.unit_norms) / limit.objective
    return (
        LEAKY_SEPARATES.found(holds=trajectory.smallest_margin[-1] > 0),
        BOTH_STAY.found(
            found=found[0], wanted=wanted[0], holds=np.all(found >= KINDS_STAY * wanted)
        ),
    )


def _neurons(setup: SampleSetup, limit: OrthosepLimit, network: Network) -> Finding:
    """Measure how near the network is to two kinds of neurons and, layer by layer, to rank two."""
    diagnosis = diagnose_orthosep(network, limit, *setup.samples, loss=setup.options.loss)
    layers = layer_singular_values(network)
    shown = layers if len(layers) > 1 else []
    lines, panels = diagnosis.rows(), [Row(3, partial(plot_orthosep, diagnosis, layers=shown), 3.6)]
    transport = None
    if isinstance(network, BalancedReLU):  # others have no neurons of one sign
        predicted = _predicted(limit)
        transport, one = measure_distance(network, predicted), TABLE["neuron_distance"]
        gap = number(transport.gap, ".1g")
        lines.append((one.title, f"{one.text(transport.distance)} (gap {gap})"))
        folds = fold_row({"network": as_weights(network), "two neurons": predicted}, setup.train)
        panels += [] if folds is None else [folds]
    heads = ("", "singular values", "third / second (ideal 0)", "share of the top two (ideal 1)")
    return Finding.said(
        "neurons",
        record={
            "diagnosis": diagnosis.to_dict(),
            "layer_singular_values": [values.tolist() for values in layers],
            "transport": None if transport is None else transport.to_dict(),
        },
        tables=(
            Table("neurons", ("", "value"), tuple(lines)),
            Table("layers", heads, tuple(layer_rows(layers))),
        ),
        panels=tuple(panels),
        objects={"diagnosis": diagnosis, "transport": transport},
        row={} if transport is None else {"neuron_distance": transport.distance},
    )


def _predicted(limit: OrthosepLimit) -> ReLUWeights:
    """Return the two neurons of the limit, as a network."""
    W, a = (to_numpy(weights) for weights in limit.balanced_weights())
    return ReLUWeights.from_arrays([W, a[None]], slope=limit.slope)


def layer_singular_values(network: torch.nn.Module) -> list[Floats]:
    """Return singular values, descending, of every weight matrix of a network, in its order."""
    matrices = [to_numpy(p.double()) for p in network.parameters() if p.ndim == 2]
    return [np.linalg.svd(V, compute_uv=False) for V in matrices]


def layer_rows(layers: Sequence[Floats], *, n_shown: int = 4) -> list[tuple[str, ...]]:
    """Return lines of a table of singular values: layer, largest, third by second, top two.

    Parameters
    ----------
    layers : sequence of descending arrays
        As `layer_singular_values` gives them. Those with one value, output layers, are left out.
    n_shown : int
        Singular values to print.

    Returns
    -------
    list of four strings each
        The last two: the third value as a share of the second, 0 at rank two, and the share of
        the squared norm that the top two have, 1 at rank two.
    """
    lines: list[tuple[str, ...]] = []
    for layer, values in enumerate(layers, start=1):
        if len(values) < 2:
            continue
        third = ratio(float(values[2]), float(values[1])) if len(values) > 2 else 0.0
        energy = ratio(float(values[:2] @ values[:2]), float(values @ values))
        shown = ", ".join(number(value, ".3g") for value in values[:n_shown])
        lines.append((f"W_{layer}", shown, number(third, ".3f"), number(energy, ".4f")))
    return lines
