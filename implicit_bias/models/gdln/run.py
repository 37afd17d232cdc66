"""The run of gated linear networks: gradient flow in closed form beside ReLU training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...drawing.figures import Row
from ...networks.protocols import check_device
from ...networks.relu_mean import ReLUMean
from ...networks.weights import as_tensor
from ...quantities.table import lines
from ...reports.columns import training_columns
from ...reports.finding import Assumption, Finding, Table, Writer
from ...reports.report import Report, gather
from ...reports.writers import write_arrays
from ...runs.folder import Keeping
from ...runs.model import Model
from ...runs.progress import Progress
from ...runs.seeds import Seeds
from ...runs.setup import Heading, provenance, schedule_of, torch_dtype, trains
from ...training.loop import train
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .comparison import compare_with_gdln, path_errors
from .data import RingData, make_ring
from .figure import plot_localisation, plot_losses, plot_sign_flips, plot_units
from .flow import gated_flow
from .formulation import solve_gated_ols
from .limit import GatedOLS
from .training import WeightsObserver, descent_path, flow_times

__all__ = ["run_gdln"]

NAME = "gated least squares"
UNITS = 4  # shown in the picture
# Where the unfinished runs of the ReLU network and of its gated twin are kept.
RUN, TWIN = "run.safetensors", "gated-run.safetensors"
FILES = {"relu": "network.safetensors", "gated": "gated-network.safetensors"}
Trained = tuple[torch.nn.Module, Trajectory]


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run is given.

    Attributes
    ----------
    options : GDLNOptions
    progress, keeping : Progress, Keeping
    data : RingData
    settings : TrainingSettings
        Plain steps on the squared loss.
    start : (K, D) array
        The weights that both networks begin from.
    gates : (n, K) boolean array
        Those of the ReLU network with these weights, which its twin keeps.
    """

    options: Any
    progress: Progress
    keeping: Keeping
    data: RingData
    settings: TrainingSettings
    start: NDArray[np.float64]
    gates: NDArray[np.bool_]


def run_gdln(model: Model, options: Any, progress: Progress, keeping: Keeping) -> Report:
    """Predict a gated linear network and its ReLU twin on ring data, train both, compare.

    Raises
    ------
    ValueError
        If an option is out of range, before any long work.
    """
    seeds = Seeds.from_seed(options.seed)
    check_device(options.device)
    if not options.init_scale > 0:
        raise ValueError(
            f"`--init-scale` must be positive, got {options.init_scale}: zero opens every gate"
        )
    data = _data(model, options, seeds.data)
    settings = TrainingSettings(
        loss="squared",
        batch_size=options.batch_size,
        schedule=schedule_of(options),
        random_state=seeds.batches,
    )
    network = ReLUMean(
        data.X.shape[1],
        options.hidden_units,
        init_scale=options.init_scale,
        random_state=seeds.weights,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )
    start = network.w.detach().double().cpu().numpy().copy()
    gates = network.open_gates(as_tensor(data.X).to(network.w)).cpu().numpy()
    setup = Setup(options, progress, keeping, data, settings, start, gates)
    return gather(_heading(model, setup), _find(setup, network), keeping)


def _heading(model: Model, setup: Setup) -> Heading:
    data = setup.data
    about = {
        "description": data.description,
        "n_train": len(data.y),
        "n_inputs": int(data.X.shape[1]),
        "sha256": data.digest(),
    }
    return Heading(
        model=model.name,
        theorem=model.theorem,
        program=model.program,
        setup=f"{data.description}; {len(data.y)} samples; seed {setup.options.seed}",
        title="ReLU units beside gated linear ones, and both over training",
        record={"model": model.name, "theorem": model.theorem}
        | provenance(setup.options)
        | {"data": about},
    )


def _data(model: Model, options: Any, seed: int) -> RingData:
    """The samples of the user's own, or those that the options name."""
    if model.given is not None:
        if options.length_scales is not None:
            raise ValueError("`length_scales` is of bundled data, beside `X` of your own: leave it")
        X, y = model.given.X, model.given.y
        return RingData(X, y, f"{len(X)} samples of the caller's own")
    return make_ring(options.data, options.n_train, options.length_scales, random_state=seed)


def _find(setup: Setup, relu: ReLUMean) -> Iterator[Finding]:
    """What there is to find, each as soon as it is known."""
    data, n_steps, twin = setup.data, setup.settings.n_steps, relu.frozen()
    setup.progress.stage("solving the gated least-squares limit at the initial gates")
    limit = solve_gated_ols(data.X, data.y, setup.gates, tol=setup.options.tol)
    yield _limit(limit)
    if not trains(setup.options):
        return
    setup.progress.stage(f"training a ReLU network for {n_steps} steps")
    path = _train(setup, relu, None, RUN, resume=setup.keeping.resume)
    yield _trained(setup, (relu, path))
    setup.progress.stage("comparing")
    yield _comparison(setup, path)
    if not path.finished:
        return
    setup.progress.stage(f"training its gated linear twin for {n_steps} steps")
    kept = setup.keeping.state(TWIN)
    begun = kept is not None and kept.exists()
    of_twin = _train(setup, twin, setup.gates, TWIN, resume=setup.keeping.resume and begun)
    yield _trained(setup, (relu, path), (twin, of_twin))
    yield _limit(limit, _off_path(setup, of_twin))


def _train(
    setup: Setup, network: torch.nn.Module, gates: Any, state: str, *, resume: bool
) -> Trajectory:
    return train(
        network,
        setup.data.X,
        setup.data.y,
        gates,
        settings=setup.settings,
        callback=setup.progress.training(),
        observer=WeightsObserver(setup.data.X),
        state=setup.keeping.state(state),
        resume=resume,
    )


def _off_path(setup: Setup, twin: Trajectory) -> float:
    """How far the gated network came off full-batch descent in closed form."""
    flow = gated_flow(setup.data.X, setup.data.y, setup.gates, setup.start)
    path = descent_path(flow, setup.settings, twin.step)
    return float(path_errors(twin.observed["weights"], path).max())


def _limit(limit: GatedOLS, off_path: float | None = None) -> Finding:
    """The least-squares limit of the initial gates, and how well its path was kept to."""
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
        ("rank of the gated moments", f"{limit.rank} of {limit.zeta.size}"),
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
            Assumption("the gates of the gated linear network are frozen (by construction)", True),
        ),
        statuses={NAME: limit.status},
        certificates={NAME: record},
        objects={"limit": limit},
        row=cells,
    )


def _trained(setup: Setup, relu: Trained, twin: Trained | None = None) -> Finding:
    """The ReLU network over training, and its gated twin once it is trained too."""
    both = {"relu": relu} | ({} if twin is None else {"gated": twin})
    path, of_twin = relu[1], None if twin is None else twin[1]
    return Finding(
        "network",
        files={FILES[key]: _write_path(setup, run) for key, (_, run) in both.items()},
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


def _write_path(setup: Setup, run: Trajectory) -> Writer:
    """A writer of the weights (T, K, D) of every checkpoint, its steps, times and losses (T,)."""
    times = flow_times(setup.settings, run.step)
    return write_arrays(
        {"weights": run.observed["weights"], "step": run.step, "time": times, "loss": run.loss}
    )


def _comparison(setup: Setup, relu: Trajectory) -> Finding:
    """The ReLU network beside gated networks with its gates before and after training."""
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
            ),
        ),
    )
