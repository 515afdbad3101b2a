import pytest
import torch

from regard.attention.attend import attend
from regard.attention.beam_cache import BeamCache

BATCH, BEAMS, HEADS, DIM = 2, 3, 2, 4
CPU = torch.device("cpu")


class Reference:
    """Keys of every hypothesis in tensors of its own, copied when hypotheses are reordered."""

    def __init__(self, prefix):
        self.keys = prefix.repeat_interleave(BEAMS, dim=0)

    def append(self, keys):
        self.keys = torch.cat([self.keys, keys], dim=2)

    def reorder(self, rows):
        self.keys = self.keys[rows]


def by_sentence(heads):
    """Group heads (B·W, H, T, E) by sentence, (B, H, W·T, E)."""
    grouped = heads.unflatten(0, (BATCH, BEAMS)).transpose(1, 2)
    return grouped.flatten(2, 3)


def step(cache, reference, num_tokens):
    """Append random keys to both; return both contexts of random queries, and the new cache."""
    queries, keys = torch.randn(2, BATCH * BEAMS, HEADS, num_tokens, DIM)
    cache = cache.fork(num_tokens, CPU)
    shown, _ = cache.caches[0].append(by_sentence(keys), by_sentence(keys))
    mask = None if cache.mask is None else cache.mask[:, None]
    ours, _ = attend(by_sentence(queries), shown, shown, mask=mask, is_causal=mask is None)
    reference.append(keys)
    theirs, _ = attend(queries, reference.keys, reference.keys, is_causal=True)
    return ours, by_sentence(theirs), cache


@pytest.mark.parametrize("max_length", [None, 9])
@pytest.mark.parametrize("prefix", [0, 4])
def test_hypotheses_attend_as_if_each_had_its_own_keys(prefix, max_length):
    torch.manual_seed(0)
    cache = BeamCache.allocate(1, beams=BEAMS, max_length=max_length)
    source = torch.randn(BATCH, HEADS, prefix, DIM)
    if prefix:
        cache = BeamCache.allocate(1, max_length=max_length).fork(prefix, CPU)
        cache.caches[0].append(source, source)
        cache = cache.with_prefix(torch.ones(BATCH, prefix, dtype=torch.bool), beams=BEAMS)
    reference = Reference(source)
    for num_tokens in (1, 2, 1, 1, 3):
        ours, theirs, cache = step(cache, reference, num_tokens)
        assert torch.allclose(ours, theirs, atol=1e-6)
        parents = torch.randint(BEAMS, (BATCH, BEAMS))
        rows = (parents + BEAMS * torch.arange(BATCH)[:, None]).flatten()
        cache = cache.reorder(rows)
        reference.reorder(rows)
    assert cache.length == 8


@pytest.mark.parametrize("prefix", [0, 3])
@pytest.mark.parametrize("max_length", [None, 5])
def test_widened_hypotheses_share_the_first_keys(prefix, max_length):
    torch.manual_seed(0)
    cache = BeamCache.allocate(1, max_length=None if max_length is None else prefix + max_length)
    past = torch.randn(BATCH, HEADS, prefix + 1, DIM)
    if prefix:
        cache = cache.fork(prefix, CPU)
        cache.caches[0].append(past[:, :, :prefix], past[:, :, :prefix])
        cache = cache.with_prefix(torch.ones(BATCH, prefix, dtype=torch.bool), beams=1)
    cache = cache.fork(1, CPU)
    cache.caches[0].append(past[:, :, prefix:], past[:, :, prefix:])
    cache, reference = cache.widen(BEAMS), Reference(past)
    for rows in ([0, 0, 1, 5, 4, 4], [2, 1, 0, 3, 3, 5], [0, 1, 2, 3, 4, 5]):
        ours, theirs, cache = step(cache, reference, num_tokens=1)
        torch.testing.assert_close(ours, theirs)
        cache = cache.reorder(torch.tensor(rows))
        reference.reorder(torch.tensor(rows))


def test_reordering_copies_no_keys():
    cache = BeamCache.allocate(1, beams=BEAMS, max_length=4)
    with torch.no_grad():
        _, _, cache = step(cache, Reference(torch.zeros(BATCH, HEADS, 0, DIM)), 1)
    reordered = cache.reorder(torch.tensor([2, 2, 1, 3, 5, 5]))
    assert reordered.caches[0] is cache.caches[0]
    assert not torch.equal(reordered.slots, cache.slots.expand_as(reordered.slots))


def test_selected_sentences_keep_their_hypotheses():
    torch.manual_seed(0)
    cache = BeamCache.allocate(1, beams=BEAMS)
    _, _, cache = step(cache, Reference(torch.zeros(BATCH, HEADS, 0, DIM)), 2)
    cache = cache.reorder(torch.tensor([1, 0, 0, 5, 4, 3]))
    selected = cache.select(torch.tensor([1]))
    assert torch.equal(selected.slots, cache.slots[1:])
    assert torch.equal(selected.caches[0].visible[0], cache.caches[0].visible[0][1:])


def test_tokens_outside_the_window_are_masked_and_dropped():
    cache = BeamCache.allocate(1, beams=2).fork(1, CPU, window=2)
    for _ in range(2):
        cache = cache.fork(1, CPU, window=2)
    # Slots of positions 0, 1 and 2, of two beams each: position 0 is outside of the window.
    assert cache.mask.tolist() == [
        [[False, False, True, False, True, False], [False, False, False, True, False, True]]
    ]
    kept = cache.keep_last(1)
    assert (kept.slots.shape[-1], kept.positions.tolist()) == (2, [2, 2])
