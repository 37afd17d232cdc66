"""Pictures of several classes."""

import numpy as np
from matplotlib.figure import Figure

from implicit_bias.measures import Comparison, MulticlassComparison
from implicit_bias.runs.drawing import class_row, compose, plot_class_ratios, plot_label_confusion

UNITS = {"n_units": 1, "dead_units": (), "small_units": (), "dual_norms": ()}


def comparison(**values: float) -> Comparison:
    return Comparison(**dict.fromkeys(Comparison.__dataclass_fields__, 0.5) | UNITS | values)


def test_classes_show_how_far_each_network_is_from_its_limit_and_leave_out_zeros() -> None:
    ax = Figure().subplots()
    near, not_yet = comparison(margin_ratio=0.99, agreement=1.0), comparison(margin_ratio=-0.2)
    plot_class_ratios({3: near, 8: not_yet}, ax)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    np.testing.assert_allclose(drawn["1 - margin ratio"], [0.01, 1.2])
    np.testing.assert_allclose(drawn["1 - agreement on held-out labels"], [0.5])
    assert ax.get_yscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["3", "8"]


def test_every_pair_of_labels_has_its_number() -> None:
    shares = dict.fromkeys(MulticlassComparison.__dataclass_fields__, 0.6)
    counts = np.array([[0, 1, 0], [0, 2, 0], [0, 1, 1]])
    found = MulticlassComparison(**shares | {"classes": (2, 5, 9), "confusion": counts})
    texts = plot_label_confusion(found, Figure().subplots()).texts
    assert {text.get_position(): text.get_text() for text in texts} == {
        (1, 0): "1", (1, 1): "2", (1, 2): "1", (2, 2): "1"
    }  # fmt: skip
    for labels, n in ((found, 2), (None, 1)):
        row = class_row({3: comparison()}, labels)
        assert row.n == n
        assert len(compose([row], title="t").axes) == n
