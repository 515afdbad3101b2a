import pytest
import torch
from torch import nn

from regard.studies.reproduce.neurons.dense_and_convolution import (
    CONVOLUTION,
    DENSE,
    MATRIX,
    MLP,
    as_dense_layer,
    count_by_model,
    flatten_by_columns,
)


def test_matrix_of_the_lecture_is_flattened_by_columns():
    inputs = flatten_by_columns(MATRIX).int().tolist()
    assert inputs == [0, 2, 4, 3, 1, 3, 0, 4, 0, 3, 1, 2, 0, 3, 0, 3, 1, 4, 1, 3]


@pytest.mark.parametrize("shape", [(4, 5), (3, 3), (2, 6)])
def test_dense_layer_computes_the_convolution_of_any_matrix(shape):
    torch.manual_seed(0)
    convolution = nn.Conv2d(1, 1, 3, padding=1)
    layer, matrix = as_dense_layer(convolution, torch.Size(shape)), torch.randn(shape)
    with torch.no_grad():
        expected = flatten_by_columns(convolution(matrix[None, None])[0, 0])
        assert torch.allclose(layer(flatten_by_columns(matrix)), expected, atol=1e-6)


def test_counts_are_those_of_the_formulas():
    counts = count_by_model(16)
    assert counts[DENSE] == 3 * 16 * 16 * 64 + 64
    assert counts[CONVOLUTION] == 3 * 3 * 3 * 64 + 64
    assert counts[MLP] == (3 * 16 * 16 * 256 + 256) + (256 * 256 + 256)
