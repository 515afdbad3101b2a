"""Every encoder-only and decoder-only recipe learns in a small size."""

import random

import pytest

from regard.core.files import read_json_lines
from regard.data.datasets.catalog import find_data
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

STEPS = (
    "train.max_steps=240",
    "train.max_epochs=0",
    "train.validate_every=40",
    "train.patience=0",
    "train.schedule.kind=cosine",
    "train.schedule.warmup_steps=20",
    "train.optimizer.learning_rate=0.003",
)
ENCODER = ("dim=64", "num_layers=2", "num_heads=2", "feed_forward_dim=128", "dropout=0.0")
MASKED = (
    "data.tokenizer.vocab_size=500",
    "data.batch.max_tokens=2048",
    "data.batch.max_length=64",
    *(f"model.encoder.{word}" for word in ENCODER),
)
# Sentence-pair prediction, static masking and shared layers need more steps.
LONGER = ("train.max_steps=700",)
LSTM = (
    "data.tokenizer.vocab_size=500",
    "data.batch.max_tokens=2048",
    "model.encoder.embedding_dim=64",
    "model.encoder.dim=32",
)
SPANS = (
    "data.source.vocab_size=500",
    "data.batch.max_tokens=2048",
    "data.batch.max_length=64",
    *(f"model.{side}.{word}" for side in ("encoder", "decoder") for word in ENCODER),
)
WORDS = ("data.tokenizer.vocab_size=500", "data.window=32", "data.num_windows=16")
TRANSFORMER = (*WORDS, *(f"model.{word}" for word in ENCODER), "model.window=32")
RECURRENT = (*WORDS, "model.dim=64", "model.embedding_dim=64", "model.dropout=0.0")

TEXT_RECIPES = {
    "devlin2019-small": (*MASKED, *LONGER),
    "liu2019-small": MASKED,
    "liu2019-laptop": MASKED,
    "lan2020-small": (*MASKED, *LONGER, "model.encoder.embedding_dim=32"),
    "joshi2020-small": MASKED,
    "sanh2019-small": MASKED,
    "dai2015": LSTM,
    "raffel2020-small": SPANS,
    "karpathy2015": RECURRENT,
    "karpathy2015-laptop": RECURRENT,
    "zaremba2014": RECURRENT,
    "gpt-small": TRANSFORMER,
    "gpt-laptop": TRANSFORMER,
    "gpt-wikitext2": TRANSFORMER,
}
PAIR_RECIPES = ("parikh2016", "sick-transformer", "sick-bert")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Write forty sentences of the phrasebook, repeated, so that they can be memorised."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    sources = [example.source for example in find_data("phrasebook:100").train[:40]]
    lines = random.Random(0).choices(sources, k=3000)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Write pairs of a sentence with itself, its negation or another sentence, a third each."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    generator = random.Random(0)
    sources = sorted({example.source for example in find_data("phrasebook:3000").train})
    lines = []
    for source in generator.sample(sources, 1500):
        label = generator.choice(("entailment", "contradiction", "neutral"))
        second = {
            "entailment": source,
            "contradiction": f"It is not true that {source}",
            "neutral": generator.choice(sources),
        }[label]
        lines.append(f"{source}\t{second}\t{label}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def learn(tmp_path):
    def run(data, recipe, *overrides):
        request = Request(
            data=(data,), recipe=recipe, settings=overrides, out=tmp_path / "run", device="cpu"
        )
        return train(request)

    return run


@pytest.mark.parametrize("recipe", TEXT_RECIPES)
def test_recipe_of_texts_learns(learn, texts, recipe):
    trained = learn(texts, recipe, *STEPS, *TEXT_RECIPES[recipe])
    losses = [
        row["loss"]
        for row in read_json_lines(trained.folder / runs.TRAINING_LOG)
        if row["kind"] == "valid"
    ]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("recipe", PAIR_RECIPES)
def test_recipe_of_pairs_learns(learn, pairs, recipe):
    overrides = ["data.tokenizer.vocab_size=500", "data.batch.max_sentences=32", *STEPS]
    if recipe != "parikh2016":
        overrides += [f"model.encoder.{word}" for word in ENCODER]
    trained = learn(pairs, recipe, *overrides)
    assert trained.evaluation.results["accuracy"].value >= 70
