"""Claims of the sources that did not hold when their experiments were run again, on those rows."""

import numpy as np
import pytest

from tests.experiments.test_tables_of_pages import DATA, lines, rows


def test_open_paths_do_not_move_to_the_easy_half_of_the_circle() -> None:
    trained = rows("circle").query("gates == 'trained'")
    moved = trained.log2_easy_hard_end - trained.log2_easy_hard_start
    assert (np.sum(moved > 0), len(moved)) == (4, 10)
    assert np.sum(trained.log2_easy_hard_half > trained.log2_easy_hard_start) == 9


def test_more_paths_are_not_open_on_the_simple_half() -> None:
    at_end, throughout, at_80 = {}, [], []
    for data in DATA:
        # The mean of both arms knows nothing of the classes themselves.
        both = rows(f"simple_half_{data}").groupby(["network", "seed", "step"]).paths.mean()
        for network, seeds in both.unstack().groupby("network"):
            more = seeds > 0
            at_end.setdefault(network, []).extend(more[more.columns.max()])
            throughout.extend(more.drop(columns=0).all(axis=1))
            at_80.extend(more[80] if network == "relu" else [])
    assert {name: (sum(x), len(x)) for name, x in at_end.items()} == {
        "dlgn-pwc": (7, 13), "relu": (2, 13),
    }  # fmt: skip
    assert sum(at_80) == 0 and sum(throughout) == 2


def test_convergence_behind_random_gates_gets_better_with_depth_up_to_a_depth() -> None:
    errors = rows("gram_errors").query("gates == 'random'").set_index(["how", "width", "step"])
    for width, step, best in ((500, 15, 12), (25, 1000, 8)):
        for how in ("trained", "law"):
            left = errors.loc[how, width, step].set_index("depth").left
            assert left.idxmin() == best and left.index.max() == 20
            assert left[2] > left[4] > left[6] > left[best] and left[20] > 1.1 * left[best]


def test_nu_of_the_tangent_kernel_does_not_say_which_network_generalises() -> None:
    runs = rows("soft_gates_mnist").query("init == 'sign'").set_index(["seed", "epoch", "kind"])
    first, last = (runs.xs(epoch, level="epoch").unstack() for epoch in (0, 100))
    assert len(last) == 5
    for kind in ("galu", "own start", "learned gates"):  # frozen gates
        assert (last.nu_k[kind] < first.nu_k[kind]).all()
    assert (last.nu_k.galu < last.nu_k.relu).sum() == 4
    assert (last.error.galu > last.error.relu).all()
    assert last.error.galu.mean() > 4.5 * last.error.relu.mean()


@pytest.mark.parametrize("data", DATA)
def test_layer_7_is_orthogonally_separable_in_no_run(data) -> None:
    seventh = rows(f"convolution_layers_{data}").query("layer == 7")
    assert len(seventh) >= 15 and (seventh.cross_positive > 0).all()
    at_end = seventh[seventh.epoch == 50]
    if data == "mnist":
        without, biased = (at_end.cross_positive[at_end.biases == with_] for with_ in (False, True))
        assert 0.06 < without.min() and without.max() < 0.095 and biased.min() > 0.85


def test_exits_of_a_plain_trunk_on_digits_gain_nothing_from_their_teacher() -> None:
    first = rows("exit_heads_limits").query("exit == 1").set_index(["labels", "method"])
    for labels in (5, 10, 20):
        alone = first.budget[labels, "exit-wise"]
        for method in ("distilled", "semi-supervised"):
            assert first.budget[labels, method] < alone
            # A pupil comes to its teacher's accuracy, which is no better.
            assert abs(first.budget[labels, method] - first.teacher[labels, method]) < 1
        assert first.teacher[labels, "distilled"] < alone


def test_exits_of_convolutions_gain_by_unlabelled_images_alone() -> None:
    found = rows("thesis_exits_mnist").dropna(subset="exit")
    means = found.groupby(["labels", "method", "exit"]).budget.mean()
    for labels, least in ((10, 3.0), (30, 1.0)):
        for exit_ in (2, 3, 4):
            alone = means[labels, "exit-wise", exit_]
            assert means[labels, "semi-supervised", exit_] > alone + least
            assert abs(means[labels, "distilled", exit_] - alone) < 1.5
        first = [means[labels, name, 1] for name in ("exit-wise", "distilled", "semi-supervised")]
        assert np.ptp(first) < 1
    # At 5 labels a class the last exit, by itself, is worse than the first in every draw.
    five = found.query("labels == 5 and method == 'exit-wise'").set_index(["exit", "seed"]).alone
    assert (five[4] < five[1]).all()
    # The last exit's confidence is held where it is asked to be: figure 6.6.
    course = rows("thesis_exits_mnist").dropna(subset="step").query("step >= 100")
    assert course[course.method == "annealed"].tempered.between(0.45, 0.52).all()
    assert course[course.method == "tau = 1"].sure.min() > 0.9


def test_a_temperature_of_one_is_not_worse_than_others() -> None:
    convolutions = rows("thesis_exits_mnist").query("labels == 10 and exit == 4")
    of = convolutions.set_index(["method", "seed"])
    constant = [f"tau = {k}" for k in (2, 3, 4)]
    for mode in ("budget", "anytime"):
        # Less than the draws of one temperature differ by.
        spread = np.ptp(of[mode]["tau = 1"])
        best = max(of[mode][name].mean() for name in constant)
        assert best - of[mode]["tau = 1"].mean() < spread
    digits = rows("exit_heads_together").query("exit == 1").set_index("method")
    assert (digits.budget["tau = 1"] > digits.budget[[*constant, "annealed"]]).all()


def test_every_line_of_errata_names_what_holds_it() -> None:
    told = [line for line in lines("errata.md") if line[0] not in ("where", "source", "---")]
    assert len(told) > 40
    assert all(line[-1].startswith("`tests/") for line in told)
