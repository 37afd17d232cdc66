"""Names of `implicit_bias.protocols`, with the modules that they are loaded from."""

from .networks.protocols import Gated as Gated
from .networks.protocols import HasDualNorms as HasDualNorms
from .networks.protocols import HasGates as HasGates
from .networks.protocols import HasGradientFactors as HasGradientFactors
from .networks.protocols import HasImbalance as HasImbalance
from .networks.protocols import HasUnitNorms as HasUnitNorms
from .networks.protocols import HasZeta as HasZeta
from .networks.protocols import Homogeneous as Homogeneous
from .networks.protocols import Network as Network
