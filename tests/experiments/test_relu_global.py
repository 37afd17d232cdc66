"""Networks of plain PyTorch on data of scikit-learn, and the programs that time their limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from experiments import relu_global, relu_speed


def test_a_network_of_plain_pytorch_has_a_local_optimum_and_the_global_one(tmp_path) -> None:
    found = relu_global.row("moons", 12, steps=300)
    assert found["status"] == "GLOBAL_OPTIMUM"
    assert found["local_status"] in {"LOCAL_OPTIMUM", "LIVE_OPTIMUM", "GLOBAL_OPTIMUM"}
    assert found["best"] <= found["local"] * (1 + 1e-9) <= found["network"] * (1 + 1e-9)
    assert found["bound"] == pytest.approx(found["best"], rel=1e-6)
    # That of all widths does not depend on the network it began at.
    committed = pd.read_csv(
        relu_global.__file__.replace("relu_global.py", "results/relu_global.csv")
    )
    moons = committed[committed.data == "moons"].iloc[0]
    assert moons.best == pytest.approx(found["best"], rel=1e-6)
    # What is there is kept.
    pd.DataFrame([found | {"width": relu_global.WIDTH, "best": 1.5},
                  found | {"data": "wine", "width": relu_global.FEW}]).to_csv(
        tmp_path / "relu_global.csv", index=False
    )  # fmt: skip
    result = CliRunner().invoke(relu_global.main, ["--data", "moons", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert list(pd.read_csv(tmp_path / "relu_global.csv").best) == [1.5, found["best"]]


def test_one_row_of_times_agrees_with_cvxpy(monkeypatch) -> None:
    monkeypatch.setattr(relu_speed, "STEPS", 300)
    found = relu_speed.row(20, 12)
    assert abs(found["clarabel_difference"]) < 1e-6 and found["first_gap"] < 1e-8
    assert found["first_lassos"] > 0 and found["gap"] < 1e-8
    assert np.isfinite([found[name] for name in ("seconds", "next_seconds", "value")]).all()
