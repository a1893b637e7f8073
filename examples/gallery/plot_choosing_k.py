"""
How many clusters, and is there more than one?
==============================================

Clustering methods find clusters even in noise. ``n_clusters="auto"`` first tests
whether the data differ from a single cluster.
"""

# %%
# Two tables of the same size: four groups that overlap a little, and one cloud without
# groups.

import matplotlib.pyplot as plt
import numpy as np

from mdec import MDEC
from mdec.report.plots import KSelectionDisplay

rng = np.random.default_rng(1)
groups = rng.normal(0.0, 0.8, (4, 30))[np.repeat(range(4), 40)]
tables = {
    "four groups": groups + rng.normal(size=(160, 30)),
    "one cloud": rng.normal(size=(160, 30)) @ rng.normal(size=(30, 30)),
}
models = {
    name: MDEC(n_clusters="auto", ensemble_size=50, random_state=0, n_jobs=2).fit(X)
    for name, X in tables.items()
}
for name, model in models.items():
    print(f"{name}: {model.n_clusters_}. {model.k_selection_.reason}\n")

# %%
# The silhouette of the consensus is one of the factors of the score. With four groups
# it has a peak at K = 4; for the cloud it is low everywhere. The test itself compares
# the data with simulations of one cluster that have the same covariance.

fig, axes = plt.subplots(
    1,
    2,
    figsize=(8, 3.2),
    sharey=True,
    num="Silhouette by number of clusters, with four groups and with none",
)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    KSelectionDisplay.from_estimator(model, "silhouette").plot(ax)
    ax.set(title=f"{name}: {model.n_clusters_} suggested", xlim=(1.5, 12.5))
plt.show()
