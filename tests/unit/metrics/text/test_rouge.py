import gzip
import json
import logging
import random

import pytest

from regard.core.errors import ConfigError
from regard.metrics.text.ngrams import lcs_length, rouge1, rouge2, rouge_char, rouge_l

KINDS = {"rouge1": rouge1, "rouge2": rouge2, "rougeL": rouge_l}


@pytest.fixture(scope="module")
def scorer():
    package = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is missing")
    return package.RougeScorer(list(KINDS), use_stemmer=False)


def assert_equal(scorer, hypotheses, references):
    """Assert that each score and the mean equal those of the package rouge-score."""
    pairs = list(zip(hypotheses, references, strict=True))
    theirs = [scorer.score_multi(texts, text) for text, texts in pairs]
    for name, measure in KINDS.items():
        ours = [measure([text], [texts]).value for text, texts in pairs]
        wanted = [100 * scores[name].fmeasure for scores in theirs]
        assert ours == pytest.approx(wanted, abs=1e-9)
        mean = measure(hypotheses, references).value
        assert mean == pytest.approx(sum(wanted) / len(wanted), abs=1e-9)
        assert 0 < mean < 100


def test_rouge_of_random_texts_equals_rouge_score(scorer):
    generator = random.Random(0)
    # Case, punctuation, digits, umlauts, other scripts, empty texts.
    words = ["the", "The", "cat", "cat's", "mat.", "3.14", "42", "schöne", "猫", "—", "U.S.", "İ"]

    def text():
        return " ".join(generator.choices(words, k=generator.randint(0, 12)))

    hypotheses = [text() for _ in range(400)]
    references = [[text() for _ in range(generator.randint(1, 3))] for _ in range(400)]
    assert_equal(scorer, hypotheses, references)


def test_rouge_of_real_summaries_equals_rouge_score(scorer, data_folder):
    path = data_folder / "scitldr" / "test.jsonl.gz"
    if not path.exists():
        pytest.skip("SciTLDR is absent")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(200), strict=False)]
    hypotheses = [row["source"][0] for row in rows]
    assert max(len(row["target"]) for row in rows) > 1
    assert_equal(scorer, hypotheses, [row["target"] for row in rows])


def test_rouge_equals_values_by_hand():
    hypotheses, references = ["the cat sat"], [["the sat cat slept"]]
    # ROUGE-1: three of three words, of four; ROUGE-2: none; ROUGE-L: "the cat" or "the sat".
    assert rouge1(hypotheses, references).value == pytest.approx(100 * 6 / 7)
    assert rouge2(hypotheses, references).value == 0
    assert rouge_l(hypotheses, references).value == pytest.approx(100 * 4 / 7)


def test_detail_has_precision_and_recall():
    detail = rouge1(["the cat"], [["the cat sat down"]]).detail
    assert detail == {"precision": 100, "recall": 50}


def test_lcs_length_equals_dynamic_programming():
    generator = random.Random(1)
    for _ in range(200):
        first, second = (
            "".join(generator.choices("abc", k=generator.randint(0, 70))) for _ in "12"
        )
        above = [0] * (len(second) + 1)
        for unit in first:
            row = [0]
            for column, other in enumerate(second):
                same = above[column] + 1 if unit == other else 0
                row.append(max(same, above[column + 1], row[column]))
            above = row
        assert lcs_length(first, second) == above[-1]


def test_signature_has_tokenizer_case_stemming_and_references():
    signature = rouge_l(["a"], [["a"]]).signature
    assert signature == "score:f1|average:sentences|refs:best|case:lc|tok:latin|stem:no"


def test_other_scripts_need_whitespace_or_character_tokens():
    hypotheses, references = ["猫 が いる"], [["犬 が いる"]]
    by_whitespace = rouge1(hypotheses, references, tokenize="whitespace")
    assert by_whitespace.value == pytest.approx(200 / 3)
    assert "tok:whitespace" in by_whitespace.signature
    by_characters = rouge_char(hypotheses, references)
    assert by_characters.value == pytest.approx(75)
    assert "tok:char" in by_characters.signature


def test_references_without_words_are_warned_about(caplog):
    with caplog.at_level(logging.WARNING, logger="regard"):
        assert rouge_l(["猫"], [["猫"]]).value == 0
    assert "`tokenize` 'latin', no reference has a word" in caplog.text
    assert "`rouge_char`" in caplog.text


def test_unknown_tokenizer_is_refused():
    with pytest.raises(ConfigError, match="`tokenize` must be one of 'latin'.*but is 'chars'"):
        rouge1(["a"], [["a"]], tokenize="chars")
