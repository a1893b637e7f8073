"""
Single cells: scanpy and AnnData
================================

In a scanpy session, one call clusters a representation of an AnnData object and stores
the result where scanpy's own functions would::

    import scanpy as sc
    import mdec.anndata

    sc.pp.pca(adata)
    mdec.anndata.cluster(adata, n_clusters="auto", use_rep="X_pca", random_state=0)
    sc.pl.pca(adata, color=["mdec", "mdec_confidence"])

This page is built without scanpy and anndata, so the code below starts from an .h5ad
file instead, which needs only h5py. The tests run the call above with both packages.
"""

# %%
# A small .h5ad file, written with h5py in AnnData's layout: sparse counts in ``X``,
# names of cells and genes, and principal components in ``obsm``.

import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA

from mdec import MDEC
from mdec.tables import read_table

rng = np.random.default_rng(1)
types = np.repeat(["B", "NK", "T"], [90, 60, 150])
level = np.tile(rng.lognormal(0.0, 1.0, 800), (3, 1))
for k in range(3):
    level[k, 30 * k : 30 * k + 30] *= 5.0
number = np.unique(types, return_inverse=True)[1]
counts = rng.poisson(level[number] * rng.lognormal(0.0, 0.4, (300, 1)))
logged = np.log1p(counts * (1000 / counts.sum(axis=1, keepdims=True)))
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
    file["obsm/X_pca"] = PCA(20, random_state=0).fit_transform(logged)

# %%
# Cluster the principal components. On the command line this is ``mdec fit cells.h5ad
# --variable obsm/X_pca``; without ``--variable``, the counts are prepared and
# clustered.

components = read_table(path, variable="obsm/X_pca")
model = MDEC(3, random_state=0, n_jobs=2).fit(components.values)
print(components.values.shape, components.sample_names[:3])

# %%
places = components.values[:, :2]
fig, axes = plt.subplots(
    1,
    2,
    figsize=(8.4, 3.6),
    num="300 cells of an .h5ad file: clusters and types, and confidence",
)
for kind, mark in zip(np.unique(types), "osD", strict=True):
    inside = types == kind
    colours = [f"C{k}" for k in model.labels_[inside]]
    axes[0].scatter(*places[inside].T, s=16, c=colours, marker=mark)
    axes[0].scatter([], [], c="0.5", marker=mark, label=f"{kind} cells")
axes[0].legend()
shown = axes[1].scatter(*places.T, s=16, c=model.confidence_, vmin=0.5, vmax=1)
fig.colorbar(shown, ax=axes[1])
for ax, title in zip(axes, ("clusters", "confidence"), strict=True):
    ax.set(xlabel="first component", ylabel="second", title=title, xticks=[], yticks=[])
plt.show()
