"""The one seam through which this package reaches the numerical one, with all its public names."""

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

# Solvers of cvxpy are an extra.
_EXTRA = {"solve", "solve_nested", "solve_norm", "solve_one_vs_rest", "to_cvxpy"}


def __getattr__(name: str) -> object:
    """Load a name of the solvers."""
    if name not in solvers.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(solvers, name)
    globals()[name] = found = naming_extras()(found) if name in _EXTRA else found
    return found
