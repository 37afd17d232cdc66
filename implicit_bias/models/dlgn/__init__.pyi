"""Names of `implicit_bias.models.dlgn`, with the modules that they are loaded from."""

from .comparison import along_the_ones as along_the_ones
from .comparison import distinct as distinct
from .comparison import one_input as one_input
from .regions import closed_samples as closed_samples
from .regions import most_patterns as most_patterns
from .training import GateTraining as GateTraining
from .training import gating_of as gating_of
from .training import hard_scores as hard_scores
from .training import steepening as steepening
from .training import train_gates as train_gates
