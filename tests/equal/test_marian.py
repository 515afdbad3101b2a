"""Our transformer with Marian's weights equals Hugging Face's Marian."""

import pytest
import torch

from regard.core.specs import TextSpec
from regard.models.build import ModelConfig, build_model
from regard.models.decoders import TransformerDecoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

VOCAB_SIZE = 19
PAD, END = 18, 0
SIZES = {"num_layers": 2, "num_heads": 4, "feed_forward_dim": 12, "max_length": 16}


def build_marian(activation):
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=VOCAB_SIZE,
        d_model=8,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=12,
        decoder_ffn_dim=12,
        max_position_embeddings=16,
        activation_function=activation,
        scale_embedding=True,
        # Fresh weights of the usual size are so small that mistakes would hide.
        init_std=0.5,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        eos_token_id=END,
        forced_eos_token_id=None,
    )
    marian = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        marian.final_logits_bias.normal_()
        for name, parameter in marian.named_parameters():
            if "layer_norm" in name or name.endswith("bias"):
                parameter.normal_()
    return marian


# Where Marian keeps what our blocks call by these names.
NAMES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "query_map": "q_proj",
    "key_map": "k_proj",
    "value_map": "v_proj",
    "feed_forward.hidden_map": "fc1",
    "feed_forward.output_map": "fc2",
    "output_map": "out_proj",
    "self_residual.norm": "self_attn_layer_norm",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_residual.norm": "final_layer_norm",
    "blocks": "layers",
    "positions.embedding": "embed_positions",
    "embedding": "embed_tokens",
}


def marian_name(name):
    """Marian's name of one of our encoder's or decoder's weights."""
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return f"model.{name}"


def with_weights_of(marian, feed_forward):
    """Our encoder–decoder with the weights of a Marian model.

    Marian's sines and cosines lie in two halves, ours take turns; learned positions hold its table.
    """
    settings = {"dim": 8, "feed_forward": feed_forward, "positions": "learned", **SIZES}
    model = build_model(
        ModelConfig(
            encoder=TransformerEncoderConfig(**settings),
            decoder=TransformerDecoderConfig(**settings),
            ties="all",
        ),
        source=TextSpec(VOCAB_SIZE),
        target_vocab_size=VOCAB_SIZE,
    )
    theirs = marian.state_dict()
    theirs["model.decoder.output.bias"] = theirs["final_logits_bias"][0]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(theirs[marian_name(name)])
    return model.eval()


@pytest.fixture(params=["relu", "gelu"])
def both(request):
    marian = build_marian(request.param)
    with torch.inference_mode():
        yield with_weights_of(marian, request.param), marian


@pytest.fixture
def source():
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(1, PAD, (3, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 3, 5])[:, None]
    return ids.masked_fill(~mask, PAD), mask


def test_memory_equals_marian(both, source):
    ours, marian = both
    ids, mask = source
    states = marian.model.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    assert torch.allclose(ours.encode(ids, mask).states[mask], states[mask], atol=1e-5)


def test_logits_equal_marian(both, source):
    ours, marian = both
    ids, mask = source
    targets = torch.randint(1, PAD, (3, 6), generator=torch.Generator().manual_seed(4))
    targets[:, 0] = PAD
    expected = marian(input_ids=ids, attention_mask=mask.long(), decoder_input_ids=targets).logits
    assert expected.std() > 1
    assert torch.allclose(ours(ids, mask, targets).logits, expected, atol=1e-5)


def test_greedy_translations_equal_marian(both, source):
    ours, marian = both
    ids, mask = source
    found = greedy(
        ModelScorer(ours, ours.encode(ids, mask), banned=(PAD,)),
        start=PAD,
        end=END,
        max_lengths=torch.tensor([8, 8, 8]),
    )
    generated = marian.generate(
        input_ids=ids,
        attention_mask=mask.long(),
        num_beams=1,
        do_sample=False,
        max_new_tokens=8,
        bad_words_ids=[[PAD]],
    )
    for hypothesis, tokens in zip(found, generated.tolist(), strict=True):
        assert tokens[1 : 1 + len(hypothesis.tokens)] == list(hypothesis.tokens)
