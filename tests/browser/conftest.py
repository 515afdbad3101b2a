"""Pages in a real browser, against a server of tiny runs; every fault of a page fails its test."""

import json
import shutil
from contextlib import contextmanager
from importlib import resources
from urllib.parse import urlencode

import pytest

from tests.serve.conftest import process_of

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A microphone that beeps, which needs no permission.
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
)

WIDE = {"width": 1280, "height": 900}


def pytest_collection_modifyitems(items):
    """Mark all tests of this folder."""
    for item in items:
        if "tests/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def chromium():
    """A headless browser; while it runs, tests of other modules could start no event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("Chromium is not installed: `apt-get install chromium`")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tiny_run, tiny_transformer_run):
    """A server of two tiny translation models in a process of its own."""
    with process_of(f"en-de={tiny_run.folder}", f"second={tiny_transformer_run.folder}") as one:
        yield one


@pytest.fixture
def visiting(chromium):
    """Function that opens pages, and checks at the end of a block that none had a fault."""

    @contextmanager
    def visit(expected=(), **options):
        context = chromium.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
        context.set_default_timeout(15_000)
        page, faults = context.new_page(), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
        yield page
        context.close()
        unexpected = [text for text in faults if not any(part in text for part in expected)]
        assert unexpected == []

    return visit


@pytest.fixture
def page(visiting):
    """A page of a wide screen."""
    with visiting() as one:
        yield one


@pytest.fixture
def opening(page, server):
    """Function that opens a view of the page and waits for its prediction."""

    def open_view(**state):
        open_at(page, server.url, **state)
        return page

    return open_view


def open_at(page, url, **state):
    """Open a view and wait until it is complete."""
    values = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in state.items()
    }
    page.goto("about:blank")  # another fragment alone would not load the page again
    page.goto(f"{url}/#{urlencode({'view': 'model', **values})}")
    wait(page)


def wait(page):
    """Wait until no prediction is in progress."""
    page.wait_for_selector("main .view")
    page.wait_for_function(
        "() => ![...document.querySelectorAll('[aria-busy]')].some(one => one.ariaBusy === 'true')"
    )


def find_faults(page):
    """Return the serious faults that axe finds; the page must ignore its security policy."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    page.evaluate((resources.files(axe) / "axe.min.js").read_text(encoding="utf-8"))
    return [
        f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in page.evaluate("axe.run()")["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def texts(page, selector):
    """Return the texts of all elements."""
    return page.locator(selector).all_inner_texts()


def targets(page):
    """Return the tokens of the prediction."""
    return texts(page, ".lines [data-side=target] .text")


def sources(page):
    """Return the tokens of the source."""
    return texts(page, ".lines [data-side=source] .text")
