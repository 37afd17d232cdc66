"""The value of a network between a bound and its local limit, against closed forms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from implicit_bias import Sample, Status, solve_frelu_svm
from implicit_bias.measures import (
    BoundedComparison,
    compare_classifier,
    flat_weights,
    measure_bounded_value,
    value_of,
)
from implicit_bias.networks import DGN, FReLU
from implicit_bias.runs.reports import (
    LASSO,
    LOCAL,
    Finding,
    comparison_finding,
    strict_local_optimum,
)

# One sample of length 5 and one open unit: the least sum of unit norms at margin 1 is 1/5.
ONE = Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
RNG = np.random.default_rng(7)
X = RNG.normal(size=(20, 4))
GATES = (RNG.random((20, 6)) < 0.7).astype(float)
GATES[:, [0, 3]] = 1  # a path that is always open
SAMPLE = Sample(X, np.sign(X[:, 0]), GATES)


def off_by(angle: float, norm: float = 1.0) -> FReLU:
    """A unit that many radians off the direction of the sample."""
    direction = np.arctan2(4, 3) + angle
    return FReLU.from_zeta(norm * np.array([[np.cos(direction), np.sin(direction)]]))


@pytest.mark.parametrize("angle", [0.0, 0.4, 1.2])
def test_between_the_optimum_and_a_network_off_it_lies_the_cosine(angle) -> None:
    found = measure_bounded_value(off_by(angle), ONE, 0.1)
    assert found.value == pytest.approx(0.2 / math.cos(angle))
    assert found.local_value == pytest.approx(0.2) and found.local_status == "LOCAL_OPTIMUM"
    assert found.local_ratio == pytest.approx(math.cos(angle))
    assert found.bound_ratio == pytest.approx(0.5 * math.cos(angle))
    assert found.local_bound_ratio == pytest.approx(0.5)
    # Half of the squared norm is the output weight, which is the right one up to a factor.
    assert found.weight_cosine == pytest.approx((1 + math.cos(angle)) / 2)
    assert (found.distance > 0.1) == (angle > 0.1)


def test_the_value_is_that_of_every_scale_and_every_depth() -> None:
    assert value_of(off_by(0.3, norm=40.0), ONE) == pytest.approx(value_of(off_by(0.3), ONE))
    network = DGN(4, widths=(3, 3), init="gaussian", random_state=0)
    with torch.no_grad():
        scores = network(torch.tensor(X), torch.tensor(GATES)).numpy()
    squares = sum(float((p.detach() ** 2).sum()) for p in network.parameters())
    found = value_of(network, Sample(X, np.sign(scores), GATES))
    assert found == pytest.approx((squares / 3) ** 1.5 / np.abs(scores).min())
    assert np.sum(flat_weights(network) ** 2) == pytest.approx(squares)
    assert math.isnan(value_of(network, Sample(X, -np.sign(scores), GATES)))


def test_a_network_that_does_not_separate_or_is_too_large_has_no_local_limit() -> None:
    wrong = measure_bounded_value(off_by(3.0), ONE, 0.2)
    assert wrong.local is wrong.limit is wrong.local_status is None
    numbers = (wrong.value, wrong.bound_ratio, wrong.local_ratio, wrong.weight_cosine)
    assert all(math.isnan(number) for number in numbers)
    large = measure_bounded_value(off_by(0.4), ONE, 0.2, max_weights=2)
    assert large.local is None and large.bound_ratio == pytest.approx(math.cos(0.4))
    assert measure_bounded_value(off_by(0.4), ONE, max_weights=3).local is not None


def test_a_search_that_failed_has_a_status_and_no_value() -> None:
    found = measure_bounded_value(off_by(0.4), ONE, 0.2)
    failed = replace(found, local=replace(found.local, status=Status.FAILED, reason="so it is"))
    assert failed.limit is None and failed.local_status == "FAILED"
    assert math.isnan(failed.local_value) and math.isnan(failed.local_bound_ratio)
    assert failed.bound_ratio == found.bound_ratio
    shown = {label: text for label, text, _ in failed.rows()}
    assert shown["value of its local limit"] == "-" and shown["  status"] == "FAILED"
    assumed = strict_local_optimum(failed.local)
    assert assumed.holds is None and assumed.text.endswith("; so it is")
    assert strict_local_optimum(found.local).holds is True
    saddle = replace(found.local, status=Status.SADDLE)
    assert strict_local_optimum(saddle).holds is False and strict_local_optimum(None).holds is None


def test_the_local_limit_may_be_that_of_another_network_and_sample() -> None:
    twice = Sample(np.tile(X, (2, 1)), np.tile(SAMPLE.y, 2), np.tile(GATES, (2, 1)))
    zeta = solve_frelu_svm(*SAMPLE).require().zeta
    network = FReLU.from_zeta(zeta)
    found = measure_bounded_value(network, twice, search=(network, SAMPLE))
    assert found.local is not None and len(found.local.active) == 20
    assert found.local_ratio == pytest.approx(1, abs=1e-6)
    assert math.isnan(found.bound_ratio) and math.isnan(found.local_bound_ratio)


def test_the_record_the_table_and_the_row_say_the_same() -> None:
    limit = solve_frelu_svm(*SAMPLE).require()
    network = FReLU.from_zeta(limit.zeta + 0.02 * RNG.normal(size=limit.zeta.shape))
    value = measure_bounded_value(network, SAMPLE, limit.dual_objective)
    trained = np.ones(20)
    classifiers = [
        compare_classifier(name, one, (X, GATES), trained, SAMPLE.y)
        for name, one in ((LOCAL, value.local), (LASSO, limit))
    ]
    found = BoundedComparison(
        **vars(value), error_network=0.25, classifiers={one.name: one for one in classifiers}
    )
    known = comparison_finding(Finding("limit"), found, LASSO, ("further", "7", "measured"))
    record, (values, beside) = known.views.record["comparison"], known.views.tables
    assert record["bound_ratio"] == known.views.row["margin_ratio"] == found.bound_ratio < 1
    assert record["local_ratio"] == known.views.row["local_ratio"]
    rows = {label: (text, kind) for label, text, kind in values.rows}
    assert rows["proved bound / value (at most 1)"] == (f"{found.bound_ratio:.4f}", "certified")
    assert rows["value of the network"] == (f"{found.value:.8g}", "measured")
    assert rows["further"] == ("7", "measured")
    assert beside.columns == ("", LOCAL, LASSO)
    errors = [found.classifiers[name].error for name in beside.columns[1:]]
    cells = {label: texts for label, *texts in beside.rows}
    assert cells["held-out error"] == [f"{error:.2%}" for error in errors]
    assert cells["held-out error, network"] == ["25.00%"] * 2
    assert (
        known.views.row["error_limit"] == errors[1] and known.views.row["local_error"] == errors[0]
    )
    assert record["classifiers"][LOCAL]["certificate"] == found.local.residual
    assert known.views.record["local_limit"]["value"] == found.local_value
    assert known.views.certificates[LOCAL]["status"] == found.local_status
