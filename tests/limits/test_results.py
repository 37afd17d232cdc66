"""Every public answer is a `Result`: one status, one error, one record, one kind of file."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch

import implicit_bias as ib
import solvers

RNG = np.random.default_rng(3)
N, D = 14, 4
X = RNG.normal(size=(N, D))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
CONTEXTS = RNG.integers(0, 2, size=(N, 3))
GATES = np.hstack([RNG.integers(0, 2, size=(N, 2)), np.ones((N, 1), dtype=int)])
ORTHOSEP = Y[:, None] * np.abs(X)
# Gates that tell the classes apart by themselves, of one layer and of two.
OPEN = np.column_stack([Y > 0, np.ones(N)]).astype(float)
LAYERS = np.column_stack([Y > 0, Y < 0, np.ones(N), Y < 0]).astype(float)


def local_limit() -> Any:
    network = ib.DeepLinear(D, hidden_widths=(3,), random_state=0)
    settings = ib.TrainingSettings(schedule=((400, 0.1),), batch_size=0)
    ib.train(network, ORTHOSEP, Y, None, settings=settings)
    return ib.local_limit(network, ORTHOSEP, Y, None)


def relu_local_limit() -> Any:
    w = ib.solve_linear_svm(X, Y).zeta
    network = ib.ReLU.from_weights(np.stack([w, -w]), np.array([1.0, -1.0]))
    return ib.limits.relu_local_limit(network, X, Y)


def alignment() -> Any:
    network = ib.ReLU(3, 4, random_state=0)
    return ib.equivalence.align(network, network)


def transport() -> Any:
    networks = (ib.ReLU(3, 4, random_state=seed) for seed in (0, 1))
    return ib.equivalence.measure_distance(*networks)


ANSWERS: Mapping[str, Callable[[], Any]] = {
    "linear": lambda: ib.solve_linear_svm(X, Y),
    "linear, tensors": lambda: ib.solve_linear_svm(torch.tensor(X), torch.tensor(Y)),
    "gln": lambda: ib.solve_gln_svm(X, Y, CONTEXTS),
    "gln-l2": lambda: ib.solve_gln_l2_svm(X, Y, CONTEXTS),
    "shallow-gln": lambda: ib.solve_shallow_gln_svm(X, Y, CONTEXTS),
    "frelu": lambda: ib.solve_frelu_svm(X, Y, GATES),
    "convolution": lambda: ib.limits.solve_convolution(X, Y),
    "convolution, matrices": lambda: ib.limits.solve_convolution(
        X, Y, group=np.bitwise_xor.outer(range(D), range(D))
    ),
    "convolution, deep": lambda: ib.limits.solve_convolution(X, Y, depth=3),
    "fixed outer": lambda: ib.limits.solve_fixed_outer(ORTHOSEP, Y, [1.0, -1.0], slope=0.2),
    "l1": lambda: ib.limits.solve_l1_svm(X, Y),
    "several classes": lambda: ib.limits.solve_multiclass_svm(X, (Y > 0).astype(int), norm="linf"),
    "classes in part": lambda: ib.limits.solve_multiclass_svm(
        np.vstack([X, X[0]]), [*(Y > 0), Y[0] < 0], inseparable="split"
    ),
    "labels in part": lambda: ib.solve_linear_svm(
        np.vstack([X, X[0]]), [*Y, -Y[0]], inseparable="split"
    ),
    "tokens": lambda: ib.limits.solve_token_svm(
        X.reshape(-1, 7, D), None, Y.reshape(-1, 7) + X[:, 1].reshape(-1, 7)
    ),
    "next token": lambda: ib.limits.solve_next_token(X[:2], [[0.5, 0.5, 0], [0, 0.1, 0.9]]),
    "path lasso": lambda: ib.solve_path_lasso(X, Y, [GATES, GATES]),
    "unit features": lambda: ib.limits.solve_limit(ib.programs.UnitFeatures(2), X, Y),
    "constant experts": lambda: ib.limits.solve_dlgn_svm(X, Y, OPEN, experts="constant"),
    "orthosep": lambda: ib.solve_orthosep(ORTHOSEP, Y),
    "one class": lambda: ib.solve_orthosep(ORTHOSEP, Y).positive,
    "cone pair": lambda: ib.limits.solve_cone_pair(ORTHOSEP, Y),
    "kernel machine": lambda: ib.solve_kernel_svm(X @ X.T, Y),
    "kernel regression": lambda: ib.kernels.kernel_regression(X @ X.T + np.eye(N), Y),
    "least squares": lambda: ib.solve_gated_ols(X, Y, GATES),
    "distillation": lambda: ib.distillation.distillation_limit(X[:3], X[0], X[0] / 9, depth=2),
    "interpolant": lambda: ib.heads.solve_exit_heads([X[:3]], teacher=X[:3, :3], share=0)[0],
    "direction": lambda: ib.heads.solve_exit_heads([X], np.where(Y > 0, 1, 0), share=1)[0],
    "local limit": local_limit,
    "local limit, ReLU": relu_local_limit,
    "diagonal": lambda: ib.limits.solve_diagonal(X[:3], Y[:3], np.ones(D)),
    "fit": lambda: ib.limits.solve_fit(X, Y, GATES, penalty=0.01),
    "collapse": lambda: ib.limits.solve_collapse(class_sizes=[3, 1, 1]),
    "collapse, decay": lambda: ib.limits.solve_collapse([0, 1, 0], weight_decay=0.1),
    "alignment": alignment,
    "transport": transport,
    "interval": lambda: ib.limits.certify_depth3(Y, LAYERS, widths=(2, 2)),
    "separability": lambda: ib.is_separable(X, Y),
    "inseparability": lambda: ib.is_separable(np.ones((2, 1)), np.array([1, -1])),
}
every_answer = pytest.mark.parametrize("name", ANSWERS)

# Dataclasses with a status that are no certified answers.
NO_RESULTS = {
    "Extrapolation": "an estimate, of which nothing is proved",
    "DirectionExtrapolation": "an estimate",
    "Rate": "an estimate",
    "_Found": "an intermediate of the search for a LocalLimit",
    "Found": "an intermediate of the search for a ReLULocalLimit",
    "Evidence": "names the status of another answer",
    "ClassifierComparison": "names the status of another answer",
    "MachineComparison": "names the status of another answer",
    "NeuronComparison": "names the status of another answer",
}


@cache
def answer(name: str) -> Any:
    return ANSWERS[name]()


def classes(package: Any) -> Iterator[type]:
    """Every class that a module of the package defines."""
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.endswith("__main__"):
            continue
        for _, one in inspect.getmembers(import_module(module.name), inspect.isclass):
            if one.__module__ == module.name:
                yield one


def assert_same(a: Any, b: Any) -> None:
    """The same values of the same kinds, arrays to the last bit."""
    if is_dataclass(a):
        assert type(a) is type(b)
        for f in fields(a):
            if f.metadata.get("stored", True):
                assert_same(getattr(a, f.name), getattr(b, f.name))
    elif isinstance(a, Mapping):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif hasattr(a, "dtype"):
        assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    else:
        assert type(a) is type(b) and (a == b or (np.isnan(a) and np.isnan(b)))


@every_answer
def test_an_answer_is_a_result_with_a_status_and_a_certificate_of_floats(name) -> None:
    found = answer(name)
    assert isinstance(found, ib.Result) and isinstance(found.status, ib.Status)
    proof = found.certificate
    assert is_dataclass(proof) and all(type(getattr(proof, f.name)) is float for f in fields(proof))
    assert found.status.severity == (6 if name == "inseparability" else 0)
    assert len(repr(found).splitlines()) <= 8 and len(repr(found)) < 900


@every_answer
def test_require_returns_what_is_as_asked_for_and_raises_one_error_otherwise(name) -> None:
    for status in ib.Status:
        found = replace(answer(name), status=status)
        if status.severity == 0:
            assert found.require() is found
            continue
        with pytest.raises(ib.NotCertified) as caught:
            found.require()
        assert caught.value.result is found
        said = str(caught.value)
        assert said.startswith(f"{status.name}: {found.advice}.")
        for f in fields(found.certificate):
            assert f"{f.name.replace('_', ' ')} {getattr(found.certificate, f.name):.3g}" in said


@every_answer
def test_a_record_is_json_and_says_status_advice_and_certificate(name) -> None:
    found = answer(name)
    record = found.to_dict()
    assert json.dumps(json.loads(json.dumps(record))) == json.dumps(record)
    assert record["status"] == found.status.name and record["advice"] == found.advice
    own = {f.name for f in fields(found)}
    for f in fields(found.certificate):
        if f.name not in own:
            assert_same(record[f.name], getattr(found.certificate, f.name))
    html = found._repr_html_()
    assert type(found).__name__ in html and found.status.name in html


@every_answer
def test_a_saved_answer_comes_back_to_the_last_bit(name, tmp_path) -> None:
    found, path = answer(name), tmp_path / "answer.safetensors"
    found.save(path)
    again = type(found).load(path, device="saved")
    assert_same(found, again)
    assert again.status is found.status
    if name != "one class":  # which is a part of its limit
        assert_same(found, ib.load(path)) if name != "linear, tensors" else None
    tensors = type(found).load(path, device="cpu")
    for f in fields(found):
        # Those of the inputs' own kind become tensors, others stay NumPy's.
        value, hint = getattr(found, f.name), get_type_hints(type(found))[f.name]
        if isinstance(value, np.ndarray):
            inputs_kind = hint in (solvers.DenseArray, solvers.DenseArray | None)
            assert isinstance(getattr(tensors, f.name), torch.Tensor) == inputs_kind, f.name


@every_answer
def test_an_answer_pickles(name) -> None:
    assert_same(pickle.loads(pickle.dumps(answer(name))), answer(name))


def test_the_error_pickles_with_its_answer_and_keeps_its_text() -> None:
    bad = ib.solve_linear_svm(np.ones((2, 1)), np.array([1, -1]))
    with pytest.raises(ib.NotCertified) as caught:
        bad.require()
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.result.status is ib.Status.NOT_SEPARABLE


def test_every_kind_of_result_has_its_example_here() -> None:
    kinds = {one for one in classes(ib) if issubclass(one, ib.Result) and is_dataclass(one)}
    apart = ib.limits.SplitLimit  # with one more kind below it
    kinds = {one for one in kinds if not one.__subclasses__() or one is apart}
    assert kinds == {type(answer(name)) for name in ANSWERS}


def test_whatever_has_a_status_is_an_answer() -> None:
    stated = {
        one.__qualname__: one
        for package in (ib, solvers)
        for one in classes(package)
        if is_dataclass(one) and "status" in {f.name for f in fields(one)}
    }
    answers = {name for name, one in stated.items() if issubclass(one, solvers.Answer)}
    assert set(stated) - answers == set(NO_RESULTS)
    assert {name for name in answers if not issubclass(stated[name], ib.Result)} == {
        "Solution",
        "KernelSolution",
        "LeastSquaresSolution",
        "HingeSolution",
        "NormSolution",
    }


def test_there_is_one_status_and_one_error() -> None:
    every = [one for package in (ib, solvers) for one in classes(package)]
    enums = [one for one in every if issubclass(one, Enum) and one.__name__.endswith("Status")]
    assert enums == [ib.Status]
    assert [one for one in every if one.__name__.endswith("NotCertified")] == [ib.NotCertified]


def test_a_kind_of_answer_has_words_of_its_own_for_statuses_that_others_share() -> None:
    for one in classes(ib):
        if issubclass(one, ib.Result):
            for status, advice in one.ADVICE.items():
                assert advice != status.advice
    limit = answer("linear")
    assert limit.advice == solvers.Solution.ADVICE[ib.Status.SOLVED] != limit.status.advice
    undecided = replace(limit, status=ib.Status.UNDECIDED)
    assert undecided.advice == ib.Status.UNDECIDED.advice


def test_the_worst_status_is_that_of_largest_severity() -> None:
    order = ["NOT_SEPARABLE", "INCONSISTENT", "NO_MINIMISER", "FAILED", "UNDECIDED", "INACCURATE"]
    for k, name in enumerate(order):
        milder = [ib.Status[other] for other in (*order[k + 1 :], "SOLVED", "LOCAL_OPTIMUM")]
        assert solvers.worst_status([*milder, ib.Status[name], *milder]) is ib.Status[name]


def test_the_advice_on_short_series_names_the_fewest_points_of_a_fit() -> None:
    words = ib.Status.TOO_FEW.advice.split()
    fewest = int(words[words.index("than") + 1])
    step = 10.0 * np.arange(1, fewest + 1)
    for n in (fewest - 1, fewest):
        found = ib.dynamics.measure_rates(step[:n], -np.log(step[:n]), {"angle": 1 / step[:n]})
        assert {rate.status is ib.Status.TOO_FEW for rate in found} == {n < fewest}
    u = 1 / np.log(step[1:])
    assert ib.dynamics.extrapolate(u, 1 - u).status is ib.Status.TOO_FEW


def test_a_loaded_local_limit_has_its_weights_and_no_network(tmp_path) -> None:
    found = answer("local limit")
    found.save(tmp_path / "local")
    again = ib.limits.LocalLimit.load(tmp_path / "local")
    assert ib.limits.same_limit(found, again)
    with pytest.raises(ValueError, match="has weights and no network"):
        _ = again.predictor
