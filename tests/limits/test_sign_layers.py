"""Two layers of K outputs in largest entries: bounds against all sign matrices, and layers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import implicit_bias as ib
from implicit_bias.limits import sign_layer_bounds, solve_multiclass_svm

RNG = np.random.default_rng(5)
X, B0 = RNG.normal(size=(24, 9)), RNG.normal(size=(3, 9))
LABELS = np.argmax(X @ B0.T, axis=1)
GAMMA = 0.807976  # of these data, by cvxpy over all signs
SMALL = RNG.normal(size=(7, 3))
WANTED = np.argmax(SMALL @ RNG.normal(size=(3, 3)), axis=1)
OPENED = (RNG.normal(size=(7, 2)) > 0).astype(int)


def relative_margins(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    own = scores[np.arange(len(labels)), labels][:, None] - scores
    return own[labels[:, None] != np.arange(scores.shape[1])]


def of_all_signs(features: np.ndarray, labels: np.ndarray) -> float:
    """Value of the game over every matrix of signs a unit, of features (n, H, Q) and 3 classes."""
    _, H, Q = features.shape
    signs = [np.array(one) for one in itertools.product((1.0, -1.0), repeat=Q)]
    outputs = [np.array(one) for one in itertools.product((1.0, -1.0), repeat=3)]
    single = [np.outer(s, t) for s in outputs[:4] for t in signs]
    margins = [
        [relative_margins(features[:, h] @ one.T, labels) for one in single] for h in range(H)
    ]
    columns = np.array([sum(parts) for parts in itertools.product(*margins)]).T
    m, N = columns.shape
    found = linprog(
        np.append(np.zeros(N), -1.0), A_ub=np.hstack([-columns, np.ones((m, 1))]),
        b_ub=np.zeros(m), A_eq=np.append(np.ones(N), 0.0)[None], b_eq=[1.0],
        bounds=[(0, None)] * N + [(None, None)],
    )  # fmt: skip
    return float(found.x[-1])


@pytest.mark.parametrize(
    ("gates", "n_contexts"), [(None, None), (np.ones((7, 2)), None), (OPENED, 2)]
)
def test_the_bound_is_the_game_over_all_matrices_of_signs(gates, n_contexts) -> None:
    features = SMALL[:, None, :]
    if n_contexts:
        features = (np.eye(2)[OPENED][..., None] * SMALL[:, None, None, :]).reshape(7, 2, 6)[:, :1]
        gates = OPENED[:, :1]
    elif gates is not None:
        gates = np.where(OPENED, 1.0, -0.5)
        features = gates[:, :, None] * SMALL[:, None, :]
    gamma = of_all_signs(features, WANTED)
    assert gamma > 0.01
    found = sign_layer_bounds(SMALL, WANTED, gates, width=40, n_contexts=n_contexts, n_classes=3)
    assert 1 / (40 * found.lower) == pytest.approx(gamma, rel=1e-6)
    assert found.upper <= found.lower * (1 + 2e-6) * 40 / (40 - found.n_matrices)


def test_the_layers_attain_the_upper_bound_and_wide_ones_the_lower() -> None:
    for width in (16, 64, 1000):
        found = sign_layer_bounds(X, LABELS, width=width)
        assert 1 / (width * found.lower) == pytest.approx(GAMMA, rel=1e-6)
        network = ib.DeepLinear.from_weights(found.first, found.last)
        zeta = network.zeta().detach().numpy()
        assert relative_margins(X @ zeta.T, LABELS).min() == pytest.approx(1, rel=1e-9)
        product = np.abs(found.first).max() * np.abs(found.last).max()
        assert found.upper == pytest.approx(product, rel=1e-12)
        N = found.n_matrices
        assert found.lower < found.upper <= found.lower * (1 + 2e-6) * width / (width - N)
    assert found.upper < 1.02 * found.lower
    # The largest entry end to end, which bounds the product too, is less by a fifth.
    assert solve_multiclass_svm(X, LABELS, norm="linf").objective < 0.82 * found.lower * 1000
    # The multipliers prove the bound: of no sign matrix is the weighed margin above gamma.
    C = -found.dual
    C[np.arange(24), LABELS] = found.dual.sum(axis=1)
    V = C.T @ X
    most = max(np.abs(np.array(s) @ V).sum() for s in itertools.product((1, -1), repeat=3))
    assert most / found.dual.sum() == pytest.approx(GAMMA, rel=1e-6)


def test_no_layers_are_below_the_lower_bound() -> None:
    import torch

    lower = sign_layer_bounds(X, LABELS, width=6).lower
    network = ib.DeepLinear(9, hidden_widths=(6,), n_outputs=3, init_scale=0.1, random_state=0)
    settings = ib.TrainingSettings(trainer="sign", schedule=((1000, None),))
    ib.train(network, X, np.eye(3)[LABELS], settings=settings)
    margin = relative_margins(network(torch.tensor(X), None).detach().numpy(), LABELS).min()
    sizes = [float(w.detach().abs().max()) for w in network.parameters()]
    assert 0.1 < lower * margin / np.prod(sizes) <= 1
    # Of few units no layers are made of the matrices, which are more.
    few = sign_layer_bounds(X, LABELS, width=6)
    assert few.upper == np.inf and few.n_matrices > 6 and not few.first.any()


def test_what_has_no_bound_is_refused_by_name() -> None:
    for arguments, message in (
        ((np.ones((2, 1)), [0, 1]), "no coefficients with positive margins"),
        ((np.eye(16), np.arange(16)), "`labels` have 16 classes"),
    ):
        with pytest.raises(ValueError, match=message):
            sign_layer_bounds(*arguments, width=3)
