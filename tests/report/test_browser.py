"""The report in a real browser: explored by pointer and keys, on every kind of page."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report.conftest import make_report, pair_consensus

from mdec.report.compute import sample_order

pytestmark = pytest.mark.browser

WINDOW = "1280,900"


class Page:
    """A report that is open, with what a reader does to it."""

    def __init__(self, browser, path):
        self.browser, self.path = browser, path

    def open(self):
        self.browser.get_log("performance")
        self.browser.get(self.path.as_uri())
        time.sleep(0.2)
        return self

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def texts(self, selector):
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(each => each.textContent.trim())",
            selector,
        )

    def style(self, selector, name):
        return self.run(
            "return getComputedStyle(document.querySelector(arguments[0]))"
            "[arguments[1]]",
            selector,
            name,
        )

    def show(self, index):
        """Move the slider as an input device would."""
        self.run(
            "const it = document.getElementById('number'); it.value = arguments[0];"
            "it.dispatchEvent(new Event('input', {bubbles: true}))",
            index,
        )

    def point_at(self, element):
        from selenium.webdriver import ActionChains

        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.browser).move_to_element(element).perform()

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def saved(self, name):
        """Click a download button and return the rows of the file it would save."""
        self.run("HTMLAnchorElement.prototype.click = () => {}")
        text = self.browser.execute_async_script(
            "const [selector, done] = arguments, make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => {"
            "  blob.text().then(done); return make.call(URL, blob) };"
            "document.querySelector(selector).click(); URL.createObjectURL = make",
            f"[data-csv={name}]",
        )
        return list(csv.reader(io.StringIO(text, newline="")))

    def downloaded(self, name, folder):
        """Click a download button and return the file that comes."""
        behaviour = {"behavior": "allow", "downloadPath": str(folder)}
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        self.run("document.querySelector(arguments[0]).click()", f"[data-csv={name}]")
        for _ in range(100):
            found = [each for each in folder.glob("*.csv") if each.stat().st_size]
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"no file of {name} came")

    def figure(self, name, ending, folder):
        """Click the button of a figure and return the file that comes."""
        behaviour = {"behavior": "allow", "downloadPath": str(folder)}
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        selector = f"#fig-{name} [data-figure={ending}]"
        self.run("document.querySelector(arguments[0]).click()", selector)
        for _ in range(200):
            found = [e for e in folder.glob(f"*.{ending}") if e.stat().st_size]
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"no {ending} of {name} came")

    def heatmap(self):
        """Return the colours of the heatmap."""
        drawn = "document.querySelector('#fig-heatmap canvas.matrix')"
        return pixels(self.run(f"return {drawn}.toDataURL()"))

    def console(self):
        return self.browser.get_log("browser")

    def requests(self):
        """Return the addresses that the page asked for, and clear the log."""
        log = self.browser.get_log("performance")
        events = [json.loads(entry["message"])["message"] for entry in log]
        sent = [e for e in events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@pytest.fixture
def opened(browser, tmp_path, reports):
    """Open the report of so many samples."""

    def open_(n_samples, n_clusters=3, *, hostile=False):
        path = tmp_path / "report.html"
        page = reports(n_samples, n_clusters, hostile=hostile)[1]
        path.write_text(page, encoding="utf-8")
        return Page(browser, path).open()

    yield open_
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def pixels(address):
    """Return the colours of a picture in a data address."""
    image = pytest.importorskip("PIL.Image")
    content = io.BytesIO(base64.b64decode(address.split(",")[1]))
    with image.open(content) as read:
        return np.asarray(read.convert("RGB"))


def emulate(browser, width, scheme="light", media=""):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1}
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**metrics, "mobile": width < 600}
    )
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": [feature]}
    )


@pytest.mark.parametrize(
    ("n_samples", "hostile"), [(40, False), (600, False), (2000, False), (48, True)]
)
def test_page_is_quiet_alone_and_complete(opened, reports, n_samples, hostile):
    page = opened(n_samples, hostile=hostile)
    assert page.console() == []
    asked = [url for url in page.requests() if not url.startswith(("data:", "blob:"))]
    assert asked == [page.path.as_uri()]
    assert page.browser.title == "Clusters of <u>table</u>.csv"
    for box in page.run(
        "return [...document.querySelectorAll('figure svg')].map(each => {"
        "const box = each.getBoundingClientRect(); return [box.width, box.height]})"
    ):
        assert box[0] > 200
        assert box[1] > 50
    assert page.run("return document.documentElement.scrollWidth") <= 1280
    solutions = reports(n_samples, hostile=hostile)[0]["solutions"]
    start = time.perf_counter()
    for index, solution in enumerate(solutions):
        page.show(index)
        assert page.texts("#shown") == [str(solution["n_clusters"])]
    assert time.perf_counter() - start < 1.0 * len(solutions)
    assert page.console() == []


def test_everything_follows_the_number(opened, reports):
    described = reports(600)[0]
    page = opened(600)
    first = page.heatmap()
    for index in (0, 5, described["chosen"]):
        page.show(index)
        solution = described["solutions"][index]
        named = solution["numbers"][solution["labels"]]
        rows = page.texts("#cluster-table [data-follow] tbody tr td:nth-child(2)")
        assert [int(row) for row in rows] == [
            row["size"] for row in solution["clusters"]
        ]
        assert page.texts(".facts b")[0] == str(solution["n_clusters"])
        assert len(page.all("#fig-cluster-consensus rect")) == solution["n_clusters"]
        tips = page.run(
            "return [...document.querySelectorAll('#fig-histogram rect')]"
            ".map(each => each.dataset.tip)"
        )
        counts = [int(tip.split()[-2]) for tip in tips]
        assert counts == [n for n in solution["histogram"] if n]
        dots = solution["markers"]
        assert len(page.all("#fig-dots circle")) == dots["effects"].size
        assert page.texts("#fig-dots .names") == dots["names"]
        saved = page.saved("map")
        assert [int(row[1]) for row in saved[1:]] == named.tolist()
        sure = [float(row[2]) for row in saved[1:]]
        np.testing.assert_allclose(sure, solution["confidence"], atol=1e-4)
        for name in ("map", "pca"):
            fills = page.run(
                "return [...document.querySelectorAll(arguments[0])]"
                ".map(each => each.style.color)",
                f"#fig-{name} .samples circle",
            )
            pairs = set(zip(named.tolist(), fills, strict=True))
            assert len(pairs) == len(set(fills)) == solution["n_clusters"]
            assert len(page.texts(f"#fig-{name} .halo")) == solution["n_clusters"]
        order = sample_order(solution["labels"], described["tree"]["position"])
        saved = page.saved("heatmap")
        shown = [described["names"][i] for i in order]
        assert saved[0][2:] == [row[0] for row in saved[1:]] == shown
        found = np.array([row[2:] for row in saved[1:]], dtype=float)
        direct = pair_consensus(solution["halves"][:, order])
        np.testing.assert_allclose(found, direct, atol=1e-4)
        assert len(page.all("#fig-heatmap .block")) == solution["n_clusters"]
        items = page.saved("items")
        clusters = [int(row[1]) for row in items[1:]]
        assert clusters == sorted(clusters)
        drawn = [described["names"].index(row[0]) for row in items[1:]]
        for column, name in ((2, "own"), (3, "other")):
            found = [float(row[column]) for row in items[1:]]
            np.testing.assert_allclose(found, solution[name][drawn], atol=1e-4)
        edge = page.one("#fig-tracking .current").get_attribute("y")
        assert float(edge) == 6 + 22 * index - 1
        drawn = page.texts("#fig-signatures .names text")
        assert drawn == [f"g{j}" for j in solution["markers"]["features"]]
    assert (page.heatmap() == first).all()
    assert page.one("#fig-heatmap .tree").get_attribute("visibility") == "visible"
    page.all("#fig-tracking .track")[1].click()
    assert page.texts("#shown") == ["3"]


def test_charts_have_round_ticks_and_their_values(opened, reports):
    described = reports(40)[0]
    page = opened(40)
    assert page.run("return ticks(0, 0.37, 4)") == [0, 0.1, 0.2, 0.3]
    for name in ("score", "eigengap", "silhouette", "agreement", "pac"):
        tips = page.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(each => each.dataset.tip)",
            f"#fig-{name} circle",
        )
        assert tips == [
            f"K = {row['n_clusters']}: {row[name]:.3f}" for row in described["criteria"]
        ]
        assert len(page.all(f"#fig-{name} .chosen")) == 1
    lines = page.run(
        "return [...document.querySelectorAll('#fig-cdf polyline')]"
        ".map(each => each.getAttribute('points').split(' ').length)"
    )
    selection = described["clustering"].criteria
    assert lines == [len(selection.levels)] * len(described["criteria"])


def test_a_group_that_stays_keeps_its_colour(opened):
    page = opened(40)
    fill = "return document.querySelectorAll('#fig-map .samples circle')[0].style.color"
    colours = []
    for index in range(1, 6):
        page.show(index)
        assert len(set(page.texts("#legend span"))) >= index + 2
        colours.append(page.run(fill))
    assert len(set(colours)) <= 2


def test_list_is_searched_sorted_filtered_and_saved(opened, reports):
    solutions = reports(600)[0]["solutions"]
    index = int(np.argmax([solution["n_ambiguous"] for solution in solutions]))
    solution, page = solutions[index], opened(600)
    page.show(index)
    assert page.texts("#count") == ["1\u201325 of 600"]
    page.one("#next").click()
    assert page.texts("#count") == ["26\u201350 of 600"]
    page.one("#search").send_keys("sample 12")
    found = [i for i in range(600) if "sample 12" in f"sample {i}"]
    assert page.texts("#count") == [f"1\u2013{min(25, len(found))} of {len(found)}"]
    page.all("#list th button")[0].click()
    names = page.texts("#list tbody tr td:first-child")
    assert names == [f"sample {i}" for i in sorted(found)]
    assert page.all("#list th")[0].get_attribute("aria-sort") == "ascending"
    page.all("#list th button")[0].click()
    assert page.texts("#list tbody tr td:first-child") == names[::-1]
    page.one("#search").clear()
    page.one("#search").send_keys(" ")
    page.one("#only").click()
    assert solution["n_ambiguous"] > 0
    rows = page.saved("samples")
    head = ["sample", "cluster", "consensus", "second choice", "its consensus"]
    assert rows[0] == [*head, "confidence", "known class", "age", "sex"]
    assert len(rows) - 1 == solution["n_ambiguous"]
    low = np.flatnonzero(solution["confidence"] < 0.6)
    assert {row[0] for row in rows[1:]} == {f"sample {i}" for i in low}
    page.one("#search").send_keys("no such sample")
    assert page.texts("#count") == ["no sample"]
    assert page.console() == []


def test_list_and_maps_point_at_each_other(opened):
    page = opened(40)
    dot = page.all("#fig-pca .samples circle")[7]
    page.point_at(dot)
    tip = page.one("#tip")
    assert tip.is_displayed()
    assert tip.text.startswith("sample 7\ncluster 1, confidence 0.")
    place = "return ['cx', 'cy'].map(name => arguments[0].getAttribute(name))"
    ring, same = page.one("#fig-map .ring"), page.all("#fig-map .samples circle")[7]
    assert ring.get_attribute("visibility") == "visible"
    assert page.run(place, ring) == page.run(place, same)
    dot.click()
    assert page.texts("#list tr.marked td:first-child") == ["sample 7"]
    row = page.all("#list tbody tr")[3]
    page.point_at(row)
    marked = page.all("#fig-map .samples circle")[int(row.get_attribute("data-i"))]
    assert page.run(place, ring) == page.run(place, marked)
    page.point_at(page.one("#fig-items .item"))
    assert "confidence" in tip.text


def test_points_of_the_map_do_not_hide_each_other(opened):
    page = opened(40)
    places = np.array(
        page.run(
            "return [...document.querySelectorAll('#fig-map .samples circle')]"
            ".map(each => [+each.getAttribute('cx'), +each.getAttribute('cy')])"
        )
    )
    away = np.linalg.norm(places[:, None] - places, axis=2)[np.triu_indices(40, 1)]
    assert away.min() > 5.5


def test_map_is_coloured_by_any_column(opened):
    page = opened(40)
    options = page.texts("#paint option")
    features = [f"g{j} (standardised)" for j in range(14)]
    named = ["cluster", "confidence", "known class", "age", "sex"]
    assert options == [*named, *features]
    fills = (
        "return [...document.querySelectorAll('#fig-map .samples circle')]"
        ".map(each => each.style.color)"
    )
    different, colours = {}, {}
    for index, name in enumerate(options):
        page.run(
            "const it = document.getElementById('paint'); it.value = arguments[0];"
            "it.dispatchEvent(new Event('input'))",
            index,
        )
        colours[name] = page.run(fills)
        different[name] = len(set(colours[name]))
        if name in ("known class", "sex"):
            words = [word for word in page.texts("#legend span") if word]
            assert words[:2] == {"sex": ["f", "m"]}.get(
                name, ["known class 0", "known class 1"]
            )
    assert different["cluster"] == different["known class"] == 3
    assert different["sex"] == 2
    assert different["age"] > 20
    assert different["g3 (standardised)"] > 20
    clusters, classes = (set(colours[name]) for name in ("cluster", "known class"))
    assert not clusters & classes


def test_keys_are_enough(opened):
    from selenium.webdriver.common.keys import Keys

    page = opened(40)
    page.press(Keys.TAB)
    active = "return document.activeElement"
    assert page.run(active).get_attribute("class") == "skip"
    for _ in range(30):
        page.press(Keys.TAB)
        if page.run(active).get_attribute("id") == "number":
            break
    slider = page.run(active)
    assert slider.get_attribute("id") == "number"
    assert page.run("return arguments[0].matches(':focus-visible')", slider)
    assert page.style("#number", "outlineStyle") == "solid"
    page.press(Keys.ARROW_RIGHT)
    assert page.texts("#shown") == ["4"]
    assert slider.get_attribute("aria-valuetext") == "4 clusters"
    page.press(Keys.HOME)
    assert page.texts("#shown") == ["2"]
    page.press(Keys.TAB, Keys.ENTER)
    assert page.texts("#shown") == ["3"]
    name = page.one("#list tbody button")
    page.run("arguments[0].focus()", name)
    ring = page.one("#fig-map .ring")
    assert ring.get_attribute("visibility") == "visible"
    labelled = page.run(
        "return [...document.querySelectorAll('button, input, select')].every(each =>"
        " each.getAttribute('aria-label') || each.labels?.length"
        " || each.textContent.trim())"
    )
    assert labelled


def test_every_table_is_saved(opened, tmp_path):
    page = opened(40)
    names = page.run(
        "return [...document.querySelectorAll('[data-csv]')].map(each =>"
        " each.dataset.csv)"
    )
    assert len(names) == len(set(names)) == 13
    file = page.downloaded("clusters", tmp_path)
    assert file.name == "clusters-k3.csv"
    assert file.read_text().startswith("cluster,samples,consensus")
    saved = {name: page.saved(name) for name in names}
    assert all(len(rows) > 1 for rows in saved.values())
    assert all(len({len(row) for row in rows}) == 1 for rows in saved.values())
    assert saved["known"][0] == ["class", "0", "1", "2", "best match"]
    assert saved["known"][1][-1].endswith("(100 %)")
    assert len(saved["tracking"]) == 41
    assert saved["signatures"][0][:3] == ["cluster", "feature", "effect"]
    assert len(saved["signatures"]) == 1 + 3 * 5


@pytest.mark.parametrize("name", ["map", "heatmap", "dots", "score"])
def test_every_figure_is_saved_as_it_looks(opened, tmp_path, name):
    image = pytest.importorskip("PIL.Image")
    page = opened(40)
    figures = [each.get_attribute("id") for each in page.all("main figure")]
    assert len(page.all("[data-figure=svg]")) == len(figures)
    assert len(page.all("[data-figure=png]")) == len(figures)
    text = page.figure(name, "svg", tmp_path).read_text(encoding="utf-8")
    tree = ElementTree.fromstring(text)
    width, height = int(tree.get("width")), int(tree.get("height"))
    drawn = [each for each in tree.iter() if "fill" in each.get("style", "")]
    assert len(drawn) > 10
    assert not re.search(r'(href|src)="(?!data:)', text)
    file = page.figure(name, "png", tmp_path)
    assert file.name == f"{name}-k3.png"
    with image.open(file) as read:
        assert read.size == (2 * width, 2 * height)
        # Not one colour, as of a picture that was not drawn.
        drawn = np.asarray(read.convert("RGB").resize((60, 60))).reshape(-1, 3)
        assert len(np.unique(drawn, axis=0)) > 5
    assert page.console() == []


def test_values_are_told_on_hover(opened, reports):
    described = reports(40)[0]
    page = opened(40)
    for selector, words in (
        ("#fig-heatmap .matrix", r"sample \d+ \(cluster \d\)\nsample .*\nconsensus \d"),
        ("#fig-heatmap .beside", r"sample \d+ \(cluster \d\)\nknown class: \d"),
        ("#fig-signatures .values", r"sample .*\ng\d+: -?\d\.\d\d standard deviations"),
        ("#signature-list .chip", r"mean .* in the cluster, .*\nhigh in \d+ % against"),
    ):
        page.point_at(page.one(selector))
        assert re.match(words, page.one("#tip").text), page.one("#tip").text
    assert "known class" in page.texts("#fig-heatmap .small")
    assert len(page.all("#fig-heatmap .beside")) == len(described["columns"])


def test_numbers_worth_a_look_are_shown_by_their_button(opened, reports):
    described = reports(600)[0]
    page = opened(600)
    page.show(5)
    button = page.one(".candidates button")
    number = str(described["candidates"][0]["n_clusters"])
    assert button.text == number
    button.click()
    assert page.texts("#shown") == [number]


def test_samples_that_no_cluster_holds_firmly_are_rings(opened, reports):
    solutions = reports(600)[0]["solutions"]
    index = int(np.argmax([solution["n_ambiguous"] for solution in solutions]))
    page = opened(600)
    page.show(index)
    rings = page.run(
        "return [...document.querySelectorAll('#fig-map .samples circle')]"
        ".map(each => each.matches('.unsure'))"
    )
    assert rings == (solutions[index]["confidence"] < 0.6).tolist()
    assert "ambiguous" in page.texts("#legend span")


def test_one_cluster_has_no_empty_figure(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(make_report(40, one=True)[1], encoding="utf-8")
    page = Page(browser, path).open()
    assert page.texts("#shown") == ["1"]
    for name in ("histogram", "cluster-consensus", "items", "dots", "signatures"):
        assert not page.one(f"#fig-{name}").is_displayed(), name
    assert "cut into two" in page.one("#fig-heatmap").text
    assert len(np.unique(page.heatmap().reshape(-1, 3), axis=0)) > 1
    page.show(1)
    assert page.one("#fig-dots").is_displayed()
    assert "cut into two" not in page.one("#fig-heatmap").text
    assert page.console() == []


def test_hostile_names_do_nothing_and_compute_nothing(opened, reports):
    described = reports(48, hostile=True)[0]
    page = opened(48, hostile=True)
    for index in (2, 4):
        page.run(
            "const it = document.getElementById('paint'); it.value = arguments[0];"
            "it.dispatchEvent(new Event('input'))",
            index - 1,
        )
        page.show(index)
        page.point_at(page.all("#fig-map .samples circle")[0])
    assert page.one("#tip").text.startswith("<script>alert(1)</script>0")
    assert page.browser.title == "Clusters of <u>table</u>.csv"
    assert page.all("img") == []
    assert len(page.all("script")) == 1
    rows = page.saved("map")
    names = [row[0] for row in rows[1:]]
    risky = [name for name in described["names"] if name.startswith("=")]
    assert risky
    assert names == [f"'{n}" if n in risky else n for n in described["names"]]
    assert page.console() == []


def test_words_and_tables_are_read_without_a_script(opened):
    page = opened(40)
    static = re.sub(r"<script.*?</script>", "", page.path.read_text(), flags=re.DOTALL)
    page.path.write_text(static)
    page.open()
    shown = {
        each.get_attribute("id")
        for each in page.all("main [id]")
        if each.is_displayed()
    }
    tables = {"cluster-table", "functions", "signature-list", "feature-table"}
    assert tables | {"all-criteria", "known-table", "list"} <= shown
    assert not {"fig-map", "fig-heatmap", "control", "paint", "search"} & shown
    assert not any(each.is_displayed() for each in page.all("figure, svg"))
    assert "drawn by JavaScript" in page.one("main").text
    assert not page.one(".save").is_displayed()
    assert len(page.all("#list tbody tr")) == 25


@pytest.mark.parametrize("n_samples", [600, 2000])
def test_the_heatmap_has_the_mean_consensus_of_its_blocks(opened, reports, n_samples):
    page, described = opened(n_samples), reports(n_samples)[0]
    shown = described["solutions"][described["chosen"]]
    order = sample_order(shown["labels"], described["tree"]["position"])
    matrix = pair_consensus(shown["halves"][:, order])
    side = {600: 600, 2000: 667}[n_samples]
    starts = np.arange(0, n_samples, -(-n_samples // 700))
    sums = np.add.reduceat(np.add.reduceat(matrix, starts), starts, axis=1)
    sizes = np.diff(starts, append=n_samples)
    share = (sums / np.outer(sizes, sizes))[:, :, None]
    low, high = np.array([247, 249, 252]), np.array([8, 48, 107])
    drawn = page.heatmap()
    assert drawn.shape == (side, side, 3)
    # One level of the 256 in which they are drawn.
    assert np.abs(low + share * (high - low) - drawn).max() <= 1.5
    place = "return arguments[0].getBoundingClientRect().toJSON()"
    both = [
        page.run(place, page.one(f"#fig-heatmap {each}"))
        for each in ("canvas.matrix", "image.matrix")
    ]
    for edge in ("left", "top", "right", "bottom"):
        assert both[0][edge] == pytest.approx(both[1][edge], abs=0.5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_page_does_not_scroll_sideways(opened, browser, scheme):
    emulate(browser, 360, scheme)
    page = opened(48, hostile=True)
    page.show(3)
    assert page.run("return document.documentElement.scrollWidth") == 360
    paper = page.style("body", "backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    for name in ("#fig-heatmap .shade", "#fig-signatures .contrast"):
        assert (page.style(name, "filter") != "none") == (scheme == "dark")
    assert page.one("#number").rect["width"] > 60
    assert page.console() == []


def test_contents_stand_at_the_side(opened, browser):
    page = opened(40)
    emulate(browser, 1440)
    nav, main = page.one("nav").rect, page.one("main").rect
    assert nav["x"] + nav["width"] <= main["x"]
    emulate(browser, 900)
    assert page.one("nav").rect["y"] < page.one("main").rect["y"]


def test_print_is_light_in_two_columns_and_cuts_nothing(opened, browser):
    # The width of an A4 page less its margins, in CSS pixels.
    emulate(browser, 703, "dark", "print")
    page = opened(48, hostile=True)
    page.show(2)
    assert page.style("body", "backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.style(".row", "gridTemplateColumns").split()) == 2
    assert page.style(".printed", "display") == "inline"
    for hidden in (".pointed", "#tip", "#control", "nav", ".save", "#search", "#only"):
        assert not page.one(hidden).is_displayed(), hidden
    assert page.texts(".facts b")[0] == "4"
    outside = page.run(
        "return [...document.querySelectorAll('table, svg, pre')].filter("
        "each => each.getBoundingClientRect().right > innerWidth)"
        ".map(each => each.id || each.parentNode.id)"
    )
    assert outside == []
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pages = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
    assert 3 <= len(pages) <= 10
