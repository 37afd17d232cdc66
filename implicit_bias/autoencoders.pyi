"""Names of `implicit_bias.autoencoders`, with the modules that they are loaded from."""

from .models.autoencoders.gaussian import GaussianMAE as GaussianMAE
from .models.autoencoders.gaussian import GaussianMAERun as GaussianMAERun
from .models.autoencoders.gaussian import gaussian_mae as gaussian_mae
from .models.autoencoders.gaussian import plot_gaussian_mae as plot_gaussian_mae
from .models.autoencoders.gaussian import train_gaussian_mae as train_gaussian_mae
from .models.autoencoders.labels import LabelCode as LabelCode
from .models.autoencoders.labels import quantile_code as quantile_code
