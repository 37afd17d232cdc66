"""Names of `implicit_bias.networks`, with the modules that they are loaded from."""

from .balanced_relu import BalancedReLU as BalancedReLU
from .balanced_relu import ResidualReLU as ResidualReLU
from .copied import CopiedUnits as CopiedUnits
from .deep_gln import DeepGLN as DeepGLN
from .deep_linear import DeepLinear as DeepLinear
from .dgn import DGN as DGN
from .dgn import initial_variance as initial_variance
from .diagonal_linear import DiagonalLinear as DiagonalLinear
from .dlgn import DLGN as DLGN
from .exits import ExitNetwork as ExitNetwork
from .exits import LabelledHead as LabelledHead
from .exits import SoftLabelHead as SoftLabelHead
from .exits import Trunk as Trunk
from .frelu import FReLU as FReLU
from .gln import GLN as GLN
from .linearised import ScaledNetwork as ScaledNetwork
from .relu import DeepReLU as DeepReLU
from .relu import ReLU as ReLU
from .relu_mean import GDLN as GDLN
from .relu_mean import ReLUMean as ReLUMean
from .shallow_gln import ColumnGLN as ColumnGLN
from .shallow_gln import ShallowGLN as ShallowGLN
from .soft_dgn import SoftDGN as SoftDGN
from .student import LinearStudent as LinearStudent
from .weights import Starting as Starting
