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

# Whether what may be asked for next is found.
IDLE = "return !solving && shown.prepared"
# Whether the report shows a clustering, and has painted since then.
SHOWN = (
    "const one = data.solutions[now];"
    "const there = one.k === arguments[0]"
    "  && (one.consensus ?? 'hierarchical') === arguments[1];"
    "if (there && window.painted === undefined) { window.painted = false;"
    "  requestAnimationFrame(() => setTimeout(() => { window.painted = true; })); }"
    "const done = there && window.painted;"
    "if (done) { delete window.painted; } return done"
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
    X += 0.2 * rng.normal(size=(N_GROUPS, N_FEATURES)).astype(np.float32)[group]
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
    page.wait(IDLE, seconds=900)
    before, start = meter.seconds(), time.perf_counter()
    page.run(
        "$('#consensus').value = arguments[1]; $('#k').value = arguments[0];"
        "$('#k').dispatchEvent(new Event('input'))",
        k,
        consensus,
    )
    page.wait_inside(SHOWN, k, consensus)
    return time.perf_counter() - start, meter.seconds() - before


def tell(capsys, words) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{words}")


def test_other_clusters_are_painted_within_a_second(browser, folder, capsys) -> None:
    with started_app(folder) as (app, address):
        page, meter = Tab(browser, address).explore("large"), Meter(app, browser)
        for consensus in CONSENSUS:
            found = [change(page, meter, k, consensus) for k in (7, 12, 20)]
            seconds, work = np.median(found, axis=0)
            tell(capsys, f"{consensus}: painted in {seconds:.2f} s, {work:.2f} CPU s")
            # Under load the time goes to others, and the work stays.
            assert min(seconds, work) < MOST_SECONDS, (consensus, found)


def test_pages_stay_small(browser, folder, capsys) -> None:
    with started_app(folder) as (app, address):
        page, meter = Tab(browser, address).explore("large"), Meter(app, browser)
        for k in [*range(2, 22), 6]:
            page.set("#k", k, "input")
            page.wait("return $('#busy').textContent === ''")
        page.wait(IDLE, seconds=900)
        n_bytes = meter.page_bytes()
        tell(capsys, f"the pages take {n_bytes / 1e6:.0f} MB\n")
        assert n_bytes < MOST_BYTES
