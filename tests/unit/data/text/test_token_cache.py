import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch

from regard.data.batching import BatchConfig, Batches
from regard.data.corpus import Corpus, corpora_folder
from regard.data.example import Example
from regard.data.labels import LabelField
from regard.data.text import token_cache
from regard.data.text.field import TextField, both_sides, texts_of
from regard.data.text.token_cache import (
    Column,
    ParsedField,
    encode_labelled,
    encode_pairs,
    encode_stream,
)
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.data.text.windows import StreamField, Windows
from regard.data.token_ids import TokenIds, first_ids, lengths_of, truncate

WORDS = "the a small big red dog cat bird sees finds likes tree house near under with".split()


@pytest.fixture
def examples():
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, generator.integers(1, 9))) for _ in range(120)]
    return [
        *(Example(one, other.upper()) for one, other in zip(texts, texts[1:], strict=False)),
        Example(("the dog", "a cat"), "a bird"),
    ]


@pytest.fixture
def corpus(examples, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(token_cache, "CHUNK", 50)
    return Corpus.open("name", lambda: examples)


def make_fields(examples, **settings):
    texts = [example.target for example in examples] + WORDS
    return both_sides(train_tokenizer(TokenizerConfig(**settings), texts))


@pytest.mark.parametrize(("vocab_size", "dtype"), [(40, np.uint8), (300, np.uint16)])
def test_cached_token_ids_equal_those_in_memory(corpus, examples, vocab_size, dtype):
    fields = make_fields(examples, vocab_size=vocab_size)
    assert np.min_scalar_type(fields["source"].size - 1) <= dtype
    sources, targets = encode_pairs(corpus, **fields)
    assert list(sources) == fields["source"].read_all([example.source for example in examples])
    assert list(targets) == fields["target"].read_all([example.target for example in examples])


def test_ids_beyond_two_bytes_are_stored(corpus, examples, monkeypatch):
    fields = make_fields(examples)
    monkeypatch.setattr(TextField, "size", 1 << 17)
    monkeypatch.setattr(TextField, "read_all", lambda self, texts: [[99_999, 3] for _ in texts])
    assert encode_pairs(corpus, **fields)[0][5] == [99_999, 3]


def test_batches_of_cached_token_ids_equal_those_in_memory(corpus, examples):
    fields = make_fields(examples)
    rows = {
        "cached": encode_pairs(corpus, **fields),
        "memory": [
            fields[side].read_all([getattr(example, side) for example in examples])
            for side in ("source", "target")
        ],
    }
    ours, theirs = (
        Batches(
            *rows[where], BatchConfig(max_tokens=60, max_length=30), fields=tuple(fields.values())
        )
        for where in ("cached", "memory")
    )
    assert isinstance(rows["cached"][0], TokenIds)
    for epoch in range(2):
        pairs = list(zip(ours.epoch(epoch), theirs.epoch(epoch), strict=True))
        assert len(pairs) > 5
        for one, other in pairs:
            assert one.rows == other.rows
            assert torch.equal(one.source, other.source)
            assert torch.equal(one.target, other.target)
            assert torch.equal(one.target_mask, other.target_mask)


def cached_tokens() -> Iterator[str]:
    return (path.name for path in corpora_folder().glob("*-tokens"))


def test_a_corpus_is_tokenised_once(corpus, examples, monkeypatch):
    fields = make_fields(examples)
    first = list(encode_pairs(corpus, **fields)[0])
    monkeypatch.setattr(TextField, "read_all", None)
    assert list(encode_pairs(corpus, **fields)[0]) == first


def test_changed_examples_or_tokens_are_tokenised_again(corpus, examples):
    fields = make_fields(examples)
    variants = [
        (corpus, fields),
        (corpus.without(np.array([2])), fields),
        (corpus, make_fields(examples, kind="char")),
        (corpus, {**fields, "target": fields["source"]}),
    ]
    for number, (changed, changed_fields) in enumerate(variants, start=1):
        sources, _ = encode_pairs(changed, **changed_fields)
        expected = changed_fields["source"].read_all([example.source for example in changed])
        assert list(sources) == expected
        assert len(list(cached_tokens())) == number


def test_a_saved_tokenizer_has_the_same_digest(examples, tmp_path):
    field = make_fields(examples)["source"]
    field.tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").digest == field.tokenizer.digest


@pytest.mark.parametrize("name", ["source.bin", "target-offsets.npy"])
def test_a_truncated_file_is_written_again(corpus, examples, name):
    fields = make_fields(examples)
    expected = [list(side) for side in encode_pairs(corpus, **fields)]
    path = corpora_folder() / next(cached_tokens()) / name
    path.write_bytes(path.read_bytes()[:-2])
    assert [list(side) for side in encode_pairs(corpus, **fields)] == expected


def test_cached_labels_and_parsed_sources_equal_those_in_memory(examples, corpus):
    fields = {"source": make_fields(examples)["source"], "labels": LabelField.fit(corpus.targets)}
    for parse in (parse_texts, parse_first):
        ours = encode_labelled(corpus, **fields, parse=parse)
        theirs = encode_labelled(examples, **fields, parse=parse)
        assert [*map(list, ours)] == [*map(list, theirs)]
        assert [*first_ids(ours[1])] == first_ids(theirs[1])
        assert isinstance(ours[0], TokenIds)


def parse_texts(source):
    return tuple(source.split(" ", 1)) if isinstance(source, str) else source


def parse_first(source):
    return texts_of(parse_texts(source))[0]


def test_truncated_pairs_of_texts_equal_those_in_memory(examples, corpus):
    source, labels = make_fields(examples)["source"], LabelField.fit(corpus.targets)
    items, theirs = (
        encode_labelled(one, source=source, labels=labels, parse=parse_texts)[0]
        for one in (corpus, examples)
    )
    ours = truncate(items, 6, source.shorten)
    assert list(ours) == truncate(theirs, 6, source.shorten) != theirs
    assert lengths_of(ours).tolist() == [*map(len, ours)]


@pytest.mark.parametrize("kind", ["byte", "word"])
def test_windows_of_a_cached_stream_equal_those_in_memory(corpus, examples, kind):
    lines = [
        Example(f"{one.target} \n" + "\n" * (row % 5 == 0)) for row, one in enumerate(examples)
    ]
    stream = Corpus.open("lines", lambda: lines)
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind), [line.source for line in lines])
    field = StreamField(tokenizer, is_exact=kind == "byte")
    ours, theirs = (encode_stream(one, field) for one in (stream, lines))
    assert ours.dtype.itemsize == 1 + (kind == "byte")
    assert ours[:].tolist() == theirs.tolist()
    batches = [Windows(ids, window=16, num_windows=4, seed=3) for ids in (ours, theirs)]
    for one, other in zip(*(part.epoch(1, skip=2) for part in batches), strict=True):
        assert torch.equal(one.tokens, other.tokens)


def test_worker_processes_encode_the_same_token_ids(corpus, examples):
    # Worker processes get a pickled function.
    fields = {**make_fields(examples), "labels": LabelField.fit(corpus.targets)}
    columns = [
        Column("source", ParsedField(fields["source"], parse_texts)),
        Column("target", fields["target"]),
        Column("target", fields["labels"]),
        Column("target", StreamField(fields["target"].tokenizer, is_exact=False)),
    ]
    encode = partial(token_cache._encode, columns=columns)
    lines = [*corpus.lines()]
    for ours, theirs in zip(pickle.loads(pickle.dumps(encode))(lines), encode(lines), strict=True):
        assert [*map(list, ours)] == [*map(list, theirs)]


def test_the_spelling_of_special_tokens_stays_text_in_worker_processes(examples):
    field = make_fields(examples)["source"]
    assert pickle.loads(pickle.dumps(field)).read("a <eos> b") == field.read("a <eos> b")


KILLED = """
import sys, time
from regard.data.corpus import Corpus
from regard.data.text import token_cache
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import Tokenizer
from pathlib import Path

append, token_cache.CHUNK = token_cache._Files.append, 30

def stop(files, *ids):
    append(files, *ids)
    if len(files.sizes) == 3:
        print("ready", flush=True)
        time.sleep(60)

token_cache._Files.append = stop
corpus = Corpus.open("name", lambda: sys.exit("The corpus is missing."))
token_cache.encode_pairs(corpus, **both_sides(Tokenizer.load(Path(sys.argv[1]))))
"""


def test_a_killed_tokenisation_leaves_no_damaged_cache(corpus, examples, tmp_path):
    fields = make_fields(examples)
    fields["source"].tokenizer.save(tmp_path / "tokenizer.json")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "tokenizer.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    (abandoned,) = corpora_folder().glob(".*.part")
    assert (abandoned / "built" / "source.bin").stat().st_size > 0
    assert not list(cached_tokens())
    for path in (abandoned, *abandoned.rglob("*")):
        os.utime(path, (1, 1))
    for side, name in zip(encode_pairs(corpus, **fields), ("source", "target"), strict=True):
        assert list(side) == fields[name].read_all([getattr(one, name) for one in examples])
    assert not abandoned.exists()
