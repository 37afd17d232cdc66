"""The pipeline of ReLU networks on orthogonally separable data."""

from __future__ import annotations

import warnings
from dataclasses import asdict

import numpy as np

from ...data.orthants import is_orthogonally_separable
from ...data.sample import Sample
from ...drawing.figures import Row, compose, panel_rows
from ...drawing.runs import run_panels
from ...measures.comparison import compare, measure_network
from ...measures.kkt import kkt_distance
from ...pipeline.classification import (
    RUN,
    USABLE,
    limit_alone,
    load_data,
    network_results,
    provenance,
    require_device,
    setup_line,
    side_by_side,
    torch_dtype,
    trace,
    training_settings,
    write_frame,
    write_weights,
)
from ...pipeline.options import Options, Reporter, Seeds
from ...pipeline.report import Assumption, Report, Table
from ...training.loop import train
from ...training.trainers import check_trainer
from .diagnosis import OrthosepDistances, diagnose_orthosep, layer_rows, layer_singular_values
from .figure import plot_orthosep
from .formulation import NotOrthogonallySeparable, solve_orthosep
from .network import BalancedReLU, ResidualReLU
from .schedule import halving_settings

__all__ = ["run_orthosep"]


RESIDUAL = (
    "nothing is proved for the residual network: its skips carry no weights, so it is not "
    "homogeneous, and theorem 3.1 and corollary 3.1 are about two layers. Conjectured from "
    "experiments: every layer comes near rank two, and the rows of the first turn to the two "
    "max-margin vectors of the theorem (Phuong, Underspecification in Deep Learning, section 3.4.2)"
)


def run_orthosep(options: Options, reporter: Reporter) -> Report:
    """Predict the limit of a small-initialisation ReLU network, train one, compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    residual = options.network == "residual"
    reporter.check_resumable()
    seeds = Seeds.from_seed(options.seed)
    require_device(options.device)
    dataset = load_data(options, seeds)
    train_sample = Sample(dataset.X_train, dataset.y_train, None)
    held_out = Sample(dataset.X_val, dataset.y_val, None)
    # No steps given: the schedule that takes this network to its limit.
    settings = (
        training_settings(options, seeds) if options.steps else halving_settings(dataset.X_train)
    )
    network = (ResidualReLU if residual else BalancedReLU)(
        dataset.X_train.shape[1],
        options.hidden_units,
        init_scale=options.init_scale,
        random_state=seeds.weights,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )
    check_trainer(settings.trainer, network)
    separability = is_orthogonally_separable(dataset.X_train, dataset.y_train)
    reporter.stage(f"solving both one-sided SVMs ({options.solver})")
    with warnings.catch_warnings():
        # Said below, among the assumptions.
        warnings.simplefilter("ignore", NotOrthogonallySeparable)
        limit = solve_orthosep(*train_sample[:2], solver=options.solver, tol=options.tol)
    theorem, setup = _theorem(options), setup_line(options, dataset)
    results = {"model": "orthosep", "theorem": theorem, **provenance(options, dataset)}
    results["limit"] = limit.to_dict()
    if limit.status not in USABLE:
        return limit_alone("orthosep", theorem, setup, limit, results)
    kind = "residual ReLU network" if residual else "ReLU network"
    reporter.stage(f"training a {kind} for {settings.n_steps} steps")
    try:
        trajectory = train(
            network,
            *train_sample,
            settings=settings,
            monitor=(held_out.X, None),
            callback=trace(reporter),
            observer=OrthosepDistances(limit, train_sample, held_out),
            state=reporter.state(RUN),
            resume=reporter.resume,
        )
    except FloatingPointError as error:  # diverged: the prediction stands, so report it
        return limit_alone("orthosep", theorem, setup, limit, results, failure=str(error))
    reporter.stage("comparing")
    separates = trajectory.smallest_margin[-1] > 0
    kkt = kkt_distance(network, *train_sample) if separates and not residual else None
    state = measure_network(network, train_sample, held_out, kkt)
    comparison = compare(limit, network, train_sample, held_out, kkt=kkt)
    diagnosis = diagnose_orthosep(network, limit, train_sample, held_out)
    scores = [limit.predictor(sample.X, None) for sample in (train_sample, held_out)]
    accuracies = [
        float(np.mean(sample.y * s > 0))
        for sample, s in zip((train_sample, held_out), scores, strict=True)
    ]
    layers = layer_singular_values(network)
    assumptions = (
        Assumption(f"the data are orthogonally separable ({separability.message})",
                   bool(separability)),
        Assumption("the support examples span the inputs (theorem 3.1 assumes it; the corollary's "
                   "constants hold without)", bool(limit.supports_span)),
        *_of_the_network(residual),
    )  # fmt: skip
    results |= network_results(state, trajectory) | {
        "comparison": comparison.to_dict(),
        "diagnosis": diagnosis.to_dict(),
        "layer_singular_values": [values.tolist() for values in layers],
        "assumptions": [asdict(assumption) for assumption in assumptions],
    }
    return Report(
        model="orthosep",
        theorem=theorem,
        setup=setup,
        assumptions=assumptions,
        tables=(
            *side_by_side(limit, (accuracies[0], accuracies[1]), state, trajectory, comparison),
            Table("neurons", ("", "value"), tuple(diagnosis.rows())),
            Table(
                "layers",
                ("", "singular values", "third / second (0)", "share of the top two (1)"),
                tuple(layer_rows(layers)),
            ),
        ),
        results=results,
        status=limit.status,
        finished=trajectory.finished,
        artefacts={
            "limit.safetensors": limit.save,
            "network.safetensors": write_weights(network),
            "trajectory.parquet": write_frame(trajectory),
        },
        figure=lambda: compose(
            [
                Row(
                    3,
                    lambda axes: plot_orthosep(diagnosis, axes, layers=layers if residual else []),
                    height=3.6,
                ),
                *panel_rows(run_panels(trajectory, limit, scores[1])),
            ],
            title=f"{options.network} ReLU network beside its two max-margin directions",
        ),
    )


def _theorem(options: Options) -> str:
    from .. import MODELS

    return RESIDUAL if options.network == "residual" else MODELS["orthosep"].theorem


def _of_the_network(residual: bool) -> tuple[Assumption, ...]:
    if residual:
        return (
            Assumption("the network has two layers and is homogeneous in its weights", False),
            Assumption("small initialisation, exponential-like loss (by construction)", True),
        )
    return (
        Assumption("small balanced initialisation, exponential-like loss (by construction)", True),
    )
