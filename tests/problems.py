"""The table of programs that every solver must answer, with what is known about each.

Optima come from closed forms, or from `constructed`: multipliers and coefficients first, and
then inputs that make both satisfy the optimality conditions. None is the output of a solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import torch

from solvers import GatedDesign, MaxMarginProgram, Status


class Hardness(Enum):
    """What a row asks of the arithmetic."""

    PLAIN = "every solver reaches the expected status"
    ILL_CONDITIONED = "general solvers may end with a weaker status that is honest"
    ROUNDING = "beyond some arithmetic: any solver may end with a weaker status that is honest"


@dataclass(frozen=True)
class Problem:
    name: str
    program: MaxMarginProgram
    expected: Status
    optimum: float | None = None
    hardness: Hardness = Hardness.PLAIN

    def __post_init__(self) -> None:
        if self.expected is not Status.SOLVED and self.optimum is not None:
            raise ValueError(f"{self.name}: only a solved program has an optimum")


def gln_program(
    X: np.ndarray, y: np.ndarray, contexts: np.ndarray, n_contexts: int
) -> MaxMarginProgram:
    """SVM-GLN: column h * C + c is context c of unit h, a group per unit."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    contexts = np.asarray(contexts, dtype=np.int64)
    n_samples, n_units = contexts.shape
    Z = np.zeros((n_samples, n_units * n_contexts))
    for n in range(n_samples):
        for h in range(n_units):
            Z[n, h * n_contexts + contexts[n, h]] = 1.0
    group = np.repeat(np.arange(n_units), n_contexts)
    return MaxMarginProgram(GatedDesign(X, Z, group), y)


def linear_program(X: Sequence[Sequence[float]], y: Sequence[float]) -> MaxMarginProgram:
    """H = C = 1: the hard-margin SVM without intercept."""
    return gln_program(np.asarray(X), np.asarray(y), np.zeros((len(y), 1)), 1)


def as_torch(program: MaxMarginProgram) -> MaxMarginProgram:
    design = program.design
    return MaxMarginProgram(
        GatedDesign(
            torch.tensor(design.X, dtype=torch.float64),
            torch.tensor(design.Z, dtype=torch.float64),
            torch.tensor(design.group, dtype=torch.int64),
        ),
        torch.tensor(program.y, dtype=torch.float64),
    )


def with_inputs(program: MaxMarginProgram, X: np.ndarray) -> MaxMarginProgram:
    return replace(program, design=replace(program.design, X=np.asarray(X, dtype=float)))


def stacked(
    program: MaxMarginProgram, rows: Sequence[int], *, sign: float = 1.0, scale: float = 1.0
) -> MaxMarginProgram:
    """`program` with the samples `rows` once more, labels times `sign`, inputs times `scale`."""
    design, index = program.design, np.asarray(rows)
    return MaxMarginProgram(
        GatedDesign(
            np.vstack([design.X, scale * design.X[index]]),
            np.vstack([design.Z, design.Z[index]]),
            design.group,
        ),
        np.concatenate([program.y, sign * program.y[index]]),
    )


def with_groups_again(program: MaxMarginProgram, factors: Sequence[float]) -> MaxMarginProgram:
    """`program` with all its groups once more for every factor, which multiplies their gates."""
    design = program.design
    copies = range(len(factors) + 1)
    return MaxMarginProgram(
        GatedDesign(
            design.X,
            np.hstack([factor * design.Z for factor in (1.0, *factors)]),
            np.concatenate([design.group + copy * program.n_groups for copy in copies]),
        ),
        program.y,
    )


@dataclass(frozen=True)
class Construction:
    """A program with its optimal coefficients (J, D), multipliers (n,) and group norms (G,)."""

    program: MaxMarginProgram
    primal: np.ndarray
    dual: np.ndarray
    d: np.ndarray

    @property
    def optimum(self) -> float:
        return float(self.d.sum())


def constructed(
    Z: np.ndarray,
    group: Sequence[int],
    d: Sequence[float],
    *,
    n_support: int,
    n_inputs: int,
    paired: bool = False,
    random_state: int = 0,
) -> Construction:
    """Inputs X for gates Z such that chosen V and lam are optimal.

    Choose labels, lam >= 0 with sum(lam) = sum(d) on the first `n_support` rows, blocks v_g with
    norm 1 where d[g] > 0 and norm 1/2 where d[g] = 0, and V_g = d_g v_g. The conditions

        sum_n lam_n y_n Z[n, j] x_n = v_j   and   y_n <sum_j Z[n, j] V_j, x_n> = 1

    are linear in X; the X nearest to a random one solves them. Rows beyond the support only need
    margins above 1. `paired` gives rows 2k and 2k + 1 equal gates and lam and opposite labels, so
    that a constant column of X adds nothing to any block.
    """
    rng = np.random.default_rng(random_state)
    weights, groups = np.asarray(d, dtype=float), np.asarray(group)
    Z = np.array(Z, dtype=float)
    n_samples, n_columns = Z.shape
    y = np.where(np.arange(n_samples) % 2 == 0, 1.0, -1.0)
    lam = np.zeros(n_samples)
    lam[:n_support] = rng.uniform(0.5, 2.0, n_support)
    if paired:
        lam[1:n_support:2] = lam[0:n_support:2]
        Z[1:n_support:2] = Z[0:n_support:2]
    lam *= weights.sum() / lam.sum()
    v = _blocks(Z[:n_support], groups, np.where(weights > 0, 1.0, 0.5), n_inputs, rng)
    V = weights[groups][:, None] * v
    X = rng.normal(size=(n_samples, n_inputs))
    beta = Z @ V  # (n, D): the linear predictor that a sample sees
    margins = np.where(np.arange(n_samples) < n_support, 1.0, 1.5 + rng.exponential(2.0, n_samples))
    step = (margins - y * np.sum(beta * X, axis=1)) * y / np.sum(beta * beta, axis=1)
    X[n_support:] += step[n_support:, None] * beta[n_support:]
    support = slice(0, n_support)
    rows = []
    for j in range(n_columns):
        for k in range(n_inputs):
            row = np.zeros((n_support, n_inputs))
            row[:, k] = (lam * y * Z[:, j])[support]
            rows.append(row.ravel())
    for n in range(n_support):
        row = np.zeros((n_support, n_inputs))
        row[n] = y[n] * beta[n]
        rows.append(row.ravel())
    A, b = np.array(rows), np.concatenate([v.ravel(), np.ones(n_support)])
    sizes = np.linalg.norm(A, axis=1)
    A, b = A / sizes[:, None], b / sizes
    for _ in range(3):  # refinement: the least-squares step leaves its own rounding behind
        x = X[support].ravel()
        X[support] = (x + np.linalg.lstsq(A, b - A @ x, rcond=1e-13)[0]).reshape(n_support, -1)
    assert np.abs(A @ X[support].ravel() - b).max() < 1e-13, "the construction is not solvable"
    return Construction(MaxMarginProgram(GatedDesign(X, Z, groups), y), V, lam, weights)


def _blocks(
    Z: np.ndarray, groups: np.ndarray, norms: np.ndarray, n_inputs: int, rng: np.random.Generator
) -> np.ndarray:
    """(J, D) blocks of the given group norms in the range of `Z.T`, by alternating projections.

    Blocks of one-hot units are not free: `sum_c v[h, c] = sum_n lam_n y_n x_n` for every unit.
    """
    v = rng.normal(size=(Z.shape[1], n_inputs))
    basis = np.linalg.svd(Z, full_matrices=False)
    rows = basis.Vh[basis.S > 1e-10 * basis.S[0]]
    for _ in range(2000):
        before, v = v, rows.T @ (rows @ v)
        for g, norm in enumerate(norms):
            v[groups == g] *= norm / np.linalg.norm(v[groups == g])
        if np.abs(v - before).max() < 1e-16:
            break
    return np.asarray(v)


def one_hot(contexts: np.ndarray, n_contexts: int) -> np.ndarray:
    return gln_program(
        np.ones((len(contexts), 1)), np.ones(len(contexts)), contexts, n_contexts
    ).design.Z


def unbalanced_contexts(n_samples: int, n_units: int, n_contexts: int, seed: int = 0) -> np.ndarray:
    """(n, H) contexts of which 0 takes most samples, every context being used."""
    rng = np.random.default_rng(seed)
    share = np.array([0.7] + [0.3 / (n_contexts - 1)] * (n_contexts - 1))
    contexts = rng.choice(n_contexts, size=(n_samples, n_units), p=share)
    contexts[:n_contexts] = np.arange(n_contexts)[:, None]
    return contexts


def gln_construction(
    *,
    n_samples: int = 60,
    n_support: int = 24,
    paired: bool = False,
    d: Sequence[float] = (0.4, 3.0, 9.0, 0.0),
) -> Construction:
    """Four units of three unbalanced contexts; very unequal norms, the last unit dead."""
    contexts = unbalanced_contexts(n_samples, 4, 3)
    if paired:
        contexts[: 2 * 3 : 2] = np.arange(3)[:, None]  # rows 1, 3, 5 take the gates of 0, 2, 4
    return constructed(
        one_hot(contexts, 3),
        np.repeat(np.arange(4), 3),
        d,
        n_support=n_support,
        n_inputs=16,
        paired=paired,
    )


def unequal_construction() -> Construction:
    """Real-valued gates; groups of 3, 2 and 1 columns, interleaved."""
    Z = np.random.default_rng(5).normal(size=(40, 6))
    return constructed(
        Z, [0, 1, 0, 2, 1, 0], [0.3, 2.0, 5.0], n_support=12, n_inputs=9, random_state=2
    )


def tall_construction() -> Construction:
    """500 samples of three inputs: kernels of rank at most 12."""
    contexts = np.random.default_rng(1).integers(0, 2, size=(500, 2))
    return constructed(
        one_hot(contexts, 2), [0, 0, 1, 1], [1.0, 4.0], n_support=14, n_inputs=3, random_state=3
    )


def near_inseparable_construction(optimum: float) -> Construction:
    """Inputs of size one whose best margin per unit of norm is 1 / optimum."""
    Z = one_hot(unbalanced_contexts(30, 2, 2), 2)
    return constructed(
        Z, [0, 0, 1, 1], [0.25 * optimum, 0.75 * optimum], n_support=16, n_inputs=8, random_state=4
    )


def random_gln(
    n: int, D: int, H: int, C: int, *, seed: int = 0, separable: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian inputs with labels of a random network of the same shape, or of a coin."""
    rng = np.random.default_rng(seed)
    X, contexts = rng.normal(size=(n, D)), rng.integers(0, C, size=(n, H))
    zeta = rng.normal(size=(H, C, D))
    f = np.einsum("nhd,nd->n", zeta[np.arange(H), contexts], X)
    y = np.where(f > 0, 1.0, -1.0) if separable else rng.choice([-1.0, 1.0], size=n)
    return X, y, contexts


def _closed_forms() -> list[Problem]:
    solved = Status.SOLVED
    zeros = np.zeros((1, 1))
    # One sample: v_h(lam) = lam y x for every unit, so that lam = 1 / ||x|| whatever H is.
    yield_one = [
        Problem("one sample", linear_program([[3, 4]], [1]), solved, 1 / 5),
        Problem(
            "one sample, three units",
            gln_program(np.array([[3, 4]]), np.array([-1]), np.array([[0, 1, 2]]), 4),
            solved,
            1 / 5,
        ),
        # With gates z the block of group g has norm lam ||z_g|| ||x||: the largest decides.
        Problem(
            "one sample, unequal gates",
            MaxMarginProgram(
                GatedDesign(
                    np.array([[3.0, 4.0]]), np.array([[1.0, 2.0, -2.0]]), np.array([0, 1, 1])
                ),
                np.array([1.0]),
            ),
            solved,
            1 / (5 * np.sqrt(8)),
        ),
        Problem("everything is one", gln_program(np.ones((1, 1)), np.ones(1), zeros, 1), solved, 1),
    ]
    # <w, (2, 0)> >= 1 and <w, (0, 1)> <= -1: w = (1/2, -1).
    two = linear_program([[2, 0], [0, 1]], [1, -1])
    polytope = np.vstack([np.eye(4), -np.eye(4)])
    scales = np.logspace(0, -5, 6)
    # Orthogonal rows of norms s: every unit's dual norm is (sum lam^2 s^2)^(1/2), the constraint
    # lam_n s_n^2 = const, and so the optimum (sum 1 / s^2)^(1/2) for any one-hot contexts.
    orthogonal = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    contexts = np.random.default_rng(1).integers(0, 3, size=(6, 2))
    alternating = np.array([1.0, -1.0] * 3)
    return [
        *yield_one,
        Problem("two points", two, solved, np.sqrt(1.25)),
        Problem("one dimension", linear_program([[3], [-0.5], [7]], [1, -1, 1]), solved, 2.0),
        Problem(
            "ties on a cross-polytope",
            linear_program(polytope.tolist(), [1] * 4 + [-1] * 4),
            solved,
            2.0,
        ),
        # Every used context must reach 1 alone: the norm of three ones; the fourth stays empty.
        Problem(
            "one class, D = 1, a context empty",
            gln_program(np.ones((7, 1)), np.ones(7), np.array([[0, 1, 2, 0, 1, 2, 0]]).T, 4),
            solved,
            np.sqrt(3),
        ),
        # A constant x of norm sqrt(3): each context needs a block of norm 1 / sqrt(3).
        Problem(
            "constant features, contexts tell the labels",
            gln_program(np.ones((6, 3)), alternating, np.array([[0, 1] * 3]).T, 2),
            solved,
            np.sqrt(2 / 3),
        ),
        # Gate 0 opens for the positive sample, gate 1 for the negative: 1/||x+|| + 1/||x-||.
        Problem(
            "frozen ReLU gates, one sample each",
            MaxMarginProgram(
                GatedDesign(np.array([[3.0, 4.0], [0.0, -2.0]]), np.eye(2), np.arange(2)),
                np.array([1.0, -1.0]),
            ),
            solved,
            1 / 5 + 1 / 2,
        ),
        Problem(
            "orthogonal rows",
            gln_program(orthogonal * np.arange(1, 7)[:, None], alternating, contexts, 3),
            solved,
            np.sqrt(np.sum(1 / np.arange(1, 7) ** 2.0)),
        ),
        Problem(
            "orthogonal rows of scales 1 to 1e-5",
            gln_program(orthogonal * scales[:, None], alternating, contexts, 3),
            solved,
            np.sqrt(np.sum(1 / scales**2)),
            Hardness.ILL_CONDITIONED,
        ),
        # -w_1 + e w_2 >= 1 and w_1 + e w_2 >= 1: w = (0, 1 / e).
        *(
            Problem(
                f"almost contradictory pair, {e:.0e}",
                linear_program([[1, e], [1, -e]], [1, -1]),
                solved,
                1 / e,
                hardness,
            )
            for e, hardness in (
                (1e-2, Hardness.PLAIN),
                (1e-4, Hardness.ILL_CONDITIONED),
                (1e-6, Hardness.ILL_CONDITIONED),
                (1e-8, Hardness.ILL_CONDITIONED),
                (1e-10, Hardness.ROUNDING),
                (1e-13, Hardness.ROUNDING),
            )
        ),
    ]


def _constructions() -> list[Problem]:
    solved, ill = Status.SOLVED, Hardness.ILL_CONDITIONED
    gln, paired = gln_construction(), gln_construction(n_support=48, paired=True)
    unequal, tall = unequal_construction(), tall_construction()
    X = gln.program.design.X
    offset = np.hstack([paired.program.design.X, np.full((60, 1), 1e3)])
    wide_contexts = np.argmax(gln.program.design.Z.reshape(60, 4, 3), axis=2)
    return [
        Problem("constructed, unbalanced contexts, a dead unit", gln.program, solved, gln.optimum),
        Problem("inputs times 1e-6", with_inputs(gln.program, 1e-6 * X), solved, 1e6 * gln.optimum),
        Problem("inputs times 1e6", with_inputs(gln.program, 1e6 * X), solved, 1e-6 * gln.optimum),
        Problem(
            "duplicates", stacked(stacked(gln.program, range(20)), range(20)), solved, gln.optimum
        ),
        # A sample's multiple has that multiple of its margin: never tight.
        Problem("an outlier", stacked(gln.program, [0], scale=1e6), solved, gln.optimum, ill),
        Problem(
            "five empty contexts",
            gln_program(X, gln.program.y, wide_contexts, 8),
            solved,
            gln.optimum,
        ),
        Problem(
            "large constant column",
            with_inputs(paired.program, offset),
            solved,
            paired.optimum,
            ill,
        ),
        Problem(
            "constructed, unequal interleaved groups", unequal.program, solved, unequal.optimum
        ),
        Problem("constructed, 500 x 3", tall.program, solved, tall.optimum, ill),
        *(
            Problem(
                f"constructed, inputs of size one, optimum {size:.0e}",
                near_inseparable_construction(size).program,
                solved,
                size,
                hardness,
            )
            for size, hardness in ((1e2, ill), (1e3, ill), (1e6, Hardness.ROUNDING))
        ),
    ]


def _with_constant(
    shape: tuple[int, int, int, int], seed: int, constant: float
) -> MaxMarginProgram:
    """A random teacher's data (n, D, H, C) beside a constant column."""
    n, _, _, n_contexts = shape
    X, y, contexts = random_gln(*shape, seed=seed)
    return gln_program(np.hstack([X, np.full((n, 1), constant)]), y, contexts, n_contexts)


def _random() -> list[Problem]:
    X, y, contexts = random_gln(60, 5, 3, 2)
    program = gln_program(X, y, contexts, 2)
    nearly = stacked(program, [0], sign=-1.0)
    problems = [
        Problem("random teacher", program, Status.SOLVED),
        Problem(
            "random teacher, 500 x 3",
            gln_program(*random_gln(500, 3, 2, 2), 2),
            Status.SOLVED,
            None,
            Hardness.ILL_CONDITIONED,
        ),
        Problem(
            "feature scales 1 to 1e-5",
            with_inputs(program, X * np.logspace(0, -5, 5)),
            Status.SOLVED,
            None,
            Hardness.ILL_CONDITIONED,
        ),
        Problem(
            "equal units, constant column 1e4",
            _with_constant((40, 3, 2, 1), 1, 1e4),
            Status.SOLVED,
            None,
            Hardness.ILL_CONDITIONED,
        ),
        Problem(
            "four units, constant column 1e3",
            _with_constant((30, 5, 4, 2), 36, 1e3),
            Status.SOLVED,
            None,
            Hardness.ILL_CONDITIONED,
        ),
        # The best margin is 1e-5 of the inputs' size, its square 1e-10 in a Gram matrix.
        Problem(
            "five units, D = 2, constant column 1e4",
            _with_constant((30, 1, 5, 2), 4, 1e4),
            Status.SOLVED,
            None,
            Hardness.ROUNDING,
        ),
        Problem(
            "a row times 1e-6",
            stacked(program, [0], scale=1e-6),
            Status.SOLVED,
            None,
            Hardness.ILL_CONDITIONED,
        ),
    ]
    for e, hardness in (
        (1e-1, Hardness.PLAIN),
        (1e-3, Hardness.ILL_CONDITIONED),
        (1e-6, Hardness.ROUNDING),
        (1e-9, Hardness.ROUNDING),
    ):
        shifted = np.array(nearly.design.X)
        shifted[-1, 0] += e
        problems.append(
            Problem(
                f"nearly contradictory duplicate, {e:.0e}",
                with_inputs(nearly, shifted),
                Status.SOLVED,
                None,
                hardness,
            )
        )
    return problems


def _not_separable() -> list[Problem]:
    no = Status.NOT_SEPARABLE
    X, y, contexts = random_gln(60, 5, 3, 2)
    program = gln_program(X, y, contexts, 2)
    closed = MaxMarginProgram(
        GatedDesign(
            X, np.where(contexts[:, :2] + (np.arange(60) > 0)[:, None] > 1, 1.0, 0.0), np.arange(2)
        ),
        y,
    )
    return [
        Problem("contradictory duplicate", stacked(program, [7], sign=-1.0), no),
        Problem("a row of zeros", stacked(program, [7], scale=0.0), no),
        Problem("all inputs zero", with_inputs(program, 0 * X), no),
        Problem("a sample with no open gate", closed, no),
        Problem(
            "constant features, labels differ",
            gln_program(np.ones((4, 3)), np.array([1, -1, 1, -1]), np.array([[0, 0, 1, 1]]).T, 2),
            no,
        ),
        Problem("one dimension, three signs", linear_program([[1], [2], [-3]], [1, -1, 1]), no),
        # Far above twice the 9 free dimensions: separable with probability below 1e-60 (Cover).
        Problem("labels of a coin", gln_program(*random_gln(300, 3, 2, 2, separable=False), 2), no),
        # 0 = 2 (1, 0) + (-1, 1) + (-1, -1) as a sum of y x: the blocks cancel exactly.
        Problem(
            "zero in the hull, no contradiction",
            linear_program([[1, 0], [-1, 1], [1, 1]], [1, 1, -1]),
            no,
        ),
    ]


def _many_groups() -> list[Problem]:
    """The same groups again: no smaller optimum, since their blocks are the old ones' multiples."""
    solved, unequal = Status.SOLVED, unequal_construction()
    shrunk = np.linspace(-0.9, 0.9, 20).tolist()
    closed = with_groups_again(linear_program([[1], [2], [-3]], [1, -1, 1]), shrunk)
    return [
        Problem(
            "each group twice", with_groups_again(unequal.program, [1]), solved, unequal.optimum
        ),
        Problem(
            "groups of zeros", with_groups_again(unequal.program, [0, 0]), solved, unequal.optimum
        ),
        Problem(
            "63 groups, 40 samples",
            with_groups_again(unequal.program, shrunk),
            solved,
            unequal.optimum,
        ),
        Problem(
            "one live group of one among zeros",
            with_groups_again(linear_program([[3, 4]], [1]), [0] * 20),
            solved,
            1 / 5,
        ),
        Problem("21 groups, one dimension, three signs", closed, Status.NOT_SEPARABLE),
    ]


PROBLEMS = [*_closed_forms(), *_constructions(), *_random(), *_many_groups(), *_not_separable()]
