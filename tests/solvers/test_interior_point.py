"""Lemmas of the interior point: kernels, Newton steps, the game, refinements, working sets."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from solvers import (
    GatedDesign,
    MaxMarginProgram,
    Settings,
    Status,
    certify,
    solve,
)
from solvers.certificates.solution import support_vectors
from solvers.methods.backends import daqp as few_dimensions
from solvers.methods.interior import game as game_module
from solvers.methods.interior import group_system
from solvers.methods.interior.game import Game, play
from solvers.methods.interior.group_kernels import GroupKernels, group_kernels
from solvers.methods.interior.group_starts import starting_point
from solvers.methods.interior.group_system import GroupSystem, Iterate, Targets, factorise
from solvers.methods.refinement import balance_support, cancel_blocks
from solvers.numerics.arrays import (
    NotPositiveDefinite,
    SingularMatrix,
    lu_factor,
    lu_solve,
    to_numpy,
)
from solvers.numerics.central_path import advanced
from tests.certificate_checker import assert_honest
from tests.problems import (
    as_torch,
    constructed,
    gln_construction,
    gln_program,
    linear_program,
    near_inseparable_construction,
    one_hot,
    random_gln,
    stacked,
    tall_construction,
    unbalanced_contexts,
    unequal_construction,
    with_groups_again,
)


@pytest.fixture(autouse=True)
def no_other_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave programs of few dimensions to the interior point and its working sets."""
    monkeypatch.setattr(few_dimensions, "DIMENSIONS", 0)


def few_samples() -> MaxMarginProgram:
    """n <= 2 D: products through the Gram matrix."""
    X, y, _ = random_gln(14, 9, 3, 4)
    return gln_program(X, y, unbalanced_contexts(14, 3, 4), 5)


def many_samples() -> MaxMarginProgram:
    """n > 2 D: products through the features."""
    X, y, _ = random_gln(40, 3, 3, 4)
    return gln_program(X, y, unbalanced_contexts(40, 3, 4), 5)


def mixed_gates() -> MaxMarginProgram:
    """A one-hot group, a real-valued group, a constant column and a ReLU gate, interleaved."""
    rng = np.random.default_rng(3)
    X, y, contexts = random_gln(30, 4, 1, 3)
    hot = gln_program(X, y, contexts, 3).design.Z
    relu = (rng.random(30) < 0.5) * 1.0
    Z = np.column_stack(
        [
            hot[:, 0],
            rng.normal(size=30),
            hot[:, 1],
            relu,
            np.ones(30),
            hot[:, 2],
            rng.normal(size=30),
        ]
    )
    return MaxMarginProgram(GatedDesign(X, Z, np.array([0, 1, 0, 2, 3, 0, 1])), y)


PROGRAMS = {"few": few_samples(), "many": many_samples(), "mixed": mixed_gates()}
EACH = pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
KINDS = pytest.mark.parametrize("kind", [lambda program: program, as_torch], ids=["numpy", "torch"])
Kind = Callable[[MaxMarginProgram], MaxMarginProgram]


def gate_kernels(program: MaxMarginProgram) -> list[np.ndarray]:
    design = program.design
    return [
        design.Z[:, design.group == g] @ design.Z[:, design.group == g].T
        for g in range(program.n_groups)
    ]


def dense_kernels(program: MaxMarginProgram, scale: float) -> np.ndarray:
    """(G, n, n) kernels of the scaled data, labels included."""
    signed = program.y[:, None] * program.design.X / scale
    return np.array([(signed @ signed.T) * gates for gates in gate_kernels(program)])


@KINDS
@EACH
def test_reduced_gate_columns_have_the_gates_products(
    program: MaxMarginProgram, kind: Kind
) -> None:
    kernels = group_kernels(kind(program))
    factor, weight = to_numpy(kernels.factor), to_numpy(kernels.weight)
    found = np.einsum("nf,fg,mf->gnm", factor, weight, factor)
    np.testing.assert_allclose(found, gate_kernels(program), atol=1e-14)


def test_one_hot_groups_lose_a_column_and_share_one_of_ones() -> None:
    many = group_kernels(PROGRAMS["many"])
    assert many.factor.shape == (40, 3 * (5 - 1) + 1)
    np.testing.assert_allclose(many.weight[-1], 1 / 5)
    # One-hot with three columns, two real columns, one gate; the column of ones is a constant.
    mixed = group_kernels(PROGRAMS["mixed"])
    np.testing.assert_array_equal(np.argmax(mixed.weight[:-1], axis=1), [0, 0, 1, 1, 2])
    np.testing.assert_allclose(mixed.weight[-1], [1 / 3, 0, 0, 1])
    plain = group_kernels(linear_program([[1, 2], [3, 4]], [1, -1]))
    np.testing.assert_array_equal(plain.factor, [[1], [1]])
    np.testing.assert_array_equal(plain.weight, [[1]])


@KINDS
@EACH
def test_a_subset_of_the_kernels_is_the_kernels_of_the_subset(
    program: MaxMarginProgram, kind: Kind
) -> None:
    rows = np.arange(0, program.n_samples, 2)
    kernels = group_kernels(kind(program))
    part = kernels.subset(as_like(rows, kernels))
    dense = dense_kernels(program, kernels.scale)[:, rows][:, :, rows]
    lam, d = np.linspace(-1, 1, len(rows)), np.linspace(0.1, 1, program.n_groups)
    found = to_numpy(part.products(as_like(lam, kernels)))
    np.testing.assert_allclose(found, np.einsum("gnm,m->ng", dense, lam), atol=1e-13)
    total = np.einsum("g,gnm->nm", d, dense)
    np.testing.assert_allclose(
        np.tril(to_numpy(part.weighted(as_like(d, kernels)))), np.tril(total), atol=1e-13
    )
    np.testing.assert_allclose(
        to_numpy(part.diagonal(as_like(d, kernels))), np.diag(total), atol=1e-13
    )


@KINDS
@EACH
def test_products_and_weighted_sums_are_those_of_the_dense_kernels(
    program: MaxMarginProgram, kind: Kind
) -> None:
    rng = np.random.default_rng(0)
    kernels = group_kernels(kind(program))
    dense = dense_kernels(program, kernels.scale)
    lam, d = rng.normal(size=program.n_samples), rng.random(program.n_groups)
    found = kernels.products(as_like(lam, kernels))
    np.testing.assert_allclose(to_numpy(found), np.einsum("gnm,m->ng", dense, lam), atol=1e-13)
    weighted = np.tril(to_numpy(kernels.weighted(as_like(d, kernels))))
    np.testing.assert_allclose(weighted, np.tril(np.einsum("g,gnm->nm", d, dense)), atol=1e-13)


@EACH
def test_kernels_are_scaled_to_a_largest_diagonal_of_mean_one(program: MaxMarginProgram) -> None:
    scale = group_kernels(program).scale
    diagonals = np.einsum("gnn->gn", dense_kernels(program, scale))
    assert diagonals.max(axis=0).mean() == pytest.approx(1)


def as_like(values: np.ndarray, kernels: GroupKernels) -> np.ndarray | torch.Tensor:
    if isinstance(kernels.gram, torch.Tensor):
        return torch.tensor(values)
    return values


def some_iterate(kernels: GroupKernels, seed: int = 0) -> Iterate:
    """An interior point that satisfies no equation but the two sums."""
    rng = np.random.default_rng(seed)
    n, G = int(kernels.gram.shape[0]), kernels.n_groups
    lam, d = rng.random(n) + 0.1, rng.random(G) + 0.1
    lam, d = as_like(lam / lam.sum(), kernels), as_like(d / d.sum(), kernels)
    return Iterate(
        lam=lam,
        d=d,
        z=as_like(rng.random(n) + 0.1, kernels),
        w=as_like(rng.random(G) + 0.1, kernels),
        rho=0.3,
        t=0.7,
        products=kernels.products(lam),
    )


def more_groups_than_samples() -> MaxMarginProgram:
    return with_groups_again(many_samples(), np.linspace(-0.9, 0.9, 20).tolist())


@KINDS
@EACH
def test_the_newton_direction_solves_its_equations(program: MaxMarginProgram, kind: Kind) -> None:
    kernels = group_kernels(kind(program))
    assert_newton_equations_hold(program, kernels, some_iterate(kernels))


@KINDS
@pytest.mark.parametrize("live", [[], [0, 3, 6], slice(None)], ids=["none", "some", "all"])
def test_the_newton_direction_of_many_groups_solves_its_equations(live: object, kind: Kind) -> None:
    """Groups of vanishing slack are live, and eliminated in another way than the others."""
    program = more_groups_than_samples()
    kernels = group_kernels(kind(program))
    point = starting_point(kernels)
    assert program.n_groups > program.n_samples
    w = point.w + 0
    w[live] = 1e-6 * w[live]
    assert_newton_equations_hold(program, kernels, replace(point, w=w))


def assert_newton_equations_hold(
    program: MaxMarginProgram, kernels: GroupKernels, point: Iterate
) -> None:
    dense = dense_kernels(program, kernels.scale)
    rng = np.random.default_rng(1)
    n, G = program.n_samples, program.n_groups
    targets = {
        "stationarity": rng.normal(size=n),
        "slack": rng.normal(size=G),
        "samples": rng.normal(size=n),
        "groups": rng.normal(size=G),
    }
    system = GroupSystem(kernels, point)
    step = system.solve(Targets(**{k: as_like(v, kernels) for k, v in targets.items()}))
    lam, d, z, w = (to_numpy(x) for x in (step.lam, step.d, step.z, step.w))
    Q = np.einsum("gnm,m->ng", dense, to_numpy(point.lam))
    K = np.einsum("g,gnm->nm", to_numpy(point.d), dense)
    size = max(1.0, *(np.abs(change).max() for change in (lam, d, z, w)))
    close = {"rtol": 1e-9, "atol": 1e-10 * size}
    np.testing.assert_allclose(K @ lam + Q @ d - step.rho - z, targets["stationarity"], **close)
    np.testing.assert_allclose(step.t / 2 - Q.T @ lam - w, targets["slack"], **close)
    np.testing.assert_allclose(
        to_numpy(point.z) * lam + to_numpy(point.lam) * z, targets["samples"], **close
    )
    np.testing.assert_allclose(
        to_numpy(point.w) * d + to_numpy(point.d) * w, targets["groups"], **close
    )
    assert lam.sum() == pytest.approx(0, abs=1e-11 * size)
    assert d.sum() == pytest.approx(0, abs=1e-11 * size)


@KINDS
def test_a_matrix_that_rounding_made_indefinite_is_lifted_and_left_unchanged(kind: Kind) -> None:
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(20, 20)))[0]

    def with_smallest(eigenvalue: float) -> np.ndarray | torch.Tensor:
        values = np.concatenate([[eigenvalue], np.linspace(0.5, 1, 19)])
        matrix = (basis * values) @ basis.T
        return torch.tensor(matrix) if kind is as_torch else np.asfortranarray(matrix)

    for eigenvalue, lifted in ((1e-3, False), (-1e-12, True)):
        matrix = with_smallest(eigenvalue)
        before = to_numpy(matrix).copy()
        lower = np.tril(to_numpy(factorise(matrix, 1.0)))
        assert (np.diag(lower @ lower.T - before).max() > 5e-13) is np.bool_(lifted)
        np.testing.assert_array_equal(to_numpy(matrix), before)
        np.testing.assert_allclose(lower @ lower.T, before, atol=1e-10)
    with pytest.raises(NotPositiveDefinite, match="20 samples stays indefinite"):
        factorise(with_smallest(-1e-3), 1.0)


@KINDS
def test_the_direction_of_a_rough_factor_still_solves_its_equations(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of four samples: a kernel of rank four and slacks far below its rounding.

    A factor lifted by 1e-4 misses by about as much; refinement must put that right.
    """
    monkeypatch.setattr(group_system, "LIFTS", (1e-4,))
    X, y, contexts = random_gln(4, 5, 2, 2)
    program = gln_program(np.tile(X, (10, 1)), np.tile(y, 10), np.tile(contexts, (10, 1)), 2)
    kernels = group_kernels(kind(program))
    point = some_iterate(kernels)
    point = Iterate(
        lam=point.lam,
        d=point.d,
        z=1e-18 * point.z,
        w=point.w,
        rho=point.rho,
        t=point.t,
        products=point.products,
    )
    system = GroupSystem(kernels, point)
    dense = dense_kernels(program, kernels.scale)
    K = np.einsum("g,gnm->nm", to_numpy(point.d), dense)
    right = K @ np.random.default_rng(1).normal(size=40)  # what a step asks of the kernel's range
    zeros = np.zeros(40)
    found = system.solve(
        Targets(
            stationarity=as_like(right, kernels),
            slack=as_like(np.zeros(2), kernels),
            samples=as_like(zeros, kernels),
            groups=as_like(np.zeros(2), kernels),
        )
    )
    image = K @ to_numpy(found.lam) + to_numpy(point.products) @ to_numpy(found.d) - found.rho
    np.testing.assert_allclose(image - to_numpy(found.z), right, atol=1e-9 * abs(right).max())


@KINDS
@EACH
def test_the_start_is_interior_and_on_both_simplices(program: MaxMarginProgram, kind: Kind) -> None:
    point = starting_point(group_kernels(kind(program)))
    for name in ("lam", "d", "z", "w"):
        assert to_numpy(getattr(point, name)).min() > 0, name
    assert float(point.lam.sum()) == pytest.approx(1) and float(point.d.sum()) == pytest.approx(1)


@KINDS
@EACH
def test_a_step_stays_interior_and_comes_nearer(program: MaxMarginProgram, kind: Kind) -> None:
    kernels = group_kernels(kind(program))
    point = starting_point(kernels)
    products = [float(point.lam @ point.z + point.d @ point.w)]
    for _ in range(6):
        point = advanced(GroupSystem(kernels, point))
        for name in ("lam", "d", "z", "w"):
            assert to_numpy(getattr(point, name)).min() > 0, name
        assert float(point.lam.sum()) == pytest.approx(1)
        assert float(point.d.sum()) == pytest.approx(1)
        np.testing.assert_allclose(
            to_numpy(point.products), to_numpy(kernels.products(point.lam)), atol=1e-14
        )
        products.append(float(point.lam @ point.z + point.d @ point.w))
    assert products[-1] < 1e-2 * products[0]


def test_steps_end_where_the_optimality_conditions_hold() -> None:
    """The residuals of all equations at the last iterate, from dense kernels."""
    case = gln_construction()
    kernels = group_kernels(case.program)
    point = starting_point(kernels)
    for _ in range(16):
        point = advanced(GroupSystem(kernels, point))
    dense = dense_kernels(case.program, kernels.scale)
    Q = np.einsum("gnm,m->ng", dense, point.lam)
    np.testing.assert_allclose(Q @ point.d - point.rho - point.z, 0, atol=1e-9)
    np.testing.assert_allclose((point.t - Q.T @ point.lam) / 2 - point.w, 0, atol=1e-9)
    assert (point.lam * point.z).max() < 1e-9 and (point.d * point.w).max() < 1e-9
    gamma = np.sqrt(point.t) * kernels.scale
    assert 1 / gamma == pytest.approx(case.optimum, rel=1e-6)


GAMES = {"gln": gln_construction(), "unequal": unequal_construction(), "tall": tall_construction()}


@KINDS
@pytest.mark.parametrize("case", GAMES.values(), ids=list(GAMES))
def test_the_game_s_value_is_one_over_the_optimum(case: object, kind: Kind) -> None:
    kernels = group_kernels(kind(case.program))
    game = play(kernels, Settings(tol=1e-7))
    gamma = 1 / (case.optimum * kernels.scale)
    assert game.gap <= 1e-7 and game.width == game.upper - game.lower
    assert game.lower <= gamma * (1 + 1e-9) and game.upper >= gamma * (1 - 1e-9)


def test_the_game_s_bounds_hold_and_narrow_from_the_first_iteration_on() -> None:
    case = GAMES["unequal"]
    kernels = group_kernels(case.program)
    gamma = 1 / (case.optimum * kernels.scale)
    widths = []
    for limit in range(1, 9):
        game = play(kernels, Settings(max_iterations=limit))
        assert game.iterations <= limit
        assert game.lower <= gamma * (1 + 1e-9) and game.upper >= gamma * (1 - 1e-9)
        widths.append(game.width)
    assert widths == sorted(widths, reverse=True) and widths[-1] < 1e-3 * widths[0]


Sizes = Callable[[str], list[int]]


@pytest.fixture
def sizes(caplog: pytest.LogCaptureFixture) -> Sizes:
    """Samples or groups that the rounds of a solver took, as its module logs them."""
    caplog.set_level(logging.DEBUG, "solvers")

    def logged(module: str) -> list[int]:
        of_module = [r for r in caplog.records if r.name == f"solvers.methods.{module}"]
        return [int(str(record.args[0])) for record in of_module]

    return logged


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Samples with which games go on, in the order in which they leave the others out."""
    found: list[int] = []
    part = Game.part

    def counted(self: Game, rows: np.ndarray) -> Game:
        found.append(len(rows))
        return part(self, rows)

    monkeypatch.setattr(Game, "part", counted)
    return found


def test_leaving_samples_out_near_the_end_changes_nothing_but_the_cost(kept: list[int]) -> None:
    program = gln_program(*random_gln(300, 12, 3, 2), 2)
    game = play(group_kernels(program), Settings(tol=1e-9))
    assert kept and kept[-1] < 150
    assert game.gap <= 1e-9
    optimum = solve(program, solver="cvxpy:CLARABEL").certificate.objective
    assert 1 / (game.lower * group_kernels(program).scale) == pytest.approx(optimum, rel=2e-8)
    assert game.dual.lam.shape == game.primal.lam.shape == (300,)
    margins = group_kernels(program).products(game.primal.lam) @ game.primal.d
    assert margins.min() > 0


def test_support_vectors_left_out_by_mistake_are_taken_back(
    monkeypatch: pytest.MonkeyPatch, kept: list[int]
) -> None:
    program = gln_program(*random_gln(300, 12, 3, 2), 2)
    whole = play(group_kernels(program), Settings(tol=1e-9))
    # Half way, with a threshold far too low, most support vectors are thrown out.
    for name, value in {"SETTLED": 10.0, "DISTANT": 1e-3, "WORTHWHILE": 0.99}.items():
        monkeypatch.setattr(game_module, name, value)
    kept.clear()
    game = play(group_kernels(program), Settings(tol=1e-9))
    support = int((whole.dual.lam > 1e-6 * whole.dual.lam.max()).sum())
    assert kept[0] < support
    assert game.gap <= 1e-9
    assert game.lower == pytest.approx(whole.lower, rel=2e-9)


def test_a_game_ends_where_products_know_no_more() -> None:
    # Two nearly opposite samples: gamma is 1e-9 of their size, below the root of rounding.
    X = np.array([[1.0, 1e-9], [1.0, -1e-9]])
    program = linear_program(X, np.array([1.0, -1.0]))
    game = play(group_kernels(program), Settings(tol=1e-9))
    assert game.iterations == 0 and game.gap > 1e-9


def test_a_worse_point_does_not_replace_the_best_bounds_of_a_game() -> None:
    kernels = group_kernels(GAMES["gln"].program)
    best, worse = play(kernels, Settings()), some_iterate(kernels)
    alone = Game(kernels).bounds(worse)
    kept = best.better(replace(alone, iterations=99))
    assert kept.iterations == 99 and (kept.lower, kept.upper) == (best.lower, best.upper)
    assert kept.primal is best.primal and kept.dual is best.dual
    assert alone.upper > best.upper and alone.lower < best.lower


@pytest.mark.parametrize("case", GAMES.values(), ids=list(GAMES))
def test_numpy_and_torch_play_the_same_game(case: object) -> None:
    one = play(group_kernels(case.program), Settings(tol=1e-6))
    other = play(group_kernels(as_torch(case.program)), Settings(tol=1e-6))
    assert one.iterations == other.iterations
    assert one.upper == pytest.approx(other.upper, rel=1e-9)
    assert one.lower == pytest.approx(other.lower, rel=1e-9)
    np.testing.assert_allclose(one.primal.d, to_numpy(other.primal.d), atol=1e-6)


def test_a_single_sample_moves_the_kernel_weights() -> None:
    """lam is fixed at 1: its direction is exactly zero and must not stop the step of d."""
    design = GatedDesign(np.array([[3.0, 4.0]]), np.array([[1.0, 2.0, -2.0]]), np.array([0, 1, 1]))
    game = play(group_kernels(MaxMarginProgram(design, np.ones(1))), Settings())
    np.testing.assert_allclose(game.primal.d, [0, 1], atol=1e-7)
    assert game.gap <= 1e-8


def inseparable() -> tuple[MaxMarginProgram, np.ndarray]:
    """A program whose sample 24 is minus a mixture of others in the same contexts, and the proof.

    Labels are folded in: y x of the last sample is - sum_n w_n y_n x_n over samples that share
    all its contexts, so that every block of (w, 1) cancels.
    """
    X, y, contexts = random_gln(24, 5, 2, 2, seed=8)
    contexts[:4] = contexts[0]
    weights = np.array([0.3, 1.1, 0.6, 2.0])
    last = -(weights * y[:4]) @ X[:4]
    program = gln_program(
        np.vstack([X, last]), np.append(y, 1.0), np.vstack([contexts, contexts[:1]]), 2
    )
    proof = np.zeros(25)
    proof[:4], proof[24] = weights, 1
    return program, proof


@KINDS
def test_cancel_blocks_turns_a_rough_proof_into_one(kind: Kind) -> None:
    program, proof = inseparable()
    rough = proof * (1 + 1e-4 * np.random.default_rng(0).normal(size=25)) + 1e-12
    assert not certify(program, dual=rough).proves_inseparability()
    placed = kind(program)
    lam = torch.tensor(rough) if kind is as_torch else rough
    found = to_numpy(cancel_blocks(placed, lam))
    assert found.min() >= 0 and certify(program, dual=found).proves_inseparability()
    # The nearest proof in relative terms stays near.
    np.testing.assert_allclose(found[proof > 0], proof[proof > 0], rtol=1e-2)


def test_cancel_blocks_sums_as_finely_as_a_proof_asks() -> None:
    """Samples and inputs of many decades, one of them twice, once with its label turned."""
    rng = np.random.default_rng(22)
    X = rng.normal(size=(40, 5)) * 10 ** rng.uniform(-4, 4, (40, 1)) * np.logspace(0, -8, 5)
    y = np.where(X @ rng.normal(size=5) > 0, 1.0, -1.0)
    k = int(rng.integers(40))
    assert solve(stacked(linear_program(X, y), [k], sign=-1.0)).status is Status.NOT_SEPARABLE


def test_cancel_blocks_keeps_a_proof_and_returns_its_argument_where_there_is_none() -> None:
    program, proof = inseparable()
    np.testing.assert_allclose(cancel_blocks(program, proof), proof, rtol=1e-9)
    separable = gln_construction()
    assert cancel_blocks(separable.program, separable.dual) is separable.dual
    before = separable.dual.copy()
    cancel_blocks(separable.program, separable.dual)
    np.testing.assert_array_equal(separable.dual, before)


@KINDS
@pytest.mark.parametrize("name", ["gln", "unequal"])
def test_balance_support_finds_the_optimum_from_its_weights_and_support(
    name: str, kind: Kind
) -> None:
    case = GAMES[name]
    d, support = case.d / case.optimum, case.dual > 0
    if kind is as_torch:
        d, support = torch.tensor(d), torch.tensor(support)
    point = balance_support(kind(case.program), d, support)
    assert point is not None
    np.testing.assert_allclose(to_numpy(point.primal), case.primal, atol=1e-8)
    certificate = certify(case.program, to_numpy(point.primal), to_numpy(point.dual))
    assert certificate.proves_optimality(1e-9)


@pytest.mark.parametrize("spoil", ["one missing", "one too many", "all"])
def test_balance_support_repairs_a_support_that_is_slightly_wrong(spoil: str) -> None:
    case = GAMES["unequal"]
    support = case.dual > 0
    if spoil == "one missing":
        support[np.argmax(case.dual)] = False
    elif spoil == "one too many":
        support[np.argmin(support)] = True
    else:
        support[:] = True
    point = balance_support(case.program, case.d / case.optimum, support)
    assert point is not None
    assert certify(case.program, point.primal, point.dual).proves_optimality(1e-9)


@pytest.mark.parametrize("share", [1e-3, 1e-6])
def test_balance_support_sees_a_sample_that_is_hardly_violated(share: float) -> None:
    """A support vector, shrunk a little, beside itself: without it its margin is 1 - share."""
    case = GAMES["unequal"]
    program = stacked(case.program, [int(np.argmax(case.dual))], scale=1 - share)
    point = balance_support(program, case.d / case.optimum, np.append(case.dual > 0, False))
    assert point is not None
    assert program.margins(point.primal).min() > 1 - 1e-9
    assert point.dual[-1] > 0


def test_balance_support_of_nothing_is_none() -> None:
    case = GAMES["unequal"]
    assert balance_support(case.program, case.d, np.zeros(case.dual.size, dtype=bool)) is None


@pytest.mark.parametrize("optimum", [1e3, 1e5])
def test_balance_support_resolves_what_gram_arithmetic_does_not(optimum: float) -> None:
    """Margins of one as differences of terms of size `optimum`, to a millionth of rounding."""
    case = near_inseparable_construction(optimum)
    point = balance_support(case.program, case.d / case.optimum, case.dual > 0)
    assert point is not None
    margins = case.program.margins(point.primal)
    np.testing.assert_allclose(margins[case.dual > 0], 1, atol=1e-10)
    assert certify(case.program, point.primal, case.dual).gap <= 1e-8


def test_the_support_is_where_the_multiplier_exceeds_the_slack() -> None:
    case = GAMES["unequal"]
    found = support_vectors(case.program, case.primal, case.dual)
    np.testing.assert_array_equal(found, case.dual > 0)


def test_the_support_of_an_early_iterate_is_told_by_the_largest_multiplier() -> None:
    """300 equal multipliers with slacks of 1e-2, and one of a thousandth with as much slack."""
    program = linear_program(np.diag(np.where(np.arange(301) == 0, 1.0, 1.01)), np.ones(301))
    dual = np.where(np.arange(301) == 300, 1e-3, 1.0)
    found = support_vectors(program, np.ones((1, 301)), dual)
    np.testing.assert_array_equal(found, np.arange(301) < 300)


WORKING = Settings(working_set_from=2)


@KINDS
@pytest.mark.parametrize("shape", [(700, 12, 3, 2), (900, 15, 4, 2), (1500, 4, 2, 3)])
def test_a_working_set_ends_at_the_optimum_of_all_samples(
    sizes: Sizes, shape: tuple[int, int, int, int], kind: Kind
) -> None:
    n, D, H, C = shape
    program = gln_program(*random_gln(n, D, H, C, seed=n), C)
    direct = solve(program, settings=Settings(working_set_from=n + 1)).require()
    assert sizes("sets.working") == []
    solution = solve(kind(program), settings=WORKING).require()
    assert len(sizes("sets.working")) > 1 and max(sizes("sets.working")) < n
    expected = direct.certificate.objective
    assert solution.certificate.objective == pytest.approx(expected, rel=2e-8)
    assert to_numpy(solution.dual).shape == (n,)


def test_a_working_set_is_used_from_the_stated_number_of_samples_on(sizes: Sizes) -> None:
    program = gln_program(*random_gln(200, 10, 2, 2, seed=1), 2)
    solve(program, settings=Settings(working_set_from=201))
    assert sizes("sets.working") == []
    solve(program, settings=Settings(working_set_from=200))
    assert sizes("sets.working") == [200]


def test_a_working_set_with_known_optimum_is_certified_on_all_samples(sizes: Sizes) -> None:
    case = constructed(
        one_hot(unbalanced_contexts(600, 3, 3), 3),
        np.repeat([0, 1, 2], 3).tolist(),
        [1.0, 2.0, 0.5],
        n_support=30,
        n_inputs=10,
        random_state=2,
    )
    solution = solve(case.program, settings=WORKING).require()
    assert solution.certificate.objective == pytest.approx(case.optimum, rel=2e-8)
    assert_honest(case.program, solution)
    assert len(sizes("sets.working")) > 1 and max(sizes("sets.working")) < 600


@KINDS
def test_a_working_set_passes_on_the_proof_of_a_first_set_that_is_not_separable(
    sizes: Sizes, kind: Kind
) -> None:
    X, y, contexts = random_gln(900, 3, 2, 2, separable=False)
    program = gln_program(X, y, contexts, 2)
    solution = solve(kind(program), settings=WORKING)
    assert solution.status is Status.NOT_SEPARABLE
    (first,) = sizes("sets.working")
    assert np.count_nonzero(to_numpy(solution.dual)) <= first < 900
    assert_honest(program, solution)


def test_a_working_set_finds_two_samples_that_contradict_each_other_only_later(
    sizes: Sizes,
) -> None:
    program = gln_program(*random_gln(900, 12, 3, 2, seed=5), 2)
    contradicting = stacked(program, [0], sign=-1.0)
    solution = solve(contradicting, settings=WORKING)
    assert solution.status is Status.NOT_SEPARABLE and len(sizes("sets.working")) > 1
    assert set(np.flatnonzero(solution.dual)) >= {0, 900}
    assert_honest(contradicting, solution)


def test_a_working_set_survives_duplicates_and_a_row_of_zeros() -> None:
    program = gln_program(*random_gln(400, 8, 2, 2, seed=6), 2)
    optimum = solve(program, settings=Settings(working_set_from=10**6)).certificate.objective
    doubled = stacked(program, range(400))
    solution = solve(doubled, settings=WORKING).require()
    assert solution.certificate.objective == pytest.approx(optimum, rel=2e-8)
    zeros = stacked(doubled, [3], scale=0.0)
    assert solve(zeros, settings=WORKING).status is Status.NOT_SEPARABLE


def few_supports(n: int, seed: int = 0) -> MaxMarginProgram:
    """Gaussian inputs behind a margin: about as many support vectors as inputs, 20."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 0.2 * y
    return linear_program(X, y)


def test_a_program_with_few_support_vectors_never_holds_many_samples(sizes: Sizes) -> None:
    program = few_supports(5000)
    solution = solve(program, settings=WORKING).require()
    assert max(sizes("sets.working")) < 500
    others = solve(program, solver="cvxpy:CLARABEL").require().certificate.objective
    assert solution.certificate.objective == pytest.approx(others, rel=2e-8)


@pytest.mark.parametrize("n, second", [(900, 900), (3000, 2000)])
def test_a_crowded_program_is_solved_on_all_samples_or_from_a_large_set_on(
    sizes: Sizes, n: int, second: int
) -> None:
    """With 300 inputs half of a first set of 300 are support vectors: no small set can do."""
    X, y, _ = random_gln(n, 300, 1, 1)
    solution = solve(linear_program(X, y), settings=Settings(tol=1e-2, working_set_from=2))
    assert solution.status is Status.SOLVED
    assert sizes("sets.working")[:2] == [300, second]


def test_a_loose_tolerance_costs_fewer_iterations_on_a_working_set() -> None:
    # Of two groups: a program of one is left to its active set, which is exact.
    few, contexts = few_supports(5000), np.random.default_rng(0).integers(0, 2, size=(5000, 2))
    program = gln_program(few.design.X, few.y, contexts, 2)
    tight, loose = (solve(program, settings=Settings(tol=tol)) for tol in (1e-8, 1e-3))
    assert loose.certificate.gap <= 1e-3 and loose.iterations < tight.iterations


def test_answers_are_reproducible_to_the_bit() -> None:
    program = gln_program(*random_gln(700, 10, 2, 2, seed=7), 2)
    one, other = solve(program, settings=WORKING), solve(program, settings=WORKING)
    np.testing.assert_array_equal(one.primal, other.primal)
    np.testing.assert_array_equal(one.dual, other.dual)


@EACH
def test_solving_leaves_the_program_s_arrays_as_they_were(program: MaxMarginProgram) -> None:
    before = [
        array.copy()
        for array in (program.design.X, program.design.Z, program.design.group, program.y)
    ]
    solve(program)
    after = [program.design.X, program.design.Z, program.design.group, program.y]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor], ids=["numpy", "torch"])
def test_a_singular_system_is_told_and_never_answered(kind: object) -> None:
    right = kind(np.ones(2))
    with pytest.raises(SingularMatrix, match="pivot 2 of 2"):
        lu_factor(kind(np.ones((2, 2))))
    np.testing.assert_allclose(
        to_numpy(lu_solve(lu_factor(kind(np.diag([2.0, 4.0]))), right)), [0.5, 0.25]
    )


@KINDS
def test_a_set_of_groups_ends_where_all_groups_do(kind: Kind, sizes: Sizes) -> None:
    rng = np.random.default_rng(4)
    Z = np.where(rng.random((40, 800)) < 0.4, 1.0, 0.0)
    X, y = rng.normal(size=(40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    program = kind(MaxMarginProgram(GatedDesign(X, Z, np.arange(800) // 2), y))
    on_a_set, at_once = solve(program, settings=Settings(group_set_from=1)), solve(program)
    assert on_a_set.status is at_once.status is Status.SOLVED
    assert len(sizes("sets.group_working")) > 1 and max(sizes("sets.group_working")) < 400
    assert on_a_set.certificate.gap <= 1e-8
    assert on_a_set.certificate.objective == pytest.approx(at_once.certificate.objective, rel=2e-8)
    assert_honest(program, on_a_set)
    never_taken = np.linalg.norm(to_numpy(on_a_set.primal), axis=1) == 0
    assert never_taken.any()


def test_a_set_of_groups_that_does_not_separate_takes_in_more_and_proves_it_of_all(
    sizes: Sizes,
) -> None:
    # Sample n behind a gate of its own, of which there are three copies that are shorter: no set
    # is enough that leaves out one of the 250 groups.
    own = MaxMarginProgram(
        GatedDesign(np.ones((250, 1)), np.eye(250), np.arange(250)), np.ones(250)
    )
    settings, shrunk = Settings(group_set_from=1), [0.9, -0.5, 0.1]
    solved = solve(with_groups_again(own, shrunk), settings=settings)
    assert solved.status is Status.SOLVED
    assert solved.certificate.objective == pytest.approx(250.0, rel=1e-8)
    assert sizes("sets.group_working")[0] < 250 <= sizes("sets.group_working")[-1] < 1000
    contradictory = with_groups_again(stacked(own, [0], sign=-1.0), shrunk)
    assert solve(contradictory, settings=settings).status is Status.NOT_SEPARABLE
