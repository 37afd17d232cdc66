"""Names of `implicit_bias.kernels`, with the modules that they are loaded from."""

from ..local_limits.depth3 import Depth3Kernel as Depth3Kernel
from ..local_limits.depth3 import depth3_kernel as depth3_kernel
from .convolution import bundle_kernel as bundle_kernel
from .margin import KernelLimit as KernelLimit
from .margin import solve_kernel_svm as solve_kernel_svm
from .moments import NTKMoments as NTKMoments
from .moments import delta as delta
from .moments import ntk_moments as ntk_moments
from .overlap import neural_path_kernel as neural_path_kernel
from .overlap import nu as nu
from .overlap import overlap_ratio as overlap_ratio
from .overlap import path_overlap as path_overlap
from .overlap import spectrum_ideal as spectrum_ideal
from .regression import KernelRegression as KernelRegression
from .regression import kernel_regression as kernel_regression
from .tangent import activation_kernel as activation_kernel
from .tangent import empirical_ntk as empirical_ntk
