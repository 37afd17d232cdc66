"""Names of `implicit_bias.models.relu`, with the modules that they are loaded from."""

from .comparison import compare_frozen as compare_frozen
from .comparison import compare_relu as compare_relu
from .comparison import view_relu as view_relu
from .figure import relu_lines as relu_lines
from .freezing import train_then_freeze as train_then_freeze
from .machines import ReLUView as ReLUView
from .machines import solve_relu_svms as solve_relu_svms
from .neurons_comparison import compare_with_limit as compare_with_limit
