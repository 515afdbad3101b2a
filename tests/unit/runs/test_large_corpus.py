import gzip
import json
import random
from dataclasses import replace

import pytest
import torch

from regard.core.errors import CheckpointError, DataError
from regard.data.corpus import Corpus
from regard.data.text import readers
from regard.data.text.readers import read_corpus, read_examples
from regard.data.token_ids import TokenIds
from regard.runs.fingerprint import fingerprint
from regard.runs.folder import WEIGHTS, load_one
from regard.runs.request import Request
from regard.runs.saved.data import read_run_data
from regard.runs.train import train
from regard.tasks.generation.task import Predictor
from regard.tasks.reading import read_pairs
from regard.training.checkpoint import read_weights


@pytest.fixture
def large(monkeypatch, tmp_path):
    """Treat every file as a large one, with a cache of its own."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(readers, "LARGE_BYTES", 1)


PAIRS = [
    (" ".join(letters), " ".join(reversed(letters)))
    for letters in random.Random(0).sample(
        [[a, b, c, d] for a in "abcd" for b in "abcd" for c in "abcd" for d in "abcde"], 200
    )
]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(TSV)
    return path


def request(file, out, tiny_settings, **changes):
    settings = (*tiny_settings, "model.encoder.dropout=0.3", "train.max_steps=9")
    options = {"recipe": "bahdanau2015-laptop", "settings": settings, **changes}
    return Request(data=str(file), out=out, device="cpu", **options)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", TSV),
        ("a.tsv.gz", TSV),
        ("a.csv", "source,target\n" + TSV.replace("\t", ",")),
        ("a.jsonl", "".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in PAIRS)),
    ],
)
def test_every_format_of_a_large_file_gives_the_examples_of_a_list(large, tmp_path, name, content):
    path = tmp_path / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for _ in range(2):  # written, then read from the cache
        corpus = read_corpus(path)
        assert isinstance(corpus, Corpus)
        assert list(corpus) == read_examples(path)


def test_two_large_files_are_read_line_by_line(large, tmp_path):
    for index, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text("".join(pair[index] + "\n" for pair in PAIRS))
    paths = tmp_path / "a.en", tmp_path / "a.de"
    corpus = read_corpus(*paths)
    assert isinstance(corpus, Corpus)
    assert list(corpus) == read_examples(*paths)


def test_a_missing_second_file_is_reported(large, file, tmp_path):
    with pytest.raises(DataError, match="missing.de does not exist"):
        read_corpus(file, tmp_path / "missing.de")


def test_a_small_file_is_a_list(file):
    assert isinstance(read_corpus(file), list)


def test_a_compressed_file_counts_more(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(TSV.encode()))
    monkeypatch.setattr(readers, "LARGE_BYTES", 2 * path.stat().st_size)
    assert isinstance(read_corpus(path), Corpus)


def test_a_changed_file_or_other_columns_are_read_again(large, file):
    before = list(read_corpus(file))
    swapped = read_corpus(file, columns=("target", "source"))
    assert [example.source for example in swapped] == [example.target for example in before]
    file.write_text(TSV.replace("a", "x"))
    assert list(read_corpus(file)) == read_examples(file) != before


def test_an_error_in_a_large_file_leaves_nothing_in_the_cache(large, file, tmp_path):
    file.write_text(TSV + "no tab\n")
    for _ in range(2):
        with pytest.raises(DataError, match="line 201, has no tab.* 1 of 201 lines cannot be read"):
            read_corpus(file)
    assert len(read_corpus(file, on_error="skip")) == len(PAIRS)


def test_a_large_file_is_split_like_a_small_one(large, file, tmp_path, monkeypatch):
    config = replace(load_recipe_data(), seed=3)
    other = tmp_path / "valid.tsv"
    other.write_text(TSV[:90])
    for valid in ((), (str(other),)):
        ours = read_pairs((str(file),), valid, (), config=config)
        with monkeypatch.context() as patch:
            patch.setattr(readers, "LARGE_BYTES", 1 << 30)
            theirs = read_pairs((str(file),), valid, (), config=config)
        assert isinstance(ours.train, Corpus)
        assert isinstance(ours.valid, list)
        assert isinstance(theirs.train, list)
        assert list(ours.train) == theirs.train
        assert (ours.valid, ours.test, ours.note) == (theirs.valid, theirs.test, theirs.note)


def load_recipe_data():
    from regard.runs.recipes import load_recipe

    return load_recipe("bahdanau2015-laptop").data


def assert_same_weights(ours, theirs):
    first, second = read_weights(ours / WEIGHTS), read_weights(theirs / WEIGHTS)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_training_from_the_cache_equals_training_in_memory(
    large, file, tmp_path, tiny_settings, monkeypatch
):
    read = []
    monkeypatch.setattr(
        Predictor,
        "pair_batches",
        lambda self, sources, *args, original=Predictor.pair_batches, **options: (
            read.append(type(sources)),
            original(self, sources, *args, **options),
        )[1],
    )
    cached = train(request(file, tmp_path / "cached", tiny_settings))
    assert TokenIds in read
    read.clear()
    monkeypatch.setattr(readers, "LARGE_BYTES", 1 << 30)
    memory = train(request(file, tmp_path / "memory", tiny_settings))
    assert TokenIds not in read
    assert_same_weights(cached.folder, memory.folder)
    assert cached.evaluation.outputs == memory.evaluation.outputs


def test_a_resumed_run_equals_an_uninterrupted_one(
    large, file, tmp_path, tiny_settings, interrupted_at
):
    whole = train(request(file, tmp_path / "whole", tiny_settings))
    begun = request(file, tmp_path / "resumed", tiny_settings)
    assert train(begun, display=interrupted_at(4)).summary.stopped == "interrupted"
    resumed = train(replace(begun, is_resumed=True, recipe=None, settings=()))
    assert resumed.summary.progress.step == whole.summary.progress.step == 9
    assert_same_weights(resumed.folder, whole.folder)


def test_a_run_that_was_trained_in_memory_can_be_resumed_from_the_cache(
    large, file, tmp_path, tiny_settings, interrupted_at, monkeypatch
):
    begun = request(file, tmp_path / "run", tiny_settings)
    with monkeypatch.context() as patch:
        patch.setattr(readers, "LARGE_BYTES", 1 << 30)
        whole = train(request(file, tmp_path / "whole", tiny_settings))
        train(begun, display=interrupted_at(4))
    resumed = train(replace(begun, is_resumed=True, recipe=None, settings=()))
    assert_same_weights(resumed.folder, whole.folder)


def test_other_data_of_a_large_file_are_refused(large, file, tmp_path, tiny_settings):
    trained = train(request(file, tmp_path / "run", tiny_settings))
    task = load_one(str(trained.folder), "cpu")
    assert len(read_run_data(trained.folder, task).train) == 180
    file.write_text(TSV.replace("a b", "b a"))
    with pytest.raises(CheckpointError, match="has changed since"):
        read_run_data(trained.folder, task)


def test_the_fingerprint_of_a_corpus_needs_no_training_example(large, file, monkeypatch):
    splits = read_pairs((str(file),), (), (), config=load_recipe_data())
    monkeypatch.setattr(Corpus, "__iter__", None)
    monkeypatch.setattr(Corpus, "__getitem__", None)
    assert fingerprint(splits) == fingerprint(splits) != fingerprint(replace(splits, test=[]))


def test_vocabularies_of_a_corpus_are_fitted_to_a_sample(
    large, file, tmp_path, tiny_settings, monkeypatch, caplog
):
    caplog.set_level("INFO")
    monkeypatch.setattr("regard.tasks.generation.fields.MAX_FITTED", 50)
    train(request(file, tmp_path / "run", tiny_settings))
    assert "The tokenizers are fitted to 45 of 180 examples." in caplog.text


@pytest.mark.parametrize("recipe", [None, "vaswani2017-tiny"])
def test_tokens_are_chosen_by_a_sample(large, file, tmp_path, monkeypatch, recipe):
    for module in ("auto_tokens", "auto_recipe"):
        monkeypatch.setattr(f"regard.runs.{module}.MAX_INSPECTED", 50)
    ours, _ = Request(data=str(file), recipe=recipe, out=tmp_path / "run", device="cpu").resolve()
    monkeypatch.setattr(readers, "LARGE_BYTES", 1 << 30)
    theirs, _ = Request(data=str(file), recipe=recipe, out=tmp_path / "r", device="cpu").resolve()
    assert ours.data == theirs.data
