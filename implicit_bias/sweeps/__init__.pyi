"""Names of `implicit_bias.sweeps`, with the modules that they are loaded from."""

from ..reports.row import row_schema as row_schema
from .cell_files import NotWritten as NotWritten
from .cell_files import sweep_schema as sweep_schema
from .engines import Engine as Engine
from .sweep import Sweep as Sweep
