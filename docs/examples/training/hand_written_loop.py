"""
An optimiser in a loop of your own
==================================

Can a plain torch loop reach a limit? With an optimiser of :mod:`implicit_bias.optim` it can: the
closure returns the margins of all samples, and everything else stays yours (:doc:`trainers as
optimisers </optimisers>`).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import implicit_bias as ib

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 10))
y = np.sign(X @ rng.normal(size=10))
inputs, labels = torch.tensor(X), torch.tensor(y)
limit = ib.solve_linear_svm(X, y).require()


def network() -> nn.Sequential:
    """Return linear layers, always from the same weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 6, bias=False), nn.Linear(6, 1, bias=False)).double()


def ratio(module: nn.Sequential) -> float:
    """Return the margin of the vector end to end, over the largest there is."""
    beta = (module[1].weight @ module[0].weight).detach().numpy()[0]
    return float((y * (X @ beta)).min() / np.linalg.norm(beta) * limit.objective)


# %%
# Both loops are written by hand, and differ in three lines.

steps, ratios = 1000, {"torch.optim.SGD": [], "ib.optim.Annealed": []}
plain = network()
sgd = torch.optim.SGD(plain.parameters(), lr=0.2)
for _ in range(steps):
    sgd.zero_grad()
    nn.functional.softplus(-labels * plain(inputs).squeeze(1)).mean().backward()
    sgd.step()
    ratios["torch.optim.SGD"].append(ratio(plain))

better = network()
annealed = ib.optim.Annealed(better.parameters(), degree=2, n_samples=len(y))
for _ in range(steps):
    annealed.step(lambda: labels * better(inputs).squeeze(1))
    ratios["ib.optim.Annealed"].append(ratio(better))

# %%
# The limit of linear layers is the hard-margin SVM (Ji and Telgarsky), and both runs go there.
# Descent of the loss would take exponentially many steps for the last per cent.

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in ratios.items():
    ax.semilogx(np.arange(1, steps + 1), values, label=f"{name}: {values[-1]:.4f} in the end")
ax.axhline(1, color="k", ls=":", label="certified limit")
ax.set_ylim(0, 1.05)
ax.set_xlabel("steps of the loop")
ax.set_ylabel("margin, of the largest")
ax.set_title("The same network, the same weights at the start, two optimisers")
ax.legend(loc="lower right")
plt.show()
