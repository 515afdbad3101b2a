import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.embedding import EmbeddingEncoder, EmbeddingEncoderConfig


def test_memory_is_the_embeddings_and_the_tokens():
    encoder = EmbeddingEncoder(EmbeddingEncoderConfig(dim=4), TextSpec(9))
    values, mask = torch.tensor([[3, 5, 0]]), torch.tensor([[True, True, False]])
    memory = encoder(values, mask)
    assert torch.equal(memory.states, encoder.embedding(values) * 2)
    assert torch.equal(memory.tokens, values)
    assert torch.allclose(memory.summary, memory.states[:, :2].mean(1))


def test_width_has_a_limit():
    with pytest.raises(ConfigError, match="`dim` must be at least 1, but is 0"):
        EmbeddingEncoderConfig(dim=0)
