"""Why a network at the end of the published training and its limit label images differently.

    python -m experiments.finite_time --full --data-dir DIR --out experiments/results
    python -m experiments.finite_time --full --out experiments/results

The published setting of GLNs: 500 images of 0-4 against 5-9, medians as cutoffs, 3200 steps in
mini-batches of 128; scikit-learn's digits without --data-dir. One row a seed tells the share of
held-out labels on which two predictors differ, along a chain from what was published to the limit:

    printed      the network with its cutoffs drawn anew, beside the program over the wrong groups
    groups       the network as it was trained, beside the program over the wrong groups
    network      the network beside its limit
    loss         the network beside the hard-margin machine at the network's own shares of the
                 units: same kernel, loss zero
    units        that machine beside the limit: same loss, other shares

and, by the flow of the smallest margin, the log(1/loss) from which the labels agree to 95, 96, ..
99 % for good. With --observe that many seeds are trained on by `momentum`, and the row has the
log(1/loss) at which they came there. `finite_time_NAME.csv` and `.png` are written as rows come;
seeds that are there are not run again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib
from experiments.printed import forgotten, one_hot, wrong_groups
from implicit_bias.measures.scalars import agreement, scores

from .interrupts import finished
from .tables import Kept, data_folder, images_of, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.95, 0.96, 0.97, 0.98, 0.99)
UNTIL, STEP, FURTHER_STEPS = 1e7, 0.25, 8000


@dataclass(frozen=True)
class Case:
    """Data and contexts of one seed."""

    data: ib.Dataset
    gating: ib.HyperplaneContexts
    seed: int

    @classmethod
    def draw(cls, data_dir: Path | None, n_units: int, seed: int) -> Case:
        if data_dir is None:
            data = ib.load_digits(n_train=500, random_state=seed)
        else:
            data = ib.datasets.load_idx(data_dir, n_train=500, n_val=4000, random_state=seed)
        gating = ib.HyperplaneContexts(n_units, 2, random_state=seed).fit(data.X_train)
        return cls(data, gating, seed)

    def run(self, **options: Any) -> Any:
        """The GLN on these data and contexts."""
        return finished(
            ib.run("gln", data=self.data, gating=self.gating, seed=self.seed, **options)
        )

    def samples(self) -> tuple[ib.Sample, ib.Sample]:
        data = self.data
        return (
            ib.Sample(data.X_train, data.y_train, self.gating.transform(data.X_train)),
            ib.Sample(data.X_val, data.y_val, self.gating.transform(data.X_val)),
        )


def differ(a: np.ndarray, b: np.ndarray) -> float:
    """Share of samples with other labels."""
    return 1 - agreement(a, b)


def own_shares(network: Any, train: ib.Sample, held_out: ib.Sample) -> np.ndarray:
    """Held-out scores of the hard-margin machine whose kernel weighs units as the network does."""
    norms = network.unit_norms().detach().numpy()
    weights = np.repeat(norms / norms.sum(), 2)
    features, new = (one_hot(one.required_gates, 2) for one in (train, held_out))
    kernel = (train.X @ train.X.T) * (features * weights @ features.T)
    limit = ib.solve_kernel_svm(kernel, train.y).require()
    return np.asarray(limit.predictor((held_out.X @ train.X.T) * (new * weights @ features.T)))


def chain(case: Case, report: Any) -> dict[str, float]:
    """The shares of labels that differ."""
    train, held_out = case.samples()
    limit = report.limit.predictor(held_out.X, held_out.gates)
    trained = scores(report.network, held_out)
    reloaded = forgotten(report.network, case.gating, train, held_out)
    _, printed = wrong_groups(train, held_out, 2)
    machine = own_shares(report.network, train, held_out)
    return {
        "printed": differ(reloaded, printed),
        "groups": differ(trained, printed),
        "network": differ(trained, limit),
        "loss": differ(trained, machine),
        "units": differ(machine, limit),
    }


def predicted(case: Case, report: Any) -> dict[str, float]:
    """The log(1/loss) from which labels agree, by the flow from the network as it was trained.

    Nothing of a network that does not separate its data yet: the flow begins where it does.
    """
    if not report.trajectory.smallest_margin[-1] > 0:
        return {}
    train, held_out = case.samples()
    watch = ib.measures.Distances(report.limit, train, held_out, kkt=False)
    flow = ib.dynamics.margin_flow(report.network, *train, until=UNTIL, step=STEP, observer=watch)
    found = {f"predicted_{level:.2f}": flow.first("agreement", level) for level in LEVELS}
    return found | {
        "flow_step": STEP,
        "flow_shortfall": flow.shortfall,
        "ratio_at_the_end": float(flow.observed["margin_ratio"][-1]),
        "agreement_at_the_end": float(flow.observed["agreement"][-1]),
    }


def observed(case: Case, report: Any) -> dict[str, float]:
    """The same, of descent itself from where the published training ends."""
    settings = ib.TrainingSettings(trainer="momentum", schedule=((FURTHER_STEPS, None),))
    train, held_out = case.samples()
    watch = ib.measures.Distances(report.limit, train, held_out, kkt=False)
    run = finished(ib.train(report.network, *train, settings=settings, observer=watch))
    agreement, reached = run.observed["agreement"], -run.log_loss
    found = {"further_log_inverse_loss": float(reached[-1])}
    for level in LEVELS:
        below = np.flatnonzero(~(agreement >= level))
        last = int(below[-1]) + 1 if len(below) else 0
        found[f"observed_{level:.2f}"] = float(reached[last]) if last < len(reached) else math.inf
    return found


def row(case: Case, *, observe: bool) -> dict[str, Any]:
    report = case.run(trainer="constant")
    found = report.row()
    return {
        "seed": case.seed,
        "hidden_units": case.gating.n_units,
        "status": found["status"],
        "gap": found["gap"],
        "log_inverse_loss": -report.trajectory.log_loss[-1],
        "separates": bool(report.trajectory.smallest_margin[-1] > 0),
        "margin_ratio": report.comparison.margin_ratio,
        **chain(case, report),
        **predicted(case, report),
        **(observed(case, report) if observe else {}),
    }


def draw(rows: pd.DataFrame) -> Figure:
    """Where the disagreement comes from, and when it ends."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = ("printed", "groups", "network", "loss", "units")
    left.boxplot([100 * rows[name] for name in names], tick_labels=names, whis=(0, 100))
    left.set(ylabel="held-out labels that differ, %", ylim=(0, None))
    left.set_title("along the chain from what was published to the limit")
    for number, (_, one) in enumerate(rows.iterrows()):
        seen = "observed_0.95" in one and not math.isnan(one["observed_0.95"])
        style = {"color": f"C{number}" if seen else "lightgrey", "zorder": 2 if seen else 1}
        right.plot([one[f"predicted_{level:.2f}"] for level in LEVELS], LEVELS, **style)
        if seen:
            right.plot([one[f"observed_{level:.2f}"] for level in LEVELS], LEVELS, "o", **style)
    right.plot([], [], "k-", label="predicted by the flow, a seed a line")
    right.plot([], [], "ko", label="observed of descent, same colour")
    right.set(xscale="log", xlabel="log(1/loss): constant steps need exp of it")
    right.set_ylabel("labels agree with the limit's, for good")
    right.legend(frameon=False)
    return figure


@click.command()
@data_folder
@click.option("--hidden-units", type=click.IntRange(min=1), default=10, show_default=True)
@sizes({"observe": 0}, seeds=(2, 20), observe=(1, 4))
@out_folder
def main(data_dir: Path | None, hidden_units: int, seeds: int, observe: int, out: Path) -> None:
    """Tell loss, slow units and errors of the printed programs apart."""
    kept = Kept(
        out / f"finite_time_{images_of(data_dir).file}.csv", ("seed",),
        options={"hidden_units": hidden_units, "observe": observe}, float_format="%.6g",
    )  # fmt: skip
    for seed in range(1, seeds + 1):
        if (seed,) in kept:
            continue
        one = row(Case.draw(data_dir, hidden_units, seed), observe=seed <= observe)
        kept.add([one])
        draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=120)
        click.echo(
            f"seed {seed}: printed {one['printed']:.1%}, network {one['network']:.1%}, of these "
            f"loss {one['loss']:.1%}, units {one['units']:.1%}; 99 % at log(1/loss) "
            f"{one.get('predicted_0.99', math.nan):.3g}"
        )


if __name__ == "__main__":
    main()
