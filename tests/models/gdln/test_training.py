"""Averaged units: networks, squared-loss training, and both beside the gated predictions."""

import json
import math

import matplotlib
import numpy as np
import pytest
import torch

from implicit_bias import TrainingSettings, Trajectory, kkt_distance, train
from implicit_bias.datasets import make_nlgp
from implicit_bias.dynamics import gated_flow
from implicit_bias.models.gdln import (
    WeightsObserver,
    compare_with_gdln,
    descent_path,
    inverse_participation_ratio,
    plot_localisation,
    plot_loss,
    plot_sign_flips,
    plot_unit,
    plot_units,
)
from implicit_bias.networks import GDLN, ReLUMean

matplotlib.use("Agg")

D, K, N = 4, 3, 50
RNG = np.random.default_rng(2)
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.5]
Y = RNG.normal(size=N)
GATES = RNG.integers(0, 2, size=(N, K))


def plain_steps(n_steps: int, rate: float, **kwargs) -> TrainingSettings:
    return TrainingSettings(
        **{"loss": "squared", "batch_size": 0, "schedule": ((n_steps, rate),)} | kwargs
    )


def fit(network, settings, gates=GATES, X=X, y=Y, **kwargs) -> Trajectory:
    return train(network, X, y, gates, settings=settings, observer=WeightsObserver(X), **kwargs)


def test_a_network_is_the_mean_of_its_rectified_units() -> None:
    relu = ReLUMean(D, K, random_state=3)
    w = relu.w.detach().numpy()
    expected = [sum(max(w[k] @ X[n], 0.0) for k in range(K)) / K for n in range(N)]
    np.testing.assert_allclose(relu(torch.tensor(X)).detach(), expected, atol=1e-14)


def test_relu_units_are_linear_units_behind_their_own_gates() -> None:
    relu = ReLUMean(D, K)
    inputs = torch.tensor(np.r_[X, np.zeros((1, D))])
    gates, gated = relu.open_gates(inputs), relu.frozen()
    assert gates[-1].all()  # zero is not below zero
    torch.testing.assert_close(gated(inputs, gated.prepare(gates)), relu(inputs))
    with torch.no_grad():
        gated.w.zero_()
    assert relu.w.abs().min() > 0  # a copy


def test_kkt_distance_takes_the_gated_network_as_it_is() -> None:
    x, gates = np.array([[3.0, 4.0]]), np.array([[1, 0]])
    # One sample: the shortest weights with margin 1 point along its gated inputs.
    right = kkt_distance(GDLN.from_weights([[3.0, 4.0], [0.0, 0.0]]), x, np.ones(1), gates)
    wrong = kkt_distance(GDLN.from_weights([[3.0, 4.0], [5.0, 0.0]]), x, np.ones(1), gates)
    assert right.cosine == pytest.approx(1.0, abs=1e-12)
    assert wrong.cosine == pytest.approx(math.sqrt(0.5), abs=1e-9)


class TestTraining:
    @pytest.mark.parametrize("schedule", [((400, 0.9),), ((30, 0.9), (1, 0.2), (200, 0.4))])
    def test_full_batch_training_is_the_closed_form_descent(self, schedule) -> None:
        network = GDLN(D, K, random_state=4)
        flow = gated_flow(X, Y, GATES, network.w.detach().numpy().copy())
        settings = plain_steps(0, 0, schedule=schedule)
        run = fit(network, settings)
        path = descent_path(flow, settings, run.step)
        np.testing.assert_allclose(run.observed["weights"], path, atol=1e-12)
        np.testing.assert_array_equal(run.observed["weights"][-1], network.w.detach())
        np.testing.assert_array_equal(run.observed["sign_flips"], 0.0)
        rates = np.concatenate([[0.0], *([rate] * count for count, rate in schedule)])
        times = np.cumsum(rates)[run.step.astype(int)]
        np.testing.assert_allclose(settings.flow_times(run.step), times, rtol=1e-12)

    def test_small_steps_follow_the_flow_in_weights_and_loss(self) -> None:
        network = GDLN(D, K, random_state=4)
        start = network.w.detach().numpy().copy()
        settings = plain_steps(2000, 5e-3)
        run = fit(network, settings)
        flow, times = gated_flow(X, Y, GATES, start), settings.flow_times(run.step)
        np.testing.assert_allclose(run.observed["weights"], flow(times), atol=5e-3)
        np.testing.assert_allclose(run.loss, flow.loss(times), rtol=5e-3)
        # Behind other gates the same weights would have gone elsewhere.
        elsewhere = gated_flow(X, Y, 1 - GATES, start)(times[-1])
        assert np.abs(run.observed["weights"][-1] - elsewhere).max() > 0.1

    def test_recorded_loss_is_half_the_mean_square_over_all_samples(self) -> None:
        run = fit(GDLN(D, K), plain_steps(30, 0.1, batch_size=7))
        scores = np.einsum("nk,nd,tkd->tn", GATES, X, run.observed["weights"]) / K
        expected = 0.5 * np.mean((Y - scores) ** 2, axis=1)
        np.testing.assert_allclose(run.loss, expected, rtol=1e-12)
        np.testing.assert_allclose(run.log_loss, np.log(expected), rtol=1e-12)
        assert np.isnan([run.smallest_margin, run.normalised_margin, run.smooth_margin]).all()

    def test_mini_batches_reach_the_limit_where_all_samples_can_be_fitted(self) -> None:
        # Fewer samples than weights: the noise of the batches vanishes at the solution, and no
        # batch ever moves the null space.
        x, y, gates = np.eye(4) * [1.0, 1.2, 0.8, 1.1], Y[:4], np.c_[np.ones(4), GATES[:4, 1:]]
        network = GDLN(D, K, random_state=1)
        start = network.w.detach().numpy().copy()
        fit(network, plain_steps(1500, 2.0, batch_size=3), gates, x, y)
        limit = gated_flow(x, y, gates, start).limit
        np.testing.assert_allclose(network.w.detach(), limit, atol=1e-8)
        assert np.linalg.norm(limit - gated_flow(x, y, gates, 0 * start).limit) > 0.3

    def test_sign_flips_count_gates_that_left_their_start_also_after_a_stop(self, tmp_path) -> None:
        def stop(step, n_steps, log_loss):
            if step >= 37:
                raise KeyboardInterrupt

        def go(**kwargs) -> Trajectory:
            network = ReLUMean(D, K, init_scale=0.1, random_state=6)
            return fit(network, plain_steps(100, 1.0), None, state=tmp_path / "run", **kwargs)

        assert not go(callback=stop).finished
        run = go(resume=True)
        gates = np.einsum("nd,tkd->tnk", X, run.observed["weights"]) >= 0
        expected = [np.mean(now != gates[0]) for now in gates]
        np.testing.assert_allclose(run.observed["sign_flips"], expected)
        assert run.observed["sign_flips"][-1] > 0.05
        whole = go()
        np.testing.assert_array_equal(run.observed["weights"], whole.observed["weights"])

    def test_a_perfect_fit_is_no_divergence_and_growth_is(self) -> None:
        # Steps of 1 on 1/2 w^2 x^2 with x = 1 come to 0 at once; of 3 they double w.
        x, y, gates = np.ones((1, 1)), np.zeros(1), np.ones((1, 1))
        run = fit(GDLN(1, 1, random_state=1), plain_steps(5, 1.0), gates, x, y)
        assert run.finished
        assert (run.loss[-1], run.log_loss[-1]) == (0, -math.inf)
        with pytest.raises(FloatingPointError, match=r"diverged.*smaller learning rate"):
            fit(GDLN(1, 1, random_state=1), plain_steps(30, 3.0), gates, x, y)

    def test_float32_networks_train_in_float32(self) -> None:
        network, settings = ReLUMean(D, K, dtype=torch.float32), plain_steps(50, 0.5)
        single, double = fit(network, settings, None), fit(ReLUMean(D, K), settings, None)
        assert network.w.dtype == torch.float32
        a, b = (run.observed["weights"] for run in (single, double))
        np.testing.assert_allclose(a, b, atol=1e-4)


LONG = plain_steps(1500, 5.0)
TEACHER = 3 * np.eye(K, D)
X_TAUGHT = np.random.default_rng(7).normal(size=(120, D))
Y_TAUGHT = np.maximum(X_TAUGHT @ TEACHER.T, 0).mean(axis=1) + 0.3 * np.sin(np.arange(120))


@pytest.fixture(scope="module")
def converged() -> Trajectory:
    """Units that do not share gates, so that A is regular, and no sample ends on a boundary."""
    network = ReLUMean.from_weights(TEACHER + np.random.default_rng(6).normal(size=(K, D)))
    return fit(network, LONG, None, X_TAUGHT, Y_TAUGHT)


class TestComparison:
    def test_a_stationary_relu_network_is_gated_ols_on_its_final_gates(self, converged) -> None:
        comparison = compare_with_gdln(X_TAUGHT, Y_TAUGHT, converged, LONG)
        final = comparison.prediction("final", limit=True)
        # Its gates open on enough samples to leave no null space here, so nothing remembers w(0).
        assert np.abs(X_TAUGHT @ comparison.weights.T).min() > 1e-3
        np.testing.assert_allclose(final.weights, comparison.weights, atol=1e-7)
        np.testing.assert_allclose(final.cosines, 1.0, atol=1e-12)
        assert final.relative_error < 1e-7
        assert final.loss == pytest.approx(comparison.loss, abs=1e-12)
        assert comparison.sign_flips > 0.02
        assert comparison.prediction("initial", limit=True).relative_error > 0.05

    def test_quantities_are_those_of_the_named_arrays(self, converged) -> None:
        comparison = compare_with_gdln(X_TAUGHT, Y_TAUGHT, converged, LONG)
        path = converged.observed["weights"]
        start, trained = path[0], path[-1]
        for name, w in (("initial", start), ("final", trained)):
            gates = X_TAUGHT @ w.T >= 0
            for limit, t in ((False, 5.0 * 1500), (True, math.inf)):
                p = comparison.prediction(name, limit=limit)
                flow = gated_flow(X_TAUGHT, Y_TAUGHT, gates, start)
                np.testing.assert_array_equal(p.weights, flow(t))
                assert (p.gates, p.time) == (name, t)
                assert p.loss == pytest.approx(float(flow.loss(t)))
                cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b)
                           for a, b in zip(p.weights, trained, strict=True)]  # fmt: skip
                np.testing.assert_allclose(p.cosines, cosines, rtol=1e-12)
                error = np.linalg.norm(p.weights - trained) / np.linalg.norm(trained)
                assert p.relative_error == pytest.approx(error)
                np.testing.assert_allclose(
                    p.localisation, [(v**4).sum() / (v @ v) ** 2 for v in p.weights]
                )
        before, after = X_TAUGHT @ start.T >= 0, X_TAUGHT @ trained.T >= 0
        assert comparison.sign_flips == np.mean(before != after)
        assert comparison.loss == converged.loss[-1]
        with pytest.raises(ValueError, match="'initial' or 'final'"):
            comparison.prediction("middle")

    def test_the_table_has_a_line_for_every_quantity(self, converged) -> None:
        comparison = compare_with_gdln(X_TAUGHT, Y_TAUGHT, converged, LONG)
        labels = [label for label, _ in comparison.rows()]
        assert len(labels) == len(set(labels)) == 5 + 4 * 4
        assert all(label in str(comparison) for label in labels)
        record = json.loads(json.dumps(comparison.to_dict()))
        assert [p["gates"] for p in record["predictions"]] == ["initial"] * 2 + ["final"] * 2


class TestLocalisation:
    def test_ratio_of_one_entry_of_equal_entries_of_a_wave_and_of_noise(self) -> None:
        D = 40
        wave = np.cos(2 * np.pi * 3 * np.arange(D) / D)
        vectors = np.array([np.eye(D)[7], -np.ones(D), wave, 1e-200 * wave, 1e200 * wave])
        expected = [1.0, 1 / D, 1.5 / D, 1.5 / D, 1.5 / D]
        np.testing.assert_allclose(inverse_participation_ratio(vectors), expected)
        noise = np.random.default_rng(0).normal(size=(4000, D))
        # E[w^4] / E[(sum w^2)^2] for a direction uniform on the sphere: 3 D / (D (D + 2)).
        mean = inverse_participation_ratio(noise).mean()
        assert mean == pytest.approx(3 / (D + 2), rel=0.02)
        assert np.isnan(inverse_participation_ratio(np.zeros(3)))

    @pytest.mark.long
    def test_relu_units_localise_for_the_longer_scale_in_class_one_and_oscillate_otherwise(
        self,
    ) -> None:
        ratios, fast = {}, {}
        for xi_1, xi_0 in ((5.0, 1.0), (1.0, 5.0)):
            trained = []
            for seed in (0, 1):
                data = make_nlgp(4000, xi_1=xi_1, xi_0=xi_0, random_state=seed)
                network = ReLUMean(40, 8, init_scale=0.01, random_state=seed)
                run = fit(network, plain_steps(600, 3.0), None, data.X, data.y)
                trained.append(run.observed["weights"][-1])
                assert (
                    run.observed["sign_flips"][-1] > 0.2
                )  # gates are not constant, as has been hoped
            w = np.concatenate(trained)
            ratios[xi_1] = inverse_participation_ratio(w).mean()
            power = np.abs(np.fft.fft(w)) ** 2
            wavelengths_below_4 = np.abs(np.fft.fftfreq(40)) >= 0.25
            fast[xi_1] = power[:, wavelengths_below_4].sum() / power.sum()
        noise = 3 / 42
        assert ratios[5.0] > 1.2 * noise
        assert ratios[5.0] > 1.1 * ratios[1.0]
        assert fast[5.0] < 0.15
        assert fast[1.0] > 0.6  # white noise has about a half


class TestPlots:
    @pytest.fixture
    def axes(self):
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 5)
        yield axes
        plt.close(figure)

    def test_unit_plots_show_the_trained_and_both_predicted_weights(self, axes, converged) -> None:
        comparison = compare_with_gdln(X_TAUGHT, Y_TAUGHT, converged, LONG)
        assert plot_units(axes, comparison) is axes
        for unit in range(K):
            drawn = [line.get_ydata() for line in axes[unit].get_lines()[1:]]
            for data, expected in zip(
                drawn,
                (
                    comparison.weights,
                    comparison.prediction("initial").weights,
                    comparison.prediction("final").weights,
                ),
                strict=True,
            ):
                np.testing.assert_array_equal(data, expected[unit])
        assert [ax.get_visible() for ax in axes] == [True] * K + [False] * 2
        assert len(axes[0].figure.legends[0].get_texts()) == 3

    def test_curves_over_training_show_the_trajectory(self, axes, converged) -> None:
        for ax, draw, expected in (
            (axes[0], plot_localisation,
             inverse_participation_ratio(converged.observed["weights"]).mean(axis=1)),
            (axes[1], plot_loss, converged.loss),
            (axes[2], plot_sign_flips, converged.observed["sign_flips"]),
        ):  # fmt: skip
            assert draw(ax, converged, label="name") is ax
            line = ax.get_lines()[0]
            np.testing.assert_array_equal(line.get_xdata(), converged.step)
            np.testing.assert_allclose(line.get_ydata(), expected)
            assert any("name" in text.get_text() for text in ax.get_legend().get_texts())
        plot_localisation(axes[0], converged, label="other")
        labels = [text.get_text() for text in axes[0].get_legend().get_texts()]
        assert labels == ["name, mean", "Gaussian noise", "other, mean"]

    def test_a_unit_that_is_not_there_is_refused(self, axes, converged) -> None:
        with pytest.raises(ValueError, match=r"`unit` must lie in 0 \.\. 2"):
            plot_unit(compare_with_gdln(X_TAUGHT, Y_TAUGHT, converged, LONG), 3, axes[0])


NETWORK = GDLN(D, K)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(NETWORK, LONG, y=Y[1:]), r"`y` must have shape \(50,\)"),
        (lambda: fit(NETWORK, LONG, y=Y * np.nan), "`y` has entries that are NaN"),
        (lambda: fit(NETWORK, plain_steps(9, 1.0, loss="logistic")), r"`y` must .*\{-1, \+1\}"),
        (lambda: fit(NETWORK, LONG, GATES[:9]), "`gates` must have 50 rows"),
        (lambda: compare_with_gdln(X, Y, None, TrainingSettings()), "plain steps on"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
