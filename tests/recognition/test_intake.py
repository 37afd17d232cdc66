"""Modules and labels as they stand in other people's code are taken, or refused with a way out."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.preprocessing import LabelBinarizer
from torch import Tensor, nn

import implicit_bias as ib
from implicit_bias.networks.recognition import Form, held_out, recognise, take_subject
from tests.own_modules import drawn, linear, perceptron

N, D = 12, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = np.where(np.arange(N) % 2, 1.0, -1.0)
CLASSES = np.arange(N) % 3
TOKENS = RNG.integers(0, 7, size=(N, 4))
READ, PLACE = (
    resolve_name(f"implicit_bias.networks.losses.labels:{name}")
    for name in ("read_labels", "place_labelled")
)


def plain_scores(network: nn.Module, inputs=X) -> Tensor:
    with torch.no_grad():
        return network(torch.tensor(inputs))


# What modules keep and return


class Remembering(nn.Module):
    """Keeps activations, deep inside an object of its own too, a lock, and signs as a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.signs = linear(D, 4).float(), torch.tensor([1.0, -1.0, 1.0, -1.0])
        self.store, self.lock = threading.local(), threading.Lock()
        self.kept: list[dict[str, Tensor]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.hidden = torch.relu(self.inner(x))
        self.kept.append({"hidden": self.hidden})
        return self.hidden @ self.signs


def test_a_module_is_taken_with_what_it_keeps_and_left_as_it_was() -> None:
    network = Remembering()
    scores = network(torch.tensor(X, dtype=torch.float32)).detach()
    subject = take_subject(network, X, Y)
    torch.testing.assert_close(subject.scores({}).float(), scores)
    assert network.signs.dtype == torch.float32 and len(network.kept) == 1
    assert network.hidden.requires_grad
    expected = torch.relu(torch.tensor(X) @ network.inner.weight.detach().double().T)
    expected = expected @ network.signs.double()
    torch.testing.assert_close(subject.scores({}), expected)


class Placing(nn.Module):
    """Moves and casts inside `forward`, and makes its own tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.device = linear(D, 1), torch.device("cuda")

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.device).to("cuda").cuda().half() + torch.zeros(D, device=self.device)
        return self.inner(x.to(torch.float32)) * torch.tensor(1 / 3)


def test_devices_and_types_inside_forward_are_those_of_the_measurement() -> None:
    network = Placing()
    scores = take_subject(network, X, Y).scores({})
    torch.testing.assert_close(scores, network.inner(torch.tensor(X)).detach()[:, 0] / 3)
    assert torch.get_default_dtype() == torch.float32


@dataclass
class Output:
    features: Tensor
    logits: Tensor


class Pair(NamedTuple):
    features: Tensor
    scores: Tensor


class Several(nn.Module):
    """Scores among other outputs."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.body, self.head = kind, linear(D, 3, seed=1), linear(3, 1, seed=2)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> object:
        features = self.body(x)
        scores = self.head(features)
        return {
            "tuple": (scores, features),
            "loss first": (scores.mean(), scores, features),
            "mapping": {"features": features, "logits": scores},
            "dataclass": Output(features, scores),
            "named tuple": Pair(features, scores),
        }[self.kind]


@pytest.mark.parametrize(
    ("kind", "part"),
    [("tuple", "0"), ("loss first", "1"), ("mapping", "logits"), ("dataclass", "logits"),
     ("named tuple", "scores")],
)  # fmt: skip
def test_scores_are_found_among_several_outputs_and_it_is_said_which(kind, part) -> None:
    network = Several(kind)
    subject = take_subject(network, X, Y)
    assert subject.part == part
    expected = network.head(network.body(torch.tensor(X))).detach()[:, 0]
    torch.testing.assert_close(subject.scores({}), expected)


class Pooled(nn.Module):
    """A second parameter of `forward` that is an option, not gates."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = linear(D, 3)

    def forward(self, x: Tensor, pool: str = "mean") -> Tensor:
        return getattr(self.inner(x), pool)(1)


def test_an_option_of_forward_is_not_taken_for_gates() -> None:
    subject = take_subject(Pooled(), X, Y)
    torch.testing.assert_close(subject.scores({}), plain_scores(Pooled()))
    with pytest.raises(ValueError, match="`gates` were given, but Pooled takes inputs alone"):
        take_subject(Pooled(), X, Y, np.ones((N, 2)))


def test_parallel_and_compiled_modules_are_what_they_were_made_of() -> None:
    network = perceptron(D, 3)
    expected = plain_scores(network)[:, 0]
    for made in (nn.DataParallel(network), torch.compile(network)):
        torch.testing.assert_close(take_subject(made, X, Y).scores({}), expected)
    assert list(take_subject(nn.DataParallel(network), X, Y).weights) == ["0.weight", "2.weight"]


class Tied(nn.Module):
    """Reads its scores out by the table that it looked tokens up in."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(7, 3).double(), nn.Linear(3, 7, bias=False)
        self.out.weight = self.table.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.table(tokens).mean(1))


class OwnTable(nn.Module):
    """Looks tokens up by an index, without a layer that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.table = drawn(7, seed=3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table[tokens].sum(1)


def test_token_ids_stay_whole_and_a_shared_table_counts_once() -> None:
    network = Tied()
    subject = take_subject(network, TOKENS, TOKENS[:, 0])
    assert list(subject.weights) == ["table.weight"] and subject.n_weights == 21
    structure = recognise(subject)
    assert structure.homogeneity.degree == 2
    table = network.table.weight.detach().double()
    torch.testing.assert_close(subject.scores({}), table[TOKENS].mean(1) @ table.T)
    assert ib.check_network(network, TOKENS).degree == 2
    own = take_subject(OwnTable(), TOKENS, Y)
    torch.testing.assert_close(own.scores({}), OwnTable().table.detach()[TOKENS].sum(1))


def test_what_was_chosen_is_said_on_the_report() -> None:
    report = str(ib.diagnose(Several("mapping"), X, np.where(Y > 0, "yes", "no")))
    said = " ".join(report.split())
    assert "part 'logits' of the outputs" in said
    assert "negative scores for 'no', positive ones for 'yes'" in said
    assert "depends on the other samples" in " ".join(str(ib.diagnose(normalised(), X, Y)).split())


# Labels


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (Y, (-1, 1)),
        (Y > 0, (0, 1)),
        ((Y > 0).astype(int)[:, None], (0, 1)),
        (np.where(Y > 0, "yes", "no"), ("no", "yes")),
        (pd.Series(np.where(Y > 0, "dog", "cat")), ("cat", "dog")),
        (pd.Categorical(np.where(Y > 0, "dog", "cat")), ("cat", "dog")),
        (torch.tensor(Y)[:, None].bfloat16(), (-1, 1)),
        (np.where(Y > 0, 7.0, 3.0), (3, 7)),
    ],
)
def test_two_labels_of_any_kind_are_signs_in_the_order_of_scikit_learn(labels, names) -> None:
    subject = take_subject(perceptron(D, 3), X, labels)
    flat = np.asarray(labels.float() if isinstance(labels, Tensor) else labels).reshape(-1)
    expected = LabelBinarizer(neg_label=-1).fit_transform(flat)[:, 0]
    assert np.array_equal(subject.data.y.numpy(), expected)
    assert subject.classes.names == names
    said = f"negative scores for {names[0]!r}, positive ones for {names[1]!r}"
    assert subject.remarks == (() if names == (-1, 1) else (said,))


@pytest.mark.parametrize(
    ("label", "n_outputs", "names", "target"),
    [
        (1, 1, (-1, 1), 1),
        (-1, 1, (-1, 1), -1),
        (0, 1, (0, 1), -1),
        (1, 2, (0, 1), [0, 1]),
        (2, 3, (0, 1, 2), [0, 0, 1]),
    ],
)
def test_labels_that_are_all_one_number_say_which_class_it_is(
    label, n_outputs, names, target
) -> None:
    labels = np.full(N, label)
    found, targets = READ(labels, N, n_outputs)
    assert (found.names, found.n_outputs) == (names, n_outputs)
    assert targets.tolist() == found.targets("y", labels, N).tolist() == [target] * N


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (CLASSES, (0, 1, 2)),
        (CLASSES[:, None].astype(float), (0, 1, 2)),
        (np.array(["ant", "bee", "cow"])[CLASSES], ("ant", "bee", "cow")),
        (CLASSES * 10 + 5, (5, 15, 25)),
        (np.eye(3)[CLASSES], (0, 1, 2)),
        (torch.eye(3, dtype=torch.bool)[CLASSES], (0, 1, 2)),
        (np.where(CLASSES == 2, 1, CLASSES), (0, 1, 2)),
    ],
)
def test_labels_of_several_classes_are_columns_of_the_outputs(labels, names) -> None:
    network = linear(D, 3)
    subject = take_subject(network, X, labels)
    array = np.asarray(labels)
    column = array.argmax(1) if array.shape[1:] == (3,) else np.searchsorted(names, array.ravel())
    assert subject.classes.names == names and subject.n_outputs == 3
    assert subject.remarks == (f"outputs 0 to 2 for {', '.join(map(repr, names))}",)
    assert np.array_equal(subject.data.y.numpy(), np.eye(3)[column])


def test_margins_are_those_of_the_own_score_over_every_other() -> None:
    network = linear(D, 3)
    subject, scores = take_subject(network, X, CLASSES), plain_scores(network)
    expected = [
        (n, k, float(scores[n, CLASSES[n]] - scores[n, k]))
        for n in range(N) for k in range(3) if k != CLASSES[n]
    ]  # fmt: skip
    rows = torch.cat([subject.rows.double(), subject.margins(subject.weights)[:, None]], dim=1)
    torch.testing.assert_close(rows, torch.tensor(expected, dtype=torch.float64))
    binary = take_subject(perceptron(D, 3), X, Y)
    signs = torch.tensor(Y) * plain_scores(perceptron(D, 3))[:, 0]
    torch.testing.assert_close(binary.margins(binary.weights), signs)


def test_two_outputs_have_the_margins_of_their_difference() -> None:
    network = linear(D, 2)
    subject = take_subject(network, X, np.where(Y > 0, "yes", "no"))
    scores = plain_scores(network)
    expected = torch.tensor(Y) * (scores[:, 1] - scores[:, 0])
    torch.testing.assert_close(subject.margins(subject.weights), expected)


def test_gradients_of_k_outputs_are_the_jacobian() -> None:
    network = perceptron(D, 4)[:2].append(linear(4, 2, seed=5))
    subject = take_subject(network, X, CLASSES % 2)
    w, direction = subject.weights, subject.drawn(0)
    rows, scores = subject.jacobian(w, tuple(w)), subject.gradients(w)
    expected = torch.autograd.functional.jacobian(
        lambda first, last: torch.relu(torch.tensor(X) @ first.T) @ last.T, tuple(w.values())
    )
    for name, one in zip(w, expected, strict=True):
        torch.testing.assert_close(rows[name], one)
        torch.testing.assert_close(scores[name], one)
    torch.testing.assert_close(subject.slopes(w, direction), subject.along(rows, direction))


def test_kkt_distance_takes_the_labels_of_any_kind_as_rows_of_ones() -> None:
    corners = np.eye(3)
    network = linear(3, 3)
    network.degree = 1
    with torch.no_grad():
        network.weight.copy_(torch.eye(3, dtype=torch.float64) - 1 / 3)
    rows = ib.kkt_distance(network, corners, corners, None)
    words = ib.kkt_distance(network, corners, ["a", "b", "c"], None)
    assert rows.residual < 1e-12  # multiclass SVM of the corners: centred corners
    assert words.residual == rows.residual
    assert np.array_equal(words.multipliers, rows.multipliers)
    of_words = ib.local_limit(network, corners, ["a", "b", "c"]).multipliers
    assert np.array_equal(of_words, ib.local_limit(network, corners, corners).multipliers)


def test_what_follows_a_network_takes_labels_of_any_kind() -> None:
    network = ib.FReLU.from_zeta(np.array([[12.0, 16.0], [1.2, 1.6]]))
    inputs, gates = np.array([[3.0, 4.0], [-3.0, -4.0]]), np.ones((2, 2))
    found = []
    for labels in (np.array([1.0, -1.0]), [[True], [False]], ["yes", "no"]):
        flow = ib.dynamics.margin_flow(network, inputs, labels, gates, until=1e3)
        growth = ib.dynamics.unit_growth(network, inputs, labels, gates)
        found.append([*flow.normalised_margin, *growth.dual_norms])
    np.testing.assert_array_equal(found[1:], found[:1] * 2)


# Batches, noise, surrogates


def normalised() -> nn.Sequential:
    return nn.Sequential(linear(D, 4), nn.BatchNorm1d(4).double(), nn.ReLU(), linear(4, 1, seed=3))


def test_a_module_that_takes_no_single_sample_is_one_of_batches() -> None:
    subject = take_subject(normalised(), X[:2], Y[:2])
    assert not subject.by_sample
    assert ib.diagnose(normalised(), X[:3], [1, 0, 1]).verdict.word


def test_statistics_over_batches_are_those_of_all_samples_and_held_out_ones_are_kept() -> None:
    network = normalised()
    for _ in range(200):
        network(torch.tensor(X))  # the running statistics converge to those of X
    before = {name: value.clone() for name, value in network.state_dict().items()}
    subject = take_subject(network, X, Y)
    assert not subject.by_sample
    for _ in range(2):
        hidden = torch.tensor(X) @ network[0].weight.detach().T
        centred = (hidden - hidden.mean(0)) / (hidden.var(0, correction=0) + 1e-5).sqrt()
        expected = torch.relu(centred) @ network[3].weight.detach()[0]
        torch.testing.assert_close(subject.scores({}), expected)
    rows = subject.jacobian(subject.weights, ("0.weight",))["0.weight"]
    slopes = subject.slopes(subject.weights, {"0.weight": subject.weights["0.weight"]})
    assert rows.abs().max() > 1e-3
    assert slopes.abs().max() < 1e-3 * rows.abs().max()  # degree 0 below a norm, but for its eps
    other = held_out(subject, X[:3], Y[:3], None)
    torch.testing.assert_close(other.scores({}), plain_scores(network.eval(), X[:3])[:, 0])
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


class Straight(nn.Module):
    """Weights that are signs forward, and themselves backward."""

    def __init__(self) -> None:
        super().__init__()
        self.w = drawn(D)

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.w + (self.w.sign() - self.w).detach())


class OnceReLU(torch.autograd.Function):
    """A ReLU whose backward torch is told to differentiate but once."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return gradient * (ctx.saved_tensors[0] > 0)


class Once(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = linear(D, 4), linear(4, 1, seed=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(OnceReLU.apply(self.inner(x)))


@pytest.mark.parametrize("share", [1e-3, 1.0])
def test_the_least_that_samples_take_from_others_is_seen(share) -> None:
    subject = take_subject(OfScores(lambda z: z - share * z.mean()), X, Y)
    assert not subject.by_sample
    assert take_subject(OfScores(torch.tanh), X, Y).by_sample


def test_a_backward_without_a_derivative_leaves_gradients_alone() -> None:
    subject = take_subject(OfScores(lambda z: BrokenOnce.apply(z**3)), X, Y)
    assert not subject.twice
    torch.testing.assert_close(subject.slopes(subject.weights, subject.weights),
                               3 * subject.scores({}))  # fmt: skip


def test_one_sample_is_enough() -> None:
    subject = take_subject(linear(D, 1), X[:1], Y[:1])
    torch.testing.assert_close(subject.scores({}), plain_scores(linear(D, 1), X[:1])[:, 0])


def test_a_surrogate_backward_is_named_and_an_own_one_that_is_right_is_not() -> None:
    assert recognise(take_subject(Straight(), X, Y)).form is Form.SURROGATE
    assert "surrogate" in str(ib.diagnose(Straight(), X, Y))
    subject = take_subject(Once(), X, Y)
    assert not subject.twice and subject.gradient_error() < 1e-6
    assert recognise(subject).homogeneity.degree == 2
    assert recognise(take_subject(perceptron(D, 4, act=nn.GELU), X, Y)).form is not Form.SURROGATE


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table(tokens)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = linear(D, 1)

    def forward(self, x: Tensor) -> dict[str, object]:
        return {"text": "no scores", "loss": self.inner(x).mean()}


def dropping() -> nn.Sequential:
    parts = linear(D, 4), nn.BatchNorm1d(4).double(), nn.Dropout(), nn.Dropout(0.0), linear(4, 1)
    return nn.Sequential(*parts)


class DropsItself(nn.Dropout):
    """A module that is its own dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = linear(D, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(super().forward(x))


class OfScores(nn.Module):
    """A linear score and any function of it."""

    def __init__(self, of) -> None:
        super().__init__()
        self.of, self.inner = of, linear(D, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.of(self.inner(x)[:, 0])


class Broken(torch.autograd.Function):
    """What has no backward."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no way back\nat all")


class BrokenOnce(Broken):
    """What has a backward that has none."""

    @staticmethod
    def backward(ctx, gradient):
        return Broken.apply(gradient)


def diverged() -> nn.Linear:
    network = linear(D, 1)
    with torch.no_grad():
        network.weight[0, 0] = torch.inf
    return network


@pytest.mark.parametrize(
    ("network", "data", "message"),
    [
        (dropping(), {}, r"different scores: call `.eval\(\)` on it, or, to keep .* alone, '2'$"),
        (DropsItself(), {}, "on its dropout alone, 'DropsItself'"),
        (OfScores(lambda z: z + 1e-3 * torch.randn(N)[: len(z)]), {}, "or take out what is random"),
        (OfScores(Broken.apply), {}, r"cannot be computed \(RuntimeError: no way back\): if it"),
        (
            OfScores(lambda z: z.where(z > z.min(), torch.nan)),
            {},
            "infinite scores to 1 of 12 ",
        ),
        (OfScores(lambda z: z[:, None].expand(-1, 0)), {}, r"got \(12, 0\): of several"),
        (OfScores(lambda z: z[1:]), {}, r"no part is a tensor with 12 rows|got \(11,\)"),
        (diverged(), {}, "has NaN or infinite entries in 'weight': its training has diverged"),
        (nn.Linear(D, 1, device="meta"), {}, "has no values in 'weight', which is on the device m"),
        (linear(D + 1, 1), {}, r"on `X` of shape \(12, 5\) \(RuntimeError: mat1 and mat2 shapes"),
        (linear(D, 1), {"X": TOKENS}, r"cannot be called on `X` of shape \(12, 4\)"),
        (Sequence, {}, "`network` must be a torch.nn.Module, got type"),
        (Sequence(), {"X": TOKENS}, r"got \(12, 4, 3\): of several positions"),
        (Words(), {}, r"returned dict\(text, loss\), in which no part is a tensor with 12 rows"),
        (nn.LazyLinear(1), {}, "has lazy layers without weights: call it once"),
        (nn.Linear(D, 1, dtype=torch.complex128), {}, "has complex weights in 'weight'"),
        (linear(D, 1), {"y": CLASSES}, "`y` has 3 classes, 0, 1, 2, and `network` gives one score"),
        (linear(D, 3), {"y": Y}, "`y` has 2 classes, -1, 1, and `network` gives 3 scores"),
        (linear(D, 1), {"y": np.full(N, 3)}, "`y` has one class only, 3"),
        (linear(D, 1), {"y": Y / 2}, "`y` must hold classes, whole numbers or strings, got -0.5"),
        (linear(D, 3), {"y": np.full((N, 3), 1 / 3)}, "`y` must have zeros and a single one"),
        (linear(D, 1), {"y": Y[:-1]}, r"`y` must have shape \(12,\), one label a row of X"),
        (linear(D, 1), {"y": np.eye(2)[CLASSES % 2]}, r"`y` must have shape \(12,\)"),
    ],
)
def test_what_cannot_be_taken_says_what_and_the_way_out(network, data, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        take_subject(network, **({"X": X, "y": Y} | data))


class Gated(nn.Module):
    """Scores of so many outputs, and of more axes, of a module that takes gates."""

    def __init__(self, n_outputs: int, *more: int) -> None:
        super().__init__()
        self.inner, self.more = linear(D, n_outputs), more

    def forward(self, x: Tensor, gates: Tensor | None) -> Tensor:
        scores = self.inner(x)
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        return scores[(...,) + (None,) * len(self.more)].expand(*scores.shape, *self.more)


def test_data_are_placed_with_labels_of_the_outputs_that_a_network_has() -> None:
    words = np.array(["ant", "bee", "cow"])[CLASSES]
    one, several = PLACE(Gated(1), X, Y > 0, None), PLACE(Gated(3), X, words, None)
    assert one.y.tolist() == Y.tolist() and several.y.tolist() == np.eye(3)[CLASSES].tolist()
    assert torch.equal(one.X, torch.tensor(X)) and one.y.dtype == torch.float64
    with pytest.raises(ValueError, match=r"\(12, 3, 2\)"):
        PLACE(Gated(3, 2), X, words, None)


MIXED = np.array([1, "a"] * (N // 2), dtype=object)
NUMBERS = r"give the numbers of the outputs, 0 to 2, or rows np.eye\(3\)\[...\]"


@pytest.mark.parametrize(
    ("labels", "n_outputs", "message"),
    [
        (np.arange(N) % 8, 1, r"8 classes, 0, 1, 2, 3, 4, 5, ..., and .* give two of them"),
        (np.arange(N) % 6, 1, r"6 classes, 0, 1, 2, 3, 4, 5, and .* one against the rest"),
        (np.arange(N) % 5, 3, rf"5 classes, .* 3 scores a sample: {NUMBERS}"),
        (np.full(N, "one"), 3, "one class only, 'one'"),
        (np.ones((N, 3)), 2, r"shape \(12,\), or \(12, 2\) with a one in every row, .*\(12, 3\)"),
        (np.ones((N, 2)), 1, r"shape \(12,\), one label a row of X, got shape \(12, 2\)"),
        (np.ones((N, 2, 2)), 2, r"got shape \(12, 2, 2\)"),
        (1, 1, r"got shape \(\)"),
        (np.array(["a"], dtype=object), 1, r"got shape \(1,\)"),
        (np.full((N, 2), "a"), 2, "zeros and a single one in every row"),
        (np.zeros((N, 2)), 2, "zeros and a single one in every row"),
        (2 * np.eye(2)[CLASSES % 2], 2, "zeros and a single one in every row"),
        (np.eye(2)[CLASSES % 2] - [[0.5, -0.5]], 2, "zeros and a single one in every row"),
        (np.full(N, np.inf), 1, "whole numbers or strings, got inf"),
        (np.full(N, np.nan), 1, "whole numbers or strings, got nan"),
        ([[1], [1, 2]], 1, "`y` must be"),
        (MIXED, 1, "labels of classes, got dtype object"),
        (np.array([], dtype=object), 1, "labels of classes, got dtype object"),
        (np.full(N, 1j), 1, "labels of classes"),
    ],
)
def test_labels_that_name_no_classes_are_refused(labels, n_outputs, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        READ(labels, N, n_outputs)


def test_held_out_labels_are_those_of_the_training_samples() -> None:
    subject = take_subject(linear(D, 1), X, np.where(Y > 0, "yes", "no"))
    assert held_out(subject, X, np.full(N, "yes"), None).data.y.tolist() == [1.0] * N
    with pytest.raises(ValueError, match=r"`y_val` has labels that are not among .*: 'maybe'"):
        held_out(subject, X, np.full(N, "maybe"), None)
