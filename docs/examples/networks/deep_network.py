"""
A deep network between a bound and its local limit
==================================================

Of networks that are gated in several layers no theorem names the limit. What can be certified is a
bound of all networks with these gates, and the local optimum next to each trained one (:doc:`deep
networks </deep-networks>`).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import implicit_bias as ib

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 6))
y = np.sign(rng.normal(size=30))
widths = (8, 8, 8)
gates = np.hstack([X @ rng.normal(size=(6, width)) > 0 for width in widths]).astype(float)
bound = ib.solve_path_lasso(X, y, gates, widths=widths).require()


def value(network: ib.DGN) -> dict[str, float]:
    """Return the norm per unit margin, of degree 1; infinite while a margin is negative."""
    scores = network(torch.tensor(X), torch.tensor(gates)).detach().numpy()
    margin = float((scores * y).min())
    squares = sum(float((weight.detach() ** 2).sum()) for weight in network.parameters())
    return {"value": (squares / 4) ** 2 / margin if margin > 0 else np.inf}


settings = ib.TrainingSettings("annealed", schedule=((800, None),), n_checkpoints=30)
runs, local = [], []
for seed in range(3):
    network = ib.DGN(6, widths=widths, random_state=seed)
    runs.append(ib.train(network, X, y, gates, settings=settings, observer=value))
    local.append(ib.local_limit(network, X, y, gates))
    print(f"start {seed}: {local[-1].status.name}, value {local[-1].value:.4f}")

# %%
# Curves come down to lines of their own colour, the certified optima next to them, and starts may
# end at different ones. The bound holds for every network with these gates, and need not be
# attained: no theorem says what is between it and the best local optimum (grey).

figure, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
for seed, (run, point) in enumerate(zip(runs, local, strict=True)):
    (line,) = ax.semilogx(run.step[1:], run.observed["value"][1:], label=f"start {seed}")
    ax.axhline(point.value, color=line.get_color(), ls=":", lw=1)
best = min(point.value for point in local)
ax.axhspan(bound.certificate.dual_objective, best, color="0.9")
ax.axhline(bound.certificate.dual_objective, color="k", label="bound of all networks, certified")
ax.set_ylim(0, 3 * best)
ax.set_xlabel("steps")
ax.set_ylabel("norm per unit margin")
ax.set_title(f"Best local optimum {best:.2f}, bound {bound.certificate.dual_objective:.2f}")
ax.legend()
plt.show()
