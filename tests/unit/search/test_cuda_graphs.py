"""Captured steps, on a CPU with a graph that computes its step again into the same tensors."""

from dataclasses import fields, is_dataclass, replace

import pytest
import torch

from regard.attention.recording import record
from regard.models.build import build_model
from regard.search import cuda_graphs
from regard.search.cuda_graphs import (
    LENGTH_MULTIPLE,
    MAX_CHAINS,
    StepGraphs,
    encode,
    search_steps,
)
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.search.tree import record_trees
from tests.fixtures.inputs import END, PAD, START, VOCAB_SIZE
from tests.fixtures.models import TEXT
from tests.fixtures.parts import TINY_CONFIGS

FAMILIES = ("transformer-transformer", "gru-both-bahdanau-gru", "lstm-one-luong-lstm")


def copy_into(old, new):
    """Copy all tensors of nested results in place."""
    if isinstance(old, torch.Tensor):
        old.copy_(new)
    elif is_dataclass(old):
        for one in fields(old):
            copy_into(getattr(old, one.name), getattr(new, one.name))
    elif isinstance(old, list | tuple):
        for pair in zip(old, new, strict=True):
            copy_into(*pair)
    elif isinstance(old, dict):
        for key, value in old.items():
            copy_into(value, new[key])


class FakeGraph:
    count = 0

    pool = None

    def __init__(self, step, pool=None):
        type(self).count += 1
        self.step, self.result = step, step()

    def replay(self):
        copy_into(self.result, self.step())


class FailingGraph:
    def __init__(self, step, pool=None):
        raise RuntimeError("operation not permitted when stream is capturing")


@pytest.fixture(autouse=True)
def fake_graphs(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "StepGraph", FakeGraph)
    monkeypatch.setattr(FakeGraph, "count", 0)


def build(family):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = build_model(TINY_CONFIGS[family], source=TEXT, target_vocab_size=VOCAB_SIZE)
    return model.eval().requires_grad_(False)


@torch.inference_mode()
def run(model, rows, config, *, max_length=9):
    width = max(map(len, rows))
    tokens = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    scorer = ModelScorer(model, encode(model, tokens, tokens != PAD), banned=(PAD, START))
    lengths = torch.tensor([max_length - index % 3 for index in range(len(rows))])
    return search(scorer, start=START, end=END, max_lengths=lengths, config=config, num_best=1)


def check_equal(found, expected):
    for (ours,), (theirs,) in zip(found, expected, strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.step_log_probs == pytest.approx(theirs.step_log_probs, abs=1e-5)


BATCHES = ([[5, 6, 7], [8, 9]], [[9, 8, 7, 6], [5]], [[7], [6, 5, 8]])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("beams", [1, 3])
def test_captured_search_is_search(family, beams):
    model, config = build(family), SearchConfig(beams=beams)
    expected = [run(model, rows, config) for rows in BATCHES]
    model.step_graphs = StepGraphs(model)
    found = [run(model, rows, config) for rows in BATCHES]
    assert FakeGraph.count > 0
    for ours, theirs in zip(found, expected, strict=True):
        check_equal(ours, theirs)


@pytest.mark.parametrize("family", FAMILIES)
def test_captured_encoder_is_the_encoder(family):
    model = build(family)
    captured = build(family)
    captured.step_graphs = StepGraphs(captured)
    for rows in BATCHES:
        width = max(map(len, rows))
        tokens = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
        with torch.inference_mode():
            ours = encode(captured, tokens, tokens != PAD)
            theirs = encode(model, tokens, tokens != PAD)
        real = (tokens != PAD)[..., None]
        torch.testing.assert_close(ours.states * real, theirs.states * real)
        torch.testing.assert_close(ours.summary, theirs.summary)
        assert torch.equal(ours.mask, theirs.mask)
    assert FakeGraph.count == 1


def test_padded_batches_have_the_same_results():
    model, config = build(FAMILIES[0]), SearchConfig(beams=2)
    rows = [[5, 6, 7], [8, 9], [7], [6, 6], [5, 9, 8, 7, 6]]
    expected = run(model, rows, config)
    model.step_graphs = StepGraphs(model)
    run(model, [*rows, [5]], config)  # six rows and five are both padded to six
    check_equal(run(model, rows, config), expected)
    assert FakeGraph.count > 0


def test_sources_are_padded_up_to_the_maximum_length_only():
    config = TINY_CONFIGS["transformer-transformer"]
    config = replace(config, encoder=replace(config.encoder, positions="learned", max_length=11))
    model = build_model(config, source=TEXT, target_vocab_size=VOCAB_SIZE).eval()
    rows, search_config = [[5, 6, 7, 8, 9] * 2 + [5], [5, 6]], SearchConfig(beams=2)
    expected = run(model, rows, search_config)
    model.step_graphs = StepGraphs(model)
    for _ in range(3):
        check_equal(run(model, rows, search_config), expected)
    assert FakeGraph.count > 0


def test_longer_searches_capture_further_steps():
    model, config = build(FAMILIES[0]), SearchConfig(beams=2)
    model.step_graphs = StepGraphs(model)
    counts = []
    for max_length in (3, 3, 3, 9, 9):
        run(model, [[5, 6]], config, max_length=max_length)
        counts.append(FakeGraph.count)
    assert counts[0] == 0
    assert counts[1] == counts[2] <= 1 + 3  # one encoder
    assert counts[3] == counts[4]


def test_first_search_of_a_shape_is_eager():
    model, config = build(FAMILIES[0]), SearchConfig(beams=2)
    model.step_graphs = StepGraphs(model)
    run(model, [[5] * 3], config)
    run(model, [[5] * (LENGTH_MULTIPLE + 1)], config)
    assert FakeGraph.count == 0


def test_other_settings_are_other_steps():
    model = build(FAMILIES[0])
    model.step_graphs = StepGraphs(model)
    for beams in (2, 3, 2, 3):
        config = SearchConfig(beams=beams, length_penalty=0.5)
        check_equal(run(model, [[5, 6]], config), run(build(FAMILIES[0]), [[5, 6]], config))


def test_steps_that_cannot_be_captured_run_eagerly(monkeypatch, caplog):
    model, config = build(FAMILIES[0]), SearchConfig(beams=2)
    expected = run(model, [[5, 6]], config)
    model.step_graphs = StepGraphs(model)
    monkeypatch.setattr(cuda_graphs, "StepGraph", FailingGraph)
    caplog.set_level("INFO")
    for _ in range(3):
        check_equal(run(model, [[5, 6]], config), expected)
    assert not model.step_graphs.is_enabled
    assert caplog.text.count("operation not permitted") == 2  # the encoder and a step


def test_recorded_searches_are_eager():
    model, config = build(FAMILIES[0]), SearchConfig(beams=2)
    model.step_graphs = StepGraphs(model)
    for _ in range(2):
        with record(model) as maps:
            run(model, [[5, 6]], config)
        assert maps.stack().shape[0] == 1
    assert FakeGraph.count == 0


def test_recorded_trees_have_no_padding_and_stay():
    config, rows = SearchConfig(beams=2), [[5, 6, 7], [8, 9], [7], [6, 6], [5, 9]]
    others = [row[::-1] for row in rows]
    model = build(FAMILIES[0])
    with record_trees() as expected:
        run(model, rows, config)
    model.step_graphs = StepGraphs(model)
    with record_trees() as found:
        for batch in (rows, rows, others):
            run(model, batch, config)
    for number in (0, 1):
        for ours, theirs in zip(found.trees(number), expected.trees(), strict=True):
            assert [node.tokens for node in ours] == [node.tokens for node in theirs]


def test_captured_encoder_that_was_used_least_recently_is_dropped(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MAX_CHAINS", 2)
    model = build(FAMILIES[0])
    model.step_graphs = StepGraphs(model)
    for num_rows in (1, 2, 1, 3):
        tokens = torch.full((num_rows, 3), 5)
        with torch.inference_mode():
            encode(model, tokens, tokens != PAD)
    assert [batch for batch, _ in model.step_graphs._encoders] == [1, 3]


def test_second_search_of_another_thread_is_eager():
    model = build(FAMILIES[0])
    model.step_graphs = StepGraphs(model)
    tokens = torch.tensor([[5, 6]])
    scorer = ModelScorer(model, model.encode(tokens, tokens != PAD), banned=(PAD,))
    lengths = torch.tensor([4])
    with search_steps(scorer, lengths, "key"):
        pass
    with (
        search_steps(scorer, lengths, "key") as steps,
        search_steps(scorer, lengths, "key") as others,
    ):
        assert steps.is_captured
        assert not others.is_captured


def test_number_of_captured_searches_is_limited():
    model, config = build(FAMILIES[0]), SearchConfig(beams=2)
    model.step_graphs = StepGraphs(model)
    for length in range(1, MAX_CHAINS + 4):
        for _ in range(2):
            run(model, [[5] * (length * LENGTH_MULTIPLE)], config)
    assert len(model.step_graphs._chains) == MAX_CHAINS
