"""
Weight decay: one program for each penalty
==========================================

Where does a network end whose weights decay? At the solution of a convex program that is finite,
and is reached (:doc:`finite limits </finite-limits>`). As the penalty falls its units come alive
one after the other.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import implicit_bias as ib

rng = np.random.default_rng(2)
angles = rng.uniform(0, 2 * np.pi, 60)
points = rng.uniform(0.25, 1, 60)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
X = np.column_stack([points, np.ones(60)])
y = np.where(np.abs(angles % np.pi - np.pi / 2) < np.pi / 4, 1.0, -1.0)
gating = ib.HyperplaneGates(12, random_state=0).fit(X)
penalties = np.geomspace(0.1, 1e-3, 9)
path = ib.limits.solve_fit_path(X, y, gating.transform(X), penalties=penalties)
print(sum(fit.status.name == "SOLVED" for fit in path), "of", len(path), "certified")

# %%
# A network with the same gates, trained with the one of these penalties, ends there: the slopes of
# its own loss certify how far its value is above the optimum.

middle = path[4]
network = ib.FReLU(3, middle.zeta.shape[0], random_state=0)
settings = ib.TrainingSettings(
    batch_size=0,
    momentum=0.9,
    weight_decay=float(penalties[4]),
    schedule=((4000, 0.3),),
    n_checkpoints=2,
)
ib.train(network, X, y, gating.transform(X), settings=settings)
gap = middle.gap_of(network, X, y, gating.transform(X))
print(f"gap of the trained network at penalty {penalties[4]:.1g}: {gap:.1e}")

# %%
# From left to right along the path: no unit, a few, those of the largest margin. By the theorem
# there is no bad minimum, at any width, whether the data are separable or not.

side = np.linspace(-1.05, 1.05, 90)
grid = np.stack([*np.meshgrid(side, side), np.ones((90, 90))], axis=-1).reshape(-1, 3)
maps = [np.tanh(fit.predictor(grid, gating.transform(grid)).reshape(90, 90)) for fit in path]
norms = np.array([fit.unit_norms for fit in path])
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
image = axes[0].imshow(
    maps[0],
    origin="lower",
    extent=(-1.05, 1.05, -1.05, 1.05),
    cmap="coolwarm",
    vmin=-1,
    vmax=1,
    alpha=0.6,
)
axes[0].scatter(points[:, 0], points[:, 1], c=y, cmap="coolwarm", s=18, edgecolors="k", lw=0.5)
axes[1].semilogx(penalties, norms)
axes[1].invert_xaxis()
axes[1].set_xlabel("weight decay")
axes[1].set_ylabel("norm of each unit")
marker = axes[1].axvline(penalties[0], color="k", ls=":")


def show(frame: int) -> None:
    """Draw the limit of a penalty."""
    image.set_data(maps[frame])
    marker.set_xdata([penalties[frame]] * 2)
    axes[0].set_title(f"Limit at penalty {penalties[frame]:.1g}")
    axes[1].set_title(f"{path[frame].live.sum()} of {norms.shape[1]} units are alive")


animation = FuncAnimation(figure, show, frames=len(path), interval=500)
