import dataclasses

import pytest
import torch

from regard.attention.positions import POSITIONS
from regard.attention.recording import record
from regard.core.native import linear
from regard.core.native.bindings import find_kernels
from regard.models.packed.blocks import PackedStack
from regard.models.packing import pack
from regard.models.transformer import TransformerConfig, build_positions, build_stack

DIM, BEAMS, STEPS = 16, 3, 4
CONFIG = TransformerConfig(dim=DIM, num_heads=4, feed_forward_dim=24, num_layers=2)
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"is_norm_first": True},
    "gelu": {"feed_forward": "gelu"},
    "gated-rms": {"feed_forward": "gated", "norm": "rms"},
    "grouped": {"num_key_heads": 2},
    "batch-norm": {"norm": "batch"},
    **{name: {"positions": name} for name in POSITIONS},
}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(params=["kernels", "torch"], autouse=True)
def has_kernels(request, monkeypatch):
    """Compute by kernels, if there is a compiler, and by operations of torch alone."""
    if request.param == "torch":
        monkeypatch.setattr(linear, "is_fast", lambda precision: False)
    elif find_kernels() is None:
        pytest.skip("there is no C++ compiler")
    return request.param == "kernels"


@pytest.fixture(params=VARIANTS)
def stack(request):
    config = dataclasses.replace(CONFIG, **VARIANTS[request.param])
    positions = build_positions(config, is_causal=True)
    built = build_stack(config, positions, memory_dim=DIM).eval()
    for name, parameter in built.named_parameters():
        if "norm" in name or "bias" in name:
            torch.nn.init.normal_(parameter)
    return torch.nn.Sequential(built)


@pytest.fixture
def memory():
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    return torch.randn(2, 5, DIM), mask


def decode(stack, inputs, memory, mask):
    """Outputs of steps of search, (B, W, D) each, in which beams are reordered."""
    projected, cache, outputs = stack.project_memory(memory), stack.new_cache(beams=BEAMS), []
    for states in inputs:
        cache = cache.fork(1, states.device)
        outputs.append(
            stack(
                states,
                mask=cache.mask,
                is_causal=cache.mask is None,
                caches=cache.caches,
                memory=projected,
                memory_mask=mask,
            )
        )
        cache = cache.reorder(torch.tensor([0, 0, 2, 4, 3, 3]))
    return torch.stack(outputs)


@torch.no_grad()
def test_steps_of_a_packed_stack_are_those_of_the_stack(stack, memory):
    packed = pack(stack, "fp32")[0]
    assert type(packed) is PackedStack
    inputs = torch.randn(STEPS, 2, BEAMS, DIM)
    torch.testing.assert_close(
        decode(packed, inputs, *memory), decode(stack[0], inputs, *memory), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("has_mask", [False, True])
@torch.no_grad()
def test_packed_pass_over_positions_is_that_of_the_stack(stack, memory, is_causal, has_mask):
    packed = pack(stack, "fp32")[0]
    states, mask = memory
    options = {"mask": mask[:, None]} if has_mask else {}
    options |= {"is_causal": is_causal, "memory": states, "memory_mask": mask}
    expected = stack[0](states, **options)
    torch.testing.assert_close(packed(states, **options), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_packed_pass_over_many_positions_is_that_of_the_stack(stack):
    packed = pack(stack, "fp32")[0]
    states = torch.randn(2, 40, DIM)
    mask = torch.arange(40) < torch.tensor([[40], [19]])
    options = {"mask": mask[:, None], "memory": states.flip(1), "memory_mask": mask.flip(1)}
    expected = stack[0](states, **options)
    real = mask[..., None].expand(expected.shape)
    found = packed(states, **options)
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_memory_of_one_sentence_is_shared_by_all(stack):
    packed = pack(stack, "fp32")[0]
    states, memory = torch.randn(3, 4, DIM), torch.randn(1, 6, DIM)
    options = {"memory": memory, "memory_mask": torch.ones(1, 6, dtype=torch.bool)}
    expected = stack[0](states, **options)
    torch.testing.assert_close(packed(states, **options), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_threads_change_no_bit(stack, has_kernels, monkeypatch):
    packed = pack(stack, "fp32")[0]
    if not has_kernels or packed._native is None:
        pytest.skip("operations of torch round by the number of threads")
    states = torch.randn(9, 30, DIM)
    options = {"memory": states, "memory_mask": torch.rand(9, 30) < 0.8}
    alone = packed(states, **options)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(packed(states, **options), alone)


@torch.no_grad()
def test_state_of_another_batch_is_refused(stack, has_kernels):
    packed = pack(stack, "fp32")[0]
    if not has_kernels or packed._native is None:
        pytest.skip("torch checks shapes itself")
    cache = packed.new_cache(max_length=4).fork(1, torch.device("cpu"))
    packed(torch.randn(1, 1, DIM), caches=cache.caches)
    cache = cache.fork(1, torch.device("cpu"))
    with pytest.raises(AssertionError):
        packed(torch.randn(3, 1, DIM), caches=cache.caches)


@pytest.mark.parametrize("length", [5, 15, 16, 33])
@torch.no_grad()
def test_padding_does_not_change_a_bit(stack, has_kernels, length):
    packed = pack(stack, "fp32")[0]
    if not has_kernels or packed._native is None:
        pytest.skip("operations of torch round by the shape")
    states, memory = torch.randn(3, 50, DIM), torch.randn(3, 50, DIM)
    mask = torch.arange(50) < torch.tensor([[length], [50], [length]])
    batch = packed(states, mask=mask[:, None], memory=memory, memory_mask=mask)
    own, context = states[:1, :length], memory[:1, :length]
    whole = torch.ones(1, length, dtype=torch.bool)
    alone = packed(own, mask=whole[:, None], memory=context, memory_mask=whole)
    assert torch.equal(batch[:1, :length], alone)
    unmasked = packed(own, memory=context, memory_mask=whole)
    assert torch.equal(unmasked, alone)


@pytest.mark.parametrize(("precision", "bound"), [("bf16", 0.1), ("int8", 0.2)])
@torch.no_grad()
def test_packed_stack_in_other_precisions_is_close(stack, memory, precision, bound):
    packed = pack(stack, precision)[0]
    inputs = torch.randn(STEPS, 2, BEAMS, DIM)
    found, expected = (decode(one, inputs, *memory) for one in (packed, stack[0]))
    assert found.dtype == torch.float32
    assert (found - expected).abs().mean() < bound * expected.std()


NATIVE = {"post-norm", "pre-norm", "gated-rms", "none", "sinusoidal", "learned", "rotary"}


def test_kernel_computes_the_usual_blocks(request, stack, has_kernels):
    is_native = pack(stack, "fp32")[0]._native is not None
    name = request.node.callspec.params["stack"]
    assert is_native == (has_kernels and name in NATIVE | {"sinusoidal_halves"})


@torch.no_grad()
def test_packed_stack_records_weights(stack, memory):
    packed = pack(stack, "fp32")[0]
    states, mask = memory
    with record(packed) as maps:
        packed(states, memory=states, memory_mask=mask)
    weights = maps.stack()
    assert weights.shape == (2, 2, 4, 5, 5)
    assert not weights[1, ..., 3:].any()


@torch.no_grad()
def test_packed_stack_shares_parameters(stack):
    packed = pack(stack, "bf16")
    assert list(packed.state_dict()) == list(stack.state_dict())
    assert all(
        one is other for one, other in zip(packed.parameters(), stack.parameters(), strict=True)
    )
