import math
import random
from collections import Counter

import pytest

from regard.metrics.vision.captions import bleu1, bleu2, bleu3, bleu4, caption_words

MEASURES = {1: bleu1, 2: bleu2, 3: bleu3, 4: bleu4}


def sample_captions(seed):
    generator = random.Random(seed)
    words = "a the dog dogs ngrams_of on grass man in red".split()

    def caption(least):
        return " ".join(generator.choices(words, k=generator.randint(least, 9)))

    references = [[caption(1) for _ in range(generator.randint(1, 5))] for _ in range(60)]
    hypotheses = [f"{generator.choice(texts)} {caption(1)}" for texts in references]
    return [" ".join(hypothesis.split()[:6]) for hypothesis in hypotheses], references


def counts(words, n):
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def bleu_by_the_formula(hypotheses, references, order):
    """Compute BLEU as in Papineni et al. 2002, sections 2.1 to 2.3, on words between whitespace."""
    precisions = []
    for n in range(1, order + 1):
        hits = total = 0
        for hypothesis, texts in zip(hypotheses, references, strict=True):
            most = Counter()
            for text in texts:
                most |= counts(text.split(), n)
            ours = counts(hypothesis.split(), n)
            hits += (ours & most).total()
            total += ours.total()
        precisions.append(hits / total)
    written = sum(len(hypothesis.split()) for hypothesis in hypotheses)
    nearest = sum(
        min((abs(len(t.split()) - len(h.split())), len(t.split())) for t in texts)[1]
        for h, texts in zip(hypotheses, references, strict=True)
    )
    brevity = min(1.0, math.exp(1 - nearest / written))
    return 100 * brevity * math.prod(precisions) ** (1 / order)


@pytest.mark.parametrize("order", MEASURES)
def test_bleu_equals_the_formula(order):
    hypotheses, references = sample_captions(order)
    wanted = bleu_by_the_formula(hypotheses, references, order)
    assert 5 < wanted < 100
    assert MEASURES[order](hypotheses, references).value == pytest.approx(wanted)


@pytest.mark.parametrize("order", MEASURES)
def test_bleu_equals_coco_evaluation(order):
    package = pytest.importorskip(
        "pycocoevalcap.bleu.bleu_scorer", reason="pycocoevalcap is missing"
    )
    hypotheses, references = sample_captions(order)
    scorer = package.BleuScorer(n=4)
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        scorer += (hypothesis, texts)
    wanted, _ = scorer.compute_score(option="closest")
    found = MEASURES[order](hypotheses, references).value
    assert found == pytest.approx(100 * wanted[order - 1], rel=1e-6)


def test_bleu_is_zero_without_a_match_of_some_order():
    hypotheses, references = ["a dog ngrams_of on"], [["a dog on ngrams_of"]]
    assert bleu2(hypotheses, references).value > 0
    assert bleu3(hypotheses, references).value == 0


def test_case_and_punctuation_are_ignored():
    result = bleu4(["A man's dog ngrams_of."], [["a man 's dog ngrams_of"]])
    assert result.value == pytest.approx(100)


def test_signature_has_tokenizer_case_and_smoothing():
    result = bleu3(["a b c"], [["a b c", "a b"]], num_bootstrap=10)
    assert result.name == "BLEU-3"
    start = "nrefs:2|bs:10|seed:12345|case:lc|eff:no|tok:ptb-nopunct|smooth:none|version:"
    assert result.signature.startswith(start)


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("The man's T-shirt.", "the man 's t-shirt"),
        ("A dog doesn’t bark, can't it?", "a dog does n't bark ca n't it"),
        ("At 10:30 o'clock , $5 or 1,000 !", "at 10:30 o'clock $ 5 or 1,000"),
        ('The U.S. flag; "AT&T" (a sign) -- boys\' toys...', "the u.s. flag at&t a sign boys toys"),
        ("rock 'n' roll & more", "rock n roll & more"),
        ("Ein Straßencafé – schön.", "ein straßencafé schön"),
        (" ., ", ""),
    ],
)
def test_captions_are_split_into_words(caption, words):
    assert caption_words(caption) == words.split()
