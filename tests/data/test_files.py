"""Data from files: the same samples whatever the file, and one message for what is no data."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import implicit_bias as ib
from implicit_bias.data import files_of, is_file
from tests.commands import write_mnist

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3)).round(3)
WORDS = np.where(X[:, 0] > 0, "yes", "no")


def table(**columns):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": WORDS, **columns})


@pytest.fixture
def files(tmp_path):
    """The same samples in every format."""
    np.savez(tmp_path / "data.npz", X=X, y=WORDS)
    np.save(tmp_path / "X_all.npy", X)
    np.save(tmp_path / "y_all.npy", WORDS)
    table().to_csv(tmp_path / "data.csv", index=False)
    table().to_parquet(tmp_path / "data.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["data.npz", "X_all.npy", "data.csv", "data.parquet"])
def test_a_file_has_the_samples_that_were_written_and_the_second_word_is_positive(
    files, name
) -> None:
    data = ib.load_data(files / name, n_train=30, random_state=1)
    found = {tuple(x): y for x, y in zip(
        np.vstack([data.X_train, data.X_val]), np.append(data.y_train, data.y_val), strict=True
    )}  # fmt: skip
    assert found == {tuple(x): 1.0 if word == "yes" else -1.0
                     for x, word in zip(X, WORDS, strict=True)}  # fmt: skip
    assert "classes yes (+1) against no (-1)" in data.description
    other = ib.load_data(files / "data.npz", n_train=30, random_state=1)
    assert data.digest() == other.digest()


def test_a_run_on_a_file_is_the_run_on_its_arrays(files) -> None:
    own = {"seed": 2, "steps": 0}
    path = files / "data.csv"
    report = ib.run("linear", data=path, **own)
    rows = np.random.default_rng(report.results["seeds"]["data"]).permutation(40)
    y = np.where(WORDS == "yes", 1.0, -1.0)
    parts = {"X": X[rows[:30]], "y": y[rows[:30]], "X_val": X[rows[30:]], "y_val": y[rows[30:]]}
    assert report.row()["data_digest"] == ib.run("linear", **parts, **own).row()["data_digest"]
    assert report.row()["data"] == str(path) and str(path) in report.call


def test_labels_are_standardised_and_told_apart_as_asked(tmp_path) -> None:
    classes = np.digitize(X[:, 0], [-0.5, 0.5]) + 3
    np.savez(tmp_path / "d.npz", X=X * [1, 100, 0.01] + 7, y=classes, kind=classes > 3)
    data = ib.load_data(tmp_path / "d.npz", positive=["3", 5], standardize=True, constant=True)
    assert data.X_train.shape == (30, 4) and np.all(data.X_val[:, -1] == 1)
    rows = np.random.default_rng(0).permutation(40)
    raw = X * [1, 100, 0.01] + 7
    scaler = StandardScaler().fit(raw[rows[:30]])
    np.testing.assert_allclose(data.X_val[:, :-1], scaler.transform(raw[rows[30:]]), atol=1e-12)
    np.testing.assert_array_equal(data.y_train, np.where(classes[rows[:30]] == 4, -1, 1))
    four = ib.load_data(tmp_path / "d.npz", positive=4)
    np.testing.assert_array_equal(four.y_train, -data.y_train)
    assert ib.datasets.load_class_data(tmp_path / "d.npz").classes == (3, 4, 5)
    named = ib.datasets.load_class_data(tmp_path / "d.npz", label="kind")
    assert "classes 0 (False), 1 (True)" in named.description
    assert pickle.loads(pickle.dumps(named)).digest() == named.digest()


@pytest.mark.parametrize(
    ("name", "load"),
    [("iris", load_iris), ("wine", load_wine), ("breast-cancer", load_breast_cancer)],
)
def test_what_scikit_learn_bundles_is_there_whole(name, load) -> None:
    plain = ib.datasets.load_class_data(name, standardize=False, constant=False)
    raw, labels = load(return_X_y=True)
    rows = np.column_stack([np.vstack([plain.X_train, plain.X_val]),
                            np.append(plain.labels_train, plain.labels_val)])  # fmt: skip
    assert sorted(map(tuple, rows)) == sorted(map(tuple, np.column_stack([raw, labels])))
    data = ib.load_data(name)
    assert np.all(data.X_train[:, -1] == 1)
    np.testing.assert_allclose(data.X_train[:, :-1].std(axis=0), 1, rtol=1e-12)


def test_digits_by_their_labels_are_the_digits_by_default() -> None:
    usual = ib.load_data("digits", n_train=90)
    assert ib.load_data("digits", n_train=90, positive=range(5)).digest() == usual.digest()
    bare = ib.load_data("digits", n_train=90, constant=False)
    np.testing.assert_array_equal(bare.X_train, usual.X_train[:, :-1])


def test_a_folder_of_idx_files_is_data_by_itself(tmp_path) -> None:
    write_mnist(tmp_path, n=60)
    wanted = ib.datasets.load_idx(tmp_path, n_train=40, random_state=0)
    assert ib.load_data(tmp_path, n_train=40).digest() == wanted.digest()
    assert ib.load_data("mnist", data_dir=tmp_path, n_train=40).digest() == wanted.digest()
    assert len(files_of(str(tmp_path))) == 2


def test_a_sweep_knows_a_file_by_what_it_holds(files) -> None:
    def cell(name):
        done = ib.sweep("linear", {"data": [files / name]}, out=files / "sweep", steps=0)
        return done.cells[0], done.n_skipped

    before = cell("data.csv")[0], cell("X_all.npy")[0]
    table().to_csv(files / "copy.csv", index=False)
    assert cell("copy.csv") == (before[0], 1)
    table(c=X[:, 2] + 1).to_csv(files / "copy.csv", index=False)
    assert cell("copy.csv")[0] != before[0]
    np.save(files / "y_all.npy", WORDS[::-1])
    assert cell("X_all.npy")[0] != before[1]


def test_wrong_names_come_with_the_nearest_right_one() -> None:
    with pytest.raises(TypeError, match="no option 'standardise' of data: did you mean 'standard"):
        ib.load_data("iris", standardise=True)
    with pytest.raises(ValueError, match="got 'iriss': did you mean 'iris'"):
        ib.load_data("iriss")
    with pytest.raises(ValueError, match="`--label` is not for `--data iris`"):
        ib.load_data("iris", label="species")


def test_names_of_sets_are_no_files_and_the_labels_of_a_pair_are_found(tmp_path) -> None:
    assert (
        not is_file("digits")
        and not is_file("")
        and not is_file("no-such-set")
        and is_file("no/such.csv")
    )
    assert [path.name for path in files_of("a/my-X_1.npy")] == ["my-X_1.npy", "my-y_1.npy"]


class Trap:
    """What runs if it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("an object was unpickled",)


BAD_TABLES = {
    "missing number": ({"b": [np.nan, *X[1:, 1]]}, {}, "column 'b' .* has 1 missing .* sample 0"),
    "missing label": ({"label": [*WORDS[:5], None, *WORDS[6:]]}, {}, "lack the label of sample 5"),
    "words": ({"b": WORDS}, {}, "column 'b' .* must hold numbers, got"),
    "no such column": ({}, {"label": "kind"}, "has no column 'kind': it has the columns 'a', 'b'"),
    "two labels": ({"y": WORDS}, {}, "2 columns of .* are called label, "),
    "one class": ({"label": "yes"}, {}, "one class only, 'yes'"),
    "three classes": ({"label": range(40)}, {}, "40 classes, '0', .* `--positive 0`"),
    "numbers for labels": ({"label": X[:, 0]}, {}, "must be classes, words or whole numbers"),
    "no such class": ({}, {"positive": ["yess"]}, "'yess' is not .*: did you mean 'yes'?"),
    "all positive": ({}, {"positive": ["yes", "no"]}, "must leave some of the classes"),
    "still": ({"b": 3.0}, {"standardize": True}, "no deviation to divide by, is 'b'"),
    "two constants": ({"b": 3.0}, {"constant": True}, "'b' is a constant column already"),
    "contradiction": ({"a": 1.0, "b": 2.0, "c": 3.0}, {}, "have equal inputs and different labels"),
    "too many": ({}, {"n_train": 50}, "must be at most 40"),
    "none left": ({}, {"n_train": 40}, "leaves no held-out samples"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_table_that_is_no_data_is_refused_in_one_message(case, tmp_path) -> None:
    columns, choices, message = BAD_TABLES[case]
    table(**columns).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises((ValueError, TypeError), match=message):
        ib.run("gln", data=str(tmp_path / "t.csv"), progress=lambda *_: pytest.fail("it began"),
               **choices)  # fmt: skip


BAD_FILES = {
    "gone.csv": (None, "there is no file"),
    "X.txt": (b"1", "must name a file that ends in .npz, .npy, .csv, .parquet"),
    "empty.csv": (b"", "is no table"),
    "semicolons.csv": (b"a;label\n1;2\n", "commas between them, got one column"),
    "numbered.csv": (b",a,label\n0,1,x\n1,2,y\n", "column 0 .* has no name: .* index=False"),
    "nameless.csv": (b"1,2\n3,4\n", "first line .* holds numbers"),
    "no-rows.csv": (b"a,label\n", "must have rows"),
    "bad.parquet": (b"PAR1 or not", "is no Parquet file"),
    "bad.npz": (b"PK or not", "is no .npz file"),
    "bad.npy": (b"", "with X as a word of the name"),
    "X.npy": (b"", "must be beside it as y.npy"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_none_is_refused_in_one_message(name, tmp_path) -> None:
    content, message = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        ib.load_data(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "must hold the arrays X and y, got 'X'"),
        ({"X": X, "y": WORDS, "X_val": X}, "holds X_val"),
        ({"X": X, "y": WORDS[:9]}, r"must have shape \(40,\), one a row of X, got \(9,\)"),
        ({"X": X[:, 0], "y": WORDS}, r"must have shape \(n, D\)"),
        ({"X": X.astype(complex), "y": WORDS}, "must hold real numbers"),
        ({"X": np.array([Trap()] * 40), "y": WORDS}, "X in .* holds Python objects"),
        ({"X": X, "y": np.array([Trap()] * 40)}, "y in .* holds Python objects"),
        ({"X": np.where(X > 0, X, np.inf), "y": WORDS}, "NaN or infinite"),
    ],
)
def test_arrays_that_are_no_data_are_refused_and_nothing_is_unpickled(
    arrays, message, tmp_path
) -> None:
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises((ValueError, TypeError), match=message):
        ib.load_data(tmp_path / "d.npz")


def test_what_memory_cannot_hold_is_refused_before_it_is_read(tmp_path) -> None:
    with (tmp_path / "X.npy").open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
        np.lib.format.write_array_header_1_0(stream, header)
    np.save(tmp_path / "y.npy", WORDS)
    with pytest.raises(ValueError, match=r"X in .*X.npy' would take .* GiB"):
        ib.load_data(tmp_path / "X.npy")
