from dataclasses import replace

import pytest
import torch

from regard.attention.recording import record
from regard.core.config import from_dict, to_dict
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, TextSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.heads.pooling import POOLINGS
from regard.models.interfaces import Memory

END = 3
ENCODER = TransformerEncoderConfig(
    dim=4, num_layers=1, num_heads=2, feed_forward_dim=5, dropout=0.0
)


@pytest.fixture
def memory():
    """Three states of which the last is padding; the second is the largest."""
    states = torch.tensor([[[1.0, 2.0], [5.0, 4.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    return Memory(states=states, mask=mask, summary=torch.tensor([[7.0, 8.0]]))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("first", [1, 2]), ("summary", [7, 8]), ("mean", [3, 3]), ("max", [5, 4])],
)
def test_pooling_equals_a_direct_computation(memory, kind, expected):
    assert POOLINGS[kind](2)(memory).tolist() == [expected]


def test_attention_pooling_is_a_mean_weighted_by_a_softmax_over_words(memory):
    pooling = POOLINGS["attention"](2)
    found = pooling(memory)
    real = memory.states[0, :2]
    scores = pooling.key_map(real).tanh() @ pooling.query[0]
    torch.testing.assert_close(found[0], scores.softmax(0) @ real)


def test_words_are_aligned_with_the_other_text_only():
    torch.manual_seed(0)
    pooling = POOLINGS["aligned"](2)
    tokens = torch.tensor([[2, 7, END, 8, 9, END, 0]])
    mask = torch.tensor([[True] * 6 + [False]])
    states = torch.randn(1, 7, 2)
    memory = Memory(states=states, mask=mask, summary=states[:, 0], tokens=tokens)
    with record(pooling) as maps:
        pooling(memory)
    weights = maps.stack()[0, 0, 0]
    assert not weights[:3, :3].any()
    assert not weights[3:6, 3:].any()
    torch.testing.assert_close(weights[:6].sum(-1), torch.ones(6))


def test_aligned_pooling_equals_the_formula_of_the_paper():
    torch.manual_seed(0)
    pooling = POOLINGS["aligned"](2)
    first, second = torch.randn(2, 2), torch.randn(3, 2)
    states = torch.cat([first, second])[None]
    tokens = torch.tensor([[7, END, 8, 9, END]])
    mask = torch.ones(1, 5, dtype=torch.bool)
    found = pooling(Memory(states=states, mask=mask, summary=states[:, 0], tokens=tokens))
    pooled = []
    for own, other in ((first, second), (second, first)):
        like = (own @ other.T / 2**0.5).softmax(-1) @ other
        compared = pooling.compare(torch.cat([own, like, own - like, own * like], -1)).relu()
        pooled += [compared.mean(0), compared.amax(0)]
    torch.testing.assert_close(found[0], pooling.join(torch.cat(pooled)).tanh())


def test_single_text_can_be_classified():
    config = ClassifierConfig(encoder=ENCODER, pooling="aligned")
    logits = Classifier(config, TextSpec(9), 3)(
        torch.tensor([[2, 7, END]]), torch.ones(1, 3).bool()
    )
    assert logits.isfinite().all()


def test_attention_pooling_can_be_recorded():
    model = Classifier(
        ClassifierConfig(encoder=ENCODER, pooling="attention"), TextSpec(9), 3
    ).eval()
    mask = torch.tensor([[True, True, True], [True, False, False]])
    with record(model) as maps:
        model(torch.ones(2, 3, dtype=torch.long), mask)
    weights = maps.stack()
    assert weights.shape == (2, 1, 1, 1, 3)
    assert weights[1].flatten().tolist() == [1, 0, 0]


@pytest.mark.parametrize("has_hidden", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_parameter_gets_a_gradient(pooling, has_hidden, tiny_token_encoders, sentences):
    for encoder in tiny_token_encoders.values():
        config = ClassifierConfig(encoder=encoder, pooling=pooling, has_hidden=has_hidden)
        torch.manual_seed(0)
        model = Classifier(config, TextSpec(11), 3)
        source = sentences.source.clone()
        source[:, 1] = END  # two texts, for what compares them
        logits = model(source, sentences.mask)
        assert logits.shape == (3, 3)
        torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2])).backward()
        assert all(p.grad is not None for p in model.parameters())
        assert model.output.weight.grad.abs().sum() > 0
        assert model.encoder.embedding.weight.grad.abs().sum() > 0


def test_settings_round_trip():
    config = ClassifierConfig(encoder=RnnEncoderConfig(dim=3), pooling="max", has_hidden=True)
    assert from_dict(ClassifierConfig, to_dict(config)) == config


def test_unknown_pooling_is_an_error():
    with pytest.raises(ConfigError, match="`pooling` must be one of 'first'.*Did you mean 'mean'"):
        from_dict(ClassifierConfig, {"pooling": "meen"})


def test_dropout_must_be_below_one():
    with pytest.raises(ConfigError, match="`dropout` must be between"):
        ClassifierConfig(dropout=1.0)


@pytest.mark.parametrize("pooling", ["first", "aligned"])
def test_pooling_of_single_tokens_needs_a_state_for_each(pooling):
    with pytest.raises(
        ConfigError,
        match=rf"^`encoder\.pooling` must be 1 with `pooling` '{pooling}', but is 2\.$",
    ):
        ClassifierConfig(encoder=replace(ENCODER, pooling=2), pooling=pooling)


IMAGE_POOLINGS = ("summary", "mean", "max", "attention")


@pytest.mark.parametrize("pooling", IMAGE_POOLINGS)
def test_images_are_classified_and_every_parameter_gets_a_gradient(
    pooling, tiny_image_encoders, image_shape, images
):
    for encoder in tiny_image_encoders.values():
        torch.manual_seed(0)
        config = ClassifierConfig(encoder=encoder, pooling=pooling, dropout=0.0)
        model = Classifier(config, ImageSpec(*image_shape), 3)
        logits = model(images.source, images.mask)
        assert logits.shape == (3, 3)
        torch.nn.functional.cross_entropy(logits, torch.tensor([0, 2, 1])).backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            # A bias of keys moves all scores of a query alike; a single state has the weight 1.
            has_none = name.endswith("key_map.bias") or (
                encoder.kind == "mlp" and name.startswith("pooling.")
            )
            assert parameter.grad.abs().sum() > 0 or has_none, name


@pytest.mark.parametrize("pooling", ["first", "aligned"])
def test_poolings_of_texts_are_an_error_for_images(pooling, tiny_image_encoders):
    for encoder in tiny_image_encoders.values():
        with pytest.raises(
            ConfigError,
            match=rf"^`pooling` must not be '{pooling}' with an encoder of images, whose first "
            r"state is no token and which has no second text\. Set it to 'summary' or 'mean'\.$",
        ):
            ClassifierConfig(encoder=encoder, pooling=pooling)
