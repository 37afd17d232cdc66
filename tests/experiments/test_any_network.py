"""Networks with biases, trained far: runs by hand, and the rows that are kept of longer ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments import any_network
from implicit_bias.dynamics import increment_residual
from implicit_bias.measures import kkt_level
from tests.experiments.test_tables_of_pages import rows as kept_rows

LEVELS = (9.5, 30.0, 95.0, 300.0)


@pytest.fixture(scope="module")
def by_hand() -> dict[float, dict[str, torch.Tensor]]:
    """The weights of 2-16-1 at levels of u, from gradients that are written out."""
    start = any_network.start(any_network.RUNS["2-16-1"])
    W, b, head, bias = (p.detach().numpy().copy() for p in start.parameters())
    a, c = head[0], float(bias[0])
    X, y = any_network.two_classes()
    found: dict[float, dict[str, torch.Tensor]] = {}
    left = list(LEVELS)
    while left:
        z = X @ W.T + b
        h = np.maximum(z, 0)
        m = y * (h @ a + c)
        # log of log(1 + exp(-m)), which is -m to rounding beyond 36.
        short = np.minimum(m, 36.0)
        each = np.log(np.log1p(np.exp(-short))) - (m - short)
        top = each.max()
        p = np.exp(each - top)
        u = -(top + np.log(p.mean()))
        if u >= left[0]:
            found[left.pop(0)] = {
                name: torch.tensor(part) for name, part in
                (("0.weight", W.copy()), ("0.bias", b.copy()), ("2.weight", a[None].copy()),
                 ("2.bias", np.array([c])))
            }  # fmt: skip
        r = y * p / p.sum() / (1 + np.exp(short)) / np.log1p(np.exp(-short))
        d = r[:, None] * a * (z > 0)
        gradients = d.T @ X, d.sum(0), h.T @ r, r.sum()
        length = np.sqrt(sum(np.sum(g**2) for g in gradients))
        size = np.sqrt((W**2).sum() + b @ b + a @ a + c * c)
        step = min(0.01 * size, 0.3 / length) / length
        W, b, a = W + step * gradients[0], b + step * gradients[1], a + step * gradients[2]
        c += step * gradients[3]
    return found


def network_of(weights: dict[str, torch.Tensor], *, bias: bool = True) -> torch.nn.Module:
    network = any_network.layers(2, 16, 1).double()
    network.load_state_dict(weights)
    if not bias:
        network[2].bias.data.zero_()
        network[2].bias.requires_grad_(False)
    return network


# Level, share of the last bias, residual of the network without it, its margin, increment: of
# another implementation, whose last digits depend on the order of sums.
@pytest.mark.parametrize(
    "level, share, residual, margin, increment",
    [(30.0, 0.031, 0.188, 0.983, 0.103), (300.0, 0.0125, 0.047, 0.998, 0.041)],
)
def test_a_network_with_biases_nears_the_kkt_point_of_the_one_without_the_last(
    by_hand, level, share, residual, margin, increment
) -> None:
    X, y = any_network.two_classes()
    weights, before = by_hand[level], by_hand[LEVELS[LEVELS.index(level) - 1]]
    network, rest = network_of(weights), network_of(weights, bias=False)
    size = np.sqrt(sum(float(w.square().sum()) for w in weights.values()))
    assert float(weights["2.bias"].norm()) / size == pytest.approx(share, abs=5e-4)
    found = kkt_level(rest, X, y)
    assert found.residual == pytest.approx(residual, abs=1.5e-3)
    assert found.residual < found.one_sided / 4
    full = kkt_level(network, X, y)
    # Steps go to and fro between samples on the margin, and this ratio with them.
    assert found.smallest_margin / full.smallest_margin == pytest.approx(margin, abs=0.6 / level)
    assert increment_residual(before, network) == pytest.approx(increment, abs=1.5e-3)
    assert full.ratio_bound <= full.ratio <= 1
    assert full.ratio_bound > {30.0: 0.98, 300.0: 0.998}[level]


@pytest.mark.long
def test_the_command_takes_the_steps_that_are_written_out(by_hand) -> None:
    # Sums in another order tip steps at kinks, by less than a percent from 95 on.
    run = any_network.RUNS["2-16-1"]
    earlier, weights = (found for *_, found in any_network.trained(run, [30.0, 95.0]))
    row = any_network.measured(run, weights, earlier)
    expected = kkt_level(network_of(by_hand[95.0]), *any_network.two_classes())
    assert row["residual"] == pytest.approx(expected.residual, rel=0.02)
    assert row["margin"] == pytest.approx(expected.smallest_margin, rel=0.02)


GELU = "GELU 2-16-1"
NAN = float("nan")
# Of another implementation of the same runs, level by level: some shares, the residual of f_H, its
# margin over that of the network, and the increment residual; NaN where it has none.
ELSEWHERE = {
    "2-16-1": (
        {"2.bias": (0.031, 0.0125, 0.0048)},
        (0.188, 0.047, 0.029), (0.983, 0.998, 0.9995), (0.103, 0.041, 0.024)),
    "2-10-10-1": (
        {"2.bias": (0.111, 0.074, 0.045), "4.bias": (0.028, 0.011, 0.005)},
        (NAN, 0.81, 0.75), (0.676, 0.920, 0.980), (0.200, 0.103, 0.064)),
    "residual": (
        {"above.bias": (0.045, 0.031, 0.018), "head.bias": (0.039, 0.019, 0.009)},
        (NAN, 0.99, 0.056), (0.768, 0.935, 0.983), (NAN, NAN, NAN)),
    "softmax": (
        {"2.bias": (0.096, 0.044, 0.011)},
        (NAN, 0.060, 0.043), (0.904, 0.984, 0.9993), (NAN, NAN, NAN)),
    "batch norm": (
        {"0.weight": (0.101, 0.039), "3.bias": (0.018, 0.001)},
        (0.166, 0.069), (0.985, 1.0), (NAN, NAN)),
    "2-10-10-1, seed 0": (
        {"4.bias": (NAN, 0.976, 0.9989), "2.bias": (NAN, 0.025, 0.0035)},
        (NAN, NAN, NAN), (NAN, 0, 0), (NAN, 0.120, NAN)),
    "2-4-4-1, seed 0": (
        {"2.bias": (NAN, 0.456, 0.555), "4.weight": (NAN, 0.634, 0.660),
         "0.weight": (NAN, 0.384, 0.311)},
        (NAN, NAN, NAN), (NAN, 0, 0), (NAN, NAN, NAN)),
    GELU: ({}, (NAN, NAN, NAN), (0.873, 0.942, 0.981), (NAN, NAN, NAN)),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_kept_rows_have_the_digits_of_another_implementation_of_the_runs(name) -> None:
    table = kept_rows("any_network").query("network == @name").sort_values("u")
    shares, residuals, margins, increments = ELSEWHERE[name]
    found = [dict(zip(*[iter(row.split())] * 2, strict=True)) for row in table.shares]
    for tensor, known in shares.items():
        own = [float(row[tensor]) for row in found]
        np.testing.assert_allclose(own, np.where(np.isnan(known), own, known), atol=1.2e-3)
    # Samples on the margin take turns from step to step: what moves with them, by as much as .07 at
    # u = 30, lies within the range of the next hundred steps.
    between = zip(margins, table.h_margin_least, table.h_margin_most, strict=True)
    for known, least, most in between:
        assert np.isnan(known) or least - 5e-4 <= known <= most + 5e-4
    between = zip(residuals, table.h_residual_least, table.h_residual, strict=True)
    for known, least, most in between:
        assert np.isnan(known) or least - 5e-3 <= known <= most + 5e-3
    known = np.where(np.isnan(increments), table.increment, increments)
    np.testing.assert_allclose(table.increment, known, atol=6e-4)


def test_what_is_left_of_gelu_comes_to_its_margin_more_slowly_than_biases_vanish() -> None:
    table = kept_rows("any_network").set_index("network")
    units = table.loc[GELU]
    assert (units.h_margin.to_numpy() < table.loc["2-16-1"].h_margin.to_numpy() - 0.01).all()
    assert units.residual.to_numpy() == pytest.approx(units.one_sided.to_numpy())  # no kinks


def test_kept_residuals_fall_and_those_of_one_side_stay() -> None:
    for name, table in kept_rows("any_network").groupby("network"):
        first, *_, last = table.sort_values("u").to_dict("records")
        assert last["residual"] < 0.7 * first["residual"], name
        assert last["increment"] < first["increment"], name
        assert last["residual"] < 0.25, name
        # Where a bias carries the scores, kinks of the layers below do not matter.
        assert (last["one_sided"] > 0.25) == (name not in ("2-10-10-1, seed 0", GELU)), name
        assert (table.ratio_bound <= table.ratio).all() and (table.ratio <= 1).all()
