"""Two models, or two explanations, side by side."""

from dataclasses import replace

import pytest
from sacrebleu import sentence_bleu

import regard
from regard.runs.train import train
from tests.browser.conftest import open_at, wait
from tests.serve.conftest import process_of


@pytest.fixture(scope="module")
def tasks(tiny_run, tiny_transformer_run):
    return [regard.load(run.folder, device="cpu") for run in (tiny_run, tiny_transformer_run)]


def sides(page):
    return [page.locator(".side").nth(index) for index in range(2)]


@pytest.mark.quick
def test_two_models_with_scores(opening, tasks):
    page = opening(view="compare", source="a b c")
    predictions = [task.translate("a b c") for task in tasks]
    assert [side.locator(".prediction").inner_text() for side in sides(page)] == predictions
    page.get_by_label("Reference").fill("c b a")
    page.wait_for_selector(".scores strong")
    for side, text in zip(sides(page), predictions, strict=True):
        side.locator(".scores strong").first.wait_for()
        bleu = sentence_bleu(text, ["c b a"]).score
        assert side.locator(".scores strong").first.inner_text() == f"BLEU {bleu:.1f}"
    assert "22,521 parameters" in sides(page)[0].inner_text()


def test_attention_beside_gradients(opening):
    page = opening(view="compare", source="a b c", a="en-de", b="en-de")
    with page.expect_response("**/v1/attribution"):
        sides(page)[1].get_by_label("Explanation").select_option("gradients")
    page.wait_for_function(
        "() => document.querySelectorAll('.side')[1].querySelector('.heatmap svg')"
        ".getAttribute('aria-label').includes('gradient')"
    )
    labels = [side.locator(".heatmap svg").get_attribute("aria-label") for side in sides(page)]
    assert ["attention" in labels[0], "gradient × input" in labels[1]] == [True, True]
    # A source word is marked on both sides.
    sides(page)[0].locator("[data-side=source] .token").nth(1).hover()
    assert page.locator("[data-side=source] .token.is-lit").count() == 2


@pytest.fixture(scope="module")
def fixed_context_run(reverse_files, tmp_path_factory):
    """A model without attention."""
    out = tmp_path_factory.mktemp("runs") / "fixed"
    request = reverse_files.request(out, "train.max_steps=2", recipe="cho2014-laptop")
    settings = tuple(one for one in request.settings if "attention_dim" not in one)
    return train(replace(request, settings=settings))


def test_a_model_without_attention(visiting, tiny_run, fixed_context_run):
    names = (f"en-de={tiny_run.folder}", f"fixed={fixed_context_run.folder}")
    with process_of(*names) as server, visiting() as page:
        open_at(page, server.url, view="compare", source="a b c")
        left, right = sides(page)
        assert left.locator(".heatmap svg").is_visible()
        assert "This model has no attention" in right.inner_text()
        right.get_by_label("Explanation").select_option("gradients")
        right.locator(".heatmap svg").wait_for()
        # The view of one model shows gradients by itself.
        open_at(page, server.url, view="model", model="fixed", source="a b")
        page.locator(".heatmap svg").wait_for()
        assert "gradient" in page.locator(".heatmap svg").get_attribute("aria-label")


def test_sides_of_a_removed_text_are_not_busy(opening):
    page = opening(view="compare", source="a b c")
    page.route("**/v1/inspect", lambda route: None)  # never answered
    page.fill("#source", "d")
    page.wait_for_selector("[aria-busy=true]")
    page.fill("#source", "")
    wait(page)
    assert [side.locator(".prediction").inner_text() for side in sides(page)] == ["", ""]


def test_an_error_leaves_no_earlier_prediction(visiting, server):
    with visiting(expected=("413",)) as page:
        open_at(page, server.url, view="compare", source="a b c")
        refusal = {"status": 413, "json": {"error": "Too long."}}
        page.route("**/v1/inspect", lambda route: route.fulfill(**refusal))
        page.fill("#source", "d")
        page.get_by_text("Too long.").wait_for()
        wait(page)
        assert [side.locator(".prediction").inner_text() for side in sides(page)] == ["", ""]


def test_a_late_explanation_does_not_replace_another_one(opening):
    page = opening(view="compare", source="a b c")
    held = []
    page.route("**/v1/attribution", lambda route: held.append(route))
    explanation = sides(page)[0].get_by_label("Explanation")
    explanation.select_option("gradients")
    page.wait_for_timeout(100)
    explanation.select_option("attention")
    with page.expect_response("**/v1/attribution"):
        held[0].continue_()
    page.wait_for_timeout(200)
    label = sides(page)[0].locator(".heatmap svg").get_attribute("aria-label")
    assert "gradient" not in label
