"""Language models learn what there is to learn in a text."""

import pytest

from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

REPEATED = "the quick brown fox jumps over the lazy dog\n" * 200


@pytest.fixture
def learned(tmp_path):
    def run(data, recipe, *words):
        if data == REPEATED:
            (tmp_path / "text.txt").write_text(data, encoding="utf-8")
            data = str(tmp_path / "text.txt")
        settings = (*words, "train.precision=fp32")
        request = Request(
            data=(data,), recipe=recipe, settings=settings, out=tmp_path / "run", device="cpu"
        )
        return train(request)

    return run


SMALL = (
    "data.window=48",
    "data.num_windows=8",
    "train.max_steps=150",
    "train.validate_every=75",
    "train.schedule.warmup_steps=10",
    "search.temperature=0",
    "search.max_extra=60",
)


TRANSFORMER = ("model.dim=32", "model.num_layers=2", "train.optimizer.learning_rate=0.01")
RECURRENT = ("model.dim=48", "model.embedding_dim=48", "train.optimizer.learning_rate=0.01")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("recipe", "words"), [("gpt-laptop", TRANSFORMER), ("karpathy2015-laptop", RECURRENT)]
)
def test_a_repeated_line_is_learned_by_heart(learned, recipe, words):
    trained = learned(REPEATED, recipe, *SMALL, *words)
    assert trained.evaluation.results["bits_per_character"].value < 0.2
    ((found,),) = trained.predictor.predict(["the quick brown fox"])
    assert found.text.startswith("the quick brown fox jumps over the lazy dog\nthe quick")


def test_laptop_forms_learn_to_spell(learned, data_folder):
    words = ("train.max_steps=400", "train.validate_every=200")
    trained = learned("shakespeare", "gpt-laptop", *words)
    # Guessing letters by their frequency costs 4.8 bits, and by the letter before 3.6.
    assert trained.evaluation.results["bits_per_character"].value < 3.0
