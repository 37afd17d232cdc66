"""Local optima next to ReLU networks on their way: what a row says, and the picture of all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import implicit_bias as ib
from experiments import relu_limits


@pytest.mark.long
def test_a_row_has_the_optimum_of_the_network_that_it_trained(monkeypatch) -> None:
    monkeypatch.setitem(relu_limits.STEPS, "constant", (200, 0.1))
    row = relu_limits.row("random", "constant", 24, 0.3, 5, 1, 6.7985126)
    X, y = relu_limits.random()
    again = ib.ReLU(8, 24, init="kaiming", init_scale=0.3, random_state=1)
    settings = ib.TrainingSettings(
        trainer="constant", momentum=0.9, batch_size=5, schedule=((200, 0.1),), random_state=1
    )
    ib.train(again, X, y, settings=settings)
    limit = ib.limits.relu_local_limit(again, X, y, max_patterns=1)
    assert row["local"] == pytest.approx(limit.value, rel=1e-7) and row["gap"] < 1e-8
    # The network is no better than the optimum next to it, nor that than the best of all widths.
    assert 6.7985126 * (1 - 1e-7) < row["local"] <= row["value"]
    assert row["local"] <= row["local_50"] * 1.2 and np.isfinite(row["local_50"])
    # In its own gates, without cones, there is less to pay.
    assert 0 < row["machine"] <= row["value"] and row["machine_status"] == "SOLVED"


def test_an_optimum_is_that_of_the_end_to_a_millionth() -> None:
    values = np.array([[np.inf, 2.1, 2.0 + 1e-7, 2.0]])
    found = relu_limits.same_optimum(values, values[:, -1:])
    assert found.tolist() == [[False, False, True, True]]


def test_the_picture_has_every_certified_row() -> None:
    frame = pd.read_csv(relu_limits.__file__.replace("relu_limits.py", "results/relu_limits.csv"))
    reached, decided, far = relu_limits.draw(frame).axes
    certified = frame[frame.status != "FAILED"]
    shown = np.concatenate([line.get_xdata() for line in reached.lines])
    above = (100 * (certified.local / certified.best - 1)).clip(lower=0)
    np.testing.assert_allclose(np.sort(shown), np.sort(above), rtol=1e-6, atol=1e-9)
    assert len(decided.lines) == len(far.lines) == len(relu_limits.STEPS)
    assert all(line.get_ydata()[-1] == 100 for line in decided.lines)
