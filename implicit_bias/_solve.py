"""The one seam through which this package reaches the numerical one."""

from ._extras import naming_extras

try:
    from solvers import (
        Answer,
        Array,
        Certificate,
        ConstrainedCertificate,
        FitCertificate,
        GatedDesign,
        KernelProgram,
        KernelSolution,
        LeastSquaresProgram,
        LeastSquaresSolution,
        MaxMarginProgram,
        MomentLeastSquares,
        NotCertified,
        Progress,
        SampledLeastSquares,
        Settings,
        Solution,
        Status,
        array_namespace,
        as_float64,
        certify,
        certify_constrained,
        certify_fit,
        certify_kernel,
        is_torch_array,
        iterate_one_vs_rest,
        one_vs_rest_programs,
        require_columns,
        require_count,
        require_finite,
        require_fraction,
        require_inputs,
        require_labels,
        require_memory,
        require_positive,
        require_shape,
        require_tolerance,
        solve,
        solve_kernel,
        solve_least_squares,
        solve_nested,
        solve_one_vs_rest,
        support_vectors,
        to_cvxpy,
        to_numpy,
        worst_status,
    )
    from solvers.html import html_table
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
solve_one_vs_rest = naming_extras()(solve_one_vs_rest)
to_cvxpy = naming_extras()(to_cvxpy)

__all__ = [
    "Answer",
    "Array",
    "Certificate",
    "ConstrainedCertificate",
    "FitCertificate",
    "GatedDesign",
    "KernelProgram",
    "KernelSolution",
    "LeastSquaresProgram",
    "LeastSquaresSolution",
    "MaxMarginProgram",
    "MomentLeastSquares",
    "NotCertified",
    "Progress",
    "SampledLeastSquares",
    "Settings",
    "Solution",
    "Status",
    "array_namespace",
    "as_float64",
    "certify",
    "certify_constrained",
    "certify_fit",
    "certify_kernel",
    "html_table",
    "is_torch_array",
    "iterate_one_vs_rest",
    "one_vs_rest_programs",
    "require_columns",
    "require_count",
    "require_finite",
    "require_fraction",
    "require_inputs",
    "require_labels",
    "require_memory",
    "require_positive",
    "require_shape",
    "require_tolerance",
    "solve",
    "solve_kernel",
    "solve_least_squares",
    "solve_nested",
    "solve_one_vs_rest",
    "support_vectors",
    "to_cvxpy",
    "to_numpy",
    "worst_status",
]
