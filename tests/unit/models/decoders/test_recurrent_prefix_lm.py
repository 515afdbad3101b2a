import pytest
import torch

from regard.models.build import ModelConfig
from regard.models.decoders import RecurrentPrefixDecoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.recurrent import Cell


@pytest.fixture(params=Cell.__args__)
def model(request, build):
    config = ModelConfig(
        encoder=EmbeddingEncoderConfig(dim=8),
        decoder=RecurrentPrefixDecoderConfig(
            cell=request.param, embedding_dim=8, dim=8, num_layers=2
        ),
        ties="all",
    )
    return build(config)


def test_source_and_target_are_one_sequence_of_one_recurrence(model, sentences):
    decoder = model.decoder
    for row in range(3):
        source, mask = sentences.alone(row)
        targets = sentences.targets[row : row + 1]
        embedded = decoder.embedding(torch.cat([source, targets], dim=1)) * decoder.scale
        states, _ = decoder.recurrence.sequence(embedded)
        expected = decoder.output(states[:, source.shape[1] :])
        assert torch.allclose(model(source, mask, targets).logits, expected, atol=1e-5)


def test_target_starts_from_the_last_state_of_the_source(model, sentences):
    memory = model.encode(sentences.source, sentences.mask)
    layers = model.start(memory, beams=2).per_hypothesis["layers"]
    for row in range(3):
        alone = model.encode(*sentences.alone(row))
        _, last = model.decoder.recurrence.sequence(alone.states)
        parts = last if isinstance(last, tuple) else (last,)
        for layer, tensors in enumerate(layers):
            for tensor, part in zip(tensors, parts, strict=True):
                for beam in (2 * row, 2 * row + 1):
                    assert torch.allclose(tensor[beam], part[layer, 0], atol=1e-5)


def test_single_network_has_one_embedding_and_one_recurrence(model):
    names = {name.rpartition("_l")[0] or name for name, _ in model.named_parameters()}
    assert names == {
        "encoder.embedding.weight",
        "decoder.output.bias",
        *(
            f"decoder.recurrence.sequence.{kind}_{matrix}"
            for kind in ("weight", "bias")
            for matrix in ("ih", "hh")
        ),
    }


def test_source_of_another_width_is_projected(build, sentences):
    model = build(
        ModelConfig(
            encoder=EmbeddingEncoderConfig(dim=5),
            decoder=RecurrentPrefixDecoderConfig(embedding_dim=8, dim=6),
        )
    )
    memory = model.encode(sentences.source, sentences.mask)
    assert model.decoder.source_map(memory.states).shape == (3, 7, 8)
