"""
A single-cell user with an .h5ad file
=====================================

You have counts of cells by genes, in a file or in a scanpy session. In a session, one
call clusters an AnnData object and stores the result where scanpy's own functions
would::

    import mdec.anndata
    import scanpy as sc

    model = mdec.anndata.cluster(adata, n_clusters="auto", random_state=0)
    sc.pl.umap(adata, color=["mdec", "mdec_confidence"])
    mdec.anndata.predict_into(adata_new, model)

This page starts from a file instead, which needs only h5py. The cells are simulated:
three types and 4,000 genes, 60 of them markers of each type. ``mdec fit cells.h5ad``
does everything below in one command and writes a report.
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
level = np.tile(rng.lognormal(-1.5, 1.0, 4000), (3, 1))
for k in range(3):
    level[k, 60 * k : 60 * k + 60] *= 5.0
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
        ("var", [f"gene{i}" for i in range(4000)]),
    ):
        group = file.create_group(name)
        group.attrs["_index"] = "_index"
        group["_index"] = np.array(entries, dtype=h5py.string_dtype())

# %%
# Read and prepare
# ----------------
# Cells differ more in depth than in type. Counts are recognised, scaled to the same sum
# and log-transformed. Of the genes expressed in at least three cells, the 2,000 that
# are most variable for their mean are kept. Counts stay sparse until then.

from mdec.preparation import ExpressionPreparation
from mdec.tables import read_table

cells = read_table(path, sparse=True)
preparation = ExpressionPreparation()
X = preparation.fit_transform(cells.values)
print(cells.values.shape, cells.sample_names[:3], "->", X.shape)
print(preparation.reason_)
marking = np.count_nonzero(preparation.features_ < 180)
print(f"{marking} of the 180 genes that mark a type are kept")

# %%
# Cluster
# -------
# On single cells the spectral consensus is better than the hierarchical one; ``mdec
# fit`` uses it by default.

from mdec import MDEC
from mdec.bench.evaluation import ari

raw = MDEC(3, consensus="spectral", random_state=0, n_jobs=2)
raw.fit(cells.values.toarray())
model = MDEC(3, consensus="spectral", random_state=0, n_jobs=2).fit(X)
print(f"adjusted Rand index: raw {ari(types, raw.labels_):.2f}, ", end="")
print(f"prepared {ari(types, model.labels_):.2f}")

# %%
# Look
# ----
# A map of the cells by their co-association, followed by the genes that differ most
# between each cluster and all other cells.

from mdec.report.plots import SampleMapDisplay

places = SampleMapDisplay.from_estimator(model)
fig, axes = plt.subplots(
    1,
    2,
    figsize=(8.8, 3.6),
    num="300 cells by consensus: their clusters, and the confidence of each cell",
)
places.plot(axes[0], s=12)
axes[0].set_title("cluster")
shown = axes[1].scatter(*places.places.T, c=model.confidence_, s=12, vmin=0.5, vmax=1)
axes[1].set(xticks=[], yticks=[], title="confidence")
fig.colorbar(shown, ax=axes[1])
plt.show()

# %%
names = preparation.get_feature_names_out(cells.feature_names)
spread = X.std(axis=0) + 1e-9
for k in range(model.n_clusters_):
    inside = model.labels_ == k
    effect = (X[inside].mean(axis=0) - X[~inside].mean(axis=0)) / spread
    top = np.argsort(-effect)[:5]
    print(k, ", ".join(f"{names[i]} ({effect[i]:.1f})" for i in top))

# %%
# New cells
# ---------
# New cells are prepared in the same way, with the same genes and the same sum, and are
# assigned to the existing clusters.

new = rng.poisson(level[[0, 1, 2, 2]] * 0.5).astype(np.float32)
print(model.predict(preparation.transform(new)))

# %%
# Read on: :doc:`where results are stored in AnnData </howto/anndata>`,
# :doc:`preparation </quality>`, :doc:`choosing K </choosing-k>`.
