"""Names of `implicit_bias.datasets`, with the modules that they are loaded from."""

from .data.catalogue import Loading as Loading
from .data.catalogue import load_class_data as load_class_data
from .data.catalogue import load_data as load_data
from .data.dataset import Dataset as Dataset
from .data.images import load_digits as load_digits
from .data.images import load_idx as load_idx
from .data.labelled import ClassDataset as ClassDataset
from .data.made.circle import make_circle as make_circle
from .data.made.near_orthogonal import NearOrthogonality as NearOrthogonality
from .data.made.near_orthogonal import make_near_orthogonal as make_near_orthogonal
from .data.made.near_orthogonal import near_orthogonality as near_orthogonality
from .data.made.orthants import OrthogonalSeparability as OrthogonalSeparability
from .data.made.orthants import is_orthogonally_separable as is_orthogonally_separable
from .data.made.orthants import make_orthosep as make_orthosep
from .data.made.quadrants import make_quadrants as make_quadrants
from .data.made.text import text_contexts as text_contexts
from .data.sample import Sample as Sample
from .data.tokens import TokenData as TokenData
from .data.tokens import make_tokens as make_tokens
from .models.distillation.data import make_angle_task as make_angle_task
from .models.gdln.data import make_nlgp as make_nlgp
from .models.gdln.data import make_single_pulse as make_single_pulse
from .models.next_token.tokens import TokenCounts as TokenCounts
from .models.next_token.tokens import token_counts as token_counts
