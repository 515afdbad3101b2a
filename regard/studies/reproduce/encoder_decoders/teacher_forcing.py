"""Teacher forcing, scheduled sampling and free running: learning curves and exposure bias."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example
from regard.metrics.text.bleu import bleu
from regard.models.seq2seq import EncoderDecoder
from regard.plots.curves import lines
from regard.plots.panels import panels
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

FORCED, MIXED, FREE = "teacher forcing", "scheduled sampling", "free running"
RATIOS = {FORCED: 1.0, MIXED: 0.5, FREE: 0.0}
"""Probability of a gold token as input of the decoder in training, `train.teacher_forcing`."""

GOLD, OWN = "fed gold tokens", "fed its own predictions"
FEEDS = {GOLD: 1.0, OWN: 0.0}

NUM_TRAIN, NUM_TEST, MAX_WORDS = 10_000, 200, 12
NUM_STEPS, CHECK_EVERY, DIM = 600, 60, 96
MAX_POSITION = 9
"""Last target position of the plot; few test sentences are longer."""

EARLY, LATE = range(3), range(5, MAX_POSITION)
"""Indexes of positions 1 to 3 and 6 to 9."""

Curve = list[tuple[float, float]]


def teacher_forcing(seed: int, _folder: Path | None = None) -> Findings:
    """Train three models with equal updates and compare them.

    Args:
        seed: Seed of weights, of the order of batches and of scheduled sampling.
    """
    train_pairs, test_pairs = short_sentences(NUM_TRAIN, NUM_TEST, max_words=MAX_WORDS)
    vocabularies = Vocabularies.fit(train_pairs)
    batches = list(vocabularies.batches(test_pairs, max_tokens=4000).epoch(0))
    curves, by_position, overall = {}, {}, {}
    for name, ratio in RATIOS.items():
        with seeded(seed):
            model = vocabularies.build(fixed_context_model(DIM))
            curves[name] = learn(
                model, train_pairs, test_pairs, vocabularies=vocabularies, ratio=ratio, seed=seed
            )
            overall[name] = accuracy(hits(model, batches, teacher_forcing=0.0))
            by_position[name] = {
                feed: accuracy_by_position(hits(model, batches, teacher_forcing=fed))
                for feed, fed in FEEDS.items()
            }
    return Findings(
        tables={
            "BLEU, and word accuracy in %": {
                name: _row(curves[name], overall[name], by_position[name]) for name in RATIOS
            }
        },
        claims=_claims(curves, by_position, overall),
        plots={
            "teacher-forcing": _plot_curves(curves),
            "teacher-forcing-positions": _plot_positions(by_position),
        },
    )


def learn(
    model: EncoderDecoder,
    pairs: Sequence[Example],
    test: Sequence[Example],
    *,
    vocabularies: Vocabularies,
    ratio: float,
    seed: int,
) -> Curve:
    """Train a model; return updates and BLEU of greedy translations of the test pairs."""
    batches = vocabularies.batches(pairs, max_tokens=500, seed=seed)
    loss = partial(translation_loss, model, teacher_forcing=ratio)
    return [
        (step, greedy_bleu(model, vocabularies, test))
        for step in train(model, batches, loss, num_steps=NUM_STEPS)
        if step % CHECK_EVERY == 0
    ]


def greedy_bleu(
    model: EncoderDecoder, vocabularies: Vocabularies, pairs: Sequence[Example]
) -> float:
    """Return BLEU of greedy translations."""
    found = decode(model, vocabularies, pairs, beams=1, length_penalty=0.0)
    texts = [vocabularies.target.write(one.tokens) for one in found]
    return bleu(texts, [[pair.target] for pair in pairs]).value


def hits(
    model: EncoderDecoder, batches: Sequence[Batch], *, teacher_forcing: float
) -> list[tuple[Tensor, Tensor]]:
    """Compare the most probable token with the gold token at each position.

    Args:
        model: The model, in eval mode.
        batches: The test set.
        teacher_forcing: 1 feeds the gold tokens, 0 the most probable tokens as in inference.

    Returns:
        For each batch whether the prediction is right (B, T) and whether the position is real.
    """
    results = []
    for batch in batches:
        inputs, labels = batch.target[:, :-1], batch.target[:, 1:]
        with torch.no_grad():
            output = model(batch.source, batch.source_mask, inputs, teacher_forcing=teacher_forcing)
        results.append((output.logits.argmax(-1) == labels, batch.target_mask[:, 1:]))
    return results


def accuracy(results: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the percentage of right predictions over all positions."""
    num_right = sum(int((right & mask).sum()) for right, mask in results)
    return 100 * num_right / sum(int(mask.sum()) for _, mask in results)


def accuracy_by_position(results: Sequence[tuple[Tensor, Tensor]]) -> list[float]:
    """Return the percentage of right predictions at each of the first target positions."""
    return [
        accuracy([(right[:, [t]], mask[:, [t]]) for right, mask in results if t < mask.shape[1]])
        for t in range(MAX_POSITION)
    ]


def _row(curve: Curve, overall: float, by_feed: Mapping[str, Sequence[float]]) -> dict[str, float]:
    row = {f"BLEU after {step:.0f} updates": value for step, value in (curve[2], curve[-1])}
    row |= {f"all positions, {OWN}": overall}
    for feed, values in by_feed.items():
        row |= {f"positions 1–3, {feed}": _mean(values, EARLY)}
        row |= {f"positions 6–9, {feed}": _mean(values, LATE)}
    return row


def _mean(values: Sequence[float], positions: range) -> float:
    return sum(values[position] for position in positions) / len(positions)


def _difference(by_feed: Mapping[str, Sequence[float]], positions: range) -> float:
    return _mean(by_feed[GOLD], positions) - _mean(by_feed[OWN], positions)


def _claims(
    curves: Mapping[str, Curve],
    by_position: Mapping[str, Mapping[str, Sequence[float]]],
    overall: Mapping[str, float],
) -> tuple[Claim, ...]:
    final = {name: curve[-1][1] for name, curve in curves.items()}
    needed = next((step for step, value in curves[FORCED] if value >= final[FREE]), NUM_STEPS)
    forced = by_position[FORCED]
    first = {feed: values[0] for feed, values in forced.items()}
    early, late = _difference(forced, EARLY), _difference(forced, LATE)
    mixed = _difference(by_position[MIXED], LATE)
    return (
        Claim(
            "Teacher forcing trains faster than free running, by BLEU.",
            f"It reaches the final BLEU of free running ({final[FREE]:.1f}) after {needed:.0f} of "
            f"{NUM_STEPS} updates, and {final[FORCED]:.1f} in the end. Word accuracy at equal "
            f"positions, {OWN}, is another measure: {overall[FORCED]:.1f} % with teacher "
            f"forcing, {overall[FREE]:.1f} % with free running.",
            final[FORCED] > final[FREE] and needed <= 0.75 * NUM_STEPS,
        ),
        Claim(
            "The first prediction does not depend on the feeding: its only input is <sos>.",
            f"{first[GOLD]:.1f} % and {first[OWN]:.1f} %.",
            first[GOLD] == first[OWN],
        ),
        Claim(
            "Exposure bias: fed its own predictions, a model trained on gold tokens is less "
            "accurate, and the loss grows with the position.",
            f"{early:.1f} points lower at positions 1–3, {late:.1f} at positions 6–9.",
            0 <= early < late and late > 5,
        ),
        Claim(
            "Scheduled sampling reduces this loss.",
            f"{mixed:.1f} instead of {late:.1f} points at positions 6–9; BLEU in the end "
            f"{final[MIXED]:.1f} instead of {final[FORCED]:.1f}.",
            mixed < late,
        ),
    )


def _plot_curves(curves: Mapping[str, Curve]) -> Plot:
    figure = lines(curves, x_label="updates", y_label="BLEU of greedy translations")
    caption = (
        "BLEU of greedy translations of the test sentences by the number of updates. The three "
        "models differ only in the tokens that the decoder is fed in training."
    )
    return Plot(figure, caption)


def _plot_positions(by_position: Mapping[str, Mapping[str, Sequence[float]]]) -> Plot:
    series = {
        name: {
            feed: [(float(t), value) for t, value in enumerate(values, start=1)]
            for feed, values in by_feed.items()
        }
        for name, by_feed in by_position.items()
    }
    figure = panels(series, x_label="target position", y_label="word accuracy in %")
    caption = (
        "Accuracy by target position after training, fed gold tokens and fed its own "
        "predictions. The distance of the two lines is the exposure bias. A word that is right "
        "but one position too early or too late counts as wrong, which free running trains for."
    )
    return Plot(figure, caption)
