"""What was once wrong about files that are read, texts that are shown, and values that are kept."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import os
import pickle
import pkgutil
import re
import shutil
import struct
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner
from pyarrow import parquet

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.runs.reports import KIND, read_saved, render_html, write_saved
from tests.commands import environment
from tests.reports.kept import NOW


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,label\n1,2,3,0\n4,5,6,1\n", "3 columns, .* 4 fields"),
        ("a,b,label\n1,2,0,\n4,5,1,\n", "3 columns, .* 4 fields"),
        ("\n\na,b,label\n1,2,3,4,0\n", "3 columns, .* 5 fields"),
        ("a,a,label\n1,2,0\n4,5,1\n", "two columns 'a'"),
        ('a,b,"b",label\n1,2,3,0\n4,5,6,1\n', "two columns 'b'"),
        ("label,b,label\n1,2,0\n4,5,1\n", "two columns 'label'"),
    ],
)
def test_columns_without_a_name_of_their_own_are_refused(text, said, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        ib.load_data(str(path))


def test_names_that_pandas_would_give_to_twins_may_be_those_of_columns(tmp_path) -> None:
    path, rows = tmp_path / "x.csv", np.arange(24).reshape(8, 3)
    lines = [f"{a},{b},{c},{c % 2}" for a, b, c in rows]
    path.write_text("\n".join(["a,a.1,b,label", *lines]) + "\n")
    data = ib.load_data(str(path), n_val=2)
    both = np.vstack([data.X_train, data.X_val])
    assert both.shape == (8, 3)


def test_twins_in_a_parquet_file_are_refused_by_their_name(tmp_path) -> None:
    columns = [pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([0, 1])]
    parquet.write_table(pa.table(columns, names=["a", "a", "label"]), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="two columns 'a': rename one"):
        ib.load_data(str(tmp_path / "x.parquet"))


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(NOW / "gln", tmp_path / "x")


def replaced(path, kind: str) -> None:
    """Put a link, a pipe or a device in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
        return
    secret = path.parent.parent / "secret"
    secret.write_text("not for the copy")
    path.symlink_to(secret if kind == "link" else "/dev/zero")


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_a_copy_of_a_report_reads_no_link_no_pipe_and_no_device(kind, folder, tmp_path) -> None:
    assert (folder / "limit.safetensors").is_file()
    replaced(folder / "limit.safetensors", kind)
    why = "no plain file" if kind == "pipe" else "it is a link"
    with pytest.raises(OSError, match=rf"{why}.*limit\.safetensors"):
        ib.load(folder).save(tmp_path / "copy")
    assert not (tmp_path / "copy" / "limit.safetensors").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
@pytest.mark.parametrize("name", ["report.safetensors", "results.json", "run.json"])
def test_a_folder_of_links_and_pipes_is_refused_at_once(kind, name, folder) -> None:
    if name != "report.safetensors":
        (folder / "report.safetensors").unlink()
    replaced(folder / name, kind)
    with pytest.raises(ValueError, match=r"link|no plain file|no saved run|is missing|finished"):
        ib.load(folder)
    with pytest.raises(ValueError, match=r"no plain file|link"):
        ib.run("linear", n_train=30, steps=2, save=folder)


STATE, FIRST = ("heading", "state"), ("findings", 0)
TABLE, SIDE = (*FIRST, "tables", "of", 0, "state"), (*FIRST, "sides", "of", 0, "state")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*STATE, "title"), 5), ((*STATE, "setup"), None), ((*STATE, "record"), []),
        ((*STATE, "record", "options"), 5), ((*STATE, "assumptions"), 5),
        ((*STATE, "assumptions"), {"#": "tuple", "of": [5]}),
        ((*TABLE, "columns"), None), ((*TABLE, "rows"), {"#": "tuple", "of": [5]}),
        ((*TABLE, "title"), [1]), ((*SIDE, "values"), 5), ((*SIDE, "name"), None),
        ((*FIRST, "statuses"), {"limit": "SOLVED"}), ((*FIRST, "certificates"), {"limit": 5}),
        ((*FIRST, "tables"), {"#": "tuple", "of": ["text"]}),
        ((*FIRST, "sides"), {"#": "tuple", "of": [[]]}),
        ((*FIRST, "record"), {"x": {"#": "tuple", "of": [{"#": "set", "of": [1]}]}}),
    ],
)  # fmt: skip
def test_a_report_that_says_nothing_readable_is_refused_when_it_is_loaded(
    path, value, folder
) -> None:
    arrays, record = read_saved(folder / "report.safetensors", KIND)
    node: Any = record
    for step in path[:-1]:
        node = node[step]
    assert path[-1] in node
    node[path[-1]] = value
    write_saved(folder / "report.safetensors", KIND, arrays, record)
    with pytest.raises(ValueError, match=r"was saved by implicit-bias .* cannot read it") as caught:
        ib.load(folder)
    assert "\n" not in str(caught.value)


MARKS = "\x1b[2J\x9b31m\x07\u202e\u2066\u200f\u061c"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def test_no_label_of_own_data_commands_a_terminal_or_turns_its_text(tmp_path) -> None:
    X = [[1.0, 0.5], [0.5, 1.0], [-1.0, -0.5], [-0.5, -1.0]] * 4
    path = tmp_path / "x.csv"
    lines = [f"{a + k / 64},{b},{'cat' if a > 0 else 'dog'}{MARKS}" for k, (a, b) in enumerate(X)]
    path.write_text("\n".join(["a,b,label", *lines]) + "\n", encoding="utf-8")
    report = ib.run("linear", data=str(path), n_val=4, steps=0, positive=f"cat{MARKS}")
    assert COMMANDS.search(report.heading.setup)  # the label itself stays what it is
    texts = [str(report), report.details(), repr(report), report._repr_html_(), render_html(report)]
    words = ["compare", "--model", "linear", "--data", str(path), "--n-val", "4", "--steps", "0"]
    shown = CliRunner().invoke(cli.main, [*words, "--positive", f"cat{MARKS}"])
    assert shown.exit_code == 0, shown.stderr
    for text in (*texts, shown.stdout, shown.stderr):
        assert not COMMANDS.search(text)
    assert "cat" in str(report) and "cat" in shown.stdout


def test_what_diagnose_says_is_pickled_and_copied() -> None:
    X = np.array([[2.0, 0.5], [1.0, 1.5], [-1.0, -2.0], [-2.0, -0.5]])
    torch.manual_seed(0)
    report = ib.diagnose(torch.nn.Linear(2, 1, bias=False), X, np.array([1.0, 1, -1, -1]))
    for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert str(again) == str(report) and again.row() == report.row()


CORNERS = np.array([[2.0, 0.5], [1.0, 1.5], [-1.0, -2.0], [-2.0, -0.5]])
LABELS = np.array([1.0, 1.0, -1.0, -1.0])


def test_samples_are_compared_by_their_numbers() -> None:
    one, same = ib.Sample(CORNERS, LABELS), ib.Sample(CORNERS.copy(), LABELS.copy())
    assert (one == same) is True and (one != same) is False and hash(one) == hash(same)
    others = (ib.Sample(-CORNERS, LABELS), ib.Sample(CORNERS[:2], LABELS[:2]),
              ib.Sample(CORNERS, LABELS, gates=np.ones((4, 1))))  # fmt: skip
    assert not any(one == other for other in others) and one != "sample"
    assert {one, same, *others} == {one, *others} and len({one, same}) == 1
    tensors = ib.Sample(torch.tensor(CORNERS), LABELS)
    assert tensors == ib.Sample(torch.tensor(CORNERS), LABELS) and tensors != one
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    assert len(repr(ib.Sample(np.ones((300, 20)), np.ones(300)))) < 200


def results() -> list[Any]:
    gates = (CORNERS[:, :1] > 0).astype(int)
    return [
        ib.solve_linear_svm(CORNERS, LABELS),
        ib.solve_gln_svm(CORNERS, LABELS, gates, n_contexts=2),
        ib.limits.solve_fit(CORNERS, LABELS, penalty=0.1),
    ]


def test_copies_of_results_equal_their_originals_and_other_results_do_not() -> None:
    first = results()
    for one in first:
        for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert again == one and hash(again) == hash(one)
        assert one != dataclasses.replace(one, seconds=one.seconds + 1)
    assert first[0] != ib.solve_linear_svm(2 * CORNERS, LABELS) and first[0] != first[1]


def test_arrays_of_results_are_read_only_in_copies_as_well() -> None:
    for one in results():
        for again in (one, copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            arrays = [name for name, value in vars(again).items() if isinstance(value, np.ndarray)]
            assert arrays
            for name in arrays:
                with pytest.raises(ValueError, match="read-only"):
                    getattr(again, name)[...] = 5.0


def test_a_result_leaves_arrays_of_its_caller_writable() -> None:
    X, y = CORNERS.copy(), LABELS.copy()
    ib.solve_linear_svm(X, y), ib.limits.solve_fit(X, y, penalty=0.1)
    X[0, 0] = y[0] = 3.0


def test_copies_of_a_report_equal_it_and_other_reports_do_not() -> None:
    report = ib.run("linear", n_train=30, n_val=10, steps=5)
    assert pickle.loads(pickle.dumps(report)) == report == copy.deepcopy(report)
    assert hash(copy.deepcopy(report)) == hash(report)
    assert report != ib.run("linear", n_train=30, n_val=10, steps=6)


def test_a_screen_is_printed_in_any_encoding(folder) -> None:
    arrays, record = read_saved(folder / "report.safetensors", KIND)
    record["heading"]["state"]["setup"] += " of \u03b1 and caf\u00e9"
    write_saved(folder / "report.safetensors", KIND, arrays, record)
    shown = CliRunner(charset="latin-1").invoke(cli.main, ["show", str(folder)])
    assert shown.exit_code == 0, shown.stderr
    text = shown.stdout_bytes.decode("latin-1")
    assert " ".join(text.split()).count("of \\u03b1 and caf\u00e9") == 1


def test_a_gap_of_nothing_is_not_waited_for() -> None:
    # The best mean of sign matrices for three samples, one a class, by hand: 3/4 of the margin.
    found = ib.limits.sign_layer_bounds(np.eye(3), [0, 1, 2], width=12, tol=5e-324)
    assert found.lower <= 0.75 / 12 <= found.upper == pytest.approx(0.75 / 12)


@pytest.mark.parametrize("n", [-1, 0])
def test_a_bound_of_no_samples_is_refused_as_one_of_fewer_is(n) -> None:
    with pytest.raises(ValueError, match=f"`n` must be at least 1, got {n}"):
        ib.distillation.risk_bound(lambda theta: 1 - 2 * theta / np.pi, n)


def test_ctrl_c_raises_in_tests_however_they_were_started() -> None:
    code = ("import signal, tests.conftest; signal.signal(signal.SIGINT, signal.SIG_IGN); "
            "import importlib; importlib.reload(tests.conftest); "
            "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())


HUGE = 2**40  # of one number each: 8 TiB

SIZED: list[tuple[str, Any]] = [
    ("n_features", lambda n: ib.networks.DiagonalLinear(n)),
    ("n_inputs", lambda n: ib.GLN(n, 2, 2)),
    ("n_contexts", lambda n: ib.GLN(2, 2, n)),
    (r"upper_widths\[0\]", lambda n: ib.GLN(2, 2, 2, upper_widths=(n,))),
    ("n_units", lambda n: ib.FReLU(3, n)),
    ("n_outputs", lambda n: ib.FReLU(3, 2, n_outputs=n)),
    (r"hidden_widths\[1\]", lambda n: ib.DeepLinear(3, hidden_widths=(2, n))),
    (r"hidden_widths\[0\]", lambda n: ib.DeepLinear.from_zeta(np.ones(3), hidden_widths=(n,))),
    (r"upper_widths\[0\]", lambda n: ib.FReLU.from_zeta(np.eye(2), upper_widths=(n,))),
    ("n_units", lambda n: ib.ReLU(3, n)),
    (r"widths\[1\]", lambda n: ib.networks.DeepReLU(3, (2, n))),
    (r"widths\[0\]", lambda n: ib.DGN(3, widths=(n, 2))),
    ("n_contexts", lambda n: ib.networks.DeepGLN(3, widths=(2,), n_contexts=n)),
    ("n_inputs", lambda n: ib.DLGN(n, widths=(2,))),
    ("n_inputs", lambda n: ib.networks.SoftDGN(n, widths=(2,))),
    ("n_outputs", lambda n: ib.ShallowGLN(2, [[0], [1]], n_outputs=n)),
    ("n_units", lambda n: ib.networks.GDLN(2, n)),
    ("n_units", lambda n: ib.networks.BalancedReLU(2, n)),
    ("n_layers", lambda n: ib.networks.ResidualReLU(2, 2, n_layers=n)),
    ("n_classes", lambda n: ib.networks.LabelledHead(n, 2)),
    (r"widths\[0\]", lambda n: ib.heads.Trunk(2, widths=(n,))),
    ("n", lambda n: ib.kernels.spectrum_ideal(n, 0.5, 2)),
    ("n_units", lambda n: ib.HyperplaneContexts(n, 2).fit(CORNERS)),
    (r"widths\[0\]", lambda n: ib.gates.LinearGates(2, widths=(n,)).fit(CORNERS)),
    (r"widths\[0\]", lambda n: ib.gates.RandomGates(widths=(n,)).fit(CORNERS)),
    ("n", lambda n: ib.datasets.make_circle(n)),
    ("n", lambda n: ib.datasets.make_quadrants(n)),
    ("d", lambda n: ib.datasets.make_orthosep(3, n)),
    ("n_inputs", lambda n: ib.datasets.make_nlgp(4, n_inputs=n)),
    ("n_samples", lambda n: ib.datasets.make_single_pulse(n)),
    ("n_val", lambda n: ib.datasets.make_angle_task(3, 2, 1.0, n_val=n)),
    ("n_labels", lambda n: ib.autoencoders.quantile_code(n, 0.3)),
    ("n_lines", lambda n: ib.equivalence.fold_set(ib.ReLU(2, 2), n_lines=n)),
    ("width", lambda n: ib.limits.sign_layer_bounds(np.eye(2), [0, 1], width=n)),
    ("n_classes", lambda n: ib.limits.solve_multiclass_svm(np.eye(2), [0, 1], n_classes=n)),
    (r"hidden_widths\[0\]",
     lambda n: ib.solve_linear_svm(CORNERS, LABELS).balanced_weights((n,))),
    ("n_contexts",
     lambda n: ib.solve_gln_svm(CORNERS, LABELS, [[0], [1], [0], [1]], n_contexts=n)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call"), SIZED)
def test_sizes_beyond_memory_are_refused_by_the_name_of_the_argument(name, call) -> None:
    with pytest.raises(ValueError, match=rf"with `{name}` of {HUGE} would take .* GiB, .*smaller"):
        call(HUGE)


def test_a_network_counts_the_weights_that_are_drawn_beside_those_that_it_keeps(monkeypatch):
    memory = pkgutil.resolve_name("solvers.numerics.memory")
    monkeypatch.setattr(memory, "_memory", lambda: 8 * 4 * 1000.0)
    ib.networks.DiagonalLinear(1000)  # u and v, drawn and scaled
    with pytest.raises(ValueError, match="`n_features` of 1001"):
        ib.networks.DiagonalLinear(1001)


def test_an_archive_of_one_class_is_refused_before_its_inputs_are_unpacked(tmp_path, traced):
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((300_000, 100)), y=np.zeros(300_000, int))
    assert (tmp_path / "x.npz").stat().st_size < 300_000
    with traced(8 * 300_000 * 10), pytest.raises(ValueError, match="one class only, '0'"):
        ib.load_data(tmp_path / "x.npz")


def test_names_of_classes_that_no_memory_holds_are_refused_by_the_header(tmp_path, traced) -> None:
    words = np.array(["a" * 50_000, "b" * 50_000])[np.arange(300) % 2]
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((300, 2)), y=words)
    said = "words of at most 1000 characters, got 50000"
    with traced(10**7), pytest.raises(ValueError, match=said):
        ib.load_data(tmp_path / "x.npz")


def test_words_of_a_parquet_file_are_kept_once_each(tmp_path) -> None:
    n, words = 20_000, ["a" * 1_000_000, "b" * 1_000_000]  # 20 GB where each row has its own
    labels = pa.DictionaryArray.from_arrays(pa.array(np.arange(n) % 2, pa.int32()), words)
    table = pa.table({"a": np.arange(n, dtype=float), "label": labels})
    parquet.write_table(table, tmp_path / "x.parquet", store_schema=False)
    assert (tmp_path / "x.parquet").stat().st_size < 3e6
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ValueError, match="words of at most 1000 characters, got 1000000"):
        ib.load_data(tmp_path / "x.parquet")
    assert pa.default_memory_pool().max_memory() < max(before, 10**8)


def test_a_parquet_file_is_refused_by_the_sizes_in_its_metadata(tmp_path, monkeypatch) -> None:
    table = pa.table({"a": np.zeros(100_000), "label": np.arange(100_000) % 2})
    parquet.write_table(table, tmp_path / "x.parquet")
    memory = pkgutil.resolve_name("solvers.numerics.memory")
    monkeypatch.setattr(memory, "_memory", lambda: 8 * 4 * 99_999.0)
    monkeypatch.setattr(parquet, "read_table", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(ValueError, match=r"would take .* GiB"):
        ib.load_data(tmp_path / "x.parquet")


def test_a_zipped_file_of_images_is_read_as_far_as_its_header_says(tmp_path, traced) -> None:
    for stem, head in [
        ("train-images-idx3-ubyte", (8, 3, 20, 2, 3)),
        ("train-labels-idx1-ubyte", (8, 1, 20)),
    ]:
        n_axes = len(head) - 2
        header = bytes((0, 0, *head[:2])) + struct.pack(f">{n_axes}I", *head[2:])
        (tmp_path / f"{stem}.gz").write_bytes(gzip.compress(header + bytes(10**8), 1))
    with traced(10**7), pytest.raises(ValueError, match="needs 136 bytes, got 137 or more"):
        ib.load_data(tmp_path)


@pytest.fixture
def traced():
    """Compare the largest memory that Python's allocators hand out with a number of bytes."""

    @contextmanager
    def below(n_bytes):
        tracemalloc.start()
        try:
            yield
            assert tracemalloc.get_traced_memory()[1] < n_bytes
        finally:
            tracemalloc.stop()

    return below


@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
@pytest.mark.parametrize(("n", "depth"), [(6, 1), (3, 1), (3, 3)])
def test_a_flow_of_endless_time_comes_to_its_limit(n, depth, loss) -> None:
    rng = np.random.default_rng(3)
    X, teacher = rng.normal(size=(n, 4)), rng.normal(size=4)
    w0 = 0.3 * teacher + 0.05 * rng.normal(size=4)
    times = [0.0, 1.0, 1e3, 1e200, 1e200]
    path = ib.distillation.distillation_flow(X, teacher, w0, times, depth=depth, loss=loss)
    limit = ib.distillation.distillation_limit(X, teacher, w0, depth=depth, loss=loss)
    zeta = limit.predictor.zeta
    assert np.abs(path[3:] - zeta).max() < 1e-9 and np.allclose(path[0], w0, rtol=0, atol=1e-15)
    off = np.linalg.norm(path - zeta, axis=1)
    assert off[0] > off[1] > 1e-3


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
@pytest.mark.parametrize("name", ["x.parquet", "_new/host-1-0.jsonl"])
def test_rows_of_a_sweep_are_read_out_of_plain_files_alone(kind, name, tmp_path) -> None:
    folder = tmp_path / "sweep"
    (folder / "_new").mkdir(parents=True)
    replaced(folder / name, kind)
    why = "no plain file" if kind == "pipe" else "it is a link"
    with pytest.raises(ValueError, match=rf"cannot be read as rows of a sweep .*{why}"):
        ib.sweeps.read_rows(folder)


def test_a_report_that_was_edited_is_neither_drawn_nor_written_but_in_one_message(tmp_path) -> None:
    ib.run("linear", n_train=20, n_val=10, steps=20, save=tmp_path)
    report = ib.load(tmp_path)
    assert report.figure() is not None
    panels = ({"#": "tuple", "of": [5]}, "text")
    arrays, record = read_saved(tmp_path / "report.safetensors", KIND)
    for panel in panels:
        record["findings"][0]["panels"] = [panel]
        write_saved(tmp_path / "report.safetensors", KIND, arrays, record)
        edited = ib.load(tmp_path)
        for show in (edited.figure, lambda edited=edited: render_html(edited)):
            with pytest.raises(ValueError, match="was edited after it was saved") as caught:
                show()
            assert "\n" not in str(caught.value)


X_ALONE = {"X": CORNERS, "y": np.ones(4), "X_val": CORNERS, "y_val": LABELS}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ib.run("linear", **X_ALONE, steps=0), "`y` must hold both classes"),
        (lambda: ib.run("linear", n_train=20, steps=9, trainer="annealed", learning_rate=1e6),
         r"`learning_rate`.* must be None .*'annealed', got 1000000\.0$"),
        (lambda: ib.run("linear", n_train=20, steps=9, trainer="normalised", batch_size=9),
         "let `batch_size` be 0"),
        (lambda: ib.solve_frelu_svm(CORNERS * 1e100, LABELS, np.full((4, 1), 1e100)),
         "`X` times gates `Z` has a largest entry"),
        (lambda: ib.limits.solve_fit(CORNERS, LABELS, norm="largest-row", penalty=0.1),
         "`norm` 'largest-row' is one of matrices"),
        (lambda: ib.run("linear", tol=0, steps=0), "`tol`: 0 is not above 0"),
        (lambda: ib.run("linear", tol=1.0, steps=0), "`tol`: 1.0 is not below 1"),
        (lambda: ib.ReLU(3, 0), "`n_units` must be at least 1"),
        (lambda: ib.equivalence.ReLUWeights.from_arrays([np.eye(2), np.ones((1, 2))]).rows(2),
         "`layer` must be below the 2 layers, got 2"),
        (lambda: ib.networks.CopiedUnits(ib.FReLU(2, 3, n_outputs=2), 2), "`copies` units"),
    ],
)  # fmt: skip
def test_messages_name_what_was_typed(call, said) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        call()


def test_a_ratio_that_is_not_known_says_why() -> None:
    sample = ib.Sample(CORNERS, LABELS)
    network = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False, dtype=torch.float64), Flat())
    found = ib.compare(ib.solve_linear_svm(CORNERS, LABELS), network, sample, sample)
    assert np.isnan(found.margin_ratio) and "no `unit_norms()`" in found.held_back_by
    assert found.held_back_by in str(found)


class Flat(torch.nn.Module):
    def forward(self, scores: torch.Tensor, gates: object = None) -> torch.Tensor:
        return scores[:, 0]
