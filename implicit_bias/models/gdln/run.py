"""The run of gated linear networks: gradient flow in closed form and ReLU training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...drawing.figures import Row
from ...networks.relu_mean import ReLUMean
from ...networks.weights import as_tensor
from ...quantities.table import lines
from ...reports.columns import training_columns
from ...reports.finding import Assumption, Finding, Side, Table
from ...reports.report import Report
from ...reports.verdict import Evidence, decide
from ...reports.writers import write_path
from ...runs.fit import fit
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.setup import Setup, torch_dtype, training_settings
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .comparison import GDLNComparison, compare_with_gdln, path_errors
from .data import RingData, make_ring
from .figure import plot_localisation, plot_losses, plot_sign_flips, plot_units
from .flow import GatedFlow, gated_flow
from .formulation import GatedLeastSquares, solve_gated_ols
from .limit import GatedOLS
from .training import WeightsObserver, descent_path

__all__ = ["gdln_programs", "run_gdln"]

NAME = GatedLeastSquares.name
UNITS = 4  # shown in the picture
# The file of the unfinished run of the gated twin.
TWIN = "gated-run.safetensors"
NETWORKS = {"relu": "ReLU network", "gated": "gated network"}
FILES = {"relu": "network.safetensors", "gated": "gated-network.safetensors"}
Trained = tuple[torch.nn.Module, Trajectory]


@dataclass(frozen=True, eq=False, kw_only=True)
class GDLNSetup(Setup):
    """The setup of a run, with its data and the start of both networks.

    Attributes
    ----------
    data : RingData
        The training samples.
    settings : TrainingSettings
        Plain steps on the squared loss.
    start : (K, D) array
        Initial weights of both networks.
    gates : (n, K) boolean array
        Gates of the ReLU network at these weights, which are the gates of its twin throughout.
    """

    data: RingData
    settings: TrainingSettings
    start: NDArray[np.float64]
    gates: NDArray[np.bool_]


def run_gdln(setup: Setup) -> Report:
    """Predict a gated linear network and its ReLU twin on ring data, train both, compare.

    Raises
    ------
    ValueError
        If an option is out of range, before any long work.
    """
    whole, network = _prepare(setup)
    data = whole.data
    heading = setup.heading(
        {
            "description": data.description,
            "n_train": len(data.y),
            "n_inputs": int(data.X.shape[1]),
            "sha256": data.digest(),
        },
        title="ReLU units beside gated linear ones, and both over training",
        choices=f"{len(data.y)} samples",
    )
    return gather(heading, _find(whole, network), setup.folder)


def gdln_programs(setup: Setup) -> RunPrograms:
    """State gated least squares at the gates of the start.

    Raises
    ------
    ValueError
        If an option is out of range.
    """
    whole, _ = _prepare(setup)
    data = whole.data
    setup.progress.stage(f"stating {NAME} on {len(data.y)} samples")
    problem = GatedLeastSquares().literal(data.X, data.y, whole.gates)
    note = "of its minimisers the limit is that of least norm"
    return RunPrograms(setup.model, data.description, (stated(NAME, problem, note),))


def _prepare(setup: Setup) -> tuple[GDLNSetup, ReLUMean]:
    """Draw the data and the ReLU network, whose gates are those of the prediction."""
    options = setup.options
    if not options.init_scale > 0:
        raise ValueError(
            f"`--init-scale` must be positive, got {options.init_scale}: zero opens every gate"
        )
    data = _data(setup)
    network = ReLUMean(
        data.X.shape[1],
        options.hidden_units,
        init_scale=options.init_scale,
        random_state=setup.seeds.weights,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )
    whole = GDLNSetup(
        **setup.shared,
        data=data,
        settings=training_settings(options, setup.seeds, loss="squared"),
        start=network.w.detach().double().cpu().numpy().copy(),
        gates=network.open_gates(as_tensor(data.X).to(network.w)).cpu().numpy(),
    )
    return whole, network


def _data(setup: Setup) -> RingData:
    """Return the samples of the user's own, or those that the options name."""
    options, X = setup.options, setup.user_data.X
    if X is None:
        seed = setup.seeds.data
        return make_ring(options.data, options.n_train, options.length_scales, random_state=seed)
    if options.length_scales is not None:
        raise ValueError("`length_scales` is of bundled data, beside `X` of your own: leave it")
    return RingData(X, setup.user_data.y, f"{len(X)} samples of the caller's own")


def _find(setup: GDLNSetup, relu: ReLUMean) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    data, n_steps, twin = setup.data, setup.settings.n_steps, relu.frozen()
    setup.progress.stage("solving the gated least-squares limit at the initial gates")
    limit = solve_gated_ols(data.X, data.y, setup.gates, tol=setup.options.tol)
    yield _limit(limit)
    if not setup.trains:
        return
    setup.progress.stage(f"training a ReLU network for {n_steps} steps")
    path = _train(setup, relu, None)
    yield _trained(setup, (relu, path))
    setup.progress.stage("comparing")
    yield _comparison(setup, path)
    if not path.finished:
        return
    setup.progress.stage(f"training its gated linear twin for {n_steps} steps")
    of_twin = _train(setup, twin, setup.gates, state=TWIN, first=False)
    yield _trained(setup, (relu, path), (twin, of_twin))
    flow = gated_flow(data.X, data.y, setup.gates, setup.start)
    off_path = _off_path(flow, setup.settings, of_twin)
    yield _limit(limit, off_path)
    known = _of_twin(limit, flow, of_twin, off_path)
    values = {**known.near, **known.beside, "final_loss": float(of_twin.loss[-1])}
    side = Side(NETWORKS["gated"], values)
    yield replace(Finding.judged(known, key="twin"), sides=(side,))


def _train(setup: GDLNSetup, network: torch.nn.Module, gates: Any, **which: Any) -> Trajectory:
    X, y, observer = setup.data.X, setup.data.y, WeightsObserver(setup.data.X)
    return fit(setup, network, X, y, gates, settings=setup.settings, observer=observer, **which)


def _off_path(flow: GatedFlow, settings: TrainingSettings, twin: Trajectory) -> float:
    """Return how far the gated network came off full-batch descent in closed form."""
    path = descent_path(flow, settings, twin.step)
    return float(path_errors(twin.observed["weights"], path).max())


def _of_twin(limit: GatedOLS, flow: GatedFlow, twin: Trajectory, off_path: float) -> Evidence:
    """Return the evidence on the gated network, beside its limit and its predicted path."""
    weights = twin.observed["weights"][-1]
    return Evidence(
        status=limit.status,
        near={"limit_error": float(path_errors(weights[None], flow.limit[None])[0])},
        beside={"path_error": off_path},
        reason="the flow is as far away at this time: give more `--steps`",
        remark="" if twin.finished else "interrupted",
        network=NETWORKS["gated"],
    )


def _limit(limit: GatedOLS, off_path: float | None = None) -> Finding:
    """Return the finding of the least-squares limit, and of how near training was to its path."""
    cells = {
        "limit": NAME,
        "stationarity": limit.certificate.stationarity,
        "optimal_loss": limit.loss,
        "n_units": len(limit.unit_norms),
        "limit_seconds": limit.seconds,
        "path_error": off_path,
    }
    rows = (
        ("status of the least-squares limit", limit.status.name),
        *lines(cells, "stationarity", "optimal_loss"),
        ("rank of the gated moments", f"{limit.rank} of {math.prod(limit.zeta.shape)}"),
        *lines(cells, "path_error"),
    )
    table = Table("gated linear network: prediction and training", ("", "value"), rows)
    record = limit.to_dict()
    return Finding(
        "limit",
        record={"limit": record} | ({} if off_path is None else {"path_error": off_path}),
        tables=(table,),
        files={"limit.safetensors": limit.save},
        assumptions=(
            Assumption(
                "the gates of the gated linear network are frozen",
                True,
                "fixed gates",
                "by construction",
            ),
        ),
        statuses={NAME: limit.status},
        certificates={NAME: record},
        objects={"limit": limit},
        row=cells,
        sides=(
            Side(
                NAME,
                {"final_loss": limit.loss, "stationarity": limit.certificate.stationarity},
                predicted=True,
            ),
        ),
    )


def _trained(setup: GDLNSetup, relu: Trained, twin: Trained | None = None) -> Finding:
    """Return the finding of the ReLU network, and of its gated twin once it is trained too."""
    both = {"relu": relu} | ({} if twin is None else {"gated": twin})
    path, of_twin = relu[1], None if twin is None else twin[1]
    return Finding(
        "network",
        files={FILES[key]: write_path(run, setup.settings) for key, (_, run) in both.items()},
        panels=(
            partial(plot_losses, path, of_twin),
            partial(plot_localisation, trajectory=path),
            partial(plot_sign_flips, trajectory=path),
        ),
        objects={
            "network": {key: network for key, (network, _) in both.items()},
            "trajectory": {key: run for key, (_, run) in both.items()},
        },
        row=training_columns(path),
        finished=all(run.finished for _, run in both.values()),
    )


def _comparison(setup: GDLNSetup, relu: Trajectory) -> Finding:
    """Compare the ReLU network with gated networks of its gates before and after training."""
    found = compare_with_gdln(setup.data.X, setup.data.y, relu, setup.settings)
    flips = found.sign_flips
    n_shown = min(len(found.weights), UNITS)
    return Finding.measured(
        "comparison",
        found,
        tables=(
            Table(
                "ReLU network beside the prediction",
                ("", "value; of units: mean (least to largest)"),
                tuple(found.rows()),
            ),
        ),
        panels=(Row(n_shown, partial(plot_units, comparison=found)),),
        assumptions=(
            Assumption(
                f"the gates of the ReLU network stay as they began: {flips:.1%} of them changed",
                flips == 0,
                "gates of the ReLU network stay",
                f"{flips:.1%} changed",
            ),
        ),
        sides=(
            Side(
                NETWORKS["relu"],
                {
                    "limit_error": found.prediction("initial", limit=True).relative_error,
                    "final_loss": found.loss,
                    "gate_changes": flips,
                },
            ),
        ),
        verdicts=(decide(_of_relu(found)),),
    )


def _of_relu(found: GDLNComparison) -> Evidence:
    """Return the evidence on the ReLU network: the theorem is about gates that stay."""
    own = found.prediction("initial", limit=True).relative_error
    if found.sign_flips == 0:
        reason = "its predicted path is as far away at this time: give more `--steps`"
        return Evidence(near={"limit_error": own}, reason=reason, network=NETWORKS["relu"])
    after = found.prediction("final", limit=True).relative_error
    reason = (
        f"{found.sign_flips:.1%} of its gates changed, so that no theorem names its limit; it is "
        f"{after:.1%} off the limit that its last gates would have"
    )
    return Evidence(theory="none", reason=reason, network=NETWORKS["relu"])
