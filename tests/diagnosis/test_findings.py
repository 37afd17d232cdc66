"""What a diagnosis says of form, limit, network and course, from stated measurements."""

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
from implicit_bias.runs.diagnosis import THEORIES
from tests.own_modules import linear, perceptron

HOME = "implicit_bias.runs.diagnosis"
FINDINGS = f"{HOME}.findings"
form_finding, limit_finding, network_finding, units_finding, course_finding = (
    resolve_name(f"{FINDINGS}:{name}")
    for name in (
        "form_finding", "limit_finding", "network_finding", "units_finding", "course_finding",
    )
)  # fmt: skip
form_in_words, listed = (
    resolve_name(f"{HOME}.theory:{name}") for name in ("form_in_words", "listed")
)
finite_finding, split_finding, split_in_words = (
    resolve_name(f"{HOME}.{name}")
    for name in ("decayed:finite_finding", "splitting:split_finding", "splitting:split_in_words")
)
Method, Optimum, OwnNetwork, find_optimum, measure_own = (
    resolve_name(f"{HOME}.{name}")
    for name in (
        "method:Method", "optimum:Optimum", "state:OwnNetwork", "optimum:find_optimum",
        "state:measure_own",
    )
)  # fmt: skip
X, Y = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, -1.0]]), np.array([1.0, -1.0, 1.0])


# The form


def homogeneity_of(**known):
    groups = (
        SimpleNamespace(name="a", degree=1.0, shape=(2, 3), together=()),
        SimpleNamespace(name="b", degree=2.5, shape=(), together=("b", "c", "d")),
        SimpleNamespace(name="e", degree=None, shape=(4,), together=()),
    )
    return SimpleNamespace(**{
        "groups": groups, "degree": 2.0, "whole_degree": 2, "error": 3e-9, "exponents": {},
        "euler_error": 0.0, "mixed": (), "degree_without": None, "powers": (2,),
        "degree_in": lambda name: {"k": None, "l": 1, "m": 2}[name],
    } | known)  # fmt: skip


def structure_of(form=Form.PIECEWISE, dependence=None, still=(), **known):
    fixed = SimpleNamespace(in_parameter={}, piecewise=(), others=(), gates_are_fixed=True)
    return SimpleNamespace(
        form=form, homogeneity=homogeneity_of(**known), still=still,
        dependence=fixed if dependence is None else dependence, inputs=SimpleNamespace(name="X"),
    )  # fmt: skip


NONE = {"degree": None, "whole_degree": None, "error": 0.5, "powers": ()}


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, f"{Form.PIECEWISE.value}, homogeneous of degree 2"),
        (NONE | {"mixed": ("a",), "degree_without": 3.0}, "not homogeneous because of a, without "
         "which it is of degree 3"),
        (NONE | {"error": 1e-7}, "homogeneous in its scores, but its gradients are not theirs"),
        (NONE | {"error": 1.1e-7}, "not homogeneous, and not because of a few biases"),
        (NONE | {"powers": (1, 3)}, "not homogeneous: a sum of terms of degrees 1 and 3"),
        (NONE | {"powers": (1, 2, 4)}, "not homogeneous: a sum of terms of degrees 1, 2 and 4"),
        (NONE | {"powers": (2,)}, "not homogeneous, though nearly of degree 2: f(a w) is off a^L "
         "f(w) by up to 5.0e-01 of itself"),
    ],
)  # fmt: skip
def test_a_form_is_said_with_its_degree_or_what_keeps_it_from_one(known, said) -> None:
    assert form_in_words(structure_of(**known)).startswith(said)


def test_words_are_listed_as_in_a_sentence() -> None:
    assert [listed("abc"[:k]) for k in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def test_the_part_of_every_parameter_is_said() -> None:
    finding = form_finding(structure_of(still=("gate",)))
    (table,) = finding.views.tables
    assert table.rows == (
        ("a", "2 x 3", "1", "-"), ("b", "1", "2.5 with c, d", "-"), ("e", "4", "-", "-"),
        ("gate", "-", "-", "hard gates: no gradient moves it"),
    )  # fmt: skip
    degrees = {"a": 1, "b": 3, "k": None, "l": None, "m": None, "o": None}
    dependence = SimpleNamespace(
        in_parameter=degrees, piecewise=("k", "l", "m"), others=("o",), gates_are_fixed=False
    )
    groups = tuple(
        SimpleNamespace(name=name, degree=1.0, shape=(1,), together=()) for name in (*degrees, "z")
    )
    finding = form_finding(structure_of(dependence=dependence, groups=groups))
    assert {row[0]: row[3] for row in finding.views.tables[0].rows} == {
        "a": "linear", "b": "polynomial of degree 3", "k": "linear between kinks",
        "l": "linear between kinks", "m": "polynomial between kinks", "o": "curved", "z": "-",
    }  # fmt: skip
    record = finding.views.record["form"]
    assert record["gates_fixed"] is False and record["moved_by"] == ["k", "l", "m", "o"]
    assert record["parameters"]["b"] == {
        "shape": [1], "degree": 1.0, "together": [], "polynomial": 3,
    }  # fmt: skip
    homogeneous, gates = finding.views.assumptions
    assert homogeneous.holds is True and homogeneous.how == "measured to 3e-09"
    assert gates.holds is False and "(measured: k, l, m, o does)" in gates.text
    assert finding.views.objects["homogeneity"].degree == 2


def test_what_the_theorem_of_a_form_assumes_is_measured() -> None:
    fixed = form_finding(structure_of())
    _, gates = fixed.views.assumptions
    assert gates.holds is True and gates.text.endswith("no trained weight moves a gate (measured)")
    assert fixed.views.record["form"]["gates_fixed"] is None
    assert fixed.views.record["form"]["without_gradient"] == []
    assert form_finding(structure_of(), assumes=False).views.assumptions == ()
    (other,) = form_finding(structure_of(**NONE)).views.assumptions
    assert other.holds is False and other.how == "measured"
    several = structure_of(**NONE | {"exponents": {"a": 1.0, "b": 0.5}})
    *_, powers = form_finding(several).views.assumptions
    assert "to these powers, a: 1, b: 0.5 (measured)" in powers.text and powers.holds is True


# The limit


def test_a_limit_is_a_prediction_or_a_bound() -> None:
    limit = ib.solve_linear_svm(X, Y)

    def found(named=True, **known):
        return limit_finding(SimpleNamespace(named=named, optimum=Optimum(**known)))

    named = found(name="its program", limit=limit).views
    (side,) = named.sides
    assert side.predicted and side.values == {
        "objective": limit.objective, "lower_bound": limit.dual_objective, "gap": limit.gap,
    }  # fmt: skip
    bound = found(named=False, name="its program", limit=limit).views
    assert bound.tables[0].title == "a bound of every network" and not bound.sides[0].predicted
    assert bound.assumptions == named.assumptions != ()
    gated = found(named=False, limit=limit, present_gates=True).views
    assert gated.tables[0].title == "a bound of every network with its present gates"
    assert gated.assumptions == ()
    none = ib.solve_linear_svm(np.ones((2, 1)), np.array([1.0, -1.0]))
    assert found(limit=none).views.sides[0].values["status"] == "NOT_SEPARABLE"
    assert found().views.tables == () and found().views.record == {"limit": None}
    (table,) = found(remark="too many").views.tables
    assert table.rows == (("program", "too many"),)


# The network


def network_of(*, outputs=1, separates=True, kkt=None, optimum=None, assumes=(), **state):
    known = {"smallest_margin": 0.5, "weight_norm": 3.0, "train_error_network": 0.25}
    return SimpleNamespace(
        state=OwnNetwork(**known | state), optimum=Optimum() if optimum is None else optimum,
        kkt=kkt, structure=SimpleNamespace(subject=SimpleNamespace(n_outputs=outputs)),
        separates=separates, theory=SimpleNamespace(assumes=assumes), lacking="what it lacks",
        margins=np.array([2.0, 0.5, 1.0]), unit_norms=np.array([1.0, 3.0]),
    )  # fmt: skip


@pytest.fixture
def loss(monkeypatch) -> None:
    monkeypatch.setattr(f"{FINDINGS}.log_inverse_loss", lambda subject, loss: 12.5)


def test_a_network_is_said_with_its_margins_and_its_loss(loss) -> None:
    finding = network_finding(network_of(), "logistic")
    views = finding.views
    marks = [one.holds for one in finding.assumptions]
    assert marks == [True, True, None] and finding.assumptions[2].text.endswith("is 12.5 now")
    (side,) = views.sides
    assert side.values == {
        "smallest_margin": 0.5, "log_inverse_loss": 12.5, "train_error_network": 0.25,
    }  # fmt: skip
    assert views.row["log_inverse_loss"] == 12.5 and views.shortfall == ""
    assert finding.further.record == {"kkt": None} and finding.further.tables[0].of_network
    (panel,) = finding.panels
    np.testing.assert_allclose(panel.args[0], [1, 2, 4])
    assert panel.args[1] is None
    apart = network_finding(network_of(separates=False), "logistic")
    assert apart.panels == () and apart.views.shortfall == "what it lacks"
    assert apart.assumptions[0].holds is False
    values = network_finding(network_of(value=3.0), "logistic").views.sides[0].values
    assert values["objective"] == 3.0
    known = {"value": 3.0, "function_value": 2.0, "largest_dual_norm": 1.5}
    values = network_finding(network_of(**known, n_units=1), "logistic").views.sides[0].values
    assert values["objective"] == 2.0 and "largest_dual_norm" not in values
    values = network_finding(network_of(**known, n_units=2), "logistic").views.sides[0].values
    assert values["largest_dual_norm"] == 1.5


def test_a_network_is_beside_its_limit_and_its_units(loss) -> None:
    limit = SimpleNamespace(margins=[1.5, 1.0, 1.2], unit_norms=[1.0, 1.0])
    optimum = Optimum("its program", limit, features=lambda subject: None)
    kkt = SimpleNamespace(dual_norms=(0.5, 1.0), to_dict=lambda: {"residual": 0.1, "dual": [1, 2]})
    known = {"optimum": optimum, "kkt": kkt, "largest_dual_norm": 1.0}
    finding = network_finding(network_of(**known, n_units=2, error_limit=0.125), "logistic")
    margins, shares = finding.panels
    np.testing.assert_allclose(margins.args[1], [1.0, 1.2, 1.5])
    for got, expected in zip(shares.args, ([0.25, 0.75], [0.5, 0.5], [0.5, 1.0]), strict=True):
        np.testing.assert_allclose(got, expected)
    first, second = finding.further.sides
    assert first.predicted and first.values == {"error": 0.125} and not second.predicted
    assert finding.further.record == {"kkt": {"residual": 0.1}}
    one = network_finding(network_of(**known, n_units=1), "logistic")
    assert len(one.panels) == 1 and len(one.assumptions) == 3
    assert (
        len(network_finding(network_of(**known | {"kkt": None}, n_units=2), "logistic").panels) == 1
    )
    for outputs, of in ((2, optimum), (1, Optimum("its program", limit))):
        network = network_of(**known | {"optimum": of}, outputs=outputs, n_units=2)
        margins, shares = network_finding(network, "logistic").panels
        assert margins.args[1] is None and shares.args[1] is None


@pytest.mark.parametrize(
    ("largest", "small", "holds"),
    [(1.0, (), True), (1.0099, (1,), True), (1.0101, (1,), False), (1.0101, (), None)],
)
def test_dual_norms_of_units_are_at_most_one_where_none_is_wrongly_small(
    loss, largest, small, holds
) -> None:
    known = {"largest_dual_norm": largest, "small_units": small}
    *_, dual = network_finding(network_of(**known, n_units=2), "logistic").assumptions
    assert dual.holds is holds
    assert len(network_finding(network_of(**known, n_units=1), "logistic").assumptions) == 3
    assert len(network_finding(network_of(n_units=2), "logistic").assumptions) == 3


def test_premises_that_weights_do_not_tell_stay_open(loss) -> None:
    network = network_of(assumes=THEORIES[Form.UNITS].assumes)
    closed = len(network_finding(network, "logistic").assumptions)
    for batches, holds in ((None, None), ("full", True), ("mini", False)):
        finding = network_finding(network, "logistic", Method(batches=batches))
        added = finding.assumptions[closed:]
        names = [one.name for one in added]
        assert names.count("convergence") == sum(one.mark == "cannot be checked" for one in added)
        assert names.count("convergence") > 0
        steps = [one for one in added if one.mark == "not known here"]
        full = [one for one in added if one.name == "full batches"]
        assert [one.holds for one in full] == ([] if batches is None else [holds])
        assert len(steps) == 2 - len(full) and len(added) == 2 + names.count("convergence")


# Units and course


def test_units_are_told_where_there_are_several(monkeypatch) -> None:
    asked = {}

    def growth(network, *data, limit, kkt):
        asked.update(network=network, data=data, limit=limit, kkt=kkt)
        return "growth"

    monkeypatch.setattr(f"{FINDINGS}.recognised_network", lambda structure: "network")
    monkeypatch.setattr(f"{FINDINGS}.unit_growth", growth)
    monkeypatch.setattr(f"{FINDINGS}.growth_finding", lambda of: ("said", of))
    for kkt, n_units, told in (("kkt", 2, True), ("kkt", 1, False), (None, 2, False)):
        network = network_of(kkt=kkt, n_units=n_units)
        network.structure.subject.data = (1, 2)
        found = units_finding(network)
        assert (found == ("said", "growth")) is told
    assert asked == {"network": "network", "data": (1, 2), "limit": None, "kkt": "kkt"}


def test_a_course_is_of_the_ratio_to_the_bound(monkeypatch) -> None:
    asked = {}

    class Heading:
        def but(self, **views):
            return views

    def extrapolate(u, ratio, **known):
        asked.update(u=u, ratio=ratio, **known)
        return "heading"

    monkeypatch.setattr(f"{FINDINGS}.extrapolate", extrapolate)
    monkeypatch.setattr(f"{FINDINGS}.heading_finding", lambda *of: asked.update(of=of) or Heading())

    def course(degree=3, observed=None, *, named=True, separates=True, bound=2.0, **known):
        trajectory = SimpleNamespace(
            observed={} if observed is None else {"margin_ratio": observed},
            weight_norm=np.array([2.0, 2.0, 3.0, 3.0]), log_loss=np.array([-1.0, -2.0, -3.0, -4.0]),
            smallest_margin=np.array([0.25, 0.5, 2.0, 4.0]),
        )  # fmt: skip
        network = network_of(optimum=Optimum(bound=bound), separates=separates, **known)
        network.named = named
        network.structure.homogeneity = SimpleNamespace(whole_degree=degree)
        asked.clear()
        return trajectory, course_finding(trajectory, network)

    trajectory, views = course()
    ratio = [2 * 0.25 / (4 / 3) ** 1.5, 2 * 0.5 / (4 / 3) ** 1.5, 2 * 2 / 3**1.5, 2 * 4 / 3**1.5]
    np.testing.assert_allclose(asked["ratio"], ratio)
    assert asked["upper"] == 1 and asked["degree"] == 3 and "dual_norms" not in asked
    heading, last, u = asked["of"]
    assert heading == "heading" and last == pytest.approx(ratio[-1]) and u == asked["u"][-1]
    (panel,) = views["panels"]
    np.testing.assert_allclose(panel.args[0], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(panel.args[1], ratio)
    assert views["objects"] == {"trajectory": trajectory, "extrapolation": "heading"}
    course(observed=np.array([0.5, 0.6]), kkt=SimpleNamespace(dual_norms=(1.0, 0.9)))
    assert asked["ratio"].tolist() == [0.5, 0.6] and asked["dual_norms"] == (1.0, 0.9)
    assert asked["unit_norms"].tolist() == [1.0, 3.0]
    for known in ({"degree": None}, {"named": False}, {"separates": False}, {"bound": math.inf}):
        trajectory, finding = course(**known)
        assert asked == {} and finding.views.record == {"farther": None}
        assert finding.views.objects == {"trajectory": trajectory}


# Decay, and data that nothing separates


def measured(network, inputs=X, labels=Y):
    structure = recognise(take_subject(network, inputs, labels, None))
    optimum = find_optimum(structure, structure.subject.data.y.numpy())
    return measure_own(structure, optimum, None)


def test_decay_in_the_gradient_of_linear_scores_has_a_finite_limit() -> None:
    network = linear(2, 1)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.5, -0.25]]))
    found, decay = measured(network), Method(decay=0.1)
    finding = finite_finding(found, decay, "logistic")

    def value(w):
        return np.logaddexp(0, -Y * (X @ w)).mean() + 0.05 * w @ w

    best = finding.things["limit"]
    (one,) = finding.evidence
    w = np.array([0.5, -0.25])
    assert value(np.asarray(best.zeta).ravel()) == pytest.approx(best.objective, rel=1e-9)
    gap = one.near["value_gap"]
    assert gap == pytest.approx(best.gap_of(w, X, Y)) and gap > 0.01
    assert one.status is Status.SOLVED and "the decay 0.1 of gradient descent" in one.reason
    assert finite_finding(found, decay, "exponential") is None
    for other in (
        Method(), Method(decay=0.1, decoupled=True), Method("sign", {}, joint=False, decay=0.1),
    ):  # fmt: skip
        assert finite_finding(found, other, "logistic") is None
    several = measured(linear(2, 2), labels=np.array([0, 1, 0]))
    assert finite_finding(several, decay, "logistic") is None
    product = SimpleNamespace(
        structure=SimpleNamespace(form=Form.LINEAR, subject=found.structure.subject)
    )
    assert finite_finding(product, decay, "logistic") is None


def test_contradictory_samples_have_a_finite_part_and_the_others_a_direction(monkeypatch) -> None:
    # The first two cancel in x_1, where the loss is least at 0; the third asks for x_2 alone.
    inputs, labels = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    network = linear(2, 1)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.3, 5.0]]))
    found = measured(network, inputs, labels)
    finding = split_finding(found)
    split, state = (finding.views.objects[name] for name in ("split", "split_comparison"))
    assert split.separable.tolist() == [False, False, True] and split.status is Status.SOLVED
    assert state.limit_error == pytest.approx(0.3, rel=1e-6)
    assert state.margin_ratio == pytest.approx(1) and state.zeta_cosine == pytest.approx(1)
    said = split_in_words(finding)
    assert said.startswith("1 of 3 margins grow all the same, in a direction that is known (")
    assert said.endswith("finite part off by 0.3")
    for most, there in ((6, True), (5, False)):
        monkeypatch.setattr(f"{HOME}.splitting.MOST", most)
        assert (split_finding(found) is not None) is there
    monkeypatch.setattr(f"{HOME}.splitting.MOST", 1000)
    for other in (
        measured(network, inputs[1:], labels[1:]),  # which it separates
        measured(perceptron(2, 2, act=torch.nn.Identity), inputs, labels),
    ):  # fmt: skip
        assert split_finding(other) is None
    alone = SimpleNamespace(structure=found.structure, optimum=Optimum())
    assert split_finding(alone) is None


@pytest.mark.parametrize(
    ("status", "n", "said"),
    [
        (Status.SOLVED, 0, "weights go to the least of the loss: finite part off by 0.12 ("),
        (Status.SOLVED, 1, "1 of 4 margins grow all the same, in a direction"),
        (Status.INACCURATE, 1, ""),
    ],
)
def test_a_split_is_said_where_it_is_proved(status, n, said) -> None:
    split = SimpleNamespace(status=status, n_separable=n, separable=np.arange(4) < n)
    state = SimpleNamespace(limit_error=0.123, margin_ratio=0.9)
    objects = {"split": split, "split_comparison": state}
    words = split_in_words(SimpleNamespace(views=SimpleNamespace(objects=objects)))
    assert words.startswith(said) and bool(words) is bool(said)
