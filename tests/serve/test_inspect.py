"""The requests of the page: inspected predictions and scores of a sentence."""

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from sacrebleu import sentence_bleu, sentence_chrf

import regard
from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.interpret.inspection import inspect_source
from regard.search.settings import SearchConfig
from regard.serve.streaming import Throttle
from tests.serve.conftest import LIMITS

SEARCH = {"beams": 3}


@pytest.fixture(scope="module")
def task(tiny_run):
    return regard.load(tiny_run.folder, device="cpu")


def inspect(client, **body):
    reply = client.post("/v1/inspect", json={"source": "a b c", "search": SEARCH, **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_an_inspected_prediction_is_that_of_predict(client, task):
    found = inspect(client)
    (expected,) = task.predict(["a b c"], search=SearchConfig(beams=3))
    best = found["predictions"][0]
    assert (best["text"], best["tokens"]) == (expected[0].text, [*expected[0].tokens])
    assert best["log_prob"] == pytest.approx(expected[0].log_prob, abs=1e-4)
    assert [len(several) for several in best["alternatives"]] == [5] * len(best["tokens"])
    assert (found["source"], found["input"]) == ("a b c", None)


def test_attention_weights_are_those_of_the_predicted_tokens(client, task):
    found = inspect(client)["attention"]
    (expected,) = task.attend([Example("a b c", task.translate("a b c"))])
    assert np.allclose(found["weights"], expected.weights, atol=1e-4)
    assert (found["source"], found["target"]) == ([*expected.source], [*expected.target])
    assert (found["kind"], found["is_mean"]) == ("attention", False)


def test_large_attention_weights_are_averaged(served_runs, serving):
    with serving(served_runs[1], limits=replace(LIMITS, weights=30)) as client:
        found = inspect(client)["attention"]
        assert found["is_mean"]
        assert np.shape(found["weights"])[:2] == (1, 1)


def test_the_search_continues_after_given_tokens(client, task):
    first = inspect(client)["predictions"][0]
    other = next(token for token, _ in first["alternatives"][0] if token != first["tokens"][0])
    found = inspect(client, tokens=[other])["predictions"][0]
    assert found["tokens"][0] == other
    (expected,) = task.predict(["a b c"], search=SearchConfig(beams=3), prefix=other)
    assert found["tokens"] == [*expected[0].tokens]
    # All tokens of a prediction as the beginning give the prediction itself.
    same = inspect(client, tokens=first["tokens"][:-1])["predictions"][0]
    assert same["tokens"] == first["tokens"]


def test_the_events_of_a_stream_have_attention_weights(client):
    body = {"source": "a b c", "search": {"beams": 1}, "stream": True}
    text = client.post("/v1/inspect", json=body).text
    events = [part.splitlines() for part in text.split("\n\n") if part.startswith("event: ")]
    names = [lines[0].removeprefix("event: ") for lines in events]
    data = [json.loads(lines[1].removeprefix("data: ")) for lines in events]
    assert names == ["token"] * (len(names) - 1) + ["result"]
    assert len(names) > 1
    assert data[-1] == inspect(client, search={"beams": 1})
    weights = np.array(data[0]["weights"])
    assert weights.shape == (len(data[0]["tokens"]), len(data[0]["source"]))
    # The weights of the first tokens do not depend on later ones.
    final = np.mean(data[-1]["attention"]["weights"], axis=(0, 1))
    assert np.allclose(weights, final[: len(weights)], atol=1e-3)


def test_events_have_no_large_attention_weights(client, monkeypatch):
    monkeypatch.setattr("regard.serve.routes.inspecting.EVENT_WEIGHTS", 3)
    text = client.post("/v1/inspect", json={"source": "a b c", "stream": True}).text
    assert "event: token" in text
    partial, _, result = text.partition("event: result")
    assert "weights" not in partial
    assert "weights" in result


def test_requests_that_are_refused(client, task_run, serving):
    for change, part in (
        ({"tokens": ["no token"]}, "must be in the vocabulary"),
        ({"tokens": ["<eos>"]}, "`tokens` must not contain"),
        ({"prefix": "a"}, "Give `tokens`"),
        ({"search": {"beams": 99}}, "`search.beams`"),
    ):
        reply = client.post("/v1/inspect", json={"source": "a b c", **change})
        assert (reply.status_code, part in reply.json()["error"]) == (422, True), reply.text
    with serving(f"labels={task_run('classification').folder}") as other:
        reply = other.post("/v1/inspect", json={"source": upload(), "tokens": ["a"]})
        assert "`tokens` are for encoder–decoders" in reply.json()["error"]


def upload():
    file = io.BytesIO()
    Image.fromarray(np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3)).save(file, "PNG")
    return {"data": base64.b64encode(file.getvalue()).decode()}


def test_labels_and_the_image_as_the_model_reads_it(task_run, serving):
    with serving(f"labels={task_run('classification').folder}") as client:
        found = client.post("/v1/inspect", json={"source": upload()}).json()
    probabilities = [np.exp(one["log_prob"]) for one in found["predictions"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)  # of all three labels
    attention = found["attention"]
    rows, columns = attention["grid"]
    assert np.shape(attention["weights"])[2:] == (1, rows * columns)
    assert (attention["num_text_tokens"], found["input"]["kind"]) == (0, "image")
    (shown,) = found["input"]["images"]
    assert Image.open(io.BytesIO(base64.b64decode(shown.partition(",")[2]))).size[0] > 0


def test_scores_equal_those_of_sacrebleu(client):
    texts = {"prediction": "A man sleeps on a bench.", "reference": "A man sleeps on the bench."}
    found = client.post("/v1/evaluate", json=texts).json()
    expected = sentence_bleu(*[texts["prediction"], [texts["reference"]]])
    assert found["bleu"]["value"] == pytest.approx(expected.score)
    expected = sentence_chrf(texts["prediction"], [texts["reference"]])
    assert found["chrf"]["value"] == pytest.approx(expected.score)
    assert "nrefs:1" in found["bleu"]["signature"]


@pytest.mark.parametrize("name", ["language_model", "denoising", "masked_language_model"])
def test_other_tasks_are_inspected(task_run, name):
    task = regard.load(task_run(name).folder, device="cpu")
    found = inspect_source(task, "the <mask> dog")
    (expected,) = task.predict(["the <mask> dog"])
    assert found.predictions[0].text == expected[0].text
    with pytest.raises(ConfigError, match="`tokens` are for encoder–decoders"):
        inspect_source(task, "the dog", tokens=["a"])


def test_the_throttle_limits_the_share_of_time(monkeypatch):
    times = iter([0.5, 1.0, 2.0, 2.0, 4.9, 5.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    throttle = Throttle(0.25)
    assert throttle.is_due()
    with throttle.measuring():  # one second of work
        pass
    assert [throttle.is_due() for _ in range(3)] == [False, False, True]
