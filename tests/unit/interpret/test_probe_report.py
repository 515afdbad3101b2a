import pytest

from regard.interpret.probe_report import representation_sections


@pytest.fixture(scope="module")
def sections(tiny_run):
    return representation_sections(tiny_run.predictor, tiny_run.evaluation.sources)


def test_sections_plot_embeddings_and_probes_of_every_layer(sections):
    embeddings, layers = sections
    assert embeddings.title == "Sentence embeddings" and "<svg" in embeddings.html
    assert layers.title == "Linear probes by layer" and "<svg" in layers.html
    assert "embeddings" in layers.html and "layer 1" in layers.html
    assert "tested on 15 others" in layers.html


def test_few_sentences_have_no_sections(tiny_run):
    assert representation_sections(tiny_run.predictor, ["a b", "c d"] * 20) == []


def test_encoder_without_known_layers_has_no_sections(tiny_run, monkeypatch):
    monkeypatch.setattr("regard.models.layer_states.LAYERS", {})
    assert representation_sections(tiny_run.predictor, tiny_run.evaluation.sources) == []
