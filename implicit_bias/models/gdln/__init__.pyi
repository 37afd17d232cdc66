"""Names of `implicit_bias.models.gdln`, with the modules that they are loaded from."""

from .comparison import WeightsObserver as WeightsObserver
from .comparison import compare_with_gdln as compare_with_gdln
from .comparison import descent_path as descent_path
from .comparison import inverse_participation_ratio as inverse_participation_ratio
from .data import RingData as RingData
from .data import make_nlgp as make_nlgp
from .data import make_single_pulse as make_single_pulse
from .data import ring_kernel as ring_kernel
from .figure import plot_localisation as plot_localisation
from .figure import plot_loss as plot_loss
from .figure import plot_losses as plot_losses
from .figure import plot_sign_flips as plot_sign_flips
from .figure import plot_unit as plot_unit
from .figure import plot_units as plot_units
from .flow import gated_flow as gated_flow
from .flow import gated_flow_from_moments as gated_flow_from_moments
from .formulation import GatedLeastSquares as GatedLeastSquares
from .formulation import GatedOLS as GatedOLS
from .formulation import solve_gated_ols as solve_gated_ols
from .formulation import solve_gated_ols_from_moments as solve_gated_ols_from_moments
