"""
A single-cell user with an .h5ad file
=====================================

Counts of cells by genes, from a file or a scanpy session. In a session one call
clusters an AnnData object and writes the result where scanpy's own functions would::

    import scanpy as sc
    from mdec.tables import cluster_anndata

    sc.pp.pca(adata)
    cluster_anndata(adata, n_clusters="auto", use_rep="X_pca", random_state=0)
    sc.pl.pca(adata, color=["mdec", "mdec_confidence"])

This page goes the other way, from a file, which needs h5py alone. The cells are
simulated: three types, 800 genes, 30 of them marking each type.
"""

# %%
import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

rng = np.random.default_rng(1)
types = np.repeat(["B", "NK", "T"], [90, 60, 150])
level = np.tile(rng.lognormal(0.0, 1.0, 800), (3, 1))
for k in range(3):
    level[k, 30 * k : 30 * k + 30] *= 5.0
number = np.unique(types, return_inverse=True)[1]
counts = rng.poisson(level[number] * rng.lognormal(0.0, 1.0, (300, 1)))
packed = sparse.csr_array(counts.astype(np.float32))

path = Path(tempfile.mkdtemp()) / "cells.h5ad"
with h5py.File(path, "w") as file:
    x = file.create_group("X")
    x.attrs.update({"encoding-type": "csr_matrix", "shape": packed.shape})
    for part in ("data", "indices", "indptr"):
        x[part] = getattr(packed, part)
    for name, entries in (
        ("obs", [f"cell{i}" for i in range(300)]),
        ("var", [f"gene{i}" for i in range(800)]),
    ):
        group = file.create_group(name)
        group.attrs["_index"] = "_index"
        group["_index"] = np.array(entries, dtype=h5py.string_dtype())

# %%
# Read and prepare
# ----------------
# Cells differ in depth by more than in type. Counts are recognised, scaled to one sum
# and logged; ``mdec fit cells.h5ad`` does the same by itself.

from mdec.preparation import ExpressionPreparation
from mdec.tables import read_table

cells = read_table(path)
preparation = ExpressionPreparation()
X = preparation.fit_transform(cells.values)
print(cells.values.shape, cells.sample_names[:3])
print(preparation.reason_)

# %%
# Cluster
# -------
# The spectral and the bipartite consensus are a little better than the hierarchical one
# on single cells.

from mdec import MDEC
from mdec.bench.evaluation import ari

raw = MDEC(3, consensus="spectral", random_state=0, n_jobs=2).fit(cells.values)
model = MDEC(3, consensus="spectral", random_state=0, n_jobs=2).fit(X)
print(f"adjusted Rand index: raw {ari(types, raw.labels_):.2f}, ", end="")
print(f"prepared {ari(types, model.labels_):.2f}")

# %%
# Look
# ----
# A map of the cells by their co-association, and which genes have the largest
# difference between a cluster and all other cells.

from mdec.report.plots import SampleMapDisplay

places = SampleMapDisplay.from_estimator(model)
fig, axes = plt.subplots(
    1,
    2,
    figsize=(8.8, 3.6),
    num="300 cells by consensus: their clusters, and how surely each belongs",
)
places.plot(axes[0], s=12)
axes[0].set_title("cluster")
shown = axes[1].scatter(*places.places.T, c=model.confidence_, s=12, vmin=0.5, vmax=1)
axes[1].set(xticks=[], yticks=[], title="confidence")
fig.colorbar(shown, ax=axes[1])
plt.show()

# %%
names = np.asarray(cells.feature_names)
spread = X.std(axis=0) + 1e-9
for k in range(model.n_clusters_):
    inside = model.labels_ == k
    effect = (X[inside].mean(axis=0) - X[~inside].mean(axis=0)) / spread
    top = np.argsort(-effect)[:5]
    print(k, ", ".join(f"{names[i]} ({effect[i]:.1f})" for i in top))

# %%
# Read on: :doc:`names and places in AnnData </howto/anndata>`, :doc:`preparation
# </quality>`, :doc:`choosing K </choosing-k>`.
