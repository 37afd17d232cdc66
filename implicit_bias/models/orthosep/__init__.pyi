"""Names of `implicit_bias.models.orthosep`, with the modules that they are loaded from."""

from .cones import ConePair as ConePair
from .cones import solve_cone_pair as solve_cone_pair
from .diagnosis import OrthosepDiagnosis as OrthosepDiagnosis
from .diagnosis import OrthosepDistances as OrthosepDistances
from .diagnosis import diagnose_orthosep as diagnose_orthosep
from .diagnosis import neuron_groups as neuron_groups
from .diagnosis import ratio as ratio
from .figure import plot_layers as plot_layers
from .figure import plot_orthosep as plot_orthosep
from .formulation import NotOrthogonallySeparable as NotOrthogonallySeparable
from .formulation import OrthogonallySeparable as OrthogonallySeparable
from .formulation import solve_orthosep as solve_orthosep
from .limit import OrthosepLimit as OrthosepLimit
from .limit import RampFunction as RampFunction
from .schedule import halving_phases as halving_phases
from .training import layer_rows as layer_rows
from .training import layer_singular_values as layer_singular_values
