"""
How far do trainers come?
=========================

The limit is known; how long does it take to get there? Four trainers start from the same weights
of a gated linear network. What each still lacks of the largest margin is measured against the
certified optimum (:doc:`trainers </trainers>`).
"""

import matplotlib.pyplot as plt

import implicit_bias as ib

data = ib.load_digits(n_train=100, random_state=0)
contexts = ib.HyperplaneContexts(5, 2, random_state=0).fit(data.X_train)
X, y, gates = data.X_train, data.y_train, contexts.transform(data.X_train)
limit = ib.solve_gln_svm(X, y, gates).require()

runs = {}
for trainer, rate in (
    ("constant", 0.1),
    ("normalised", None),
    ("momentum", None),
    ("annealed", None),
):
    network = ib.GLN(X.shape[1], 5, 2, random_state=0)
    settings = ib.TrainingSettings(
        trainer, batch_size=0, schedule=((1000, rate),), n_checkpoints=40
    )
    runs[trainer] = ib.train(network, X, y, gates, settings=settings)

# %%
# Steps of a fixed size creep: on this scale the curve of plain descent is nearly flat, as the rate
# O(1 / log t) of linear predictors (Soudry et al.) lets expect. Normalised steps are faster, and
# the annealed margin arrives. Nothing is above the optimum, which is proved.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for trainer, run in runs.items():
    lacking = 1 - run.normalised_margin * limit.certificate.dual_objective
    separated = run.smallest_margin > 0
    (line,) = ax.loglog(run.step[separated], lacking[separated])
    ax.annotate(
        f"{trainer}: {lacking[-1]:.1g}",
        (run.step[-1], lacking[-1]),
        xytext=(5, 0),
        textcoords="offset points",
        color=line.get_color(),
        va="center",
    )
ax.set_xlim(10, 20000)
ax.set_xlabel("steps")
ax.set_ylabel("1 - margin ratio")
ax.set_title("What is missing to the largest margin")
plt.show()
