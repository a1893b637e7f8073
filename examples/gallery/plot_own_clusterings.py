"""
Combine your own clusterings
============================

An ensemble can come from anywhere: other algorithms, other people, other data about the
same samples. Labels may be strings, and -1 means that a clustering leaves a sample out.
"""

# %%
# Thirty clusterings by three algorithms of scikit-learn. None is given the right number
# of groups, and DBSCAN leaves samples out.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_moons

from mdec import Ensemble
from mdec.consensus import hierarchical
from mdec.weights import ensemble_driven_cluster_index

X, y = make_moons(400, noise=0.06, random_state=0)
columns = [KMeans(k, n_init=1, random_state=k).fit_predict(X) for k in range(10, 20)]
columns += [
    AgglomerativeClustering(k, linkage="single").fit_predict(X) for k in range(2, 12)
]
columns += [DBSCAN(eps).fit_predict(X) for eps in np.linspace(0.08, 0.2, 10)]
ensemble = Ensemble.from_labels(np.column_stack(columns))
weights = ensemble_driven_cluster_index(ensemble)
labels = hierarchical(ensemble, n_clusters=2)

# %%
# One clustering of each kind, and the consensus of all thirty. Samples that a
# clustering leaves out are grey.


def draw(ax, found, title):
    """Show samples in the colours of their clusters."""
    colours = [f"C{k % 10}" if k >= 0 else "0.7" for k in found]
    ax.scatter(*X.T, s=7, c=colours)
    ax.set(xticks=[], yticks=[], title=title)


fig, axes = plt.subplots(
    1,
    4,
    figsize=(10, 2.6),
    num="Three of thirty clusterings of two moons, and the consensus of all",
)
draw(axes[0], ensemble.labels[:, 4], "k-means, 14 clusters")
draw(axes[1], ensemble.labels[:, 15], "single linkage, 7 clusters")
draw(axes[2], ensemble.labels[:, 20], "DBSCAN, small radius")
draw(axes[3], labels, "consensus, 2 clusters")
plt.show()

# %%
# Clusters that other clusterings split get lower weights:

print(f"weights from {weights.min():.2f} to {weights.max():.2f}")
