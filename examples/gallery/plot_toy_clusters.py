"""
Compare MDEC with scikit-learn's clusterers
===========================================

The classic comparison on six shapes in the plane. MDEC is made for tables with many
features, so two are not its strength, but it is useful to see where it fails.
"""

# %%
# All methods are given the number of clusters, except HDBSCAN, which does not need it.
# MDEC appears twice: with its defaults, and with both features for every member.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn import cluster, datasets
from sklearn.preprocessing import StandardScaler

from mdec import MDEC
from mdec.bench.evaluation import ari

N = 500
blobs = datasets.make_blobs(N, random_state=8)
stretched = datasets.make_blobs(N, random_state=170)
shapes = {
    "circles": (*datasets.make_circles(N, factor=0.5, noise=0.05, random_state=30), 2),
    "moons": (*datasets.make_moons(N, noise=0.05, random_state=30), 2),
    "varied": (
        *datasets.make_blobs(N, cluster_std=[1.0, 2.5, 0.5], random_state=170),
        3,
    ),
    "stretched": (stretched[0] @ [[0.6, -0.6], [-0.4, 0.8]], stretched[1], 3),
    "blobs": (*blobs, 3),
    "no structure": (np.random.default_rng(30).random((N, 2)), np.zeros(N), 3),
}


def methods(k):
    """Return the clusterers, each for k clusters."""
    return {
        "k-means": cluster.KMeans(k, random_state=0),
        "Ward": cluster.AgglomerativeClustering(k),
        "spectral": cluster.SpectralClustering(
            k, affinity="nearest_neighbors", random_state=0
        ),
        "HDBSCAN": cluster.HDBSCAN(min_cluster_size=15, copy=True),
        "MDEC, half the features": MDEC(k, random_state=0, n_jobs=2),
        "MDEC, all features": MDEC(k, max_features=1.0, random_state=0, n_jobs=2),
    }


# %%
# The number in each panel is the adjusted Rand index with the true groups. With its
# defaults MDEC fails nearly everywhere: half of two features is one, and no single
# feature shows a circle. With both features it does well on the shapes that neighbour
# graphs can follow. The last row has no groups: HDBSCAN calls most of it noise, the
# other methods split it anyway. With ``n_clusters="auto"`` MDEC tests for a single
# cluster. It does not label noise: every sample gets a cluster, and ``confidence_``
# says how certain it is.

fig, axes = plt.subplots(
    6,
    6,
    figsize=(9.6, 9.2),
    num="Six shapes, five methods, MDEC twice; the number is the adjusted Rand index",
)
for row, (shape, (X, y, k)) in zip(axes, shapes.items(), strict=True):
    X = StandardScaler().fit_transform(X)
    for ax, (name, method) in zip(row, methods(k).items(), strict=True):
        with warnings.catch_warnings():
            # The graph of spectral clustering falls apart, which it warns of.
            warnings.simplefilter("ignore", UserWarning)
            labels = method.fit(X).labels_
        colours = [f"C{c}" if c >= 0 else "0.7" for c in labels]
        ax.scatter(*X.T, s=3, c=colours)
        ax.set(xticks=[], yticks=[])
        if ax in axes[0]:
            ax.set_title(name.replace(", ", ",\n"))
        if ax in axes[:, 0]:
            ax.set_ylabel(shape)
        if shape != "no structure":
            place = {"transform": ax.transAxes, "ha": "right", "size": "small"}
            ax.text(0.99, 0.02, f"{ari(y, labels):.2f}", **place)
plt.show()
