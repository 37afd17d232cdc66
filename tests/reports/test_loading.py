"""Saved runs and results, read back or refused: one format, one message."""

from __future__ import annotations

import json
import logging
import re

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.runs.reports import (
    FORMAT,
    Decoder,
    Encoder,
    Kind,
    NotSavable,
    read_saved,
    write_saved,
)

ANYTHING = Kind("Anything", "a test", "write it again")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "x"
    ib.run("gln", n_train=30, steps=20, hidden_units=2, trainer="annealed", save=path)
    return path


def show(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.main, ["show", *map(str, words)])
    return result.exit_code, result.stdout, result.stderr


def headed(path, **changes) -> None:
    """Change entries of the header of a file."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["implicit-bias"])
    save_file(load_file(path), path, metadata={"implicit-bias": json.dumps(header | changes)})


def test_a_loaded_run_has_its_limit_network_trajectory_and_comparison(folder) -> None:
    report = ib.load(folder)
    limit = ib.load(folder / "limit.safetensors")
    np.testing.assert_array_equal(report.limit.zeta, limit.zeta)
    weights = load_file(folder / "network.safetensors")
    for name, tensor in report.network.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), weights[name])
    gates = ib.load(folder / "gating.safetensors").transform(np.ones((1, 65)))
    with torch.no_grad():
        score = report.network(torch.ones(1, 65, dtype=torch.float64), torch.tensor(gates))
    assert torch.isfinite(score).all()
    record = json.loads((folder / "results.json").read_text())
    assert report.comparison.margin_ratio == record["comparison"]["margin_ratio"]
    assert report.trajectory.step[-1] == record["network"]["steps"]


def test_show_prints_the_table_of_a_run_and_draws_it(folder, tmp_path) -> None:
    code, text, _ = show(folder, "--details", "--plot", tmp_path / "a.png")
    assert code == 0 and "prediction and training" in text and "margin ratio" in text
    assert show(folder)[1] == f"{ib.load(folder)}\n"
    assert (tmp_path / "a.png").stat().st_size > 10_000
    code, _, text = show(folder, "--by", "seed")
    assert code == 2 and "`--by` picks rows of a sweep" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": FORMAT + 1, "version": "9.8"},
            rf"by implicit-bias 9\.8 in format {FORMAT + 1}.*update it",
        ),
        ({"format": 3}, r"by implicit-bias \S+ in format 3.*load it with the version that wrote"),
        ({"record": {}}, "checksum"),
        ({"kind": "Limit"}, "holds no saved Report but Limit"),
    ],
)
def test_reports_of_other_versions_and_damaged_ones_are_refused(
    changes, message, folder, tmp_path
) -> None:
    (tmp_path / "report.safetensors").write_bytes((folder / "report.safetensors").read_bytes())
    headed(tmp_path / "report.safetensors", **changes)
    with pytest.raises(ValueError, match=message):
        ib.load(tmp_path)
    code, _, text = show(tmp_path)
    assert code == 2 and re.search(message, text) and text.count("\n") == 1


def test_folders_without_a_report_say_what_they_are(folder, tmp_path) -> None:
    whole = (folder / "report.safetensors").read_bytes()
    (tmp_path / "report.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"not a safetensors file.*run it again"):
        ib.load(tmp_path)
    (tmp_path / "report.safetensors").unlink()
    with pytest.raises(ValueError, match="holds no saved run"):
        ib.load(tmp_path)
    (tmp_path / "a.parquet").touch()
    with pytest.raises(ValueError, match="holds the rows of a sweep"):
        ib.load(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ValueError, match=r"not finished: go on with it by `--resume`"):
        ib.load(tmp_path)
    (tmp_path / "results.json").write_text('{"version": "0.0.7"}')
    message = r"results of a run by implicit-bias 0\.0\.7, but report\.safetensors is missing"
    with pytest.raises(ValueError, match=message):
        ib.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no"):
        ib.load(tmp_path / "nowhere")


def test_a_trajectory_comes_back_with_all_its_arrays(folder, tmp_path) -> None:
    trajectory = ib.load(folder).trajectory
    trajectory.save(tmp_path / "t")
    again = ib.Trajectory.load(tmp_path / "t")
    assert again.to_dict().keys() == trajectory.to_dict().keys()
    assert list(again.observed) == list(trajectory.observed) and again.finished
    for name in ("step", "unit_norms", "scores", "margin_ratio"):
        np.testing.assert_array_equal(again.quantity(name), trajectory.quantity(name))
    with pytest.raises(ValueError, match="holds no saved Trajectory but GLNLimit"):
        ib.Trajectory.load(folder / "limit.safetensors")


@pytest.mark.parametrize("device", ["saved", "cpu"])
def test_a_limit_of_tensors_comes_back_as_tensors_where_they_are_asked_for(
    device, tmp_path
) -> None:
    limit = ib.solve_linear_svm(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0]))
    limit.save(tmp_path / "limit")
    assert isinstance(ib.limits.LinearLimit.load(tmp_path / "limit").zeta, np.ndarray)
    again = ib.limits.LinearLimit.load(tmp_path / "limit", device=device)
    assert torch.equal(again.zeta, limit.zeta) and torch.equal(again.support, limit.support)
    with pytest.raises(ValueError, match='device="cpu"'):
        ib.limits.LinearLimit.load(tmp_path / "limit", device="no-such-device")


def test_what_is_met_twice_is_one_thing_when_it_comes_back() -> None:
    array = np.arange(3.0)
    tree, encoder = None, Encoder()
    tree = encoder.encode({"a": array, 1: (array, np.float64(2.5), {"x"}), "s": array[:2]})
    tree = [tree, encoder.encode({"a": array, "texts": np.array([["b", "ü"]])})]
    found, plain = Decoder(encoder.arrays).decode(json.loads(json.dumps(tree)))
    assert found["a"] is found[1][0] is plain["a"] and found[1][1:] == (2.5, {"x"})
    np.testing.assert_array_equal(plain["texts"], [["b", "ü"]])
    with pytest.raises(NotSavable, match=r"builtins\.complex"):
        encoder.attempt([1j])


def test_gates_of_a_users_own_are_left_out_of_a_picture_and_told(tmp_path, caplog) -> None:
    class Halves:
        def transform(self, X):
            return (np.asarray(X) >= 0).astype(int)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sign(X[:, 0] * X[:, 1])
    with caplog.at_level(logging.WARNING, "implicit_bias"):
        report = ib.run("gln", X=X, y=y, gating=Halves(), steps=20, trainer="annealed",
                        save=tmp_path / "x")  # fmt: skip
    assert "leaves out a panel of maps" in caplog.text and "Halves" in caplog.text
    again = ib.load(tmp_path / "x")
    assert again.to_json() == report.to_json() and again.plot() is not None


def test_arrays_and_records_of_every_type_come_back(tmp_path) -> None:
    arrays = {"a": np.array(3), "b": np.zeros((0, 2)), "c": np.array([True]),
              "d": np.asfortranarray(np.arange(6.0).reshape(2, 3))}  # fmt: skip
    write_saved(tmp_path / "x", ANYTHING, arrays, {"text": "ü", "none": None})
    found, record = read_saved(tmp_path / "x", ANYTHING)
    assert set(found) == set(arrays)
    assert record == {"text": "ü", "none": None}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_results_are_short_in_a_session_and_escaped_tables_in_a_notebook(folder) -> None:
    report = ib.load(folder)
    for thing in (report, report.trajectory, report.comparison, report.heading, *report.findings):
        assert len(repr(thing)) < 1000, type(thing)
    for thing in (report, report.limit, report.limit.certificate, report.trajectory,
                  report.comparison):  # fmt: skip
        assert thing._repr_html_().count("<tr>") > 5
    from solvers.certificates.html import html_table

    text = html_table("<t>", ("a", "&"), [("<script>", "x<y")])
    assert "<script>" not in text and "x&lt;y" in text and "&lt;t&gt;" in text


def test_results_draw_on_given_axes_or_on_shown_ones_of_their_own(folder) -> None:
    from matplotlib.figure import Figure

    report = ib.load(folder)
    given = Figure().subplots()
    for thing in (report.limit, report.trajectory, report.comparison):
        assert thing.plot(ax=given) is given
        assert thing.plot()._repr_png_().startswith(b"\x89PNG")
    (line, *_) = report.trajectory.plot(quantity="weight_norm").lines
    np.testing.assert_array_equal(line.get_ydata(), report.trajectory.weight_norm)
    with pytest.raises(ValueError, match=r"'nonsense' is no quantity of .*: it has step"):
        report.trajectory.plot(quantity="nonsense")
    assert report.plot()._repr_png_().startswith(b"\x89PNG")
