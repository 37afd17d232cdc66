"""Losses: exact values from 500-digit decimals, gradients from identities and from autograd."""

import decimal
import math

import numpy as np
import pytest
import torch

from implicit_bias.training import (
    OBJECTIVES,
    get_logarithm,
    get_loss,
    log_mean_loss,
    log_mean_loss_gradient,
    mean_loss_gradient,
)

KINDS = ["exponential", "logistic"]  # of margins
ONE = torch.ones(())
MARGINS = [-1e6, -800.0, -40.0, -1.0, 0.0, 1e-8, 3.0, 17.0, 35.9, 36.1, 60.0, 120.0, 900.0]


def exact_log_logistic(margin: float) -> float:
    with decimal.localcontext() as context:
        context.prec = 500
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        return float((1 + (-decimal.Decimal(margin)).exp()).ln().ln())


@pytest.mark.parametrize("margin", MARGINS)
def test_log_logistic_loss_is_exact_to_rounding_on_both_sides(margin: float) -> None:
    value = log_mean_loss(torch.tensor([margin], dtype=torch.float64))
    assert float(value) == pytest.approx(exact_log_logistic(margin), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("margin", MARGINS)
def test_log_logistic_loss_is_exact_to_float32_rounding(margin: float) -> None:
    value = log_mean_loss(torch.tensor([margin], dtype=torch.float32))
    exact = exact_log_logistic(float(np.float32(margin)))
    assert float(value) == pytest.approx(exact, rel=3e-7, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_million_of_margin_gives_minus_a_million_of_log_loss(
    kind: str, dtype: torch.dtype
) -> None:
    margins = torch.full((8,), 1e6, dtype=dtype)
    assert float(log_mean_loss(margins, kind)) == -1e6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_at_huge_margins_is_the_softmax_of_negative_margins(
    kind: str, dtype: torch.dtype
) -> None:
    margins = torch.tensor([1e6, 1e6 + 1, 1e6 + 3, 2e6], dtype=dtype, requires_grad=True)
    (by_autograd,) = torch.autograd.grad(log_mean_loss(margins, kind), margins)
    weights = np.exp([0.0, -1.0, -3.0, -1e6])
    for gradient in (by_autograd, log_mean_loss_gradient(margins.detach(), ONE, kind)):
        np.testing.assert_allclose(gradient.numpy(), -weights / weights.sum(), rtol=1e-6)


def test_gradient_of_the_log_logistic_loss_at_hugely_wrong_margins_is_one_over_the_margin() -> None:
    # For m -> -inf, l(m) -> -m, so d log l / dm -> 1 / m.
    margins = torch.tensor([-1e6], dtype=torch.float64, requires_grad=True)
    (by_autograd,) = torch.autograd.grad(log_mean_loss(margins), margins)
    assert float(by_autograd) == pytest.approx(-1e-6, rel=1e-12)
    assert float(log_mean_loss_gradient(margins.detach(), ONE, "logistic")) == pytest.approx(
        -1e-6, rel=1e-12
    )


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_closed_form_gradients_equal_autograd(kind: str) -> None:
    scores = torch.linspace(-30, 60, 91, dtype=torch.float64, requires_grad=True)
    targets = torch.where(torch.arange(91) % 3 == 0, -1.0, 1.0)
    targets = targets.clamp(min=0.25) if kind == "cross-entropy" else targets
    if kind == "softmax":  # 13 samples of 7 classes
        targets = torch.softmax(0.1 * scores.detach().flip(0), 0).view(13, 7)
        targets = targets / targets.sum(1, keepdim=True)
        scores = (scores.detach() / 3).view(13, 7).requires_grad_()
    if kind == "attention":  # 13 sequences of 7 tokens
        targets = torch.sin(scores.detach()).view(13, 7)
        scores = (scores.detach() / 9).view(13, 7).requires_grad_()
    plain = OBJECTIVES[kind].value(scores, targets).mean()
    (expected,) = torch.autograd.grad(plain, scores)
    known = scores.detach()
    torch.testing.assert_close(
        mean_loss_gradient(known, targets, kind), expected, rtol=1e-12, atol=1e-17
    )
    if kind in KINDS:
        (expected,) = torch.autograd.grad(log_mean_loss(targets * scores, kind), scores)
        found = log_mean_loss_gradient(known, targets, kind)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        ("logistic", lambda y, f: math.log1p(math.exp(-y * f))),
        ("exponential", lambda y, f: math.exp(-y * f)),
        ("squared", lambda y, f: (y - f) ** 2 / 2),
    ],
)
def test_losses_are_the_textbook_formulas_and_their_logarithms_agree(kind, formula) -> None:
    scores, targets = [-3.0, -0.2, 0.0, 1.5, 9.0], [1.0, -1.0, 1.0, 1.0, -1.0]
    expected = [formula(y, f) for y, f in zip(targets, scores, strict=True)]
    f, y = torch.tensor([scores, targets], dtype=torch.float64)
    np.testing.assert_allclose(OBJECTIVES[kind].value(f, y), expected, rtol=1e-14)
    if kind in KINDS:
        log_mean = math.log(sum(expected) / len(expected))
        assert float(log_mean_loss(y * f, kind)) == pytest.approx(log_mean, rel=1e-13)


def test_unknown_loss_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"exponential.*logistic.*hinge"):
        get_loss("hinge")
    with pytest.raises(ValueError, match=r"one of margins, \['exponential', 'logistic'\], got 'sq"):
        get_logarithm("squared")


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_margins_without_samples_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`margins` must have shape \(\.\.\., n\)"):
        log_mean_loss(torch.zeros(shape))


@pytest.mark.parametrize("label", [0.0, 1e-9, 0.3, 0.5, 1.0])
def test_the_loss_of_soft_labels_is_the_divergence_to_all_its_digits(label: float) -> None:
    one = get_loss("cross-entropy")
    own = math.log(label) - math.log1p(-label) if 0 < label < 1 else 0.3
    for score in (-800.0, -3.0, own - 1e-6, own + 1e-6, own + 0.2, 40.0):
        with decimal.localcontext() as context:
            context.prec = 500
            # The soft label is the number that float64 holds.
            q = 1 / (1 + (-decimal.Decimal(score)).exp())
            pairs = [(decimal.Decimal(label), q), (1 - decimal.Decimal(label), 1 - q)]
            exact = float(sum(p * (p / r).ln() for p, r in pairs if p))
            slope = float(q - decimal.Decimal(label))
        pair = torch.tensor([score, label], dtype=torch.float64)
        # d^2 / (2 q (1 - q)), of which d is known to rounding.
        assert float(one.value(*pair)) == pytest.approx(exact, rel=1e-8, abs=1e-300)
        assert float(one.slope(*pair)) == pytest.approx(slope, rel=1e-9, abs=1e-16)
    assert float(one.value(torch.tensor(0.0), torch.tensor(0.5))) == 0.0


@pytest.mark.parametrize("labels", [(0.2, 0.3, 0.5), (0.0, 1e-9, 1.0), (1.0, 0.0, 0.0)])
def test_the_loss_of_k_soft_labels_is_the_divergence_to_all_its_digits(labels) -> None:
    one = get_loss("softmax")
    p = torch.tensor(labels, dtype=torch.float64)
    own = torch.log(p.clamp(min=1e-30))
    for move in (torch.tensor([0.0, 1e-7, -1e-6]), torch.tensor([5.0, -2.0, 0.3]),
                 torch.tensor([300.0, -300.0, 0.0])):  # fmt: skip
        scores = own + move.double()
        with decimal.localcontext() as context:
            context.prec = 500
            powers = [decimal.Decimal(float(s)).exp() for s in scores]
            shares = [power / sum(powers) for power in powers]
            pairs = [(decimal.Decimal(x), q) for x, q in zip(labels, shares, strict=True)]
            # Labels that float64 holds may have another sum than 1: that of d is taken away.
            exact = float(sum((x * (x / q).ln() if x else 0) + q - x for x, q in pairs))
        assert float(one.value(scores, p)) == pytest.approx(exact, rel=1e-8, abs=1e-24)


def test_the_loss_of_k_soft_labels_takes_rows_of_shares_alone() -> None:
    rows = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.5, 0.6], [-0.1, 1.1], [math.nan, 1.0]])
    assert get_loss("softmax").accepts(rows).tolist() == [True, True, False, False, False]


def test_the_loss_of_soft_labels_takes_shares_alone() -> None:
    accepts = get_loss("cross-entropy").accepts
    values = torch.tensor([0.0, 0.4, 1.0, -0.1, 1.1, math.nan])
    assert accepts(values).tolist() == [True, True, True, False, False, False]
