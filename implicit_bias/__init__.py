"""Predictions of the implicit bias of gradient descent, certified and compared with training.

Names are imported when they are first used, so that `import implicit_bias` stays instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._solve import Certificate as Certificate
    from ._solve import NotCertified as NotCertified
    from ._solve import Settings as Settings
    from ._solve import Status as Status
    from ._solve import certify as certify
    from .comparison import Comparison as Comparison
    from .comparison import compare as compare
    from .data import Dataset as Dataset
    from .data import load_digits as load_digits
    from .data import load_idx as load_idx
    from .diagnostics import KKTDistance as KKTDistance
    from .diagnostics import kkt_distance as kkt_distance
    from .formulations import GLNLimit as GLNLimit
    from .formulations import gln_program as gln_program
    from .formulations import solve_gln_svm as solve_gln_svm
    from .gating import HyperplaneContexts as HyperplaneContexts
    from .networks import GLN as GLN
    from .prediction import ContextPredictor as ContextPredictor
    from .training import TrainingSettings as TrainingSettings
    from .training import Trajectory as Trajectory
    from .training import train as train

_MODULES = {
    "Certificate": "_solve",
    "Comparison": "comparison",
    "ContextPredictor": "prediction",
    "Dataset": "data",
    "GLN": "networks",
    "GLNLimit": "formulations",
    "HyperplaneContexts": "gating",
    "KKTDistance": "diagnostics",
    "NotCertified": "_solve",
    "Settings": "_solve",
    "Status": "_solve",
    "TrainingSettings": "training",
    "Trajectory": "training",
    "certify": "_solve",
    "compare": "comparison",
    "gln_program": "formulations",
    "kkt_distance": "diagnostics",
    "load_digits": "data",
    "load_idx": "data",
    "solve_gln_svm": "formulations",
    "train": "training",
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
