"""Margin programs of any norm: images, bounds that any points prove, equalities, solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from solvers import (
    GatedDesign,
    GatedRows,
    MaxMarginProgram,
    Norm,
    NormProgram,
    RelativeMargins,
    Rows,
    Settings,
    Status,
    certify_norm,
    solve,
    solve_norm,
)
from solvers.methods import norm_routes
from solvers.methods.sets import rows as sets_of_rows
from solvers.norms.balls import LEAST, MOST, Cone, bordered, centred, linearised
from solvers.programs.coordinates import coordinates_of
from solvers.programs.images import Image, Products

# Least norms under 16 equalities and 24 rows, of eight contexts and six tokens.
TOKENS = {
    "l2": 3.14056626, "spectral": 1.96643219, "nuclear": 6.0582586, "linf": 0.65088625,
    "l1": 16.9135391,
}  # fmt: skip
NORMS = (*TOKENS, "rows", "columns", "largest-row", "largest-column")
every_norm = pytest.mark.parametrize("name", NORMS)


def tokens() -> tuple[Rows, Rows]:
    """Margins and equalities of next tokens: each context allows three of six, at given odds."""
    rng = np.random.default_rng(0)
    contexts, margins, equal = rng.normal(size=(8, 10)), [], []
    for h in contexts:
        allowed = rng.choice(6, 3, replace=False)
        rng.uniform(0.2, 1, 3)
        for token in range(6):
            difference = np.eye(6)[allowed[0]] - np.eye(6)[token]
            if token not in allowed:
                margins.append(np.outer(difference, h))
            elif token != allowed[0]:
                equal.append(np.outer(difference, h))
    return Rows(np.array(margins)), Rows(np.array(equal))


def images() -> dict[str, Image]:
    rng = np.random.default_rng(1)
    X, Z, y = rng.normal(size=(9, 4)), rng.normal(size=(9, 3)), np.sign(rng.normal(size=9))
    design = MaxMarginProgram(GatedDesign(X, Z, np.arange(3)), y)
    labels = rng.integers(0, 3, 9)
    return {
        "rows": Rows(rng.normal(size=(9, 3, 4))),
        "gated": GatedRows(design, (3, 4)),
        "classes": RelativeMargins(X, labels, 3),
        "classes behind gates": RelativeMargins(X, labels, 3, Z[:, :2]),
        "classes in contexts": RelativeMargins(X, labels, 3, rng.normal(size=(9, 4)), 2),
        "taken": RelativeMargins(X, labels, 3, Z).taken(np.array([1, 4, 5, 12])),
    }


@pytest.mark.parametrize("name", images())
def test_an_image_its_adjoint_its_gram_matrix_and_its_standard_form_are_one_map(name) -> None:
    image, rng = images()[name], np.random.default_rng(2)
    size = int(np.prod(image.shape))
    B, lam = rng.normal(size=image.shape), rng.uniform(size=image.n_rows)
    rows = np.stack([image.scores(e.reshape(image.shape)) for e in np.eye(size)], axis=1)
    assert image.scores(B) == pytest.approx(rows @ B.ravel())
    assert image.adjoint(lam).ravel() == pytest.approx(lam @ rows)
    assert image.gram(lam) == pytest.approx((rows * lam[:, None]).T @ rows)
    standard = image.standard()
    J = int(standard.design.Z.shape[1])
    assert standard.margins(B.reshape(J, -1)) == pytest.approx(image.scores(B))
    assert standard.dual_blocks(lam).reshape(image.shape) == pytest.approx(image.adjoint(lam))
    # Sizes of terms: no less than any sum of them with other signs.
    assert (image.absolute().scores(np.abs(B)) >= np.abs(image.scores(B)) - 1e-12).all()
    assert (image.absolute().adjoint(lam) >= np.abs(image.adjoint(lam)) - 1e-12).all()
    assert image.over(4.0).scores(B) == pytest.approx(image.scores(B) / 4)
    assert image.over(4.0).largest() == image.largest() / 4
    some, weights = np.array([7, 2, 3]) % image.n_rows, rng.uniform(size=size)
    taken = image.taken(some)
    assert taken.scores(B) == pytest.approx(image.scores(B)[some])
    assert taken.gram_of_rows(weights) == pytest.approx((rows[some] * weights) @ rows[some].T)


def test_inputs_that_agree_on_all_samples_weigh_as_often_as_they_come() -> None:
    rng = np.random.default_rng(3)
    X, gates = rng.normal(size=(4, 3))[:, [0, 1, 0, 2, 1]], rng.normal(size=(6, 2))
    gates[[0, 4], [1, 0]] = 0.0
    weights = rng.uniform(size=10)
    for sample in (np.array([3, 0, 0, 2, 1, 3]), np.array([0, 0, 1, 2, 3, 3])):
        image = Products(X, gates, sample, (2, 5))
        rows = (gates[:, :, None] * X[sample][:, None, :]).reshape(6, 10)
        assert image.gram_of_rows(weights) == pytest.approx((rows * weights) @ rows.T)


def test_products_that_open_gates_share_are_rounded_within_what_is_allowed() -> None:
    rng = np.random.default_rng(4)
    X, own = rng.normal(size=(40, 30)), rng.choice([-1.0, 1.0], size=40)
    gates = own[:, None] * (rng.uniform(size=(40, 6)) < [0.95, 0.9, 0.5, 1.0, 0.3, 0.9])
    gates[:, 2] *= 1.5  # alike on no other column
    image, weights = Products(X, gates, np.arange(40), (6, 30)), rng.uniform(size=180)
    rows = (gates[:, :, None] * X[:, None, :]).reshape(40, 180)
    expected = (rows * weights) @ rows.T
    assert image.gram_of_rows(weights) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    for heavy in (slice(0), slice(0, None, 4)):  # none, and some of every column
        weights[heavy] = 1e6
        expected = (rows * weights) @ rows.T
        off = np.abs(image.gram_of_rows(weights, allowed=1e-3) - expected).max()
        assert 1e-8 < off < 1e-3


@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_inputs_that_agree_on_all_samples_are_solved_as_one(norm) -> None:
    rng = np.random.default_rng(5)
    X, gates = rng.normal(size=(20, 40)), (rng.uniform(size=(20, 12)) < 0.7).astype(float)
    X, y = np.concatenate([X, X[:, ::2], X], axis=1), rng.choice([-1.0, 1.0], size=20)
    design = GatedDesign(X, gates, np.zeros(12, dtype=np.int64))
    program = NormProgram(GatedRows(MaxMarginProgram(design, y), (12, 100)), Norm.of(norm))
    ours, vertex = solve_norm(program).require(), solve_norm(program, solver="highs").require()
    assert ours.certificate.objective == pytest.approx(vertex.certificate.objective, rel=1e-7)


@pytest.mark.parametrize(
    ("norm", "seed", "back"), [("linf", 0, False), ("linf", 108, True), ("l1", 0, False)]
)
def test_margins_that_a_path_leaves_out_are_still_held(norm, seed, back, monkeypatch) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 40))
    labels = np.argmax(X @ rng.normal(size=(40, 3)), axis=1)
    image = RelativeMargins(X, labels, 3).taken(np.arange(120))
    sizes, steps, of_rows = [], [], Products.gram_of_rows
    monkeypatch.setattr(
        Products, "gram_of_rows",
        lambda self, *args: sizes.append(self.n_rows) or of_rows(self, *args),
    )  # fmt: skip
    program = NormProgram(image, Norm.of(norm))
    settings = Settings(tol=1e-8, progress=lambda done, gap: steps.append(done))
    ours = solve_norm(program, settings=settings).require()
    assert steps == list(range(1, 1 + ours.iterations))
    assert min(sizes) < 0.8 * max(sizes)
    assert (sizes[-1] == max(sizes)) is back
    vertex = solve_norm(program, solver="highs").require()
    assert ours.certificate.objective == pytest.approx(vertex.certificate.objective, rel=1e-8)


@pytest.mark.parametrize("name", TOKENS)
def test_programs_with_equalities_have_the_optima_of_cvxpy(name) -> None:
    A, E = tokens()
    assert (A.n_rows, E.n_rows) == (24, 16)
    for equalities in (E, Rows(np.concatenate([E.matrix, E.matrix[:3] + E.matrix[1:4]]))):
        program = NormProgram(A, Norm.of(name), equalities)
        found = solve_norm(program, settings=Settings(tol=1e-8)).require()
        assert found.certificate.objective == pytest.approx(TOKENS[name], rel=6e-8)
        assert np.abs(equalities.scores(found.primal)).max() < 1e-9
        if name in ("l1", "linf"):
            vertex = solve_norm(program, solver="highs").require()
            assert vertex.certificate.objective == pytest.approx(TOKENS[name], rel=1e-8)
    of_cvxpy = solve_norm(NormProgram(A, Norm.of(name), E), solver="cvxpy:CLARABEL")
    assert of_cvxpy.certificate.objective == pytest.approx(TOKENS[name], rel=1e-6)


def test_the_sign_of_the_multipliers_of_equalities_matters() -> None:
    A, E = tokens()
    program = NormProgram(A, Norm.of("spectral"), E)
    found = solve_norm(program).require()
    wrong = certify_norm(program, found.primal, found.dual, -found.equality_dual)
    assert wrong.dual_objective < 0.9 * found.certificate.dual_objective


@every_norm
def test_any_points_bracket_the_optimum(name) -> None:
    A, E = tokens()
    rng = np.random.default_rng(3)
    for equalities in (None, E):
        program = NormProgram(A, Norm.of(name), equalities)
        found = solve_norm(program, settings=Settings(tol=1e-6)).require()
        for size in (1e-3, 0.1, 1.0):
            noise = size * np.abs(found.primal).max() * rng.normal(size=A.shape)
            if equalities is not None:
                basis = np.linalg.svd(E.flat)[2][16:]  # of the zeros of E
                noise = (basis.T @ (basis @ noise.ravel())).reshape(A.shape)
            lam = found.dual * np.exp(size * rng.normal(size=A.n_rows))
            nu = found.equality_dual * (1 + size)
            proved = certify_norm(program, found.primal + noise, lam, nu)
            assert proved.dual_objective <= found.certificate.objective
            assert proved.objective >= found.certificate.dual_objective
            assert proved.dual_objective > 0
        # The bounds do not depend on the scale of the points.
        scaled = certify_norm(
            program, 1e-9 * found.primal, 1e9 * found.dual, 1e9 * found.equality_dual
        )
        assert scaled.gap == pytest.approx(found.certificate.gap, abs=1e-12)


def test_coefficients_off_the_equalities_are_charged() -> None:
    A, E = tokens()
    program = NormProgram(A, Norm.of("l2"), E)
    found = solve_norm(program).require()
    off = found.primal + 1e-5 * E.matrix[0]
    proved = certify_norm(program, off, found.dual, found.equality_dual)
    assert proved.objective > found.certificate.objective * (1 + 1e-6)
    free = certify_norm(replace(program, equalities=None), off)
    assert proved.objective > free.objective * (1 + 1e-6)


@every_norm
def test_the_solvers_agree(name) -> None:
    image = images()["classes"]
    assert isinstance(image, RelativeMargins)
    image = replace(image, X=image.X + 3 * np.eye(3, 4)[image.labels])
    program = NormProgram(image, Norm.of(name))
    found = solve_norm(program).require()
    other = solve_norm(program, solver="cvxpy:CLARABEL", settings=Settings(tol=1e-6)).require()
    assert found.certificate.objective == pytest.approx(other.certificate.objective, rel=2e-6)
    assert found.solver == "interior-point" and found.iterations > 0


def test_units_of_matrices_are_summed_and_compared() -> None:
    image = images()["classes behind gates"]
    optima = []
    for name in ("sum-nuclear", "max-spectral", "units", "largest-unit", "l2", "linf"):
        program = NormProgram(image, Norm.of(name))
        found = solve_norm(program)
        if found.status is Status.NOT_SEPARABLE:
            pytest.fail("the data are to be separable")
        assert found.require().certificate.gap <= 1e-8
        other = solve_norm(program, solver="cvxpy:CLARABEL", settings=Settings(tol=1e-5))
        assert other.certificate.objective == pytest.approx(found.certificate.objective, rel=1e-5)
        optima.append(found.certificate.objective)
    assert optima[0] > optima[1] and optima[2] > optima[3]
    with pytest.raises(ValueError, match="`solver` 'interior-point' takes no norm 'max-nuclear'"):
        solve_norm(NormProgram(image, Norm.of("max-nuclear")), solver="interior-point")


def test_many_margins_need_no_matrix_of_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 12))
    labels = np.argmax(X[:, :6], axis=1)
    X[np.arange(900), labels] += 1
    image = RelativeMargins(X, labels, 6)
    found = {name: solve_norm(NormProgram(image, Norm.of(name))) for name in ("linf", "spectral")}
    for name, one in found.items():
        assert one.require().certificate.gap <= 1e-8, name
        norm = Norm.of(name).value(one.primal)
        assert norm / image.scores(one.primal).min() == pytest.approx(one.certificate.objective)


def test_many_margins_of_the_l2_norm_go_by_their_coefficients() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(1300, 5)), np.ones(1300)])
    labels = rng.integers(0, 5, 1300)
    X[np.arange(1300), labels] += 6
    image = RelativeMargins(X, labels, 5)
    found = solve_norm(NormProgram(image, Norm())).require()
    game = solve(image.standard()).require()
    assert found.certificate.objective == pytest.approx(game.certificate.objective, rel=1e-8)
    assert found.iterations != game.iterations
    # The game proves what no norm can.
    X[1] = X[0]
    labels = np.where(np.arange(1300) == 1, (labels[0] + 1) % 5, labels)
    refused = solve_norm(NormProgram(RelativeMargins(X, labels, 5), Norm()))
    assert refused.status is Status.NOT_SEPARABLE


def test_sums_behind_gates_of_fewer_margins_than_coefficients_reach_their_gap() -> None:
    # Digits: 60 inputs span less than 65 columns, and those behind a gate less still.
    data = load_digits()
    chosen = np.random.default_rng(0).permutation(len(data.target))[:60]
    X = np.column_stack([data.data[chosen] / 16 - 0.5, np.ones(60)])
    cuts = X @ np.random.default_rng(1).normal(size=(65, 4))
    Z = (cuts > np.median(cuts, axis=0)).astype(float)
    image = RelativeMargins(X, np.asarray(data.target[chosen], dtype=np.int64), 10, Z)
    found = solve_norm(NormProgram(image, Norm.of("sum-nuclear")))
    assert found.require().iterations < 30


@pytest.mark.parametrize("name", ["spectral", "nuclear", "muon"])
def test_inputs_of_low_rank_cost_no_digits(name) -> None:
    # Coefficients outside the span of what units see change no margin.
    rng = np.random.default_rng(0)
    inputs, Z = rng.normal(size=(12, 5)), (rng.normal(size=(12, 4)) > 0).astype(float)
    Z[:, 0] = 1
    y = np.sign(rng.normal(size=12))

    def solved(X: np.ndarray) -> float:
        design = MaxMarginProgram(GatedDesign(X, Z, np.arange(4)), y)
        program = NormProgram(GatedRows(design, (4, X.shape[1])), Norm.of(name))
        return solve_norm(program, settings=Settings(tol=1e-9)).require().certificate.objective

    turn = np.linalg.qr(rng.normal(size=(9, 9)))[0][:5]
    assert solved(inputs @ turn) == pytest.approx(solved(inputs), rel=2e-9)


def test_memory_refuses_coefficients_that_do_not_fit(monkeypatch) -> None:
    monkeypatch.setattr("solvers.numerics.memory._memory", lambda: 1e6)
    image = RelativeMargins(np.ones((2, 400)), np.array([0, 1]), 2)
    with pytest.raises(ValueError, match="the interior point's matrices of 400 coefficients"):
        solve_norm(NormProgram(image, Norm.of("largest-column")))


@pytest.mark.parametrize("gates", [False, True])
def test_matrices_of_classes_are_those_of_margins_multiplied_out(gates) -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(20, 6)), rng.integers(0, 3, 20)
    Z = (X @ rng.normal(size=(6, 3)) > 0).astype(float) if gates else None
    image = RelativeMargins(X, labels, 4, Z)  # a class without samples
    norm = Norm.of("sum-nuclear" if gates else "nuclear")
    found = coordinates_of(image, norm)
    k, q = found.shape[-2:]
    rows = found.dense()
    weights = rng.uniform(size=image.n_rows)
    assert found.gram(weights) == pytest.approx((rows.T * weights) @ rows)
    # The operator dC -> (P dM Z + Z dM P)_12, a unit at a time.
    P, Z = rng.normal(size=(2, len(rows[0]) // (k * q), k + q, k + q))
    P, Z = P + np.swapaxes(P, 1, 2), Z + np.swapaxes(Z, 1, 2)
    stack = rows.reshape(len(rows), len(P), k, q)
    dM = np.zeros((*stack.shape[:2], k + q, k + q))
    dM[..., :k, k:], dM[..., k:, :k] = stack, np.swapaxes(stack, 2, 3)
    pushed = (P @ dM @ Z + Z @ dM @ P)[..., :k, k:].reshape(rows.shape)
    assert found.gram_of_margins(P, Z) == pytest.approx(rows @ pushed.T)


def a_cone(p: int, q: int) -> Cone:
    """A radius and multipliers of two blocks, both positive definite."""
    rng = np.random.default_rng(p + q)
    C = rng.normal(size=(2, p, q))
    C *= 0.9 / np.linalg.svd(C, compute_uv=False).max()
    Z = rng.normal(size=(2, p + q, p + q))
    Z = Z @ np.swapaxes(Z, 1, 2)
    return Cone(C, 1.0, (Z + Z[:, ::-1, ::-1]) / 2 if p == q == 1 else Z)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 3), (3, 2), (2, 5)])
def test_a_linearised_cone_is_its_equation_to_first_order(p, q) -> None:
    cone, step = a_cone(p, q), a_cone(p, q)
    line, target = linearised(cone), np.swapaxes(step.Z, 1, 2)
    M, Z, dM = cone.M, cone.Z, step.M
    assert line.P == pytest.approx(np.linalg.inv(M))
    product = line.P @ dM @ Z
    dZ = line.multiplier_step(dM, target)
    assert Z + dZ + (product + np.swapaxes(product, 1, 2)) / 2 == pytest.approx(target)
    flat = step.C.reshape(2, -1, 1)
    zero = bordered(step.C, 0.0)
    pushed = (line.P @ zero @ Z + Z @ zero @ line.P)[:, :p, p:]
    assert line.pushed(step.C) == pytest.approx(pushed)
    assert line.operator() @ flat == pytest.approx(pushed.reshape(flat.shape))
    assert line.inverse() @ (line.operator() @ flat) == pytest.approx(flat)
    turned = (line.P @ Z + Z @ line.P)[:, :p, p:]
    assert line.radial()[0] == pytest.approx(turned)
    assert line.radial()[1] == pytest.approx(np.trace(line.P @ Z, axis1=1, axis2=2).sum())


@pytest.mark.parametrize(("p", "q"), [(1, 1), (3, 2), (2, 5)])
def test_the_longest_step_in_a_cone_reaches_its_boundary(p, q) -> None:
    cone, other = a_cone(p, q), a_cone(p, q + 1 if p > 1 else q)
    step = Cone(-5 * cone.C, -0.5, other.Z[:, : p + q, : p + q] - 40 * cone.Z)
    of_M, of_Z = linearised(cone).longest(step)
    assert np.linalg.eigvalsh(cone.M + of_M * step.M).min() == pytest.approx(0, abs=1e-12)
    assert np.linalg.eigvalsh(cone.Z + of_Z * step.Z).min() == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (2, 5)])
def test_centring_brings_the_products_of_a_step_within_bounds(p, q) -> None:
    cone = a_cone(p, q)
    line, mu = linearised(cone), 0.05
    # With no step in M the products are those of M and Z, and Z takes up all of what is added.
    still = Cone(np.zeros_like(cone.C), 0.0, np.zeros_like(cone.Z))
    Z = cone.Z + line.centring(still, (1.0, 1.0), mu)
    before, after = (np.linalg.eigvals(cone.M @ one).real for one in (cone.Z, Z))
    low, high = before < LEAST * mu, before > MOST * mu
    assert low.any() or high.any()
    assert after.min() >= LEAST * mu * (1 - 1e-9)
    assert np.sort(after) == pytest.approx(np.sort(before + centred(before, mu)))
    assert (centred(before, mu)[high] >= -MOST * mu).all()


def test_a_cone_that_rounding_left_is_refused() -> None:
    cone = a_cone(1, 1)
    for off in (replace(cone, t=0.5), replace(cone, Z=-cone.Z)):
        with pytest.raises(np.linalg.LinAlgError, match="not positive"):
            linearised(off)
    with pytest.raises(np.linalg.LinAlgError, match="not positive"):
        linearised(replace(a_cone(2, 5), t=0.5))


@pytest.mark.parametrize(
    ("name", "gated"),
    [("l2", False), ("l2", None), ("linf", True), ("l1", False), ("spectral", False),
     ("spectral", True), ("nuclear", False), ("nuclear", True), ("sum-nuclear", None),
     ("max-spectral", None)],
)  # fmt: skip
def test_sets_of_margins_have_the_optimum_of_all(name, gated, monkeypatch) -> None:
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(20, 32)), rng.integers(0, 5, size=20)
    gates = (rng.normal(size=(20, 4)) > 0).astype(float)
    gates[:, 0] = 1
    image: Image = RelativeMargins(X, labels, 5, gates if gated is None else None)
    if gated:
        behind = GatedDesign(X, gates, np.zeros(4, dtype=np.int64))
        image = GatedRows(MaxMarginProgram(behind, np.where(labels > 2, 1.0, -1.0)), (4, 32))
    program = NormProgram(image, Norm.of(name))
    settings = Settings(working_set_from=10)
    assert norm_routes._of_few_coefficients(program)
    assert not norm_routes._on_sets(program, settings)
    others = {"linf": "highs", "l1": "highs", "l2": "cvxpy:CLARABEL"}
    theirs = solve_norm(program, solver=others.get(name)).certificate.objective
    monkeypatch.setattr(sets_of_rows, "FIRST", 10)
    monkeypatch.setattr(norm_routes, "ALL_ROWS", 100)
    monkeypatch.setattr(norm_routes, "SETS", 10)
    parts = norm_routes._solver_of_parts(program) is not None
    assert parts is not norm_routes._on_sets(program, settings)
    found = solve_norm(program, settings=settings).require()
    assert found.certificate.objective == pytest.approx(theirs, rel=2e-8)
    if name == "l2":  # and where two samples contradict each other
        first, twin = 0, int(np.flatnonzero(labels != labels[0])[0])
        X[twin], gates[twin] = X[first], gates[first]
        opposed = RelativeMargins(X, labels, 5, gates if gated is None else None)
        found = solve_norm(replace(program, image=opposed), settings=settings)
        assert found.status is Status.NOT_SEPARABLE


@pytest.mark.parametrize("name", ["spectral", "nuclear"])
def test_a_point_of_few_coefficients_is_finished_on_its_active_margins(name, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    labels = np.argmax(X @ rng.normal(size=(8, 4)), axis=1)
    program = NormProgram(RelativeMargins(X, labels, 4), Norm.of(name))
    expected = solve_norm(program, settings=Settings(tol=1e-9)).require()
    rough, rows, of_set = norm_routes.solve_coefficients, [], norm_routes.solve_products
    monkeypatch.setattr(
        norm_routes, "solve_coefficients",
        lambda program, settings: rough(program, replace(settings, tol=0.01)),
    )  # fmt: skip
    monkeypatch.setattr(
        norm_routes,
        "solve_products",
        lambda part, *rest, **more: rows.append(part.image.n_rows) or of_set(part, *rest, **more),
    )
    monkeypatch.setattr(sets_of_rows, "FIRST", 50)
    found = solve_norm(program, settings=Settings(tol=1e-9)).require()
    assert rows[0] < 50 and len(rows) <= 3
    assert found.certificate.objective == pytest.approx(expected.certificate.objective, rel=1e-9)
    rows.clear()
    assert solve_norm(program, settings=Settings(tol=0.1)).certificate.gap > 1e-9
    assert not rows


def test_nuclear_norms_are_solved_to_rounding() -> None:
    rng = np.random.default_rng(0)
    image = RelativeMargins(rng.normal(size=(60, 100)), rng.integers(0, 10, size=60), 10)
    found = solve_norm(NormProgram(image, Norm.of("nuclear")))
    assert found.require().certificate.gap < 1e-10
