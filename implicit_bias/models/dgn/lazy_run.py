"""The lazy regime: networks at large output scales, beside the tangent kernel of their start."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.arrays import Floats
from ...data.sample import Sample
from ...kernels.margin import KernelLimit, KernelSVM, solve_kernel_svm
from ...kernels.regression import KernelLeastSquares, KernelRegression, kernel_regression
from ...kernels.tangent import empirical_ntk
from ...networks.linearised import ScaledNetwork
from ...quantities.said import Side
from ...reports.finding import Finding
from ...reports.trained import Trained, shortfall
from ...reports.verdict import Evidence, decide
from ...reports.writers import write_arrays, write_frame, write_weights
from ...runs.fit import fit
from ...runs.programs import StatedProgram, stated
from ...runs.setup import SampleSetup
from ...training.settings import TrainingSettings
from .figure import lazy_departure, lazy_panels
from .lazy_comparison import (
    Drift,
    ScaleComparison,
    compare_scale,
    departure_table,
    exponents,
    regression_table,
    scales_table,
)
from .model import FULL_RANK, TO_INFINITY
from .parts import held_out_of, make_network, network_name

if TYPE_CHECKING:
    import torch

    from ...training.trajectory import Trajectory

__all__ = ["LAZY", "find_lazy", "lazy_programs"]

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


def find_lazy(setup: SampleSetup) -> Iterator[Finding]:
    """Both kernel machines, a network for every output scale, and one that leaves the kernel."""
    options, sample = setup.options, setup.train
    network = make_network(options, sample.X.shape[1], setup.seeds.weights)
    setup.progress.stage(f"solving two machines of the tangent kernel on {len(sample.y)} samples")
    kernel = empirical_ntk(network, sample.X, sample.gates)
    regression = kernel_regression(kernel, sample.y)
    svm = solve_kernel_svm(kernel, sample.y, tol=options.tol)
    yield _predictions(regression, svm)
    if not setup.trains:
        return
    held_out = _held_out(setup, network, sample)
    rate = RATE / float(regression.eigenvalues[-1])
    runs: list[tuple[ScaledNetwork, Trajectory]] = []
    for scale in options.output_scales:
        scaled = ScaledNetwork(network, scale)
        runs.append((scaled, _train_scaled(setup, scaled, sample, kernel, rate)))
        yield _networks(runs, regression, rate)
        if not runs[-1][1].finished:
            return
    setup.progress.stage("comparing")
    found = [
        compare_scale(one, trajectory, regression, rate, held_out, kernel)
        for one, trajectory in runs
    ]
    yield _scales(found)
    if svm.certificate.proves_separability():
        yield _departure(setup, network, sample, Drift(network, sample, kernel, svm.objective))


def lazy_programs(setup: SampleSetup, note: str) -> Iterator[StatedProgram]:
    """State both programs of the tangent kernel of the start."""
    options, sample = setup.options, setup.train
    network = make_network(options, sample.X.shape[1], setup.seeds.weights)
    setup.progress.stage(f"computing the tangent kernel on {len(sample.y)} samples")
    kernel = empirical_ntk(network, sample.X, sample.gates)
    for program in (KernelLeastSquares(), KernelSVM()):
        setup.progress.stage(f"stating the {program.name}")
        yield stated(f"{program.name} (NTK)", program.literal(kernel, sample.y), note)


def _held_out(
    setup: SampleSetup, network: torch.nn.Module, sample: Sample
) -> tuple[Sample, Floats] | None:
    """Held-out data with their kernels with the training data; None where they have no gates."""
    new = held_out_of(setup)
    if new is None:
        return None
    return new, empirical_ntk(network, new.X, new.gates, sample.X, sample.gates)


def _predictions(regression: KernelRegression, svm: KernelLimit) -> Finding:
    proof = svm.to_dict()
    record = {
        "rank": regression.rank,
        "condition": regression.condition,
        "residual": regression.certificate.remaining,
    }
    arrays = {"coefficients": regression.coefficients, "svm_coefficients": svm.zeta}
    n = len(regression.start)
    return Finding.said(
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


def _train_scaled(
    setup: SampleSetup, network: ScaledNetwork, sample: Sample, kernel: Floats, rate: float
) -> Trajectory:
    """Descent of ``|h - y|^2 / (2 alpha^2)``: the mean loss of h at the rate times n / alpha^2."""
    n, scale, n_steps = len(sample.y), network.scale, setup.settings.n_steps
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
        *sample,
        settings=settings,
        state=f"run-{index}.safetensors",
        first=False,
        observer=Drift(network.network, sample, kernel),
    )


def _networks(
    runs: Sequence[tuple[ScaledNetwork, Trajectory]], regression: KernelRegression, rate: float
) -> Finding:
    """The networks so far; the last of them is the run's."""
    network, trajectory = runs[-1]
    panels = lazy_panels([(one.scale, run) for one, run in runs], regression, rate)
    found = Finding(
        "network", {"network": Trained(network.network, trajectory)}, panels=tuple(panels)
    )
    by_scale = {f"{one.scale:g}": (one.network, run) for one, run in runs}
    return found.but(
        record={"network": {name: run.record() for name, (_, run) in by_scale.items()}},
        files={
            name: write
            for scale, (one, run) in by_scale.items()
            for name, write in (
                (f"network-{scale}.safetensors", write_weights(one)),
                (f"trajectory-{scale}.parquet", write_frame(run)),
            )
        },
        objects={
            "network": {scale: one for scale, (one, _) in by_scale.items()},
            "trajectory": {scale: run for scale, (_, run) in by_scale.items()},
        },
        # Squared errors are no margins, and separate nothing.
        shortfall="",
    )


def _scales(found: Sequence[ScaleComparison]) -> Finding:
    return Finding.said(
        "scales",
        record={"scales": [one.to_dict() for one in found], "exponents": exponents(found)},
        tables=(scales_table(found),),
        objects={"comparison": tuple(found)},
        row=found[-1].cells(),
        verdicts=(decide(_evidence(found[-1])),),
        sides=tuple(Side(f"alpha {one.scale:g}", one.cells()) for one in found),
    )


def _evidence(last: ScaleComparison) -> Evidence:
    """Return the evidence on the network of the largest scale beside the law of its kernel."""
    return Evidence(
        near={"lazy_law_error": last.law_error},
        beside={"lazy_held_out_error": last.held_out_error},
        reason="the theorem is about scales that tend to infinity: give larger `--output-scales`",
        remark=f"at output scale {last.scale:g}",
    )


def _departure(setup: SampleSetup, start: torch.nn.Module, sample: Sample, drift: Drift) -> Finding:
    """The network itself under an exponential-like loss: how far it goes from its kernel."""
    options, settings = setup.options, setup.settings
    setup.progress.stage(
        f"training a {network_name(options)} on the {options.loss} loss for "
        f"{settings.n_steps} steps"
    )
    network = copy.deepcopy(start)
    trajectory = fit(
        setup,
        network,
        *sample,
        settings=settings,
        state="run-exponential.safetensors",
        first=False,
        observer=drift,
    )
    names = ("weight_drift", "kernel_alignment", "kernel_ratio", "value")
    ends = {name: float(trajectory.observed[name][-1]) for name in names}
    ratios = trajectory.observed["kernel_ratio"]
    largest = float(np.nanmax(ratios)) if np.isfinite(ratios).any() else math.nan
    rows = sorted({0, *np.linspace(0, len(trajectory.step) - 1, 5).round().astype(int).tolist()})
    record: dict[str, Any] = trajectory.record() | ends
    return Finding.said(
        "departure",
        record={"departure": record | {"largest_kernel_ratio": largest}},
        tables=(departure_table(trajectory, rows[1:]),),
        files={
            "network-exponential.safetensors": write_weights(network),
            "trajectory-exponential.parquet": write_frame(trajectory),
        },
        panels=(lazy_departure(trajectory),),
        objects={"departed": network, "departure": trajectory},
        row={"departure_weight_drift": ends["weight_drift"], "departure_kernel_ratio": largest},
        finished=trajectory.finished,
        shortfall=shortfall(trajectory, "the network under an exponential-like loss"),
    )
