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
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    start = any_network.layers(2, 16, 1)
    torch.set_default_dtype(torch.float32)
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


def test_the_command_takes_the_steps_that_are_written_out(by_hand) -> None:
    # Sums in another order tip steps at kinks, by less than a percent from 95 on.
    run = any_network.RUNS["2-16-1"]
    earlier, weights = (found for *_, found in any_network.trained(run, [30.0, 95.0]))
    row = any_network.measured(run, weights, earlier)
    expected = kkt_level(network_of(by_hand[95.0]), *any_network.two_classes())
    assert row["residual"] == pytest.approx(expected.residual, rel=0.02)
    assert row["margin"] == pytest.approx(expected.smallest_margin, rel=0.02)


def test_kept_residuals_fall_and_those_of_one_side_stay() -> None:
    for name, table in kept_rows("any_network").groupby("network"):
        first, *_, last = table.sort_values("u").to_dict("records")
        assert last["residual"] < 0.7 * first["residual"], name
        assert last["increment"] < first["increment"], name
        assert last["residual"] < 0.25, name
        # Where a bias carries the scores, kinks of the layers below do not matter.
        assert (last["one_sided"] > 0.25) == (name != "2-10-10-1, seed 0"), name
        assert (table.ratio_bound <= table.ratio).all() and (table.ratio <= 1).all()
