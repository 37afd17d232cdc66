"""What the pipelines of separable classification share: data, training, tables, files."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._solve import Status
from .._version import __version__
from ..data.dataset import Dataset
from ..data.images import load_digits, load_idx
from ..data.labelled import ClassDataset
from ..data.orthants import orthosep_dataset
from ..data.quadrants import quadrant_dataset
from ..limits.limit import Limit
from ..measures.comparison import Comparison, NetworkState
from ..training.loop import Callback
from ..training.settings import TrainingSettings
from ..training.trajectory import Trajectory
from .options import Options, Reporter, Seeds
from .report import Assumption, Report, Table

if TYPE_CHECKING:
    import torch

__all__ = [
    "RUN",
    "USABLE",
    "DIGITS_TRAINING",
    "limit_alone",
    "load_data",
    "network_results",
    "provenance",
    "require_device",
    "setup_line",
    "side_by_side",
    "software",
    "trace",
    "training_settings",
    "torch_dtype",
    "worst_status",
    "write_frame",
    "write_weights",
]

DIGITS_TRAINING = 500
PLANE_TRAINING = 100  # more would hide the decision map that they are drawn on
# Where an unfinished run is kept, in the folder of its results.
RUN = "run.safetensors"
# With these a limit has coefficients that separate the training data: a network can be compared.
USABLE = (Status.SOLVED, Status.INACCURATE)
# A proof that there is no limit comes before failures to find it.
WORST_FIRST = (
    Status.NOT_SEPARABLE,
    Status.FAILED,
    Status.UNDECIDED,
    Status.INACCURATE,
    Status.SOLVED,
)
PACKAGES = ("numpy", "scipy", "torch", "cvxpy", "clarabel", "ecos", "osqp", "scs", "scikit-learn")


def load_data(options: Options, seeds: Seeds) -> Dataset:
    """The data set that the options name.

    Raises
    ------
    ValueError, FileNotFoundError
        If there are no such data, or not enough of them.
    """
    if options.data == "digits":
        dataset = load_digits(
            n_train=options.n_train or DIGITS_TRAINING,
            n_val=options.n_val,
            random_state=seeds.data,
        )
    elif options.data == "orthants":
        dataset = orthosep_dataset(
            n_train=options.n_train or DIGITS_TRAINING,
            n_val=options.n_val or 2 * DIGITS_TRAINING,
            random_state=seeds.data,
        )
    elif options.data == "quadrants":
        dataset = quadrant_dataset(
            n_train=options.n_train or PLANE_TRAINING,
            n_val=options.n_val or 10 * PLANE_TRAINING,
            random_state=seeds.data,
        )
    elif options.data in ("pulse", "ring"):
        raise ValueError(
            f"`--data {options.data}` has real targets: it is for the model gdln alone"
        )
    elif options.data_dir is None:
        raise ValueError("`--data mnist` needs `--data-dir DIR`, the folder of its IDX files")
    else:
        dataset = load_idx(
            options.data_dir,
            n_train=options.n_train or DIGITS_TRAINING,
            n_val=options.n_val,
            random_state=seeds.data,
        )
    if len(dataset.y_val) == 0:
        raise ValueError(
            f"`--n-train {len(dataset.y_train)}` leaves no held-out samples to compare on: "
            "train on fewer"
        )
    return dataset


def torch_dtype(name: str) -> torch.dtype:
    """The floating-point dtype of that name."""
    import torch

    return {"float32": torch.float32, "float64": torch.float64}[name]


def require_device(name: str) -> None:
    """See that torch can compute on the device of that name.

    Raises
    ------
    ValueError
        If it cannot.
    """
    import torch

    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"torch cannot use device {name!r} here: use --device cpu") from error


def training_settings(options: Options, seeds: Seeds) -> TrainingSettings:
    """The trainer's settings that the options name."""
    rates: tuple[float | None, ...] = options.learning_rates or (None,) * len(options.steps)
    if len(options.steps) != len(rates):
        raise ValueError(
            f"{len(options.steps)} phases of steps, but {len(rates)} learning rates: give as many "
            "of one as of the other"
        )
    return TrainingSettings(
        trainer=options.trainer,
        loss=options.loss,
        batch_size=options.batch_size or None,
        schedule=tuple(zip(options.steps, rates, strict=True)),
        momentum=options.momentum,
        random_state=seeds.batches,
    )


def trace(reporter: Reporter, *further: Callback | None) -> Callback:
    """A training callback that reports to `reporter` after the `further` ones that there are."""
    before = [callback for callback in further if callback is not None]

    def callback(step: int, n_steps: int, log_loss: float) -> None:
        for call in before:
            call(step, n_steps, log_loss)
        reporter.advance(step, n_steps)

    return callback


def side_by_side(
    limit: Limit,
    limit_accuracies: tuple[float, float],
    state: NetworkState,
    trajectory: Trajectory,
    comparison: Comparison,
) -> tuple[Table, Table]:
    """The table of limit and network, and the table of their comparison."""
    n_samples = len(limit.dual)
    separates = state.smallest_margin > 0
    norm = comparison.network_norm
    norm_per_margin = (
        _defined(f"{norm / state.smallest_margin:.8g}") if separates else "not separating yet"
    )
    n_units = len(limit.unit_norms)
    support = f"{state.support} of {n_samples}" if state.support >= 0 else "-"
    steps = int(trajectory.step[-1])
    rows = (
        ("status", limit.status.name, "finished" if trajectory.finished else "interrupted"),
        ("norm per unit margin", f"{limit.objective:.8g}", norm_per_margin),
        ("  certified lower bound", f"{limit.dual_objective:.8g}", "-"),
        (
            "  duality gap | KKT residual",
            f"{limit.gap:.2e}",
            _defined(f"{comparison.kkt_residual:.4f}"),
        ),
        ("smallest margin", f"{float(limit.margins.min()):.6g}", f"{state.smallest_margin:.6g}"),
        ("norm", f"{float(limit.unit_norms.sum()):.6g}", _defined(f"{norm:.6g}")),
        (
            "live units",
            f"{int(limit.live.sum())} of {n_units}",
            f"{state.live} of {state.n_units}" if state.n_units else "-",
        ),
        ("support vectors", f"{int(limit.support.sum())} of {n_samples}", support),
        ("training accuracy", f"{limit_accuracies[0]:.2%}", f"{state.train_accuracy:.2%}"),
        ("validation accuracy", f"{limit_accuracies[1]:.2%}", f"{state.val_accuracy:.2%}"),
        ("iterations | steps", str(limit.iterations), str(steps)),
        ("loss", "0 (in the limit)", f"{trajectory.loss[-1]:.4g}"),
        ("log(1/loss)", "inf", f"{-trajectory.log_loss[-1]:.4g}"),
        ("seconds", f"{limit.seconds:.2f}", f"{trajectory.seconds[-1]:.2f}"),
    )
    measures = [(label, _defined(value)) for label, value in comparison.rows()]
    if not state.n_units:  # the last line counts dead units, and there are none to count
        measures.pop()
    return (
        Table("prediction and training", ("", "limit", "trained network"), rows),
        Table("comparison", ("", "value"), tuple(measures)),
    )


def _defined(cell: str) -> str:
    """A dash for a quantity that a network does not have."""
    return "-" if cell == "nan" else cell


def setup_line(options: Options, dataset: Dataset) -> str:
    """The data and the seed of a run, in a line."""
    return f"{dataset.description}; seed {options.seed}"


def limit_alone(
    model: str,
    theorem: str,
    setup: str,
    limit: Limit,
    results: dict[str, Any],
    *,
    gating: Any = None,
    failure: str | None = None,
) -> Report:
    """The report of a limit that no network was compared with, its certificate included."""
    certificate = limit.certificate
    separable = certificate.proves_separability()
    rows = (
        ("status", limit.status.name),
        ("norm per unit margin", f"{limit.objective:.8g}"),
        ("  certified lower bound", f"{limit.dual_objective:.8g}"),
        ("  duality gap", f"{limit.gap:.2e}"),
        ("separation bound: best margin of unit norm <=", f"{certificate.separation_bound:.3e}"),
        ("  its rounding error", f"{certificate.separation_rounding:.3e}"),
        ("samples with a multiplier", f"{int((limit.dual > 0).sum())} of {len(limit.dual)}"),
        ("iterations", str(limit.iterations)),
        ("seconds", f"{limit.seconds:.2f}"),
    )
    return Report(
        model=model,
        theorem=theorem,
        setup=setup,
        assumptions=(
            Assumption(
                "the data are separable in these gates (certified)",
                False if limit.status is Status.NOT_SEPARABLE else separable or None,
            ),
        ),
        tables=(Table("prediction", ("", "limit"), rows),),
        results=results | {"failure": failure},
        status=limit.status,
        finished=True,
        failure=failure,
        artefacts={"limit.safetensors": limit.save}
        | ({} if gating is None else {"gating.npz": gating.save}),
    )


def network_results(state: NetworkState, trajectory: Trajectory) -> dict[str, Any]:
    """The entry of a trained network in the results."""
    return {
        "network": asdict(state)
        | {
            "steps": int(trajectory.step[-1]),
            "loss": float(trajectory.loss[-1]),
            "log_loss": float(trajectory.log_loss[-1]),
            "seconds": float(trajectory.seconds[-1]),
            "finished": trajectory.finished,
        }
    }


def worst_status(limits: Mapping[str, Limit]) -> tuple[Status, tuple[str, ...]]:
    """The worst status of several limits, at least one, and the names of those that have it."""
    statuses = [limit.status for limit in limits.values()]
    status = next(status for status in WORST_FIRST if status in statuses)
    return status, tuple(name for name, limit in limits.items() if limit.status is status)


def software(options: Options) -> dict[str, Any]:
    """Versions, choices and seeds of a run."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "options": {
            key: str(value) if isinstance(value, Path) else value
            for key, value in asdict(options).items()
        },
        "seeds": asdict(Seeds.from_seed(options.seed)),
    }


def provenance(options: Options, dataset: Dataset | ClassDataset) -> dict[str, Any]:
    """What it takes to repeat a run: versions, choices, seeds, data."""
    return software(options) | {
        "data": {
            "name": dataset.name,
            "description": dataset.description,
            "n_train": len(dataset.X_train),
            "n_val": len(dataset.X_val),
            "n_inputs": int(dataset.X_train.shape[1]),
            "sha256": dataset.digest(),
        },
    }


def write_frame(trajectory: Trajectory) -> Callable[[Path], None]:
    """A writer of the trajectory's scalar columns as Parquet."""
    return lambda path: trajectory.to_frame().to_parquet(path, index=False)


def write_weights(network: torch.nn.Module) -> Callable[[Path], None]:
    """A writer of the network's weights as safetensors."""

    def write(path: Path) -> None:
        from safetensors.torch import save

        tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
        path.write_bytes(save(tensors, metadata={"implicit-bias": __version__}))

    return write


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
