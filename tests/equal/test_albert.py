"""Our ALBERT equals that of `transformers` with the same weights."""

import pytest
import torch

from regard.models.encoders.bert import AlbertEncoderConfig
from regard.models.masked_lm import MaskedModel, MaskedModelConfig

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

BLOCK = "albert.encoder.albert_layer_groups.0.albert_layers.0"
NAMES = {
    "encoder.embedding": "albert.embeddings.word_embeddings",
    "encoder.positions.embedding": "albert.embeddings.position_embeddings",
    "encoder.segment_embedding": "albert.embeddings.token_type_embeddings",
    "encoder.embedding_norm": "albert.embeddings.LayerNorm",
    "encoder.widen": "albert.encoder.embedding_hidden_mapping_in",
    "encoder.blocks.0.self_attention.query_map": f"{BLOCK}.attention.query",
    "encoder.blocks.0.self_attention.key_map": f"{BLOCK}.attention.key",
    "encoder.blocks.0.self_attention.value_map": f"{BLOCK}.attention.value",
    "encoder.blocks.0.self_attention.output_map": f"{BLOCK}.attention.dense",
    "encoder.blocks.0.self_residual.norm": f"{BLOCK}.attention.LayerNorm",
    "encoder.blocks.0.feed_forward.hidden_map": f"{BLOCK}.ffn",
    "encoder.blocks.0.feed_forward.output_map": f"{BLOCK}.ffn_output",
    "encoder.blocks.0.feed_residual.norm": f"{BLOCK}.full_layer_layer_norm",
    "head.dense": "predictions.dense",
    "head.norm": "predictions.LayerNorm",
    "head.output": "predictions.decoder",
}


@pytest.fixture(scope="module")
def theirs():
    torch.manual_seed(0)
    config = transformers.AlbertConfig(
        vocab_size=11,
        embedding_size=4,
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=6,
        hidden_act="gelu",
        max_position_embeddings=9,
        layer_norm_eps=1e-12,
    )
    model = transformers.AlbertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5)
    return model


@pytest.fixture(scope="module")
def ours(theirs):
    encoder = AlbertEncoderConfig(
        embedding_dim=4,
        dim=8,
        num_layers=3,
        num_heads=2,
        feed_forward_dim=6,
        max_length=9,
        norm_epsilon=1e-12,
    )
    model = MaskedModel(MaskedModelConfig(encoder=encoder), 11).eval()
    given, own = theirs.state_dict(), model.state_dict()
    layers = {
        f"{name}.{kind}": f"{other}.{kind}"
        for name, other in NAMES.items()
        for kind in ("weight", "bias")
        if f"{name}.{kind}" in own
    }
    shared = {name for name in own if ".self_attention.positions." in name}
    assert set(layers) | shared == set(own)
    with torch.no_grad():
        for name, other in layers.items():
            own[name].copy_(given[other])
    return model


def test_logits_equal_hugging_face(ours, theirs):
    values = torch.tensor([[2, 5, 6, 3, 7, 8, 3], [2, 9, 4, 10, 3, 0, 0]])
    mask = values != 0
    with torch.no_grad():
        expected = theirs(
            input_ids=values,
            attention_mask=mask.long(),
            token_type_ids=torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0] * 7]),
        ).logits
        found = ours(values, mask)
    assert torch.allclose(found[mask], expected[mask], atol=1e-4)
