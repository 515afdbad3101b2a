"""The view of trainings in a browser: curves, samples and progress of runs while they grow."""

import json
import shutil
from contextlib import ExitStack

import pytest

from regard.runs.folder import SAMPLES, TRAINING_LOG
from regard.runs.lock import FolderLock
from tests.browser.conftest import find_faults
from tests.serve.conftest import process_of

STEPS = range(10, 210, 10)
REFERENCE = "ein kleiner Hund rennt"
PREDICTIONS = ["ein", "ein Hund", "ein kleiner Hund", REFERENCE]


def write_rows(path, rows, mode="a"):
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def training_rows(step, offset=0.0):
    position = {"step": step, "epoch": 1, "seconds": step / 10}
    loss = 5 / (1 + step / 40) + offset
    rows = [{"kind": "train", **position, "loss": loss, "tokens_per_second": 3000.0 + step}]
    if step % 50 == 0:
        score = {"value": step / 10, "metric": "bleu", "bleu": step / 10, "loss": loss + 0.2}
        rows.append({"kind": "valid", **position, **score, "is_best": True})
    return rows


def samples(step, prediction):
    target = [*prediction.split(), "<eos>"]
    weights = [[0.7 if row == column else 0.1 for column in range(4)] for row in range(len(target))]
    source = ["a", "little", "dog", "runs"]
    attention = {
        "source": source, "target": target, "kind": "attention", "grid": None, "weights": weights,
    }  # fmt: skip
    return [
        {
            "step": step, "epoch": 1, "seconds": step / 10, "example": example,
            "source": " ".join(source), "reference": REFERENCE, "prediction": prediction,
            "attention": attention,
        }
        for example in range(2)
    ]  # fmt: skip


def write_run(tiny_run, folder, *, offset=0.0, reason=None):
    """Write a run with the settings of another one, and the logs of a longer training."""
    shutil.copytree(tiny_run.folder, folder)
    rows = [row for step in STEPS for row in training_rows(step, offset)]
    if reason:
        rows.append({"kind": "stop", "step": 200, "epoch": 1, "seconds": 20.0, "reason": reason})
    write_rows(folder / TRAINING_LOG, rows, "w")
    found = [
        row
        for step, prediction in zip((50, 100, 150, 200), PREDICTIONS, strict=True)
        for row in samples(step, prediction)
    ]
    write_rows(folder / SAMPLES, found, "w")
    return folder


@pytest.fixture(scope="module")
def runs(tiny_run, tmp_path_factory):
    """A folder with runs of all kinds."""
    root = tmp_path_factory.mktemp("trainings") / "runs"
    write_run(tiny_run, root / "finished", reason="steps")
    write_run(tiny_run, root / "group" / "interrupted", offset=0.5, reason="interrupted")
    write_run(tiny_run, root / "killed", offset=1.0)
    return root


@pytest.fixture(scope="module")
def server(runs):
    with process_of(runs, command="watch") as one:
        yield one


@pytest.fixture
def running(tiny_run, tmp_path):
    """A run that another process seems to train, and its server."""
    folder = write_run(tiny_run, tmp_path / "runs" / "now")
    with ExitStack() as stack:
        stack.enter_context(FolderLock(folder))
        yield folder, stack.enter_context(process_of(tmp_path / "runs", command="watch"))


def show(page, server, **state):
    page.goto(f"{server.url}/#" + "&".join(f"{name}={value}" for name, value in state.items()))
    page.locator(".run").first.wait_for()
    page.locator(".chart .series path[d^=M]").first.wait_for()


def chart(page, name):
    return page.get_by_role("region", name=name, exact=True)


def values(page, name):
    """Return the values of the legend of a chart by name."""
    items = chart(page, name).locator(".legend li").all()
    return {
        item.locator(".legend-name").inner_text(): item.locator(".number").inner_text()
        for item in items
    }


def test_a_finished_run(page, server):
    show(page, server, view="training", runs="finished")
    item = page.locator('.run[data-name="finished"]')
    assert "finished" in item.locator(".badge").inner_text()
    assert "step 200 of" in item.inner_text() and "best BLEU 20 at step 200" in item.inner_text()
    assert values(page, "Loss") == {"training": "0.8333", "validation": "1.033"}
    assert values(page, "Validation BLEU") == {"finished": "20"}
    assert values(page, "Throughput") == {"finished": "3,200/s"}
    rows = page.locator(".prediction-row .text").all_inner_texts()
    assert rows == PREDICTIONS[::-1]
    assert page.locator(".predictions li").first.locator(".right").is_visible()
    marks = page.locator(".predictions li mark").all_inner_texts()
    assert marks == ["rennt", "kleiner", "Hund"]
    page.get_by_text("Last values as a table").click()
    cells = page.locator(".values tbody td").all_inner_texts()
    assert cells == ["finished", "200", "0.8333", "1.033", "BLEU 20", "20", "3,200"]


def test_status_of_each_run(page, server):
    show(page, server, view="training")
    badges = {
        item.get_attribute("data-name"): item.locator(".badge").inner_text()
        for item in page.locator(".run").all()
    }
    assert badges == {
        "finished": "finished", "group/interrupted": "interrupted", "killed": "not running",
    }  # fmt: skip


@pytest.mark.quick
def test_a_running_training_is_followed(page, running):
    folder, server = running
    show(page, server, view="training")
    assert page.locator(".badge").inner_text() == "running"
    assert page.locator(".run input").is_checked()
    for step, prediction in ((250, "ein Hund rennt"), (300, "ein kleiner Hund rennt fort")):
        write_rows(folder / TRAINING_LOG, training_rows(step))
        write_rows(folder / SAMPLES, samples(step, prediction))
        page.get_by_text(f"step {step} of").wait_for(timeout=10_000)
        page.locator(f'.predictions li[data-step="{step}"][data-current]').wait_for()
        assert page.locator(".player output").inner_text() == f"step {step}"
        assert page.locator(".prediction-row .text").first.inner_text() == prediction
    assert values(page, "Validation BLEU") == {"now": "30"}


def test_a_resumed_training_replaces_its_curves(page, running):
    folder, server = running
    show(page, server, view="training")
    rows = [row for step in (10, 20, 30) for row in training_rows(step)]
    write_rows(folder / "new", rows, "w")
    (folder / "new").replace(folder / TRAINING_LOG)
    page.get_by_text("step 30 of").wait_for(timeout=10_000)
    assert list(values(page, "Loss")) == ["training"]


def test_a_chosen_validation_stays_while_others_arrive(page, running):
    folder, server = running
    show(page, server, view="training")
    page.get_by_role("slider", name="Validation").focus()
    page.keyboard.press("Home")
    assert page.locator(".player output").inner_text() == "step 50"
    assert not page.get_by_label("Follow the newest").is_checked()
    write_rows(folder / SAMPLES, samples(250, "neu"))
    page.locator('.predictions li[data-step="250"]').wait_for(timeout=10_000)
    assert page.locator(".player output").inner_text() == "step 50"
    page.get_by_label("Follow the newest").check()
    assert page.locator(".player output").inner_text() == "step 250"


def test_runs_that_begin_later_appear(page, server, runs, tiny_run):
    show(page, server, view="training")
    write_run(tiny_run, runs / "later", reason="steps")
    try:
        page.locator('.run[data-name="later"]').wait_for(timeout=20_000)
    finally:
        shutil.rmtree(runs / "later")


def test_several_runs_and_a_link_to_them(page, server):
    show(page, server, view="training", runs="finished")
    page.get_by_role("checkbox", name="killed").check()
    page.get_by_role("checkbox", name="group/interrupted").check()
    chart(page, "Loss").get_by_text("killed: training").wait_for()
    page.get_by_text("group/interrupted: training").wait_for()
    page.get_by_label("Horizontal axis").select_option("Time")
    page.get_by_label("Logarithmic loss").check()
    page.get_by_role("combobox", name="Run", exact=True).select_option("killed")
    page.get_by_role("combobox", name="Example", exact=True).select_option("Example 2")
    page.locator('.predictions li[data-step="100"] button').click()
    expected = values(page, "Loss")
    assert len(expected) == 6
    page.goto("about:blank")
    page.go_back()
    page.locator(".chart .series path[d^=M]").first.wait_for()
    page.get_by_text("group/interrupted: training").wait_for()
    assert values(page, "Loss") == expected
    assert page.get_by_label("Horizontal axis").input_value() == "seconds"
    assert page.get_by_label("Logarithmic loss").is_checked()
    assert page.get_by_role("combobox", name="Run", exact=True).input_value() == "killed"
    assert page.get_by_role("combobox", name="Example", exact=True).input_value() == "1"
    assert page.locator(".player output").inner_text() == "step 100"
    page.get_by_role("checkbox", name="finished").uncheck()
    page.get_by_text("finished: training").wait_for(state="detached")


def test_values_at_a_position(page, server):
    show(page, server, view="training", runs="finished")
    image = chart(page, "Loss").locator("svg")
    box = image.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 100)
    # The other charts show the same position.
    for name, expected in (("Loss", "4"), ("Throughput", "3,010/s")):
        assert expected in values(page, name).values()
        assert chart(page, name).locator(".crosshair").get_attribute("visibility") == "visible"
    page.mouse.move(0, 0)
    assert chart(page, "Loss").locator(".crosshair").get_attribute("visibility") == "hidden"
    image.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert "step 190" in chart(page, "Loss").inner_text()
    assert "step 190: training 0.8696" in page.locator("#status").inner_text()
    page.keyboard.press("Home")
    assert "step 10" in chart(page, "Loss").inner_text()
    assert "Loss by step. training from 4 to 0.8333" in image.get_attribute("aria-label")


def test_validations_are_played(page, server):
    show(page, server, view="training", runs="finished")
    labels = page.locator(".sample-map .heatmap text[data-row]")
    assert labels.count() == 5
    page.get_by_role("button", name="Play").click()
    assert labels.count() == 2
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_text("step 100", exact=True).wait_for()
    page.get_by_role("button", name="Play").wait_for()
    assert page.get_by_label("Follow the newest").is_checked()
    assert labels.count() == 5


def test_a_run_without_samples_or_attention(page, running):
    folder, server = running
    (folder / SAMPLES).unlink()
    show(page, server, view="training")
    page.get_by_text("This training has no samples yet").wait_for()
    row = {**samples(250, "label")[0], "source": None, "attention": None, "probability": 0.25}
    write_rows(folder / SAMPLES, [row])
    page.get_by_text("25 %").wait_for(timeout=10_000)
    assert "no attention weights" in page.locator(".sample-map").inner_text()
    assert not page.locator(".sample-texts").get_by_text("Source").is_visible()


def test_weights_over_an_image(page, running):
    folder, server = running
    weights = [[0.0, 0.0, 0.0, 1.0], [0.25] * 4]
    attention = {
        "source": ["1,1", "1,2", "2,1", "2,2"], "target": ["red", "<eos>"], "kind": "attention",
        "grid": [2, 2], "weights": weights,
    }  # fmt: skip
    write_rows(folder / SAMPLES, [{**samples(250, "red")[0], "attention": attention}], "w")
    show(page, server, view="training")
    page.locator(".cell-tile").first.wait_for()
    assert page.locator(".cell-tile figcaption").all_inner_texts() == ["red", "⏎"]
    assert not page.locator(".sample-map .heatmap").is_visible()


def test_texts_are_no_markup(page, tiny_run, tmp_path):
    name = "<img src=x onerror=alert(1)> & “ü”"
    folder = write_run(tiny_run, tmp_path / "runs" / name, reason="<b>steps</b>")
    write_rows(folder / SAMPLES, samples(250, "<script>alert(1)</script>"))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    with process_of(tmp_path / "runs", command="watch") as server:
        show(page, server, view="training")
        assert page.locator(".run-name").inner_text() == name
        assert page.locator(".prediction-row .text").first.inner_text().startswith("<script>")
        assert page.locator("main img[src=x], main script").count() == 0


def count_requests(page, milliseconds):
    found = []
    page.on("request", lambda request: found.append(request.url))
    page.wait_for_timeout(milliseconds)
    return len(found)


def test_requests_are_few_when_nothing_runs_or_the_page_is_hidden(page, server, running):
    show(page, server, view="training", runs="finished")
    page.wait_for_timeout(500)
    assert count_requests(page, 4_000) == 0
    show(page, running[1], view="training")
    assert 2 <= count_requests(page, 4_000) <= 8
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.wait_for_timeout(2_000)
    assert count_requests(page, 4_000) == 0


def test_a_server_that_ends_is_reported(visiting, running):
    with visiting(expected=("ERR_CONNECTION",)) as page:
        show(page, running[1], view="training")
        running[1].stop()
        page.get_by_text("The server does not answer").wait_for(timeout=10_000)


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visiting, server, width, scheme):
    size = {"width": width, "height": 800}
    with visiting(color_scheme=scheme, viewport=size, bypass_csp=True) as page:
        show(page, server, view="training", runs="finished//killed")
        page.get_by_text("Last values as a table").click()
        assert find_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_trainings_of_a_server_of_models(page, tiny_run):
    with process_of(f"en-de={tiny_run.folder}") as server:
        page.goto(server.url)
        page.get_by_role("link", name="Training").click()
        page.locator(".chart .series path[d^=M]").first.wait_for()
        assert page.locator(".run-name").all_inner_texts() == ["en-de"]
        page.locator(".predictions li").first.wait_for()


def test_rows_are_asked_for_once_at_a_time(page, server):
    held = []
    page.route("**/v1/trainings/finished?*", lambda route: held.append(route))
    page.goto(f"{server.url}/#view=training&runs=finished")
    box = page.locator('.run[data-name="killed"] input')
    page.wait_for_timeout(500)
    assert len(held) == 1
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(300)
    assert len(held) == 1
    held[0].continue_()
    box.wait_for()
    assert page.locator(".predictions li").count() == len(PREDICTIONS)


def test_playing_ends_with_another_run(page, server):
    def without_samples(route):
        reply = route.fetch()
        route.fulfill(response=reply, json=reply.json() | {"samples": []})

    page.route("**/v1/trainings/killed?*", without_samples)
    show(page, server, view="training", runs="finished//killed", run="finished")
    page.locator(".player").get_by_role("button", name="Play").click()
    page.locator(".samples .controls select").first.select_option("killed")
    page.wait_for_timeout(1800)
    page.get_by_text("This training has no samples.").wait_for()


def test_runs_that_are_shown_together_have_other_colours(page, server, runs, tiny_run, tmp_path):
    folder = tmp_path / "many"
    for index in range(9):
        write_run(tiny_run, folder / f"run{index}")
    with process_of(folder, command="watch") as many:
        show(page, many, view="training", runs="run0//run8")
        swatches = page.locator(".run .swatch:visible").all()
        assert len({one.get_attribute("class") for one in swatches}) == len(swatches) == 2
