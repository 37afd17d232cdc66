"""Data of several classes: checked, read-only, split into two labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits as load_bundled

from implicit_bias import load_digits
from implicit_bias.data.images import load_digit_classes
from implicit_bias.data.labelled import ClassDataset


def small(**changes: Any) -> ClassDataset:
    given = {
        "X_train": [[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]],
        "labels_train": [4, -1, 7],
        "X_val": [[4.0, 1.0]],
        "labels_val": [7],
    }
    return ClassDataset(name="small", source="four points", **given | changes)


def test_digit_classes_are_the_labels_of_the_bundled_images() -> None:
    data = load_digit_classes(n_train=600)
    X = np.vstack([data.X_train, data.X_val])
    labels = np.append(data.labels_train, data.labels_val)
    bundled = load_bundled()
    ours = sorted(map(tuple, np.column_stack([(X[:, :-1] + 1) * 8, labels]).tolist()))
    theirs = sorted(map(tuple, np.column_stack([bundled.data, bundled.target]).tolist()))
    assert ours == theirs
    assert data.classes == tuple(range(10))


def test_two_labels_and_ten_classes_are_of_the_same_samples() -> None:
    classes, halves = load_digit_classes(n_train=90, n_val=40), load_digits(n_train=90, n_val=40)
    for part in ("train", "val"):
        X, y = getattr(halves, f"X_{part}"), getattr(halves, f"y_{part}")
        np.testing.assert_array_equal(X, getattr(classes, f"X_{part}"))
        np.testing.assert_array_equal(y > 0, getattr(classes, f"labels_{part}") <= 4)


def test_read_only_inputs_are_shared_and_others_copied() -> None:
    X = np.ones((3, 2))
    data = small(X_train=X)
    X[:] = 7
    assert np.all(data.X_train == 1)
    two = data.two_classes({4}, "4 against the rest")
    assert two.X_train is data.X_train
    assert two.y_train.tolist() == [1, -1, -1]
    assert "4 against the rest" in two.description


@pytest.mark.parametrize(
    "change",
    [
        {"X_train": [[0.0, 1.0], [2.0, 1.0], [np.nextafter(3.0, 4.0), 1.0]]},
        {"labels_train": [4, -1, 4]},
        {"X_val": [[5.0, 1.0]]},
        {"labels_val": [4]},
    ],
)
def test_the_digest_changes_with_each_array(change) -> None:
    assert small(**change).digest() != small().digest()
    assert small().digest() == small(X_train=np.array([[0, 1], [2, 1], [3, 1]], order="F")).digest()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"labels_train": [4.0, -1.0, 7.0]}, TypeError, "`labels_train` must hold integers"),
        ({"labels_val": [7, 7]}, ValueError, r"`labels_val` must have shape \(1,\), got \(2,\)"),
        ({"X_val": [[4.0]]}, ValueError, "`X_val` must have 2 columns"),
        ({"X_val": [[np.nan, 1.0]]}, ValueError, "`X_val` must be finite"),
    ],
)
def test_malformed_classes_are_refused(change, error, message) -> None:
    with pytest.raises(error, match=message):
        small(**change)
