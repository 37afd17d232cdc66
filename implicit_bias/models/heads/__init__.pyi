"""Names of `implicit_bias.models.heads`, with the modules that they are loaded from."""

from ...limits.exact.split import distance_bound as distance_bound
from .exits import anytime_average as anytime_average
from .exits import averages as averages
from .exits import budget_exits as budget_exits
from .exits import solve_exit_heads as solve_exit_heads
from .limit import HeadLimit as HeadLimit
from .losses import HeadLoss as HeadLoss
from .losses import exit_loss as exit_loss
from .training import confidence as confidence
from .training import distillation_loss as distillation_loss
from .training import exits_loss as exits_loss
from .training import train_exit_heads as train_exit_heads
from .training import train_multi_exit as train_multi_exit
