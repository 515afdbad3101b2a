import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.language_model import (
    LANGUAGE_MODELS,
    LanguageModelConfig,
    RnnLanguageConfig,
    TransformerLanguageConfig,
    build_language_model,
    token_log_probs,
)

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 6, "dropout": 0.0}


def build(**settings):
    torch.manual_seed(0)
    config = TransformerLanguageConfig(**{**SIZES, **settings})
    return build_language_model(config, vocab_size=11).eval()


def test_every_config_has_a_model():
    assert set(LANGUAGE_MODELS) == set(LanguageModelConfig.__args__)


def test_tied_models_have_one_matrix_and_untied_ones_two():
    tied, untied = build(is_tied=True), build(is_tied=False)
    assert tied.output.weight is tied.embedding.weight
    assert untied.output.weight is not untied.embedding.weight


def test_tied_recurrent_model_needs_equal_widths():
    with pytest.raises(ConfigError, match="`embedding_dim` must equal `dim` \\(6\\)"):
        RnnLanguageConfig(embedding_dim=5, dim=6)
    RnnLanguageConfig(embedding_dim=5, dim=6, is_tied=False)


def test_text_longer_than_learned_positions_is_refused():
    model = build(positions="learned", max_length=5)
    model(torch.ones(1, 5).long())
    with pytest.raises(ConfigError, match="length of the text \\(6 tokens\\)"):
        model(torch.ones(1, 6).long())


def test_window_limits_the_size_of_the_caches():
    model, tokens = build(positions="rotary", window=3), torch.randint(11, (2, 9))
    _, state = model.step(tokens, model.start(2))
    cache = state.per_hypothesis
    assert (cache.caches[0].length, cache.length) == (2, 9)


def test_tokens_outside_the_window_have_no_effect():
    model = build(positions="alibi", window=3, num_layers=1)
    tokens = torch.randint(11, (1, 8))
    other = tokens.clone()
    other[0, 4] = (other[0, 4] + 1) % 11
    changed = (model(tokens).logits != model(other).logits).any(-1)[0].tolist()
    assert changed == [False] * 4 + [True] * 3 + [False]


def test_recorded_attention_is_causal():
    model, tokens = build(positions="rotary"), torch.randint(11, (2, 5))
    with torch.no_grad(), record(model, is_self=True) as maps:
        model(tokens)
    weights = maps.stack()  # (B, N, H, T, T)
    assert weights.shape == (2, 2, 2, 5, 5)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 2, 5))
    assert (weights.triu(1) == 0).all()


def test_log_probabilities_of_labels_are_those_of_a_softmax():
    logits, labels = torch.randn(2, 3, 7), torch.randint(7, (2, 3))
    expected = logits.log_softmax(-1).gather(-1, labels[..., None]).squeeze(-1)
    assert torch.allclose(token_log_probs(logits, labels), expected, atol=1e-6)
