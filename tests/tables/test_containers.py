"""Pandas and AnnData get their results back."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import MDEC
from mdec.tables.containers import cluster_anndata, cluster_frame


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(60, 10))
    X[:30] += 3.0
    return X


def test_frames_keep_their_index(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        data, [f"s{i}" for i in range(60)], [f"g{i}" for i in range(10)]
    )
    found = cluster_frame(frame, 2, ensemble_size=15, random_state=0)
    plain = MDEC(2, ensemble_size=15, random_state=0).fit(data)
    assert found.index.equals(frame.index)
    assert (found["cluster"] == plain.labels_).all()
    assert (found["confidence"] == plain.confidence_).all()
    assert found.attrs["mdec"].feature_names_in_.tolist() == list(frame.columns)


def test_anndata_gets_obs_and_uns(data, tmp_path):
    anndata = pytest.importorskip("anndata")
    from scipy import sparse

    adata = anndata.AnnData(sparse.csr_matrix(data))
    adata.obsm["X_pca"] = data[:, :5]
    settings = {"ensemble_size": 15, "random_state": 0}
    changed = cluster_anndata(adata, copy=True, **settings)
    assert "mdec" not in adata.obs
    assert changed.obs["mdec"].dtype.name == "category"
    assert changed.uns["mdec"]["n_clusters"] == 2
    assert "K = 2" in changed.uns["mdec"]["reason"]
    changed.write_h5ad(tmp_path / "a.h5ad")
    assert (
        cluster_anndata(adata, 2, use_rep="X_pca", key_added="pca", **settings) is None
    )
    plain = MDEC(2, **settings).fit(data[:, :5])
    assert (adata.obs["pca"].astype(int) == plain.labels_).all()
    assert adata.obs["pca_confidence"].between(0, 1).all()
    with pytest.raises(ValueError, match="not both"):
        cluster_anndata(adata, use_rep="X_pca", layer="counts")
