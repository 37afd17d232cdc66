"""Names of `implicit_bias.options`, with the modules that they are loaded from."""

from .._support.words import DeviceName as DeviceName
from .._support.words import InitName as InitName
from .._support.words import LossName as LossName
from .._support.words import MarginLoss as MarginLoss
from .._support.words import TrainerName as TrainerName
from .choices import Choices as Choices
from .choices import ModelName as ModelName
from .choices import RunOptions as RunOptions
from .command_line import model_parameters as model_parameters
from .fields import ClassOptions as ClassOptions
from .fields import flag as flag
from .resolve import each_trainer as each_trainer
from .values import Kind as Kind
from .values import kinds as kinds
