"""Max-margin programs of group norms: structured solvers, cvxpy, certificates."""

import logging

from .certificates.answer import Answer, NotCertified
from .certificates.constrained import ConstrainedCertificate, certify_constrained
from .certificates.html import html_table
from .certificates.max_margin import Certificate, certify
from .certificates.solution import Solution, conclude, support_vectors
from .certificates.status import Status, worst_status
from .methods.backends.cvxpy_margins import to_cvxpy
from .methods.backends.cvxpy_norms import norm_expression
from .methods.damped_newton import damped_newton
from .methods.dispatch import SOLVERS, solve
from .methods.hinge_rows import HingeSolution, solve_hinge
from .methods.interior.kernel import solve_kernel
from .methods.least_squares import (
    FitCertificate,
    LeastSquaresProgram,
    LeastSquaresSolution,
    MomentLeastSquares,
    SampledLeastSquares,
    certify_fit,
    solve_least_squares,
)
from .methods.nested import solve_nested
from .methods.norm_routes import solve_norm, solver_of
from .methods.one_vs_rest import iterate_one_vs_rest, one_vs_rest_programs, solve_one_vs_rest
from .methods.sets.exchange import SetSolution, exchange
from .methods.sets.nonnegative import nonnegative_fit
from .methods.settings import Progress, Settings, SolverName
from .methods.splitting import Split, split_rows
from .norms.norm import Norm, NormName
from .numerics.arrays import (
    Array,
    ArrayLike,
    DenseArray,
    array_namespace,
    as_float64,
    is_torch_array,
    to_numpy,
)
from .numerics.checks import (
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
from .numerics.factor import Factor
from .numerics.memory import require_memory
from .numerics.step_length import longest_step
from .programs.design import GatedDesign
from .programs.hinge_program import HingeCertificate, HingeProgram, certify_hinge
from .programs.images import GatedRows, RelativeMargins, Rows, dense_rows
from .programs.kernel_program import KernelProgram, KernelSolution, certify_kernel
from .programs.max_margin import MaxMarginProgram
from .programs.norm_program import NormProgram, NormSolution, certify_norm, conclude_norm

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Answer",
    "Array",
    "ArrayLike",
    "Certificate",
    "ConstrainedCertificate",
    "DenseArray",
    "Factor",
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
    "SetSolution",
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
    "damped_newton",
    "dense_rows",
    "html_table",
    "exchange",
    "is_torch_array",
    "longest_step",
    "iterate_one_vs_rest",
    "nonnegative_fit",
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
