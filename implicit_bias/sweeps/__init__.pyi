"""Names of `implicit_bias.sweeps`, with the modules that they are loaded from."""

from ..options.choices import GridOptions as GridOptions
from ..runs.reports.row import row_schema as row_schema
from .engines.engine import Engine as Engine
from .grids import Grid as Grid
from .grids import drawn as drawn
from .grids import product as product
from .grids import zipped as zipped
from .records import NotWritten as NotWritten
from .rows import sweep_schema as sweep_schema
from .sweep import Sweep as Sweep
from .table import read_rows as read_rows
