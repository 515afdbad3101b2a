import pytest
import torch

from regard.attention import windowed
from regard.attention.masks import window_mask
from regard.attention.multihead import SelfAttention
from regard.attention.positions import POSITIONS
from regard.attention.recording import record
from regard.attention.windowed import WindowedAttention

DIM, HEADS = 8, 4


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    """Blocks of four, so that a short text has several."""
    monkeypatch.setattr(WindowedAttention, "BLOCK", 4)


def build(half_width, *, positions="rotary", num_key_heads=0, dropout=0.0):
    """A windowed attention, and one that sees everything, with the same weights."""
    torch.manual_seed(1)
    encoding = POSITIONS[positions](dim=DIM, num_heads=HEADS, max_length=64)
    sizes = {"dim": DIM, "num_heads": HEADS, "num_key_heads": num_key_heads, "dropout": dropout}
    near = WindowedAttention(positions=encoding, window=half_width, **sizes)
    full = SelfAttention(positions=encoding, **sizes)
    full.load_state_dict(near.state_dict())
    return near, full


def texts(length, batch=2):
    """Random texts, the second of which is a third shorter, and their mask."""
    states = torch.randn(batch, length, DIM, generator=torch.Generator().manual_seed(length))
    lengths = torch.tensor([length, length - length // 3][:batch])
    return states, torch.arange(length) < lengths[:, None]


def ask(attention, states, mask):
    return attention(states, mask=mask[:, None])[0]


def ask_masked(attention, states, mask, half_width):
    """Reference: all scores with a mask."""
    near = window_mask(torch.arange(states.shape[1]), states.shape[1], half_width=half_width)
    return attention(states, mask=near & mask[:, None])[0]


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("half_width", [1, 3, 4, 6])
@pytest.mark.parametrize("length", [17, 20, 23])
def test_blocks_equal_masked_full_attention(positions, half_width, length):
    near, full = build(half_width, positions=positions)
    states, mask = texts(length)
    expected = ask_masked(full, states, mask, half_width)
    assert torch.allclose(ask(near, states, mask)[mask], expected[mask], atol=1e-6)


@pytest.mark.parametrize("num_key_heads", [1, 2])
def test_blocks_equal_masked_full_attention_with_shared_key_heads(num_key_heads):
    near, full = build(2, num_key_heads=num_key_heads)
    states, mask = texts(18)
    expected = ask_masked(full, states, mask, 2)
    assert torch.allclose(ask(near, states, mask)[mask], expected[mask], atol=1e-6)


@pytest.mark.parametrize("positions", ["rotary", "shaw", "alibi"])
def test_gradients_of_blocks_equal_those_of_masked_full_attention(positions):
    near, full = build(3, positions=positions)
    states, mask = texts(19)
    answers = {near: ask(near, states, mask), full: ask_masked(full, states, mask, 3)}
    gradients = [
        torch.autograd.grad((answer * mask[..., None]).square().sum(), [*attention.parameters()])
        for attention, answer in answers.items()
    ]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_result_does_not_depend_on_padding():
    near, _ = build(2)
    states, mask = texts(24)
    alone = ask(near, states[1:, :16], mask[1:, :16])
    assert torch.allclose(ask(near, states, mask)[1:, :16], alone, atol=1e-6)


@pytest.mark.parametrize("is_trained", [False, True], ids=["fused", "explicit"])
def test_padding_far_from_any_real_position_gives_no_nan(is_trained):
    near, _ = build(1, dropout=0.5)
    near.train(is_trained)
    states, mask = texts(21)
    mask[1] = torch.arange(21) < 2
    answer = ask(near, states.requires_grad_(), mask)
    answer.sum().backward()
    assert answer.isfinite().all()
    assert states.grad.isfinite().all()


def test_positions_outside_the_window_have_no_effect():
    near, _ = build(3)
    states, mask = texts(20, batch=1)
    other = states.clone()
    other[:, 12:] += 1.0
    before, after = ask(near, states, mask), ask(near, other, mask)
    assert torch.allclose(before[:, :9], after[:, :9], atol=1e-6)
    assert not torch.allclose(before[:, 9], after[:, 9], atol=1e-3)


def test_recorded_map_is_complete_and_gives_the_same_output():
    near, _ = build(3)
    states, mask = texts(20)
    expected = ask(near, states, mask)
    with record(near, is_self=True) as maps:
        answer = ask(near, states, mask)
    weights = maps.stack()[:, 0]
    assert weights.shape == (2, HEADS, 20, 20)
    assert torch.allclose(weights.sum(-1), torch.ones(2, HEADS, 20), atol=1e-6)
    far = ~window_mask(torch.arange(20), 20, half_width=3)
    assert weights[..., far].abs().max() == 0
    assert torch.allclose(answer, expected, atol=1e-6)


def test_memory_is_linear_in_the_length(monkeypatch):
    counts = []

    def attend(queries, keys, values, **rest):
        counts.append(queries.shape[0] * queries.shape[1] * queries.shape[2] * keys.shape[2])
        return whole(queries, keys, values, **rest)

    whole = windowed.attend
    monkeypatch.setattr(windowed, "attend", attend)
    near, _ = build(2)
    for length in (40, 80, 160):
        ask(near, *texts(length, batch=1))
    assert counts == [HEADS * length * (4 + 2 * 2) for length in (40, 80, 160)]
