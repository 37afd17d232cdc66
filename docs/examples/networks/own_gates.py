"""
A network with gates of your own
================================

Do gates have to be half-spaces? Anything with a method ``transform(X)`` that returns 0 and 1 will
do: the limit, its certificate and its theorem are the same (:doc:`frozen gates </frelu>`). These
gates are rings around the origin and sectors of the plane.
"""

import matplotlib.pyplot as plt
import numpy as np

import implicit_bias as ib


class RingsAndSectors:
    """Gates that are open on every second ring, and on sectors."""

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return gates (n, 9) of points (n, 3), the last of which is always open."""
        radius, angle = np.hypot(X[:, 0], X[:, 1]), np.arctan2(X[:, 1], X[:, 0])
        rings = [np.sin(k * np.pi * radius) > 0 for k in range(1, 5)]
        sectors = [np.sin(k * angle) > 0 for k in range(1, 5)]
        return np.column_stack([*rings, *sectors, np.ones(len(X))]).astype(float)


rng = np.random.default_rng(1)
points = rng.uniform(-1, 1, size=(90, 2))
X = np.column_stack([points, np.ones(90)])
y = np.where(np.hypot(*points.T) < 0.7, 1.0, -1.0)
report = ib.run("frelu", X=X, y=y, gating=RingsAndSectors(), trainer="annealed", steps=300)
print(report)

# %%
# The map of the limit is made of rings and sectors, one linear predictor in each of their cells.
# It is the limit of training by the theorem of Lippl, Abbott and Chung, whatever the gates are;
# the report says which of its conditions were proved or measured here.

side = np.linspace(-1, 1, 240)
grid = np.stack([*np.meshgrid(side, side), np.ones((240, 240))], axis=-1).reshape(-1, 3)
scores = report.limit.predictor(grid, RingsAndSectors().transform(grid)).reshape(240, 240)
figure, ax = plt.subplots(figsize=(5.4, 4.8), layout="constrained")
image = ax.imshow(
    scores, origin="lower", extent=(-1, 1, -1, 1), cmap="RdBu_r", vmin=-3, vmax=3, alpha=0.7
)
ax.contour(side, side, scores, levels=[0], colors="k", linewidths=0.8)
ax.scatter(points[:, 0], points[:, 1], c=y, cmap="coolwarm", s=22, edgecolors="k", lw=0.6)
ax.set_title(f"Limit behind rings and sectors; the network: {report.comparison.margin_ratio:.3f}")
ax.set(xticks=[], yticks=[])
figure.colorbar(image, label="score at smallest margin 1", shrink=0.8)
plt.show()
