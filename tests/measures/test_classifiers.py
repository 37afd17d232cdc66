"""Classifiers beside a network: what they are certified by, and how they label new data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from implicit_bias import Sample, Status, solve_kernel_svm, solve_linear_svm
from implicit_bias.measures import (
    agreement_independent,
    classifier_rows,
    compare_classifier,
    measure_bounded_value,
)
from implicit_bias.networks import FReLU

X, Y = np.array([[2.0, 0.0], [0.0, -1.0]]), np.array([1.0, -1.0])
NEW = np.array([[1.0, 0.5], [0.1, -3.0], [-1.0, 0.2], [-2.0, 0.1]])
LABELS, TRAINED = np.array([1.0, -1.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0, 1.0])


def test_a_linear_svm_and_its_kernel_machine_are_one_classifier() -> None:
    limit, machine = solve_linear_svm(X, Y), solve_kernel_svm(X @ X.T, Y)
    scores = NEW @ limit.zeta
    cosine = scores @ TRAINED / np.linalg.norm(scores) / np.sqrt(7)
    for one, inputs in ((limit, (NEW,)), (machine, (NEW @ X.T,))):
        found = compare_classifier("SVM", one, inputs, TRAINED, LABELS)
        assert (found.name, found.status) == ("SVM", "SOLVED")
        assert found.certificate == one.gap < 1e-7
        assert found.score_cosine == pytest.approx(cosine)
        # It errs on the last two samples; the network says 1 of all.
        assert (scores > 0).tolist() == [True, False, False, False]
        assert (found.agreement, found.error) == (0.25, 0.5)


def test_a_local_limit_is_certified_by_its_residual() -> None:
    sample = Sample(X, Y, np.ones((2, 1)))
    local = measure_bounded_value(FReLU.from_zeta([[0.7, 1.1]]), sample).local
    found = compare_classifier("local", local, (NEW, np.ones((4, 1))), TRAINED, LABELS)
    limit = compare_classifier("SVM", solve_linear_svm(X, Y), (NEW,), TRAINED, LABELS)
    assert found.status == Status.LOCAL_OPTIMUM.name and found.certificate == local.residual
    assert found.score_cosine == pytest.approx(limit.score_cosine)
    assert (found.agreement, found.error) == (limit.agreement, limit.error)


@pytest.mark.parametrize("missing", ["inputs", "trained", "samples", "classifier"])
def test_what_needs_scores_is_nan_without_them(missing) -> None:
    machine = solve_kernel_svm(X @ X.T, Y)
    if missing == "classifier":
        machine = solve_kernel_svm(np.ones((2, 2)), Y)
        assert machine.status is Status.NOT_SEPARABLE
    labels = LABELS[:0] if missing == "samples" else LABELS
    found = compare_classifier(
        "SVM", machine, None if missing == "inputs" else (NEW[: len(labels)] @ X.T,),
        None if missing == "trained" else TRAINED[: len(labels)], labels,
    )  # fmt: skip
    assert found.status == machine.status.name
    assert all(math.isnan(v) for v in (found.score_cosine, found.agreement, found.error))


def test_lines_have_one_column_a_classifier_and_end_with_the_network() -> None:
    machine = solve_kernel_svm(X @ X.T, Y)
    found = {
        name: compare_classifier(name, machine, inputs, TRAINED, LABELS)
        for name, inputs in (("known", (NEW @ X.T,)), ("unknown", None))
    }
    rows = {label: cells for label, *cells in classifier_rows(found, 0.25)}
    assert rows["status"] == ["SOLVED", "SOLVED"]
    assert rows["held-out error"] == ["50.00%", "-"]
    assert list(rows)[-1] == "held-out error, network" and rows["held-out error, network"] == [
        "25.00%", "25.00%"
    ]  # fmt: skip
    assert [row[0] for row in classifier_rows(found, 0.25, "error")] == list(rows)[-2:]


def test_independent_errors_agree_where_both_are_right_or_both_wrong() -> None:
    rng = np.random.default_rng(0)
    p, q = 0.2, 0.35
    wrong = rng.random((2, 200_000)) < np.array([[p], [q]])
    assert agreement_independent(p, q) == pytest.approx(np.mean(wrong[0] == wrong[1]), abs=0.005)
