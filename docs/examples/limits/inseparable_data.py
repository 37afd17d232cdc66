"""
Data that nothing separates, and the proof
==========================================

A perceptron does not stop: is it slow, or is there nothing to find?
:func:`~implicit_bias.is_separable` answers with a proof either way. Where no linear predictor
separates two classes, their convex hulls meet, and the proof is a point in which they do: a mean
of samples of one class that is a mean of samples of the other.
"""

import matplotlib.pyplot as plt
import numpy as np

import implicit_bias as ib

rng = np.random.default_rng(3)
y = np.repeat([1.0, -1.0], 20)
points = rng.normal(size=(40, 2)) + 1.1 * y[:, None]
X = np.column_stack([points, np.ones(40)])  # the constant is the bias

found = ib.is_separable(X, y)
print(found.message)
assert found.multipliers is not None
weights = 2 * found.multipliers  # those of each class have the sum 1
meeting = {label: weights[y == label] @ points[y == label] for label in (1.0, -1.0)}
distance = np.linalg.norm(meeting[1.0] - meeting[-1.0])

# %%
# The multipliers are the weights of both means (Farkas' lemma), and anybody can add them up.
# Circles show them by size, lines lead to the common point.

figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
for label, colour, marker in ((1.0, "tab:red", "o"), (-1.0, "tab:blue", "s")):
    own = y == label
    ax.scatter(*points[own].T, c=colour, marker=marker, s=22, label=f"class {label:+.0f}")
    for point, weight in zip(points[own], weights[own], strict=True):
        if weight > 1e-9:
            ax.plot(*np.array([point, meeting[label]]).T, color=colour, lw=0.6, alpha=0.6)
            ax.scatter(*point, s=3000 * weight, facecolors="none", edgecolors=colour)
ax.scatter(*meeting[1.0], c="k", marker="*", s=160, zorder=3, label="in both hulls")
ax.set_title(f"A point in the hulls of both classes: means differ by {distance:.0e}")
ax.legend()
ax.set_aspect("equal")
plt.show()
