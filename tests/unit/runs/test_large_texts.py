"""Language models and classifiers on large files: the cache gives what memory gives."""

import random
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch

from regard.data.corpus import Corpus
from regard.data.text import readers
from regard.runs.folder import WEIGHTS
from regard.runs.request import Request
from regard.runs.train import train
from regard.training.checkpoint import read_weights

WORDS = "the a small big red dog cat bird sees finds likes tree house near under with".split()


def sentences(num):
    generator = random.Random(1)
    return [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) for _ in range(num)]


class Kind(NamedTuple):
    """A task with a file and tiny settings."""

    recipe: str
    content: str
    settings: tuple[str, ...]


TEXT = "".join(f"{line} \n" + "\n" * (n % 7 == 0) for n, line in enumerate(sentences(120)))
LABELLED = "text\tlabel\n" + "".join(
    f"{text}\t{'animal' if 'dog' in text or 'cat' in text else 'none'}\n" for text in sentences(120)
)
LANGUAGE_MODEL = (
    "model.dim=8", "model.num_heads=2", "model.feed_forward_dim=8", "model.num_layers=1",
    "model.dropout=0.2", "data.window=16", "data.num_windows=4", "search.max_extra=5",
)  # fmt: skip
CLASSIFIER = (
    "model.encoder.dim=8", "model.encoder.num_layers=1", "model.encoder.num_heads=2",
    "model.encoder.feed_forward_dim=8", "model.encoder.dropout=0.2", "data.batch.max_sentences=8",
)  # fmt: skip
KINDS = {
    "bytes": Kind("gpt-laptop", TEXT, LANGUAGE_MODEL),
    "words": Kind("gpt-laptop", TEXT, (*LANGUAGE_MODEL, "data.tokenizer.kind=word")),
    "labels": Kind("sst2-transformer", LABELLED, CLASSIFIER),
}


@pytest.fixture(params=KINDS)
def request_of(request, tmp_path, monkeypatch):
    """A function from the name of a run folder to the request, where every file is large."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(readers, "LARGE_BYTES", 1)
    kind = KINDS[request.param]
    file = tmp_path / "data.tsv"
    file.write_text(kind.content)
    limits = ("train.max_steps=9", "train.validate_every=5", "train.max_epochs=0")
    settings = (*kind.settings, *limits, "train.precision=fp32")

    def make(name):
        return Request(
            data=str(file), recipe=kind.recipe, settings=settings, out=tmp_path / name, device="cpu"
        )

    return make


def assert_same_weights(ours, theirs):
    first, second = read_weights(ours.folder / WEIGHTS), read_weights(theirs.folder / WEIGHTS)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_training_from_the_cache_equals_training_in_memory(request_of, monkeypatch):
    assert isinstance(request_of("cached").resolve()[1].train, Corpus)
    cached = train(request_of("cached"))
    monkeypatch.setattr(readers, "LARGE_BYTES", 1 << 30)
    assert isinstance(request_of("memory").resolve()[1].train, list)
    memory = train(request_of("memory"))
    assert_same_weights(cached, memory)
    assert cached.evaluation.outputs == memory.evaluation.outputs
    assert cached.evaluation.results == memory.evaluation.results


def test_a_resumed_run_equals_an_uninterrupted_one(request_of, interrupted_at):
    whole, begun = train(request_of("whole")), request_of("resumed")
    assert train(begun, display=interrupted_at(4)).summary.stopped == "interrupted"
    resumed = train(replace(begun, is_resumed=True, recipe=None, settings=()))
    assert resumed.summary.progress.step == whole.summary.progress.step == 9
    assert_same_weights(resumed, whole)
