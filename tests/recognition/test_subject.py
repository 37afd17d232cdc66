"""Scores of a module, their gradients and their weights, beside those on paper."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from implicit_bias.networks.recognition import (
    Subject,
    measure_homogeneity,
    misfit,
    take_subject,
)
from tests.own_modules import OfTwo, OwnGLN, drawn

N = 6
RNG = np.random.default_rng(0)
X = torch.tensor(RNG.normal(size=(N, 3)))
Y = np.where(np.arange(N) % 2, 1.0, -1.0)
OUT = torch.tensor([1.0, -2.0], dtype=torch.float64)


class Known(nn.Module):
    """``s <w, x> + <(1, -2), M x>``, and a parameter that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.s, self.w, self.M, self.still = drawn(), drawn(3), drawn(2, 3, seed=1), drawn(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.s * (x @ self.w) + (x @ self.M.T) @ OUT.to(x)


def known() -> tuple[Subject, dict[str, Tensor], dict[str, Tensor]]:
    """Return a subject, its weights, and the gradient of each of its scores."""
    subject = take_subject(Known(), X, Y)
    w = subject.weights
    rows = {
        "s": X @ w["w"], "w": w["s"] * X, "M": OUT[:, None] * X[:, None], "still": X.new_zeros(N, 2)
    }  # fmt: skip
    return subject, w, rows


def test_gradients_of_scores_are_those_on_paper() -> None:
    subject, w, rows = known()
    scores = w["s"] * (X @ w["w"]) + X @ w["M"].T @ OUT
    torch.testing.assert_close(subject.scores({}), scores)
    for name, found in subject.gradients(w).items():
        torch.testing.assert_close(found, rows[name])
    assert set(subject.gradients(w, ("w",))) == {"w"}
    c, direction = X[:, 0], subject.drawn(3)
    total, gradient = subject.gradient(w, c)
    assert total == pytest.approx(float(c @ scores))
    for name, own in rows.items():
        torch.testing.assert_close(gradient[name], torch.tensordot(c, own, 1))
    along = sum(own.reshape(N, -1) @ direction[name].flatten() for name, own in rows.items())
    torch.testing.assert_close(subject.along(rows, direction), along)
    torch.testing.assert_close(subject.slopes(w, direction), along)


def test_gradients_of_many_samples_and_at_many_weights_are_the_same_at_once() -> None:
    subject, w, rows = known()
    for name, found in subject.jacobian(w, tuple(w)).items():
        torch.testing.assert_close(found, rows[name])
    assert set(subject.jacobian(w, ("w",))) == {"w"}
    c, stacked = X[:, 0], {name: torch.stack([p, 2 * p]) for name, p in w.items()}
    totals, gradients = subject.gradient_at_each(stacked, c)
    for k in range(2):
        total, gradient = subject.gradient({name: p[k] for name, p in stacked.items()}, c)
        assert float(totals[k]) == pytest.approx(total)
        for name, own in gradient.items():
            torch.testing.assert_close(gradients[name][k], own)


@pytest.mark.parametrize(
    ("of", "least", "most"),
    [
        (lambda z, w, b: b * z**3, 0, 1e-7),
        (lambda z, w, b: 0 * b * z, 0, 0),
        (lambda z, w, b: 1e8 + 1e-3 * b * z, 0, 1e-3),  # of differences rounding is left
        (lambda z, w, b: 2 * z - z.detach() + 0 * b, 0.4, 0.6),  # twice the gradient
        (lambda z, w, b: 2 * z - z.detach() + 0 * b + 1e4, 0.01, 0.6),
    ],
)
def test_errors_of_gradients_are_told_from_rounding(of, least, most) -> None:
    assert least <= take_subject(OfTwo(3, of), X, Y).gradient_error() <= most


def test_margins_of_gradients_are_gradients_of_margins() -> None:
    subject, _, rows = known()
    torch.testing.assert_close(subject.margins_of(rows["w"]), torch.tensor(Y)[:, None] * rows["w"])
    torch.testing.assert_close(
        subject.margins_of(rows["M"]), torch.tensor(Y)[:, None, None] * rows["M"]
    )


def test_what_differs_by_a_thousandth_is_not_the_same() -> None:
    subject = take_subject(OfTwo(3, lambda z, w, b: b * z + 1e-3 * b * z.sin()), X, Y)
    found = measure_homogeneity(subject)
    assert found.degree is None and 1e-4 < found.error < 1e-1


def test_weights_can_be_left_out_scaled_and_replaced() -> None:
    subject, w, _ = known()
    assert subject.without_gradient() == ("still",)
    frozen = subject.frozen(("still", "M"))
    assert list(frozen.weights) == ["s", "w"] and frozen.n_weights == 4
    assert list(frozen.frozen(("w",)).weights) == ["s"]
    scales = {"s": 2.0, "w": 0.5, "M": 4.0, "still": 1.0}
    over = subject.over(scales)
    torch.testing.assert_close(over.scores({}), subject.scores({}))
    for name, p in over.weights.items():
        torch.testing.assert_close(p, w[name] / scales[name])
    torch.testing.assert_close(over.scores({"w": w["w"]}), subject.scores({"w": 0.5 * w["w"]}))
    other = Subject(subject.at({"w": 3 * w["w"]}), subject.data)
    torch.testing.assert_close(other.scores({}), subject.scores({"w": 3 * w["w"]}))
    torch.testing.assert_close(subject.weights["w"], Known().w.detach())


def test_scaled_weights_behind_gates_give_the_same_scores() -> None:
    contexts = np.arange(2 * N).reshape(N, 2) % 3
    subject = take_subject(OwnGLN(3, 2, 3), X, Y, contexts)
    over = subject.over({"readout": 3.0, "weight": 0.25})
    torch.testing.assert_close(over.scores({}), subject.scores({}))
    rows = subject.jacobian(subject.weights, ("readout",))["readout"]
    w = subject.weights["weight"]
    expected = torch.einsum("nhd,nd->nh", w[torch.arange(2), torch.tensor(contexts)], X)
    torch.testing.assert_close(rows, expected)


def test_few_samples_are_evenly_chosen_and_inputs_of_more_axes_are_rows() -> None:
    subject = known()[0]
    torch.testing.assert_close(subject.few(3).data.X, X[[0, 2, 5]])
    assert subject.few(N) is subject
    images = X.reshape(N, 1, 3, 1)
    torch.testing.assert_close(subject.on(images, None).inputs, X)


def test_random_weights_have_the_sizes_of_the_given_ones_or_of_the_largest() -> None:
    def drawn_at(**sizes: float) -> dict[str, Tensor]:
        network = Known()
        with torch.no_grad():
            for name, p in network.named_parameters():
                p.fill_(sizes.get(name, 1.0))
        return take_subject(network, X, Y).drawn(0)

    ones, sized = drawn_at(), drawn_at(w=-3.0, M=0.0)
    torch.testing.assert_close(sized["w"], 3 * ones["w"])
    torch.testing.assert_close(sized["M"], 3 * ones["M"])
    zeros = drawn_at(s=0.0, w=0.0, M=0.0, still=0.0)
    assert all(torch.equal(zeros[name], p) for name, p in ones.items())


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        ([4.0, -2.0], [4.0, -2.2], 0.1),
        ([4.0, -2.0], [5.0, -2.0], 0.25),
        ([1.0, 0.0], [1.0, 1e-7], 0.1),  # beside the largest a millionth is the scale
        ([1e-3, 0.0], [1e-3, 1e-10], 0.1),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 0.0], [0.0, 1e-9], np.inf),
        ([1.0, 1.0], [1.0, np.nan], np.nan),
    ],
)
def test_a_misfit_is_relative_to_each_score_and_a_little_of_the_largest(
    expected, got, found
) -> None:
    measured = misfit(torch.tensor(expected), torch.tensor(got))
    assert measured == pytest.approx(found, rel=1e-5, nan_ok=True)
