import pytest
import sacrebleu

from regard.core.errors import ConfigError
from regard.metrics.bootstrap import SEED
from regard.metrics.text.bleu import bleu, bleu_char, bleu_ja, chrf, ter

HYPOTHESES = [
    "the cat sat on the mat .",
    "a small house stands there",
    "We go home today!",
    "he reads the old book in the garden",
]
REFERENCES = [
    ["the cat is sitting on the mat .", "a cat sat on the mat ."],
    ["a little house stands there"],
    ["we are going home today!", "Today we go home!"],
    ["he reads an old book in the garden"],
]
STREAMS = [
    [row[0] for row in REFERENCES],
    [row[1] if len(row) > 1 else None for row in REFERENCES],
]


def test_bleu_equals_sacrebleu_with_unequal_numbers_of_references():
    wanted = sacrebleu.metrics.BLEU().corpus_score(HYPOTHESES, STREAMS).score
    assert bleu(HYPOTHESES, REFERENCES).value == pytest.approx(wanted)


def test_chrf_equals_sacrebleu():
    wanted = sacrebleu.metrics.CHRF().corpus_score(HYPOTHESES, STREAMS).score
    assert chrf(HYPOTHESES, REFERENCES).value == pytest.approx(wanted)


def test_chrf_with_word_order_two_is_chrf_plus_plus():
    wanted = sacrebleu.metrics.CHRF(word_order=2).corpus_score(HYPOTHESES, STREAMS).score
    assert chrf(HYPOTHESES, REFERENCES, word_order=2).value == pytest.approx(wanted)


def test_ter_equals_sacrebleu():
    wanted = sacrebleu.metrics.TER().corpus_score(HYPOTHESES, STREAMS).score
    assert ter(HYPOTHESES, REFERENCES).value == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("measure", "metric"),
    [(bleu, sacrebleu.metrics.BLEU), (chrf, sacrebleu.metrics.CHRF), (ter, sacrebleu.metrics.TER)],
)
def test_interval_equals_sacrebleu(measure, metric, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", str(SEED))
    wanted = metric().corpus_score(HYPOTHESES, STREAMS, n_bootstrap=200)._ci
    low, high = measure(HYPOTHESES, REFERENCES, num_bootstrap=200).interval
    assert (high - low) / 2 == pytest.approx(wanted, rel=1e-4)


def test_interval_contains_the_value():
    result = bleu(HYPOTHESES, REFERENCES, num_bootstrap=100)
    low, high = result.interval
    assert low < result.value < high


def test_same_seed_gives_the_same_interval():
    first = bleu(HYPOTHESES, REFERENCES, num_bootstrap=50, seed=3).interval
    assert first == bleu(HYPOTHESES, REFERENCES, num_bootstrap=50, seed=3).interval


def test_signature_has_resampling_and_seed():
    signature = bleu(HYPOTHESES, REFERENCES, num_bootstrap=50, seed=3).signature
    assert signature.startswith("nrefs:var|bs:50|seed:3|case:mixed|eff:no|tok:13a|smooth:exp")


def test_without_resampling_there_is_no_interval():
    assert bleu(HYPOTHESES, REFERENCES).interval is None


def test_is_lower_cased_ignores_case():
    assert bleu(["WE GO HOME TODAY"], [["we go home today"]], is_lower_cased=True).value > 99.9


def test_case_counts_by_default():
    assert bleu(["WE GO HOME TODAY"], [["we go home today"]]).value < 50


def test_bleu_detail_has_precisions():
    assert bleu(["a b c d"], [["a b c e"]]).detail["precision_1"] == pytest.approx(75)


def test_unknown_tokenizer_gets_a_suggestion():
    with pytest.raises(ConfigError, match="`tokenize` must be one of '13a'.*but is '13'"):
        bleu(["a"], [["a"]], tokenize="13")


def test_negative_resamples_are_refused():
    with pytest.raises(ConfigError, match="`num_bootstrap` must be at least 0, but is -1"):
        chrf(["a"], [["a"]], num_bootstrap=-1)


def test_negative_word_order_is_refused():
    with pytest.raises(ConfigError, match="`word_order` must be at least 0"):
        chrf(["a"], [["a"]], word_order=-1)


def test_bleu_over_characters_needs_no_whitespace():
    result = bleu_char(["猫が好きです"], [["犬が好きです"]])
    wanted = sacrebleu.metrics.BLEU(tokenize="char").corpus_score(
        ["猫が好きです"], [["犬が好きです"]]
    )
    assert result.value == pytest.approx(wanted.score) and result.value > 50
    assert "tok:char" in result.signature


def test_japanese_bleu_is_over_words_with_mecab():
    pytest.importorskip("MeCab", reason="MeCab is not installed")
    pytest.importorskip("ipadic", reason="the dictionary ipadic is not installed")
    result = bleu_ja(["猫が好きです。", ""], [["犬が好きです。"], ["はい"]], num_bootstrap=40)
    assert "tok:ja-mecab" in result.signature
    assert result.detail["hypothesis_length"] == 5


@pytest.mark.parametrize("fault", [RuntimeError, ImportError, AssertionError])
def test_japanese_bleu_is_over_characters_without_mecab(monkeypatch, fault):
    class WithoutMecab(sacrebleu.metrics.BLEU):
        def __init__(self, *, tokenize, **settings):
            if tokenize == "ja-mecab":
                raise fault
            super().__init__(tokenize=tokenize, **settings)

    monkeypatch.setattr("sacrebleu.metrics.bleu.BLEU", WithoutMecab)
    hypotheses, references = ["猫が好きです"], [["犬が好きです"]]
    assert bleu_ja(hypotheses, references) == bleu_char(hypotheses, references)
