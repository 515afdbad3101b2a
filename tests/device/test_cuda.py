"""Tests that need a GPU."""

import warnings
from contextlib import contextmanager

import pytest
import torch

from regard.data.batching import Batches
from regard.data.example import Example
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.search.settings import SearchConfig
from regard.studies.ladder import LAPTOP
from regard.tasks.generation.task import Predictor

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here"),
]
RECIPES = (*LAPTOP.values(), "modern-small")
EXAMPLES = [
    Example("a b c d e", "e d c b a"),
    Example("b a", "a b"),
    Example("c c e", "e c c"),
    Example("d", "d"),
]
SOURCES = [example.source for example in EXAMPLES]


@pytest.fixture(params=RECIPES)
def predictor(request):
    """Return a model of a laptop recipe with initial weights on the GPU, in training mode, bf16."""
    recipe = load_recipe(request.param, ["train.precision=bf16"])
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=20), SOURCES)
    device = torch.device("cuda")
    predictor = Predictor.from_scratch(recipe, {**both_sides(tokenizer)}, device=device)
    predictor.model.train()
    return predictor


@pytest.fixture
def batch(predictor):
    """Return all examples as one batch in pinned memory."""
    batches = Batches(
        predictor.source.read_all(SOURCES),
        predictor.target.read_all([example.target for example in EXAMPLES]),
        predictor.recipe.data.batch,
        fields=(predictor.source, predictor.target),
        is_pinned=True,
    )
    (batch,) = batches.epoch(0)
    return batch


@contextmanager
def no_synchronization():
    """Raise an error at any operation that synchronises with the GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it does not detect all synchronisations
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_all_gradients_in_bf16_are_finite(predictor, batch):
    predictor.loss(batch).total.backward()
    for name, weight in predictor.model.named_parameters():
        assert weight.dtype == torch.float32
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_loss_in_bf16_is_close_to_fp32(predictor, batch):
    predictor.model.eval()
    found = predictor.loss(batch).nll
    with torch.autocast("cuda", enabled=False):
        values = batch.to(predictor.device)
        logits = predictor.model(values.source, batch.source_mask, values.target[:, :-1]).logits
    log_probs = logits.float().log_softmax(-1).gather(-1, values.target[:, 1:, None]).squeeze(-1)
    exact = -log_probs[values.target_mask[:, 1:]].sum()
    assert found.item() == pytest.approx(exact.item(), rel=0.02)


def test_training_step_does_not_synchronize(predictor, batch):
    loss = predictor.loss
    loss(batch).total.backward()  # the first call initialises libraries
    torch.cuda.synchronize()
    with no_synchronization():
        loss(batch).total.backward()


@pytest.mark.parametrize(
    "search",
    [
        SearchConfig(beams=1),
        SearchConfig(beams=4),
        SearchConfig(beams=4, no_repeat_ngram=2, min_length=3, repetition_penalty=1.2),
        SearchConfig(temperature=0.8, top_k=5, top_p=0.9, min_p=0.01),
    ],
)
def test_search_on_the_gpu_equals_the_cpu(tiny_run, search):
    on_host, on_device = (
        load(tiny_run.folder, device).predict(SOURCES, search=search) for device in ("cpu", "cuda")
    )
    for ours, theirs in zip(on_device, on_host, strict=True):
        assert ours[0].tokens == theirs[0].tokens
        assert ours[0].log_prob == pytest.approx(theirs[0].log_prob, abs=1e-3)
