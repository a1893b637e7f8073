"""Preparing expression values: steps, decisions, draws, and when to keep away."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info

import mdec
from mdec import MDEC
from mdec.datasets import load_dataset
from mdec.preparation import (
    ExpressionPreparation,
    MostVariable,
    SampleScaler,
    VarianceStabilizer,
    kind_of_values,
)
from mdec.preparation.kinds import kind_of_layer
from mdec.preparation.recipes import (
    KINDS,
    RECIPES,
    draw_preparation,
    leading_features,
    learn_preparation,
    prepare,
    scale_to_spread,
    stabilize,
    variance_order,
)

GENE_SETS = {
    "intensities": ["01", "03", "05", "06", "08", "10", "11", "16"],
    "ratios": ["17"],
    "log-ratios": ["02", "13", "14"],
}
IMAGES = ["20", "22", "23", "24", "26", "30"]
MORE = {
    **dict.fromkeys(["DS-7", "DS-9", "DS-12", "DS-15"], "intensities"),
    **dict.fromkeys(["DS-4", "DS-18"], "log-ratios"),
    **dict.fromkeys(["DS-19", "DS-21", "DS-25", "DS-28"], "other"),
}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def intensities(n_samples: int = 40, n_features: int = 300) -> np.ndarray:
    levels = rng().normal(5.0, 1.5, size=n_features)
    return np.exp(levels + rng().normal(0.0, 0.6, size=(n_samples, n_features)))


def counts(n_samples: int, n_features: int, level: float) -> np.ndarray:
    """Draw negative binomial counts with gene means and library sizes of their own."""
    source = rng()
    means = np.exp(source.normal(level, 1.5, size=n_features))
    means = means * np.exp(source.normal(0.0, 0.3, size=(n_samples, 1)))
    return source.poisson(source.gamma(2.0, means / 2.0)).astype(float)


def log_ratios(n_samples: int = 50, n_features: int = 400) -> np.ndarray:
    source = rng()
    spreads = np.exp(source.normal(-0.3, 0.4, size=n_features))
    return spreads * source.standard_t(5, size=(n_samples, n_features))


def embedding(n_samples: int = 300, n_features: int = 384) -> np.ndarray:
    source = rng()
    inner = source.normal(size=(n_samples, 10)) @ source.normal(size=(10, n_features))
    return inner + 0.7 * source.normal(size=(n_samples, n_features))


@pytest.mark.parametrize(
    "step",
    [
        VarianceStabilizer(),
        SampleScaler(),
        MostVariable(),
        ExpressionPreparation(),
        *(
            pytest.param(step, marks=pytest.mark.slow)
            for step in (
                VarianceStabilizer(power=0.0),
                SampleScaler(scale="spread"),
                SampleScaler(center=False, scale="total"),
                ExpressionPreparation(kind="log-ratios"),
                ExpressionPreparation(kind="intensities"),
            )
        ),
    ],
    ids=str,
)
def test_scikit_learn_contract(step: object) -> None:
    check_estimator(step, on_skip=None)


STEPS = [
    VarianceStabilizer(),
    VarianceStabilizer(0.0),
    SampleScaler(),
    SampleScaler(scale="spread"),
    SampleScaler(scale="total"),
    MostVariable(),
    *[ExpressionPreparation(kind) for kind in ("auto", *KINDS)],
]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_precision_is_kept(step: object) -> None:
    X = intensities().astype(np.float32)
    assert step.fit_transform(X).dtype == np.float32
    assert step.fit_transform(X.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_missing_values_are_refused(step: object) -> None:
    X = intensities()
    fitted = step.fit(X)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.transform(X)
    with pytest.raises(ValueError, match="contains NaN"):
        step.fit(X)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_extreme_scales_do_not_overflow(step: object) -> None:
    for X in (intensities(), log_ratios(), embedding()):
        for scale in (1e-150, 1e150):
            values = step.fit_transform(scale * X)
            assert np.isfinite(values).all()
            assert values.any()


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_new_sample_is_prepared_by_itself(step: object) -> None:
    X = intensities(60)
    fitted = step.fit(X[:40])
    together = fitted.transform(X[40:])
    for row in (40, 51):
        alone = fitted.transform(X[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row - 40], rtol=1e-12)


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5, 0.75])
def test_powers_keep_order_zero_and_sign(power: float) -> None:
    X = np.array([[-300.0, -2.0, -0.5, 0.0, 0.5, 2.0, 300.0]])
    values = stabilize(X, power)
    assert (np.diff(values) > 0.0).all()
    assert values[0, 3] == 0.0
    np.testing.assert_array_equal(values, -values[:, ::-1])


def test_power_against_plain_formulas() -> None:
    X = np.array([[0.0, 1.0, 9.0, 1023.0]])
    np.testing.assert_allclose(stabilize(X, 0.5), np.sqrt(X))
    np.testing.assert_allclose(stabilize(X, 0.0), np.log2(1.0 + X))
    assert stabilize(X, 1.0) is X


def test_samples_are_centred_and_scaled() -> None:
    X = intensities()
    centred = SampleScaler().fit_transform(X)
    np.testing.assert_allclose(centred, X - X.mean(axis=1, keepdims=True))
    spread = SampleScaler(scale="spread").fit_transform(X)
    np.testing.assert_allclose(spread, StandardScaler().fit_transform(X.T).T)
    totals = SampleScaler(center=False, scale="total").fit(X)
    new = 7.0 * X[:5]
    np.testing.assert_allclose(
        totals.transform(new).sum(axis=1), np.median(X.sum(axis=1))
    )


def test_samples_of_equal_values_stay() -> None:
    X = np.full((3, 7), 0.1)
    np.testing.assert_array_equal(scale_to_spread(X), X)


def test_most_variable_features_by_name() -> None:
    X = intensities(30, 50)
    names = [f"gene {number}" for number in range(50)]
    step = MostVariable(0.1).set_output(transform="pandas")
    kept = step.fit_transform(pd.DataFrame(X, columns=names))
    best = sorted(range(50), key=lambda feature: -np.var(X[:, feature]))[:5]
    assert list(kept.columns) == [names[feature] for feature in sorted(best)]


def test_equal_variances_go_to_the_first() -> None:
    X = np.tile([[0.0], [1.0]], (1, 6))
    assert variance_order(X).tolist() == list(range(6))


@pytest.mark.parametrize(
    ("size", "share", "kept"), [(10, 0.3, 3), (10, 0.31, 4), (7, 0.01, 1), (9, 1.0, 9)]
)
def test_share_of_the_features(size: int, share: float, kept: int) -> None:
    assert leading_features(np.arange(size)[::-1], share).size == kept


def test_names_after_preparation() -> None:
    X = pd.DataFrame(log_ratios(), columns=[f"gene {n}" for n in range(400)])
    step = ExpressionPreparation().fit(X)
    names = step.get_feature_names_out()
    assert len(names) == step.transform(X).shape[1] == math.ceil(0.2 * 400)
    assert set(names) <= set(X.columns)


def test_decisions_are_frozen_at_fit() -> None:
    X = log_ratios()
    step = ExpressionPreparation().fit(X[:40])
    before = step.features_.copy()
    new = 100.0 * np.abs(X[40:])
    values = step.transform(new)
    expected = (new - new.mean(axis=1, keepdims=True))[:, before]
    np.testing.assert_allclose(values, expected)
    assert step.kind_ == "log-ratios"
    np.testing.assert_array_equal(step.features_, before)


def test_counts_of_other_depths_become_alike() -> None:
    X = counts(40, 500, 3.0)
    step = ExpressionPreparation().fit(X)
    assert step.kind_ == "counts"
    expected = np.log2(1.0 + X * step.preparation_.total / X.sum(axis=1)[:, None])
    np.testing.assert_allclose(step.transform(X), expected)
    np.testing.assert_allclose(step.transform(3.0 * X), expected)


def test_new_samples_are_predicted_through_a_pipeline() -> None:
    X = intensities(90)
    y = np.arange(90) % 3
    X[:, :60] *= np.array([1.0, 5.0, 25.0])[y][:, None]
    model = MDEC(3, ensemble_size=10, random_state=0)
    pipeline = make_pipeline(ExpressionPreparation(), model).fit(X[:60])
    np.testing.assert_array_equal(pipeline.predict(X[:60]), model.labels_)
    new = pipeline.predict(X[60:])
    assert [len(set(zip(y[60:], new, strict=True))), len(set(new))] == [3, 3]


def test_the_user_may_know_better() -> None:
    step = ExpressionPreparation("other").fit(log_ratios())
    assert (step.kind_, step.reason_) == ("other", "You said other.")
    step = ExpressionPreparation("intensities", share=0.1).fit(embedding())
    assert step.features_.size == 39


SIMULATED = {
    "intensities": (intensities(), "intensities"),
    "intensities, few samples": (intensities(12, 2000), "intensities"),
    "intensities less background": (intensities() - 60.0, "intensities"),
    "intensities cut off at 10": (np.maximum(intensities(), 10.0), "intensities"),
    "per million": (
        1e6 * intensities() / intensities().sum(axis=1, keepdims=True),
        "intensities",
    ),
    "bulk counts": (counts(60, 2000, 5.0), "counts"),
    "single-cell counts": (counts(500, 1000, -2.0), "counts"),
    "very sparse counts": (counts(300, 2000, -4.0), "counts"),
    "logged intensities": (np.log2(intensities(60, 2000) + 1.0), "logged"),
    "natural logarithms": (np.log(intensities(60, 2000) + 1.0), "logged"),
    "log of per million": (
        np.log2(1.0 + 3.3 * counts(60, 2000, 2.0) * np.exp(log_ratios(1, 2000) / 4.0)),
        "log-abundances",
    ),
    "ratios": (np.exp2(1.5 * log_ratios()), "ratios"),
    "log-ratios": (log_ratios(), "log-ratios"),
    "log-ratios, a few of them large": (
        log_ratios() + 15.0 * (rng().random(log_ratios().shape) < 0.003),
        "log-ratios",
    ),
    "log-ratios in thousandths": (1000.0 * log_ratios(), "other"),
    "log-ratios, genes centred": (
        log_ratios() - log_ratios().mean(axis=0),
        "log-ratios",
    ),
    "z-scored intensities": (StandardScaler().fit_transform(intensities()), "other"),
    "z-scored log-ratios": (StandardScaler().fit_transform(log_ratios()), "other"),
    "z-scored by others": (
        StandardScaler()
        .fit(np.log(intensities(80)[:40]))
        .transform(np.log(intensities(80)[40:])),
        "other",
    ),
    "standard normal": (rng().normal(size=(100, 200)), "other"),
    "embedding": (embedding(), "other"),
    "embedding, unit length": (
        embedding() / np.linalg.norm(embedding(), axis=1, keepdims=True),
        "other",
    ),
    "embedding, other length": (
        30.0 * embedding() / np.linalg.norm(embedding(), axis=1, keepdims=True),
        "other",
    ),
    "embedding, positive part": (np.maximum(embedding(), 0.0), "other"),
    "components of log-ratios": (
        PCA(120).fit_transform(log_ratios(150, 400)),
        "other",
    ),
    "components of intensities": (PCA(120).fit_transform(intensities(150)), "other"),
    "white components": (
        PCA(120, whiten=True).fit_transform(intensities(150)),
        "other",
    ),
    "bits": (rng().integers(0, 2, size=(50, 200)).astype(float), "other"),
    "sparse bits": ((rng().random((200, 300)) < 0.02).astype(float), "other"),
    "sparse black and white": (255.0 * (rng().random((200, 300)) < 0.02), "other"),
    "proportions": (rng().dirichlet(np.full(200, 0.1), size=50), "other"),
    "percentages": (100.0 * rng().dirichlet(np.full(200, 0.1), size=50), "other"),
    "scores from 1 to 5": (rng().integers(1, 6, size=(80, 150)).astype(float), "other"),
    "ages": (rng().uniform(18.0, 90.0, size=(80, 150)), "other"),
    "all zero": (np.zeros((5, 200)), "other"),
    "all alike": (np.full((5, 200), -7.0), "other"),
    "wide digits": (np.tile(load_digits().data[:300], (1, 3)), "other"),
    "digits": (load_digits().data, "other"),
    "iris": (load_iris().data, "other"),
    "wine": (load_wine().data, "other"),
    "breast cancer": (load_breast_cancer().data, "other"),
    "diabetes": (load_diabetes().data, "other"),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_kinds_are_told_apart_and_what_is_no_expression_is_left_alone(
    name: str,
) -> None:
    X, kind = SIMULATED[name]
    for dtype in (np.float64, np.float32):
        found, reason = kind_of_values(X.astype(dtype))
        assert found == kind, reason
        assert reason.endswith(".")
    if kind == "other":
        np.testing.assert_array_equal(ExpressionPreparation().fit_transform(X), X)


def log_normalised(n_samples: int, n_features: int, level: float) -> np.ndarray:
    X = counts(n_samples, n_features, level)
    return np.log1p(1e4 * X / X.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("level", [-3.0, -2.0, 0.0])
def test_logarithms_of_scaled_counts(level: float, dtype: type) -> None:
    X = log_normalised(200, 800, level).astype(dtype)
    kind, reason = kind_of_values(X)
    assert kind == "log-counts"
    assert "multiples" in reason
    # The most variable genes alone are still recognised.
    assert kind_of_values(X[:, variance_order(X)[:300]])[0] == "log-counts"


def abundances(n_samples: int, n_features: int, level: float) -> np.ndarray:
    """Draw counts per million, divided by the lengths of genes."""
    lengths = np.exp(np.random.default_rng(1).normal(size=n_features))
    X = counts(n_samples, n_features, level) / lengths
    return 1e6 * X / X.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("level", [-2.0, 0.0, 1.5])
def test_abundances_of_reads_and_their_logarithms(level: float, dtype: type) -> None:
    X = abundances(100, 1500, level).astype(dtype)
    kind, reason = kind_of_values(X)
    assert kind == "abundances"
    assert "FPKM" in reason
    for logarithm, base in ((np.log10, "base 10"), (np.log2, "base 2")):
        kind, reason = kind_of_values(logarithm(1.0 + X))
        assert kind == "log-abundances"
        assert base in reason


def test_sparse_rows_are_told_apart_and_prepared_as_filled_ones() -> None:
    for X in (counts(90, 3000, -2.0), abundances(90, 3000, -1.0)):
        packed = sparse.csr_array(X)
        assert kind_of_values(packed) == kind_of_values(X)
        filled, thin = ExpressionPreparation().fit(X), ExpressionPreparation()
        np.testing.assert_array_equal(thin.fit_transform(packed), filled.transform(X))
        np.testing.assert_array_equal(thin.features_, filled.features_)
    X = np.maximum(embedding(), 0.0)
    np.testing.assert_array_equal(
        ExpressionPreparation().fit_transform(sparse.csr_array(X)), X
    )


def test_genes_that_vary_for_their_mean() -> None:
    """Groups differ in 50 genes of every level; the others have the noise of counts."""
    source = rng()
    means = np.exp(source.uniform(-2.0, 5.0, size=2000))
    marking = source.choice(2000, 50, replace=False)
    levels = np.tile(means, (200, 1))
    levels[:100, marking] *= 2.0
    X = source.poisson(levels).astype(float)
    step = ExpressionPreparation("counts", n_top_genes=50).fit(X)
    found = np.isin(step.features_, marking).sum()
    plain = np.argsort(-np.log1p(X).var(axis=0))[:50]
    assert found >= 30
    assert found > 2 * np.isin(plain, marking).sum()


def test_genes_in_fewer_than_three_cells_are_left_out() -> None:
    X = counts(60, 400, 1.0)
    X[:, :10] = 0.0
    X[:2, 5:10] = 1000.0
    step = ExpressionPreparation("counts").fit(X)
    assert not set(range(10)) & set(step.features_.tolist())
    expressed = np.flatnonzero((X != 0.0).sum(axis=0) >= 3)
    np.testing.assert_array_equal(step.features_, expressed)


def test_number_of_genes() -> None:
    X = counts(60, 3000, 1.0)
    assert ExpressionPreparation("counts").fit(X).features_.size == 2000
    assert ExpressionPreparation(n_top_genes=70).fit(X).features_.size == 70
    assert ExpressionPreparation("counts", share=1.0).fit(X).features_.size == 3000
    step = ExpressionPreparation("intensities", n_top_genes=7).fit(intensities())
    best = np.sort(variance_order(stabilize(intensities(), 0.75))[:7])
    np.testing.assert_array_equal(step.features_, best)
    with pytest.raises(ValueError, match="both say how many"):
        ExpressionPreparation(share=0.5, n_top_genes=7).fit(X)
    for share in (0.0, 1.1):
        with pytest.raises(ValueError, match="'share' parameter"):
            ExpressionPreparation(share=share).fit(X)


def test_the_order_of_cells_and_their_copies_choose_no_gene() -> None:
    X = counts(60, 2500, 0.0)
    chosen = ExpressionPreparation("counts", n_top_genes=300).fit(X).features_
    for rows in (np.arange(60)[::-1], np.tile(np.arange(60), 2)):
        again = ExpressionPreparation("counts", n_top_genes=300).fit(X[rows])
        np.testing.assert_array_equal(again.features_, chosen)


def test_components_are_those_of_scikit_learn() -> None:
    X = counts(300, 200, 1.0)
    genes = ExpressionPreparation("counts").fit_transform(X)
    step = ExpressionPreparation("counts", n_components=12)
    found = step.fit_transform(X)
    expected = PCA(12, svd_solver="full").fit(genes)
    assert step.get_feature_names_out()[[0, 11]].tolist() == [
        "component 1",
        "component 12",
    ]
    signs = np.sign((found * expected.transform(genes)).sum(axis=0))
    scale = np.abs(genes).max()
    np.testing.assert_allclose(
        found, signs * expected.transform(genes), atol=1e-3 * scale
    )
    loadings = step.components_.loadings
    largest = np.abs(loadings).argmax(axis=0)
    assert (loadings[largest, np.arange(12)] > 0.0).all()


def test_components_of_cells_depend_on_each_alone() -> None:
    X = counts(300, 200, 1.0)
    step = ExpressionPreparation("counts", n_components=12).fit(X[:250])
    together = step.transform(X)
    for rows in (slice(7, 8), slice(250, 300), slice(None, None, 3)):
        np.testing.assert_array_equal(step.transform(X[rows]), together[rows])
    packed = step.transform(sparse.csr_array(X))
    np.testing.assert_array_equal(packed, together)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_components_of_any_scale_and_of_too_few_dimensions(scale: float) -> None:
    """Five directions have five components; others would be rounding."""
    source = rng()
    X = scale * source.normal(size=(80, 5)) @ source.normal(size=(5, 120))
    found = ExpressionPreparation("other", n_components=20).fit_transform(X)
    assert found.shape == (80, 5)
    lengths = np.linalg.norm((X - X.mean(axis=0)) / scale, axis=1)
    np.testing.assert_allclose(np.linalg.norm(found / scale, axis=1), lengths, 1e-4)


def test_components_stand_for_the_genes_of_many_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mdec.preparation.recipes.MANY_CELLS", 150)
    X = counts(151, 100, 1.0)

    def width(X: np.ndarray, **how: object) -> int:
        return ExpressionPreparation(**how).fit_transform(X).shape[1]

    assert width(X, kind="counts") == 50
    assert width(X, kind="abundances") == 50
    assert width(X[:150], kind="counts") == 100
    assert width(X[:, :50], kind="counts") == 50
    assert width(counts(151, 160, 1.0), kind="counts") == 160
    assert width(X, kind="counts", n_components=0) == 100
    assert width(X, kind="other") == 100


CODE = """
import sys
import numpy as np
from mdec.preparation import ExpressionPreparation
X = np.random.default_rng(0).poisson(2.0, size=(500, 300)).astype(float)
np.save(sys.argv[1], ExpressionPreparation("counts", n_components=50).fit_transform(X))
"""


def test_components_are_the_same_on_other_processors(tmp_path: Path) -> None:
    """Counts without groups: the components have almost no gaps between them."""
    if "openblas" not in {each["internal_api"] for each in threadpool_info()}:
        pytest.skip("only OpenBLAS can imitate other processors")
    found = []
    for name in ("Nehalem", "Haswell"):
        place = tmp_path / f"{name}.npy"
        environment = os.environ | {
            "OPENBLAS_CORETYPE": name,
            "PYTHONPATH": str(Path(mdec.__file__).parents[1]),
        }
        command = [sys.executable, "-c", CODE, str(place)]
        subprocess.run(command, check=True, env=environment)
        found.append(np.load(place))
    np.testing.assert_allclose(found[0], found[1], rtol=0.0, atol=1e-4)
    assert (found[0] == found[1]).all(axis=1).mean() > 0.9


def prepared_set(shared: Path, number: str) -> np.ndarray:
    (path,) = (shared / "datasets/prepared").glob(f"DS-{number}_*.npz")
    with np.load(path, allow_pickle=False) as archive:
        return archive["X"]


def test_gene_sets_are_recognised(shared: Path) -> None:
    for kind, numbers in GENE_SETS.items():
        for number in numbers:
            assert kind_of_values(prepared_set(shared, number))[0] == kind, number


@pytest.mark.parametrize("number", IMAGES)
def test_images_are_left_alone(shared: Path, number: str) -> None:
    X = prepared_set(shared, number).astype(np.float32)
    step = ExpressionPreparation().fit(X)
    assert step.kind_ == "other"
    np.testing.assert_array_equal(step.transform(X), X)


@pytest.fixture(scope="module")
def more(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    with tarfile.open(shared / "datasets/raw-more.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", MORE)
def test_more_sets_are_recognised(more: Path, name: str) -> None:
    X = load_dataset(name, folder=more, download=False).data.astype(np.float32)
    kind, reason = kind_of_values(X)
    assert kind == MORE[name], reason


@pytest.mark.parametrize(
    ("layer", "uns", "kind"),
    [
        ("counts", [], "counts"),
        ("raw_counts", ["log1p"], "counts"),
        ("logcounts", [], "log-counts"),
        ("log1p_norm", [], "log-counts"),
        (None, ["log1p", "pca"], "log-counts"),
        (None, ["pca"], None),
        ("scaled", ["log1p"], None),
        ("spliced", [], None),
    ],
)
def test_layers_by_name(layer: str | None, uns: list[str], kind: str | None) -> None:
    X = np.ones((3, 4))
    assert kind_of_layer(X, layer, uns) == kind
    assert kind_of_layer(-X, layer, uns) is None


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_stream_and_suit_the_kind(kind: str) -> None:
    def drawn(seed: int) -> list:
        source = np.random.default_rng(seed)
        return [draw_preparation(kind, source) for _ in range(300)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert {draw.power for draw in drawn(1)} == set(RECIPES[kind].drawn_powers)
    shares = np.array([draw.share for draw in drawn(1)])
    low, high = RECIPES[kind].drawn_shares
    assert low <= shares.min() <= 1.2 * low
    assert 0.9 * high < shares.max() <= high
    middle = np.sqrt(low * high)
    assert 0.88 * middle < np.median(shares) < 1.14 * middle


def test_intensities_keep_their_power_in_every_second_member() -> None:
    source = np.random.default_rng(0)
    powers = [draw_preparation("intensities", source).power for _ in range(600)]
    assert 250 < powers.count(1.0) < 350
    assert 110 < powers.count(0.75) < 190
    assert 110 < powers.count(0.35) < 190


@pytest.mark.parametrize(
    ("make", "kind"),
    [(intensities, "intensities"), (log_ratios, "log-ratios"), (embedding, "other")],
)
def test_what_is_learnt_serves_every_member(make: object, kind: str) -> None:
    X = make()
    for power in RECIPES[kind].drawn_powers:
        learnt = learn_preparation(X, kind, power)
        whole = np.sign(X) * np.abs(X) ** power
        if kind == "log-ratios":
            whole = whole - whole.mean(axis=1, keepdims=True)
        expected = np.argsort(-whole.var(axis=0), kind="stable")
        np.testing.assert_array_equal(learnt.order, expected)
        some = np.array([2, 7, 30])
        np.testing.assert_allclose(prepare(X, learnt, some), whole[:, some])
        np.testing.assert_allclose(prepare(X[3:5], learnt, some), whole[3:5, some])
