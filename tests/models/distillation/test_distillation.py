"""Linear distillation: closed forms beside integrated flows, bounds beside simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

import implicit_bias as ib
from implicit_bias import distillation
from implicit_bias.models.distillation import (
    CLASS_LOSSES,
    LOSSES,
    angle,
    error_angle,
    largest_start,
    mean_loss,
    polynomial_risk_bound,
    polynomial_tail,
)
from tests.commands import home
from tests.long import some_of

Floats = NDArray[np.float64]
RNG = np.random.default_rng(3)
N, D = 4, 7
# Singular values between 2 and 3: flows are at rest after a few hundred units of time.
X = np.linalg.qr(RNG.normal(size=(D, D)))[0][:N] * np.linspace(2, 3, N)[:, None]
TEACHER = RNG.normal(size=D)
SLOPES = {"cross-entropy": lambda s, t: expit(s) - expit(t), "squared": lambda s, t: s - t}


def starting(depth: int, size: float = 0.1, loss: str = "cross-entropy") -> Floats:
    """A start of this length below the loss of zero weights."""
    w = np.random.default_rng(depth).normal(size=D)
    w *= size / np.linalg.norm(w)
    return w if mean_loss(X, w, TEACHER, loss) < mean_loss(X, 0 * w, TEACHER, loss) else -w


def flow_of_layers(w0: Floats, depth: int, loss: str, until: float) -> Floats:
    """End-to-end weights after gradient flow of all entries of balanced layers, width 3."""
    size, units = np.linalg.norm(w0) ** (1 / depth), np.full(3, 3**-0.5)
    layers = [np.outer(units, w0 / np.linalg.norm(w0) * size)]
    layers += [size * np.outer(units, units) for _ in range(depth - 2)]
    layers += [size * units[None]]
    shapes = [W.shape for W in layers]
    cuts = np.cumsum([W.size for W in layers])[:-1]

    def unpack(flat: Floats) -> list[Floats]:
        return [p.reshape(s) for p, s in zip(np.split(flat, cuts), shapes, strict=True)]

    def product(matrices: list[Floats], n: int) -> Floats:
        whole = np.eye(n)
        for W in matrices:
            whole = W @ whole
        return whole

    def velocity(_: float, flat: Floats) -> Floats:
        W = unpack(flat)
        w = product(W, D)[0]
        g = X.T @ SLOPES[loss](X @ w, X @ TEACHER) / N
        found = []
        for k in range(depth):
            below = product(W[:k], D)
            above = product(W[k + 1 :], len(W[k]))
            found.append(-np.outer(above[0], below @ g).ravel())
        return np.concatenate(found)

    start = np.concatenate([W.ravel() for W in layers])
    end = solve_ivp(velocity, (0, until), start, method="DOP853", rtol=1e-13, atol=1e-15)
    return product(unpack(end.y[:, -1]), D)[0]


@pytest.mark.parametrize("n", [N, D + 3])
def test_theorem_5_1_one_layer_ends_at_the_projection_and_keeps_what_no_sample_sees(n) -> None:
    rng = np.random.default_rng(0)
    inputs = X if n == N else rng.normal(size=(n, D))
    w0 = rng.normal(size=D)

    def velocity(_: float, w: Floats) -> Floats:
        return -inputs.T @ (expit(inputs @ w) - expit(inputs @ TEACHER)) / n

    end = solve_ivp(velocity, (0, 3000), w0, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    limit = distillation.distillation_limit(inputs, TEACHER, w0).require()
    np.testing.assert_allclose(limit.zeta, end, atol=1e-9)
    at_zero = distillation.distillation_limit(inputs, TEACHER).zeta
    onto = np.linalg.lstsq(inputs, inputs @ TEACHER)[0]
    np.testing.assert_allclose(at_zero, TEACHER if n > D else onto, atol=1e-12)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_theorem_5_2_the_limit_of_deep_students_is_exact(depth, loss) -> None:
    w0, until = starting(depth, loss=loss), 400.0 if loss == "cross-entropy" else 60.0
    limit = distillation.distillation_limit(X, TEACHER, w0, depth=depth, loss=loss).require()
    (end,) = distillation.distillation_flow(
        X, TEACHER, w0, [until], depth=depth, loss=loss, rtol=1e-13
    )
    np.testing.assert_allclose(limit.zeta, end, atol=1e-11)
    np.testing.assert_allclose(flow_of_layers(w0, depth, loss, until), end, atol=1e-10)
    assert 0.02 < limit.null_norm < limit.null_bound
    # What is printed as the limit of small starts is off by as much.
    assert np.linalg.norm(limit.projection - end) == pytest.approx(limit.null_norm, abs=1e-9)


def test_lemma_d_2_flow_of_d_22_is_that_of_the_layers_at_every_time() -> None:
    w0 = starting(3)
    path = distillation.distillation_flow(X, TEACHER, w0, [0.0, 3.0, 3.0, 9.0], depth=3)
    np.testing.assert_allclose(path[0], w0, atol=1e-15)
    for w, t in zip(path[1:], (3.0, 3.0, 9.0), strict=True):
        np.testing.assert_allclose(w, flow_of_layers(w0, 3, "cross-entropy", t), atol=1e-9)
    # (D.32) is an equality along the way.
    unseen = np.linalg.norm(path - path @ np.linalg.pinv(X) @ X, axis=1)
    sizes = np.linalg.norm(path, axis=1)
    np.testing.assert_allclose(unseen / unseen[0], (sizes / sizes[0]) ** (2 / 3), rtol=1e-8)


def random_student(
    seed: int, n: int, depth: int, loss: str, outside: float
) -> tuple[Floats, Floats, Floats]:
    """Samples (n, 7), a teacher and a start that leaves the span of the samples by `outside`.

    The start has length 0.001 and a loss below that of 0. Samples that span all inputs leave
    nothing outside.
    """
    rng = np.random.default_rng(seed)
    samples, teacher = rng.normal(size=(n, D)), rng.normal(size=D)
    start = rng.normal(size=n) @ samples
    start /= np.linalg.norm(start)
    if n < D:
        start += outside * np.linalg.svd(samples)[2][-1]
    start *= 1e-3 / np.linalg.norm(start)
    losses = [mean_loss(samples, w, teacher, loss) for w in (start, -start)]
    return samples, teacher, start if losses[0] < losses[1] else -start


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("depth", some_of([3, 1, 2], one_in=3))
@pytest.mark.parametrize(
    ("n", "outside"),
    [(D, 0.0), (D + 1, 0.0), (30, 0.0), (3, 0.0), (3, 1e-12), (3, 1e-9), (5, 1e-4), (5, 1.0)],
)
def test_the_flow_begins_at_its_start_and_follows_d_22_in_all_coordinates(
    n, outside, depth, loss
) -> None:
    for seed in range(4):
        samples, teacher, w0 = random_student(seed, n, depth, loss, outside)

        def velocity(_: float, w: Floats, samples: Floats = samples, t: Floats = teacher) -> Floats:
            g = samples.T @ SLOPES[loss](samples @ w, samples @ t) / len(samples)
            along = (depth - 1) * (g @ w) / (w @ w)
            return -(np.linalg.norm(w) ** (2 - 2 / depth)) * (g + along * w)

        times = [0.0, 1.0, 6.0]
        path = distillation.distillation_flow(samples, teacher, w0, times, depth=depth, loss=loss)
        np.testing.assert_allclose(path[0], w0, rtol=0, atol=1e-14 * np.linalg.norm(w0))
        own = solve_ivp(velocity, (0, 6), w0, "DOP853", times, rtol=1e-12, atol=1e-16).y.T
        np.testing.assert_allclose(path, own, atol=1e-9)
        # Flow and limit agree on which starts lie in the span: of these, the path stays there.
        limit = distillation.distillation_limit(
            samples, teacher, w0, depth=depth, loss=loss
        ).require()
        assert (limit.null_start == 0) == (n >= D or outside == 0)
        if limit.null_start == 0:
            seen = path @ np.linalg.pinv(samples) @ samples
            np.testing.assert_allclose(path, seen, rtol=0, atol=1e-13 * np.linalg.norm(path[-1]))


@pytest.mark.parametrize("loss", sorted(CLASS_LOSSES))
@pytest.mark.parametrize("n", [3, D, 30])
def test_the_flow_of_k_classes_begins_at_its_start(n, loss) -> None:
    rng = np.random.default_rng(n)
    samples, teacher, W0 = (rng.normal(size=shape) for shape in ((n, D), (3, D), (3, D)))
    path = distillation.distillation_flow(samples, teacher, W0, [0.0, 5.0], loss=loss)
    np.testing.assert_allclose(path[0], W0, rtol=0, atol=1e-14)
    # What no sample sees, and of a softmax the mean over classes, stays as it was.
    off = np.linalg.svd(samples)[2][n:]
    np.testing.assert_allclose(path[1] @ off.T, W0 @ off.T, atol=1e-13)
    if loss == "cross-entropy":
        np.testing.assert_allclose(path[1].mean(axis=0), W0.mean(axis=0), atol=1e-12)


def test_bound_d_40_meets_the_threshold_5_11_and_d_41_as_printed_does_not() -> None:
    what = float(np.linalg.norm(X.T @ np.linalg.pinv(X.T) @ TEACHER))
    for depth in (2, 3, 5):
        size = largest_start(0.3, what, depth)
        limit = distillation.distillation_limit(X, TEACHER, starting(depth, size), depth=depth)
        assert limit.null_bound == pytest.approx(0.3, rel=1e-12)
        assert limit.null_norm < 0.3
        share = (size / what) ** (2 / depth)
        printed = what ** (2 + 2 / depth) / (what ** (2 / depth) * (1 - share)) * what**2
        assert math.sqrt(printed) > 1


def test_a_start_above_the_loss_of_0_is_refused_since_the_flow_can_end_there() -> None:
    with pytest.raises(ValueError, match=r"\(5.12\).* begin at -w0, which does"):
        distillation.distillation_limit([[1.0]], [2.0], [-0.1], depth=2)
    # In one dimension w' = -2 |w| g: the flow cannot pass 0, where the formula has 2.
    end = solve_ivp(
        lambda _, w: -2 * np.abs(w) * (expit(w) - expit(2.0)), (0, 40), [-0.1],
        rtol=1e-10, atol=1e-25,
    ).y[0, -1]  # fmt: skip
    assert -1e-12 < end < 0
    assert distillation.distillation_limit([[1.0]], [2.0], [0.1], depth=2).zeta == pytest.approx(
        [2.0]
    )
    with pytest.raises(ValueError, match="begin shorter, or elsewhere"):
        distillation.distillation_limit([[1.0]], [0.0], [0.1], depth=2)
    with pytest.raises(ValueError, match="not below"):
        distillation.distillation_limit(X, TEACHER, depth=2)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_k_classes_end_at_the_centred_teacher_at_every_temperature(temperature) -> None:
    rng = np.random.default_rng(1)
    teacher, W0 = rng.normal(size=(3, D)), rng.normal(size=(3, D))
    teacher *= 0.5
    labels, W = softmax(X @ teacher.T / temperature, axis=1), W0.copy()
    for _ in range(12_000):  # steps that are as long in units of the temperature
        W -= temperature * (softmax(X @ W.T / temperature, axis=1) - labels).T @ X / N
    limit = distillation.distillation_limit(X, teacher, W0).require()
    np.testing.assert_allclose(limit.zeta, W, atol=1e-9)
    from_zero = distillation.distillation_limit(X, teacher).require()
    np.testing.assert_allclose(from_zero.zeta.sum(axis=0), 0, atol=1e-12)
    # The interpolant of the logits as they are, without their mean taken away, is another one.
    assert np.linalg.norm(teacher @ np.linalg.pinv(X) @ X - from_zero.zeta) > 0.5
    assert distillation.transfer_risk(teacher + 5.0, teacher, X) == 0.0
    with pytest.raises(ValueError, match="no closed form is known"):
        distillation.distillation_limit(X, teacher, W0, depth=2)


@pytest.mark.parametrize("loss", sorted(CLASS_LOSSES))
def test_the_flow_of_k_classes_is_that_of_the_gradient_and_ends_at_the_limit(loss) -> None:
    rng = np.random.default_rng(1)
    teacher, W0 = 0.5 * rng.normal(size=(3, D)), 0.3 * rng.normal(size=(3, D))

    def velocity(_: float, flat: Floats) -> Floats:
        s, t = X @ flat.reshape(3, D).T, X @ teacher.T
        slope = s - t if loss == "squared" else softmax(s, axis=1) - softmax(t, axis=1)
        return -(slope.T @ X).ravel() / N

    times = [2.0, 30.0]
    own = solve_ivp(velocity, (0, 30), W0.ravel(), "DOP853", times, rtol=1e-12, atol=1e-13).y.T
    path = distillation.distillation_flow(X, teacher, W0, [0.0, *times], loss=loss)
    np.testing.assert_allclose(path, [W0, *own.reshape(2, 3, D)], atol=1e-9)
    (end,) = distillation.distillation_flow(X, teacher, W0, [600.0], loss=loss)
    limit = distillation.distillation_limit(X, teacher, W0, loss=loss).require()
    np.testing.assert_allclose(limit.zeta, end, atol=1e-9)
    # The squared loss sees the mean over classes, which a softmax does not.
    seen = limit.zeta.mean(axis=0) - teacher.mean(axis=0)
    assert (np.linalg.norm(X @ seen) < 1e-9) == (loss == "squared")


@pytest.mark.parametrize("loss", sorted(CLASS_LOSSES))
def test_losses_of_k_classes_have_their_slopes_and_keep_tiny_differences(loss) -> None:
    one, h = CLASS_LOSSES[loss], 1e-5
    rng = np.random.default_rng(0)
    s, t = 4 * rng.normal(size=(2, 6, 3))
    s[0] = t[0]
    rises = [(one.value(s + h * e, t) - one.value(s - h * e, t)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(np.stack(rises, axis=1), one.slope(s, t), atol=1e-8)
    assert one.value(s, t)[0] == 0
    u = rng.normal(size=3)
    p = softmax(t[0])
    spread = u @ u if loss == "squared" else p @ u**2 - (p @ u) ** 2
    assert float(one.value(t[:1] + 1e-7 * u, t[:1])[0]) == pytest.approx(
        spread * 1e-14 / 2, rel=1e-6
    )
    if loss == "cross-entropy":
        direct = (softmax(t, axis=1) * np.log(softmax(t, axis=1) / softmax(s, axis=1))).sum(axis=1)
        np.testing.assert_allclose(one.value(s, t), direct, atol=1e-14)


def test_samples_that_repeat_or_depend_on_each_other_change_nothing() -> None:
    w0 = starting(3)
    once = distillation.distillation_limit(X, TEACHER, w0, depth=3)
    again = distillation.distillation_limit(
        np.concatenate([X, X, X[:1] - X[1:2], np.zeros((1, D))]), TEACHER, w0, depth=3
    )
    np.testing.assert_allclose(again.require().zeta, once.zeta, atol=1e-12)
    assert again.rank == once.rank == N
    # A start in the span of the samples leaves nothing to grow.
    seen = w0 @ np.linalg.pinv(X) @ X
    inside = distillation.distillation_limit(X, TEACHER, seen, depth=3).require()
    assert inside.null_norm < 1e-14
    # A teacher that no sample sees: one layer stays where it begins to be blind.
    blind = TEACHER - TEACHER @ np.linalg.pinv(X) @ X
    assert np.linalg.norm(distillation.distillation_limit(X, blind).zeta) < 1e-14
    assert math.isnan(distillation.distillation_limit(X, np.zeros(D)).angle)


def test_a_limit_that_misses_the_teacher_is_not_solved() -> None:
    limit = distillation.distillation_limit(X, TEACHER, rcond=0.9)
    assert limit.status.name == "INACCURATE" and limit.certificate.interpolation > 0.01
    with pytest.raises(ib.NotCertified, match=r"INACCURATE.*interpolation"):
        limit.require()
    assert not limit.certificate.proves_limit(math.nan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X * np.nan}, "`X` has entries that are NaN"),
        ({"teacher": TEACHER[:3]}, r"`teacher` must have shape \(7,\)"),
        ({"w0": np.zeros(3)}, r"`w0` must have shape \(7,\)"),
        ({"depth": 0}, "`depth` must be at least 1"),
        ({"loss": "hinge"}, "`loss` must be one of"),
        ({"tol": 1.0}, "`tol` must lie"),
        ({"rcond": 1.0}, "`rcond` must lie"),
    ],
)
def test_what_has_no_limit_is_refused_by_name(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        distillation.distillation_limit(**{"X": X, "teacher": TEACHER} | change)


def test_a_flow_that_takes_too_long_says_so_and_how_far_it_came(monkeypatch) -> None:
    flow = distillation.distillation_flow
    w0 = starting(2)
    with pytest.raises(ValueError, match=r"`depth` must be at most 10000 .* got 1000000000000"):
        flow(X, TEACHER, w0, [1.0], depth=10**12)
    monkeypatch.setattr(home(flow), "MOST_EVALUATIONS", 2_000)
    with pytest.raises(RuntimeError, match=r"come to the time \d.* of 1e\+12 after 2000 eval"):
        flow(X, TEACHER, w0, [1e12], depth=2)
    assert np.isfinite(flow(X, TEACHER, w0, [1.0], depth=2)).all()


def test_a_student_of_any_number_of_layers_has_its_limit() -> None:
    # Of a start with nearly all of its length where the samples do not see; as the layers become
    # many, u = (q / w)^2 (1 + u) in units of the seen part of the limit.
    w0, p = np.array([0.5, 10.0]), 2.0
    u = (w0[1] / np.hypot(*w0)) ** 2
    for depth in (10**6, 10**12):
        limit = distillation.distillation_limit([[1.0, 0.0]], [p, 0.0], w0, depth=depth)
        assert limit.status.name == "SOLVED"
        assert limit.null_norm == pytest.approx(p * math.sqrt(u / (1 - u)), rel=1e-2)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_theorem_d_1_losses_slopes_and_the_hessian_with_its_1_over_n(loss) -> None:
    scores, teacher = np.array([-40.0, -1.5, 0.0, 0.4, 30.0]), np.array([-38.0, 2, 0, 0.4, -5])
    one, h = LOSSES[loss], 1e-5
    np.testing.assert_allclose(one.slope(scores, teacher), SLOPES[loss](scores, teacher))
    rise = (one.value(scores + h, teacher) - one.value(scores - h, teacher)) / (2 * h)
    np.testing.assert_allclose(rise, one.slope(scores, teacher), atol=1e-7)
    assert (one.value(teacher, teacher) == 0).all()
    # Tiny differences keep their digits: KL = p (1 - p) u^2 / 2 to first order.
    tiny = float(one.value(np.array([0.4 + 1e-7]), np.array([0.4]))[0])
    weight = expit(0.4) * expit(-0.4) if loss == "cross-entropy" else 1.0
    assert tiny == pytest.approx(weight * 1e-14 / 2, rel=1e-6)
    if loss == "cross-entropy":
        w, v = TEACHER + 0.3, np.random.default_rng(0).normal(size=D)
        value = [mean_loss(X, w + a * v, TEACHER, loss) for a in (-1e-4, 0, 1e-4)]
        s = X @ w
        hessian = (X.T * (expit(s) * expit(-s))) @ X / N
        assert (value[0] - 2 * value[1] + value[2]) / 1e-8 == pytest.approx(
            v @ hessian @ v, rel=1e-4
        )


# Soft labels that are far from 0 and 1: those near bound no score that has the right side.
UNSURE = TEACHER / 8


def _gradient(w: Floats) -> Floats:
    return X.T @ (expit(X @ w) - expit(X @ UNSURE)) / N


def test_theorem_d_2_minimisers_are_those_that_give_the_teachers_scores() -> None:
    unseen = np.random.default_rng(0).normal(size=D)
    unseen -= unseen @ np.linalg.pinv(X) @ X
    assert mean_loss(X, TEACHER + unseen, TEACHER, "cross-entropy") < 1e-30
    nearby = TEACHER + 1e-3 * X[0]
    assert mean_loss(X, nearby, TEACHER, "cross-entropy") > 1e-8


def test_theorem_d_3_and_corollary_d_1_hold_with_the_constant_of_the_level() -> None:
    rng = np.random.default_rng(0)
    level = mean_loss(X, 0 * UNSURE, UNSURE, "cross-entropy")
    mu, tried, least = distillation.restricted_convexity(X, UNSURE, level), 0, math.inf
    onto = np.linalg.pinv(X) @ X
    while tried < 200:
        w, v = UNSURE + 0.2 * rng.normal(size=(2, D))
        losses = [mean_loss(X, u, UNSURE, "cross-entropy") for u in (w, v)]
        if max(losses) > level:
            continue
        tried += 1
        g, seen = _gradient(w), (v - w) @ onto
        curved = losses[1] - losses[0] - g @ (v - w)
        assert curved >= mu / 2 * seen @ seen
        assert g @ g >= 2 * mu * losses[0]
        least = min(least, 2 * curved / (seen @ seen))
    assert mu < least < 5 * mu
    # One sample, whose divergence alone the level bounds: the curvature at its largest score.
    u = 2.5
    level = mean_loss(np.eye(1), np.array([u]), np.array([0.5]), "cross-entropy")
    found = distillation.restricted_convexity([[1.0, 0.0]], [0.5, 3.0], level)
    assert found == pytest.approx(expit(u) * expit(-u), rel=1e-9)
    with pytest.raises(ValueError, match="`level` must be positive"):
        distillation.restricted_convexity(X, TEACHER, 0.0)


def test_theorem_5_1_the_loss_falls_exponentially_and_the_weights_with_it() -> None:
    times = np.array([0.0, 2.0, 8.0, 20.0, 40.0])
    path = distillation.distillation_flow(X, UNSURE, np.zeros(D), times)
    losses = np.array([mean_loss(X, w, UNSURE, "cross-entropy") for w in path])
    mu = distillation.restricted_convexity(X, UNSURE, losses[0])
    assert mu > 0.05
    assert (losses[1:] <= losses[0] * np.exp(-2 * mu * times[1:]) + 1e-20).all()
    off = path - distillation.distillation_limit(X, UNSURE).zeta
    assert ((off**2).sum(axis=1) <= 2 * losses / mu + 1e-20).all()
    # Lemma D.1: the way stays in the span of the samples.
    np.testing.assert_allclose(path @ np.linalg.pinv(X) @ X, path, atol=1e-12)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_bounds_d_33_and_d_39_of_theorem_5_2_hold_along_the_flow(depth) -> None:
    w0 = starting(depth)
    path = distillation.distillation_flow(X, TEACHER, w0, np.linspace(0, 60, 30), depth=depth)
    sizes = np.linalg.norm(path, axis=1)
    unseen = np.linalg.norm(path - path @ np.linalg.pinv(X) @ X, axis=1)
    assert ((unseen / sizes) ** 2 <= (sizes[0] / sizes) ** (2 / depth) * (1 + 1e-9)).all()
    limit = distillation.distillation_limit(X, TEACHER, w0, depth=depth)
    what = np.linalg.norm(limit.projection)
    share = 1 - (sizes[0] / what) ** (2 / depth)
    largest = what * share ** (-depth / (2 * (depth - 1)))
    assert what < np.linalg.norm(limit.zeta) < largest
    # Samples that span all inputs leave nothing unseen: the teacher itself.
    enough = np.concatenate([X, np.random.default_rng(depth).normal(size=(D, D))])
    short = 1e-3 * w0  # so short that one of two signs lowers the loss
    loss = [mean_loss(enough, w, TEACHER, "cross-entropy") for w in (short, -short)]
    start = short if loss[0] < loss[1] else -short
    whole = distillation.distillation_limit(enough, TEACHER, start, depth=depth).require()
    np.testing.assert_allclose(whole.zeta, TEACHER, atol=1e-12)


@pytest.mark.parametrize(
    ("kappa", "value", "sharper", "corollary"),
    [(0.5, 0.5524, 0.5033, 0.6106), (1, 0.1886, 0.1821, 0.1998), (2, 0.0204, 0.0203, 0.0249)],
)
def test_theorem_5_3_and_corollary_5_2_bound_simulated_students(
    kappa, value, sharper, corollary
) -> None:
    bound = distillation.risk_bound(polynomial_tail(kappa), 20)
    assert (bound.value, bound.sharper) == pytest.approx((value, sharper), abs=6e-5)
    assert polynomial_risk_bound(kappa, 20) == pytest.approx(corollary, abs=6e-5)
    beta = math.pi / 2 * 20 ** (-1 / 20)
    p = polynomial_tail(kappa)
    assert bound.value <= p(beta) + p(math.pi / 2 - beta) ** 20 <= corollary + 1e-4
    risks = []
    for seed in range(6):
        task = ib.datasets.make_angle_task(20, 60, kappa, n_val=400, random_state=seed)
        w = distillation.distillation_limit(task.X, task.teacher).zeta
        risks.append(distillation.transfer_risk(w, task.teacher, task.X_val))
    assert np.mean(risks) < bound.sharper < bound.value
    # As many samples as inputs: no risk is left.
    task = ib.datasets.make_angle_task(20, 20, kappa, n_val=400)
    w = distillation.distillation_limit(task.X, task.teacher).zeta
    assert distillation.transfer_risk(w, task.teacher, task.X_val) == 0


def test_corollary_5_1_a_margin_makes_the_bound_a_power() -> None:
    def p(theta: Floats) -> Floats:  # angles uniform below 60 degrees
        return np.clip(1 - theta / (math.pi / 3), 0, 1)

    gamma = float(p(np.array(math.pi / 6)))
    for n in (3, 9):
        assert distillation.risk_bound(p, n).value == pytest.approx(gamma**n, rel=2e-2)
        assert distillation.risk_bound(p, n).value <= gamma**n * (1 + 1e-3)


def test_corollary_5_1_bounds_students_of_tasks_with_a_margin() -> None:
    margin, kappa, n = math.radians(20), 0.3, 3
    tasks = [
        ib.datasets.make_angle_task(n, 8, kappa, margin=margin, random_state=k) for k in range(40)
    ]
    gamma = (1 - margin / (math.pi / 2 - margin)) ** kappa
    risks = []
    for task in tasks:
        tail = distillation.angle_tail(task.X_val, task.teacher)
        assert tail(math.pi / 2 - margin + 1e-9) == 0 < tail(math.pi / 2 - margin - 0.3)
        w = distillation.distillation_limit(task.X, task.teacher).zeta
        risks.append(distillation.transfer_risk(w, task.teacher, task.X_val))
    assert 0.01 < np.mean(risks) < gamma**n < 0.75
    with pytest.raises(ValueError, match="`margin` must lie"):
        ib.datasets.make_angle_task(3, 8, 2.0, margin=2.0)


def test_the_tail_of_a_sample_is_its_share_and_its_bound_the_least_over_all_angles() -> None:
    inputs = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    p = distillation.angle_tail(inputs, np.array([3.0, 0.0]))
    degrees = np.array([0.0, 1.0, 45.0, 46.0, 90.0])
    np.testing.assert_allclose(p(np.radians(degrees) - 1e-12), [1, 0.8, 0.8, 0.4, 0.4])
    fine = np.linspace(0, math.pi / 2, 200_001)
    task = ib.datasets.make_angle_task(5, 20, 1.5, n_val=40)
    tail = distillation.angle_tail(task.X_val, task.teacher)
    assert (
        distillation.risk_bound(tail, 5).value <= (tail(fine) + tail(math.pi / 2 - fine) ** 5).min()
    )


@pytest.mark.parametrize("kappa", [0.5, 3.0])
def test_the_angle_task_has_its_tail(kappa) -> None:
    task = ib.datasets.make_angle_task(5, 30, kappa, n_val=4000)
    theta = np.linspace(0, math.pi / 2, 50)
    error = distillation.angle_tail(task.X_val, task.teacher)(theta) - polynomial_tail(kappa)(theta)
    assert np.abs(error).max() < 1.95 / math.sqrt(4000)  # Kolmogorov, 1 in 1000
    assert 0.4 < np.mean(task.X_val @ task.teacher > 0) < 0.6


def test_lemma_5_1_angles_never_rise_while_the_risk_does() -> None:
    task = ib.datasets.make_angle_task(25, 20, 0.5, n_val=500, random_state=2)
    task_X = np.concatenate([task.X[:9], task.X[:9], task.X[9:]])
    curve = distillation.learning_curve(task_X, task.teacher, task.X_val)
    limits = [distillation.distillation_limit(task_X[:k], task.teacher) for k in (1, 9, 18, 22)]
    np.testing.assert_allclose(
        curve.angles[[0, 8, 17, 21]], [one.angle for one in limits], atol=1e-7
    )
    risks = [distillation.transfer_risk(one.zeta, task.teacher, task.X_val) for one in limits]
    np.testing.assert_allclose(curve.risks[[0, 8, 17, 21]], risks, atol=1e-12)
    assert curve.rises[0] == 0 and (np.diff(curve.angles) < 1e-8).all()
    # Printed after the lemma: further data never harm the risk. Inputs near the boundary on the
    # one side where the second student is worse: 45.0 and 18.4 degrees, and the other way around.
    near = np.array([1.0, -0.9, -2.0]) + 0.03 * np.random.default_rng(0).normal(size=(500, 3))
    samples = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]])
    curve = distillation.learning_curve(samples, np.array([1.0, 1.0, 0.0]), near)
    assert np.degrees(curve.angles) == pytest.approx([45.0, 18.4349], abs=1e-4)
    assert curve.risks[0] < 0.05 and curve.risks[1] > 0.9
    assert curve.rises == (0, 1)


def test_lemma_d_3_is_sharp_with_an_arc_sine_and_printed_eight_times_as_wide() -> None:
    w, c = np.array([2.0, 0.0]), 0.1
    touching = w + 2.0 * c * np.array([-c, math.sqrt(1 - c * c)])
    assert angle(w, touching) == pytest.approx(error_angle(c), rel=1e-12)
    around = w + 2.0 * c * np.array([[math.cos(a), math.sin(a)] for a in np.linspace(0, 7, 500)])
    assert max(angle(w, v) for v in around) <= error_angle(c)
    assert (error_angle(c), math.sqrt(2 * math.pi * c)) == pytest.approx((0.1002, 0.7927), abs=1e-4)
    with pytest.raises(ValueError, match="anywhere"):
        error_angle(1.0)


def test_theorem_d_4_holds_for_errors_that_are_shares_of_the_projection() -> None:
    share, kappa, n = 0.3, 2.0, 5
    bound = distillation.risk_bound(polynomial_tail(kappa), n, delta=error_angle(share))
    risks, lengths = [], []
    for seed in range(40):
        task = ib.datasets.make_angle_task(n, 40, kappa, n_val=300, random_state=seed)
        what = distillation.distillation_limit(task.X, task.teacher).projection
        # The worst direction: away from the teacher, in the plane of both.
        away = what - (what @ task.teacher) * task.teacher
        off = share * np.linalg.norm(what) * away / np.linalg.norm(away)
        risks.append(distillation.transfer_risk(what + off, task.teacher, task.X_val))
        one = ib.datasets.make_angle_task(1, 40, 0.2, random_state=seed)
        lengths.append(
            np.linalg.norm(distillation.distillation_limit(one.X, one.teacher).projection)
        )
    assert np.mean(risks) < bound.sharper < 0.7
    assert distillation.risk_bound(polynomial_tail(kappa), n).sharper < bound.sharper
    # Printed with a length epsilon for all X, at most half of ||w_hat(X)||: there is none, since
    # that is as small as one likes.
    assert min(lengths) < 0.02 * max(lengths)
    with pytest.raises(ValueError, match="`delta`"):
        distillation.risk_bound(polynomial_tail(1), n, delta=2.0)
