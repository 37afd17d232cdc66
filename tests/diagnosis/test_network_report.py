"""Parts of `diagnose` by themselves: what each asks for, in which order, and what it says."""

from __future__ import annotations

import math
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.networks.recognition import take_subject
from tests.own_modules import linear

HOME = "implicit_bias.runs.diagnosis.network_report"
held_out, optimum_of, find, earlier_of, require_own, heading_of = (
    resolve_name(f"{HOME}:{name}")
    for name in ("_held_out", "_optimum", "_find", "_earlier", "_require_own", "_heading")
)
Method, Optimum, Theory = (
    resolve_name(f"implicit_bias.runs.diagnosis.{name}")
    for name in ("method:Method", "optimum:Optimum", "theory:Theory")
)
X, Y = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, -1.0]]), np.array([1.0, -1.0, 1.0])
SIGN = Method("sign", {"weight": "linf"}, joint=False)


def ready(**known: list) -> torch.nn.Linear:
    """A linear score of two inputs."""
    network = linear(2, 1, bias="bias" in known)
    with torch.no_grad():
        for name, value in ({"weight": [[2.0, -1.0]]} | known).items():
            network.get_parameter(name).copy_(torch.tensor(value))
    return network


# All of it


def test_what_is_not_asked_for_is_left_out(capsys) -> None:
    report = ib.diagnose(ready(), X, Y)
    assert capsys.readouterr().err == ""
    assert report.limit.objective == pytest.approx(ib.solve_linear_svm(X, Y).objective)
    assert "3 training samples of 2 inputs, none held out; 2 trained weights" in (
        report.heading.setup
    )
    assert any("exponential-like: logistic" in one.text for one in report.assumptions)
    other = ib.diagnose(ready(), X, Y, loss="exponential", X_val=X[:2], y_val=Y[:2])
    assert any("exponential-like: exponential" in one.text for one in other.assumptions)
    assert ", 2 held out" in other.heading.setup and other.comparison.error_network == 0
    named = ib.diagnose(ready(weight=[[40.0, -20.0]]), X, Y, optimizer="sign")
    assert named.heading.program.startswith("min largest linf norm of a tensor of w  s.t.")
    for name, lacking, data in (("X_val", "y_val", X), ("y_val", "X_val", Y)):
        with pytest.raises(ValueError, match=f"`{name}` was given without `{lacking}`"):
            ib.diagnose(ready(), X, Y, **{name: data})


def test_a_trajectory_of_another_network_is_refused() -> None:
    trajectory = SimpleNamespace(smallest_margin=np.array([0.5, 3.0, 1.0]))
    for own, close in ((1.0, True), (1.009, True), (1.011, False), (0.5, False), (3.0, False)):
        found = SimpleNamespace(state=SimpleNamespace(smallest_margin=own))
        if close:
            require_own(trajectory, found)
        else:
            with pytest.raises(ValueError, match="ends at a smallest margin of 1, and"):
                require_own(trajectory, found)


def test_what_an_optimiser_was_not_given_stays_and_decay_has_its_own_limit() -> None:
    network = ready(bias=[0.25])
    part = ib.diagnose(network, X, Y, optimizer=torch.optim.SGD([network.weight], lr=0.1))
    assert "; 2 trained weights; " in part.heading.setup
    rates = [{"params": [network.weight], "lr": 0.1}, {"params": [network.bias], "lr": 0.4}]
    weighed = ib.diagnose(network, X, Y, optimizer=torch.optim.SGD(rates))
    scaled = np.c_[X / 2, np.ones(3)]
    least = ib.solve_linear_svm(scaled, Y).objective
    assert weighed.limit.objective == pytest.approx(least, rel=1e-6)
    decayed = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.1)
    report = ib.diagnose(network, X, Y, optimizer=decayed)
    assert [one.name for one in report.assumptions] == ["full batches"]
    assert report.heading.program == "min mean loss + lam / 2 ||w||^2"


# Its parts


def test_held_out_data_come_with_gates_of_their_own(monkeypatch) -> None:
    monkeypatch.setattr(f"{HOME}.place_held_out", lambda *of: of)
    gating = SimpleNamespace(transform=lambda inputs: f"gates of {inputs}")
    assert held_out("own", X_val=None, y_val=None, gates="g", gates_val=None) is None
    for gates, gates_val, beside in (
        (None, None, None), ("g", "v", "v"), (gating, None, "gates of x"), (gating, "v", "v"),
        (None, "v", "v"),
    ):  # fmt: skip
        found = held_out("own", X_val="x", y_val="y", gates=gates, gates_val=gates_val)
        assert found == ("own", "x", "y", beside)
    with pytest.raises(ValueError, match="`gates` are those of `X` alone"):
        held_out("own", X_val="x", y_val="y", gates="g", gates_val=None)


@pytest.mark.parametrize("bound", [1.0, math.inf, math.nan])
def test_an_optimum_is_of_descent_and_what_nothing_separates_is_so_for_all(
    monkeypatch, bound
) -> None:
    best, data = Optimum("its program", bound=bound), SimpleNamespace(y=torch.ones(2))
    monkeypatch.setattr(f"{HOME}.find_optimum", lambda structure, y: best)
    structure = SimpleNamespace(subject=SimpleNamespace(data=data))
    assert optimum_of(structure, Method()) is best
    for method in (SIGN, Method(decay=0.1)):
        assert (optimum_of(structure, method) is best) is (bound == math.inf)


def test_earlier_weights_are_those_of_the_network_at_its_scales() -> None:
    subject = take_subject(ready(bias=[0.5]), X, Y)
    module = ready(bias=[4.0])
    assert earlier_of(None, subject, Method()) is None
    for given in (module, module.state_dict()):
        found = earlier_of(given, subject, Method())
        assert found["weight"].tolist() == [[2.0, -1.0]] and found["bias"].tolist() == [4.0]
    weighed = Method(rates={"weight": 0.4, "bias": 0.1})
    found = earlier_of(module, subject, weighed)
    assert found["weight"].tolist() == [[2.0, -1.0]] and found["bias"].tolist() == [8.0]
    with pytest.raises(ValueError, match="`earlier` lacks weights 'bias'"):
        earlier_of(ready(), subject, Method())
    with pytest.raises(ValueError, match=r"`earlier` lacks weights 'weight' of shape \(1, 2\)"):
        earlier_of(linear(3, 1, bias=True), subject, Method())
    with pytest.raises(TypeError, match=r"`earlier` must be a torch\.nn\.Module"):
        earlier_of([1], subject, Method())
    with pytest.raises(ValueError, match="of no use under sign"):
        earlier_of(module, subject, SIGN)


@pytest.fixture
def pieces(monkeypatch) -> None:
    """Findings that are their names and what they were made from."""
    for name in ("verdict", "form", "limit", "network", "problem", "units", "course", "split"):
        said = lambda *of, name=name, **known: (name, *of, *known.values())  # noqa: E731
        monkeypatch.setattr(f"{HOME}.{name}_finding", said)
    monkeypatch.setattr(f"{HOME}.homogenised_findings", lambda *of: iter([("left", *of)]))
    monkeypatch.setattr(f"{HOME}.unseparated_twins", lambda subject: "twins")
    monkeypatch.setattr(f"{HOME}.farther_in_words", lambda course: f"words of {course[0]}")
    monkeypatch.setattr(f"{HOME}.split_in_words", lambda split: f"words of {split[0]}")


@pytest.mark.parametrize("trajectory", [None, "trajectory"])
@pytest.mark.parametrize(
    ("method", "loss"), [(Method(), "logistic"), (Method(), "exponential"), (SIGN, "logistic")]
)
@pytest.mark.parametrize(("problem", "evidence"), [(None, ()), (None, ("one",)), ("problem", ())])
def test_findings_come_in_the_order_of_a_reader(
    pieces, trajectory, method, loss, problem, evidence
) -> None:
    network = SimpleNamespace(structure=SimpleNamespace(subject="subject"))
    local = SimpleNamespace(evidence=evidence)
    searched: list = []

    def search(of):
        searched.append(of)
        return local

    found = list(find(network, problem, method, loss, trajectory, search))
    splits = method is not SIGN and loss == "logistic"
    course = "words of course" if trajectory else ""
    verdict = (
        "verdict", network, "twins", problem, course, "words of split" if splits else "",
    )  # fmt: skip
    expected = [
        *([] if evidence else [verdict]),
        ("form", network.structure, problem is None),
        ("limit", network),
        *([("split", network)] if splits else []),
        ("network", network, loss, None if problem else method),
        *([("problem", network, problem), ("left", network, problem, search)] if problem else []),
        *([] if problem else [local, ("units", network)]),
        *([("course", trajectory, network)] if trajectory else []),
    ]
    assert found == expected and searched == ([] if problem else [network])


@pytest.mark.parametrize(
    ("shape", "K", "val", "said"),
    [
        ((1, 2), 1, 0, "1 training sample of 2 inputs, none held out;"),
        ((2, 2), 1, 0, "2 training samples of 2 inputs, none held out;"),
        ((3, 4, 5), 2, 0, "3 training samples of 4 x 5 inputs, none held out, 2 classes;"),
        ((3, 2), 3, 2, "3 training samples of 2 inputs, 2 held out, 3 classes;"),
    ],
)
def test_the_heading_says_what_was_diagnosed(shape, K, val, said) -> None:
    def data(n):
        inputs = torch.arange(float(n * math.prod(shape[1:]))).view(n, *shape[1:])
        return SimpleNamespace(X=inputs, y=torch.ones(n))

    subject = SimpleNamespace(
        data=data(shape[0]), n_outputs=K, name="Own", n_weights=1234, remarks=("remarked",)
    )
    beside = SimpleNamespace(data=data(val)) if val else None
    theory = Theory("none", "no theorem", "its program", "a paper", ())
    heading = heading_of(subject, "a form", theory, beside, "trained")
    assert heading.setup == f"{said} 1,234 trained weights; trained; remarked"
    assert heading.theorem == "a form. No theorem"
    record = heading.record["data"]
    assert record["n_train"] == shape[0] and record["n_val"] == val
    assert record["n_inputs"] == math.prod(shape[1:])
    alone = heading_of(subject, "a form", theory, None, "trained")
    assert (alone.record["data"]["sha256"] == record["sha256"]) is (val == 0)
