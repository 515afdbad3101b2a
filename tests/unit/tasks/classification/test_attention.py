import pytest
import torch

from regard.attention.attend import Attention
from regard.core.specs import TextSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.heads.pooling import POOLINGS
from regard.tasks.classification.attention import SALIENCY, weigh_tokens

LABELS = torch.tensor([0, 1, 2])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_weights_sum_to_one_and_batched_equals_alone(pooling, tiny_token_encoders, sentences):
    for name, encoder in tiny_token_encoders.items():
        torch.manual_seed(0)
        model = Classifier(
            ClassifierConfig(encoder=encoder, pooling=pooling), TextSpec(11), 3
        ).eval()
        weights, kind = weigh_tokens(model, sentences.source, sentences.mask, labels=LABELS)
        has_attention = any(isinstance(part, Attention) for part in model.modules())
        assert (kind == SALIENCY) == (pooling == "aligned" or not has_attention)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), msg=name)
        assert not weights.masked_select(~sentences.mask[:, None, None, None]).any()
        for row in range(3):
            values, mask = sentences.alone(row)
            alone, _ = weigh_tokens(model, values, mask, labels=LABELS[row : row + 1])
            found = weights[row, ..., : values.shape[1]]
            torch.testing.assert_close(found, alone[0], rtol=1e-4, atol=1e-5, msg=name)


def test_blocks_with_shared_weights_are_separate_layers(tiny_token_encoders, sentences):
    (encoder,) = (config for config in tiny_token_encoders.values() if config.kind == "albert")
    model = Classifier(ClassifierConfig(encoder=encoder, pooling="first"), TextSpec(11), 3).eval()
    weights, _ = weigh_tokens(model, sentences.source, sentences.mask, labels=LABELS)
    assert weights.shape == (3, encoder.num_layers, encoder.num_heads, 1, 7)


def test_saliency_depends_on_the_label(tiny_token_encoders, sentences):
    torch.manual_seed(0)
    config = ClassifierConfig(encoder=tiny_token_encoders["lstm-both"], pooling="mean")
    model = Classifier(config, TextSpec(11), 3).eval()
    found = [
        weigh_tokens(model, sentences.source, sentences.mask, labels=torch.full((3,), label))[0]
        for label in (0, 1)
    ]
    assert not torch.allclose(found[0], found[1], atol=1e-3)
    assert all(parameter.grad is None for parameter in model.parameters())
