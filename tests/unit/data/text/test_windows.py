import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.text.windows import Windows

TEXT = np.arange(100, dtype=np.int32)


def windows(**changes):
    return Windows(TEXT, **{"window": 7, "num_windows": 4, "seed": 1, **changes})


def rows(batches):
    return torch.cat([batch.tokens for batch in batches])


def test_windows_of_an_epoch_are_adjacent_parts_of_the_text():
    found = rows(windows().epoch(0))
    starts = sorted(found[:, 0].tolist())
    assert found.shape[1] == 8
    assert torch.equal(found - found[:, :1], torch.arange(8).expand(len(found), -1))
    assert {after - before for before, after in zip(starts, starts[1:], strict=False)} == {7}
    # No further window fits before the first or after the last.
    assert starts[0] < 7
    assert starts[-1] + 7 >= 100 - 7


def test_epochs_have_different_starts_and_orders():
    firsts = {int(rows(windows().epoch(number))[:, 0].min()) for number in range(20)}
    assert len(firsts) > 3
    assert rows(windows().epoch(0))[:, 0].tolist() != sorted(rows(windows().epoch(0))[:, 0])


def test_order_depends_only_on_seed_and_epoch():
    ours = windows()
    list(ours.epoch(5))
    assert torch.equal(rows(ours.epoch(2)), rows(windows().epoch(2)))
    assert not torch.equal(rows(ours.epoch(2)), rows(windows(seed=2).epoch(2)))


def test_skipped_batches_are_the_first():
    whole, rest = list(windows().epoch(3)), list(windows().epoch(3, skip=2))
    assert [batch.tokens.tolist() for batch in rest] == [b.tokens.tolist() for b in whole[2:]]


def test_number_of_batches_equals_that_of_an_epoch():
    for number in range(10):
        assert windows().num_batches(number) == len(list(windows().epoch(number)))


def test_batch_counts_predicted_tokens():
    batch = next(windows().epoch(0))
    assert batch.num_target_tokens == 4 * 7
    assert torch.equal(batch.to(torch.device("cpu")).tokens, batch.tokens)


def test_text_of_a_single_window_is_accepted():
    (batch,) = windows(window=99).epoch(0)
    assert batch.tokens.tolist() == [list(range(100))]


def test_text_shorter_than_a_window_is_refused():
    with pytest.raises(DataError, match="longer than a window of 100 tokens, but has 100"):
        windows(window=100)


@pytest.mark.parametrize("name", ["window", "num_windows"])
def test_sizes_have_limits(name):
    with pytest.raises(ConfigError, match=f"`{name}` must be at least 1, but is 0"):
        windows(**{name: 0})


def test_batch_of_windows_is_split_in_order():
    (batch, *_) = windows(num_windows=5).epoch(0)
    parts = batch.split(2)
    assert [len(part.rows) for part in parts] == [3, 2]
    assert torch.equal(torch.cat([part.tokens for part in parts]), batch.tokens)
