"""Search on a GPU: fused kernels and captured steps against torch's operations."""

import pytest
import torch
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from regard.attention import step
from regard.core.specs import TextSpec
from regard.models.build import build_model
from regard.models.packing import pack
from regard.runs.recipes import load_recipe
from regard.search.cuda_graphs import StepGraphs
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here"),
]
VOCAB_SIZE, PAD, START, END = 200, 0, 2, 3
RECIPES = ("vaswani2017-small", "modern-small", "bahdanau2015", "luong2015", "gehring2017")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("num_queries", "num_keys", "key_heads", "mask_shape"),
    [
        (5, 7, 4, (3, 1, 5, 7)),
        (5, 130, 2, (3, 1, 1, 130)),
        (1, 64, 4, None),
        (17, 3, 1, (1, 1, 1, 3)),
    ],
)
def test_step_attention_is_attention(dtype, num_queries, num_keys, key_heads, mask_shape):
    torch.manual_seed(0)
    queries = torch.randn(3, num_queries, 4, 32).cuda().to(dtype).transpose(1, 2)
    buffers = torch.randn(2, 3, key_heads, 200, 32).cuda().to(dtype)
    keys, values = buffers[:, :, :, :num_keys]
    mask = None
    if mask_shape:
        mask = torch.rand(mask_shape).cuda() > 0.3
        mask[..., 0] = True
    assert step.is_supported(queries, keys, values, mask=mask)
    found = step.step_attention(queries, keys, values, mask=mask)
    expected = scaled_dot_product_attention(
        queries.double(), keys.double(), values.double(), attn_mask=mask, enable_gqa=True
    )
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(found.double(), expected, atol=tolerance, rtol=tolerance)


def test_sum_and_norm_are_those_of_torch():
    from regard.models.kernels.add_norm import add_norm

    states, update = torch.randn(2, 3, 7, 24).cuda()
    weight, bias = torch.randn(2, 24).cuda()
    expected = layer_norm(states + update, (24,), weight, bias)
    torch.testing.assert_close(add_norm(states, update, weight, bias, 1e-5), expected)


@torch.inference_mode()
def run(model, lengths, *, beams):
    generator = torch.Generator().manual_seed(len(lengths))
    tokens = torch.randint(4, VOCAB_SIZE, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    memory = model.encode(tokens.masked_fill(~mask, PAD).cuda(), mask.cuda())
    limits = torch.tensor([length + 5 for length in lengths])
    scorer = ModelScorer(model, memory, banned=(PAD, START))
    config = SearchConfig(beams=beams)
    return search(scorer, start=START, end=END, max_lengths=limits, config=config)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("beams", [1, 4])
def test_captured_search_is_eager_search(recipe, beams):
    torch.manual_seed(1)
    config = load_recipe(recipe, []).model
    model = build_model(config, source=TextSpec(VOCAB_SIZE), target_vocab_size=VOCAB_SIZE)
    model = model.cuda().eval().requires_grad_(False)
    batches = ([5, 9, 2], [7, 7, 8], [1, 3], [9, 4, 6])
    expected = [run(model, lengths, beams=beams) for lengths in batches]
    packed = pack(model, "fp32")
    packed.step_graphs = StepGraphs(packed)
    for _ in range(2):
        for lengths, theirs in zip(batches, expected, strict=True):
            for (one,), (other,) in zip(run(packed, lengths, beams=beams), theirs, strict=True):
                assert one.tokens == other.tokens
                assert one.step_log_probs == pytest.approx(other.step_log_probs, abs=1e-4)
    assert packed.step_graphs.is_enabled
