"""The loss of attention in logarithms, and networks that descend it."""

import mpmath
import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.training import log_mean_loss_gradient
from tests.long import some_of

DATA = ib.datasets.make_tokens(60, 8, 12)


def exact(logits: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The gradient of the mean loss, over the largest of its entries, in 400 digits."""
    with mpmath.workdps(400):
        rows = []
        for a, gamma in zip(logits, scores, strict=True):
            e = [mpmath.exp(one) for one in a]
            p = [one / mpmath.fsum(e) for one in e]
            f = mpmath.fsum(x * g for x, g in zip(p, gamma, strict=True))
            rows.append([
                -mpmath.exp(-f) * x * (g - f) for x, g in zip(p, gamma, strict=True)
            ])  # fmt: skip
        largest = max(abs(one) for row in rows for one in row)
        return np.array([[float(one / largest) for one in row] for row in rows])


@pytest.mark.parametrize("size", [1, 40, 300])
def test_its_gradient_is_exact_where_softmax_is_one(size) -> None:
    rng = np.random.default_rng(0)
    logits, scores = rng.normal(size=(5, 4)), rng.uniform(-1, 1, size=(5, 4))
    found = log_mean_loss_gradient(
        torch.tensor(size * logits), torch.tensor(scores), "attention"
    ).numpy()
    np.testing.assert_allclose(
        found / np.abs(found).max(), exact(size * logits, scores), atol=1e-12
    )
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12 * np.abs(found).max())


def trained(scores: np.ndarray, trainer: str, width: int | None, steps: int) -> tuple[float, ...]:
    """Least norm over that of the network, and the least margin of a better token."""
    start = 1e-3 if width is None else 0.1
    network = ib.networks.Attention(12, width=width, init_scale=start)
    settings = ib.TrainingSettings(trainer=trainer, loss="attention", schedule=((steps, None),),
                                   n_checkpoints=2)  # fmt: skip
    trajectory = ib.train(network, DATA.X, scores, DATA.queries, settings=settings)
    X, queries = torch.tensor(DATA.X), torch.tensor(DATA.queries)
    tokens = network(X, queries).argmax(-1).numpy()
    norm = {"sign": "linf", "spectral": "spectral"}.get(trainer, "nuclear" if width else "l2")
    limit = ib.limits.solve_token_svm(DATA.X, DATA.queries, scores, tokens, norm=norm)
    assert np.isfinite(trajectory.log_loss).all() and trajectory.log_loss[-1] < -20
    W = network.zeta().detach().numpy()
    proved = limit.certify(DATA.X, DATA.queries, scores, W=W)
    return limit.objective / proved.objective, limit.better_margin


@pytest.mark.parametrize(("trainer", "width", "steps", "reached"), some_of([
    ("normalised", None, 700, 0.98), ("sign", None, 400, 0.93), ("spectral", None, 400, 0.94),
    ("normalised", 12, 400, 0.92),
], one_in=3))  # fmt: skip
def test_training_reaches_the_program_of_the_tokens_that_it_selects(
    trainer, width, steps, reached
) -> None:
    ratio, better = trained(DATA.scores, trainer, width, steps)
    assert reached < ratio <= 1 + 1e-6 and better > 1


@pytest.mark.long
def test_training_does_not_go_to_tokens_that_are_not_self_consistent() -> None:
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 3))
    scores = rng.uniform(-1, 0.5, (4, 5))
    scores[np.arange(4), rng.integers(0, 5, 4)] = 1.0
    ends = {}
    for seed in (0, 5):
        network = ib.networks.Attention.from_weights(
            np.random.default_rng(seed).normal(size=(3, 3))
        )
        settings = ib.TrainingSettings(trainer="normalised", loss="attention",
                                       schedule=((1000, None),), n_checkpoints=2)  # fmt: skip
        ib.train(network, X, scores, z, settings=settings)
        tokens = network(torch.tensor(X), torch.tensor(z)).argmax(-1).tolist()
        limit = ib.limits.solve_token_svm(X, z, scores, tokens)
        W = network.zeta().detach().numpy()
        cosine = (W * limit.zeta).sum() / np.linalg.norm(W) / np.linalg.norm(limit.zeta)
        ends[tuple(tokens)] = limit.is_local, limit.better_margin, cosine
    assert ends.keys() == {(4, 0, 3, 1), (4, 0, 3, 2)}
    local, better, cosine = ends[4, 0, 3, 1]
    assert local and better > 1 and cosine > 0.999
    local, better, cosine = ends[4, 0, 3, 2]
    assert not local and better == pytest.approx(0.963, abs=1e-3) and cosine < 0.7


def test_steps_of_plain_descent_end_where_softmax_is_one() -> None:
    network = ib.networks.Attention(12, init_scale=1e-3)
    settings = ib.TrainingSettings(loss="attention", schedule=((400, 100.0),), batch_size=0)
    trajectory = ib.train(network, DATA.X, DATA.scores, DATA.queries, settings=settings)
    assert trajectory.smallest_margin[-1] < 40


@pytest.mark.parametrize(("wrong", "message"), [
    (np.ones((60, 8)), "`y` must .* not all the same in a row"),
    (np.ones(60), r"`y` must have shape \(60, K\)"),
])  # fmt: skip
def test_targets_must_be_scores_of_tokens(wrong, message) -> None:
    settings = ib.TrainingSettings(trainer="normalised", loss="attention")
    with pytest.raises(ValueError, match=message):
        ib.train(ib.networks.Attention(12), DATA.X, wrong, DATA.queries, settings=settings)


def test_networks_side_by_side_train_as_each_by_itself() -> None:
    networks = [ib.networks.Attention(12, init_scale=0.3, random_state=k) for k in (0, 1)]
    settings = ib.TrainingSettings(trainer="normalised", loss="attention", schedule=((20, None),))
    both = ib.train_many(networks, DATA.X, DATA.scores, DATA.queries, settings=settings)
    for k, found in enumerate(both):
        alone = ib.networks.Attention(12, init_scale=0.3, random_state=k)
        one = ib.train(alone, DATA.X, DATA.scores, DATA.queries, settings=settings)
        np.testing.assert_allclose(found.log_loss, one.log_loss, rtol=1e-9)
