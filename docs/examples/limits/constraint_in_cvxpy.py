"""
A constraint of your own, in cvxpy
==================================

What does a symmetry cost? Every program of this package can be stated in cvxpy, as its paper
writes it, and takes further terms and constraints there. Here the max-margin predictor of two
digits has to give an image and its mirror image the same score (:doc:`programs in cvxpy
</programs>`).
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import implicit_bias as ib

data = ib.load_digits(n_train=40, random_state=0)
X, y = data.X_train, data.y_train
problem = ib.programs.HardMarginSVM().literal(X, y)
free = problem.solve()
(beta,) = problem.variables()
weights = beta.value.copy()

# %%
# The last input is the constant, the others are the pixels, row by row.

pixels = cp.reshape(beta[:64], (8, 8), order="C")
mirrored = cp.Problem(problem.objective, [*problem.constraints, pixels == pixels[:, ::-1]])
bound = mirrored.solve()
print("norm without and with the symmetry:", free, bound)
print("by the package's own solver:", ib.solve_linear_svm(X, y).require().objective)

# %%
# The constrained predictor still separates all samples, at a larger norm: its margin, one over the
# norm, is smaller. That a free network goes to the left picture is the theorem of Soudry et al.

figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.6), layout="constrained")
size = np.abs([weights[:64], beta.value[:64]]).max()
for ax, w, name in zip(
    axes, (weights, beta.value), ("No constraint", "Mirror images"), strict=True
):
    image = ax.imshow(w[:64].reshape(8, 8), cmap="RdBu_r", vmin=-size, vmax=size)
    ax.set_title(f"{name}: margin {1 / np.linalg.norm(w):.3f}")
    ax.set_xticks([], [])
    ax.set_yticks([], [])
figure.colorbar(image, ax=axes, label="weight of a pixel", shrink=0.8)
plt.show()
