"""Confidence of new rows, and the flag for rows unlike any in training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from mdec import MDEC
from mdec.base.kernels import KERNELS
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.numerics.novelty import NoveltyDetector
from mdec.prediction import predict_base_clusters


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[np.random.default_rng(0).permutation(1797)]


@pytest.fixture(scope="module")
def model(digits):
    return MDEC(10, ensemble_size=20, random_state=0).fit(digits[:500])


@pytest.mark.parametrize("consensus", CONSENSUS)
def test_confidence_follows_the_definition(consensus):
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(60, 6)), rng.normal(size=(12, 6))
    X[:30] += 2.0
    model = MDEC(3, consensus=consensus, ensemble_size=10, random_state=0).fit(X)
    base = predict_base_clusters(new, model.clustering_.rows[0])
    both = Ensemble.from_labels(np.vstack([model.ensemble_.labels, base]))
    association = locally_weighted_coassociation(both, model.cluster_weights_)
    clusters, found = model.predict(new), model.predict_confidence(new)
    for i, cluster in enumerate(clusters):
        means = [association[60 + i, :60][model.labels_ == k].mean() for k in range(3)]
        rival = max(mean for k, mean in enumerate(means) if k != cluster)
        assert found[i] == pytest.approx(means[cluster] / (means[cluster] + rival))


def test_training_rows_are_held_as_in_training(model, digits):
    found = model.predict_confidence(digits[:500])
    own = model.predict(digits[:500]) == model.labels_
    assert np.abs(found - model.confidence_)[own].max() < 0.1
    assert np.corrcoef(found[own], model.confidence_[own])[0, 1] > 0.98


def test_one_cluster_has_no_rival(digits):
    model = MDEC(1, ensemble_size=5, random_state=0).fit(digits[:100])
    assert (model.predict_confidence(digits[100:120]) == 1.0).all()


def test_rows_far_away_are_flagged_and_held_out_ones_are_not(model, digits):
    new = digits[500:]
    assert model.unlike_training(new).mean() < 0.03
    assert model.unlike_training(new + 1e6).all()
    assert model.unlike_training(-new - 100.0).all()
    assert model.unlike_training(3.0 * new).mean() > 0.9
    turned = new[:, np.random.default_rng(0).permutation(64)]
    assert model.unlike_training(turned).mean() > 0.9
    assert model.unlike_training(np.full((1, 64), 1e300)).all()


def naive(old, new, k=5):
    """Remoteness by scikit-learn's neighbours, of old rows and of new ones."""
    search = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(old)
    distance, index = search.kneighbors(old)
    spacing = distance[:, 1:].mean(axis=1)
    known = spacing / np.median(spacing[index[:, 1:]], axis=1)
    distance, index = search.kneighbors(new, n_neighbors=k)
    return known, distance.mean(axis=1) / np.median(spacing[index], axis=1)


def test_remoteness_follows_the_rule():
    rng = np.random.default_rng(2)
    old, new = rng.normal(size=(120, 5)), 1.5 * rng.normal(size=(40, 5))
    known, expected = naive(old, new)
    rows = NoveltyDetector.of(old)
    np.testing.assert_allclose(rows.remoteness(new), expected, rtol=1e-9)
    assert rows.limit == pytest.approx(np.sort(known)[-2])
    assert (rows.is_novel(new) == (expected > rows.limit)).all()
    assert 0 < rows.is_novel(new).sum() < 40
    # A row as remote as the limit is not beyond it.
    nearest = float(rows.remoteness(new).min())
    assert replace(rows, limit=nearest).is_novel(new).sum() == 39


@pytest.mark.parametrize(("scale", "offset"), [(1e-150, 0.0), (1e150, 0), (1.0, 1e9)])
def test_scale_and_offset_change_no_flag(scale, offset):
    rng = np.random.default_rng(3)
    # Whole numbers over 2**10 stay exact at the offset.
    X = np.round(2**10 * rng.normal(size=(150, 6))) / 2**10
    X[100:] *= 2.0
    plain = NoveltyDetector.of(X[:100]).is_novel(X[100:])
    moved = NoveltyDetector.of(scale * X[:100] + offset).is_novel(
        scale * X[100:] + offset
    )
    assert plain.tolist() == moved.tolist()
    assert 0 < plain.sum() < 50


def test_false_flags_are_as_rare_as_the_rule_says():
    flags = []
    for seed in range(40):
        rows = np.random.default_rng(seed).normal(size=(400, 4))
        flags.append(NoveltyDetector.of(rows[:200]).is_novel(rows[200:]).mean())
    assert 0.004 < np.mean(flags) < 0.02


def test_copies_are_no_measure():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X[:20] = X[0]
    rows = NoveltyDetector.of(X)
    assert not rows.is_novel(X[:1]).any()
    assert rows.is_novel(X + 100.0).all()
    two = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    assert NoveltyDetector.of(two).is_novel(
        np.array([[0.0, 0.0], [0.5, 0.5]])
    ).tolist() == [
        False,
        True,
    ]


def test_few_rows():
    rows = NoveltyDetector.of(np.array([[0.0], [1.0], [2.5]]))
    assert rows.is_novel(np.array([[1.5], [60.0]])).tolist() == [False, True]


def test_the_flag_does_not_depend_on_the_company(model, digits):
    new = np.vstack([digits[500:504], digits[500:502] + 50.0])
    together = model.place(new)
    for i, row in enumerate(new):
        alone = model.place(row[None])
        assert [part[i] for part in together] == [part[0] for part in alone]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("base", ["graph", "landmark"])
def test_every_kernel_and_base_has_a_flag(digits, kernel, base):
    model = MDEC(5, kernel=kernel, base=base, ensemble_size=4, random_state=0)
    model.fit(digits[:200])
    assert model.unlike_training(digits[200:300]).mean() < 0.06
    far = 100.0 - digits[200:300]
    assert model.unlike_training(far).mean() > 0.9


def test_a_prepared_ensemble_compares_prepared_rows():
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(5.0, 1.0, size=(80, 120)))
    model = MDEC(2, ensemble_size=5, preparation="diversified", random_state=0)
    model.fit(X[:60])
    assert model.unlike_training(X[60:]).sum() <= 1
    assert model.unlike_training(X[60:] + 1e6).all()


def test_a_mean_that_members_do_not_see_is_seen():
    """Log-ratios are centred sample by sample, which would hide any offset."""
    rng = np.random.default_rng(1)
    spreads = np.exp(rng.normal(-0.3, 0.4, size=300))
    X = spreads * rng.standard_t(5, size=(80, 300))
    X[:40, :60] += 2.0
    model = MDEC(2, ensemble_size=5, preparation="diversified", random_state=0)
    order = rng.permutation(80)
    model.fit(X[order[:60]])
    assert model.ensemble_.plan.preparation == "log-ratios"
    new = X[order[60:]]
    assert (model.predict(new) == model.predict(new + 1e6)).all()
    assert model.unlike_training(new).sum() <= 2
    assert model.unlike_training(new + 1e6).all()


def test_features_must_fit(model, digits):
    with pytest.raises(ValueError, match="64 features"):
        model.unlike_training(digits[:, :5])
