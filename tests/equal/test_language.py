"""Two roads, one result, for language models and the measuring of long texts."""

import itertools

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

VOCAB_SIZE, START, END = 11, 3, 3

CASES = {
    f"{positions}-{window}": TransformerLanguageConfig(
        positions=positions,
        window=window,
        num_key_heads=number % 3 and (1, 2)[number % 2],
        is_norm_first=number % 2 == 0,
        dim=8,
        num_heads=2,
        num_layers=2,
        feed_forward_dim=6,
        max_length=40,
        dropout=0.0,
    )
    for number, (positions, window) in enumerate(itertools.product(POSITIONS, (0, 1, 4)))
} | {
    f"{cell}-{layers}": RnnLanguageConfig(cell=cell, num_layers=layers, embedding_dim=6, dim=6)
    for cell, layers in itertools.product(("vanilla", "gru", "lstm"), (1, 2))
}


def build(config):
    torch.manual_seed(0)
    model = build_language_model(config, vocab_size=VOCAB_SIZE).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model


@pytest.fixture(params=CASES.values(), ids=CASES, scope="module")
def model(request):
    with torch.inference_mode():
        yield build(request.param)


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(VOCAB_SIZE, (3, 9), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def text():
    return torch.randint(VOCAB_SIZE, (30,), generator=torch.Generator().manual_seed(2))


def forced(model, text):
    """The log-probability of every token but the first, all at once."""
    log_probs = model(text[None, :-1]).logits.log_softmax(-1)
    return log_probs.gather(-1, text[None, 1:, None])[0, :, 0]


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-6)


def test_step_by_step_equals_all_at_once(model, tokens):
    state, pieces = model.start(3), []
    for column in tokens.split(1, dim=1):
        piece, state = model.step(column, state)
        pieces.append(piece)
    assert same(torch.cat(pieces, dim=1), model(tokens).logits)


def test_pieces_of_any_length_equal_all_at_once(model, tokens):
    state, pieces = model.start(3), []
    for part in tokens.split([2, 5, 2], dim=1):
        piece, state = model.step(part, state)
        pieces.append(piece)
    assert same(torch.cat(pieces, dim=1), model(tokens).logits)


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


def test_rows_carried_side_by_side_are_pieces_of_the_text(model, text):
    # 29 labels in 3 rows of 10, the last of 9.
    pieces = [forced(model, text[first : first + 11]) for first in (0, 10, 20)]
    assert same(score_carrying_state(model, text, chunk=4, rows=3), torch.cat(pieces))


def test_one_window_over_a_short_text_equals_all_at_once(model, text):
    assert same(score_windows(model, text, window=64, stride=32, batch=4), forced(model, text))


@pytest.mark.parametrize(("window", "stride"), [(8, 4), (8, 8), (7, 3), (8, 1)])
def test_sliding_equals_each_token_from_its_own_window(model, text, window, stride):
    found = score_windows(model, text, window=window, stride=stride, batch=3)
    assert len(found) == 29
    for label in range(1, 30):
        # The first window that reaches this label begins here.
        first = max(0, -(-(label - window) // stride)) * stride
        expected = forced(model, text[first : label + 1])[-1]
        assert same(found[label - 1], expected)


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


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}], ids=["greedy", "drawn"])
def test_continued_together_equals_alone_and_begins_with_the_prompt(model, settings):
    prompts = [[4, 5, 6], [7], []]
    together = continue_(model, prompts, **settings)
    for prompt, (found,) in zip(prompts, together, strict=True):
        ((alone,),) = continue_(model, [prompt], **settings)
        assert found.tokens == alone.tokens
        assert list(found.tokens[: len(prompt)]) == prompt


def test_log_probability_of_a_continuation_is_the_forced_one(model):
    ((found,),) = continue_(model, [[4, 5, 6]])
    expected = forced(model, torch.tensor([START, *found.tokens]))
    assert torch.allclose(torch.tensor(found.step_log_probs).double(), expected.double(), atol=1e-5)
