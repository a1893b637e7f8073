"""
How many clusters, and is there more than one?
==============================================

Every method that cuts finds clusters in noise. ``n_clusters="auto"`` first asks
whether the data look any different from one cluster.
"""

# %%
# Two tables of the same size and the same number of features: four groups that
# overlap a little, and one cloud without any.

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
# The line is the silhouette of the consensus for every number of clusters, the band
# what draws with one cluster of the same covariance reach. Four groups rise far above
# it at four; the cloud stays within, and the answer is one.

fig, axes = plt.subplots(
    1,
    2,
    figsize=(8, 3.2),
    sharey=True,
    num="Silhouettes over the number of clusters, beside draws that have one cluster",
)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    KSelectionDisplay.from_estimator(model, "silhouette").plot(ax)
    ax.set(title=f"{name}: {model.n_clusters_} suggested", xlim=(1.5, 12.5))
plt.show()
