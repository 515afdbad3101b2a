"""The training loss −log p(y_t | y_<t, x): a shown distribution, sum and mean, a trained model."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example
from regard.models.seq2seq import EncoderDecoder
from regard.plots.curves import lines
from regard.plots.words import distributions
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    fixed_context_model,
    seeded,
    train,
    translation_loss,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.training.losses import cross_entropy

SOURCE, TARGET = "Я видел котю на мате", "I saw a cat on a mat"
"""The lecture's example, as it is spelled there."""

SHOWN = {"cat": 0.62, "dog": 0.17, "bird": 0.08, "mat": 0.07, "house": 0.04, "on": 0.02}
"""A distribution after "I saw a". The lecture's figure is lost; the numbers are ours."""

SUBJECTS = (("Я", "I", 0), ("Ты", "You", 0), ("Он", "He", 0), ("Мы", "We", 1))
"""Russian, English, and the index of the form of the action."""
ACTIONS = (
    (("видел", "видели"), "saw"),
    (("нашёл", "нашли"), "found"),
    (("рисовал", "рисовали"), "drew"),
    (("купил", "купили"), "bought"),
)
OBJECTS = (
    ("котю", "cat"),
    ("собаку", "dog"),
    ("птицу", "bird"),
    ("мышь", "mouse"),
    ("лису", "fox"),
    ("лошадь", "horse"),
)
LOCATIONS = (
    ("на мате", "on", "mat"),
    ("на столе", "on", "table"),
    ("под столом", "under", "table"),
    ("в саду", "in", "garden"),
    ("в лодке", "in", "boat"),
    ("у дома", "near", "house"),
)
SHARE_OF_A = 0.7
"""Russian has no articles: each noun has "a" with this probability, otherwise "the"."""

NUM_PAIRS, NUM_STEPS, CHECK_EVERY, DIM = 3_000, 250, 10, 48
NUM_WORDS = 4
"""Number of words of a distribution in the plot."""


def training_loss(seed: int, _folder: Path | None = None) -> Findings:
    """Compute the loss of the shown distribution, and train a model on Russian sentences.

    Args:
        seed: Seed of the sentences, the weights and the order of batches.
    """
    pairs = sample_pairs(NUM_PAIRS, seed)
    example = Example(SOURCE, TARGET)
    vocabularies = Vocabularies.fit(pairs)
    (batch,) = vocabularies.batches([example]).epoch(0)
    words = [*TARGET.split(), "<eos>"]
    with seeded(seed):
        model = vocabularies.build(fixed_context_model(DIM))
        probs = {0: true_probs(model, batch)}
        batches = vocabularies.batches(pairs, max_tokens=500, seed=seed)
        loss = partial(translation_loss, model)
        for step in train(model, batches, loss, num_steps=NUM_STEPS):
            if step % CHECK_EVERY == 0:
                probs[step] = true_probs(model, batch)
    with torch.no_grad():
        package_loss = translation_loss(model, batch)
    trained = probs[NUM_STEPS]
    by_hand = [-math.log(p) for p in trained]
    return Findings(
        tables={
            'After "I saw a", shown distribution': {
                word: {"p": p, "loss −log p if it is the target": -math.log(p)}
                for word, p in SHOWN.items()
            },
            "I saw a cat on a mat, by step": {
                f"{number}. {word}": {
                    "p before training": probs[0][number - 1],
                    "p after training": trained[number - 1],
                    "loss −log p": by_hand[number - 1],
                }
                for number, word in enumerate(words, start=1)
            },
            "Loss of the sentence": {
                "sum over steps (004)": {
                    "by hand": sum(by_hand),
                    "cross_entropy": float(package_loss.total),
                },
                "mean per target word (001)": {
                    "by hand": sum(by_hand) / len(by_hand),
                    "cross_entropy": float(package_loss.total / package_loss.count),
                },
            },
        },
        claims=_claims(
            probs, by_hand, float(package_loss.total), vocab_size=vocabularies.target.size
        ),
        plots={
            "training-loss": _plot_steps(next_word_probs(model, batch), words, vocabularies),
            "training-loss-shown": _plot_shown(),
            "training-loss-curve": _plot_curve(probs, words),
        },
    )


def sample_pairs(num: int, seed: int) -> list[Example]:
    """Sample Russian sentences with English translations, without the lecture's sentence."""
    random = Random(seed)
    pairs: list[Example] = []
    while len(pairs) < num:
        subject, english_subject, form = random.choice(SUBJECTS)
        actions, english_action = random.choice(ACTIONS)
        thing, english_thing = random.choice(OBJECTS)
        location, preposition, english_location = random.choice(LOCATIONS)
        articles = ["a" if random.random() < SHARE_OF_A else "the" for _ in range(2)]
        source = f"{subject} {actions[form]} {thing} {location}"
        target = (
            f"{english_subject} {english_action} {articles[0]} {english_thing} "
            f"{preposition} {articles[1]} {english_location}"
        )
        if source != SOURCE:
            pairs.append(Example(source, target))
    return pairs


def shown_loss() -> tuple[float, float]:
    """Return −log p(cat) of the shown distribution: by hand, and by the package's loss."""
    words = list(SHOWN)
    logits = torch.tensor([[list(SHOWN.values())]]).log()  # (B, T, V) = (1, 1, 6)
    label = torch.tensor([[words.index("cat")]])  # (B, T)
    loss = cross_entropy(logits, label, torch.ones(1, 1, dtype=torch.bool))
    return -math.log(SHOWN["cat"]), float(loss.total)


@torch.no_grad()
def next_word_probs(model: EncoderDecoder, batch: Batch) -> Tensor:
    """Return p(y_t | y_<t, x) for all words of the vocabulary, fed gold tokens: (T, V)."""
    output = model(batch.source, batch.source_mask, batch.target[:, :-1])
    return output.logits[0].log_softmax(-1).exp()


def true_probs(model: EncoderDecoder, batch: Batch) -> list[float]:
    """Return the probability of each target word, and of the end token."""
    labels = batch.target[0, 1:, None]  # (T, 1)
    values: list[float] = next_word_probs(model.eval(), batch).gather(1, labels)[:, 0].tolist()
    return values


def _claims(
    probs: Mapping[int, Sequence[float]],
    by_hand: Sequence[float],
    package: float,
    *,
    vocab_size: int,
) -> tuple[Claim, ...]:
    shown, shown_package = shown_loss()
    first = -sum(map(math.log, probs[0])) / len(probs[0])
    uniform = math.log(vocab_size)
    total, cat = sum(by_hand), TARGET.split().index("cat")
    articles = [
        probs[NUM_STEPS][position] for position, word in enumerate(TARGET.split()) if word == "a"
    ]
    return (
        Claim(
            'After "I saw a", the loss is −log p(cat).',
            f"p(cat) = {SHOWN['cat']}: −log p(cat) = {shown:.4f}; `cross_entropy` gives "
            f"{shown_package:.4f}.",
            math.isclose(shown, shown_package, abs_tol=1e-5),
        ),
        Claim(
            "The loss of an example is the sum over steps, or the mean per target word.",
            f"Sum {total:.4f} and mean {total / len(by_hand):.4f} by hand; `cross_entropy` has "
            f"total {package:.4f} and count {len(by_hand)}.",
            math.isclose(total, package, abs_tol=1e-4),
        ),
        Claim(
            "Before training, all words are about equally probable: the mean loss is log V.",
            f"{first:.3f}, and log {vocab_size} = {uniform:.3f}.",
            abs(first - uniform) < 0.3,
        ),
        Claim(
            "Training raises the probability of the target words, also of a new sentence.",
            f"p(cat) rises from {probs[0][cat]:.3f} to {probs[NUM_STEPS][cat]:.3f}.",
            probs[NUM_STEPS][cat] > 0.8,
        ),
        Claim(
            "A word that the source does not decide keeps a loss: Russian has no articles.",
            f"p(a) = {articles[0]:.2f} and {articles[1]:.2f}; {SHARE_OF_A:.0%} of the training "
            f"nouns have 'a', and a model of this share has the loss {-math.log(SHARE_OF_A):.3f}.",
            all(abs(p - SHARE_OF_A) < 0.12 for p in articles),
        ),
    )


def _plot_steps(probs: Tensor, words: Sequence[str], vocabularies: Vocabularies) -> Plot:
    names = [name.removeprefix("▁") for name in vocabularies.target.tokenizer.tokens_in_order()]
    panels = {}
    for number, row in enumerate(probs):
        best = row.topk(NUM_WORDS)
        prefix = " ".join(["<sos>", *words[:number]][-3:])
        title = f"… {prefix} _" if number > 2 else f"{prefix} _"
        panels[f"{number + 1}. {title}"] = {
            names[index]: p
            for p, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        }
    caption = (
        f"p(y_t | y_<t, x) of the trained model at each step of '{TARGET}' for '{SOURCE}': the "
        f"{NUM_WORDS} most probable words. Orange: the target word, whose −log p is the loss of "
        "the step."
    )
    return Plot(distributions(panels, marked=words), caption)


def _plot_shown() -> Plot:
    caption = (
        'A distribution after "I saw a" (numbers ours). The target is "cat", so the loss is '
        f"−log {SHOWN['cat']} = {-math.log(SHOWN['cat']):.3f}."
    )
    return Plot(distributions({"I saw a _": SHOWN}, marked=["cat"]), caption)


def _plot_curve(probs: Mapping[int, Sequence[float]], words: Sequence[str]) -> Plot:
    cat, article = words.index("cat"), words.index("a")
    series = {
        "−log p(cat)": [(step, -math.log(values[cat])) for step, values in probs.items()],
        "−log p(a), step 3": [(step, -math.log(values[article])) for step, values in probs.items()],
        "mean per target word": [
            (step, -sum(map(math.log, values)) / len(values)) for step, values in probs.items()
        ],
    }
    caption = (
        "Loss of the lecture's sentence, which is not in the training set, by the number of "
        "updates. The loss of the article stays: the Russian source does not decide it."
    )
    return Plot(lines(series, x_label="updates", y_label="loss −log p"), caption)
