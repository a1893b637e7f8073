"""Pandas and AnnData get their results back."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import MDEC
from mdec.tables import cluster_frame


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
    words = ["fit", source, "--variable", "X_pca", "--k", 2, "--out"]
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
    assert found.obsm["mdec_membership"].shape == (60, 2)
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
