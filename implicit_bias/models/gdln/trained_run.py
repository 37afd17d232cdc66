"""Training of a ReLU network of averaged units and of its gated twin, beside the limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ...drawing.figures import Row
from ...networks.relu_mean import ReLUMean
from ...quantities.said import Side, Table
from ...reports.finding import Finding
from ...reports.verdict import Evidence, decide
from ...reports.writers import write_path
from ...runs.fit import fit
from ...runs.setup import torch_dtype
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from .comparison import GDLNComparison, compare_with_gdln, path_errors
from .figure import plot_localisation, plot_losses, plot_sign_flips, plot_units
from .flow import GatedFlow, gated_flow
from .limit import GatedOLS
from .model import STAY
from .setup import GDLNSetup, limit_finding
from .training import WeightsObserver, descent_path

__all__ = ["train_and_compare"]

UNITS = 4  # shown in the picture
# The file of the unfinished run of the gated twin.
TWIN = "gated-run.safetensors"
NETWORKS = {"relu": "ReLU network", "gated": "gated network"}
FILES = {"relu": "network.safetensors", "gated": "gated-network.safetensors"}
Trained = tuple[torch.nn.Module, Trajectory]


def train_and_compare(setup: GDLNSetup, limit: GatedOLS) -> Iterator[Finding]:
    """Train both networks from the start of the run, and find how they compare with the limit."""
    data, options, n_steps = setup.data, setup.options, setup.settings.n_steps
    start = torch.tensor(setup.start, dtype=torch_dtype(options.dtype))
    relu = ReLUMean.from_weights(start, device=options.device)
    twin = relu.frozen()
    setup.progress.stage(f"training a ReLU network for {n_steps} steps")
    path = _train(setup, relu, None)
    yield _trained(setup, (relu, path))
    setup.progress.stage("comparing")
    yield _comparison(setup, path)
    if not path.finished:
        return
    setup.progress.stage(f"training its gated linear twin for {n_steps} steps")
    of_twin = _train(setup, twin, setup.gates, state=TWIN, first=False)
    yield _trained(setup, (relu, path), (twin, of_twin))
    flow = gated_flow(data.X, data.y, setup.gates, setup.start)
    off_path = _off_path(flow, setup.settings, of_twin)
    yield limit_finding(limit, off_path)
    known = _of_twin(limit, flow, of_twin, off_path)
    values = {**known.near, **known.beside, "final_loss": float(of_twin.loss[-1])}
    side = Side(NETWORKS["gated"], values)
    yield Finding("twin", evidence=(known,)).but(sides=(side,))


def _train(setup: GDLNSetup, network: torch.nn.Module, gates: Any, **which: Any) -> Trajectory:
    X, y, observer = setup.data.X, setup.data.y, WeightsObserver(setup.data.X)
    return fit(setup, network, X, y, gates, settings=setup.settings, observer=observer, **which)


def _off_path(flow: GatedFlow, settings: TrainingSettings, twin: Trajectory) -> float:
    """Return how far the gated network came off full-batch descent in closed form."""
    path = descent_path(flow, settings, twin.step)
    return float(path_errors(twin.observed["weights"], path).max())


def _of_twin(limit: GatedOLS, flow: GatedFlow, twin: Trajectory, off_path: float) -> Evidence:
    """Return the evidence on the gated network, beside its limit and its predicted path."""
    weights = twin.observed["weights"][-1]
    return Evidence(
        status=limit.status,
        near={"limit_error": float(path_errors(weights[None], flow.limit[None])[0])},
        beside={"path_error": off_path},
        reason="the flow is as far away at this time: give more `--steps`",
        remark="" if twin.finished else "interrupted",
        network=NETWORKS["gated"],
    )


def _trained(setup: GDLNSetup, relu: Trained, twin: Trained | None = None) -> Finding:
    """Return the finding of the ReLU network, and of its gated twin once it is trained too."""
    both = {"relu": relu} | ({} if twin is None else {"gated": twin})
    path, of_twin = relu[1], None if twin is None else twin[1]
    return Finding.said(
        "network",
        files={FILES[key]: write_path(run, setup.settings) for key, (_, run) in both.items()},
        panels=(
            partial(plot_losses, path, of_twin),
            partial(plot_localisation, trajectory=path),
            partial(plot_sign_flips, trajectory=path),
        ),
        objects={
            "network": {key: network for key, (network, _) in both.items()},
            "trajectory": {key: run for key, (_, run) in both.items()},
        },
        row=path.cells(),
        finished=all(run.finished for _, run in both.values()),
    )


def _comparison(setup: GDLNSetup, relu: Trajectory) -> Finding:
    """Compare the ReLU network with gated networks of its gates before and after training."""
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
        assumptions=(STAY.found(flips=flips),),
        sides=(
            Side(
                NETWORKS["relu"],
                {
                    "limit_error": found.prediction("initial", limit=True).relative_error,
                    "final_loss": found.loss,
                    "gate_changes": flips,
                },
            ),
        ),
        verdicts=(decide(_of_relu(found)),),
    )


def _of_relu(found: GDLNComparison) -> Evidence:
    """Return the evidence on the ReLU network: the theorem is about gates that stay."""
    own = found.prediction("initial", limit=True).relative_error
    if found.sign_flips == 0:
        reason = "its predicted path is as far away at this time: give more `--steps`"
        return Evidence(near={"limit_error": own}, reason=reason, network=NETWORKS["relu"])
    after = found.prediction("final", limit=True).relative_error
    reason = (
        f"{found.sign_flips:.1%} of its gates changed, so that no theorem names its limit; it is "
        f"{after:.1%} off the limit that its last gates would have"
    )
    return Evidence(theory="none", reason=reason, network=NETWORKS["relu"])
