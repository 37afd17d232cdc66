"""Names of `implicit_bias.autoencoders`, with the modules that they are loaded from."""

from .gaussian import GaussianMAE as GaussianMAE
from .gaussian import GaussianMAERun as GaussianMAERun
from .gaussian import gaussian_mae as gaussian_mae
from .gaussian import plot_gaussian_mae as plot_gaussian_mae
from .gaussian import train_gaussian_mae as train_gaussian_mae
from .labels import LabelCode as LabelCode
from .labels import quantile_code as quantile_code
