"""One model: its prediction, its weights, changes and the walk through its search."""

import json
import re
from urllib.parse import parse_qs

import pytest

import regard
from regard.data.example import Example
from regard.interpret.attribution import attribute
from regard.interpret.what_if import change_source
from regard.search.settings import SearchConfig
from regard.tasks.decoding.beam_tree import find_beam_tree
from tests.browser.conftest import open_at, sources, targets, texts, wait

SEARCH = SearchConfig(beams=5)


@pytest.fixture(scope="module")
def task(tiny_run):
    return regard.load(tiny_run.folder, device="cpu")


def state_of(page):
    return {name: one[0] for name, one in parse_qs(page.url.partition("#")[2]).items()}


def token(page, side, index):
    return page.locator(f".lines [data-side={side}] .token").nth(index)


@pytest.mark.quick
def test_a_typed_sentence_is_translated_with_its_attention(opening, task):
    page = opening()
    assert page.locator(".answer").is_hidden()
    page.keyboard.type("a b c")
    page.wait_for_selector(".heatmap svg")
    wait(page)
    (best,) = task.predict(["a b c"], search=SEARCH)[0]
    assert page.inner_text(".prediction") == best.text
    assert targets(page)[:-1] == best.text.split()
    assert sources(page)[:3] == ["a", "b", "c"]
    assert state_of(page)["source"] == "a b c"
    # Each line has the weight of its tokens.
    (expected,) = task.attend([Example("a b c", best.text)])
    mean = expected.mean()
    for path in page.locator(".links path").all():
        row, column = (int(path.get_attribute(f"data-{side}")) for side in ("target", "source"))
        assert mean[row, column] > 0.03
    assert page.locator(".links path").count() >= len(best.tokens)


def test_tokens_appear_one_by_one(visiting, server):
    with visiting(reduced_motion="no-preference") as page:
        page.add_init_script(
            "window.seen = []; new MutationObserver(() => {"
            " const row = document.querySelectorAll('.lines [data-side=target] .token');"
            " if (row.length && seen.at(-1) !== row.length) seen.push(row.length);"
            "}).observe(document, {subtree: true, childList: true});"
        )
        open_at(page, server.url, source="a b c d", beams="1")
        seen = page.evaluate("seen")
        final = len(targets(page))
    assert seen == sorted(seen)
    assert seen[-1] == final
    assert len(seen) > 2


def test_a_hovered_or_focused_word_shows_its_weights(opening, task):
    page = opening(source="a b c")
    text = page.inner_text(".prediction")
    (expected,) = task.attend([Example("a b c", text)])
    weights = expected.mean()[0]
    token(page, "target", 0).hover()
    shown = texts(page, ".lines [data-side=source] .weight")
    for label, weight in zip(shown, weights.tolist(), strict=True):
        number = float(label.removesuffix(" %") or 0)
        assert number == pytest.approx(100 * weight, abs=1.0)
    lit = page.locator(".links path.is-lit")
    assert {lit.nth(index).get_attribute("data-target") for index in range(lit.count())} == {"0"}
    # The keyboard does the same, and names the largest weights for screen readers.
    token(page, "target", 0).focus()
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.dataset.index")
    assert focused == "1"
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert re.search(r"probability [\d.]+ %; weights: \S+ [\d.]+ %", label)


@pytest.mark.quick
def test_an_alternative_is_chosen_and_the_search_continues(opening, task):
    page = opening(source="a b c d")
    before = targets(page)
    token(page, "target", 1).click()
    choice = page.locator(".popover .choices button:not([aria-current])").first
    other = choice.locator("span").first.inner_text()
    choice.click()
    wait(page)
    page.wait_for_selector(".what-if:not([hidden])")
    expected = task.predict(["a b c d"], search=SEARCH, prefix=f"{before[0]} {other}")[0][0]
    assert page.inner_text(".prediction") == expected.text
    assert targets(page)[:2] == [before[0], other]
    assert texts(page, ".token[data-forced] .text") == [before[0], other]
    assert "begins with" in page.inner_text(".what-if h2")
    # The change is part of the address; the back button returns to the prediction before.
    assert len(json.loads(state_of(page)["tokens"])) == 2
    page.reload()
    wait(page)
    assert targets(page)[:2] == [before[0], other]
    page.get_by_role("button", name="Start again").click()
    wait(page)
    assert targets(page) == before


def test_a_source_word_is_replaced_and_kept(opening, task):
    page = opening(source="a b c")
    token(page, "source", 1).click()
    page.get_by_label("By (empty: leave it out)").fill("e")
    page.keyboard.press("Enter")
    page.wait_for_selector(".what-if:not([hidden])")
    expected = change_source(task, "a b c", changed="a e c")
    outputs = [one.get_attribute("aria-label") for one in page.locator(".what-if ol").all()]
    assert outputs == [f"Before: {expected.before.text}", f"After: {expected.after.text}"]
    assert page.locator(".what-if [data-changed]").count() >= 2
    page.get_by_role("button", name="Keep the change").click()
    wait(page)
    assert page.input_value("#source") == "a e c"
    assert page.inner_text(".prediction") == expected.after.text


def test_a_target_word_is_forced(opening):
    page = opening(source="a b c")
    token(page, "target", 0).click()
    page.get_by_label("Force another word").fill("e")
    page.keyboard.press("Enter")
    page.wait_for_selector(".what-if:not([hidden])")
    after = page.locator(".what-if ol").nth(1).get_attribute("aria-label")
    assert after.startswith("After: e")


def test_an_attention_weight_is_set_by_hand(opening):
    page = opening(source="a b c")
    # By keyboard: the first cell, then Enter.
    page.locator(".heatmap svg").focus()
    page.keyboard.press("ArrowRight")
    assert "←" in page.inner_text(".readout")
    page.keyboard.press("Enter")
    page.locator(".popover input[type=range]").focus()
    page.keyboard.press("End")
    with page.expect_request("**/v1/what-if") as request:
        page.get_by_role("button", name="Set", exact=True).click()
    edit = request.value.post_data_json["edit"]
    assert edit == {
        "kind": "attention", "target_position": 0, "source_position": 1, "weight": 1,
        "layer": None, "head": None,
    }  # fmt: skip
    page.wait_for_selector(".what-if:not([hidden])")
    assert "→ 1.00" in page.inner_text(".what-if h2")
    # By the pointer: a cell opens the same form.
    page.locator(".heatmap svg image").click(position={"x": 5, "y": 5})
    assert page.locator(".popover").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(".popover").is_hidden()


def test_a_layer_and_a_head_are_chosen(opening):
    page = opening(model="second", source="a b c")
    tiles = page.locator(".tile")
    # There is one layer, so there is no choice of it.
    assert [texts(page, ".controls label > span"), tiles.count()] == [
        ["Model", "Beams", "Explanation", "Head"],
        2,
    ]
    tiles.nth(1).click()
    assert state_of(page)["layer"] == "0"
    assert state_of(page)["head"] == "1"
    assert tiles.nth(1).get_attribute("aria-pressed") == "true"
    page.reload()
    wait(page)
    assert page.locator("label", has_text="Head").locator("select").input_value() == "1"
    tiles.nth(1).click()  # the mean again
    assert "head" not in state_of(page)


def test_other_explanations(opening, task):
    page = opening(source="a b c")
    text = page.inner_text(".prediction")
    for method in ("gradients", "erasure"):
        with page.expect_response("**/v1/attribution"):
            page.get_by_label("Explanation").select_option(method)
        page.wait_for_function(
            "(name) => document.querySelector('.readout') && location.hash.includes(name)",
            arg=method,
        )
        expected = attribute(task, "a b c", methods=[method], target=text).attributions[0].source
        token(page, "target", 0).hover()
        page.wait_for_function(
            "() => [...document.querySelectorAll('.lines [data-side=source] .weight')]"
            ".some(one => /\\d\\.\\d\\d/.test(one.textContent))"
        )
        shown = texts(page, ".lines [data-side=source] .weight")
        for label, value in zip(shown, expected[0].tolist(), strict=True):
            if label:
                assert float(label) == pytest.approx(value, abs=0.02)
        page.mouse.move(0, 0)


def test_the_beam_tree_is_walked(opening, task):
    page = opening(source="a b c", beams="3")
    page.get_by_text("Beam search").click()
    page.wait_for_selector("[role=treeitem]")
    expected = find_beam_tree(task, "a b c", search=SearchConfig(beams=3))
    assert page.locator("[role=treeitem]").count() == len(expected.nodes)
    selected = page.locator("[role=treeitem][aria-selected=true]")
    assert "result 1" in selected.get_attribute("aria-label")
    selected.focus()
    page.keyboard.press("ArrowLeft")
    assert "result" not in page.evaluate("document.activeElement.getAttribute('aria-label')")
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "1"
    page.keyboard.press("ArrowDown")
    page.get_by_role("button", name="Continue from here").click()
    wait(page)
    assert len(json.loads(state_of(page)["tokens"])) == 1
    assert page.locator(".token[data-forced]").count() == 1


def test_typing_again_cancels_the_search(opening, task):
    page = opening(source="a b c")
    page.fill("#source", "d")
    page.wait_for_function("() => location.hash.includes('source=d')")
    wait(page)
    assert page.inner_text(".prediction") == task.predict(["d"], search=SEARCH)[0][0].text
    page.fill("#source", "")
    page.locator(".answer").wait_for(state="hidden")
    assert page.locator(".heatmap svg").count() == 0 or page.locator(".heatmap").is_hidden()


def events(number, result=None):
    """Return a stream of tokens, perhaps with a result."""
    rows = [
        ("token", {"text": "x " * count, "tokens": ["▁x"] * count})
        for count in range(1, number + 1)
    ]
    rows += [] if result is None else [("result", result)]
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in rows)


def test_a_text_that_is_removed_while_tokens_appear_shows_nothing(visiting, server):
    with visiting(reduced_motion="no-preference") as page:
        open_at(page, server.url)
        reply = page.evaluate(
            "async () => (await fetch('/v1/inspect', {method: 'POST', headers:"
            " {'Content-Type': 'application/json'}, body: JSON.stringify({source: 'a b'})})).json()"
        )
        page.route(
            "**/v1/inspect",
            lambda route: route.fulfill(body=events(40, reply), content_type="text/event-stream"),
        )
        page.fill("#source", "a b")
        page.wait_for_selector(".prediction.is-partial")
        page.evaluate("document.querySelector('#source').value = ''")
        page.press("#source", "Control+Enter")
        page.wait_for_timeout(900)
        assert page.locator(".answer").is_hidden()
        assert page.locator(".lines").is_hidden()


def test_a_stream_that_breaks_off_is_one_sentence(opening, page):
    page.route(
        "**/v1/inspect",
        lambda route: route.fulfill(body=events(2), content_type="text/event-stream"),
    )
    opening(source="a b")
    assert page.inner_text("[role=alert]").startswith("The connection to the server broke off")


def test_a_late_explanation_does_not_replace_another_one(opening):
    page = opening(source="a b c")
    held = []
    page.route("**/v1/attribution", lambda route: held.append(route))
    explanation = page.get_by_label("Explanation")
    explanation.select_option("gradients")
    page.wait_for_timeout(100)
    explanation.select_option("attention")
    with page.expect_response("**/v1/attribution"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert "gradient" not in page.locator(".heatmap svg").get_attribute("aria-label")


def test_a_prediction_without_its_explanation(visiting, server):
    with visiting(expected=("413",)) as page:
        refusal = {"status": 413, "json": {"error": "Too long."}}
        page.route("**/v1/attribution", lambda route: route.fulfill(**refusal))
        open_at(page, server.url, source="a b c", method="gradients")
        assert page.inner_text("[role=alert]") == "Too long."
        assert page.locator(".answer").is_visible()
        assert targets(page)
        page.get_by_label("Explanation").select_option("attention")
        page.wait_for_selector(".heatmap svg")
        assert page.locator("[role=alert]").is_hidden()


def test_a_view_that_is_left_does_nothing_more(opening):
    page = opening(source="a")
    page.fill("#source", "later")
    page.get_by_role("link", name="Training").click()
    page.wait_for_timeout(600)
    assert "later" not in page.url


def test_copying_a_link(opening, page):
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {get: () => window.clipboard})"
    )
    opening(source="a")
    page.get_by_role("button", name="Copy link").click()
    assert "Copy the address" in page.inner_text("[role=alert]")
    page.evaluate("window.clipboard = {writeText: async (text) => (window.copied = text)}")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("copied") == page.url


def test_nothing_follows_a_finished_hypothesis(opening):
    page = opening(source="a b c", beams="3")
    page.get_by_text("Beam search").click()
    page.locator("[role=treeitem][aria-label*='result 1']").press("Enter")
    wait(page)
    assert "tokens" not in state_of(page)
    token(page, "target", 0).click()
    ends = page.locator(".choices button", has_text="⏎")
    assert all(end.is_disabled() for end in ends.all())


def test_a_map_after_an_empty_one_has_keys(opening, page):
    empty = {
        "text": "",
        "log_prob": None,
        "tokens": [],
        "token_log_probs": [],
    }
    reply = {"source": "", "predictions": [empty], "attention": None, "input": None}
    page.route(
        "**/v1/inspect",
        lambda route: route.fulfill(body=events(0, reply), content_type="text/event-stream"),
    )
    page.route(
        "**/v1/attribution",
        lambda route: route.fulfill(
            json={
                "source_tokens": [],
                "target_tokens": [],
                "token_log_probs": [],
                "attributions": [{"source": []}],
            }
        ),
    )
    opening(source="x")
    page.unroute("**/v1/inspect")
    page.unroute("**/v1/attribution")
    page.fill("#source", "a b c")
    page.wait_for_selector(".heatmap svg")
    wait(page)
    page.focus(".heatmap svg")
    assert " ← " in page.inner_text(".readout")


@pytest.mark.parametrize(
    ("text", "tokens", "words"),
    [
        ("A dog, runs.", ["▁A", "▁dog", ",", "▁run", "s", ".", "<eos>"], [0, 1, 1, 2, 2, 2, 3]),
        ("A dog runs.", ["▁A", "<unk>", "<unk>", ".", "<eos>"], [0, 1, 2, 2, 3]),
        ("A doog runs.", ["▁A", "▁d", "<unk>", "g", "▁runs", "."], [0, 1, 1, 1, 2, 2]),
        ("a  dog .", ["a", "dog", ".", "<eos>"], [0, 1, 2, 3]),
        ("to be\nor", ["<0A>", "t", "o", "▁", "b", "e", "<0A>", "o"], [0, 0, 0, 1, 1, 1, 2, 2]),
        ("äöü x", ["▁", "<unk>", "<unk>", "<unk>", "▁x", "<eos>"], [0, 0, 0, 0, 1, 2]),
        ("", ["<eos>"], [0]),
    ],
)
def test_tokens_belong_to_words(opening, text, tokens, words):
    page = opening()
    found = page.evaluate(
        "async ([tokens, text]) => (await import('/static/tokens.js')).wordIndices(tokens, text)",
        [tokens, text],
    )
    assert found == words
