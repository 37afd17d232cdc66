"""The one seam through which this package reaches the numerical one, with all its public names."""

from collections.abc import Callable
from typing import Any

from .extras import naming_extras

try:
    import solvers
    from solvers import Answer as Answer  # which another `solvers` has not
    from solvers.numerics import checks as checks
    from solvers.numerics import intake as intake
except ImportError as error:
    if error.name != "solvers" or error.path is None:
        raise
    raise ImportError(
        f"this package needs its own `solvers`, and Python found {error.path} first: "
        "rename that file or folder, or run from another place",
        name="solvers",
        path=error.path,
    ) from error

# Each brings methods along that most runs never call: they are loaded when they are called.
_WHEN_CALLED = {
    "conclude_norm", "linear_program", "nonnegative_fit", "norm_expression", "solve",
    "solve_fit_program", "solve_nested", "solve_norm", "solve_one_vs_rest", "solver_of",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a name of the solvers."""
    if name not in solvers.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _when_called(name) if name in _WHEN_CALLED else getattr(solvers, name)
    globals()[name] = found = naming_extras()(found) if name == "to_cvxpy" else found
    return found


def _when_called(name: str) -> Callable[..., Any]:
    """Return a function of the solvers that is loaded when it is called."""

    @naming_extras()
    def call(*arguments: Any, **keywords: Any) -> Any:
        return getattr(solvers, name)(*arguments, **keywords)

    return call
