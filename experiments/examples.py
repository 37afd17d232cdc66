"""Runs whose numbers a page quotes in passing: each by the command or the call that the page shows.

    python -m experiments.examples --out experiments/results/examples.csv
    python -m experiments.examples --only autoencoders --out experiments/results/examples.csv

One row a number: the example, the case, what it is, its value. Examples that are run again replace
their rows. Each takes seconds to a few minutes of one core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib
from implicit_bias.options import ModelName

from .tables import out_file

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Found = Iterator[tuple[str, str, float]]


def row_of(case: str, model: ModelName, columns: str, **options: Any) -> tuple[Any, Found]:
    """A report, and the columns of its row that are named."""
    report: Any = ib.run(model, **options)
    row = report.row()
    values = {name: math.nan if row[name] is None else float(row[name]) for name in columns.split()}
    return report, ((case, name, value) for name, value in values.items())


def autoencoders() -> Found:
    """The Gaussian mutual autoencoder beside its closed form; the plain one from three starts."""
    for information in (0.1, 0.5, 1.0, 2.0):
        predicted = ib.autoencoders.gaussian_mae(information)
        model = ib.autoencoders.train_gaussian_mae(information).model
        yield f"M = {information:g}", "rho_error", model.rho - predicted.rho
        yield f"M = {information:g}", "gap", model.gap
    for slope in (0.2, 0.6, 0.9):
        start = ib.autoencoders.GaussianMAE(slope, 0.8, slope, 0.8)
        run = ib.autoencoders.train_gaussian_mae(0.5, penalty=0, n_steps=1500, start=start)
        yield f"plain from {slope:g}", "rho", run.model.rho


def optimisers() -> Found:
    """Margins of the convolutional network of docs/optimisers.md, by four optimisers."""
    import torch

    data = ib.load_digits(n_train=300, random_state=0)
    images = torch.tensor(data.X_train[:, :64]).reshape(-1, 1, 8, 8)
    y = torch.tensor(data.y_train)
    for name in ("Annealed", "Momentum", "SGD", "Adam"):
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, bias=False), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
            torch.nn.Conv2d(8, 16, 2, bias=False), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(64, 1, bias=False),
        ).double()  # fmt: skip
        step, margins = _steps(name, network, images, y)
        for count in range(1, 1501):
            step()
            if count in (300, 700, 1500):
                with torch.no_grad():
                    length = torch.cat([one.flatten() for one in network.parameters()]).norm()
                    yield name, f"margin_{count}", float(margins().min() / length**3)


def _steps(
    name: str, network: Module, images: Tensor, y: Tensor
) -> tuple[Callable[[], Any], Callable[[], Tensor]]:
    """A function that takes a step, and one that returns the margins."""
    import torch

    weights = list(network.parameters())

    def margins() -> Tensor:
        scores: Tensor = network(images)
        return y * scores.squeeze(-1)

    if name in ("Annealed", "Momentum"):
        own = getattr(ib.optim, name)(weights, degree=3, n_samples=len(y))
        return partial(own.step, margins), margins
    other = (
        torch.optim.SGD(weights, lr=0.05, momentum=0.9) if name == "SGD"
        else torch.optim.Adam(weights, lr=0.01)
    )  # fmt: skip

    def step() -> None:
        other.zero_grad()
        torch.nn.functional.softplus(-margins()).mean().backward()  # type: ignore[no-untyped-call]
        other.step()

    return step, margins


def diagonal() -> Found:
    """Diagonal networks from starts of several scales, on squares and on the logistic loss."""
    for scale in (0.01, 0.1, 1.0):
        report = ib.run("diagonal", init_scale=scale, n_train=20)
        for name in ("l1_limit", "l2_limit", "limit_error", "start_error"):
            yield f"squared, {scale:g}", name, float(getattr(report.comparison, name))
    for scale in (0.01, 0.1, 1.0, 10.0):
        report = ib.run("diagonal", init_scale=scale, n_train=20, loss="logistic")
        yield f"logistic, {scale:g}", "potential_ratio", report.comparison.potential_ratio


def attention() -> Found:
    """Attention by trainers and parameters, three draws; twelve starts; programs beside cvxpy."""
    from .token_programs import programs

    for parameters, trainer in (
        ("combined", "normalised"), ("combined", "spectral"), ("combined", "sign"),
        ("key-query", "normalised"), ("combined", "constant"),
    ):  # fmt: skip
        options: dict[str, Any] = {"parameters": parameters, "trainer": trainer, "steps": 4000}
        if trainer == "constant":
            options |= {"learning_rate": 1.0, "batch_size": 0}
        for data in ("equal", "planted"):
            for seed in range(3):
                case = f"{data}, {parameters}, {trainer}, {seed}"
                names = "margin_ratio best_margin_ratio best_share better_margin zeta_cosine"
                yield from row_of(case, "attention", names, data=data, seed=seed, **options)[1]
    rng = np.random.default_rng(1)
    X, queries = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 3))
    scores = rng.uniform(-1, 0.5, (4, 5))
    scores[np.arange(4), rng.integers(0, 5, 4)] = 1.0
    settings = ib.TrainingSettings(
        trainer="normalised", loss="attention", schedule=((4000, None),), n_checkpoints=2
    )
    for seed in range(12):
        W = np.random.default_rng(seed).normal(size=(3, 3))
        network = ib.networks.Attention.from_weights(W)
        ib.train(network, X, scores, queries, settings=settings)
        W = network.zeta().detach().numpy()
        tokens = np.einsum("ntd,de,ne->nt", X, W, queries).argmax(axis=1)
        limit = ib.limits.solve_token_svm(X, queries, scores, tokens)
        proved = limit.certify(X, queries, scores, W)
        yield f"start {seed}", "tokens", float("".join(map(str, tokens)))
        yield f"start {seed}", "margin_ratio", limit.dual_objective / proved.objective
        yield f"start {seed}", "better_margin", limit.better_margin
    yield "programs", "difference", float(programs(200).max())


def penalties() -> Found:
    """Labels of penalised fits beside those of the max-margin limit, 500 digits and 20 gates."""
    data = ib.load_digits(n_train=500, random_state=0)
    gating = ib.HyperplaneGates(20, random_state=0).fit(data.X_train)
    gates, held_out = gating.transform(data.X_train), gating.transform(data.X_val)
    limit = ib.solve_frelu_svm(data.X_train, data.y_train, gates).require()
    labels = limit.predictor.predict(data.X_val, held_out)
    for penalty in (1e-2, 1e-3, 1e-4, 1e-6):
        fit = ib.limits.solve_fit(data.X_train, data.y_train, gates, penalty=penalty).require()
        same = fit.predictor.predict(data.X_val, held_out) == labels
        yield f"penalty {penalty:g}", "agreement", float(np.mean(same))


def classes() -> Found:
    """Ten classes of digits, jointly and one against the rest: labels and errors of the limits."""
    data = ib.datasets.load_class_data("digits", n_train=500, random_state=0)
    joint = ib.limits.solve_multiclass_svm(data.X_train, data.labels_train).require()
    rest = [
        ib.solve_linear_svm(data.X_train, np.where(data.labels_train == one, 1.0, -1.0)).require()
        for one in data.classes
    ]
    scores = {
        "joint": np.asarray(joint.predictor.decision_function(data.X_val)),
        "rest": np.column_stack([one.predictor.decision_function(data.X_val) for one in rest]),
    }
    labels = {name: np.array(data.classes)[one.argmax(axis=1)] for name, one in scores.items()}
    for name, found in labels.items():
        yield name, "error", float((found != data.labels_val).mean())
    yield "both", "differ", float((labels["joint"] != labels["rest"]).mean())
    found = ib.run("linear", classes="all").objects["labels"]
    yield "networks", "agreement", found.agreement
    yield "networks", "agreement_scaled", found.agreement_scaled


def deep() -> Found:
    """Deep gated networks behind several gates, and the lazy regime at three scales."""
    columns = "lower_bound best_local_value n_limits local_ratio local_agreement agreement"
    gatings: dict[str, dict[str, Any]] = {
        "network": {}, "half-spaces": {"gating": "dlgn"},
        "random": {"gating": "random", "hidden_units": 14},
        "contexts": {"gating": "contexts", "contexts": 2, "hidden_units": 5},
    }  # fmt: skip
    for case, options in gatings.items():
        known = columns if case != "random" else columns.replace(" local_agreement agreement", "")
        report, found = row_of(case, "dgn", known, steps=1500, **options)
        yield from found
        for number, one in enumerate(report.objects["local_limits"]):
            yield case, f"value of start {number + 1}", one.value
            yield case, f"severity of start {number + 1}", one.status.severity
    report = ib.run("dgn", regime="lazy", n_train=60, hidden_units=20, steps=300)
    for one in report.comparison:
        for name in ("law_error", "held_out_error", "weight_drift"):
            yield f"lazy, scale {one.scale:g}", name, float(getattr(one, name))
    for name in ("departure_weight_drift", "departure_kernel_ratio"):
        yield "lazy", name, float(report.row()[name])


def dlgn() -> Found:
    """Two deep linearly gated networks: constant experts with an interval, and linear ones."""
    report, found = row_of(
        "constant", "dlgn", "lower_bound local_value", data="digits", n_train=60, depth=3,
        experts="constant", hidden_units=24, upper_units=3, steps=1000, init="sign",
    )  # fmt: skip
    yield from found
    interval = report.comparison.interval
    yield "constant", "least", interval.lower
    yield "constant", "most", interval.upper
    yield "constant", "programs", interval.programs
    _, found = row_of("linear", "dlgn", "lower_bound local_value", depth=3, init="sign")
    yield from found


def neurons() -> Found:
    """Neurons of trained networks beside limits, as docs/equivalence.md has them."""
    same: dict[str, Any] = {
        "n_train": 40, "hidden_units": 12, "trainer": "normalised", "momentum": 0, "steps": 1500,
        "learning_rate": "auto", "init": "balanced", "init_scale": 0.1,
    }  # fmt: skip
    relu = "log_inverse_loss neuron_distance local_neuron_distance n_networks n_limits"
    cases: tuple[tuple[str, ModelName, str, dict[str, Any]], ...] = (
        ("orthosep", "orthosep", "log_inverse_loss neuron_distance n_networks",
         {"hidden_units": 20, "n_train": 60, "starts": 3}),
        ("orthants", "relu", relu, {**same, "data": "orthants", "starts": 3}),
        ("digits", "relu", "log_inverse_loss neuron_distance",
         {"n_train": 500, "hidden_units": 50, "steps": 3000}),
    )  # fmt: skip
    for case, model, columns, options in cases:
        report, found = row_of(case, model, columns, **options)
        yield from found
        for name, one in report.objects["neurons"].items() if model == "relu" else ():
            yield case, f"own_gates, {name}", one.own_gates
            yield case, f"distance, {name}", one.transport.distance
        if "starts" in options:
            groups = report.objects["network_groups"]
            yield case, "within", float(groups.distances.max())


EXAMPLES: dict[str, Callable[[], Found]] = {
    one.__name__: one
    for one in (
        autoencoders,
        optimisers,
        diagonal,
        attention,
        penalties,
        classes,
        deep,
        dlgn,
        neurons,
    )
}


@click.command()
@click.option("--only", type=click.Choice(list(EXAMPLES)), multiple=True, default=list(EXAMPLES))
@out_file(Path("runs/examples.csv"))
def main(only: tuple[str, ...], out: Path) -> None:
    """Numbers of single runs that pages quote."""
    for name in only:
        start = process_time()
        new = pd.DataFrame(
            [(name, *one) for one in EXAMPLES[name]()],
            columns=["example", "case", "quantity", "value"],
        )
        kept = [pd.read_csv(out)] if out.exists() else []
        table = pd.concat([*(one[one.example != name] for one in kept), new])
        table.to_csv(out, index=False, float_format="%.8g")
        click.echo(new.to_string(index=False))
        click.echo(f"{name}: {process_time() - start:.0f} s of the processor")


if __name__ == "__main__":
    main()
