"""Predictions of the implicit bias of gradient descent, certified and compared with training.

Names are imported when they are first used, so that `import implicit_bias` stays instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._solve import Certificate, NotCertified, Settings, Status, certify
    from .comparison import Comparison, compare
    from .data import Dataset, load_digits, load_idx
    from .diagnostics import KKTDistance, kkt_distance
    from .formulations import GLNLimit, gln_program, solve_gln_svm
    from .gating import HyperplaneContexts
    from .networks import GLN
    from .prediction import ContextPredictor
    from .training import TrainingSettings, Trajectory, train

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
