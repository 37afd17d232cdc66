"""The table of models."""

from ..runs.model import Model
from .dgn.model import MODELS as DGN
from .diagonal.model import MODELS as DIAGONAL
from .distillation.model import MODELS as DISTILLATION
from .dlgn.model import MODELS as DLGN
from .gdln.model import MODELS as GDLN
from .gln.model import MODELS as GLN
from .heads.model import MODELS as HEADS
from .linear.model import MODELS as LINEAR
from .orthosep.model import MODELS as ORTHOSEP
from .relu.model import MODELS as RELU

__all__ = ["MODELS", "Model"]

MODELS: dict[str, Model] = {
    model.name: model
    for model in sorted(
        (*DGN, *DIAGONAL, *DISTILLATION, *DLGN, *GDLN, *GLN, *HEADS, *LINEAR, *ORTHOSEP, *RELU),
        key=lambda model: model.name,
    )
}
