"""Networks of users' own: what `diagnose` says of them, against facts that are known otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import implicit_bias as ib
from implicit_bias import Status
from implicit_bias.networks.recognition import Form
from implicit_bias.runs.diagnosis import THEORIES
from tests.long import some_of
from tests.own_modules import (
    Diagonal,
    HardGated,
    LogPeriodic,
    OwnGLN,
    ResidualPerceptron,
    TiedAutoencoder,
    convolution,
    linear,
    of_two_slopes,
    perceptron,
)

RNG = np.random.default_rng(0)
N, D = 40, 6
X, X_VAL = RNG.normal(size=(N, D)), RNG.normal(size=(100, D))
Y, Y_VAL = (np.where(x[:, 0] + 0.3 * x[:, 1] > 0, 1.0, -1.0) for x in (X, X_VAL))
IMAGES = RNG.normal(size=(N, 1, 6, 6)) + 0.5 * Y[:, None, None, None]
CONTEXTS = ib.HyperplaneContexts(4, 2, random_state=0).fit(X)
GATES = (RNG.random((N, 9)) < 0.6).astype(float)


def trained(
    network: nn.Module, inputs: Any = X, gates: Any = None, *, steps: int = 400, y: Any = Y
) -> ib.Trajectory:
    """Train a module in place by a trainer that comes to its limit in few steps."""
    if not hasattr(network, "degree"):
        network.degree = ib.check_network(network, inputs, gates).degree
    settings = ib.TrainingSettings(trainer="annealed", schedule=((steps, None),))
    return ib.train(network, inputs, y, gates, settings=settings)


def with_(network: nn.Module, **values: Any) -> nn.Module:
    """The module with these parameters."""
    with torch.no_grad():
        for name, value in values.items():
            network.get_parameter(name).copy_(torch.as_tensor(value))
    return network


# Limits that theorems name


LIMITS: dict[str, tuple[Callable[[], nn.Module], Any, Callable[[], float]]] = {
    "bias": (
        lambda: linear(D, 1, bias=True),
        None,
        lambda: ib.solve_linear_svm(np.c_[X, np.ones(N)], Y).objective,
    ),
    "deep linear": (
        lambda: perceptron(D, 5, 4, act=nn.Identity),
        None,
        lambda: ib.solve_linear_svm(X, Y).objective,
    ),
    "diagonal": (lambda: Diagonal(D), None, lambda: ib.limits.solve_l1_svm(X, Y).objective),
    "own gln": (
        lambda: OwnGLN(D, 4, 4),
        CONTEXTS.transform(X),
        lambda: ib.solve_gln_svm(X, Y, CONTEXTS.transform(X)).objective,
    ),
    "frozen relu": (
        lambda: ib.FReLU(D, 9, upper_widths=(3,)),
        GATES,
        lambda: ib.solve_frelu_svm(X, Y, GATES).objective,
    ),
    "shallow gln": (
        lambda: ib.ShallowGLN(D, contexts=CONTEXTS.transform(X)),
        CONTEXTS.transform(X),
        lambda: ib.solve_shallow_gln_svm(X, Y, CONTEXTS.transform(X)).objective,
    ),
}


SHOWN = {
    "gln": lambda: (OwnGLN(D, 4, 2), X, CONTEXTS.transform(X)),
    "layers": lambda: (ib.DGN(D, widths=(5, 4)), X, GATES),
    "relu": lambda: (perceptron(D, 8), X, None),
    "convolution": lambda: (convolution(), IMAGES, None),
    "biases": lambda: (perceptron(D, 8, bias=True), X, None),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_first_screen_has_the_verdict_and_fits(name) -> None:
    network, inputs, gates = SHOWN[name]()
    if name != "biases":
        trained(network, inputs, gates, steps=200)
    report = ib.diagnose(network, inputs, Y, gates=gates)
    lines = str(report).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert any(line.startswith(report.verdict.word) for line in lines)
    assert lines[0].startswith(type(network).__name__) and "homogeneous" in " ".join(lines[:2])
    assert "report.details()" in lines[-1] and "--" not in lines[-1]
    assert "what the network is (measured)" in report.details()


@pytest.mark.parametrize("name", some_of(LIMITS, one_in=2))
def test_the_certified_optimum_is_that_of_the_program_that_theory_names(name) -> None:
    make, gates, known = LIMITS[name]
    network = make()
    trained(network, gates=gates, steps=1000)
    report = ib.diagnose(network, X, Y, gates=gates)
    assert report.status is Status.SOLVED
    assert report.limit.objective == pytest.approx(known(), rel=1e-7)
    assert report.verdict.word == "AT ITS LIMIT"
    assert report.comparison.margin_ratio == pytest.approx(1, abs=0.01)
    assert report.comparison.weight_ratio <= report.comparison.margin_ratio + 1e-9
    assert report.row()["margin_ratio"] == report.comparison.margin_ratio
    assert report.row()["verdict"] == "AT ITS LIMIT"


def test_all_that_the_theorem_assumes_is_listed_and_what_weights_do_not_tell_stays_open() -> None:
    network = OwnGLN(D, 4, 2)
    trained(network, gates=CONTEXTS.transform(X), steps=200)
    report = ib.diagnose(network, X, Y, gates=CONTEXTS.transform(X))
    listed = {one.text: one.holds for one in report.assumptions}
    premises = THEORIES[Form.UNITS].assumes
    assert len(premises) == 12
    for premise in premises:
        known = premise.name in {one.name for one in report.assumptions}
        assert known or listed[premise.text] is None


def test_a_network_off_its_limit_is_not_there_yet_by_the_ratio_of_norms() -> None:
    weights = np.array([3.0, 0.9, 0.2, 0.1, 0, 0])
    network = with_(linear(D, 1), weight=weights[None])
    margins = Y * (X @ weights)
    assert margins.min() > 0
    report = ib.diagnose(network, X, Y)
    best = ib.solve_linear_svm(X, Y).objective
    ratio = best * margins.min() / np.linalg.norm(weights)
    assert report.comparison.margin_ratio == pytest.approx(ratio, rel=1e-6) and ratio < 0.9
    assert report.verdict.word == "NOT THERE YET"


def test_weights_that_are_not_balanced_lack_in_the_ratio_of_weights_alone() -> None:
    beta = ib.solve_linear_svm(X, Y).zeta
    network = perceptron(D, 1, act=nn.Identity)
    # The limit's function, the second layer three times as long as the first.
    scale = math.sqrt(3 / np.linalg.norm(beta))
    with_(network, **{"0.weight": beta[None] / 3 * scale, "2.weight": [[3 / scale]]})
    state = ib.diagnose(network, X, Y).comparison
    assert state.margin_ratio == pytest.approx(1, abs=1e-6)
    lengths = np.linalg.norm(beta) / 3 * scale, 3 / scale
    expected = 2 * lengths[0] * lengths[1] / (lengths[0] ** 2 + lengths[1] ** 2)
    assert state.weight_ratio == pytest.approx(expected, rel=1e-6) and expected < 0.9


def test_held_out_labels_are_compared_with_the_limit_behind_a_gating() -> None:
    network = OwnGLN(D, 4, 4)
    trained(network, gates=CONTEXTS.transform(X), steps=1500)
    report = ib.diagnose(network, X, Y, X_val=X_VAL, y_val=Y_VAL, gates=CONTEXTS)
    limit = ib.solve_gln_svm(X, Y, CONTEXTS.transform(X))
    predicted = limit.predictor(X_VAL, CONTEXTS.transform(X_VAL))
    assert report.comparison.error_limit == np.mean(np.sign(predicted) != Y_VAL)
    with torch.no_grad():
        own = network(torch.tensor(X_VAL), torch.tensor(CONTEXTS.transform(X_VAL))).numpy()
    assert report.comparison.agreement == np.mean(np.sign(own) == np.sign(predicted))


def test_a_gln_from_a_checkpoint_is_what_it_was(tmp_path) -> None:
    contexts = CONTEXTS.transform(X)
    network = ib.GLN(D, 4, 2)
    trained(network, gates=contexts, steps=800)
    torch.save(network.state_dict(), tmp_path / "gln.pt")
    restored = ib.GLN(D, 4, 2, random_state=7)
    restored.load_state_dict(torch.load(tmp_path / "gln.pt"))
    report = ib.diagnose(restored, X, Y, gates=contexts)
    known = ib.compare(ib.solve_gln_svm(X, Y, contexts), network, *[ib.Sample(X, Y, contexts)] * 2)
    for name in ("margin_ratio", "kkt_residual", "kkt_margin_bound", "largest_dual_norm"):
        assert getattr(report.comparison, name) == pytest.approx(getattr(known, name), rel=1e-6)
    assert report.comparison.n_dead == known.n_dead


def test_a_dead_unit_that_the_limit_needs_is_named() -> None:
    contexts = ib.HyperplaneContexts(6, 2, random_state=0).fit_transform(X)
    unit = int(np.argmax(ib.solve_gln_svm(X, Y, contexts).unit_norms))
    # Stationary: the limit of all other units, with that one dead.
    limit = ib.solve_gln_svm(X, Y, np.delete(contexts, unit, axis=1), n_contexts=2).require()
    w1, w2 = (np.insert(w, unit, 0.0, axis=0) for w in limit.balanced_weights())
    network = with_(OwnGLN(D, 6, 2), weight=w1, readout=w2)
    report = ib.diagnose(network, X, Y, gates=contexts)
    assert report.comparison.kkt_residual < 1e-6
    assert report.comparison.small_units == (unit,)
    assert report.comparison.largest_dual_norm > 1.01
    assert report.verdict.word == "NOT THERE YET"
    assert f"unit {unit} still grows" in report.verdict.sentence
    assert unit in [change.unit for change in report.objects["unit_growth"].changes]


def test_hard_gates_are_taken_as_they_are_and_said_to_be_still() -> None:
    network = HardGated(D, 5)
    network.gating.requires_grad_(False)
    trained(network)
    network.gating.requires_grad_(True)
    report = ib.diagnose(network, X, Y)
    gates = X @ network.gating.detach().numpy().T > 0
    # Linear experts behind gates, with one layer of weights: the plain norm over all of them.
    features = (gates[:, :, None] * X[:, None]).reshape(N, -1)
    expected = ib.solve_linear_svm(features, Y).objective
    assert report.limit.objective == pytest.approx(expected, rel=1e-7)
    assert report.results["form"]["without_gradient"] == ["gating"]


# Networks whose limit no theorem names


def test_layers_with_fixed_gates_lie_between_their_bound_and_their_local_limit() -> None:
    network = ib.DGN(D, widths=(5, 4))
    trained(network, gates=GATES)
    report = ib.diagnose(network, X, Y, gates=GATES)
    bound = ib.solve_path_lasso(X, Y, GATES, widths=(5, 4))
    local = ib.local_limit(network, X, Y, GATES)
    assert report.limit.objective == pytest.approx(bound.objective, rel=1e-7)
    assert report.objects["local_limit"].value == pytest.approx(local.value, rel=1e-9)
    assert [one.word for one in report.verdicts] == ["AT A LOCAL LIMIT", "BOUND"]
    value = report.objects["bounded_value"]
    assert bound.dual_objective * (1 - 1e-7) <= value.local_value <= value.value


def test_a_tied_quadratic_form_is_proved_to_be_at_the_best_of_all() -> None:
    network = TiedAutoencoder(D, 4)
    trained(network)
    report = ib.diagnose(network, X, Y)
    value = report.objects["bounded_value"]
    assert value.bound == pytest.approx(value.local_value, rel=1e-6)
    assert report.verdict.word == "AT ITS LIMIT" and "no theorem" in report.verdict.sentence
    # No network beats the bound: other starts, trained, and random weights that separate.
    for seed in range(3):
        other = with_(TiedAutoencoder(D, 4), code=np.random.default_rng(seed).normal(size=(4, D)))
        trained(other, steps=100)
        with torch.no_grad():
            margins = Y * other(torch.tensor(X)).numpy()
        own = float(other.code.detach().square().sum()) / 2 / margins.min()
        assert margins.min() <= 0 or own >= value.bound


@pytest.mark.parametrize(
    ("make", "inputs"),
    some_of(
        [
            (lambda: perceptron(D, 8, 6), X),
            (lambda: torch.compile(perceptron(D, 8, 6)), X),
            (lambda: perceptron(D, 8, 6, act=nn.LeakyReLU), X),
            (lambda: of_two_slopes(D), X),
            (convolution, IMAGES),
        ],
        one_in=3,
    ),
    ids=["deep", "compiled", "leaky", "two slopes", "convolution"],
)
def test_relu_networks_have_their_kkt_residual_and_a_local_limit(make, inputs) -> None:
    network = make()
    plain = getattr(network, "_orig_mod", network)
    trained(plain, inputs)
    report = ib.diagnose(network, inputs, Y)
    local = report.objects["local_limit"]
    assert local.residual < 1e-10 and local.value < local.start_value
    proved = local.status in (Status.LOCAL_OPTIMUM, Status.LIVE_OPTIMUM)
    assert report.verdict.word == ("NOT THERE YET" if proved else "NO THEOREM")
    known = ib.kkt_distance(plain, inputs, Y, None)
    assert report.comparison.kkt_residual == pytest.approx(known.residual, rel=1e-6)
    assert report.results["form"]["gates_fixed"] is False
    assert "0.weight" in report.results["form"]["moved_by"]


def test_the_bound_of_a_relu_network_is_of_its_present_gates_and_below_its_value() -> None:
    network = perceptron(D, 8, 6)
    trained(network)
    report = ib.diagnose(network, X, Y)
    W1, W2, _ = (p.detach().numpy() for p in network.parameters())
    first = X @ W1.T >= 0
    gates = [first, X @ W1.T * first @ W2.T >= 0]
    frozen = ib.solve_path_lasso(X, Y, [one.astype(float) for one in gates])
    assert report.limit.dual_objective == pytest.approx(frozen.dual_objective, rel=1e-7)
    assert report.limit.dual_objective <= report.comparison.value
    assert math.isnan(report.comparison.margin_ratio)
    (bound,) = [one for one in report.verdicts if one.word == "BOUND"]
    assert "keeps its gates" in bound.sentence


@pytest.mark.parametrize(
    ("bias", "slope"), some_of([(False, 0.0), (True, 0.0), (False, 0.2)], one_in=3)
)
def test_a_two_layer_relu_network_lies_beside_its_certified_local_optimum(bias, slope) -> None:
    act = partial(nn.LeakyReLU, slope) if slope else nn.ReLU
    network = perceptron(D, 8, bias=bias, last_bias=False, act=act)
    trained(network, steps=1500)
    report = ib.diagnose(network, X, Y)
    W = network[0].weight.detach().numpy()
    inputs = np.c_[X, np.ones(N)] if bias else X
    own = ib.ReLU.from_weights(
        np.c_[W, network[0].bias.detach().numpy()] if bias else W,
        network[2].weight.detach().numpy(),
        slope=slope,
    )
    known = ib.limits.relu_local_limit(own, inputs, Y)
    limit = report.objects["local_limit"]
    assert limit.status is known.status and limit.value == pytest.approx(known.value, rel=1e-9)
    norms = np.abs(own.zeta().detach().numpy())
    value = np.linalg.norm(norms, axis=1).sum() / report.comparison.smallest_margin
    assert limit.start_value == pytest.approx(value, rel=1e-6)
    assert report.row()["local_ratio"] == pytest.approx(known.value / value, rel=1e-6)
    near = known.value / value >= 0.99
    assert report.verdict.word == ("AT A LOCAL LIMIT" if near else "NOT THERE YET")


def test_a_relu_network_at_the_best_of_all_widths_is_said_to_be_there() -> None:
    inputs = np.abs(RNG.normal(size=(20, 3))) * np.where(RNG.random(20) < 0.5, 1, -1)[:, None]
    labels = np.sign(inputs[:, 0])
    limit = ib.limits.solve_relu_minnorm(inputs, labels).require()
    weights = limit.network
    network = perceptron(3, len(limit.units))
    with_(network, **{"0.weight": weights.w1, "2.weight": weights.head()[None]})
    report = ib.diagnose(network, inputs, labels)
    assert report.verdict.word == "AT A LOCAL LIMIT"
    assert report.objects["local_limit"].status is Status.GLOBAL_OPTIMUM
    assert "best of all widths" in report.verdict.sentence
    (bound,) = [one for one in report.verdicts if one.word == "BOUND"]
    assert bound.numbers["lower_bound"] == pytest.approx(limit.value, rel=1e-5)


# Networks that no theorem is of


def test_a_relu_network_with_biases_is_not_homogeneous_in_the_upper_ones() -> None:
    report = ib.diagnose(perceptron(D, 5, 4, bias=True), X, np.sign(X[:, 0]))
    found = report.objects["homogeneity"]
    assert found.mixed == ("2.bias", "4.bias") and found.degree_without == 3
    text = " ".join(str(report).split())
    assert "not homogeneous because of 2.bias and 4.bias, without which it is of degree 3" in text
    assert "quasi-homogeneous" in report.details()
    assert "limit" not in report.objects and report.status is None
    assert report.verdict.word in ("NOT SEPARATED", "NO THEOREM")


def test_a_biased_network_at_a_large_loss_is_too_early_to_judge() -> None:
    network = perceptron(D, 8, bias=True)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(800):
        optimiser.zero_grad()
        margins = torch.tensor(Y) * network(torch.tensor(X)).squeeze(1)
        nn.functional.softplus(-margins).mean().backward()
        optimiser.step()
    assert margins.min() > 0
    report = ib.diagnose(network, X, Y)
    assert report.verdict.word == "NO THEOREM"
    assert "too early: log(1/loss)" in report.verdict.sentence and "2.bias" in str(report)
    assert math.isnan(report.comparison.kkt_residual)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (ResidualPerceptron(D), "a sum of terms of degrees 1 and 3"),
        (LogPeriodic(D), "not homogeneous"),
        (perceptron(D, 5, act=nn.Tanh), "not homogeneous"),
    ],
    ids=["residual", "log-periodic", "tanh"],
)
def test_what_is_not_homogeneous_is_said_to_be_so(network, said) -> None:
    report = ib.diagnose(network, X, Y)
    assert said in " ".join(str(report).split())
    assert report.results["form"]["form"] == "NOT_HOMOGENEOUS"
    assert not report.assumptions[0].holds


# Data


def test_a_network_that_does_not_separate_is_said_to_be_so_with_its_worst_margin() -> None:
    report = ib.diagnose(with_(linear(D, 1), weight=np.full((1, D), 0.1)), X, Y)
    margins = Y * X.sum(1) * 0.1
    assert report.verdict.word == "NOT SEPARATED"
    assert f"{(margins <= 0).sum()} of {N} training samples" in report.verdict.sentence
    assert report.shortfall and report.status is Status.SOLVED


def test_data_that_no_such_network_separates_come_with_the_proof() -> None:
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    xor = np.array([1.0, 1.0, -1.0, -1.0])
    report = ib.diagnose(perceptron(2, 3, act=nn.Identity), corners, xor)
    assert report.verdict.word == "NOT SEPARABLE"
    assert report.status is Status.NOT_SEPARABLE
    combined = (report.limit.dual * xor) @ corners
    assert np.abs(combined).max() < 1e-12 and report.limit.dual.min() >= 0
    # A ReLU network separates them, so nothing of the kind is said of one.
    assert ib.diagnose(perceptron(2, 8), corners, xor).verdict.word != "NOT SEPARABLE"


def test_equal_samples_with_different_labels_are_separated_by_no_network_whatever() -> None:
    inputs, labels = X.copy(), Y.copy()
    inputs[7], labels[7] = inputs[3], -labels[3]
    report = ib.diagnose(perceptron(D, 5), inputs, labels)
    assert report.verdict.word == "NOT SEPARABLE"
    assert "samples 3 and 7" in report.verdict.sentence
    gates = np.eye(N)[:, :3]
    gates[7], gates[3] = 1, 0  # behind other gates they are no longer equal
    apart = ib.diagnose(ib.FReLU(D, 3), inputs, labels, gates=gates)
    assert "equal" not in apart.verdict.sentence


# Course, files, forms


def test_a_trajectory_says_where_the_margin_ratio_is_heading() -> None:
    network = perceptron(D, 4, act=nn.Identity)
    network.degree = 2
    settings = ib.TrainingSettings(trainer="constant", schedule=((3000, 0.1),))
    trajectory = ib.train(network, X, Y, None, settings=settings)
    report = ib.diagnose(network, X, Y, trajectory=trajectory)
    heading = report.objects["extrapolation"]
    assert heading.reached == pytest.approx(report.comparison.weight_ratio, rel=1e-6)
    assert heading.limit.high <= 1 + 1e-9
    said = "predicted at 10 times its log(1/loss)" in report.verdict.sentence
    bar = report.results["farther"]
    assert said == bool(bar and bar["informative"] and report.verdict.word == "NOT THERE YET")
    assert report.trajectory is trajectory
    with pytest.raises(ValueError, match="`trajectory` ends at a smallest margin of"):
        ib.diagnose(linear(D, 1), X, Y, trajectory=trajectory)


def test_a_saved_diagnosis_loads_with_its_verdict_and_draws(tmp_path) -> None:
    network = OwnGLN(D, 4, 4)
    trained(network, gates=CONTEXTS.transform(X))
    report = ib.diagnose(network, X, Y, gates=CONTEXTS.transform(X))
    report.save(tmp_path / "own")
    loaded = ib.load(tmp_path / "own")
    assert loaded.verdict == report.verdict
    assert loaded.row() == report.row()
    assert str(loaded.comparison) == str(report.comparison)
    np.testing.assert_array_equal(loaded.limit.zeta, report.limit.zeta)
    figure = loaded.figure()
    assert figure is not None and len(figure.axes) == 2
    assert "units with fixed gates" in report._repr_html_()


def test_the_module_is_not_changed_and_its_precision_does_not_matter() -> None:
    network = perceptron(D, 5).float()
    before = {name: p.clone() for name, p in network.named_parameters()}
    report = ib.diagnose(network, X.astype(np.float32), Y)
    assert report.objects["homogeneity"].degree == 2
    for name, p in network.named_parameters():
        assert p.dtype == torch.float32 and torch.equal(p, before[name])


class TwoOutputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(D, 2).double()

    def forward(self, x):
        return self.inner(x)


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Dropout(0.5), linear(D, 1))

    def forward(self, x):
        return self.inner(x)


def spoiled() -> nn.Module:
    network = perceptron(D, 5)
    with torch.no_grad():
        network[0].weight[0, 0] = math.nan
    return network


@pytest.mark.parametrize(
    ("network", "data", "message"),
    [
        (spoiled(), {}, "`network` has NaN or infinite entries in '0.weight'"),
        (Noisy(), {}, r"two calls of `network` \(Noisy\) give different scores"),
        (perceptron(D, 5), {"X": X[:, :4]}, r"cannot be called on `X` of shape \(40, 4\)"),
        (perceptron(D, 5), {"y": np.arange(N) % 3}, "`y` has 3 classes, 0, 1, 2"),
        (perceptron(D, 5), {"y": ["a"] * N}, "`y` has one class only, 'a'"),
        (perceptron(D, 5), {"y": Y[:-1]}, "`y` must have shape"),
        (perceptron(D, 5), {"X": np.where(X > 2, np.nan, X)}, "`X`.* finite|`X`.*NaN"),
        (perceptron(D, 5), {"gates": GATES}, "`gates` were given"),
        (ib.GLN(D, 4, 4), {}, "`gates` is None"),
        (ib.GLN(D, 4, 4), {"gates": np.zeros((N, 3), int)}, "`gates` do not fit `network`"),
        (ib.GLN(D, 4, 4), {"gates": np.full((N, 4), 9)}, "`gates` do not fit `network`"),
        (nn.Linear(D, 1, device="meta"), {}, "'weight', which is on the device meta"),
        (perceptron(D, 5), {"X_val": X_VAL}, "`X_val` was given without `y_val`"),
        (perceptron(D, 5), {"loss": "squared"}, "`loss` must be one of 'logistic', 'exponential'"),
        (
            OwnGLN(D, 4, 4),
            {"gates": CONTEXTS.transform(X), "X_val": X_VAL, "y_val": Y_VAL},
            "`gates` are those of `X` alone",
        ),
        (nn.ReLU(), {}, "`network` has no parameter"),
        (perceptron(D, 5), {"max_seconds": 0}, "`max_seconds` must be positive"),
    ],
)  # fmt: skip
def test_wrong_input_gets_one_message_that_names_the_argument(network, data, message) -> None:
    arguments = {"X": X, "y": Y} | data
    with pytest.raises(ValueError, match=message):
        ib.diagnose(network, **arguments)


@pytest.mark.parametrize(
    ("network", "data", "message"),
    [
        ([1, 2], {}, "`network` must be a torch.nn.Module, got \\[1, 2\\]"),
        (perceptron(D, 5), {"X": X * 1j}, "`X` must hold real numbers"),
        (perceptron(D, 5), {"y": Y * 1j}, "`y` must hold labels of classes"),
    ],
)
def test_what_is_of_another_kind_is_a_type_error(network, data, message) -> None:
    with pytest.raises(TypeError, match=message):
        ib.diagnose(network, **({"X": X, "y": Y} | data))
