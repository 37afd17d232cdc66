"""The circle: labels, halves and gaps."""

import numpy as np
import pytest

from implicit_bias import load_data
from implicit_bias.data import circle_values, is_easy
from implicit_bias.datasets import make_circle


def test_labels_are_the_signs_of_two_frequencies_on_two_halves() -> None:
    X, y = make_circle(3000, gap=0.03, random_state=1)
    angle = np.arctan2(X[:, 1], X[:, 0]) % (2 * np.pi)
    frequency = np.where(angle < np.pi, 2, 10)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    np.testing.assert_array_equal(y, np.sign(np.sin(frequency * angle)))
    np.testing.assert_allclose(circle_values(X), np.sin(frequency * angle), atol=1e-12)
    np.testing.assert_array_equal(is_easy(X), angle < np.pi)
    # Labels change at multiples of pi / 2 above and of pi / 10 below: all are that far away.
    period = np.pi / frequency
    off = np.abs((angle + period / 2) % period - period / 2)
    assert 0.03 <= off.min() < 0.031
    # Twelve arcs, the angle 0 being one of the ends.
    in_order = y[np.argsort(angle)]
    assert np.count_nonzero(np.diff(in_order)) == 11


def test_the_catalogue_has_it_and_sizes_out_of_range_are_told() -> None:
    data = load_data("circle", n_train=30, n_val=20, random_state=2)
    assert data.X_train.shape == (30, 2) and len(data.y_val) == 20
    for bad in ({"n": 0}, {"n": 5, "gap": 0.2}):
        with pytest.raises(ValueError, match="must"):
            make_circle(**bad)
