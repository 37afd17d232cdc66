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
    from .distances import Distances as Distances
    from .estimators import FReLULimitClassifier as FReLULimitClassifier
    from .estimators import GLNLimitClassifier as GLNLimitClassifier
    from .estimators import InseparableWarning as InseparableWarning
    from .estimators import LinearLimitClassifier as LinearLimitClassifier
    from .extrapolation import extrapolate as extrapolate
    from .extrapolation import extrapolate_direction as extrapolate_direction
    from .formulations import GLNLimit as GLNLimit
    from .formulations import gln_program as gln_program
    from .formulations import solve_gln_svm as solve_gln_svm
    from .formulations.frelu import FReLULimit as FReLULimit
    from .formulations.frelu import solve_frelu_svm as solve_frelu_svm
    from .formulations.gdln import solve_gated_ols as solve_gated_ols
    from .formulations.gdln_flow import gated_flow as gated_flow
    from .formulations.gln_l2 import GLNL2Limit as GLNL2Limit
    from .formulations.gln_l2 import solve_gln_l2_svm as solve_gln_l2_svm
    from .formulations.linear import LinearLimit as LinearLimit
    from .formulations.linear import solve_linear_svm as solve_linear_svm
    from .formulations.orthosep import solve_orthosep as solve_orthosep
    from .formulations.shallow_gln import solve_shallow_gln_svm as solve_shallow_gln_svm
    from .gating import HyperplaneContexts as HyperplaneContexts
    from .networks import GLN as GLN
    from .networks.frelu import FReLU as FReLU
    from .networks.linear import DeepLinear as DeepLinear
    from .networks.relu import ReLU as ReLU
    from .networks.shallow_gln import ShallowGLN as ShallowGLN
    from .orthosep_data import is_orthogonally_separable as is_orthogonally_separable
    from .prediction import ContextPredictor as ContextPredictor
    from .rates import measure_rates as measure_rates
    from .relu_gating import HyperplaneGates as HyperplaneGates
    from .relu_gating import ReLUGates as ReLUGates
    from .training import TrainingSettings as TrainingSettings
    from .training import train as train
    from .training import train_many as train_many
    from .trajectory import Trajectory as Trajectory

_MODULES = {
    "Certificate": "_solve",
    "Comparison": "comparison",
    "ContextPredictor": "prediction",
    "Dataset": "data",
    "DeepLinear": "networks.linear",
    "Distances": "distances",
    "FReLU": "networks.frelu",
    "FReLULimit": "formulations.frelu",
    "FReLULimitClassifier": "estimators",
    "GLN": "networks",
    "GLNL2Limit": "formulations.gln_l2",
    "GLNLimit": "formulations",
    "GLNLimitClassifier": "estimators",
    "HyperplaneContexts": "gating",
    "HyperplaneGates": "relu_gating",
    "InseparableWarning": "estimators",
    "KKTDistance": "diagnostics",
    "LinearLimit": "formulations.linear",
    "LinearLimitClassifier": "estimators",
    "NotCertified": "_solve",
    "ReLU": "networks.relu",
    "ReLUGates": "relu_gating",
    "Settings": "_solve",
    "ShallowGLN": "networks.shallow_gln",
    "Status": "_solve",
    "TrainingSettings": "training",
    "Trajectory": "trajectory",
    "certify": "_solve",
    "compare": "comparison",
    "extrapolate": "extrapolation",
    "extrapolate_direction": "extrapolation",
    "gated_flow": "formulations.gdln_flow",
    "gln_program": "formulations",
    "is_orthogonally_separable": "orthosep_data",
    "kkt_distance": "diagnostics",
    "load_digits": "data",
    "load_idx": "data",
    "measure_rates": "rates",
    "solve_frelu_svm": "formulations.frelu",
    "solve_gated_ols": "formulations.gdln",
    "solve_gln_l2_svm": "formulations.gln_l2",
    "solve_gln_svm": "formulations",
    "solve_linear_svm": "formulations.linear",
    "solve_orthosep": "formulations.orthosep",
    "solve_shallow_gln_svm": "formulations.shallow_gln",
    "train": "training",
    "train_many": "training",
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
