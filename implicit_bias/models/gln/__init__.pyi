"""Names of `implicit_bias.models.gln`, with the modules that they are loaded from."""

from .l2 import gln_l2_root as gln_l2_root
from .norms import MainEffects as MainEffects
from .norms import predictor_family as predictor_family
