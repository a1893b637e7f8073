"""Ensembles of several views of the same samples."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from mdec import Ensemble, generate_ensemble
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import hierarchical
from mdec.selection import select_n_clusters
from mdec.weights import ensemble_driven_cluster_index, uniform_weights


@pytest.fixture(scope="module")
def parts() -> dict[str, Ensemble]:
    X, _ = make_blobs(40, n_features=10, centers=3, random_state=0)
    noise = np.random.default_rng(0).normal(size=(40, 6))
    return {
        "blobs": generate_ensemble(X, ensemble_size=6, random_state=0),
        "noise": generate_ensemble(noise, ensemble_size=3, random_state=1),
    }


def test_members_stand_side_by_side(parts) -> None:
    joined = Ensemble.concatenate(parts)
    stacked = np.hstack([each.labels for each in parts.values()])
    np.testing.assert_array_equal(joined.labels, stacked)
    assert joined.origins == (0,) * 6 + (1,) * 3
    assert [view.name for view in joined.views] == ["blobs", "noise"]
    assert len(joined.members) == 9
    plain = Ensemble.from_labels(stacked)
    np.testing.assert_array_equal(
        ensemble_driven_cluster_index(joined), ensemble_driven_cluster_index(plain)
    )
    np.testing.assert_array_equal(hierarchical(joined, 3), hierarchical(plain, 3))


def test_each_view_comes_back(parts) -> None:
    joined = Ensemble.concatenate(list(parts.values()))
    for number, part in enumerate(parts.values()):
        view = joined.view(number)
        np.testing.assert_array_equal(view.labels, part.labels)
        assert view.members == part.members
        assert view.plan == part.plan
        assert view.names == part.names
    assert joined.views[1].name == "view 2"


def test_members_keep_their_views_when_some_are_taken(parts) -> None:
    joined = Ensemble.concatenate(parts, weights=[1, 1])
    some = joined[[8, 0, 1]]
    assert some.origins == (1, 0, 0)
    np.testing.assert_allclose(some.member_weights, [1.5, 0.75, 0.75])
    np.testing.assert_array_equal(some.view(1).labels[:, 0], joined.labels[:, 8])


@pytest.mark.parametrize("weigh", [uniform_weights, ensemble_driven_cluster_index])
def test_shares_of_the_coassociation(parts, weigh) -> None:
    """The matrix is the sum of those of the views, each times its share."""
    weights = {"blobs": 3.0, "noise": 1.0}
    joined = Ensemble.concatenate(parts, weights=weights)
    plain = Ensemble.concatenate(parts)
    found = locally_weighted_coassociation(joined, weigh(joined))
    own = weigh(plain)
    expected = np.zeros_like(found)
    for v, share in enumerate((0.75, 0.25)):
        inside = np.repeat(np.array(plain.origins), np.diff(plain.offsets)) == v
        view = plain.view(v)
        expected += share * locally_weighted_coassociation(view, own[inside])
    off = ~np.eye(40, dtype=bool)
    np.testing.assert_allclose(found[off], expected[off], atol=1e-12)


def test_joined_ensembles_join_again(parts) -> None:
    first = Ensemble.concatenate(parts, weights=[1, 1])
    both = Ensemble.concatenate([first, parts["noise"]], weights=[1, 1])
    assert [view.share for view in both.views] == [0.25, 0.25, 0.5]
    alike = Ensemble.concatenate([Ensemble.concatenate(parts), parts["noise"]])
    assert alike.member_weights is None
    assert alike.origins == (0,) * 6 + (1,) * 3 + (2,) * 3
    kept = Ensemble.concatenate([first, parts["noise"]])
    np.testing.assert_allclose([v.share for v in kept.views], [0.375, 0.375, 0.25])


def test_saved_loaded_and_pickled(parts, tmp_path) -> None:
    joined = Ensemble.concatenate(
        {"<b>&\n'\"": parts["blobs"], "": parts["noise"]}, weights=[1, 2]
    )
    joined.save(tmp_path / "joined.npz")
    loaded = Ensemble.load(tmp_path / "joined.npz")
    for other in (loaded, pickle.loads(pickle.dumps(joined))):
        np.testing.assert_array_equal(other.labels, joined.labels)
        assert other.views == joined.views
        assert other.origins == joined.origins
        assert other.view(0).plan == parts["blobs"].plan


def test_names_are_checked(parts) -> None:
    names = tuple(f"s{i}" for i in range(40))
    swapped = (*names[:38], names[39], names[38])
    first, second = (
        Ensemble(part.labels, names={"samples": given, "features": ("f",)})
        for part, given in zip(parts.values(), (names, swapped), strict=True)
    )
    with pytest.raises(ValueError, match=r"sample 38 is 's38' in one .* and 's39'"):
        Ensemble.concatenate([first, second])
    joined = Ensemble.concatenate([parts["noise"], first])
    assert joined.names["samples"] == names
    assert "features" not in joined.names
    assert joined.view(1).names["features"] == ("f",)


def test_other_samples_are_refused(parts) -> None:
    few = Ensemble.from_labels([[0], [1], [1]])
    with pytest.raises(ValueError, match="'blobs': 40, 'few': 3"):
        Ensemble.concatenate({"blobs": parts["blobs"], "few": few})
    with pytest.raises(ValueError, match="samples are none"):
        Ensemble.concatenate([])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0], "one number above 0 for each of the 2 views"),
        ([1.0, 0.0], "above 0"),
        ([1.0, np.nan], "above 0"),
        ({"blobs": 1.0, "noice": 1.0}, "'noice', the views are 'blobs', 'noise'"),
    ],
)
def test_weights_are_checked(parts, weights, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Ensemble.concatenate(parts, weights=weights)


def test_some_samples_keep_their_views(parts) -> None:
    joined = Ensemble.concatenate(parts, weights=[1, 1])
    some = joined.among(np.arange(10))
    assert some.views == joined.views
    np.testing.assert_array_equal(some.member_weights, joined.member_weights)
    few = np.where(np.arange(40)[:, None] < 10, -1, joined.labels[:, :3])
    part = Ensemble(
        np.column_stack([few, joined.labels[:, 3:]]), origins=joined.origins
    )
    assert part.among(np.arange(10)).origins == joined.origins[3:]


def test_shares_count_when_numbers_of_clusters_are_compared(parts) -> None:
    """A view of no weight to speak of hardly changes the criteria of the other."""
    alone = select_n_clusters(parts["blobs"], k_range=[2, 3, 4], seed=0).table
    joined = Ensemble.concatenate(parts, weights=[1.0, 1e-9])
    table = select_n_clusters(joined, k_range=[2, 3, 4], seed=0).table
    plain = select_n_clusters(Ensemble.concatenate(parts), k_range=[2, 3, 4], seed=0)
    gap = np.abs(table["silhouette"] - alone["silhouette"]).max()
    assert gap < np.abs(plain.table["silhouette"] - alone["silhouette"]).max()
