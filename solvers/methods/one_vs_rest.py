"""One-vs-rest programs of more than two classes, solved on one Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..certificates.solution import Solution
from ..numerics.arrays import Array, array_namespace, is_sparse
from ..numerics.checks import require_shape
from ..programs.design import GatedDesign
from ..programs.max_margin import MaxMarginProgram
from ..programs.scaling import require_scales
from .dispatch import solve
from .interior.group_kernels import group_kernels
from .interior_point import solve_interior_point
from .settings import Settings, SolverName


def one_vs_rest_programs(design: GatedDesign, labels: Array) -> tuple[MaxMarginProgram, ...]:
    """Make the program of every class k, with y[n] = +1 where `labels[n] == k` and -1 elsewhere.

    Parameters
    ----------
    design : GatedDesign
        Shared by the programs, not copied.
    labels : (n,) integer array
        Classes 0 .. K-1, K >= 2, every one with a sample.

    Returns
    -------
    tuple of K MaxMarginProgram

    Raises
    ------
    TypeError
        If `labels` does not hold integers.
    ValueError
        If `labels` has the wrong shape, one class only, or numbers the classes otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> design = GatedDesign(np.eye(3), np.ones((3, 1)), np.zeros(1, dtype=np.int64))
    >>> [program.y.tolist() for program in one_vs_rest_programs(design, np.array([0, 1, 1]))]
    [[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0]]
    """
    xp = array_namespace(design.Z)
    labels = xp.asarray(labels, device=design.Z.device)
    if not xp.isdtype(labels.dtype, "integral"):
        raise TypeError(f"`labels` must hold integers 0 .. K-1, got dtype {labels.dtype}")
    require_shape("labels", labels, (design.n_samples,), "one class per row of X")
    classes = xp.unique_values(labels)
    n_classes = int(classes.shape[0])
    if n_classes < 2:
        raise ValueError("`labels` must hold at least two classes, got one: add samples of another")
    if int(xp.min(classes)) != 0 or int(xp.max(classes)) != n_classes - 1:
        raise ValueError(
            f"`labels` must number the classes 0 .. {n_classes - 1} with none left out, got "
            f"{int(xp.min(classes))} .. {int(xp.max(classes))}: renumber them"
        )
    signs = (2 * xp.astype(labels == k, design.Z.dtype) - 1 for k in range(n_classes))
    return tuple(MaxMarginProgram(design=design, y=y) for y in signs)


def solve_one_vs_rest(
    design: GatedDesign,
    labels: Array,
    *,
    solver: SolverName = "interior-point",
    settings: Settings | None = None,
) -> tuple[Solution, ...]:
    """Solve the program of every class against the rest, each with its own certificate.

    The kernels of two classes differ in signs, `y[n] y[m] <X[n], X[m]>`: the interior point
    computes the products once and turns the signs in place from one class to the next, so that
    K classes hold one Gram matrix, not K. From `settings.working_set_from` or `single_from`
    samples or `group_set_from` groups on, and on sparse inputs, every class has its own working
    set, or kernels of both
    precisions, and none are shared; cvxpy has no use for them.

    Parameters
    ----------
    design : GatedDesign
        Inputs (n, D) and gate columns (n, J).
    labels : (n,) integer array
        Classes 0 .. K-1, K >= 2, every one with a sample.
    solver : str
        Name of the solver, "interior-point" unless another is named.
    settings : Settings, optional
        Tolerance and limits of every solve; `settings.progress` is called class after class.

    Returns
    -------
    tuple of K Solution
        The same, to the last bit, as `solve` finds for every program of `one_vs_rest_programs`.
        The common Gram matrix is in nobody's `seconds`.

    Raises
    ------
    TypeError, ValueError
        If labels are not classes 0 .. K-1, or there is no solver of that name for the programs.

    Examples
    --------
    Of -1, 0 and 1 beside a constant, no line parts the middle one from both others:

    >>> import numpy as np
    >>> line = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> design = GatedDesign(line, np.ones((3, 1)), np.zeros(1, dtype=np.int64))
    >>> [solution.status.name for solution in solve_one_vs_rest(design, np.array([0, 1, 2]))]
    ['SOLVED', 'NOT_SEPARABLE', 'SOLVED']
    """
    programs = one_vs_rest_programs(design, labels)
    return tuple(iterate_one_vs_rest(programs, solver=solver, settings=settings))


def iterate_one_vs_rest(
    programs: Sequence[MaxMarginProgram],
    *,
    solver: SolverName = "interior-point",
    settings: Settings | None = None,
) -> Iterator[Solution]:
    """Solve one-vs-rest programs one by one, so that a caller may stop between classes.

    Parameters
    ----------
    programs : sequence of MaxMarginProgram
        Programs of `one_vs_rest_programs`, which share one design.
    solver : str
        Name of the solver, "interior-point" unless another is named.
    settings : Settings, optional
        Tolerance and limits of every solve.

    Yields
    ------
    Solution
        The solution of the next class, certified.

    Raises
    ------
    TypeError, ValueError
        If there is no such solver, or it does not take the programs.
    """
    settings = settings or Settings()
    require_scales(programs[0])
    design = programs[0].design
    apart = (
        design.n_samples >= min(settings.working_set_from, settings.single_from)
        or design.n_groups >= settings.group_set_from
        or is_sparse(design.X)
    )
    if solver != "interior-point" or apart:
        for program in programs:
            yield solve(program, solver=solver, settings=settings)
        return
    kernels, signs = group_kernels(programs[0]), programs[0].y
    for program in programs:
        kernels.flip(signs * program.y)
        signs = program.y
        yield solve_interior_point(program, settings, kernels)
