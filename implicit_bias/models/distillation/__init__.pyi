"""Names of `implicit_bias.models.distillation`, with the modules that they are loaded from."""

from .closed_form import distillation_limit as distillation_limit
from .closed_form import largest_start as largest_start
from .closed_form import sample_span as sample_span
from .data import TransferTask as TransferTask
from .data import image_task as image_task
from .data import make_angle_task as make_angle_task
from .flow import distillation_flow as distillation_flow
from .limit import DistillationLimit as DistillationLimit
from .losses import CLASS_LOSSES as CLASS_LOSSES
from .losses import LOSSES as LOSSES
from .losses import mean_loss as mean_loss
from .rates import restricted_convexity as restricted_convexity
from .risk import RiskBound as RiskBound
from .risk import angle as angle
from .risk import angle_tail as angle_tail
from .risk import error_angle as error_angle
from .risk import learning_curve as learning_curve
from .risk import polynomial_risk_bound as polynomial_risk_bound
from .risk import polynomial_tail as polynomial_tail
from .risk import risk_bound as risk_bound
from .risk import transfer_risk as transfer_risk
