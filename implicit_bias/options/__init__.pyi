"""Names of `implicit_bias.options`, with the modules that they are loaded from."""

from .choices import Choices as Choices
from .choices import ModelName as ModelName
from .choices import RunOptions as RunOptions
from .command_line import model_parameters as model_parameters
from .fields import ClassOptions as ClassOptions
from .fields import flag as flag
from .resolve import each_trainer as each_trainer
from .values import Kind as Kind
from .values import kinds as kinds
