"""
One ensemble, three consensus functions
=======================================

The co-association matrix counts how often the members put each pair of samples into
the same cluster. The three consensus functions turn it into clusters in different ways.
"""

# %%
# Make the ensemble once, then pass it to each consensus function with the number of
# clusters.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdec import generate_ensemble
from mdec.bench.evaluation import nmi_max
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import bipartite, hierarchical, spectral

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]
ensemble = generate_ensemble(X, random_state=0, n_jobs=2)
labels = {
    "hierarchical": hierarchical(ensemble, 10),
    "spectral": spectral(ensemble, 10, random_state=0),
    "bipartite": bipartite(ensemble, 10, random_state=0),
}

# %%
# The same matrix three times, sorted by the clusters of each function. A dark block is
# a cluster on which the members agree. Pale blue beside the diagonal shows
# disagreement, and that is where the three answers differ.

pairs = locally_weighted_coassociation(ensemble)
fig, axes = plt.subplots(
    1,
    3,
    figsize=(9, 3.3),
    num="The co-association of 500 digits in the order of each consensus function",
)
for ax, (name, found) in zip(axes, labels.items(), strict=True):
    order = np.argsort(found, kind="stable")
    shown = ax.imshow(pairs[np.ix_(order, order)], cmap="Blues", vmax=0.6)
    ax.set(xticks=[], yticks=[], title=f"{name}, NMI {nmi_max(y, found):.2f}")
fig.colorbar(shown, ax=axes, shrink=0.8, label="co-association")
plt.show()
