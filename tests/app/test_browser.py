"""The app in a real browser: a table is dropped, corrected, run and explored."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from tests.app.conftest import write_table

pytestmark = pytest.mark.browser

QUERIES = (
    "const $ = (words) => document.querySelector(words);"
    "const $$ = (words) => [...document.querySelectorAll(words)];"
)
VIEWS = ["table/mdec-uploads%2Fwine.csv", "runs", "explore/wine-result"]
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the app, and beside it tables to drop."""
    place = tmp_path_factory.mktemp("browser")
    (place / "work").mkdir()
    datasets = pytest.importorskip("sklearn.datasets")
    wine = datasets.load_wine()
    names = ["name", *(n.replace("/", " ") for n in wine.feature_names), "grower"]
    lines = [",".join(names)]
    for i, (row, k) in enumerate(zip(wine.data, wine.target, strict=True)):
        lines.append(",".join([f"w{i}", *map(str, row), "abc"[k]]))
    (place / "wine.csv").write_text("\n".join(lines))
    write_table(place / "other.csv", 30)
    text = (place / "other.csv").read_text().replace("<b>dose</b>", HOSTILE)
    (place / "hostile.csv").write_text(text.replace("s1,", f"{HOSTILE},"))
    return place


@pytest.fixture(scope="module")
def address(folder):
    """The app, started as a person starts it."""
    with subprocess.Popen(
        [sys.executable, "-m", "mdec", "app", "--no-browser"],
        cwd=folder / "work",
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        yield started.stdout.readline().split()[1]
        started.terminate()


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium that records its console."""
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
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "window-size=1400,950",
        f"user-data-dir={tempfile.mkdtemp()}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


class Page:
    """The page, with what a person does to it."""

    def __init__(self, browser, address):
        self.browser, self.base = browser, address.partition("?")[0]

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def run(self, script, *given):
        return self.browser.execute_script(QUERIES + script, *given)

    def text(self, selector):
        return self.run("return $(arguments[0]).textContent", selector)

    def set(self, selector, value, kind="change"):
        self.run(
            "const it = $(arguments[0]); it.value = arguments[1];"
            "it.dispatchEvent(new Event(arguments[2], {bubbles: true}))",
            selector,
            value,
            kind,
        )

    def wait(self, script, *given, seconds=120):
        """Wait until a script returns something, and return it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.run(script, *given):
                return found
            time.sleep(0.05)
        raise AssertionError(f"{script}: {self.text('#notice')}")

    def click(self, selector):
        """Click what can be seen and used."""
        usable = "return it?.offsetParent && !it.disabled"
        self.wait(f"const it = $('{selector}'); {usable}")
        self.one(selector).click()

    def inside(self, script, *given):
        """Run a script in the report."""
        self.browser.switch_to.frame(self.one("#report"))
        try:
            return self.run(script, *given)
        finally:
            self.browser.switch_to.default_content()

    def wait_inside(self, script, *given, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.inside(script, *given):
                return found
            time.sleep(0.05)
        raise AssertionError(script)

    def size(self, width, height, *, dark=False):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        value = "dark" if dark else "light"
        self.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": value}]},
        )


@pytest.fixture(scope="module")
def page(browser, address):
    browser.get(address)
    made = Page(browser, address)
    made.wait("return $('#root').textContent === 'work'")
    yield made
    said = [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    # The tests below ask for some refusals.
    assert not [words for words in said if "400" not in words], said


DONE = "return $('#jobs .step')?.textContent === 'done'"
STEP = "return $('#jobs .step')?.textContent"
SHOWN = "return $('.facts .fact b').textContent === arguments[0]"


def test_the_token_leaves_the_address(page) -> None:
    assert "token" not in page.browser.current_url
    assert page.run("return document.cookie") == ""


def test_a_dropped_table_is_read_and_corrected(page, folder) -> None:
    page.one("#file").send_keys(str(folder / "wine.csv"))
    page.wait("return $('#doubt p').textContent.includes('grower')")
    assert page.run("return $('#run').disabled")
    head = "th[title='grower'] select"
    page.set(head, "class")
    page.wait("return !$('#run').disabled")
    assert "--label-column grower" in page.text("#command")
    assert "label_column='grower'" in page.text("#python")
    assert "each feature is standardised" in page.text("#plan")
    page.set("th[title='ash'] select", "annotation")
    page.wait("return $('#command').textContent.includes('--annotate ash')")
    page.set("th[title='ash'] select", "feature")
    page.wait("return !$('#command').textContent.includes('annotate')")


def test_the_sheets_of_a_workbook_are_on_offer(page, folder) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = HOSTILE[1:]
    for number, sheet in enumerate([book.active, book.create_sheet("second")]):
        sheet.append(["a", "b", f"c{number}"])
        for i in range(12):
            sheet.append([i * i % 11 + 0.25, i % 5 + 0.5, i * 7 % 12 + 0.1])
    book.save(folder / "book.xlsx")
    page.one("#file").send_keys(str(folder / "book.xlsx"))
    page.wait("return $('#h-reading').textContent.includes('book')")
    sheets = page.run("return $$('#sheet option').map(each => each.textContent)")
    assert sheets == ["look", HOSTILE[1:], "second"]
    assert page.one("#sheet").is_displayed()
    page.set("#sheet select", "second")
    page.wait("return $$('#cells th').some(each => each.title === 'c1')")
    assert "--variable second" in page.text("#command")
    page.set("#path", "mdec-uploads/wine.csv")
    page.click("#by-path button")
    page.wait("return $('#h-reading').textContent.includes('wine')")
    assert not page.one("#sheet").is_displayed()
    page.click("#cure")
    page.wait("return !$('#run').disabled")


def test_a_run_moves_is_cancelled_and_resumed(page) -> None:
    page.set("[data-option=ensemble_size]", "9000")
    page.set("[data-option=k]", "3")
    page.set("#out", "wine")
    page.wait(
        "return $('#command').textContent.includes('--out wine')&& !$('#run').disabled"
    )
    page.click("#run")
    bar = "return Number($('#jobs progress')?.value || 0)"
    before = page.wait(bar)
    page.wait(bar + " > arguments[0]", before)
    page.browser.refresh()
    page.wait(bar + " > arguments[0]", before)
    page.click("#jobs .act")
    page.wait("return $('#jobs .act').textContent === 'Resume'")
    assert "kept" in page.text("#jobs .step")
    page.click("#jobs .act")
    page.wait("return $('#jobs .act').textContent === 'Cancel'")
    shown = "!$('#jobs progress').hidden && "
    page.wait(bar.replace("return ", f"return {shown}") + " > arguments[0]", before)
    page.click("#jobs .act")
    page.wait("return $('#jobs .act').textContent === 'Resume'")


def test_a_run_ends_in_its_report(page, folder) -> None:
    page.run("location.hash = 'table'")
    page.set("#path", "mdec-uploads/wine.csv")
    page.click("#by-path button")
    page.wait("return $('#cure').offsetParent !== null")
    page.click("#cure")
    page.set("[data-option=ensemble_size]", "40")
    page.wait("return $('#command').textContent.includes('40')&& !$('#run').disabled")
    page.click("#run")
    page.wait("return location.hash.startsWith('#explore/wine-result')", seconds=240)
    assert (folder / "work" / "wine-result" / "report.html").is_file()
    page.wait("return $$('#names [data-cluster]').length > 1")
    page.wait_inside("return $$('.halo').length > 1")


def test_k_and_consensus_change_at_once(page) -> None:
    page.set("#k", "5", "input")
    page.wait_inside(SHOWN, "5")
    for consensus in ("spectral", "bipartite", "hierarchical"):
        page.set("#consensus", consensus)
        page.set("#k", "4", "input")
        page.wait("return $('#busy').textContent === ''")
        page.wait_inside(SHOWN, "4")
        halos = page.inside("return $$('#fig-map .halo').length")
        assert halos == 4
        assert page.inside("return $$('.block').length") == 4


def test_a_cluster_has_a_name_and_a_colour(page, folder) -> None:
    page.run("$$('aside details').forEach(d => d.open = true)")
    page.set("#names [data-cluster='0'] input:not([type=color])", HOSTILE)
    page.wait_inside(
        "return $$('.halo').some(each => each.textContent === arguments[0])", HOSTILE
    )
    page.set("#names [data-cluster='0'] input[type=color]", "#ff0088")
    page.wait_inside(
        "return getComputedStyle($("
        "'.swatch[data-cluster=\"0\"]')).backgroundColor === 'rgb(255, 0, 136)'"
    )
    kept = json.loads((folder / "work/wine-result/cluster-names.json").read_text())
    assert kept["0"] == {"name": HOSTILE, "colour": "#ff0088"}


def test_the_map_takes_the_colour_of_a_feature(page) -> None:
    page.set("#feature", "proline")
    page.wait_inside("return $('#paint').selectedOptions[0].textContent === 'proline'")
    fills = page.inside(
        "return new Set($$('#fig-map .samples circle').map(d => d.style.color)).size"
    )
    assert fills > 20


def test_a_selection_is_compared_with_the_rest(page) -> None:
    from selenium.webdriver import ActionChains

    page.browser.switch_to.frame(page.one("#report"))
    figure = page.one("#fig-map svg")
    page.run("arguments[0].scrollIntoView({block: 'center'})", figure)
    width, height = figure.size["width"], figure.size["height"]
    chain = ActionChains(page.browser)
    chain.move_to_element_with_offset(figure, 2 - width // 2, 2 - height // 2)
    chain.click_and_hold()
    for x, y in ((width // 2, 0), (0, height - 8), (-width // 2, 0)):
        chain.move_by_offset(x, y)
    chain.release().perform()
    n_selected = int(page.text("#n-selected").split()[0])
    listed = page.text("#count")
    page.browser.switch_to.default_content()
    assert 3 < n_selected < 178
    assert listed.endswith(f"of {n_selected}")
    page.wait("return $$('#compared tbody tr').length > 3")
    assert page.text("#chosen").startswith(f"{n_selected} samples")
    page.set("#choose", "1")
    page.wait(
        "return !$('#chosen').textContent.startsWith(arguments[0])",
        f"{n_selected} samples",
    )


def test_a_figure_is_taken_from_the_report_in_the_app(page, folder) -> None:
    behaviour = {"behavior": "allow", "downloadPath": str(folder)}
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    page.inside("$('#fig-heatmap [data-figure=png]').click()")
    end = time.monotonic() + 30
    while not list(folder.glob("heatmap-k*.png")) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(folder.glob("heatmap-k*.png"))
    for name in ("dots", "functions"):
        assert page.inside(f"return $('#fig-{name}, #{name}').offsetParent !== null")


def test_new_samples_are_placed(page, folder) -> None:
    page.one("#new-file").send_keys(str(folder / "wine.csv"))
    page.wait("return $$('#placed tbody tr').length > 1")
    assert "predicted-" in page.text("#placed")


def test_a_reload_opens_the_same_result(page) -> None:
    page.browser.refresh()
    page.wait("return $$('#names [data-cluster]').length > 1")
    page.wait_inside(
        "return $$('.halo').some(each => each.textContent === arguments[0])", HOSTILE
    )


def test_past_results_are_listed_and_open(page) -> None:
    page.run("location.hash = 'table'")
    link = page.wait("return $('#past a')")
    assert link.text == "wine-result"
    assert "stopped" in page.text("#past")
    link.click()
    page.wait("return !$('#explore').hidden")


def test_hostile_names_stay_names(page, folder) -> None:
    page.run("location.hash = 'table'")
    page.one("#file").send_keys(str(folder / "hostile.csv"))
    page.wait("return $('#h-reading').textContent.includes('hostile')")
    assert page.run("return $$('main img').length") == 0
    assert HOSTILE in page.text("#cells")


def test_a_report_reaches_nothing(page, folder) -> None:
    """A report from a stranger neither reads the page nor asks the server."""
    place = folder / "work" / "strange"
    shutil.copytree(folder / "work" / "wine-result", place)
    (place / "report.html").write_text(
        "<script>let said = [];"
        "try { parent.document.title = 'owned'; said.push('parent') } catch {}"
        "try { said.push(document.cookie) } catch {}"
        "fetch('/api/start', {method: 'POST', body: '{}', credentials: 'include'})"
        ".then(a => said.push('answer ' + a.status)).catch(() => {})"
        ".finally(() => { document.body.textContent = 'said: ' + said })</script><body>"
    )
    page.run("location.hash = 'explore/strange'")
    said = page.wait_inside(
        "const said = document.body.textContent;return said.startsWith('said') && said"
    )
    assert said == "said: "
    assert "owned" not in page.browser.title


def test_other_hosts_and_origins_are_refused(page) -> None:
    cookie = page.browser.get_cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")

    def ask(**headers):
        request = urllib.request.Request(page.base + "static/app.js", headers=headers)
        request.add_header("Cookie", f"{cookie['name']}={cookie['value']}")
        return urllib.request.urlopen(request, timeout=60).status

    assert ask() == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(**headers)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_in_any_light(page, view, dark) -> None:
    page.size(420, 860, dark=dark)
    try:
        page.run("location.hash = arguments[0]", view)
        time.sleep(1.0)
        width = page.run("return document.documentElement.scrollWidth")
        assert width <= 420
        ink, paper = (
            np.array(
                page.run(
                    "const probe = document.createElement('i');"
                    "document.body.append(probe);"
                    "probe.style.color = `var(${arguments[0]})`;"
                    "const found = getComputedStyle(probe).color.match(/\\d+/g);"
                    "probe.remove(); return found.map(Number)",
                    name,
                )
            )
            for name in ("--ink", "--paper")
        )
        assert (ink.mean() > paper.mean()) == dark
        assert abs(ink.mean() - paper.mean()) > 150
    finally:
        page.size(1400, 950)


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_has_a_name(page, view) -> None:
    page.run("location.hash = arguments[0]", view)
    time.sleep(1.0)
    page.run("$$('details').forEach(each => each.open = true)")
    found = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    roles = {"button", "textbox", "combobox", "checkbox", "slider", "link", "searchbox"}
    roles |= {"spinbutton", "ColorWell", "progressbar"}
    controls = [
        node.get("name", {}).get("value")
        for node in found["nodes"]
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert len(controls) > 5
    assert all(controls), controls


def test_it_is_used_with_keys_alone(page) -> None:
    from selenium.webdriver import ActionChains, Keys

    page.run("location.hash = 'explore/wine-result'")
    time.sleep(0.5)
    page.run("$('#k').focus()")
    before = page.run("return Number($('#k').value)")
    ActionChains(page.browser).send_keys(Keys.ARROW_RIGHT).perform()
    page.wait_inside(SHOWN, str(before + 1))
    outline = page.run("return getComputedStyle($('#k')).outlineStyle")
    assert outline == "solid"
