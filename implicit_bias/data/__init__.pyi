"""Names of `implicit_bias.data`, with the modules that they are loaded from."""

from .bundled import TABLES as TABLES
from .catalogue import DRAWN as DRAWN
from .catalogue import IMAGE_SETS as IMAGE_SETS
from .images import load_digit_classes as load_digit_classes
from .images import load_idx_classes as load_idx_classes
from .made.circle import circle_values as circle_values
from .made.circle import is_easy as is_easy
from .made.orthants import orthosep_dataset as orthosep_dataset
from .made.pairs import load_pair as load_pair
from .made.quadrants import quadrant_dataset as quadrant_dataset
from .names import NAMES as NAMES
from .names import TableName as TableName
from .names import files_of as files_of
from .names import is_file as is_file
