import logging
import math
import random

import numpy as np
import pytest

from regard.metrics.vision.captions import cider


def sample_captions(seed):
    """Return captions that share words, one of them empty and one of a single word."""
    generator = random.Random(seed)
    words = "a dog dogs cat run ngrams_of on grass red snow".split()

    def caption(least):
        return " ".join(generator.choices(words, k=generator.randint(least, 12)))

    hypotheses = ["", "dog", *(caption(1) for _ in range(28))]
    references = [[caption(1) for _ in range(generator.randint(1, 5))] for _ in hypotheses]
    references[2] = [hypotheses[2]]
    return hypotheses, references


def ngrams_of(caption, n):
    words = caption.split()
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]


def cider_by_the_formula(hypotheses, references):
    """Compute CIDEr-D by Vedantam et al. 2015, eq. 1 to 3 and 6, with dense vectors."""
    num_images = len(references)
    values = np.zeros(num_images)
    for n in (1, 2, 3, 4):
        every = [*hypotheses, *(text for texts in references for text in texts)]
        known = sorted({run for text in every for run in ngrams_of(text, n)})
        in_image = np.array(
            [
                [any(run in ngrams_of(text, n) for text in texts) for run in known]
                for texts in references
            ]
        )
        idf = np.log(num_images / np.maximum(1, in_image.sum(0)))

        def vector(text, n=n, known=known, idf=idf):
            return np.array([ngrams_of(text, n).count(run) for run in known]) * idf

        for image, (hypothesis, texts) in enumerate(zip(hypotheses, references, strict=True)):
            ours = vector(hypothesis)
            for text in texts:
                right = vector(text)
                norm = np.linalg.norm(ours) * np.linalg.norm(right)
                cosine = np.minimum(ours, right) @ right / norm if norm else 0.0
                # Lengths are counts of bigrams, as in the implementation of the authors.
                difference = len(ngrams_of(hypothesis, 2)) - len(ngrams_of(text, 2))
                penalty = math.exp(-(difference**2) / (2 * 6**2))
                values[image] += 10 * penalty * cosine / len(texts) / 4
    return values


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cider_equals_the_formula(seed):
    hypotheses, references = sample_captions(seed)
    wanted = cider_by_the_formula(hypotheses, references)
    assert wanted[0] == 0 < wanted.mean() < 10
    assert cider(hypotheses, references).value == pytest.approx(wanted.mean())


def test_cider_equals_coco_evaluation():
    package = pytest.importorskip(
        "pycocoevalcap.cider.cider_scorer", reason="pycocoevalcap is missing"
    )
    hypotheses, references = sample_captions(4)
    scorer = package.CiderScorer()
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        scorer += (hypothesis, texts)
    wanted, _ = scorer.compute_score()
    assert cider(hypotheses, references).value == pytest.approx(wanted)


def test_a_caption_equal_to_its_only_reference_scores_ten():
    captions = ["a dog ngrams_of on grass", "two men play with snow"]
    assert cider(captions, [[caption] for caption in captions]).value == pytest.approx(10)


def test_words_of_all_images_have_no_weight():
    references = [["a dog"], ["a cat"]]
    assert cider(["a", "a"], references).value == 0


def test_repeating_a_word_does_not_increase_cider():
    references = [["a red dog ngrams_of on grass"], ["two men play with snow"]]
    once, often = "dog ngrams_of on grass", "dog dog dog dog dog dog"
    assert cider([often, ""], references).value < cider([once, ""], references).value / 2


def test_case_and_punctuation_are_ignored():
    references = [["a dog ngrams_of"], ["a cat sleeps"]]
    found = cider(["A dog , ngrams_of.", "A cat sleeps!"], references).value
    assert found == cider(["a dog ngrams_of", "a cat sleeps"], references).value > 0


def test_interval_equals_that_of_resampled_images():
    hypotheses, references = sample_captions(5)
    values = cider_by_the_formula(hypotheses, references)
    generator = np.random.default_rng(12345)
    means = sorted(generator.choice(values, len(values)).mean() for _ in range(80))
    found = cider(hypotheses, references, num_bootstrap=80)
    assert found.interval == pytest.approx((means[2], means[-3]))


def test_signature_has_all_settings():
    result = cider(*sample_captions(5), num_bootstrap=200)
    assert result.signature == (
        "variant:d|order:4|sigma:6|scale:10|idf:references|images:30|case:lc|tok:ptb-nopunct"
        "|bs:200|seed:12345"
    )


def test_single_image_is_warned_about(caplog):
    with caplog.at_level(logging.WARNING, logger="regard"):
        assert cider(["a dog"], [["a dog"]]).value == 0
    assert "CIDEr is 0: with a single image" in caplog.text
