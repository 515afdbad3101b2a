"""Data preparation, sentence splitting and counts of operations."""

import sys

import pytest
import torch
from first_sentence import first_sentence
from gather import Paraphrases, count_flops
from gather_media import peak_memory
from prepare import join_neighbours
from torch import nn

from regard.data.example import Example

CORPUS = [Example(f"a{i} b{i}", f"x{i} y{i} z{i}") for i in range(50)]


def test_joined_examples_keep_every_sentence_in_order_and_respect_the_limit():
    joined = join_neighbours(CORPUS, max_words=7)
    assert " ".join(e.source for e in joined) == " ".join(e.source for e in CORPUS)
    assert max(len(e.target.split()) for e in joined) == 6
    lengths = {len(e.source.split()) // 2 for e in join_neighbours(CORPUS, max_words=60)}
    assert lengths == {1, 2, 3, 4, 5}


def test_an_example_that_is_too_long_by_itself_is_left_out():
    pairs = [Example("a b c d", "x"), Example("a", "y")]
    assert join_neighbours(pairs, max_words=3) == [Example("a", "y")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("See Smith et al. for more. Two.", "See Smith et al. for more."),
        ("Fig. 3 shows it. Two.", "Fig. 3 shows it."),
        ("Is it? Yes.", "Is it?"),
        ("1. A list. Two.", "1. A list."),
        ("no end", "no end"),
        ("J. Smith wrote it. Two.", "J. Smith wrote it."),
    ],
)
def test_first_sentence(text, sentence):
    assert first_sentence(text) == sentence


def test_operations_are_two_per_weight_and_row_and_three_times_as_many_with_the_backward_pass():
    layer, values = nn.Linear(5, 7), torch.zeros(3, 5, requires_grad=True)
    assert count_flops(layer, [values]) == 2 * 3 * 5 * 7
    assert count_flops(lambda: layer(values).sum().backward(), []) == 3 * 2 * 3 * 5 * 7


def test_fused_kernels_are_counted():
    heads = torch.zeros(2, 4, 9, 8)
    attend = nn.functional.scaled_dot_product_attention
    assert count_flops(attend, [heads, heads, heads]) == 2 * (2 * 2 * 4 * 9 * 9 * 8)
    gru = nn.GRU(5, 6, batch_first=True)
    assert count_flops(gru, [torch.zeros(2, 7, 5)]) == 2 * 2 * 7 * 3 * 6 * (5 + 6)


def test_paraphrases_are_grouped_by_translation():
    pairs = [("eins a b", "one"), ("uno c d", "one"), ("zwei", "two"), ("eins a b", "three")]
    found = Paraphrases([Example(*pair) for pair in pairs])
    assert found.members == {"one": [0, 1], "two": [2]}
    assert found.queries == [0]
    assert found.other_words == [0, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_counts_the_child_only():
    allocate = "x = bytearray(200 * 2**20)"
    small = peak_memory([sys.executable, "-c", "pass"])
    large = peak_memory([sys.executable, "-c", f"{allocate}; x[:: 4096] = b'1' * len(x[:: 4096])"])
    assert 150 < large - small < 300
