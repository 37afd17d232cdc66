"""Wrong calls of every public name: one argument at a time of a call that its examples make.

Doors are the exported functions, the constructors and the public methods of exported classes, found
from the stubs and signatures. Their valid calls are those seen while the examples in the docstrings
run. Wrong values follow from the annotation of the argument.

``python -m tests.walk`` walks through all of them, with names behind it through those, and prints
what is not refused by a ValueError or TypeError that names the argument.
"""

from __future__ import annotations

import copy
import dataclasses
import doctest
import functools
import inspect
import io
import os
import re
import signal
import sys
import tempfile
import traceback
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

import implicit_bias as ib
from tests.test_examples import GIVEN, exported

LIBRARY = ("implicit_bias", "solvers")
FACTORY = inspect.signature(ib.sweeps.Engine).parameters["options"].default  # what a field fills in
MAKERS = ("__init__", "__new__")
SECONDS = 5.0  # that a refusal may take


class Door(NamedTuple):
    """A public function, constructor or method: its name, and the code that its arguments reach."""

    name: str
    function: types.FunctionType
    owner: type | None  # None for functions of a module


class Call(NamedTuple):
    """A valid call: what it is called on, and its arguments by name."""

    bound: Any
    arguments: dict[str, Any]


# The doors


def doors_of(path: str) -> list[Door]:
    """The doors of an exported name."""
    thing = attrgetter(path)(ib)
    if inspect.isfunction(thing):
        return [Door(path, _inner(thing), None)]
    if not inspect.isclass(thing) or getattr(thing, "_is_protocol", False):
        return []
    if issubclass(thing, Enum):  # nobody makes a further member
        return []
    found = []
    for name in sorted({name for home in _homes(thing) for name in vars(home)}):
        if name.startswith("_") and name not in (*MAKERS, "__call__"):
            continue
        raw = inspect.getattr_static(thing, name)
        function = _inner(getattr(raw, "__func__", raw))
        if inspect.isfunction(function) and _owner(function) == path and _takes(function):
            found.append(Door(path if name in MAKERS else f"{path}.{name}", function, thing))
    return found


def _homes(thing: type) -> list[type]:
    """Classes of this library that a class has its methods from."""
    return [one for one in thing.__mro__ if one.__module__.split(".")[0] in LIBRARY]


def _takes(function: types.FunctionType) -> bool:
    return any(
        parameter.kind is not parameter.VAR_POSITIONAL and parameter.annotation != "Any"
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
    ) and not getattr(function, "__isabstractmethod__", False)


@functools.cache
def _owners() -> dict[types.FunctionType, str]:
    """The one exported name under which each method is walked: its own class, or an heir."""
    owners: dict[types.FunctionType, tuple[bool, str]] = {}
    for path in exported():
        thing = attrgetter(path)(ib)
        for home in _homes(thing) if inspect.isclass(thing) else []:
            for raw in vars(home).values():
                function = _inner(getattr(raw, "__func__", raw))
                if inspect.isfunction(function):
                    rank = (home is not thing, path)
                    owners[function] = min(owners.get(function, rank), rank)
    return {function: path for function, (_, path) in owners.items()}


def _owner(function: types.FunctionType) -> str | None:
    return _owners().get(function)


def _inner(function: Any) -> Any:
    return inspect.unwrap(function) if callable(function) else function


def is_result(door: Door) -> bool:
    """True for the constructor of what the library itself makes."""
    return (
        door.function.__name__ == "__init__"
        and door.owner is not None
        and dataclasses.is_dataclass(door.owner)
        and (
            issubclass(door.owner, ib.Result)
            or inspect.getsource(door.owner).startswith("@result")
            or door.owner.__name__.endswith("Certificate")
        )
    )


def of_prepared(door: Door) -> bool:
    """True for methods that this library alone calls, with the tensors that `prepare` returned."""
    return door.function.__name__ in ("dual_norms", "gradient_factors")


def is_estimator(door: Door) -> bool:
    """True for estimators of scikit-learn: constructors keep anything, `fit` checks it."""
    from sklearn.base import BaseEstimator

    return door.owner is not None and issubclass(door.owner, BaseEstimator)


# Valid calls, from the examples

CALLS: dict[str, str] = {
    **{
        f"Result.{view}": f'ib.solve_linear_svm([[2.0], [-1.0]], [1, -1]).{view}("limit")'
        for view in ("files", "proofs", "sides", "statuses", "tables")
    },
    **{
        f"Trajectory.{view}": f"""
settings = ib.TrainingSettings(schedule=((2, 0.1),))
ib.train(ib.DeepLinear(1), [[2.0], [-1.0]], [1, -1], settings=settings).{view}("path")
"""
        for view in ("files", "proofs", "sides", "statuses", "tables")
    },
    **{
        f"{name}.{method}": f"""
import torch
network, X, gates = ib.{name}({arguments}), torch.eye(3).double(), {gates}
gates = None if gates is None else network.prepare(gates)
network(X, gates)
if hasattr(network, "dual_norms"):
    network.dual_norms(torch.ones(3).double(), X, gates)
if hasattr(network, "gradient_factors"):
    network.gradient_factors(X, gates)
"""
        for name, (arguments, gates) in {
            "DGN": ("3, widths=(2, 2)", "np.ones((3, 4))"),
            "DeepLinear": ("3, hidden_widths=(2,)", "None"),
            "networks.DiagonalLinear": ("3", "None"),
            "FReLU": ("3, 2", "np.ones((3, 2))"),
            "GLN": ("3, 2, 2", "np.zeros((3, 2), dtype=int)"),
            "ReLU": ("3, 2", "None"),
            "ShallowGLN": ("3, [[0], [1]]", "np.array([[0], [1], [0]])"),
            "networks.BalancedReLU": ("3, 2", "None"),
            "networks.DeepGLN": ("3, widths=(2,), n_contexts=2", "np.zeros((3, 2), dtype=int)"),
            "networks.ColumnGLN": ("3, np.eye(2, dtype=int)", "np.eye(3, 2, dtype=int)"),
            "networks.FixedOuterReLU": ("3, 2", "None"),
            "networks.LinearConvolution": ("3", "None"),
            "networks.CopiedUnits": (
                "ib.FReLU(3, 4, n_outputs=2), copies=2", "np.ones((3, 2))"
            ),
            "networks.DeepReLU": ("3, (2, 2)", "None"),
            "networks.GDLN": ("3, 2", "np.ones((3, 2))"),
            "networks.ResidualReLU": ("3, 3, n_layers=3", "None"),
            "networks.SoftDGN": ("3, widths=(2, 2)", "None"),
            "networks.ScaledNetwork": ("ib.DGN(3, widths=(2,)), 1.0", "np.ones((3, 2))"),
        }.items()
        for method in ("forward", "prepare", "dual_norms", "gradient_factors")
    },
    **dict.fromkeys(
        ("DGN.from_weights", "DeepLinear.from_weights"),
        "[kind.from_weights(np.eye(2), np.ones((1, 2))) for kind in (ib.DGN, ib.DeepLinear)]",
    ),
    "DeepLinear.from_zeta": "ib.DeepLinear.from_zeta(np.ones(3), hidden_widths=(2,))",
    "FReLU.from_zeta": "ib.FReLU.from_zeta(np.eye(2), upper_widths=(2,))",
    "ShallowGLN.from_zeta": "ib.ShallowGLN.from_zeta(np.eye(2), [[0], [1]])",
    "networks.BalancedReLU.from_weights":
        "ib.networks.BalancedReLU.from_weights(np.eye(2), np.ones(2))",
    "networks.DeepGLN.from_weights":
        "ib.networks.DeepGLN.from_weights(np.ones((2, 2, 3)), np.ones((1, 2)))",
    "networks.BalancedReLU.gates": "ib.networks.BalancedReLU(3, 2).gates(np.eye(3))",
    **dict.fromkeys(
        ("networks.SoftDGN.gates", "networks.SoftDGN.soft_gates"),
        """
import torch
network = ib.networks.SoftDGN(3, widths=(2, 2))
network.gates(np.eye(3)), network.soft_gates(torch.eye(3).double())
""",
    ),
    "networks.FixedOuterReLU.gates": "ib.networks.FixedOuterReLU(3, 2).gates(np.eye(3))",
    "networks.DeepReLU.features": "ib.networks.DeepReLU(3, (2,)).features(np.eye(3))",
    "networks.ReLUMean.open_gates":
        "import torch; ib.networks.ReLUMean(3, 2).open_gates(torch.eye(3).double())",
    "NotCertified": "ib.NotCertified(ib.solve_linear_svm(np.eye(2), [1.0, -1.0]))",
    "NotSaved": "ib.NotSaved('no', ib.run('linear', steps=0, n_train=20, n_val=10))",
    **dict.fromkeys(
        ("Report.details", "Report.first_screen", "Report.save"),
        """
report = ib.run("linear", steps=0, n_train=20, n_val=10)
report.save("report")
report.details(80)
report.first_screen(80)
""",
    ),
    **dict.fromkeys(
        ("Result.save", "Result.load", "limits.Limit.plot", "limits.Certificate",
         "limits.Certificate.proves_optimality"),
        """
limit = ib.solve_linear_svm(np.eye(2), [1.0, -1.0])
limit.save("limit")
ib.limits.LinearLimit.load("limit", device=None)
import matplotlib; matplotlib.use("Agg")
limit.plot(None)
limit.certificate.proves_optimality(1e-6)
""",
    ),
    "Settings": "ib.Settings(tol=1e-6)",
    **dict.fromkeys(
        ("Trajectory.save", "Trajectory.load", "Trajectory.plot", "Trajectory.quantity"),
        """
import matplotlib; matplotlib.use("Agg")
short = ib.TrainingSettings(schedule=((2, 0.1),), batch_size=0)
trajectory = ib.train(ib.DeepLinear(2), np.eye(2), [1.0, -1.0], settings=short)
trajectory.save("trajectory")
ib.Trajectory.load("trajectory")
trajectory.quantity("loss")
trajectory.plot(None, quantity="loss")
""",
    ),
    "autoencoders.GaussianMAE.infomax_bound":
        "ib.autoencoders.gaussian_mae(1.0).infomax_bound(1.0, 1.0)",
    "autoencoders.GaussianMAE.objective": "ib.autoencoders.gaussian_mae(1.0).objective(1.0, 1.0)",
    "datasets.ClassDataset.name_of": "ib.datasets.load_class_data('iris').name_of(0)",
    "distillation.RiskBound.text": "ib.distillation.RiskBound(0.5, 0.1, 0.2).text('value')",
    "dynamics.MarginFlow.first": """
network = ib.FReLU.from_zeta(np.array([[12.0, 16.0]]))
flow = ib.dynamics.margin_flow(
    network, [[3.0, 4.0]], [1.0], [[1.0]], until=100.0, observer=lambda _: {"one": 1.0}
)
flow.first("one", 0.5)
""",
    "equivalence.ReLUWeights.rows":
        "ib.equivalence.ReLUWeights.from_arrays([np.eye(2), np.ones((1, 2))]).rows(0)",
    **dict.fromkeys(
        (f"gates.{gating}.{method}" for gating in ("LinearGates", "NetworkGates")
         for method in ("activate", "slopes")),
        """
for gating in (ib.gates.LinearGates, ib.gates.NetworkGates):
    gating.activate(np.eye(2)), gating.slopes(np.eye(2))
""",
    ),
    "gates.ReLUGates.fit": "ib.gates.ReLUGates(np.eye(2)).fit(np.eye(2))",
    "gates.SoftGates.jacobian":
        "ib.gates.SoftGates([np.eye(2)]).fit(np.eye(2)).jacobian(np.eye(2))",
    "kernels.KernelRegression.after":
        "ib.kernels.kernel_regression(np.eye(2), [1.0, 0.0]).after([1, 2], 0.1)",
    **dict.fromkeys(
        ("limits.certify_constrained", "limits.ConstrainedCertificate",
         "limits.ConstrainedCertificate.proves_optimality"),
        """
program = ib.programs.HardMarginSVM().program(np.eye(2), np.array([1.0, -1.0]))
problem = ib.programs.to_cvxpy(program)
problem.solve(solver="CLARABEL")
ib.limits.certify_constrained(program, problem).proves_optimality(1e-6, 1e-6)
""",
    ),
    "limits.ContextPredictor.decision_function": """
ib.limits.ContextPredictor(np.ones((1, 2, 2))).decision_function(np.eye(2), np.array([[0], [1]]))
""",
    **dict.fromkeys(
        (f"limits.EffectiveStart{method}" for method in ("", ".__call__", ".load_state_dict")),
        """
network = ib.networks.DiagonalLinear(2)
observer = ib.limits.EffectiveStart(network)
observer(network)
observer.load_state_dict(observer.state_dict())
""",
    ),
    "limits.GLNL2Limit.norm_of": """
limit = ib.solve_gln_l2_svm(np.eye(2), np.array([1.0, -1.0]), np.array([[0], [1]]), n_contexts=2)
limit.norm_of(limit.zeta)
""",
    "limits.OrthosepLimit.limit_function":
        "ib.solve_orthosep(np.diag([1.0, -1.0]), [1.0, -1.0]).limit_function(surviving='both')",
    "limits.PathLimit.bound": """
limit = ib.solve_path_lasso(np.eye(2), np.array([1.0, -1.0]), np.ones((2, 2)))
limit.bound(ib.DGN(2, widths=(2,)), np.eye(2), np.ones((2, 2)))
""",
    "limits.ReLULocalLimit.plot": """
import matplotlib; matplotlib.use("Agg")
network = ib.ReLU.from_weights([[1.0, 0.1], [0.2, 1.0]], [1.0, -1.0])
X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
ib.limits.relu_local_limit(network, X, y).plot(None)
""",
    "limits.ShallowGLNLimit.covers": """
contexts = np.array([[0], [1]])
ib.solve_shallow_gln_svm(np.eye(2), np.array([1.0, -1.0]), contexts).covers(contexts)
""",
    **dict.fromkeys(
        ("measures.Comparison.plot", "measures.Comparison.text"),
        """
import matplotlib; matplotlib.use("Agg")
data = ib.Sample(np.eye(2), np.array([1.0, -1.0]))
found = ib.compare(ib.solve_linear_svm(data.X, data.y), ib.DeepLinear(2), data, data)
found.plot(None)
found.text("margin_ratio")
""",
    ),
    "measures.Distances.load_state_dict": """
data = ib.Sample(np.eye(2), np.array([1.0, -1.0]))
observer = ib.measures.Distances(ib.solve_linear_svm(data.X, data.y), data, data)
observer(ib.DeepLinear(2))
observer.load_state_dict(observer.state_dict())
""",
    "measures.Extrapolation.in_words": """
u = np.linspace(0.4, 0.1, 30)
found = ib.dynamics.extrapolate(u, 1 - u / 2)
found.in_words(found.limit)
""",
    "measures.MulticlassComparison.plot": """
import matplotlib; matplotlib.use("Agg")
eye = np.eye(2)
ib.measures.compare_argmax(np.arange(2), np.arange(2), eye, eye, np.ones(2)).plot(None)
""",
    **dict.fromkeys(
        (f"optim.MarginOptimizer{method}"
         for method in ("", ".add_param_group", ".step", ".load_state_dict")),
        """
import torch
w = torch.nn.Parameter(torch.ones(2).double())
optimizer = ib.optim.Normalised([w], n_samples=2, lr=0.1)
optimizer.step(lambda: w * 1.0)
optimizer.load_state_dict(optimizer.state_dict())
""",
    ),
    **{
        f"programs.{name}.limit": f"""
from solvers import solve
X, y, gates = np.eye(2), np.array([1.0, -1.0]), np.array({gates})
formulation = ib.programs.{name}({arguments})
program = formulation.program(X, y, gates)
formulation.limit(program, solve(program), gates)
"""
        for name, arguments, gates in (
            ("ConstantExperts", "", "[[1.0, 0.0], [0.0, 1.0]]"),
            ("ContextSVMs", "", "[[0], [1]]"),
            ("SVMGLN", "2", "[[0], [1]]"),
            ("SVML2", "2", "[[0], [1]]"),
        )
    },
    "programs.OrthogonallySeparable.limit": """
from solvers import solve
formulation = ib.programs.OrthogonallySeparable()
program = formulation.program(np.diag([1.0, -1.0]), np.array([1.0, -1.0]))
formulation.limit(program, solve(program))
""",
    "programs.OrthogonallySeparable.one_sided":
        "ib.programs.OrthogonallySeparable().one_sided(np.eye(2), np.array([1.0, -1.0]), label=-1)",
    **{
        f"programs.{name}.{method}": f"""
X, y, gates = np.diag([1.0, -1.0]), np.array([1.0, -1.0]), {gates}
limit = {solve}
limit.certify(X, y, gates)
"""
        for name, gates, solve in (
            ("ConstantExperts", "np.eye(2)",
             "ib.limits.solve_dlgn_svm(X, y, gates, experts='constant')"),
            ("FrequencyMargin", "None", "ib.limits.solve_convolution(X, y)"),
            ("Formulation", "None", "ib.limits.solve_l1_svm(X, y)"),
            ("HardMarginSVM", "None", "ib.solve_linear_svm(X, y)"),
            ("SVMFReLU", "np.eye(2)", "ib.solve_frelu_svm(X, y, gates)"),
            ("OrthogonallySeparable", "None", "ib.solve_orthosep(X, y)"),
            ("PathLasso", "np.ones((2, 2))", "ib.solve_path_lasso(X, y, gates)"),
            ("SVMGLN", "np.array([[0], [1]])", "ib.solve_gln_svm(X, y, gates, n_contexts=2)"),
            ("SVML2", "np.array([[0], [1]])", "ib.solve_gln_l2_svm(X, y, gates, n_contexts=2)"),
            ("UnitFeatures", "None",
             "ib.limits.solve_limit(ib.programs.UnitFeatures(1), X, y)"),
        )
        for method in ("of", "certify", "coefficients")
    },
    "programs.PathLasso.literal":
        "ib.programs.PathLasso().literal(np.eye(2), np.array([1.0, -1.0]), np.ones((2, 2)))",
    "programs.GatedLeastSquares.program_of_moments":
        "ib.programs.GatedLeastSquares().program_of_moments(np.eye(2), np.ones(2), 1)",
    **dict.fromkeys(
        ("dynamics.ConstantClock.log10_steps", "dynamics.PowerClock.log10_steps",
         "dynamics.UnitGrowth.shares_at"),
        """
network = ib.FReLU.from_zeta(np.array([[6.0, 8.0], [3.0, 4.0]]))
grown = ib.dynamics.unit_growth(network, [[3.0, 4.0]], [1.0], [[1.0, 1.0]])
grown.shares_at(60.0)
ib.dynamics.ConstantClock(0.5).log10_steps(60.0, grown)
ib.dynamics.PowerClock("annealed", 100, 5.0, 1.0, 0.1).log10_steps(60.0, grown)
""",
    ),
}  # fmt: skip
"""Calls of doors that the examples of their own name do not go through."""


def calls_in_examples(
    path: str, doors: list[Door], report: list[str] | None = None
) -> dict[str, Call]:
    """The first call of each door that examples make, whose failures go to `report`."""
    report = [] if report is None else report
    codes: dict[types.CodeType, list[Door]] = {}
    for door in doors:
        codes.setdefault(door.function.__code__, []).append(door)
    seen: dict[str, Call] = {}

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            for door in codes[frame.f_code]:
                if door.name not in seen and (call := _call(door, frame)) is not None:
                    seen[door.name] = call
            if len(seen) == len(doors):
                sys.setprofile(None)  # which makes Python slow

    tests = doctest.DocTestFinder().find(
        attrgetter(path)(ib), f"ib.{path}", module=False, globs=dict(GIVEN)
    )
    sys.setprofile(watch)
    try:
        for test in tests:
            doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
        for door in doors:
            if door.name in CALLS and door.name not in seen:
                try:
                    exec(CALLS[door.name], {**GIVEN, "__name__": door.name})
                except Exception as error:
                    sys.setprofile(None)
                    raise AssertionError(f"the call of {door.name} in CALLS fails") from error
    finally:
        sys.setprofile(None)
    return seen


def _call(door: Door, frame: types.FrameType) -> Call | None:
    # What a dataclass fills in itself is no argument.
    given = {name: one for name, one in frame.f_locals.items() if one is not FACTORY}
    names = list(inspect.signature(door.function).parameters)
    bound = given.get(names[0]) if names and names[0] in ("self", "cls") else None
    if door.owner is not None and bound is not None:
        kind = bound if isinstance(bound, type) else type(bound)
        if not issubclass(kind, door.owner):
            return None
    return Call(bound, {name: given[name] for name in names if name in given})


# Arguments, with what their annotations say


class Argument(NamedTuple):
    """An argument that is varied: its name, the words of its annotation, and its valid value."""

    name: str
    words: frozenset[str]
    value: Any
    optional: bool = False  # None is its default
    endless: bool = False  # infinity is
    spread: bool = False  # one of **keywords


def arguments_of(door: Door, call: Call) -> list[Argument]:
    """The arguments of a door, those of typed keywords one by one."""
    found = []
    for name, parameter in inspect.signature(door.function).parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            hint = _keywords(parameter.annotation, door.function)
            given = call.arguments.get(name, {})
            found += [
                Argument(own, words(kind), given.get(own), spread=True)
                for own, kind in hint.items()
            ]
        else:
            value, optional = call.arguments.get(name), parameter.default is None
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:  # the first stands for all
                if parameter.annotation == "Any" or not value:
                    continue
                value = value[0]
            endless = isinstance(parameter.default, float) and parameter.default == INF
            found.append(Argument(name, words(parameter.annotation), value, optional, endless))
    return found


def _keywords(annotation: Any, function: types.FunctionType) -> Mapping[str, Any]:
    """The annotations of the typed dictionary in ``Unpack[...]``, none for ``**kwargs: Any``."""
    if isinstance(annotation, str):
        name = re.fullmatch(r"Unpack\[(\w+)\]", annotation)
        if name is None:
            return {}
        typed = function.__globals__.get(name[1]) or _imported_for_types(function, name[1])
    else:
        typed = (typing.get_args(annotation) or (annotation,))[0]
    return getattr(typed, "__annotations__", {})


def _imported_for_types(function: types.FunctionType, name: str) -> Any:
    from importlib import import_module

    module = sys.modules[function.__module__]
    found = re.search(rf"from (\.*[\w.]*) import [^\n]*\b{name}\b", inspect.getsource(module))
    assert found, f"{name} of {function.__module__}"
    return getattr(import_module(found[1], module.__package__), name)


def words(annotation: Any) -> frozenset[str]:
    """The alternatives of an annotation: "int", "None", "ArrayLike", "Sequence", ..."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else _text(annotation)
    if "_array_like" in text:  # what ArrayLike stands for
        return frozenset({"ArrayLike"})
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append(part)
            part = ""
        else:
            part += letter
    heads = (one.strip().split("[")[0].rpartition(".")[2] for one in [*parts, part])
    found = frozenset(heads)
    if text.startswith("Sequence[") or ".Sequence[" in text:
        inner = text[text.index("[") + 1 : text.rindex("]")]
        found |= {f"Sequence of {inner.rpartition('.')[2]}"}
    return found


def _text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


# Wrong values


class Thing:
    """A value of no use to any argument."""

    def __repr__(self) -> str:
        return "Thing()"


OBJECTS: list[Any] = [Thing(), {"a": 1}, dict]
TEXTS: list[Any] = ["nonsense", ["a", "b"]]
NAN, INF = float("nan"), float("inf")
ARRAYS = {
    "Array",
    "ArrayLike",
    "SparseArray",
    "SparseLike",
    "DenseArray",
    "Floats",
    "Inputs",
    "Gates",
    "NDArray",
    "ndarray",
    "Indices",
    "Mask",
}
# Strings that are no choices: any will do.
FREE = {"text", "message", "advice", "modules", "names", "name", "description", "source", "wanted"}


def wrong_values(argument: Argument, *, mild: bool = False, prepared: bool = False) -> list[Any]:
    """Values that an argument of these words does not take.

    `mild`: those of a wrong kind alone, since numbers of results may be anything. `prepared`:
    tensors that fit each other are left as they are.
    """
    name, kind = argument.name, argument.words
    values: list[Any] = [*OBJECTS]
    anything = bool(kind & {"Any", "object", "_empty"})
    array = bool(kind & ARRAYS) or (anything and _is_array(argument.value))
    if (anything and not array) or kind == {"object"}:
        return []
    if not ("None" in kind or argument.optional or argument.spread):
        values.append(None)
    if array:
        spoiled = [] if mild else _spoiled(argument.value)
        values += [*TEXTS, 1j * np.ones(2), *spoiled]
    elif "Tensor" in kind:
        values += [*TEXTS, *([] if prepared else _spoiled(argument.value)[2:])]
    elif "int" in kind and "Generator" in kind:
        values += [*TEXTS, NAN, 2.5, -1, True, 1j]
    elif "int" in kind:
        values += [*TEXTS, NAN, INF, 2.5, True, 1j]
        values += [] if argument.spread else [[1, 2]]
        values += [] if mild or name in SIGNED else [-1]
    elif "float" in kind:
        values += [*TEXTS, 1j]
        values += [] if kind & {"Sequence"} else [[0.1, 0.2]]
        values += [-1.0] if name in ("tol", "rtol", "rcond") and not mild else []
        unbounded = name in UNBOUNDED or argument.endless
        values += [] if mild else [NAN] if unbounded else [NAN, INF]
    elif "bool" in kind:
        values += [*TEXTS, 2, 0.5]
    elif "Sequence of int" in kind:
        values += [*TEXTS, 3, NAN, [2.5], [True], [NAN], [None]]
        values += [] if mild or name in SIGNED else [[-1]]
    elif any(word.startswith("Sequence of") for word in kind) or kind & {"Sequence", "Iterable"}:
        values += [*TEXTS, 3, [Thing()], [None]]
    elif "tuple" in kind:
        values += ["nonsense", 3]
    elif kind & {"str", "Path", "PathLike", "Literal", "ModelName"}:
        path = kind & {"Path", "PathLike"}
        values += [3, 1j, ["a"], *([] if mild or path or name in FREE else ["nonsense"])]
    elif kind & {"Callback", "Observer", "Callable", "Progress", "ProgressCallback"}:
        values += [*TEXTS, 3]
    elif kind & {"Mapping", "dict"}:
        values = [Thing(), dict, *TEXTS, 3, np.ones(3)]
    else:
        values += [*TEXTS, 3, np.ones(3)]
    return values


SIGNED = {"label"}
UNBOUNDED = {"log_inverse_loss", "beta"}


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or hasattr(value, "detach")


def _spoiled(value: Any) -> list[Any]:
    """Arrays like a valid one: with NaN, with infinity, complex, empty, of other dimensions."""
    import torch

    given = value
    if value is None:
        return []
    try:
        value = np.array(value.detach() if isinstance(value, torch.Tensor) else value)
    except ValueError:
        return []
    if value.dtype.kind not in "biuf" or value.ndim == 0:
        return [NAN] if value.ndim == 0 else []
    found = []
    for bad in (NAN, INF):
        spoiled = value.astype(float)
        spoiled.flat[0] = bad
        found.append(spoiled)
    found += [value + 1j, value[:0], value[None, None]]
    return [torch.as_tensor(one) for one in found] if isinstance(given, torch.Tensor) else found


# Calls


class TooLong(BaseException):
    """Raised in a call that does not end."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in what lasts longer."""

    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def called(door: Door, call: Call, argument: Argument, value: Any) -> Any:
    """Call a door with one argument replaced, and return what it returns."""
    parameters = inspect.signature(door.function).parameters
    positional, keywords = [], {}
    spread = any(one.kind is one.VAR_POSITIONAL for one in parameters.values())
    for name, parameter in parameters.items():
        if name in ("self", "cls") or (name not in call.arguments and name != argument.name):
            continue
        given = call.arguments.get(name)
        if name == argument.name and not argument.spread:
            given = value
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [given, *call.arguments[name][1:]] if given is value else given
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords |= {key: _copied(one) for key, one in (given or {}).items()}
            if argument.spread:
                keywords[argument.name] = value
        elif spread and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            positional.append(given if given is value else _copied(given))
        else:
            keywords[name] = _copied(given) if given is not value else value
    target = _target(door, call)
    with quiet():
        result = target(*positional, **keywords)
        if is_estimator(door) and door.function.__name__ == "__init__":
            result.fit(np.array([[2.0, 0.0, 1.0], [0.0, -1.0, 1.0]]), np.array([1.0, -1.0]))
        return list(result) if inspect.isgenerator(result) else result


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out warnings and what is printed."""
    with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield


def _target(door: Door, call: Call) -> Callable[..., Any]:
    if door.owner is None:
        return typing.cast("Callable[..., Any]", attrgetter(door.name)(ib))
    name = door.function.__name__
    if name in MAKERS:
        return door.owner if not isinstance(call.bound, door.owner) else type(call.bound)
    if isinstance(call.bound, type) or call.bound is None:
        return typing.cast("Callable[..., Any]", getattr(call.bound or door.owner, name))
    return typing.cast("Callable[..., Any]", getattr(_copied(call.bound), name))


def _copied(value: Any) -> Any:
    """A copy, where there can be one: a call must not spoil the next."""
    if callable(value) and not hasattr(value, "parameters"):
        return value
    try:
        return copy.deepcopy(value)
    except (TypeError, RuntimeError, ValueError, AttributeError):
        return value


def declared(error: BaseException) -> bool:
    """True for what a caller can expect: ValueError, TypeError, and missing files."""
    if isinstance(error, UnicodeError):
        return False
    return isinstance(error, ValueError | TypeError | FileNotFoundError)


# Formulations take gates of any kind, and name them as their own `solve_*` does.
ALSO = {"gates": "contexts", "X": "features", "learning_rate": "learning rates` of `schedule"}


def names(message: str, arguments: Collection[str]) -> bool:
    """True if a message names one of some arguments."""
    return any(
        re.search(rf"`(\w+\.|--)*{word}\b", message)
        for name in arguments
        for word in (name, name.replace("_", "-"), ALSO.get(name, name))
    )


def in_words_of_scikit_learn(door: Door, error: BaseException) -> bool:
    """True for its own checks of data, whose words its conformance tests ask for."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return is_estimator(door) and os.sep + "sklearn" + os.sep in last


# What takes NaN and infinity: points of a series that are left out, and what proves nothing.
LEFT_OUT = {
    "certify": ("primal", "dual"),
    "limits.ContextPredictor": ("zeta",),
    "dynamics.extrapolate": ("u", "values"),
    "dynamics.extrapolate_direction": ("u", "directions"),
    "dynamics.measure_rates": ("log_loss",),
    "measures.Powers.of_network": ("dual_norms", "shares"),
    "measures.agreement_independent": ("p", "q"),
    "measures.fit_rate": ("variable", "values"),
    "measures.fit_series": ("u", "values"),
    "measures.inverse_log_loss": ("log_loss",),
    # Numbers that are not known.
    "measures.classifier_rows": ("error_network",),
    "programs.GatedLeastSquares.program_of_moments": ("second_moment",),
    "solve_gated_ols_from_moments": ("second_moment",),
    "dynamics.gated_flow_from_moments": ("second_moment",),
}
# Labels are anything that can be told apart.
CLASSES = {
    "diagnose": ("y", "y_val"),
    "estimators.FReLULimitClassifier.fit": ("y",),
    "dynamics.margin_flow": ("y",),
    "dynamics.unit_growth": ("y",),
    "kkt_distance": ("y",),
    "local_limit": ("y",),
    "measures.kkt_level": ("y",),
}
# What takes arrays of any shape.
ANY_SHAPE = {
    "TrainingSettings.flow_times": ("step",),
    "check_network": ("X",),
    **{
        f"gates.{gating}.{method}": ("q",)
        for gating in ("LinearGates", "NetworkGates")
        for method in ("activate", "slopes")
    },
    "measures.inverse_log_loss": ("log_loss",),
    "measures.kkt_level": ("X",),
    "measures.layer_features": ("X",),
    # Reading a solution needs no gates.
    "programs.ConstantExperts.limit": ("gates",),
    "programs.ContextSVMs.limit": ("gates",),
    "programs.SVMFReLU.limit": ("gates",),
    "programs.SVMGLN.limit": ("gates",),
    "programs.SVML2.limit": ("gates",),
}


def taken(door: Door, argument: Argument, value: Any) -> bool:
    """True where a value that is wrong elsewhere is right."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return argument.name in CLASSES.get(door.name, ())
    if not isinstance(value, np.ndarray | float) or np.iscomplexobj(value):
        return False
    finite = bool(np.all(np.isfinite(value)))
    table = ANY_SHAPE if finite else LEFT_OUT
    return argument.name in table.get(door.name, ())


def fault(door: Door, call: Call, argument: Argument, value: Any) -> str | None:
    """What is wrong with how a door takes a wrong value, or None."""
    shown = f"{door.name}({argument.name}={_short(value)})"
    try:
        with time_limit(SECONDS):
            called(door, call, argument, value)
    except TooLong:
        return f"{shown}: does not end"
    except Exception as error:
        if not declared(error):
            return f"{shown}: {type(error).__name__}: {_line(error)}{_where(error)}"
        # Two arrays that do not fit each other: the message may name either.
        same = inspect.signature(door.function).parameters if _is_array(value) else ()
        if not names(str(error), [argument.name, *same]) and not in_words_of_scikit_learn(
            door, error
        ):
            return f"{shown}: nameless: {_line(error)}{_where(error)}"
        return None
    empty = getattr(value, "size", 1) == 0 if isinstance(value, np.ndarray) else False
    if empty or (hasattr(value, "numel") and value.numel() == 0):
        return None  # of no samples there is nothing to say
    return None if taken(door, argument, value) else f"{shown}: accepted"


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"   [{last.filename[-50:]}:{last.lineno}]"


def _short(value: Any) -> str:
    text = re.sub(r"\s+", " ", repr(value))
    return text if len(text) < 50 else text[:47] + "..."


def _line(error: BaseException) -> str:
    return re.sub(r"\s+", " ", str(error))[:110]


def faults_of(doors: list[Door], calls: dict[str, Call]) -> tuple[list[str], list[str], int]:
    """What is wrong at doors with these calls, the doors without a valid call, and the tries."""
    found, tries = [], 0
    for door in doors:
        if door.name not in calls:
            continue
        call = calls[door.name]
        for argument in arguments_of(door, call):
            for value in wrong_values(argument, mild=is_result(door), prepared=of_prepared(door)):
                tries += 1
                if (wrong := fault(door, call, argument, value)) is not None:
                    found.append(wrong)
    return found, [door.name for door in doors if door.name not in calls], tries


def main(paths: list[str]) -> int:
    """Walk through these names, or all, and print what is wrong."""
    total, unseen, kinds, tries = 0, [], {}, 0
    for path in paths or exported():
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            try:
                doors = doors_of(path)
                with redirect_stdout(io.StringIO()):
                    calls = calls_in_examples(path, doors)
                found, without, n_tries = faults_of(doors, calls)
            finally:
                os.chdir(here)
        for line in found:
            kind = line.split(": ")[1]
            kinds[kind] = kinds.get(kind, 0) + 1
            print(line, flush=True)
        unseen += without
        total, tries = total + len(found), tries + n_tries
    print(f"{tries} wrong calls, {total} not refused as they should be: {kinds}")
    print(f"{len(unseen)} without a valid call: {', '.join(unseen)}")
    return int(bool(total or unseen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
