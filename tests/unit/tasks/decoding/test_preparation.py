"""Packed copies follow the weights, threads change no prediction, batches are of bounded size."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.attention.recording import record
from regard.core.module import Linear
from regard.data.batching import BatchConfig
from regard.search.settings import SearchConfig
from regard.search.tree import record_trees
from regard.tasks.decoding.alternatives import add_alternatives
from regard.tasks.decoding.preparation import NUM_ROWS, PackedModels, search_batches
from regard.tasks.generation.lexical import LexicalOptions

SOURCES = [f"{first} {second} {third}" for first in "abcde" for second in "abcd" for third in "ab"]


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return nn.Sequential(Linear(8, 8))


def outputs_of(model):
    with torch.inference_mode():
        return model(torch.arange(8.0)[None] / 8)


def add_in_place(layer):
    with torch.no_grad():
        layer[0].weight.add_(1.0)


def load_state(layer):
    layer.load_state_dict({name: one + 1.0 for name, one in layer.state_dict().items()})


def replace_weight(layer):
    layer[0].weight = nn.Parameter(layer[0].weight.detach() + 1.0)


def replace_data(layer):
    layer[0].weight.data = layer[0].weight.detach() + 1.0


def replace_layer(layer):
    layer[0] = Linear(8, 8)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize(
    "change", [add_in_place, load_state, replace_weight, replace_data, replace_layer]
)
def test_copy_is_renewed_when_a_weight_changes(layer, change, precision):
    models = PackedModels()
    before = outputs_of(models.find(layer, precision))
    change(layer)
    after = outputs_of(models.find(layer, precision))
    assert not torch.allclose(after, before, atol=0.1)
    assert torch.allclose(after, outputs_of(layer), atol=0.1)


def test_copy_of_unchanged_weights_is_kept_per_precision(layer):
    models = PackedModels()
    first = models.find(layer, "bf16")
    assert models.find(layer, "int8") is not first
    assert models.find(layer, "bf16") is first
    add_in_place(layer)
    assert models.find(layer, "bf16") is not first


def test_optimiser_step_changes_predictions(tiny_run):
    task = tiny_run.predictor
    before = task.predict(SOURCES[:4])
    state = {name: one.clone() for name, one in task.model.state_dict().items()}
    optimizer = torch.optim.SGD(task.model.parameters(), lr=1.0)
    try:
        for parameter in task.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert [one[0].log_prob for one in task.predict(SOURCES[:4])] != [
            one[0].log_prob for one in before
        ]
    finally:
        optimizer.zero_grad()
        task.model.load_state_dict(state)
    assert task.predict(SOURCES[:4]) == before


@pytest.fixture
def threads():
    """Function that sets the number of threads of torch until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert [(one.text, one.tokens, one.phrases) for one in mine] == [
            (one.text, one.tokens, one.phrases) for one in other
        ]
        for one, two in zip(mine, other, strict=True):
            assert one.token_log_probs == pytest.approx(two.token_log_probs, abs=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"beams": 1},
        {"beams": 4},
        {"beams": 4, "groups": 2},
        {"beams": 4, "coverage_penalty": 0.5},
        {"beams": 4, "consensus": 4, "consensus_metric": "chrf"},
        {"temperature": 1.0, "seed": 3},
        {"beams": 4, "precision": "bf16"},
        {"beams": 4, "precision": "int8"},
    ],
)
def test_predictions_of_several_threads_equal_those_of_one(tiny_run, threads, changes):
    search = SearchConfig(**changes)
    found = []
    for number in (1, 4):
        threads(number)
        found.append(tiny_run.predictor.predict(SOURCES, search=search))
    assert_equal(*found)


def test_lexical_predictions_of_several_threads_equal_those_of_one(tiny_run, threads):
    options = LexicalOptions(glossary={"a": "e e", "b c": "d"}, forbid=("c",), replace_unknown=True)
    task, found = tiny_run.predictor.with_lexical(options), []
    for number in (1, 4):
        threads(number)
        found.append(task.predict(SOURCES))
    assert_equal(*found)


def test_attention_of_a_prediction_is_recorded(tiny_run, threads):
    threads(4)
    task, search = tiny_run.predictor, SearchConfig(beams=1)
    with record(task.model) as recorded:
        predictions = task.predict(SOURCES[:1], search=search)
    assert recorded.stack().shape[3] == len(predictions[0][0].tokens)
    ((found,),), ((expected,),) = task.predict(SOURCES[:1], search=search), predictions
    assert found.tokens == expected.tokens
    assert found.token_log_probs == pytest.approx(expected.token_log_probs, abs=1e-5)
    assert recorded.stack().shape[3] == len(predictions[0][0].tokens)


def test_trees_of_several_threads_are_recorded(tiny_run, threads):
    threads(4)
    with record_trees() as recorder:
        tiny_run.predictor.predict(SOURCES, search=SearchConfig(beams=2))
    trees = [tree for number in range(recorder.num_searches) for tree in recorder.trees(number)]
    assert len(trees) == len(SOURCES) and all(trees)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_alternatives_have_the_precision_of_the_search(tiny_run, precision):
    search = SearchConfig(beams=2, precision=precision)
    task, near = tiny_run.predictor, 1e-5 if precision == "fp32" else 0.05
    predictions = task.predict(SOURCES[:6], search=search)
    for (one,) in add_alternatives(task, SOURCES[:6], predictions, num=8, search=search):
        for token, value, position in zip(
            one.tokens, one.token_log_probs, one.alternatives, strict=True
        ):
            assert dict(position)[token] == pytest.approx(value, abs=near)


def test_error_of_a_thread_is_raised(tiny_run, threads, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("This batch fails.")

    threads(4)
    monkeypatch.setattr(type(tiny_run.predictor), "generate", fail)
    with pytest.raises(RuntimeError, match=r"^This batch fails\.$"):
        tiny_run.predictor.predict(SOURCES)


def test_batches_are_bounded_by_rows_and_shared_by_threads(threads):
    config, device = BatchConfig(), torch.device("cpu")
    threads(1)
    many = search_batches(config, num_sources=10_000, beams=5, device=device)
    assert many.max_sentences == NUM_ROWS // 5
    threads(4)
    assert search_batches(config, num_sources=10, beams=5, device=device).max_sentences == 3
    assert search_batches(config, num_sources=9, beams=1000, device=device).max_sentences == 1
    # Five batches of at most 64 sentences would leave three of four workers waiting for one.
    assert search_batches(config, num_sources=320, beams=5, device=device).max_sentences == 40
    small = replace(config, max_sentences=2)
    assert search_batches(small, num_sources=10_000, beams=1, device=device).max_sentences == 2
    assert search_batches(config, num_sources=9, beams=5, device=torch.device("cuda")) is config
