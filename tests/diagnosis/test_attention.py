"""Attention of a user's own: recognised by its values, beside the program of its tokens."""

from pkgutil import resolve_name
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import Tensor

import implicit_bias as ib
from implicit_bias.networks.recognition import recognise_attention, take_subject

select_tokens = resolve_name("implicit_bias.runs.diagnosis.attention:select_tokens")
Method = resolve_name("implicit_bias.runs.diagnosis.method:Method")
DATA = ib.datasets.make_tokens(14, 5, 6, random_state=2)
Y = np.where(np.arange(14) % 2, 1.0, -1.0)


class SelfAttention(torch.nn.Module):
    """Attention asked with one of its tokens, by W or by query and key, as papers have it."""

    def __init__(self, width: int | None = None, scale: float = 1.0, asked: int = -1) -> None:
        super().__init__()
        self.scale, self.asked = scale, asked
        if width is None:
            self.W = torch.nn.Linear(6, 6, bias=False)
        else:
            self.query = torch.nn.Linear(6, width, bias=False)
            self.key = torch.nn.Linear(6, width, bias=False)
        self.v = torch.nn.Parameter(torch.linspace(-1, 1, 6), requires_grad=False)
        self.place = torch.zeros(5, 6)

    def forward(self, X: Tensor) -> Tensor:
        z = X[:, self.asked][:, None]
        keys = self.W(X) if hasattr(self, "W") else self.key(X + self.place.to(X))
        asked = z if hasattr(self, "W") else self.query(z)
        shares = torch.softmax(self.scale * asked @ keys.mT, dim=-1)
        self.attention = shares  # kept, as the papers' code does
        return (shares @ X)[:, 0] @ self.v


class CrossAttention(torch.nn.Module):
    """Attention asked with queries of their own, in front of a head that is not linear."""

    def __init__(self) -> None:
        super().__init__()
        self.W = torch.nn.Parameter(torch.randn(6, 6) / 6)

    def forward(self, X: Tensor, queries: Tensor) -> Tensor:
        shares = torch.softmax(torch.einsum("ntd,dq,nq->nt", X, self.W, queries), dim=-1)
        return (shares * X.sin().sum(-1)).sum(-1)


def matrix_and_queries(network: torch.nn.Module) -> tuple[np.ndarray, np.ndarray]:
    weights = {name: p.detach().double().numpy() for name, p in network.named_parameters()}
    if isinstance(network, CrossAttention):
        return weights["W"], DATA.queries
    asked = DATA.X[:, network.asked]
    if "W.weight" in weights:
        return network.scale * weights["W.weight"].T, asked
    return network.scale * weights["key.weight"].T @ weights["query.weight"], asked


@pytest.mark.parametrize(("make", "norm"), [
    (SelfAttention, "l2"),
    (lambda: SelfAttention(asked=0), "l2"),
    (CrossAttention, "l2"),
    (lambda: SelfAttention(4), "nuclear"),
    (lambda: SelfAttention(4, scale=0.5), "nuclear"),
])  # fmt: skip
def test_attention_has_the_program_of_the_tokens_that_it_selects(make, norm) -> None:
    torch.manual_seed(0)
    network = make()
    gates = DATA.queries if isinstance(network, CrossAttention) else None
    report = ib.diagnose(network, DATA.X, Y, gates=gates)
    W, asked = matrix_and_queries(network)
    tokens = np.einsum("ntd,de,ne->nt", DATA.X, W, asked).argmax(axis=1)
    np.testing.assert_array_equal(report.limit.tokens, tokens)
    values = np.sin(DATA.X).sum(-1) if gates is not None else DATA.X @ np.linspace(-1, 1, 6)
    expected = ib.limits.solve_token_svm(
        DATA.X, asked, Y[:, None] * values, tokens, norm=norm, tol=1e-6
    )
    assert report.limit.norm == norm
    assert report.limit.objective == pytest.approx(expected.objective, rel=1e-5)
    proved = expected.certify(DATA.X, asked, Y[:, None] * values, W)
    ratio = expected.dual_objective / proved.objective
    assert report.comparison.margin_ratio == pytest.approx(ratio, rel=1e-5)
    assert report.verdict.word == ("NOT THERE YET" if expected.is_local else "NO THEOREM")
    assert "softmax attention" in report.heading.theorem


def test_trained_attention_is_measured_and_says_what_is_not_proved(tmp_path) -> None:
    torch.manual_seed(0)
    network = SelfAttention(6).double()
    own = [network.query.weight, network.key.weight]
    optimizer = torch.optim.SGD(own, lr=0.1)
    X, y = torch.tensor(DATA.X), torch.tensor(Y)
    for _ in range(400):
        optimizer.zero_grad()
        torch.exp(-y * network(X)).mean().backward()
        optimizer.step()
    network.v.requires_grad_(True)  # not given to the optimiser: it stays as it is
    report = ib.diagnose(network, DATA.X, Y, optimizer=optimizer, X_val=DATA.X[:4], y_val=Y[:4])
    named = {one.name: one for one in report.assumptions}
    assert named["descent on K and Q"].holds is None and named["fixed value head"].holds
    assert "4 held out" in report.heading.setup
    report.save(tmp_path / "run")
    back = ib.load(tmp_path / "run")
    assert back.verdict.word == report.verdict.word and back.limit.norm == "nuclear"


@pytest.mark.parametrize("make", [
    SelfAttention, lambda: SelfAttention(asked=0), CrossAttention, lambda: SelfAttention(4),
    lambda: SelfAttention(7), lambda: SelfAttention(4, scale=0.5),
    lambda: SelfAttention(scale=6**-0.5),
])  # fmt: skip
@pytest.mark.parametrize("n_tokens", [2, 5])
def test_attention_is_read_off_from_its_values(make, n_tokens) -> None:
    torch.manual_seed(0)
    network, X = make().double(), DATA.X[:, :n_tokens]
    network.place = torch.zeros(n_tokens, 6)
    crossed = isinstance(network, CrossAttention)
    found = recognise_attention(take_subject(network, X, Y, DATA.queries if crossed else None))
    W, asked = matrix_and_queries(network)
    np.testing.assert_allclose(found.W, W, rtol=1e-12)
    np.testing.assert_array_equal(found.queries, asked if crossed else X[:, network.asked])
    values = np.sin(X).sum(-1) if crossed else X @ np.linspace(-1, 1, 6)
    np.testing.assert_allclose(found.values, values, atol=1e-7)
    assert found.error < 1e-7 and found.pair is hasattr(network, "key")
    assert ("W = K Q'" in found.in_words) is found.pair


class Asked(torch.nn.Module):
    """Attention asked with what is looked up, or is one of several queries."""

    def __init__(self) -> None:
        super().__init__()
        self.W, self.table = torch.nn.Parameter(torch.randn(6, 6)), torch.randn(3, 6)

    def forward(self, X: Tensor, asked: Tensor) -> Tensor:
        z = asked[:, 0] if asked.is_floating_point() else self.table.to(X)[asked[:, 0]]
        return (torch.softmax(torch.einsum("ntd,dq,nq->nt", X, self.W, z), -1) * X.sum(-1)).sum(-1)


class Around(torch.nn.Module):
    """Attention, and what others have beside it."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.inner, self.what = SelfAttention(4), what
        if what == "a third matrix":
            self.third = torch.nn.Linear(6, 6, bias=False)
        if what == "a vector":
            self.inner = SelfAttention()
            self.third = torch.nn.Parameter(torch.randn(6))

    def forward(self, X: Tensor) -> Tensor:
        scores = self.inner(X)
        return torch.stack([scores, -scores], dim=1) if self.what == "two scores" else scores


@pytest.mark.parametrize(("network", "X", "gates"), [
    (SelfAttention(), DATA.X[:, :1], None),  # whatever W is
    (torch.nn.Linear(6, 1, bias=False), DATA.X[:, 0], None),
    (Around("a third matrix"), DATA.X, None),
    (Around("a vector"), DATA.X, None),
    (Around("two scores"), DATA.X, None),
    (Asked(), DATA.X, np.arange(84).reshape(14, 6) % 3),
    (Asked(), DATA.X, DATA.queries[:, None].repeat(6, 1)),
])  # fmt: skip
def test_what_is_asked_or_scores_otherwise_is_no_attention_of_one_layer(network, X, gates) -> None:
    assert recognise_attention(take_subject(network, X, Y, gates)) is None


def positional() -> torch.nn.Module:
    network = SelfAttention(4)
    network.place = torch.linspace(-1, 1, 30).reshape(5, 6)
    return network


def trained_head() -> torch.nn.Module:
    network = SelfAttention()
    network.v.requires_grad_(True)
    return network


@pytest.mark.parametrize("make", [positional, trained_head, lambda: SelfAttention(scale=0.77)])
def test_attention_of_another_form_is_given_no_such_limit(make) -> None:
    torch.manual_seed(0)
    report = ib.diagnose(make(), DATA.X, Y)
    assert "attention" not in report.heading.title and "limit" not in report.objects


def test_norms_that_are_not_known_and_decay_name_no_program() -> None:
    torch.manual_seed(0)
    for options in ({"optimizer": "sign"}, {}):
        network = SelfAttention(4)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.1)
        report = ib.diagnose(network, DATA.X, Y, **({"optimizer": optimizer} | options))
        assert "attention" not in report.heading.title


def read_off(*, pair: bool = False, shift: float = 0.0):
    """Samples and attention as it was read off, of two tokens, of which the first is selected."""
    X = torch.tensor([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]], [[9.0, 9.0], [0.0, 0.0]]])
    values = torch.tensor([[0.5, 0.25], [-0.5, -0.3], [4.0, 4.0]])  # the last has no slope
    W = torch.tensor([[1.0, 0.5], [-0.5, 0.25]]).double()
    found = SimpleNamespace(
        values=values.double() + shift, queries=torch.tensor([[1.0, 0.0]] * 3).double(), W=W,
        pair=pair, in_words="softmax attention", error=1e-9,
    )  # fmt: skip
    y = torch.tensor([1.0, -1.0, 1.0]).double()
    weights = {"W": torch.tensor([3.0, 4.0])}
    return SimpleNamespace(data=SimpleNamespace(X=X.double(), y=y), weights=weights), found


@pytest.mark.parametrize(
    ("method", "norm"),
    [
        (Method(norms={"W": "l2"}), "l2"), (Method("sign", {"W": "linf"}, joint=False), "linf"),
        (Method(norms={"W": "l2"}, decay=0.1), None), (Method(norms={"V": "l2"}), None),
        (Method(norms=None, joint=False), None), (Method(norms={"V": "l2"}, decay=0.1), None),
    ],
)  # fmt: skip
def test_tokens_that_are_read_off_have_their_program_in_the_norm_of_the_steps(method, norm) -> None:
    subject, found = read_off()
    selected = select_tokens(subject, found, method)
    if norm is None:
        assert selected is None
        return
    theory, (verdict, limit, comparison) = selected
    # Of both sequences with a slope the first token less the second, (2, -1) and (1, 0), is asked
    # for a product of 1 with W (1, 0)': for any norm of the first column alone.
    w = cp.Variable(2)
    of = {"l2": cp.norm2, "linf": cp.norm_inf}[norm]
    program = cp.Problem(cp.Minimize(of(w)), [2 * w[0] - w[1] >= 1, w[0] >= 1])
    least = program.solve(solver="CLARABEL")
    answer, state = limit.things["limit"], comparison.things["comparison"]
    assert answer.objective == pytest.approx(least, rel=1e-5) and answer.tokens.tolist() == [0, 0]
    assert answer.gap <= 1e-5
    # W (1, 0)' is (1, -1/2): products 2.5 and 1, of which the least counts.
    W = found.W.numpy()
    size = np.linalg.norm(W) if norm == "l2" else np.abs(W).max()
    assert state.smallest_margin == pytest.approx(1.0)
    assert state.margin_ratio == pytest.approx(least / size, rel=1e-5)
    assert state.weight_norm == pytest.approx(5.0)
    assert theory.says == "limit" and theory.theorem.endswith(f"in the {norm} norm of W")
    (evidence,) = verdict.evidence
    assert evidence.near == {"margin_ratio": state.margin_ratio} and evidence.theory == "limit"
    holds = {one.name: one.holds for one in limit.assumptions}
    assert holds["fixed value head"] is True and "descent on K and Q" not in holds
    assert [one.holds for one in limit.assumptions[:3]] == [True, True, True]


def test_what_selects_no_token_above_another_has_no_program() -> None:
    subject, found = read_off(pair=True)
    theory, (_, limit, _) = select_tokens(subject, found, Method())
    assert limit.things["limit"].norm == "nuclear" and theory.theorem.endswith("norm of K Q'")
    assert "descent on K and Q" in {one.name for one in limit.assumptions}
    assert select_tokens(subject, found, Method("sign", {"W": "linf"}, joint=False)) is None
    found.W = -found.W  # the lower tokens of both
    assert select_tokens(subject, found, Method()) is None
    found.values = torch.ones(3, 2).double()  # no sequence has a slope
    assert select_tokens(subject, found, Method()) is None
    subject, found = read_off()
    # Tokens that are the same are not told apart, whatever W is.
    subject.data.X[0, 1] = subject.data.X[0, 0]
    theory, (verdict, limit, _) = select_tokens(subject, found, Method(norms={"W": "l2"}))
    assert limit.assumptions[2].holds is False and theory.says == "none"
    assert verdict.evidence[0].theory == "none"
