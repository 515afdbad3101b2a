"""Predictions over HTTP equal those of the package."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import regard
from regard.search.settings import SearchConfig


@pytest.fixture(scope="module")
def task(tiny_run):
    return regard.load(tiny_run.folder, device="cpu")


def predict(client, **body):
    reply = client.post("/v1/predict", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_predictions_are_those_of_the_package(client, task):
    found = predict(client, sources=["a b c", "", "e d"], num_best=2)
    expected = task.predict(["a b c", "", "e d"], num_best=2)
    assert found["model"] == "en-de"
    assert [one["source"] for one in found["results"]] == ["a b c", "", "e d"]
    for result, best in zip(found["results"], expected, strict=True):
        assert [one["text"] for one in result["predictions"]] == [one.text for one in best]
        for one, other in zip(result["predictions"], best, strict=True):
            assert one["tokens"] == list(other.tokens)
            assert one["log_prob"] == pytest.approx(other.log_prob, abs=1e-4)


def test_search_settings_of_a_request(client, task):
    search = SearchConfig(temperature=1.5, seed=3)
    found = predict(client, sources="a b c d", search={"temperature": 1.5, "seed": 3}, num_best=3)
    (expected,) = task.predict(["a b c d"], search=search, num_best=3)
    (result,) = found["results"]
    assert [one["text"] for one in result["predictions"]] == [one.text for one in expected]


def test_prefix_of_a_request(client, task):
    found = predict(client, sources="a b c", prefix="b")
    assert found["results"][0]["predictions"][0]["text"].startswith("b")


def test_models_are_chosen_by_name(client):
    assert predict(client, sources="a b", model="second")["model"] == "second"
    reply = client.post("/v1/predict", json={"sources": "a", "model": "third"})
    assert reply.status_code == 404
    assert "'en-de', 'second'" in reply.json()["error"]


def test_requests_at_the_same_time_get_their_own_results(client, task):
    sources = [" ".join(f"{number:04b}".translate({48: "a", 49: "b"})) for number in range(16)]
    expected = task.translate(sources)
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda one: predict(client, sources=one), sources))
    assert [one["results"][0]["source"] for one in replies] == sources
    assert [one["results"][0]["predictions"][0]["text"] for one in replies] == expected


def test_a_form_is_the_same_as_json(client):
    expected = predict(client, sources=["a b c", "d e"], search={"beams": 2})
    form = {"sources": ["a b c", "d e"], "search": '{"beams": 2}'}
    assert client.post("/v1/predict", data=form).json() == expected


@pytest.mark.parametrize("search", [{"beams": 1}, {"beams": 4}, {"temperature": 1.0}])
def test_the_last_event_of_a_stream_is_the_prediction(client, search):
    body = {"sources": "a b c d e", "search": search}
    with client.stream("POST", "/v1/predict", json={**body, "stream": True}) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        blocks = [block for block in reply.read().decode().split("\n\n") if block]
    events = [block.split("\n") for block in blocks if not block.startswith(":")]
    names = [name.removeprefix("event: ") for name, _ in events]
    data = [json.loads(line.removeprefix("data: ")) for _, line in events]
    assert names == ["token"] * (len(names) - 1) + ["result"]
    assert data[-1] == predict(client, **body)
    assert len(names) > 2
    if search != {"beams": 4}:
        best = data[-1]["results"][0]["predictions"][0]
        assert [one["tokens"] for one in data[:-1]] == [
            best["tokens"][: length + 1] for length in range(len(best["tokens"]))
        ]
        assert data[-2]["text"] == best["text"]


@pytest.fixture(scope="module")
def image_client(task_run, serving_module):
    folders = {name: task_run(name).folder for name in ("classification", "image_to_image")}
    runs = [f"{name}={folder}" for name, folder in folders.items()]
    with serving_module(*runs, f"grounding={task_run('grounding').folder}") as client:
        yield client


@pytest.fixture(scope="module")
def serving_module():
    from tests.serve.conftest import client_of

    return client_of


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    from tests.fixtures.tasks import write_image

    path = tmp_path_factory.mktemp("images") / "one.png"
    write_image(path, 3)
    return path


def test_uploads_in_base64_and_as_files(image_client, task_run, image):
    (expected,) = regard.load(task_run("classification").folder).predict([str(image)])
    data = base64.b64encode(image.read_bytes()).decode()
    for reply in (
        image_client.post("/v1/predict", json={"sources": {"data": data}}),
        image_client.post(
            "/v1/predict", json={"sources": [{"data": f"data:image/png;base64,{data}"}]}
        ),
        image_client.post("/v1/predict", files={"file": ("x.png", image.read_bytes())}),
    ):
        assert reply.status_code == 200, reply.text
        (result,) = reply.json()["results"]
        assert result["source"] is None
        assert result["predictions"][0]["text"] == expected[0].text
    assert list(image_client.state.uploads._folder.iterdir()) == []


def test_predicted_images_are_data_urls(image_client, image):
    body = {"model": "image_to_image", "sources": {"data": _base64(image)}}
    found = predict(image_client, **body)["results"][0]["predictions"][0]
    head, _, data = found["image"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_a_text_with_an_image(image_client, image):
    source = {"data": _base64(image), "text": "the red dog"}
    found = predict(image_client, model="grounding", sources=source)
    assert found["results"][0]["source"] == "the red dog"


def test_a_path_is_never_a_source(image_client, image):
    for source in (str(image), "fashion-mnist/train/1", f"the red dog\t{image}"):
        for model in ("classification", "grounding"):
            reply = image_client.post("/v1/predict", json={"model": model, "sources": source})
            assert reply.status_code == 422
            assert "must be an upload" in reply.json()["error"]
    body = {"model": "classification", "sources": {"data": _base64(image), "text": "a"}}
    assert image_client.post("/v1/predict", json=body).status_code == 422


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"not an image", b"\x89PNG\r\n\x1a\n" * 9])
def test_damaged_uploads_are_refused(image_client, content):
    body = {"sources": {"data": base64.b64encode(content).decode()}}
    reply = image_client.post("/v1/predict", json=body)
    assert reply.status_code == 422
    assert reply.json()["error"].startswith("The upload")
    assert "/" not in reply.json()["error"].replace("regard[", "")


def _base64(path):
    return base64.b64encode(path.read_bytes()).decode()
