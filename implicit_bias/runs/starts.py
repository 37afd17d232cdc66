"""Networks from several starts on the same data, grouped by the network that they came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..measures.equivalence.groups import NetworkGroups, group_networks
from ..measures.equivalence.weights import ReLUWeights
from ..quantities.formatting import number
from ..quantities.said import Table, Writer
from ..training.trajectory_recorder import Observer
from .fit import STATE, fit_many
from .reports.finding import Finding
from .reports.telling import Several, told
from .reports.trained import Trained
from .setup import SampleSetup

if TYPE_CHECKING:
    import torch

# Up to this distance trained networks count as the same: it falls like 1 / log(1/loss), and
# two that train to one limit of orthogonally separable points are 0.01 to 0.06 apart at 100.
SAME = 0.1
# The same for limits, which are certified to 1e-10.
SAME_LIMIT = 1e-5


@dataclass(frozen=True, eq=False)
class Start(Trained):
    """One network and how it was trained.

    Attributes
    ----------
    limit : ReLUWeights or None
        The local limit that it is heading to, where that was computed.
    """

    limit: ReLUWeights | None = None


def train_starts(
    setup: SampleSetup,
    make: Callable[[int], torch.nn.Module],
    name: str,
    *,
    first: int = 1,
    observer: Observer | None = None,
) -> list[Start]:
    """Train networks side by side, each from weights of its own, on the data of a run.

    Parameters
    ----------
    setup : SampleSetup
        Its options have `starts`.
    make : callable
        `make(seed)` returns an untrained network.
    name : str
        Name of such a network.
    first : int
        Number of the first that is trained: 1 where the run has trained number 0 itself.
    observer : callable, optional
        Measures each network at every checkpoint, as in `train`.

    Returns
    -------
    list of Start
        All of them unfinished where the run was interrupted.

    Raises
    ------
    FloatingPointError
        If training from one of them diverges.
    """
    networks = [make(setup.seeds.weights + i) for i in range(first, setup.options.starts)]
    if not networks:
        return []
    n, further = len(networks), "further " if first else ""
    whose = f" from {n} {further}start{'s' * (n > 1)}" if n > 1 or first else ""
    setup.progress.stage(f"training a {name}{whose} for {setup.settings.n_steps} steps")
    trajectories = fit_many(
        setup,
        networks,
        state="run-starts.safetensors" if first else STATE,
        first=not first,
        observers=None if observer is None else [observer] * len(networks),
    )
    ended = {trajectory.finished for trajectory in trajectories}
    if len(ended) > 1:  # an interrupt ends all of them
        lost = [i for i, one in enumerate(trajectories, start=first + 1) if not one.finished]
        raise FloatingPointError(
            f"training diverged from start {', '.join(map(str, lost))} of {setup.options.starts}: "
            "use a smaller learning rate or smaller initial weights"
        )
    return [Start(*pair) for pair in zip(networks, trajectories, strict=True)]


def start_files(starts: Sequence[Start]) -> Mapping[str, Writer]:
    """Return writers of weights and trajectories of all networks but the first, the run's own."""
    others = Several(dict(enumerate(starts[1:], start=2)))
    return told("network", others).files


def starts_finding(starts: Sequence[Start], far: Mapping[str, Sequence[float]]) -> Finding:
    """Group the starts by the network they came to, modulo permutations, scales and a factor.

    Parameters
    ----------
    starts : sequence of Start
        The first one is the run's own.
    far : mapping of str to (n_starts,) floats
        Further columns of the table, distances.
    """
    groups = group_networks([one.network for one in starts], tol=SAME)
    paths = [one.trajectory for one in starts]
    known = [one.limit for one in starts if one.limit is not None]
    # None unless each start has a limit.
    limits = group_networks(known, tol=SAME_LIMIT) if len(known) == len(starts) else None
    columns: dict[str, Sequence[str]] = {
        "start": [str(index + 1) for index in range(len(starts))],
        "separates": ["yes" if one.separates else "NO" for one in starts],
        "log(1/loss)": [number(-float(path.log_loss[-1])) for path in paths],
        "network": _numbered(groups),
    }
    for name, column in {"off the first": groups.distances[0], **far}.items():
        columns[name] = [number(float(value), ".3g") for value in column]
    if limits is not None:
        columns["its limit"] = _numbered(limits)
    spread = groups.spread()
    apart = f"{spread[0]:.2g} within a group, {number(spread[1], '.2g')} between"
    title = f"which network is reached: {groups.n_groups} from {len(starts)} starts ({apart})"
    record = {
        "networks": groups.to_dict(),
        "limits": None if limits is None else limits.to_dict(),
        "far": {name: [float(value) for value in column] for name, column in far.items()},
        "runs": [path.record() for path in paths],
    }
    return Finding.said(
        "starts",
        record={"starts": record},
        tables=(Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True))),),
        files=start_files(starts),
        objects={"networks": [one.network for one in starts], "network_groups": groups},
        row={"n_networks": groups.n_groups}
        | ({} if limits is None else {"n_limits": limits.n_groups}),
        finished=all(path.finished for path in paths),
    )


def _numbered(groups: NetworkGroups) -> list[str]:
    return [f"#{label + 1}" for label in groups.labels]
