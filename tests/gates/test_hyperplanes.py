import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

from implicit_bias.gates import HyperplaneContexts, HyperplaneGates

BOTH = pytest.mark.parametrize("kind", [HyperplaneContexts, HyperplaneGates])


def inputs(n, d, *, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) + shift


def projections(X, gating):
    return np.einsum("nd,hkd->nhk", X, gating.normals_)


@pytest.mark.parametrize("cutoffs", ["median", "random"])
@pytest.mark.parametrize(("n_units", "n_contexts"), [(1, 2), (3, 2), (2, 4), (3, 8)])
def test_context_is_the_sum_of_the_open_bits_each_weighing_a_power_of_two(
    cutoffs, n_units, n_contexts
):
    X = inputs(12, 4)
    gating = HyperplaneContexts(n_units, n_contexts, cutoffs=cutoffs).fit(inputs(31, 4, seed=1))
    contexts = gating.transform(X)
    assert contexts.dtype == np.int64
    assert contexts.shape == (12, n_units)
    for n, h in np.ndindex(12, n_units):
        expected = 0
        for j, (normal, cutoff) in enumerate(
            zip(gating.normals_[h], gating.cutoffs_[h], strict=True)
        ):
            expected += 2**j if sum(normal * X[n]) - cutoff >= 0 else 0
        assert contexts[n, h] == expected
    assert 2 ** gating.normals_.shape[1] == n_contexts


def test_a_point_on_the_hyperplane_is_on_its_upper_side():
    gating = HyperplaneContexts(1, 2).fit([[0.0], [1.0]])
    gating.normals_, gating.cutoffs_ = np.array([[[2.0]]]), np.array([[6.0]])
    points = [[np.nextafter(3.0, 0.0)], [3.0], [np.nextafter(3.0, 4.0)]]
    assert gating.transform(points).ravel().tolist() == [0, 1, 1]


def test_one_context_needs_no_hyperplane_and_is_zero_everywhere():
    gating = HyperplaneContexts(3, 1).fit(inputs(5, 2))
    assert gating.normals_.shape == (3, 0, 2)
    assert np.array_equal(gating.transform(inputs(4, 2)), np.zeros((4, 3)))


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("n", [2, 3, 40, 41])
def test_median_cutoff_lies_halfway_between_the_two_middle_projections(n, shift):
    X = inputs(n, 5, shift=shift)
    gating = HyperplaneContexts(6, 4).fit(X)
    ordered = np.sort(projections(X, gating), axis=0)
    below, above = ordered[n // 2 - 1], ordered[n // 2]
    np.testing.assert_allclose(gating.cutoffs_, (below + above) / 2, rtol=1e-12)
    n_upper = (projections(X, gating) >= gating.cutoffs_).sum(axis=0)
    assert np.all(n_upper == n - n // 2)


@pytest.mark.parametrize(
    ("points", "middle"),
    [([0, 0, 0, 1], 0.5), ([0, 0, 0, 0, 5], 2.5), ([0, 5, 5, 5], 2.5), ([0, 1, 1, 1, 8, 8], 4.5)],
)
def test_median_cutoff_moves_to_the_nearest_gap_when_the_middle_is_tied(points, middle):
    gating = HyperplaneContexts(20, 2).fit(np.array(points, dtype=float)[:, None])
    np.testing.assert_allclose(gating.cutoffs_, gating.normals_[:, :, 0] * middle, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_reference_rows_keep_their_contexts_in_batches_of_any_size(scale):
    X = scale * np.repeat(inputs(3, 301, shift=1.0), [1, 5, 1], axis=0)
    gating = HyperplaneContexts(100, 4).fit(X)
    together = gating.transform(X)
    assert np.all(together[1:6] == together[1])
    for size in (1, 2, 3):
        batches = [gating.transform(X[start : start + size]) for start in range(0, 7, size)]
        assert np.array_equal(np.vstack(batches), together)


@pytest.mark.parametrize("row", [np.zeros(50), inputs(1, 50)[0], 1e6 * inputs(1, 50)[0]])
def test_equal_reference_rows_are_all_on_the_upper_side(row):
    X = np.tile(row, (7, 1))
    gating = HyperplaneContexts(100, 4).fit(X)
    assert np.all(gating.transform(X) == 3)
    assert np.all(gating.transform(X[:1]) == 3)


def test_normals_and_random_cutoffs_have_the_published_standard_deviations():
    gating = HyperplaneContexts(5000, 4, cutoffs="random").fit(inputs(4, 3))
    for draws, scale in ((gating.normals_, 36.0), (gating.cutoffs_, 9.0)):
        n = draws.size
        assert abs(draws.mean()) < 5 * scale / np.sqrt(n)
        assert abs(draws.std() - scale) < 5 * scale / np.sqrt(2 * n)


def test_hyperplanes_are_drawn_independently():
    normals = HyperplaneContexts(2000, 4).fit(inputs(4, 3)).normals_
    correlation = np.corrcoef(normals.reshape(2000, 6), rowvar=False)
    assert np.abs(correlation - np.eye(6)).max() < 5 / np.sqrt(2000)


def test_random_cutoffs_do_not_look_at_the_reference_data_and_median_cutoffs_do():
    def cutoffs(rule, shift):
        return HyperplaneContexts(cutoffs=rule).fit(inputs(9, 3, shift=shift)).cutoffs_

    assert np.array_equal(cutoffs("random", 0.0), cutoffs("random", 50.0))
    assert not np.allclose(cutoffs("median", 0.0), cutoffs("median", 50.0))


def test_normals_are_the_same_under_both_cutoff_rules():
    X = inputs(9, 3)
    median = HyperplaneContexts(cutoffs="median", random_state=4).fit(X)
    random = HyperplaneContexts(cutoffs="random", random_state=4).fit(X)
    assert np.array_equal(median.normals_, random.normals_)
    assert not np.allclose(median.cutoffs_, random.cutoffs_)


def test_a_shared_generator_goes_on_alike_under_both_cutoff_rules():
    after = []
    for rule in ("median", "random"):
        rng = np.random.default_rng(4)
        HyperplaneContexts(cutoffs=rule, random_state=rng).fit(inputs(9, 3))
        after.append(rng.normal())
    assert after[0] == after[1]


def test_hyperplanes_repeat_for_one_random_state_and_differ_for_another():
    X = inputs(9, 3)
    first, again, other = (HyperplaneContexts(random_state=s).fit(X).normals_ for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.any(first == other)


def scores(contexts, zeta, X):
    """f(x_n) = sum_h <zeta[h, c_h(n)], x_n>."""
    units = np.arange(zeta.shape[0])
    return np.einsum("nhd,nd->n", zeta[units, contexts], X)


@pytest.mark.parametrize("cutoffs", ["median", "random"])
def test_loaded_contexts_give_the_same_contexts_and_the_same_scores(tmp_path, cutoffs):
    # Far from the origin, so that cutoffs drawn anew would put nearly every input on one side.
    X = inputs(60, 5, seed=3, shift=20.0)
    gating = HyperplaneContexts(8, 4, cutoffs=cutoffs, random_state=7)
    gating.fit(inputs(50, 5, seed=4, shift=20.0))
    path = tmp_path / "contexts"
    gating.save(path)
    loaded = HyperplaneContexts.load(path)
    zeta = inputs(8 * 4, 5, seed=5).reshape(8, 4, 5)
    contexts = gating.transform(X)
    if cutoffs == "median":
        assert len(np.unique(contexts)) == 4
    assert np.array_equal(loaded.transform(X), contexts)
    assert np.array_equal(scores(loaded.transform(X), zeta, X), scores(contexts, zeta, X))
    assert np.array_equal(loaded.cutoffs_, gating.cutoffs_)
    assert loaded.get_params() == gating.get_params()
    assert list(tmp_path.iterdir()) == [path]


def test_loaded_contexts_can_be_fitted_again_to_the_same_hyperplanes(tmp_path):
    X = inputs(9, 3)
    gating = HyperplaneContexts(random_state=2**80).fit(X)
    gating.save(tmp_path / "contexts.safetensors")
    again = HyperplaneContexts.load(tmp_path / "contexts.safetensors").fit(X)
    assert np.array_equal(again.normals_, gating.normals_)


def test_a_generator_is_not_stored_and_the_hyperplanes_are(tmp_path):
    gating = HyperplaneContexts(random_state=np.random.default_rng(0)).fit(inputs(9, 3))
    gating.save(tmp_path / "contexts.safetensors")
    loaded = HyperplaneContexts.load(tmp_path / "contexts.safetensors")
    assert loaded.random_state is None
    assert np.array_equal(loaded.normals_, gating.normals_)


def test_loaded_contexts_know_width_and_column_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(inputs(9, 2), columns=["left", "right"])
    gating = HyperplaneContexts().fit(frame)
    gating.save(tmp_path / "contexts.safetensors")
    loaded = HyperplaneContexts.load(tmp_path / "contexts.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(loaded.transform(frame), gating.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[["right", "left"]])
    assert loaded.n_features_in_ == 2


def test_a_file_that_save_did_not_write_is_refused(tmp_path):
    path = tmp_path / "contexts.safetensors"

    def refused(match, gating=None):
        if gating is not None:
            gating.save(path)
        with pytest.raises(ValueError, match=match):
            HyperplaneContexts.load(path)

    gating = HyperplaneContexts().fit(inputs(9, 3))
    fewer = {name: array for name, array in gating.to_arrays().items() if name != "cutoffs"}
    gating.to_arrays = lambda: fewer
    refused("it has no cutoffs of a HyperplaneContexts; .*save the gates again", gating)
    gating = HyperplaneContexts().fit(inputs(9, 3))
    gating.cutoffs_ = gating.cutoffs_[:-1]
    refused(r"cutoffs of shape \(9, 1\)", gating)
    gating = HyperplaneContexts().fit(inputs(9, 3))
    gating.normals_ = gating.normals_ * np.nan
    refused("'normals' that are not finite", gating)
    gating = HyperplaneContexts().fit(inputs(9, 3))
    gating.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(gating.normals_.tobytes(), (-gating.normals_).tobytes()))
    refused("checksum")
    path.write_bytes(whole[: len(whole) // 2])
    refused("not a safetensors file.*save the gates again")
    path.write_bytes(b"")
    refused("not a safetensors file.*save the gates again")
    with open(path, "wb") as file:  # what older versions wrote
        np.savez(file, gating=np.array("HyperplaneContexts"))
    refused(r"by implicit-bias 0\.1\.0 or older.* in format 1.*reads format")


@BOTH
def test_unfitted_hyperplanes_say_so(kind, tmp_path):
    for use in (lambda g: g.transform(inputs(2, 2)), lambda g: g.save(tmp_path / "gates")):
        with pytest.raises(NotFittedError):
            use(kind())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["fit", "transform"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_inputs_that_are_not_finite_are_refused(method, bad):
    X = inputs(9, 3)
    gating = HyperplaneContexts().fit(X)
    X[4, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        getattr(gating, method)(X)


@pytest.mark.parametrize("width", [2, 4])
def test_inputs_of_another_width_are_refused(width):
    with pytest.raises(ValueError, match=f"{width} features.*expecting 3"):
        HyperplaneContexts().fit(inputs(9, 3)).transform(inputs(9, width))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_units": 2.5}, TypeError, "`n_units` must be an integer"),
        ({"n_contexts": 3}, ValueError, "power of two.*got 3: take 2 or 4"),
        ({"n_contexts": 0}, ValueError, "`n_contexts` must be at least 1, got 0"),
        ({"n_contexts": 2.0}, TypeError, "`n_contexts` must be an integer, got 2.0"),
        ({"n_units": 0}, ValueError, "`n_units` must be at least 1, got 0"),
        ({"n_units": "3"}, TypeError, "`n_units` must be an integer, got '3'"),
        ({"cutoffs": "mean"}, ValueError, "`cutoffs` must be one of .*got 'mean'"),
    ],
)
def test_parameters_out_of_range_are_refused_when_fitting(parameters, error, message):
    for kind in (HyperplaneContexts, HyperplaneGates)[: 1 if "n_contexts" in parameters else 2]:
        with pytest.raises(error, match=message):
            kind(**parameters).fit(inputs(9, 3))


def test_fit_and_transform_leave_their_inputs_alone():
    X = inputs(9, 3)
    before = X.copy()
    HyperplaneContexts().fit(X).transform(X)
    assert np.array_equal(X, before)


def test_a_clone_has_the_parameters_and_not_the_hyperplanes():
    gating = HyperplaneContexts(3, 4, cutoffs="random", random_state=5).fit(inputs(9, 3))
    copy = clone(gating)
    assert copy.get_params() == gating.get_params()
    assert not hasattr(copy, "normals_")
    assert np.array_equal(copy.fit(inputs(9, 3)).normals_, gating.normals_)


def test_contexts_feed_a_pipeline_that_learns_a_function_of_the_contexts():
    X = inputs(80, 3)
    y = HyperplaneContexts(4, 2).fit_transform(X)[:, 2]
    steps = HyperplaneContexts(4, 2), OneHotEncoder(), LogisticRegression(C=1e6)
    assert make_pipeline(*steps).fit(X, y).score(X, y) == 1.0


@BOTH
def test_hyperplanes_pass_the_estimator_checks_of_scikit_learn(kind):
    check_estimator(kind(), on_skip=None)
