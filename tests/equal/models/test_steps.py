"""Two ways to compute the same logits: step by step, and all target positions at once."""

import pytest
import torch

from regard.attention.beam_cache import BeamCache
from regard.models.interfaces import map_tensors, reorder
from tests.fixtures.variants import ATTENTION, FORMS, MODELS, TRANSFORMERS

pytestmark = pytest.mark.matrix("config", MODELS, TRANSFORMERS, ATTENTION, FORMS)


@pytest.fixture(scope="module")
def memory(model, sentences):
    return model.encode(sentences.source, sentences.mask)


def take_steps(model, targets, state):
    logits = []
    for tokens in targets.split(1, dim=1):
        step_logits, state = model.step(tokens, state)
        logits.append(step_logits)
    return torch.cat(logits, dim=1)


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-5)


def test_step_by_step_equals_all_at_once(model, memory, sentences, logits):
    assert same(take_steps(model, sentences.targets, model.start(memory)), logits)


def test_prefix_and_then_steps_equals_all_at_once(model, memory, sentences, logits):
    prefix, state = model.step(sentences.targets[:, :3], model.start(memory))
    rest = take_steps(model, sentences.targets[:, 3:], state)
    assert same(torch.cat([prefix, rest], dim=1), logits)


def test_every_beam_of_a_sentence_has_the_logits_of_the_sentence(model, memory, sentences, logits):
    targets = sentences.targets.repeat_interleave(2, dim=0)
    beams, _ = model.step(targets, model.start(memory, beams=2))
    assert same(beams, logits.repeat_interleave(2, dim=0))


def tensors(nested):
    """Return all tensors of a state; of caches, those of the slots in use."""
    found = []

    def add(part):
        if isinstance(part, BeamCache):
            found.extend(
                tensor for cache in part.caches if cache.length for tensor in cache.visible
            )
        else:
            found.append(part)
        return part

    map_tensors(nested, add)
    return found


@pytest.mark.parametrize("max_length", [None, 9], ids=["growing", "preallocated"])
def test_state_may_be_continued_twice(model, memory, sentences, max_length):
    state = model.start(memory, beams=2, max_length=max_length)
    tokens = sentences.targets.repeat_interleave(2, dim=0)
    first, after = model.step(tokens[:, :1], state)
    before = [tensor.clone() for tensor in tensors(after.per_hypothesis)]
    rows = torch.tensor([1, 1, 2, 2, 5, 4])
    model.step(tokens[:, 1:3], reorder(after, rows))
    one, _ = model.step(tokens[:, 1:3], after)
    _, other = model.step(tokens[:, 3:4], after)
    model.step(tokens[:, 1:2], other)
    again, _ = model.step(tokens[:, 1:3], after)
    assert torch.equal(again, one)
    unchanged = zip(before, tensors(after.per_hypothesis), strict=True)
    assert all(torch.equal(*pair) for pair in unchanged)
    assert torch.equal(model.step(tokens[:, :1], state)[0], first)


def test_reordered_state_equals_steps_in_the_new_order(model, memory, sentences):
    tokens = sentences.targets.repeat_interleave(2, dim=0)
    rows = torch.tensor([1, 1, 3, 2, 5, 5])
    _, state = model.step(tokens[:, :2], model.start(memory, beams=2, max_length=4))
    ours, _ = model.step(tokens[:, 2:3], reorder(state, rows))
    _, state = model.step(tokens[rows, :2], model.start(memory, beams=2))
    theirs, _ = model.step(tokens[:, 2:3], state)
    assert same(ours, theirs)
