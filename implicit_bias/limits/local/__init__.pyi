"""Names of `implicit_bias.limits.local`, with the modules that they are loaded from."""

from .limit import LocalLimit as LocalLimit
from .limit import same_limit as same_limit
from .newton import Point as Point
from .newton import polish as polish
from .orbits import limits_reached as limits_reached
from .orbits import lowest_curvature as lowest_curvature
from .problem import pose_problem as pose_problem
from .search import local_limit as local_limit
from .second_order import second_order_steps as second_order_steps
from .successive import approaches as approaches
