"""Displays draw what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import MDEC


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 10))
    X[:30] += 3.0
    return MDEC("auto", ensemble_size=25, random_state=0).fit(X)


def test_every_display_draws(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from mdec.report import plots

    for name in plots.__all__:
        display = getattr(plots, name).from_estimator(model).plot()
        drawn = display.ax_.lines or display.ax_.images or display.ax_.patches
        assert drawn or display.ax_.collections, name
        assert display.figure_ is display.ax_.figure
        pyplot.close(display.figure_)
    figure, axes = pyplot.subplots()
    line = plots.KSelectionDisplay.from_estimator(model, "pac").plot(ax=axes)
    assert line.ax_ is axes
    np.testing.assert_array_equal(
        axes.lines[0].get_ydata(), model.k_selection_.table["pac"]
    )
    with pytest.raises(ValueError, match="'votes' is not one of pac"):
        plots.KSelectionDisplay.from_estimator(model, "votes").plot(ax=axes)
    pyplot.close(figure)


def test_a_model_with_its_number_given_has_criteria_too(model):
    pytest.importorskip("matplotlib")
    from mdec.report import plots

    given = model.with_clustering(model.clustering_.recluster(2))
    measured = model.clustering_.compare_k()
    for name in ("KSelectionDisplay", "ConsensusCDFDisplay"):
        found = getattr(plots, name).from_estimator(given).selection
        np.testing.assert_array_equal(found.cdf, measured.cdf)
    matrix = plots.ConsensusMatrixDisplay.from_estimator(given).matrix
    np.testing.assert_allclose(matrix, np.rint(10.0 * matrix) / 10.0, atol=1e-12)
    np.testing.assert_allclose(matrix.diagonal(), 1.0)
    assert matrix[:30, :30].mean() > matrix[:30, 30:].mean() + 0.5
    tracks = plots.TrackingDisplay.from_estimator(given)
    assert tracks.n_clusters.tolist() == model.k_selection_.table["n_clusters"].tolist()
