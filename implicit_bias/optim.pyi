"""Names of `implicit_bias.optim`, with the modules that they are loaded from."""

from .training.margin_optimizer import MarginOptimizer as MarginOptimizer
from .training.optimisers import Annealed as Annealed
from .training.optimisers import Dual as Dual
from .training.optimisers import GradientDescent as GradientDescent
from .training.optimisers import Momentum as Momentum
from .training.optimisers import Normalised as Normalised
from .training.steepest_optimisers import Adam as Adam
from .training.steepest_optimisers import SteepestDescent as SteepestDescent
