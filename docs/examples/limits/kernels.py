"""
Kernels before and after training
=================================

Does a network stay near the kernel that it starts with? In the lazy picture it does. Under a loss
that falls for ever no network stays there: its weights grow, and its tangent kernel turns
(:doc:`kernels </kernels>`).
"""

import matplotlib.pyplot as plt
import numpy as np

import implicit_bias as ib

rng = np.random.default_rng(0)
X = rng.normal(size=(48, 3))
y = np.sign(X[:, 0] * X[:, 1])
order = np.argsort(y, kind="stable")
X, y = X[order], y[order]
widths = (24, 24)
gates = np.hstack([X @ rng.normal(size=(3, width)) > 0 for width in widths]).astype(float)

network = ib.DGN(3, widths=widths, random_state=0)
before = ib.kernels.empirical_ntk(network, X, gates)
settings = ib.TrainingSettings("annealed", schedule=((500, None),), n_checkpoints=2)
ib.train(network, X, y, gates, settings=settings)
after = ib.kernels.empirical_ntk(network, X, gates)
paths = ib.kernels.neural_path_kernel(X, gates, widths=widths)


def alignment(K: np.ndarray) -> float:
    """Return the cosine between a kernel and that of the labels."""
    return float(y @ K @ y / (len(y) * np.linalg.norm(K)))


# %%
# Samples are in the order of their labels. The tangent kernel of the start is near the kernel of
# the paths, which knows gates and inputs alone: its mean is a multiple of it, by a theorem.
# Training has made blocks of the classes: the kernel is aligned with the labels that it has
# learned.

named = {"Paths (gates alone)": paths, "Tangents at the start": before, "After training": after}
figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.2), layout="constrained")
for ax, (name, K) in zip(axes, named.items(), strict=True):
    K = K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    image = ax.imshow(K, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_title(f"{name}\nalignment {alignment(K):.2f}", fontsize=10)
    ax.set_xticks([], [])
    ax.set_yticks([], [])
figure.colorbar(image, ax=axes, label="cosine", shrink=0.8)
plt.show()
