import pytest

from regard.interpret.probe_report import representation_sections


@pytest.fixture(scope="module")
def sections(tiny_run):
    return representation_sections(tiny_run.predictor, tiny_run.evaluation.sources)


def test_sentences_are_drawn_and_every_layer_is_told(sections):
    map_, layers = sections
    assert map_.title == "Sentence embeddings" and "<svg" in map_.html
    assert layers.title == "Linear probes by layer" and "<svg" in layers.html
    assert "embeddings" in layers.html and "layer 1" in layers.html
    assert "tested on 15 others" in layers.html


def test_few_sentences_have_no_pages(tiny_run):
    assert representation_sections(tiny_run.predictor, ["a b", "c d"] * 20) == []


def test_encoder_whose_layers_are_not_told_apart_has_no_pages(tiny_run, monkeypatch):
    monkeypatch.setattr("regard.models.layer_states.LAYERS", {})
    assert representation_sections(tiny_run.predictor, tiny_run.evaluation.sources) == []
