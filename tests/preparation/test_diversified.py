"""Members that draw how expression values are prepared."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.base.members import base_clustering, member_similarity
from mdec.preparation.recipes import (
    Versions,
    leading_features,
    learn_preparation,
    prepare,
)

SETTINGS = {"preparation": "diversified", "ensemble_size": 12, "random_state": 3}


def intensities(n_samples: int = 60, n_features: int = 300):
    """Raw intensities: log-normal levels, noise that grows with them, three classes."""
    rng = np.random.default_rng(5)
    y = np.arange(n_samples) % 3
    level = rng.normal(8.0, 2.0, n_features)
    effect = np.zeros((3, n_features))
    for k in range(3):
        effect[k, 40 * k : 40 * (k + 1)] = 1.5
    log2 = level + effect[y] + rng.normal(0.0, 0.4, (n_samples, n_features))
    return np.exp2(log2), y


@pytest.fixture(scope="module")
def data():
    return intensities()


def test_each_member_draws_its_own(data) -> None:
    X, _ = data
    ensemble = generate_ensemble(X, **SETTINGS)
    assert ensemble.plan.preparation == "intensities"
    draws = [member.preparation for member in ensemble.members]
    assert len({draw.power for draw in draws}) > 1
    assert {draw.share for draw in draws} == {1.0}


def test_logged_values_draw_a_share_of_their_features(data) -> None:
    ensemble = generate_ensemble(np.log2(data[0]), **SETTINGS)
    assert ensemble.plan.preparation == "logged"
    draws = [member.preparation for member in ensemble.members]
    assert {draw.power for draw in draws} == {1.0}
    assert len({draw.share for draw in draws}) == 12
    assert all(0.1 <= draw.share <= 1.0 for draw in draws)


def test_a_member_follows_from_its_draw(data) -> None:
    X, _ = data
    ensemble = generate_ensemble(X, **SETTINGS)
    plan, member = ensemble.plan, ensemble.members[7]
    learnt = learn_preparation(X, plan.preparation, member.preparation.power)
    allowed = leading_features(learnt.order, member.preparation.share)
    features = plan.features(member, allowed)
    assert set(features) <= set(allowed)
    assert features.size == int(0.5 * allowed.size + 0.5)
    from mdec.base.graphs import similarity_graph

    rows = prepare(X, learnt, features)
    W = similarity_graph(rows, plan.kernel, member.n_neighbors, member.mu)
    versions = Versions.of(X, plan.preparation)
    assert abs(member_similarity(versions, member, plan) - W).max() < 1e-12 * W.max()
    found = base_clustering(versions, member, plan)
    assert adjusted_rand_score(found, ensemble.labels[:, 7]) == 1.0


def test_jobs_prefix_seed_and_files(data, tmp_path) -> None:
    X, _ = data
    ensemble = generate_ensemble(X, **SETTINGS)
    two = generate_ensemble(X, n_jobs=2, **SETTINGS)
    np.testing.assert_array_equal(two.labels, ensemble.labels)
    fewer = generate_ensemble(X, **{**SETTINGS, "ensemble_size": 5})
    np.testing.assert_array_equal(fewer.labels, ensemble.labels[:, :5])
    assert fewer.members == ensemble.members[:5]
    ensemble.save(tmp_path / "e.npz")
    loaded = Ensemble.load(tmp_path / "e.npz")
    assert loaded.members == ensemble.members
    assert loaded.plan == ensemble.plan


def test_a_checkpoint_is_resumed(data, tmp_path, monkeypatch) -> None:
    X, _ = data
    folder = tmp_path / "c"
    first = generate_ensemble(X, checkpoint=folder, **SETTINGS)
    plain = {**SETTINGS, "preparation": None}
    with pytest.raises(ValueError, match="preparation differ"):
        generate_ensemble(X, checkpoint=folder, **plain)
    monkeypatch.setattr(
        "mdec.engines.threads.base_clustering", lambda *_: pytest.fail("made again")
    )
    again = generate_ensemble(X, checkpoint=folder, **SETTINGS)
    np.testing.assert_array_equal(again.labels, first.labels)
    assert again.members == first.members


def test_new_rows_are_prepared_by_what_the_old_ones_taught(data) -> None:
    X, y = data
    model = MDEC(3, **SETTINGS).fit(X[:45])
    new = X[45:]
    together = model.predict(new)
    assert adjusted_rand_score(y[45:], together) > 0.9
    assert together.tolist() == [int(model.predict(row[None])[0]) for row in new]
    assert np.mean(model.predict(X[:45]) == model.labels_) > 0.95


def test_no_preparation_is_the_paper(data) -> None:
    X, _ = data
    plain = generate_ensemble(X, ensemble_size=3, random_state=3)
    assert plain.plan.preparation is None
    assert "preparation" not in plain.parameters
    assert all(member.preparation is None for member in plain.members)


@pytest.mark.parametrize(
    "settings",
    [{"base": "landmark"}, {"preparation": "log"}],
)
def test_what_is_refused(data, settings) -> None:
    if "device" in settings:
        pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"preparation=.*mdec\.preparation"):
        generate_ensemble(data[0], **{**SETTINGS, **settings})


def test_the_number_of_clusters_is_suggested(data) -> None:
    X, _ = data
    model = MDEC("auto", **{**SETTINGS, "ensemble_size": 30}).fit(X)
    assert model.n_clusters_ == 3
