"""Full-width linear convolutions: the Fourier margin, groups, depths, and what trains to them."""

from __future__ import annotations

import json
import math
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import nn

import implicit_bias as ib
from experiments import convolution_programs as programs
from implicit_bias.limits import solve_convolution
from implicit_bias.networks import LinearConvolution
from tests.commands import run

RNG = np.random.default_rng(0)
D, N = 6, 4
X = RNG.normal(size=(N, D))
Y = np.array([1.0, -1.0, -1.0, 1.0])
S3 = programs.TABLES["permutations of 3"]
FAR = ib.TrainingSettings(trainer="annealed", schedule=((300, None),), n_checkpoints=2)


# One of each kind of group: circles of even and odd sizes, products, tables that do not commute.
@pytest.mark.parametrize("problem", [3, 4, 8, 11, 12, 13])
def test_the_optimum_is_that_of_the_paper_s_program_in_complex_numbers(problem) -> None:
    found = programs.row(problem)
    assert found["status"] == "SOLVED" and found["difference"] < 1e-6
    if "deep_status" in found:
        assert found["deep_status"] in ("LOCAL_OPTIMUM", "GLOBAL_OPTIMUM")
        assert found["residual"] < 1e-10 and 0 < found["bound_over_value"] <= 1 + 1e-9


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_one_sample_has_its_largest_frequency_alone_at_every_depth(depth) -> None:
    x = RNG.normal(size=(1, 7))
    sizes = np.abs(np.fft.fft(x[0], norm="ortho"))[:4]
    # A real wave of two conjugate frequencies costs 2^(L/2) |b_f|, and scores 2 |b_f| |x_f|.
    closed = min(1 / sizes[0], *(2 ** (depth / 2 - 1) / sizes[1:]))
    found = solve_convolution(x, [-1.0], depth)
    value = found.objective if depth == 2 else found.value
    assert value == pytest.approx(closed, rel=1e-8)
    assert found.status.name == ("SOLVED" if depth == 2 else "GLOBAL_OPTIMUM")
    own = np.abs(np.fft.fft(found.zeta))
    assert np.sum(own > 1e-6 * own.max()) == (1 if closed == 1 / sizes[0] else 2)


def test_with_one_layer_it_is_the_hard_margin_svm() -> None:
    assert solve_convolution(X, Y, 1).objective == ib.solve_linear_svm(X, Y).objective


def test_a_table_of_a_circle_is_the_circle_and_that_of_permutations_has_their_blocks() -> None:
    table = np.add.outer(range(D), range(D)) % D
    circle = solve_convolution(X, Y)
    assert solve_convolution(X, Y, group=table).objective == pytest.approx(circle.objective, 1e-7)
    other = solve_convolution(X, Y, group=S3)
    # Irreducible representations of the permutations of three: the trivial one, the sign, and that
    # on the plane where coordinates sum to 0.
    plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    matrices = [np.eye(3)[list(p)].T for p in permutations(range(3))]
    blocks = [
        sum(b * np.array([[1.0]]) for b in other.zeta),
        sum(b * np.array([[np.linalg.det(P)]]) for b, P in zip(other.zeta, matrices, strict=True)),
        sum(b * plane @ P @ plane.T for b, P in zip(other.zeta, matrices, strict=True)),
    ]
    schatten = sum(len(B) * np.linalg.svd(B, compute_uv=False).sum() for B in blocks)
    assert other.objective == pytest.approx(schatten / math.sqrt(D), rel=1e-7)


def test_torch_s_own_layers_are_this_network_up_to_the_root_of_the_inputs() -> None:
    w = torch.tensor(RNG.normal(size=(3, D)))
    network = LinearConvolution.from_weights(*w)
    h = torch.tensor(X)[:, None]
    for one in w[:2]:
        h = nn.functional.conv1d(nn.functional.pad(h, (0, D - 1), "circular"), one.view(1, 1, D))
    torch.testing.assert_close(network(torch.tensor(X)), h[:, 0] @ w[2] / D)
    # A kernel that is one at the neutral element moves nothing, of a group that does not commute.
    still = LinearConvolution.from_weights(np.eye(D)[0], w[0], group=S3)
    torch.testing.assert_close(still.zeta(), w[0] / math.sqrt(D))


@pytest.mark.parametrize("depth", [2, 3])
def test_no_weights_have_a_smaller_value_and_those_of_its_frequencies_have_it(depth) -> None:
    limit = solve_convolution(X, Y, depth)
    value = limit.objective if depth == 2 else limit.value
    waves = np.fft.fft(limit.zeta, norm="ortho")
    size = np.abs(waves) ** (1 / depth)
    phase = np.where(size > 0, waves / np.maximum(np.abs(waves), 1e-300), 1)
    kernels = [np.fft.ifft(one, norm="ortho").real for one in [size] * (depth - 1) + [size * phase]]
    network, sample = LinearConvolution.from_weights(*kernels), ib.Sample(X, Y, None)
    assert ib.measures.value_of(network, sample) == pytest.approx(value, rel=1e-7)
    bound = limit.dual_objective if depth == 2 else limit.certificate.lower_bound
    for seed in range(200):
        random = LinearConvolution(D, depth, random_state=seed, init="balanced")
        found = ib.measures.value_of(random, sample)
        assert math.isnan(found) or found >= bound


@pytest.mark.parametrize("group", [None, (2, 3), S3], ids=["circle", "circles", "table"])
def test_training_comes_to_the_limit_of_its_group(group) -> None:
    limit = solve_convolution(X, Y, group=group)
    network = LinearConvolution(D, group=group, random_state=1)
    ib.train(network, X, Y, settings=FAR)
    found = ib.compare(limit, network, *[ib.Sample(X, Y, None)] * 2)
    assert 0.999 < found.margin_ratio <= 1 and found.largest_dual_norm < 1.01


def test_three_layers_end_at_a_certified_point_and_not_at_others() -> None:
    network = LinearConvolution(D, 3, random_state=1)
    ib.train(network, X, Y, settings=FAR)
    point = solve_convolution(X, Y, 3, start=network.zeta().detach())
    value = ib.measures.value_of(network, ib.Sample(X, Y, None))
    assert point.status.severity == 0 and point.value == pytest.approx(value, rel=1e-3)

    def quasi(b: np.ndarray) -> float:
        return float(
            np.sum(np.abs(np.fft.fft(b, norm="ortho")) ** (2 / 3)) ** 1.5 / (Y * (X @ b)).min()
        )

    assert quasi(point.zeta) == pytest.approx(point.value, rel=1e-9)
    size = np.abs(point.zeta).max()
    near = [quasi(point.zeta + 1e-4 * size * RNG.normal(size=D)) for _ in range(300)]
    assert min(near) > point.value
    # Points and multipliers of others are proved, or not, from the arrays alone.
    assert point.certify(X, Y).value == pytest.approx(point.value)
    moved = ib.limits.ConvolutionPoint(
        **{**vars(point), "zeta": point.zeta + 1e-3 * size * RNG.normal(size=D)}
    )
    assert moved.certify(X, Y).status.name == "FAILED"
    assert point.certify(X + 1e-3, Y).status.name == "FAILED"


def test_a_start_decides_which_point_is_found() -> None:
    values = {
        round(solve_convolution(X, Y, 4, start=RNG.normal(size=D)).value, 6) for _ in range(6)
    }
    assert len(values) > 1
    bound = solve_convolution(X, Y, 4).certificate.lower_bound
    assert min(values) >= bound * (1 - 1e-6)


@pytest.mark.parametrize("depth, group", [(2, None), (3, None), (2, S3)])
def test_what_nothing_separates_is_proved_at_every_depth_and_group(depth, group) -> None:
    found = solve_convolution(np.vstack([X, X[:1]]), [*Y, -Y[0]], depth, group)
    assert found.status.name == "NOT_SEPARABLE"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: solve_convolution(X, Y, group=(2, 2)), "has no place on a circle"),
        (lambda: solve_convolution(X, Y, group=np.zeros((D, D), dtype=int)), "table of a group"),
        (lambda: solve_convolution(X, Y, group=[[1, 2], [3]]), "`group` must be None"),
        (lambda: solve_convolution(X, Y, group=S3[:2, :2]), r"table \(6, 6\)"),
        (lambda: solve_convolution(X, Y, 3, S3), "`depth` 3 needs circles"),
        (lambda: solve_convolution(X, Y, 2, start=X[0]), "`start` is for more than two layers"),
        (lambda: solve_convolution(X, Y, 3, start=X[0, :3]), "zeta"),
        (lambda: LinearConvolution.from_weights(X[0], X[0, :3]), "as wide as the inputs"),
        (lambda: LinearConvolution(D, group=S3, init="balanced"), "take 'kaiming'"),
    ],
)
def test_what_is_no_full_width_convolution_is_refused_in_one_message(call, said) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        call()


class Layers(nn.Module):
    """Circular convolutions of any kernel below a linear layer, in torch's own layers."""

    def __init__(self, kernel: tuple[int, int], n_convolutions: int = 1) -> None:
        super().__init__()
        how = {"padding": "same", "padding_mode": "circular", "bias": False, "dtype": torch.double}
        layers = [nn.Conv2d(1, 1, kernel, **how) for _ in range(n_convolutions)]
        self.below = nn.Sequential(*layers)
        self.above = nn.Linear(D, 1, bias=False, dtype=torch.double)
        self.degree = 1 + n_convolutions

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.above(self.below(x.view(-1, 1, 2, 3)).flatten(1))[:, 0]


def test_a_module_of_torch_s_layers_is_diagnosed_on_its_circles_by_name_and_scale() -> None:
    torch.manual_seed(0)
    network = Layers((2, 3))
    ib.train(network, X, Y, settings=FAR)
    report = ib.diagnose(network, X, Y)
    assert report.verdict.word == "AT ITS LIMIT"
    assert "Gunasekar et al. 2018, theorem 2" in str(report)
    exact = solve_convolution(X, Y, group=(2, 3)).objective
    assert report.limit.objective == pytest.approx(exact / math.sqrt(D), rel=1e-7)
    deep = Layers((2, 3), 2)
    ib.train(deep, X, Y, settings=FAR)
    report = ib.diagnose(deep, X, Y)
    assert report.verdict.word == "AT A LOCAL LIMIT" and len(report.verdicts) == 2
    bound = solve_convolution(X, Y, 3, (2, 3)).certificate.lower_bound
    assert "several full-width linear convolutions" in str(report)
    assert report.limit.objective == pytest.approx(bound / D, rel=1e-6)
    assert "Gunasekar" not in str(ib.diagnose(Layers((2, 2)), X, Y))


def test_a_run_of_three_layers_stands_beside_its_point_and_the_bound() -> None:
    done = run("--model", "convolution", "--depth", 3, "--n-train", 12, "--steps", 400,
               "--checkpoints", 3, "--json", "--quiet")  # fmt: skip
    record = json.loads(done.stdout)
    words = {one["word"] for one in record["verdicts"]}
    assert words == {"AT A LOCAL LIMIT", "BOUND"}, record["verdicts"]
    beside = record["limit_comparison"]
    assert 0.99 < beside["local_ratio"] <= 1 + 1e-6 and beside["bound_ratio"] < 1
    several = run("--model", "convolution", "--depth", 3, "--trainer", "annealed,momentum")
    assert several.exit_code == 2 and "`--depth 3` takes one `--trainer`" in several.stderr
