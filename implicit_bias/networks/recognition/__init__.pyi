"""Names of `implicit_bias.networks.recognition`, with the modules that they are loaded from."""

from .dependence import Dependence as Dependence
from .dependence import InputDependence as InputDependence
from .dependence import measure_dependence as measure_dependence
from .dependence import measure_inputs as measure_inputs
from .homogeneity import GroupDegree as GroupDegree
from .homogeneity import Homogeneity as Homogeneity
from .homogeneity import measure_homogeneity as measure_homogeneity
from .layers import LayeredForm as LayeredForm
from .layers import find_layers as find_layers
from .layers import find_relu_layers as find_relu_layers
from .network import RecognisedNetwork as RecognisedNetwork
from .network import UnitsNetwork as UnitsNetwork
from .relu import NotReLU as NotReLU
from .relu import read_relu as read_relu
from .structure import Form as Form
from .structure import Structure as Structure
from .structure import recognise as recognise
from .subject import Subject as Subject
from .subject import take_subject as take_subject
from .units import UnitsForm as UnitsForm
from .units import find_units as find_units
