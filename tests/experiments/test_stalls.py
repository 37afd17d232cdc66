"""Which trainers stand still: a part of the table, by the real path, and the rows that are kept."""

from __future__ import annotations

import pandas as pd
from click.testing import CliRunner

from experiments import stalls
from implicit_bias.training import TRAINERS
from tests.experiments.test_tables_of_pages import assert_has, rows


def test_no_run_stands_still_in_silence(tmp_path) -> None:
    path = tmp_path / "stalls.csv"
    arguments = ["--trainer", "sign", "--trainer", "newton", "--seeds", "1", "--steps", "60"]
    done = CliRunner().invoke(stalls.main, [*arguments, "--out", str(path)])
    assert done.exit_code == 0, done.output
    found = pd.read_csv(path)
    assert set(found.trainer) == {"sign", "newton"}
    assert not found.silent.any() and found.still.any()
    assert (found.said.notna() >= found.still).all()


def test_every_trainer_by_every_network_that_it_takes_is_in_the_table() -> None:
    kept = rows("stalls")
    assert set(kept.trainer) == set(TRAINERS) and set(kept.network) == set(stalls.NETWORKS)
    assert (kept.groupby(["trainer", "network"]).seed.nunique() == stalls.SEEDS).all()
    assert not kept.silent.any()
    still = kept[kept.still]
    stuck = still.said.isin(["kink", "no step", "closed", "short"])
    others = still[stuck & ~still.network.isin(["relu", "deep"])]
    assert list(zip(others.trainer, others.network, strict=True)) == [("annealed", "paths")]
    for trainer, own in kept.groupby("trainer"):
        of = still.trainer == trainer
        counts = (len(own), (of & stuck).sum(), (of & ~stuck).sum())
        assert_has("trainers.md", [f"`{trainer}`", *map(str, counts)])
