"""The path group lasso: three inequalities, where they are equalities, and known special cases."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

import solvers
from implicit_bias import (
    DGN,
    NotCertified,
    Status,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
    solve_path_lasso,
)
from implicit_bias.limits import PathLimit, distinct_paths, gate_layers, path_lower_bound
from implicit_bias.networks import DeepGLN
from implicit_bias.programs import PathLasso
from tests.commands import home

RNG = np.random.default_rng(2)
N, D = 30, 6
X = RNG.normal(size=(N, D))
Y = np.where(X @ RNG.normal(size=D) + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)


def bernoulli(*widths: int) -> list[np.ndarray]:
    """Gates of layers of these widths; the first unit of each is always open."""
    layers = [np.where(RNG.random((N, width)) < 0.6, 1.0, 0.0) for width in widths]
    for layer in layers:
        layer[:, 0] = 1.0
    return layers


GATINGS = {
    "one layer": bernoulli(7),
    "two layers": bernoulli(5, 4),
    "three layers": bernoulli(4, 3, 3),
    "real gates": [RNG.normal(size=(N, 4)), RNG.normal(size=(N, 3))],
    "equal units": [np.repeat(layer, 2, axis=1) for layer in bernoulli(4, 3)],
}
every_gating = pytest.mark.parametrize("gates", GATINGS.values(), ids=GATINGS)


def weights(widths: list[int], rng: np.random.Generator) -> list[np.ndarray]:
    sizes = [D, *widths, 1]
    return [rng.normal(size=(high, low)) for low, high in pairwise(sizes)]


def scores(layers: list[np.ndarray], inputs: np.ndarray, gates: list[np.ndarray]) -> np.ndarray:
    """The forward pass of a deep gated network, a sample at a time."""
    found = []
    for n, x in enumerate(inputs):
        for layer, opened in zip(layers, gates, strict=False):
            x = np.diag(opened[n]) @ layer @ x
        found.append((layers[-1] @ x)[0])
    return np.array(found)


def path_norms(layers: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """`||zeta_p||` of every path, by its definition."""
    norms = {}
    for path in np.ndindex(*(len(layer) for layer in layers[:-1])):
        strength = layers[0][path[0]] * layers[-1][0, path[-1]]
        for layer, below, above in zip(layers[1:-1], path, path[1:], strict=False):
            strength = strength * layer[above, below]
        norms[path] = float(np.linalg.norm(strength))
    return norms


class Net:
    """What `PathLimit.bound` takes, in plain NumPy."""

    def __init__(self, layers: list[np.ndarray], widths: list[int]) -> None:
        self.layers, self.ends = layers, np.cumsum(widths)[:-1]

    def __call__(self, inputs: np.ndarray, gates: np.ndarray) -> np.ndarray:
        return scores(self.layers, inputs, np.split(gates, self.ends, axis=1))

    def parameters(self) -> list[np.ndarray]:
        return self.layers


def test_every_network_has_at_least_the_bound_by_three_inequalities() -> None:
    strict = 0
    for name, gates in GATINGS.items():
        widths = [layer.shape[1] for layer in gates]
        for seed in range(3):
            layers = weights(widths, np.random.default_rng(seed))
            depth = len(layers)
            f = scores(layers, X, gates)
            y = np.sign(f)  # labels of the network itself, so that its margins are positive
            limit = solve_path_lasso(X, y, gates)
            least = float(np.min(np.abs(f)))
            mean = (sum(np.sum(layer**2) for layer in layers) / depth) ** (depth / 2)
            product = math.prod(np.linalg.norm(layer) for layer in layers)
            total = sum(path_norms(layers).values())
            assert mean >= product >= total * (1 - 1e-12), name
            assert total / least >= limit.dual_objective
            strict += product > 1.01 * total
            bound = limit.bound(Net(layers, widths), X, np.hstack(gates))
            assert bound == pytest.approx(limit.dual_objective / (mean / least), rel=1e-12)
    assert strict > 0


def test_a_network_of_a_single_path_meets_all_three_inequalities() -> None:
    gates = [np.ones((N, 3)), np.ones((N, 2))]
    b = solve_linear_svm(X, Y).zeta
    size = np.linalg.norm(b) ** (1 / 3)
    layers = [np.zeros((3, D)), np.zeros((2, 3)), np.zeros((1, 2))]
    layers[0][1], layers[1][0, 1], layers[2][0, 0] = b / size**2, size, size
    limit = solve_path_lasso(X, Y, gates)
    assert limit.bound(Net(layers, [3, 2]), X, np.hstack(gates)) == pytest.approx(1.0, abs=1e-7)
    layers[1] *= -1
    assert limit.bound(Net(layers, [3, 2]), X, np.hstack(gates)) == 0.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_numpy_data_bound_torch_networks_and_the_other_way_round(dtype) -> None:
    network = DGN(D, widths=(5, 4), init="gaussian", random_state=0, dtype=dtype)
    gates = np.hstack(GATINGS["two layers"])
    layers = [layer.detach().double().numpy() for layer in network.layers]
    y = np.sign(scores(layers, X, GATINGS["two layers"]))
    limit = solve_path_lasso(X, y, gates, widths=(5, 4))
    expected = limit.bound(Net(layers, [5, 4]), X, gates)
    assert 0 < expected < 1
    tensors = torch.tensor(X), torch.tensor(gates)
    of_torch = solve_path_lasso(tensors[0], torch.tensor(y), tensors[1], widths=(5, 4))
    for one in (limit, of_torch):
        for data in ((X, gates), (X, GATINGS["two layers"]), tensors, (X, gates.astype(int))):
            for net in (network, Net(layers, [5, 4])):
                assert one.bound(net, *data) == pytest.approx(expected, rel=1e-5)


def test_a_deep_gln_is_bounded_by_its_contexts_as_arrays() -> None:
    contexts = RNG.integers(0, 2, size=(N, 5))
    network = DeepGLN(D, widths=(3, 2), n_contexts=2, init="gaussian", random_state=0)
    with torch.no_grad():
        margins = network(torch.tensor(X), torch.tensor(contexts)).numpy()
    limit = solve_path_lasso(X, np.sign(margins), contexts, widths=(3, 2), contexts=True)
    squares = sum(float(layer.detach().square().sum()) for layer in network.layers)
    value = (squares / 3) ** 1.5 / np.abs(margins).min()
    assert limit.bound(network, X, contexts) == pytest.approx(limit.dual_objective / value)


def test_one_gated_layer_is_the_frozen_relu_limit_at_every_depth_and_attained() -> None:
    first = GATINGS["one layer"][0]
    expected = solve_frelu_svm(X, Y, first).require()
    for above in ([], [np.ones((N, 3))], [np.ones((N, 3)), np.ones((N, 2))]):
        limit = solve_path_lasso(X, Y, [first, *above]).require()
        assert limit.objective == pytest.approx(expected.objective, rel=2e-8)
        assert limit.is_tight()
        layers = limit.aligned_weights()
        margins = Y * scores(layers, X, [first, *above])
        depth = len(layers)
        value = (sum(np.sum(layer**2) for layer in layers) / depth) ** (depth / 2) / margins.min()
        assert margins.min() == pytest.approx(1.0, rel=1e-6)
        assert value == pytest.approx(limit.attained, rel=1e-12)
        assert value == pytest.approx(expected.objective, rel=1e-6)
    assert "attained by a network" in repr(limit)


def test_open_gates_are_the_linear_machine() -> None:
    limit = solve_path_lasso(X, Y, np.ones((N, 9)), widths=[4, 3, 2]).require()
    assert limit.objective == pytest.approx(solve_linear_svm(X, Y).objective, rel=2e-8)
    assert limit.paths.tolist() == [[0, 0, 0]] and limit.multiplicity.tolist() == [24]
    assert limit.is_tight()


def test_two_gated_layers_are_not_said_to_be_tight() -> None:
    limit = solve_path_lasso(X, Y, GATINGS["two layers"]).require()
    assert not limit.is_tight()
    assert limit.attained > 1.05 * limit.objective
    assert "not known to be attained" in repr(limit)


@every_gating
def test_the_literal_program_over_all_paths_has_the_optimum_of_the_distinct_ones(gates) -> None:
    literal = PathLasso().literal(X, Y, gates)
    literal.solve(solver="CLARABEL")
    assert solve_path_lasso(X, Y, gates).require().objective == pytest.approx(
        literal.value, rel=1e-6
    )


@every_gating
def test_multipliers_bound_the_optimum_without_a_list_of_paths(gates) -> None:
    limit = solve_path_lasso(X, Y, gates).require()
    assert path_lower_bound(limit.dual, X, Y, gates) == pytest.approx(
        limit.dual_objective, rel=1e-9
    )
    lam = RNG.random(N)
    blocks = [
        np.einsum(
            "n,nd->d", lam * Y * np.prod([g[:, i] for g, i in zip(gates, p, strict=True)], 0), X
        )
        for p in np.ndindex(*(layer.shape[1] for layer in gates))
    ]
    expected = lam.sum() / max(np.linalg.norm(block) for block in blocks)
    assert path_lower_bound(1e3 * lam, X, Y, gates) == pytest.approx(expected, rel=1e-9)
    assert expected < limit.objective


def test_multipliers_of_few_samples_in_many_dimensions_give_the_same_bound() -> None:
    wide = RNG.normal(size=(N, 50))
    lam = np.where(np.arange(N) < 5, 1.0, 0.0)
    gates = GATINGS["two layers"]
    few = [layer[:5] for layer in gates]
    blocks = np.einsum("ni,nj,nd->ijd", *few, Y[:5, None] * wide[:5])
    expected = 5 / np.linalg.norm(blocks, axis=2).max()
    assert path_lower_bound(lam, wide, Y, gates) == pytest.approx(expected, rel=1e-8)
    assert path_lower_bound(lam, wide, Y, gates) <= expected


def test_contexts_in_one_layer_are_the_gated_linear_limit_and_deeper_ones_its_paths() -> None:
    contexts = [RNG.integers(0, 3, size=(N, 4)), RNG.integers(0, 2, size=(N, 2))]
    one = solve_path_lasso(X, Y, contexts[:1], contexts=True).require()
    assert one.objective == pytest.approx(solve_gln_svm(X, Y, contexts[0]).objective, rel=2e-8)
    assert one.is_tight()
    two = solve_path_lasso(X, Y, np.hstack(contexts), widths=[4, 2], contexts=True).require()
    literal = PathLasso(contexts=True).literal(X, Y, contexts)
    literal.solve(solver="CLARABEL")
    assert two.objective == pytest.approx(literal.value, rel=1e-6)
    assert two.zeta.shape == (8, 6, D) and not two.is_tight()
    bound = path_lower_bound(two.dual, X, Y, contexts, contexts=True)
    assert bound == pytest.approx(two.dual_objective, rel=1e-9)
    np.testing.assert_allclose(Y * two.predictor(X, contexts), two.margins, rtol=1e-9)


def test_distinct_paths_are_those_that_samples_tell_apart() -> None:
    first = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, -0.0]])
    second = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    paths = distinct_paths(gate_layers([first, second], 3))
    # Of the nine paths the third unit's are closed, and so are those of (0, 1) and (1, 1).
    assert paths.units.tolist() == [[0, 0]]
    assert paths.multiplicity.tolist() == [4]
    assert paths.activity.tolist() == [[1, 0, 1]]
    renamed = np.array([[0, 1, 0], [1, 0, 1], [1, 0, 2]])
    paths = distinct_paths(gate_layers([renamed], 3, contexts=True))
    assert paths.units.tolist() == [[0], [2]] and paths.multiplicity.tolist() == [2, 1]


def test_a_sample_without_an_open_path_is_named() -> None:
    gates = [layer.copy() for layer in GATINGS["two layers"]]
    gates[1][7] = 0.0
    limit = solve_path_lasso(X, Y, gates)
    assert limit.status is Status.NOT_SEPARABLE and np.flatnonzero(limit.closed).tolist() == [7]
    with pytest.raises(NotCertified, match="Every path is closed for 1 samples, by row number: 7"):
        limit.require()
    closed = solve_path_lasso(X, Y, [0 * layer for layer in gates])
    assert closed.status is Status.NOT_SEPARABLE and closed.closed.all()
    assert path_lower_bound(np.ones(N), X, Y, [0 * layer for layer in gates]) == math.inf


def test_a_multiple_with_the_other_label_is_not_separable_behind_open_gates_of_any_depth() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    limit = solve_path_lasso(x, np.array([1.0, -1.0]), [np.ones((2, 3)), np.ones((2, 3))])
    assert limit.status is Status.NOT_SEPARABLE and not limit.is_tight()


def test_too_many_paths_are_refused_with_their_number(monkeypatch) -> None:
    monkeypatch.setattr(home(solvers.require_memory), "_memory", lambda: 1e5)
    gates = [RNG.random((N, 40)), RNG.random((N, 40))]
    with pytest.raises(ValueError, match=r"1,600 distinct paths .* GiB.*`path_lower_bound`"):
        solve_path_lasso(X, Y, gates)


def test_a_saved_limit_comes_back_and_tensors_give_the_same(tmp_path) -> None:
    gates = GATINGS["two layers"]
    limit = solve_path_lasso(X, Y, gates).require()
    limit.save(tmp_path / "limit.safetensors")
    again = PathLimit.load(tmp_path / "limit.safetensors")
    assert again.attained == limit.attained and again.is_tight() == limit.is_tight()
    scores_again = again.predictor(X, gates)
    np.testing.assert_array_equal(scores_again, limit.predictor(X, np.hstack(gates)))
    np.testing.assert_allclose(Y * scores_again, limit.margins, rtol=1e-9)
    tensors = solve_path_lasso(
        torch.tensor(X), torch.tensor(Y), torch.tensor(np.hstack(gates)), widths=[5, 4]
    )
    np.testing.assert_allclose(tensors.zeta, limit.zeta, atol=1e-9)
    np.testing.assert_allclose(
        tensors.predictor(torch.tensor(X), [torch.tensor(layer) for layer in gates]), scores_again
    )


@pytest.mark.parametrize(
    ("gates", "keywords", "message"),
    [
        ([], {}, "an array .* a hidden layer, got none"),
        ([np.ones((3, 2))], {}, r"`gates` of layer 1 must have shape \(30, H\)"),
        ([np.ones((N, 2)), np.full((N, 2), np.nan)], {}, "`gates.1.` has entries that are NaN"),
        (np.ones((N, 5)), {"widths": [2, 2]}, "`widths` must be positive and sum up to the 5"),
        ([np.ones((N, 2))], {"widths": [3]}, r"those of the gates, \(2,\), got \(3,\)"),
        (np.ones((2, N, 5)), {}, "an array of shape"),
        ([-np.ones((N, 2), dtype=int)], {"contexts": True}, "contexts, integers from 0, got -1"),
    ],
)
def test_malformed_gates_are_one_clear_message(gates, keywords, message) -> None:
    with pytest.raises(ValueError, match=message):
        solve_path_lasso(X, Y, gates, **keywords)
    with pytest.raises(ValueError, match=message):
        path_lower_bound(np.ones(N), X, Y, gates, **keywords)


def test_a_bound_is_taken_on_the_data_of_the_limit_alone() -> None:
    gates = GATINGS["one layer"]
    limit = solve_path_lasso(X, Y, gates)
    net = Net(weights([7], RNG), [7])
    with pytest.raises(ValueError, match="must be the data of this limit"):
        limit.bound(net, X[::-1], gates[0])
    for lam, message in ((-np.ones(N), "non-negative"), (np.ones(3), r"shape \(30,\)")):
        with pytest.raises(ValueError, match=message):
            path_lower_bound(lam, X, Y, gates)
