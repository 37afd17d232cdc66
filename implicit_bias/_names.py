"""Names that saved files speak: promised for good, whatever module a class or function moves to.

A file names classes of results, members of enumerations, networks, gatings and functions that draw
by a sort and a name, ``class:GLNLimit`` or ``panel:gdln.losses``, and can name nothing else. A row
of the table never goes and never changes its name; what moves, or is called otherwise in the code,
changes its place in the row.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any

__all__ = ["PROMISED", "Unreadable", "bare", "found", "name_of"]


class Unreadable(ValueError):
    """A saved file, whole and unchanged, says something that this version does not know."""


# "sort:name" in files: "module:attribute" in the code, a leading dot being this package.
PROMISED = MappingProxyType(
    {
        # Results, and what they are made of.
        "class:Certificate": "solvers.certificates.max_margin:Certificate",
        "class:ConstrainedCertificate": "solvers.certificates.constrained:ConstrainedCertificate",
        "class:FitCertificate": "solvers.methods.least_squares:FitCertificate",
        "class:Sample": ".data.sample:Sample",
        "class:DecisionMap": ".drawing.decision_maps:DecisionMap",
        "class:Row": ".drawing.figures:Row",
        "class:Plane": ".equivalence.folds:Plane",
        "class:AlignmentCertificate": ".equivalence.alignment:AlignmentCertificate",
        "class:Alignment": ".equivalence.alignment:Alignment",
        "class:NetworkGroups": ".equivalence.groups:NetworkGroups",
        "class:TransportCertificate": ".equivalence.measure:TransportCertificate",
        "class:MeasureDistance": ".equivalence.measure:MeasureDistance",
        "class:ReLUWeights": ".equivalence.weights:ReLUWeights",
        "class:DiagonalCertificate": ".finite_limits.diagonal:DiagonalCertificate",
        "class:DiagonalLimit": ".finite_limits.diagonal:DiagonalLimit",
        "class:FitLimitCertificate": ".finite_limits.certificate:FitLimitCertificate",
        "class:FitLimit": ".finite_limits.limit:FitLimit",
        "class:KernelLimit": ".kernels.margin:KernelLimit",
        "class:KernelRegressionCertificate": ".kernels.regression:KernelRegressionCertificate",
        "class:KernelRegression": ".kernels.regression:KernelRegression",
        "class:FeatureLimit": ".limits.features:FeatureLimit",
        "class:FReLULimit": ".limits.frelu:FReLULimit",
        "class:L1Limit": ".limits.l1:L1Limit",
        "class:LinearLimit": ".limits.linear:LinearLimit",
        "class:MulticlassLimit": ".limits.multiclass:MulticlassLimit",
        "class:PathLimit": ".limits.path_limit:PathLimit",
        "class:SplitLimit": ".limits.split:SplitLimit",
        "class:Separability": ".limits.separability:Separability",
        "class:LocalCertificate": ".local_limits.limit:LocalCertificate",
        "class:LocalLimit": ".local_limits.limit:LocalLimit",
        "class:BoundedComparison": ".measures.bounded_value:BoundedComparison",
        "class:ClassifierComparison": ".measures.classifiers:ClassifierComparison",
        "class:Comparison": ".measures.comparison:Comparison",
        "class:Arrival": ".measures.growth_law:Arrival",
        "class:UnitChange": ".measures.growth_law:UnitChange",
        "class:UnitGrowth": ".measures.growth_law:UnitGrowth",
        "class:MulticlassComparison": ".measures.labels:MulticlassComparison",
        "class:ScaleComparison": ".models.dgn.lazy_comparison:ScaleComparison",
        "class:DecayComparison": ".runs.decay_comparison:DecayComparison",
        "class:DistillationComparison": ".models.distillation.comparison:DistillationComparison",
        "class:StudentCurves": ".models.distillation.comparison:StudentCurves",
        "class:StudentState": ".models.distillation.comparison:StudentState",
        "class:TransferTask": ".models.distillation.data:TransferTask",
        "class:DistillationCertificate": ".models.distillation.limit:DistillationCertificate",
        "class:DistillationLimit": ".models.distillation.limit:DistillationLimit",
        "class:AngleTail": ".models.distillation.risk:AngleTail",
        "class:LearningCurve": ".models.distillation.risk:LearningCurve",
        "class:RiskBound": ".models.distillation.risk:RiskBound",
        "class:DLGNComparison": ".models.dlgn.comparison:DLGNComparison",
        "class:Depth3Bounds": ".models.dlgn.depth3:Depth3Bounds",
        "class:Depth3Interval": ".models.dlgn.depth3:Depth3Interval",
        "class:ConstantExpertsLimit": ".models.dlgn.formulation:ConstantExpertsLimit",
        "class:GateTraining": ".models.dlgn.training:GateTraining",
        "class:DiagonalComparison": ".models.diagonal.comparison:DiagonalComparison",
        "class:GDLNComparison": ".models.gdln.comparison:GDLNComparison",
        "class:GatePrediction": ".models.gdln.comparison:GatePrediction",
        "class:GatedOLS": ".models.gdln.limit:GatedOLS",
        "class:GLNLimit": ".models.gln.formulation:GLNLimit",
        "class:GLNL2Limit": ".models.gln.l2:GLNL2Limit",
        "class:ShallowGLNLimit": ".models.gln.shallow:ShallowGLNLimit",
        "class:ExitComparison": ".models.heads.comparison:ExitComparison",
        "class:HeadState": ".models.heads.comparison:HeadState",
        "class:HeadsComparison": ".models.heads.comparison:HeadsComparison",
        "class:Exits": ".models.heads.exits_run:Exits",
        "class:Labels": ".models.heads.exits_run:Labels",
        "class:HeadCertificate": ".models.heads.limit:HeadCertificate",
        "class:HeadLimit": ".models.heads.limit:HeadLimit",
        "class:ConePair": ".models.orthosep.cones:ConePair",
        "class:OrthosepDiagnosis": ".models.orthosep.diagnosis:OrthosepDiagnosis",
        "class:OneSidedSolution": ".models.orthosep.limit:OneSidedSolution",
        "class:OrthosepLimit": ".models.orthosep.limit:OrthosepLimit",
        "class:ReLUCertificate": ".relu_limits.limit:ReLUCertificate",
        "class:ReLULocalLimit": ".relu_limits.limit:ReLULocalLimit",
        "class:MachineComparison": ".models.relu.comparison:MachineComparison",
        "class:ReLULimitComparison": ".models.relu.limit_comparison:ReLULimitComparison",
        "class:ReLUComparison": ".models.relu.comparison:ReLUComparison",
        "class:PartlyTrained": ".models.relu.freezing:PartlyTrained",
        "class:FrozenComparison": ".models.relu.comparison:FrozenComparison",
        "class:NeuronComparison": ".models.relu.neurons_comparison:NeuronComparison",
        "class:Assumption": ".quantities.assumptions:Assumption",
        "class:Table": ".quantities.said:Table",
        "class:OwnNetwork": ".diagnosis.state:OwnNetwork",
        "class:GroupDegree": ".recognition.homogeneity:GroupDegree",
        "class:Homogeneity": ".recognition.homogeneity:Homogeneity",
        "class:Heading": ".reports.heading:Heading",
        "class:Side": ".quantities.said:Side",
        "class:Verdict": ".reports.verdict:Verdict",
        "class:Trajectory": ".training.trajectory:Trajectory",
        "enum:Status": "solvers.certificates.status:Status",
        # Networks, with the containers of their layers, and gatings.
        "network:BalancedReLU": ".networks.balanced_relu:BalancedReLU",
        "network:ResidualReLU": ".networks.balanced_relu:ResidualReLU",
        "network:CopiedUnits": ".networks.copied:CopiedUnits",
        "network:DeepGLN": ".networks.deep_gln:DeepGLN",
        "network:DeepLinear": ".networks.deep_linear:DeepLinear",
        "network:DiagonalLinear": ".networks.diagonal_linear:DiagonalLinear",
        "network:DGN": ".networks.dgn:DGN",
        "network:DLGN": ".networks.dlgn:DLGN",
        "network:ExitNetwork": ".networks.exits:ExitNetwork",
        "network:LabelledHead": ".networks.exits:LabelledHead",
        "network:SoftLabelHead": ".networks.exits:SoftLabelHead",
        "network:Trunk": ".networks.exits:Trunk",
        "network:FReLU": ".networks.frelu:FReLU",
        "network:GLN": ".networks.gln:GLN",
        "network:ScaledNetwork": ".networks.linearised:ScaledNetwork",
        "network:DeepReLU": ".networks.relu:DeepReLU",
        "network:ReLU": ".networks.relu:ReLU",
        "network:GDLN": ".networks.relu_mean:GDLN",
        "network:ReLUMean": ".networks.relu_mean:ReLUMean",
        "network:ColumnGLN": ".networks.shallow_gln:ColumnGLN",
        "network:ShallowGLN": ".networks.shallow_gln:ShallowGLN",
        "network:SoftDGN": ".networks.soft_dgn:SoftDGN",
        "network:LinearStudent": ".networks.student:LinearStudent",
        "network:ModuleList": "torch.nn.modules.container:ModuleList",
        "network:ParameterList": "torch.nn.modules.container:ParameterList",
        "gating:HyperplaneContexts": ".gates.hyperplanes:HyperplaneContexts",
        "gating:HyperplaneGates": ".gates.hyperplanes:HyperplaneGates",
        "gating:LinearGates": ".gates.layered:LinearGates",
        "gating:NetworkGates": ".gates.layered:NetworkGates",
        "gating:ReLUGates": ".gates.relu:ReLUGates",
        "gating:SoftGates": ".gates.soft:SoftGates",
        "gating:RandomGates": ".gates.random_gates:RandomGates",
        # Panels and rows of pictures, and the functions that they are given.
        "panel:decay.gap": ".drawing.weight_decay:plot_value_gap",
        "panel:decay.units": ".drawing.weight_decay:plot_decayed_units",
        "panel:classes.row": ".drawing.classes:_draw",
        "panel:classes.joint_row": ".drawing.classes:_draw_joint",
        "panel:folds.row": ".drawing.folds:_draw",
        "panel:maps.row": ".drawing.map_rows:_draw",
        "panel:runs.agreement": ".drawing.runs:plot_agreement",
        "panel:runs.gate_changes": ".drawing.runs:plot_gate_changes",
        "panel:runs.growth": ".drawing.runs:plot_growth",
        "panel:runs.kkt": ".drawing.runs:plot_kkt",
        "panel:runs.margin_ratio": ".drawing.runs:plot_margin_ratio",
        "panel:runs.margins": ".drawing.runs:plot_margins",
        "panel:runs.unit_norms": ".drawing.runs:plot_unit_norms",
        "panel:trainers.curves": ".drawing.trainers:plot_trainer_curves",
        "panel:trainers.named": ".drawing.trainers:_named",
        "panel:units.growth": ".drawing.unit_growth:plot_unit_growth",
        "panel:dgn.departure": ".models.dgn.figure:plot_departure",
        "panel:dgn.distances": ".models.dgn.figure:plot_distances",
        "panel:dgn.drifts": ".models.dgn.figure:plot_drifts",
        "panel:dgn.errors": ".models.dgn.figure:plot_errors",
        "panel:dgn.law": ".models.dgn.figure:plot_law",
        "panel:dgn.residuals": ".models.dgn.figure:plot_residuals",
        "panel:dgn.values": ".models.dgn.figure:plot_values",
        "panel:dgn.weights": ".models.dgn.figure:plot_weights",
        "panel:distillation.bound": ".models.distillation.figure:plot_bound",
        "panel:distillation.learning": ".models.distillation.figure:plot_learning",
        "panel:distillation.null_part": ".models.distillation.figure:plot_null_part",
        "panel:distillation.span_error": ".models.distillation.figure:plot_span_error",
        "panel:distillation.tail": ".models.distillation.figure:plot_tail",
        "panel:dlgn.gate_losses": ".models.dlgn.figure:plot_gate_losses",
        "panel:dlgn.half_planes": ".models.dlgn.figure:plot_half_planes",
        "panel:dlgn.maps": ".models.dlgn.figure:_maps",
        "panel:dlgn.overlap_map": ".models.dlgn.figure:plot_overlap_map",
        "panel:dlgn.path_density": ".models.dlgn.figure:plot_path_density",
        "panel:dlgn.row": ".models.dlgn.figure:_each",
        "panel:diagnosis.margins": ".diagnosis.figure:plot_margins_beside",
        "panel:diagnosis.ratio": ".diagnosis.figure:plot_ratio",
        "panel:diagnosis.units": ".diagnosis.figure:plot_unit_shares",
        "panel:diagonal.kernel_to_rich": ".models.diagonal.figure:plot_kernel_to_rich",
        "panel:diagonal.limit_error": ".models.diagonal.figure:plot_limit_error",
        "panel:gdln.localisation": ".models.gdln.figure:plot_localisation",
        "panel:gdln.losses": ".models.gdln.figure:plot_losses",
        "panel:gdln.sign_flips": ".models.gdln.figure:plot_sign_flips",
        "panel:gdln.units": ".models.gdln.figure:plot_units",
        "panel:heads.accuracy": ".models.heads.figure:plot_accuracy",
        "panel:heads.angles": ".models.heads.figure:plot_angles",
        "panel:heads.margins": ".models.heads.figure:plot_margins",
        "panel:orthosep.row": ".models.orthosep.figure:plot_orthosep",
        "panel:relu.local_limit": ".drawing.relu_limits:plot_relu_limit",
        "panel:relu.frozen_copy": ".models.relu.figure:_copy",
        "panel:relu.gates": ".models.relu.figure:_gates",
        "function:maps.limit_scores": ".drawing.map_rows:_limit_scores",
        "function:maps.network_scores": ".drawing.map_rows:_network_scores",
        "function:dlgn.limit_scores": ".models.dlgn.run:_predicted",
        "function:dlgn.network_scores": ".models.dlgn.run:_scores",
        "function:relu.gates": ".models.relu.figure:_gates_of",
        "function:relu.no_gates": ".models.relu.figure:_no_gates",
        "function:gates_of": ".runs.user_data:gates_of",
    }
)
_NAMES = MappingProxyType(
    {f"{__package__ * place.startswith('.')}{place}": name for name, place in PROMISED.items()}
)


def name_of(thing: Any) -> str | None:
    """The promised name of a class or function; None if it has none and cannot be saved."""
    return _NAMES.get(f"{thing.__module__}:{thing.__qualname__}")


def bare(name: str) -> str:
    """A promised name without its sort, for messages."""
    return name.rpartition(":")[2]


def found(name: Any, *sorts: str) -> Any:
    """The class or function of a promised name, its module imported now.

    Parameters
    ----------
    name : str
        As a file has it.
    *sorts : str
        Those that may stand there; by default any.

    Raises
    ------
    Unreadable
        If no such name has been promised, or it is of another sort.
    ImportError
        If it needs a package that is not installed.
    """
    place = PROMISED.get(name) if isinstance(name, str) else None
    if place is None or (sorts and name.partition(":")[0] not in sorts):
        raise Unreadable(f"{name!r} is no {' or '.join(sorts) or 'part'} of results")
    module, _, attribute = place.partition(":")
    return getattr(import_module(module, __package__), attribute)
