"""The run of ReLU networks that begin near zero, on orthogonally separable data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from ..._solve import to_numpy
from ...data.arrays import Floats
from ...data.orthants import is_orthogonally_separable
from ...data.sample import Sample
from ...drawing.figures import Row
from ...drawing.folds import fold_row
from ...drawing.runs import run_panels
from ...equivalence.measure import MeasureDistance, measure_distance
from ...equivalence.reading import as_weights
from ...equivalence.weights import ReLUWeights
from ...measures.comparison import compare, measure_network
from ...measures.kkt import kkt_distance
from ...networks.balanced_relu import BalancedReLU, ResidualReLU
from ...quantities.formatting import number
from ...quantities.table import TABLE
from ...reports.finding import Assumption, Finding, Table
from ...reports.findings import compared, evidence, solved, trained, usable
from ...reports.report import Report
from ...reports.verdict import decide
from ...runs.fit import fit
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.setup import SampleSetup, Setup, data_record, prepare, torch_dtype, training_settings
from ...runs.starts import Start, starts_finding, train_starts
from ...training.trainers import check_trainer
from ...training.trajectory import Trajectory
from .diagnosis import OrthosepDistances, diagnose_orthosep, ratio
from .figure import plot_orthosep
from .formulation import NotOrthogonallySeparable, OrthogonallySeparable, solve_orthosep
from .limit import OrthosepLimit
from .schedule import halving_phases

__all__ = ["layer_rows", "layer_singular_values", "orthosep_programs", "run_orthosep"]

Network = BalancedReLU | ResidualReLU
NAME = OrthogonallySeparable.name
# Of a kind's share of the norms in the program: networks below are far from both kinds.
KINDS_STAY = 0.5
NETWORKS = {"two-layer": "ReLU network", "residual": "residual ReLU network"}
RESIDUAL = (
    "nothing is proved for the residual network: its skips carry no weights, so it is not "
    "homogeneous, and theorem 3.1 and corollary 3.1 are about two layers. Conjectured from "
    "experiments: every layer comes near rank two, and the rows of the first turn to the two "
    "max-margin vectors of the theorem (Phuong, Underspecification in Deep Learning, section 3.4.2)"
)


LEAKY = (
    "on orthogonally separable data neurons of a leaky network, from any balanced start, turn to "
    "the two vectors of one program, the least norm of all widths, if it separates the data and "
    "neither kind vanishes beside the other: an argument of this package (notes of "
    "solve_orthosep) on the KKT points of Lyu and Li, Gradient descent maximizes the margin of "
    "homogeneous neural networks. Theorem 3.1 is about ReLUs"
)


def run_orthosep(setup: Setup) -> Report:
    """Predict the limit of a small-initialisation ReLU network, train one, compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    options = setup.options
    if options.starts > 1 and options.network == "residual":
        raise ValueError(
            f"`--starts {options.starts}` is for `--network two-layer`: permutations and scales "
            "are no symmetries of a network with skip connections"
        )
    if options.slope and options.network == "residual":
        raise ValueError(
            f"`--slope {options.slope:g}` is for `--network two-layer`: nothing is known of leaky "
            "units beside skip connections"
        )
    whole = _with_phases(prepare(setup))
    network = _network(whole, setup.seeds.weights)
    check_trainer(options.trainer, network)
    leaky = f"leaky (slope {options.slope:g}) " if options.slope else ""
    title = f"{options.network} {leaky}ReLU network beside its two max-margin directions"
    theorem, source = "", ""
    if options.network == "residual":
        theorem, source = RESIDUAL, "none with skip connections: conjectured from experiments"
    elif leaky:
        theorem, source = LEAKY, "notes of solve_orthosep; Lyu and Li 2020"
    heading = whole.heading(data_record(whole.dataset), title=title, theorem=theorem, source=source)
    return gather(heading, _find(whole, network), setup.folder)


def orthosep_programs(setup: Setup) -> RunPrograms:
    """State both one-sided programs, as one.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there.
    """
    samples = prepare(setup)
    setup.progress.stage(f"stating {NAME} on {len(samples.train.y)} samples")
    note = RESIDUAL if setup.options.network == "residual" else ""
    problem = OrthogonallySeparable(setup.options.slope).literal(samples.train.X, samples.train.y)
    return RunPrograms(setup.model, samples.dataset.description, (stated(NAME, problem, note),))


def _with_phases(setup: SampleSetup) -> SampleSetup:
    """Fill in phases by which the network reaches its limit on these data, if none were chosen."""
    if setup.options.steps is not None:
        return setup
    steps, rates = zip(*halving_phases(setup.train.X), strict=True)
    options = replace(setup.options, steps=steps, learning_rate=rates)
    return replace(setup, options=options, settings=training_settings(options, setup.seeds))


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


def _find(setup: SampleSetup, network: Network) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    setup.progress.stage(f"solving both one-sided SVMs ({setup.options.solver})")
    limit = _predict(setup)
    yield solved(limit, NAME)
    if not (usable(limit) and setup.trains):
        return
    kind, n_steps = NETWORKS[setup.options.network], setup.settings.n_steps
    setup.progress.stage(f"training a {kind} for {n_steps} steps")
    trajectory = _train(setup, network, limit)
    panels = run_panels(trajectory, limit, to_numpy(limit.predictor(setup.held_out.X)))
    yield trained(network, trajectory, panels=panels)
    setup.progress.stage("comparing")
    yield _compared(setup, limit, network, trajectory)
    yield _neurons(setup, limit, network)
    if setup.options.starts > 1 and trajectory.finished:
        yield _starts(setup, limit, Start(network, trajectory))


def _predict(setup: SampleSetup) -> OrthosepLimit:
    X, y, _ = setup.train
    with warnings.catch_warnings():
        # Said among the assumptions.
        warnings.simplefilter("ignore", NotOrthogonallySeparable)
        options = setup.options
        return solve_orthosep(X, y, slope=options.slope, solver=options.solver, tol=options.tol)


def _train(setup: SampleSetup, network: Network, limit: OrthosepLimit) -> Trajectory:
    return fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        observer=OrthosepDistances(limit, *setup.samples, loss=setup.options.loss),
    )


def _compared(
    setup: SampleSetup, limit: OrthosepLimit, network: Network, trajectory: Trajectory
) -> Finding:
    homogeneous = isinstance(network, BalancedReLU)
    fitted = homogeneous and trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *setup.train) if fitted else None
    comparison = compare(limit, network, *setup.samples, kkt=kkt)
    state = measure_network(network, *setup.samples, kkt)
    assumptions = _of_the_data(setup.train, limit)
    if limit.slope:
        assumptions = (*assumptions[:1], *_of_leaky(limit, network, trajectory))
    found = compared(limit, NAME, setup.samples, state, trajectory, comparison, assumptions)
    beyond = "" if homogeneous else "nothing is proved for a network with skip connections"
    if not is_orthogonally_separable(setup.train.X, setup.train.y):
        beyond = "the theorem is about data that are orthogonally separable, and these are not"
    theory = {"theory": "none", "reason": beyond} if beyond else {}
    return replace(found, verdicts=(decide(evidence(limit, comparison, trajectory, **theory)),))


def _of_the_data(train: Sample, limit: OrthosepLimit) -> tuple[Assumption, ...]:
    separability = is_orthogonally_separable(train.X, train.y)
    return (
        Assumption(
            f"the data are orthogonally separable ({separability.message})",
            bool(separability),
            "orthogonally separable",
            "proved",
        ),
        Assumption(
            "the support examples span the inputs (theorem 3.1 assumes it; the corollary's "
            "constants hold without)",
            bool(limit.supports_span),
            "support examples span the inputs",
            "measured",
        ),
    )


def _of_leaky(
    limit: OrthosepLimit, network: Network, trajectory: Trajectory
) -> tuple[Assumption, ...]:
    """What the argument for leaky units asks of the network, as it is now."""
    assert isinstance(network, BalancedReLU)
    masses, positive = to_numpy(network.unit_norms()), to_numpy(network.a) > 0
    found = np.array([masses[positive].sum(), masses[~positive].sum()]) / masses.sum()
    wanted = to_numpy(limit.unit_norms) / limit.objective
    return (
        Assumption(
            "of leaky units: the network separates the training data",
            bool(trajectory.smallest_margin[-1] > 0),
            "separates",
            "measured",
        ),
        Assumption(
            f"of leaky units: neither kind vanishes (positive neurons have {found[0]:.1%} of all "
            f"norms, {wanted[0]:.1%} in the program)",
            bool(np.all(found >= KINDS_STAY * wanted)),
            "both kinds stay",
            "measured",
        ),
    )


def _neurons(setup: SampleSetup, limit: OrthosepLimit, network: Network) -> Finding:
    """Measure how near the network is to two kinds of neurons and, layer by layer, to rank two."""
    diagnosis = diagnose_orthosep(network, limit, *setup.samples, loss=setup.options.loss)
    transport = _transport(network, limit)
    folds = _folds(setup, limit, network)
    layers = layer_singular_values(network)
    shown = layers if len(layers) > 1 else []
    return Finding(
        "neurons",
        record={
            "diagnosis": diagnosis.to_dict(),
            "layer_singular_values": [values.tolist() for values in layers],
            "transport": None if transport is None else transport.to_dict(),
        },
        tables=(
            Table("neurons", ("", "value"), (*diagnosis.rows(), *_transport_rows(transport))),
            Table(
                "layers",
                ("", "singular values", "third / second (0)", "share of the top two (1)"),
                tuple(layer_rows(layers)),
            ),
        ),
        panels=(
            Row(3, partial(plot_orthosep, diagnosis, layers=shown), height=3.6),
            *([] if folds is None else [folds]),
        ),
        objects={"diagnosis": diagnosis, "transport": transport},
        row={} if transport is None else {"neuron_distance": transport.distance},
    )


def _folds(setup: SampleSetup, limit: OrthosepLimit, network: Network) -> Row | None:
    """Draw where the network bends, and where two neurons do; None with skip connections."""
    if not isinstance(network, BalancedReLU):
        return None
    networks = {"network": as_weights(network), "two neurons": _predicted(limit)}
    return fold_row(networks, setup.train)


def _predicted(limit: OrthosepLimit) -> ReLUWeights:
    W, a = (to_numpy(weights) for weights in limit.balanced_weights())
    return ReLUWeights.from_arrays([W, a[None]], slope=limit.slope)


def _transport(network: Network, limit: OrthosepLimit) -> MeasureDistance | None:
    """Measure the transport of a two-layer network's neurons to the predicted; None for deeper."""
    if not isinstance(network, BalancedReLU):
        return None
    return measure_distance(network, _predicted(limit))


def _starts(setup: SampleSetup, limit: OrthosepLimit, first: Start) -> Finding:
    """Train from further weights, and measure how far each is from the theorem's two neurons."""
    name = NETWORKS[setup.options.network]
    starts = [first, *train_starts(setup, partial(_network, setup), name)]
    predicted = _predicted(limit)
    far = [measure_distance(one.network, predicted).distance for one in starts]
    return starts_finding(starts, {"off the prediction": far})


def _transport_rows(transport: MeasureDistance | None) -> list[tuple[str, ...]]:
    if transport is None:
        return []
    one, gap = TABLE["neuron_distance"], number(max(transport.gap, 0.0), ".1g")
    return [(one.title, f"{one.text(transport.distance)} (gap {gap})")]


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
