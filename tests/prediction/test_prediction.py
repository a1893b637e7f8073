"""New rows by the stated rule, and rows of the fit."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from mdec import MDEC, Ensemble
from mdec.base.kernels import KERNELS
from mdec.base.landmarks import fit_landmarks
from mdec.confidence import sum_profiles
from mdec.consensus import CONSENSUS
from mdec.prediction import base_clusters, nearest_profiles, predict_base_clusters


def assign_to_clusters(base, ensemble, labels, weights, *, by_degree):
    over = ensemble, ensemble.split(labels), weights
    profiles = sum_profiles(*over, labels.max() + 1)
    means = profiles.means(by_degree=by_degree)
    return nearest_profiles(base, ensemble.offsets, means, weights)


@pytest.mark.parametrize("kernel", KERNELS)
def test_training_rows_get_their_own_cluster(kernel):
    X, _ = make_blobs(150, n_features=12, centers=4, random_state=0)
    model = MDEC(4, kernel=kernel, ensemble_size=20, random_state=0).fit(X)
    held = model.confidence_ > 0.6
    agree = model.predict(X) == model.labels_
    assert agree[held].mean() >= 0.99


@pytest.mark.parametrize("consensus", CONSENSUS)
def test_training_digits_get_their_own_cluster(consensus):
    X = load_digits().data[:500]
    model = MDEC(10, consensus=consensus, ensemble_size=40, random_state=0).fit(X)
    held = model.confidence_ > 0.6
    assert held.mean() > 0.8
    assert (model.predict(X) == model.labels_)[held].mean() >= 0.99


@pytest.mark.parametrize("by_degree", [False, True])
def test_clusters_follow_the_rule(by_degree):
    rng = np.random.default_rng(5)
    ensemble = Ensemble.from_labels(rng.integers(0, 4, size=(40, 9)))
    base = np.array([column.max() for column in ensemble.labels.T]) - 1
    base = np.minimum(rng.integers(0, 4, size=(25, 9)), base).astype(np.int32)
    weights = rng.uniform(0.2, 1.0, ensemble.n_base_clusters)
    labels = np.arange(40) % 5
    association = np.zeros((65, 40))
    for i, row in enumerate([*ensemble.labels, *base]):
        for m, c in enumerate(row):
            alike = ensemble.labels[:, m] == c
            association[i, alike] += weights[ensemble.offsets[m] + c] / 9
    degrees = association[:40].sum(axis=0)
    new = association[40:] / np.sqrt(degrees) if by_degree else association[40:]
    means = [new[:, labels == k].mean(axis=1) for k in range(5)]
    placed = assign_to_clusters(base, ensemble, labels, weights, by_degree=by_degree)
    assert placed.tolist() == np.argmax(means, axis=0).tolist()


def test_the_consensus_decides_how_associations_are_scaled():
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(150, 8)), rng.normal(size=(300, 8))
    for consensus in CONSENSUS:
        model = MDEC(6, consensus=consensus, ensemble_size=12, random_state=0).fit(X)
        base = predict_base_clusters(new, model.clustering_.rows[0])
        means, scaled = (
            assign_to_clusters(
                base,
                model.ensemble_,
                model.labels_,
                model.cluster_weights_,
                by_degree=by_degree,
            )
            for by_degree in (False, True)
        )
        assert (means != scaled).any()
        expected = means if consensus == "hierarchical" else scaled
        assert (model.predict(new) == expected).all()


def naive_vote(X, row, member, plan, labels, *, own_row=False):
    """The rule of one scaled Gaussian member, pair by pair."""
    features = plan.features(member)
    k, old, new = member.n_neighbors, X[:, features], row[features]
    squared = ((old - new) ** 2).sum(axis=1)
    nearest = np.argsort(squared, kind="stable")[:k]
    own_scale = squared[nearest].mean()
    votes = np.zeros(labels.max() + 1)
    for j in nearest:
        others = old if own_row else np.delete(old, j, axis=0)
        closest = np.sort(((others - old[j]) ** 2).sum(axis=1))[:k]
        width = member.mu * (own_scale + closest.mean() + squared[j]) / 3.0
        votes[labels[j]] += np.exp(-0.5 * (squared[j] / width) ** 2) / width
    return votes.argmax()


def test_base_clusters_follow_the_rule():
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(60, 10)), rng.normal(size=(15, 10))
    model = MDEC(3, ensemble_size=6, random_state=1).fit(X)
    ensemble = model.ensemble_
    base = predict_base_clusters(new, model.clustering_.rows[0])
    for m, member in enumerate(ensemble.members):
        expected = [
            naive_vote(X, row, member, ensemble.plan, ensemble.labels[:, m])
            for row in new
        ]
        assert base[:, m].tolist() == expected


def test_a_training_row_is_none_of_its_own_neighbours():
    # Few neighbours and many small clusters: a scale that counts the row itself, at
    # distance zero, turns votes at the borders.
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(80, 4)), rng.normal(size=(40, 4))
    model = MDEC(
        3,
        ensemble_size=8,
        n_neighbors_range=(3, 5),
        base_n_clusters_range=(10, 12),
        random_state=0,
    ).fit(X)
    ensemble = model.ensemble_
    base = predict_base_clusters(new, model.clustering_.rows[0])
    turned = 0
    for m, member in enumerate(ensemble.members):
        for i, row in enumerate(new):
            given = X, row, member, ensemble.plan, ensemble.labels[:, m]
            assert base[i, m] == naive_vote(*given)
            turned += naive_vote(*given, own_row=True) != naive_vote(*given)
    assert turned >= 3


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_a_row_with_more_copies_than_neighbours_joins_them(kernel):
    # Their distances and scales are exactly zero. Warnings are errors.
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, size=(100, 6)).astype(float)
    X[:30], X[30:60] = X[0], X[30]
    model = MDEC(
        3, kernel=kernel, n_neighbors_range=(5, 8), ensemble_size=8, random_state=0
    ).fit(X)
    copied = [0, 30]
    base = predict_base_clusters(X[copied], model.clustering_.rows[0])
    assert (base == model.ensemble_.labels[copied]).all()
    assert (model.predict(X[copied]) == model.labels_[copied]).all()


def test_prediction_depends_on_the_row_alone_and_not_on_jobs():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(80, 6)), rng.normal(size=(20, 6))
    model = MDEC(3, ensemble_size=15, random_state=0).fit(X)
    together = model.predict(new)
    assert together.tolist() == [int(model.predict(row[None])[0]) for row in new]
    model.set_params(n_jobs=2)
    assert (model.predict(new) == together).all()


def test_copies_of_training_rows_do_not_divide_by_zero():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 15, axis=0)
    X += np.random.default_rng(1).normal(scale=1e-3, size=X.shape)
    X[:15] = X[0]
    model = MDEC(4, ensemble_size=10, random_state=0).fit(X)
    assert (model.predict(X[[0, 20, 40]]) == model.labels_[[0, 20, 40]]).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("scale", "offset"), [(1e-140, 0.0), (1e140, 0.0), (1.0, 1e9)])
def test_scale_and_offset_change_no_prediction(kernel, scale, offset):
    if offset and kernel not in ("scaled_gaussian", "scaled_exponential"):
        pytest.skip("an offset changes angles")
    rng = np.random.default_rng(0)
    # Whole numbers over 2**10 stay exact at the offset.
    X = np.round(2**10 * rng.normal(size=(160, 8))) / 2**10
    X[:80] += 2.0
    plain = MDEC(2, kernel=kernel, ensemble_size=8, random_state=0).fit(X[:120])
    moved = MDEC(2, kernel=kernel, ensemble_size=8, random_state=0)
    moved.fit(scale * X[:120] + offset)
    expected, found = plain.predict(X), moved.predict(scale * X + offset)
    assert np.mean(expected == found) > 0.99
    assert (moved.labels_ == plain.labels_).all()


def test_copies_among_the_training_rows_do_not_break_the_vote():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(160, 5))
    X[:80] += 4.0
    X[10:50], X[90:130] = X[10], X[90]
    model = MDEC(2, ensemble_size=10, random_state=0).fit(X)
    assert (model.predict(X) == model.labels_).all()


@pytest.mark.parametrize("preparation", [None, "diversified"])
def test_what_is_kept_between_calls_changes_no_answer(preparation):
    rng = np.random.default_rng(4)
    X, new = rng.gamma(2.0, size=(150, 20)), rng.gamma(2.0, size=(40, 20))
    X[:20], new[:3] = X[0], X[0]
    settings = {"preparation": preparation, "ensemble_size": 6, "random_state": 0}
    model = MDEC(3, **settings).fit(X)
    again = pickle.loads(pickle.dumps(model))
    first, second = model.clustering_.rows[0], again.clustering_.rows[0]
    predict_base_clusters(new[-1:], first)
    known = np.isfinite(first.spacing)
    assert 0.0 < known.mean() < 1.0
    one_by_one = [predict_base_clusters(row[None], first) for row in new]
    together = predict_base_clusters(new, second)
    np.testing.assert_array_equal(np.concatenate(one_by_one), together)
    np.testing.assert_array_equal(predict_base_clusters(new, second), together)
    # What was learnt for other rows is the same, bit for bit, and not sent along.
    both = known & np.isfinite(second.spacing)
    np.testing.assert_array_equal(first.spacing[both], second.spacing[both])
    assert both.any()
    assert "spacing" not in vars(pickle.loads(pickle.dumps(model)).clustering_.rows[0])


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_distances_that_the_fit_found_are_those_derived_again(kernel):
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(1100, 30)), rng.normal(size=(150, 30))
    model = MDEC(3, kernel=kernel, ensemble_size=4, random_state=0).fit(X)
    known = model.clustering_.rows[0]
    derived = replace(known)
    assert np.isfinite(known.spacing).all()
    assert np.isnan(derived.spacing).all()
    expected = predict_base_clusters(new, derived)
    np.testing.assert_array_equal(predict_base_clusters(new, known), expected)
    asked = np.isfinite(derived.spacing)
    assert asked.mean() > 0.3
    np.testing.assert_array_equal(derived.spacing[asked], known.spacing[asked])
    # In single precision differences are made otherwise.
    single = MDEC(3, ensemble_size=2, random_state=0).fit(X.astype(np.float32))
    assert np.isnan(single.clustering_.rows[0].spacing).all()


def test_a_new_row_of_another_magnitude_leaves_what_is_kept_alone():
    rng = np.random.default_rng(9)
    X, new = rng.normal(size=(90, 5)), rng.normal(size=(4, 5))
    model = MDEC(3, ensemble_size=5, random_state=0).fit(X)
    expected = model.predict(new)
    spacing = model.clustering_.rows[0].spacing.copy()
    assert (model.predict(np.vstack([new, 1e150 * new]))[:4] == expected).all()
    np.testing.assert_array_equal(model.clustering_.rows[0].spacing, spacing)


@pytest.mark.parametrize("values", ["binary", "ranks"])
def test_landmarks_answer_a_row_alone_as_they_do_together(values: str) -> None:
    """Equal distances were told apart by products, which round as many rows do."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 330)
    if values == "binary":
        share = np.array([0.2, 0.5, 0.8])[y][:, None]
        X = (rng.random((330, 40)) < share).astype(np.float64)
    else:
        X = np.argsort(np.argsort(rng.normal(size=(330, 30)), axis=1), axis=1) + 0.0
    settings = {"base": "landmark", "ensemble_size": 6, "random_state": 0}
    model = MDEC(3, **settings).fit(X[:300])
    known = model.clustering_.placement.tables[0]
    together = predict_base_clusters(X[300:], known)
    for row in range(30):
        alone = predict_base_clusters(X[300 + row : 301 + row], known)
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize("held", [0, 3, 6])
def test_landmarks_are_derived_once_for_as_many_members_as_fit(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(200, 8)), rng.normal(size=(9, 8))
    settings = {"base": "landmark", "ensemble_size": 6, "random_state": 0}
    model = MDEC(3, **settings).fit(X)
    expected = model.predict(new)
    again, derived = pickle.loads(pickle.dumps(model)), []

    def derive(pool, member, plan):
        derived.append(member.index)
        return fit_landmarks(pool, member, plan)

    plan = model.ensemble_.plan
    one = plan.n_landmarks * (16 * plan.n_drawn + 200)
    monkeypatch.setattr(base_clusters, "LANDMARK_BYTES", held * one)
    monkeypatch.setattr(base_clusters, "fit_landmarks", derive)
    np.testing.assert_array_equal(again.predict(new), expected)
    assert sorted(derived) == [*range(6)]
    np.testing.assert_array_equal(again.predict(new[::-1]), expected[::-1])
    assert sorted(derived[6:]) == [*range(held, 6)]
    assert "landmarks" not in vars(
        pickle.loads(pickle.dumps(again)).clustering_.rows[0]
    )
