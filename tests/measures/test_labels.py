"""Labels of several classes, by limits and by networks."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from implicit_bias.measures import compare_argmax

CLASSES, TRUTH = [2, 5, 9], [2, 2, 5, 9, 9]
LIMITS = np.array([[3, 1, 0], [0, 1, -1], [0, 2, 1], [0, 1, 2], [0, 0, 1.0]])
# Column 5 is ten times too large: at margin 1 it wins where it should.
NETWORKS = np.array([[3, 9, 0], [2, 9, 0], [0, 20, 1], [0, 9, 2], [0, 0, 1.0]])


def test_labels_are_counted_as_scikit_learn_counts_them() -> None:
    found = compare_argmax(CLASSES, TRUTH, LIMITS, NETWORKS, [1, 10, 1])
    predicted, trained = [2, 5, 5, 9, 9], [5, 5, 5, 5, 9]
    np.testing.assert_array_equal(
        found.confusion, confusion_matrix(predicted, trained, labels=CLASSES)
    )
    assert found.accuracy_limit == 4 / 5
    assert (found.accuracy_network, found.agreement) == (2 / 5, 3 / 5)
    assert (found.accuracy_scaled, found.agreement_scaled) == (1, 4 / 5)


def test_the_scale_of_a_network_does_not_matter_at_margin_one() -> None:
    factors = np.array([5.0, 0.01, 300.0])
    found = compare_argmax(CLASSES, TRUTH, LIMITS, LIMITS * factors, factors)
    assert (found.agreement_scaled, found.accuracy_scaled) == (1, found.accuracy_limit)
    assert found.agreement < 1


def test_networks_that_do_not_separate_have_no_margin_to_be_scaled_by() -> None:
    found = compare_argmax(CLASSES, TRUTH, LIMITS, NETWORKS, [1, -10, 1])
    assert np.isnan(found.accuracy_scaled) and np.isnan(found.agreement_scaled)
    assert [row[-1] for row in found.rows()] == ["-", "-"]
    assert found.agreement == 3 / 5


@pytest.mark.parametrize("margins", [[1, 1], [[1, 1, 1]]])
def test_scores_of_another_shape_are_refused(margins) -> None:
    with pytest.raises(ValueError, match=r"`smallest_margins` must have shape \(3,\)"):
        compare_argmax(CLASSES, TRUTH, LIMITS, NETWORKS, margins)
    with pytest.raises(ValueError, match=r"`labels` must have shape \(m,\) with m >= 1"):
        compare_argmax(CLASSES, [], np.empty((0, 3)), np.empty((0, 3)), [1, 1, 1])
