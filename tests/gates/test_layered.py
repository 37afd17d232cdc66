"""Gates of every layer: of which network, on other inputs, and from a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from implicit_bias import DGN
from implicit_bias.gates import LinearGates, NetworkGates, RandomGates, SoftGates, gate_activity
from implicit_bias.networks import DeepReLU

RNG = np.random.default_rng(2)
X, OTHER = RNG.normal(size=(40, 3)), RNG.normal(size=(15, 3))
LAYERS = [RNG.normal(size=size) for size in ((4, 3), (5, 4))]
GATINGS = {
    "random": RandomGates(widths=(4, 5), rate=0.3),
    "network": NetworkGates(LAYERS),
    "linear": LinearGates(3, widths=(4, 5), random_state=3),
    "linear, given": LinearGates(3, widths=(4, 5), layers=LAYERS),
    "soft": SoftGates(LAYERS, 2.0, 0.1),
    "soft, linear": SoftGates(LinearGates(3, widths=(4, 5)), 1.5),
    "soft, hard": SoftGates(LAYERS, np.inf, 0.2),
}


def test_a_network_behind_gates_copied_from_a_trained_one_is_that_network() -> None:
    relu = DeepReLU(3, (6, 5), random_state=1)
    gating, inputs = NetworkGates(relu).fit(X), torch.tensor(OTHER)
    copied = gating.transform(OTHER)
    assert np.array_equal(copied, relu.gates(inputs).numpy())
    network = DGN.from_weights(*relu.layers)
    torch.testing.assert_close(network(inputs, network.prepare(copied)), relu(inputs))
    with torch.no_grad():
        relu.layers[0].neg_()
    assert np.array_equal(gating.transform(OTHER), copied)


def test_linear_gates_are_half_spaces_whatever_the_depth() -> None:
    gating = LinearGates(3, widths=(4, 5, 2), random_state=5).fit(X)
    normals = gating.normals()
    assert normals.shape == (11, 3)
    np.testing.assert_array_equal(gating.transform(OTHER), OTHER @ normals.T >= 0)
    # A pair of points that differ by a factor is on the same side of every half-space.
    np.testing.assert_array_equal(gating.transform(2 * OTHER), gating.transform(OTHER))
    assert np.all(gating.transform(np.zeros((1, 3))) == 1)


def test_random_gates_are_open_at_their_rate_and_belong_to_their_samples_alone() -> None:
    gating = RandomGates(widths=(50, 40), rate=0.3, random_state=1)
    gates = gating.fit(np.ones((60, 1))).transform(np.ones((60, 1)))
    assert abs(gates.mean() - 0.3) < 5 * np.sqrt(0.21 / gates.size)
    assert len(np.unique(gates, axis=0)) == 60
    for unseen in (np.ones((59, 1)), np.zeros((60, 1))):
        with pytest.raises(ValueError, match="belong to the 60 samples that they were drawn for"):
            gating.transform(unseen)


def test_steep_soft_gates_tend_to_one_plus_eps_where_they_are_open() -> None:
    # The published table of limits has [q > 0], without the factor 1 + eps.
    hard = NetworkGates(LAYERS).fit(X).transform(OTHER)
    soft = SoftGates(LAYERS, 1e6, 0.1).fit(X).transform(OTHER)
    np.testing.assert_allclose(soft, 1.1 * hard, atol=1e-12)
    np.testing.assert_array_equal(
        SoftGates(LAYERS, np.inf, 0.1).fit(X).transform(OTHER), 1.1 * hard
    )
    assert not np.allclose(soft, hard, atol=0.05)


@pytest.mark.parametrize("source", [LAYERS, LinearGates(3, widths=(4, 5), layers=LAYERS)])
def test_derivatives_of_soft_gates_are_those_of_automatic_differentiation(source) -> None:
    gating, linear = SoftGates(source, 1.5, 0.2).fit(X), not isinstance(source, list)

    def gates(*weights: torch.Tensor) -> torch.Tensor:
        first = torch.tensor(OTHER) @ weights[0].T
        second = (first if linear else first.clamp(min=0)) @ weights[1].T
        return 1.2 * torch.sigmoid(1.5 * torch.cat([first, second], dim=1))

    weights = tuple(torch.tensor(W) for W in LAYERS)
    np.testing.assert_allclose(gating.transform(OTHER), gates(*weights), rtol=1e-13)
    slopes = torch.autograd.functional.jacobian(gates, weights)
    expected = np.concatenate([s.numpy().reshape(15, 9, -1) for s in slopes], axis=2)
    np.testing.assert_allclose(gating.jacobian(OTHER), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", GATINGS)
def test_loaded_gates_are_the_same_gates_and_can_be_fitted_again(name, tmp_path) -> None:
    gating = clone(GATINGS[name]).fit(X)
    seen = X if name == "random" else OTHER
    gating.save(tmp_path / "gates.safetensors")
    loaded = type(gating).load(tmp_path / "gates.safetensors")
    np.testing.assert_array_equal(loaded.transform(seen), gating.transform(seen))
    np.testing.assert_array_equal(clone(loaded).fit(X).transform(seen), gating.transform(seen))
    with pytest.raises(ValueError, match="3 features"):
        loaded.transform(np.ones((2, 4)))


@pytest.mark.parametrize("name", GATINGS)
def test_gates_before_a_fit_are_refused(name) -> None:
    with pytest.raises(NotFittedError):
        clone(GATINGS[name]).transform(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomGates(widths=(3,), rate=1.5).fit(X),
         r"`rate` must lie in \[0, 1\], got 1.5"),
        (lambda: RandomGates(widths=(3, 0)).fit(X), "`widths` must be at least 1, got 0"),
        (lambda: RandomGates(widths=()).fit(X), "`widths` must name a layer"),
        (lambda: NetworkGates([np.ones((2, 3)), np.ones((2, 3))]).fit(X), "hidden layers"),
        (lambda: NetworkGates([[[1.0, np.nan, 0.0]]]).fit(X), "entries that are NaN"),
        (lambda: NetworkGates([np.ones((2, 4))]).fit(X), r"`X` must have shape \(n, 4\)"),
        (lambda: LinearGates(3, widths=(4,), layers=LAYERS).fit(X),
         r"`layers` must have shapes \[\(4, 3"),
        (lambda: LinearGates(2, widths=(4,)).fit(X), r"`X` must have shape \(n, 2\)"),
        (lambda: SoftGates(LAYERS, 0.0).fit(X), "`beta` must be positive"),
        (lambda: SoftGates(LAYERS, 1.0, -0.1).fit(X), "`eps` at least 0"),
        (lambda: SoftGates(LAYERS, np.inf).fit(X).jacobian(X), "hard gates .* derivative zero"),
    ],
)  # fmt: skip
def test_gatings_that_cannot_be_are_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_width_that_is_no_integer_is_refused() -> None:
    with pytest.raises(TypeError, match="must be an integer"):
        LinearGates(3, widths=(4, 2.5)).fit(X)


# Active and sensitive gates


def test_a_gate_can_be_active_and_sensitive_above_the_published_threshold() -> None:
    # q = 0.8 from x = 3: G = 1.1 / (1 + exp(-3.2)), dG/dtheta = 4 G (1 - G / 1.1) x.
    gating = SoftGates([[[0.8 / 3]]], beta=4.0, eps=0.1).fit([[3.0]])
    gates, slopes = gating.transform([[3.0]]), gating.jacobian([[3.0]])
    assert gates[0, 0] == pytest.approx(1.057, abs=1e-3)
    assert slopes[0, 0, 0] == pytest.approx(0.497, abs=1e-3)
    level, at_level = 0.95, 0.95 * (1 - 0.95 / 1.1)  # |chi'(chi^-1(level))|, as printed
    assert at_level == pytest.approx(0.1295, abs=1e-4)
    assert gate_activity(gates, slopes, active=level, sensitive=at_level).both.all()
    # The chain rule's factor beta |dq / dtheta| is what is missing.
    corrected = 4.0 * 3.0 * at_level
    assert not gate_activity(gates, slopes, active=level, sensitive=corrected).both.any()


def test_above_the_corrected_threshold_no_gate_is_both_and_just_below_it_one_is() -> None:
    rng = np.random.default_rng(0)
    X, level, beta = rng.normal(size=(4000, 3)), 0.7, 2.0
    gating = SoftGates([rng.normal(size=(5, 3))], beta=beta).fit(X)
    gates, slopes = gating.transform(X), gating.jacobian(X)
    # One layer of gates: dq / dtheta is the input itself.
    bound = beta * level * (1 - level) * np.abs(X).max(axis=1)
    found = [
        gate_activity(gates[n : n + 1], slopes[n : n + 1], active=level, sensitive=b)
        for n, b in enumerate(bound)
    ]
    assert sum(one.active.sum() for one in found) > 1000
    assert not any(one.both.any() for one in found)
    below = [
        gate_activity(gates[n : n + 1], slopes[n : n + 1], active=level, sensitive=0.99 * b)
        for n, b in enumerate(bound)
    ]
    assert any(one.both.any() for one in below)


@pytest.mark.parametrize(
    ("slopes", "options", "message"),
    [
        (
            np.ones((2, 3, 1)),
            {},
            r"`jacobian` .* shape \(2, 2, weights\).*, got \(2, 3, 1\)",
        ),
        (np.full((2, 2, 1), np.nan), {}, "entries that are NaN"),
        (np.ones((2, 2, 1)), {"sensitive": -1.0}, "`sensitive` must be at least 0"),
    ],
)
def test_derivatives_of_other_gates_are_refused(slopes, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        gate_activity(np.ones((2, 2)), slopes, **{"active": 0.5, "sensitive": 0.1} | options)


def test_a_path_of_a_relu_network_can_be_open_on_two_pieces_and_one_of_half_spaces_never() -> None:
    # Inputs (x, 1). Layer 1: relu(x), .., relu(x - 3) and the constant 1; layer 2 climbs and falls
    # by turns from -1/2 at 0, and is open on [1/2, 3/2] and on [5/2, 7/2].
    layers = [
        np.array([[1.0, 0.0], [1.0, -1.0], [1.0, -2.0], [1.0, -3.0], [0.0, 1.0]]),
        np.array([[1.0, -2.0, 2.0, -2.0, -0.5]]),
    ]
    x = np.linspace(-1, 5, 601) + 1e-4
    X = np.column_stack([x, np.ones_like(x)])
    gates = NetworkGates(layers).fit_transform(X)
    expected = ((x >= 0.5) & (x <= 1.5)) | ((x >= 2.5) & (x <= 3.5))
    np.testing.assert_array_equal(gates[:, 0] * gates[:, 5] == 1, expected)
    assert pieces(expected) == 2
    # The same weights of a deep linear network: 7/2 - x, and each path on one interval.
    linear = LinearGates(2, widths=(5, 1), layers=layers).fit_transform(X)
    assert [pieces(linear[:, i] * linear[:, 5]) for i in range(5)] == [1] * 5


def pieces(opened: np.ndarray) -> int:
    """Runs of open samples in a row."""
    return int(np.sum(np.diff(np.concatenate([[0], opened.astype(int), [0]])) == 1))
