import pytest
import torch

from regard.attention.cache import KeyValueCache

ROWS, HEADS, DIM = 3, 2, 4


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def draw(length):
    return torch.randn(ROWS, HEADS, length, DIM), torch.randn(ROWS, HEADS, length, DIM)


def read(cache, *lengths):
    """Append so many positions step by step; return the last cache and all that was appended."""
    chunks = [draw(length) for length in lengths]
    for chunk in chunks:
        cache = cache.fork()
        cache.append(*chunk)
    return cache, [torch.cat(parts, dim=2) for parts in zip(*chunks, strict=True)]


def shows(cache, keys, values):
    return torch.equal(cache.visible[0], keys) and torch.equal(cache.visible[1], values)


@pytest.mark.parametrize("max_length", [None, 1, 6, 20])
def test_cache_returns_all_appended_positions(max_length):
    cache, expected = read(KeyValueCache(max_length), 2, 1, 1, 2)
    assert shows(cache, *expected)
    assert (cache.length, cache.fork().num_past) == (6, 6)


@torch.no_grad()
def test_steps_within_the_limit_write_into_one_buffer():
    first, _ = read(KeyValueCache(max_length=5), 1)
    address = first.visible[0].data_ptr()
    last, _ = read(first, 1, 2, 1)
    assert last.visible[0].data_ptr() == address
    assert read(last, 1)[0].visible[0].data_ptr() != address


@torch.no_grad()
def test_buffer_without_a_limit_grows_geometrically():
    cache, addresses = KeyValueCache(), set()
    for _ in range(64):
        cache, _ = read(cache, 1)
        addresses.add(cache.visible[0].storage_offset() or cache._buffer.keys.shape[2])
    assert len(addresses) < 10


def test_single_pass_is_cached_without_a_copy():
    cache, (keys, values) = KeyValueCache(), draw(7)
    shown = cache.append(keys, values)
    assert shown[0].data_ptr() == keys.data_ptr() and shown[1].data_ptr() == values.data_ptr()


@pytest.mark.parametrize("max_length", [None, 9])
def test_two_continuations_are_independent(max_length):
    begun, (keys, values) = read(KeyValueCache(max_length), 2, 1)
    ours, (our_keys, our_values) = read(begun, 1, 1)
    theirs, (their_keys, their_values) = read(begun, 2)
    assert shows(begun, keys, values)
    assert shows(ours, torch.cat([keys, our_keys], 2), torch.cat([values, our_values], 2))
    assert shows(theirs, torch.cat([keys, their_keys], 2), torch.cat([values, their_values], 2))


@pytest.mark.parametrize("max_length", [None, 9])
def test_reordered_cache_has_the_rows_and_the_old_cache_is_unchanged(max_length):
    begun, (keys, values) = read(KeyValueCache(max_length), 2, 1)
    rows = torch.tensor([2, 2, 0])
    moved, (new_keys, new_values) = read(begun[rows], 1)
    assert shows(
        moved, torch.cat([keys[rows], new_keys], 2), torch.cat([values[rows], new_values], 2)
    )
    assert shows(begun, keys, values)


@torch.no_grad()
def test_reordered_cache_has_capacity_for_the_next_step():
    begun, _ = read(KeyValueCache(max_length=9), 2)
    moved = begun[torch.tensor([1, 0, 2])]
    address = moved.visible[0].data_ptr()
    assert read(moved, 3)[0].visible[0].data_ptr() == address


def test_appending_again_replaces_the_step():
    begun, (keys, values) = read(KeyValueCache(max_length=9), 2)
    cache, first, second = begun.fork(), draw(1), draw(1)
    cache.append(*first)
    cache.append(*second)
    assert shows(cache, torch.cat([keys, second[0]], 2), torch.cat([values, second[1]], 2))
    assert cache.num_past == 2


@pytest.mark.parametrize("max_length", [None, 8])
@torch.no_grad()
def test_dropped_positions_are_not_returned(max_length):
    cache, chunks = KeyValueCache(max_length), []
    for _ in range(30):
        cache, (keys, _) = read(cache, 1)
        cache.keep_last(4)
        chunks.append(keys)
    assert torch.equal(cache.visible[0], torch.cat(chunks[-4:], dim=2))
    assert (cache.length, cache.fork().num_past) == (4, 4)
    assert cache._buffer.keys.shape[2] <= 10


def test_gradients_reach_every_step():
    cache, steps = KeyValueCache(max_length=9), []
    for _ in range(3):
        keys = torch.randn(ROWS, HEADS, 1, DIM, requires_grad=True)
        cache = cache.fork()
        shown, _ = cache.append(keys, keys)
        steps.append((keys, shown.square().sum()))
    sum(loss for _, loss in steps).backward()
    for number, (keys, _) in enumerate(steps):
        assert torch.allclose(keys.grad, 2.0 * (3 - number) * keys)


def test_empty_cache_can_be_reordered():
    assert KeyValueCache(max_length=3)[torch.tensor([0, 0])].length == 0


def test_gradients_reach_values_whose_keys_need_none():
    cache, steps = KeyValueCache(max_length=9), []
    for _ in range(3):
        keys = torch.randn(ROWS, HEADS, 1, DIM)
        values = torch.randn(ROWS, HEADS, 1, DIM, requires_grad=True)
        cache = cache.fork()
        shown, seen = cache.append(keys, values)
        steps.append((values, (shown.detach() * seen.square()).sum()))
    sum(loss for _, loss in steps).backward()
    assert all(values.grad.abs().sum() > 0 for values, _ in steps)


def test_gradients_of_queries_alone_are_supported():
    queries = torch.randn(ROWS, HEADS, 1, DIM, requires_grad=True)
    cache, losses = KeyValueCache(max_length=9), []
    for _ in range(3):
        cache = cache.fork()
        keys, _ = cache.append(*torch.randn(2, ROWS, HEADS, 1, DIM))
        losses.append((queries @ keys.mT).square().sum())
    sum(losses).backward()
    assert queries.grad.abs().sum() > 0


def test_cache_of_inference_mode_can_be_continued_outside():
    with torch.inference_mode():
        cache, (before, _) = read(KeyValueCache(max_length=9), 2)
    with torch.no_grad():
        cache, (after, _) = read(cache, 1)
    assert cache.length == 3
    assert torch.equal(cache.visible[0], torch.cat([before, after], dim=2))
