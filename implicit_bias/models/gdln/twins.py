"""Training of a ReLU network of averaged units and of its gated twin, beside the limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ...networks.relu_mean import ReLUMean
from ...quantities.said import Side
from ...runs.drawing.figures import Row
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.saved.writers import write_path
from ...runs.reports.verdict import Evidence
from ...runs.reports.views import Views
from ...runs.setup import torch_dtype
from ...runs.stages import Found
from ...training.trajectory import Trajectory
from .comparison import (
    GDLNComparison,
    WeightsObserver,
    compare_with_gdln,
    descent_path,
    path_errors,
)
from .figure import plot_localisation, plot_losses, plot_sign_flips, plot_units
from .flow import GatedFlow
from .formulation import GatedOLS
from .model import STAY
from .run import GDLNSetup, limit_finding

UNITS = 4  # shown in the picture
# The file of the unfinished run of the gated twin.
TWIN = "gated-run.safetensors"
NETWORKS = {"relu": "ReLU network", "gated": "gated network"}
FILES = {"relu": "network.safetensors", "gated": "gated-network.safetensors"}


def train_relu(setup: GDLNSetup, found: Found) -> Iterator[Finding]:
    """Train the ReLU network from the start of the run."""
    relu = _start(setup)
    yield _networks(setup, relu=(relu, _train(setup, relu, None)))


def compare(setup: GDLNSetup, found: Found) -> Iterator[Finding]:
    """Compare the ReLU network with gated networks of its gates before and after training."""
    path = found["trajectory"]["relu"]
    compared = compare_with_gdln(setup.data.X, setup.data.y, path, setup.settings, flow=setup.flow)
    shown = Row(min(len(compared.weights), UNITS), partial(plot_units, comparison=compared))
    yield Finding(
        "comparison",
        {"comparison": compared},
        NETWORKS["relu"],
        assumptions=(STAY.found(flips=compared.sign_flips),),
        evidence=(_of_relu(compared, path),),
        panels=(shown,),
    )


def train_twin(setup: GDLNSetup, found: Found) -> Iterator[Finding]:
    """Train the gated twin from the same start, and find how near it is to its limit and path."""
    relu = (found["network"]["relu"], found["trajectory"]["relu"])
    twin = _start(setup).frozen()
    path = _train(setup, twin, setup.gates, state=TWIN, first=False)
    yield _networks(setup, relu=relu, gated=(twin, path))
    flow = setup.flow
    # How far it came off full-batch descent in closed form.
    predicted = descent_path(flow, setup.settings, path.step)
    off_path = float(path_errors(path.observed["weights"], predicted).max())
    yield limit_finding(found["limit"], off_path)
    known = _of_twin(found["limit"], flow, path, off_path)
    values = {**known.near, **known.beside, "final_loss": float(path.loss[-1])}
    sides = (Side(NETWORKS["gated"], values),)
    yield Finding("twin", evidence=(known,), further=Views(sides=sides))


def _start(setup: GDLNSetup) -> ReLUMean:
    options = setup.options
    start = torch.tensor(setup.start, dtype=torch_dtype(options.dtype))
    return ReLUMean.from_weights(start, device=options.device)


def _train(setup: GDLNSetup, network: torch.nn.Module, gates: Any, **which: Any) -> Trajectory:
    X, y, observer = setup.data.X, setup.data.y, WeightsObserver(setup.data.X)
    return fit(setup, network, X, y, gates, settings=setup.settings, observer=observer, **which)


def _networks(setup: GDLNSetup, **trained: tuple[torch.nn.Module, Trajectory]) -> Finding:
    """Return the finding of the ReLU network, and of its gated twin once it is trained too."""
    networks = {key: network for key, (network, _) in trained.items()}
    paths = {key: path for key, (_, path) in trained.items()}
    relu = paths["relu"]
    return Finding(
        "network",
        {"network": networks, "trajectory": paths},
        panels=(
            partial(plot_losses, relu, paths.get("gated")),
            partial(plot_localisation, trajectory=relu),
            partial(plot_sign_flips, trajectory=relu),
        ),
        further=Views(
            files={FILES[key]: write_path(path, setup.settings) for key, path in paths.items()},
            row=relu.cells(),
            finished=all(path.finished for path in paths.values()),
        ),
    )


def _of_twin(limit: GatedOLS, flow: GatedFlow, twin: Trajectory, off_path: float) -> Evidence:
    """Return the evidence on the gated network, beside its limit and its predicted path."""
    weights = twin.observed["weights"][-1]
    return Evidence(
        status=limit.status,
        near={"limit_error": float(path_errors(weights[None], flow.limit[None])[0])},
        beside={"path_error": off_path},
        reason=twin.stopped or "the flow is as far away at this time: give more `--steps`",
        remark="" if twin.finished else "interrupted",
        network=NETWORKS["gated"],
    )


def _of_relu(found: GDLNComparison, path: Trajectory) -> Evidence:
    """Return the evidence on the ReLU network: the theorem is about gates that stay."""
    if found.sign_flips == 0:
        way = "its predicted path is as far away at this time: give more `--steps`"
        reason = path.stopped or way
        return Evidence(
            near={"limit_error": found.limit_error}, reason=reason, network=NETWORKS["relu"]
        )
    after = found.prediction("final", limit=True).relative_error
    reason = (
        f"{found.sign_flips:.1%} of its gates changed, so that no theorem names its limit; its "
        f"weights are {found.limit_error:.3g} off the limit of its first gates (relative) and "
        f"{after:.3g} off that of its last"
    )
    return Evidence(theory="none", reason=reason, remark=path.stopped, network=NETWORKS["relu"])
