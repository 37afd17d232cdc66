"""Limits of K classes at once: optima in every norm, certificates, proofs of inseparability."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.limits import Norm, solve_multiclass_svm
from implicit_bias.programs import JointMargin

# The optimum of 24 samples of three classes in nine inputs, in every norm, by Clarabel.
OPTIMA = {
    "l2": 2.93201800, "spectral": 2.21179029, "nuclear": 4.02655404, "linf": 1.00624684,
    "l1": 10.1954989, "rows": 4.9315014, "columns": 7.5838589, "largest-row": 1.7197326,
    "largest-column": 1.4263784,
}  # fmt: skip
# One sample a class, at the axes.
AXES = {
    "l2": lambda K: np.sqrt(K - 1), "nuclear": lambda K: K - 1, "spectral": lambda K: 1,
    "linf": lambda K: 1 / 2, "l1": lambda K: K, "rows": lambda K: np.sqrt(K * (K - 1)),
    "columns": lambda K: np.sqrt(K * (K - 1)), "largest-row": lambda K: np.sqrt(1 - 1 / K),
    "largest-column": lambda K: np.sqrt(1 - 1 / K),
}  # fmt: skip
# With two classes it is the binary program in the difference of both rows, times this.
BINARY = {"l2": 0.5**0.5, "nuclear": 0.5**0.5, "spectral": 0.5**0.5, "linf": 0.5, "l1": 1.0}
every_norm = pytest.mark.parametrize("norm", OPTIMA)


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X, B = rng.normal(size=(24, 9)), rng.normal(size=(3, 9))
    return X, np.argmax(X @ B.T, axis=1)


@every_norm
def test_the_optimum_of_every_norm_is_found_and_proved(norm) -> None:
    X, labels = three_classes()
    limit = solve_multiclass_svm(X, labels, norm=norm).require()
    assert limit.objective == pytest.approx(OPTIMA[norm], rel=5e-8)
    assert limit.norm == norm
    # What the attributes say, from the coefficients themselves.
    scores = X @ limit.zeta.T
    assert limit.predictor(X) == pytest.approx(scores)
    relative = scores[np.arange(24), labels][:, None] - scores
    others = np.where(np.eye(3, dtype=bool)[labels], np.inf, relative)
    assert limit.margins == pytest.approx(others.min(axis=1))
    assert limit.margins.min() == pytest.approx(1)
    assert Norm.of(norm).value(limit.zeta) == pytest.approx(limit.objective)
    assert (limit.dual[np.arange(24), labels] == 0).all()
    C = -limit.dual
    C[np.arange(24), labels] = limit.dual.sum(axis=1)
    assert Norm.of(norm).dual.value(C.T @ X) == pytest.approx(1)
    assert limit.dual.sum() == pytest.approx(limit.dual_objective)
    # Complementary slackness: pairs off the support have no share of the multipliers.
    assert limit.dual[~limit.support].sum() <= 1e-5 * limit.dual.sum()
    assert limit.certify(X, labels).status is ib.Status.SOLVED


@every_norm
@pytest.mark.parametrize("K", [3, 6])
def test_one_sample_a_class_is_solved_in_closed_form(norm, K) -> None:
    limit = solve_multiclass_svm(np.eye(K), np.arange(K), norm=norm).require()
    assert limit.objective == pytest.approx(AXES[norm](K), rel=1e-8)


@pytest.mark.parametrize("norm", BINARY)
def test_two_classes_are_the_binary_program_in_the_difference(norm) -> None:
    X, labels = three_classes()
    y = np.where(labels == 1, 1.0, -1.0)
    X = X + 2 * y[:, None] * np.eye(9)[0]  # so that a hyperplane separates them
    binary = {
        "linf": lambda b: cp.norm(b, "inf"), "l1": lambda b: cp.norm(b, 1),
    }.get(norm, lambda b: cp.norm(b, 2))  # fmt: skip
    b = cp.Variable(9)
    least = cp.Problem(cp.Minimize(binary(b)), [cp.multiply(y, X @ b) >= 1]).solve("CLARABEL")
    limit = solve_multiclass_svm(X, (y > 0).astype(int), norm=norm).require()
    assert limit.objective == pytest.approx(BINARY[norm] * least, rel=1e-7)


@every_norm
def test_contradictory_samples_are_proved_inseparable_in_every_norm(norm) -> None:
    X, labels = three_classes()
    X = np.vstack([X, X[0]])
    labels = np.append(labels, (labels[0] + 1) % 3)
    limit = solve_multiclass_svm(X, labels, norm=norm)
    assert limit.status is ib.Status.NOT_SEPARABLE
    assert limit.certificate.separation_bound <= 2.0**-52
    assert limit.dual.sum() == pytest.approx(1)
    # The same multipliers prove it in another norm.
    other = replace(limit, norm="nuclear" if norm == "linf" else "linf")
    assert other.certify(X, labels).status is ib.Status.NOT_SEPARABLE


def test_behind_gates_there_is_a_matrix_a_gate() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(30, 6)), rng.integers(0, 3, 30)
    gates = np.column_stack([np.ones(30), X @ rng.normal(size=(6, 4)) > 0]).astype(float)
    options = {"sum-nuclear": "cvxpy:SCS", "units": "interior-point"}
    for (norm, solver), optimum in zip(options.items(), (38.448177, 32.891073), strict=True):
        limit = solve_multiclass_svm(X, labels, gates, norm=norm, solver=solver, tol=1e-6)
        assert limit.require().objective == pytest.approx(optimum, rel=1e-6)
        assert limit.zeta.shape == (5, 3, 6)
        scores = np.einsum("nh,hkd,nd->nk", gates, limit.zeta, X)
        assert limit.predictor(X, gates) == pytest.approx(scores)
        assert (limit.predictor.predict(X, gates) == labels).all()
        assert limit.certify(X, labels, gates).status is ib.Status.SOLVED
        literal = JointMargin(3, norm).literal(X, labels, gates)
        assert literal.solve(solver="SCS", eps=1e-7) == pytest.approx(optimum, rel=1e-5)


def contexts_of_classes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 3)), rng.integers(0, 3, 20), rng.integers(0, 2, (20, 2))


def test_contexts_have_a_matrix_a_unit_over_all_of_them() -> None:
    X, labels, contexts = contexts_of_classes()
    limit = solve_multiclass_svm(X, labels, contexts, norm="sum-nuclear", n_contexts=2).require()
    # The textbook's program, of the features (x in the place of the unit's context) of each unit.
    features = np.eye(2)[contexts][:, :, :, None] * X[:, None, None, :]
    Z = [cp.Variable((3, 6)) for _ in range(2)]
    scores = sum(features[:, h].reshape(20, 6) @ Z[h].T for h in range(2))
    margins = [
        scores[n, labels[n]] - scores[n, k] >= 1 for n in range(20) for k in range(3)
        if k != labels[n]
    ]  # fmt: skip
    least = cp.Problem(cp.Minimize(sum(cp.normNuc(one) for one in Z)), margins)
    optimum = least.solve(solver="CLARABEL")
    assert limit.objective == pytest.approx(optimum, rel=1e-7)
    literal = JointMargin(3, "sum-nuclear", 2).literal(X, labels, contexts)
    assert literal.solve(solver="CLARABEL") == pytest.approx(optimum, rel=1e-7)
    assert limit.zeta.shape == (2, 3, 2, 3) and limit.n_contexts == 2
    values = np.linalg.svd(limit.zeta.reshape(2, 3, 6), compute_uv=False)
    assert limit.norm_of(limit.zeta) == pytest.approx(values.sum())
    assert values.sum() == pytest.approx(limit.objective)
    expected = np.einsum("nhcd,hkcd->nk", features, limit.zeta)
    assert limit.predictor(X, contexts) == pytest.approx(expected)
    assert (limit.predictor.predict(X, contexts) == labels).all()
    assert limit.certify(X, labels, contexts).status is ib.Status.SOLVED


@pytest.mark.parametrize("norm", ["l2", "l1", "linf", "sum-nuclear"])
def test_contexts_are_gates_to_norms_that_know_no_units(norm) -> None:
    X, labels, contexts = contexts_of_classes()
    limit = solve_multiclass_svm(X, labels, contexts, norm=norm, n_contexts=2)
    gates = np.eye(2)[contexts].reshape(20, 4)
    apart = solve_multiclass_svm(X, labels, gates, norm=norm)
    if norm == "sum-nuclear":  # of one matrix over both contexts it is less
        assert limit.objective < apart.dual_objective * (1 - 1e-3)
    else:
        assert limit.objective == pytest.approx(apart.objective, rel=2e-8)
    one = solve_multiclass_svm(X, labels, 0 * contexts, norm=norm, n_contexts=1)
    always = solve_multiclass_svm(X, labels, np.ones((20, 2)), norm=norm)
    assert one.status is always.status is ib.Status.NOT_SEPARABLE
    assert one.zeta.shape == (2, 3, 1, 3) and always.zeta.shape == (2, 3, 3)


@every_norm
def test_the_program_in_cvxpy_has_the_same_optimum(norm) -> None:
    X, labels = three_classes()
    value = JointMargin(norm=norm).literal(X, labels).solve(solver="CLARABEL")
    assert value == pytest.approx(OPTIMA[norm], rel=2e-7)


def test_a_class_without_samples_still_takes_part() -> None:
    X, labels = three_classes()
    three, four = (solve_multiclass_svm(X, labels, n_classes=K).require() for K in (3, 4))
    assert four.zeta.shape == (4, 9) and four.dual.shape == (24, 4)
    assert four.dual[:, 3].sum() > 0 and four.objective > three.objective * (1 + 1e-6)


def test_tensors_give_tensors() -> None:
    torch = pytest.importorskip("torch")
    X, labels = three_classes()
    limit = solve_multiclass_svm(torch.as_tensor(X), torch.as_tensor(labels)).require()
    assert isinstance(limit.zeta, torch.Tensor) and limit.support.dtype == torch.bool
    assert limit.objective == pytest.approx(OPTIMA["l2"], rel=2e-8)


def test_wrong_arguments_are_named() -> None:
    X, labels = three_classes()
    units = (X[:, :2] > 0).astype(int)
    for call, said in (
        (lambda: solve_multiclass_svm(X, labels, norm="l3"), "`norm` must be one of"),
        (lambda: solve_multiclass_svm(X, 0 * labels), "`labels` must hold two classes"),
        (lambda: solve_multiclass_svm(X, labels, n_classes=2), "`labels` must be whole numbers"),
        (lambda: solve_multiclass_svm(X, labels, n_classes=1), "`n_classes` must be at least 2"),
        (lambda: solve_multiclass_svm(X[:5], labels), "`X` must have shape"),
        (lambda: solve_multiclass_svm(X, labels, np.ones((3, 2))), "`gates` must have shape"),
        (lambda: solve_multiclass_svm(X, labels, np.ones((24, 2)), norm="rows"), "matrix"),
        (lambda: solve_multiclass_svm(X, labels, norm="spectral", solver="highs"), "`solver`"),
        (lambda: solve_multiclass_svm(X, labels, n_contexts=2), "`gates`, which are missing"),
        (lambda: solve_multiclass_svm(X, labels, units + 1, n_contexts=2), "must lie in 0 .. 1"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_units_are_measured_one_by_one_behind_gates_and_as_a_whole_without() -> None:
    X, labels = three_classes()
    whole = solve_multiclass_svm(X, labels).require()
    assert whole.unit_norms == pytest.approx([whole.objective]) and whole.is_unique
    assert whole.n_contexts is None and whole.live.tolist() == [True]
    X, labels, contexts = contexts_of_classes()
    limit = solve_multiclass_svm(X, labels, contexts, norm="sum-nuclear", n_contexts=2).require()
    each = [np.linalg.norm(unit.reshape(3, -1), "nuc") for unit in limit.zeta]
    assert limit.unit_norms == pytest.approx(each) and sum(each) == pytest.approx(limit.objective)
    assert limit.n_contexts == limit.zeta.shape[2] == 2 and not limit.is_unique
    for size in (1e-5, 1e-7):
        for scale in (1e-3, 1e3):
            two = replace(limit, zeta=scale * np.stack([limit.zeta[0], size * limit.zeta[0]]))
            assert two.live.tolist() == [True, size > 1e-6]


def test_data_of_other_sizes_are_refused_for_a_certificate() -> None:
    X, labels = three_classes()
    limit = solve_multiclass_svm(X, labels).require()
    for rows, columns in ((24, 8), (23, 9)):
        with pytest.raises(ValueError, match="give the data that it was solved on"):
            limit.certify(X[:rows, :columns], labels[:rows])


def spoiled(limit):
    """Limits whose arrays do not belong together, by what is said of them."""
    zeta, dual, margins = limit.zeta, limit.dual, limit.margins
    yield "of one number of samples and classes", [
        {"margins": margins[1:]}, {"support": limit.support[:, 1:]}, {"dual": dual.ravel()},
        {"zeta": zeta.ravel()}, {"zeta": np.delete(zeta, 0, -2)}, {"zeta": zeta[..., None, None]},
        {"support": limit.support[1:], "margins": margins[1:]}, {"dual": dual[1:]},
    ]  # fmt: skip
    yield "not finite", [
        {"zeta": np.where(zeta == zeta.max(), np.inf, zeta)}, {"margins": margins * np.nan},
        {"dual": np.where(dual == dual.max(), np.nan, dual)},
    ]  # fmt: skip
    yield "support its certificate", [
        {"margins": -margins}, {"margins": 0 * margins}, {"dual": dual - 1e-9}, {"tol": 1e-300},
        {"zeta": zeta * (1 + 1e-8)}, {"margins": margins * (1 - 1e-8)}, {"zeta": 1.5 * zeta},
    ]  # fmt: skip


@pytest.mark.parametrize("behind", [False, True])
def test_files_of_arrays_that_do_not_belong_together_are_refused(tmp_path, behind) -> None:
    X, labels = three_classes()
    gates = np.ones((24, 1)) if behind else None
    limit = solve_multiclass_svm(X, labels, gates).require()
    for said, changes in spoiled(limit):
        for change in changes:
            found = replace(limit, **change)
            assert said in found._fault(), change
            if said.startswith("support"):  # of what is not called solved nothing is asked
                assert not replace(found, status=ib.Status.INACCURATE)._fault()
    kept = [limit, replace(limit, zeta=3 * limit.zeta, margins=3 * limit.margins)]
    for name, one in enumerate([*kept, solve_multiclass_svm(X[:, :1], labels)]):
        one.save(tmp_path / f"{name}.npz")
        assert type(one).load(tmp_path / f"{name}.npz").status is one.status


def test_pairs_support_whose_multiplier_is_above_their_slack() -> None:
    X, labels = np.array([[2.0], [3.0], [3.0], [5.0]]), np.zeros(4, dtype=int)
    limit, dual = solve_multiclass_svm(X, labels, n_classes=2), np.array([1.0, 0.6, 0.4, 0.9])
    zeta = np.array([[0.5], [-0.5]])  # slacks of 0, a half, a half and three halves

    def supporting(zeta, dual, labels=labels):
        pairs = np.zeros((4, 2))
        pairs[np.arange(4), 1 - labels] = dual
        found = replace(limit, zeta=zeta, dual=pairs).certify(X, labels).support
        assert not found[np.arange(4), labels].any()
        return found[np.arange(4), 1 - labels].tolist()

    for scale in (1e-3, 1.0, 1e3):
        assert supporting(scale * zeta, scale * dual) == [True, True, False, False]
    assert supporting(0 * zeta, dual * [1, 0, 1, 0]) == [True, False, True, False]
    assert supporting(zeta, 0 * dual) == [False] * 4
    # Margins that are not positive count as the resolution of the largest.
    wrong = np.array([1, 0, 0, 0])
    assert supporting(zeta, dual * [0, 1, 1, 1], wrong) == [True, False, False, False]


def test_limits_in_contexts_are_consistent_and_splits_are_of_samples() -> None:
    X, labels, contexts = contexts_of_classes()
    limit = solve_multiclass_svm(X, labels, contexts, n_contexts=2).require()
    assert limit.zeta.ndim == 4 and limit._fault() == ""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    split = solve_multiclass_svm(X, [0, 0, 1, 0], inseparable="split")
    assert split.separable[:, 1].tolist() == [True, False, False, True]
    # Of equal samples the finite part has the shares of their labels.
    X = np.array([[1.0, 0.0]] + 4 * [[0.0, 1.0]])
    shares = np.exp(solve_multiclass_svm(X, [0, 0, 0, 1, 2], inseparable="split").finite[:, 1])
    np.testing.assert_allclose(shares / shares.sum(), [0.5, 0.25, 0.25], rtol=1e-9)
