import gzip
import os

import numpy as np
import pytest
from sklearn.datasets import load_digits as load_bundled

from implicit_bias import Dataset, load_digits
from implicit_bias.data import load_digit_classes
from implicit_bias.datasets import ClassDataset, load_idx
from tests.commands import write_idx


def small(**changes):
    given = {
        "X_train": [[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]],
        "y_train": [1, -1, 1],
        "X_val": [[4.0, 1.0]],
        "y_val": [-1],
    }
    return Dataset(name="small", description="three points and one", **given | changes)


def classes(**changes):
    given = {
        "X_train": [[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]],
        "labels_train": [4, -1, 7],
        "X_val": [[4.0, 1.0]],
        "labels_val": [7],
    }
    return ClassDataset(name="small", source="four points", **given | changes)


def write_pair(folder, *, pair="train", n=20, zipped=True):
    """Images of 2x3 pixels whose first pixel is the label and whose second is the number."""
    labels = np.arange(n) % 10
    images = np.zeros((n, 2, 3), dtype=np.uint8)
    images[:, 0, 0], images[:, 0, 1], images[:, 1, 2] = labels, np.arange(n), 255
    write_idx(folder / f"{pair}-images-idx3-ubyte", images, zipped=zipped)
    write_idx(folder / f"{pair}-labels-idx1-ubyte", labels, zipped=zipped)


def numbers(X):
    """The image numbers that write_pair put into the second pixel."""
    return np.rint((X[:, 1] + 1) * 127.5).astype(int)


def test_a_dataset_shares_a_file_that_is_mapped_to_be_read(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(6.0).reshape(3, 2))
    for mode, shared in (("r", True), ("r+", False)):
        X = np.load(tmp_path / "X.npy", mmap_mode=mode)
        assert np.shares_memory(small(X_train=X).X_train, X) == shared


def test_dataset_copies_its_arrays_to_float64_and_makes_them_read_only():
    X = np.ones((2, 1))
    data = Dataset("d", X, np.array([1, -1]), X, np.array([1, 1]), "two points")
    X[:] = 7
    for array in (data.X_train, data.y_train, data.X_val, data.y_val):
        assert array.dtype == np.float64
        assert np.all(np.abs(array) == 1)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_digest_is_the_same_for_the_same_data_under_another_name():
    data = small()
    columns = np.asfortranarray(data.X_train)
    other = Dataset("x", columns, data.y_train, data.X_val, data.y_val, "y")
    assert other.digest() == data.digest()


@pytest.mark.parametrize(
    ("make", "change"),
    [
        *((make, {name: value})
          for make in (small, classes)
          for name, value in {
              "X_train": [[0.0, 1.0], [2.0, 1.0], [np.nextafter(3.0, 4.0), 1.0]],
              "X_val": [[5.0, 1.0]],
          }.items()),
        (small, {"y_train": [1, -1, -1]}), (small, {"y_val": [1]}),
        (classes, {"labels_train": [4, -1, 4]}), (classes, {"labels_val": [4]}),
    ],
)  # fmt: skip
def test_digest_changes_with_each_array(make, change):
    assert make(**change).digest() != make().digest()
    assert make().digest() == make(X_train=np.array([[0, 1], [2, 1], [3, 1]], order="F")).digest()


def test_digest_tells_shapes_apart_when_the_numbers_run_alike():
    def cut(n, d):  # X and y in a row read 1, 1, 1, 1, 1, -1 for (3, 1) and for (2, 2)
        run = np.array([1.0, 1, 1, 1, 1, -1])
        X, y = run[: n * d].reshape(n, d), run[n * d :]
        return Dataset("run", X, y, np.empty((0, d)), np.empty(0), "a run of numbers")

    assert cut(3, 1).digest() != cut(2, 2).digest()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X_train": [[0, 1], [np.nan, 1], [np.inf, 1]]}, ValueError, "`X_train`.*finite.*2 NaN"),
        ({"X_val": [[np.inf, 1]]}, ValueError, "`X_val` must be finite"),
        ({"X_train": [0.0, 2.0, 3.0]}, ValueError, r"`X_train` must have shape \(n, D\)"),
        ({"y_train": [[1], [-1], [1]]}, ValueError, r"`y_train` must have shape \(n,\)"),
        ({"y_train": [1, -1]}, ValueError, r"`y_train` must have shape \(3,\), got \(2,\)"),
        ({"y_val": [1, -1]}, ValueError, r"`y_val` must have shape \(1,\), got \(2,\)"),
        ({"X_val": [[4.0]]}, ValueError, "`X_val` must have 2 columns.*got 1"),
        ({"y_train": [0, 1, 1]}, ValueError, r"`y_train` must hold -1 and \+1 only, got 0"),
        ({"y_val": [2]}, ValueError, r"`y_val` must hold -1 and \+1 only, got 2"),
        ({"y_train": [1, 1, 1]}, ValueError, r"`y_train` must hold both classes.*\[1.0\] only"),
        ({"X_val": [["a", "b"]]}, TypeError, "`X_val` must hold numbers, got strings"),
        ({"labels_train": [4.0, -1.0, 7.0]}, TypeError, "`labels_train` must hold integers"),
        ({"labels_val": [7, 7]}, ValueError, r"`labels_val` must have shape \(1,\), got \(2,\)"),
    ],
)
def test_what_is_not_labelled_classes_is_refused(change, error, message):
    of_inputs = {"X_val"} >= set(change)
    for make in (small, classes) if of_inputs else (classes if "labels" in str(change) else small,):
        with pytest.raises(error, match=message):
            make(**change)


@pytest.mark.parametrize("ten", [False, True])
def test_digits_are_all_the_bundled_images_once_scaled_and_labelled_by_class(ten):
    data = (load_digit_classes if ten else load_digits)(n_train=700)
    assert data.X_train.shape == (700, 65)
    parts = (data.labels_train, data.labels_val) if ten else (data.y_train, data.y_val)
    X, y = np.vstack([data.X_train, data.X_val]), np.append(*parts)
    assert np.all(X[:, -1] == 1)
    bundled = load_bundled()
    halves = np.array([+1 if digit in (0, 1, 2, 3, 4) else -1 for digit in bundled.target])
    labels = bundled.target if ten else halves
    ours = sorted(map(tuple, np.column_stack([(X[:, :-1] + 1) * 8, y]).tolist()))
    theirs = sorted(map(tuple, np.column_stack([bundled.data, labels]).tolist()))
    assert ours == theirs
    assert load_digit_classes().classes == tuple(range(10))


def test_digits_span_exactly_minus_one_to_one():
    X = load_digits().X_train[:, :-1]
    assert (X.min(), X.max()) == (-1.0, 1.0)


def test_digits_are_the_same_for_one_random_state_and_differ_for_another():
    assert load_digits().digest() == load_digits(random_state=0).digest()
    assert load_digits().digest() == load_digits(random_state=np.random.default_rng(0)).digest()
    assert load_digits().digest() != load_digits(random_state=1).digest()


def test_a_smaller_training_part_is_nested_and_keeps_its_validation_part():
    few, many = load_digits(n_train=50, n_val=300), load_digits(n_train=400, n_val=300)
    assert np.array_equal(few.X_train, many.X_train[:50])
    assert np.array_equal(few.X_val, many.X_val)
    assert np.array_equal(few.y_val, many.y_val)


def test_two_labels_and_ten_classes_are_of_the_same_samples() -> None:
    ten, halves = load_digit_classes(n_train=90, n_val=40), load_digits(n_train=90, n_val=40)
    for part in ("train", "val"):
        X, y = getattr(halves, f"X_{part}"), getattr(halves, f"y_{part}")
        np.testing.assert_array_equal(X, getattr(ten, f"X_{part}"))
        np.testing.assert_array_equal(y > 0, getattr(ten, f"labels_{part}") <= 4)


def test_read_only_inputs_are_shared_and_others_copied() -> None:
    X = np.ones((3, 2))
    data = classes(X_train=X)
    X[:] = 7
    assert np.all(data.X_train == 1)
    two = data.two_classes({4}, "4 against the rest")
    assert two.X_train is data.X_train
    assert two.y_train.tolist() == [1, -1, -1]
    assert "4 against the rest" in two.description


@pytest.mark.parametrize("zipped", [True, False])
def test_idx_images_keep_their_pixels_and_their_labels(tmp_path, zipped):
    write_pair(tmp_path, zipped=zipped)
    data = load_idx(tmp_path, n_train=12, n_val=5)
    assert (data.X_train.shape, data.X_val.shape) == ((12, 7), (5, 7))
    X, y = np.vstack([data.X_train, data.X_val]), np.append(data.y_train, data.y_val)
    n = numbers(X)
    assert len(set(n)) == 17
    assert n.tolist() != sorted(n)
    expected = np.full((17, 7), -1.0)
    expected[:, 0] = 2 * (n % 10) / 255 - 1
    expected[:, 1] = 2 * n / 255 - 1
    expected[:, 5:] = 1.0
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-15)
    assert np.array_equal(y, np.where(n % 10 < 5, 1, -1))


def test_idx_takes_the_train_pair_first_and_says_which_pair_it_took(tmp_path):
    write_pair(tmp_path, pair="t10k", n=30)
    assert "t10k" in load_idx(tmp_path, n_train=10).description
    write_pair(tmp_path, pair="train", n=20)
    data = load_idx(tmp_path, n_train=10)
    assert "train pair" in data.description and "t10k" not in data.description
    assert len(data.X_val) == 10


def test_description_is_one_line_with_classes_scaling_and_sample_numbers(tmp_path):
    write_pair(tmp_path)
    for data in (load_digits(n_train=100, n_val=9), load_idx(tmp_path, n_train=10, n_val=9)):
        assert "\n" not in data.description
        for part in (
            "0-4 (+1)",
            "5-9 (-1)",
            "[-1, 1]",
            f"{len(data.X_train)} training",
            "9 held-out",
        ):
            assert part in data.description


def test_validation_part_may_be_empty(tmp_path):
    write_pair(tmp_path)
    assert load_idx(tmp_path, n_train=20).X_val.shape == (0, 7)
    assert load_idx(tmp_path, n_train=10, n_val=0).X_val.shape == (0, 7)
    assert load_digits(n_train=10, n_val=0).y_val.shape == (0,)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"n_train": 21}, ValueError, r"at most 20.*got 21 \+ 0"),
        ({"n_train": 15, "n_val": 6}, ValueError, r"at most 20.*got 15 \+ 6"),
        ({"n_train": 0}, ValueError, "`n_train` must be at least 1, got 0"),
        ({"n_train": 5, "n_val": -1}, ValueError, "`n_val` must be at least 0, got -1"),
        ({"n_train": 5.0}, TypeError, "`n_train` must be an integer, got 5.0"),
        ({"n_train": None}, TypeError, "`n_train` must be an integer, got None"),
        ({"n_train": 5, "n_val": "3"}, TypeError, "`n_val` must be an integer, got '3'"),
        ({"n_train": 1}, ValueError, "`y_train` must hold both classes"),
    ],
)
def test_impossible_sample_numbers_are_refused(tmp_path, sizes, error, message):
    write_pair(tmp_path)
    with pytest.raises(error, match=message):
        load_idx(tmp_path, **sizes)


def test_digits_refuse_more_samples_than_are_bundled():
    with pytest.raises(ValueError, match="at most 1797"):
        load_digits(n_train=1000, n_val=798)


def test_missing_folder_and_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must be a folder.*nowhere"):
        load_idx(tmp_path / "nowhere", n_train=5)
    with pytest.raises(FileNotFoundError, match=r"t10k-images-idx3-ubyte or .*gz"):
        load_idx(tmp_path, n_train=5)
    write_pair(tmp_path, pair="t10k")
    write_pair(tmp_path, pair="train")
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte"):
        load_idx(tmp_path, n_train=5)


def unzipped(damage):
    return lambda content: gzip.compress(damage(gzip.decompress(content)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (unzipped(lambda c: b"\0\0\x0d\3" + c[4:]), "bytes 00 00 08 03, got 00 00 0d 03"),
        (unzipped(lambda c: c[:-1]), r"\(20, 2, 3\) needs 136 bytes, got 135"),
        (unzipped(lambda c: c + b"\0"), r"\(20, 2, 3\) needs 136 bytes, got 137"),
        (unzipped(lambda c: c[:9]), "header must have 16 bytes, got 9"),
        (lambda c: c[:-12], "unzipped"),
        (lambda c: c[:12] + bytes(255 - byte for byte in c[12:]), "unzipped"),
        (lambda c: c[:-8] + bytes(255 - byte for byte in c[-8:-4]) + c[-4:], "unzipped"),
        (lambda c: b"", "begin with the bytes"),
    ],
)
def test_a_damaged_file_is_named_with_its_damage(tmp_path, damage, message):
    write_pair(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=f"train-images-idx3-ubyte.gz.* is damaged: .*{message}"):
        load_idx(tmp_path, n_train=5)


def test_labels_that_do_not_match_the_images_in_number_are_refused(tmp_path):
    write_pair(tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(19), zipped=True)
    with pytest.raises(ValueError, match="20 images and 19 labels"):
        load_idx(tmp_path, n_train=5)


def test_a_set_with_more_than_ten_classes_is_refused(tmp_path):
    write_pair(tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(20), zipped=True)
    with pytest.raises(ValueError, match="classes 0 to 9, got 19"):
        load_idx(tmp_path, n_train=5)


@pytest.mark.skipif("IMPLICIT_BIAS_MNIST" not in os.environ, reason="names no MNIST folder")
def test_real_mnist_has_its_published_shape_and_class_balance():
    data = load_idx(os.environ["IMPLICIT_BIAS_MNIST"], n_train=1000)
    n_images = {"train": 60_000, "t10k": 10_000}
    n_first_half = {"train": 30_596, "t10k": 5_139}  # images of the digits 0-4 in each pair
    pair = "t10k" if "t10k" in data.description else "train"
    y = np.append(data.y_train, data.y_val)
    assert (data.X_train.shape, len(y)) == ((1000, 785), n_images[pair])
    assert np.count_nonzero(y == 1) == n_first_half[pair]
    assert (data.X_val[:, :-1].min(), data.X_val[:, :-1].max()) == (-1.0, 1.0)
