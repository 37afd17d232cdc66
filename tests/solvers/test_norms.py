"""Norms: duality, steepest steps, and bounds that are never below a value of 40 digits."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as xp
import numpy as np
import pytest

from solvers import Norm, NormName
from tests.long import some_of

mpmath: Any = pytest.importorskip("mpmath")

MATRIX: tuple[NormName, ...] = (
    "l2", "linf", "l1", "spectral", "nuclear", "rows", "columns", "largest-row", "largest-column",
    "units", "largest-unit", "muon", "muon-dual",
)  # fmt: skip
STACKS: tuple[NormName, ...] = (
    "l2", "linf", "l1", "units", "largest-unit", "sum-spectral", "max-spectral", "sum-nuclear",
    "max-nuclear",
)  # fmt: skip
EVERY = [*((name, 2) for name in MATRIX), *((name, 3) for name in STACKS)]

FACTORED: tuple[NormName, ...] = ("muon", "muon-dual")
EXACT = [(name, n_axes) for name, n_axes in EVERY if name not in FACTORED]


def matrices(n_axes: int) -> list[np.ndarray]:
    """Full rank, rank one, columns of sum 0, graded over 16 digits, one entry, far scales."""
    rng = np.random.default_rng(n_axes)
    shape = (5, 4) if n_axes == 2 else (3, 5, 4)
    full = rng.normal(size=shape)
    low = rng.normal(size=(*shape[:-1], 1)) * rng.normal(size=(*shape[:-2], 1, shape[-1]))
    graded = full * 10.0 ** -np.linspace(0, 16, shape[-1])
    one = np.zeros(shape)
    one[(0,) * n_axes] = -3.0
    centred = full - full.mean(axis=-2, keepdims=True)
    return [full, low, centred, graded, one, 1e180 * full, 1e-180 * full]


@pytest.mark.parametrize(("name", "n_axes"), EVERY)
def test_the_steepest_step_attains_the_dual_norm(name: NormName, n_axes: int) -> None:
    norm = Norm.of(name)
    assert norm.dual.dual == norm
    for G in matrices(n_axes):
        U = norm.steepest(G)
        size = np.abs(G).max()
        assert U.shape == G.shape
        assert norm.value(U) == pytest.approx(1.0, rel=1e-12)
        assert np.sum(G / size * U) == pytest.approx(norm.dual.value(G) / size, rel=1e-10)
        # No other direction of norm one has more.
        for other in matrices(n_axes):
            other = other / np.abs(other).max()
            inner = np.sum(G / size * other) / norm.value(other)
            assert inner <= norm.dual.value(G) / size * (1 + 1e-12)
    zero = np.zeros_like(matrices(n_axes)[0])
    assert norm.value(zero) == 0
    assert not norm.steepest(zero).any()


def exactly(norm: Norm, B: np.ndarray) -> Any:
    """N(B) to 40 digits."""
    if norm.blocks == "entries" or (norm.blocks == "whole" and norm.inside == "l2"):
        blocks = list(B.reshape((-1, 1, 1) if norm.blocks == "entries" else (1, 1, -1)))
    elif norm.blocks == "whole":
        blocks = [B]
    else:
        blocks = [np.atleast_2d(one) for one in (B.T if norm.blocks == "columns" else B)]
    sizes = []
    for block in blocks:
        exact = mpmath.matrix(block.tolist())
        if norm.inside == "l2":
            sizes.append(mpmath.norm(exact, 2) if 1 in block.shape else mpmath.mnorm(exact, "f"))
        else:
            s = mpmath.svd_r(exact, compute_uv=False)
            sizes.append(s[0] if norm.inside == "spectral" else mpmath.fsum(s))
    return max(sizes) if norm.over == "max" else mpmath.fsum(sizes)


@pytest.mark.parametrize(("name", "n_axes"), EXACT)
def test_upper_bounds_are_above_the_norm_and_next_to_it(name: NormName, n_axes: int) -> None:
    norm = Norm.of(name)
    lost = np.abs(np.random.default_rng(0).normal(size=matrices(n_axes)[0].shape))
    with mpmath.workdps(40):
        for B in matrices(n_axes)[:5]:
            exact = exactly(norm, B)
            assert exact <= mpmath.mpf(norm.above(B)) <= exact * (1 + mpmath.mpf("5e-14"))
            assert exact == pytest.approx(norm.value(B), rel=1e-13)
            # Anything within the errors stays below.
            for sign in (1.0, -1.0):
                bound = mpmath.mpf(norm.above(B, 1e-3 * lost))
                assert exactly(norm, B + sign * 1e-3 * lost) <= bound


@pytest.mark.parametrize("name", some_of(FACTORED, one_in=2))
def test_bounds_of_factored_norms_are_above_every_network_and_next_to_one(name) -> None:
    norm, rng = Norm.of(name), np.random.default_rng(0)
    for B in matrices(2)[:5]:
        # <B, V> is at most N(B) N*(V), of exact norms; at the steepest V it is that.
        V = norm.dual.steepest(B)
        product, inner = norm.above(B) * norm.dual.above(V), float(np.sum(B * V))
        assert inner * (1 - 1e-15) <= product <= inner * (1 + 1e-10)
        lost = 1e-3 * np.abs(rng.normal(size=B.shape)) * np.abs(B).max()
        for sign in (1.0, -1.0):
            assert norm.value(B + sign * lost) <= norm.above(B, lost)
        for _ in range(50):
            a, W = rng.normal(size=len(B)), rng.normal(size=B.shape)
            size = np.linalg.norm(a) * np.linalg.norm(W, 2)
            if name == "muon":
                assert norm.value(a[:, None] * W) <= size
            else:
                assert np.sum(B * a[:, None] * W) <= size * norm.above(B)
    a, W = Norm.of("muon").factors(B := matrices(2)[0])
    assert a[:, None] * W == pytest.approx(B)
    assert [np.linalg.norm(a) ** 2, np.linalg.norm(W, 2) ** 2] == pytest.approx(
        [Norm.of("muon").value(B)] * 2
    )
    with pytest.raises(ValueError, match="`factors` are those of the norm 'muon'"):
        Norm.of("rows").factors(B)
    with pytest.raises(ValueError, match="`over` 'factored' takes the spectral norm inside"):
        Norm("nuclear", "factored", "rows")


@pytest.mark.parametrize("share", [1 - 1e-6, 1 + 1e-6])
def test_upper_bounds_trust_no_decomposition(share, monkeypatch) -> None:
    B, kept = matrices(2)[0], xp.linalg.svd
    exact = {name: Norm.of(name).value(B) for name in MATRIX[3:5]}

    def wrong(*args: Any, **kwargs: Any) -> Any:
        U, s, W = kept(*args, **kwargs)
        return share * U, share * s, W

    monkeypatch.setattr(xp.linalg, "svd", wrong)
    for name, value in exact.items():
        assert value <= Norm.of(name).above(B) <= value * (1 + 5e-5)


def test_equal_norms_are_written_in_one_form() -> None:
    assert Norm("spectral", "max", "rows") == Norm.of("largest-row")
    assert Norm("l2", "factored", "rows") == Norm.of("rows")
    assert Norm("l2", "weighted", "rows") == Norm.of("largest-row")
    assert Norm("l2", "max", "whole") == Norm.of("l2") == Norm.of("frobenius") == Norm()
    assert [Norm.of(name).dual.name for name in MATRIX[:9]] == [
        "l2", "l1", "linf", "nuclear", "spectral", "largest-row", "largest-column", "rows",
        "columns",
    ]  # fmt: skip
    assert Norm.of("sum-nuclear").dual == Norm.of("max-spectral")
    assert all(Norm.of(Norm.of(name).name) == Norm.of(name) for name, _ in EVERY)


def test_what_is_no_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="`norm` must be one of"):
        Norm.of("l3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`norm` must be a Norm"):
        Norm.of(2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`B` must be a matrix for"):
        Norm.of("spectral").value(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="`B` has entries that are NaN"):
        Norm.of("rows").value(np.full((2, 2), np.nan))


def test_norms_take_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    for name, n_axes in EVERY:
        norm, G = Norm.of(name), matrices(n_axes)[0]
        tensor = torch.as_tensor(G)
        assert norm.value(tensor) == pytest.approx(norm.value(G), rel=1e-13)
        assert norm.steepest(tensor).numpy() == pytest.approx(norm.steepest(G), abs=1e-12)
        single = norm.steepest(tensor.to(torch.float32))
        assert single.dtype == torch.float32
