"""What the experiments on kernels compute, against closed forms at small sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from click.testing import CliRunner

import implicit_bias as ib
from experiments import first_step, galu, path_kernels, spectra
from experiments.spectra import Case
from implicit_bias import kernels

RNG = np.random.default_rng(3)


def test_the_ideal_matrix_is_the_mean_over_gates_and_has_the_ideal_spectrum() -> None:
    n, depth, width = 4, 3, 6
    np.testing.assert_allclose(
        np.linalg.eigvalsh(spectra.ideal_matrix(n, depth)),
        kernels.spectrum_ideal(n, 0.5, depth), atol=1e-14,
    )  # fmt: skip
    widths, draws = (width,) * (depth - 1), 300
    variance = ib.networks.initial_variance(widths=widths, gate_rate=spectra.RATE) ** (depth - 1)
    table = ib.gates.RandomGates(widths=widths, rate=spectra.RATE).fit_transform(
        np.ones((draws * n, 1))
    )
    means = np.array(
        [variance * kernels.path_overlap(gates, widths=widths) for gates in np.split(table, draws)]
    )
    errors = means.std(axis=0) / math.sqrt(draws)
    assert np.all(np.abs(means.mean(axis=0) - spectra.ideal_matrix(n, depth)) < 4.5 * errors)


@pytest.mark.parametrize("degrees", [3.0, 12.5])
def test_the_wishart_matrix_has_the_mean_and_the_mean_square_it_was_made_for(degrees) -> None:
    A = RNG.normal(size=(4, 6))
    mean = A @ A.T / 6
    drawn = np.array([spectra.wishart(mean, degrees, RNG) for _ in range(2000)])
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.1)
    squares = np.einsum("kij,kij->k", drawn, drawn)
    wanted = (1 + 1 / degrees) * np.sum(mean**2) + np.trace(mean) ** 2 / degrees
    assert abs(squares.mean() - wanted) < 4 * squares.std() / math.sqrt(len(squares))
    spread = np.full((4, 4), (wanted - np.sum(mean**2)) / 16)
    assert spectra.degrees_of_freedom(mean, spread) == pytest.approx(degrees)
    assert spectra.wishart(mean, spectra.degrees_of_freedom(mean, 0 * mean), RNG) is mean


def test_steps_are_those_of_one_eigenvalue_and_none_suffice_outside_the_range() -> None:
    # Rate 0.1 / lambda: each step takes a tenth, and 0.9^22 < 0.1 < 0.9^21.
    assert spectra.steps_until(kernels.kernel_regression(3 * np.eye(2), [1.0, -2.0])) == 22
    assert spectra.steps_until(kernels.kernel_regression(np.ones((2, 2)), [1.0, -1.0])) == math.inf


def test_a_network_with_small_errors_takes_the_steps_of_its_kernel() -> None:
    case = Case(20, 3, 1, n=4)
    found = spectra.row(case, train=True, most=5000)
    assert found["small_steps"] == pytest.approx(found["steps"], rel=0.06)
    assert abs(found["small_growth"] - 1) < 0.03
    assert all(found["gates_least"] <= found[f"{name}largest"] for name in spectra.LINES)


def test_moments_of_a_deep_linear_network_are_those_of_its_draws() -> None:
    found = first_step.row(4, 10, draws=4, kernels=500)
    assert abs(found["mean"] - found["predicted_mean"]) < 4 * found["mean_error"]
    assert found["predicted_mean"] == pytest.approx(4)
    assert found["variance"] == pytest.approx(found["predicted_variance"], rel=0.4)
    # To leading order (2/3)(d-1)(d-2)(2d-3)/w = 2; as printed d^2/w = 1.6 would not grow as d^3.
    assert found["share_least"] < found["predicted_share"] < found["share_largest"]


def test_both_kinds_have_the_same_weights_and_the_relu_network_its_own_gates() -> None:
    X = RNG.uniform(-1, 1, (7, 2))
    found = galu.networks(3, 5, 1, X)
    (gated, given, _), (relu, none, own) = found["galu"], found["relu"]
    assert none is None and np.any(given != own)
    with_own = spectra.scores(gated, X, own)
    np.testing.assert_allclose(with_own, spectra.scores(relu, X, None), atol=1e-12)
    assert galu.spectrum(np.eye(5)) == {"largest": 1.0, "median": 1.0, "spread": 5.0}
    assert galu.spectrum(np.ones((5, 5)))["spread"] == pytest.approx(1)


def test_an_experiment_keeps_what_it_has_and_leaves_out_what_is_not_separable(
    tmp_path, monkeypatch
) -> None:
    train, held_out = path_kernels.pair(None, 30, seed=1)
    assert len(train.y) == 30 and len(train.y) + len(held_out.y) == 360
    monkeypatch.setattr(path_kernels, "CASES", (path_kernels.Case((6,), "squared"),))
    options = ["--seeds", "1", "--n-train", "30", "--steps", "5", "--out", str(tmp_path)]
    for _ in range(2):  # the second time nothing is run again
        done = CliRunner().invoke(path_kernels.main, options, catch_exceptions=False)
        assert done.exit_code == 0
    written = (tmp_path / "path_kernels_digits.csv").read_text().splitlines()
    assert len({line.split(",")[3] for line in written[1:]}) == len(written) - 1
    # Six units leave a sample without an active path: no machine, and no error of one.
    assert {line.split(",")[5] for line in written[1:]} == {"inf"}
    assert {line.split(",")[6] for line in written[1:]} == {""}
