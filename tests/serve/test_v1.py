"""Explanations of predictions, and vectors, over HTTP."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import regard
from regard.data.example import Example
from regard.interpret.attribution import attribute
from regard.interpret.editing import WeightEdit
from regard.interpret.embed import embed
from regard.interpret.what_if import (
    change_source,
    force_word,
    replace_source_word,
    set_attention_weight,
)
from regard.tasks.decoding.beam_tree import find_beam_tree
from tests.serve.conftest import LIMITS


@pytest.fixture(scope="module")
def task(tiny_run):
    return regard.load(tiny_run.folder, device="cpu")


def post(client, path, **body):
    reply = client.post(f"/v1/{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_models_are_listed_with_their_features(client, task):
    first, second = client.get("/v1/models").json()["data"]
    assert (first["id"], second["id"]) == ("en-de", "second")
    assert first["languages"] == ["en", "de"]
    assert second["languages"] is None
    assert first["parameters"] == task.num_parameters
    assert {"stream", "attention", "alternatives", "beam", "embed"} <= set(first["features"])


def test_attention_of_a_target_and_of_the_prediction(client, task):
    (expected,) = task.attend([Example("a b c", "c b a")])
    found = post(client, "attention", source="a b c", target="c b a", layers="all")
    rows, columns = expected.labels
    assert (found["target"], found["source"]) == (rows, columns)
    assert torch.allclose(torch.tensor(found["weights"]), expected.weights, atol=1e-5)
    found = post(client, "attention", source="a b c")
    text = task.translate("a b c")
    (expected,) = task.attend([Example("a b c", text)])
    assert torch.allclose(torch.tensor(found["weights"]), expected.mean(), atol=1e-5)


def test_large_attention_maps_are_refused(served_runs, serving):
    with serving(served_runs[0], limits=replace(LIMITS, weights=10)) as client:
        reply = client.post("/v1/attention", json={"source": "a b c", "target": "c b a"})
        assert reply.status_code == 413
        assert "10 attention weights" in reply.json()["error"]


def test_alternatives(client):
    (result,) = post(client, "alternatives", source="a b c", num=3)["results"]
    (best,) = result["predictions"]
    assert len(best["alternatives"]) == len(best["tokens"])
    for token, log_prob, alternatives in zip(
        best["tokens"], best["token_log_probs"], best["alternatives"], strict=True
    ):
        assert len(alternatives) == 3
        assert dict(alternatives).get(token, log_prob) == pytest.approx(log_prob, abs=1e-4)


def test_the_beam_tree(client, task):
    found = post(client, "beam", source="a b c", search={"beams": 3})
    expected = find_beam_tree(task, "a b c", search=regard.SearchConfig(beams=3)).to_dict()
    assert found["prediction"] == expected["prediction"]
    assert [one["token"] for one in found["nodes"]] == [one["token"] for one in expected["nodes"]]
    reply = client.post("/v1/beam", json={"source": "a", "search": {"temperature": 1.0}})
    assert (reply.status_code, "beam search" in reply.json()["error"]) == (422, True)


def test_vectors(client, task):
    sources = ["a b c", "d"]
    found = post(client, "embed", sources=sources, pooling="mean")
    assert np.allclose(found["vectors"], embed(task, sources, pooling="mean"), atol=1e-5)


def test_vectors_in_the_shape_of_openai(client, task):
    found = post(client, "embeddings", model="en-de", input=["a b c", "d"], user="someone")
    expected = embed(task, ["a b c", "d"])
    assert [one["index"] for one in found["data"]] == [0, 1]
    assert np.allclose([one["embedding"] for one in found["data"]], expected, atol=1e-5)
    # Tokens are the letters and the end.
    assert found["usage"] == {"prompt_tokens": 6, "total_tokens": 6}
    (found,) = post(client, "embeddings", model="en-de", input="a b c", encoding_format="base64")[
        "data"
    ]
    vector = np.frombuffer(base64.b64decode(found["embedding"]), "<f4")
    assert np.allclose(vector, expected[0], atol=1e-5)
    reply = client.post("/v1/embeddings", json={"model": "other", "input": "a"})
    assert reply.status_code == 404
    assert reply.json()["error"]["type"] == "invalid_request_error"


def test_metrics_count_requests_and_batches(client):
    post(client, "predict", sources=["a", "b"])
    lines = client.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['regard_requests_total{route="/v1/predict",status="200"}']) >= 1
    assert float(values['regard_sources_total{model="en-de"}']) >= 2
    assert float(values['regard_waiting_sources{model="en-de"}']) == 0
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_feature_that_a_model_lacks(task_run, serving, client):
    with serving(f"labels={task_run('classification').folder}") as other:
        for path in ("beam", "alternatives"):
            reply = other.post(f"/v1/{path}", json={"source": "a"})
            assert reply.status_code == 422
            assert f"has no `{path}`" in reply.json()["error"]
        assert (
            other.post("/translate", json={"q": "a", "source": "en", "target": "de"})
            .json()["error"]
            .endswith("No model of this server has languages.")
        )


@pytest.mark.parametrize("name", ["language_model", "denoising", "masked_language_model"])
def test_other_tasks_on_text(task_run, serving, name):
    folder = task_run(name).folder
    (expected,) = regard.load(folder, device="cpu").predict(["the <mask> dog"])
    with serving(f"one={folder}") as client:
        (result,) = post(client, "predict", sources="the <mask> dog")["results"]
        assert result["predictions"][0]["text"] == expected[0].text
        if "stream" in client.get("/v1/models").json()["data"][0]["features"]:
            reply = client.post("/v1/predict", json={"sources": "the <mask>", "stream": True})
            assert reply.text.count("event: result") == 1


def test_explanations_of_forms(client):
    form = {"source": "a b c", "methods": "attention,erasure"}
    expected = post(client, "attribution", source="a b c", methods=["attention", "erasure"])
    assert client.post("/v1/attribution", data=form).json() == expected
    edit = {"kind": "source_word", "position": 1, "word": "c"}
    form = {"source": "a b c", "edit": json.dumps(edit)}
    expected = post(client, "what-if", source="a b c", edit=edit)
    assert client.post("/v1/what-if", data=form).json() == expected
    assert client.post("/v1/what-if", data={**form, "edit": "{"}).status_code == 422


def test_attribution(client, task):
    expected = attribute(task, "a b c", methods=("attention", "gradients"), target="c b").to_dict()
    found = post(
        client, "attribution", source="a b c", methods=["attention", "gradients"], target="c b"
    )
    assert found.pop("model") == "en-de"
    for one, other in zip(found["attributions"], expected["attributions"], strict=True):
        assert one["method"] == other["method"]
        assert np.allclose(one["source"], other["source"], atol=1e-5)
    assert found["target_tokens"] == expected["target_tokens"]


@pytest.mark.parametrize(
    ("edit", "function"),
    [
        ({"kind": "source", "changed": "d e"}, change_source),
        ({"kind": "source_word", "position": 1, "word": "e"}, replace_source_word),
        ({"kind": "target_word", "position": 0, "word": "b"}, force_word),
        ({"kind": "attention", "target_position": 0, "source_position": 1, "weight": 0.5}, None),
    ],
)
def test_what_if(client, task, edit, function):
    values = {name: value for name, value in edit.items() if name != "kind"}
    if function is None:
        expected = set_attention_weight(task, "a b c", edit=WeightEdit(**values))
    else:
        expected = function(task, "a b c", **values)
    found = post(client, "what-if", source="a b c", edit=edit)
    assert found["edited_source"] == expected.edited_source
    assert found["is_changed"] == expected.is_changed
    assert found["after"]["text"] == expected.after.text
    assert found["after"]["log_probs_after"] == pytest.approx(
        expected.after.log_probs_after, abs=1e-4
    )


FAR = {"kind": "target_word", "position": 99}


def test_explanations_that_are_refused(client):
    for path, body, status in (
        ("attribution", {"source": "a " * 251}, 413),
        ("attribution", {"source": "a", "methods": ["magic"]}, 422),
        ("what-if", {"source": "a", "edit": {"kind": "source"}}, 422),
        (
            "what-if",
            {"source": "a", "edit": {"kind": "target_word", "position": 9, "word": "b"}},
            422,
        ),
        ("what-if", {"source": "a", "edit": {"kind": "magic"}}, 422),
    ):
        limits = client.state.limits
        client.state.limits = replace(limits, characters=5000)
        reply = client.post(f"/v1/{path}", json=body)
        client.state.limits = limits
        assert reply.status_code == status, reply.text
