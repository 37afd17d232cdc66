"""The experiment on optimisers: its rows are of the runs that it names."""

from __future__ import annotations

import pandas as pd

from experiments import optimisers


def test_short_runs_are_nearest_to_their_own_norm_and_are_drawn() -> None:
    found = {}
    for run in optimisers.RUNS:
        if run.change in ("-", "as shipped") and run.optimiser in ("Signum", "Muon"):
            found[run.optimiser] = optimisers.margins_over_largest(run, 700)
    assert 0.9 < found["Signum"]["linf"] <= 1 and found["Signum"]["spectral"] < 0.85
    assert found["Muon"]["l2"] > found["Muon"]["spectral"]  # no spectral descent
    frame = pd.DataFrame([{"optimiser": name, "change": "-", **one} for name, one in found.items()])
    (axes,) = optimisers.draw(frame).axes
    assert len(axes.lines) == 4


def test_batches_pass_every_sample_once_an_epoch(monkeypatch) -> None:
    run = next(run for run in optimisers.RUNS if run.batch == 6 and run.optimiser == "Signum")
    seen: list[int] = []
    margins = optimisers.relative_margins

    def noted(B, samples):
        if len(samples) == 6:
            seen.extend(samples.tolist())
        return margins(B, samples)

    monkeypatch.setattr(optimisers, "relative_margins", noted)
    optimisers.margins_over_largest(run, 4)
    assert set(seen) == set(range(24))
