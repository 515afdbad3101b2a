"""Language models P(y) from counts and a recurrent net, and with a source, P(y | x)."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import torch

from regard.data.batch import Batch
from regard.data.example import Example
from regard.metrics.text.perplexity import perplexity
from regard.models.init import InitConfig
from regard.models.language_model import (
    LanguageModel,
    RnnLanguageConfig,
    build_language_model,
    token_log_probs,
)
from regard.models.seq2seq import EncoderDecoder
from regard.plots.curves import lines
from regard.plots.words import by_word
from regard.search.forced import stepwise_log_probs, target_log_probs
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.studies.reproduce.encoder_decoders.ngram_counts import Counts
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    fixed_context_model,
    seeded,
    short_sentences,
    train,
    translation_loss,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.training.losses import Loss, cross_entropy

UNIGRAM, BIGRAM, RNN = "unigram counts", "bigram counts", "recurrent, P(y)"
ALONE, CONDITIONAL = "decoder alone, P(y)", "with the source, P(y|x)"

MARK = "final mark fits the first word, %"
TRIPLES, COPIES = "word triples seen in training, %", "copies of training sentences, %"
TEXT = "training sentences"

NUM_TRAIN, NUM_TEST, MAX_WORDS = 16_000, 200, 10
NUM_STEPS, CHECK_EVERY, DIM = 600, 60, 96
NUM_SAMPLES, NUM_SHOWN = 200, 6

Rows = Sequence[Sequence[int]]
"""Token ids from the start token to the end token."""
Steps = list[list[float]]
"""log p(y_t | y_<t) of each token after the start token, for each sentence."""


def language_model(seed: int, _folder: Path | None = None) -> Findings:
    """Train language models of German sentences, without and with the English source.

    Args:
        seed: Seed of weights, order of batches and samples.
    """
    pairs, test_pairs = short_sentences(NUM_TRAIN, NUM_TEST, max_words=MAX_WORDS)
    vocabularies = Vocabularies.fit(pairs)
    field = vocabularies.target
    rows = field.read_all([pair.target for pair in pairs])
    counts = Counts.of(rows, field.size)
    test = list(vocabularies.batches(test_pairs, max_tokens=4000).epoch(0))
    # A source of one token is the same for all sentences, so it is independent of the target.
    sourceless = list(vocabularies.batches(_without_source(test_pairs), max_tokens=4000).epoch(0))
    curves: dict[str, list[tuple[float, float]]] = {}
    learn = partial(_learn, vocabularies=vocabularies, seed=seed)
    with seeded(seed):
        model = build_language_model(_rnn_config(), vocab_size=field.size)
        curves[RNN] = learn(model, partial(_language_loss, model), pairs, test=test)
    with seeded(seed):
        alone = vocabularies.build(fixed_context_model(DIM))
        curves[ALONE] = learn(
            alone, partial(translation_loss, alone), _without_source(pairs), test=sourceless
        )
    with seeded(seed):
        conditional = vocabularies.build(fixed_context_model(DIM))
        curves[CONDITIONAL] = learn(
            conditional, partial(translation_loss, conditional), pairs, test=test
        )
    steps = {
        UNIGRAM: _count_log_probs(test, lambda _, token: counts.unigram(token)),
        BIGRAM: _count_log_probs(test, lambda first, token: counts.bigram(token, first)),
        RNN: _rnn_log_probs(model, test),
        ALONE: _decoder_log_probs(alone, sourceless),
        CONDITIONAL: _decoder_log_probs(conditional, test),
    }
    perplexities = {name: _perplexity(values) for name, values in steps.items()}
    samples = _samples(model, counts, vocabularies, seed=seed)
    texts = {**samples, TEXT: [row[1:] for row in rows]}
    shares = {
        name: {
            MARK: final_mark_share(rows, tokens),
            TRIPLES: seen_triples_share(rows, tokens),
            COPIES: copied_share(rows, tokens),
        }
        for name, tokens in texts.items()
    }
    sentence = _shown(test, steps, vocabularies)
    return Findings(
        tables={
            "Perplexity per word of the test sentences": {
                name: {"perplexity": value} for name, value in perplexities.items()
            },
            "p(y_t | y_<t) of one test sentence": _step_table(sentence),
            f"{NUM_SAMPLES} samples of each model": shares,
            f"The first {NUM_SHOWN} samples, not picked": {
                f"sample {number + 1}": {
                    name: field.write(tokens[number]) for name, tokens in samples.items()
                }
                for number in range(NUM_SHOWN)
            },
        },
        claims=_claims(perplexities, shares, chain=_chain_error(model, test)),
        plots={
            "language-model": _plot_steps(sentence),
            "language-model-curves": _plot_curves(curves),
        },
    )


def _rnn_config() -> RnnLanguageConfig:
    return RnnLanguageConfig(
        cell="gru",
        num_layers=1,
        embedding_dim=DIM,
        dim=2 * DIM,
        dropout=0.0,
        is_tied=False,
        init=InitConfig(embedding="normal", scale=0.1),
    )


def _without_source(pairs: Sequence[Example]) -> list[Example]:
    return [replace(pair, source="") for pair in pairs]


def _language_loss(model: LanguageModel, batch: Batch) -> Loss:
    """Compute −Σ log p(y_t | y_<t): the loss of a translation without its source."""
    logits = model(batch.target[:, :-1]).logits
    return cross_entropy(logits, batch.target[:, 1:], batch.target_mask[:, 1:])


def _learn(
    model: torch.nn.Module,
    loss: Callable[[Batch], Loss],
    pairs: Sequence[Example],
    *,
    vocabularies: Vocabularies,
    test: Sequence[Batch],
    seed: int,
) -> list[tuple[float, float]]:
    """Train a model; return updates and perplexity of the test batches."""
    batches = vocabularies.batches(pairs, max_tokens=500, seed=seed)
    return [
        (step, _test_perplexity(loss, test))
        for step in train(model, batches, loss, num_steps=NUM_STEPS)
        if step % CHECK_EVERY == 0
    ]


@torch.no_grad()
def _test_perplexity(loss: Callable[[Batch], Loss], test: Sequence[Batch]) -> float:
    losses = [loss(batch) for batch in test]
    nll, num = sum(float(one.nll) for one in losses), sum(int(one.count) for one in losses)
    return math.exp(nll / num)


def _count_log_probs(test: Sequence[Batch], prob: Callable[[int, int], float]) -> Steps:
    """Return log-probabilities of counts; `prob` is a function of the previous and the token."""
    return [
        [math.log(prob(first, second)) for first, second in zip(row, row[1:], strict=False)]
        for row in _rows(test)
    ]


def _rnn_log_probs(model: LanguageModel, test: Sequence[Batch]) -> Steps:
    with torch.no_grad():
        values = [
            token_log_probs(model(batch.target[:, :-1]).logits, batch.target[:, 1:])
            for batch in test
        ]
    return _unpadded(values, test)


def _decoder_log_probs(model: EncoderDecoder, test: Sequence[Batch]) -> Steps:
    with torch.no_grad():
        values = [
            target_log_probs(model, batch.source, batch.source_mask, targets=batch.target)
            for batch in test
        ]
    return _unpadded(values, test)


def _unpadded(values: Sequence[torch.Tensor], test: Sequence[Batch]) -> Steps:
    """Return the values of real positions, in the order of the test sentences."""
    by_row = {
        row: line[mask].tolist()
        for value, batch in zip(values, test, strict=True)
        for row, line, mask in zip(batch.rows, value, batch.target_mask[:, 1:], strict=True)
    }
    return [by_row[row] for row in sorted(by_row)]


def _rows(test: Sequence[Batch]) -> list[list[int]]:
    """Return the token ids of test sentences in their order."""
    by_row = {
        row: ids[mask].tolist()
        for batch in test
        for row, ids, mask in zip(batch.rows, batch.target, batch.target_mask, strict=True)
    }
    return [by_row[row] for row in sorted(by_row)]


def _perplexity(steps: Steps) -> float:
    nlls, lengths = [-sum(one) for one in steps], [len(one) for one in steps]
    return perplexity(nlls, lengths, context="sentence").value


def _chain_error(model: LanguageModel, test: Sequence[Batch]) -> tuple[float, float]:
    """Return log P(y) of the first batch's first sentence: in one pass, and step by step."""
    ids = test[0].target[:1, : int(test[0].target_mask[0].sum())]
    with torch.no_grad():
        at_once = token_log_probs(model(ids[:, :-1]).logits, ids[:, 1:]).sum()
        steps = stepwise_log_probs(ModelScorer(model, 1, banned=()), ids).sum()
    return float(at_once), float(steps)


def _samples(
    model: LanguageModel, counts: Counts, vocabularies: Vocabularies, *, seed: int
) -> dict[str, list[list[int]]]:
    """Sample sentences from the counts and from the recurrent model."""
    tokenizer, random = vocabularies.target.tokenizer, Random(seed)
    with torch.inference_mode():
        hypotheses = search(
            ModelScorer(model, NUM_SAMPLES, banned=(tokenizer.pad, tokenizer.sos, tokenizer.unk)),
            start=tokenizer.sos,
            end=tokenizer.eos,
            max_lengths=torch.full((NUM_SAMPLES,), 30),
            config=SearchConfig(temperature=1.0, seed=seed),
        )
    from_counts = {
        name: [
            counts.sample(
                start=tokenizer.sos, end=tokenizer.eos, is_bigram=name == BIGRAM, random=random
            )
            for _ in range(NUM_SAMPLES)
        ]
        for name in (UNIGRAM, BIGRAM)
    }
    return {**from_counts, RNN: [list(best.tokens) for (best,) in hypotheses]}


def final_mark_share(rows: Rows, samples: Rows) -> float:
    """Return the percentage of samples whose final mark fits their first word.

    The mark fits if it is the most frequent one of the training sentences with that first word:
    a question ends with a question mark. Only a model of the whole prefix can learn this.

    Args:
        rows: Training sentences.
        samples: Samples, without the start token.
    """
    marks: dict[int, Counter[int]] = {}
    for row in rows:
        marks.setdefault(row[1], Counter())[row[-2]] += 1
    usual = {first: count.most_common(1)[0][0] for first, count in marks.items()}
    fits = [len(row) > 2 and usual.get(row[0]) == row[-2] for row in samples]
    return 100 * sum(fits) / len(fits)


def seen_triples_share(rows: Rows, samples: Rows) -> float:
    """Return the percentage of triples of adjacent tokens that occur in the training sentences."""
    known = {triple for row in rows for triple in zip(row[1:], row[2:], row[3:], strict=False)}
    found = [triple for row in samples for triple in zip(row, row[1:], row[2:], strict=False)]
    return 100 * sum(triple in known for triple in found) / len(found)


def copied_share(rows: Rows, samples: Rows) -> float:
    """Return the percentage of samples that are training sentences."""
    known = {tuple(row[1:]) for row in rows}
    return 100 * sum(tuple(row) in known for row in samples) / len(samples)


@dataclass(frozen=True)
class _Sentence:
    words: list[str]
    steps: Mapping[str, list[float]]


def _shown(
    test: Sequence[Batch], steps: Mapping[str, Steps], vocabularies: Vocabularies
) -> _Sentence:
    """Return the first test sentence of at least six tokens with its log-probabilities."""
    rows = _rows(test)
    row = next(row for row, ids in enumerate(rows) if len(ids) >= 8)
    words = vocabularies.target.tokenizer.tokens(rows[row][1:])
    return _Sentence(
        [word.removeprefix("▁") for word in words],
        {name: values[row] for name, values in steps.items()},
    )


def _step_table(sentence: _Sentence) -> dict[str, dict[str, float]]:
    table = {
        f"{number}. {word}": {
            name: math.exp(values[number - 1]) for name, values in sentence.steps.items()
        }
        for number, word in enumerate(sentence.words, start=1)
    }
    products = {name: math.exp(sum(values)) for name, values in sentence.steps.items()}
    return {**table, "product = probability of the sentence": products}


def _claims(
    perplexities: Mapping[str, float],
    shares: Mapping[str, Mapping[str, float]],
    *,
    chain: tuple[float, float],
) -> tuple[Claim, ...]:
    unigram, bigram, rnn, alone, conditional = perplexities.values()
    fits = [row[MARK] for row in shares.values()]
    return (
        Claim(
            "The probability of a sentence is p(y₁)·p(y₂|y₁)·p(y₃|y₁,y₂)·…",
            f"log P of one sentence: {chain[0]:.4f} in one pass, {chain[1]:.4f} as the sum of "
            "its steps.",
            math.isclose(*chain, abs_tol=1e-3),
        ),
        Claim(
            "More preceding words predict the next word better.",
            f"Perplexity {unigram:.1f} without preceding words, {bigram:.1f} with one, {rnn:.1f} "
            "with all (recurrent).",
            unigram > bigram > rnn,
        ),
        Claim(
            "A decoder alone is a language model.",
            f"An encoder–decoder with an empty source has perplexity {alone:.1f}, the recurrent "
            f"language model {rnn:.1f}.",
            abs(math.log(alone / rnn)) < math.log(1.25),
        ),
        Claim(
            "The source makes the target predictable: P(y|x) against P(y).",
            f"Perplexity {conditional:.2f} with the source, {alone:.1f} without, same model.",
            conditional < alone / 4,
        ),
        Claim(
            "A recurrent net encodes the whole prefix, so the end of a sample fits its beginning.",
            f"The final mark fits the first word in {fits[0]:.0f} % of the unigram samples, "
            f"{fits[1]:.0f} % of the bigram samples, {fits[2]:.0f} % of the recurrent model's and "
            f"{fits[3]:.0f} % of the training sentences; {shares[RNN][COPIES]:.0f} % of the "
            "recurrent model's samples are copies of training sentences.",
            fits[0] < fits[1] < fits[2] and shares[RNN][COPIES] < 50,
        ),
    )


def _plot_steps(sentence: _Sentence) -> Plot:
    series = {
        name: [math.exp(value) for value in sentence.steps[name]]
        for name in (UNIGRAM, BIGRAM, RNN, CONDITIONAL)
    }
    caption = (
        "Probability of each word of a test sentence given the words before it (logarithmic "
        "axis), and for the last line also given the English source."
    )
    return Plot(by_word(sentence.words, series, y_label="p(y_t | y_<t)"), caption)


def _plot_curves(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Plot:
    figure = lines(curves, x_label="updates", y_label="perplexity per word, test")
    caption = (
        "Perplexity of the test sentences by the number of updates. Without a "
        "source, encoder–decoder and language model are equally good; the source changes that."
    )
    return Plot(figure, caption)
