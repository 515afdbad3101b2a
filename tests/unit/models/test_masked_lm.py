import pytest
import torch
from torch.nn.functional import gelu

from regard.core.errors import ConfigError
from regard.models.encoders.bert import AlbertEncoderConfig, BertEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.masked_lm import MaskedModel, MaskedModelConfig, find_boundaries

SIZES = {"dim": 8, "num_heads": 2, "feed_forward_dim": 6, "max_length": 12, "dropout": 0.0}
ENCODERS = {
    "bert": BertEncoderConfig(num_layers=2, **SIZES),
    "albert": AlbertEncoderConfig(num_layers=2, embedding_dim=4, **SIZES),
    "rnn": RnnEncoderConfig(embedding_dim=4, dim=5),
}
VOCAB_SIZE = 11


def build(encoder=ENCODERS["bert"], **further):
    torch.manual_seed(0)
    config = MaskedModelConfig(encoder=encoder, **further)
    model = MaskedModel(config, VOCAB_SIZE).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 3)
    return model


@pytest.fixture(params=ENCODERS.values(), ids=ENCODERS)
def encoder(request):
    return request.param


def test_every_position_has_logits(encoder, sentences):
    logits = build(encoder)(sentences.source, sentences.mask)
    assert logits.shape == (3, 7, VOCAB_SIZE)
    assert logits.isfinite().all()


def test_predicting_some_positions_equals_predicting_all(encoder, sentences):
    model = build(encoder)
    hidden = torch.tensor([1, 4, 8, 15, 16])
    states = model.encode(sentences.source, sentences.mask).states
    everywhere = model(sentences.source, sentences.mask).flatten(0, 1)
    assert torch.allclose(model.predict(states, hidden), everywhere[hidden], atol=1e-6)


def test_logits_do_not_depend_on_the_batch(encoder, sentences):
    model = build(encoder)
    together = model(sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        alone = model(*sentences.alone(row))
        assert torch.allclose(alone[0], together[row, :length], atol=1e-5)


def test_the_output_layer_is_the_embedding(encoder):
    model = build(encoder)
    assert model.head.output.weight is model.encoder.embedding.weight


def test_heads_without_weight_are_not_built():
    model = build()
    assert (model.next_sentence, model.boundary) == (None, None)


def test_weights_of_objectives_are_not_negative():
    with pytest.raises(ConfigError, match=r"`boundary` must be at least 0, but is -1"):
        MaskedModelConfig(boundary=-1)


def test_next_sentence_logits_depend_on_the_first_state_only(sentences):
    model = build(next_sentence=1.0)
    states = model.encode(sentences.source, sentences.mask).states
    other = states.clone()
    other[:, 1:] = 0
    assert torch.equal(model.next_sentence(states), model.next_sentence(other))
    other[:, 0] += 1
    assert not torch.allclose(model.next_sentence(states), model.next_sentence(other))


def test_boundaries_are_those_of_consecutive_positions():
    left, right, offset = find_boundaries(torch.tensor([1, 4, 5, 6, 9, 10]))
    assert left.tolist() == [0, 3, 3, 3, 8, 8]
    assert right.tolist() == [2, 7, 7, 7, 11, 11]
    assert offset.tolist() == [0, 0, 1, 2, 0, 1]


def test_no_masked_positions_have_no_boundaries():
    assert [found.tolist() for found in find_boundaries(torch.zeros(0, dtype=torch.long))] == [
        [],
        [],
        [],
    ]


def test_boundary_logits_depend_on_the_adjacent_states_only():
    model = build(boundary=1.0)
    states = torch.randn(2, 6, 8)
    hidden = torch.tensor([2, 3, 9])  # positions 2 and 3 of the first text, 3 of the second
    logits = model.predict_from_boundaries(states, hidden)
    within = states.clone()
    within[0, 2:4] += 1
    within[1, 3] += 1
    assert torch.equal(model.predict_from_boundaries(within, hidden), logits)
    beside = states.clone()
    beside[0, 4] += 1
    changed = model.predict_from_boundaries(beside, hidden)
    assert not torch.allclose(changed[:2], logits[:2])
    assert torch.equal(changed[2], logits[2])


def test_boundary_head_equals_the_formula_of_the_paper():
    model = build(boundary=1.0)
    head = model.boundary
    states = torch.randn(1, 5, 8)
    logits = model.predict_from_boundaries(states, torch.tensor([2, 3]))
    for row, position in enumerate(head.place_embedding.weight[:2]):
        inputs = torch.cat([states[0, 1], states[0, 4], position])
        middle = head.first_norm(gelu(head.first(inputs)))
        last = head.second_norm(gelu(head.second(middle)))
        expected = model.encoder.embedding.weight @ last + head.bias
        assert torch.allclose(logits[row], expected, atol=1e-5)


def test_positions_within_a_span_have_different_logits():
    logits = build(boundary=1.0).predict_from_boundaries(torch.randn(1, 6, 8), torch.tensor([2, 3]))
    assert not torch.allclose(logits[0], logits[1])


def test_every_parameter_gets_a_gradient(encoder, sentences):
    model = build(encoder, next_sentence=1.0, boundary=1.0).train()
    states = model.encode(sentences.source, sentences.mask).states
    hidden = torch.tensor([1, 2, 8, 15])
    logits = (model.predict(states, hidden), model.predict_from_boundaries(states, hidden))
    (sum(found.square().sum() for found in logits) + model.next_sentence(states)[0, 0]).backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert idle == []


def test_pooling_is_an_error():
    with pytest.raises(
        ConfigError,
        match=r"`encoder\.pooling` must be 1 .*, but is 4\.$",
    ):
        MaskedModelConfig(encoder=TransformerEncoderConfig(pooling=4))
