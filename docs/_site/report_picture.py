"""Take docs/_static/report.png, the picture of a report on the README and the site.

Run with ``python docs/_site/report_picture.py REPORT``, where REPORT is the report.html
of ``mdec fit lymphoma.csv --label-column class``, the 62 lymphomas of Alizadeh et al.
(DS-13). It needs selenium, Chromium and chromedriver; the picture is kept in the
repository, because the README shows it.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver

WIDTH, HEIGHT = 1160, 1400


def main() -> None:
    """Open the report and store its first screen, down to map and heatmap."""
    options = webdriver.ChromeOptions()
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "no-first-run", "hide-scrollbars"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        f"user-data-dir={tempfile.mkdtemp()}",
    ):
        options.add_argument(f"--{flag}")
    options.binary_location = shutil.which("chromium")
    driver = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options, driver)
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(Path(sys.argv[1]).resolve().as_uri())
    bottom = browser.execute_script(
        "const figure = document.querySelector('#fig-heatmap');"
        "return figure.getBoundingClientRect().bottom"
    )
    time.sleep(1)
    size["height"] = round(bottom) + 12
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    browser.quit()
    picture = Path(__file__).parents[1] / "_static" / "report.png"
    picture.write_bytes(base64.b64decode(found["data"]))


if __name__ == "__main__":
    main()
