"""Pictures of certified local optima of ReLU networks."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from implicit_bias import ReLU
from implicit_bias.limits import relu_local_limit, solve_relu_minnorm


def data(rank: int, n: int = 14) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, rank)), np.sign(rng.normal(size=n))


def test_on_the_circle_the_dual_function_is_one_at_the_units_and_nowhere_above() -> None:
    limit = solve_relu_minnorm(*data(2))
    ax = limit.plot()
    curves = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(curves) == {f"dual function of {sign} units" for sign in ("positive", "negative")}
    for curve in curves.values():
        assert curve.get_ydata().max() == pytest.approx(1.0, abs=1e-2)
        assert curve.get_ydata().max() <= 1 + 1e-7
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in dots) == len(limit.units)
    for line in dots:
        assert line.get_ydata() == pytest.approx(1.0, abs=1e-7)
    # Each unit is inside its shaded cone.
    spans = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    assert len(spans) == len(limit.units)
    places = np.concatenate([line.get_xdata() for line in dots])
    assert all(any(span.x0 <= place <= span.x1 for span in spans) for place in places)


def test_on_the_sphere_the_dual_function_is_largest_at_the_units() -> None:
    limit = solve_relu_minnorm(*data(3))
    ax = limit.plot()
    (image,) = ax.images
    assert np.abs(image.get_array()).max() == pytest.approx(1.0, abs=1e-2)
    marks = [line for line in ax.lines if line.get_marker() in "^v"]
    assert sum(len(line.get_xdata()) for line in marks) == len(limit.units)


def test_otherwise_values_fall_to_the_bound() -> None:
    X, y = data(6, 25)
    network = ReLU(6, 30, random_state=0)
    limit = relu_local_limit(network, X, y)
    ax = limit.plot()
    values, bound = ax.lines[0].get_ydata(), ax.lines[1].get_ydata()
    assert list(values[1:]) == list(limit.values) and bound[0] == limit.bound
    assert np.all(np.diff(values[1:]) <= 0) and values[-1] == pytest.approx(bound[0], rel=1e-7)
