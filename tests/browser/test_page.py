"""The page as a whole: accessibility, narrow screens, themes, scripts, links, exports, errors."""

import json
import re
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tests.browser.conftest import find_faults, open_at, sources, targets, wait
from tests.serve.conftest import process_of

SVG = "{http://www.w3.org/2000/svg}"
TOKEN = "a-secret-of-some-length"


def inspected(source, target, **changes):
    """Return a reply of `/v1/inspect` with a weight for each pair of tokens."""
    weights = np.full((len(target), len(source)), 0.1 / len(source))
    for row in range(len(target)):
        weights[row, row * len(source) // len(target)] += 0.9
    log_probs = [-0.1] * len(target)
    return {
        "model": "en-de",
        "source": " ".join(source),
        "predictions": [
            {
                "text": " ".join(target),
                "log_prob": sum(log_probs),
                "tokens": target,
                "token_log_probs": log_probs,
                "alternatives": [[[token, -0.1]] for token in target],
            }
        ],
        "attention": {
            "source": source,
            "target": target,
            "kind": "attention",
            "grid": None,
            "num_text_tokens": len(source),
            "weights": [[weights.tolist()]],
            "is_mean": False,
        },
        "input": None,
    }


def answer_with(page, reply):
    """Give all predictions one reply."""
    body = f"event: result\ndata: {json.dumps(reply)}\n\n"
    page.route(
        "**/v1/inspect",
        lambda route: route.fulfill(body=body, content_type="text/event-stream"),
    )


@pytest.mark.quick
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["model", "compare"])
def test_axe_finds_no_serious_fault(visiting, server, view, scheme):
    with visiting(color_scheme=scheme, bypass_csp=True) as page:
        open_at(page, server.url, view=view, source="a b c", reference="c b a")
        if view == "model":
            page.get_by_text("Beam search").click()
            page.wait_for_selector("[role=treeitem]")
            page.locator("[data-side=target] .token").first.click()
        assert find_faults(page) == []


@pytest.mark.quick
@pytest.mark.parametrize("width", [360, 390, 768])
@pytest.mark.parametrize("view", ["model", "compare"])
def test_narrow_screens_need_no_scrolling_sideways(visiting, server, width, view):
    with visiting(viewport={"width": width, "height": 780}, has_touch=True) as page:
        open_at(page, server.url, view=view, source="a b c d e a b", reference="c b a")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if view == "model":
            page.locator("[data-side=target] .token").first.tap()
            box = page.locator(".popover").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("view", ["model", "compare"])
def test_a_link_opens_the_same_view_again(visiting, server, view):
    state = {"view": view, "source": "d c b", "beams": "3", "method": "gradients", "a": "second"}
    seen = []
    for _ in range(2):
        with visiting() as page:
            open_at(page, server.url, **state)
            seen.append((page.inner_text("main"), sources(page), targets(page)))
    assert seen[0] == seen[1]
    assert len(seen[0][1]) >= 3


def test_views_have_links_and_the_back_button_returns(opening):
    page = opening(source="a b")
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector(".sides")
    assert page.get_by_role("link", name="Compare").get_attribute("aria-current") == "page"
    page.go_back()
    page.wait_for_function("() => document.title === 'regard: Model'")
    wait(page)
    assert page.input_value("#source") == "a b"
    assert page.title() == "regard: Model"


def test_the_theme_is_kept(page, server):
    open_at(page, server.url)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):  # auto, light, dark
        page.locator("#theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_maps_have_the_colours_of_the_theme(opening):
    page = opening(model="second", source="a b c")
    images = [page.locator(one).first for one in (".heatmap image", ".tile img")]
    before = [one.get_attribute(name) for one, name in zip(images, ("href", "src"), strict=True)]
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(200)
    after = [one.get_attribute(name) for one, name in zip(images, ("href", "src"), strict=True)]
    assert all(old != new for old, new in zip(before, after, strict=True))


RTL = ["▁هذا", "▁كتاب", "▁جديد", "<eos>"]
EMOJI = ["▁👩‍👩‍👧", "▁🇩🇪", "▁नमस्ते", "▁สวัสดี", "<eos>"]


def test_right_to_left_and_rare_scripts(page, server):
    answer_with(page, inspected(RTL, EMOJI))
    open_at(page, server.url, source="هذا كتاب جديد")
    assert sources(page) == ["هذا", "كتاب", "جديد", "⏎"]
    assert targets(page) == ["👩‍👩‍👧", "🇩🇪", "नमस्ते", "สวัสดี", "⏎"]
    assert page.get_attribute(".lines [data-side=source]", "dir") == "rtl"
    assert page.get_attribute(".lines [data-side=target]", "dir") == "ltr"
    first, last = (
        page.locator(".lines [data-side=source] .token").nth(index).bounding_box()["x"]
        for index in (0, 3)
    )
    assert first > last
    # The arrow keys follow the direction of the script.
    page.locator(".lines [data-side=source] .token").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.index") == "1"


@pytest.mark.quick
def test_long_sentences_stand_in_columns(page, server):
    source = [f"▁word{index}" for index in range(199)] + ["<eos>"]
    target = [f"▁Wort{index}" for index in range(199)] + ["<eos>"]
    answer_with(page, inspected(source, target))
    open_at(page, server.url, source="a long text")
    assert page.get_attribute(".lines", "data-layout") == "down"
    assert len(targets(page)) == 200
    # Only lines with noticeable weights are part of the page.
    assert 200 <= page.locator(".links path").count() < 2000
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.locator(".lines [data-side=target] .token").nth(150).hover()
    assert page.locator(".links path.is-lit").count() >= 1
    assert page.locator(".heatmap image").count() == 1  # not a shape per cell


def save(page, button):
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_plots_are_saved(opening):
    page = opening(source="a b c")
    page.get_by_text("Beam search").click()
    page.wait_for_selector("[role=treeitem]")
    names = []
    for index in range(3):
        name, content = save(page, page.get_by_role("button", name="SVG").nth(index))
        names.append(name)
        root = ElementTree.fromstring(content)
        assert root.tag == f"{SVG}svg"
        shown = [text.text for text in root.iter(f"{SVG}text")]
        assert "a" in shown or "c" in shown
        # Colours are part of the file, which has no style sheet.
        assert not re.search(rb"var\(|style=", content)
        assert len(root.findall(f".//{SVG}rect")) >= 1
        name, content = save(page, page.get_by_role("button", name="PNG").nth(index))
        assert content.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", content[16:24])
        assert min(width, height) > 100
    assert names == ["weights.svg", "heat-map.svg", "beam-tree.svg"]


def test_faults_are_one_sentence(visiting, tiny_run):
    expected = ("Failed to load resource", "ERR_CONNECTION_REFUSED")
    with process_of(f"en-de={tiny_run.folder}", "--max-characters", "20") as server:
        with visiting(expected) as page:
            open_at(page, server.url, source="a " * 30)
            assert "A source may have 20 characters" in page.inner_text("[role=alert]")
            page.fill("#source", "a b")
            page.wait_for_selector(".heatmap svg")
            assert page.locator("[role=alert]").is_hidden()
            server.stop()
            page.fill("#source", "a b c")
            page.wait_for_selector("[role=alert]:not([hidden])")
            assert "The server does not answer" in page.inner_text("[role=alert]")


def test_a_token_is_asked_for(visiting, tiny_run, tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    with process_of(f"en-de={tiny_run.folder}", "--token-file", path) as server:
        with visiting(("401",)) as page:
            page.goto(f"{server.url}/#view=model&source=a+b")
            page.get_by_label("Token").fill("wrong")
            page.keyboard.press("Enter")
            page.get_by_text("The token is wrong.").wait_for()
            page.get_by_label("Token").fill(TOKEN)
            page.keyboard.press("Enter")
            page.wait_for_selector(".heatmap svg")
            page.reload()  # it is kept for the session
            page.wait_for_selector(".heatmap svg")


def test_markup_in_texts_is_shown_as_text(page, server):
    text = "<img src=x onerror=alert(1)>"
    answer_with(page, inspected([text], [text, "<eos>"]))
    open_at(page, server.url, source=text)
    assert page.inner_text(".prediction") == f"{text} <eos>"
    assert page.locator("main img[src=x]").count() == 0


def test_the_view_that_was_chosen_last_is_shown(opening):
    page = opening(source="a b")
    held = []
    page.route("**/static/training.js", lambda route: held.append(route))
    page.get_by_role("link", name="Training").click()
    page.wait_for_timeout(100)
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector(".sides")
    with page.expect_response("**/static/training.js"):
        held[0].continue_()
    page.wait_for_timeout(300)
    assert page.locator(".sides").is_visible()
    assert page.locator(".training").count() == 0


def test_a_view_that_cannot_be_loaded_is_one_sentence(visiting, server):
    with visiting(expected=("ERR_FAILED",)) as page:
        open_at(page, server.url, source="a b")
        page.route("**/static/training.js", lambda route: route.abort())
        page.get_by_role("link", name="Training").click()
        page.get_by_text("The page cannot be loaded completely").wait_for()
        page.get_by_role("link", name="Model").click()
        page.wait_for_selector("#source")


def test_the_source_is_taken_to_the_other_view(opening):
    page = opening(source="a b")
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector(".sides")
    assert page.input_value("#source") == "a b"


def test_an_unknown_theme_is_that_of_the_system(page, server):
    page.goto(server.url)
    page.evaluate("localStorage.setItem('regard-theme', 'none')")
    page.reload()
    page.wait_for_selector("main .view")
    assert page.get_by_label("Colours: Auto").is_visible()
