"""What users write, without a mistake: `mypy --strict` has nothing to say."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import implicit_bias as ib
from implicit_bias.options import RunOptions

X, y = np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
contexts = ib.HyperplaneContexts(n_units=2, cutoffs="random").fit_transform(X)

# A limit, of arrays, tensors and lists.
limit = ib.solve_gln_svm(X, y, contexts, solver="interior-point", tol=1e-6).require()
of_tensors = ib.solve_linear_svm(torch.eye(4), torch.tensor(y), solver="cvxpy:CLARABEL")
of_lists = ib.solve_linear_svm([[2.0, 0.0], [0.0, 1.0]], [1, -1])
gap: float = limit.gap
H, C, D = limit.zeta.shape
largest = float(limit.unit_norms.max()) + float(np.linalg.norm(limit.zeta))
live = [int(unit) for unit in np.flatnonzero(np.asarray(limit.live))]
scores = limit.predictor(X, contexts) * 2
incoming, outgoing = limit.balanced_weights()
if limit.status is ib.Status.SOLVED:
    limit.save(Path("limit.safetensors"))

# A run: what its report holds follows from the model.
report = ib.run("gln", hidden_units=3, cutoffs="median", trainer="annealed", steps=10)
summary = (report.limit.gap, report.comparison.margin_ratio, report.trajectory.loss[-1])
hidden: int = report.network.n_units
contexts_of_units: ib.limits.GLNLimit = report.limit
several = ib.run("frelu", trainer=("momentum", "annealed"), loss="logistic", device="cuda:1")
by_trainer = several.by_trainer["annealed"].comparison.margin_ratio
by_class = ib.run("linear", classes="all", n_train=60)
gaps = {label: one.gap for label, one in by_class.limit.items()}
squares = ib.run("gdln", data="ring")
rank: int = squares.limit.rank
lazy = ib.run("dgn", regime="lazy").comparison[0]
heads = ib.run("heads", share=1.0, exits=(1, 3)).limit[3].require()
machines = ib.run("relu").limit["rc"].objective
own_data = ib.run("gln", X=X, y=y, gating=ib.HyperplaneContexts(2, 2), save="runs/x")
options: dict[str, Any] = {"seed": 3}
from_options = ib.run("gln", **options).row()
# A name that is computed, and options that are checked.
named = [ib.run(name, steps=0).limit.gap for name in sorted(options)]
ib.sweep(str(options["model"]), {"seed": range(3)}, out="runs/named")
small: RunOptions = {"n_train": 20, "steps": 0}
of_small = ib.run("linear", **small).row()


def margin_ratio(any_report: ib.Report) -> float:
    """Take a report of any model with a limit of the SVM's kind."""
    return any_report.limit.objective * any_report.comparison.margin_ratio


ratio = margin_ratio(report)

# From disk.
loaded = ib.load("runs/x").limit.gap
a_limit = ib.load("runs/x/limit.safetensors", ib.limits.GLNLimit).zeta.ndim
a_run = ib.load("runs/y", ib.Report[Literal["gdln"]]).limit.rank

# Training, classifiers, a sweep.
network = ib.GLN(4, n_units=2, n_contexts=2, init="balanced", device=torch.device("cpu"))
settings = ib.TrainingSettings(trainer="momentum", loss="exponential", schedule=((20, None),))
trajectory = ib.train(network, X, y, contexts, settings=settings)
sample = ib.Sample(X, y, contexts)
inputs: np.ndarray = sample.X
on_device: torch.Tensor = ib.Sample(torch.eye(4), y).X
found = ib.compare(limit, network, sample, ib.Sample(X.tolist(), y, contexts)).margin_ratio
classifier = ib.estimators.GLNLimitClassifier(solver="cvxpy:ECOS", on_inseparable="raise")
predictions = classifier.fit(X, y).predict(X)
rows = ib.sweep("gln", {"seed": [0, 1], "cutoffs": ["median", "axes"]}, out="runs/sweep", steps=10)
every = ib.sweep(
    "frelu",
    {
        "n_train": "10:20", "n_val": lambda cell: cell["n_train"] // 2, "steps": [100, (10, 20)],
        "learning_rate": np.logspace(-3, -1, 3), "trainer": ("momentum", "annealed"), "tol": 1e-3,
        "constant": [True, None], "positive": [0, ["a", "b"]], "data": ["digits", "table.csv"],
    },
    out="runs/every",
)  # fmt: skip
grid: ib.sweeps.GridOptions = {"weight_decay": [0, 1e-3]}
ib.sweep("gln", {**grid, "seed": range(3)}, out="runs/sweep")
computed = {name: [1, 2] for name in ("hidden_units", "n_train")}
ib.sweep("gln", ib.sweeps.product(computed) * {"seed": [0]}, out="runs/sweep")
optimiser = ib.optim.Momentum(network.parameters(), n_samples=4, loss="logistic")

# Data and gates of one's own: arrays, tensors, lists; whatever has `transform`.
own = ib.run("gln", X=X, y=y, gating=ib.HyperplaneContexts(2), steps=0)
ib.run("linear", X=torch.eye(4), y=[1, -1, 1, -1], X_val=None, steps=0)
