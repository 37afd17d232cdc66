"""Names of `implicit_bias.gates`, with the modules that they are loaded from."""

from ..models.dlgn.regions import active_paths as active_paths
from ..models.dlgn.regions import count_patterns as count_patterns
from .activity import GateActivity as GateActivity
from .activity import gate_activity as gate_activity
from .changes import GateChanges as GateChanges
from .changes import gate_changes as gate_changes
from .hyperplanes import HyperplaneContexts as HyperplaneContexts
from .hyperplanes import HyperplaneGates as HyperplaneGates
from .layered import LinearGates as LinearGates
from .layered import NetworkGates as NetworkGates
from .random_gates import RandomGates as RandomGates
from .relu import ReLUGates as ReLUGates
from .soft import SoftGates as SoftGates
