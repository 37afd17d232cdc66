"""What every network owes: its function, its degree, its factorisations and its initial weights.

Expected scores are those of predictors behind gates, `f(x_n) = sum_j G_nj <zeta_j, x_n>`, with G
(N, J) written from the gates and zeta from the product of the layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias.heads import Trunk
from implicit_bias.networks import (
    DGN,
    DLGN,
    GDLN,
    GLN,
    BalancedReLU,
    DeepLinear,
    DeepReLU,
    FReLU,
    ReLU,
    ReLUMean,
    ResidualReLU,
    ShallowGLN,
)

H, C, D, N = 3, 4, 5, 11
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, D))
CONTEXTS = RNG.integers(0, C, size=(5, H))[np.arange(N) % 5]  # several samples in each
GATES = RNG.integers(0, 2, size=(N, H))
TABLE = np.unique(CONTEXTS, axis=0)
DEPTHS = [(), (6,), (2, 7)]
# How a network is made, its gates, the columns G that they open, and columns a unit.
Case = tuple[Callable[..., torch.nn.Module], NDArray[np.int64] | None, NDArray[np.float64], int]
ONE_HOT = np.eye(C)[CONTEXTS].reshape(N, H * C)
OWN_ROW = (CONTEXTS[:, None] == TABLE).all(axis=2).astype(float)
GATED: dict[str, Case] = {
    "gdln": (partial(GDLN, D, H), GATES, GATES.astype(float), 1),
    "shallow-gln": (partial(ShallowGLN, D, CONTEXTS), CONTEXTS, OWN_ROW, len(TABLE)),
}
for widths in DEPTHS:
    layers = f"{2 + len(widths)} layers"
    GATED |= {
        f"gln, {layers}": (partial(GLN, D, H, C, upper_widths=widths), CONTEXTS, ONE_HOT, C),
        f"frelu, {layers}": (
            partial(FReLU, D, H, upper_widths=widths), GATES, GATES.astype(float), 1,
        ),
        f"linear, {layers}": (
            partial(DeepLinear, D, hidden_widths=(H, *widths)), None, np.ones((N, 1)), 1,
        ),
    }  # fmt: skip
OTHERS = {
    "relu": partial(ReLU, D, H),
    "deep relu": partial(DeepReLU, D, (4, 3)),
    "leaky relu": partial(ReLU, D, H, slope=0.3),
    "deep leaky relu": partial(DeepReLU, D, (4, 3), slope=0.3),
    "orthosep": partial(BalancedReLU, D, H),
    "leaky orthosep": partial(BalancedReLU, D, H, slope=0.3),
    "residual": partial(ResidualReLU, D, H),
    "relu mean": partial(ReLUMean, D, H),
}
MAKERS = {name: case[0] for name, case in GATED.items()} | OTHERS
INITS = {"gln": 3, "frelu": 3, "linear": 3, "relu": 3, "deep relu": 3, "shallow-gln": 2}


def n_inits(name: str) -> int:
    return INITS.get(name.split(",")[0], 0)


every_gated = pytest.mark.parametrize("name", GATED)


def matrices(network: torch.nn.Module) -> list[NDArray[np.float64]]:
    return [p.detach().numpy() for p in network.parameters()]


def columns(network: torch.nn.Module) -> NDArray[np.float64]:
    """(J, D) predictors by the product of the layers."""
    first, *upper = matrices(network)
    if isinstance(network, DeepLinear):
        return reduce(lambda product, V: V @ product, upper, first)
    if isinstance(network, GDLN):
        return first / H
    head = reduce(lambda product, V: V @ product, upper, np.eye(H))[0] if upper else np.ones(1)
    return (head.reshape(-1, *[1] * (first.ndim - 1)) * first).reshape(-1, D)


def scores(network: torch.nn.Module, gates: NDArray[np.int64] | None) -> torch.Tensor:
    prepared = None if gates is None else network.prepare(network.prepare(gates))  # as if once
    return network(torch.tensor(X), prepared).detach()


def blocks(rows: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Norms of `width` rows at a time."""
    return np.linalg.norm(rows.reshape(-1, width * D), axis=1)


@every_gated
def test_a_score_is_the_sum_of_the_predictors_that_gates_open(name) -> None:
    make, gates, opened, width = GATED[name]
    network = make(random_state=3)
    zeta = columns(network)
    np.testing.assert_allclose(scores(network, gates), np.sum(opened @ zeta * X, axis=1), 1e-11)
    np.testing.assert_allclose(network.zeta().detach().reshape(-1, D), zeta, rtol=1e-11)
    np.testing.assert_allclose(
        network.unit_norms().detach().reshape(-1), blocks(zeta, width), rtol=1e-11
    )


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"residual"}))
@pytest.mark.parametrize("factor", [0.3, 2.0])
def test_scaling_all_weights_scales_the_scores_by_its_power_of_the_degree(name, factor) -> None:
    network, gates = MAKERS[name](random_state=2), GATED.get(name, (None, None))[1]
    before = scores(network, gates)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(factor)
    torch.testing.assert_close(scores(network, gates), factor**network.degree * before)


@every_gated
def test_dual_norms_are_those_of_the_samples_that_gates_let_through(name) -> None:
    make, gates, opened, width = GATED[name]
    coefficients = np.random.default_rng(6).normal(size=N)
    v = np.einsum("n,nj,nd->jd", coefficients, opened, X)
    network = make()
    prepared = None if gates is None else network.prepare(gates)
    norms = network.dual_norms(torch.tensor(coefficients), torch.tensor(X), prepared)
    np.testing.assert_allclose(np.reshape(norms, -1), blocks(v, width), rtol=1e-12)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda zeta, depth: GLN.from_zeta(zeta, upper_widths=depth), (H, C, D)),
        (lambda zeta, depth: FReLU.from_zeta(zeta, upper_widths=depth), (H, D)),
        (lambda zeta, depth: DeepLinear.from_zeta(zeta, hidden_widths=(H, *depth)), (D,)),
    ],
)
def test_networks_of_one_zeta_at_every_depth_are_balanced_and_of_the_least_norm(
    build, shape, depth
) -> None:
    zeta = np.random.default_rng(1).normal(size=shape)
    dead = zeta.copy()
    if len(shape) > 1:
        zeta *= np.array([1.0, 10.0, 0.1]).reshape(H, *[1] * (len(shape) - 1))
        dead[1] = 0
    for target in (zeta, dead, 0 * zeta):
        network = build(target, depth)
        np.testing.assert_allclose(network.zeta().detach(), target, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(columns(network), target.reshape(-1, D), 1e-12, 1e-13)
        # Along L layers ||w||^2 >= L (sum of ||zeta_h||)^(2 / L), the arithmetic-geometric mean.
        total = np.linalg.norm(target.reshape(-1, C * D if len(shape) == 3 else D), axis=1).sum()
        squared = sum(np.sum(W**2) for W in matrices(network))
        least = network.degree * total ** (2 / network.degree)
        assert squared == pytest.approx(least, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(
    ("name", "init"),
    [
        (name, init)
        for name in MAKERS
        for init in ("orthogonal", "kaiming", "balanced")[: n_inits(name)] or [""]
    ],
)
def test_initial_weights_come_from_random_state_alone_in_every_dtype(name, init) -> None:
    make = partial(MAKERS[name], **{"init": init} if init else {})
    torch.manual_seed(1)
    first = make(random_state=9)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again, single = make(random_state=9), make(random_state=9, dtype=torch.float32)
    assert torch.equal(torch.get_rng_state(), state)
    other, rng = make(random_state=10), np.random.default_rng(9)
    moved = [make(random_state=rng) for rng in (rng, rng, np.random.default_rng(9))]
    for a, b, c, d, *e in zip(
        *(m.parameters() for m in (first, again, single, other, *moved)), strict=True
    ):
        assert torch.equal(a, b) and torch.equal(a.float(), c) and torch.equal(e[0], e[2])
        # But for signs, of which few draws are often the same.
        assert a.ndim == 1 or a.numel() == 1 or not (torch.equal(a, d) or torch.equal(*e[:2]))


@pytest.mark.parametrize("name", [name for name in MAKERS if n_inits(name) == 3])
def test_balanced_weights_conserve_nothing_but_zeros(name) -> None:
    network = MAKERS[name](init="balanced", init_scale=0.1, random_state=5)
    layers = matrices(network)
    layers[0] = layers[0].reshape(len(layers[0]), -1)
    assert all(np.linalg.norm(W) > 0 for W in layers)
    if name in OTHERS:
        assert all(np.linalg.matrix_rank(W) == min(W.shape) for W in layers)
    for index, (below, above) in enumerate(pairwise(layers)):
        incoming, outgoing = below @ below.T, above.T @ above
        np.testing.assert_allclose(np.diag(outgoing), np.diag(incoming), rtol=1e-10, atol=1e-16)
        # Behind gates units are by themselves, above them layers are linear.
        if isinstance(network, DeepLinear) or (index > 0 and "relu" not in name.split()[-1]):
            np.testing.assert_allclose(outgoing, incoming, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("name", [name for name in MAKERS if n_inits(name)])
def test_orthogonal_weights_are_orthonormal_times_the_scale(name) -> None:
    for W in matrices(MAKERS[name](init="orthogonal", init_scale=0.5)):
        W = W.reshape(-1, W.shape[-1])
        gram = W @ W.T if len(W) <= W.shape[1] else W.T @ W
        np.testing.assert_allclose(gram, 0.25 * np.eye(len(gram)), atol=1e-14)


@pytest.mark.parametrize(
    "make",
    [
        partial(GLN, 400, 50, 2), partial(FReLU, 400, 100), partial(ReLU, 400, 100),
        partial(DeepLinear, 400, hidden_widths=(100,)),
    ],
)  # fmt: skip
def test_kaiming_weights_are_normal_of_variance_two_over_fan_in_times_the_squared_scale(
    make,
) -> None:
    first, *_, last = matrices(make(init="kaiming", init_scale=3.0))
    # 40,000 draws: the sample deviation is within 1.4 % of the true one at four sigma.
    deviation = 3 * math.sqrt(2 / 400)
    assert first.std() == pytest.approx(deviation, rel=0.015)
    # Outside sqrt(3) deviations: none of a uniform variable, erfc(sqrt(3/2)) of a normal one.
    beyond = np.mean(np.abs(first) > math.sqrt(3) * deviation)
    assert beyond == pytest.approx(math.erfc(math.sqrt(1.5)), rel=0.1)
    assert last.std() == pytest.approx(3 * math.sqrt(2 / last.shape[1]), rel=0.4)


@pytest.mark.parametrize("network", [GDLN, ReLUMean])
def test_weights_of_averaged_units_are_gaussian_of_the_asked_size(network) -> None:
    w = network(400, 50, init_scale=0.3, random_state=1).w.detach()
    assert w.std().item() == pytest.approx(0.3 / 20, rel=0.03)
    torch.testing.assert_close(w, GDLN(400, 50, init_scale=0.3, random_state=1).w.detach())


def test_weights_that_are_given_are_kept_in_their_dtype() -> None:
    rng = np.random.default_rng(4)
    w1, w2 = rng.normal(size=(H, C, D)).astype(np.float32), np.array([0.7, -1.3, 2.0])
    network = GLN.from_weights(w1, w2)
    assert network.w1.dtype == torch.float32
    np.testing.assert_array_equal(network.w1.detach(), w1)
    np.testing.assert_allclose(network.zeta().detach(), w2[:, None, None] * w1, rtol=1e-6)


@pytest.mark.parametrize("value", [-1, C])
def test_a_context_out_of_range_never_reads_the_neighbouring_unit(value) -> None:
    contexts, network = torch.tensor(CONTEXTS), GLN(D, H, C)
    contexts[2, 1] = value
    with pytest.raises(ValueError, match=f"0..{C - 1}"):
        network.prepare(contexts)
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        network(torch.tensor(X), contexts)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("gln, 2 layers", (np.int32, np.uint8, np.int64)),
        ("frelu, 2 layers", (bool, np.int64, np.float64)),
        ("gdln", (bool, np.int64, np.float64)),
    ],
)
def test_gates_of_every_kind_are_the_same_gates(name, kinds) -> None:
    make, gates, _, _ = GATED[name]
    expected = scores(make(), gates)
    for kind in kinds:
        torch.testing.assert_close(scores(make(), gates.astype(kind)), expected)
        torch.testing.assert_close(scores(make(), torch.tensor(gates.astype(kind))), expected)


T = torch.tensor
UPPER = "upper matrices must have shapes"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *(
            (lambda shapes=shapes: GLN.from_weights(np.ones((H, C, D)), *map(np.ones, shapes)),
             ValueError, UPPER)
            for shapes in ([], [(H,), (1, H)], [(2, H), (1, 3)], [(2, H + 1)])
        ),
        *(
            (lambda shapes=shapes: DeepLinear.from_weights(*map(np.ones, shapes)), ValueError,
             "must have shapes")
            for shapes in ([], [(2, 3), (1, 4)], [(3,)])
        ),
        (lambda: GLN(D, H, C)(T(X), T(CONTEXTS[:, 1:])), ValueError,
         r"`contexts` must have shape \(11, 3\), got \(11, 2\)"),
        (lambda: GLN(D, H, C)(T(X), T(1.0 * CONTEXTS)), TypeError, "must be integers"),
        (lambda: FReLU(D, 4).prepare(np.linspace(0, 1, 12).reshape(3, 4)), ValueError, "exactly 0"),
        (lambda: ReLU(D, 4, slope=1.0), ValueError, "`slope`"),
        (lambda: FReLU(D, 4).prepare(np.ones((3, 5))), ValueError, r"shape \(n, 4\)"),
        (lambda: FReLU(D, 4)(T(np.ones((3, D))), torch.ones(2, 4)), ValueError, r"shape \(3, 4\)"),
        (lambda: FReLU.from_weights(np.ones((4, 5)), np.ones(3)), ValueError, UPPER),
        (lambda: FReLU.from_weights(np.ones((4, 5))), ValueError, UPPER),
        (lambda: FReLU.from_weights(np.ones(5), np.ones(3)), ValueError, "`w1`"),
        (lambda: FReLU.from_zeta(np.ones(5)), ValueError, "`zeta`"),
        (lambda: ReLU(D, 4)(T(np.ones((3, D))), torch.ones(3, 4)), ValueError,
         "`gates` must be None"),
        (lambda: DeepReLU(D, ()), ValueError, "hidden layer"),
        (lambda: ReLU.from_weights(np.ones((4, 5)), np.ones(3)), ValueError, UPPER),
        (lambda: ShallowGLN(D, CONTEXTS).prepare(CONTEXTS[:, 1:]), ValueError,
         "one context a sample and unit"),
        (lambda: ShallowGLN(D, TABLE[:4]).prepare(np.array([5])), ValueError,
         r"prepared contexts must lie in 0\.\.4"),
        (lambda: ShallowGLN(D, 1.0 * CONTEXTS), TypeError, "must be integers"),
        (lambda: ShallowGLN.from_zeta(np.ones((2, D)), TABLE[[0, 0]]), ValueError, "distinct rows"),
        (lambda: ShallowGLN.from_zeta(np.ones((3, D)), TABLE[:4]), ValueError,
         "one predictor per row"),
        (lambda: GDLN(D, H, init_scale=-1.0), ValueError, "`init_scale`"),
        (lambda: GDLN.from_weights(np.ones(3)), ValueError, r"shape \(K, D\)"),
        (lambda: GDLN(D, H).prepare(GATES[:, :2]), ValueError,
         r"`gates` must have shape \(n, 3\)"),
        (lambda: GDLN(D, H).prepare(GATES * np.nan), ValueError, "NaN or infinite"),
        (lambda: ReLUMean(D, H)(T(X), T(GATES)), ValueError, "opens its own"),
        (lambda: BalancedReLU.from_weights(np.ones((2, 3)), np.ones(3)), ValueError,
         r"`a` must have shape \(2,\), got \(3,\)"),
        (lambda: ResidualReLU(2, 3, n_layers=1), ValueError, "`n_layers`"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_wrong_input_is_refused_by_name(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


DRAWN: dict[str, Callable[..., torch.nn.Module]] = {
    "gln": partial(GLN, 64, 100, 4, upper_widths=(50,)),
    "frelu": partial(FReLU, 300, 100, upper_widths=(50,)),
    "gdln": partial(GDLN, 300, 100),
    "linear": partial(DeepLinear, 300, hidden_widths=(100, 50)),
    "shallow-gln": partial(ShallowGLN, 300, RNG.integers(0, 3, size=(200, 4))),
    "relu": partial(ReLU, 300, 100),
    "deep relu": partial(DeepReLU, 300, (200, 100)),
    "dgn": partial(DGN, 300, widths=(200, 100)),
    "dlgn": partial(DLGN, 300, widths=(200, 100)),
    "balanced": partial(BalancedReLU, 300, 200),
    "residual": partial(ResidualReLU, 300, 200),
    "mean": partial(ReLUMean, 300, 200),
    "trunk": partial(Trunk, 300, widths=(200, 100)),
}


@pytest.mark.parametrize("name", sorted(DRAWN))
@pytest.mark.parametrize("init", [None, "orthogonal", "balanced", "kaiming"])
def test_a_seed_is_the_same_bits_with_any_number_of_threads(name, init) -> None:
    make = DRAWN[name] if init is None else partial(DRAWN[name], init=init)
    usual = torch.get_num_threads()
    drawn = []
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            try:
                drawn.append(list(make(random_state=3).parameters()))
            except (TypeError, ValueError):
                assert init is not None  # one that it does not have
                return
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(usual)
    for others in drawn[1:]:
        for one, other in zip(drawn[0], others, strict=True):
            assert torch.equal(one, other)
