"""The pipeline of gated deep linear networks: closed-form gradient flow beside ReLU training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._solve import FitStatus, Status
from ..._version import __version__
from ...drawing.figures import Panel, Row, compose, panel_rows
from ...pipeline.classification import software
from ...pipeline.options import Options, Reporter, Seeds
from ...pipeline.report import Assumption, Report, Table
from .comparison import GDLNRun, run_gdln
from .data import RingData, make_nlgp, make_single_pulse
from .figure import plot_localisation, plot_loss, plot_sign_flips, plot_units
from .formulation import solve_gated_ols
from .training import RegressionSettings, RegressionTrajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["run_gdln_pipeline"]

SAMPLES = 8000
UNITS = 4  # shown in the picture
RINGS: Mapping[str, Callable[..., RingData]] = {"ring": make_nlgp, "pulse": make_single_pulse}


def run_gdln_pipeline(options: Options, reporter: Reporter) -> Report:
    """Predict a gated linear network and its ReLU twin on ring data, train both, compare."""
    from .. import MODELS

    if options.data not in RINGS:
        raise ValueError(
            "the model gdln is compared on `--data ring` or `--data pulse` (real targets on a ring "
            f"of inputs), got {options.data!r}"
        )
    if reporter.resume:
        raise ValueError(
            "`--resume` is not for the model gdln, which keeps no unfinished run: leave it out"
        )
    seeds = Seeds.from_seed(options.seed)
    scales = _length_scales(options)
    data = RINGS[options.data](options.n_train or SAMPLES, random_state=seeds.data, **scales)
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
            "data": {
                "description": data.description,
                "n_train": len(data.y),
                "n_inputs": int(data.X.shape[1]),
                "sha256": data.digest(),
            },
            "limit": fit.to_dict(),
            "path_error": error,
            "comparison": run.comparison.to_dict(),
            "assumptions": [asdict(assumption) for assumption in assumptions],
        },
        status=Status.SOLVED if fit.status is FitStatus.SOLVED else Status.INACCURATE,
        finished=run.relu.finished and run.gdln.finished,
        artefacts={
            "limit.safetensors": fit.save,
            "network.safetensors": _write_path(run.relu),
            "gated-network.safetensors": _write_path(run.gdln),
        },
        figure=lambda: _figure(run),
    )


def _length_scales(options: Options) -> dict[str, float]:
    """The length scales that the options name, as arguments of the data's maker."""
    if options.length_scales is None:
        return {}
    if len(options.length_scales) != 2:
        raise ValueError(
            "`--length-scales` must be two numbers, of the classes y = 1 and y = 0, such as 1,5, "
            f"got {len(options.length_scales)}"
        )
    scales = dict(zip(("xi_1", "xi_0"), options.length_scales, strict=True))
    if options.data != "pulse":
        return scales
    if not all(scale.is_integer() for scale in scales.values()):
        raise ValueError(
            "`--length-scales` of pulses must be whole numbers, as many ones as a pulse has, got "
            + ",".join(f"{scale:g}" for scale in scales.values())
        )
    return {name: int(scale) for name, scale in scales.items()}


def _write_path(trajectory: RegressionTrajectory) -> Callable[[Path], None]:
    """A writer of the weights (T, K, D) of every checkpoint, and of its steps and losses (T,)."""

    def write(path: Path) -> None:
        from safetensors.numpy import save

        arrays = {name: getattr(trajectory, name) for name in ("weights", "step", "time", "loss")}
        content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        path.write_bytes(save(content, metadata={"implicit-bias": __version__}))

    return write


def _figure(run: GDLNRun) -> Figure:
    panels: list[Panel] = [
        lambda ax: _losses(ax, run),
        lambda ax: plot_localisation(ax, run.relu),
        lambda ax: plot_sign_flips(ax, run.relu),
    ]
    units = Row(min(len(run.comparison.weights), UNITS), lambda a: plot_units(a, run.comparison))
    title = "ReLU units beside gated linear ones, and both over training"
    return compose([units, *panel_rows(panels)], title=title)


def _losses(ax: Axes, run: GDLNRun) -> None:
    plot_loss(ax, run.relu, label="ReLU")
    plot_loss(ax, run.gdln, label="gated linear, initial gates")
