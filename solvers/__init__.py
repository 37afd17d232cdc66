"""Max-margin programs of group norms: structured solvers, cvxpy, certificates."""

import logging

from .answer import Answer, NotCertified
from .arrays import (
    Array,
    ArrayLike,
    DenseArray,
    array_namespace,
    as_float64,
    is_torch_array,
    to_numpy,
)
from .certificate import Certificate, certify
from .checks import (
    refuse_disguised,
    refuse_masked,
    require_array,
    require_columns,
    require_count,
    require_finite,
    require_fraction,
    require_inputs,
    require_labels,
    require_positive,
    require_real,
    require_scale,
    require_shape,
    require_tolerance,
    shown,
)
from .constrained import ConstrainedCertificate, certify_constrained
from .cvxpy_backend import to_cvxpy
from .design import GatedDesign
from .dispatch import SOLVERS, solve
from .hinge_program import HingeCertificate, HingeProgram, certify_hinge
from .hinge_rows import HingeSolution, solve_hinge
from .images import GatedRows, RelativeMargins, Rows, dense_rows
from .kernel_path import solve_kernel
from .kernel_program import KernelProgram, KernelSolution, certify_kernel
from .least_squares import (
    FitCertificate,
    LeastSquaresProgram,
    LeastSquaresSolution,
    MomentLeastSquares,
    SampledLeastSquares,
    certify_fit,
    solve_least_squares,
)
from .memory import require_memory
from .nested import solve_nested
from .norm_cvxpy import norm_expression
from .norm_program import NormProgram, NormSolution, certify_norm, conclude_norm
from .norm_routes import solve_norm, solver_of
from .norms import Norm, NormName
from .one_vs_rest import iterate_one_vs_rest, one_vs_rest_programs, solve_one_vs_rest
from .programs import MaxMarginProgram
from .settings import Progress, Settings, SolverName
from .solution import Solution, conclude, support_vectors
from .splitting import Split, split_rows
from .status import Status, worst_status
from .step_length import longest_step

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Answer",
    "Array",
    "ArrayLike",
    "Certificate",
    "ConstrainedCertificate",
    "DenseArray",
    "FitCertificate",
    "GatedDesign",
    "GatedRows",
    "HingeCertificate",
    "HingeProgram",
    "HingeSolution",
    "KernelProgram",
    "KernelSolution",
    "LeastSquaresProgram",
    "LeastSquaresSolution",
    "MaxMarginProgram",
    "MomentLeastSquares",
    "Norm",
    "NormName",
    "NormProgram",
    "NormSolution",
    "NotCertified",
    "Progress",
    "RelativeMargins",
    "Rows",
    "SOLVERS",
    "SampledLeastSquares",
    "Settings",
    "Solution",
    "SolverName",
    "Split",
    "Status",
    "array_namespace",
    "as_float64",
    "certify",
    "certify_constrained",
    "certify_fit",
    "certify_hinge",
    "certify_kernel",
    "certify_norm",
    "conclude",
    "conclude_norm",
    "dense_rows",
    "is_torch_array",
    "longest_step",
    "iterate_one_vs_rest",
    "norm_expression",
    "one_vs_rest_programs",
    "refuse_disguised",
    "refuse_masked",
    "require_array",
    "require_columns",
    "require_count",
    "require_finite",
    "require_fraction",
    "require_inputs",
    "require_labels",
    "require_memory",
    "require_positive",
    "require_real",
    "require_scale",
    "require_shape",
    "require_tolerance",
    "shown",
    "solve",
    "solve_hinge",
    "solve_kernel",
    "solve_least_squares",
    "solve_nested",
    "solve_norm",
    "solve_one_vs_rest",
    "solver_of",
    "split_rows",
    "support_vectors",
    "to_cvxpy",
    "to_numpy",
    "worst_status",
]
