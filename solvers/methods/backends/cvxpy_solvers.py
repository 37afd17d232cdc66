"""The door to the solvers of cvxpy: which there are, what they take, and their one call."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..settings import Settings

if TYPE_CHECKING:
    import cvxpy


def labelled(constraint: cvxpy.Constraint, label: str) -> cvxpy.Constraint:
    """Label a constraint, where cvxpy knows labels (from 1.7 on)."""
    return constraint.set_label(label) if hasattr(constraint, "set_label") else constraint


def require_conic(name: str) -> None:
    """Refuse the name of a cvxpy solver that is not installed, or takes no second-order cones.

    Raises
    ------
    ValueError
        With the solvers that do.
    """
    require_installed(name)
    if not is_conic(name):
        raise ValueError(f"cvxpy:{name} takes no norms: use one of {', '.join(conic_solvers())}")


def require_installed(name: str) -> None:
    """Refuse the name of a solver that cvxpy has not installed; raises ValueError."""
    import cvxpy as cp

    installed = cp.installed_solvers()
    if name not in installed:
        raise ValueError(f"cvxpy has no solver {name!r} installed; it has {', '.join(installed)}")


def is_conic(name: str) -> bool:
    """Return whether cvxpy hands second-order cones to a solver of that name."""
    import cvxpy as cp
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC

    interface = SOLVER_MAP_CONIC.get(name)
    return interface is not None and cp.SOC in interface.SUPPORTED_CONSTRAINTS


def conic_solvers() -> list[str]:
    """Return the names of the solvers that take second-order cones."""
    import cvxpy as cp

    return list(filter(is_conic, cp.installed_solvers()))


# Names that each solver has for its tolerances and its limit on iterations.
TOLERANCES = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "ECOS": ("abstol", "reltol", "feastol"),
    "SCS": ("eps_abs", "eps_rel"),
    "OSQP": ("eps_abs", "eps_rel"),
}
LIMITS = {"CLARABEL": "max_iter", "ECOS": "max_iters", "SCS": "max_iters", "OSQP": "max_iter"}
# First-order solvers stop at 1e4 to 1e5 iterations by default, far from the tolerances asked here.
DEFAULT_LIMITS = {"CLARABEL": 200, "ECOS": 200, "SCS": 200_000, "OSQP": 200_000}
# A point that violates its constraints by the solver's tolerance loses as much of its gap when
# it is scaled to feasibility, so that the solver is asked for more than the caller wants.
SAFETY = 0.1


def run_problem(problem: cvxpy.Problem, name: str, settings: Settings) -> int:
    """Solve in place and count iterations; certificates judge the outcome, not cvxpy's status."""
    import cvxpy as cp

    options: dict[str, float | int] = dict.fromkeys(TOLERANCES.get(name, ()), SAFETY * settings.tol)
    if name in LIMITS:
        options[LIMITS[name]] = settings.max_iterations or DEFAULT_LIMITS[name]
    elif settings.max_iterations is not None:
        raise ValueError(
            f"`max_iterations` is not known for cvxpy:{name}: leave it out, "
            f"or use one of {', '.join(LIMITS)}"
        )
    try:
        with warnings.catch_warnings():
            # cvxpy warns of inaccurate solutions; their certificate says how inaccurate.
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            _interruptible(lambda: problem.solve(solver=name, **options))
    except cp.SolverError:
        return 0  # no point came out: variables stay without a value, and the answer says so
    stats = problem.solver_stats
    return int(stats.num_iters) if stats is not None and stats.num_iters is not None else 0


# Seconds between two looks for Ctrl-C: a solver that runs longer ends late by so much at most.
POLL = 0.05


def _interruptible(run: Callable[[], object]) -> None:
    """Call `run` in a thread, so that Ctrl-C ends the wait: compiled solvers never look for it.

    The thread is left to end by itself, and with the process if that ends first.
    """
    raised: list[BaseException] = []

    def guarded() -> None:
        """Run, and keep the error for the thread that waits."""
        try:
            run()
        except BaseException as error:  # handed over to the thread that waits
            raised.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL)
    if raised:
        raise raised[0]
