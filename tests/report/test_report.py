"""The report: complete, self-contained, and deaf to hostile names."""

from __future__ import annotations

import base64
import json
import re
import shutil
import tempfile
import time
from html.parser import HTMLParser

import numpy as np
import pytest

from mdec import MDEC, Ensemble
from mdec.report.clustering import describe_clustering, render_report
from mdec.report.clustering.compute import feature_effects, value_histogram
from mdec.report.clustering.svg import png, ticks
from mdec.selection.rule import select_n_clusters

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></svg><script>document.title='owned'</script>",
    "{{ 7 * 7 }}",
    "n" * 200,
    "javascript:alert(1)",
    "\u202eevil &amp; <b>bold</b>",
]
FIGURES = (
    "cdf",
    "delta-area",
    "eigengap",
    "silhouette",
    "agreement",
    "pac",
    "tracking",
    "map",
    "heatmap",
    "cluster-consensus",
    "histogram",
    "items",
)


def make_report(n_samples, names=None, n_clusters=3, seed=0, told=None, raw=None):
    rng = np.random.default_rng(seed)
    group = np.arange(n_samples) % n_clusters
    X = (
        rng.normal(size=(n_samples, 12))
        + 2.0 * rng.normal(size=(n_clusters, 12))[group]
    )
    model = MDEC(n_clusters, ensemble_size=30, random_state=0).fit(X)
    numbers = range(2, min(8, n_samples - 1))
    described = describe_clustering(
        model.ensemble_,
        model.labels_,
        model.cluster_weights_,
        select_n_clusters(model.ensemble_, k_range=numbers),
        sample_names=names or [f"sample {i}" for i in range(n_samples)],
        values=X,
        feature_names=[*HOSTILE, *"abcd"] if names else [f"g{i}" for i in range(12)],
        known=np.array([HOSTILE[k] for k in group]) if names else group.astype(str),
        preparation=told,
        raw=raw,
        settings={"command": "mdec fit 'a <b>.csv'", "file": "<i>x</i>"},
        title="Clusters of <u>table</u>.csv",
    )
    return described, render_report(described)


def hostile_names(n_samples):
    return [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(n_samples)]


class Tags(HTMLParser):
    """Collects the elements and attributes that a browser would see."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_every_figure_and_section_is_there():
    _, page = make_report(42)
    for name in FIGURES:
        assert f'id="fig-{name}"' in page
    for section in ("done", "k", "clusters", "ambiguous", "features", "known", "cite"):
        assert f'<h2 id="{section}">' in page
    tags = Tags(page).found
    charts = [attributes for tag, attributes in tags if tag == "svg"]
    assert len(charts) == len(FIGURES)
    assert all(chart["aria-label"] for chart in charts)
    assert "&lt;b&gt;.csv" in page
    assert len(page) < 5_000_000


def test_nothing_is_loaded_from_outside():
    _, page = make_report(42)
    for tag, attributes in Tags(page).found:
        for name in ("src", "href", "data", "action"):
            assert attributes.get(name, "data:").startswith("data:"), tag
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page.replace("&#39;", "'")


def test_hostile_names_stay_text():
    _, page = make_report(48, hostile_names(48))
    found = Tags(page).found
    assert sum(tag == "script" for tag, _ in found) == 1
    assert not any(tag in ("img", "b", "u", "i") and a for tag, a in found)
    assert not any(name.startswith("on") for _, a in found for name in a)
    assert "49" not in re.findall(r">\s*49\s*<", page)
    tips = [a["data-tip"] for _, a in found if "data-tip" in a]
    assert any(tip.startswith("<script>alert(1)</script>0\n") for tip in tips)


def test_numbers_in_the_report_are_those_of_the_model():
    described, _ = make_report(42)
    assert sum(row["size"] for row in described["clusters"]) == 42
    assert int(described["histogram"].sum()) == 42
    assert described["heatmap"]["matrix"].shape == (42, 42)
    assert described["scores"]["ari"] == pytest.approx(1.0)
    ordered = described["heatmap"]["clusters"]
    assert (np.diff(np.flatnonzero(np.diff(ordered))) > 0).all()
    assert len(np.flatnonzero(np.diff(ordered))) == 2


def test_feature_effects_against_direct_sums():
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    values = rng.normal(size=(30, 5))
    values[:, 2] += 3.0 * (labels == 1)
    rows = feature_effects(values, labels, list("abcde"))
    assert rows[0]["name"] == "c"
    assert rows[0]["cluster"] == 1
    column = values[:, 2]
    total = ((column - column.mean()) ** 2).sum()
    within = sum(
        ((column[labels == k] - column[labels == k].mean()) ** 2).sum()
        for k in range(3)
    )
    assert rows[0]["share"] == pytest.approx(1.0 - within / total)
    difference = column[labels == 1].mean() - column[labels != 1].mean()
    assert rows[0]["contrast"] == pytest.approx(difference / np.sqrt(within / 27))


@pytest.mark.parametrize("n_clusters", [1, 2, 6])
def test_labels_alone_are_enough(n_clusters):
    base = np.random.default_rng(0).integers(0, 3, size=(12, 8))
    ensemble = Ensemble.from_labels(base)
    described = describe_clustering(
        ensemble,
        np.arange(12) % n_clusters,
        np.ones(ensemble.n_base_clusters),
        select_n_clusters(ensemble, k_range=[2, 3]),
        sample_names=[str(i) for i in range(12)],
    )
    page = render_report(described)
    assert "fig-map" in page
    assert 'id="features"' not in page


def test_values_before_and_after_are_shown():
    told = {"kind": "counts", "prepared": "a; b", "reason": "<b>So</b> it is."}
    told["flag"] = "--prepare none"
    raw = np.random.default_rng(1).gamma(0.5, 1000.0, size=(42, 20))
    described, page = make_report(42, told=told, raw=raw)
    before = described["preparation"]["before"]
    assert before["shares"].sum() == pytest.approx(1.0)
    assert before["edges"][[0, -1]].tolist() == [raw.min(), raw.max()]
    assert before["median"] == np.median(raw)
    tags = Tags(page).found
    labels = [a["aria-label"] for tag, a in tags if tag == "svg"]
    assert len(labels) == len(FIGURES) + 2
    for name in ("before", "after"):
        assert f'id="fig-{name}"' in page
        assert f"Histogram of the values {name} preparation" in labels
    assert "&lt;b&gt;So&lt;/b&gt; it is." in page
    assert "<code>--prepare none</code>" in page
    tips = [a["data-tip"] for _, a in tags if "data-tip" in a]
    share = before["shares"][0]
    assert any(f": {share:.2%} of the values" in tip for tip in tips)


def test_values_left_alone_are_not_drawn():
    told = {"kind": "other", "prepared": None, "reason": "Too few.", "flag": None}
    _, page = make_report(42, told=told)
    assert "Too few." in page
    assert "They were clustered as they are." in page
    assert "fig-before" not in page


@pytest.mark.parametrize("n_samples", [7, 1000, 1001, 2500])
def test_histograms_of_many_samples_are_of_some(n_samples):
    values = np.repeat(np.arange(n_samples, dtype=np.float32)[:, None], 3, axis=1)
    drawn = value_histogram(values)
    step = -(-n_samples // 1000)
    assert drawn["shares"].sum() == pytest.approx(1.0)
    assert drawn["edges"][-1] == (n_samples - 1) // step * step


def test_large_data_are_drawn_in_part():
    described, page = make_report(1500)
    assert len(described["map"]["names"]) <= 1205
    assert described["heatmap"]["matrix"].shape[0] <= 405
    assert "of 1500 samples" in page
    assert len(page) < 5_000_000


def test_png_is_a_png():
    assert png(np.zeros((2, 3, 3), dtype=np.uint8)).startswith(
        "data:image/png;base64,iVBORw0KGgo"
    )


def test_ticks_are_round():
    assert ticks(0.0, 0.37, 4) == [0.0, 0.1, 0.2, 0.3]


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium that records its console and its requests."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "window-size=1280,900",
        f"user-data-dir={tempfile.mkdtemp()}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


def requests_of(browser):
    """Return the addresses that the page asked for, and clear the log."""
    events = [json.loads(entry["message"]) for entry in browser.get_log("performance")]
    return [
        event["message"]["params"]["request"]["url"]
        for event in events
        if event["message"]["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.browser
@pytest.mark.parametrize("n_samples", [42, 1500, 48])
def test_report_in_a_real_browser(browser, tmp_path, n_samples):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    names = hostile_names(48) if n_samples == 48 else None
    path = tmp_path / "report.html"
    path.write_text(make_report(n_samples, names)[1], encoding="utf-8")
    requests_of(browser)
    browser.get(path.as_uri())
    time.sleep(0.3)
    assert browser.get_log("browser") == []
    asked = [url for url in requests_of(browser) if not url.startswith("data:")]
    assert asked == [path.as_uri()]
    assert browser.title == "Clusters of <u>table</u>.csv"
    for name in FIGURES:
        box = browser.find_element(By.CSS_SELECTOR, f"#fig-{name} svg").rect
        assert box["width"] > 200
        assert box["height"] > 60
    point = browser.find_elements(By.CSS_SELECTOR, "#fig-map circle")[0]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(browser).move_to_element(point).perform()
    tip = browser.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert "confidence" in tip.text
    shown = browser.execute_script("return document.documentElement.scrollWidth")
    assert shown <= 1280
    assert browser.get_log("browser") == []


def style_of(browser, selector, name):
    """Return a computed style of the first element that matches."""
    return browser.execute_script(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]",
        selector,
        name,
    )


@pytest.mark.browser
def test_print_is_light_in_two_columns_and_cuts_nothing(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(make_report(48, hostile_names(48))[1], encoding="utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "media": "print",
            "features": [{"name": "prefers-color-scheme", "value": "dark"}],
        },
    )
    # The width of an A4 page less its margins, in CSS pixels.
    metrics = {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get(path.as_uri())
        assert style_of(browser, "body", "backgroundColor") == "rgb(255, 255, 255)"
        assert len(style_of(browser, ".row", "gridTemplateColumns").split()) == 2
        assert style_of(browser, ".pointed", "display") == "none"
        assert style_of(browser, ".printed", "display") == "inline"
        assert style_of(browser, "#tip", "display") == "none"
        inside = browser.execute_script(
            "return [...document.querySelectorAll('table, svg, pre')].every("
            "each => each.getBoundingClientRect().right <= innerWidth)"
        )
        assert inside
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        pages = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
        assert 3 <= len(pages) <= 7
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": "", "features": []}
        )


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_page_does_not_scroll_sideways(browser, tmp_path, scheme):
    path = tmp_path / "report.html"
    path.write_text(make_report(48, hostile_names(48))[1], encoding="utf-8")
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get(path.as_uri())
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width == 390
        paper = style_of(browser, "body", "backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        inverted = style_of(browser, "#fig-heatmap .shade", "filter") != "none"
        assert inverted == (scheme == "dark")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
