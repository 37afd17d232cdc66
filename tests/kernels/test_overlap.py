"""Overlaps of paths against lists of paths, and what random gates do to spectra."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from implicit_bias.gates import RandomGates
from implicit_bias.kernels import (
    neural_path_kernel,
    nu,
    overlap_ratio,
    path_overlap,
    spectrum_ideal,
)

RNG = np.random.default_rng(0)
N, M, D, WIDTHS = 7, 4, 3, (3, 2, 4)
X, X2 = RNG.normal(size=(N, D)), RNG.normal(size=(M, D))
GATES, GATES2 = RNG.normal(size=(N, 9)), RNG.uniform(size=(M, 9))


def activities(gates: np.ndarray) -> np.ndarray:
    """(n, P) products of the gates along every path."""
    layers = np.split(gates, np.cumsum(WIDTHS)[:-1], axis=1)
    paths = list(product(*map(range, WIDTHS)))
    return np.array(
        [[np.prod([g[n, i] for g, i in zip(layers, p, strict=True)]) for p in paths]
         for n in range(len(gates))]
    )  # fmt: skip


def test_overlap_and_path_kernel_are_gram_matrices_of_listed_paths() -> None:
    A, A2 = activities(GATES), activities(GATES2)
    np.testing.assert_allclose(path_overlap(GATES, widths=WIDTHS), A @ A.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        path_overlap(GATES, gates2=GATES2, widths=WIDTHS), A @ A2.T, rtol=1e-12, atol=1e-14
    )
    features = (X[:, :, None] * A[:, None]).reshape(N, -1)
    features2 = (X2[:, :, None] * A2[:, None]).reshape(M, -1)
    for others, expected in (((), features), ((X2, GATES2), features2)):
        kernel = neural_path_kernel(X, GATES, *others, widths=WIDTHS)
        np.testing.assert_allclose(kernel, features @ expected.T, rtol=1e-11, atol=1e-13)


def test_a_kernel_of_more_than_one_block_of_rows_is_the_same() -> None:
    n = 5001  # blocks have 25 million entries: the last row is one of its own
    gates, X = RNG.normal(size=(n, 1)), RNG.normal(size=(n, 1))
    kernel = neural_path_kernel(X, gates, widths=(1,))
    np.testing.assert_allclose(kernel, np.outer(X * gates, X * gates), rtol=1e-12)


def test_without_hidden_layers_there_is_one_path() -> None:
    assert np.array_equal(path_overlap(np.ones((2, 0)), widths=()), np.ones((2, 2)))
    kernel = neural_path_kernel(X, np.ones((N, 0)), widths=())
    np.testing.assert_allclose(kernel, X @ X.T, rtol=1e-14)


def test_overlap_ratio_compares_different_samples_alone_and_bounds_the_overlap() -> None:
    gates = (RNG.random((12, 9)) < 0.7).astype(float)
    gates[:, [0, 3, 5]] = 1.0
    eta = overlap_ratio(gates, widths=WIDTHS)
    overlap = path_overlap(gates, widths=WIDTHS)
    off = overlap - np.diag(overlap.diagonal())
    assert np.all(off <= eta**3 * overlap.diagonal()[:, None] * (1 + 1e-12))
    # As printed, the maximum includes s' = s and says nothing.
    assert overlap_ratio([[1, 1, 0], [0, 1, 1]], widths=(3,)) == 0.5
    assert overlap_ratio([[1, 1, 0], [1, 0, 0]], widths=(3,)) == 1.0
    assert overlap_ratio([[1, 0], [0, 0]], widths=(2,)) == 0.0


def test_paths_of_random_gates_overlap_by_one_factor_of_their_rate_a_hidden_layer() -> None:
    # The introduction of the source says rate ** depth; gates act in depth - 1 layers.
    rate, depth, width, n = 0.5, 4, 60, 120
    widths = (width,) * (depth - 1)
    gates = RandomGates(widths=widths, rate=rate, random_state=0).fit_transform(np.ones((n, 1)))
    overlap = path_overlap(gates, widths=widths) / (rate * width) ** (depth - 1)
    own, shared = overlap.diagonal().mean(), overlap[np.triu_indices(n, 1)].mean()
    assert own == pytest.approx(1, abs=0.05)
    assert shared == pytest.approx(rate ** (depth - 1), rel=0.05)
    ideal = np.full((n, n), rate ** (depth - 1)) + (1 - rate ** (depth - 1)) * np.eye(n)
    np.testing.assert_allclose(spectrum_ideal(n, rate, depth), np.linalg.eigvalsh(ideal), rtol=1e-9)


def test_nu_is_the_misfit_of_targets_to_a_kernel_of_trace_one() -> None:
    A, y = RNG.normal(size=(6, 6)), RNG.normal(size=6)
    K = A @ A.T
    expected = y @ np.linalg.inv(K / np.trace(K)) @ y
    assert nu(K, y) == pytest.approx(expected, rel=1e-9)
    assert nu(7 * K, y) == pytest.approx(expected, rel=1e-9)
    assert nu(np.outer(y, y), y) == pytest.approx(y @ y, rel=1e-9)
    assert nu(np.ones((2, 2)), [1.0, -1.0]) == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: path_overlap(GATES, widths=(3, 2)), r"shape \(n, 5\).* one gate a hidden unit"),
        (lambda: path_overlap(GATES * np.nan, widths=WIDTHS), "NaN or infinite"),
        (lambda: neural_path_kernel(X[:3], GATES, widths=WIDTHS), r"`gates` must have shape \(3,"),
        (lambda: neural_path_kernel(X, GATES, X2, widths=WIDTHS), "go together"),
        (lambda: neural_path_kernel(X, GATES, X2[:, :2], GATES2, widths=WIDTHS), r"shape \(m, 3\)"),
        (lambda: nu(np.ones((2, 3)), [1.0, 1.0]), "must be square"),
        (lambda: nu([[1.0, 0.5], [0.0, 1.0]], [1.0, 1.0]), "must be symmetric"),
        (lambda: nu(np.zeros((2, 2)), [1.0, 1.0]), "no sample has an active path"),
        (lambda: nu(np.eye(2), [1.0]), r"`y` must be finite, of shape \(2,\)"),
        (lambda: spectrum_ideal(3, 1.5, 2), r"`rate` in \[0, 1\]"),
        (lambda: overlap_ratio(np.ones((2, 0)), widths=()), "`widths` is empty"),
        (lambda: path_overlap(np.ones((400_000, 1)), widths=(1,)), "GiB"),
    ],
)
def test_what_is_no_kernel_is_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
