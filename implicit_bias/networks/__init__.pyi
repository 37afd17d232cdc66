"""Names of `implicit_bias.networks`, with the modules that they are loaded from."""

from .deep_gln import DeepGLN as DeepGLN
from .deep_linear import DeepLinear as DeepLinear
from .dgn import DGN as DGN
from .dgn import initial_variance as initial_variance
from .dlgn import DLGN as DLGN
from .exits import Trunk as Trunk
from .frelu import FReLU as FReLU
from .gln import GLN as GLN
from .relu import ReLU as ReLU
from .shallow_gln import ShallowGLN as ShallowGLN
