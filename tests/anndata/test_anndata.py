"""AnnData objects get clusters where scverse looks for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mdec import MDEC
from mdec.preparation import ExpressionPreparation

anndata = pytest.importorskip("anndata", reason="the package anndata is not installed")

from mdec.anndata import cluster, predict_into  # noqa: E402

SMALL = {"ensemble_size": 15, "random_state": 0}
N_GENES = 2600


@pytest.fixture(scope="module")
def counts():
    """Return cells of three types, of other depths, by genes; most counts are zero."""
    rng = np.random.default_rng(0)
    levels = np.tile(rng.lognormal(-2.0, 1.0, N_GENES), (3, 1))
    for k in range(3):
        levels[k, 40 * k : 40 * k + 40] *= 20.0
    types = np.repeat([0, 1, 2], 30)
    depth = rng.lognormal(0.0, 0.5, (90, 1))
    return types, rng.poisson(levels[types] * depth).astype(np.float32)


def make(values, **more):
    adata = anndata.AnnData(values, **more)
    adata.obs_names = [f"cell{i}" for i in range(adata.n_obs)]
    adata.var_names = [f"gene{i}" for i in range(adata.n_vars)]
    return adata


def test_counts_are_prepared_and_results_written(counts, tmp_path):
    types, X = counts
    adata = make(sparse.csr_matrix(X))
    model = cluster(adata, 3, **SMALL)
    assert isinstance(model, MDEC)
    ready = ExpressionPreparation("counts").fit_transform(X)
    assert ready.shape == (90, 2000)
    plain = MDEC(3, **SMALL).fit(ready)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert adata.obs["mdec"].dtype.name == "category"
    assert adata.obs["mdec"].astype(int).tolist() == plain.labels_.tolist()
    assert len(set(zip(types, plain.labels_, strict=True))) == 3
    np.testing.assert_array_equal(adata.obs["mdec_confidence"], plain.confidence_)
    np.testing.assert_allclose(adata.obsm["mdec_membership"], plain.membership_)
    assert adata.uns["mdec"]["n_clusters"] == 3
    assert adata.uns["mdec"]["params"]["ensemble_size"] == "15"
    assert adata.uns["mdec"]["preparation"]["kind"] == "counts"
    assert (sparse.csr_matrix(X) != adata.X).nnz == 0
    adata.write_h5ad(tmp_path / "a.h5ad")
    read = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert read.obs["mdec"].tolist() == adata.obs["mdec"].tolist()
    assert read.uns["mdec"]["preparation"]["kind"] == "counts"


def test_the_choice_of_k_is_written(counts, tmp_path):
    adata = make(counts[1])
    model = cluster(adata, key_added="own", n_top_genes=150, **SMALL)
    notes = adata.uns["own"]
    assert notes["n_clusters"] == model.n_clusters_ == adata.obs["own"].nunique()
    assert f"K = {model.n_clusters_}" in notes["reason"]
    assert len(notes["criteria"]["n_clusters"]) == len(notes["criteria"]["pac"])
    adata.write_h5ad(tmp_path / "a.h5ad")
    read = anndata.read_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(
        read.uns["own"]["criteria"]["pac"], notes["criteria"]["pac"]
    )


def test_layers_and_embeddings(counts):
    X = counts[1]
    rng = np.random.default_rng(1)
    adata = make(rng.normal(size=X.shape), layers={"counts": X})
    adata.obsm["X_pca"] = X[:, :60]
    model = cluster(adata, 3, layer="counts", **SMALL)
    assert model.cells_.layer == "counts"
    same = cluster(make(X), 3, **SMALL)
    np.testing.assert_array_equal(model.labels_, same.labels_)
    cluster(adata, 3, use_rep="X_pca", key_added="pca", **SMALL)
    plain = MDEC(3, **SMALL).fit(X[:, :60])
    assert adata.obs["pca"].astype(int).tolist() == plain.labels_.tolist()
    with pytest.raises(ValueError, match="give one"):
        cluster(adata, 3, use_rep="X_pca", layer="counts")


def test_the_consensus_is_that_of_mdec_fit(counts):
    """Spectral for counts that are prepared, unless another is given."""
    X = counts[1]
    assert cluster(make(X), 3, **SMALL).consensus == "spectral"
    assert cluster(make(X), 3, prepare="none", **SMALL).consensus == "hierarchical"
    model = cluster(make(X), 3, consensus="bipartite", **SMALL)
    assert model.consensus == model.clustering_.settings.consensus == "bipartite"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"layer": "spliced"}, "no layer 'spliced'; there are: 'counts'."),
        ({"use_rep": "X_pca"}, "no embedding 'X_pca'; there are: none."),
    ],
)
def test_what_is_not_there_is_named(counts, given, sentence):
    _, X = counts
    adata = make(X)
    adata.layers["counts"] = X
    with pytest.raises(ValueError, match=sentence):
        cluster(adata, 3, **given)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_a_file_is_read_in_blocks(counts, tmp_path, layout, monkeypatch):
    make(layout(counts[1])).write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    seen = []

    def bounds(n_rows, n_features):
        seen.append((n_rows, n_features))
        return [(0, 50), (50, n_rows)]

    monkeypatch.setattr("mdec.anndata.block_bounds", bounds)
    found = cluster(backed, 3, **SMALL)
    assert seen == [(90, N_GENES)]
    expected = cluster(make(counts[1]), 3, **SMALL)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert backed.obs["mdec"].nunique() == 3


def test_new_cells_join_by_gene(counts):
    types, X = counts
    old, new = make(sparse.csr_matrix(X[::2])), make(sparse.csr_matrix(X[1::2]))
    model = cluster(old, 3, **SMALL)
    predict_into(new, model)
    prepared = ExpressionPreparation("counts").fit(X[::2])
    values = prepared.transform(X[1::2])
    assert new.obs["mdec"].astype(int).tolist() == model.predict(values).tolist()
    np.testing.assert_allclose(new.obsm["mdec_membership"], model.predict_proba(values))
    assert len(set(zip(types[1::2], new.obs["mdec"], strict=True))) == 3
    # In another order, with genes that the model does not know, and as an array.
    order = np.random.default_rng(2).permutation(N_GENES)
    wider = make(np.hstack([X[1::2][:, order], np.ones((45, 1), np.float32)]))
    wider.var_names = [f"gene{i}" for i in order] + ["unknown"]
    predict_into(wider, model, key_added="other")
    assert wider.obs["other"].tolist() == new.obs["mdec"].tolist()
    # Without one that the model keeps, and without one that it does not.
    kept = set(model.cells_.steps.arrays["features"].tolist())
    spare = next(j for j in range(N_GENES) if j not in kept and X[:, j].sum() == 0.0)
    fewer = new[:, [j for j in range(N_GENES) if j != spare]].copy()
    predict_into(fewer, model, key_added="fewer")
    assert fewer.obs["fewer"].tolist() == new.obs["mdec"].tolist()
    lacking = new[:, [j for j in range(N_GENES) if j != min(kept)]].copy()
    with pytest.raises(ValueError, match=f"lack 1 of the 2000 .*'gene{min(kept)}'"):
        predict_into(lacking, model)
    with pytest.raises(ValueError, match="does not know its genes"):
        predict_into(new, MDEC(3, **SMALL).fit(values))


def test_new_cells_by_embedding(counts):
    adata, new = make(counts[1][::2]), make(counts[1][1::2])
    adata.obsm["X_pca"], new.obsm["X_pca"] = (
        each.X[:, :60].copy() for each in (adata, new)
    )
    model = cluster(adata, 3, use_rep="X_pca", **SMALL)
    predict_into(new, model)
    expected = model.predict(new.obsm["X_pca"])
    assert new.obs["mdec"].astype(int).tolist() == expected.tolist()


def test_the_model_of_a_result_takes_new_cells(counts, tmp_path):
    pytest.importorskip("typer")
    from mdec.cli import main

    make(sparse.csr_matrix(counts[1][::2])).write_h5ad(tmp_path / "a.h5ad")
    words = ["fit", tmp_path / "a.h5ad", "--clusters", 3, "--ensemble-size", 15]
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in (*words, "--quiet", "--out", tmp_path / "out")])
    assert not caught.value.code
    new, again = make(counts[1][1::2]), make(counts[1][::2])
    predict_into(new, tmp_path / "out" / "model.npz")
    assert new.obs["mdec"].nunique() == 3
    model = cluster(again, 3, **SMALL)
    predict_into(same := make(counts[1][1::2]), model)
    assert same.obs["mdec"].tolist() == new.obs["mdec"].tolist()


def test_new_cells_join_components_by_gene(counts, monkeypatch):
    types, X = counts
    monkeypatch.setattr("mdec.preparation.recipes.MANY_CELLS", 59)
    model = cluster(make(X[::3].repeat(2, axis=0)), 3, n_top_genes=55, **SMALL)
    assert model.n_features_in_ == 29  # of thirty cells
    new = make(X[1::3])[:, ::-1].copy()
    predict_into(new, model)
    pairs = set(zip(types[1::3], new.obs["mdec"], strict=True))
    assert len(pairs) == 3


def test_missing_values_are_refused(counts):
    X = counts[1].copy()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="missing or infinite"):
        cluster(make(X), 3, **SMALL)


def test_clusters_count_in_their_order(counts):
    adata = make(counts[1])
    cluster(adata, 12, **SMALL)
    assert list(adata.obs["mdec"].cat.categories) == [str(k) for k in range(12)]


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
    cluster(adata, 3, use_rep="X_pca", ensemble_size=30, random_state=0)
    assert adjusted_rand_score(kinds, adata.obs["mdec"]) > 0.95
    # What scanpy does with a clustering takes ours.
    scanpy.tl.rank_genes_groups(adata, "mdec", method="t-test")
    assert set(adata.uns["rank_genes_groups"]["names"].dtype.names) == {"0", "1", "2"}
    scanpy.pp.neighbors(adata, use_rep="mdec_membership")
    scanpy.tl.dendrogram(adata, groupby="mdec", use_rep="mdec_membership")
    adata.write_h5ad(tmp_path / "a.h5ad")
    read = scanpy.read_h5ad(tmp_path / "a.h5ad")
    assert read.obs["mdec"].tolist() == adata.obs["mdec"].tolist()
