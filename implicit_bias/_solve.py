"""The one seam through which this package reaches the numerical one."""

from solvers import (
    Certificate,
    GatedDesign,
    MaxMarginProgram,
    NotCertified,
    Progress,
    Settings,
    Solution,
    Status,
    certify,
    solve,
    support_vectors,
)
from solvers.arrays import Array, array_namespace, as_float64, is_torch_array, to_numpy
from solvers.least_squares import (
    FitCertificate,
    FitNotCertified,
    FitStatus,
    LeastSquaresProgram,
    LeastSquaresSolution,
    MomentLeastSquares,
    SampledLeastSquares,
    certify_fit,
    solve_least_squares,
)
from solvers.one_vs_rest import iterate_one_vs_rest, one_vs_rest_programs, solve_one_vs_rest

__all__ = [
    "Array",
    "Certificate",
    "FitCertificate",
    "FitNotCertified",
    "FitStatus",
    "GatedDesign",
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
    "certify_fit",
    "is_torch_array",
    "iterate_one_vs_rest",
    "one_vs_rest_programs",
    "solve",
    "solve_least_squares",
    "solve_one_vs_rest",
    "support_vectors",
    "to_numpy",
]
