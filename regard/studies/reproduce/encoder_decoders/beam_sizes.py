"""Log-probability and BLEU by beam size, with and without a length penalty."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from regard.data.example import Example
from regard.metrics.text.bleu import bleu
from regard.models.seq2seq import EncoderDecoder
from regard.plots.curves import scaling
from regard.search.hypothesis import Hypothesis
from regard.studies.reproduce.encoder_decoders.repetition import NUM_MODELS, average, model_seeds
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    decode,
    fixed_context_model,
    seeded,
    short_sentences,
    train,
    translation_loss,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot

SIZES = (1, 2, 3, 5, 10, 20, 50)
NO_PENALTY, PENALTY = "no length penalty", "length penalty 1"
PENALTIES = {NO_PENALTY: 0.0, PENALTY: 1.0}
"""Exponents of the length by which log-probabilities are divided, `search.length_penalty`."""

NUM_TRAIN, NUM_TEST, MAX_WORDS = 10_000, 150, 12
NUM_STEPS, DIM = 600, 96
TOLERANCE = 1e-4
"""Log-probabilities that differ by less are equal: they are sums of rounded numbers."""

BLEU, LOG_PROB, ERRORS, LENGTH = (
    "BLEU",
    "mean log-probability",
    "search errors %",
    "words per reference word",
)
Rows = list[dict[str, float]]
"""Measures of each beam size, in the order of `SIZES`."""


def beam_sizes(seed: int, _folder: Path | None = None) -> Findings:
    """Train models briefly and decode the test set with each beam size.

    Args:
        seed: Seed of weights and of the order of batches.
    """
    train_pairs, test_pairs = short_sentences(NUM_TRAIN, NUM_TEST, max_words=MAX_WORDS)
    vocabularies = Vocabularies.fit(train_pairs)
    models = [
        _search(_train(vocabularies, train_pairs, number), vocabularies, test_pairs)
        for number in model_seeds(seed)
    ]
    means = {
        name: [average(rows) for rows in zip(*(model[name] for model in models), strict=True)]
        for name in PENALTIES
    }
    return Findings(
        tables={
            f"Beam search, {name}, mean of {NUM_MODELS} models": {
                f"beam {size}": row for size, row in zip(SIZES, rows, strict=True)
            }
            for name, rows in means.items()
        },
        claims=_claims(means[NO_PENALTY], means[PENALTY], models),
        plots=_plots(means),
    )


def _train(vocabularies: Vocabularies, pairs: Sequence[Example], seed: int) -> EncoderDecoder:
    with seeded(seed):
        model = vocabularies.build(fixed_context_model(DIM))
        batches = vocabularies.batches(pairs, max_tokens=500, seed=seed)
        for _ in train(model, batches, partial(translation_loss, model), num_steps=NUM_STEPS):
            pass
    return model


def _search(
    model: EncoderDecoder, vocabularies: Vocabularies, pairs: Sequence[Example]
) -> dict[str, Rows]:
    """Return the measures of a model by length penalty."""
    found = {
        name: [
            decode(model, vocabularies, pairs, beams=size, length_penalty=penalty) for size in SIZES
        ]
        for name, penalty in PENALTIES.items()
    }
    best = best_log_probs([hypotheses for by_size in found.values() for hypotheses in by_size])
    return {
        name: [
            measure(hypotheses, best, pairs, vocabularies=vocabularies) for hypotheses in by_size
        ]
        for name, by_size in found.items()
    }


def best_log_probs(searches: Sequence[Sequence[Hypothesis]]) -> list[float]:
    """Return the highest log-probability that any search found, for each sentence."""
    return [max(one.log_prob for one in group) for group in zip(*searches, strict=True)]


def measure(
    hypotheses: Sequence[Hypothesis],
    best: Sequence[float],
    pairs: Sequence[Example],
    *,
    vocabularies: Vocabularies,
) -> dict[str, float]:
    """Compute BLEU, the mean log-probability, the share of search errors and the length ratio.

    A search error is a hypothesis that is less probable than another one that some search found.
    """
    texts = [vocabularies.target.write(one.tokens) for one in hypotheses]
    result = bleu(texts, [[pair.target] for pair in pairs])
    num_errors = sum(
        one.log_prob < highest - TOLERANCE for one, highest in zip(hypotheses, best, strict=True)
    )
    return {
        BLEU: result.value,
        LOG_PROB: sum(one.log_prob for one in hypotheses) / len(hypotheses),
        ERRORS: 100 * num_errors / len(hypotheses),
        LENGTH: result.detail["hypothesis_length"] / result.detail["reference_length"],
    }


def _claims(
    plain: Rows, normalized: Rows, models: Sequence[Mapping[str, Rows]]
) -> tuple[Claim, ...]:
    greedy, two, widest = plain[0], plain[1], plain[-1]
    five, ten = SIZES.index(5), plain[SIZES.index(10)]
    num_better = sum(rows[PENALTY][five][BLEU] > rows[PENALTY][0][BLEU] for rows in models)
    best = max(range(len(SIZES)), key=lambda number: plain[number][BLEU])
    best_normalized = max(range(len(SIZES)), key=lambda number: normalized[number][BLEU])
    return (
        Claim(
            "A wider beam finds more probable translations.",
            f"Mean log-probability {greedy[LOG_PROB]:.2f} with greedy search, {two[LOG_PROB]:.2f} "
            f"with beam 2, {ten[LOG_PROB]:.2f} with 10 and {widest[LOG_PROB]:.2f} with 50.",
            greedy[LOG_PROB] < two[LOG_PROB] <= ten[LOG_PROB] <= widest[LOG_PROB] + TOLERANCE,
        ),
        Claim(
            "Search errors fall: greedy search misses more probable translations.",
            f"It misses {greedy[ERRORS]:.0f} % of them, beam 2 {two[ERRORS]:.0f} %, beam 10 "
            f"{ten[ERRORS]:.0f} %.",
            greedy[ERRORS] > two[ERRORS] > ten[ERRORS],
        ),
        Claim(
            "With a length penalty, beam 5 has a higher BLEU than greedy search.",
            f"Beam 1 {greedy[BLEU]:.1f}, beam 2 {normalized[1][BLEU]:.1f}, beam 5 "
            f"{normalized[five][BLEU]:.1f}, mean of {NUM_MODELS} models, of which {num_better} are "
            f"better with beam 5; without length penalty {two[BLEU]:.1f} and "
            f"{plain[five][BLEU]:.1f}.",
            normalized[five][BLEU] > greedy[BLEU],
        ),
        Claim(
            "BLEU need not rise with the log-probability: the widest beam is not the best.",
            f"Best at beam {SIZES[best]} ({plain[best][BLEU]:.1f}; beam 50: {widest[BLEU]:.1f}), "
            f"with length penalty at beam {SIZES[best_normalized]} "
            f"({normalized[best_normalized][BLEU]:.1f}; beam 50: {normalized[-1][BLEU]:.1f}).",
            widest[BLEU] < plain[best][BLEU],
        ),
        Claim(
            "Without a length penalty, wide beams prefer short translations.",
            f"Words per reference word, beam 1 and 50: {greedy[LENGTH]:.3f} and "
            f"{widest[LENGTH]:.3f}; with length penalty {normalized[-1][LENGTH]:.3f} at beam 50.",
            widest[LENGTH] < greedy[LENGTH] and widest[LENGTH] < normalized[-1][LENGTH],
        ),
    )


def _plots(rows: Mapping[str, Rows]) -> dict[str, Plot]:
    captions = {
        BLEU: "BLEU of the test set by beam size (logarithmic axis).",
        LOG_PROB: "Mean log-probability of the translations by beam size. The length penalty "
        "divides it by the length for the ranking, so the most probable one need not win.",
        ERRORS: "Share of test sentences for which some other search found a more probable "
        "translation.",
    }
    return {
        f"beam-sizes-{name}": Plot(
            scaling(
                {
                    penalty: [(size, row[column]) for size, row in zip(SIZES, table, strict=True)]
                    for penalty, table in rows.items()
                },
                x_label="beam size",
                y_label=column,
            ),
            captions[column],
        )
        for name, column in (("bleu", BLEU), ("log-prob", LOG_PROB), ("errors", ERRORS))
    }
