import dataclasses

import pytest
import torch

from regard.attention.positions import POSITIONS
from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig

TINY = SentencesEncoderConfig(
    dim=8, num_layers=1, num_heads=2, feed_forward_dim=12, max_words=4, dropout=0.0
)
END, PAD = 3, 0
# Three sentences of 3, 1 and 2 words; two of 1 and 2.
IDS = torch.tensor([[5, 6, 7, END, 8, END, 6, 9, END], [5, END, 6, 9, END, PAD, PAD, PAD, PAD]])
MASK = IDS != PAD


def build(**changes):
    torch.manual_seed(0)
    return SentencesEncoder(dataclasses.replace(TINY, **changes), TextSpec(11)).eval()


def read(encoder, *rows):
    ids = torch.tensor(rows)
    return encoder(ids, torch.ones_like(ids, dtype=torch.bool))


@pytest.fixture
def bare():
    """Encoder without blocks and ages, which returns the sums of words."""
    encoder = build(positions="none")
    encoder.blocks = type(encoder.blocks)()
    return encoder


def test_every_sentence_has_one_state():
    memory = build()(IDS, MASK)
    assert memory.states.shape == (2, 3, 8)
    assert memory.mask.tolist() == [[True, True, True], [True, True, False]]
    assert memory.tokens is None


def test_memory_positions_are_the_sentences_of_tokens():
    groups = build().memory_positions(IDS, MASK)
    assert groups[0].tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2]
    assert groups[1][MASK[1]].tolist() == [0, 0, 1, 1, 1]


def test_sentence_vector_is_the_sum_of_words_times_position_masks(bare):
    words, masks = bare.embedding.weight * 8**0.5, 1 + bare.word_masks
    found = bare(IDS, MASK).states
    by_hand = words[5] * masks[0] + words[6] * masks[1] + words[7] * masks[2]
    assert torch.allclose(found[0, 0], by_hand, atol=1e-6)
    assert torch.allclose(found[0, 2], words[6] * masks[0] + words[9] * masks[1], atol=1e-6)
    assert torch.allclose(found[1, 0], words[5] * masks[0], atol=1e-6)


def test_states_depend_on_the_order_of_words(bare):
    one, other = (read(bare, ids).states for ids in ([5, 6, 7, END], [7, 6, 5, END]))
    assert not torch.allclose(one, other, atol=1e-3)


def test_words_beyond_the_last_position_share_its_mask(bare):
    words, masks = bare.embedding.weight * 8**0.5, 1 + bare.word_masks
    ids = [5, 6, 7, 8, 9, 10, END]
    positions = [0, 1, 2, 3, 3, 3]
    by_hand = sum(
        words[word] * masks[position] for word, position in zip(ids[:-1], positions, strict=True)
    )
    assert torch.allclose(read(bare, ids).states[0, 0], by_hand, atol=1e-6)


def test_missing_separator_at_the_end_has_no_effect():
    encoder = build()
    whole, open_ended = (read(encoder, ids).states for ids in ([5, END, 6, END], [5, END, 6]))
    assert torch.allclose(whole, open_ended, atol=1e-6)


def test_empty_sentence_is_zero(bare):
    assert read(bare, [5, END, END, 6, END]).states[0, 1].tolist() == [0.0] * 8
    assert read(build(), [5, END, END, 6, END]).states.isfinite().all()


def test_single_sentence_is_supported():
    memory = read(build(), [5, 6, END])
    assert memory.states.shape == (1, 1, 8)
    assert torch.equal(memory.summary, memory.states[:, 0])


def test_question_is_masked_in_the_memory():
    encoder = build(has_question=True)
    memory = encoder(IDS, MASK)
    assert memory.mask.tolist() == [[True, True, False], [True, False, False]]
    assert torch.equal(memory.states, build()(IDS, MASK).states)
    words, masks = encoder.embedding.weight * 8**0.5, 1 + encoder.word_masks
    asked = words[6] * masks[0] + words[9] * masks[1]
    assert torch.allclose(memory.summary, torch.stack([asked, asked]), atol=1e-6)


def test_question_without_a_story_is_not_masked():
    assert read(build(has_question=True), [5, 6, END]).mask.tolist() == [[True]]


@pytest.mark.parametrize("has_question", [False, True])
@pytest.mark.parametrize("positions", POSITIONS)
def test_batched_equals_alone(positions, has_question):
    encoder = build(positions=positions, num_rounds=2, has_question=has_question)
    together = encoder(IDS, MASK)
    for row, (length, num) in enumerate([(9, 3), (5, 2)]):
        alone = encoder(IDS[row : row + 1, :length], MASK[row : row + 1, :length])
        assert torch.allclose(together.states[row, :num], alone.states[0], atol=1e-5)
        assert torch.allclose(together.summary[row], alone.summary[0], atol=1e-5)


def test_padding_has_no_effect():
    encoder = build()
    filled = IDS.masked_fill(~MASK, END)
    assert torch.allclose(encoder(filled, MASK).summary, encoder(IDS, MASK).summary, atol=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_ages_count_from_the_end(positions):
    encoder = build(positions=positions)
    encoder.blocks = type(encoder.blocks)()
    long = read(encoder, [8, END, 9, END, 5, END, 6, END]).states[0]
    short = read(encoder, [5, END, 6, END]).states[0]
    assert torch.allclose(long[-2:], short, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_any_number_of_sentences_is_supported(positions):
    encoder = build(positions=positions, max_length=3)
    states = read(encoder, [5, END] * 300).states
    assert states.shape == (1, 300, 8)
    assert states.isfinite().all()


def test_oldest_sentences_share_the_last_learned_position():
    encoder = build(positions="learned", max_length=3)
    encoder.blocks = type(encoder.blocks)()
    states = read(encoder, [5, END] * 5).states[0]
    assert torch.equal(states[0], states[2])
    assert not torch.allclose(states[2], states[3], atol=1e-3)


def test_repeated_blocks_share_their_weights():
    once, thrice = build(num_rounds=1), build(num_rounds=3)
    assert once.state_dict().keys() == thrice.state_dict().keys()
    memory = once(IDS, MASK)
    states = memory.states
    for _ in range(2):
        states = once.blocks[0](states, mask=memory.mask[:, None])
    assert torch.allclose(thrice(IDS, MASK).states, states, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_rounds", 0, r"`num_rounds` must be at least 1, but is 0"),
        ("max_words", 0, r"`max_words` must be at least 1, but is 0"),
        ("separator", -1, r"`separator` must be at least 0, but is -1"),
    ],
)
def test_settings_have_limits(name, value, message):
    with pytest.raises(ConfigError, match=message):
        SentencesEncoderConfig(**{name: value})
