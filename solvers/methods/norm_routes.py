"""Solvers of margin programs of any norm, each norm with the one that is best at it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import null_space

from ..certificates.solution import Solution
from ..norms.balls import takes
from ..norms.norm import Norm
from ..numerics.checks import require_choice, shown
from ..numerics.memory import require_memory
from ..numerics.summation import power_of_two
from ..programs.design import GatedDesign
from ..programs.images import Floats, GatedRows, Image, Products, RelativeMargins, Rows, dense_rows
from ..programs.max_margin import MaxMarginProgram
from ..programs.norm_program import (
    NormPoint,
    NormProgram,
    NormSolution,
    best_point,
    certify_norm,
    conclude_norm,
)
from .backends.cvxpy_norms import solve_norm_cvxpy
from .backends.highs_margins import MATRICES, least_entries
from .dispatch import solve
from .interior.coefficients import solve_coefficients
from .interior.products import solve_products
from .interior.quadratic import solve_quadratic
from .interior_point import solve_interior_point
from .refinement import PrimalDual
from .sets.rows import FIRST, solve_on_rows
from .settings import Settings, SolverName

# Where the l2 norm goes by its coefficients. Measured on ten classes: of 5,000 planted samples of
# 65 inputs it takes 1.2 seconds, and the game of margins 13; of 1,500 digits .6 and .3; of 6,000
# samples of 200 inputs close to their centres 9 and 3.
MARGINS = 5_000
COEFFICIENT_MARGINS = 4
COEFFICIENTS = 2_000

# Coefficients up to which programs are solved with all margins at once: 300 digits of ten classes
# and 64 inputs take a fourth of the time that sets take.
ALL_ROWS = 700
# Margins from which on l2 programs of classes are solved on sets of them, without a copy of the
# inputs a margin: 500 images take .9 seconds with all margins and 1.3 with sets, 2,000 images 5.6
# and 3.4, 10,000 images 99 and 57, and .9 GB for 2.
SETS = 10_000
# Rows of a matrix up to which its singular values are those of a square one: a square of it is an
# operator of this to the fourth.
LEFT = 40


def solver_of(norm: Norm) -> SolverName:
    """Name the solver that takes programs of this norm by default.

    Parameters
    ----------
    norm : Norm

    Returns
    -------
    str
        "interior-point", or "cvxpy:CLARABEL" for sums of spectral norms and largest nuclear ones.
    """
    return "interior-point" if takes(norm) else "cvxpy:CLARABEL"


def solve_norm(
    program: NormProgram,
    *,
    solver: SolverName | None = None,
    settings: Settings | None = None,
) -> NormSolution:
    """Solve a program of any norm and certify the answer.

    Where no coefficients separate, multipliers that prove it come from the program of the l2 norm:
    a proof does not mention the norm.

    Parameters
    ----------
    program : NormProgram
    solver : str, optional
        "interior-point" for all norms but sums of spectral norms and largest nuclear ones, "highs"
        for "linf" and "l1" at a vertex, "cvxpy:NAME" for every norm; None chooses by the norm.
    settings : Settings, optional

    Returns
    -------
    NormSolution
        As far as the solver came, with the status that the certificate proves.

    Raises
    ------
    ValueError
        If there is no such solver, it does not take the norm, or memory cannot hold the program.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Norm, NormProgram, RelativeMargins, solve_norm
    >>> image = RelativeMargins(np.eye(3), np.arange(3), 3)
    >>> found = solve_norm(NormProgram(image, Norm.of("linf"))).require()
    >>> round(found.certificate.objective, 6)
    0.5
    """
    settings = settings or Settings()
    solver = solver_of(program.norm) if solver is None else solver
    if not isinstance(solver, str):
        raise TypeError(f"`solver` must be a name or None, got {shown(solver)}")
    family, _, name = solver.partition(":")
    require_choice("solver", family, ("interior-point", "highs", "cvxpy"))
    start = time.perf_counter()
    scaled, scale, share = _scaled(program)
    if family == "cvxpy":
        found = solve_norm_cvxpy(scaled, settings, name or "CLARABEL")
    elif family == "highs":
        found = _solve_linear(scaled, settings)
    elif _in_coefficients(scaled):
        found = solve_quadratic(scaled, settings)
    elif _grouped_norm(scaled):
        found = _solve_groups(scaled, settings)
        found = _in_other_unknowns(scaled, settings, found)
    elif not _of_few_coefficients(scaled) and (solve_part := _solver_of_parts(scaled)):
        found = solve_on_rows(scaled, settings, solve_part)
    elif takes(program.norm):
        found = solve_coefficients(scaled, settings)
        found = _on_its_margins(scaled, settings, found)
    else:
        raise ValueError(
            f"`solver` 'interior-point' takes no norm {program.norm.name!r}: use "
            f"{solver_of(program.norm)!r}"
        )
    by_game = family == "interior-point" and program.norm == Norm() and not _in_coefficients(scaled)
    if not by_game and not certify_norm(scaled, found.B).proves_separability():
        proof = _solve_groups(replace(scaled, norm=Norm()), settings)
        found = found._replace(lam=proof.lam, nu=proof.nu)
    return conclude_norm(
        program,
        None if found.B is None else found.B / scale,
        found.lam,
        None if found.nu is None else found.nu * (scale / share),
        tol=settings.tol,
        iterations=found.iterations,
        seconds=time.perf_counter() - start,
        solver=solver,
    )


def _scaled(program: NormProgram) -> tuple[NormProgram, float, float]:
    """Program with data of size one, and the powers of two that A and E are divided by."""
    scale = power_of_two(program.image.largest())
    E = program.equalities
    share = 1.0 if E is None else power_of_two(E.largest())
    E = None if E is None else E.over(share)
    return replace(program, image=program.image.over(scale), equalities=E), scale, share


def _grouped_norm(program: NormProgram) -> bool:
    """True if the program is one of the game of groups: l2 norms, summed, of whole columns."""
    norm, image = program.norm, program.image
    if norm == Norm():
        return True
    groups = norm.inside == "l2" and norm.over == "sum" and norm.blocks != "entries"
    return groups and program.equalities is None and not isinstance(image, Rows)


def _of_few_coefficients(program: NormProgram) -> bool:
    """True for programs that are solved in the coefficients, with all margins at once."""
    return int(np.prod(program.image.shape)) <= ALL_ROWS


def _in_coefficients(program: NormProgram) -> bool:
    """True for l2 programs of classes on so many margins that their coefficients cost less."""
    image, size = program.image, int(np.prod(program.image.shape))
    if program.norm != Norm() or program.equalities is not None:
        return False
    if not isinstance(image, RelativeMargins) or not MARGINS <= image.n_rows:
        return False
    return COEFFICIENT_MARGINS * size <= image.n_rows and size <= COEFFICIENTS


def _in_other_unknowns(program: NormProgram, settings: Settings, found: NormPoint) -> NormPoint:
    """Return the best of a point and that of an interior point in the coefficients.

    Products of samples lose inputs that are small beside others, which coefficients keep. What few
    coefficients cost is little; a point that is solved, or a proof that nothing separates, stays.
    """
    if not _of_few_coefficients(program) or not takes(program.norm):
        return found
    certificate = certify_norm(program, found.B, found.lam, found.nu)
    if certificate.gap <= settings.tol or certificate.proves_inseparability():
        return found
    return best_point(program, [found, solve_coefficients(program, settings)])


def _on_its_margins(program: NormProgram, settings: Settings, found: NormPoint) -> NormPoint:
    """Return the best of a point and that of its active margins, with those that this violates.

    Newton's matrix in few coefficients sums all margins, and of many loses those that matter.
    """
    solve_part = _solver_of_parts(program)
    if solve_part is None:
        return found
    certificate = certify_norm(program, found.B, found.lam, found.nu)
    if certificate.gap <= settings.tol or not certificate.proves_separability():
        return found
    again = solve_on_rows(program, settings, solve_part, found.lam)
    return best_point(program, [found, again])


def _solver_of_parts(
    program: NormProgram,
) -> Callable[[NormProgram, Settings, Floats], NormPoint] | None:
    """Return what solves a program of some of the margins; None if all are solved at once."""
    image, norm = program.image, program.norm
    if program.equalities is not None:
        return None
    if norm.blocks == "entries":
        behind_gates = isinstance(image, GatedRows) and image.shape[0] > 1
        if norm.over == "sum" or (behind_gates and image.n_rows < 2 * FIRST):
            return _solve_distinct
        # Of the largest entry, sets of ten classes took half as many steps more where inputs of one
        # coefficient were one, and linear programs 16 for 13.
        return lambda part, settings, _: solve_coefficients(part, settings)
    if norm.inside == "l2" or norm.is_factored or image.shape[-2] > LEFT:
        return None
    if isinstance(image, RelativeMargins) and image.n_contexts == 1:
        K = image.n_classes
        return lambda part, settings, _: solve_products(part, settings, n_classes=K)
    if isinstance(image, GatedRows) and image.program.design.Z.shape[1] == image.shape[0]:
        return lambda part, settings, _: solve_products(part, settings)
    return None


def _solve_distinct(program: NormProgram, settings: Settings, known: Floats) -> NormPoint:
    """Solve a program of entries, inputs that agree on all samples as one.

    Of the largest entry they may all have the same coefficient, of the sum of entries one has all.
    """
    assert isinstance(program.image, Products)
    largest = program.norm.over == "max"
    image, place = program.image.distinct(summed=largest)
    found = solve_coefficients(replace(program, image=image), settings)
    if found.B is None:
        return found
    B = found.B[:, place]
    if not largest:
        B[:, np.setdiff1d(np.arange(len(place)), np.unique(place, return_index=True)[1])] = 0.0
    return found._replace(B=B.reshape(program.image.shape))


def _solve_groups(program: NormProgram, settings: Settings) -> NormPoint:
    """Solve a program of a sum of l2 norms by the interior point of groups."""
    if program.equalities is not None:
        return _solve_in_null_space(program, settings)
    if _on_sets(program, settings):
        of_sets = solve_on_rows(program, settings, _solve_set)
        certificate = certify_norm(program, of_sets.B, of_sets.lam)
        if certificate.proves_optimality(settings.tol) or certificate.proves_inseparability():
            return of_sets
    grouped, back = _grouped(program)
    return _point(solve(grouped, settings=settings), back)


def _on_sets(program: NormProgram, settings: Settings) -> bool:
    """True for l2 programs of classes on so many margins that a set of them is solved sooner."""
    if program.norm != Norm() or not isinstance(program.image, RelativeMargins):
        return False
    size, m = int(np.prod(program.image.shape)), program.image.n_rows
    return size > ALL_ROWS and m >= max(settings.working_set_from, SETS)


def _solve_set(program: NormProgram, settings: Settings, known: Floats) -> NormPoint:
    """Solve an l2 program of a set of margins, with all of them at once, from `known` ones."""
    grouped, back = _grouped(program)
    guess = PrimalDual(primal=grouped.dual_blocks(known), dual=known) if known.any() else None
    at_once = replace(settings, working_set_from=program.image.n_rows + 1)
    return _point(solve_interior_point(grouped, at_once, guess=guess), back)


def _point(found: Solution, back: Callable[[Floats], Floats]) -> NormPoint:
    """Return what was found of a program of groups as a point of the one that it states."""
    B, lam = back(np.asarray(found.primal)), np.asarray(found.dual)
    return NormPoint(B, lam, iterations=found.iterations)


def _grouped(program: NormProgram) -> tuple[MaxMarginProgram, Callable[[Floats], Floats]]:
    """Program of groups with the same norm, and the map of its coefficients (J, D) back to B."""
    image, norm, shape = program.image, program.norm, program.image.shape
    require_copies(image)
    standard = image.standard()
    design, n_columns = standard.design, int(standard.design.Z.shape[1])

    def direct(V: Floats) -> Floats:
        return V.reshape(shape)

    if norm == Norm():
        return standard, direct
    if norm.blocks == "columns":
        # Inputs and gates change places: the groups are inputs.
        group = np.arange(shape[1])
        turned = GatedDesign(X=design.Z * standard.y[:, None], Z=design.X, group=group)
        return MaxMarginProgram(turned, np.ones(image.n_rows)), lambda V: V.T.reshape(shape)
    group = np.repeat(np.arange(shape[0]), n_columns // shape[0])
    return replace(standard, design=replace(design, group=group)), direct


def require_copies(image: Image) -> None:
    """Refuse a program whose copied inputs memory cannot hold."""
    copied = image.X.shape[1] if isinstance(image, RelativeMargins) else 0
    require_memory(image.n_rows * copied, f"inputs of {image.n_rows} margins", "give fewer samples")


def _solve_in_null_space(program: NormProgram, settings: Settings) -> NormPoint:
    """Solve an l2 program with equalities in an orthonormal basis of their zeros."""
    assert program.equalities is not None
    E, A = program.equalities.flat, dense_rows(program.image)
    Q = null_space(E)
    if Q.shape[1] == 0:
        Q = np.zeros((E.shape[1], 1))
    found = solve(Rows(A @ Q).standard(), settings=settings)
    B, lam = (Q @ np.ravel(found.primal)).reshape(program.image.shape), np.asarray(found.dual)
    nu = np.asarray(np.linalg.lstsq(E.T, -(lam @ A), rcond=None)[0], dtype=np.float64)
    return NormPoint(B, lam, nu, found.iterations)


def _solve_linear(program: NormProgram, settings: Settings) -> NormPoint:
    """Solve a program of the largest entry, or of the sum of entries, by HiGHS through SciPy."""
    if program.norm.blocks != "entries":
        raise ValueError(
            f"`solver` 'highs' takes the norms 'linf' and 'l1', not {program.norm.name!r}: use "
            f"{solver_of(program.norm)!r}"
        )
    image = program.image
    size = int(np.prod(image.shape))
    require_memory(
        MATRICES * image.n_rows * size,
        f"HiGHS's matrix of {image.n_rows} margins",
        "give fewer samples",
    )
    largest = program.norm.over == "max"
    E = None if program.equalities is None else program.equalities.flat
    found = least_entries(dense_rows(image), settings, E, largest=largest)
    return found if found.B is None else found._replace(B=found.B.reshape(image.shape))
