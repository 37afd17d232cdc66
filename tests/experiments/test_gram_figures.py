"""Spectra and curves of Gram matrices, against closed forms at small sizes."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import gram_figures
from experiments.gram_figures import cumulated, shown, spectrum
from experiments.spectra import ideal_matrix


def test_cumulated_eigenvalues_of_the_ideal_matrix_grow_at_a_constant_rate() -> None:
    n, depth = 50, 4
    sums, mu = cumulated(ideal_matrix(n, depth)), 0.5 ** (depth - 1)
    np.testing.assert_allclose(sums[:-1], np.arange(1, n) * (1 - mu), rtol=1e-12)
    assert sums[-1] - sums[-2] == pytest.approx(1 + (n - 1) * mu)
    found = spectrum(ideal_matrix(n, depth))
    at = shown(n)
    assert at[0] == 1 and at[-1] == n and len(found["sum"]) == len(at)
    np.testing.assert_allclose(found["scaled"] * (1 + (n - 1) * mu), found["sum"], rtol=1e-12)


def test_entries_behind_random_gates_have_the_means_of_the_ideal_matrix() -> None:
    found = gram_figures.entries(4, draws=60, width=30)
    for name in ("diagonal", "other"):
        assert abs(found[name] - found[f"ideal_{name}"]) < 4 * found[f"{name}_error"]
        assert found[f"{name}_error"] < 0.12
    assert found["ideal_other"] == 0.125


def test_curves_of_trained_networks_begin_as_the_law_of_their_kernel_says(monkeypatch) -> None:
    monkeypatch.setitem(gram_figures.STEPS, 20, 30)
    spectra, along = gram_figures.random_gates((20,), (2, 3), draws=2, n=12)
    left = {(row["depth"], row["how"], row["step"]): row["left"] for row in along}
    for depth in (2, 3):
        assert left[depth, "law", 0] == pytest.approx(1)
        assert left[depth, "trained", 1] == pytest.approx(left[depth, "law", 1], abs=0.02)
        assert left[depth, "trained", 30] < left[depth, "trained", 10] < 1
    assert {row["gates"] for row in spectra} == {"ideal", "random"}
    for row in spectra:
        assert row["sum_least"] <= row["sum"] <= row["sum_most"]


def test_deep_linear_networks_of_two_layers_take_the_step_that_is_known() -> None:
    rows = {row["step"]: row for row in gram_figures.linear(2, draws=3, steps=2)}
    # Signs in two layers: K_0 / d = 1 for every draw, and |W|^2 = 2 w / w.
    assert rows[0]["kernel_least"] == pytest.approx(1) == rows[0]["kernel_most"]
    assert rows[0]["norm"] == pytest.approx(2**0.5)
    # To first order in the rate the error keeps 0.9 of itself, up to 0.0025 (f - y) f.
    assert rows[1]["left"] == pytest.approx(0.81, abs=0.01)
