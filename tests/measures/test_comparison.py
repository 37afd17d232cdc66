"""What `compare` says at the limit, near it and away from it."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import GLN, Sample, compare, kkt_distance, solve_gln_svm
from implicit_bias.limits import GLNLimit
from implicit_bias.measures import Comparison, agreement, measure_network, scores
from implicit_bias.quantities import aligned

# More weights, H C D + H, than training samples: multipliers are determined.
H, C, D = 3, 2, 12


def draw(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.integers(0, C, size=(n, H))


def teacher_labels(X: NDArray[np.float64], contexts: NDArray[np.int64]) -> NDArray[np.float64]:
    zeta = np.random.default_rng(0).normal(size=(H, C, D))
    f = [sum(zeta[h, c] @ x for h, c in enumerate(row)) for x, row in zip(X, contexts, strict=True)]
    return np.sign(np.array(f))


def sample(n: int, seed: int) -> Sample:
    X, contexts = draw(n, seed)
    return Sample(X, teacher_labels(X, contexts), contexts)


TRAIN, HELD_OUT = sample(40, 1), sample(200, 2)


@pytest.fixture(scope="module")
def limit() -> GLNLimit:
    return solve_gln_svm(*TRAIN, tol=1e-10).require()


def spoiled(zeta: NDArray[np.float64], size: float) -> GLN:
    """The balanced network of zeta plus noise of this size relative to zeta."""
    noise = np.random.default_rng(7).normal(size=zeta.shape)
    return GLN.from_zeta(zeta + size * np.linalg.norm(zeta) / np.linalg.norm(noise) * noise)


def assert_at_the_limit(comparison: Comparison, limit: GLNLimit) -> None:
    # Normalised margin of zeta is 1 / P, so that the ratio is D / P = 1 / (1 + gap).
    assert comparison.margin_ratio == pytest.approx(1 / (1 + limit.gap), rel=1e-12)
    assert comparison.zeta_cosine == pytest.approx(1, abs=1e-12)
    assert comparison.score_cosine == pytest.approx(1, abs=1e-12)
    assert comparison.agreement == 1
    assert comparison.error_limit == comparison.error_network
    # ||w - fit|| is of the order of the root of the gap.
    assert comparison.kkt_residual < 1e-4
    assert comparison.kkt_cosine > 1 - 1e-8
    assert abs(comparison.kkt_complementarity) < 1e-4


@pytest.mark.parametrize("upper_widths", [(), (4,)])
@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1.0, 50.0, 1e200])
def test_the_network_of_the_limit_is_at_the_limit_at_every_scale_and_depth(
    limit, upper_widths, factor
) -> None:
    network = GLN.from_zeta(limit.zeta, upper_widths=upper_widths)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(factor ** (1 / network.degree))
    assert_at_the_limit(compare(limit, network, TRAIN, HELD_OUT), limit)
    state = measure_network(network, TRAIN, HELD_OUT)
    assert state.smallest_margin == pytest.approx(factor, rel=1e-9)
    assert state.group_norm == pytest.approx(factor * limit.objective, rel=1e-9)


def test_a_torch_limit_compares_like_a_numpy_one(limit) -> None:
    torch_limit = solve_gln_svm(*(torch.tensor(part) for part in TRAIN), tol=1e-10).require()
    network = spoiled(limit.zeta, 0.3)
    one = compare(limit, network, TRAIN, HELD_OUT).to_dict()
    other = compare(torch_limit, network, TRAIN, HELD_OUT).to_dict()
    for key in ("margin_ratio", "zeta_cosine", "score_cosine", "agreement"):
        assert other[key] == pytest.approx(one[key], rel=1e-4)


def test_cosines_and_agreement_fall_with_the_damage(limit) -> None:
    sizes = np.array([0.0, 0.02, 0.2, 2])
    results = [compare(limit, spoiled(limit.zeta, size), TRAIN, HELD_OUT) for size in sizes]
    for key in ("zeta_cosine", "score_cosine"):
        assert np.all(np.diff([getattr(result, key) for result in results]) < 0)
    assert np.all(np.diff([result.agreement for result in results]) <= 0)
    assert results[-1].agreement < 0.95
    # Noise is at right angles to zeta on average: cosine 1 / sqrt(1 + size^2).
    off = np.abs([r.zeta_cosine for r in results] - 1 / np.sqrt(1 + sizes**2))
    assert np.all(off <= 0.1 * sizes + 1e-12)


def test_margin_ratio_is_the_normalised_margin_times_the_lower_bound(limit) -> None:
    # A loose limit: its upper bound would let a better network pass 1.
    loose = solve_gln_svm(*TRAIN, tol=0.5, max_iterations=2)
    assert loose.gap > 1e-4
    comparison = compare(loose, GLN.from_zeta(limit.zeta), TRAIN, HELD_OUT)
    assert comparison.margin_ratio == pytest.approx(loose.dual_objective / limit.objective)
    assert comparison.margin_ratio < 1


def test_margins_norms_and_accuracies_are_those_of_the_weights() -> None:
    zeta = np.zeros((H, C, D))
    zeta[0, :, 0], zeta[2, 0, 1] = 3.0, 4.0
    state = measure_network(GLN.from_zeta(zeta), TRAIN, HELD_OUT)
    f = {}
    for name, part in (("train", TRAIN), ("held out", HELD_OUT)):
        f[name] = 3 * part.X[:, 0] + 4 * part.X[:, 1] * (part.gates[:, 2] == 0)
    margins = TRAIN.y * f["train"]
    assert state.smallest_margin == pytest.approx(margins.min())
    assert state.group_norm == pytest.approx(3 * math.sqrt(2) + 4)
    assert state.normalised_margin == pytest.approx(margins.min() / (3 * math.sqrt(2) + 4))
    assert (state.live, state.n_units) == (2, 3)
    assert state.train_accuracy == np.mean(margins > 0)
    assert state.val_accuracy == np.mean(HELD_OUT.y * f["held out"] > 0)
    assert state.support == -1


def test_support_of_a_network_counts_the_multipliers_of_its_fit(limit) -> None:
    network = GLN.from_zeta(limit.zeta)
    kkt = kkt_distance(network, *TRAIN)
    # The fit may leave multipliers of the size of rounding anywhere.
    lam = kkt.multipliers
    rounded = replace(kkt, multipliers=np.maximum(lam, 1e-15 * lam.max()))
    for fit in (kkt, rounded):
        state = measure_network(network, TRAIN, HELD_OUT, fit)
        assert state.support == limit.support.sum() < len(TRAIN.y)


def test_score_cosine_agreement_and_errors_are_those_of_the_scores(limit) -> None:
    network = spoiled(limit.zeta, 1.5)
    predicted = limit.predictor(HELD_OUT.X, HELD_OUT.gates)
    trained = network(torch.tensor(HELD_OUT.X), torch.tensor(HELD_OUT.gates)).detach().numpy()
    np.testing.assert_array_equal(scores(network, HELD_OUT), trained)
    comparison = compare(limit, network, TRAIN, HELD_OUT)
    same = sum((a > 0) == (b > 0) for a, b in zip(predicted, trained, strict=True))
    assert comparison.agreement == same / 200
    assert comparison.error_limit == sum(HELD_OUT.y * predicted < 0) / 200
    assert comparison.error_network == sum(HELD_OUT.y * trained < 0) / 200
    assert comparison.error_limit != comparison.error_network
    inner = sum(a * b for a, b in zip(predicted, trained, strict=True))
    lengths = math.sqrt(sum(predicted**2) * sum(trained**2))
    assert comparison.score_cosine == pytest.approx(inner / lengths)


def test_agreement_of_independent_classifiers_is_what_shuffled_errors_show(limit) -> None:
    comparison = compare(limit, spoiled(limit.zeta, 3.0), TRAIN, HELD_OUT)
    p, q = comparison.error_limit, comparison.error_network
    assert 0 < p < q
    # Exact: both wrong, or both right, over every alignment of the two patterns of errors.
    wrong = [np.arange(200) < round(200 * rate) for rate in (p, q)]
    agreement = [np.mean(wrong[0] == np.roll(wrong[1], shift)) for shift in range(200)]
    assert comparison.agreement_independent == pytest.approx(np.mean(agreement), rel=1e-12)


# y follows both coordinates in all contexts. Unit 0 is enough with norm sqrt(2), since both of its
# contexts need a coefficient of 1; unit 1, in context 0 throughout, needs 1 and is the limit.
TWO = Sample(np.array([[1.0, 1], [-1, -1]]), np.array([1.0, -1]), np.array([[0, 0], [1, 0]]))


def two_units(first: float, second: float) -> Comparison:
    """Units of the norms `first` sqrt(2) and `second`, times the length of a sample, compared."""
    zeta = np.zeros((2, 2, 2))
    zeta[0], zeta[1, 0] = first / 2, second / 2
    return compare(solve_gln_svm(*TWO, n_contexts=2).require(), GLN.from_zeta(zeta), TWO, TWO)


def test_dead_units_are_named_with_their_dual_norms() -> None:
    found = two_units(1, 0)
    assert (found.dead_units, found.small_units, found.dual_condition) == ((1,), (1,), False)
    # ||v_0|| = 1 needs lam ||x|| sqrt(2) = 1, and then ||v_1|| = 2 lam ||x|| = sqrt(2).
    assert found.dead_dual_norms == (pytest.approx(math.sqrt(2), rel=1e-9),)
    assert found.margin_ratio == pytest.approx(1 / math.sqrt(2), rel=1e-7)
    rows = dict(found.rows())
    assert rows["dead units of the network"] == rows["units wrongly small (ideal 0)"] == "1 of 2: 1"
    assert rows["largest dual norm of a unit (at most 1)"] == "1.414"


def test_a_unit_that_is_alive_and_much_too_small_is_named() -> None:
    # It holds 1/70 of the norm and hardly shows in the residual, which weighs units by their share.
    found = two_units(1, 0.02)
    assert found.kkt_residual < 0.1
    assert (found.dead_units, found.n_wrongly_dead) == ((), 0)
    assert (found.small_units, found.n_wrongly_small, found.dual_condition) == ((1,), 1, False)
    assert found.largest_dual_norm > 1.3
    there = two_units(0, 1)
    assert (there.small_units, there.dual_condition) == ((), True)
    # A dual norm above 1 is no verdict by itself: it falls while such a unit still grows.
    on_its_way = two_units(1, 1.6)
    assert on_its_way.largest_dual_norm > 1.01
    assert (on_its_way.small_units, on_its_way.dual_condition) == ((), None)


def test_scores_of_zero_agree_with_zero_alone() -> None:
    assert agreement(np.array([0.0, 1, -1, 0, 0]), np.array([0.0, 1, 1, 1, -1])) == 2 / 5


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((TRAIN.X, TRAIN.y[1:], TRAIN.gates), r"`y` must have shape \(40,\).*got shape \(39,\)"),
        ((TRAIN.X, TRAIN.y[:, None], None), r"`y` must have shape \(40,\)"),
        ((TRAIN.X, TRAIN.y + 1, TRAIN.gates), "values in {-1, [+]1}"),
        ((TRAIN.X, torch.tensor(TRAIN.y) * math.nan, None), "`y` has entries that are NaN"),
        ((TRAIN.X, TRAIN.y, TRAIN.gates[1:]), r"`gates` must have 40 rows, .* got shape \(39, "),
    ],
)
def test_a_sample_refuses_parts_that_do_not_belong_together(parts, message) -> None:
    with pytest.raises(ValueError, match=message):
        Sample(*parts)


def test_a_sample_is_a_tuple_of_its_parts() -> None:
    X, y, gates = TRAIN
    assert (X is TRAIN.X) and (y is TRAIN.y) and (gates is TRAIN.gates)
    assert Sample(torch.tensor(X), torch.tensor(y), None)[1].dtype is torch.float64


def test_the_parts_of_a_sample_are_of_one_kind_and_gates_where_required() -> None:
    kept, rows = TRAIN.y.tolist(), torch.tensor(TRAIN.X)
    assert all(isinstance(part, np.ndarray) for part in Sample(TRAIN.X.tolist(), kept, TRAIN.gates))
    assert all(isinstance(part, torch.Tensor) for part in Sample(rows, kept, TRAIN.gates.tolist()))
    assert Sample(rows, kept, TRAIN.gates).required_gates.dtype is torch.int64
    with pytest.raises(ValueError, match="`gates` are None"):
        _ = Sample(rows, kept).required_gates


def test_a_unit_counts_as_dead_up_to_a_thousandth_of_the_largest(limit) -> None:
    zeta = np.zeros((H, C, D))
    zeta[:, 0, 0] = 1.0, 0.9e-3, 1.1e-3
    comparison = compare(limit, GLN.from_zeta(zeta), TRAIN, HELD_OUT)
    assert comparison.dead_units == (1,)
    assert measure_network(GLN.from_zeta(zeta), TRAIN, HELD_OUT).live == 2


def test_a_network_of_zeros_is_dead_and_has_no_direction(limit) -> None:
    network = GLN.from_zeta(np.zeros((H, C, D)))
    state = measure_network(network, TRAIN, HELD_OUT)
    assert state.live == 0
    assert math.isnan(state.normalised_margin)
    assert state.train_accuracy == state.val_accuracy == 0
    comparison = compare(limit, network, TRAIN, HELD_OUT)
    assert comparison.dead_units == (0, 1, 2)
    for value in (comparison.margin_ratio, comparison.zeta_cosine, comparison.score_cosine):
        assert math.isnan(value)
    assert comparison.error_network == 1


def test_a_network_that_does_not_separate_has_no_kkt_distance_but_all_the_rest(limit) -> None:
    network = GLN.from_zeta(-limit.zeta)
    comparison = compare(limit, network, TRAIN, HELD_OUT)
    for name in ("kkt_cosine", "kkt_residual", "kkt_complementarity"):
        assert math.isnan(getattr(comparison, name))
    assert comparison.dead_dual_norms == ()
    # The smallest margin is minus the largest of the limit, which is above 1.
    assert comparison.margin_ratio == pytest.approx(-limit.margins.max(), rel=1e-9)
    assert comparison.zeta_cosine == pytest.approx(-1)
    assert comparison.agreement == 0


def test_a_distance_that_is_known_is_not_computed_again(limit) -> None:
    network = spoiled(limit.zeta, 0.02)
    kkt = kkt_distance(network, *TRAIN)
    given = compare(limit, network, TRAIN, HELD_OUT, kkt=kkt)
    assert given == compare(limit, network, TRAIN, HELD_OUT)
    other = kkt_distance(GLN.from_zeta(limit.zeta), *TRAIN)
    assert compare(limit, network, TRAIN, HELD_OUT, kkt=other).kkt_residual == other.residual


def test_a_network_without_units_is_compared_by_scores_alone(limit) -> None:
    class Linear(torch.nn.Module):
        degree = 1

        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(D, dtype=torch.float64))

        def forward(self, X: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
            return X @ self.w

    comparison = compare(limit, Linear(), TRAIN, HELD_OUT)
    assert math.isnan(comparison.margin_ratio)
    assert math.isnan(comparison.zeta_cosine)
    assert comparison.dead_units == ()
    f = HELD_OUT.X.sum(axis=1)
    assert comparison.error_network == np.mean(HELD_OUT.y * f < 0)


def test_what_cannot_be_compared_is_refused(limit) -> None:
    nothing = Sample(np.empty((0, D)), np.empty(0), np.empty((0, H), dtype=int))
    network = GLN.from_zeta(limit.zeta)
    with pytest.raises(ValueError, match="`val` has no samples"):
        compare(limit, network, TRAIN, nothing)
    same = TRAIN.X[:1].repeat(2, axis=0), np.array([1.0, -1.0]), TRAIN.gates[:1].repeat(2, axis=0)
    with pytest.raises(ValueError, match="the limit is NOT_SEPARABLE and has no coefficients"):
        compare(solve_gln_svm(*same, n_contexts=C), network, TRAIN, HELD_OUT)
    with pytest.raises(ValueError, match="look for NaN in its `zeta`"):
        compare(replace(limit, zeta=limit.zeta * np.nan), network, TRAIN, HELD_OUT)
    wider = GLN.from_zeta(np.ones((H, C + 1, D)))
    with pytest.raises(ValueError, match=r"zeta has shape \(3, 3, 12\), the limit's \(3, 2, 12\)"):
        compare(limit, wider, TRAIN, HELD_OUT)
    with torch.no_grad():
        network.w1[0, 0, 0] = math.nan
    with pytest.raises(FloatingPointError, match="no number to 20 of 40 samples"):
        compare(limit, network, TRAIN, HELD_OUT)


def test_to_dict_to_frame_and_str_say_the_same(limit) -> None:
    zeta = limit.zeta.copy()
    zeta[2] = 0
    comparison = compare(limit, GLN.from_zeta(zeta), TRAIN, HELD_OUT)
    record = comparison.to_dict()
    assert list(record) == [field.name for field in fields(Comparison)]
    json.dumps(record)
    frame = comparison.to_frame()
    assert set(record) - set(frame.columns) == {"dead_units", "small_units", "dual_norms"}
    assert frame["n_dead"].item() == 1
    for name in set(frame.columns) & set(record):
        np.testing.assert_equal(frame[name].item(), record[name])
    assert str(comparison).splitlines() == aligned(comparison.rows()).splitlines()
    assert (
        dict(comparison.rows())["agreement on held-out labels (ideal 100%)"]
        == f"{comparison.agreement:.2%}"
    )


@pytest.mark.parametrize(
    ("ratio", "residual", "largest", "small", "reason"),
    [
        (0.995, 0.5, 1.3, (1,), ""),
        (-3.0, math.nan, math.nan, (), ""),
        (0.97, 0.001, 1.3, (1,), "unit 1 still grows: its dual norm exceeds 1"),
        (0.97, 0.001, 1.3, (0, 1), "units 0, 1 still grow: their dual norms exceed 1"),
        (0.97, 0.001, 1.3, (), "a saddle"),
        (0.97, 0.001, 1.0, (), "stationary, but"),
        (0.97, 0.2, 1.3, (), "the weights are not"),
    ],
)
def test_a_margin_ratio_below_099_comes_with_its_reason(
    ratio, residual, largest, small, reason
) -> None:
    values = dict.fromkeys(Comparison.__dataclass_fields__, 0.5) | {
        "margin_ratio": ratio, "kkt_residual": residual, "n_units": 2, "dead_units": (),
        "small_units": small, "dual_norms": (1.0, largest),
    }  # fmt: skip
    found = Comparison(**values)
    assert found.held_back_by.startswith(reason)
    assert bool(found.held_back_by) == bool(reason)
    assert ("what keeps it below" in str(found)) == bool(reason)
