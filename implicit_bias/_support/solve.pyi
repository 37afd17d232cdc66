"""Names of the seam: those of `solvers`."""

from solvers import *
from solvers.numerics import checks as checks
from solvers.numerics import intake as intake
