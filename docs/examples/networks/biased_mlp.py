"""
A network with biases, and what becomes of it
=============================================

No theorem names the limit of a network with biases, which is not homogeneous. But as all weights
grow the upper biases come to nothing beside the rest: :func:`~implicit_bias.diagnose` says which
parameters those are, and of which network training then solves the margin problem (:doc:`diagnosis
</diagnose>`).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import implicit_bias as ib

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.where(np.hypot(*X.T) > 1.1, 1.0, -1.0)
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1)).double()
inputs, labels = torch.tensor(X), torch.tensor(y)
optimiser = torch.optim.SGD(network.parameters(), lr=2.0, momentum=0.9)
states = {}
for step in range(1, 5001):
    optimiser.zero_grad()
    margins = labels * network(inputs).squeeze(1)
    nn.functional.softplus(-margins).mean().backward()
    optimiser.step()
    if step in (10, 300, 5000):
        states[step] = {name: value.clone() for name, value in network.state_dict().items()}

found = ib.diagnose(network, X, y, optimizer=optimiser, batches="full", earlier=states[300])
vanishing = found.objects["rates"].homogenised.vanishing
print(found.verdict)
print("what vanishes:", vanishing, "degree:", found.objects["rates"].homogenised.degree)

# %%
# What follows compares the network with itself without the upper bias. Where both give the same
# label everywhere, the bias has nothing left to say: the theorem (Cai et al.) is about the right
# column.


def scores(state: dict[str, torch.Tensor], keep: float) -> np.ndarray:
    """Return scores on the grid, the vanishing parameters times `keep`."""
    with torch.no_grad():
        network.load_state_dict(
            {name: value * (keep if name in vanishing else 1) for name, value in state.items()}
        )
        return network(torch.tensor(grid)).numpy().reshape(120, 120)


side = np.linspace(-3, 3, 120)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.3), layout="constrained", sharey=True)
for ax, (step, state) in zip(axes, states.items(), strict=True):
    whole, without = scores(state, 1.0), scores(state, 0.0)
    ax.contourf(
        side, side, np.sign(whole), levels=[-2, 0, 2], colors=["#4a7ebb", "#c44e52"], alpha=0.4
    )
    ax.contour(side, side, without, levels=[0], colors="k", linestyles="--")
    ax.scatter(X[:, 0], X[:, 1], c=y, cmap="coolwarm", s=12, edgecolors="k", lw=0.4)
    same = (np.sign(whole) == np.sign(without)).mean()
    ax.set_title(f"step {step}: {same:.0%} the same", fontsize=10)
    ax.set(xticks=[], yticks=[])
figure.suptitle("Labels of the network, and (dashed) its border without the upper bias")
plt.show()
