"""What was published of gated linear networks beside what is right: groups, norm, cutoffs.

The published programs laid out the coefficients of H units of C contexts in rows, and read them
in columns: column k of the design, context k mod C of unit k // C, is grouped with those of the
same k mod H. SVM-L2 has a wrong root of the norm's matrix besides. Where networks had medians as
cutoffs they were compared after they had been loaded without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import implicit_bias as ib
from implicit_bias._support.solve import Solution
from implicit_bias.limits.formulation import solve_program
from implicit_bias.measures import scores

# Beside 1, the least cost that is not 0: errors stay within 0.1 points from 1e-4 to 1e-6.
RIDGE = 1e-4


def one_hot(contexts: np.ndarray, n_contexts: int) -> np.ndarray:
    """Return (n, H * C), the column h * C + c of context c of unit h."""
    return np.asarray(np.eye(n_contexts)[contexts].reshape(len(contexts), -1))


def wrong_groups(
    train: ib.Sample, held_out: ib.Sample, n_contexts: int
) -> tuple[Solution, np.ndarray]:
    """Solve SVM-GLN over the groups {k : k mod H = r}; return it with its held-out scores.

    Scores are NaN where there is no solution.
    """
    program = ib.programs.SVMGLN(n_contexts).program(train.X, train.y, train.gates)
    n_units = train.required_gates.shape[1]
    design = replace(program.design, group=np.arange(n_contexts * n_units) % n_units)
    solution = solve_program(replace(program, design=design))
    if not solution.certificate.proves_separability():
        return solution, np.full(len(held_out.y), np.nan)
    new = one_hot(held_out.required_gates, n_contexts)
    return solution, np.asarray(np.einsum("nj,nd,jd->n", new, held_out.X, solution.primal))


def wrong_norm(
    train: ib.Sample, held_out: ib.Sample, n_contexts: int
) -> tuple[ib.limits.KernelLimit, np.ndarray]:
    """Solve SVM-L2 as printed; return it with its held-out scores.

    The printed root C I - B + J / (H C) vanishes on shifts between groups, which the wrong groups
    let separate nearly all samples for nothing: what costs nothing has no unique optimum. RIDGE on
    the coefficients chooses one, and makes the program a kernel machine. Scores are NaN where there
    is no solution.
    """
    n_units = train.required_gates.shape[1]
    group = np.arange(n_contexts * n_units) % n_units
    same = (group[:, None] == group) / n_contexts
    mean = np.full(same.shape, 1 / len(group))
    # Differences within groups, shifts between them, and the common mean: squares of the root.
    parts = {n_contexts**2: np.eye(len(group)) - same, 0: same - mean, 1: mean}
    form = sum(part / (square + RIDGE) for square, part in parts.items())
    z, new = (one_hot(sample.required_gates, n_contexts) for sample in (train, held_out))
    limit = ib.solve_kernel_svm((train.X @ train.X.T) * (z @ form @ z.T), train.y)
    if not limit.certificate.proves_separability():
        return limit, np.full(len(held_out.y), np.nan)
    return limit, np.asarray(limit.predictor((held_out.X @ train.X.T) * (new @ form @ z.T)))


def forgotten(
    network: Any, gating: ib.HyperplaneContexts, train: ib.Sample, held_out: ib.Sample
) -> np.ndarray:
    """Return held-out scores of a network behind its own hyperplanes at cutoffs drawn anew."""
    redrawn = ib.HyperplaneContexts(
        gating.n_units, gating.n_contexts, cutoffs="random", random_state=gating.random_state
    ).fit(train.X)
    return scores(network, ib.Sample(held_out.X, held_out.y, redrawn.transform(held_out.X)))
