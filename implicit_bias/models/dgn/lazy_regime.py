"""The lazy regime: networks at large output scales, beside the tangent kernel of their start."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...limits.kernels.margin import KernelSVM, solve_kernel_svm
from ...limits.kernels.regression import KernelLeastSquares, KernelRegression, kernel_regression
from ...limits.kernels.tangent import empirical_ntk
from ...networks.linearised import ScaledNetwork
from ...quantities.said import Side
from ...quantities.table import TABLE
from ...runs.fit import fit
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.reports.saved.writers import write_arrays, write_frame, write_weights
from ...runs.reports.telling import Several
from ...runs.reports.trained import Trained, shortfall
from ...runs.reports.verdict import Evidence
from ...runs.reports.views import Views
from ...runs.stages import Found, Stage
from ...training.settings import TrainingSettings
from .figure import plot_departure, plot_drifts, plot_errors, plot_law
from .gated_layers import DGNSetup, as_begun, held_out_of, network_name
from .lazy_comparison import (
    Drift,
    compare_scale,
    departure,
    departure_table,
    exponents,
    regression_table,
    scales_table,
)
from .model import FULL_RANK, TO_INFINITY

if TYPE_CHECKING:
    from ...training.trajectory import Trajectory

LAZY = (
    "Theorem: with the squared loss and scores h = alpha (f_w - f_w0) the errors follow "
    "exp(-K t) e_0, K the tangent kernel of the start, up to O(1 / alpha) (Chizat, Oyallon and "
    "Bach, On lazy training in differentiable programming); with an exponential-like loss the "
    "hard-margin SVM of K is the limit of the network linearised at its start, and not of the "
    "network, which leaves it (Lyu, Jin, Li, Du, Lee and Hu, Dichotomy of early and late phase "
    "implicit biases can provably induce grokking). Certified: both kernel machines. Measured: the "
    "networks"
)
KERNEL = f"{KernelLeastSquares.name} (NTK)"
# Of the inverse of the largest eigenvalue: the longest steps whose errors never change sign.
RATE = 1.0


def _predict(setup: DGNSetup, found: Found) -> Iterator[Finding]:
    """Both kernel machines."""
    setup.progress.stage(
        f"solving two machines of the tangent kernel on {len(setup.train.y)} samples"
    )
    regression = kernel_regression(setup.kernel, setup.train.y)
    svm = solve_kernel_svm(setup.kernel, setup.train.y, tol=setup.options.tol)
    proof, n = svm.to_dict(), len(setup.train.y)
    record = {
        "rank": regression.rank,
        "condition": regression.condition,
        "residual": regression.certificate.remaining,
    }
    arrays = {"coefficients": regression.coefficients, "svm_coefficients": svm.zeta}
    yield Finding.said(
        "limit",
        record={"limit": record, "kernel_svm": proof},
        tables=(regression_table(regression, proof),),
        files={"limit.safetensors": write_arrays(arrays)},
        assumptions=(FULL_RANK.found(holds=regression.rank == n), TO_INFINITY.found()),
        statuses={"hard-margin SVM of the tangent kernel": svm.status},
        certificates={"kernel SVM": proof},
        objects={"limit": regression, "kernel_svm": svm},
        row={
            "limit": KERNEL,
            "stationarity": regression.certificate.remaining,
            "iterations": svm.iterations,
            "limit_seconds": svm.seconds,
        },
    )


def _state(setup: DGNSetup) -> Iterator[StatedProgram]:
    """State both programs of the tangent kernel of the start."""
    setup, note = as_begun(setup)
    setup.progress.stage(f"computing the tangent kernel on {len(setup.train.y)} samples")
    kernel = setup.kernel
    for program in (KernelLeastSquares(), KernelSVM()):
        setup.progress.stage(f"stating the {program.name}")
        yield stated(f"{program.name} (NTK)", program.literal(kernel, setup.train.y), note)


def _train_scales(setup: DGNSetup, found: Found) -> Iterator[Finding]:
    """A network for every output scale, beside the machines."""
    regression: KernelRegression = found["limit"]
    rate = RATE / float(regression.eigenvalues[-1])
    runs: list[tuple[ScaledNetwork, Trajectory]] = []
    for scale in setup.options.output_scales:
        scaled = ScaledNetwork(setup.network, scale)
        runs.append((scaled, _train_scaled(setup, scaled, rate)))
        yield _networks(runs, regression, rate)
        if not runs[-1][1].finished:
            return
    setup.progress.stage("comparing")
    new, sample, held_out = held_out_of(setup), setup.train, None
    if new is not None:
        cross = empirical_ntk(setup.network, new.X, new.gates, sample.X, sample.gates)
        held_out = new, cross
    compared = tuple(
        compare_scale(one, trajectory, regression, rate, held_out, setup.kernel)
        for one, trajectory in runs
    )
    last = compared[-1]
    known = Evidence(
        near={"lazy_law_error": last.law_error},
        beside={"lazy_held_out_error": last.held_out_error},
        reason="the theorem is about scales that tend to infinity: give larger `--output-scales`",
        remark=f"at output scale {last.scale:g}",
    )
    yield Finding(
        "scales",
        {"comparison": compared},
        evidence=(known,),
        further=Views(
            record={
                "scales": [one.to_dict() for one in compared],
                "exponents": exponents(compared),
            },
            tables=(scales_table(compared),),
            row=last.cells(),
            sides=tuple(Side(f"alpha {one.scale:g}", one.cells()) for one in compared),
        ),
    )


def _train_scaled(setup: DGNSetup, network: ScaledNetwork, rate: float) -> Trajectory:
    """Descent of ``|h - y|^2 / (2 alpha^2)``: the mean loss of h at the rate times n / alpha^2."""
    n, scale, n_steps = len(setup.train.y), network.scale, setup.settings.n_steps
    setup.progress.stage(f"training at output scale {scale:g} for {n_steps} steps")
    settings = TrainingSettings(
        trainer="constant",
        loss="squared",
        batch_size=0,
        schedule=((n_steps, rate * n / scale**2),),
        n_checkpoints=setup.settings.n_checkpoints,
        random_state=setup.seeds.batches,
    )
    index = setup.options.output_scales.index(scale) + 1
    return fit(
        setup,
        network,
        *setup.train,
        settings=settings,
        state=f"run-{index}.safetensors",
        first=False,
        observer=Drift(network.network, setup.train, setup.kernel),
    )


def _networks(
    runs: Sequence[tuple[ScaledNetwork, Trajectory]], regression: KernelRegression, rate: float
) -> Finding:
    """The networks so far; the last of them is the run's."""
    paths = [(one.scale, run) for one, run in runs]
    panels = (
        partial(plot_errors, paths, regression, rate),
        partial(plot_law, paths, regression, rate),
        partial(plot_drifts, paths, "weight_drift", TABLE["weight_drift"].label),
    )
    # Squared errors are no margins, and separate nothing.
    by_scale = {f"{one.scale:g}": Trained(one.network, run, margins=False) for one, run in runs}
    return Finding("network", {"network": Several(by_scale)}, panels=panels)


def _depart(setup: DGNSetup, found: Found) -> Iterator[Finding]:
    """The network itself under an exponential-like loss: how far it goes from its kernel."""
    options, settings = setup.options, setup.settings
    setup.progress.stage(
        f"training a {network_name(options)} on the {options.loss} loss for "
        f"{settings.n_steps} steps"
    )
    network = copy.deepcopy(setup.network)
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=settings,
        state="run-exponential.safetensors",
        first=False,
        observer=Drift(network, setup.train, setup.kernel, found["kernel_svm"].objective),
    )
    end = departure(trajectory, -1)
    ratios = trajectory.observed["kernel_ratio"]
    largest = float(np.nanmax(ratios)) if np.isfinite(ratios).any() else math.nan
    rows = sorted({0, *np.linspace(0, len(trajectory.step) - 1, 5).round().astype(int).tolist()})
    record: dict[str, Any] = trajectory.record() | end.to_dict()
    yield Finding.said(
        "departure",
        record={"departure": record | {"largest_kernel_ratio": largest}},
        tables=(departure_table(trajectory, rows[1:]),),
        files={
            "network-exponential.safetensors": write_weights(network),
            "trajectory-exponential.parquet": write_frame(trajectory),
        },
        panels=(partial(plot_departure, trajectory),),
        objects={"departed": network, "departure": trajectory},
        row={"departure_weight_drift": end.weight_drift, "departure_kernel_ratio": largest},
        finished=trajectory.finished,
        shortfall=shortfall(trajectory, "the network under an exponential-like loss"),
    )


STAGES: tuple[Stage[DGNSetup], ...] = (
    Stage(finds=_predict, states=_state),
    Stage(finds=_train_scales, trains=True),
    Stage(
        finds=_depart,
        trains=True,
        when=lambda setup, found: found["kernel_svm"].certificate.proves_separability(),
    ),
)
