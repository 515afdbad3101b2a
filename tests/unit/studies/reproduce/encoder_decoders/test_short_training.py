from functools import partial

import torch

from regard.data.example import Example
from regard.data.text.tokenizers import split_words
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    fixed_context_model,
    seeded,
    short_sentences,
    train,
    translation_loss,
)

PAIRS = [Example("a b", "b a"), Example("b b", "b b"), Example("a a", "a a")]


def test_short_sentences_have_known_words():
    train_pairs, test_pairs = short_sentences(400, 20, max_words=8)
    known = {word for pair in train_pairs for word in split_words(pair.source)}
    assert test_pairs and {pair.source for pair in train_pairs}.isdisjoint(
        pair.source for pair in test_pairs
    )
    for pair in test_pairs:
        assert len(split_words(pair.target)) <= 8 and {*split_words(pair.source)} <= known


def test_seeded_restores_the_generator():
    before = torch.get_rng_state()
    with seeded(3):
        torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_lowers_the_loss_and_is_deterministic():
    def losses():
        vocabularies = Vocabularies.fit(PAIRS)
        with seeded(1):
            model = vocabularies.build(fixed_context_model(8))
            batches = vocabularies.batches(PAIRS, seed=1)
            (batch,) = batches.epoch(0)
            loss = partial(translation_loss, model)
            steps = train(model, batches, loss, num_steps=20, learning_rate=0.02)
            return [float(loss(batch).total.detach()) for _ in steps]

    first = losses()
    assert len(first) == 20 and first[-1] < first[0]
    assert losses() == first
