"""
Prepare expression values
=========================

Raw counts differ more by sequencing depth than by cell type. ``ExpressionPreparation``
recognises what kind of values it gets, and transforms them accordingly.
"""

# %%
# Simulated counts: 160 cells of four types and 1000 genes, 25 of them markers of each
# type. Sequencing depth varies far more than the types do.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from mdec import MDEC
from mdec.bench.evaluation import ari
from mdec.preparation import ExpressionPreparation

rng = np.random.default_rng(0)
y = np.repeat(range(4), 40)
level = np.tile(rng.lognormal(0.5, 1.0, 1000), (4, 1))
for k in range(4):
    level[k, 25 * k : 25 * k + 25] *= 3.0
depth = rng.lognormal(0.0, 0.8, (160, 1))
counts = rng.poisson(level[y] * depth).astype(float)

# %%
preparation = ExpressionPreparation()
prepared = preparation.fit_transform(counts)
print(f"{preparation.kind_}: {preparation.reason_}")

# %%
# The first two principal components before and after. Colours are the clusters that
# MDEC finds, symbols the true types. Before preparation, depth decides.

fig, axes = plt.subplots(
    1,
    2,
    figsize=(8, 3.6),
    num="Cells by principal components, coloured by MDEC: raw counts, and prepared",
)
for ax, name, X in (
    (axes[0], "raw counts", counts),
    (axes[1], "prepared", prepared),
):
    labels = MDEC(4, random_state=0, n_jobs=2).fit(X).labels_
    places = PCA(2, random_state=0).fit_transform(X)
    for kind, mark in enumerate("osD^"):
        inside = y == kind
        colours = [f"C{k}" for k in labels[inside]]
        ax.scatter(*places[inside].T, s=22, c=colours, marker=mark, alpha=0.8)
    ax.set(xticks=[], yticks=[], title=f"{name}: ARI {ari(y, labels):.2f}")
plt.show()

# %%
# :doc:`Preparation </quality>` shows how much this gains on real data, and where it
# loses.
