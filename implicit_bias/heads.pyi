"""Names of `implicit_bias.heads`, with the modules that they are loaded from."""

from .models.heads.exits import anytime_average as anytime_average
from .models.heads.exits import budget_exits as budget_exits
from .models.heads.exits import solve_exit_heads as solve_exit_heads
from .models.heads.limit import HeadLimit as HeadLimit
from .models.heads.training import train_exit_heads as train_exit_heads
from .models.heads.training import train_multi_exit as train_multi_exit
from .networks.exits import Trunk as Trunk
from .networks.exits import train_trunk as train_trunk
