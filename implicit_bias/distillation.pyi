"""Names of `implicit_bias.distillation`, with the modules that they are loaded from."""

from .models.distillation.closed_form import distillation_limit as distillation_limit
from .models.distillation.data import make_angle_task as make_angle_task
from .models.distillation.flow import distillation_flow as distillation_flow
from .models.distillation.limit import DistillationLimit as DistillationLimit
from .models.distillation.rates import restricted_convexity as restricted_convexity
from .models.distillation.risk import RiskBound as RiskBound
from .models.distillation.risk import angle_tail as angle_tail
from .models.distillation.risk import learning_curve as learning_curve
from .models.distillation.risk import risk_bound as risk_bound
from .models.distillation.risk import transfer_risk as transfer_risk
