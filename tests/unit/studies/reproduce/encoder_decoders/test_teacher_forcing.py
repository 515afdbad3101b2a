import pytest
import torch

from regard.data.example import Example
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    fixed_context_model,
    seeded,
)
from regard.studies.reproduce.encoder_decoders.teacher_forcing import (
    accuracy,
    accuracy_by_position,
    hits,
)

PAIRS = [Example("a b c", "c b a"), Example("a b", "b a"), Example("c c", "c c")]


def test_first_position_does_not_depend_on_the_feeding():
    vocabularies = Vocabularies.fit(PAIRS)
    batches = list(vocabularies.batches(PAIRS).epoch(0))
    with seeded(1):
        model = vocabularies.build(fixed_context_model(8)).eval()
        (gold, _), (own, _) = (
            hits(model, batches, teacher_forcing=ratio)[0] for ratio in (1.0, 0.0)
        )
    assert gold.shape == own.shape == (3, 4)
    assert torch.equal(gold[:, 0], own[:, 0])


def test_accuracy_ignores_padding():
    right = torch.tensor([[True, False], [True, True]])
    mask = torch.tensor([[True, True], [True, False]])
    assert accuracy([(right, mask)]) == pytest.approx(100 * 2 / 3)


def test_accuracy_by_position():
    right, mask = torch.eye(9).bool(), torch.ones(9, 9).bool()
    assert accuracy_by_position([(right, mask)]) == pytest.approx([100 / 9] * 9)
