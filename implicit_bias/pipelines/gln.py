"""The pipeline of gated linear networks: contexts, SVM-GLN, training, comparison."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._solve import Status
from ..comparison import Comparison, Sample, compare, measure_network
from ..diagnostics import kkt_distance
from ..formulations import GLNLimit, solve_gln_svm
from ..gating import HyperplaneContexts
from ..networks import GLN
from ..options import Options, Reporter, Seeds
from ..report import Assumption, Report
from ..training import Trajectory, train
from .classification import (
    limit_alone,
    load_data,
    provenance,
    require_device,
    side_by_side,
    torch_dtype,
    trace,
    training_settings,
    write_frame,
    write_weights,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run"]


def run(options: Options, reporter: Reporter) -> Report:
    """Predict the limit of a GLN, train one, and compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    from ..models import MODELS

    seeds = Seeds.from_seed(options.seed)
    settings = training_settings(options, seeds)
    require_device(options.device)
    dataset = load_data(options, seeds)
    gating = HyperplaneContexts(
        options.hidden_units,
        options.contexts,
        cutoffs=options.cutoffs,
        random_state=seeds.gating,
    ).fit(dataset.X_train)
    samples = (
        Sample(dataset.X_train, dataset.y_train, gating.transform(dataset.X_train)),
        Sample(dataset.X_val, dataset.y_val, gating.transform(dataset.X_val)),
    )
    network = GLN(
        dataset.X_train.shape[1],
        options.hidden_units,
        options.contexts,
        init=options.init,
        init_scale=options.init_scale,
        random_state=seeds.weights,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )
    reporter.stage(f"solving SVM-GLN on {len(dataset.y_train)} samples ({options.solver})")
    limit = solve_gln_svm(
        *samples[0], n_contexts=options.contexts, solver=options.solver, tol=options.tol
    )
    theorem = MODELS["gln"].theorem
    results = {"model": "gln", **provenance(options, dataset), "limit": limit.to_dict()}
    if limit.status not in (Status.SOLVED, Status.INACCURATE):
        return limit_alone("gln", theorem, limit, results)
    reporter.stage(f"training a GLN for {settings.n_steps} steps")
    try:
        trajectory = train(
            network,
            *samples[0],
            settings=settings,
            monitor=(samples[1].X, samples[1].gates),
            callback=trace(reporter),
        )
    except FloatingPointError as error:  # diverged: the prediction stands, so report it
        return limit_alone("gln", theorem, limit, results, failure=str(error))
    reporter.stage("comparing")
    return _report(limit, network, trajectory, samples, gating, theorem, results)


def _report(
    limit: GLNLimit,
    network: GLN,
    trajectory: Trajectory,
    samples: tuple[Sample, Sample],
    gating: HyperplaneContexts,
    theorem: str,
    results: dict[str, object],
) -> Report:
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *samples[0]) if separates else None
    state = measure_network(network, *samples, kkt)
    comparison = compare(limit, network, *samples, kkt=kkt)
    scores = [limit.predictor(sample.X, sample.gates) for sample in samples]
    accuracies = tuple(
        float(np.mean(sample.y * s > 0)) for sample, s in zip(samples, scores, strict=True)
    )
    results |= {
        "limit": limit.to_dict() | {"train_accuracy": accuracies[0], "val_accuracy": accuracies[1]},
        "network": asdict(state)
        | {
            "steps": int(trajectory.step[-1]),
            "loss": float(trajectory.loss[-1]),
            "log_loss": float(trajectory.log_loss[-1]),
            "seconds": float(trajectory.seconds[-1]),
            "finished": trajectory.finished,
        },
        "comparison": comparison.to_dict(),
    }
    return Report(
        model="gln",
        theorem=theorem,
        assumptions=_assumptions(limit, comparison, trajectory),
        tables=side_by_side(limit, (accuracies[0], accuracies[1]), state, trajectory, comparison),
        results=results,
        status=limit.status,
        finished=trajectory.finished,
        artefacts={
            "limit.safetensors": limit.save,
            "network.safetensors": write_weights(network),
            "gating.npz": gating.save,
            "trajectory.parquet": write_frame(trajectory),
        },
        figure=lambda: _figure(limit, trajectory, samples[1], scores[1]),
    )


def _assumptions(
    limit: GLNLimit, comparison: Comparison, trajectory: Trajectory
) -> tuple[Assumption, ...]:
    dead = comparison.dead_dual_norms
    return (
        Assumption("the data are separable in these contexts (certified)", True),
        Assumption("the network is homogeneous, its loss exponential-like (by construction)", True),
        Assumption(
            f"the loss tends to 0: log(1/loss) is {-trajectory.log_loss[-1]:.3g} at the end, and "
            "directions converge like its inverse",
            None,
        ),
        Assumption(
            "every dead unit of the network has a dual norm of at most 1",
            None if comparison.dead_units and not dead else all(norm <= 1 for norm in dead),
        ),
    )


def _figure(
    limit: GLNLimit, trajectory: Trajectory, held_out: Sample, scores: NDArray[np.float64]
) -> Figure:
    from ..plots import plot_run

    return plot_run(trajectory, limit, scores, title="GLN and its predicted limit")
