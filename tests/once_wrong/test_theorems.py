"""Theorems as their sources print them: what pages and declarations say of them, and the texts."""

from __future__ import annotations

import math
import re
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias import distillation
from implicit_bias.equivalence import ReLUWeights, fold_surface
from implicit_bias.models import MODELS
from implicit_bias.models.distillation import error_angle
from implicit_bias.training import mean_loss_gradient
from tests.equivalence.test_alignment import act, draw
from tests.equivalence.test_identifiable import SQUARE
from tests.generated import assumptions_page
from tests.pages import ROOT, lines, text_of

SOURCES = ("half-space", "gated draft", "notes", "thesis", "GLN paper", "its program",
           "program of the GLN paper")  # fmt: skip


# Errata.
def test_errata_have_three_lists_and_each_row_its_document_and_its_tests() -> None:
    text = text_of("errata.md")
    heads = re.findall(r"^## (.*)$", text, flags=re.M)
    assert heads[:3] == ["Errors", "Sharper here than printed", "Misprints"]
    rows = [one for one in lines("errata.md") + lines("research/notes.md") if len(one) == 4]
    told = [one for one in rows if one[0] not in ("where", "source", "---")]
    assert len(told) > 60
    for where, *_ in told:
        assert where.startswith(SOURCES), where
    assert all(one[-1].startswith("`tests/") for one in told)


def test_errata_of_the_draft_on_gated_networks_are_not_laid_at_the_later_paper() -> None:
    told = text_of("errata.md")
    assert "NeurIPS 2020, and earlier drafts" not in told and "3 March 2020" in told


def test_no_page_says_that_twins_lose_their_difference_by_the_printed_equations() -> None:
    (row,) = [one for one in lines("errata.md") if one[0] == "notes, (31), (32)"]
    assert "w_1 - w_2 is right as printed" in row[2]


# What is true in the source is no error of it.
@pytest.mark.parametrize(
    ("where", "listed"),
    [
        ("thesis, theorem 5.3", "Sharper here than printed"),
        ("thesis, lemma D.3", "Sharper here than printed"),
        ("thesis, corollary 3.1", "Sharper here than printed"),
        ("thesis, section 4.6.1", "Sharper here than printed"),
        ("GLN paper, (7)", "Sharper here than printed"),
        ("notes, (11)", "Sharper here than printed"),
        ("notes, (26)", "Misprints"),
        ("gated draft, experiment 6", "Misprints"),
        ("gated draft, introduction", "Misprints"),
        ("GLN paper, (21), (60)", "Misprints"),
        ("thesis, section 2.2, third condition of a general network", "Misprints"),
    ],
)
def test_what_holds_as_printed_or_is_right_elsewhere_is_not_among_the_errors(where, listed) -> None:
    parts = re.split(r"^## ", text_of("errata.md"), flags=re.M)[1:]
    (part,) = [one for one in parts if f"\n| {where} |" in one]
    assert part.startswith(listed)


def test_the_third_condition_of_a_general_network_is_that_of_lemma_a_11() -> None:
    doc = " ".join((ib.equivalence.check_general.__doc__ or "").split())
    assert "lemma A.11 excepts" in doc and "holds for no network" not in doc
    network = ib.equivalence.identifiable_network((3, 2), random_state=0)
    assert ib.equivalence.check_general(network).holds  # with the exception there are such


def test_what_was_no_error_stands_among_the_notes() -> None:
    told = " ".join(one[0] for one in lines("research/notes.md"))
    for where in ("(3.13), (3.14)", "(6.4)", "section 6.3.2", "lemma 4.1", "SVM-RC"):
        assert where in told


# What a claim of the errata says.
def test_a_margin_bounds_the_projection_from_below_so_theorem_d_4_has_its_constant() -> None:
    margin, n = math.radians(20), 3
    least = math.sin(margin)  # the cosine of the largest angle
    beta, share = math.radians(20), 0.2
    delta = error_angle(share)
    lengths, risks, allowed = [], [], []
    for seed in range(40):
        task = ib.datasets.make_angle_task(n, 8, 0.3, margin=margin, random_state=seed)
        what = distillation.distillation_limit(task.X, task.teacher).projection
        lengths.append(np.linalg.norm(what) / np.linalg.norm(task.teacher))
        # One length for all X, a share of what no projection is below.
        away = what - (what @ task.teacher) * task.teacher / (task.teacher @ task.teacher)
        epsilon = share * least * np.linalg.norm(task.teacher)
        off = epsilon * away / np.linalg.norm(away)
        risks.append(distillation.transfer_risk(what + off, task.teacher, task.X_val))
        p = distillation.angle_tail(task.X_val, task.teacher)
        allowed.append(float(p(beta)) + float(p(math.pi / 2 - delta - beta)) ** n)
    assert least <= min(lengths) < 0.9
    assert 0.01 < np.mean(risks) < np.mean(allowed)


def test_training_of_contexts_of_mixed_degrees_goes_to_no_kkt_point() -> None:
    """(w1 + w2) / sqrt 2 and 0.1 w1^2, a sample of each: flow of the exponential loss."""
    w, v, slope, bend = 1.0, 0.2, 2**-0.5, 0.1
    for _ in range(10_000):  # dw / ds = - grad loss / loss, the same path
        linear = 1 / (1 + math.exp(min(slope * (w + v) - bend * w**2, 700.0)))
        w += 0.05 * (linear * slope + (1 - linear) * 2 * bend * w)
        v += 0.05 * linear * slope
    assert min(slope * (w + v), bend * w**2) > 300  # the loss is at exp(-300)
    direction = np.array([w, v]) / math.hypot(w, v)
    np.testing.assert_allclose(direction, [2**-0.5, 2**-0.5], atol=0.02)
    # Scaled to margins of at least 1 the square alone is tight, and its gradient has no w2.
    scale = max(1 / (slope * direction.sum()), (bend * direction[0] ** 2) ** -0.5)
    point = scale * direction
    assert slope * point.sum() > 4 and bend * point[0] ** 2 == pytest.approx(1)
    off = point - np.array([point[0], 0.0])  # the nearest multiple of the gradient of the tight one
    assert np.linalg.norm(off) / np.linalg.norm(point) == pytest.approx(2**-0.5, abs=0.02)


# Declarations.
def test_three_machines_are_of_the_paper_and_gates_alone_of_its_program() -> None:
    for told in (MODELS["relu"].theorem, assumptions_page()):
        assert "three of them those of" in told and "gates alone from the program" in told


def test_the_slope_of_the_exponential_loss_is_not_called_lipschitz_without_more() -> None:
    (loss,) = [one for one in MODELS["linear"].assumes if one.name == "exponential-like loss"]
    assert "of the exponential loss only on margins that are bounded from below" in loss.text
    margins = torch.tensor([-40.0, -20.0, 0.0, 20.0], dtype=torch.float64)
    ones = torch.ones(4, dtype=torch.float64)
    slopes = {
        kind: 4 * mean_loss_gradient(margins, ones, kind) for kind in ("logistic", "exponential")
    }
    steepest = {kind: float((one.diff() / 20).abs().max()) for kind, one in slopes.items()}
    assert steepest["logistic"] <= 0.25
    assert steepest["exponential"] > 1e15
    above = slopes["exponential"][2:]  # margins of at least 0: a loss of at most 1 each
    assert float((above.diff() / 20).abs().max()) <= 1


def test_one_layer_of_a_student_keeps_what_no_sample_sees_and_the_run_says_so() -> None:
    model = MODELS["distillation"]
    assert "of which a deep one has a multiple" in model.theorem
    for depth in (1, 2):
        told = [one.text for one in model.premises(SimpleNamespace(depth=depth))]
        assert any("theorem 5.1 asks for 0" in one for one in told) == (depth == 1)
    X, teacher = np.array([[2.0, 0.0, 0.0]]), np.array([1.0, 3.0, -1.0])
    limit = distillation.distillation_limit(X, teacher, np.array([0.3, 0.4, -0.5]), depth=1)
    np.testing.assert_allclose(limit.zeta, [1.0, 0.4, -0.5], atol=1e-12)


def test_theorem_3_1_of_the_thesis_is_of_almost_all_data_and_the_run_says_so() -> None:
    (one,) = [one for one in MODELS["orthosep"].assumes if one.name == "almost all data"]
    assert (one.known, dict(one.where)) == ("cannot be checked", {"slope": (0.0,)})
    assert one.text in assumptions_page()


def test_constant_experts_are_units_of_equation_22_behind_inputs_of_ones() -> None:
    rng = np.random.default_rng(4)
    gates = rng.integers(0, 2, size=(30, 12)).astype(float)
    X, y = rng.normal(size=(30, 5)), np.sign(gates @ rng.normal(size=12) + 0.01)
    constant = ib.limits.solve_dlgn_svm(X, y, gates, experts="constant")
    units = ib.solve_frelu_svm(np.ones_like(X), y, gates)
    assert constant.objective == pytest.approx(units.objective, rel=1e-7)
    assert "by analogy with Gunasekar" in MODELS["dlgn"].theorem
    assert "Gunasekar" not in MODELS["dlgn"].source


# Pages.
@pytest.mark.parametrize(
    ("page", "figure"),
    [
        ("thesis", "3.1 two layers"), ("thesis", "3.4 singular"), ("thesis", "6.6 confidence"),
        ("thesis", "E.1 all later"), ("deep-gated", "3: convergence"),
        ("half-space-features", "2: data"),
    ],
)  # fmt: skip
def test_the_label_of_a_figure_says_what_its_text_says(page, figure) -> None:
    (row,) = [one for one in lines(f"research/{page}.md") if one[0].startswith(figure)]
    assert row[1].startswith("differs"), row


def test_nothing_is_said_to_be_measured_on_a_gpu_that_was_not() -> None:
    told = " ".join(text_of("trainers.md").split())
    assert "to the weights of the CPU up to rounding (a test" not in told
    assert "was measured on none" in told


def test_lowest_versions_are_those_that_import_beside_numpy_2() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {"cvxpy>=1.5.2", "osqp>=0.6.7.post3", "scs>=3.2.7"} <= set(extras["cvxpy"])
    assert "joblib>=1.4" in extras["sweep"]
    assert {f"Programming Language :: Python :: 3.{k}" for k in (11, 12, 13)} <= set(
        project["classifiers"]
    )
    assert "Nothing was tried on Python 3.12" not in text_of("installing.md")


@pytest.mark.parametrize("name", ["HardMarginSVM", "SVML2", "ContextSVMs"])
def test_the_quadratic_form_of_a_printed_program_goes_to_osqp(name) -> None:
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(2)
    X, contexts = rng.normal(size=(12, 3)), rng.integers(0, 2, size=(12, 2))
    y = np.sign(X @ [1.0, -2.0, 0.5])
    program = getattr(ib.programs, name)
    gated = [] if name == "HardMarginSVM" else [contexts]
    problem = (program(2) if name == "SVML2" else program()).literal(X, y, *gated)
    with pytest.raises(cvxpy.error.SolverError):
        problem.solve(solver="OSQP")
    (norm,) = problem.objective.args
    objective = cvxpy.Minimize(cvxpy.sum_squares(norm.args[0]))
    squared = cvxpy.Problem(objective, problem.constraints)
    squared.solve(solver="OSQP", eps_abs=1e-9, eps_rel=1e-9, max_iter=200_000)
    assert math.sqrt(squared.value) == pytest.approx(problem.solve(solver="CLARABEL"), rel=1e-5)


# Statements of the sources by their names.
@pytest.mark.parametrize("kind", ["logistic", "exponential"])
def test_lemma_b_11_of_the_gln_paper_limits_of_gradients_are_sums_over_the_support(kind) -> None:
    X = torch.tensor([[1.0, 1.0], [1.0, -1.0], [2.0, 1.0], [3.0, 0.5]], dtype=torch.float64)
    y, along = torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float64), torch.tensor([1.0, 0.0])
    # The direction is (1, 0), with margins 1, 1, 2, 3; what is bounded decides within the support.
    for size, off in ((50.0, 0.3), (300.0, -0.2)):
        beta = size * along.double() + torch.tensor([0.0, off], dtype=torch.float64)
        slopes = -mean_loss_gradient(X @ beta, y, kind)
        z = X.T @ slopes
        z = z / z.norm()
        support = np.exp([-off, off])
        expected = support @ X[:2].numpy()
        np.testing.assert_allclose(z, expected / np.linalg.norm(expected), atol=1e-12)
        assert float(slopes[2:].sum() / slopes.sum()) < 1e-20


def stacked(*networks: ReLUWeights) -> ReLUWeights:
    """Networks side by side, whose scores are added."""
    depth = len(networks[0].matrices)
    matrices = [np.vstack([one.matrices[0] for one in networks])]
    for k in range(1, depth - 1):
        rows = [one.matrices[k] for one in networks]
        block = np.zeros((sum(len(W) for W in rows), sum(W.shape[1] for W in rows)))
        at = [0, 0]
        for W in rows:
            block[at[0] : at[0] + len(W), at[1] : at[1] + W.shape[1]] = W
            at = [at[0] + len(W), at[1] + W.shape[1]]
        matrices.append(block)
    matrices.append(np.hstack([one.matrices[-1] for one in networks]))
    biases = [np.concatenate([one.biases[k] for one in networks]) for k in range(depth - 1)]
    return ReLUWeights.from_arrays(matrices, [*biases, sum(one.biases[-1] for one in networks)])


def keys(surface) -> set[tuple[float, ...]]:
    """Pieces with their indices; ends in a fixed order, to 6 digits."""
    found = set()
    for ends, index in zip(surface.segments, surface.index, strict=True):
        first, second = sorted(tuple(np.round(end, 6) + 0.0) for end in ends)
        found.add((*first, *second, float(index)))
    return found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lemma_a_1_a_union_of_two_surfaces_has_the_larger_order_at_most(seed) -> None:
    one, other = draw((2, 3, 2, 1), seed), draw((2, 2, 3, 1), seed + 10)
    orders = [fold_surface(each, SQUARE).order for each in (one, other)]
    assert fold_surface(stacked(one, other), SQUARE).order <= max(orders) <= 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lemmas_a_3_to_a_6_and_a_16_pieces_lie_in_cells_of_lower_ones_in_one_way(seed) -> None:
    network = draw((2, 3, 3, 1), seed)
    surface = fold_surface(network, SQUARE)
    # A.4, A.5: a canonical form, whose indices go up to the order without a gap.
    assert set(surface.index) == set(range(1, surface.order + 1))
    assert surface.order <= len(network.matrices) - 1  # corollary A.1
    # A.6: another network of the same function has the same.
    assert keys(fold_surface(act(network, seed)[0], SQUARE)) == keys(surface)
    # A.3, A.16: no piece is crossed by one of lower index, and each is in its unit's zero set.
    for k, (p, q) in enumerate(surface.segments):
        inside = p + (q - p) * np.linspace(0.01, 0.99, 7)[:, None]
        z = network.pre_activations(inside)[surface.layer[k] - 1][:, surface.unit[k]]
        np.testing.assert_allclose(z, 0, atol=1e-7)
        for a, b in surface.segments[surface.index < surface.index[k]]:
            normal = np.array([a[1] - b[1], b[0] - a[0]])
            sides = (np.array([p, q]) - a) @ normal / np.linalg.norm(normal)
            if sides[0] * sides[1] < -1e-12:  # its line is crossed: beyond the ends of the piece
                at = p + (q - p) * sides[0] / (sides[0] - sides[1])
                share = (at - a) @ (b - a) / ((b - a) @ (b - a))
                assert not 1e-6 < share < 1 - 1e-6


@pytest.mark.parametrize("d", [2, 3, 5])
def test_lemma_a_19_affine_functions_that_vanish_on_a_hyperplane_are_proportional(d) -> None:
    rng = np.random.default_rng(d)
    w, b = rng.normal(size=d), 0.7
    F = rng.normal(size=(d, d))
    F -= ((F @ w + b) / (w @ w))[:, None] * w  # d points of the hyperplane, in general position
    values = np.linalg.svd(np.column_stack([F, np.ones(d)]))
    null = values.Vh[-1]
    assert values.S[-1] > 1e-3  # rank d: one dimension is left, that of (w, b)
    assert abs(null @ [*w, b]) / np.linalg.norm([*w, b]) == pytest.approx(1, abs=1e-12)


def gain(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """G of (3.12) for the logistic loss."""
    return float(0.5 * y @ np.maximum(X @ w, 0))


@pytest.mark.parametrize("seed", range(6))
def test_lemma_b_1_at_an_extremal_direction_the_gradient_is_along_it(seed) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(7, 2)), np.array([1.0, -1, 1, 1, -1, 1, -1])
    turns = np.linspace(0, 2 * np.pi, 200_001)
    circle = np.column_stack([np.cos(turns), np.sin(turns)])
    values = 0.5 * np.maximum(circle @ X.T, 0) @ y
    for k in np.flatnonzero((values[1:-1] > values[:-2]) & (values[1:-1] > values[2:])) + 1:
        w = circle[k]
        tight = np.abs(X @ w) < 1e-4
        P = np.eye(2)
        for x in X[tight]:
            P = P - np.outer(P @ x, P @ x) / (x @ P @ x)
        g = P @ X.T @ (0.5 * y * ((X @ w > 0) & ~tight))
        assert np.linalg.norm(g - (g @ w) * w) < 1e-3 * np.linalg.norm(X)


def test_lemma_b_2_the_gain_is_linear_along_short_lines() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(8, 3)), np.sign(rng.normal(size=8))
    w = np.cross(X[0], X[1])  # orthogonal to two samples
    w /= np.linalg.norm(w)
    for _ in range(20):
        v = rng.normal(size=3)
        for epsilon in (1e-3, 1e-5):
            to = w + epsilon * v
            change = epsilon * 0.5 * y * (X @ to > 0) @ (X @ v)
            expected = (gain(w, X, y) + change) / np.linalg.norm(to)
            assert gain(to / np.linalg.norm(to), X, y) == pytest.approx(expected, abs=1e-13)


def test_lemma_b_3_a_neuron_slides_along_a_sample_that_holds_it() -> None:
    X, y = np.array([[1.0, 0.5], [0.5, 1.5]]), np.array([1.0, -1.0])
    w, a, step = np.array([0.9, -0.3]), 1.0, 1e-6  # orthogonal to the second sample
    before = w.copy(), a
    for _ in range(2000):
        slopes = y / (1 + np.exp(y * a * np.maximum(X @ w, 0)))  # -l'
        opened = X @ w > 0
        w, a = w + step * a * X.T @ (slopes * opened), a + step * slopes @ np.maximum(X @ w, 0)
    # Away from the second sample, along the projection of the first off it.
    P = np.eye(2) - np.outer(X[1], X[1]) / (X[1] @ X[1])
    slope = 1 / (1 + math.exp(before[0] @ X[0]))
    np.testing.assert_allclose((w - before[0]) / 2e-3, slope * P @ X[0], atol=2e-3)
    assert (a - before[1]) / 2e-3 == pytest.approx(slope * before[0] @ X[0], rel=5e-3)


def test_lemma_b_5_a_neuron_that_is_open_on_a_sample_of_its_sign_stays_open() -> None:
    X, y = ib.datasets.make_orthosep(40, 5, random_state=3)
    rng = np.random.default_rng(0)
    W = 0.1 * rng.normal(size=(12, 5))
    a = np.linalg.norm(W, axis=1) * np.where(np.arange(12) % 2, 1, -1)
    own = np.sign(a)[:, None] == y
    opened = (W @ X.T > 0) & own
    assert opened.any(axis=1).sum() > 8
    for _ in range(3000):
        z = W @ X.T
        assert (z[opened] > 0).all()
        slopes = y / (1 + np.exp(y * (a @ np.maximum(z, 0))))
        W, a = W + 1e-3 * a[:, None] * ((z > 0) * slopes) @ X, a + 1e-3 * np.maximum(z, 0) @ slopes
