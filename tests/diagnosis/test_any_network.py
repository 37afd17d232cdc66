"""What `diagnose` says of networks with biases, K outputs and other optimisers."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot, softplus

import implicit_bias as ib
from implicit_bias.limits import solve_multiclass_svm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = np.sign(X[:, 0] * X[:, 1] + 0.4 * X[:, 0] + 0.3)
ANGLES = 2 * np.pi / 3 * (np.arange(30) % 3) + 0.4 * RNG.normal(size=30).clip(-1, 1)
POINTS, CLASSES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1), np.arange(30) % 3


def mlp(*widths: int, seed: int = 1, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Layers with biases, initialised as torch does."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for below, above in itertools.pairwise(widths):
        layers += [nn.Linear(below, above), act()]
    return nn.Sequential(*layers[:-1]).double()


def log_inverse_loss(scores: Tensor, y: Tensor) -> Tensor:
    """log(1/loss), at margins of any size."""
    if y.is_floating_point():
        m = y * scores[:, 0]
    else:
        own = scores.gather(1, y[:, None])
        m = -torch.logsumexp(
            (scores - own).masked_fill(one_hot(y, scores.shape[1]) > 0, -torch.inf), dim=1
        )
    each = torch.where(m > 30, -m, softplus(-m.clamp(max=30)).log())
    return np.log(len(m)) - torch.logsumexp(each, dim=0)


def trained(network: nn.Module, inputs: Any, labels: Any, until: float) -> dict[str, Tensor]:
    """Train in place by steps along the gradient of log(1/loss); return the weights half-way."""
    A, y, half = torch.tensor(inputs), torch.tensor(labels), {}
    weights = list(network.parameters())
    for _ in range(20_000):
        u = log_inverse_loss(network(A), y)
        parts = torch.autograd.grad(u, weights)
        if not half and float(u.detach()) > until / 2:
            half = copy.deepcopy(network.state_dict())
        size = float(torch.cat([p.flatten() for p in parts]).norm())
        length = float(torch.cat([p.detach().flatten() for p in weights]).norm())
        with torch.no_grad():
            for p, part in zip(weights, parts, strict=True):
                p += part / size * min(0.01 * length, 0.3 / size)
        if float(u.detach()) > until:
            return half
    raise AssertionError("it has not come so far")


def fits(report: ib.Report) -> bool:
    lines = str(report).splitlines()
    return len(lines) <= 24 and max(map(len, lines)) <= 80


def test_a_network_with_biases_has_its_problem_named_and_its_homogenised_network_beside() -> None:
    network = mlp(2, 12, 1)
    earlier = trained(network, X, Y, 20)
    told: list[str] = []

    def tell(stage: str, done: int, of: int) -> None:
        told.extend([stage] if stage not in told else [])

    report = ib.diagnose(
        network, X, Y, earlier=earlier, batches="full", max_seconds=0.5, progress=tell
    )
    # Form and problem are told as they are known, before what takes long.
    form, growth, problem, local = told[2:]
    assert form.startswith("not homogeneous because of 2.bias, without which it is of degree 2: ")
    assert problem.startswith("min ||w||^2 / 2  s.t.  every margin >= 1 with 2.bias at 0, locally")
    assert "weights grow" in growth and "local limit" in local
    assert report.verdict.word == "PROBLEM NAMED" and "without 2.bias (degree 2)" in str(report)
    assert fits(report) and "Cai et al. 2025" in str(report)
    batches = {one.name: one.holds for one in report.assumptions}
    assert batches["full batches"] is True
    rates, kkt = report.objects["rates"], report.objects["kkt"]
    assert rates.regime.zeroed == ("2.bias",) and rates.homogenised.degree == 2
    # The network without the bias, by hand: on (x, 1) it is a bias-free network of plain numpy.
    W, b, a, _ = (p.detach().numpy() for p in network.parameters())
    plain = Y * (np.maximum(np.c_[X, np.ones(20)] @ np.c_[W, b].T, 0) @ a[0])
    own = Y * network(torch.tensor(X)).detach().numpy()[:, 0]
    assert rates.regime.margin_ratio == pytest.approx(plain.min() / own.min(), rel=1e-9)
    record = report.results["problem"]
    norms = {name: float(p.detach().norm()) for name, p in network.named_parameters()}
    whole = np.sqrt(sum(one**2 for one in norms.values()))
    for name, one in norms.items():
        assert record["shares"][name] == pytest.approx(one / whole, rel=1e-9)
    added = np.concatenate([
        (p.detach() - earlier[name]).numpy().ravel() for name, p in network.named_parameters()
    ])  # fmt: skip
    theta = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])
    cosine = added @ theta / np.linalg.norm(added) / np.linalg.norm(theta)
    assert report.comparison.increment_residual == pytest.approx(np.sqrt(1 - cosine**2), rel=1e-6)
    assert record["kkt_residual"] == kkt.residual <= kkt.one_sided
    # What is left is a two-layer ReLU network on (x, 1), with its own local optimum beside it.
    local = report.objects["local_limit"]
    assert any(one.network == "without 2.bias" for one in report.verdicts)
    paths = np.abs(a[0]) @ np.linalg.norm(
        np.c_[W, b], axis=1
    )  # least sum of squares of its function
    assert local.start_value == pytest.approx(paths / plain.min(), rel=1e-9)


def test_weights_that_carry_samples_by_a_bias_are_in_another_regime() -> None:
    network = mlp(2, 3, 1, seed=0)
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        network[0].bias.zero_()
        network[2].weight.copy_(torch.tensor([[40.0, 40.0, 40.0]]))
        network[2].bias.fill_(-20.0)
    inputs = np.array([[1.0, 1.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, -1.0]])
    labels = np.array([1.0, 1.0, -1.0, -1.0])
    report = ib.diagnose(network, inputs, labels)
    assert report.verdict.word == "ANOTHER REGIME" and fits(report)
    assert "2.bias carries the scores of 2 samples" in report.verdict.sentence
    assert "Kunin et al. 2023" in str(report)
    assert report.objects["rates"].regime.kept == ("2.bias",)


class Residual(nn.Module):
    """Scores ``<w, x + V relu(U x)>``, of which the skip vanishes as all weights grow."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.U, self.V = nn.Linear(2, 8, bias=False), nn.Linear(8, 2, bias=False)
        self.w = nn.Linear(2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w(x + self.V(torch.relu(self.U(x))))


def test_a_skip_vanishes_and_the_theorem_is_that_of_networks_that_are_not_homogeneous() -> None:
    network, y = Residual().double(), np.where(CLASSES > 0, 1.0, -1.0)
    trained(network, POINTS, y, 12)
    report = ib.diagnose(network, POINTS, y, max_seconds=0.5)
    assert report.verdict.word == "PROBLEM NAMED" and "Cai et al. 2025" in str(report)
    assert "what is left of the network as all weights grow (degree 3)" in report.verdict.sentence
    U, V, w = (p.detach().numpy() for p in network.parameters())
    deep = y * (np.maximum(POINTS @ U.T, 0) @ V.T @ w[0])
    whole = y * network(torch.tensor(POINTS)).detach().numpy()[:, 0]
    ratio = report.objects["rates"].regime.margin_ratio
    assert ratio == pytest.approx(deep.min() / whole.min(), rel=1e-9)
    other = ib.diagnose(network, POINTS, y, optimizer="sign")
    assert other.verdict.word == "NO THEOREM" and "observed alone" in other.verdict.sentence


@pytest.mark.parametrize("labels", ["whole", "names", "rows"])
def test_linear_outputs_of_all_classes_have_the_joint_margin(labels) -> None:
    torch.manual_seed(0)
    network = nn.Linear(2, 3).double()
    limit = solve_multiclass_svm(np.c_[POINTS, np.ones(30)], CLASSES).require()
    with torch.no_grad():
        both = torch.tensor(limit.zeta)
        network.weight.copy_(7 * both[:, :2])
        network.bias.copy_(7 * both[:, 2])
    y = {"whole": CLASSES, "names": np.array(["a", "b", "c"])[CLASSES], "rows": np.eye(3)[CLASSES]}
    report = ib.diagnose(network, POINTS, y[labels], loss="cross-entropy")
    assert report.verdict.word == "AT ITS LIMIT" and fits(report)
    assert report.limit.objective == pytest.approx(limit.objective, rel=1e-7)
    assert report.comparison.margin_ratio == pytest.approx(1, abs=1e-6)
    held_out = ib.diagnose(
        network, POINTS, y[labels], X_val=POINTS[:9], y_val=y[labels][:9], batches="mini"
    )
    mini = next(one for one in held_out.assumptions if one.name == "full batches")
    assert mini.holds is False
    assert held_out.comparison.agreement == 1 and held_out.comparison.error_limit == 0


class Picked(nn.Module):
    """Features of every sample as columns of the last of its parameters, not of the first."""

    def __init__(self, features: np.ndarray, classifiers: np.ndarray) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.tensor(classifiers))
        self.H = nn.Parameter(torch.tensor(features.T.copy()))

    def forward(self, X: Tensor) -> Tensor:
        return X @ self.H.T @ self.W.T


def test_two_layers_on_unit_vectors_have_the_limit_of_unconstrained_features() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    limit = ib.limits.solve_collapse(labels).require()
    H, W = limit.features[labels], limit.classifiers
    report = ib.diagnose(Picked(5 * H, 5 * W), np.eye(6), labels)
    assert report.verdict.word == "AT ITS LIMIT" and fits(report)
    assert report.limit.objective == pytest.approx(limit.objective, rel=1e-7)
    assert report.limit.zeta.shape == (3, 6) and "simplex-encoded" in report.heading.theorem
    off = ib.diagnose(Picked(H + 0.1 * RNG.normal(size=H.shape), W), np.eye(6), labels)
    assert off.verdict.word == "NOT THERE YET" and off.comparison.margin_ratio < 0.99
    # Of other inputs, and of fewer than K - 1 dimensions, it is no such limit.
    others = ib.diagnose(Picked(H, W), np.eye(6) + 0.01, labels)
    narrow = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9], [1.0, 1.0]])
    four = ib.diagnose(Picked(narrow, narrow), np.eye(4), np.arange(4), max_weights=0)
    forms = [one.results["form"]["form"] for one in (report, others, four)]
    assert forms == ["UNCONSTRAINED", "POLYNOMIAL", "POLYNOMIAL"]


def test_linear_scores_that_nothing_separates_lie_beside_a_limit_in_two_parts() -> None:
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(6, 6))).Q
    contradictory = np.c_[rng.normal(size=(10, 2)), np.zeros((10, 4))]
    mixed = np.sign(rng.normal(size=10))
    plain = rng.normal(size=(20, 6))
    y = np.r_[np.sign(plain[:, 2:] @ rng.normal(size=4)), mixed]
    inputs = np.r_[plain, contradictory] @ turn.T
    own = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12)
    finite = turn @ np.r_[own.fit(contradictory[:, :2], mixed).coef_[0], np.zeros(4)]
    network = nn.Linear(6, 1, bias=False).double()
    limit = ib.solve_linear_svm(inputs, y, inseparable="split")
    with torch.no_grad():
        network.weight.copy_(torch.tensor(finite + 30 * limit.zeta)[None])
    report = ib.diagnose(network, inputs, y)
    assert report.verdict.word == "NOT SEPARABLE" and fits(report)
    assert "20 of 30 margins grow all the same" in report.verdict.sentence
    found, state = report.objects["split"], report.objects["split_comparison"]
    assert found.objective == pytest.approx(13.98077158, rel=1e-9)  # of the same data in print
    assert state.margin_ratio == pytest.approx(1, abs=1e-7) and state.limit_error < 1e-5
    with torch.no_grad():
        network.weight += 0.3 * torch.tensor(turn[:, 0] + turn[:, 5])[None]
    off = ib.diagnose(network, inputs, y).objects["split_comparison"]
    assert off.limit_error == pytest.approx(0.3 / max(np.linalg.norm(finite), 1), rel=1e-4)
    out = 30 * limit.zeta + 0.3 * turn[:, 5]
    least = (y * (inputs @ out))[:20].min() / np.linalg.norm(out)
    assert off.margin_ratio == pytest.approx(least * limit.objective, rel=1e-6)
    assert off.zeta_cosine == pytest.approx(
        out @ limit.zeta / np.linalg.norm(out) / np.linalg.norm(limit.zeta), rel=1e-12
    )
    other = ib.diagnose(network, inputs, y, optimizer="sign")
    assert "split" not in other.objects


def test_decoders_of_repeated_tokens_have_the_limit_of_their_counts() -> None:
    contexts = np.eye(4)[[0, 0, 0, 1, 1, 2, 3, 3]]
    tokens = np.array([0, 0, 1, 1, 2, 0, 2, 1])
    counts = ib.datasets.token_counts(contexts, tokens)
    limit = ib.limits.solve_next_token(counts.contexts, counts.probabilities, counts.weights)
    network = nn.Linear(4, 3, bias=False).double()
    with torch.no_grad():
        network.weight.copy_(
            torch.tensor(limit.finite + 9 * limit.zeta + 0.1 * RNG.normal(size=(3, 4)))
        )
    report = ib.diagnose(network, contexts, tokens)
    known = ib.measures.compare_decoder(limit, network.weight.detach().numpy(), counts)
    found = report.objects["split_comparison"]
    for name in ("margin_ratio", "zeta_cosine", "limit_error"):
        assert getattr(found, name) == pytest.approx(getattr(known, name), rel=1e-7)
    assert report.objects["split"].objective == pytest.approx(limit.objective, rel=1e-8)


def test_linear_layers_of_three_outputs_have_a_local_limit_at_the_nuclear_norm() -> None:
    network = mlp(2, 4, 3, act=nn.Identity)
    for layer in network[::2]:
        layer.bias = None
    trained(network, POINTS, CLASSES, 100)
    report = ib.diagnose(network, POINTS, CLASSES)
    assert report.verdict.word == "AT A LOCAL LIMIT" and fits(report)
    nuclear = solve_multiclass_svm(POINTS, CLASSES, norm="nuclear").require()
    local = report.objects["local_limit"]
    assert nuclear.dual_objective * (1 - 1e-9) <= local.value <= nuclear.objective * (1 + 1e-9)
    assert local.multipliers.shape == local.scores.shape == (30, 3)
    # With biases the same is said of what is left of it without the last.
    biased = mlp(2, 4, 3, act=nn.Identity)
    trained(biased, POINTS, CLASSES, 100)
    beside = ib.diagnose(biased, POINTS, CLASSES)
    assert beside.verdict.word == "PROBLEM NAMED" and beside.verdicts[1].network == "without 2.bias"
    assert beside.verdicts[1].word == "AT A LOCAL LIMIT" and fits(beside)


def test_softmax_outputs_with_biases_have_their_problem_named() -> None:
    network = mlp(2, 8, 3)
    trained(network, POINTS, CLASSES, 15)
    report = ib.diagnose(network, POINTS, CLASSES, loss="cross-entropy")
    assert report.verdict.word == "PROBLEM NAMED" and "without 2.bias" in report.verdict.sentence
    assert report.objects["kkt"].multipliers.shape == (30, 3) and fits(report)
    # Losses are those of torch, which are numbers still at this size.
    scores = network(torch.tensor(POINTS)).detach()
    loss = float(cross_entropy(scores, torch.tensor(CLASSES)))
    assert report.row()["log_inverse_loss"] == pytest.approx(-np.log(loss), rel=1e-9)
    beside = next(one for one in report.verdicts if one.network == "without 2.bias")
    assert beside.word == "NOT THERE YET" and "local optimum" in beside.sentence


def test_relu_networks_of_several_outputs_have_the_convex_optimum_of_their_gates() -> None:
    network = mlp(2, 8, 3)
    for layer in network[::2]:
        layer.bias = None
    trained(network, POINTS, CLASSES, 30)
    report = ib.diagnose(network, POINTS, CLASSES, optimizer="gd")
    words = [one.word for one in report.verdicts]
    assert words == ["PROBLEM NAMED", "NOT THERE YET"] and fits(report)
    local, kkt = report.objects["local_limit"], report.objects["kkt"]
    assert local.n_kinks == 0 and kkt.residual < 0.2
    W = local.network.get_parameter("module.module.0.weight").detach().numpy()
    gates = np.unique(POINTS @ W.T > 0, axis=1).T
    Z = [cp.Variable((2, 3)) for _ in gates]
    scores = sum(cp.multiply(g[:, None] * 1.0, POINTS @ z) for g, z in zip(gates, Z, strict=True))
    wanted = [
        scores[n, c] - scores[n, k] >= 1 for n, c in enumerate(CLASSES) for k in range(3) if k != c
    ]
    program = cp.Problem(cp.Minimize(sum(map(cp.normNuc, Z))), wanted)
    assert local.value == pytest.approx(program.solve(solver=cp.CLARABEL), rel=1e-6)
    other = ib.diagnose(network, POINTS, CLASSES, optimizer="sign")
    assert "local_limit" not in other.objects


@pytest.mark.parametrize(
    ("act", "seconds"), [(nn.Tanh, "as with tanh"), (nn.Sigmoid, "as with tanh")]
)
def test_what_saturates_has_no_problem_and_says_why(act, seconds) -> None:
    network = mlp(2, 6, 1, act=act)
    trained(network, POINTS, np.where(CLASSES > 0, 1.0, -1.0), 12)
    report = ib.diagnose(network, POINTS, np.where(CLASSES > 0, 1.0, -1.0))
    assert report.verdict.word == "NO THEOREM" and seconds in report.verdict.sentence
    assert "limit" not in report.objects and fits(report)


def test_a_regime_that_is_read_early_is_not_said() -> None:
    network = mlp(2, 16, 1)
    trained(network, X, Y, 3)
    report = ib.diagnose(network, X, Y)
    assert report.verdict.word in ("NO THEOREM", "NOT SEPARATED")
    assert "too early" in report.verdict.sentence or report.verdict.word == "NOT SEPARATED"


def relu_without_biases() -> nn.Sequential:
    network = nn.Sequential(nn.Linear(2, 8, bias=False), nn.ReLU(), nn.Linear(8, 1, bias=False))
    torch.manual_seed(3)
    for p in network.parameters():
        nn.init.normal_(p)
    return network.double()


def test_the_optimiser_says_in_which_norm() -> None:
    network = relu_without_biases()
    inputs = np.c_[X[:, 0], np.ones(20)]
    labels = np.sign(X[:, 0] - 0.1)
    trained(network, inputs, labels, 20)
    report = ib.diagnose(network, inputs, labels, optimizer="sign")
    assert report.verdict.word == "PROBLEM NAMED" and fits(report)
    assert "largest linf norm of a tensor" in report.verdict.sentence and "sign" in str(report)
    kkt = report.objects["kkt"]
    assert 0 < kkt.ratio_bound <= kkt.ratio <= 1 and np.isnan(kkt.residual)
    # The bound by its own multipliers: lam.a over the sum of the l1 norms of what they combine to.
    margins = labels * network(torch.tensor(inputs)).detach().numpy()[:, 0]
    theta = {name: p.detach().numpy() for name, p in network.named_parameters()}
    along = sum(float((part * theta[name]).sum()) for name, part in kkt.gradient.items())
    wanted = kkt.multipliers @ (margins.min() - margins) + along
    dual = sum(np.abs(part).sum() for part in kkt.gradient.values())
    largest = max(np.abs(part).max() for part in theta.values())
    assert kkt.ratio_bound == pytest.approx(wanted / dual / largest, rel=1e-6)


def test_weight_decay_and_unknown_norms_are_no_limit() -> None:
    network = relu_without_biases()
    inputs, labels = np.c_[X[:, 0], np.ones(20)], np.sign(X[:, 0] - 0.1)
    trained(network, inputs, labels, 20)
    decayed = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    report = ib.diagnose(network, inputs, labels, optimizer=decayed)
    assert report.verdict.word == "NO THEOREM" and "weight decay" in report.verdict.sentence
    assert "solve_fit" in report.verdict.sentence
    report = ib.diagnose(
        network, inputs, labels, optimizer=torch.optim.Adagrad(network.parameters())
    )
    assert report.verdict.word == "NO THEOREM" and "Adagrad" in report.verdict.sentence
    held = torch.optim.SGD(network[2].parameters(), lr=0.1)
    report = ib.diagnose(network, inputs, labels, optimizer=held)  # its first layer was not given
    assert "linear in its weights" in str(report).splitlines()[0]
    assert report.limit.objective == pytest.approx(
        ib.solve_linear_svm(
            np.maximum(inputs @ network[0].weight.detach().numpy().T, 0), labels
        ).objective, rel=1e-7,
    )  # fmt: skip


def test_groups_of_descent_with_rates_of_their_own_weigh_the_norm() -> None:
    labels = np.sign(X[:, 0] - 0.8)
    network = nn.Linear(2, 1).double()
    scales = np.sqrt([0.1, 0.1, 0.01])
    limit = ib.solve_linear_svm(np.c_[X, np.ones(20)] * scales, labels).require()
    w = 9 * torch.tensor(limit.zeta * scales)
    with torch.no_grad():
        network.weight.copy_(w[None, :2])
        network.bias.copy_(w[2:])
    # At momentum 0.9 steps are ten times as long in the end.
    groups = [
        {"params": [network.weight], "lr": 0.01, "momentum": 0.9},
        {"params": [network.bias], "lr": 0.01},
    ]
    optimiser = torch.optim.SGD(groups, lr=1.0)
    report = ib.diagnose(network, X, labels, optimizer=optimiser)
    assert report.verdict.word == "AT ITS LIMIT" and "rates 0.01, 0.1" in " ".join(
        str(report).split()
    )
    assert report.comparison.kkt_residual < 1e-9
    plain = ib.diagnose(network, X, labels, optimizer="gd")
    assert plain.comparison.margin_ratio < 0.98
    # Descent itself, along the gradient of log(loss): its margin per weighed norm is the largest.
    features, reached = np.c_[X, np.ones(20)], np.zeros(3)
    for _ in range(20_000):
        margins = labels * (features @ reached)
        shares = np.exp(margins.min() - margins)
        reached += 10 * scales**2 * ((shares * labels) @ features / shares.sum())
    unweighed = ib.solve_linear_svm(features, labels).zeta
    ratios = [
        (labels * (features @ one)).min() / np.linalg.norm(one / scales) * limit.objective
        for one in (reached, unweighed)
    ]
    assert ratios[0] > 0.99 > 0.97 > ratios[1]
    halfway = {"weight": w[None, :2] / 2 + 1, "bias": w[2:] / 2}
    beside = ib.diagnose(network, X, labels, optimizer=optimiser, earlier=halfway)
    added = (w.numpy() - np.r_[halfway["weight"][0], halfway["bias"]]) / scales
    cosine = (
        added @ (w.numpy() / scales) / np.linalg.norm(added) / np.linalg.norm(w.numpy() / scales)
    )
    assert beside.comparison.increment_residual == pytest.approx(np.sqrt(1 - cosine**2), rel=1e-9)
    decayed = torch.optim.SGD([dict(one, weight_decay=0.1) for one in groups], lr=1.0)
    other = ib.diagnose(network, X, labels, optimizer=decayed)
    assert other.verdict.word == "NO THEOREM"


def test_linear_scores_that_decay_are_beside_their_ridge_fit() -> None:
    torch.manual_seed(0)
    network = nn.Linear(2, 1).double()
    optimiser = torch.optim.SGD(network.parameters(), lr=1.0, weight_decay=0.05)
    first = ib.diagnose(network, X, Y, optimizer=optimiser)
    assert first.verdict.word == "NOT THERE YET" and fits(first)
    for _ in range(400):
        optimiser.zero_grad()
        softplus(-torch.tensor(Y) * network(torch.tensor(X))[:, 0]).mean().backward()
        optimiser.step()
    report = ib.diagnose(network, X, Y, optimizer=optimiser)
    assert report.verdict.word == "AT ITS LIMIT" and fits(report)
    # scikit-learn's logistic regression on (x, 1), without an intercept of its own.
    model = LogisticRegression(C=1 / (0.05 * 20), fit_intercept=False, tol=1e-12)
    model.fit(np.c_[X, np.ones(20)], Y)
    w = model.coef_[0]
    value = np.logaddexp(0, -Y * (np.c_[X, np.ones(20)] @ w)).mean() + 0.05 / 2 * w @ w
    assert report.objects["limit"].objective == pytest.approx(value, rel=1e-6)


def test_arguments_that_say_nothing_are_refused() -> None:
    network = mlp(2, 3, 1)
    with pytest.raises(ValueError, match=r"`loss` must be one of .*'cross-entropy'"):
        ib.diagnose(network, X, Y, loss="hinge")
    with pytest.raises(ValueError, match="`batches` must be one of"):
        ib.diagnose(network, X, Y, batches="some")
    with pytest.raises(TypeError, match=r"`earlier` must be a torch.nn.Module"):
        ib.diagnose(network, X, Y, earlier=3)
    with pytest.raises(ValueError, match=r"`earlier` lacks weights '0.weight' of shape \(3, 2\)"):
        ib.diagnose(network, X, Y, earlier={})
    with pytest.raises(ValueError, match="`earlier` is of no use under adam"):
        ib.diagnose(network, X, Y, earlier=network.state_dict(), optimizer="adam")


def test_what_was_added_since_is_a_residual_of_homogeneous_networks_too() -> None:
    network = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[6.0, 4.0]]))
    report = ib.diagnose(network, [[1.0, 0.0]], [1], earlier={"weight": torch.tensor([[3.0, 0.0]])})
    cosine = (3 * 6 + 4 * 4) / np.hypot(3, 4) / np.hypot(6, 4)
    assert report.comparison.increment_residual == pytest.approx(np.sqrt(1 - cosine**2), rel=1e-9)


def test_a_bias_that_signs_keep_as_large_as_all_others_is_judged_by_its_effect() -> None:
    # Of one sample x = 1 signs move all entries alike, from weights 1 and biases 0.
    t = 98.9
    network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    with torch.no_grad():
        for p, value in zip(network.parameters(), (1 + t, t, 1 + t, t), strict=True):
            p.fill_(value)
    by_signs, by_gradients = (
        ib.diagnose(network, np.ones((1, 1)), [1], optimizer=name) for name in ("sign", "gd")
    )
    score, largest = (1 + t) * (1 + 2 * t) + t, np.linalg.norm([1 + t, t, 1 + t, t])
    assert f"share of 2.bias {t / largest:.4f}" in " ".join(str(by_gradients).split())
    assert "share" not in str(by_signs) and "NO THEOREM" in str(by_signs)
    effect = 1 - by_signs.objects["rates"].regime.margin_ratio
    assert effect == pytest.approx(t / score) and effect < 0.006
