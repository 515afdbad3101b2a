from collections.abc import Iterator

import numpy as np
import pytest
import torch

from regard.data.batching import BatchConfig, Batches
from regard.data.corpus import Corpus, corpora_folder
from regard.data.example import Example
from regard.data.text import token_cache
from regard.data.text.field import TextField, both_sides
from regard.data.text.token_cache import encode_pairs
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.data.token_ids import TokenIds

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
