"""The label of a text depends neither on the other texts of a batch nor on padding."""

import pytest
import torch

from regard.core.specs import TextSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.heads.pooling import POOLINGS


@pytest.fixture(params=POOLINGS)
def classify(request, tiny_token_encoders):
    """An encoder's name to a tiny classifier with the pooling of this test."""

    def build(name):
        torch.manual_seed(0)
        config = ClassifierConfig(
            encoder=tiny_token_encoders[name], pooling=request.param, has_hidden=True
        )
        model = Classifier(config, TextSpec(11), 3)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
        return model.eval()

    return build


@torch.no_grad()
def test_batched_equals_alone(classify, tiny_token_encoders, sentences):
    for name in tiny_token_encoders:
        model = classify(name)
        together = model(sentences.source, sentences.mask)
        for row in range(3):
            alone = model(*sentences.alone(row))[0]
            torch.testing.assert_close(together[row], alone, rtol=1e-5, atol=1e-6, msg=name)


@torch.no_grad()
def test_padding_changes_nothing(classify, tiny_token_encoders, sentences):
    more = torch.nn.functional.pad(sentences.source, (0, 4), value=9)
    mask = torch.nn.functional.pad(sentences.mask, (0, 4))
    for name in tiny_token_encoders:
        model = classify(name)
        found, expected = model(more, mask), model(sentences.source, sentences.mask)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, msg=name)
