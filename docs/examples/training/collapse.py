"""
Collapse of features
====================

What do the last layers of a classifier look like in the end? If features are free, those of one
class become one vector, and the vectors of the classes a figure that only the sizes of the classes
decide (:doc:`neural collapse </collapse>`). Here one class has four times as many samples as each
of the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import implicit_bias as ib

labels = np.repeat([0, 1, 2], [32, 8, 8])
limit = ib.limits.solve_collapse(labels, dimension=2).require()
network = ib.networks.UnconstrainedFeatures(len(labels), hidden_widths=(2,), n_outputs=3)


def features(module: ib.networks.UnconstrainedFeatures) -> dict[str, np.ndarray]:
    """Keep the features of all samples, at the scale of the longest."""
    found = module.features().detach().numpy().copy()
    return {"features": found / np.linalg.norm(found, axis=1).max()}


settings = ib.TrainingSettings("momentum", batch_size=0, schedule=((1500, None),), n_checkpoints=12)
run = ib.train(
    network, np.eye(len(labels)), np.eye(3)[labels], settings=settings, observer=features
)
angles = np.degrees(np.arccos(limit.feature_cosines))
print(
    f"{angles[0, 1]:.1f} degrees between the large class and a small one, "
    f"{angles[1, 2]:.1f} between the small ones"
)

# %%
# Features of a class come together, and the angles between the classes become those of the limit,
# which is proved by multipliers. Classes of unequal sizes have unequal angles (Thrampoulidis et
# al.). Lines are the limit, turned to where the network's features are.

target = limit.features / limit.feature_norms.max()
final = run.observed["features"][-1]
U, _, V = np.linalg.svd(target[labels].T @ final)  # features are known up to a rotation
target = target @ U @ V
figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
colours = np.array(["tab:blue", "tab:orange", "tab:green"])
for end, colour in zip(target, colours, strict=True):
    ax.plot([0, end[0]], [0, end[1]], color=colour, lw=1.5)
    ax.plot(*end, "x", color=colour, ms=14)
dots = ax.scatter(*run.observed["features"][0].T, c=colours[labels], edgecolors="k", lw=0.5)
ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", xticks=[], yticks=[])


def show(frame: int) -> None:
    """Draw the features of a checkpoint."""
    now = run.observed["features"][frame]
    dots.set_offsets(now)
    away = np.abs(now - target[labels]).max()
    ax.set_title(f"Features at step {run.step[frame]:.0f}: {away:.1%} away from the limit")


animation = FuncAnimation(figure, show, frames=len(run.step), interval=500)
