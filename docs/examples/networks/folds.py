"""
Folds of a ReLU network
=======================

Where does a ReLU network bend? Along the lines on which one of its units switches, and these lines
say almost all about it: a general network can be read off from them (:doc:`equivalence
</equivalence>`). Training moves them to where the labels change.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import implicit_bias as ib

rng = np.random.default_rng(0)
points = rng.uniform(-1, 1, size=(80, 2))
X = np.column_stack([points, np.ones(80)])
y = np.where(np.hypot(*points.T) < 0.6, 1.0, -1.0)
network = ib.networks.DeepReLU(3, widths=(8, 6), random_state=0)
plane = (np.array([0.0, 0.0, 1.0]), np.eye(3)[:2])
side = np.linspace(-1, 1, 90)
grid = np.stack([*np.meshgrid(side, side), np.ones((90, 90))], axis=-1).reshape(-1, 3)


def folds(module: ib.networks.DeepReLU) -> dict[str, np.ndarray]:
    """Keep the weights of a checkpoint, layer by layer."""
    return {str(k): layer.detach().numpy().copy() for k, layer in enumerate(module.layers)}


settings = ib.TrainingSettings("annealed", schedule=((800, None),), n_checkpoints=10)
run = ib.train(network, X, y, settings=settings, X_val=grid, observer=folds)
sets = [
    ib.equivalence.fold_set(
        ib.equivalence.ReLUWeights.from_arrays([run.observed[str(k)][frame] for k in range(3)]),
        plane=plane,
        n_lines=160,
    )
    for frame in range(len(run.step))
]
for layer, unit, crossings, bends in sets[-1].counts():
    print(f"layer {layer}, unit {unit}: {crossings} crossings, the network bends at {bends}")

# %%
# Straight folds are those of the first layer; those of the second bend where they cross them, by
# the lemma that lets the layers be told apart. Shades are the label of the network.

figure, ax = plt.subplots(figsize=(5.2, 5.2), layout="constrained")
image = ax.imshow(
    np.sign(run.scores[0]).reshape(90, 90),
    origin="lower",
    extent=(-1, 1, -1, 1),
    cmap="coolwarm",
    vmin=-1,
    vmax=1,
    alpha=0.35,
)
ax.scatter(points[:, 0], points[:, 1], c=y, cmap="coolwarm", s=16, edgecolors="k", lw=0.4)
dots = [
    ax.plot([], [], ".", ms=3, color=colour, label=name)[0]
    for colour, name in (("k", "first layer"), ("tab:green", "second layer"))
]
ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[])
ax.legend(loc="lower right")


def show(frame: int) -> None:
    """Draw the folds of a checkpoint."""
    found = sets[frame]
    image.set_data(np.sign(run.scores[frame]).reshape(90, 90))
    for layer, line in enumerate(dots):
        line.set_data(*found.coordinates[found.bends & (found.layer == layer)].T)
    right = "all samples right" if run.smallest_margin[frame] > 0 else "not separated yet"
    ax.set_title(f"Folds at step {run.step[frame]:.0f}: {right}")


animation = FuncAnimation(figure, show, frames=len(run.step), interval=500)
