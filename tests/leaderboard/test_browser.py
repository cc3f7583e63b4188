"""The board in a real browser: every page opens, filters and links work, nothing overflows a phone, keys reach all.

Needs Chromium (``DARE_CHROMIUM``, else ``chromium`` in PATH); screenshots go to ``DARE_ARTIFACTS``, else to the test's
own folder.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.leaderboard.pages import APP, TITLES
from tests.leaderboard.stores import HOSTILE_MODEL

CHROMIUM = os.environ.get("DARE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_MS = 120_000
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium, or set DARE_CHROMIUM"),
]


@pytest.fixture(scope="module")
def server(filled, tmp_path_factory):
    """Start the board on the store of many runs and return its address."""
    folder = filled("many")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = {
        "DARE_DB": f"sqlite:///{folder}/dare.db",
        "DARE_RUNS": str(folder / "runs"),
        "DARE_CACHE": str(folder / "cache"),
    }
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    options += ["--server.fileWatcherType=none", "--browser.gatherUsageStats=false", "--client.toolbarMode=minimal"]
    log = tmp_path_factory.mktemp("board") / "server.log"
    with log.open("w") as stream:
        command = [sys.executable, "-m", "streamlit", "run", str(APP), *options]
        process = subprocess.Popen(command, env=os.environ | names, stdout=stream, stderr=subprocess.STDOUT)
    try:
        _wait_for(f"http://127.0.0.1:{port}/_stcore/health", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(url, process, log):
    for _ in range(240):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.5)
    raise AssertionError(f"the board did not start: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        started = play.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield started
        started.close()


@pytest.fixture
def tab(browser):
    """Return a function that opens a tab of a size and colour scheme; script errors and dialogs fail the test."""
    contexts, troubles = [], []

    def open_tab(size, scheme="light"):
        context = browser.new_context(viewport=size, color_scheme=scheme)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    yield open_tab
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    folder = Path(os.environ.get("DARE_ARTIFACTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def visit(page, server, address, title):
    page.goto(f"{server}/{address}")
    page.get_by_role("heading", name=title, exact=True).wait_for()
    settle(page)


def settle(page):
    """Wait until the script has run and the last element is drawn."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")
    page.wait_for_timeout(300)
    assert page.locator("[data-testid=stException]").count() == 0, page.locator(
        "[data-testid=stException]"
    ).inner_text()


def width(page):
    inner = "Math.max(document.documentElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth)"
    return page.evaluate(inner)


def picture(page, size, path):
    """Keep a picture of the whole page: its main part scrolls by itself, so the window is made as high as that."""
    high = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": size["width"], "height": min(max(size["height"], high + 60), 4000)})
    settle(page)
    page.screenshot(path=path)
    page.set_viewport_size(size)


def markup(page):
    return page.locator(".dare-text").first.inner_html()


@pytest.mark.parametrize(("name", "size", "scheme"), [
    ("desk", DESK, "light"), ("phone", PHONE, "light"), ("phone-dark", PHONE, "dark"),
])  # fmt: skip
def test_every_page_opens_and_fits(server, tab, artifacts, name, size, scheme):
    page = tab(size, scheme)
    for address, title in TITLES.items():
        visit(page, server, address, title)
        assert width(page) <= size["width"], f"{title} overflows"
        picture(page, size, artifacts / f"board-{name}-{address or 'results'}.png")


def test_dark_mode_is_dark_and_text_stays_readable(server, tab):
    page = tab(DESK, "dark")
    visit(page, server, "", "Results")
    colours = page.evaluate(
        "[getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor,"
        " getComputedStyle(document.querySelector('table.dare td')).color]"
    )
    back, front = (sum(map(int, re.findall(r"\d+", one)[:3])) for one in colours)
    assert back < 150 and front > 450


def test_filters_and_a_link_to_an_items_answer(server, tab, artifacts):
    page = tab(DESK)
    visit(page, server, "", "Results")
    table = page.locator("table.dare")
    assert "llada-8b" in table.inner_text()
    page.get_by_text("Filters", exact=True).click()
    settle(page)  # a list that opens while the filters still unfold is closed again
    page.get_by_label("Family", exact=True).click()
    page.get_by_role("option", name="dream", exact=True).click()
    page.wait_for_function("() => !document.querySelector('table.dare').innerText.includes('llada-8b')")
    settle(page)
    page.keyboard.press("Escape")
    page.screenshot(path=artifacts / "board-filtered.png")
    page.locator("table.dare a.dare-score").first.click()
    page.get_by_role("heading", name="Items", exact=True).wait_for()
    settle(page)
    assert "result=" in page.url and "dream" in page.get_by_label("Result", exact=True).input_value()
    page.get_by_label("Show").click()
    page.get_by_role("option", name="wrong", exact=True).click()
    page.wait_for_function("() => !/\\bright\\b/.test(document.querySelectorAll('table.dare')[1].innerText)")
    settle(page)
    assert "Question" in page.locator("[data-testid=stMain]").inner_text()
    picture(page, DESK, artifacts / "board-item.png")


def test_everything_can_be_reached_by_keyboard(server, tab):
    page = tab(DESK)
    visit(page, server, "", "Results")
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('a.dare-score')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert page.evaluate("document.activeElement.matches('a.dare-score')") and outline != "none"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Items", exact=True).wait_for()
    visit(page, server, "denoising", "Denoising")
    slider = page.get_by_role("slider").first
    slider.focus()
    before = markup(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("before => document.querySelector('.dare-text').innerHTML !== before", arg=before)
    settle(page)


def test_hostile_texts_are_shown_and_never_run(server, tab):
    page = tab(DESK)
    visit(page, server, "items", "Items")
    page.get_by_label("Benchmark").click()
    page.get_by_role("option", name="toy", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll(\"input[aria-label='Result']\").length === 1")
    settle(page)
    page.get_by_label("Result", exact=True).click()
    page.keyboard.type("hostile")
    page.keyboard.press("Enter")
    page.get_by_text("<script>alert('x')</script>").first.wait_for()
    settle(page)
    nothing_ran(page)
    assert ":red[hot] :material/delete:" in page.locator("[data-testid=stMain]").inner_text()


def test_a_hostile_name_is_text_on_every_page_that_shows_it(server, tab):
    page = tab(DESK)
    for address, title in TITLES.items():
        visit(page, server, address, title)
        nothing_ran(page)
        if not address:
            assert HOSTILE_MODEL in page.locator("[data-testid=stMain]").inner_text(), title
        if address in ("denoising", "stability"):
            page.get_by_label("Result", exact=True).click()
            page.get_by_role("option", name=":red[hot]").first.wait_for()
            nothing_ran(page)


def nothing_ran(page):
    """Check that no text of a stranger became an element: script, picture, formula, or coloured or bold words."""
    for made in ("script", "img", ".katex", "[data-testid=stMain] strong", "[data-testid=stMain] a[href^=javascript]"):
        inside = made if made.startswith("[") else f"body {made}:not(head *)"
        found = [one.evaluate("element => element.outerHTML") for one in page.locator(inside).all()]
        assert not [one for one in found if re.search("alert|127.0.0.1:9|katex|bold", one)], found
    assert page.locator("[data-testid=stMain] [style*='color: red']").count() == 0


def test_static_pages_fit_a_phone_without_a_script(filled, tab, tmp_path, artifacts):
    folder = filled("many")
    names = {
        "DARE_DB": f"sqlite:///{folder}/dare.db",
        "DARE_RUNS": str(folder / "runs"),
        "DARE_CACHE": str(folder / "cache"),
    }
    command = [sys.executable, "-m", "leaderboard.snapshot", str(tmp_path)]
    subprocess.run(command, env=os.environ | names, check=True, capture_output=True)
    page = tab(PHONE, "dark")
    for path in sorted(tmp_path.rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path.name
        assert page.locator("script").count() == 0
        if path.parent == tmp_path:
            page.screenshot(path=artifacts / f"static-{path.stem}.png", full_page=True)
