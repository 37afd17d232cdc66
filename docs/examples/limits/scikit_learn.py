"""
A limit as a classifier of scikit-learn
=======================================

How many units does a gated linear network want, if it is trained to its end? Nothing has to be
trained to ask: the limit itself is a classifier, which scikit-learn tunes like any other.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import implicit_bias as ib

warnings.simplefilter("ignore", ib.estimators.InseparableWarning)  # see below
X, y = make_moons(120, noise=0.25, random_state=0)
gating = ib.HyperplaneContexts(n_contexts=2, random_state=0)
pipeline = make_pipeline(StandardScaler(), ib.estimators.GLNLimitClassifier(gating))
units = [1, 2, 4, 8, 16, 32, 64]
search = GridSearchCV(pipeline, {"glnlimitclassifier__gating__n_units": units}, cv=5)
search.fit(X, y)
print(search.best_params_, f"{search.best_score_:.3f}")

# %%
# Each of the points below is a mean over five limits. Where so few units separate nothing the
# classifier warns, and is the limit with weight decay. With units enough a limit makes no error on
# the samples that it is made of: only folds tell which is better.

result = search.cv_results_
mean, spread = result["mean_test_score"], result["std_test_score"]
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.5), layout="constrained")
axes[0].errorbar(units, mean, spread, marker="o", capsize=3)
axes[0].set_xscale("log", base=2)
axes[0].set_xlabel("units")
axes[0].set_ylabel("accuracy, five folds")
best = search.best_params_["glnlimitclassifier__gating__n_units"]
axes[0].set_title(f"{best} units do best: {search.best_score_:.1%}")
xx, yy = np.meshgrid(np.linspace(-1.6, 2.6, 160), np.linspace(-1.2, 1.7, 160))
labels = search.predict(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape)
axes[1].pcolormesh(xx, yy, labels, cmap="RdBu_r", alpha=0.4)
axes[1].scatter(X[:, 0], X[:, 1], c=y, cmap="coolwarm", s=12, edgecolors="k", linewidths=0.4)
axes[1].set_title(f"The limit of {best} units")
plt.show()
