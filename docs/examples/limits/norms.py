"""
Adam, Muon and gradient descent: each has a limit of its own
============================================================

Which margin does an optimiser make large? That in the norm in which its steps are steepest: Adam
without its constant the largest entry, Muon the spectral norm, gradient descent the Euclidean one
(:doc:`norms of optimisers </norms-of-optimisers>`). All three are trained here on three classes of
digits, and each of them is measured against all three certified optima.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import implicit_bias as ib

images, digits = load_digits(n_class=3, return_X_y=True)
X, y = images[:45] / 16, digits[:45]
norms = {"linf": "largest entry", "spectral": "spectral", "l2": "Euclidean"}
limits = {norm: ib.limits.solve_multiclass_svm(X, y, norm=norm).require() for norm in norms}

# %%
# Every trainer gets the same linear predictor of three scores. Its margin per norm is the smallest
# of all differences between the own score and another, over the norm of the weights.

trainers = {"adam": "linf", "muon": "spectral", "momentum": "l2"}
sizes = {
    "linf": lambda W: np.abs(W).max(),
    "spectral": lambda W: np.linalg.norm(W, 2),
    "l2": np.linalg.norm,
}
others = np.arange(3) != y[:, None]


def ratios(network: ib.DeepLinear) -> dict[str, float]:
    """Return the margin in each norm, over the largest there is."""
    W = network.zeta().detach().numpy().reshape(3, -1)
    scores = X @ W.T
    margin = (scores[np.arange(len(y)), y][:, None] - scores)[others].min()
    return {norm: margin / sizes[norm](W) * limits[norm].objective for norm in norms}


runs = {}
for trainer in trainers:
    network = ib.DeepLinear(X.shape[1], n_outputs=3, random_state=0)
    settings = ib.TrainingSettings(
        trainer, batch_size=0, schedule=((1500, None),), n_checkpoints=24
    )
    runs[trainer] = ib.train(network, X, np.eye(3)[y], settings=settings, observer=ratios)

# %%
# The thick curve of each panel is that of the optimiser whose norm it is, and the one that theory
# sends to 1: to no other is that promised, though one may come near. Numbers are those of the last
# step. Adam takes longest, as its steps fall.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), layout="constrained", sharey=True)
for ax, (norm, name) in zip(axes, norms.items(), strict=True):
    for trainer, run in runs.items():
        own = trainers[trainer] == norm
        end = run.observed[norm][-1]
        ax.semilogx(
            run.step[1:], run.observed[norm][1:], lw=3 if own else 1, label=f"{trainer} {end:.2f}"
        )
    ax.axhline(1, color="k", ls=":")
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("steps")
    ax.set_title(f"Margin per norm: {name}", fontsize=10)
    ax.legend(loc="lower right")
axes[0].set_ylabel("of the certified optimum")
plt.show()
