"""Names of `implicit_bias.gates`, with the modules that they are loaded from."""

from ..models.dlgn.regions import active_paths as active_paths
from ..models.dlgn.regions import count_patterns as count_patterns
from .hyperplanes import HyperplaneContexts as HyperplaneContexts
from .hyperplanes import HyperplaneGates as HyperplaneGates
from .layered import LinearGates as LinearGates
from .layered import NetworkGates as NetworkGates
from .relu import ReLUGates as ReLUGates
from .sensitive import GateActivity as GateActivity
from .sensitive import gate_activity as gate_activity
from .soft import SoftGates as SoftGates
from .table import RandomGates as RandomGates
