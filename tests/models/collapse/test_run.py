"""Training of unconstrained features: it comes to its limit, and says how near."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import implicit_bias as ib

SIZES = (6, 6, 1, 1)


@pytest.fixture(scope="module")
def report() -> ib.Report:
    return ib.run("collapse", class_sizes=SIZES, steps=1500, checkpoints=8)


def test_descent_comes_to_the_geometry_of_the_limit(report) -> None:
    found, limit = report.comparison, report.limit
    assert report.verdict.word == "AT ITS LIMIT"
    assert 0.999 < found.margin_ratio <= 1 + 1e-9 and found.zeta_cosine > 0.9999
    assert found.within_class < 1e-4 < 0.1 < report.trajectory.observed["within_class"][0]
    for name in ("feature_cosines", "classifier_cosines"):
        np.testing.assert_allclose(getattr(found, name), getattr(limit, name), atol=0.02)
    # Of any scale, features and classifiers alike.
    for name in ("feature_norms", "classifier_norms"):
        own, other = getattr(found, name), getattr(limit, name)
        np.testing.assert_allclose(own / own.max(), other / other.max(), atol=0.02)
    errors = report.trajectory.observed["feature_error"]
    assert errors[-1] == found.feature_error < 0.01 < errors[0]
    assert report.trajectory.observed["feature_cosines"].shape == (len(errors), 4, 4)


def test_as_many_steps_of_a_plain_loop_are_far_from_it(report) -> None:
    """Slopes of the loss fall with the loss itself: directions go like 1 / log(steps)."""
    labels = np.repeat(np.arange(4), SIZES)
    network = ib.networks.UnconstrainedFeatures(
        len(labels), hidden_widths=(4,), n_outputs=4, dtype=torch.float32
    )
    descent = torch.optim.SGD(network.parameters(), lr=1.0)
    X, y = torch.eye(len(labels)), torch.tensor(labels)
    for _ in range(1500):
        descent.zero_grad()
        torch.nn.functional.cross_entropy(network(X), y).backward()
        descent.step()
    Z = network.zeta().detach().double().numpy()
    Z -= Z.mean(axis=0)
    ends = report.limit.scores.T[:, labels]
    cosine = (Z * ends).sum() / np.linalg.norm(Z) / np.linalg.norm(ends)
    assert cosine < 0.99 < report.comparison.zeta_cosine


def test_weight_decay_is_reached_and_judged_by_its_value() -> None:
    report = ib.run("collapse", class_sizes=(4, 2, 1), weight_decay=0.01, steps=1500, checkpoints=3)
    assert report.verdict.word == "AT ITS LIMIT"
    assert -1e-9 < report.comparison.over_optimum < 1e-6
    assert np.isnan(report.comparison.margin_ratio)
    short = ib.run("collapse", class_sizes=(4, 2, 1), weight_decay=0.01, steps=3, checkpoints=3)
    assert short.verdict.word == "NOT THERE YET" and short.comparison.over_optimum > 0.01


def test_more_layers_stand_beside_the_point_next_to_them_and_the_bound() -> None:
    report = ib.run("collapse", class_sizes=(3, 3, 1), depth=3, steps=600, checkpoints=3)
    local = report.objects["local_limit"]
    assert local.status is ib.Status.LOCAL_OPTIMUM
    assert report.verdict.word == "AT A LOCAL LIMIT"
    assert report.row()["local_ratio"] > 0.99 and np.isnan(report.comparison.margin_ratio)
    assert report.comparison.within_class < 1e-6, "features collapse at every KKT point"
    assert report.limit.dual_objective < local.value


def test_sizes_by_default_have_classes_of_one_size_beside_them(tmp_path) -> None:
    report = ib.run("collapse", steps=30, checkpoints=3, save=tmp_path / "run")
    saved = ib.load(tmp_path / "run")
    assert len(report.verdicts) == 2
    balanced = report.objects["balanced_limit"]
    assert len(set(balanced.class_sizes.tolist())) == 1
    assert balanced.n_classes == report.limit.n_classes == saved.limit.n_classes
    np.testing.assert_array_equal(saved.limit.scores, report.limit.scores)


def test_labels_come_from_arrays_and_files(tmp_path) -> None:
    y = np.array([3, 3, 3, 5, 9, 9])
    own = ib.run("collapse", X=np.zeros((6, 1)), y=y, steps=0)
    assert own.limit.class_sizes.tolist() == [3, 1, 2]
    np.savez(tmp_path / "own.npz", X=np.arange(12.0)[:, None], y=np.repeat(y, 2))
    file = ib.run("collapse", data=str(tmp_path / "own.npz"), steps=0)
    assert file.limit.class_sizes.tolist() == [6, 2, 4]
    assert ib.run("collapse", data="iris", steps=0).limit.class_sizes.tolist() == [50, 50, 50]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trainer": "sign"}, "take one that descends the gradient"),
        ({"trainer": "momentum,annealed"}, "take one that descends the gradient"),
        ({"data": "iris", "class_sizes": (3, 3)}, "`class_sizes` follow from labels"),
        ({"X": np.ones((2, 1)), "y": [0, 1], "class_sizes": (3, 3)}, "`class_sizes` follow"),
        ({"X": np.ones((3, 1)), "y": [0, 1, np.nan]}, "`y`"),
        ({"data": "iris", "n_train": 151}, "151"),
        ({"class_sizes": (10**9, 1)}, "a unit vector a sample"),
        ({"label": "y"}, "`label` is of labels by name or file"),
        ({"class_sizes": (3,)}, "two classes at least"),
        ({"weight_decay": 0.1, "loss": "exponential"}, "take logistic"),
        ({"weight_decay": 0.1, "batch_size": 3}, "`batch_size` must be 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        ib.run("collapse", **options)


def test_the_network_has_features_and_classifiers_whose_products_are_scores() -> None:
    network = ib.networks.UnconstrainedFeatures(5, hidden_widths=(4, 3), n_outputs=2)
    product = network.features() @ network.classifiers().T
    torch.testing.assert_close(product, network(torch.eye(5, dtype=torch.float64)))
    again = ib.networks.UnconstrainedFeatures.from_weights(*network.layers)
    torch.testing.assert_close(again.features(), network.features())
    with pytest.raises(ValueError, match="hidden layer"):
        ib.networks.UnconstrainedFeatures(5, hidden_widths=(), n_outputs=2)
