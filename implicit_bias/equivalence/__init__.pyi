"""Names of `implicit_bias.equivalence`, with the modules that they are loaded from."""

from .alignment import Alignment as Alignment
from .alignment import align as align
from .canonical import CanonicalForm as CanonicalForm
from .canonical import canonical_form as canonical_form
from .folds import FoldSet as FoldSet
from .folds import fold_set as fold_set
from .folds import plane_of as plane_of
from .folds import transparent_at as transparent_at
from .groups import NetworkGroups as NetworkGroups
from .groups import group_networks as group_networks
from .identifiable import affine_pieces as affine_pieces
from .identifiable import check_general as check_general
from .identifiable import identifiable_network as identifiable_network
from .measure import MeasureDistance as MeasureDistance
from .measure import measure_distance as measure_distance
from .surfaces import FoldSurface as FoldSurface
from .surfaces import fold_surface as fold_surface
from .weights import ReLUWeights as ReLUWeights
