import numpy as np
import pytest

from regard.data.text.readers import read_examples
from regard.runs.folder import read_config
from regard.runs.request import Request
from regard.studies.reproduce.encoder_decoders import sentence_vectors as module
from regard.studies.reproduce.encoder_decoders.sentence_vectors import (
    BAG,
    MEAN,
    MODELS,
    OTHER,
    RETRIEVAL,
    SAME_MEANING,
    SAME_WORDS,
    UNTRAINED,
    measure,
    sentence_vectors,
)

TINY = (
    "model.encoder.embedding_dim=4",
    "model.encoder.dim=4",
    "model.decoder.embedding_dim=4",
    "model.decoder.dim=4",
    "train.max_steps=1",
    "train.max_epochs=0",
    "search.beams=1",
    "search.max_extra=1",
    "validation.metric=loss",
)


def tiny_request(*, settings, **others):
    return Request(settings=(*settings, *TINY), **others)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """Folder and findings of both models after one step."""
    folder = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SETTINGS", ())
        for name, num in (("NUM_TRAIN", 12), ("NUM_VALID", 3), ("NUM_TEST", 6)):
            patch.setattr(module, name, num)
        patch.setattr(module, "Request", tiny_request)
        return folder, sentence_vectors(5, folder)


def test_models_are_compared_with_baselines(reproduced):
    _, findings = reproduced
    (numbers,) = findings.tables.values()
    assert list(numbers) == [*MODELS, MEAN, UNTRAINED, BAG]
    for row in numbers.values():
        assert list(row) == [SAME_MEANING, SAME_WORDS, OTHER, RETRIEVAL]


def test_bag_of_words_does_not_separate_meanings(reproduced):
    _, findings = reproduced
    bag = findings.tables["Cosine similarities"][BAG]
    assert bag[SAME_MEANING] == pytest.approx(1) and bag[SAME_WORDS] == pytest.approx(1)
    assert bag[RETRIEVAL] == 0 and bag[OTHER] < 0.9


def test_test_sentences_are_not_in_the_training_data(reproduced):
    folder, _ = reproduced
    train, test = (read_examples(folder / "data" / f"{side}.jsonl") for side in ("train", "test"))
    assert len(train) == 48 and len(test) == 24
    assert not {one.source for one in train} & {one.source for one in test}


def test_runs_and_plot_are_saved(reproduced, tmp_path):
    folder, findings = reproduced
    assert read_config(folder / "bahdanau2015-5")["recipe"]["seed"] == 5
    findings.save(tmp_path, title="Vectors", description="", provenance={"seed": 5})
    assert (tmp_path / "sentence-vectors.svg").exists()


def test_cosines_of_vectors_by_meaning_and_by_words():
    by_meaning = np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]]
    assert measure(by_meaning) == {SAME_MEANING: 1.0, SAME_WORDS: 0.0, OTHER: 0.0, RETRIEVAL: 100.0}
    by_words = np.eye(4)[[0, 0, 0, 0, 1, 1, 1, 1]]
    assert measure(by_words) == {SAME_MEANING: 1.0, SAME_WORDS: 1.0, OTHER: 0.0, RETRIEVAL: 0.0}
