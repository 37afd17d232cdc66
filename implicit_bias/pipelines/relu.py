"""The pipeline of ReLU networks: one trained network beside four max-margin machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ..comparison import Sample, measure_network
from ..diagnostics import kkt_distance
from ..formulations.relu import RELU_SVMS, solve_relu_svms
from ..gate_changes import GateRecorder
from ..networks.relu import ReLU
from ..options import Options, Reporter, Seeds
from ..relu_comparison import compare_relu, view_relu
from ..relu_gating import HyperplaneGates
from ..report import Assumption, Report, Table
from ..training import train
from ..trajectory import Trajectory
from .classification import (
    load_data,
    network_results,
    provenance,
    require_device,
    setup_line,
    torch_dtype,
    trace,
    training_settings,
    write_frame,
    write_weights,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run_relu"]


def run_relu(options: Options, reporter: Reporter) -> Report:
    """Train a ReLU network, freeze what it learned in four ways, and compare all of them."""
    from ..models import MODELS

    seeds = Seeds.from_seed(options.seed)
    settings = training_settings(options, seeds)
    require_device(options.device)
    dataset = load_data(options, seeds)
    gating = HyperplaneGates(
        options.hidden_units, cutoffs=options.cutoffs, random_state=seeds.gating
    ).fit(dataset.X_train)
    samples = (
        Sample(dataset.X_train, dataset.y_train, None),
        Sample(dataset.X_val, dataset.y_val, None),
    )
    network = ReLU(
        dataset.X_train.shape[1],
        options.hidden_units,
        init=options.init,
        init_scale=options.init_scale,
        random_state=seeds.weights,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )
    theorem, setup = MODELS["relu"].theorem, setup_line(options, dataset)
    reporter.stage(f"training a ReLU network for {settings.n_steps} steps")
    recorder, report = GateRecorder(network, dataset.X_train), trace(reporter)

    def callback(step: int, n_steps: int, log_loss: float) -> None:
        recorder(step, n_steps, log_loss)
        report(step, n_steps, log_loss)

    try:
        trajectory = train(
            network,
            *samples[0],
            settings=settings,
            monitor=(samples[1].X, None),
            callback=callback,
        )
    except FloatingPointError as error:  # there is no prediction without learned gates
        raise ValueError(str(error)) from error
    reporter.stage(f"solving four SVMs ({options.solver})")
    views = [view_relu(network, sample.X, sample.y, gating) for sample in samples]
    limits = solve_relu_svms(views[0], solver=options.solver, tol=options.tol)
    reporter.stage("comparing")
    comparison = compare_relu(limits, network, *views)
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *samples[0]) if separates else None
    state = measure_network(network, *samples, kkt)
    flips = float(recorder.changes.since_start[-1])
    assumptions = (
        Assumption(f"the gates no longer change: {flips:.1%} of them changed since the start, and "
                   "nothing says that the rest will stay", None),
        Assumption("the network separates the training data", bool(separates)),
    )  # fmt: skip
    names, *rows = comparison.rows()
    network_rows = (
        ("smallest margin", f"{state.smallest_margin:.6g}"),
        ("sum of unit norms", f"{state.group_norm:.6g}"),
        ("training accuracy", f"{state.train_accuracy:.2%}"),
        ("validation accuracy", f"{state.val_accuracy:.2%}"),
        ("steps", str(int(trajectory.step[-1]))),
        ("log(1/loss)", f"{-trajectory.log_loss[-1]:.4g}"),
        ("gates changed since the start", f"{flips:.2%}"),
        ("KKT cosine", "-" if kkt is None else f"{kkt.cosine:.4f}"),
        ("KKT relative residual", "-" if kkt is None else f"{kkt.residual:.4g}"),
        ("seconds", f"{trajectory.seconds[-1]:.2f}"),
    )
    results = {
        "model": "relu",
        "theorem": theorem,
        **provenance(options, dataset),
        "limits": {key: getattr(limits, key).to_dict() for key in RELU_SVMS},
        **network_results(state, trajectory),
        "gate_changes": recorder.changes.to_dict(),
        "comparison": comparison.to_dict(),
        "assumptions": [asdict(assumption) for assumption in assumptions],
    }
    return Report(
        model="relu",
        theorem=theorem,
        setup=setup,
        assumptions=assumptions,
        tables=(
            Table("trained network", ("", "value"), network_rows),
            Table("four machines beside it", names, tuple(rows)),
        ),
        results=results,
        status=limits.lc.status,
        finished=trajectory.finished,
        artefacts={
            "limit.safetensors": limits.lc.save,
            "network.safetensors": write_weights(network),
            "gating.npz": gating.save,
            "trajectory.parquet": write_frame(trajectory),
        },
        figure=lambda: _figure(trajectory, recorder),
    )


def _figure(trajectory: Trajectory, recorder: GateRecorder) -> Figure:
    from matplotlib.figure import Figure

    from ..plots import plot_margins

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_margins(trajectory, left)
    changes = recorder.changes
    right.plot(changes.step, changes.since_start, color="tab:blue", marker=".")
    right.set_xscale("symlog", linthresh=1)
    right.set_xlim(-0.15, 1.3 * max(float(changes.step[-1]), 1.0))
    right.set_xlabel("gradient steps")
    right.set_ylabel("share of gates changed since the start")
    right.set_ylim(bottom=0)
    figure.suptitle("ReLU network: margin and gates over training")
    return figure
