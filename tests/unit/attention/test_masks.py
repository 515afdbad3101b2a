import pytest
import torch

from regard.attention.masks import (
    block_mask,
    causal_mask,
    causal_window_mask,
    padding_mask,
    window_mask,
)


def test_padding_allows_the_real_positions():
    assert padding_mask(torch.tensor([3, 1, 0]), 3).tolist() == [
        [True, True, True],
        [True, False, False],
        [False, False, False],
    ]


def test_causal_allows_itself_and_the_past():
    assert causal_mask(3, 3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_causal_mask_includes_the_diagonal():
    for i, row in enumerate(causal_mask(5, 5).tolist()):
        assert row == [j <= i for j in range(5)]


def test_fewer_queries_than_keys_are_the_last_positions():
    assert torch.equal(causal_mask(2, 5), causal_mask(5, 5)[3:])


@pytest.mark.parametrize("half_width", [1, 2])
def test_window_is_the_distance_to_the_centre(half_width):
    centres = torch.tensor([[0.0, 2.4], [4.0, 1.5]])
    allowed = window_mask(centres, 5, half_width=half_width)
    for row in range(2):
        for query in range(2):
            for key in range(5):
                is_near = abs(key - centres[row, query].item()) <= half_width
                assert allowed[row, query, key].item() == is_near


def test_window_accepts_integer_centres():
    assert window_mask(torch.tensor([1]), 4, half_width=1).tolist() == [[True, True, True, False]]


def test_block_allows_the_same_block_only():
    assert block_mask(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])).tolist() == [
        [True, True, False],
        [False, False, True],
        [False, False, True],
    ]


def test_block_mask_accepts_leading_axes():
    queries, keys = torch.tensor([[0, 1], [0, 0]]), torch.tensor([[0, 1, 1], [0, 0, 1]])
    together = block_mask(queries, keys)
    assert torch.equal(
        together, torch.stack([block_mask(queries[row], keys[row]) for row in range(2)])
    )


def test_packed_texts_attend_causally_within_themselves():
    blocks = torch.tensor([0, 0, 1, 1])
    assert (causal_mask(4, 4) & block_mask(blocks, blocks)).tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [False, False, True, False],
        [False, False, True, True],
    ]


def test_causal_window_allows_a_band_up_to_each_position():
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert causal_window_mask(4, 4, window=2).int().tolist() == expected
    assert causal_window_mask(2, 4, window=2).int().tolist() == expected[2:]


def test_causal_window_wider_than_the_text_is_causal():
    assert torch.equal(causal_window_mask(3, 5, window=5), causal_mask(3, 5))
