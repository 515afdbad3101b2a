"""Language models learn a repeated line and the spelling of words."""

import pytest

from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

REPEATED = "the quick brown fox jumps over the lazy dog\n" * 200


@pytest.fixture
def learned(tmp_path):
    def run(data, recipe, *overrides):
        if data == REPEATED:
            (tmp_path / "text.txt").write_text(data, encoding="utf-8")
            data = str(tmp_path / "text.txt")
        settings = (*overrides, "train.precision=fp32")
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
    ("recipe", "overrides"), [("gpt-laptop", TRANSFORMER), ("karpathy2015-laptop", RECURRENT)]
)
def test_repeated_line_is_memorised(learned, recipe, overrides):
    trained = learned(REPEATED, recipe, *SMALL, *overrides)
    assert trained.evaluation.results["bits_per_character"].value < 0.2
    ((found,),) = trained.predictor.predict(["the quick brown fox"])
    assert found.text.startswith("the quick brown fox jumps over the lazy dog\nthe quick")


def test_laptop_recipe_learns_to_spell(learned, data_folder):
    overrides = ("train.max_steps=400", "train.validate_every=200")
    trained = learned("shakespeare", "gpt-laptop", *overrides)
    # A unigram model of characters has 4.8 bits, a bigram model 3.6.
    assert trained.evaluation.results["bits_per_character"].value < 3.0
