import logging
import random

import pytest

from regard.data.example import Example
from regard.data.splits import Splits
from regard.runs.auto_tokens import fit_tokens, subword_size
from regard.runs.recipes import load_recipe
from regard.runs.request import Request

SENTENCES = [f"the word{number} is new here ." for number in range(300)]
CLOSED = ["the cat sees the dog .", "the dog sees the cat ."] * 40
SINGLE_WORDS = ["".join(random.Random(seed).choices("abcdefgh", k=6)) for seed in range(300)]


@pytest.fixture
def notices(caplog):
    caplog.set_level(logging.INFO, logger="regard")
    return lambda: [record.getMessage() for record in caplog.records]


def fit(name, sources, targets, *overrides):
    examples = [Example(*pair) for pair in zip(sources, targets, strict=True)]
    num = len(examples) // 10
    splits = Splits(examples[num:], examples[:num], examples[:num], "")
    return fit_tokens(load_recipe(name, overrides), splits, overrides).data


def test_words_that_lose_tokens_become_subwords(notices):
    data = fit("gehring2017-laptop", SENTENCES, SENTENCES)
    assert (data.source.kind, data.target.kind, data.target.vocab_size) == ("bpe", "bpe", 4000)
    assert notices()[1].startswith("Target tokens: bpe, 4,000 (")
    assert "word, 8,000 of the recipe would lose" in notices()[1]


def test_words_that_lose_nothing_are_kept(notices):
    data = fit("gehring2017-laptop", CLOSED, CLOSED)
    assert (data, notices()) == (load_recipe("gehring2017-laptop").data, [])


def test_single_words_become_characters():
    data = fit("gehring2017-laptop", SINGLE_WORDS, SENTENCES)
    assert (data.source.kind, data.target.kind) == ("char", "bpe")


def test_a_joint_vocabulary_has_no_more_subwords_than_the_data_can_train(notices):
    data = fit("vaswani2017-base", SENTENCES, SENTENCES)
    assert data.is_joint
    assert (data.source.kind, data.source.vocab_size) == ("bpe", 4000)
    assert notices() == ["Source and target tokens: bpe, 4,000 (270 pairs; the recipe has 32,000)."]


def test_a_joint_vocabulary_of_single_words_has_characters():
    assert fit("vaswani2017-tiny", SINGLE_WORDS, SINGLE_WORDS).source.kind == "char"


@pytest.mark.parametrize(
    ("override", "kind", "size"),
    [("data.target.kind=word", "word", 8000), ("data.target.vocab_size=700", "bpe", 700)],
)
def test_settings_of_the_user_are_kept(override, kind, size):
    target = fit("gehring2017-laptop", SENTENCES, SENTENCES, override).target
    assert (target.kind, target.vocab_size) == (kind, size)


def test_lower_casing_and_further_tokens_are_kept():
    assert fit("babi", SENTENCES, SENTENCES).target.is_lower_cased


def test_large_data_have_more_subwords():
    assert [subword_size(num) for num in (9_999, 10_000, 10**6)] == [4_000, 8_000, 32_000]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{text}\t{text}\n" for text in SENTENCES), encoding="utf-8")
    return str(path)


def test_a_named_recipe_fits_its_tokens_to_files(pairs):
    recipe, _ = Request(data=(pairs,), recipe="gehring2017-laptop").resolve()
    assert recipe.data.target.kind == "bpe"


def test_a_toml_file_and_built_in_data_keep_their_tokens(pairs, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[data.source]\nkind = "word"\n[data.target]\nkind = "word"\n')
    for data, name in ((pairs, str(path)), ("copy:300", "gehring2017-laptop")):
        recipe, _ = Request(data=(data,), recipe=name).resolve()
        assert recipe.data.target.kind == "word"
