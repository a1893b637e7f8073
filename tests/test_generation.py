"""Making ensembles: draws, prefixes, failures, bad and awkward input."""

from __future__ import annotations

import json
import math
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.base import members
from mdec.base.kernels import KERNELS
from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.base.members import base_clustering, member_similarity
from mdec.engines import threads
from mdec.ensemble.draws import base_n_clusters_bounds, draw_subspace
from mdec.ensemble.numbering import (
    clusters_in_order,
    rank_by_first_samples,
    renumber,
)
from mdec.ensemble.plan import Member, Plan
from mdec.preparation.recipes import Versions
from mdec.rows import as_rows
from mdec.rows.work import LocalExecutor


def blobs(n_samples: int = 90, n_features: int = 12, n_groups: int = 3) -> Any:
    rng = np.random.default_rng(11)
    y = np.arange(n_samples) % n_groups
    X = 6.0 * rng.normal(size=(n_groups, n_features))[y]
    return X + rng.normal(size=(n_samples, n_features)), y


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return blobs()[0]


def numbered(labels: np.ndarray) -> np.ndarray:
    return renumber(labels, rank_by_first_samples([clusters_in_order(labels)]))


# ------------------------------------------------------------------ draws


@pytest.mark.parametrize(
    ("n_features", "ratio", "size"),
    [
        (1877, 0.5, 939),
        (5, 0.5, 3),
        (4, 0.5, 2),
        (1, 0.5, 1),
        (10, 1.0, 10),
        (3, 0.2, 1),
    ],
)
def test_size_of_a_subspace(n_features: int, ratio: float, size: int) -> None:
    features = draw_subspace(n_features, ratio, np.random.default_rng(0))
    assert features.size == size == math.floor(ratio * n_features + 0.5)
    assert np.unique(features).size == size
    assert features.min() >= 0
    assert features.max() < n_features


def test_features_are_drawn_alike() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(10)
    for _ in range(4000):
        counts[draw_subspace(10, 0.3, rng)] += 1
    # 1200 each in expectation, standard deviation 29.
    assert np.abs(counts - 1200).max() < 150


@pytest.mark.parametrize(
    ("n_samples", "high"),
    [(3, 2), (4, 2), (5, 3), (9, 3), (10, 4), (248, 16), (11000, 105)],
)
def test_default_bounds_of_the_number_of_clusters(n_samples: int, high: int) -> None:
    assert base_n_clusters_bounds(n_samples, "graph") == (2, high)
    assert Plan(n_samples, 2, entropy=0).base_n_clusters_range == (2, high)
    given = Plan(10, 2, entropy=0, base_n_clusters_range=(3, 5))
    assert given.base_n_clusters_range == (3, 5)


def test_one_feature_is_enough_and_none_is_too_few() -> None:
    plan = Plan(20, 10, entropy=0, max_features=0.05)
    assert plan.n_drawn == plan.features(plan.member(0)).size == 1
    with pytest.raises(ValueError, match="max_features"):
        Plan(20, 10, entropy=0, max_features=0.049)


@pytest.mark.parametrize("base", ["graph", "landmark"])
def test_a_plan_survives_json_and_nothing_else_passes_for_one(base: str) -> None:
    plan = Plan(4000, 10, entropy=2**100, base=base, mu_range=(0.3, 0.4))
    content = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(content) == plan
    assert Plan.from_json(content).member(5) == plan.member(5)
    for name in ("entropy", "kernel", "mu_range"):
        fewer = {k: v for k, v in content.items() if k != name}
        with pytest.raises(ValueError, match="not the parameters"):
            Plan.from_json(fewer)
    with pytest.raises(ValueError, match="not the parameters"):
        Plan.from_json(content | {"colour": 1})


def test_members_cover_their_ranges() -> None:
    plan = Plan(100, 4, entropy=0, base_n_clusters_range=(2, 10))
    members = [plan.member(index) for index in range(3000)]
    for name, values in [("n_neighbors", range(5, 21)), ("n_clusters", range(2, 11))]:
        drawn = np.array([getattr(member, name) for member in members])
        counts = np.bincount(drawn)
        assert set(np.flatnonzero(counts)) == set(values)
        expected = 3000 / len(values)
        assert np.abs(counts[values.start :] - expected).max() < 5 * expected**0.5
    mu = np.array([member.mu for member in members])
    assert 0.2 <= mu.min() < 0.21
    assert 0.79 < mu.max() <= 0.8
    # Independent draws: no correlation beyond four standard errors.
    table = np.array([(m.n_neighbors, m.mu, m.n_clusters) for m in members])
    off_diagonal = np.corrcoef(table.T)[np.triu_indices(3, 1)]
    assert np.abs(off_diagonal).max() < 4 / math.sqrt(3000)


def test_generated_members_respect_given_ranges(X: np.ndarray) -> None:
    ensemble = generate_ensemble(
        X,
        ensemble_size=12,
        max_features=0.3,
        mu_range=(0.5, 0.6),
        n_neighbors_range=(7, 9),
        base_n_clusters_range=(4, 6),
        random_state=0,
    )
    for position, member in enumerate(ensemble.members):
        assert member.index == position
        assert 7 <= member.n_neighbors <= 9
        assert 0.5 <= member.mu <= 0.6
        assert 4 <= member.n_clusters <= 6
        assert ensemble.plan.features(member).size == 4
    assert np.all(ensemble.cluster_counts <= 6)


def test_members_differ(X: np.ndarray) -> None:
    ensemble = generate_ensemble(X, ensemble_size=10, random_state=0)
    features = {tuple(ensemble.plan.features(member)) for member in ensemble.members}
    assert len(features) == 10
    assert len({member.mu for member in ensemble.members}) == 10


# ------------------------------------------------------------------ reproducible


@pytest.mark.parametrize("settings", [{"base": "landmark"}, {"max_samples": 0.7}])
def test_clusters_are_numbered_by_their_first_samples(
    X: np.ndarray, settings: dict[str, Any]
) -> None:
    ensemble = generate_ensemble(X, ensemble_size=8, random_state=3, **settings)
    for labels in ensemble.labels.T:
        appearing = list(dict.fromkeys(labels[labels >= 0].tolist()))
        assert appearing == list(range(len(appearing)))


def test_numbers_do_not_depend_on_row_blocks() -> None:
    labels = np.random.default_rng(0).integers(-1, 9, size=50).astype(np.int32)
    labels[labels == 4] = 7
    blocks = np.split(labels, [3, 11, 30])
    rank = rank_by_first_samples([clusters_in_order(block) for block in blocks])
    found = np.concatenate([renumber(block, rank) for block in blocks])
    np.testing.assert_array_equal(found, numbered(labels))
    assert adjusted_rand_score(found, labels) == 1.0
    assert found.min() == -1


def test_prefix_property(X: np.ndarray) -> None:
    large = generate_ensemble(X, ensemble_size=10, random_state=4)
    small = generate_ensemble(X, ensemble_size=5, random_state=4)
    np.testing.assert_array_equal(large.labels[:, :5], small.labels)
    assert large.members[:5] == small.members
    np.testing.assert_array_equal(large[:5].labels, small.labels)


def test_a_member_can_be_recomputed_alone(X: np.ndarray) -> None:
    ensemble = generate_ensemble(X, ensemble_size=8, random_state=4)
    member, plan = ensemble.members[6], ensemble.plan
    assert plan.member(6) == member
    np.testing.assert_array_equal(
        numbered(base_clustering(X, member, plan)), ensemble.labels[:, 6]
    )
    W = member_similarity(X, member, plan).toarray()
    np.testing.assert_array_equal(W, W.T)
    assert (W > 0.0).sum(axis=1).min() >= member.n_neighbors


@pytest.mark.parametrize("apart", [0.0, 1e7])
def test_what_all_members_share_changes_none(X: np.ndarray, apart: float) -> None:
    X = np.asfortranarray(X + apart * (np.arange(len(X)) % 2)[:, None])
    plan = Plan(*X.shape, entropy=3)
    shared = members.center_once(X, plan.kernel_shares)
    assert isinstance(shared, Versions)
    for number in range(5):
        member = plan.member(number)
        expected = member_similarity(X, member, plan)
        found = member_similarity(shared, member, plan)
        for each in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(found, each), getattr(expected, each))


def test_members_look_at_scales_and_directions_themselves(X: np.ndarray) -> None:
    assert members.center_once(X, ["cosine", "spearman"]) is X
    wide = X * np.where(np.arange(X.shape[1]) % 2, 1e-140, 1e140)
    assert members.center_once(wide, ["scaled_gaussian"]) is wide


@pytest.mark.parametrize(
    "seed",
    [0, np.int64(3), 2**80],
)
def test_integer_seeds_repeat(X: np.ndarray, seed: int) -> None:
    first = generate_ensemble(X, ensemble_size=3, random_state=seed)
    second = generate_ensemble(X, ensemble_size=3, random_state=seed)
    np.testing.assert_array_equal(first.labels, second.labels)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_advance(X: np.ndarray, make: Any) -> None:
    generator = make(0)
    first = generate_ensemble(X, ensemble_size=3, random_state=generator)
    second = generate_ensemble(X, ensemble_size=3, random_state=generator)
    again = generate_ensemble(X, ensemble_size=3, random_state=make(0))
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.parameters["entropy"] != second.parameters["entropy"]


def test_no_seed_is_a_new_seed(X: np.ndarray) -> None:
    first = generate_ensemble(X, ensemble_size=2)
    second = generate_ensemble(X, ensemble_size=2)
    assert first.parameters["entropy"] != second.parameters["entropy"]


def test_data_are_left_alone(X: np.ndarray) -> None:
    before = X.copy()
    generate_ensemble(X, ensemble_size=2, random_state=0)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_samples", [90, 1200])
def test_every_kernel_finds_far_groups(kernel: str, n_samples: int) -> None:
    X, y = blobs(n_samples, 40, 3)
    ensemble = generate_ensemble(
        X,
        kernel=kernel,
        ensemble_size=3,
        base_n_clusters_range=(3, 3),
        random_state=0,
    )
    scores = [adjusted_rand_score(y, column) for column in ensemble.labels.T]
    assert max(scores) > 0.9


# ------------------------------------------------------------------ failures


class Failing:
    """A base clustering that fails for chosen members and attempts."""

    def __init__(self, fails: set[tuple[int, int]], error: Exception) -> None:
        self.fails = fails
        self.error = error
        self.calls: list[tuple[int, int]] = []

    def __call__(
        self, X: np.ndarray, member: Member, plan: Plan, *_: None
    ) -> np.ndarray:
        self.calls.append((member.index, member.attempt))
        if (member.index, member.attempt) in self.fails:
            raise self.error
        return base_clustering(X, member, plan)


def test_a_failed_attempt_is_made_again(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = generate_ensemble(X, ensemble_size=4, random_state=0)
    failing = Failing({(2, 0)}, ValueError("no"))
    monkeypatch.setattr(threads, "base_clustering", failing)
    ensemble = generate_ensemble(X, ensemble_size=4, random_state=0)
    assert failing.calls == [(0, 0), (1, 0), (2, 0), (3, 0), (2, 1)]
    assert ensemble.failures == ()
    assert [member.attempt for member in ensemble.members] == [0, 0, 1, 0]
    others = [0, 1, 3]
    np.testing.assert_array_equal(ensemble.labels[:, others], plain.labels[:, others])
    # A fresh stream: other parameters than at the first attempt.
    assert ensemble.members[2].mu != plain.members[2].mu
    assert not np.array_equal(
        ensemble.plan.features(ensemble.members[2]),
        plain.plan.features(plain.members[2]),
    )


@pytest.mark.parametrize(
    "error",
    [ValueError("broken graph"), np.linalg.LinAlgError("broken graph")],
)
def test_a_member_that_fails_twice_is_dropped_and_recorded(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failing = Failing({(3, 0), (3, 1)}, error)
    monkeypatch.setattr(threads, "base_clustering", failing)
    with pytest.warns(RuntimeWarning, match="1 of 10 .*member 3: broken graph"):
        ensemble = generate_ensemble(X, ensemble_size=10, random_state=0)
    assert len(ensemble) == 9
    assert [failure.index for failure in ensemble.failures] == [3]
    assert "broken graph" in ensemble.failures[0].reason
    assert [member.index for member in ensemble.members] == [
        0, 1, 2, 4, 5, 6, 7, 8, 9,
    ]  # fmt: skip


def test_more_than_a_tenth_failing_is_an_error(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = {(m, attempt) for m in (3, 7) for attempt in (0, 1)}
    monkeypatch.setattr(threads, "base_clustering", Failing(fails, ValueError("no")))
    with pytest.raises(ValueError, match="2 of 10 base clusterings failed"):
        generate_ensemble(X, ensemble_size=10, random_state=0)


def test_all_failing_is_an_error(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        threads, "base_clustering", Failing({(0, 0), (0, 1)}, ValueError("no"))
    )
    with pytest.raises(ValueError, match="1 of 1 base clusterings failed"):
        generate_ensemble(X, ensemble_size=1, random_state=0)


def test_a_fault_of_the_program_is_not_swallowed(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing({(0, 0)}, TypeError("bug"))
    monkeypatch.setattr(threads, "base_clustering", failing)
    with pytest.raises(TypeError, match="bug"):
        generate_ensemble(X, ensemble_size=2, random_state=0)


def test_one_cluster_with_everything_is_a_failure(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        members, "spectral_partition", lambda W, *_, **__: np.zeros(W.shape[0], int)
    )
    with pytest.raises(ValueError, match="one cluster"):
        generate_ensemble(X, ensemble_size=3, random_state=0)


# ------------------------------------------------------------------ bad input


def with_entry(value: float) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[4, 1] = value
    return X


BAD = {
    "nan": (with_entry(np.nan), {}, "NaN"),
    "inf": (with_entry(np.inf), {}, "infinity"),
    "two samples": (np.eye(2), {}, "minimum of 3"),
    "no feature": (np.empty((5, 0)), {}, "0 feature"),
    "constant": (np.full((9, 4), 7.0), {}, "all 9 samples are equal"),
    "strings": (np.array([["a", "b"]] * 5), {}, "could not convert string"),
    "three axes": (np.zeros((3, 3, 3)), {}, "dim 3"),
    "one axis": (np.arange(9.0), {}, "[Rr]eshape"),
    "base clusters": (
        with_entry(0.0),
        {"base_n_clusters_range": (2, 21)},
        "more clusters than the 20 samples",
    ),
    "no feature drawn": (
        with_entry(0.0),
        {"max_features": 0.1},
        r"selects none of the 3 features; raise it to 0\.167",
    ),
    "ratio 0": (with_entry(0.0), {"max_features": 0.0}, "max_features"),
    "ratio 2": (with_entry(0.0), {"max_features": 2.0}, "max_features"),
    "no member": (with_entry(0.0), {"ensemble_size": 0}, "ensemble_size"),
    "kernel": (with_entry(0.0), {"kernel": "rbf"}, "kernel='rbf' is not one of"),
    "mu 0": (with_entry(0.0), {"mu_range": (0.0, 0.5)}, "mu_range"),
    "mu reversed": (with_entry(0.0), {"mu_range": (0.8, 0.2)}, "mu_range"),
    "mu nan": (with_entry(0.0), {"mu_range": (0.2, np.nan)}, "mu_range"),
    "k 0": (with_entry(0.0), {"n_neighbors_range": (0, 4)}, "n_neighbors_range"),
    "K 1": (
        with_entry(0.0),
        {"base_n_clusters_range": (1, 4)},
        "base_n_clusters_range",
    ),
    "one number": (with_entry(0.0), {"mu_range": (0.5,)}, "mu_range"),
    "half a neighbour at one end": (
        with_entry(0.0),
        {"n_neighbors_range": (5, 8.5)},
        "n_neighbors_range",
    ),
    "half a neighbour": (
        with_entry(0.0),
        {"n_neighbors_range": (5.5, 8.5)},
        "n_neighbors_range",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    X, settings, message = BAD[case]
    with pytest.raises(ValueError, match=message) as caught:
        generate_ensemble(X, **({"ensemble_size": 2, "random_state": 0} | settings))
    if case not in ("nan", "inf", "strings", "three axes", "one axis"):
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_of_the_estimator(case: str) -> None:
    X, settings, message = BAD[case]
    settings = {"ensemble_size": 2, "random_state": 0} | settings
    # Parameters out of their range are refused in scikit-learn's own words.
    message = {"kernel": "kernel", "no member": "ensemble_size"}.get(case, message)
    with pytest.raises(ValueError, match=message):
        MDEC(n_clusters=2, **settings).fit(X)


def test_more_clusters_than_samples(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="n_clusters=91 is more than n_samples=90"):
        MDEC(n_clusters=91, ensemble_size=2).fit(X)


# ------------------------------------------------------------------ awkward input


def fit_all(X: np.ndarray, n_clusters: int, **settings: Any) -> list[np.ndarray]:
    """Return the labels of the three consensus functions, warnings being errors."""
    settings = {"ensemble_size": 8, "random_state": 0} | settings
    model = MDEC(n_clusters, **settings).fit(X)
    return [
        model.recluster(consensus=name)
        for name in ("hierarchical", "spectral", "bipartite")
    ]


def test_three_samples() -> None:
    X = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]])
    for labels in fit_all(X, 2):
        np.testing.assert_array_equal(labels, [0, 0, 1])


@pytest.mark.parametrize("n_clusters", [1, 3])
def test_three_samples_trivially(n_clusters: int) -> None:
    X = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]])
    for labels in fit_all(X, n_clusters):
        assert len(np.unique(labels)) == n_clusters


@pytest.mark.parametrize("n_samples", [60, 1200])
def test_one_feature(n_samples: int) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % 2
    X = (100.0 * y + rng.normal(size=n_samples))[:, None]
    # One feature: members differ in kernel and number only, so more are needed.
    for labels in fit_all(X, 2, ensemble_size=50):
        assert adjusted_rand_score(y, labels) == 1.0


def test_fewer_samples_than_neighbors() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.1, (3, 5)), rng.normal(9, 0.1, (3, 5))])
    for labels in fit_all(X, 2, n_neighbors_range=(10, 20)):
        assert len(np.unique(labels)) == 2
    for labels in fit_all(X, 2, n_neighbors_range=(2, 2)):
        np.testing.assert_array_equal(labels, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("n_samples", [90, 1200])
def test_constant_features_among_others(n_samples: int) -> None:
    X, y = blobs(n_samples)
    X = np.hstack([X, np.full((n_samples, 4), 3.0)])
    for labels in fit_all(X, 3):
        assert adjusted_rand_score(y, labels) > 0.9


@pytest.mark.parametrize("n_samples", [90, 1200])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_third_of_all_rows_identical(n_samples: int, kernel: str) -> None:
    X, y = blobs(n_samples)
    X[y == 0] = X[0]
    for labels in fit_all(X, 3, kernel=kernel):
        assert len(np.unique(labels[y == 0])) == 1
        assert adjusted_rand_score(y, labels) > 0.5


@pytest.mark.parametrize("n_samples", [90, 1200])
def test_all_but_one_feature_constant(n_samples: int) -> None:
    """Subspaces of equal rows only are failures, and said to be."""
    X = np.zeros((n_samples, 10))
    X[:, 3] = np.random.default_rng(0).normal(size=n_samples)
    with pytest.raises(ValueError, match=r"base clusterings failed.*one cluster"):
        generate_ensemble(X, ensemble_size=8, max_features=0.1, random_state=0)


@pytest.mark.parametrize("n_samples", [90, 1200])
def test_two_distinct_rows(n_samples: int) -> None:
    """Nothing to scale by, but the two are told apart."""
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], n_samples // 2, axis=0)
    found = generate_ensemble(X, ensemble_size=4, max_features=1.0, random_state=0)
    expected = np.repeat([[0], [1]], n_samples // 2, axis=0)
    np.testing.assert_array_equal(found.labels, np.repeat(expected, 4, axis=1))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("n_samples", [90, 1200])
def test_very_small_and_very_large_numbers(scale: float, n_samples: int) -> None:
    X, y = blobs(n_samples)
    for labels in fit_all(scale * X, 3):
        assert adjusted_rand_score(y, labels) > 0.9


def test_single_precision() -> None:
    X, y = blobs(1200)
    for labels in fit_all(X.astype(np.float32), 3):
        assert adjusted_rand_score(y, labels) > 0.9


def test_integers() -> None:
    X, y = blobs(120)
    for labels in fit_all(np.round(X).astype(int), 3):
        assert adjusted_rand_score(y, labels) > 0.9


def test_one_member(X: np.ndarray) -> None:
    ensemble = generate_ensemble(X, ensemble_size=1, random_state=0)
    assert isinstance(ensemble, Ensemble)
    assert ensemble.labels.shape == (90, 1)


def test_nothing_is_said_when_nothing_is_wrong(X: np.ndarray) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        generate_ensemble(X, ensemble_size=3, random_state=0)
    assert not caught


def test_memory_is_asked_for_before_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mdec._support.memory.available_memory", lambda: 10_000)
    X = np.random.default_rng(0).normal(size=(50, 6))
    with pytest.raises(MemoryError, match=r"needs .* GB and .* are free; lower n_jobs"):
        generate_ensemble(X, ensemble_size=2, random_state=0)


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("outlier", [False, True])
@pytest.mark.parametrize("shape", [(300, 1500), (900, 60), (1500, 300), (3000, 60)])
def test_memory_estimate_covers_a_member(shape: tuple[int, int], outlier: bool) -> None:
    """The estimate is not below what the largest member takes nor far above it."""
    X = np.random.default_rng(0).normal(size=shape)
    X[: shape[0] // 2] += 0.7
    if outlier:
        X[-1] = 1e20
    plan = Plan(*shape, entropy=0)
    largest = Member(0, 0, 20, 0.5, plan.base_n_clusters_range[1])
    data = np.asfortranarray(X) if len(X) <= 1000 else X
    base_clustering(data, Member(0, 0, 5, 0.5, 3), plan)
    taken = peak_of(lambda: base_clustering(data, largest, plan))
    assert taken < members.member_memory(plan) < 1.5 * taken + 2**20


def test_memory_estimate_covers_a_landmark_member() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 40))
    plan = Plan(*X.shape, entropy=0, base="landmark")
    largest = Member(0, 0, 20, 0.5, plan.base_n_clusters_range[1])
    rows = as_rows(X)
    pool = landmark_pool(rows, plan)

    def cluster(member: Member) -> object:
        return landmark_clustering(LocalExecutor(), rows.blocks, pool, member, plan)

    cluster(Member(0, 0, 5, 0.5, 3))
    taken = peak_of(lambda: cluster(largest))
    assert taken < members.member_memory(plan) < 1.5 * taken + 2**20


def test_new_rows_after_landmarks_take_little_memory() -> None:
    X = np.random.default_rng(0).normal(size=(600, 10))
    model = MDEC(3, base="landmark", ensemble_size=1, random_state=0).fit(X)
    new = np.random.default_rng(1).normal(size=(60_000, 10))
    model.predict(new[:10])
    assert peak_of(lambda: model.predict(new)) < 1000 * len(new)
