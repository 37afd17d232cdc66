"""Names of `implicit_bias.programs`, with the modules that they are loaded from."""

from ._solve import to_cvxpy as to_cvxpy
from .limits.frelu import SVMFReLU as SVMFReLU
from .limits.linear import HardMarginSVM as HardMarginSVM
from .models.gln.formulation import SVMGLN as SVMGLN
from .models.gln.formulation import gln_program as gln_program
