"""The report: complete, self-contained, and deaf to hostile names."""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from mdec import Ensemble
from mdec.bench.evaluation import ari
from mdec.clustering import Settings, cluster_ensemble
from mdec.report import compute, describe_clustering, render_report

FIGURES = (
    "cdf",
    "score",
    "eigengap",
    "silhouette",
    "agreement",
    "pac",
    "tracking",
    "map",
    "pca",
    "heatmap",
    "cluster-consensus",
    "histogram",
    "items",
    "dots",
    "signatures",
)
SECTIONS = ("done", "k", "clusters", "features", "samples", "known", "cite")


class Tags(HTMLParser):
    """Collects what a browser would see, and the data of the script."""

    def __init__(self, page):
        super().__init__()
        self.found, self.data, self._data = [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self._data = tag == "script" and ("type", "application/json") in attrs
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        self._data = self._data and tag != "script"

    def handle_data(self, data):
        if self._data:
            self.data += data


def unpacked(content):
    ((kind, text),) = content.items()
    types = {"u8": np.uint8, "u16": "<u2", "f32": "<f4"}
    return np.frombuffer(base64.b64decode(text), types[kind])


def test_every_figure_and_section_is_there(reports):
    described, page, _ = reports(40)
    tags = Tags(page)
    ids = [attributes.get("id") for _, attributes in tags.found]
    assert [f"fig-{name}" for name in FIGURES if f"fig-{name}" not in ids] == []
    assert [name for name in SECTIONS if name not in ids] == []
    linked = {a["href"][1:] for tag, a in tags.found if tag == "a"}
    assert linked == {"top", *SECTIONS}
    charts = [attributes for tag, attributes in tags.found if tag == "svg"]
    assert len(charts) == len(FIGURES)
    assert all(chart["aria-label"] for chart in charts)
    for places, plane in zip(
        json.loads(tags.data)["maps"], (described["map"], described["pca"]), strict=True
    ):
        drawn = unpacked(places).reshape(-1, 2) / 10.0
        np.testing.assert_allclose(drawn, plane["places"], atol=0.051)
    assert "&lt;b&gt;.csv" in page


def every_tag(page):
    """Return all tags of a page, those of the other numbers of clusters included."""
    tags = Tags(page)
    parts = [each.get("parts", {}) for each in json.loads(tags.data)["solutions"]]
    words = [part for each in parts for part in each.values()]
    assert len(words) > 10
    return tags.found + [tag for part in words for tag in Tags(part).found]


def test_nothing_is_loaded_from_outside(reports):
    _, page, _ = reports(40)
    for tag, attributes in every_tag(page):
        for name in ("src", "href", "data", "action"):
            value = attributes.get(name, "data:")
            assert value.startswith("data:") or (tag == "a" and value[0] == "#"), tag
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page.replace("&#39;", "'")


def test_hostile_names_stay_text(reports):
    described, page, _ = reports(48, hostile=True)
    tags = Tags(page)
    scripts = [attributes for tag, attributes in tags.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    every = every_tag(page)
    assert sum(tag == "script" for tag, _ in every) == 2
    assert not any(tag in ("img", "u") for tag, _ in every)
    assert not any(name.startswith("on") for _, a in every for name in a)
    assert re.findall(r">\s*49\s*<", page) == []
    assert "<" not in tags.data
    assert json.loads(tags.data)["names"] == described["names"]


@pytest.mark.parametrize(
    "n_samples",
    [40, *(pytest.param(each, marks=pytest.mark.slow) for each in (600, 2000))],
)
def test_page_is_small(reports, n_samples):
    described, page, _ = reports(n_samples)
    assert len(page.encode()) < 2_000_000
    assert len(described["names"]) == n_samples
    assert len(described["tree"]["position"]) == n_samples
    assert (f"of {n_samples} samples" in page) == (n_samples > 400)


@pytest.mark.slow
def test_page_is_small_with_hostile_names(reports):
    _, page, _ = reports(600, hostile=True)
    assert len(page.encode()) < 2_000_000


def test_numbers_in_the_report_are_those_of_the_model(reports):
    described, page, (model, _) = reports(40)
    shown = described["solutions"][described["chosen"]]
    assert (shown["labels"] == model.labels_).all()
    np.testing.assert_allclose(shown["confidence"], model.confidence_)
    assert sum(row["size"] for row in shown["clusters"]) == 40
    assert int(shown["histogram"].sum()) == 40
    assert shown["scores"]["ari"] == pytest.approx(1.0)
    data = json.loads(Tags(page).data)
    kept = data["solutions"][data["chosen"]]
    assert (unpacked(kept["cluster"]) == model.labels_).all()
    sure = unpacked(kept["sure"]) / 65535
    np.testing.assert_allclose(sure, model.confidence_, atol=1e-5)
    assert [each["k"] for each in data["solutions"]] == [2, 3, 4, 5, 6, 7, 8]


def test_every_number_has_its_tables(reports):
    described, page, _ = reports(40)
    names = {"facts", "clusters", "signatures", "features", "known", "again"}
    places = {a["data-follow"] for _, a in Tags(page).found if "data-follow" in a}
    assert places == names
    for number, each in enumerate(json.loads(Tags(page).data)["solutions"]):
        if number == described["chosen"]:  # the page itself has them
            assert "parts" not in each
        else:
            assert set(each["parts"]) == names
            assert f"<b>{each['k']}</b><span>clusters shown" in each["parts"]["facts"]


def test_numbers_worth_a_look_have_a_sentence_first(reports):
    described, page, _ = reports(40)
    first = page[: page.index('id="fig-map"')]
    for row in described["candidates"]:
        assert row["sentence"] in first
        assert f'data-show="{row["n_clusters"]}"' in first


def test_consensus_functions_stand_side_by_side(reports):
    described, page, (model, _) = reports(40)
    classes = np.arange(40) % 3
    for row in described["functions"]:
        other = model.clustering_.recluster(consensus=row["name"])
        assert ari(row["labels"], other.labels) == 1.0
        assert row["mean_confidence"] == pytest.approx(other.confidence.mean())
        assert row["scores"]["ari"] == pytest.approx(ari(classes, other.labels))
        assert row["agreement"] == [
            pytest.approx(ari(row["labels"], each["labels"]))
            for each in described["functions"]
        ]
    assert [row["short"] for row in described["functions"]] == ["HC", "SC", "BG"]
    assert "HC, hierarchical" in page


def test_what_gives_the_result_again_is_shown(reports):
    _, page, _ = reports(40)
    assert "<pre>mdec consensus &#39;a &lt;b&gt;/ensemble.npz&#39; --k 3</pre>" in page
    assert '<pre id="python">labels = &#39;&lt;b&gt;3&#39;</pre>' in page


@pytest.mark.parametrize("n_clusters", [1, 2, 6])
def test_labels_alone_are_enough(n_clusters):
    base = np.random.default_rng(0).integers(0, 3, size=(12, 8))
    clustering = cluster_ensemble(Ensemble.from_labels(base), Settings(n_clusters))
    measured = clustering.compare_k([2, 3])
    described = describe_clustering(replace(clustering, selection=measured))
    assert described["names"] == [str(i + 1) for i in range(12)]
    page = render_report(described)
    assert "fig-map" in page
    assert 'id="features"' not in page
    assert 'id="fig-pca"' not in page
    numbers = [solution["n_clusters"] for solution in described["solutions"]]
    assert numbers == sorted({2, 3, n_clusters})


def test_values_before_and_after_are_shown(prepared_report):
    preparation = {"kind": "counts", "prepared": "a; b", "reason": "<b>So</b> it is."}
    preparation["flag"] = "--prepare none"
    raw = np.random.default_rng(1).gamma(0.5, 1000.0, size=(42, 20))
    described, page, _ = prepared_report(preparation, raw)
    before = described["histograms"]["before"]
    assert sum(before["shares"]) == pytest.approx(1.0)
    assert [before["edges"][0], before["edges"][-1]] == [raw.min(), raw.max()]
    assert before["median"] == np.median(raw)
    tags = Tags(page).found
    labels = [a["aria-label"] for tag, a in tags if tag == "svg"]
    assert len(labels) == len(FIGURES) + 2
    for name in ("before", "after"):
        assert f'id="fig-{name}"' in page
        assert f"Histogram of the values {name} preparation" in labels
    assert "&lt;b&gt;So&lt;/b&gt; it is." in page
    assert "<code>--prepare none</code>" in page
    drawn = json.loads(Tags(page).data)["histograms"]
    assert drawn["before"] == before


def test_values_left_alone_are_not_drawn(prepared_report):
    preparation = {
        "kind": "other",
        "prepared": None,
        "reason": "Too few.",
        "flag": None,
    }
    _, page, _ = prepared_report(preparation)
    assert "Too few." in page
    assert "They were clustered as they are." in page
    assert "fig-before" not in page


def test_memory_of_a_report_follows_the_page_and_not_the_samples(monkeypatch):
    monkeypatch.setattr(compute, "PAGE_SAMPLES", 200)
    base = np.random.default_rng(0).integers(0, 30, size=(40_000, 40))
    base[:, :30] = (np.arange(40_000) % 4)[:, None]
    settings = Settings(4, consensus="bipartite")
    clustering = cluster_ensemble(Ensemble.from_labels(base), settings)
    clustering = replace(clustering, selection=clustering.compare_k([2, 3]))
    assert clustering.association.shape == (40_000, 4)
    tracemalloc.start()
    described = describe_clustering(clustering)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(described["names"]) == 200
    # The factor of all rows alone has 12 bytes for each of its 1.6 million entries.
    assert peak < 15_000_000


@pytest.mark.parametrize("n_samples", [7, 1000, 1001, 2500])
def test_histograms_of_many_samples_are_of_some(n_samples):
    values = np.repeat(np.arange(n_samples, dtype=np.float32)[:, None], 3, axis=1)
    drawn = compute.value_histogram(values)
    step = -(-n_samples // 1000)
    assert sum(drawn["shares"]) == pytest.approx(1.0)
    assert drawn["edges"][-1] == (n_samples - 1) // step * step
