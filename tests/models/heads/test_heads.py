"""Heads on frozen features: limits against closed forms, oracles and training; errata of 6.1."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from implicit_bias import NotCertified
from implicit_bias.heads import (
    Trunk,
    anytime_average,
    budget_exits,
    solve_exit_heads,
    train_exit_heads,
    train_multi_exit,
    train_trunk,
)
from implicit_bias.models.heads import (
    confidence,
    distance_bound,
    distillation_loss,
    exit_loss,
    exits_loss,
)
from implicit_bias.programs import JointMargin
from tests.long import some_of


def problem(n, d, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, k, size=n), rng.normal(size=(n, k))


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def loss_of(W, phi, labels, teacher, tau, share):
    """The definition, in the words of (6.2) to (6.6)."""
    u = phi @ W.T
    known = labels >= 0
    hard = -log_softmax(u[known], axis=1)[np.arange(known.sum()), labels[known]].mean()
    p = softmax(teacher / tau, axis=1)
    soft = -(tau**2) * np.sum(p * log_softmax(u / tau, axis=1), axis=1).mean()
    return share * hard + (1 - share) * soft


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_soft_labels_with_few_samples_are_interpolated_at_least_norm_whatever_the_temperature(
    temperature,
) -> None:
    phi, _, teacher = problem(8, 20)
    (head,) = solve_exit_heads([phi], teacher=teacher, temperature=temperature, share=0)
    expected = (np.linalg.pinv(phi) @ centred(teacher)).T
    assert head.require().kind == "interpolant"
    assert head.zeta == pytest.approx(expected, abs=1e-11)
    assert abs(head.excess) < 1e-12 and head.certificate.gap < 1e-12


def test_large_logits_of_a_teacher_do_not_underflow() -> None:
    phi, _, teacher = problem(4, 6)
    teacher[0] *= 2000
    (head,) = solve_exit_heads([phi], teacher=teacher, share=0)
    # Far out the loss is level: the closed form is right, and its certificate says it cannot tell.
    assert head.kind == "interpolant"
    assert head.zeta == pytest.approx((np.linalg.pinv(phi) @ centred(teacher)).T, rel=1e-9)
    with pytest.raises(NotCertified, match="INACCURATE"):
        head.require()


def test_with_many_samples_the_minimiser_is_unique_and_depends_on_the_temperature() -> None:
    phi, labels, teacher = problem(40, 5)
    ends = []
    for temperature in (1.0, 4.0):
        (head,) = solve_exit_heads([phi], teacher=teacher, temperature=temperature, share=0)
        oracle = minimize(
            lambda w, tau=temperature: loss_of(w.reshape(3, 5), phi, labels, teacher, tau, 0.0),
            np.zeros(15), options={"gtol": 1e-9},
        )  # fmt: skip
        assert head.require().kind == "minimiser" and head.certificate.curvature > 0
        assert centred(head.zeta.T).T == pytest.approx(head.zeta, abs=1e-13)
        got = oracle.x.reshape(3, 5)
        assert head.zeta == pytest.approx(got - got.mean(axis=0), abs=1e-5)
        ends.append(head.zeta)
    assert np.abs(ends[0] - ends[1]).max() > 0.01


def test_a_teacher_that_the_head_can_match_is_matched_at_every_temperature() -> None:
    phi, _, _ = problem(40, 5)
    teacher = np.random.default_rng(7).normal(size=(3, 5))
    for temperature in (0.5, 1.0, 4.0):
        (head,) = solve_exit_heads([phi], teacher=phi @ teacher.T, temperature=temperature, share=0)
        assert head.require().zeta == pytest.approx(centred(teacher.T).T, abs=1e-10)


def test_the_gap_is_a_bound_from_below_that_survives_labels_near_the_edge() -> None:
    phi, labels, teacher = problem(40, 5)
    loss = exit_loss(labels, 30 * teacher, temperature=1.0, share=0.3)
    (head,) = solve_exit_heads([phi], labels, teacher=30 * teacher, share=0.3)
    assert head.certificate.gap < 1e-10
    # At any other point the dual value stays below the least loss: weak duality.
    least = head.excess + loss.least
    left = np.linalg.svd(phi, full_matrices=False)[0]
    for seed in range(5):
        u = phi @ (head.zeta + 0.01 * np.random.default_rng(seed).normal(size=(3, 5))).T
        slopes = loss.gradient(u)
        assert loss.dual_value(u, -left @ (left.T @ slopes)) <= least + 1e-12


def test_nearly_dependent_features_leave_the_loss_at_its_least() -> None:
    phi, labels, teacher = problem(40, 5)
    skewed = phi @ np.diag([1.0, 1.0, 1e-5, 1.0, 1.0])
    heads = solve_exit_heads([phi, skewed], labels, teacher=teacher)
    assert heads[1].excess == pytest.approx(heads[0].excess, abs=1e-12)
    assert heads[1].certificate.gap < 1e-10
    assert heads[1].predictor(skewed) == pytest.approx(heads[0].predictor(phi), abs=1e-6)


@pytest.mark.parametrize(("n", "d"), [(8, 20), (40, 5)])
def test_mixed_labels_with_some_unlabelled_come_to_the_minimiser_of_the_definition(n, d) -> None:
    phi, labels, teacher = problem(n, d, seed=3)
    labels[::3] = -1
    (head,) = solve_exit_heads([phi], labels, teacher=teacher, temperature=2.0, share=0.3)
    head.require()
    least = loss_of(head.zeta, phi, labels, teacher, 2.0, 0.3)
    p = softmax(teacher / 2, axis=1)
    entropy = -0.7 * 4 * np.sum(p * np.log(p), axis=1).mean()
    assert head.excess == pytest.approx(least - entropy, abs=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1):
        other = head.zeta + size * rng.normal(size=head.zeta.shape)
        assert loss_of(other, phi, labels, teacher, 2.0, 0.3) > least


def test_two_classes_are_logistic_regression_where_labels_overlap() -> None:
    phi, _, _ = problem(60, 3)
    labels = (phi[:, 0] + np.random.default_rng(1).normal(size=60) > 0).astype(int)
    (head,) = solve_exit_heads([phi], labels, share=1)
    oracle = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    expected = oracle.fit(phi, labels).coef_[0]
    assert head.require().kind == "minimiser"
    assert head.zeta[1] - head.zeta[0] == pytest.approx(expected, abs=1e-5)


def test_hard_labels_alone_lead_along_the_joint_direction() -> None:
    phi, labels, _ = problem(12, 20)
    (head,) = solve_exit_heads([phi], labels, share=1)
    norm = JointMargin().literal(phi, labels).solve(solver="CLARABEL")
    assert head.require().kind == "direction"
    assert np.linalg.norm(head.zeta) == pytest.approx(norm, rel=1e-6)
    assert head.zeta.sum(axis=0) == pytest.approx(np.zeros(20), abs=1e-10)
    scores = head.predictor(phi)
    own = scores[np.arange(12), labels][:, None]
    assert np.min((own - scores)[np.arange(3) != labels[:, None]]) >= 1 - 1e-9
    # One orthonormal sample a class: W = I - 1 1' / K, of norm sqrt(K - 1).
    (collapse,) = solve_exit_heads([np.eye(4)], np.arange(4), share=1)
    assert collapse.zeta == pytest.approx(np.eye(4) - 0.25, abs=1e-6)


def test_the_joint_direction_of_two_classes_is_the_hard_margin_machine() -> None:
    phi, labels, _ = problem(10, 12, k=2, seed=5)
    (head,) = solve_exit_heads([phi], labels, share=1)
    # Without a bias: a sample and its mirror image, of the other class, leave none.
    machine = SVC(kernel="linear", C=1e8, tol=1e-8)
    machine.fit(np.vstack([phi, -phi]), np.concatenate([labels, 1 - labels]))
    # <w_1 - w_0, phi> >= 1 with w_1 = -w_0 = v / 2, v the machine.
    assert 2 * head.zeta[1] == pytest.approx(machine.coef_[0], abs=1e-4)


def test_a_direction_that_leaves_samples_undecided_is_no_limit() -> None:
    # The first two samples share features and differ in class; the third grows without end.
    phi = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    (head,) = solve_exit_heads([phi], [0, 1, 0], share=1)
    with pytest.raises(NotCertified, match="NO_MINIMISER"):
        head.require()


def test_the_error_bound_holds_and_is_not_vacuous() -> None:
    # mu (1 - e^{-c d}) / c at d = 0.3 is the slope of this function: the bound gives d back.
    assert distance_bound(2 * -math.expm1(-1.5 * 0.3) / 1.5, 2.0, 1.5) == pytest.approx(0.3)
    assert distance_bound(1.0, 0.0, 1.0) == math.inf == distance_bound(2.0, 1.0, 1.0)


@pytest.mark.parametrize("share", some_of([0.5, 0.0], one_in=2))
@pytest.mark.parametrize(("n", "d"), [(8, 20), (40, 5)])
def test_training_comes_to_the_predicted_heads_of_all_exits(n, d, share) -> None:
    phi, labels, teacher = problem(n, d)
    exits = [phi, np.tanh(phi)]
    heads = solve_exit_heads(exits, labels, teacher=teacher, temperature=2.0, share=share)
    run = train_exit_heads(
        exits, labels, teacher=teacher, temperature=2.0, share=share, n_steps=800
    )
    for head, trained in zip(heads, run.weights, strict=True):
        assert trained == pytest.approx(head.require().zeta, abs=1e-6)


def test_annealing_the_temperature_changes_no_interpolant_and_holds_confidence() -> None:
    phi, labels, teacher = problem(8, 20)
    (head,) = solve_exit_heads([phi], teacher=teacher, share=0)
    run = train_exit_heads([phi], labels, teacher=teacher, share=0, most_confident=0.4, n_steps=800)
    assert run.temperature[0] == 1 and run.temperature[-1] > 1
    assert confidence([torch.as_tensor(teacher)], run.temperature[-1]) <= 0.4
    assert confidence([torch.as_tensor(teacher)], run.temperature[-1] / 1.05) > 0.4
    assert run.weights[0] == pytest.approx(head.zeta, abs=1e-6)


def printed_loss(teacher, student, tau):
    """Line 10 of algorithm 6.1 as printed: line 8 has tempered the teacher already."""
    tempered = torch.softmax(teacher / tau, dim=1)
    again = torch.softmax(torch.log(tempered) / tau, dim=1)
    return -(tau**2) * (again * torch.log_softmax(student / tau, dim=1)).sum(dim=1).mean()


def test_teachers_are_tempered_once_and_not_twice_as_printed() -> None:
    teacher = torch.tensor([[8.0, 2.0, 1.0, 0.0, -1.0]], dtype=torch.float64)
    tau = 4.0

    def slope(of, logits):
        student = logits.clone().requires_grad_()
        of(teacher, student, tau).backward()
        return student.grad.abs().max().item()

    # A student that equals its teacher has nothing to learn, at any temperature.
    assert slope(distillation_loss, teacher) < 1e-12
    assert slope(printed_loss, teacher) > 0.1
    # What is printed teaches the teacher at temperature tau^2.
    assert slope(printed_loss, teacher / tau) < 1e-12


def test_slopes_of_a_hot_teacher_are_centred_logit_gaps_over_the_number_of_classes() -> None:
    rng = np.random.default_rng(0)
    teacher, logits = torch.as_tensor(rng.normal(size=(2, 1, 5)))
    student = logits.clone().requires_grad_()
    distillation_loss(teacher, student, 1e4).backward()
    gap = centred((logits - teacher).numpy()) / 5
    assert student.grad.numpy() == pytest.approx(gap, abs=1e-3)


def test_an_exit_without_teachers_learns_from_labels_alone_and_not_from_nothing_over_zero() -> None:
    rng = np.random.default_rng(0)
    logits = [torch.as_tensor(rng.normal(size=(6, 3))).requires_grad_() for _ in range(2)]
    labels = torch.tensor([0, 1, 2, 0, 1, -1])
    teachers = [[logits[1]], []]
    loss = exits_loss(logits, labels, teachers=teachers, temperature=2.0, share=0.5)
    loss.backward()
    u = logits[1].detach().numpy()[:5]
    hard = np.mean(logsumexp(u, axis=1) - u[np.arange(5), labels[:5]])
    alone = exits_loss(logits[1:], labels, teachers=[[]], temperature=2.0, share=0.5)
    assert alone.item() == pytest.approx(0.5 * hard, abs=1e-12)
    # No slope goes to the teacher through its pupil: the unlabelled sample moves the first alone.
    assert torch.all(logits[1].grad[5] == 0) and torch.any(logits[0].grad[5] != 0)
    # As printed, the mean over no teachers.
    assert torch.isnan(torch.empty(0, dtype=torch.float64).mean())


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_slope_of_distillation_is_the_temperature_times_the_gap_of_soft_labels(
    temperature,
) -> None:
    # S3.6.2: the gradient of tau^2 CE(t^(1/tau), s^(1/tau)) in the student's logits.
    teacher, student = torch.as_tensor(np.random.default_rng(2).normal(size=(2, 1, 5)))
    student.requires_grad_()
    distillation_loss(teacher, student, temperature).backward()
    p, q = (softmax(u.detach().numpy() / temperature, axis=1) for u in (teacher, student))
    assert student.grad.numpy() == pytest.approx(temperature * (q - p), abs=1e-12)


def test_a_budget_is_spent_on_its_most_accurate_exit_and_of_equals_on_the_first() -> None:
    assert budget_exits([0.5, 0.7, 0.6, 0.7, 0.8]) == (0, 1, 1, 1, 4)
    for wrong, message in (
        ([], "finite, one an exit"),
        ([0.5, math.nan], "must be finite, got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            budget_exits(wrong)


def test_algorithm_6_1_trains_the_trunk_along_and_holds_its_teacher_s_confidence() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:80] / 16, y[:80].copy()
    y[60:] = -1
    runs = {}
    for name, how in {
        "exit-wise": {"share": 1.0},
        "annealed": {"most_confident": 0.5},
        "later": {"most_confident": 0.5, "later_teach": True},
    }.items():
        trunk = Trunk(64, widths=(12, 12, 12), random_state=0)
        before = [weight.detach().clone() for weight in trunk.layers]
        runs[name] = train_multi_exit(trunk, X, y, n_steps=150, learning_rate=1e-2, **how)
        assert all(not torch.equal(*pair) for pair in zip(before, trunk.layers, strict=True))
    plain, tempered = runs["annealed"].confidence.T
    assert runs["exit-wise"].temperature[-1] == 1 and runs["exit-wise"].loss[-1] < 0.1
    assert plain[-1] > 0.6 > 0.55 > tempered[-1] and runs["annealed"].temperature[-1] > 1.5
    assert not np.allclose(runs["later"].weights[0], runs["annealed"].weights[0])
    with pytest.raises(ValueError, match="`share` and `learning_rate` must be positive"):
        train_multi_exit(Trunk(64, widths=(4,)), X, y, share=0.0)


def test_unlabelled_samples_teach_nothing_to_an_exit_wise_loss_and_all_exits_but_the_last() -> None:
    phi, labels, _ = problem(30, 4)
    labels[10:] = -1
    logits = [torch.as_tensor(phi[:, :3]).requires_grad_(), torch.as_tensor(phi[:, 1:])]
    for share, moved in ((1.0, 0), (0.5, 20)):
        (slope,) = torch.autograd.grad(
            exits_loss(
                logits, torch.as_tensor(labels), teachers=[[logits[1]], []], temperature=2.0,
                share=share,
            ),
            logits[0],
        )  # fmt: skip
        # (6.6): the classification term over those with a label, the other over all.
        assert int(slope[10:].abs().sum(dim=1).count_nonzero()) == moved


def test_exits_of_a_trained_and_a_random_trunk_on_digits() -> None:
    X, y = load_digits(return_X_y=True)
    chosen = y < 3
    X, y = X[chosen] / 16, y[chosen]
    trunk = Trunk(64, widths=(12, 40), random_state=0)
    before = trunk.features(X[:60])
    teacher = train_trunk(trunk, X[:60], y[:60], n_steps=60)
    after = trunk.features(X[:60])
    assert [h.shape for h in after] == [(60, 12), (60, 40)]
    assert np.abs(before[0] - after[0]).max() > 0.01
    for features in (before, after):
        heads = solve_exit_heads(features, y[:60], teacher=teacher, temperature=2.0)
        assert all(head.require().kind == "minimiser" for head in heads)
    averages = anytime_average(heads, trunk.features(X[60:]))
    assert all(p.sum(axis=1) == pytest.approx(1) for p in averages)
    logits = [h.predictor(f) for h, f in zip(heads, trunk.features(X[60:]), strict=True)]
    own = [softmax(one, axis=1) for one in logits]
    assert averages[0] == pytest.approx(own[0]) and averages[1] == pytest.approx(sum(own) / 2)
    assert np.mean(averages[1].argmax(axis=1) == y[60:]) > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": 1.5}, "`share` must lie"),
        ({"temperature": 0.0}, "`temperature` must be positive"),
        ({"teacher": None}, "needs `teacher`"),
        ({"labels": [0, 1, 5]}, "whole numbers from 0 to 2"),
        ({"labels": [-1, -1, -1]}, "one label at least"),
        ({"features": [np.full((3, 2), np.nan)]}, "NaN or infinite"),
        ({"features": [np.ones((2, 2))]}, "must have shape"),
        ({"features": [np.zeros((3, 2))]}, "must not be zero"),
        ({"features": []}, "one exit at least"),
        ({"tol": 2.0}, "`tol` must lie"),
    ],
)
def test_what_cannot_be_solved_is_refused_in_one_message(change, message) -> None:
    given = {"features": [np.ones((3, 2))], "labels": [0, 1, 2], "teacher": np.eye(3)} | change
    with pytest.raises(ValueError, match=message):
        solve_exit_heads(given.pop("features"), given.pop("labels"), **given)
