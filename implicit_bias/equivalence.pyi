"""Names of `implicit_bias.equivalence`, with the modules that they are loaded from."""

from .measures.equivalence.alignment import Alignment as Alignment
from .measures.equivalence.alignment import align as align
from .measures.equivalence.canonical import CanonicalForm as CanonicalForm
from .measures.equivalence.canonical import canonical_form as canonical_form
from .measures.equivalence.folds import FoldSet as FoldSet
from .measures.equivalence.folds import fold_set as fold_set
from .measures.equivalence.folds import plane_of as plane_of
from .measures.equivalence.folds import transparent_at as transparent_at
from .measures.equivalence.groups import NetworkGroups as NetworkGroups
from .measures.equivalence.groups import group_networks as group_networks
from .measures.equivalence.identifiable import affine_pieces as affine_pieces
from .measures.equivalence.identifiable import check_general as check_general
from .measures.equivalence.identifiable import identifiable_network as identifiable_network
from .measures.equivalence.measure import MeasureDistance as MeasureDistance
from .measures.equivalence.measure import measure_distance as measure_distance
from .measures.equivalence.surfaces import FoldSurface as FoldSurface
from .measures.equivalence.surfaces import fold_surface as fold_surface
from .measures.equivalence.weights import ReLUWeights as ReLUWeights
