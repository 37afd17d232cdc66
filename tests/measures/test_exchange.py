"""Exchanged blocks beside SciPy's active sets, dense problems and what weak duality allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from implicit_bias import GLN, HyperplaneContexts, kkt_distance, solve_gln_svm
from implicit_bias.measures.fit import (
    BorderedFactor,
    GramProducts,
    conjugate_gradients,
    exchange_fit,
    gradient_gram,
)
from implicit_bias.training import GatedData
from tests.commands import home


def factors(seed: int, n: int, a: int = 6, b: int = 30) -> tuple[GramProducts, np.ndarray]:
    """Two layers of a * b and 5 weights, and the gradients themselves (weights, n)."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n, a)), rng.normal(size=(n, b)) + 0.5
    second = np.ones((n, 1)), rng.normal(size=(n, 5))
    layers = [(torch.tensor(outer), torch.tensor(inner)) for outer, inner in (first, second)]
    columns = [np.einsum("na,nb->abn", *pair).reshape(-1, n) for pair in (first, second)]
    return GramProducts(tuple(layers)), np.concatenate(columns)


def target_of(A: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights w with <gradient, w> > 0 for every sample, and these products."""
    rng = np.random.default_rng(seed)
    w = np.linalg.lstsq(A.T, rng.uniform(0.2, 3, A.shape[1]), rcond=None)[0]
    assert (A.T @ w).min() > 0.1
    return w, A.T @ w


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("first", [10, 100])
def test_it_is_the_least_squares_solution_of_an_active_set_method(seed, first) -> None:
    gram, A = factors(seed, 150)
    w, target = target_of(A, seed)
    expected, residual = nnls(A, w)
    lam = exchange_fit(gram, torch.tensor(target), torch.arange(first))
    assert 10 < (expected > 0).sum() < 140
    np.testing.assert_allclose(lam, expected, atol=1e-8 * expected.max())
    assert np.linalg.norm(w - A @ lam.numpy()) <= residual * (1 + 1e-10)


def test_samples_that_are_there_twice_share_a_multiplier() -> None:
    once, A = factors(0, 60)
    w, target = target_of(A, 0)
    expected, _ = nnls(A, w)
    twice = torch.arange(60).repeat(2)
    lam = exchange_fit(once.take(twice), torch.tensor(target)[twice], torch.arange(120))
    np.testing.assert_allclose(lam[:60] + lam[60:], expected, atol=1e-8 * expected.max())


def test_singular_systems_and_too_few_exchanges_give_no_fit() -> None:
    gram, A = factors(1, 100)
    target = torch.tensor(target_of(A, 1)[1])
    outer, inner = gram.layers[0]
    dead = GramProducts(((outer * (torch.arange(100) != 7)[:, None], inner),))
    assert exchange_fit(dead, target, torch.arange(50)) is None
    # 36 weights, of which every set of more samples has many solutions.
    few, columns = factors(1, 40, a=1, b=31)
    target_few = torch.tensor(target_of(columns[:, :36], 1)[1])
    assert exchange_fit(few.take(torch.arange(36)), target_few, torch.arange(20)) is not None
    more = few.take(torch.arange(37) % 36)
    assert exchange_fit(more, target_few[torch.arange(37) % 36], torch.arange(37)) is None
    assert exchange_fit(gram, target, torch.arange(50)) is not None
    assert exchange_fit(gram, target, torch.arange(50), max_exchanges=2) is None


def test_products_and_blocks_are_those_of_the_matrix() -> None:
    gram, A = factors(2, 20)
    gram = replace(gram, rows=7)
    K, lam = A.T @ A, np.random.default_rng(0).normal(size=20)
    np.testing.assert_allclose(gram.diagonal(), K.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(gram.product(torch.tensor(lam)), K @ lam, rtol=1e-10)
    index, ones = torch.tensor([3, 1, 17, 8, 2, 11]), torch.ones(20, dtype=torch.float64)
    wanted = K[np.ix_(index, index)]
    np.testing.assert_allclose(gram.block(index, index[:2], ones), wanted[:, :2], rtol=1e-4)


def test_one_factor_serves_sets_that_samples_enter_and_leave() -> None:
    gram, A = factors(3, 80)
    K, scale = A.T @ A, gram.diagonal().rsqrt()
    factor = BorderedFactor.of(gram, scale, torch.arange(50), panel=15)
    assert factor is not None
    for index in (torch.arange(50), torch.arange(4, 57), torch.arange(2, 60), torch.arange(9, 50)):
        right = torch.tensor(np.random.default_rng(4).normal(size=len(index)))
        exact = np.linalg.solve(K[np.ix_(index, index)], right.numpy())
        once = factor.solver(index)(right).numpy()
        np.testing.assert_allclose(once, exact, atol=1e-3 * np.abs(exact).max())
        found = conjugate_gradients(
            gram.take(index).product, right, None, factor.solver(index), 1e-14
        )
        np.testing.assert_allclose(found.numpy(), exact, atol=1e-11 * np.abs(exact).max())
    assert factor.change(torch.arange(4, 57)) == 11 / 50


@pytest.fixture(scope="module")
def spoiled() -> tuple[GLN, np.ndarray, np.ndarray, np.ndarray]:
    """A network of three layers near its limit, with noise, on labels of a network like it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    contexts = HyperplaneContexts(5, 2, random_state=0).fit(X).transform(X)
    teacher = GLN.from_zeta(rng.normal(size=(5, 2, 40)))
    y = np.sign(teacher(torch.tensor(X), torch.tensor(contexts)).detach().numpy())
    network = GLN.from_zeta(solve_gln_svm(X, y, contexts).zeta, upper_widths=(3,))
    with torch.no_grad():
        for p in network.parameters():
            p += 0.01 * p.abs().max() * torch.tensor(rng.normal(size=p.shape))
    return network, X, y, contexts


@pytest.mark.parametrize("most", [60, 1])
def test_the_distance_is_that_of_a_dense_problem_whether_exchanges_converge_or_not(
    spoiled, most, monkeypatch
) -> None:
    dense = kkt_distance(*spoiled)
    where = home(kkt_distance)
    monkeypatch.setattr(where, "_EXCHANGED_FROM", 100)
    given = []
    monkeypatch.setattr(
        where,
        "exchange_fit",
        lambda *args: given.append(exchange_fit(*args, max_exchanges=most)) or given[-1],
    )
    found = kkt_distance(*spoiled)
    assert (given[0] is not None) == (most == 60)
    assert 20 < (dense.multipliers > 0).sum() < 280
    largest = dense.multipliers.max()
    np.testing.assert_allclose(found.multipliers, dense.multipliers, atol=1e-8 * largest)
    assert found.residual == pytest.approx(dense.residual, rel=1e-10)


def test_no_multipliers_have_a_residual_below_the_bound_and_the_fit_is_at_it(spoiled) -> None:
    network, X, y, contexts = spoiled
    data = GatedData(torch.tensor(X), torch.tensor(y), torch.tensor(contexts))
    found = kkt_distance(*spoiled)
    values, vectors = np.linalg.eigh(gradient_gram(network, data).numpy())
    kept = values > 1e-12 * values[-1]
    columns = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    # The weights have a part that no gradient reaches, which every residual has.
    along = network.degree * (data.y * network(data.X, data.gates)).detach().numpy()
    reached = (vectors[:, kept].T @ along) / np.sqrt(values[kept])
    norm = sum(float(p.detach().square().sum()) for p in network.parameters())
    _, distance = nnls(columns, reached)
    best = np.sqrt((distance**2 + norm - reached @ reached) / norm)
    assert found.residual_bound <= best * (1 + 1e-9)
    assert best <= found.residual * (1 + 1e-9)
    assert found.residual_bound > found.residual * (1 - 1e-3)
