"""Names of `implicit_bias.measures`, with the modules that they are loaded from."""

from .comparison import Comparison as Comparison
from .distances import Distances as Distances
from .kkt import KKTDistance as KKTDistance
from .layers import LayerSeparability as LayerSeparability
from .layers import layer_features as layer_features
from .layers import separability_by_layer as separability_by_layer
from .network_check import NetworkCheck as NetworkCheck
