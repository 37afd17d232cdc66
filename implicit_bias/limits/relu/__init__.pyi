"""Names of `implicit_bias.limits.relu`, with the modules that they are loaded from."""

from .bound import relu_lower_bound as relu_lower_bound
from .branching import GateNodes as GateNodes
from .branching import Largest as Largest
from .branching import SortedSide as SortedSide
from .branching import largest_of_side as largest_of_side
from .directions import Direction as Direction
from .directions import best_directions as best_directions
from .directions import sides as sides
from .formulation import ReLUMargin as ReLUMargin
from .kinks import split_units as split_units
from .least_bias import LeastBias as LeastBias
from .least_bias import solve_least_bias as solve_least_bias
from .limit import ReLUCertificate as ReLUCertificate
from .limit import ReLULocalLimit as ReLULocalLimit
from .limit import network_units as network_units
from .minimum_norm import on_one_line as on_one_line
from .minimum_norm import solve_relu_minnorm as solve_relu_minnorm
from .problem import ReLUProblem as ReLUProblem
from .search import relu_local_limit as relu_local_limit
