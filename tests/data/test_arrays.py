"""Arrays that NumPy would convert without a word, and sizes that no memory holds, are refused."""

import os

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import implicit_bias as ib

X = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
Y = np.array([1.0, -1.0, 1.0])
ONES = np.ones((3, 1), dtype=int)
LIMIT = ib.solve_gln_svm(X, Y, ONES)

# Every place where arrays enter, as a function of inputs and labels.
ENTRIES = {
    "linear": ib.solve_linear_svm,
    "gln": lambda X, y: ib.solve_gln_svm(X, y, ONES),
    "gln-l2": lambda X, y: ib.solve_gln_l2_svm(X, y, ONES),
    "shallow-gln": lambda X, y: ib.solve_shallow_gln_svm(X, y, ONES),
    "frelu": lambda X, y: ib.solve_frelu_svm(X, y, ONES),
    "orthosep": ib.solve_orthosep,
    "separability": ib.datasets.is_orthogonally_separable,
    "gated OLS": lambda X, y: ib.solve_gated_ols(X, y, ONES),
    "dataset": lambda X, y: ib.Dataset("name", X, y, X, y, "description"),
}
INPUTS_ONLY = {
    "class dataset": lambda X: ib.datasets.ClassDataset(
        "name", X, [0, 1, 2], X, [0, 1, 2], "source"
    ),
    "predictor": lambda X: LIMIT.predictor(X, ONES),
    "distillation": lambda X: ib.distillation.distillation_limit(X, np.ones(2)),
    "contexts": ib.HyperplaneContexts(1).fit,
    "contexts of new inputs": ib.HyperplaneContexts(1).fit(X).transform,
    "gates": ib.HyperplaneGates(1).fit,
    "ReLU gates": ib.gates.ReLUGates(np.ones((1, 2))).transform,
    "estimator": lambda X: ib.estimators.LinearLimitClassifier().fit(X, Y),
    "scores": ib.estimators.LinearLimitClassifier().fit(X, Y).decision_function,
}
# Those that take sparse inputs as they are.
SPARSE = ("linear", "estimator", "scores")
DISGUISED = {
    "complex": (lambda a: a + 1j, "[Cc]omplex"),
    "masked": (np.ma.masked_array, "masked"),
    "strings": (lambda a: a.astype(str), "strings"),
    "sparse": (csr_array, "[Ss]parse"),
    "nothing": (lambda a: None, "None|NaN|array"),
    "objects": (lambda a: np.array([{}] * len(a)), "object|[Rr]eshape|dict"),
}


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        (entry, name)
        for entry in (*ENTRIES, *INPUTS_ONLY)
        for name in DISGUISED
        if name != "sparse" or entry not in SPARSE
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(entry, name) -> None:
    disguise, message = DISGUISED[name]
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        INPUTS_ONLY[entry](disguise(X)) if entry in INPUTS_ONLY else ENTRIES[entry](disguise(X), Y)
    if entry in ENTRIES:
        assert caught.type is TypeError
        assert "`X" in str(caught.value)
    if entry in ENTRIES and name != "sparse":
        with pytest.raises(TypeError, match=message):
            ENTRIES[entry](X, disguise(Y))


@pytest.mark.parametrize("solve", [ib.solve_gln_svm, ib.solve_frelu_svm, ib.solve_gated_ols])
@pytest.mark.parametrize("name", DISGUISED)
def test_gates_that_are_no_numbers_are_refused(solve, name) -> None:
    disguise, message = DISGUISED[name]
    with pytest.raises(TypeError, match=f"(contexts|gates).*({message})"):
        solve(X, Y, disguise(ONES))


def test_complex_tensors_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`X` must hold real numbers, got dtype torch\.complex"):
        ib.solve_linear_svm(torch.tensor(X + 1j), torch.tensor(Y))


def test_contexts_that_no_memory_holds_are_refused_with_their_size() -> None:
    with pytest.raises(
        ValueError, match=r"`n_contexts` of 1000000000000 .* 37,253 GiB.*take a smaller"
    ):
        ib.solve_gln_svm(X, Y, ONES, n_contexts=10**12)


@pytest.mark.parametrize("gating", [ib.HyperplaneContexts, ib.HyperplaneGates])
def test_hyperplanes_that_no_memory_holds_are_refused_with_their_size(gating) -> None:
    with pytest.raises(ValueError, match=r"`n_units` of 1000000000000 would take 37,253 GiB"):
        gating(10**12).fit(X)


@pytest.fixture
def memory_of(monkeypatch):
    """Let the machine have so many bytes."""
    usual = os.sysconf

    def limit(n_bytes):
        known = {"SC_PHYS_PAGES": n_bytes, "SC_PAGE_SIZE": 1}
        monkeypatch.setattr(os, "sysconf", lambda name: known.get(name) or usual(name))

    return limit


def test_contrasts_that_no_memory_holds_are_refused(memory_of) -> None:
    memory_of(8 * 10**4)
    ib.solve_gln_l2_svm(X, Y, ONES, n_contexts=100)
    with pytest.raises(ValueError, match="contrasts with `n_contexts` of 101"):
        ib.solve_gln_l2_svm(X, Y, ONES, n_contexts=101)


def test_the_least_that_a_program_takes_is_compared_with_the_memory_of_the_machine(
    memory_of,
) -> None:
    # 3 samples, 2 inputs, 8 contexts: (3 + 2) * 8 numbers of 8 bytes.
    memory_of(320)
    ib.solve_gln_svm(X, Y, ONES, n_contexts=8)
    with pytest.raises(ValueError, match="`n_contexts` of 9 would take"):
        ib.solve_gln_svm(X, Y, ONES, n_contexts=9)
