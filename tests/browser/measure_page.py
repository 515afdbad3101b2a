"""Print times of the page on a running server: first paint, first token, complete view.

python tests/browser/measure_page.py http://127.0.0.1:8000 "A sentence."
"""

import statistics
import sys

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM, open_at, wait

ROUNDS = 7
NAMES = ("first paint", "first token", "heat map")
OBSERVE = (
    "window.shown = {}; new MutationObserver(() => {"
    " for (const [name, one] of [['token', '.lines [data-side=target] .token'],"
    " ['map', '.heatmap svg']])"
    " if (!shown[name] && document.querySelector(one)) shown[name] = performance.now();"
    "}).observe(document, {subtree: true, childList: true});"
)
READ = (
    "() => { const start = performance.getEntriesByType('resource')"
    ".find(one => one.name.endsWith('/v1/inspect')).startTime;"
    " const paint = performance.getEntriesByName('first-contentful-paint')[0];"
    " return [paint.startTime, shown.token - start, shown.map - start]; }"
)


def main(url, sentence):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for motion in ("no-preference", "reduce"):
            rows = [measure(browser, url, sentence, motion) for _ in range(ROUNDS)]
            print("with" if motion == "no-preference" else "without", "animations")
            for name, values in zip(NAMES, zip(*rows, strict=True), strict=True):
                median, best = statistics.median(values), min(values)
                print(f"  {name}: median {median:.0f} ms, best {best:.0f} ms")
        browser.close()


def measure(browser, url, sentence, motion):
    """Return the milliseconds of one load."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion=motion)
    page = context.new_page()
    page.add_init_script(OBSERVE)
    open_at(page, url, source=sentence)
    page.wait_for_selector(".heatmap svg")
    wait(page)
    times = page.evaluate(READ)
    context.close()
    return times


if __name__ == "__main__":
    main(*sys.argv[1:])
