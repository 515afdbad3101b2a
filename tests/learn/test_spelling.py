"""Recipes of pronunciation, transliteration and Japanese learn from a part of their data."""

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
# Laptop recipes keep their sizes; the others are made small.
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
    ("recipe", "overrides"),
    [
        ("toshniwal2016-laptop", LAPTOP),
        ("toshniwal2016", RECURRENT),
        ("wu2021-laptop", LAPTOP),
        ("wu2021", TRANSFORMER),
    ],
)
def test_pronunciation_of_english_is_learned(learn_slice, value, recipe, overrides):
    trained = learn_slice("g2p", recipe, *overrides)
    # The recipes had 22 to 32.
    assert value(trained, "per") <= 45


@pytest.mark.parametrize(
    ("recipe", "overrides"), [("transliteration-laptop", LAPTOP), ("transliteration", RECURRENT)]
)
def test_transliteration_of_arabic_names_is_learned(learn_slice, value, recipe, overrides):
    trained = learn_slice("transliteration", recipe, *overrides)
    # The recipes had 24 to 32.
    assert value(trained, "cer") <= 45


def test_japanese_translations_depend_on_the_source(learn_slice):
    overrides = (*TRANSFORMER, "data.source.vocab_size=2000")
    found = learn_slice("small_enja", "small-enja", *overrides).evaluation
    references = [[text] for text in found.references]
    # Outputs that ignore the source would score as high with references of other sources.
    others = [*references[1:], references[0]]
    assert chrf(found.outputs, references).value >= 1.5 * chrf(found.outputs, others).value
