import pytest
import torch

from regard.attention.multihead import SelfAttention, simplified_self_attention
from regard.studies.reproduce.transformers.self_attention import (
    INPUTS,
    W_K,
    W_Q,
    W_V,
    compare_forms,
    contexts_of_bank,
    fit_exponent,
    projected_by_loops,
    simplified_by_loops,
    solve_exercise,
)


@pytest.mark.parametrize("is_causal", [False, True])
def test_simplified_loops_equal_the_package(is_causal):
    context, _ = simplified_self_attention(INPUTS[None], is_causal=is_causal)
    assert torch.allclose(simplified_by_loops(INPUTS, is_causal=is_causal), context[0])


@pytest.mark.parametrize("is_causal", [False, True])
def test_loops_with_projections_equal_one_head_of_the_package(is_causal):
    layer = SelfAttention(dim=2, num_heads=1).double().requires_grad_(False)
    maps = (layer.query_map, layer.key_map, layer.value_map, layer.output_map)
    for linear, weight in zip(maps, (W_Q, W_K, W_V, torch.eye(2)), strict=True):
        linear.weight.copy_(weight)
        linear.bias.zero_()
    output, _ = layer(INPUTS[None], is_causal=is_causal)
    loops = projected_by_loops(INPUTS, (W_Q, W_K, W_V), is_causal=is_causal)
    assert torch.allclose(loops, output[0])


def test_exercise_has_the_numbers_worked_out_by_hand():
    steps = solve_exercise(is_causal=False)
    assert steps["products"].tolist() == [2, 1, 3, 4]
    assert steps["weights"].tolist() == pytest.approx([0.131, 0.065, 0.266, 0.539], abs=1e-3)
    assert steps["y"].tolist() == pytest.approx([1.804, 0.330], abs=1e-3)


def test_causal_exercise_uses_three_inputs():
    steps = solve_exercise(is_causal=True)
    assert steps["weights"].tolist() == pytest.approx([0.284, 0.140, 0.576], abs=1e-3)


def test_all_forms_agree():
    assert max(compare_forms(seed=4).values()) < 1e-12


def test_bank_has_another_output_in_each_context():
    river, money = contexts_of_bank().values()
    assert river["y of bank, river"] > 1.9
    assert money["y of bank, river"] == 0


def test_exponent_of_a_square_is_two():
    assert fit_exponent({n: 1e-9 * n**2 for n in (8, 16, 64)}) == pytest.approx(2)
