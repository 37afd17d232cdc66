"""Gates of ReLU-like units, what is saved of them, and how they change."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from implicit_bias import FReLU, Status, solve_frelu_svm
from implicit_bias.gates import (
    GateChanges,
    HyperplaneContexts,
    HyperplaneGates,
    ReLUGates,
    gate_changes,
)


def inputs(n, d, *, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) + shift


@pytest.mark.parametrize("cutoffs", ["median", "random"])
@pytest.mark.parametrize("always_open", [True, False])
def test_gates_are_the_upper_sides_of_the_context_hyperplanes(cutoffs, always_open):
    reference, X = inputs(31, 4), inputs(12, 4, seed=1)
    gating = HyperplaneGates(3, always_open=always_open, cutoffs=cutoffs, random_state=5)
    gates = gating.fit(reference).transform(X)
    contexts = HyperplaneContexts(3, 2, cutoffs=cutoffs, random_state=5).fit(reference)
    assert gates.shape == (12, 3 + always_open)
    assert gates.dtype == np.int64
    for n, h in np.ndindex(12, 3):
        projection = sum(contexts.normals_[h, 0] * X[n])
        assert gates[n, h] == (projection >= contexts.cutoffs_[h, 0])
    assert np.all(gates[:, 3:] == 1)


def test_median_gates_open_for_half_of_the_reference_data_however_far_it_lies():
    gates = HyperplaneGates(20, always_open=False).fit_transform(inputs(40, 5, shift=1000.0))
    assert np.all(gates.sum(axis=0) == 20)


def test_without_the_always_open_unit_a_closed_sample_makes_the_limit_infeasible():
    X = np.hstack([inputs(20, 3), np.ones((20, 1))])
    y = np.sign(X @ [1.0, -2.0, 0.5, 0.1])
    for always_open, status in ((True, Status.SOLVED), (False, Status.NOT_SEPARABLE)):
        gates = HyperplaneGates(1, always_open=always_open).fit_transform(X)
        assert (gates.sum(axis=1) == 0).any() == (not always_open)
        assert solve_frelu_svm(X, y, gates).status is status


@pytest.mark.parametrize("cutoffs", ["median", "random"])
@pytest.mark.parametrize("always_open", [True, False])
def test_loaded_gates_give_the_same_gates_and_the_same_scores(tmp_path, cutoffs, always_open):
    X = inputs(200, 5, seed=1, shift=2.0)
    gating = HyperplaneGates(4, always_open=always_open, cutoffs=cutoffs, random_state=3)
    gating.fit(inputs(31, 5, shift=2.0)).save(tmp_path / "gates")
    loaded = HyperplaneGates.load(tmp_path / "gates")
    assert np.array_equal(loaded.transform(X), gating.transform(X))
    assert loaded.get_params() == gating.get_params()
    network = FReLU.from_zeta(inputs(4 + always_open, 5, seed=2))
    scores = [
        network(torch.tensor(X), network.prepare(one.transform(X))) for one in (loaded, gating)
    ]
    assert torch.equal(*scores)
    again = clone(loaded).fit(inputs(31, 5, shift=2.0))
    assert np.array_equal(again.transform(X), gating.transform(X))


def test_files_that_save_did_not_write_are_refused(tmp_path):
    path = tmp_path / "contexts.safetensors"
    HyperplaneContexts(3, 2).fit(inputs(9, 2)).save(path)
    with pytest.raises(ValueError, match=r"no saved HyperplaneGates but HyperplaneContexts"):
        HyperplaneGates.load(path)
    path.write_bytes(b"nothing")
    for gating in (HyperplaneGates, ReLUGates):
        with pytest.raises(ValueError, match=r"not a safetensors file.*save the gates again"):
            gating.load(path)


def test_a_second_fit_forgets_the_first():
    pd = pytest.importorskip("pandas")
    gating = HyperplaneGates(2).fit(pd.DataFrame(inputs(9, 2), columns=["a", "b"]))
    assert gating.feature_names_in_.tolist() == ["a", "b"]
    gating.fit(inputs(9, 3))
    assert not hasattr(gating, "feature_names_in_")
    assert gating.transform(inputs(4, 3)).shape == (4, 3)


def test_learned_gates_are_open_on_and_above_the_hyperplane():
    gating = ReLUGates(np.array([[2.0, -1.0], [0.0, 0.0]]))
    X = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 2.5]])
    assert gating.transform(X).tolist() == [[1, 1], [1, 1], [0, 1]]
    assert gating.transform(X).dtype == np.int64


def test_learned_gates_are_those_of_the_time_they_were_taken(tmp_path):
    class Network:
        w1 = torch.nn.Parameter(torch.tensor([[1.0, 0.0]]))

    gating = ReLUGates.from_network(Network)
    with torch.no_grad():
        Network.w1.neg_()
    assert gating.transform([[1.0, 5.0], [-1.0, 5.0]]).tolist() == [[1], [0]]
    gating.save(tmp_path / "gates.safetensors")
    X = inputs(50, 2)
    assert np.array_equal(
        ReLUGates.load(tmp_path / "gates.safetensors").transform(X), gating.transform(X)
    )


def test_learned_gates_feed_a_pipeline_and_survive_cloning():
    gating, X = ReLUGates(inputs(3, 2, seed=1)), inputs(50, 2)
    expected = gating.transform(X)
    assert np.array_equal(clone(gating).transform(X), expected)
    pipeline = clone(make_pipeline(gating, LogisticRegression())).fit(X, expected[:, 0])
    assert np.array_equal(pipeline.predict(X), expected[:, 0])


@pytest.mark.parametrize("weights", [np.ones(3), np.ones((0, 2)), [[1.0, np.nan]]])
def test_weights_that_are_no_finite_matrix_are_refused(weights):
    with pytest.raises(ValueError, match="`weights` must be finite"):
        ReLUGates(weights).transform(np.ones((1, 3)))


def test_inputs_of_another_width_are_refused_by_learned_gates():
    gating = ReLUGates(np.ones((2, 3)))
    for use in (gating.transform, gating.fit):
        with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
            use(np.ones((4, 2)))
        with pytest.raises(ValueError, match="NaN"):
            use(np.full((4, 3), np.nan))


def test_changes_are_shares_of_samples_unit_by_unit():
    before = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 1]])
    after = np.array([[0, 0, 1], [1, 0, 1], [1, 0, 1], [1, 0, 1]], dtype=bool)
    assert gate_changes(before, torch.tensor(after)).tolist() == [0.75, 0.0, 0.25]
    for other in (after[:3], after[:, :2], after[0]):
        with pytest.raises(ValueError, match=r"`after` .* shape \(4, 3\), got .*same samples"):
            gate_changes(before, other)


def test_changes_along_training_are_read_only_and_ready_for_json():
    changes = GateChanges(np.array([0, 10]), np.array([0.0, 0.25]), np.array([0.0, 0.5]))
    assert changes.to_dict() == {
        "step": [0, 10], "since_start": [0.0, 0.25], "since_last": [0.0, 0.5],
    }  # fmt: skip
    with pytest.raises(ValueError, match="read-only"):
        changes.since_last[0] = 1.0
