"""
Attention maps, and the program that they come to
=================================================

Which token does attention select, and in which direction do its weights grow? It depends on the
start, but once it has selected, the direction is that of the max-margin program of the selected
tokens (:doc:`attention </attention>`).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import implicit_bias as ib

data = ib.datasets.make_tokens(24, 8, 12)
network = ib.networks.Attention(12, init_scale=0.3, random_state=0)


def attention(module: ib.networks.Attention) -> dict[str, np.ndarray]:
    """Keep the weights, and what every sequence pays attention to."""
    W = module.zeta().detach().numpy().copy()
    logits = np.einsum("ntd,de,ne->nt", data.X, W, data.queries)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return {"W": W, "map": odds / odds.sum(axis=1, keepdims=True)}


settings = ib.TrainingSettings("normalised", "attention", schedule=((2000, None),), n_checkpoints=9)
run = ib.train(network, data.X, data.scores, data.queries, settings=settings, observer=attention)
tokens = run.observed["map"][-1].argmax(axis=1)
limit = ib.limits.solve_token_svm(data.X, data.queries, data.scores, tokens).require()
ratios = []
for W in run.observed["W"]:
    proved = limit.certify(data.X, data.queries, data.scores, W)
    ratios.append(proved.dual_objective / proved.objective)
print("self-consistent:", limit.is_local, "margin ratio at the end:", ratios[-1])

# %%
# Rows are sequences, columns tokens; circles are the tokens of the largest scores. Attention is a
# single token a row long before the direction is that of the program: the theorem of Tarzanagh et
# al. is local, and the program is that of the tokens selected, not of the best.

figure, axes = plt.subplots(1, 2, figsize=(7.4, 4.4), layout="constrained")
image = axes[0].imshow(run.observed["map"][0], cmap="Greys", vmin=0, vmax=1, aspect="auto")
axes[0].plot(data.best, np.arange(24), "o", mfc="none", mec="tab:orange", ms=9)
axes[0].set(xlabel="token", ylabel="sequence", xticks=[], yticks=[])
axes[1].semilogx(run.step[1:], ratios[1:])
axes[1].axhline(1, color="k", ls=":")
axes[1].set(xlabel="step", ylim=(0, 1.05), title="Margin ratio to the program")
(dot,) = axes[1].plot(1, ratios[1], "o")


def show(frame: int) -> None:
    """Draw the attention of a checkpoint."""
    now = run.observed["map"][frame]
    image.set_data(now)
    dot.set_data([max(run.step[frame], 1)], [ratios[max(frame, 1)]])
    axes[0].set_title(
        f"Step {run.step[frame]:.0f}: best token in {(now.argmax(1) == data.best).mean():.0%},\n"
        f"mean attention to one {now.max(axis=1).mean():.2f}"
    )


animation = FuncAnimation(figure, show, frames=len(run.step), interval=500)
