"""Names of `implicit_bias.dynamics`, with the modules that they are loaded from."""

from .measures.directions import extrapolate_direction as extrapolate_direction
from .measures.growth.clocks import ConstantClock as ConstantClock
from .measures.growth.clocks import PowerClock as PowerClock
from .measures.growth.clocks import clock_of as clock_of
from .measures.growth.clocks import pace_of as pace_of
from .measures.growth.extrapolation import extrapolate as extrapolate
from .measures.growth.growth_law import UnitGrowth as UnitGrowth
from .measures.growth.margin_flow import MarginFlow as MarginFlow
from .measures.growth.margin_flow import margin_flow as margin_flow
from .measures.growth.rates import measure_rates as measure_rates
from .measures.growth.unit_growth import unit_growth as unit_growth
from .measures.increments import GradientSum as GradientSum
from .measures.increments import centred_head as centred_head
from .measures.increments import increment_residual as increment_residual
from .models.gdln.flow import gated_flow as gated_flow
