"""Images and recordings on the page: chosen, recorded, and shown with the weights of each word."""

import wave
from dataclasses import asdict, replace

import numpy as np
import pytest
from PIL import Image

import regard
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from tests.browser.conftest import open_at, targets, wait
from tests.fixtures.tasks import shrink
from tests.serve.conftest import process_of

RUNS = {
    "captions": ("scenes:40", "xu2015-laptop"),
    "speech": ("tones:40", "chan2016-laptop"),
    "labels": ("shapes:40", "he2016-laptop"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A captioner, a recogniser of speech and a classifier of images, trained for two steps."""
    runs = tmp_path_factory.mktemp("runs")
    found = {}
    for name, (data, recipe) in RUNS.items():
        settings = tuple(shrink(asdict(load_recipe(recipe))))
        request = Request(
            data=data, recipe=recipe, settings=settings, out=runs / name, device="cpu"
        )
        found[name] = train(request).folder
    return found


@pytest.fixture(scope="module")
def server(folders):
    with process_of(*(f"{name}={folder}" for name, folder in folders.items())) as one:
        yield one


@pytest.fixture
def photo(tmp_path):
    pixels = np.zeros((48, 48, 3), np.uint8)
    pixels[10:30, 20:40, 1] = 255
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return str(tmp_path / "photo.png")


@pytest.fixture
def recording(tmp_path):
    samples = 0.3 * np.sin(np.arange(8000) * 0.3)
    with wave.open(str(tmp_path / "one.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((32767 * samples).astype("<i2").tobytes())
    return str(tmp_path / "one.wav")


def choose(page, path):
    """Choose a file and wait for its prediction."""
    page.set_input_files("#file", path)
    page.wait_for_selector(".media:not([hidden])")
    wait(page)


@pytest.mark.quick
def test_a_photo_with_the_region_of_each_word(page, server, folders, photo):
    open_at(page, server.url, model="captions")
    choose(page, photo)
    task = regard.load(folders["captions"], device="cpu")
    (best,) = task.predict([photo], search=replace(task.search, beams=5))[0]
    assert page.inner_text(".prediction") == (best.text or "(empty)")
    tiles = page.locator(".word-tile")
    assert tiles.count() == len(best.tokens)
    # The overlay has the cells of the encoder, the darkest where the weight is smallest.
    (found,) = task.attend([task.example_to_show(photo, best.text)[0]])
    weights = found.mean()[0].reshape(found.grid).numpy()
    tiles.first.click()
    alphas = page.evaluate(
        "() => { const one = document.querySelector('.stage .overlay');"
        " const data = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
        " return [one.height, one.width, ...data.filter((_, index) => index % 4 === 3)]; }"
    )
    assert tuple(alphas[:2]) == found.grid
    expected = 205 * (1 - weights / weights.max())
    assert np.allclose(np.reshape(alphas[2:], found.grid), expected, atol=3)
    # Step through the words, by buttons and keys.
    page.get_by_role("button", name="Next word").click()
    assert tiles.nth(1).get_attribute("aria-selected") == "true"
    tiles.nth(1).focus()
    page.keyboard.press("ArrowRight")
    assert tiles.nth(min(2, tiles.count() - 1)).get_attribute("aria-selected") == "true"
    assert page.locator(".step-caption").inner_text().startswith(targets(page)[2])


def test_a_classified_photo_with_its_saliency(page, server, folders, photo):
    open_at(page, server.url, model="labels")
    choose(page, photo)
    (best, *_) = regard.load(folders["labels"], device="cpu").predict([photo], num_best=5)[0]
    assert page.inner_text(".prediction") == best.text
    assert page.inner_text(".answer .note:last-child").count("%") == 5
    assert page.locator(".stage img").evaluate("one => one.naturalWidth") > 0
    with page.expect_response("**/v1/attribution"):
        page.locator("label", has_text="Explanation").locator("select").select_option("gradients")


def test_a_recording_with_the_span_of_each_word(page, server, recording):
    open_at(page, server.url, model="speech")
    choose(page, recording)
    assert page.locator(".word-tile .span").count() == len(targets(page))
    assert page.locator("audio").evaluate("one => one.src.startsWith('data:audio')")
    size = page.locator(".stage img").evaluate("one => [one.naturalWidth, one.naturalHeight]")
    assert size[0] > 10
    assert page.locator(".heatmap svg").is_visible()


@pytest.mark.quick
def test_a_recording_of_the_microphone(page, server):
    open_at(page, server.url, model="speech")
    page.get_by_role("button", name="Record").click()
    page.wait_for_timeout(1200)
    with page.expect_request("**/v1/inspect") as request:
        page.get_by_role("button", name="Stop").click()
    wait(page)
    assert request.value.post_data_json["source"]["data"].startswith("data:audio/wav;base64,UklGR")
    assert page.locator(".stage img").is_visible()
    assert page.locator("[role=alert]").first.is_hidden()


def test_a_file_of_the_wrong_kind_is_one_sentence(visiting, server, tmp_path):
    path = tmp_path / "notes.png"
    path.write_text("no image")
    with visiting(("422",)) as page:
        open_at(page, server.url, model="captions")
        page.set_input_files("#file", str(path))
        page.wait_for_selector("[role=alert]:not([hidden])")
        assert "The upload" in page.inner_text("[role=alert]:not([hidden])")


def choose_model(page, name):
    page.locator(".controls select").first.select_option(name)


def test_the_same_file_is_chosen_again(page, server, photo):
    open_at(page, server.url, model="captions")
    for _ in range(2):
        with page.expect_response("**/v1/inspect"):
            page.set_input_files("#file", photo)
        wait(page)
        choose_model(page, "speech")
        choose_model(page, "captions")


def test_a_recording_that_is_played_is_removed(page, server, recording):
    open_at(page, server.url, model="speech")
    page.set_input_files("#file", recording)
    page.wait_for_selector("audio")
    wait(page)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => document.querySelector('audio').currentTime > 0")
    choose_model(page, "captions")
    page.wait_for_timeout(500)  # its events still come
    assert page.locator(".media").is_hidden()


def test_the_microphone_is_released_with_the_model(page, server):
    page.add_init_script(
        "window.tracks = [];"
        "const devices = navigator.mediaDevices ?? {}, ask = devices.getUserMedia?.bind(devices);"
        "devices.getUserMedia = async (wanted) => {"
        " const media = await ask(wanted); tracks.push(...media.getTracks()); return media; };"
    )
    open_at(page, server.url, model="speech")
    for other in ("captions", "labels"):
        choose_model(page, "speech")
        page.get_by_role("button", name="Record").click()
        page.get_by_role("button", name="Stop").wait_for()
        choose_model(page, other)
        page.wait_for_timeout(100)
        assert page.evaluate("tracks.every((track) => track.readyState === 'ended')")
    # Also if the browser has not answered yet.
    choose_model(page, "speech")
    page.evaluate(
        "() => { document.querySelector('.drop button').click(); location.hash = 'view=compare'; }"
    )
    page.get_by_text("No model of this server reads texts").wait_for()
    page.wait_for_function("() => tracks.length === 3")
    page.wait_for_function("() => tracks.every((track) => track.readyState === 'ended')")
