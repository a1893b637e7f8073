"""Sparse rows give what the same rows give as an array, and stay sparse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, generate_ensemble
from mdec.base import landmarks
from mdec.base.graphs import similarity_graph
from mdec.base.kernels import SPARSE_KERNELS
from mdec.numerics import landmark_search
from mdec.numerics.novelty import NoveltyDetector
from mdec.numerics.sparse_rows import (
    NearestSparseRows,
    exact_distances,
    less,
    sparse_center,
)
from mdec.rows.blocks import as_rows, digest_of_rows
from mdec.rows.sources import canonical_rows

FORMS = {
    "csr array": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csc array": sparse.csc_array,
    "csc matrix": sparse.csc_matrix,
    "coo array": sparse.coo_array,
}


def topics(
    n_rows: int, n_features: int, n_topics: int = 5
) -> tuple[sparse.csr_array, np.ndarray]:
    """Draw rows that fill the features of their own topic more often than others."""
    rng = np.random.default_rng(7)
    y = rng.integers(n_topics, size=n_rows)
    own = rng.integers(n_topics, size=n_features) == y[:, None]
    filled = rng.random((n_rows, n_features)) < np.where(own, 0.5, 0.04)
    values = np.where(filled, 1.0 + rng.random(filled.shape), 0.0)
    return sparse.csr_array(values), y


def odd_rows(n_rows: int = 300) -> sparse.csr_array:
    """Return rows some of which are empty or copies, and odd columns."""
    X = topics(n_rows, 120)[0].toarray()
    X[:, 5] = 1e6 + np.random.default_rng(0).random(n_rows)
    X[:, 20:30] = 0.0
    X[[3, 50]] = 0.0
    X[10:14] = X[9]
    return sparse.csr_array(X)


SETTINGS: dict[str, Any] = {"ensemble_size": 6, "random_state": 0}


@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
@pytest.mark.parametrize("n_rows", [300, 1500])
def test_graph_members_are_those_of_the_array(n_rows: int, kernel: str) -> None:
    X, _ = topics(n_rows, 150)
    made = generate_ensemble(X, kernel=kernel, **SETTINGS)
    dense = generate_ensemble(X.toarray(), kernel=kernel, **SETTINGS)
    np.testing.assert_array_equal(made.labels, dense.labels)


@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
@pytest.mark.parametrize("cells", [pytest.param(False, marks=pytest.mark.slow), True])
def test_landmark_members_are_those_of_the_array(
    kernel: str, cells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cells:
        monkeypatch.setattr(landmark_search, "SEARCHED_WHOLE", 500)
        monkeypatch.setattr(landmark_search, "N_CELLS", 20)
        monkeypatch.setattr(landmark_search, "AROUND_CELL", 200)
    monkeypatch.setattr("mdec.ensemble.draws.MAX_LANDMARKS", 1000)
    X, _ = topics(3000, 150)
    settings = {**SETTINGS, "ensemble_size": 5, "kernel": kernel, "base": "landmark"}
    made = generate_ensemble(X, **settings)
    # Arrays are searched in float32, whose rounding moves some samples; not these.
    center = landmarks._center
    monkeypatch.setattr(
        landmarks, "_center", lambda *given: center(*given[:3], np.float64)
    )
    dense = generate_ensemble(X.toarray(), **settings)
    same, agreed = [], []
    for number, member in enumerate(made.members):
        ties = [
            landmarks.fit_landmarks(rows, member, made.plan)
            for rows in (X, X.toarray())
        ]
        (thin, _, _), (full, _, _) = ties
        points = thin.index.points.toarray() + thin.center
        wanted = full.index.points + full.center
        same.append(np.allclose(points, wanted, rtol=0.0, atol=1e-12))
        both = made.labels[:, number], dense.labels[:, number]
        agreed.append(adjusted_rand_score(*both))
    # Where two landmarks are equally near the last bit decides, and all that follows.
    assert np.mean(same) > 0.5
    assert np.median(agreed) == 1.0


@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_graphs_of_odd_rows_are_those_of_the_array(scale: float, kernel: str) -> None:
    X = odd_rows() * scale
    found = similarity_graph(X, kernel, n_neighbors=6, mu=0.5)
    wanted = similarity_graph(X.toarray(), kernel, n_neighbors=6, mu=0.5)
    assert (found != 0).nnz == (wanted != 0).nnz
    apart = abs(found - wanted).max()
    assert apart <= 1e-7 * wanted.max()


@pytest.mark.parametrize("base", ["graph", "landmark"])
@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
def test_labels_do_not_depend_on_scale(base: str, kernel: str) -> None:
    X, y = topics(400, 150)
    settings = {**SETTINGS, "base": base, "kernel": kernel, "n_clusters": 5}
    plain = MDEC(**settings).fit(X)
    assert adjusted_rand_score(y, plain.labels_) > 0.9
    assert (plain.predict(X) == plain.labels_).mean() > 0.97
    for scale in (1e-150, 1e150):
        model = MDEC(**settings).fit(X * scale)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.predict(X * scale), plain.predict(X))


def test_distances_are_those_of_scipy() -> None:
    X = odd_rows(60)
    pairs = np.divmod(np.arange(3600), 60)
    found = exact_distances(X, X, *pairs).reshape(60, 60)
    wanted = cdist(X.toarray(), X.toarray(), "sqeuclidean")
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert found[9, 12] == 0.0


def test_landmarks_with_many_features_are_searched_as_the_others() -> None:
    rng = np.random.default_rng(0)
    rows = sparse.random_array((300, 90), density=0.05, format="csr", random_state=rng)
    means = sparse.csr_array(rng.random((12, 90)) * (rng.random((12, 90)) < 0.9) / 40)
    points = sparse.vstack([means[:6], rows[:100], means[6:]], format="csr")
    index = landmark_search.index_landmarks(points, rng)
    filled = [*range(6), *range(106, 112)]
    # Few rows are listed by feature, and otherwise the landmarks.
    for some in (rows, rows[: landmark_search.FEW - 1]):
        found, squared = landmark_search.nearest_landmarks(some, index, 9)
        apart = cdist(some.toarray(), points.toarray(), "sqeuclidean")
        np.testing.assert_allclose(squared, np.sort(apart, axis=1)[:, :9], atol=1e-12)
        own = np.take_along_axis(apart, found, 1)
        np.testing.assert_allclose(own, squared, atol=1e-12)
        assert np.isin(found, filled).any()
        assert not np.isin(found, filled).all()


def test_only_filled_columns_are_centred() -> None:
    X = odd_rows()
    center = sparse_center(X)
    assert np.flatnonzero(center).tolist() == [5]
    moved = less(X, center)
    assert np.median(abs(moved[:, [5]].toarray())) < 1e4
    np.testing.assert_array_equal(np.delete((X - moved).toarray(), 5, axis=1), 0.0)


def test_nearest_rows_are_found_through_rounding() -> None:
    # All norms exceed all distances by more digits than float64 has.
    rng = np.random.default_rng(0)
    far = 1e9 * (rng.random(40) < 0.4)
    X = sparse.csr_array(far + 1e-2 * rng.random((200, 40)) * (far > 0))
    new = X[:20] + sparse.csr_array(1e-4 * rng.random((20, 40)) * (far > 0))
    index, squared = NearestSparseRows(X).nearest(sparse.csr_array(new), 4)
    wanted = cdist(new.toarray(), X.toarray(), "sqeuclidean")
    np.testing.assert_array_equal(index, np.argsort(wanted, axis=1)[:, :4])
    np.testing.assert_allclose(squared, np.sort(wanted, axis=1)[:, :4])


@pytest.mark.parametrize("base", ["graph", "landmark"])
@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
def test_new_rows_may_be_sparse_or_not(base: str, kernel: str) -> None:
    X, y = topics(500, 160)
    old, new = X[:400], X[400:]
    settings = {**SETTINGS, "base": base, "kernel": kernel, "n_clusters": 5}
    model = MDEC(**settings).fit(old)
    dense = MDEC(**settings).fit(old.toarray())
    found = model.place(new)
    for other in (model.place(new.toarray()), dense.place(new)):
        assert (other.clusters == found.clusters).mean() > 0.97
        assert np.abs(other.confidence - found.confidence).mean() < 0.02
    np.testing.assert_array_equal(model.place(new.toarray()).unlike, found.unlike)
    assert adjusted_rand_score(y[400:], found.clusters) > 0.8
    if kernel == "cosine":
        return
    strange = sparse.csr_array(1e3 * (np.arange(160) == np.arange(3)[:, None]))
    assert model.unlike_training(strange).all()


def test_familiar_rows_are_those_of_the_array() -> None:
    X, _ = topics(300, 80)
    known, dense = NoveltyDetector.of(X[:200]), NoveltyDetector.of(X[:200].toarray())
    assert known.limit == pytest.approx(dense.limit)
    np.testing.assert_allclose(
        known.remoteness(X[200:]), dense.remoteness(X[200:].toarray()), rtol=1e-9
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_form_does_not_matter(form: str) -> None:
    X = topics(120, 40)[0]
    wanted = as_rows(X)
    given = FORMS[form](X)
    rows = as_rows(given)
    digests = {digest_of_rows(rows, whole=whole) for whole in (True, False)}
    assert digests == {digest_of_rows(wanted, whole=True)}
    labels = MDEC(4, **SETTINGS).fit(X).labels_
    np.testing.assert_array_equal(MDEC(4, **SETTINGS).fit_predict(given), labels)


def test_rows_are_brought_to_one_form_and_left_alone() -> None:
    X = topics(120, 40)[0]
    coo = X.tocoo()
    double = np.repeat(np.arange(X.nnz), 2)
    data = np.concatenate([np.repeat(coo.data / 2, 2), [0.0]])
    rows = np.concatenate([coo.row[double], [0]]).astype(np.int64)
    columns = np.concatenate([coo.col[double], [39]]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=120))])
    order = np.lexsort((-columns, rows))
    messy = sparse.csr_array((data[order], columns[order], indptr), shape=X.shape)
    before = messy.data.copy()
    found = canonical_rows(messy)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(X, name))
    assert found.indices.dtype == found.indptr.dtype == np.int32
    np.testing.assert_array_equal(messy.data, before)
    assert np.shares_memory(canonical_rows(X).data, X.data)
    whole = sparse.csr_array((10 * X).astype(np.int64))
    labels = MDEC(4, **SETTINGS).fit(whole).labels_
    same = MDEC(4, **SETTINGS).fit(whole.toarray().astype(float)).labels_
    np.testing.assert_array_equal(labels, same)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    X = topics(50, 20)[0]
    X.data[3] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        MDEC(2).fit(X)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kernel": "correlation"}, "fill the zeros of sparse rows; use one of"),
        ({"kernel": "spearman"}, "fill the zeros of sparse rows; use one of"),
        ({"kernel": ["cosine", "correlation"]}, "fill the zeros of sparse rows"),
        ({"preparation": "diversified"}, "not sparse"),
        ({"metric": "precomputed"}, "not sparse"),
        ({"device": "torch"}, "sparse rows are not clustered on a GPU"),
    ],
)
def test_what_sparse_rows_cannot_have_is_said(
    settings: dict[str, Any], said: str
) -> None:
    if "device" in settings:
        pytest.importorskip("torch")
    with pytest.raises(ValueError, match=said):
        generate_ensemble(topics(50, 20)[0], **settings)


def test_sparse_blocks_of_a_dask_array_are_refused() -> None:
    array = pytest.importorskip("dask.array")
    X = array.from_array(topics(50, 20)[0].toarray(), chunks=(25, 20))
    with pytest.raises(ValueError, match="blocks of X are sparse"):
        generate_ensemble(X.map_blocks(sparse.csr_matrix))


def test_a_gpu_is_not_taken_for_sparse_rows() -> None:
    made = generate_ensemble(topics(80, 30)[0], device="auto", **SETTINGS)
    assert made.parameters["device"] == "cpu"


@pytest.mark.parametrize("base", ["graph", "landmark"])
def test_a_checkpoint_knows_sparse_rows(base: str, tmp_path: Path) -> None:
    X = topics(120, 40)[0]
    settings = {**SETTINGS, "base": base, "checkpoint": tmp_path / "run"}
    made = generate_ensemble(X, **settings)
    again = generate_ensemble(sparse.csc_matrix(X), **settings)
    np.testing.assert_array_equal(made.labels, again.labels)
    X.data[0] += 1.0
    with pytest.raises(ValueError, match="other settings"):
        generate_ensemble(X, **settings)


@pytest.mark.parametrize("base", ["graph", "landmark"])
def test_a_saved_model_keeps_sparse_rows_sparse(base: str, tmp_path: Path) -> None:
    X = topics(200, 60)[0]
    model = MDEC(5, base=base, **SETTINGS).fit(X)
    model.save(tmp_path / "model.npz")
    loaded = MDEC.load(tmp_path / "model.npz")
    assert sparse.issparse(loaded.clustering_.rows[0].rows)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        loaded.predict_confidence(X.toarray()), model.predict_confidence(X)
    )


def test_several_kernels_and_drawn_samples_are_those_of_the_array() -> None:
    X = topics(200, 100)[0]
    settings = {
        **SETTINGS,
        "kernel": ["scaled_gaussian", "cosine"],
        "max_samples": 0.8,
    }
    made = generate_ensemble(X, **settings)
    dense = generate_ensemble(X.toarray(), **settings)
    np.testing.assert_array_equal(made.labels, dense.labels)
    model, same = MDEC(5, **settings).fit(X), MDEC(5, **settings).fit(X.toarray())
    np.testing.assert_array_equal(model.predict(X), same.predict(X.toarray()))


@pytest.mark.slow
def test_the_number_of_clusters_is_found() -> None:
    X, y = topics(320, 90, n_topics=3)
    model = MDEC("auto", **{**SETTINGS, "ensemble_size": 12}).fit(X)
    dense = MDEC("auto", **{**SETTINGS, "ensemble_size": 12}).fit(X.toarray())
    assert model.n_clusters_ == dense.n_clusters_ == 3
    assert model.k_selection_.null.p_value == dense.k_selection_.null.p_value
    assert adjusted_rand_score(y, model.labels_) > 0.9


TAKEN = """
import re
import numpy as np
from scipy import sparse
from mdec import MDEC
rng = np.random.default_rng(0)
places = np.repeat(np.arange(1200), 40), rng.integers(200_000, size=48_000)
X = sparse.csr_array((rng.random(48_000), places), shape=(1200, 200_000))
for base in ("graph", "landmark"):
    model = MDEC(3, base=base, ensemble_size=2, random_state=0).fit(X)
    model.predict(X[:100])
    model.unlike_training(X[:100])
# The peak of this program alone, without what its parent had when it was forked.
status = open("/proc/self/status").read()
print(1024 * int(re.search("VmHWM: *\\t* *([0-9]+) kB", status)[1]))
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peaks are read from /proc"
)
def test_nothing_of_the_dense_size_is_made() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TAKEN], check=True, capture_output=True, text=True
    )
    # As an array the rows alone would take 1.9 GB; NumPy and the compiler take 0.2.
    assert int(done.stdout) < 0.6e9


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("wrong", [10**9, -(10**6)])
def test_indices_that_lead_out_of_the_matrix_are_refused(form: str, wrong: int) -> None:
    """Compiled code would follow them, and the process end without a word."""
    X = sparse.random_array(
        (60, 20), density=0.3, random_state=np.random.default_rng(0)
    )
    X = X.asformat(form)
    model = MDEC(2, ensemble_size=2, random_state=0).fit(X)
    (X.col if form == "coo" else X.indices)[5] = wrong
    for work in (model.fit, model.predict, generate_ensemble):
        with pytest.raises(ValueError, match=r"out of its 60 x 20 .* make it anew"):
            work(X)


def test_rows_that_end_before_they_start_are_refused() -> None:
    X = sparse.random_array(
        (60, 20), density=0.3, random_state=np.random.default_rng(0)
    ).tocsr()
    X.indptr[5] = 10**8
    with pytest.raises(ValueError, match="lead out of its 60 x 20"):
        generate_ensemble(X)


@pytest.mark.parametrize("density", [0.02, 0.1])
def test_rows_with_nothing_in_common_have_no_edge(density: float) -> None:
    """Rounding made edges of them, and told equal cosines apart, in one form alone."""
    rng = np.random.default_rng(0)
    X = (rng.random((150, 40)) < density).astype(np.float64)
    dense = similarity_graph(X, "cosine", 15, 0.5)
    stored = similarity_graph(sparse.csr_array(X), "cosine", 15, 0.5)
    np.testing.assert_array_equal(dense.indptr, stored.indptr)
    np.testing.assert_array_equal(dense.indices, stored.indices)
    np.testing.assert_allclose(dense.data, stored.data, rtol=1e-12)
    assert dense.data.min() > 1e-3
    settings = {"ensemble_size": 6, "kernel": "cosine", "random_state": 0}
    found = generate_ensemble(sparse.csr_array(X), **settings)
    for mine, theirs in zip(
        found.labels.T, generate_ensemble(X, **settings).labels.T, strict=True
    ):
        assert adjusted_rand_score(mine, theirs) > 0.99
