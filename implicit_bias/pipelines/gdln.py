"""The pipeline of gated deep linear networks: closed-form gradient flow beside ReLU training."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from .._solve import FitStatus, Status
from ..formulations.gdln import solve_gated_ols
from ..gdln_comparison import GDLNRun, run_gdln
from ..options import Options, Reporter, Seeds
from ..regression_training import RegressionSettings
from ..report import Assumption, Report, Table
from ..ring_data import make_nlgp
from .classification import software

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run_gdln_pipeline"]

SAMPLES = 8000


def run_gdln_pipeline(options: Options, reporter: Reporter) -> Report:
    """Predict a gated linear network and its ReLU twin on ring data, train both, compare."""
    from ..models import MODELS

    if options.data != "ring":
        raise ValueError(
            f"the model gdln is compared on `--data ring` (real targets on a ring of inputs), "
            f"got {options.data!r}"
        )
    if reporter.resume:
        raise ValueError(
            "`--resume` is not for the model gdln, which keeps no unfinished run: leave it out"
        )
    seeds = Seeds.from_seed(options.seed)
    data = make_nlgp(options.n_train or SAMPLES, random_state=seeds.data)
    settings = RegressionSettings(
        learning_rate=options.learning_rates[0],
        n_steps=options.steps[0],
        batch_size=options.batch_size or None,
        random_state=seeds.batches,
    )
    reporter.stage(f"training a ReLU and a gated linear network for {settings.n_steps} steps each")
    run = run_gdln(
        data,
        n_units=options.hidden_units,
        init_scale=options.init_scale,
        settings=settings,
        random_state=seeds.weights,
        progress=lambda stage, step, n_steps, loss: reporter.advance(step, n_steps),
    )
    reporter.stage("solving the gated least-squares limit at the initial gates")
    fit = solve_gated_ols(data.X, data.y, data.X @ run.relu.weights[0].T >= 0, tol=options.tol)
    flips = run.comparison.sign_flips
    error = float(run.descent_errors.max())
    assumptions = (
        Assumption("the gates of the gated linear network are frozen (by construction)", True),
        Assumption("the gates of the ReLU network stay as they began: "
                   f"{flips:.1%} of them changed", flips == 0),
    )  # fmt: skip
    certificate = fit.certificate
    prediction = (
        ("status of the least-squares limit", fit.status.name),
        ("  stationarity residual", f"{certificate.stationarity:.2e}"),
        ("optimal loss of these gates", f"{fit.loss:.6g}"),
        ("rank of the gated moments", f"{fit.rank} of {fit.zeta.size}"),
        ("trained gated network off its predicted path", f"{error:.2e}"),
    )
    theorem = MODELS["gdln"].theorem
    return Report(
        model="gdln",
        theorem=theorem,
        setup=f"{data.description}; {len(data.y)} samples; seed {options.seed}",
        assumptions=assumptions,
        tables=(
            Table("gated linear network: prediction and training", ("", "value"), prediction),
            Table(
                "ReLU network beside the prediction", ("", "value"), tuple(run.comparison.rows())
            ),
        ),
        results={
            "model": "gdln",
            "theorem": theorem,
            **software(options),
            "data": {"description": data.description, "n_train": len(data.y)},
            "limit": fit.to_dict(),
            "path_error": error,
            "comparison": run.comparison.to_dict(),
            "assumptions": [asdict(assumption) for assumption in assumptions],
        },
        status=Status.SOLVED if fit.status is FitStatus.SOLVED else Status.INACCURATE,
        finished=run.relu.finished and run.gdln.finished,
        figure=lambda: _figure(run),
    )


def _figure(run: GDLNRun) -> Figure:
    from matplotlib.figure import Figure

    from ..gdln_plots import plot_localisation, plot_loss, plot_sign_flips, plot_units

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    axes = figure.subplots(2, 4)
    plot_units(axes[0], run.comparison)
    plot_loss(axes[1, 0], run.relu, label="ReLU")
    plot_loss(axes[1, 0], run.gdln, label="gated linear, initial gates")
    plot_localisation(axes[1, 1], run.relu)
    plot_sign_flips(axes[1, 2], run.relu)
    axes[1, 3].set_axis_off()
    return figure
