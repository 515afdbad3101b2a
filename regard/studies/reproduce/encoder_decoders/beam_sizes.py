"""Model score and BLEU by beam size, with and without a length penalty."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from regard.data.example import Example
from regard.metrics.text.bleu import bleu
from regard.plots.curves import scaling
from regard.search.hypothesis import Hypothesis
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
Found = dict[int, list[Hypothesis]]
"""Best hypothesis of each sentence by beam size."""


def beam_sizes(seed: int, _folder: Path | None = None) -> Findings:
    """Train a model briefly and decode the test set with each beam size.

    Args:
        seed: Seed of weights and of the order of batches.
    """
    train_pairs, test_pairs = short_sentences(NUM_TRAIN, NUM_TEST, max_words=MAX_WORDS)
    vocabularies = Vocabularies.fit(train_pairs)
    with seeded(seed):
        model = vocabularies.build(fixed_context_model(DIM))
        batches = vocabularies.batches(train_pairs, max_tokens=500, seed=seed)
        for _ in train(model, batches, partial(translation_loss, model), num_steps=NUM_STEPS):
            pass
    found = {
        name: {
            size: decode(model, vocabularies, test_pairs, beams=size, length_penalty=penalty)
            for size in SIZES
        }
        for name, penalty in PENALTIES.items()
    }
    best = best_log_probs([one for by_size in found.values() for one in by_size.values()])
    tables = {
        f"Beam search, {name}": {
            f"beam {size}": measure(hypotheses, best, test_pairs, vocabularies=vocabularies)
            for size, hypotheses in by_size.items()
        }
        for name, by_size in found.items()
    }
    plain, normalized = ([*table.values()] for table in tables.values())
    return Findings(
        tables=tables,
        claims=_claims(plain, normalized),
        plots=_plots({NO_PENALTY: plain, PENALTY: normalized}),
    )


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


Rows = Sequence[Mapping[str, float]]
"""Measures of each beam size, in the order of `SIZES`."""


def _claims(plain: Rows, normalized: Rows) -> tuple[Claim, ...]:
    greedy, two, widest = plain[0], plain[1], plain[-1]
    ten = plain[SIZES.index(10)]
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
            "A small beam has a higher BLEU than greedy search.",
            f"Beam 1 {greedy[BLEU]:.1f}, beam 2 {two[BLEU]:.1f}, beam 5 {plain[3][BLEU]:.1f}; with "
            f"length penalty {normalized[0][BLEU]:.1f}, {normalized[1][BLEU]:.1f}, "
            f"{normalized[3][BLEU]:.1f}.",
            max(row[BLEU] for row in (*plain[1:4], *normalized[1:4])) > greedy[BLEU],
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
