"""Write the screenshots of docs/page.md from a running server.

    python tests/browser/screenshots.py http://127.0.0.1:8000 --image photo.png --audio one.wav

The server must have the runs en-de, bahdanau2015, cho2014, scenes and digits.
"""

import argparse
import io
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM, open_at, wait

DOCS = Path(__file__).parents[2] / "docs"
NUM_COLORS = 128
SENTENCE = "The children who play in the park are happy because it does not rain."
LONG = (
    "Every happy cook did not ask whether a man arrived last week when the friendly child tidied "
    "up an office."
)
REFERENCE = (
    "Jeder glückliche Koch hat nicht gefragt, ob ein Mann letzte Woche angekommen ist, als das "
    "freundliche Kind ein Büro aufgeräumt hat."
)


def token(page, side, index):
    return page.locator(f".lines [data-side={side}] .token").nth(index)


def hover_a_word(page):
    token(page, "target", 3).hover()


def open_alternatives(page):
    token(page, "target", 3).click()


def replace_a_word(page):
    token(page, "source", 1).click()
    page.get_by_label("By (empty: leave it out)").fill("dog")
    page.keyboard.press("Enter")
    page.wait_for_selector(".what-if:not([hidden])")


def open_tree(page):
    page.get_by_text("Beam search").click()
    page.wait_for_selector("[role=treeitem]")


def choose(path):
    def act(page):
        page.set_input_files("#file", path)
        page.wait_for_selector(".media:not([hidden])")
        wait(page)
        page.locator(".word-tile").nth(3).click()

    return act


def save(page, name, selector):
    """Save an element with few colours, which makes a file a quarter of its size."""
    page.wait_for_timeout(400)
    content = page.locator(selector).screenshot() if selector else page.screenshot()
    image = Image.open(io.BytesIO(content)).convert("RGB")
    image.quantize(NUM_COLORS, dither=Image.Dither.NONE).save(DOCS / f"{name}.png", optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--image")
    parser.add_argument("--audio")
    parser.add_argument("--training", help="address of a `regard watch`")
    given = parser.parse_args()
    model = {"view": "model", "model": "en-de", "source": SENTENCE}
    compare = {
        "view": "compare", "a": "cho2014", "b": "bahdanau2015", "source": LONG,
        "a_method": "gradients", "reference": REFERENCE,
    }  # fmt: skip
    shots = [
        ("page", model, hover_a_word, {}),
        ("page-dark", model, replace_a_word, {"color_scheme": "dark"}),
        ("page-tree", model, open_tree, {}),
        ("page-narrow", model, open_alternatives, {"viewport": {"width": 390, "height": 844}}),
        ("page-compare", compare, None, {}),
    ]
    if given.image:
        shots.append(("page-image", {**model, "model": "scenes"}, choose(given.image), {}))
    if given.audio:
        dark = {"color_scheme": "dark"}
        shots.append(("page-audio", {**model, "model": "digits"}, choose(given.audio), dark))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, state, act, options in shots:
            viewport = {"viewport": {"width": 1180, "height": 860}}
            page = browser.new_context(
                **{**viewport, "reduced_motion": "reduce", **options}
            ).new_page()
            open_at(page, given.url, **state)
            page.wait_for_timeout(1500)
            if act:
                act(page)
            save(page, name, "details.card" if name == "page-tree" else None)
        if given.training:
            for name, options in (
                ("page-training", {}),
                ("page-training-dark", {"color_scheme": "dark"}),
            ):
                page = browser.new_context(
                    viewport={"width": 1180, "height": 1250}, **options
                ).new_page()
                page.goto(f"{given.training}/#{urlencode({'view': 'training'})}")
                page.wait_for_timeout(2500)
                save(page, name, None)
        browser.close()


if __name__ == "__main__":
    main()
