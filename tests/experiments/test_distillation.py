"""The experiments about linear distillation, with two draws each: rows, bounds and pictures."""

from __future__ import annotations

import pandas as pd
import pytest
from click.testing import CliRunner

from experiments.distillation import DELTAS, KAPPAS, main


@pytest.mark.long
def test_rows_and_pictures_are_those_of_the_thesis(tmp_path) -> None:
    done = CliRunner().invoke(main, ["--draws", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    geometry, bias, learners = (
        pd.read_csv(tmp_path / f"distillation_{name}.csv")
        for name in ("geometry", "bias_digits", "monotonicity")
    )
    assert geometry.kappa.tolist() == list(KAPPAS) and bias.delta.tolist() == list(DELTAS)
    # Sharper below printed below corollary 5.2, and all of them fall with kappa.
    bounds = geometry[["bound_sharper", "bound_printed", "corollary"]]
    assert (bounds.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    assert (bounds.diff().iloc[1:] < 0).all(axis=None)
    assert (geometry.risk < geometry.bound_sharper).all()
    # Figure 5.4: descent's own student imitates best, those far off it badly.
    assert bias.risk[0] < 0.05 < 0.3 < bias.risk.iloc[-1]
    # Lemma 5.1: a further sample always helps distillation.
    assert learners["index"][0] == 1
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "distillation.png", "distillation_bias.png",
    }  # fmt: skip
