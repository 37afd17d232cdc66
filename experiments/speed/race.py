"""Ours and every peer on the same programs to the same certified gaps, one row each.

First every solver runs alone in a forked process, with tighter and tighter tolerances until its
certified gap is below every target: that gives the tolerance that each target needs, the peak
memory, and an end to what takes too long. Then those that are quick enough run again in turns, all
in one further process, on the same arrays; their rows hold medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import click
import numpy as np

from solvers import MaxMarginProgram, Settings, solve

from .cases import Case, pair_program
from .peers import ENTRIES, OURS, PEERS, TARGETS, Answer, Peer
from .timing import Ended, OverTheLimit, Seconds, in_child, machine, peak_mib, timed

# Gap of the lower bound that judges peers without multipliers: far below the tightest target.
BOUND = 1e-10
# Runs of more seconds than these are not repeated: what they differ by does not depend on it.
REPEATED_BELOW = 0.5
# Of all rounds of a case together: far more than they take, in case one of them never ends.
ROUNDS_LIMIT = 1000.0
REACHED = "reached"


@dataclass(frozen=True)
class Row:
    """One solver, one program, one gap that was asked for."""

    case: str
    n: int
    n_inputs: int
    n_groups: int
    solver: str
    target: float
    status: str
    tolerance: float
    gap: float
    cpu_seconds: float
    wall_seconds: float
    repeats: int
    peak_mib: float
    machine: str

    @property
    def key(self) -> tuple[str, str, float]:
        return self.case, self.solver, self.target


@dataclass(frozen=True)
class Run:
    """One answer of a solver: its tolerance, certified gap, seconds and memory so far."""

    tolerance: float
    gap: float
    seconds: Seconds
    peak_mib: float


class Rows:
    """Rows by case, solver and target, in a file that is complete after every change."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.by_key: dict[tuple[str, str, float], Row] = {}
        if path is not None and path.exists():
            import pandas as pd

            read = pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])
            found = (Row(**record) for record in read.to_dict("records"))  # type: ignore[misc]
            self.by_key = {row.key: row for row in found}

    def put(self, rows: list[Row]) -> None:
        """Keep `rows`, in place of those of the same keys."""
        self.by_key |= {row.key: row for row in rows}
        if self._path is None:
            return
        import pandas as pd

        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".part")
        table = pd.DataFrame([asdict(row) for row in self.by_key.values()])
        table.to_csv(unfinished, index=False, float_format="%.4g", na_rep="nan")
        unfinished.replace(self._path)


def run_peers(cases: dict[str, Case], out: Path | None, repeats: int, limit: float) -> list[Row]:
    """Time every peer that is installed on every case; what `out` already holds is kept."""
    from threadpoolctl import threadpool_limits

    rows, where = Rows(out), machine()
    click.echo(where)
    with threadpool_limits(1):
        peers = ready_peers()
        for name, case in cases.items():
            _run_case(name, case(), peers, rows, Plan(repeats, limit, where))
    return list(rows.by_key.values())


@dataclass(frozen=True)
class Plan:
    """How often quick solvers run, the seconds a solver has for a case, and the machine."""

    repeats: int
    limit: float
    machine: str


def ready_peers() -> list[Peer]:
    """Those that are installed, after a small program: imports and compilers are not timed."""
    ready = []
    small = pair_program(None, (0, 1))
    rows = np.arange(20)
    for peer in PEERS:
        if not peer.installed:
            click.echo(f"{peer.name}: not installed, left out (pip install {peer.package})")
            continue
        peer.run(small.subset(rows), 1e-4)
        ready.append(peer)
    return ready


def _run_case(
    name: str, program: MaxMarginProgram, peers: list[Peer], rows: Rows, plan: Plan
) -> None:
    """The rows of one program that are not there yet."""
    peers = [peer for peer in peers if peer.takes(program)]
    wanted = [peer for peer in peers if (name, peer.name, TARGETS[0]) not in rows.by_key]
    blank = Row(
        name, program.n_samples, int(program.design.X.shape[1]), program.n_groups, "", np.nan, "",
        np.nan, np.inf, np.nan, np.nan, 0, np.nan, plan.machine,
    )  # fmt: skip
    if wanted:
        bound = solve(program, settings=Settings(tol=BOUND)).certificate.dual_objective
        for peer in wanted:
            found = _scout(program, peer, bound, replace(blank, solver=peer.name), plan.limit)
            rows.put(found)
            click.echo(f"{name}: {shown(found)}")
    _repeat(name, program, peers, rows, plan.repeats)


def _scout(
    program: MaxMarginProgram, peer: Peer, bound: float, blank: Row, limit: float
) -> list[Row]:
    """Rows of one run each, by the quickest tolerance that reaches a target."""
    if peer.entries(program) > ENTRIES:
        status = f"not started: {peer.entries(program):.1e} matrix entries"
        return [replace(blank, status=status, target=target) for target in TARGETS]
    runs: list[Run] = []
    ended = "not reached"
    try:
        for run in in_child(partial(_ladder, program, peer, bound), limit):
            runs.append(run)
    except OverTheLimit:
        ended = f"over {limit:g} s"
    except Ended as error:
        ended = f"failed: {error}"
    return [_row(runs, target, ended, replace(blank, target=target)) for target in TARGETS]


def _ladder(program: MaxMarginProgram, peer: Peer, bound: float) -> Iterator[Run]:
    """Runs of tighter and tighter tolerances, until the gap is below every target."""
    before = peak_mib()
    for tolerance in peer.tolerances:
        answer, seconds = timed(partial(peer.run, program, tolerance))
        peak = peak_mib() - before
        gap = peer.gap(program, answer, bound)
        yield Run(tolerance, gap, seconds, peak)
        if gap <= min(TARGETS):
            return


def _row(runs: list[Run], target: float, ended: str, blank: Row) -> Row:
    """The quickest run that reaches the target; else the best gap, and why there is no better."""
    reached = [run for run in runs if run.gap <= target]
    if not runs:
        return replace(blank, status=ended)
    best = min(reached, key=lambda run: run.seconds.cpu) if reached else min(
        runs, key=lambda run: run.gap
    )  # fmt: skip
    return replace(
        blank, status=REACHED if reached else ended, tolerance=best.tolerance, gap=best.gap,
        cpu_seconds=best.seconds.cpu, wall_seconds=best.seconds.wall, repeats=1,
        peak_mib=best.peak_mib,
    )  # fmt: skip


def _repeat(
    name: str, program: MaxMarginProgram, peers: list[Peer], rows: Rows, repeats: int
) -> None:
    """Run what is quick again, in turns, and put medians into the rows."""
    quick = {
        (peer.name, row.tolerance): peer.run
        for peer in peers
        for row in (rows.by_key[name, peer.name, target] for target in TARGETS)
        if 0 < row.repeats < repeats and row.cpu_seconds <= REPEATED_BELOW
    }
    if not quick:
        return
    times: dict[tuple[str, float], list[Seconds]] = {key: [] for key in quick}
    for key, took in in_child(partial(_in_turns, program, quick, repeats), ROUNDS_LIMIT):
        times[key].append(took)
    rows.put([
        replace(
            row, repeats=repeats,
            cpu_seconds=statistics.median(took.cpu for took in times[row.solver, row.tolerance]),
            wall_seconds=statistics.median(took.wall for took in times[row.solver, row.tolerance]),
        )
        for row in rows.by_key.values()
        if row.case == name and (row.solver, row.tolerance) in times and row.repeats
    ])  # fmt: skip


def _in_turns(
    program: MaxMarginProgram,
    runs: dict[tuple[str, float], Callable[[MaxMarginProgram, float], Answer]],
    repeats: int,
) -> Iterator[tuple[tuple[str, float], Seconds]]:
    """Every run in every round, each second round backwards: neighbours change sides."""
    for round_ in range(repeats):
        for key in list(runs)[:: 1 if round_ % 2 == 0 else -1]:
            yield key, timed(partial(runs[key], program, key[1]))[1]


def shown(rows: list[Row]) -> str:
    """One solver's rows of a case in a line."""
    each = "; ".join(f"{row.target:g}: {cell(row)}" for row in rows)
    return f"{rows[0].solver}, {rows[0].peak_mib:.0f} MiB, {each}"


def cell(row: Row) -> str:
    """Seconds of the processor, or how far the solver came."""
    if row.status == REACHED:
        return f"{row.cpu_seconds:.2g}"
    if row.repeats:
        return f"{row.status}, best {row.gap:.0e} in {row.cpu_seconds:.2g}"
    return row.status


def markdown(rows: list[Row], target: float) -> str:
    """Cases by solvers: processor seconds to a certified gap of `target`, ours in the first row."""
    by_key = {row.key: row for row in rows}
    cases = list(dict.fromkeys(row.case for row in rows))
    solvers = list(dict.fromkeys(row.solver for row in rows))
    lines = [["solver", *cases], ["---"] * (1 + len(cases))]
    for solver in sorted(solvers, key=lambda name: name != OURS):
        found = [by_key.get((case, solver, target)) for case in cases]
        lines.append([solver, *("" if row is None else cell(row) for row in found)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
