"""The app in a real browser: a table is dropped, corrected, run and explored."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request

import numpy as np
import psutil
import pytest
from tests.app.conftest import Tab, started_app, write_table

from mdec.app.folder import UPLOADS
from mdec.cli import main

pytestmark = pytest.mark.browser

RESULT = "wine-result"
HOSTILE = "<img src=x onerror=alert(1)>"
VIEWS = ["table/wine.csv", "runs", f"explore/{RESULT}"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the app, with tables and a result, and beside it one to drop."""
    place = tmp_path_factory.mktemp("browser")
    work = place / "work"
    work.mkdir()
    datasets = pytest.importorskip("sklearn.datasets")
    wine = datasets.load_wine()
    names = ["name", *(n.replace("/", " ") for n in wine.feature_names), "grower"]
    lines = [",".join(names)]
    for i, (row, k) in enumerate(zip(wine.data, wine.target, strict=True)):
        lines.append(",".join([f"w{i}", *map(str, row), "abc"[k]]))
    for each in (place / "dropped.csv", work / "wine.csv"):
        each.write_text("\n".join(lines))
    write_table(work / "people.csv", 30)
    text = (work / "people.csv").read_text()
    others = [line.rpartition(",")[0] for line in text.splitlines()]
    (work / "others.csv").write_text("\n".join(others))
    text = text.replace("<b>dose</b>", HOSTILE)
    (place / "hostile.csv").write_text(text.replace("s1,", f"{HOSTILE},"))
    words = ["fit", str(work / "wine.csv"), "--label-column", "grower", "--k", "3"]
    words += ["--ensemble-size", "40", "--out", str(work / RESULT), "--quiet"]
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    return place


@pytest.fixture(scope="module")
def app(folder):
    """The process of the app and its address."""
    with started_app(folder / "work") as started:
        yield started


@pytest.fixture
def page(browser, app):
    browser.get_log("browser")
    made = Tab(browser, app[1]).open()
    yield made
    # No test waits for the run of another.
    made.run(
        "$$('#jobs .act').filter(each => each.textContent === 'Cancel')"
        ".forEach(each => each.click())"
    )
    said = [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    # The tests below ask for some refusals.
    assert not [words for words in said if "400" not in words], said


@pytest.fixture
def copy(folder, request):
    """Copy the result, so that a test may change it; gives its name."""
    name = f"copy-{abs(hash(request.node.name))}"
    shutil.copytree(folder / "work" / RESULT, folder / "work" / name)
    yield name
    shutil.rmtree(folder / "work" / name)


STEP = "return $('#jobs .step')?.textContent"
BAR = "return Number($('#jobs progress:not([hidden])')?.value || 0)"
AGAIN = "return $('#jobs .act').textContent === 'Resume'"
SHOWN = "return $('.facts .fact b').textContent === arguments[0]"
NAMED = "return $$('.halo').some(each => each.textContent === arguments[0])"


def test_the_token_leaves_the_address(page) -> None:
    assert "token" not in page.browser.current_url
    assert page.run("return document.cookie") == ""


def test_a_dropped_table_is_read_and_corrected(page, folder) -> None:
    page.run(
        "const data = new DataTransfer();"
        "data.items.add(new File([arguments[0]], 'dropped.csv'));"
        "$('#drop').dispatchEvent(new DragEvent('drop',"
        "{ dataTransfer: data, bubbles: true, cancelable: true }))",
        (folder / "dropped.csv").read_text(),
    )
    page.wait("return $('#doubt p').textContent.includes('grower')")
    assert page.run("return $('#run').disabled")
    menu = page.one("th[title='grower'] select").rect
    assert 0 < menu["x"] < menu["x"] + menu["width"] < 1400
    page.set("th[title='grower'] select", "class")
    page.wait("return !$('#run').disabled")
    assert "--label-column grower" in page.text("#command")
    assert "label_column='grower'" in page.text("#python")
    for words in ("Read 178 samples", "each feature is standardised", "Estimated work"):
        assert words in page.text("#plan")
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
    page.set("#path", "wine.csv")
    page.click("#by-path button")
    page.wait("return $('#h-reading').textContent.includes('wine')")
    assert not page.one("#sheet").is_displayed()


def test_several_tables_are_clustered_together(page) -> None:
    page.read("people.csv")
    page.run("$$('#table details').forEach(each => each.open = true)")
    page.one("#view").send_keys("others.csv")
    page.click("#add-view")
    page.wait("return $('#h-reading').textContent.includes('people (6), others (')")
    assert "--view others.csv" in page.text("#command")
    page.one("#view").send_keys("/etc/passwd")
    page.click("#add-view")
    page.wait("return $('#doubt p').textContent.includes('/etc/passwd')")
    page.click("[aria-label='Leave out /etc/passwd']")
    page.start_run("joint", 20)
    page.wait("return location.hash === '#explore/joint'")
    page.wait_inside("return $('#views')?.offsetParent")


def test_a_run_moves_is_cancelled_and_resumed(page) -> None:
    number = page.read("wine.csv").start_run("moving", 9000)
    before = page.wait(BAR)
    page.wait(BAR + " > arguments[0]", before)
    page.wait("return $('#jobs .step').textContent.endsWith('left')")
    page.browser.refresh()
    page.wait(BAR + " > arguments[0]", before)
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    page.open("runs")
    page.wait(BAR + " > arguments[0]", before)
    assert page.run("return $('#jobs li').dataset.job") == number
    page.click("#jobs .act")
    page.browser.close()
    page.browser.switch_to.window(first)
    page.wait(AGAIN)
    assert "kept" in page.text("#jobs .step")
    page.click("#jobs .act")
    page.wait("return $('#jobs .act').textContent === 'Cancel'")
    page.wait(BAR + " > arguments[0]", before)
    page.click("#jobs .act")
    page.wait(AGAIN)


def test_a_second_run_waits_and_says_so(page) -> None:
    page.read("wine.csv").start_run("first", 9000)
    page.wait(BAR)
    page.read("wine.csv").start_run("second", 9000)
    page.wait(STEP + " === 'waits for 1 other run'")
    page.click("#jobs .act")
    page.wait(STEP + " === 'Removed from the queue.'")
    page.click("#jobs li:nth-child(2) .act")
    page.wait(STEP.replace("#jobs", "#jobs li:nth-child(2)") + ".startsWith('Stopped')")


def test_a_killed_run_says_so_and_is_resumed(page, app) -> None:
    page.read("wine.csv").start_run("killed", 9000)
    page.wait(BAR)
    [worker] = [
        each
        for each in psutil.Process(app[0].pid).children(recursive=True)
        if "mdec.app.jobs" in each.cmdline()
    ]
    worker.kill()
    page.wait(AGAIN)
    assert "SIGKILL" in page.text("#jobs .step")
    page.click("#jobs .act")
    page.wait(BAR)
    page.click("#jobs .act")
    page.wait(AGAIN)


@pytest.mark.parametrize("by", ["reload", "end of the app"])
def test_an_upload_that_breaks_off_leaves_nothing(browser, tmp_path, by) -> None:
    (tmp_path / "work").mkdir()
    large = tmp_path / "large.csv"
    large.write_text("a,b\n" + "1.5,2.5\n" * 2**20)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
    with started_app(tmp_path / "work") as (process, address):
        page = Tab(browser, address).open()
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd(
            "Network.emulateNetworkConditions", {**slow, "uploadThroughput": 2**17}
        )
        try:
            page.one("#file").send_keys(str(large))
            page.wait("return !$('#arriving').hidden && $('#arriving').value > 0.01")
            if by == "reload":
                browser.refresh()
            else:
                process.kill()
                page.wait("return $('#notice').textContent.includes('was interrupted')")
        finally:
            browser.execute_cdp_cmd("Network.disable", {})
        uploads, end = tmp_path / "work" / UPLOADS, time.monotonic() + 30
        while by == "reload" and list(uploads.iterdir()) and time.monotonic() < end:
            time.sleep(0.1)
    left = list(uploads.iterdir())
    # The end of the app leaves what no page lists.
    assert not [each for each in left if not each.name.startswith(".mdec-")]
    assert not left or by != "reload"
    browser.get_log("browser")


def test_a_full_disk_ends_in_one_sentence(browser, folder, tmp_path) -> None:
    resource = pytest.importorskip("resource")
    size = (folder / "dropped.csv").stat().st_size
    most = 8 * size
    shutil.copyfile(folder / "dropped.csv", tmp_path / "wine.csv")
    (tmp_path / "large.csv").write_text("a,b\n" + "1.5,2.5\n" * size)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    with started_app(tmp_path, preexec_fn=limit) as (_, address):
        page = Tab(browser, address).open()
        page.one("#file").send_keys(str(tmp_path / "large.csv"))
        page.wait("return $('#notice').textContent.includes('make room on the disk')")
        assert list((tmp_path / UPLOADS).iterdir()) == []
        page.read("wine.csv").start_run("full", 20)
        page.wait("return $('#jobs .failed')?.textContent.includes('too large')")
        assert "Traceback" not in page.text("#jobs .step")
        assert not (tmp_path / "full" / "labels.csv").exists()


def test_a_run_ends_in_its_report(page, folder) -> None:
    page.read("wine.csv").start_run("ended", 40)
    page.wait("return location.hash === '#explore/ended'", seconds=240)
    assert (folder / "work" / "ended" / "report.html").is_file()
    page.wait("return $$('#names [data-cluster]').length > 1")
    page.wait_inside("return $$('.halo').length > 1")


def test_k_and_consensus_change_at_once(page) -> None:
    page.explore(RESULT)
    page.set("#k", "5", "input")
    page.wait_inside(SHOWN, "5")
    for consensus in ("spectral", "bipartite", "hierarchical"):
        page.set("#consensus", consensus)
        page.set("#k", "4", "input")
        page.wait("return $('#busy').textContent === ''")
        page.wait_inside(SHOWN, "4")
        assert page.inside("return $$('#fig-map .halo').length") == 4
        assert page.inside("return $$('.block').length") == 4


def test_a_cluster_keeps_its_name_and_colour(page, folder, copy) -> None:
    page.explore(copy)
    page.set("#names [data-cluster='0'] input:not([type=color])", HOSTILE)
    page.wait_inside(NAMED, HOSTILE)
    page.set("#names [data-cluster='0'] input[type=color]", "#ff0088")
    painted = (
        "return getComputedStyle($('.swatch[data-cluster=\"0\"]')).backgroundColor"
        " === 'rgb(255, 0, 136)'"
    )
    page.wait_inside(painted)
    page.wait("return naming.then(() => true)")
    kept = json.loads((folder / "work" / copy / "cluster-names.json").read_text())
    assert kept["0"] == {"name": HOSTILE, "colour": "#ff0088"}
    page.browser.refresh()
    page.wait("return $$('#names [data-cluster]').length > 1")
    page.wait_inside(NAMED, HOSTILE)
    page.wait_inside(painted)


def test_clusters_that_are_named_quickly_are_all_kept(page, folder, copy) -> None:
    page.explore(copy)
    page.run(
        "for (const name of ['fast', 'faster']) for (const k of [0, 1, 2]) {"
        "  const it = $(`#names [data-cluster='${k}'] input:not([type=color])`);"
        "  it.value = `${name} ${k}`;"
        "  it.dispatchEvent(new Event('change', {bubbles: true})); }"
    )
    for k in range(3):
        page.wait_inside(NAMED, f"faster {k}")
    page.wait("return naming.then(() => true)")
    kept = json.loads((folder / "work" / copy / "cluster-names.json").read_text())
    assert {own["name"] for own in kept.values()} == {f"faster {k}" for k in range(3)}
    assert page.run("return $('#notice').hidden")


def test_the_map_takes_the_colour_of_a_feature(page) -> None:
    page.explore(RESULT)
    page.set("#feature", "proline")
    page.wait_inside("return $('#paint').selectedOptions[0].textContent === 'proline'")
    fills = page.inside(
        "return new Set($$('#fig-map .samples circle').map(d => d.style.color)).size"
    )
    assert fills > 20


@pytest.mark.parametrize("rectangle", [False, True])
def test_a_selection_is_compared_with_the_rest(page, rectangle) -> None:
    from selenium.webdriver import ActionChains, Keys

    page.explore(RESULT)
    page.browser.switch_to.frame(page.one("#report"))
    figure = page.one("#fig-map svg")
    page.run("arguments[0].scrollIntoView({block: 'center'})", figure)
    width, height = figure.size["width"], figure.size["height"]
    chain = ActionChains(page.browser)
    if rectangle:
        chain.key_down(Keys.SHIFT)
    chain.move_to_element_with_offset(figure, 2 - width // 2, 2 - height // 2)
    chain.click_and_hold()
    line = [(width // 2, 0), (0, height - 8), (-width // 2, 0)]
    for x, y in [(width // 2, height - 8)] if rectangle else line:
        chain.move_by_offset(x, y)
    chain.release().key_up(Keys.SHIFT).perform()
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
    page.explore(RESULT)
    behaviour = {"behavior": "allow", "downloadPath": str(folder)}
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    page.inside("$('#fig-heatmap [data-figure=png]').click()")
    end = time.monotonic() + 30
    while not list(folder.glob("heatmap-k*.png")) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(folder.glob("heatmap-k*.png"))
    for name in ("dots", "functions"):
        assert page.inside(f"return $('#fig-{name}, #{name}').offsetParent !== null")


def test_new_samples_are_placed(page, folder, copy) -> None:
    page.explore(copy)
    page.one("#new-file").send_keys(str(folder / "dropped.csv"))
    page.wait("return $$('#placed tbody tr').length > 1")
    assert "predicted-" in page.text("#placed")
    assert "predicted-" in page.text("#files")
    assert list((folder / "work" / copy).glob("predicted-*.csv"))


def test_past_results_are_listed_and_open(page, folder) -> None:
    stopped = folder / "work" / "not-done" / "checkpoint"
    stopped.mkdir(parents=True)
    (stopped / "checkpoint.json").write_text("{}")
    page.open("table")
    page.wait("return $$('#past a').length > 0")
    assert "stopped" in page.text("#past")
    # The list may be written again meanwhile, so that its links are found and clicked
    # at once.
    page.run("$$('#past a').find(a => a.textContent === arguments[0]).click()", RESULT)
    page.wait("return !$('#explore').hidden")
    page.wait_inside("return $$('.halo').length > 1")
    page.run("$$('aside details').forEach(each => each.open = true)")
    names = page.run("return $$('#files a').map(each => each.textContent)")
    assert {"model.npz", "labels.csv", "report.html"} < set(names)


def test_hostile_names_stay_names(page, folder) -> None:
    page.one("#file").send_keys(str(folder / "hostile.csv"))
    page.wait("return $('#h-reading').textContent.includes('hostile')")
    assert page.run("return $$('main img').length") == 0
    assert HOSTILE in page.text("#cells")


def test_a_report_reaches_nothing(page, folder, copy) -> None:
    """A report from a stranger neither reads the page nor asks the server."""
    (folder / "work" / copy / "report.html").write_text(
        "<script>let said = [];"
        "try { parent.document.title = 'owned'; said.push('parent') } catch {}"
        "try { said.push(document.cookie) } catch {}"
        "fetch('/api/start', {method: 'POST', body: '{}', credentials: 'include'})"
        ".then(a => said.push('answer ' + a.status)).catch(() => {})"
        ".finally(() => { document.body.textContent = 'said: ' + said })</script><body>"
    )
    page.open("explore", copy)
    said = page.wait_inside(
        "const said = document.body?.textContent ?? '';"
        "return said.startsWith('said') && said"
    )
    assert said == "said: "
    assert "owned" not in page.browser.title


def test_other_hosts_and_origins_are_refused(page) -> None:
    port = page.base.rstrip("/").rpartition(":")[2]
    cookie = page.browser.get_cookie(f"mdec-{port}")
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")

    def ask(**headers):
        request = urllib.request.Request(page.base + "static/app.js", headers=headers)
        request.add_header("Cookie", f"{cookie['name']}={cookie['value']}")
        return urllib.request.urlopen(request, timeout=60).status

    assert ask() == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(**headers)


def test_a_page_of_another_origin_gets_no_answer(page, tmp_path) -> None:
    """A page on the same machine has the cookie's host, and still another origin."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    (tmp_path / "evil.html").write_text("<title>evil</title>")
    serve = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page.browser.get(f"http://127.0.0.1:{server.server_port}/evil.html")
        answers = page.browser.execute_async_script(
            "const [base, done] = arguments;"
            "const ask = (mode) => fetch(base + 'api/start', { method: 'POST', mode,"
            " body: '{}', credentials: 'include' }).then((a) => a.type, () => 'error');"
            "const frame = document.createElement('iframe'); frame.src = base;"
            "frame.onload = async () => done([await ask('cors'), await ask('no-cors'),"
            " frame.contentDocument === null]);"
            "document.body.append(frame)",
            page.base,
        )
        server.shutdown()
    assert answers == ["error", "error", True]
    page.browser.get_log("browser")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_in_any_light(page, view, dark) -> None:
    page.size(420, 860, dark=dark)
    try:
        page.open(*view.split("/"))
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
    page.open(*view.split("/"))
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

    page.explore(RESULT)
    page.run("$('#k').focus()")
    before = page.run("return Number($('#k').value)")
    ActionChains(page.browser).send_keys(Keys.ARROW_RIGHT).perform()
    page.wait_inside(SHOWN, str(before + 1))
    outline = page.run("return getComputedStyle($('#k')).outlineStyle")
    assert outline == "solid"
