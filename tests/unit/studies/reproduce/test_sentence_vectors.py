import numpy as np
import pytest

from regard.data.text.readers import read_examples
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.studies.reproduce import sentence_vectors as study
from regard.studies.reproduce.sentence_vectors import (
    BAG,
    FOUND,
    LIKE,
    MEAN,
    MODELS,
    OTHER,
    SAME_WORDS,
    UNLEARNED,
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


def request_little(*, settings, **others):
    return Request(settings=(*settings, *TINY), **others)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What both models find after one step, and their folder."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "SETTINGS", ())
        for name, num in (("NUM_LEARNED", 12), ("NUM_WATCHED", 3), ("NUM_MEASURED", 6)):
            patch.setattr(study, name, num)
        patch.setattr(study, "Request", request_little)
        return folder, sentence_vectors(5, folder)


def test_models_are_measured_beside_one_that_has_not_learned_and_a_bag(made):
    _, findings = made
    assert list(findings.numbers) == [*MODELS, MEAN, UNLEARNED, BAG]
    for row in findings.numbers.values():
        assert list(row) == [LIKE, SAME_WORDS, OTHER, FOUND]


def test_bag_of_words_cannot_tell_who_does_what_to_whom(made):
    _, findings = made
    bag = findings.numbers[BAG]
    assert bag[LIKE] == pytest.approx(1) and bag[SAME_WORDS] == pytest.approx(1)
    assert bag[FOUND] == 0 and bag[OTHER] < 0.9


def test_nothing_that_is_measured_was_trained_on(made):
    folder, _ = made
    train, test = (read_examples(folder / "data" / f"{side}.jsonl") for side in ("train", "test"))
    assert len(train) == 48 and len(test) == 24
    assert not {one.source for one in train} & {one.source for one in test}


def test_runs_are_kept_and_the_picture_is_saved(made, tmp_path):
    folder, findings = made
    assert runs.read_config(folder / "bahdanau2015-5")["recipe"]["seed"] == 5
    findings.save(tmp_path, {"seed": 5})
    assert (tmp_path / "sentence-vectors.svg").exists()


def test_meaning_is_measured_apart_from_words():
    by_meaning = np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]]
    assert measure(by_meaning) == {LIKE: 1.0, SAME_WORDS: 0.0, OTHER: 0.0, FOUND: 100.0}
    by_words = np.eye(4)[[0, 0, 0, 0, 1, 1, 1, 1]]
    assert measure(by_words) == {LIKE: 1.0, SAME_WORDS: 1.0, OTHER: 0.0, FOUND: 0.0}
