"""Max-margin programs of group norms: structured solvers, cvxpy, certificates."""

from .certificate import Certificate, certify
from .design import GatedDesign
from .dispatch import SOLVERS, solve
from .programs import MaxMarginProgram
from .settings import Progress, Settings
from .solution import NotCertified, Solution, Status, support_vectors

__all__ = [
    "SOLVERS",
    "Certificate",
    "GatedDesign",
    "MaxMarginProgram",
    "NotCertified",
    "Progress",
    "Settings",
    "Solution",
    "Status",
    "certify",
    "solve",
    "support_vectors",
]
