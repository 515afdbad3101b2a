import pytest
import torch

from regard.attention.masks import causal, padding, window


def test_padding_allows_the_real_positions():
    assert padding(torch.tensor([3, 1, 0]), 3).tolist() == [
        [True, True, True],
        [True, False, False],
        [False, False, False],
    ]


def test_causal_allows_itself_and_the_past():
    assert causal(3, 3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_fewer_queries_than_keys_are_the_last_positions():
    assert torch.equal(causal(2, 5), causal(5, 5)[3:])


@pytest.mark.parametrize("reach", [1, 2])
def test_window_is_the_distance_to_the_centre(reach):
    centres = torch.tensor([[0.0, 2.4], [4.0, 1.5]])
    allowed = window(centres, 5, reach=reach)
    for row in range(2):
        for query in range(2):
            for key in range(5):
                is_near = abs(key - centres[row, query].item()) <= reach
                assert allowed[row, query, key].item() == is_near


def test_window_takes_whole_positions():
    assert window(torch.tensor([1]), 4, reach=1).tolist() == [[True, True, True, False]]
