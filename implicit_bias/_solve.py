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
from solvers.arrays import Array, array_namespace, as_float64, to_numpy

__all__ = [
    "Array",
    "Certificate",
    "GatedDesign",
    "MaxMarginProgram",
    "NotCertified",
    "Progress",
    "Settings",
    "Solution",
    "Status",
    "array_namespace",
    "as_float64",
    "certify",
    "solve",
    "support_vectors",
    "to_numpy",
]
