"""Names of `implicit_bias.kernels`, with the modules that they are loaded from."""

from .limits.kernels.convolution import bundle_kernel as bundle_kernel
from .limits.kernels.margin import KernelLimit as KernelLimit
from .limits.kernels.margin import solve_kernel_svm as solve_kernel_svm
from .limits.kernels.moments import NTKMoments as NTKMoments
from .limits.kernels.moments import delta as delta
from .limits.kernels.moments import ntk_moments as ntk_moments
from .limits.kernels.overlap import neural_path_kernel as neural_path_kernel
from .limits.kernels.overlap import nu as nu
from .limits.kernels.overlap import overlap_ratio as overlap_ratio
from .limits.kernels.overlap import path_overlap as path_overlap
from .limits.kernels.overlap import spectrum_ideal as spectrum_ideal
from .limits.kernels.regression import KernelRegression as KernelRegression
from .limits.kernels.regression import kernel_regression as kernel_regression
from .limits.kernels.tangent import activation_kernel as activation_kernel
from .limits.kernels.tangent import empirical_ntk as empirical_ntk
from .limits.local.depth3 import Depth3Kernel as Depth3Kernel
from .limits.local.depth3 import depth3_kernel as depth3_kernel
