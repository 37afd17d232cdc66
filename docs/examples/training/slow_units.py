"""
Slow units: what finite time hides
==================================

Is a network with a small loss near its limit? A unit that the limit needs may still be asleep. Its
dual norm tells: above 1 it wakes up, like a power of log(1/loss), and below 1 it dies (:doc:`slow
units </slow-units>`).
"""

import matplotlib.pyplot as plt
import numpy as np

import implicit_bias as ib

data = ib.load_digits(n_train=80, random_state=0)
gating = ib.HyperplaneGates(8, random_state=0).fit(data.X_train)
X, y, gates = data.X_train, data.y_train, gating.transform(data.X_train)
limit = ib.solve_frelu_svm(X, y, gates).require()

network = ib.FReLU(X.shape[1], gates.shape[1], random_state=3)
settings = ib.TrainingSettings("momentum", schedule=((1500, None),), n_checkpoints=2)
ib.train(network, X, y, gates, settings=settings)
growth = ib.dynamics.unit_growth(network, X, y, gates, limit=limit)
for change in growth.changes:
    print(
        f"unit {change.unit}: {change.share:.1%} of the norm, like power {change.exponent:+.3f} of "
        f"log(1/loss), {change.predicted_share:.1%} in the limit"
    )

# %%
# Bars are the shares of the units in the norm, now and in the limit. Units with a dual norm above
# 1 are those that the limit needs more of; the power says how slowly they come.

order = np.argsort(-growth.limit_shares)
at = np.arange(len(order))
figure, ax = plt.subplots(figsize=(7.2, 4), layout="constrained")
ax.bar(at - 0.2, growth.shares[order], 0.4, label="network, now")
ax.bar(at + 0.2, growth.limit_shares[order], 0.4, label="limit, certified")
for place, unit in enumerate(order):
    height = max(growth.shares[unit], growth.limit_shares[unit])
    ax.text(place, height + 0.004, f"{growth.dual_norms[unit]:.2f}", ha="center", fontsize=9)
ax.set_title(
    f"Shares of units, and their dual norms, at log(1/loss) = {growth.log_inverse_loss:.0f}"
)
ax.set_xticks(at, [f"unit {unit}" for unit in order], rotation=45)
ax.set_ylabel("share of the norm")
ax.legend()
plt.show()
