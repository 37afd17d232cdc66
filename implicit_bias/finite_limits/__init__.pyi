"""Names of `implicit_bias.finite_limits`, with the modules that they are loaded from."""

from .diagonal import DiagonalCertificate as DiagonalCertificate
from .diagonal import DiagonalLimit as DiagonalLimit
from .diagonal import solve_diagonal as solve_diagonal
from .effective_start import EffectiveStart as EffectiveStart
