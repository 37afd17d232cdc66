"""Names of `implicit_bias.programs`, with the modules that they are loaded from."""

from ._support.solve import to_cvxpy as to_cvxpy
from .limits.exact.features import UnitFeatures as UnitFeatures
from .limits.exact.frelu import SVMFReLU as SVMFReLU
from .limits.exact.joint_margin import JointMargin as JointMargin
from .limits.exact.l1 import L1Margin as L1Margin
from .limits.exact.linear import HardMarginSVM as HardMarginSVM
from .limits.exact.path_lasso import PathLasso as PathLasso
from .limits.exact.tokens import TokenMargin as TokenMargin
from .limits.finite.program import LeastPotential as LeastPotential
from .limits.finite.program import WeightDecay as WeightDecay
from .limits.formulation import Formulation as Formulation
from .limits.kernels.margin import KernelSVM as KernelSVM
from .limits.kernels.regression import KernelLeastSquares as KernelLeastSquares
from .limits.program_text import ProgramText as ProgramText
from .limits.program_text import describe_program as describe_program
from .limits.relu.formulation import ReLUMargin as ReLUMargin
from .models.dlgn.formulation import ConstantExperts as ConstantExperts
from .models.gdln.formulation import GatedLeastSquares as GatedLeastSquares
from .models.gln.formulation import SVMGLN as SVMGLN
from .models.gln.l2 import SVML2 as SVML2
from .models.gln.norms import GLNNorm as GLNNorm
from .models.gln.norms import gln_norm as gln_norm
from .models.gln.shallow import ContextSVMs as ContextSVMs
from .models.heads.losses import HeadLoss as HeadLoss
from .models.orthosep.formulation import OrthogonallySeparable as OrthogonallySeparable
