"""Names of `implicit_bias.quantities`, with the modules that they are loaded from."""

from .definition import Quantity as Quantity
from .definition import by_name as by_name
from .definition import distance_from_ideal as distance_from_ideal
from .formatting import aligned as aligned
from .formatting import power_of_ten as power_of_ten
from .formatting import rounded as rounded
from .formatting import spread as spread
from .measured import Measured as Measured
from .measured import derived as derived
from .measured import part as part
from .measured import quantity as quantity
from .measured import side_by_side as side_by_side
from .measured import stacked as stacked
from .table import MEASURED as MEASURED
from .table import TABLE as TABLE
from .table import lines as lines
from .table import read_quantities as read_quantities
