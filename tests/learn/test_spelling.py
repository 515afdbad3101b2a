"""Every recipe of spelling, sound and script learns from a part of its own data."""

import pytest

from regard.metrics.text.bleu import chrf

pytestmark = pytest.mark.learn

STEPS = (
    "train.max_epochs=0",
    "train.max_steps=400",
    "train.validate_every=20",
    "train.optimizer.learning_rate=0.004",
    "train.schedule.warmup_steps=40",
    "train.precision=fp32",
    "validation.metric=loss",
    "search.beams=1",
)
# A laptop recipe keeps its own sizes, the others are made small.
LAPTOP = (*STEPS, "data.batch.max_tokens=800")
RECURRENT = (
    *STEPS,
    "train.max_steps=1000",
    "train.optimizer.learning_rate=0.006",
    "data.batch.max_tokens=600",
    "model.encoder.num_layers=1",
    "model.encoder.embedding_dim=32",
    "model.encoder.dim=32",
    "model.encoder.dropout=0.0",
    "model.decoder.embedding_dim=32",
    "model.decoder.dim=64",
    "model.decoder.attention_dim=32",
    "model.decoder.dropout=0.0",
)
BLOCKS = ("num_layers=2", "dim=64", "num_heads=2", "feed_forward_dim=128", "dropout=0.0")
TRANSFORMER = (
    *STEPS,
    "data.batch.max_tokens=1200",
    *(f"model.{side}.{word}" for side in ("encoder", "decoder") for word in BLOCKS),
)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("toshniwal2016-laptop", LAPTOP),
        ("toshniwal2016", RECURRENT),
        ("wu2021-laptop", LAPTOP),
        ("wu2021", TRANSFORMER),
    ],
)
def test_english_is_pronounced(learn_slice, value, recipe, words):
    trained = learn_slice("g2p", recipe, *words)
    # They had 22 to 32.
    assert value(trained, "per") <= 45


@pytest.mark.parametrize(
    ("recipe", "words"), [("transliteration-laptop", LAPTOP), ("transliteration", RECURRENT)]
)
def test_arabic_names_are_written_in_latin_letters(learn_slice, value, recipe, words):
    trained = learn_slice("transliteration", recipe, *words)
    # They had 24 to 32.
    assert value(trained, "cer") <= 45


def test_english_becomes_japanese_that_belongs_to_it(learn_slice):
    words = (*TRANSFORMER, "data.source.vocab_size=2000")
    found = learn_slice("small_enja", "small-enja", *words).evaluation
    references = [[text] for text in found.references]
    # Sentences that any source could have are as near to the translation of another one.
    others = [*references[1:], references[0]]
    assert chrf(found.outputs, references).value >= 1.5 * chrf(found.outputs, others).value
