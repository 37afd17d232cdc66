"""
Decision maps on the way to the limit
=====================================

Where does gradient descent take a gated linear network? Its limit is the solution of a convex
program in the data and the gates, which is known before any training (:doc:`gated linear networks
</gln>`). Here the plane has four quadrants, one for each pair of contexts, and a linear predictor
in each.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import implicit_bias as ib

X, y = ib.datasets.make_quadrants(60)
contexts = ib.HyperplaneContexts(2, 2, cutoffs="axes").fit(X)
limit = ib.solve_gln_svm(X, y, contexts.transform(X)).require()
print(f"norm at margin 1: {limit.objective:.4f}, proved up to {limit.gap:.0e}")

# %%
# A network with these gates is trained, and its scores on a grid are kept at every checkpoint.

side = np.linspace(-1, 1, 90)
grid = np.stack([*np.meshgrid(side, side), np.ones((90, 90))], axis=-1).reshape(-1, 3)
network = ib.GLN(3, 2, 2, random_state=1)
settings = ib.TrainingSettings("annealed", schedule=((800, None),), n_checkpoints=9)
run = ib.train(
    network,
    X,
    y,
    contexts.transform(X),
    settings=settings,
    X_val=grid,
    gates_val=contexts.transform(grid),
)
predicted = np.sign(limit.predictor(grid, contexts.transform(grid)))
agreement = (np.sign(run.scores) == predicted).mean(axis=1)
ratio = run.normalised_margin * limit.objective

# %%
# The labels of the network become those of the limit. By the theorem of Lippl, Abbott and Chung a
# stationary point of the margin problem in which every unit is alive is this limit; the margin
# ratio measures how near the network has come.

figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.1), layout="constrained", sharey=True)
for ax, labels in zip(axes, (predicted, np.sign(run.scores[0])), strict=True):
    image = ax.imshow(
        labels.reshape(90, 90),
        origin="lower",
        extent=(-1, 1, -1, 1),
        cmap="coolwarm",
        vmin=-1,
        vmax=1,
        alpha=0.5,
    )
    ax.scatter(X[:, 0], X[:, 1], c=y, cmap="coolwarm", s=18, edgecolors="k", linewidths=0.5)
    ax.axhline(0, color="k", lw=0.5, ls=":")
    ax.axvline(0, color="k", lw=0.5, ls=":")
axes[0].set_title("Predicted limit")


def show(frame: int) -> None:
    """Draw the map of a checkpoint."""
    image.set_data(np.sign(run.scores[frame]).reshape(90, 90))
    axes[1].set_title(
        f"Network, step {run.step[frame]:.0f}: {agreement[frame]:.1%} of labels,\n"
        f"margin ratio {ratio[frame]:.3f}"
    )


animation = FuncAnimation(figure, show, frames=len(run.step), interval=600)
