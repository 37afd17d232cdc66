"""What decides on the verdict of a network of one's own, from stated measurements."""

from __future__ import annotations

import math
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias import Status
from implicit_bias.networks.recognition import Form, recognise, take_subject
from tests.own_modules import Circular, OwnGLN, TiedAutoencoder, linear, perceptron

HOME = "implicit_bias.runs.diagnosis"
verdict_finding = resolve_name(f"{HOME}.judgement:verdict_finding")
Optimum, find_optimum, quadratic_bound = (
    resolve_name(f"{HOME}.optimum:{name}")
    for name in ("Optimum", "find_optimum", "quadratic_bound")
)
OwnNetwork, MeasuredNetwork, measure_own, held_back_by, recognised_network = (
    resolve_name(f"{HOME}.state:{name}")
    for name in (
        "OwnNetwork", "MeasuredNetwork", "measure_own", "held_back_by", "recognised_network",
    )
)  # fmt: skip
Problem, problem_evidence, theory_of = (
    resolve_name(f"{HOME}.problem:{name}") for name in ("Problem", "problem_evidence", "theory_of")
)
Method = resolve_name(f"{HOME}.method:Method")
Rates, Regime, RegimeName = (
    resolve_name(f"implicit_bias.networks.recognition.regime:{name}")
    for name in ("Rates", "Regime", "RegimeName")
)
VanishingTensor = resolve_name("implicit_bias.networks.recognition.shares:VanishingTensor")
X = np.random.default_rng(7).normal(size=(6, 3))
Y = np.where(X @ [1.0, -0.5, 0.2] > 0, 1.0, -1.0)
STRUCTURE = SimpleNamespace(
    form=Form.PIECEWISE, homogeneity=SimpleNamespace(degree=2.0, whole_degree=2)
)


def state_of(**known):
    return OwnNetwork(
        **{"smallest_margin": 0.1, "weight_norm": 3.0, "train_error_network": 0.0} | known
    )


def network_of(*, separates=True, named=False, state=None, **optimum):
    return SimpleNamespace(
        state=state_of() if state is None else state, optimum=Optimum(**optimum), named=named,
        separates=separates, margins=np.ones(6), lacking="what it lacks", structure=STRUCTURE,
    )  # fmt: skip


# The verdict


def test_what_is_proved_of_the_data_comes_first() -> None:
    network = network_of(bound=math.inf)
    (one,) = verdict_finding(network, (1, 4)).evidence
    assert one.status is Status.NOT_SEPARABLE and "separates samples 1 and 4, which" in one.reason
    (one,) = verdict_finding(network, None, split="besides").evidence
    assert one.status is Status.NOT_SEPARABLE and "separates these 6 samples" in one.reason
    assert one.remark == "besides"


def test_a_network_that_does_not_separate_says_what_it_lacks() -> None:
    (one,) = verdict_finding(network_of(separates=False, named=True), None).evidence
    assert (one.theory, one.reason, one.smallest_margin) == ("none", "what it lacks", 0.1)
    assert "homogeneous of degree 2" in one.remark and one.status is None


def test_a_named_limit_is_judged_by_the_ratio_of_margins() -> None:
    state = state_of(margin_ratio=0.7, agreement=0.9, kkt_residual=0.25)
    network = network_of(named=True, state=state, limit=SimpleNamespace(status=Status.INACCURATE))
    (one,) = verdict_finding(network, None, predicted="nearer").evidence
    assert one.status is Status.INACCURATE and one.near == {"margin_ratio": 0.7}
    assert one.beside == {"agreement": 0.9} and one.predicted == "nearer"
    assert one.reason == held_back_by(state) and one.smallest_margin == 0.1 and one.remark == ""


def test_a_problem_is_judged_by_itself(monkeypatch) -> None:
    monkeypatch.setattr(f"{HOME}.judgement.problem_evidence", lambda *of: [of])
    network = network_of(named=True)
    assert verdict_finding(network, None, "problem").evidence == ((network, "problem"),)


def test_a_network_without_a_limit_has_its_residual_and_its_bound() -> None:
    (one,) = verdict_finding(network_of(), None).evidence
    assert one.theory == "none" and one.reason.endswith("homogeneous of degree 2")
    near = network_of(state=state_of(kkt_residual=0.25), bound=2.5, present_gates=True)
    one, bound = verdict_finding(near, None).evidence
    assert one.reason.endswith("degree 2; KKT residual 0.25")
    assert bound.theory == "bound" and bound.beside == {"lower_bound": 2.5}
    assert "no network that keeps its gates on these samples is below 2.5" in bound.numbers
    assert "lies between" not in bound.numbers
    path = ib.solve_path_lasso(X, Y, np.ones((6, 4)), widths=(2, 2))
    known = network_of(limit=path, bound=path.dual_objective)
    assert [one.theory for one in verdict_finding(known, None).evidence] == ["none", "bound"]
    for unknown in (network_of(limit=path), network_of(bound=2.0), network_of(present_gates=True)):
        assert len(verdict_finding(unknown, None).evidence) == 1


# What was measured


def measured(network, gates=None, earlier=None, held_out=None, labels=Y):
    structure = recognise(take_subject(network, X, labels, gates))
    optimum = find_optimum(structure, structure.subject.data.y.numpy())
    return measure_own(structure, optimum, held_out, earlier)


def set_to(network, *values):
    with torch.no_grad():
        for p, value in zip(network.parameters(), values, strict=True):
            p.copy_(torch.as_tensor(value))
    return network


def test_numbers_of_two_linear_layers_are_those_of_their_product() -> None:
    rng = np.random.default_rng(8)
    v = rng.normal(size=2)
    u = v[:, None] / (v @ v) * np.array([[1.0, -0.5, 0.2]]) + 0.1 * rng.normal(size=(2, 3))
    network = set_to(perceptron(3, 2, act=torch.nn.Identity), u, v[None])
    margins = Y * (X @ (v @ u))
    assert margins.min() > 0
    held_out = take_subject(network, X[:4] + 0.5, Y[:4], None)
    found = measured(network, held_out=held_out)
    state, squares = found.state, (u**2).sum() + (v**2).sum()
    assert state.smallest_margin == pytest.approx(margins.min()) and found.separates
    assert state.weight_norm == pytest.approx(math.sqrt(squares))
    assert state.value == pytest.approx(squares / 2 / margins.min())
    function = np.linalg.norm(v @ u) / margins.min()
    assert state.function_value == pytest.approx(function)
    least = ib.solve_linear_svm(X, Y).dual_objective
    assert state.margin_ratio == pytest.approx(least / function, rel=1e-6)
    assert state.weight_ratio == pytest.approx(least / state.value, rel=1e-6)
    assert state.train_error_network == 0 and (state.n_units, state.n_dead) == (0, None)
    assert len(found.unit_norms) == 0 and found.named
    own, limit = (X[:4] + 0.5) @ (v @ u), (X[:4] + 0.5) @ ib.solve_linear_svm(X, Y).zeta
    assert state.error_network == np.mean(np.sign(own) != Y[:4])
    assert state.error_limit == np.mean(np.sign(limit) != Y[:4])
    assert state.agreement == np.mean(np.sign(limit) == np.sign(own))
    cosine = own @ limit / np.linalg.norm(own) / np.linalg.norm(limit)
    assert state.score_cosine == pytest.approx(cosine, rel=1e-6)
    known = ib.kkt_distance(network, X, Y, None) if hasattr(network, "degree") else found.kkt
    assert state.kkt_residual == known.residual
    assert state.kkt_complementarity == known.complementarity


def test_a_network_on_the_wrong_side_has_no_ratios_and_says_how_far_it_is() -> None:
    network = set_to(linear(3, 1), [[-1.0, 0.5, -0.2]])
    held_out = take_subject(network, X[:4], Y[:4], None)
    found = measured(network, held_out=held_out)
    state, margins = found.state, Y * (X @ [-1.0, 0.5, -0.2])
    assert not found.separates and found.kkt is None and math.isnan(state.value)
    assert state.train_error_network == 1 and state.error_network == 1 and state.error_limit == 0
    assert math.isnan(state.agreement) and math.isnan(state.score_cosine)
    assert f"6 of 6 training samples on the wrong side (smallest margin {margins.min():.3g})" in (
        found.lacking
    )
    assert found.lacking.endswith("train longer, or with another learning rate")
    on_kink = set_to(linear(3, 1), [[0.0, 0.0, 0.0]])
    zero = measured(on_kink)
    assert "6 of 6" in zero.lacking and not zero.separates and zero.kkt is None and zero.named
    closed = set_to(perceptron(3, 1), -100 * np.sign(X[:1]), [[1.0]])
    inputs = np.abs(X) * np.sign(X[0])
    structure = recognise(take_subject(closed, inputs, Y, None))
    dead = measure_own(structure, Optimum(), None)
    assert "no score depends on the weights there" in dead.lacking


def test_samples_on_the_wrong_side_are_counted_and_slopes_that_cancel_are_none_of_0() -> None:
    network = set_to(linear(3, 1), [[0.1, 0.0, 0.0]])
    margins = 0.1 * Y * X[:, 0]
    n_wrong = int((margins <= 0).sum())
    assert 0 < n_wrong < (margins <= 1).sum()
    assert f"the network has {n_wrong} of 6 training" in measured(network).lacking
    both = take_subject(set_to(linear(1, 1), [[0.0]]), [[1.0], [-1.0]], [1.0, -1.0], None)
    structure = recognise(both)
    assert measure_own(structure, Optimum(), None).lacking.endswith("another learning rate")


@pytest.mark.parametrize(
    ("degree", "form", "by_sample", "twice", "known"),
    [
        (2, Form.PIECEWISE, True, True, True), (None, Form.PIECEWISE, True, True, False),
        (2, Form.SURROGATE, True, True, False), (2, Form.PIECEWISE, False, True, False),
        (2, Form.PIECEWISE, True, False, False),
    ],
)  # fmt: skip
def test_a_module_without_degree_or_gradients_of_its_own_is_not_recognised(
    monkeypatch, degree, form, by_sample, twice, known
) -> None:
    for name in ("RecognisedNetwork", "UnitsNetwork"):
        monkeypatch.setattr(f"{HOME}.state.{name}", lambda *of, name=name: (name, *of))
    subject = SimpleNamespace(by_sample=by_sample, twice=twice)
    homogeneity = SimpleNamespace(whole_degree=degree)
    for units, name in ((None, "RecognisedNetwork"), ("units", "UnitsNetwork")):
        structure = SimpleNamespace(
            subject=subject, homogeneity=homogeneity, form=form, units=units
        )
        found = recognised_network(structure)
        assert found == ((name, subject, structure) if known else None)


def test_what_is_known_of_held_out_data_needs_a_limit_that_separates() -> None:
    network = set_to(linear(3, 1), [[1.0, -0.5, 0.2]])
    structure = recognise(take_subject(network, X, Y, None))
    held_out = take_subject(network, X[:4], Y[:4], None)
    best = find_optimum(structure, Y)
    features = best.features
    none = ib.solve_linear_svm(np.ones((2, 3)), np.array([1.0, -1.0]))
    for optimum in (Optimum(), Optimum(limit=best.limit), Optimum(features=features),
                    Optimum(limit=none, features=features)):  # fmt: skip
        state = measure_own(structure, optimum, held_out).state
        assert state.error_network == 0 and math.isnan(state.error_limit)
        assert math.isnan(state.agreement)
    assert measure_own(structure, best, held_out).state.error_limit == 0


def test_ratios_are_of_a_finite_bound_of_all_networks() -> None:
    structure = recognise(take_subject(set_to(linear(3, 1), [[1.0, -0.5, 0.2]]), X, Y, None))
    for optimum, known in (
        (Optimum(bound=0.5), True), (Optimum(bound=0.5, present_gates=True), False),
        (Optimum(bound=math.inf), False), (Optimum(), False),
    ):  # fmt: skip
        found = measure_own(structure, optimum, None)
        state = found.state
        assert found.unit_norms.shape == (0,) and state.n_units == 0
        for ratio in (state.margin_ratio, state.weight_ratio):
            assert ratio == pytest.approx(0.5 / state.value if known else math.nan, nan_ok=True)


def test_units_are_wrongly_small_beside_a_limit_of_units_alone(monkeypatch) -> None:
    monkeypatch.setattr(
        f"{HOME}.state.wrongly_small", lambda *of: asked.append(of) or np.array([1])
    )
    kkt = SimpleNamespace(
        dual_norms=np.array([0.5, 1.5]), residual=0.1, complementarity=0.2, margin_bound=0.3
    )
    of_kkt, optimum = resolve_name(f"{HOME}.state:_of_kkt"), Optimum(limit="limit")
    for form, limit in ((Form.UNITS, "limit"), (Form.TWO_LAYER_RELU, None)):
        asked: list = []
        found = of_kkt(SimpleNamespace(form=form), optimum, kkt, np.ones(2))
        assert asked[0][2] == limit and found["small_units"] == (1,)
        assert found["n_wrongly_small"] == 1 and found["largest_dual_norm"] == 1.5


def test_units_behind_gates_have_norms_and_dual_norms_of_their_own() -> None:
    contexts = np.array([[0, 1], [1, 0]])
    inputs, labels = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    rows = torch.tensor([[[2.0, 0.0], [0.0, -1.0]], [[0.0, -0.5], [1.0, 0.0]]])
    network = OwnGLN(2, 2, 2)
    with torch.no_grad():
        network.weight.copy_(rows)
        network.readout.copy_(torch.tensor([1.0, 0.5]))
    structure = recognise(take_subject(network, inputs, labels, contexts))
    found = measure_own(structure, find_optimum(structure, labels), None)
    # Margins: 2 + 0.5 of the first sample, 2 + 0.5 of the second.
    np.testing.assert_allclose(found.margins, 2.5)
    norms = [math.sqrt(5), 0.5 * math.sqrt(1.25)]
    np.testing.assert_allclose(found.unit_norms, norms)
    state = found.state
    assert state.function_value == pytest.approx(sum(norms) / 2.5)
    assert (state.n_units, state.n_dead) == (2, 0)
    assert state.train_error_network == 0
    assert state.largest_dual_norm == pytest.approx(float(np.max(found.kkt.dual_norms)))
    assert state.n_wrongly_small == len(state.small_units)


def test_earlier_weights_have_the_residual_of_what_was_added() -> None:
    network = set_to(linear(3, 1), [[1.0, -0.5, 0.2]])
    before = {"weight": torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)}
    added, w = np.array([0.5, -1.0, 0.2]), np.array([1.0, -0.5, 0.2])
    cosine = added @ w / np.linalg.norm(added) / np.linalg.norm(w)
    state = measured(network, earlier=before).state
    assert state.increment_residual == pytest.approx(math.sqrt(1 - cosine**2))
    assert math.isnan(measured(network).state.increment_residual)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"small_units": (3,)}, "unit 3 still grows"),
        ({"small_units": tuple(range(8))}, "units 0, 1, 2, 3, 4, 5 still grow"),
        ({"kkt_residual": 0.0099, "largest_dual_norm": 1.011}, "a saddle: stationary, but"),
        ({"kkt_residual": 0.0099, "largest_dual_norm": 1.009}, "stationary, but its loss has to"),
        ({"kkt_residual": 0.0099}, "stationary, but its loss has to fall"),
        ({"kkt_residual": 0.0101, "largest_dual_norm": 1.011},
         "its weights are not stationary yet (KKT residual 0.01)"),
    ],
)  # fmt: skip
def test_what_keeps_a_network_from_its_limit_is_named(known, said) -> None:
    assert held_back_by(state_of(**known)).startswith(said)


def test_what_is_known_is_shown_and_of_units_where_there_are_several() -> None:
    assert state_of().n_units == 0
    assert state_of(weight_ratio=0.75).distances_from_ideal()["weight_ratio"] == 0.25
    shown = state_of(value=2.0, largest_dual_norm=1.0, n_dead=1, kkt_residual=0.5).shown()
    assert "value" in shown and "kkt_residual" in shown and "margin_ratio" not in shown
    assert "largest_dual_norm" not in shown and "n_dead" not in shown
    for n_units, there in ((1, False), (2, True)):
        state = state_of(largest_dual_norm=1.0, n_dead=1, n_units=n_units)
        assert ("largest_dual_norm" in state.shown()) is there
        assert "n_wrongly_small" not in state.shown()


# The problem that is named


def regime_of(name=RegimeName.TOP, **known):
    subject = SimpleNamespace(weights={"a": 1, "b": 2})
    return Regime(**{
        "name": name, "subject": subject, "kept": (), "zeroed": (),
        "rates": SimpleNamespace(highest=("a",)), "early": False, "log_inverse_loss": 20.0,
        "margin_ratio": 0.9,
    } | known)  # fmt: skip


def problem_of(regime=None, *, method=None, near=True, degree=2, **known):
    homogenised = SimpleNamespace(near=near, degree=degree)
    regime = regime_of() if regime is None else regime
    rates = Rates(SimpleNamespace(lam={}), homogenised, regime)
    own = {
        "level": None, "increment": math.nan, "vanishing": (), "homogeneous": False,
        "method": Method() if method is None else method,
    }  # fmt: skip
    return Problem(rates=rates, **own | known)


OPEN = regime_of(RegimeName.OPEN, subject=None)
SIGN = Method("sign", {"a": "linf"}, joint=False)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (problem_of(), ""),
        (problem_of(method=Method(decay=0.1)), "the weight decay of gradient descent, 0.1, keeps"),
        (problem_of(method=Method(norms=None, joint=False, remark="unknown")), "unknown"),
        (problem_of(OPEN, near=False, degree=3), "scores grow like degree 3, but not where"),
        (problem_of(OPEN, near=False, degree=None), "scores have no degree however large"),
        (problem_of(OPEN), "no theorem says which weights carry the margins"),
        (problem_of(regime_of(RegimeName.OPEN, early=True)), "too early: log(1/loss) is 20, and"),
        (problem_of(regime_of(RegimeName.OPEN, early=True), near=False), "scores grow like degree"),
        (problem_of(regime_of(early=True), near=False), "too early"),
        (problem_of(method=SIGN), "theorems in the largest linf norm of a tensor are of"),
        (problem_of(method=SIGN, homogeneous=True), ""),
    ],
)
def test_why_no_theorem_names_a_problem(problem, said) -> None:
    assert problem.unnamed.startswith(said) and bool(problem.unnamed) is bool(said)
    (one,) = problem_evidence(network_of(), problem)
    assert (one.theory == "none") is bool(said)
    if said:
        assert one.reason == problem.unnamed and one.beside == {}
        assert problem.theory.theorem == f"no theorem: {problem.unnamed}"


HIGHEST = regime_of(RegimeName.HIGHEST_RATE, zeroed=("b",))


@pytest.mark.parametrize(
    ("problem", "program", "source"),
    [
        (problem_of(), "min ||w||^2 / 2  s.t.  every margin >= 1 of what is left as all weights "
         "grow, locally", "nearly"),
        (problem_of(homogeneous=True), "min ||w||^2 / 2  s.t.  every margin >= 1, locally", "kkt"),
        (problem_of(regime_of(zeroed=("b",))), "min ||w||^2 / 2  s.t.  every margin >= 1 with b "
         "at 0, locally", "nearly"),
        (problem_of(HIGHEST), "min sum of ||w_i||^2 over a  s.t.  every margin >= 1 with b at 0, "
         "locally", "quasi"),
        (problem_of(regime_of(RegimeName.HIGHEST_RATE)), "min sum of ||w_i||^2 over a  s.t.  every "
         "margin >= 1, locally", "quasi"),
        (problem_of(method=SIGN, homogeneous=True), "min largest linf norm of a tensor of w  s.t.  "
         "every margin >= 1, locally", "steepest"),
        (problem_of(method=Method(rates={"a": 1.0, "b": 2.0}), homogeneous=True), "min sum of "
         "||w_g||^2 / rate_g  s.t.  every margin >= 1, locally", "kkt"),
    ],
)  # fmt: skip
def test_the_problem_is_stated_in_a_line_with_its_source(problem, program, source) -> None:
    atlas = resolve_name("implicit_bias.quantities.atlas:ENTRIES")
    assert problem.program == problem.theory.program == program
    names = {"nearly": "nearly-homogeneous", "quasi": "quasi-homogeneous", "kkt": "kkt",
             "steepest": "steepest-kkt"}  # fmt: skip
    flow = ", gradient flow" if source in ("nearly", "quasi") else ""
    assert problem.theory.source == atlas[names[source]].source + flow


def vanishing(name, share, later=math.nan):
    return VanishingTensor(name, 1, 2.0, share, 0.1, math.nan, later, math.nan)


LEVEL = SimpleNamespace(residual=0.123, ratio_bound=0.98765)


@pytest.mark.parametrize(
    ("problem", "numbers", "reason"),
    [
        (problem_of(homogeneous=True, level=LEVEL), "a KKT point of the network (degree 2), least "
         "Euclidean norm at margin 1", "KKT residual 0.12"),
        (problem_of(level=LEVEL, increment=0.25), "a KKT point of what is left of the network as "
         "all weights grow (degree 2), least Euclidean norm at margin 1",
         "KKT residual 0.12; of what was added since 0.25; that network has 0.9000 of the margin"),
        (problem_of(regime_of(zeroed=("a", "b")), degree=None), "a KKT point of the network "
         "without a and b (degree 2), least", "that network has 0.9000 of the margin"),
        (problem_of(method=SIGN, homogeneous=True, level=LEVEL), "a KKT point of the network "
         "(degree 2), least largest linf norm of a tensor at margin 1",
         "KKT ratio in this norm at least 0.9877"),
        (problem_of(vanishing=(vanishing("x", 0.1), vanishing("y", 0.3, 0.2), vanishing("z", 0.2)),
                    homogeneous=True), "a KKT point of the network", "share of y 0.3000, predicted "
         "0.2000 at ten times log(1/loss)"),
        (problem_of(vanishing=(vanishing("x", 0.1),), homogeneous=True), "a KKT", "share of x "
         "0.1000"),
    ],
)  # fmt: skip
def test_a_problem_that_is_named_has_its_numbers(problem, numbers, reason) -> None:
    (one,) = problem_evidence(network_of(), problem)
    assert one.theory == "problem" and one.numbers.startswith(numbers) and one.reason == reason
    assert one.beside == ({} if problem.level is None else {"kkt_residual": 0.123})


def test_weights_of_the_highest_rate_are_a_regime_where_others_are_kept() -> None:
    (one,) = problem_evidence(network_of(), problem_of(HIGHEST, level=LEVEL))
    assert one.theory == "problem" and "the least norm of a, the weights" in one.numbers
    assert one.beside == {"kkt_residual": 0.123} and one.reason.startswith("if weights converge")
    network = set_to(linear(3, 1, bias=True), [[1.0, -0.5, 0.2]], [0.0])
    subject = take_subject(network, X, Y, None)
    structure = SimpleNamespace(subject=subject)
    for kept, verb, lost in (
        (("weight",), "carries", 6), (("bias",), "carries", 0), (("weight", "bias"), "carry", 6),
    ):  # fmt: skip
        problem = problem_of(regime_of(RegimeName.HIGHEST_RATE, kept=kept))
        (one,) = problem_evidence(SimpleNamespace(structure=structure), problem)
        assert one.theory == "regime" and problem.program in one.reason
        assert f"{verb} the scores of {lost} samples" in one.numbers


def test_other_methods_than_descent_have_no_theory_of_a_form() -> None:
    network = SimpleNamespace(theory="its own")
    assert theory_of(network, Method()) == "its own"
    other = theory_of(network, Method("adam", {}, joint=False))
    assert other.says == "none" and "under adam" in other.theorem
    assert theory_of(network, Method(decay=0.1)).says == "none"


# Local limits


LOCAL = f"{HOME}.local"
find_local, of_function, in_cells, evidence_of, quadratic_bounds, weight_cosine, not_looked_for = (
    resolve_name(f"{LOCAL}:{name}")
    for name in (
        "find_local", "_of_function", "_is_polynomial_in_cells", "_evidence",
        "_quadratic_bounds", "_weight_cosine", "_not_looked_for",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("form", "by"),
    [
        (Form.FEATURES, None), (Form.HOMOGENEOUS, None), (Form.TWO_LAYER_RELU, "_of_relu"),
        (Form.FIXED_OUTER, "_of_fixed_outer"), (Form.DEEP_CONVOLUTION, "_of_convolutions"),
        (Form.LAYERS, "_of_polynomial"), (Form.QUADRATIC, "_of_polynomial"),
        (Form.POLYNOMIAL, "_of_polynomial"), (Form.DEEP_RELU, "_of_polynomial"),
        (Form.PIECEWISE, "_of_polynomial"),
    ],
)  # fmt: skip
def test_the_form_decides_where_a_local_limit_is_looked_for(monkeypatch, form, by) -> None:
    for name in ("_of_relu", "_of_fixed_outer", "_of_convolutions", "_of_polynomial"):
        monkeypatch.setattr(f"{LOCAL}.{name}", lambda of, seconds, name=name: (name, seconds))
    structure = SimpleNamespace(form=form, subject=SimpleNamespace(n_weights=1000))
    found = SimpleNamespace(structure=structure, separates=True)
    for cells in (True, False):
        monkeypatch.setattr(f"{LOCAL}._is_polynomial_in_cells", lambda subject, cells=cells: cells)
        local = find_local(found, max_weights=1000, max_seconds=5.0)
        if by is None or (not cells and form in (Form.DEEP_RELU, Form.PIECEWISE)):
            assert local.key == "local limit" and local.views.tables == ()
        else:
            assert local == (by, 5.0)
    found.separates = False
    assert find_local(found, max_weights=1000).views.tables == ()
    found.separates = True
    large = find_local(found, max_weights=999).views.tables
    assert bool(large) is (by is not None)
    if large:
        assert large[0].rows[0][1].startswith("1,000 weights are more than `max_weights` = 999")


class Grown(torch.nn.Module):
    """An exponential behind a ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = perceptron(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).exp()


def test_polynomials_behind_gates_are_told_from_other_scores() -> None:
    for network, polynomial in (
        (perceptron(3, 2, 2), True),
        (Grown(), False),
        (perceptron(3, 2, act=torch.nn.Identity), False),
        (perceptron(3, 2, act=torch.nn.Tanh), False),
    ):
        assert in_cells(take_subject(network, X, Y, None)) is polynomial


def limit_of(status, value=2.0, lower=0.0):
    return SimpleNamespace(
        status=status, value=value, certificate=SimpleNamespace(lower_bound=lower),
        to_dict=lambda: {"kept": 1},
    )  # fmt: skip


PROOFS = {Status.GLOBAL_OPTIMUM: "of all", Status.LOCAL_OPTIMUM: "of some"}


@pytest.mark.parametrize(
    ("status", "lower", "told", "reached", "between"),
    [
        (Status.SOLVED, 1.5, Status.GLOBAL_OPTIMUM, True, False),
        (Status.GLOBAL_OPTIMUM, 1.5, Status.GLOBAL_OPTIMUM, True, False),
        (Status.LOCAL_OPTIMUM, 1.5, Status.LOCAL_OPTIMUM, True, True),
        (Status.LIVE_OPTIMUM, 0.5, Status.LIVE_OPTIMUM, True, True),
        (Status.STATIONARY, 1.5, Status.STATIONARY, False, False),
        (Status.LOCAL_OPTIMUM, 0.0, Status.LOCAL_OPTIMUM, True, None),
    ],
)
def test_a_local_limit_among_functions_is_beside_the_value(
    status, lower, told, reached, between
) -> None:
    limit = limit_of(status, lower=lower)
    rows = (("a", "1", "measured"),)
    finding = of_function(limit, 2.5, rows, {"gap": 0.1}, PROOFS, "why", "network", "besides")
    first, *others = finding.evidence
    assert first.status is told and first.theory == "local limit" and first.remark == "besides"
    assert first.near == ({"local_ratio": 0.8} if reached else {}) and first.reason == "why"
    assert first.beside == ({"local_value": 2.0} if reached else {})
    assert first.proof == PROOFS.get(told, "")
    assert first.numbers == "value 2.5" + ", local optimum 2, ratio 0.8000" * reached
    assert len(others) == (between is not None)
    for one in others:
        assert one.beside == {"lower_bound": lower}
        assert one.numbers.startswith(f"no network is below {lower:g} (proved)")
        assert ("lies between" in one.numbers) is between
    views = finding.views
    assert views.row["local_value"] == 2.0 and views.row["local_status"] == status.name
    assert views.row["local_ratio"] == (0.8 if reached else pytest.approx(math.nan, nan_ok=True))
    table = views.tables[0]
    assert table.rows[0] == ("status", status.name, "certified") and table.rows[2] == rows[0]
    assert table.rows[1][1] == "2" and views.objects["local_limit"] is limit
    assert views.record["local_limit"] == {"kept": 1} and len(views.sides) == 2
    nameless = of_function(limit, 2.5, rows, {}, PROOFS, "why")
    assert len(nameless.evidence) == 1


def test_a_bound_of_nothing_is_not_known() -> None:
    least = resolve_name(f"{LOCAL}:_least")
    assert (least(0.0), least(-1.0), least(0.5)) == ("not known", "not known", "0.5")


def value_of(status=Status.LOCAL_OPTIMUM, *, bound=math.nan, value=2.0, at=1.9):
    local = None if status is None else SimpleNamespace(status=status, value=at, reason="")
    return SimpleNamespace(
        limit=local, local=local, value=value, bound=bound, bound_ratio=bound / value,
        local_value=at, local_ratio=at / value,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "theories", "said"),
    [
        (value_of(), ["local limit"], ""),
        (value_of(bound=1.0), ["local limit", "bound"], "lies between 1 and 1.9"),
        # A bound that the local limit attains to a millionth is the least value of all.
        (value_of(bound=1.9 * (1 - 0.9e-6)), ["local limit", "bound"], "the local limit attains"),
        (value_of(bound=1.9 * (1 - 1.1e-6)), ["local limit", "bound"], "lies between"),
        (value_of(bound=1.9, value=1.91), ["limit", "bound"], "the local limit attains"),
        (value_of(bound=1.9, value=1.9 / 0.99), ["limit", "bound"], "the local limit attains"),
        (value_of(bound=1.9, value=1.9 / 0.9899), ["local limit", "bound"], "the local limit"),
        (value_of(None, bound=1.9, value=1.9), ["local limit", "bound"], "is below 1.9 (proved)"),
    ],
)
def test_a_value_is_between_its_bound_and_its_local_limit(value, theories, said) -> None:
    found = list(evidence_of(Optimum(), value))
    assert [one.theory for one in found] == theories
    assert said in found[-1].numbers
    if theories[0] == "limit":
        assert found[0].near == {"margin_ratio": value.bound_ratio}
    if value.limit is None:
        assert "lies between" not in found[1].numbers and "attains" not in found[1].numbers


def test_bounds_of_gates_and_of_paths_are_said_as_what_they_are() -> None:
    _, own = evidence_of(Optimum(bound=1.0, present_gates=True), value_of(bound=math.nan))
    assert "that keeps its gates on these samples is below 1" in own.numbers
    assert len(list(evidence_of(Optimum(present_gates=True), value_of()))) == 1
    path = ib.solve_path_lasso(X, Y, np.ones((6, 4)), widths=(2, 2))
    value = value_of(bound=path.dual_objective, value=9.0, at=8.0)
    _, bound = evidence_of(Optimum(limit=path, bound=path.dual_objective), value)
    assert "with these gates" in bound.numbers
    _, none = evidence_of(Optimum(limit=path), value_of(bound=1.0))
    assert "network of this form" in none.numbers


def test_cosines_of_weights_are_those_of_all_of_them() -> None:
    weights = {"a": torch.tensor([[3.0, 0.0]]), "b": torch.tensor([4.0])}
    structure = SimpleNamespace(subject=SimpleNamespace(weights=weights))
    for at, cosine in (
        ({"a": [[1.0, 5.0]], "b": [2.0]}, 11 / 5 / math.sqrt(30)),
        ({"a": [[0, 0]], "b": [0]}, None),
    ):
        local = SimpleNamespace(weights={name: np.array(one) for name, one in at.items()})
        found = weight_cosine(structure, local)
        assert found == pytest.approx(cosine) if cosine is not None else math.isnan(found)
    small = SimpleNamespace(weights={"a": np.array([[0.003, 0]]), "b": np.array([0.004])})
    assert weight_cosine(structure, small) == pytest.approx(1.0)


def test_multipliers_of_both_points_bound_quadratic_forms() -> None:
    subject = take_subject(TiedAutoencoder(3, 2), X, Y, None)
    structure = SimpleNamespace(subject=subject)
    lam, clipped = np.array([1.0, -0.5, 0.2, 0.0, 0.3, 0.1]), np.array([1, 0, 0.2, 0, 0.3, 0.1])
    known, of_clipped = SimpleNamespace(multipliers=lam), quadratic_bound(subject, clipped)
    none = SimpleNamespace(multipliers=np.zeros(6))
    for kkt, local, n in ((known, known, 2), (None, known, 1), (known, none, 1), (None, none, 0)):
        found = SimpleNamespace(structure=structure, kkt=kkt)
        assert list(quadratic_bounds(found, local)) == [of_clipped] * n
    assert list(quadratic_bounds(SimpleNamespace(structure=structure, kkt=None),
                                 SimpleNamespace(multipliers=None))) == []  # fmt: skip


def rows_of(finding) -> dict[str, str]:
    return {row[0].strip(): row[1] for row in finding.views.tables[0].rows}


def test_a_two_layer_relu_network_is_beside_its_certified_optimum(monkeypatch) -> None:
    inputs, labels = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    network = set_to(perceptron(2, 2), [[2.0, 0.2], [0.4, 1.0]], [[0.5, -1.0]])
    structure = recognise(take_subject(network, inputs, labels, None))
    found = measure_own(structure, find_optimum(structure, labels), None)
    finding = find_local(found, max_weights=6)
    limit = finding.views.objects["local_limit"]
    # Units (1, 0.1) and (0.4, 1) have margins 0.6 and 2.2 - ... of which the optimum is 3/2.
    assert limit.value == pytest.approx(1.5) and limit.status is Status.GLOBAL_OPTIMUM
    z = inputs @ np.array([[2.0, 0.2], [0.4, 1.0]]).T
    margins = labels * (np.maximum(z, 0) @ [0.5, -1.0])
    own = (math.hypot(1, 0.1) + math.hypot(0.4, 1)) / margins.min()
    first, bound = finding.evidence
    assert first.near["local_ratio"] == pytest.approx(1.5 / own, rel=1e-6)
    assert first.proof == "proved the best of all widths" and bound.numbers.startswith("no two-")
    assert first.reason == "no theorem says that training ends there"
    rows = rows_of(finding)
    assert rows["the network lies in the cones"] == "yes"
    assert rows["live units, and to spare"] == "2, 0" and "slope of closed units" not in rows
    assert rows["no network of any width is below"] == "1.5" and "what is not known" not in rows
    monkeypatch.setattr(type(limit), "covers", lambda *of: False)
    rows = rows_of(find_local(found, max_weights=6))
    assert rows["the network lies in the cones"] == "no, or not known"

    def lacking(*of, **options):
        raise ib.MissingExtra("cvxpy")

    monkeypatch.setattr(f"{LOCAL}.relu_local_limit", lacking)
    finding = find_local(found, max_weights=6)
    assert finding.evidence == () and rows_of(finding)[""] == str(ib.MissingExtra("cvxpy"))


class Outer(torch.nn.Module):
    """Leaky units under weights that are no parameters, one of them 0."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = linear(2, 3)
        self.register_buffer("outer", torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.leaky_relu(self.inner(x), 0.5) @ self.outer


def test_units_below_a_fixed_layer_are_beside_theirs() -> None:
    inputs, labels = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    network = set_to(Outer(), [[1.0, -0.2], [0.3, 0.3], [-0.4, 0.5]])
    structure = recognise(take_subject(network, inputs, labels, None))
    found = measure_own(structure, find_optimum(structure, labels), None)
    finding = find_local(found, max_weights=6)
    limit = finding.views.objects["local_limit"]
    # K = 1 + 1/4 of either sample, of lengths 1 and 2.
    assert limit.value == pytest.approx(1.0) and limit.status is Status.SOLVED
    (first,) = finding.evidence
    assert (
        first.status is Status.GLOBAL_OPTIMUM
        and first.proof == "proved the best of all inner layers"
    )
    assert first.near["local_ratio"] == pytest.approx(1 / found.state.value)
    assert first.reason == "no theorem says that training ends there"
    rows = rows_of(finding)
    assert rows["its rank"] == "2" and rows["slope of closed units"] == "0.5"
    assert rows["no inner layer is below"] == "1" and "nearly orthogonal" in first.remark
    # No theorem says so of inputs that are not.
    inputs[1, 0] = 0.8
    structure = recognise(take_subject(network, inputs, labels, None))
    found = measure_own(structure, find_optimum(structure, labels), None)
    finding = find_local(found, max_weights=6)
    assert finding.views.objects["local_limit"].status is Status.SOLVED
    assert finding.evidence[0].remark == "" and rows_of(finding)["inputs"].startswith("not nearly")


def test_of_a_quadratic_form_multipliers_prove_the_least_value() -> None:
    inputs, labels = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])

    class Squares(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.u = torch.nn.Parameter(torch.tensor([2.0, 0.5], dtype=torch.float64))
            self.v = torch.nn.Parameter(torch.tensor([0.3, 1.5], dtype=torch.float64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.u**2 - self.v**2)

    structure = recognise(take_subject(Squares(), inputs, labels, None))
    found = measure_own(structure, find_optimum(structure, labels), None)
    finding = find_local(found, max_weights=4)
    value = finding.views.objects["bounded_value"]
    # u = (1, 0) and v = (0, 1): half the squared norm is 1 at margins 1.
    assert value.local_value == pytest.approx(1.0) and value.bound == pytest.approx(1.0)
    (best,) = finding.views.assumptions
    assert best.mark == "holds (proved)" and best.text.endswith("(proved)")
    w, at = np.array([2.0, 0.5, 0.3, 1.5]), np.array([1.0, 0.0, 0.0, 1.0])
    assert value.weight_cosine == pytest.approx(w @ at / np.linalg.norm(w) / math.sqrt(2))
    assert finding.views.row["local_value"] == pytest.approx(1.0)
    assert all(name.startswith("local_") for name in finding.views.row)


def test_a_bound_of_networks_that_keep_their_gates_is_none_of_all() -> None:
    inputs, labels = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    network = set_to(perceptron(2, 2, 2), [[2.0, 0.2], [0.4, 1.0]], [[1.0, -1.0], [-1.0, 1.0]],
                     [[0.5, -1.0]])  # fmt: skip
    structure = recognise(take_subject(network, inputs, labels, None))
    for present, bound in ((True, math.nan), (False, 0.5)):
        found = measure_own(structure, Optimum(bound=0.5, present_gates=present), None)
        value = find_local(found, max_weights=10).views.objects["bounded_value"]
        assert value.bound == pytest.approx(bound, nan_ok=True)


def test_several_convolutions_are_beside_their_stationary_predictor() -> None:
    inputs = np.eye(4) + 0.2 * np.random.default_rng(1).normal(size=(4, 4))
    network = Circular(3)
    with torch.no_grad():
        labels = np.sign(network(torch.tensor(inputs)).numpy())
    structure = recognise(take_subject(network, inputs, labels, None))
    found = measure_own(structure, find_optimum(structure, labels), None)
    assert structure.form is Form.DEEP_CONVOLUTION
    finding = find_local(found, max_weights=12)
    point = finding.views.objects["local_limit"]
    assert finding.evidence[0].numbers.startswith(f"value {found.state.value:.5g}")
    assert point.value <= found.state.value * (1 + 1e-9)
    assert "linear convolution of 3 layers" in finding.evidence[-1].numbers or (
        len(finding.evidence) == 1
    )
    rows = rows_of(finding)
    assert rows["frequencies that are not 0"].endswith("of 4")
    # Scores of any size are those of the same predictor.
    with torch.no_grad():
        for p in network.parameters():
            p.mul_(1e3)
    large = measure_own(recognise(take_subject(network, inputs, labels, None)), found.optimum, None)
    again = find_local(large, max_weights=12).views.objects["local_limit"]
    assert again.value == pytest.approx(point.value) and type(again) is type(point)


# The problem that is looked for


PROBLEM = f"{HOME}.problem"
find_problem, problem_finding, homogenised_findings = (
    resolve_name(f"{PROBLEM}:{name}")
    for name in ("find_problem", "problem_finding", "homogenised_findings")
)


def found_of(form=Form.PIECEWISE, K=3, degree=2, **known):
    """A network of two tensors of norms 3 and 4, as it was measured."""
    weights = {"a": torch.tensor([3.0]), "b": torch.tensor([[0.0, 4.0]])}
    subject = SimpleNamespace(weights=weights, n_outputs=K, twice=True)
    structure = SimpleNamespace(
        form=form, homogeneity=SimpleNamespace(whole_degree=degree), subject=subject
    )
    return SimpleNamespace(**{
        "structure": structure, "named": False, "separates": True,
        "state": state_of(increment_residual=0.3, weight_norm=5.0),
    } | known)  # fmt: skip


@pytest.fixture
def looked(monkeypatch) -> dict:
    """What was asked for: norms of the level, and multipliers and weights that tell of shares."""
    asked: dict = {"residual": 0.1}

    def level_of(subject, *, norm):
        asked["norm"] = norm
        return SimpleNamespace(
            residual=asked["residual"], multipliers=np.array([1.0, 2.0]), ratio_bound=0.5
        )

    def shares(subject, rates, *, multipliers, earlier):
        asked.update(multipliers=multipliers, earlier=earlier)
        return ("shares",)

    monkeypatch.setattr(f"{PROBLEM}.find_rates", lambda *of: problem_of().rates)
    monkeypatch.setattr(f"{PROBLEM}.level_of", level_of)
    monkeypatch.setattr(f"{PROBLEM}.vanishing_tensors", shares)
    return asked


@pytest.mark.parametrize(
    ("found", "method", "looked_for"),
    [
        (found_of(), Method(), True),
        (found_of(K=1), Method(), False),
        (found_of(K=1, degree=None), Method(), True),
        (found_of(Form.POLYNOMIAL), Method(), False),
        (found_of(named=True), Method(), False),
        (found_of(K=1, degree=None, named=True), Method(), False),
        (found_of(K=1, named=True), Method("sign", {"a": "linf", "b": "l2"}, joint=False), True),
        (found_of(Form.SURROGATE), Method(), False),
        (found_of(separates=False), Method(), False),
        (found_of(Form.SURROGATE, separates=False), SIGN, False),
    ],
)
def test_a_problem_is_looked_for_where_no_form_says_more(looked, found, method, looked_for) -> None:
    told: list[str] = []
    problem = find_problem(found, method, "logistic", None, told.append)
    assert (problem is not None) is looked_for and len(told) == looked_for
    if problem is not None:
        assert problem.increment == 0.3 and problem.vanishing == ("shares",)
        assert problem.homogeneous is (found.structure.homogeneity.whole_degree is not None)
        assert told == [problem.unnamed or problem.program] and problem.level.residual == 0.1


def test_multipliers_near_a_kkt_point_tell_how_weights_grow(looked) -> None:
    def ask(method=Method(), earlier=None, **known):  # noqa: B008
        found = found_of()
        vars(found.structure.subject).update(known)
        return find_problem(found, method, "logistic", earlier, lambda _: None)

    for residual, near in ((0.19, True), (0.2, False), (0.3, False)):
        looked["residual"] = residual
        ask()
        assert looked["norm"] is None and looked["earlier"] is None
        assert (looked["multipliers"] is not None) is near
        if near:
            assert looked["multipliers"].tolist() == [1.0, 2.0]
    looked["residual"], before = 0.1, {"a": 1}
    ask(earlier=before)
    assert looked["multipliers"] is None and looked["earlier"] == before
    ask(Method("sign", {"a": "linf", "b": "l2", "c": "l2"}, joint=False))
    assert looked["multipliers"] is None and looked["norm"] == {"a": "linf", "b": "l2"}
    for one in (ask(twice=False), ask(Method(norms=None, joint=False, remark="unknown"))):
        assert one.level is None and looked["multipliers"] is None


def test_a_problem_is_said_with_its_rates_shares_and_residuals() -> None:
    rates, regime = problem_of().rates, regime_of()
    rates = Rates(SimpleNamespace(lam={"a": 0.25}), rates.homogenised, regime)
    gone = VanishingTensor("b", 2, 4.0, 0.8, 0.1, math.nan, 0.05, 0.02)
    finding = problem_finding(found_of(), Problem(rates, LEVEL, 0.3, (gone,), Method(), False))
    (table,), views = finding.views.tables, finding.views
    assert table.rows == (
        ("a", "0.25", "0.6", "stays", "-", "-", "-"),
        ("b", "-", "0.8", "vanishes, order 2", "0.05", "0.1", "0.02"),
    )
    known = {"kkt_residual": 0.123, "kkt_ratio": 0.98765, "homogenised_ratio": 0.9}
    assert views.sides[0].values == known
    assert views.row == {name: known[name] for name in ("kkt_residual", "kkt_ratio")}
    record = views.record["problem"]
    assert record["program"].startswith("min ||w||^2") and record["unnamed"] == ""
    assert record["norms"] == {} and record["shares"] == pytest.approx({"a": 0.6, "b": 0.8})
    assert known.items() <= record.items()
    unknown = Method(norms=None, joint=False, remark="unknown")
    views = problem_finding(found_of(), problem_of(method=unknown, homogeneous=True)).views
    assert views.sides[0].values == views.row == {}
    record = views.record["problem"]
    assert (record["program"], record["unnamed"], record["norms"]) == ("", "unknown", None)


def test_what_the_theorem_of_a_problem_assumes_is_said_of_its_regime() -> None:
    def assumed(problem):
        return {
            one.name: one.mark for one in problem_finding(found_of(), problem).views.assumptions
        }

    of_batches = {"full batches": "not known here"}
    near = {
        "near-homogeneous": "holds (measured)", "separates without them": "holds (measured)",
        "the theorem's threshold": "not computed",
    }  # fmt: skip
    assert assumed(problem_of()) == near | of_batches
    assert assumed(problem_of(homogeneous=True)) == assumed(problem_of(OPEN)) == of_batches
    highest = assumed(problem_of(HIGHEST))
    assert highest["conditional separability"] == "other weights may do without"
    assert len(highest) == 3 and "cannot be checked" in highest.values()
    remark = assumed(problem_of(OPEN, method=Method(remark="of constants")))
    assert remark == of_batches | {"the optimiser's constants": "not computed"}
    for zeroed, said in (((), "as all grow"), (("b",), "without b")):
        views = problem_finding(found_of(), problem_of(regime_of(zeroed=zeroed))).views
        assert any(f"separates the data {said} (" in one.text for one in views.assumptions)
    for kept, said in (((), "a at 0"), (("c",), "c at 0")):
        regime = regime_of(RegimeName.HIGHEST_RATE, kept=kept)
        views = problem_finding(found_of(), problem_of(regime)).views
        assert any(said in one.text for one in views.assumptions)


def test_what_is_left_as_all_weights_grow_has_a_limit_of_its_own(monkeypatch) -> None:
    y, evidence = torch.ones(2), resolve_name(f"{PROBLEM}:Evidence")
    subject = SimpleNamespace(weights={"a": 1}, by_sample=True, data=SimpleNamespace(y=y))
    limit = SimpleNamespace(status=Status.SOLVED, to_dict=lambda: {"kept": 1})
    left = SimpleNamespace(
        named=True, optimum=Optimum(limit=limit), state=state_of(margin_ratio=0.7, kkt_residual=0.2)
    )
    monkeypatch.setattr(f"{PROBLEM}.recognise", lambda subject: "structure")
    monkeypatch.setattr(f"{PROBLEM}.find_optimum", lambda structure, y: "optimum")
    monkeypatch.setattr(f"{PROBLEM}.measure_own", lambda *of: left)
    Finding = resolve_name(f"{PROBLEM}:Finding")
    local = Finding("local limit", evidence=(evidence(reason="as searched"),))

    def findings(problem):
        searched = []
        found = list(homogenised_findings("own", problem, lambda n: searched.append(n) or local))
        return found, searched

    top = {"subject": subject}
    (one,), searched = findings(problem_of(regime_of(**top, zeroed=("b",))))
    (said,) = one.evidence
    assert searched == [] and said.network == "without b" and said.near == {"margin_ratio": 0.7}
    assert said.reason == held_back_by(left.state) and said.status is Status.SOLVED
    assert one.views.certificates["without b"] == {"kept": 1}
    assert one.views.objects["limit"] is limit
    for named, of in ((False, Optimum(limit=limit)), (True, Optimum())):
        left.named, left.optimum = named, of
        (one,), searched = findings(problem_of(regime_of(**top)))
        assert searched == [left] and one.evidence[0].reason == "as searched"
        assert one.evidence[0].network == "as all weights grow"
    assert findings(problem_of(regime_of(**top), homogeneous=True)) == ([local], ["own"])
    none = [
        problem_of(regime_of(RegimeName.OPEN, **top)), problem_of(regime_of(subject=None)),
        problem_of(regime_of(**top, early=True)), problem_of(HIGHEST),
        problem_of(regime_of(**top), method=SIGN, homogeneous=True),
    ]  # fmt: skip
    for problem in none:
        assert findings(problem) == ([], [])
    subject.by_sample = False
    assert findings(problem_of(regime_of(**top))) == ([], [])
