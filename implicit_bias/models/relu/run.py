"""The run of ReLU networks: one that learns its gates, four machines, and a copy that froze them.

What is learned comes before what is solved: there is no prediction without learned gates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from ...gates.changes import GateChanges
from ...gates.hyperplanes import HyperplaneGates
from ...limits.exact.frelu import SVMFReLU
from ...limits.exact.path_lasso import PathLasso
from ...measures.comparison import measure_network
from ...measures.kkt import kkt_distance
from ...quantities.atlas import named
from ...quantities.formatting import loss_in_words
from ...quantities.premises import SEPARATES
from ...quantities.said import Table
from ...quantities.table import lines
from ...runs.fit import fit
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.reports.findings import gating_file
from ...runs.reports.telling import told
from ...runs.reports.trained import Trained, divergence, unseparated
from ...runs.reports.verdict import Evidence, decide
from ...runs.reports.views import Views
from ...runs.setup import Setup, data_record, prepare
from ...runs.stages import Found, Run, Stage
from ...training.trainers import check_trainer
from ...training.trajectory import Trajectory
from .comparison import ReLUComparison, compare_relu, view_relu
from .figure import network_panels, relu_map_row
from .frozen_copy import find_frozen, frozen_samples
from .learning import LEARNS, ReLUSetup
from .local_limit import find_local_limit
from .machines import RELU_SVMS, ReLULimits, solve_relu_svms
from .model import GATES_STAY, SHALLOW
from .neurons import find_neurons, find_starts

if TYPE_CHECKING:
    from .model import ReLUOptions

DEEP = named(
    "no theorem names the limit of a ReLU network on general data. With several hidden layers one "
    "machine is the limit of something: SVM-HL, of the network that goes on training its last "
    "layer alone. The others are controls "
    "({lippl-2022}, section 5.2, has one hidden layer)"
)

ALONE = (
    "no theorem names the limit of a ReLU network on general data. Four machines freeze part of it "
    "(Lippl, Abbott and Chung, section 5.2, and gates-only of their program); the local optimum "
    "next to it was not looked for"
)


def run_relu(setup: Setup) -> Run[ReLUSetup]:
    """Train a ReLU network, freeze what it learned in four ways, and compare all of them.

    Beside them stands a network that froze its gates on the way and went on without changing
    them: the only one here whose limit a theorem names. With several hidden layers there is no
    such theorem; where a step is asked for, that network stands beside a bound and its local limit.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work; or if
        training diverges.
    """
    options = setup.options
    _check_options(options)
    samples, freeze_at = prepare(setup), options.freeze_at
    local, n_steps = options.depth == 2 and options.beside == "all", samples.settings.n_steps
    if local and freeze_at is None:
        freeze_at = n_steps // 2
    if freeze_at is not None and freeze_at > n_steps:
        raise ValueError(
            f"`--freeze-at {freeze_at}` lies beyond the {n_steps} steps of the schedule: freeze "
            "earlier, or give more `--steps`"
        )
    whole = ReLUSetup(**samples.shared, local=local, freeze_at=freeze_at)
    heading = setup.heading(
        data_record(samples.dataset),
        title=f"{whole.name} beside "
        + ("the local optimum next to it" if local else "four machines"),
        theorem="" if local else ALONE if options.depth == 2 else DEEP,
        source="none names the limit of a ReLU network"
        + ("" if options.depth == 2 else " of several hidden layers"),
    )
    return Run(setup=whole, heading=heading, stages=STAGES, checks=lambda: _check(whole))


def _check(setup: ReLUSetup) -> None:
    """See that the network is trained at all, and that the trainer takes it."""
    if not setup.trains:
        raise ValueError("`steps` 0 predicts alone, and the machines of relu need learned gates")
    check_trainer(setup.options.trainer, setup.network)


def _state(setup: ReLUSetup) -> Iterator[StatedProgram]:
    """State the programs of the four machines, and of the copy that freezes its gates."""
    train = setup.train
    view = view_relu(setup.network, train.X, train.y, _random_gates(setup))
    note = "of the network as it starts, and a run trains it first"
    notes = {"rc": "", "hl": f"activations are those {note}"}
    for key, (formulation, inputs, gates) in view.machines().items():
        setup.progress.stage(f"stating {RELU_SVMS[key]}")
        problem = formulation.literal(inputs, train.y, gates)
        yield stated(RELU_SVMS[key], problem, notes.get(key, f"gates are those {note}"))
    if setup.freeze_at is not None:
        widths = setup.widths
        frozen = SVMFReLU() if len(widths) == 1 else PathLasso(widths)
        setup.progress.stage(f"stating {frozen.name} on frozen gates")
        problem = frozen.literal(*frozen_samples(setup, setup.network)[0])
        name = f"{frozen.name} on the gates of step {setup.freeze_at}"
        yield stated(name, problem, f"gates are those {note}")


def _learn(setup: ReLUSetup, found: Found) -> Iterator[Finding]:
    """Train the network, which learns its gates."""
    network, n_steps = setup.network, setup.settings.n_steps
    setup.progress.stage(f"training a {setup.name} for {n_steps} steps")
    try:
        trajectory = fit(
            setup,
            network,
            *setup.train,
            settings=setup.settings,
            X_val=setup.held_out.X,
            observer=setup.kept,
            callback=setup.snapshots,
        )
    except FloatingPointError as error:  # there is no prediction without learned gates
        raise ValueError(str(error)) from error
    ended = Finding(
        "network",
        {"network": Trained(network, trajectory)},
        panels=tuple(network_panels(trajectory, setup.freeze_at)),
    )
    yield ended
    yield _measured(setup, trajectory, ended)


def _beside_machines(setup: ReLUSetup, found: Found) -> Iterator[Finding]:
    """Solve the four machines, and compare the network with them and with neurons."""
    network, options = setup.network, setup.options
    setup.progress.stage(f"solving four SVMs ({options.solver})")
    gating = _random_gates(setup)
    views = [view_relu(network, sample.X, sample.y, gating) for sample in setup.samples]
    limits = solve_relu_svms(views[0], solver=options.solver, tol=options.tol)
    yield _machines(limits)
    yield gating_file(gating)
    setup.progress.stage("comparing")
    yield _machines(limits, compare_relu(limits, network, *views))
    # Its place is before the pictures in the plane, whenever it is known.
    yield Finding.said("frozen", record={"frozen": None})
    yield find_neurons(setup, limits.lc, found.get("local_limit"))
    if setup.snapshots is not None and limits.lc.certificate.proves_separability():
        setup.snapshots.take(int(found["trajectory"].step[-1]))
        row = relu_map_row(limits.lc, network, setup.snapshots, setup.train)
        yield Finding.said("maps", panels=(row,))


STAGES: tuple[Stage[ReLUSetup], ...] = (
    Stage(finds=_learn),
    Stage(finds=find_local_limit, when=lambda setup, found: setup.local),
    Stage(finds=_beside_machines, states=_state),
    Stage(finds=find_frozen, trains=True, when=lambda setup, found: setup.freeze_at is not None),
    Stage(finds=find_starts, trains=True, when=lambda setup, found: setup.options.starts > 1),
)


def _measured(setup: ReLUSetup, trajectory: Trajectory, found: Finding) -> Finding:
    """The finding of the trained network with its measures, its gates and what they assume."""
    network, widths = setup.network, setup.widths
    separates = bool(trajectory.smallest_margin[-1] > 0)
    kkt = kkt_distance(network, *setup.train) if separates else None
    state = measure_network(network, *setup.samples, kkt)
    changes = GateChanges(
        step=trajectory.step.astype(np.int64),
        since_start=trajectory.observed["gate_changes"],
        since_last=trajectory.observed["gate_flips"],
    )
    flips = float(changes.since_start[-1])
    assumptions = [GATES_STAY.found(flips=flips), SEPARATES.found(holds=separates)]
    if len(widths) > 1:
        assumptions.append(SHALLOW.found(n_hidden=len(widths)))
    evidence = Evidence(
        theory="none",
        smallest_margin=float(trajectory.smallest_margin[-1]),
        diverged=divergence(trajectory),
        reason=unseparated(trajectory)
        or f"{flips:.1%} of its gates changed since the start, and nothing says that they stay",
        remark="" if unseparated(trajectory) else trajectory.stopped,
        network=LEARNS,
    )
    measured = {} if kkt is None else kkt.cells()
    cells = {**found.views.row, **state.cells(), **measured, "gate_changes": flips}
    known = cells | {
        "status": "finished" if trajectory.finished else "interrupted",
        "train_accuracy": state.train_accuracy,
        "final_loss": loss_in_words(float(trajectory.log_loss[-1])),
    }
    rows = (
        ("hidden units", " + ".join(map(str, widths))),
        *lines(known, "status", "smallest_margin"),
        *(state.lines("group_norm") if math.isfinite(state.group_norm) else []),
        *lines(known, "train_accuracy", "n_steps", "final_loss", "log_inverse_loss"),
        *lines(known, "gate_changes", "kkt_cosine", "kkt_residual", "kkt_complementarity"),
        *([] if kkt is None else kkt.lines("clarke_residual")),
        *lines(known, "training_seconds"),
    )
    return found.but(
        record={
            "network": asdict(state) | trajectory.record(),
            "gate_changes": changes.to_dict(),
        },
        row=cells,
        tables=(Table("trained network", ("", "value"), rows),),
        assumptions=tuple(assumptions),
        # Beside its local optimum there is more to say: see `find_local_limit`.
        verdicts=() if setup.local else (decide(evidence),),
    )


def _machines(limits: ReLULimits, comparison: ReLUComparison | None = None) -> Finding:
    """The four machines. The exit code is that of SVM-LC, the nearest to a limit among them."""
    of = {key: getattr(limits, key) for key in RELU_SVMS}
    record = {key: one.to_dict() for key, one in of.items()}
    solved = Views(
        record={"limits": record},
        files={"limit.safetensors": limits.lc.save},
        statuses={RELU_SVMS["lc"]: limits.lc.status},
        certificates={name: record[key] for key, name in RELU_SVMS.items()},
        objects={"limit": of},
        row={"limit": RELU_SVMS["lc"], **limits.lc.cells()},
    )
    beside = Views() if comparison is None else told("comparison", comparison)
    return Finding("machines", further=solved + beside)


def _random_gates(setup: ReLUSetup) -> HyperplaneGates:
    """Fit as many random gates as there are learned ones, and one that is always open."""
    options = setup.options
    return HyperplaneGates(
        sum(setup.widths),
        cutoffs=options.cutoffs,
        slope=options.slope,
        random_state=setup.seeds.gating,
    ).fit(setup.train.X)


def _check_options(options: ReLUOptions) -> None:
    """See that there is a hidden layer, and who freezes gates; raises ValueError otherwise."""
    depth = options.depth
    if options.freeze_at is not None and options.beside != "all":
        raise ValueError(
            f"`--freeze-at {options.freeze_at}` needs `--beside all`: the copy that freezes its "
            "gates is none of the machines"
        )
    if depth < 2:
        raise ValueError(
            f"`--depth {depth}` leaves a ReLU network without a hidden layer: take 2 or more, or "
            "the model linear"
        )
    if depth > 2 and options.slope and options.freeze_at is not None:
        raise ValueError(
            f"`--freeze-at` needs `--slope 0` at `--depth {depth}`: of several hidden layers gates "
            "are frozen as open or closed, not as those of leaky units"
        )
