"""The one seam through which this package reaches the numerical one, with all its public names."""

from ._extras import naming_extras

try:
    from solvers import *
    from solvers import Answer as Answer  # which another `solvers` has not
    from solvers.numerics import checks as checks
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
solve = naming_extras()(solve)
solve_nested = naming_extras()(solve_nested)
solve_norm = naming_extras()(solve_norm)
solve_one_vs_rest = naming_extras()(solve_one_vs_rest)
to_cvxpy = naming_extras()(to_cvxpy)
