import numpy as np
import pytest

from regard.data.text.readers import read_examples
from regard.runs.request import Request
from regard.runs.saved.config import read_config
from regard.studies.reproduce.encoder_decoders import sentence_vectors as module
from regard.studies.reproduce.encoder_decoders.sentence_vectors import (
    BAG,
    MEAN,
    MODELS,
    OTHER,
    PASSIVE,
    RETRIEVAL,
    REVERSED,
    REVERSED_PASSIVE,
    SAME_MEANING,
    SAME_ROLES,
    SAME_VERB,
    UNTRAINED,
    compare_forms,
    compare_verbs,
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
        for name, num in (("NUM_PAIRS", 2), ("NUM_GIFTS", 4), ("NUM_VALID", 2)):
            patch.setattr(module, name, num)
        patch.setattr(module, "Request", tiny_request)
        return folder, sentence_vectors(5, folder)


def test_models_are_compared_with_baselines(reproduced):
    _, findings = reproduced
    for table in findings.tables.values():
        assert list(table) == [*MODELS, MEAN, UNTRAINED, BAG]


def test_bag_of_words_confuses_passive_and_reversed_roles(reproduced):
    _, findings = reproduced
    bag = next(iter(findings.tables.values()))[BAG]
    assert bag[PASSIVE] < bag[REVERSED_PASSIVE]


def test_test_sentences_are_not_in_the_training_data(reproduced):
    folder, _ = reproduced
    train, test = (read_examples(folder / "data" / f"{side}.jsonl") for side in ("train", "test"))
    assert len(test) == 2 * 6 + 4 * 6
    assert not {one.source for one in train} & {one.source for one in test}


def test_runs_and_plot_are_saved(reproduced, tmp_path):
    folder, findings = reproduced
    assert read_config(folder / "bahdanau2015-5")["recipe"]["seed"] == 5
    findings.save(tmp_path, title="Vectors", description="", provenance={"seed": 5})
    assert (tmp_path / "sentence-vectors-pairs.svg").exists()


def test_cosines_of_forms():
    by_meaning = np.eye(4)[[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]
    assert compare_forms(by_meaning) == {
        SAME_MEANING: 1.0, REVERSED: 0.0, PASSIVE: 1.0, REVERSED_PASSIVE: 0.0, OTHER: 0.0,
        RETRIEVAL: 100.0,
    }  # fmt: skip
    passive_is_reversed = np.eye(4)[[0, 0, 1, 1, 1, 0, 2, 2, 3, 3, 3, 2]]
    found = compare_forms(passive_is_reversed)
    assert found[PASSIVE] == 0 and found[REVERSED_PASSIVE] == 1
    assert found[SAME_MEANING] == pytest.approx(1 / 3)
    assert found[REVERSED] == pytest.approx(4 / 9)


def test_cosines_of_verbs():
    by_role = np.eye(4)[[0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3]]
    assert compare_verbs(by_role) == {SAME_ROLES: 1.0, SAME_VERB: 0.0, OTHER: 0.0}
    by_verb = np.eye(6)[[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]]
    assert compare_verbs(by_verb) == {SAME_ROLES: 0.0, SAME_VERB: 1.0, OTHER: 0.0}
