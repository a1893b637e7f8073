"""Pandas and AnnData get their results back."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import MDEC
from mdec.confidence import item_consensus
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
    assert changed.uns["mdec"]["params"]["ensemble_size"] == "15"
    model = MDEC("auto", **settings).fit(data)
    np.testing.assert_array_equal(changed.obs["mdec_confidence"], model.confidence_)
    association = item_consensus(model.ensemble_, model.labels_, model.cluster_weights_)
    np.testing.assert_array_equal(changed.obsm["mdec_item_consensus"], association)
    changed.write_h5ad(tmp_path / "a.h5ad")
    read = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert (read.obs["mdec"] == changed.obs["mdec"]).all()
    assert (
        cluster_anndata(adata, 2, use_rep="X_pca", key_added="pca", **settings) is None
    )
    plain = MDEC(2, **settings).fit(data[:, :5])
    assert (adata.obs["pca"].astype(int) == plain.labels_).all()
    assert adata.obs["pca_confidence"].between(0, 1).all()
    with pytest.raises(ValueError, match="not both"):
        cluster_anndata(adata, use_rep="X_pca", layer="counts")


def test_clusters_count_in_their_order(data):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(np.asarray(data))
    cluster_anndata(adata, 12, ensemble_size=15, random_state=0)
    assert list(adata.obs["mdec"].cat.categories) == [str(k) for k in range(12)]


def test_the_command_writes_a_copy(data, tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("typer")
    from mdec.cli import main

    adata = anndata.AnnData(np.asarray(data))
    adata.obs_names = [f"cell{i}" for i in range(60)]
    adata.obsm["X_pca"] = data[:, :4]
    adata.layers["counts"] = np.abs(np.rint(data))
    source, target = tmp_path / "a.h5ad", tmp_path / "b.h5ad"
    adata.write_h5ad(source)
    before = source.read_bytes()
    words = ["fit", source, "--variable", "obsm/X_pca", "--k", 2, "--out"]
    words += [tmp_path / "out", "--ensemble-size", 15, "--write-h5ad", target]
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert not caught.value.code
    assert str(target) in capsys.readouterr().out.replace("\n", "")
    found = anndata.read_h5ad(target)
    model = MDEC(2, ensemble_size=15, random_state=0).fit(data[:, :4])
    assert found.obs["mdec"].astype(int).tolist() == model.labels_.tolist()
    assert found.obs_names.tolist() == adata.obs_names.tolist()
    np.testing.assert_array_equal(found.obs["mdec_confidence"], model.confidence_)
    assert found.obsm["mdec_item_consensus"].shape == (60, 2)
    assert found.uns["mdec"]["params"]["consensus"] == "hierarchical"
    np.testing.assert_array_equal(found.layers["counts"], adata.layers["counts"])
    assert source.read_bytes() == before
    assert not list(tmp_path.glob(".mdec-*"))


def test_the_command_refuses_other_files_before_it_works(data, tmp_path, capsys):
    pytest.importorskip("typer")
    from mdec.cli import main

    np.save(tmp_path / "a.npy", data)
    out = tmp_path / "out"
    for target in ("b.h5ad", "b.csv"):
        words = ["fit", tmp_path / "a.npy", "--out", out, "--write-h5ad", target]
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        assert caught.value.code == 2
        assert "a copy of an .h5ad file" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of scanpy's own dependencies
def test_a_scanpy_pipeline(tmp_path):
    """Counts to clusters with scanpy's own steps before and after."""
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(0)
    programs = rng.gamma(0.3, 3.0, size=(3, 800))
    kinds = np.repeat([0, 1, 2], 100)
    depth = rng.uniform(0.5, 2.0, size=(300, 1))
    adata = scanpy.AnnData(rng.poisson(depth * programs[kinds]).astype(np.float32))
    adata.obs["kind"] = kinds.astype(str)
    adata.layers["counts"] = adata.X.copy()
    scanpy.pp.filter_genes(adata, min_cells=3)
    scanpy.pp.normalize_total(adata)
    scanpy.pp.log1p(adata)
    scanpy.pp.highly_variable_genes(adata, n_top_genes=300)
    scanpy.pp.pca(adata, n_comps=20)
    cluster_anndata(adata, 3, use_rep="X_pca", ensemble_size=30, random_state=0)
    assert adjusted_rand_score(kinds, adata.obs["mdec"]) > 0.95
    # What scanpy does with a clustering takes ours.
    scanpy.tl.rank_genes_groups(adata, "mdec", method="t-test")
    assert set(adata.uns["rank_genes_groups"]["names"].dtype.names) == {"0", "1", "2"}
    scanpy.pp.neighbors(adata, use_rep="mdec_item_consensus")
    scanpy.tl.dendrogram(adata, groupby="mdec", use_rep="mdec_item_consensus")
    adata.write_h5ad(tmp_path / "a.h5ad")
    read = scanpy.read_h5ad(tmp_path / "a.h5ad")
    assert read.obs["mdec"].tolist() == adata.obs["mdec"].tolist()
