"""Names of `implicit_bias.runs`, with the modules that they are loaded from."""

from ..limits.exact.optimiser_norms import INDUCED as INDUCED
from ..quantities.assumptions import KNOWN as KNOWN
from ..quantities.assumptions import Premise as Premise
from .classes.label_agreement import agreement_ahead as agreement_ahead
from .gathering import gather as gather
from .model import Holds as Holds
from .progress import Lines as Lines
from .progress import Progress as Progress
from .seeds import Seeds as Seeds
from .setup import training_settings as training_settings
from .unit_changes import slow_units_finding as slow_units_finding
