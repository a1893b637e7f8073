"""Take the pictures of report and app that the README and the site show.

    python docs/_site/pictures.py report REPORT
    python docs/_site/pictures.py app

REPORT is the report.html of ``mdec fit lymphoma.csv --label-column class``, the 62
lymphomas of Alizadeh et al. (DS-13). The app shows scikit-learn's table of wines. Both
need selenium, Chromium and chromedriver; the pictures are kept in the repository,
because the README shows them.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from sklearn.datasets import load_wine

PICTURES = Path(__file__).parents[1] / "_static"
GROWERS = ("Barolo", "Grignolino", "Barbera")


def open_browser(width: int, height: int) -> webdriver.Chrome:
    """Open a page of this size in headless Chromium."""
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
    resize(browser, width, height)
    return browser


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    """Give the page another size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def store(browser: webdriver.Chrome, name: str) -> None:
    """Store the page as a small picture."""
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    picture = Image.open(io.BytesIO(base64.b64decode(found["data"]))).convert("RGB")
    # A palette keeps the picture below what a README should load.
    picture.quantize(256).save(PICTURES / f"{name}.png", optimize=True)
    browser.quit()


def take_report(report: str) -> None:
    """Store the first screen of a report, down to map and heatmap."""
    browser = open_browser(1160, 1400)
    browser.get(Path(report).resolve().as_uri())
    bottom = browser.execute_script(
        "const figure = document.querySelector('#fig-heatmap');"
        "return figure.getBoundingClientRect().bottom"
    )
    time.sleep(1)
    resize(browser, 1160, round(bottom) + 12)
    store(browser, "report")


def take_app() -> None:
    """Store the app with a result, one of its clusters chosen and all named."""
    folder = Path(tempfile.mkdtemp()) / "work"
    folder.mkdir()
    wine = load_wine(as_frame=True).frame
    wine["class"] = wine.pop("target").map(dict(enumerate(GROWERS)))
    wine.insert(0, "sample", [f"w{i}" for i in wine.index])
    wine.to_csv(folder / "wine.csv", index=False)
    fit = ("fit", "wine.csv", "--label-column", "class", "--out", "wine-result")
    subprocess.run([sys.executable, "-m", "mdec", *fit], cwd=folder, check=True)
    command = [sys.executable, "-m", "mdec", "app", "wine-result", "--no-browser"]
    app = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    address = re.search(r"http://\S+", app.stdout.readline())[0]
    browser = open_browser(1400, 940)
    browser.get(address)
    time.sleep(8)
    browser.execute_script("document.querySelectorAll('aside details')[1].open = true")
    for number, name in enumerate(GROWERS):
        browser.execute_script(
            "const all = document.querySelectorAll('#names input:not([type=color])');"
            "all[arguments[0]].value = arguments[1];"
            "all[arguments[0]].dispatchEvent(new Event('change', {bubbles: true}))",
            *(number, name),
        )
        time.sleep(3)
    browser.execute_script(
        "const choose = document.querySelector('#choose');"
        "choose.value = choose.options[choose.options.length - 1].value;"
        "choose.dispatchEvent(new Event('change', {bubbles: true}));"
    )
    time.sleep(5)
    store(browser, "app")
    app.terminate()


def main() -> None:
    """Take one of the pictures."""
    part, *arguments = sys.argv[1:]
    {"report": take_report, "app": take_app}[part](*arguments)


if __name__ == "__main__":
    main()
