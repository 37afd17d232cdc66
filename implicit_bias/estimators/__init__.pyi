"""Names of `implicit_bias.estimators`, with the modules that they are loaded from."""

from .base import InseparableWarning as InseparableWarning
from .classifiers import FReLULimitClassifier as FReLULimitClassifier
from .classifiers import GLNLimitClassifier as GLNLimitClassifier
from .classifiers import LinearLimitClassifier as LinearLimitClassifier
