import math

import pytest
import torch

from regard.data.example import Example
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    fixed_context_model,
    seeded,
    translation_loss,
)
from regard.studies.reproduce.encoder_decoders.training_loss import (
    SHOWN,
    SOURCE,
    TARGET,
    sample_pairs,
    shown_loss,
    true_probs,
)


def test_shown_distribution_sums_to_one():
    assert sum(SHOWN.values()) == pytest.approx(1)


def test_loss_of_the_shown_distribution():
    by_hand, package = shown_loss()
    assert by_hand == pytest.approx(0.478, abs=1e-3) == package


def test_lecture_sentence_is_possible_but_not_in_the_training_set():
    pairs = sample_pairs(2_000, seed=1)
    assert SOURCE not in {pair.source for pair in pairs}
    assert {*SOURCE.split()} <= {word for pair in pairs for word in pair.source.split()}


def test_loss_is_the_sum_of_the_steps():
    pairs = sample_pairs(300, seed=1)
    vocabularies = Vocabularies.fit(pairs)
    (batch,) = vocabularies.batches([Example(SOURCE, TARGET)]).epoch(0)
    with seeded(1):
        model = vocabularies.build(fixed_context_model(8)).eval()
    probs = true_probs(model, batch)
    with torch.no_grad():
        loss = translation_loss(model, batch)
    assert len(probs) == int(loss.count) == 8
    assert -sum(map(math.log, probs)) == pytest.approx(float(loss.total), rel=1e-4)
