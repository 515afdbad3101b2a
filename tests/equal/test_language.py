"""Two ways to compute the same result: language models and the scoring of long texts."""

import pytest
import torch

from regard.attention.positions import POSITIONS
from regard.models.interfaces import reorder
from regard.models.language_model import (
    RnnLanguageConfig,
    TransformerLanguageConfig,
    build_language_model,
)
from regard.search.forced import score_carrying_state, score_windows
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from tests.all_pairs import Matrix, variants

VOCAB_SIZE, START, END = 11, 3, 3

TRANSFORMERS = variants(
    TransformerLanguageConfig,
    positions=POSITIONS.keys(),
    window=(0, 1, 4),
    num_key_heads=(0, 1, 2),
    is_norm_first=(False, True),
    sizes={
        "dim": 8,
        "num_heads": 2,
        "num_layers": 2,
        "feed_forward_dim": 6,
        "max_length": 40,
        "dropout": 0.0,
    },
)
RECURRENT = variants(
    RnnLanguageConfig,
    cell=("vanilla", "gru", "lstm"),
    num_layers=(1, 2),
    sizes={"embedding_dim": 6, "dim": 6},
)
MODELS = Matrix(
    "language models",
    config=TRANSFORMERS | RECURRENT,
    sliding={
        "8_by_4": (8, 4),
        "8_by_8": (8, 8),
        "7_by_3": (7, 3),
        "8_by_1": (8, 1),
    },
    search_settings={"greedy": {}, "sampled": {"temperature": 1.0}},
)
pytestmark = pytest.mark.matrix("config, sliding, search_settings", MODELS)


def build(config):
    torch.manual_seed(0)
    model = build_language_model(config, vocab_size=VOCAB_SIZE).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model


@pytest.fixture(scope="module")
def model(config):
    return build(config).requires_grad_(False)


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(VOCAB_SIZE, (3, 9), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def text():
    return torch.randint(VOCAB_SIZE, (30,), generator=torch.Generator().manual_seed(2))


def forced(model, text):
    """Return the log-probability of every token but the first, computed at once."""
    log_probs = model(text[None, :-1]).logits.log_softmax(-1)
    return log_probs.gather(-1, text[None, 1:, None])[0, :, 0]


def take_steps(model, chunks):
    state, logits = model.start(3), []
    for tokens in chunks:
        chunk_logits, state = model.step(tokens, state)
        logits.append(chunk_logits)
    return torch.cat(logits, dim=1)


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-6)


def test_step_by_step_equals_all_at_once(model, tokens):
    assert same(take_steps(model, tokens.split(1, dim=1)), model(tokens).logits)


def test_chunks_of_any_length_equal_all_at_once(model, tokens):
    assert same(take_steps(model, tokens.split([2, 5, 2], dim=1)), model(tokens).logits)


def test_batched_equals_alone(model, tokens):
    logits = model(tokens).logits
    for row in range(3):
        assert same(model(tokens[row : row + 1]).logits, logits[row : row + 1])


def test_padded_equals_unpadded(model, tokens):
    padded = torch.cat([tokens, torch.zeros(3, 4).long()], dim=1)
    assert same(model(padded).logits[:, :9], model(tokens).logits)


def test_reordered_state_continues_the_other_text(model, tokens):
    _, state = model.step(tokens[:, :5], model.start(3))
    rows = torch.tensor([2, 0, 0])
    logits, _ = model.step(tokens[rows, 5:], reorder(state, rows))
    assert same(logits, model(tokens[rows]).logits[:, 5:])


def test_carried_in_chunks_equals_all_at_once(model, text):
    expected = forced(model, text)
    for chunk in (1, 7, 100):
        assert same(score_carrying_state(model, text, chunk=chunk), expected)


def test_rows_carried_in_parallel_are_parts_of_the_text(model, text):
    # 29 labels in 3 rows of 10, the last of 9.
    parts = [forced(model, text[first : first + 11]) for first in (0, 10, 20)]
    assert same(score_carrying_state(model, text, chunk=4, rows=3), torch.cat(parts))


def test_one_window_over_a_short_text_equals_all_at_once(model, text):
    assert same(score_windows(model, text, window=64, stride=32, batch=4), forced(model, text))


def test_sliding_equals_each_token_in_its_own_window(model, text, sliding):
    window, stride = sliding
    log_probs = score_windows(model, text, window=window, stride=stride, batch=3)
    assert len(log_probs) == 29
    for label in range(1, 30):
        # The first window that reaches this label begins here.
        first = max(0, -(-(label - window) // stride)) * stride
        expected = forced(model, text[first : label + 1])[-1]
        assert same(log_probs[label - 1], expected)


def continue_(model, prompts, **settings):
    config = SearchConfig(beams=1, **settings)
    return search(
        ModelScorer(model, len(prompts), banned=(0,)),
        start=START,
        end=END,
        max_lengths=torch.tensor([len(prompt) + 6 for prompt in prompts]),
        config=config,
        prefixes=prompts,
        sample_keys=[sum(prompt) for prompt in prompts],
    )


def test_batched_continuation_equals_alone_and_starts_with_the_prompt(model, search_settings):
    prompts = [[4, 5, 6], [7], []]
    together = continue_(model, prompts, **search_settings)
    for prompt, (hypothesis,) in zip(prompts, together, strict=True):
        ((alone,),) = continue_(model, [prompt], **search_settings)
        assert hypothesis.tokens == alone.tokens
        assert list(hypothesis.tokens[: len(prompt)]) == prompt


def test_log_probabilities_of_a_continuation_equal_those_of_forced_decoding(model):
    ((hypothesis,),) = continue_(model, [[4, 5, 6]])
    expected = forced(model, torch.tensor([START, *hypothesis.tokens])).double()
    log_probs = torch.tensor(hypothesis.step_log_probs).double()
    assert torch.allclose(log_probs, expected, atol=1e-5)
