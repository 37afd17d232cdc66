"""Tables of experiments: rows that are kept, refused and never lost; folders that are checked."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import implicit_bias as ib
from experiments import (
    batched,
    deep_limits,
    depth_codes,
    first_step,
    galu,
    gram_figures,
    norms,
    path_kernels,
    random_labels,
    relu_speed,
    simple_half_figures,
    spectra,
    starts,
)
from experiments.paper.__main__ import main as papers
from experiments.paper.elsewhere import ELSEWHERE
from experiments.paper.settings import FIGURES
from experiments.tables import OPTIONS, Kept, images_of, keep_rows
from experiments.thesis import layers
from tests.experiments.test_tables_of_pages import ROOT, rows

FIRST = {"seed": 1, "loss": 0.1 + 0.2}


@pytest.fixture
def path(tmp_path):
    """A table of one row, with its option."""
    Kept(tmp_path / "rows.csv", ["seed"], options={"steps": 3}).add([FIRST])
    return tmp_path / "rows.csv"


def test_rows_of_the_same_options_are_kept_to_the_last_digit(path) -> None:
    kept = Kept(path, ["seed"], options={"steps": 3})
    assert (1,) in kept and (2,) not in kept
    kept.add([{"seed": 2, "loss": 0.5}])
    assert Kept(path, ["seed"]).table.to_dict("records") == [FIRST, {"seed": 2, "loss": 0.5}]
    # Of a table that is made anew nothing is kept.
    Kept(path, options={"steps": 3}).add([FIRST])
    assert len(pd.read_csv(path)) == 1


@pytest.mark.parametrize("key", [["seed"], []])
def test_rows_of_other_options_are_neither_mixed_nor_lost(path, key) -> None:
    before = path.read_text()
    other = CliRunner().invoke(_command(path, key, steps=4))
    assert other.exit_code == 2 and path.read_text() == before
    assert f"{path} has rows of --steps 3, and --steps 4 is asked for" in other.output
    (path.parent / OPTIONS).write_text("{}")
    assert "does not tell the options" in CliRunner().invoke(_command(path, key, steps=3)).output
    (path.parent / OPTIONS).write_text("{")
    assert "cannot be read" in CliRunner().invoke(_command(path, key, steps=3)).output


@pytest.mark.parametrize(
    ("content", "why"),
    [("seed,loss\n1,0.5\n2,0.", "cut short"), ("", "cut short"), ("\n", "No columns"),
     ("loss\n0.5\n", "no column 'seed'")],
)  # fmt: skip
def test_a_file_that_is_not_as_it_was_written_is_refused(path, content, why) -> None:
    path.write_text(content)
    found = CliRunner().invoke(_command(path, ["seed"], steps=3))
    assert found.exit_code == 2 and why in found.output and path.read_text() == content


def _command(path, key, **options):
    import click

    return click.Command("x", callback=lambda: Kept(path, key, options=options))


def test_rows_that_were_there_stay_there_when_the_first_new_one_comes(path) -> None:
    def one_and_a_stop():
        yield {"seed": 2, "loss": 1.0}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_rows(one_and_a_stop(), Kept(path, ["seed"]), digits=".3g")
    assert pd.read_csv(path)["seed"].tolist() == [1, 2]


def test_two_commands_that_write_to_one_file_lose_nothing(path) -> None:
    one, other = (Kept(path, ["seed"], options={"steps": 3}) for _ in range(2))
    one.add([{"seed": 2, "loss": 1.0}])
    other.add([{"seed": 3, "loss": 2.0}, {"seed": 2, "loss": 9.0}])
    one.add([{"seed": 4, "loss": 3.0}])
    assert pd.read_csv(path).set_index("seed")["loss"].to_dict() == {
        1: pytest.approx(0.3),
        2: 1,
        3: 2,
        4: 3,
    }
    assert all((seed,) in one for seed in (1, 2, 3, 4))


@pytest.mark.parametrize("name", ["train", "t10k"])
def test_training_and_test_images_are_told_apart(name, tmp_path) -> None:
    for stem, shape in (("images-idx3-ubyte", (8, 3, 3)), ("labels-idx1-ubyte", (8,))):
        header = bytes((0, 0, 8, len(shape))) + np.array(shape, dtype=">u4").tobytes()
        (tmp_path / f"{name}-{stem}").write_bytes(header + bytes(range(np.prod(shape))))
    found = images_of(tmp_path)
    assert found.data == "mnist" and ("training" in found.said) == (name == "train")
    assert found.file == ("mnist_train" if name == "train" else "mnist")
    assert name in ib.datasets.load_idx(tmp_path, n_train=6, n_val=2).name


@pytest.mark.parametrize("name", [*FIGURES, *ELSEWHERE])
def test_folders_are_checked_before_any_work(name, tmp_path) -> None:
    file = tmp_path / "file"
    file.touch()
    for out in (file, file / "below"):
        found = CliRunner().invoke(papers, [name, "--out", str(out)])
        assert found.exit_code == 2 and "Invalid value for '--out'" in found.output
    if name in ("thesis-3.3", "thesis-3.4"):
        return  # this command has an option of its own
    for folder in (tmp_path / "none", tmp_path, file):
        typed = [name, "--out", str(tmp_path / "out"), "--data-dir", str(folder)]
        found = CliRunner().invoke(papers, typed)
        assert found.exit_code == 2 and "--data-dir" in found.output
    told = CliRunner().invoke(papers, [name, "--help"])
    words = " ".join(ELSEWHERE.get(name, (name,)))
    assert told.exit_code == 0 and f"{words} [OPTIONS]" in " ".join(told.output.split())


def test_options_of_committed_rows_are_those_that_can_be_read_off() -> None:
    noted = json.loads((ROOT / "experiments" / "results" / OPTIONS).read_text())
    columns = {"epochs": "epoch", "steps": "step", "entry_draws": "draws", "draws": "draws",
               "hidden_units": "hidden_units"}  # fmt: skip
    seen = set()
    for file, options in noted.items():
        table = rows(file.removesuffix(".csv"))
        for name, value in options.items():
            if name == "seeds":
                assert table["seed"].nunique() == value
            elif (column := columns.get(name)) in table and file != "gram_errors.csv":
                largest = table[column].max()
                assert largest == (25 * value if "monotonicity" in file else value), file
            else:
                continue
            seen.add(name)
    assert seen == {*columns, "seeds"}
    # Shares of learned images are whole numbers of them.
    for file, column in (("random_labels_mnist", "train"), ("soft_gates_mnist", "train_error"),
                         ("path_kernels_mnist", "train_error"),
                         ("whose_gates_mnist", "train_error")):  # fmt: skip
        images = rows(file)[column] * noted[f"{file}.csv"]["n_train"]
        np.testing.assert_allclose(images, images.round(), atol=0.05)


def test_a_run_of_other_epochs_or_of_more_digits_than_there_are_is_refused(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(random_labels, "DATA", ("random labels",))
    monkeypatch.setattr(random_labels, "draw", _no_picture)
    monkeypatch.setattr(random_labels, "run", partial(random_labels.run, widths=(8,)))
    typed = ["--seeds", "1", "--epochs", "1", "--n-train", "40", "--out", str(tmp_path)]
    first = CliRunner().invoke(random_labels.main, typed, catch_exceptions=False)
    assert first.exit_code == 0 and first.output.count("random labels, ") == 2
    again = CliRunner().invoke(random_labels.main, typed)
    assert again.exit_code == 0 and "random labels, " not in again.output
    full = CliRunner().invoke(random_labels.main, ["--full", "--out", str(tmp_path)])
    assert full.exit_code == 2 and "--epochs 1 --n-train 40" in full.output
    many = CliRunner().invoke(random_labels.main, [*typed[:-3], "1001", "--out", str(tmp_path)])
    assert many.exit_code == 2 and "1000 digits at most" in many.output


def _no_picture(*_):
    from matplotlib.figure import Figure

    return Figure(figsize=(1, 1))


def test_draws_that_were_measured_are_trained_when_that_is_asked_for(tmp_path, monkeypatch) -> None:
    real, made = spectra.row, []

    def row(case, *, train):
        made.append((case.seed, train))
        return real(spectra.Case(case.width, case.depth, case.seed, n=4), train=train, most=5)

    monkeypatch.setattr(spectra, "row", row)
    monkeypatch.setattr(spectra, "draw", _no_picture)
    shared = ["--width", "4", "--depth", "3", "--draws", "2", "--out", str(tmp_path)]
    for trained in ("0", "1", "1"):
        done = CliRunner().invoke(spectra.main, [*shared, "--trained", trained])
        assert done.exit_code == 0, done.output
    assert made == [(1, False), (2, False), (1, True)]
    table = pd.read_csv(tmp_path / "spectra.csv")
    assert table["seed"].tolist() == [1, 2]
    assert table["trained_growth"].notna().tolist() == [True, False]


def test_parts_of_the_gram_figures_keep_the_rows_of_one_another(tmp_path, monkeypatch) -> None:
    fake = {"width": 1, "depth": 2}
    for name, gates in (("random_gates", "random"), ("other_gates", "galu")):
        found = [{"gates": gates, **fake}], [{"gates": gates, **fake}]
        monkeypatch.setattr(gram_figures, name, lambda *_, found=found: found)
    monkeypatch.setattr(gram_figures, "entries", lambda depth, draws: {"depth": depth})
    for name in ("draw_galu", "draw_random_gates"):
        monkeypatch.setattr(gram_figures, name, _no_picture)

    def run(*typed):
        return CliRunner().invoke(gram_figures.main, [*typed, "--out", str(tmp_path)])

    for part in ("galu", "random-gates", "galu"):
        assert run("--only", part).exit_code == 0
    table = pd.read_csv(tmp_path / "gram_spectra.csv")
    assert sorted(table["gates"]) == ["galu", "random"]
    refused = run("--only", "galu", "--draws", "3")
    assert refused.exit_code == 2 and "--draws 2" in refused.output
    ignored = run("--only", "galu", "--entry-draws", "3")
    assert ignored.exit_code == 2 and "--entry-draws" in ignored.output


def test_a_moment_that_no_run_has_reached_has_an_empty_panel() -> None:
    table = rows("simple_half_kernels_mnist")
    picture = simple_half_figures.draw_kernels(table[table["moment"] != "middle"], "x")
    titles = [ax.get_title() for ax in picture.axes]
    assert titles.count("middle: not reached") == 4


def _stop(step: int, n_steps: int, log_loss: float) -> None:
    raise KeyboardInterrupt


# Each trains at least one network, as its table does.
TRAINED = {
    "galu": lambda: galu.rows(2, 1, n=6, width=4, steps=9),
    "spectra": lambda: spectra.row(spectra.Case(4, 3, 1, n=4), train=True, most=5),
    "gram_figures": lambda: gram_figures.random_gates((25,), (2,), draws=1, n=4),
    "depth_codes": lambda: depth_codes.row(2, 0),
    "first_step": lambda: first_step.row(3, 4, draws=1, kernels=2),
    "deep_limits": lambda: list(deep_limits.rows_of(deep_limits.Case("first layer", (3, 2)), 1)),
    "relu_speed": lambda: relu_speed.row(20, 4),
    "thesis layers": lambda: list(layers.rows(full=False)),
    "path_kernels": lambda: path_kernels.rows(path_kernels.CASES[0], None, 1, 20, 9),
}


@pytest.mark.parametrize("name", TRAINED)
def test_an_interrupt_of_training_ends_an_experiment_and_makes_no_row(name, monkeypatch) -> None:
    def interrupted(*given, callback=None, **settings):
        return train(*given, callback=_stop, **settings)

    train = ib.train
    monkeypatch.setattr(ib, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TRAINED[name]()


@pytest.mark.parametrize("of", [batched, starts, norms])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(of, tmp_path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "rows.csv"):
        found = CliRunner().invoke(of.main, ["--out", str(out)])
        assert found.exit_code == 2 and "Invalid value for '--out'" in found.output
