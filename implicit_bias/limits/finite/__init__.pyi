"""Names of `implicit_bias.limits.finite`, with the modules that they are loaded from."""

from .certificate import FitLimitCertificate as FitLimitCertificate
from .diagonal import DiagonalCertificate as DiagonalCertificate
from .diagonal import DiagonalLimit as DiagonalLimit
from .diagonal import solve_diagonal as solve_diagonal
from .effective_start import EffectiveStart as EffectiveStart
from .fit import solve_adamw as solve_adamw
from .fit import solve_fit as solve_fit
from .fit import solve_fit_path as solve_fit_path
from .limit import FitLimit as FitLimit
from .program import WeightDecay as WeightDecay
