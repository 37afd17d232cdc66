"""Training of networks with frozen gates by gradient methods, alone or many at a time.

It knows no formulation: with a prediction it shares data and gating, nothing else.
"""

from .data import GatedData, Inputs, place_data
from .loop import Callback, Observer, train, train_many
from .settings import TrainingSettings
from .trainers import TRAINERS, check_trainer

__all__ = [
    "TRAINERS",
    "Callback",
    "GatedData",
    "Inputs",
    "Observer",
    "TrainingSettings",
    "check_trainer",
    "place_data",
    "train",
    "train_many",
]
