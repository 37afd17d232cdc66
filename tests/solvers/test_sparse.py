"""Sparse inputs: the answers of dense ones, of scikit-learn, and never a dense copy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import implicit_bias as ib
from solvers import GatedDesign, MaxMarginProgram, Settings, Status, certify, solve
from solvers.methods.sets.sparse_active import exchange_multipliers, of_rows
from solvers.numerics.summation import enclose_adjoint, enclose_scores
from tests.certificate_checker import assert_honest
from tests.oracles import hard_margin


def drawn(n: int, D: int, density: float, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Inputs without empty rows, and the labels of a teacher."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, D), density=density, rng=rng, format="csr", data_sampler=rng.normal)
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr) > 0)])
    scores = X @ rng.normal(size=D)
    return X, np.where(scores < 0, -1.0, 1.0)


def program(X, y: np.ndarray) -> MaxMarginProgram:
    design = GatedDesign(X, np.ones((len(y), 1)), np.zeros(1, dtype=np.int64))
    return MaxMarginProgram(design, y)


# Fewer samples than inputs, which the exchanges solve; more, and a dense column, which they do not;
# so many that they begin on a working set.
SHAPES = {"wide": (150, 600, 0.02), "tall": (250, 40, 0.1), "many": (1700, 30, 0.2)}


@pytest.fixture(autouse=True)
def no_dense_copy(monkeypatch) -> None:
    """No (n, D) matrix is made dense; square ones, of samples, may be."""
    toarray = sp.csr_array.toarray

    def refuse(self, *args, **kwargs):
        assert self.shape[0] == self.shape[1], f"a dense copy of {self.shape}"
        return toarray(self, *args, **kwargs)

    monkeypatch.setattr(sp.csr_array, "toarray", refuse)


def dense(X: sp.csr_array) -> np.ndarray:
    full = np.zeros(X.shape)
    rows, columns = X.tocoo().coords
    full[rows, columns] = X.data
    return full


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_answer_is_that_of_dense_inputs(shape) -> None:
    X, y = drawn(*shape)
    sparse, known = solve(program(X, y)), solve(program(dense(X), y))
    assert sparse.status is known.status is Status.SOLVED
    objectives = sparse.certificate.objective, known.certificate.objective
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-8)
    np.testing.assert_allclose(sparse.primal, known.primal, atol=1e-4 * np.abs(known.primal).max())
    # What the certificate says of the sparse program holds for the dense one.
    assert_honest(program(dense(X), y), sparse)


def test_coefficients_are_those_of_scikit_learn_and_of_least_squares() -> None:
    X, y = drawn(120, 300, 0.05)
    limit = ib.solve_linear_svm(X, y).require()
    np.testing.assert_allclose(limit.zeta, hard_margin(dense(X) * y[:, None]), atol=1e-7)
    svm = LinearSVC(loss="hinge", C=1e6, fit_intercept=False, tol=1e-10, max_iter=10**6)
    np.testing.assert_allclose(limit.zeta, svm.fit(X, y).coef_[0], atol=1e-4)
    np.testing.assert_allclose(limit.predictor(X) * y, limit.margins)
    assert limit.certify(X, y).status is Status.SOLVED
    assert limit.certify(dense(X), y).status is Status.SOLVED


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("scale", [2.0**-480, 2.0**480])
def test_sparse_inputs_have_no_scale(shape, scale: float) -> None:
    X, y = drawn(*shape)
    plain, scaled = solve(program(X, y)), solve(program(scale * X, y))
    assert scaled.certificate.objective * scale == plain.certificate.objective
    with pytest.raises(ValueError, match=r"`X` has .* rescale it"):
        solve(program(scale**1.1 * X, y))


def test_contradictions_are_proved_on_the_entries() -> None:
    for shape in SHAPES.values():
        X, y = drawn(*shape)
        # Rows of eight decades, and one of them again with the other label.
        X = sp.csr_array(sp.diags_array(np.logspace(-4, 4, len(y))) @ X)
        X, y = sp.csr_array(sp.vstack([X, X[5:6]])), np.append(y, -y[5])
        found = solve(program(X, y))
        assert found.status is Status.NOT_SEPARABLE
        assert_honest(program(dense(X), y), found)


def test_a_row_of_zeros_is_on_no_side() -> None:
    X, y = drawn(50, 200, 0.05)
    X = sp.csr_array(sp.vstack([X, sp.csr_array((1, 200))]))
    found = solve(program(X, np.append(y, 1.0)))
    assert found.status is Status.NOT_SEPARABLE and found.dual[:-1].max() == 0
    empty = solve(program(sp.csr_array((3, 4)), np.ones(3)))
    assert empty.status is Status.NOT_SEPARABLE


def test_enclosures_are_those_of_dense_inputs() -> None:
    X, y = drawn(80, 60, 0.2)
    X.data *= np.logspace(-8, 8, X.nnz)
    Z = np.where(np.arange(160).reshape(80, 2) % 3 == 0, 0.5, 0.0)
    rng, group = np.random.default_rng(1), np.array([0, 1])
    designs = [GatedDesign(one, Z, group) for one in (X, dense(X))]
    V, weights = rng.uniform(-1, 1, (2, 60)), rng.uniform(-1, 1, 80)
    for enclose, point in ((enclose_scores, V), (enclose_adjoint, weights)):
        found, known = (enclose(design, point) for design in designs)
        assert np.all(np.abs(found.value - known.value) <= found.radius + known.radius)
        assert np.all(found.radius <= 2 * known.radius + 1e-300)
    primal, dual = rng.normal(size=(2, 60)), rng.random(80)
    bounds = [certify(MaxMarginProgram(design, y), primal, dual) for design in designs]
    assert bounds[0].dual_objective == pytest.approx(bounds[1].dual_objective, rel=1e-12)


def test_exchanges_solve_the_program_and_say_where_they_do_not() -> None:
    X, y = drawn(120, 300, 0.05)
    rows = sp.csr_array(sp.diags_array(y) @ X)
    sizes, Q = (rows * rows).sum(axis=1), sp.csr_array(rows @ rows.T)
    by_rows, used = exchange_multipliers(sizes, of_rows(rows), Settings())
    by_kernel, _ = exchange_multipliers(Q.diagonal(), lambda part: Q[part][:, part].dot, Settings())
    assert by_rows is not None and by_kernel is not None and used < 20
    np.testing.assert_allclose(by_kernel, by_rows, rtol=1e-8, atol=1e-12 * by_rows.max())
    margins = rows @ (rows.T @ by_rows)
    assert by_rows.min() == 0 and margins.min() > 1 - 1e-8
    np.testing.assert_allclose(margins[by_rows > 0], 1, atol=1e-8)
    opposite = sp.csr_array(sp.vstack([rows, -rows[:1]]))
    doubled = np.append(sizes, sizes[0])
    assert exchange_multipliers(doubled, of_rows(opposite), Settings())[0] is None
    once = Settings(max_iterations=1)
    assert exchange_multipliers(sizes, of_rows(rows), once) == (None, 1)


@pytest.mark.parametrize("add_constant", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::implicit_bias.estimators.InseparableWarning")
def test_the_estimator_is_that_of_dense_inputs(add_constant: bool, n_classes: int) -> None:
    X, y = drawn(90, 250, 0.05)
    X = sp.csr_array(sp.vstack([X, X[:10]]))  # rows that repeat
    labels = np.append(y, y[:10]) if n_classes == 2 else np.append(np.arange(len(y)) % 3, [0] * 10)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(labels))
    for given in (None, weights):
        made = ib.estimators.LinearLimitClassifier(add_constant=add_constant, tol=1e-10)
        sparse = made.fit(X, labels, given)
        found = sparse.coef_, sparse.intercept_, sparse.dual_, sparse.predict(X)
        known = made.fit(dense(X), labels, given)
        expected = known.coef_, known.intercept_, known.dual_, known.predict(dense(X))
        # Points are known to the root of the gap, multipliers to that over the least eigenvalue of
        # the samples' products.
        for one, other, atol in zip(found, expected, (2e-3, 2e-3, 1e-2, 0.0), strict=True):
            np.testing.assert_allclose(one, other, atol=atol * (np.abs(other).max() or 1.0))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array, sp.csc_array])
def test_every_sparse_kind_is_taken_duplicates_included(kind) -> None:
    X, y = drawn(40, 150, 0.05)
    known = ib.solve_linear_svm(X, y).zeta
    twice = sp.coo_array(X)
    halves = np.concatenate([twice.data / 2] * 2), tuple(np.tile(c, 2) for c in twice.coords)
    for given in (kind(X), sp.coo_array(halves, shape=X.shape)):
        np.testing.assert_array_equal(ib.solve_linear_svm(given, y).zeta, known)


def test_sparse_kernels_have_the_answer_of_dense_ones() -> None:
    X, y = drawn(150, 600, 0.02)
    K = X @ X.T
    sparse, known = ib.solve_kernel_svm(K, y), ib.solve_kernel_svm(dense(K), y)
    assert sparse.status is known.status is Status.SOLVED
    assert sparse.objective == pytest.approx(known.objective, rel=2e-8)
    assert sparse.objective == pytest.approx(ib.solve_linear_svm(X, y).objective, rel=2e-8)
    np.testing.assert_allclose(sparse.zeta, known.zeta, atol=1e-4 * np.abs(known.zeta).max())
    np.testing.assert_allclose(sparse.predictor(K), sparse.predictor(dense(K)), rtol=1e-9)


def test_sparse_kernels_that_do_not_separate_or_are_none() -> None:
    one = sp.csr_array(np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]))
    assert ib.solve_kernel_svm(one, [1, -1, 1]).status is Status.NOT_SEPARABLE
    zero = sp.csr_array(np.diag([1.0, 0.0]))
    assert ib.solve_kernel_svm(zero, [1, -1]).status is Status.NOT_SEPARABLE
    indefinite = sp.csr_array(np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]))
    with pytest.raises(ValueError, match="no kernel"):
        ib.solve_kernel_svm(indefinite, [1, -1, 1])
    with pytest.raises(ValueError, match="symmetric"):
        ib.solve_kernel_svm(sp.csr_array(np.triu(np.ones((3, 3)))), [1, -1, 1])


REFUSALS = {
    "separability": lambda X, y: ib.is_separable(X, y),
    "gln": lambda X, y: ib.solve_gln_svm(X, y, np.zeros((len(y), 2), dtype=int)),
    "frelu": lambda X, y: ib.solve_frelu_svm(X, y, np.ones((len(y), 2))),
    "l1": lambda X, y: ib.limits.solve_l1_svm(X, y),
    "orthosep": lambda X, y: ib.solve_orthosep(X, y),
    "gated OLS": lambda X, y: ib.solve_gated_ols(X, y, np.ones((len(y), 2))),
    "regression": lambda X, y: ib.kernels.kernel_regression(X @ X.T, y),
}


@pytest.mark.parametrize("call", REFUSALS.values(), ids=REFUSALS)
def test_programs_without_sparse_inputs_say_which_have_them(call) -> None:
    with pytest.raises(TypeError, match=r"must be dense.*LinearLimitClassifier take sparse"):
        call(*drawn(20, 50, 0.1))


def test_other_solvers_and_estimators_and_bad_entries_are_refused_in_words() -> None:
    X, y = drawn(20, 50, 0.1)
    with pytest.raises(ValueError, match="'interior-point' where `X` is sparse"):
        ib.solve_linear_svm(X, y, solver="cvxpy:CLARABEL")
    with pytest.raises(TypeError, match="Sparse data was passed"):
        ib.estimators.GLNLimitClassifier().fit(X, y)
    with pytest.raises(TypeError, match="`X` must hold real numbers, got dtype complex128"):
        ib.solve_linear_svm(X.astype(complex), y)
    X.data[3] = np.nan
    with pytest.raises(ValueError, match="`X` has entries that are NaN"):
        ib.solve_linear_svm(X, y)
