"""Names of `implicit_bias.runs.diagnosis`, with the modules that they are loaded from."""

from .local import find_local as find_local
from .method import Method as Method
from .method import read_method as read_method
from .network_report import diagnose as diagnose
from .optimum import Optimum as Optimum
from .optimum import find_optimum as find_optimum
from .optimum import quadratic_bound as quadratic_bound
from .optimum import unseparated_twins as unseparated_twins
from .state import MeasuredNetwork as MeasuredNetwork
from .state import OwnNetwork as OwnNetwork
from .state import measure_own as measure_own
from .theory import THEORIES as THEORIES
from .theory import Theory as Theory
