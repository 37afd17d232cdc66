"""The pipeline of separable classification: gates, max-margin program, training, comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._solve import MaxMarginProgram, Settings, Solution, solve
from ..data.sample import Sample
from ..drawing.decision_maps import gating_lines, map_row, plane_snapshots
from ..drawing.runs import plot_run
from ..limits.limit import Limit
from ..measures.comparison import Comparison, compare, measure_network
from ..measures.distances import Distances
from ..measures.kkt import kkt_distance
from ..training.loop import train
from ..training.trainers import check_trainer
from ..training.trajectory import Trajectory
from .classification import (
    RUN,
    USABLE,
    limit_alone,
    load_data,
    network_results,
    provenance,
    require_device,
    setup_line,
    side_by_side,
    trace,
    training_settings,
    write_frame,
    write_weights,
)
from .options import Options, Reporter, Seeds
from .prospects import prospects
from .report import Assumption, Report

if TYPE_CHECKING:
    import torch

__all__ = ["Family", "run_separable"]


@dataclass(frozen=True)
class Family:
    """What a model adds to the pipeline.

    Attributes
    ----------
    gating : callable
        `gating(options, seed)` returns an unfitted transformer of inputs to gates, or None for
        networks without gates.
    program : callable
        `program(sample, options)` states the max-margin program of a training sample. Its design
        depends on inputs and gates alone, so that one serves several labellings.
    read : callable
        `read(program, solution, gates)` returns a solution as a limit.
    network : callable
        `network(sample, options, seed)` returns the untrained network.
    limit_name, network_name : str
        For messages and pictures.
    control : bool
        Whether the limit is not that of the network, which it stands beside as a control.
    """

    gating: Callable[[Options, int], Any]
    program: Callable[[Sample, Options], MaxMarginProgram]
    read: Callable[[MaxMarginProgram, Solution, Any], Limit]
    network: Callable[[Sample, Options, int], torch.nn.Module]
    limit_name: str
    network_name: str
    control: bool = False

    def solve(self, sample: Sample, options: Options) -> Limit:
        """The limit on a training sample."""
        program = self.program(sample, options)
        solution = solve(program, solver=options.solver, settings=Settings(tol=options.tol))
        return self.read(program, solution, sample.gates)


def run_separable(model: str, family: Family, options: Options, reporter: Reporter) -> Report:
    """Predict the limit of a network of `family`, train one, and compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    from ..models import MODELS

    reporter.check_resumable()
    seeds = Seeds.from_seed(options.seed)
    settings = training_settings(options, seeds)
    require_device(options.device)
    dataset = load_data(options, seeds)
    gating = family.gating(options, seeds.gating)
    if gating is not None:
        gating.fit(dataset.X_train)
    transform = (lambda X: None) if gating is None else gating.transform
    samples = (
        Sample(dataset.X_train, dataset.y_train, transform(dataset.X_train)),
        Sample(dataset.X_val, dataset.y_val, transform(dataset.X_val)),
    )
    network = family.network(samples[0], options, seeds.weights)
    check_trainer(options.trainer, network)
    reporter.stage(
        f"solving {family.limit_name} on {len(dataset.y_train)} samples ({options.solver})"
    )
    limit = family.solve(samples[0], options)
    theorem, setup = MODELS[model].theorem, setup_line(options, dataset)
    results = {
        "model": model,
        "theorem": theorem,
        **provenance(options, dataset),
        "limit": limit.to_dict(),
    }
    if limit.status not in USABLE:
        return limit_alone(model, theorem, setup, limit, results, gating=gating)
    reporter.stage(f"training a {family.network_name} for {settings.n_steps} steps")
    snapshots = plane_snapshots(network, dataset.X_train, settings.n_steps)
    try:
        trajectory = train(
            network,
            *samples[0],
            settings=settings,
            monitor=(samples[1].X, samples[1].gates),
            callback=trace(reporter, snapshots),
            observer=Distances(limit, *samples, loss=options.loss),
            state=reporter.state(RUN),
            resume=reporter.resume,
        )
    except FloatingPointError as error:  # diverged: the prediction stands, so report it
        return limit_alone(model, theorem, setup, limit, results, gating=gating, failure=str(error))
    reporter.stage("comparing")
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *samples[0]) if separates else None
    state = measure_network(network, *samples, kkt)
    comparison = compare(limit, network, *samples, kkt=kkt)
    scores = [limit.predictor(sample.X, sample.gates) for sample in samples]
    train_accuracy, val_accuracy = (
        float(np.mean(sample.y * s > 0)) for sample, s in zip(samples, scores, strict=True)
    )
    results["limit"] |= {"train_accuracy": train_accuracy, "val_accuracy": val_accuracy}
    results |= network_results(state, trajectory)
    results["comparison"] = comparison.to_dict()
    maps = []
    if snapshots is not None:
        snapshots.take(int(trajectory.step[-1]))
        lines = gating_lines(gating, dataset.X_train)
        maps.append(
            map_row(
                limit,
                snapshots,
                samples[0],
                transform,
                limit_title=f"limit: {family.limit_name}",
                lines=lambda _: lines,
            )
        )
    outlook, found = prospects(
        trajectory,
        degree=int(network.degree),  # type: ignore[arg-type]
        trainer=options.trainer,
        control=family.control,
    )
    results |= found
    assumptions = _assumptions(comparison, trajectory)
    results["assumptions"] = [asdict(assumption) for assumption in assumptions]
    artefacts = {
        "limit.safetensors": limit.save,
        "network.safetensors": write_weights(network),
        "trajectory.parquet": write_frame(trajectory),
    }
    return Report(
        model=model,
        theorem=theorem,
        setup=setup,
        assumptions=assumptions,
        tables=(
            *side_by_side(limit, (train_accuracy, val_accuracy), state, trajectory, comparison),
            *outlook,
        ),
        results=results,
        status=limit.status,
        finished=trajectory.finished,
        artefacts=artefacts if gating is None else artefacts | {"gating.npz": gating.save},
        figure=lambda: plot_run(
            trajectory,
            limit,
            scores[1],
            title=f"{family.network_name} beside {family.limit_name}",
            below=maps,
        ),
    )


def _assumptions(comparison: Comparison, trajectory: Trajectory) -> tuple[Assumption, ...]:
    wrongly = comparison.n_wrongly_dead
    return (
        Assumption("the data are separable by such a network (certified)", True),
        Assumption("the network is homogeneous, its loss exponential-like (by construction)", True),
        Assumption(
            f"the loss tends to 0: log(1/loss) is {-trajectory.log_loss[-1]:.3g} at the end, and "
            "directions converge like its inverse",
            None,
        ),
        Assumption(
            "every dead unit of the network has a dual norm of at most 1",
            None if wrongly is None else wrongly == 0,
        ),
    )
