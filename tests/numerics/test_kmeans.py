"""k-means against the plain iteration written out, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, kmeans_plusplus

from mdec.numerics.kmeans import kmeans, kmeans_centers
from mdec.numerics.loops import kmeans as loops
from mdec.numerics.loops import landmarks
from mdec.numerics.transfer import nearest_centers


def naive_lloyd(X: np.ndarray, centers: np.ndarray, max_iter: int) -> np.ndarray:
    """Iterate plainly; no cluster of these examples runs empty."""
    X, centers = X.astype(np.float64), centers.astype(np.float64).copy()
    labels = np.full(len(X), -1)
    for _ in range(max_iter):
        distances = ((X[:, None] - centers[None]) ** 2).sum(axis=2)
        new = distances.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
        for c in range(len(centers)):
            assert np.any(labels == c), "an empty cluster is tested elsewhere"
            centers[c] = X[labels == c].mean(axis=0)
    return labels


def sum_of_squares(X: np.ndarray, labels: np.ndarray) -> float:
    X = X.astype(np.float64)
    return sum(
        float(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum())
        for c in np.unique(labels)
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("n_samples", "n_features", "k"), [(60, 2, 3), (400, 7, 12), (900, 30, 25)]
)
def test_lloyd_equals_the_plain_iteration(
    seed: int, n_samples: int, n_features: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) + 3.0 * rng.integers(
        0, 3, (n_samples, 1)
    )
    start = X[rng.choice(n_samples, k, replace=False)]
    expected = naive_lloyd(X, start, 100)
    labels, inertia = loops.lloyd(X, start.copy(), 100, loops.rounding_square(X))
    np.testing.assert_array_equal(labels, expected)
    assert inertia == pytest.approx(sum_of_squares(X, expected), rel=1e-9)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_iterations_are_counted_alike(max_iter: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    start = X[:10].copy()
    labels, _ = loops.lloyd(X, start.copy(), max_iter, loops.rounding_square(X))
    np.testing.assert_array_equal(labels, naive_lloyd(X, start, max_iter))


def test_lloyd_in_single_precision_is_as_good() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 6)).astype(np.float32)
    start = X[:15].copy()
    labels, inertia = loops.lloyd(X, start.copy(), 100, loops.rounding_square(X))
    expected = sum_of_squares(X, naive_lloyd(X, start, 100))
    assert sum_of_squares(X, labels) == pytest.approx(expected, rel=0.02)
    assert inertia == pytest.approx(sum_of_squares(X, labels), rel=1e-4)


def test_empty_cluster_restarts_at_the_farthest_sample() -> None:
    X = np.array([[0.0], [0.1], [0.2], [10.0]])
    start = np.array([[0.1], [500.0]])  # the second attracts nothing
    labels, inertia = loops.lloyd(X, start, 100, loops.rounding_square(X))
    assert labels[0] == labels[1] == labels[2] != labels[3]
    assert inertia == pytest.approx(0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_cluster_stays_empty(dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(dtype)
    start = np.full((8, 3), 1e3, dtype=dtype)
    start[0] = 0.0
    labels, _ = loops.lloyd(X, start, 100, loops.rounding_square(X))
    assert len(np.unique(labels)) == 8


@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_fewer_distinct_points_than_clusters(distinct: int) -> None:
    X = np.repeat(np.arange(float(distinct))[:, None], 5, axis=0)
    labels = kmeans(X, 4, np.random.default_rng(0))
    points = X.ravel().astype(int)
    assert len(np.unique(labels)) == distinct
    for point in range(distinct):
        assert len(np.unique(labels[points == point])) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(5))
def test_copies_of_a_point_stay_together(seed: int, dtype: type[np.floating]) -> None:
    """The mean of copies may differ from them in the last digit."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(3, 4)).astype(dtype)
    which = np.arange(33) % 3
    labels = kmeans(points[which], 5, rng)
    assert len(np.unique(labels)) == 3
    for point in range(3):
        assert len(np.unique(labels[which == point])) == 1


def test_as_many_clusters_as_points() -> None:
    X = np.random.default_rng(0).normal(size=(9, 2))
    assert len(np.unique(kmeans(X, 9, np.random.default_rng(0)))) == 9


def test_one_cluster() -> None:
    X = np.random.default_rng(0).normal(size=(9, 2))
    assert not kmeans(X, 1, np.random.default_rng(0)).any()


def test_plus_plus_takes_each_blob_once() -> None:
    rng = np.random.default_rng(3)
    X = 1e4 * np.repeat(np.arange(12.0), 20)[:, None] + rng.normal(size=(240, 2))
    for _ in range(20):
        centers = loops.kmeans_plus_plus(X, rng.random(12), 0.0)
        assert len(np.unique(np.round(centers[:, 0] / 1e4))) == 12


def test_plus_plus_chances_are_squared_distances() -> None:
    X = np.array([[0.0], [1.0], [3.0]])
    rng = np.random.default_rng(0)
    counts = np.zeros((3, 3))
    for _ in range(6000):
        first, second = loops.kmeans_plus_plus(X, rng.random(2), 0.0)[:, 0]
        counts[np.searchsorted(X[:, 0], first), np.searchsorted(X[:, 0], second)] += 1
    chances = np.array([[0, 1, 9], [1, 0, 4], [9, 4, 0]])
    chances = chances / chances.sum(axis=1, keepdims=True) / 3.0
    np.testing.assert_allclose(counts / 6000, chances, atol=0.03)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 2))]
)
def test_quality_is_that_of_scikit_learn(seed: int) -> None:
    """Best of three plain k-means++ starts, both ways, averaged over 40 repetitions."""
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.normal(size=(15, 5))
    X = rng.normal(size=(400, 5)) + centers[rng.integers(15, size=400)]
    theirs, ours = [], []
    for repetition in range(40):
        runs = []
        for start in range(3):
            init, _ = kmeans_plusplus(
                X, 15, n_local_trials=1, random_state=10 * repetition + start
            )
            model = KMeans(15, init=init, n_init=1, max_iter=100, tol=0)
            runs.append(model.fit(X).inertia_)
        theirs.append(min(runs))
        labels = kmeans(X, 15, np.random.default_rng(repetition))
        ours.append(sum_of_squares(X, labels))
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.02)


def test_best_of_the_runs_is_returned() -> None:
    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(300, 2))
        + 6.0 * rng.normal(size=(12, 2))[rng.integers(12, size=300)]
    )
    single = sum_of_squares(X, kmeans(X, 12, np.random.default_rng(5), n_init=1))
    many = sum_of_squares(X, kmeans(X, 12, np.random.default_rng(5), n_init=20))
    assert many <= single


def test_of_runs_that_tie_the_first_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding gives one of two equal runs a sum of squares that is a little less."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    runs = iter([([0, 0, 1, 1], 1.0), ([0, 1, 0, 1], 1.0 - 1e-12), ([1, 1, 1, 0], 1.1)])
    monkeypatch.setattr(loops, "lloyd", lambda *_: next(runs))
    assert kmeans(X, 2, np.random.default_rng(0)) == [0, 0, 1, 1]


def test_runs_without_any_spread_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.repeat(np.eye(3), 4, axis=0)
    runs = iter([("first", 3e-32), ("second", 0.0), ("third", 0.0)])
    monkeypatch.setattr(loops, "lloyd", lambda *_: next(runs))
    assert kmeans(X, 3, np.random.default_rng(0)) == "first"


def test_a_better_run_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.eye(3)
    runs = iter([("first", 1.0), ("second", 1.0 - 1e-8), ("third", 1.0)])
    monkeypatch.setattr(loops, "lloyd", lambda *_: next(runs))
    assert kmeans(X, 2, np.random.default_rng(0)) == "second"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centres_that_are_equally_near_but_for_rounding(dtype: type) -> None:
    """The same differences in another order: the first centre, however they round."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        apart = rng.normal(size=30).astype(dtype)
        centers = np.stack([apart, rng.permutation(apart)])
        X = np.concatenate([np.zeros((1, 30), dtype=dtype), centers])
        labels, _ = loops.lloyd(X, centers.copy(), 1, loops.rounding_square(X))
        assert labels.tolist() == [0, 0, 1]


def test_input_is_left_alone() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    before = X.copy()
    kmeans(X, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_clusters", [2, 8, 30])
def test_every_sample_is_at_its_nearest_centre(dtype: type, n_clusters: int) -> None:
    """Tight groups of unit rows differ by less than float32 keeps of their products."""
    rng = np.random.default_rng(n_clusters)
    X = np.repeat(np.eye(3, 6), 300, axis=0) + 1.0
    X = X + 1e-4 * rng.normal(size=X.shape)
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    labels = kmeans(X, n_clusters, np.random.default_rng(0), max_iter=1000)
    points = X.astype(np.float64)
    centers = np.stack([points[labels == c].mean(axis=0) for c in range(n_clusters)])
    distance = cdist(points, centers)
    own = distance[np.arange(len(X)), labels]
    # Centres in float32 are off by their last digit.
    assert np.all(own <= distance.min(axis=1) + 2 * np.finfo(np.float32).eps)
    np.testing.assert_array_equal(
        nearest_centers(X, centers.astype(dtype)),
        cdist(points, centers.astype(dtype)).argmin(axis=1),
    )


def test_centers_are_the_means_of_their_samples_also_of_one() -> None:
    X = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 4.0], [50.0, 50.0], [-70.0, 9.0]])
    centers = kmeans_centers(X, 3, np.random.default_rng(0))
    found = {tuple(center) for center in centers.tolist()}
    assert found == {(0.0, 2.0), (50.0, 50.0), (-70.0, 9.0)}


def test_many_small_problems_follow_the_plain_iteration() -> None:
    """Centres that cross the origin and each other, which the bounds must survive."""
    n_compared = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(8, 40)), int(rng.integers(1, 3))))
        centers = 2.0 * rng.normal(size=(int(rng.integers(2, 6)), X.shape[1]))
        try:
            expected = naive_lloyd(X, centers, 100)
        except AssertionError:
            continue
        n_compared += 1
        labels, _ = loops.lloyd(X, centers, 100, loops.rounding_square(X))
        np.testing.assert_array_equal(labels, expected)
    assert n_compared > 100


def test_of_equally_near_centres_the_first_is_taken() -> None:
    X = np.array([[0.0, 0.0], [5.0, 5.0]])
    around = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        labels = np.empty(2, dtype=np.int32)
        centers = around[order]
        scores = 0.5 - X @ centers.T
        landmarks.nearest_column(scores, X, centers, 0.5, labels)
        assert labels[0] == 0
        # Whichever the scores put first, where rounding hides the difference.
        scores[0] += 1e-17 * np.array([3.0, 2.0, 1.0, 0.0])
        landmarks.nearest_column(scores, X, centers, 0.5, labels)
        assert labels[0] == 0
