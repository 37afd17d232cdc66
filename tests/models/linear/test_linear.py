"""Linear networks of any depth, and the hard-margin SVM that is their limit."""

import math

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

from implicit_bias import DeepLinear, TrainingSettings, solve_linear_svm, train
from tests.long import some_of

DEPTHS = [(), (4,), (3, 6), (5, 2, 3)]
# <w, (2, 0)> >= 1 and <w, (0, 1)> <= -1: w = (1/2, -1). The third sample is far from the margin.
CORNER = np.array([[2.0, 0.0], [0.0, 1.0], [5.0, -4.0]]), np.array([1.0, -1.0, 1.0])
LIMIT = np.array([0.5, -1.0])


def separable(n: int = 30, D: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * np.logspace(0, 0.7, D)
    return X, np.where(X @ rng.normal(size=D) > 0, 1.0, -1.0)


def end_to_end(network: DeepLinear) -> np.ndarray:
    product = np.eye(network.n_inputs)
    for W in network.layers:
        product = W.detach().numpy() @ product
    return product[0]


def test_corner_has_its_closed_form() -> None:
    X, y = CORNER
    limit = solve_linear_svm(X, y).require()
    np.testing.assert_allclose(limit.zeta, LIMIT, atol=1e-7)
    assert limit.objective == pytest.approx(math.sqrt(1.25), rel=1e-8)
    assert limit.support.tolist() == [True, True, False]
    # b / ||b|| = sum lam y x.
    np.testing.assert_allclose(
        (limit.dual * y) @ X, limit.zeta / np.linalg.norm(limit.zeta), atol=1e-7
    )


@pytest.mark.parametrize("seed", range(3))
def test_limit_is_the_hard_margin_machine_of_scikit_learn(seed) -> None:
    X, y = separable(seed=seed)
    limit = solve_linear_svm(X, y).require()
    # A set that is symmetric under (x, y) -> (-x, -y) has a machine without intercept.
    machine = SVC(C=1e9, kernel="linear", tol=1e-10).fit(
        np.vstack([X, -X]), np.concatenate([y, -y])
    )
    np.testing.assert_allclose(limit.zeta, machine.coef_[0], rtol=1e-4, atol=1e-5)
    support = set(np.flatnonzero(limit.support))
    assert support == {i % len(y) for i in machine.support_}


@pytest.mark.parametrize("hidden_widths", DEPTHS)
def test_balanced_weights_have_the_product_and_the_least_norm(hidden_widths) -> None:
    X, y = separable()
    limit = solve_linear_svm(X, y).require()
    layers = limit.balanced_weights(hidden_widths)
    depth = 1 + len(hidden_widths)
    assert [W.shape[0] for W in layers] == [*hidden_widths, 1]
    np.testing.assert_allclose(end_to_end(DeepLinear.from_weights(*layers)), limit.zeta)
    # The arithmetic-geometric mean: sum_l ||W_l||^2 >= L (prod_l ||W_l||)^(2/L).
    squared = sum(float(np.sum(W * W)) for W in layers)
    assert squared == pytest.approx(depth * np.linalg.norm(limit.zeta) ** (2 / depth), rel=1e-12)
    network = DeepLinear.from_zeta(limit.zeta, hidden_widths=hidden_widths)
    for ours, theirs in zip(layers, network.layers, strict=True):
        np.testing.assert_allclose(ours, theirs.detach(), atol=1e-12)


def follow_the_margin(network: DeepLinear, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Normalised gradient steps, shortened as the weights grow; normalised margins.

    Margins of degree L have gradients of size ||w||^(L-1): in rescaled time the weights of three
    layers or more blow up, and steps of any constant size with them.
    """
    ratios = []
    for _ in range(150):
        squares = sum(float(W.detach().square().sum()) for W in network.layers)
        rate = 0.03 / max(squares / network.degree, 1) ** (network.degree - 1)
        settings = TrainingSettings(
            batch_size=None, trainer="normalised", schedule=((20, rate),), n_checkpoints=2
        )
        ratios.append(train(network, X, y, None, settings=settings).normalised_margin[-1])
    return np.array(ratios)


@pytest.mark.parametrize("hidden_widths", [(), (6,), (5, 4), (3, 3, 3)])
@pytest.mark.parametrize("init", some_of(["orthogonal", "balanced"], one_in=2))
def test_networks_of_every_depth_come_to_the_same_limit(hidden_widths, init) -> None:
    X, y = CORNER
    network = DeepLinear(2, hidden_widths=hidden_widths, init=init, init_scale=0.5, random_state=2)
    ratio = follow_the_margin(network, X, y) * math.sqrt(1.25)
    assert np.max(ratio) <= 1 + 1e-12
    assert ratio[-1] > 0.99
    zeta = network.zeta().detach().numpy()
    assert zeta @ LIMIT / np.linalg.norm(zeta) / np.linalg.norm(LIMIT) > 0.99


def test_torch_inputs_give_tensors() -> None:
    X, y = separable()
    limit = solve_linear_svm(torch.tensor(X), torch.tensor(y)).require()
    assert isinstance(limit.zeta, torch.Tensor)
    np.testing.assert_allclose(limit.zeta, solve_linear_svm(X, y).zeta, rtol=1e-6)
    layers = limit.balanced_weights((3,))
    torch.testing.assert_close((layers[1] @ layers[0])[0], limit.zeta)


@pytest.mark.parametrize("seed", range(8))
def test_points_around_a_common_direction_are_separated_by_it_alone(seed: int) -> None:
    # The nearest point of their hull to the origin is (0, 0, 1), inside it: all are on the margin.
    plane = np.random.default_rng(seed).uniform(-1, 1, size=(60, 2))
    corners = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    X = np.hstack([np.vstack([plane, corners]), np.ones((64, 1))])
    limit = solve_linear_svm(X, np.ones(64)).require()
    np.testing.assert_allclose(limit.zeta, [0, 0, 1], atol=1e-7)
    assert limit.objective == pytest.approx(1, rel=1e-8)


def test_malformed_networks_and_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`X` must have shape \(n, 2\), got \(3, 4\)"):
        solve_linear_svm(*CORNER).predictor(np.ones((3, 4)))
    with pytest.raises(ValueError, match="`hidden_widths`"):
        solve_linear_svm(*CORNER).balanced_weights((0,))
