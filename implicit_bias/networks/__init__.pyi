"""Names of `implicit_bias.networks`, with the modules that they are loaded from."""

from .attention import Attention as Attention
from .balanced_relu import BalancedReLU as BalancedReLU
from .balanced_relu import ResidualReLU as ResidualReLU
from .copied import CopiedUnits as CopiedUnits
from .deep_linear import DeepLinear as DeepLinear
from .diagonal_linear import DiagonalLinear as DiagonalLinear
from .exits import ExitNetwork as ExitNetwork
from .exits import LabelledHead as LabelledHead
from .exits import SoftLabelHead as SoftLabelHead
from .exits import Trunk as Trunk
from .gated.deep_gln import DeepGLN as DeepGLN
from .gated.dgn import DGN as DGN
from .gated.dgn import initial_variance as initial_variance
from .gated.dlgn import DLGN as DLGN
from .gated.frelu import FReLU as FReLU
from .gated.gln import GLN as GLN
from .gated.shallow_gln import ColumnGLN as ColumnGLN
from .gated.shallow_gln import ShallowGLN as ShallowGLN
from .gated.soft_dgn import SoftDGN as SoftDGN
from .linearised import ScaledNetwork as ScaledNetwork
from .relu import DeepReLU as DeepReLU
from .relu import ReLU as ReLU
from .relu_mean import GDLN as GDLN
from .relu_mean import ReLUMean as ReLUMean
from .student import LinearStudent as LinearStudent
from .weights import Starting as Starting
