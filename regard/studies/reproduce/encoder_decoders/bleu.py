"""The lecture's BLEU on its worked example, next to the BLEU of sacrebleu."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from regard.metrics.text.bleu import bleu as corpus_bleu
from regard.metrics.text.bleu import ngram_precision, sentence_bleu
from regard.metrics.text.ngrams import ngrams
from regard.plots.curves import lines
from regard.studies.reproduce.findings import Claim, Findings, Plot

PREDICTION, TARGET = "A B B C D".split(), "A B C D E F".split()
MAX_ORDER = 4
EXPECTED = {2: 0.6815, 3: 0.5940}
"""BLEU of the worked example by the longest n-gram."""

SENTENCE = "I saw a cat on a mat .".split()
WRONG = "X"


def bleu(_seed: int, _folder: Path | None = None) -> Findings:
    """Compute both forms step by step."""
    orders = {f"p_{n}": count_matches(PREDICTION, TARGET, n) for n in range(1, MAX_ORDER + 1)}
    penalty = math.exp(min(0.0, 1 - len(TARGET) / len(PREDICTION)))
    values = {k: sentence_bleu(PREDICTION, TARGET, k) for k in range(1, MAX_ORDER + 1)}
    standard = standard_bleu(PREDICTION, TARGET)
    by_errors = {
        name: [
            (float(num), score([*SENTENCE[: len(SENTENCE) - num], *[WRONG] * num]))
            for num in range(len(SENTENCE) + 1)
        ]
        for name, score in SCORES.items()
    }
    return Findings(
        tables={
            "n-grams of A B B C D in A B C D E F": orders,
            "The lecture's BLEU": {
                f"k = {k}": {
                    "formula": _formula(k),
                    "value": round(value, 4),
                }
                for k, value in values.items()
            },
            "Both forms": _compare(values, standard),
        },
        claims=_claims(orders, penalty, values, standard=standard),
        plots={"bleu": _plot(by_errors)},
    )


def count_matches(predicted: Sequence[str], label: Sequence[str], n: int) -> dict[str, float | str]:
    """Return matched and predicted n-grams, p_n, its weight and its factor p_n^(1/2^n)."""
    found = ngrams(predicted, n)
    matched = found & ngrams(label, n)
    precision = ngram_precision(predicted, label, n)
    return {
        "matched n-grams": " ".join("".join(ngram) for ngram in matched.elements()) or "none",
        "matched": matched.total(),
        "predicted": found.total(),
        "p_n": round(precision, 4),
        "weight 1/2^n": 1 / 2**n,
        "p_n^(1/2^n)": round(precision ** (1 / 2**n), 4),
    }


def standard_bleu(predicted: Sequence[str], label: Sequence[str]) -> dict[str, float]:
    """Return BLEU of sacrebleu, 0 to 100, with its smoothed precisions and brevity penalty."""
    result = corpus_bleu([" ".join(predicted)], [[" ".join(label)]], tokenize="none")
    return {"BLEU": result.value, **result.detail}


def _formula(k: int) -> str:
    factors = " · ".join(f"p_{n}^(1/{2**n})" for n in range(1, k + 1))
    return f"exp(1 − 6/5) · {factors}"


def _compare(
    values: Mapping[int, float], standard: Mapping[str, float]
) -> dict[str, dict[str, float | str]]:
    return {
        "value, 0 to 1": {
            "lecture": f"{values[2]:.4f} (k = 2), {values[3]:.4f} (k = 3)",
            "sacrebleu": f"{standard['BLEU'] / 100:.4f}",
        },
        "weights of p_1 … p_4": {
            "lecture": "1/2, 1/4, 1/8, 1/16: a longer n-gram has the larger factor",
            "sacrebleu": "1/4 each: geometric mean",
        },
        "longest n-gram": {"lecture": "k, the longest that matches", "sacrebleu": "4"},
        "p_4, no match": {
            "lecture": "0, so BLEU is 0 with k = 4",
            "sacrebleu": f"smoothed to half a match of 2: {standard['precision_4'] / 100:.4f}",
        },
        "brevity penalty": {
            "lecture": "exp(min(0, 1 − len_label/len_pred)), per sentence",
            "sacrebleu": f"the same, of the whole corpus: {standard['brevity_penalty']:.4f}",
        },
        "unit": {"lecture": "sentence", "sacrebleu": "corpus: counts are summed first"},
    }


def _claims(
    orders: Mapping[str, Mapping[str, float | str]],
    penalty: float,
    values: Mapping[int, float],
    *,
    standard: Mapping[str, float],
) -> tuple[Claim, ...]:
    precisions = [ngram_precision(PREDICTION, TARGET, n) for n in range(1, MAX_ORDER + 1)]
    counts = ", ".join(
        f"{name} = {row['matched']}/{row['predicted']}" for name, row in orders.items()
    )
    same = sentence_bleu(TARGET, TARGET, MAX_ORDER)
    one_wrong, pairs_wrong = 0.5 ** (1 / 2), 0.5 ** (1 / 4)
    mean = math.prod(standard[f"precision_{n}"] / 100 for n in range(1, MAX_ORDER + 1)) ** 0.25
    return (
        Claim(
            "p₁ = 4/5, p₂ = 3/4, p₃ = 1/3, p₄ = 0.",
            counts,
            precisions == [4 / 5, 3 / 4, 1 / 3, 0],
        ),
        Claim(
            "BLEU is 0.6815 with k = 2 and 0.5940 with k = 3; the penalty is e^(−0.2) = 0.8187.",
            f"{values[2]:.4f}, {values[3]:.4f}, penalty {penalty:.4f}.",
            all(round(values[k], 4) == expected for k, expected in EXPECTED.items()),
        ),
        Claim("BLEU is 1 if prediction and target are identical.", f"{same:g}", same == 1),
        Claim(
            "Longer n-grams weigh more.",
            "A precision of 0.5 contributes the factor "
            f"{one_wrong:.3f} for words and {pairs_wrong:.3f} for pairs: the same share of "
            "matches counts for more if the n-grams are longer.",
            one_wrong < pairs_wrong,
        ),
        Claim(
            "The BLEU of papers is another number: geometric mean of p₁ … p₄ times the penalty.",
            f"sacrebleu {standard['BLEU']:.1f} of 100 for the same pair, with p₄ smoothed to "
            f"{standard['precision_4'] / 100:.4f}; {standard['brevity_penalty']:.4f} · {mean:.4f} "
            f"= {standard['brevity_penalty'] * mean:.4f}.",
            math.isclose(standard["brevity_penalty"] * mean, standard["BLEU"] / 100, rel_tol=1e-6)
            and abs(standard["BLEU"] / 100 - values[2]) > 0.05,
        ),
    )


SCORES: dict[str, Callable[[Sequence[str]], float]] = {
    "lecture, k = 2": lambda words: sentence_bleu(words, SENTENCE, 2),
    "lecture, k = 4": lambda words: sentence_bleu(words, SENTENCE, 4),
    "sacrebleu / 100": lambda words: standard_bleu(words, SENTENCE)["BLEU"] / 100,
}
"""Scores of predictions of `SENTENCE` by name."""


def _plot(by_errors: Mapping[str, Sequence[tuple[float, float]]]) -> Plot:
    figure = lines(by_errors, x_label="wrong words at the end", y_label="BLEU, 0 to 1")
    caption = (
        f"BLEU of '{' '.join(SENTENCE)}' if its last words are wrong. With k = 4 the lecture's "
        "form is 0 as soon as no 4-gram matches; sacrebleu smooths such precisions."
    )
    return Plot(figure, caption)
