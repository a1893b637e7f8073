"""Several kernels in one ensemble: each member draws its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.base.kernels import ANGULAR, KERNELS
from mdec.ensemble.draws import check_kernel
from mdec.ensemble.plan import Member, Plan

MIX = ("scaled_gaussian", "correlation", "cosine")


def blobs(n_samples: int = 90, n_features: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(11)
    y = np.arange(n_samples) % 3
    X = 6.0 * rng.normal(size=(3, n_features))[y]
    return X + rng.normal(size=(n_samples, n_features)), y


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return blobs()[0]


def made(X: Any, kernel: Any, **settings: Any) -> Any:
    settings = {"ensemble_size": 12, "random_state": 3} | settings
    return generate_ensemble(X, kernel=kernel, **settings)


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one.labels, other.labels))


# ------------------------------------------------------------------ what is asked for


def test_names_and_shares_in_every_form() -> None:
    even = (("cosine", 0.5), ("spearman", 0.5))
    assert check_kernel(["spearman", "cosine"]) == even
    assert check_kernel(("cosine", np.str_("spearman"))) == even
    assert check_kernel({"spearman": 7, "cosine": np.int64(7)}) == even
    assert check_kernel({"cosine": 1e308, "spearman": 1e308}) == even
    for one in ("cosine", np.str_("cosine"), ["cosine"], ("cosine",), {"cosine": 9}):
        assert check_kernel(one) == "cosine"
        assert type(check_kernel(one)) is str
    shares = check_kernel({"cosine": 0.1, "spearman": 0.2, "correlation": 0.3})
    np.testing.assert_allclose([share for _, share in shares], [1 / 2, 1 / 6, 1 / 3])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("rbf", "kernel='rbf' is not one of scaled_gaussian, "),
        (["cosine", "rbf"], "'rbf' in kernel="),
        (["cosine", 3], "3 in kernel="),
        ([], "names no kernel"),
        ({}, "names no kernel"),
        (["cosine", "cosine"], "names 'cosine' twice"),
        ({"cosine": 0, "spearman": 1}, "share 0 of the kernel 'cosine'"),
        ({"cosine": -1.0, "spearman": 1}, "share -1.0"),
        ({"cosine": float("nan"), "spearman": 1}, "share nan"),
        ({"cosine": float("inf"), "spearman": 1}, "share inf"),
        ({"cosine": True, "spearman": 1}, "share True"),
        ({"cosine": "half", "spearman": 1}, "share 'half'"),
        ({"cosine", "spearman"}, "not a name, list of names or mapping"),
        (None, "not a name, list of names or mapping"),
    ],
)
def test_what_is_no_mix_is_one_sentence(X: np.ndarray, kernel: Any, message: str):
    with pytest.raises(ValueError, match=message) as caught:
        made(X, kernel)
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize("kernel", [["cosine", "rbf"], [], {"cosine": 0}, 5, {"a"}])
def test_the_estimator_refuses_the_same(X: np.ndarray, kernel: Any) -> None:
    with pytest.raises(ValueError, match="kernel"):
        MDEC(3, kernel=kernel, ensemble_size=2).fit(X)


# ------------------------------------------------------------------ draws


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_kernel_in_any_form_is_that_kernel(X: np.ndarray, kernel: str) -> None:
    alone = made(X, kernel, ensemble_size=4)
    for form in ([kernel], {kernel: 0.3}, np.str_(kernel)):
        again = made(X, form, ensemble_size=4)
        assert same(again, alone)
        assert again.members == alone.members
        assert again.parameters == alone.parameters
    assert all(member.kernel is None for member in alone.members)


def test_a_member_is_that_of_its_kernel_alone(X: np.ndarray) -> None:
    mixed = made(X, MIX)
    drawn = [member.kernel for member in mixed.members]
    assert set(drawn) == set(MIX)
    alone = {kernel: made(X, kernel) for kernel in MIX}
    for column, kernel in enumerate(drawn):
        expected = alone[kernel].labels[:, column]
        np.testing.assert_array_equal(mixed.labels[:, column], expected)
    # The three give different labels here, so the kernel is what decides.
    assert not same(alone["cosine"], alone["scaled_gaussian"])
    assert not same(alone["cosine"], alone["correlation"])


def test_the_order_of_names_does_not_matter(X: np.ndarray) -> None:
    first = made(X, {"scaled_gaussian": 1, "cosine": 2, "correlation": 1})
    second = made(X, {"correlation": 0.25, "cosine": 0.5, "scaled_gaussian": 0.25})
    assert same(first, second)
    assert first.parameters == second.parameters


def test_shares_are_those_asked_for() -> None:
    kernel = check_kernel({"cosine": 1, "spearman": 3, "scaled_gaussian": 6})
    plan = Plan(50, 8, entropy=1, kernel=kernel)
    drawn = [plan.member(index).kernel for index in range(3000)]
    for name, share in kernel:
        deviation = (3000 * share * (1 - share)) ** 0.5
        assert abs(drawn.count(name) - 3000 * share) < 4 * deviation
    assert plan.member(7, attempt=1) == plan.member(7, attempt=1)
    second = [plan.member(index, attempt=1).kernel for index in range(3000)]
    assert second != drawn


def test_other_draws_do_not_depend_on_the_kernel() -> None:
    one = Plan(50, 8, entropy=1)
    kernel = check_kernel(["cosine", "spearman"])
    mixed = Plan(50, 8, entropy=1, kernel=kernel)
    for index in range(20):
        old, new = one.member(index), mixed.member(index)
        assert old == Member(**{**vars(new), "kernel": None})
        np.testing.assert_array_equal(one.features(old), mixed.features(new))


def test_prefixes_and_jobs_change_nothing(X: np.ndarray) -> None:
    large = made(X, MIX)
    small = made(X, MIX, ensemble_size=5, n_jobs=2)
    np.testing.assert_array_equal(large.labels[:, :5], small.labels)
    assert large.members[:5] == small.members


def test_plans_and_members_survive_json() -> None:
    plan = Plan(50, 8, entropy=1, kernel=check_kernel({**dict.fromkeys(MIX, 1)}))
    read = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert read == plan
    member = plan.member(3)
    assert Member.from_json(json.loads(json.dumps(member.to_json()))) == member
    assert read.kernel_of(member) == member.kernel
    old = Member(0, 0, 5, 0.5, 3)
    assert "kernel" not in old.to_json()
    with pytest.raises(ValueError, match="another plan"):
        plan.kernel_of(old)


# ------------------------------------------------------------------ every way to run


def test_a_stopped_run_goes_on(X: np.ndarray, tmp_path: Path) -> None:
    whole = made(X, MIX)
    made(X, MIX, ensemble_size=5, checkpoint=tmp_path / "c")
    kept = sorted((tmp_path / "c").glob("member-*"))
    assert len(kept) == 5
    kept[2].unlink()
    resumed = made(X, MIX, checkpoint=tmp_path / "c")
    assert same(resumed, whole)
    assert resumed.members == whole.members
    for other in ("cosine", MIX[:2], {**dict.fromkeys(MIX, 1.0), "cosine": 2.0}):
        with pytest.raises(ValueError, match="kernel differ"):
            made(X, other, checkpoint=tmp_path / "c")


def test_files_keep_the_kernels(X: np.ndarray, tmp_path: Path) -> None:
    mixed = made(X, MIX)
    mixed.save(tmp_path / "e.npz")
    read = Ensemble.load(tmp_path / "e.npz")
    assert read.members == mixed.members
    assert read.plan == mixed.plan
    for kernel in (MIX, list(MIX), {"cosine": np.float64(0.5), "spearman": 1}):
        model = MDEC(3, kernel=kernel, ensemble_size=8, random_state=0).fit(X)
        model.save(tmp_path / "m.npz")
        again = MDEC.load(tmp_path / "m.npz")
        assert again.ensemble_.plan == model.ensemble_.plan
        np.testing.assert_array_equal(again.predict(X + 0.1), model.predict(X + 0.1))
        assert check_kernel(again.kernel) == check_kernel(kernel)
        assert same(again.fit(X).ensemble_, model.ensemble_)


def test_new_rows_join_by_each_members_own_kernel() -> None:
    X, y = blobs(150)
    model = MDEC(3, kernel=MIX, ensemble_size=20, random_state=0).fit(X[:120])
    assert adjusted_rand_score(y[120:], model.predict(X[120:])) == 1.0
    from mdec.prediction import predict_base_clusters

    found = predict_base_clusters(X[120:], model.clustering_.rows[0])
    for kernel in MIX:
        alone = MDEC(3, kernel=kernel, ensemble_size=20, random_state=0).fit(X[:120])
        expected = predict_base_clusters(X[120:], alone.clustering_.rows[0])
        own = [m.index for m in model.ensemble_.members if m.kernel == kernel]
        np.testing.assert_array_equal(found[:, own], expected[:, own])
    assert not model.unlike_training(X[120:]).all()
    assert model.unlike_training(X[120:] + 1e3).all()


def test_directions_alone_flag_no_longer_rows() -> None:
    X, _ = blobs(150)
    model = MDEC(3, kernel=ANGULAR, ensemble_size=10, random_state=0).fit(X)
    assert not model.unlike_training(100.0 * X).any()
    both = MDEC(3, kernel=[*ANGULAR, "scaled_gaussian"], ensemble_size=10)
    assert both.set_params(random_state=0).fit(X).unlike_training(100.0 * X).all()


def test_landmarks_draw_kernels_too(X: np.ndarray) -> None:
    mixed = made(X, MIX, base="landmark")
    alone = {kernel: made(X, kernel, base="landmark") for kernel in MIX}
    for column, member in enumerate(mixed.members):
        expected = alone[member.kernel].labels[:, column]
        np.testing.assert_array_equal(mixed.labels[:, column], expected)
    model = MDEC(3, kernel=MIX, base="landmark", ensemble_size=8, random_state=0)
    np.testing.assert_array_equal(model.fit(X).predict(X), model.labels_)


def test_more_samples_than_all_pairs_are_looked_at(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = made(X, MIX)
    from mdec.base import graphs
    from mdec.engines import threads

    for module in (graphs, threads):
        monkeypatch.setattr(module, "DENSE_SAMPLES", 50)
    searched = made(X, MIX)
    agree = [
        adjusted_rand_score(a, b)
        for a, b in zip(whole.labels.T, searched.labels.T, strict=True)
    ]
    assert np.mean(agree) > 0.9


def test_the_card_makes_the_same_members(X: np.ndarray) -> None:
    pytest.importorskip("torch", reason="needs PyTorch, the extra 'gpu'")
    here, there = made(X, MIX), made(X, MIX, device="torch")
    assert here.members == there.members
    agree = [
        adjusted_rand_score(a, b)
        for a, b in zip(here.labels.T, there.labels.T, strict=True)
    ]
    assert np.mean(agree) > 0.95


def test_a_cluster_makes_the_same_members(X: np.ndarray) -> None:
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    settings: dict[str, Any] = {"base": "landmark", "ensemble_size": 4}
    cluster = distributed.Client(
        n_workers=1, processes=False, dashboard_address="127.0.0.1:0"
    )
    with cluster:
        there = made(da.from_array(X, chunks=(45, -1)), MIX, **settings).gather()
    assert same(there, made(X, MIX, **settings))


def test_members_draw_kernel_and_preparation() -> None:
    rng = np.random.default_rng(0)
    X = rng.lognormal(5.0, 2.0, size=(40, 300))
    mixed = made(X, MIX, preparation="diversified", ensemble_size=8)
    assert {member.kernel for member in mixed.members} <= set(MIX)
    assert all(member.preparation is not None for member in mixed.members)
    kernel = mixed.members[5].kernel
    alone = made(X, kernel, preparation="diversified", ensemble_size=8)
    np.testing.assert_array_equal(mixed.labels[:, 5], alone.labels[:, 5])


def test_the_number_of_clusters_is_found_with_a_mix() -> None:
    X, y = blobs()
    model = MDEC("auto", kernel=MIX, ensemble_size=20, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.parametrize("kernel", [["cosine", "spearman"], {"cosine": 1.0}])
def test_estimators_with_a_mix_are_cloned(kernel: Any) -> None:
    model = MDEC(3, kernel=kernel)
    assert clone(model).get_params() == model.get_params()
    assert "kernel" in repr(model)
