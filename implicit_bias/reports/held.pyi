"""The types of what a report holds, by its model, for editors and type checkers.

Generated from the table of models by `python -m tests.choices`: change `holds` of a model there.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self, overload

from torch.nn import Module
from typing_extensions import TypeVar

from ..finite_limits.diagonal import DiagonalLimit
from ..kernels.regression import KernelRegression
from ..limits.frelu import FReLULimit
from ..limits.limit import Limit
from ..limits.linear import LinearLimit
from ..limits.multiclass import MulticlassLimit
from ..limits.path_limit import PathLimit
from ..measures.bounded_value import BoundedComparison
from ..measures.comparison import Comparison
from ..models.dgn.lazy_comparison import ScaleComparison
from ..models.diagonal.comparison import DiagonalComparison
from ..models.distillation.comparison import DistillationComparison
from ..models.distillation.limit import DistillationLimit
from ..models.dlgn.comparison import DLGNComparison
from ..models.gdln.comparison import GDLNComparison
from ..models.gdln.limit import GatedOLS
from ..models.gln.formulation import GLNLimit
from ..models.gln.l2 import GLNL2Limit
from ..models.gln.shallow import ShallowGLNLimit
from ..models.heads.comparison import HeadsComparison
from ..models.heads.limit import HeadLimit
from ..models.orthosep.limit import OrthosepLimit
from ..models.relu.comparison import ReLUComparison
from ..networks.balanced_relu import BalancedReLU, ResidualReLU
from ..networks.copied import CopiedUnits
from ..networks.deep_linear import DeepLinear
from ..networks.dgn import DGN, GatedStack
from ..networks.diagonal_linear import DiagonalLinear
from ..networks.exits import ExitNetwork
from ..networks.frelu import FReLU
from ..networks.gln import GLN
from ..networks.relu import DeepReLU
from ..networks.shallow_gln import ShallowGLN
from ..networks.student import LinearStudent
from ..options.choices import ModelName
from ..training.trajectory import Trajectory
from .report import Report

MaxMarginModel = Literal["deep-linear", "frelu", "gln", "gln-l2", "linear", "shallow-gln"]
ModelT = TypeVar("ModelT", bound=ModelName, covariant=True, default=MaxMarginModel)
ClassesT = TypeVar(
    "ClassesT", bound=Literal["two", "all", "joint"], covariant=True, default=Literal["two"]
)
NetworkT = TypeVar(
    "NetworkT", bound=Literal["two-layer", "residual"], covariant=True, default=Literal["two-layer"]
)
RegimeT = TypeVar("RegimeT", bound=Literal["rich", "lazy"], covariant=True, default=Literal["rich"])

class HeldLimit:
    """The limit of a report."""

    def __init__(self, name: str) -> None: ...
    @overload
    def __get__(self, report: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, LinearLimit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> MulticlassLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> LinearLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["lazy"]], owner: Any = None
    ) -> KernelRegression: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["rich"]], owner: Any = None
    ) -> PathLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["diagonal"], Any, Any, Any], owner: Any = None
    ) -> DiagonalLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["all"], Any, Any], owner: Any = None
    ) -> DistillationLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["two"], Any, Any], owner: Any = None
    ) -> DistillationLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["dlgn"], Any, Any, Any], owner: Any = None
    ) -> Limit: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["joint"], Any, Any], owner: Any = None
    ) -> MulticlassLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, FReLULimit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["two"], Any, Any], owner: Any = None
    ) -> FReLULimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["gdln"], Any, Any, Any], owner: Any = None
    ) -> GatedOLS: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> MulticlassLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, GLNLimit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> GLNLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, GLNL2Limit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["two"], Any, Any], owner: Any = None
    ) -> GLNL2Limit: ...
    @overload
    def __get__(
        self, report: Report[Literal["heads"], Any, Any, Any], owner: Any = None
    ) -> Mapping[int, HeadLimit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, LinearLimit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> MulticlassLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> LinearLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["residual"], Any], owner: Any = None
    ) -> OrthosepLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["two-layer"], Any], owner: Any = None
    ) -> OrthosepLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["relu"], Any, Any, Any], owner: Any = None
    ) -> Mapping[str, Limit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, ShallowGLNLimit]: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> MulticlassLimit: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> ShallowGLNLimit: ...
    @overload
    def __get__(
        self, report: Report[MaxMarginModel, Literal["two"], Any, Any], owner: Any = None
    ) -> Limit: ...
    @overload
    def __get__(self, report: Report[ModelName, Any, Any, Any], owner: Any = None) -> Any: ...

class HeldNetwork:
    """The network of a report."""

    def __init__(self, name: str) -> None: ...
    @overload
    def __get__(self, report: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, DeepLinear]: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> DeepLinear: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> DeepLinear: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["lazy"]], owner: Any = None
    ) -> Mapping[str, GatedStack]: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["rich"]], owner: Any = None
    ) -> GatedStack: ...
    @overload
    def __get__(
        self, report: Report[Literal["diagonal"], Any, Any, Any], owner: Any = None
    ) -> DiagonalLinear: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["all"], Any, Any], owner: Any = None
    ) -> LinearStudent: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["two"], Any, Any], owner: Any = None
    ) -> DeepLinear: ...
    @overload
    def __get__(self, report: Report[Literal["dlgn"], Any, Any, Any], owner: Any = None) -> DGN: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["joint"], Any, Any], owner: Any = None
    ) -> CopiedUnits: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, FReLU]: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["two"], Any, Any], owner: Any = None
    ) -> FReLU: ...
    @overload
    def __get__(
        self, report: Report[Literal["gdln"], Any, Any, Any], owner: Any = None
    ) -> Mapping[str, Module]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> CopiedUnits: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, GLN]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> GLN: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, GLN]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["two"], Any, Any], owner: Any = None
    ) -> GLN: ...
    @overload
    def __get__(
        self, report: Report[Literal["heads"], Any, Any, Any], owner: Any = None
    ) -> ExitNetwork: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, DeepLinear]: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> DeepLinear: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> DeepLinear: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["residual"], Any], owner: Any = None
    ) -> ResidualReLU: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["two-layer"], Any], owner: Any = None
    ) -> BalancedReLU: ...
    @overload
    def __get__(
        self, report: Report[Literal["relu"], Any, Any, Any], owner: Any = None
    ) -> DeepReLU: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, ShallowGLN]: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> ShallowGLN: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> ShallowGLN: ...
    @overload
    def __get__(
        self, report: Report[MaxMarginModel, Literal["two"], Any, Any], owner: Any = None
    ) -> Module: ...
    @overload
    def __get__(self, report: Report[ModelName, Any, Any, Any], owner: Any = None) -> Any: ...

class HeldTrajectory:
    """The trajectory of a report."""

    def __init__(self, name: str) -> None: ...
    @overload
    def __get__(self, report: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["lazy"]], owner: Any = None
    ) -> Mapping[str, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["rich"]], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["diagonal"], Any, Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["all"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["dlgn"], Any, Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["gdln"], Any, Any, Any], owner: Any = None
    ) -> Mapping[str, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["heads"], Any, Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["residual"], Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["two-layer"], Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["relu"], Any, Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Trajectory]: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(
        self, report: Report[MaxMarginModel, Literal["two"], Any, Any], owner: Any = None
    ) -> Trajectory: ...
    @overload
    def __get__(self, report: Report[ModelName, Any, Any, Any], owner: Any = None) -> Any: ...

class HeldComparison:
    """The comparison of a report."""

    def __init__(self, name: str) -> None: ...
    @overload
    def __get__(self, report: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Comparison]: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["deep-linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["lazy"]], owner: Any = None
    ) -> tuple[ScaleComparison, ...]: ...
    @overload
    def __get__(
        self, report: Report[Literal["dgn"], Any, Any, Literal["rich"]], owner: Any = None
    ) -> BoundedComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["diagonal"], Any, Any, Any], owner: Any = None
    ) -> DiagonalComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["all"], Any, Any], owner: Any = None
    ) -> DistillationComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["distillation"], Literal["two"], Any, Any], owner: Any = None
    ) -> DistillationComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["dlgn"], Any, Any, Any], owner: Any = None
    ) -> DLGNComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Comparison]: ...
    @overload
    def __get__(
        self, report: Report[Literal["frelu"], Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["gdln"], Any, Any, Any], owner: Any = None
    ) -> GDLNComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Comparison]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Comparison]: ...
    @overload
    def __get__(
        self, report: Report[Literal["gln-l2"], Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["heads"], Any, Any, Any], owner: Any = None
    ) -> HeadsComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Comparison]: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["linear"], Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["residual"], Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["orthosep"], Any, Literal["two-layer"], Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["relu"], Any, Any, Any], owner: Any = None
    ) -> ReLUComparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["all"], Any, Any], owner: Any = None
    ) -> Mapping[int, Comparison]: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["joint"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[Literal["shallow-gln"], Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(
        self, report: Report[MaxMarginModel, Literal["two"], Any, Any], owner: Any = None
    ) -> Comparison: ...
    @overload
    def __get__(self, report: Report[ModelName, Any, Any, Any], owner: Any = None) -> Any: ...
