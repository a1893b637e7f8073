"""A large result stays fluid: 10,000 samples of 2,000 features."""

from __future__ import annotations

import sys
import time

import numpy as np
import psutil
import pytest
from sklearn.cluster import MiniBatchKMeans
from tests.app.conftest import Tab, started_app

from mdec import MDEC
from mdec.consensus import CONSENSUS
from mdec.results import write_result
from mdec.tables import Table

pytestmark = pytest.mark.browser

N_SAMPLES, N_FEATURES, N_GROUPS = 10_000, 2000, 6
MOST_SECONDS, MOST_BYTES = 1.0, 300e6

# Ends at the first frame in which the report shows a clustering.
PAINTED = (
    "const [k, consensus, done] = arguments; const look = () => {"
    "  const one = data.solutions[now];"
    "  if (one.k !== k || (one.consensus ?? 'hierarchical') !== consensus) {"
    "    requestAnimationFrame(look); return; }"
    "  requestAnimationFrame(() => setTimeout(done)); };"
    "look()"
)


def few_columns(rows, n_clusters, rng):
    """Cluster by a few features, so that the base clusterings are made in seconds."""
    columns = rng.choice(rows.shape[1], 60, replace=False)
    seed = int(rng.integers(2**31))
    model = MiniBatchKMeans(
        min(n_clusters, 40), n_init=1, max_iter=3, random_state=seed
    )
    return model.fit_predict(rows[:, columns])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    group = np.arange(N_SAMPLES) % N_GROUPS
    X = rng.normal(size=(N_SAMPLES, N_FEATURES)).astype(np.float32)
    X += 0.4 * rng.normal(size=(N_GROUPS, N_FEATURES)).astype(np.float32)[group]
    model = MDEC(N_GROUPS, base=few_columns, random_state=0).fit(X)
    names = [f"sample {i}" for i in range(N_SAMPLES)]
    features = [f"gene {j}" for j in range(N_FEATURES)]
    table = Table(X, names, features, group.astype(str))
    write_result(model.clustering_, place / "large", table=table, model=model)
    return place


class Meter:
    """Processor time and memory of the app and of the browser's pages."""

    def __init__(self, app, browser) -> None:
        self.app = psutil.Process(app.pid)
        self.driver = psutil.Process(browser.service.process.pid)

    def seconds(self) -> float:
        own = [self.app, *self.driver.children(recursive=True)]
        return sum(sum(each.cpu_times()[:2]) for each in own)

    def wait_until_idle(self) -> None:
        """Wait until what the page does ahead of being asked is done."""
        before = -1.0
        while self.seconds() - before > 0.05:
            before = self.seconds()
            time.sleep(1.0)

    def page_bytes(self) -> int:
        """Return the memory of all pages that no other process shares."""
        pages = [
            each
            for each in self.driver.children(recursive=True)
            if "--type=renderer" in each.cmdline()
        ]
        return sum(each.memory_full_info().uss for each in pages)


def change(page, meter, k, consensus) -> tuple[float, float]:
    """Ask for other clusters; return the seconds until they are seen, and of work."""
    meter.wait_until_idle()
    before, start = meter.seconds(), time.perf_counter()
    page.run(
        "$('#consensus').value = arguments[1]; $('#k').value = arguments[0];"
        "$('#k').dispatchEvent(new Event('input'))",
        k,
        consensus,
    )
    page.browser.switch_to.frame(page.one("#report"))
    page.browser.execute_async_script(PAINTED, k, consensus)
    seconds, work = time.perf_counter() - start, meter.seconds() - before
    page.browser.switch_to.default_content()
    return seconds, work


def test_another_number_is_painted_within_a_second(browser, folder, capsys) -> None:
    def tell(words):
        with capsys.disabled():
            sys.stdout.write(f"\n{words}")

    browser.set_script_timeout(120)
    with started_app(folder) as (app, address):
        page, meter = Tab(browser, address).explore("large"), Meter(app, browser)
        for consensus in CONSENSUS:
            # Neighbours are found ahead of being asked; those far away are not.
            found = [change(page, meter, k, consensus) for k in (7, 8, 12, 5, 15, 20)]
            seconds, work = np.median(found, axis=0)
            tell(f"{consensus}: painted in {seconds:.2f} s, {work:.2f} CPU s")
            # Under load the time goes to others, and the work stays.
            assert min(seconds, work) < MOST_SECONDS, (consensus, found)
        for k in [*range(2, 22), 6]:
            change(page, meter, k, "hierarchical")
        meter.wait_until_idle()
        n_bytes = meter.page_bytes()
        tell(f"the page takes {n_bytes / 1e6:.0f} MB")
        assert n_bytes < MOST_BYTES
