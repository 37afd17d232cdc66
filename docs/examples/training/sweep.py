"""
A sweep: hundreds of limits in one table
========================================

How does the norm of a limit grow with the number of samples, and what do more units change? A
sweep runs a model for every combination of options and makes one table of it (:doc:`sweeps
</sweeps>`). With no training step a cell is a certified limit, and takes milliseconds.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import implicit_bias as ib

grid = {"hidden_units": [2, 5, 10], "n_train": [20, 40, 80, 160], "seed": range(6)}
with TemporaryDirectory() as folder:
    done = ib.sweep("gln", grid, out=folder, steps=0)
    rows = done.frame()
print(f"{done.n_done} limits, {(rows.status == 'SOLVED').sum()} of them certified")

# %%
# The norm at margin 1 is one over the margin: more samples leave less room. More units have more
# predictors to choose from, and the same samples cost them less.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for units, group in rows.groupby("hidden_units"):
    by_size = group.groupby("n_train").objective
    ax.errorbar(
        by_size.mean().index,
        by_size.mean(),
        by_size.std(),
        marker="o",
        capsize=3,
        label=f"{units} units",
    )
ax.set_xscale("log")
ax.set_xticks(grid["n_train"], [str(size) for size in grid["n_train"]])
ax.minorticks_off()
ax.set_xlabel("samples")
ax.set_ylabel("least norm at margin 1")
ax.set_title(f"{done.n_done} limits of gated linear networks on digits")
ax.legend()
plt.show()
