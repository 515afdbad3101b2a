"""The data pipeline, step by step: a line of a file becomes a row of a mini-batch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from regard.core.files import write_text
from regard.data.batch import Batch
from regard.data.batching import BatchConfig, Batches, limit_lengths
from regard.data.datasets.synthetic.phrasebook import generate
from regard.data.example import Example
from regard.data.text.field import TextField
from regard.data.text.readers import TWO_COLUMNS, read_examples
from regard.data.text.tokenizers import TokenizerConfig, split_words
from regard.plots.curves import lines
from regard.plots.words import links, token_rows
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    fixed_context_model,
    seeded,
    translation_loss,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot

ATTRIBUTION = "CC-BY 2.0 (France) Attribution: tatoeba.org #3737550 (CK) & #7977622 (Ninja)"
LINE = f"This work isn't easy.\tこの仕事は簡単じゃない。\t{ATTRIBUTION}"
"""The lecture's line: English, other language, attribution, separated by tabs."""

PAIRS = (
    ("I would like to learn German.", "Ich möchte Deutsch lernen."),
    ("This work isn't easy.", "Diese Arbeit ist nicht einfach."),
    ("I saw a cat on a mat.", "Ich sah eine Katze auf einer Matte."),
    ("Hello.", "Hallo."),
    (
        "The check I issued could not be encashed.",
        "Der Scheck, den ich ausgestellt habe, konnte nicht eingelöst werden.",
    ),
)
"""Pairs of the mini-batch; the first and the English of the last are the lecture's."""

LINKS = ((0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 2), (6, 4))
"""Aligned words of the first pair: English and German positions."""

MAX_LENGTH = 10
"""Maximum number of tokens of a source or target, with start and end tokens."""

NUM_PAIRS, MAX_TOKENS = 3_000, 1_000
SIMILAR, MIXED = "similar length", "any length"
POOLS = {SIMILAR: 100, MIXED: 1}
"""Number of batches whose sentences are sorted by length together, `data.batch.pool`."""


def data_pipeline(seed: int, folder: Path) -> Findings:
    """Follow the lecture's line, and five pairs into a mini-batch.

    Args:
        seed: Seed of the weights of an untrained model and of the order of batches.
        folder: Folder of the files of sentence pairs.
    """
    (japanese,) = read_line(folder)
    field = TextField.fit(TokenizerConfig(kind="char"), [japanese.target])
    field.add_start()
    pairs = [Example(source, target) for source, target in PAIRS]
    vocabularies = Vocabularies.fit(pairs)
    lengths = [len(ids) for ids in vocabularies.target.read_all([one.target for one in pairs])]
    batch = build_batch(vocabularies, pairs)
    tokens = [vocabularies.target.tokenizer.tokens(row) for row in batch.target.tolist()]
    rows = [[token.removeprefix("▁") for token in row] for row in tokens]
    phrasebook = generate(NUM_PAIRS)
    padding = padding_shares(phrasebook, seed)
    return Findings(
        tables={
            "One line of the file": _line_table(japanese, field),
            f"Mini-batch of {len(PAIRS)} targets, at most {MAX_LENGTH} tokens": {
                f"sentence {number}": {
                    "ids": " ".join(map(str, ids)),
                    "mask": " ".join(str(int(bit)) for bit in mask),
                    "tokens before truncation": lengths[row],
                }
                for number, (row, ids, mask) in enumerate(
                    zip(batch.rows, batch.target.tolist(), batch.target_mask.tolist(), strict=True),
                    start=1,
                )
            },
            f"Padding in batches of {MAX_TOKENS} tokens, {NUM_PAIRS} phrasebook pairs": {
                name: {"padding %": 100 * share} for name, share in padding.items()
            },
        },
        claims=_claims(
            japanese,
            field,
            batch,
            padding=padding,
            losses=padded_and_single(vocabularies, batch, seed),
        ),
        plots={
            "data-pipeline": _plot_batch(rows),
            "data-pipeline-links": _plot_links(),
            "data-pipeline-lengths": _plot_lengths(phrasebook),
        },
    )


def read_line(folder: Path) -> list[Example]:
    """Write the lecture's line to a file and read it as the reader of Tatoeba files does."""
    path = folder / "jpn.txt"
    write_text(path, LINE + "\n")
    return read_examples(path, formats=TWO_COLUMNS)


def build_batch(vocabularies: Vocabularies, pairs: Sequence[Example]) -> Batch:
    """Encode, truncate and pad the pairs, in their order."""
    config = BatchConfig(max_length=MAX_LENGTH, too_long="truncate")
    sources, targets, _ = limit_lengths(
        vocabularies.source.read_all([pair.source for pair in pairs]),  # ids <eos>
        vocabularies.target.read_all([pair.target for pair in pairs]),  # <sos> ids <eos>
        config,
    )
    fields = (vocabularies.source, vocabularies.target)
    (batch,) = Batches(sources, targets, config, fields=fields, is_shuffled=False).epoch(0)
    return batch


def padded_and_single(vocabularies: Vocabularies, batch: Batch, seed: int) -> tuple[float, float]:
    """Return the loss of an untrained model: of the padded batch, and of its rows one by one."""
    with seeded(seed):
        model = vocabularies.build(fixed_context_model(16)).eval()
    with torch.no_grad():
        padded = float(translation_loss(model, batch).total)
        single = sum(
            float(translation_loss(model, _row(batch, row)).total) for row in range(len(batch.rows))
        )
    return padded, single


def _row(batch: Batch, row: int) -> Batch:
    """Return one sentence of a batch without padding."""
    source, target = int(batch.source_mask[row].sum()), int(batch.target_mask[row].sum())
    return Batch(
        source=batch.source[[row], :source],
        source_mask=batch.source_mask[[row], :source],
        target=batch.target[[row], :target],
        target_mask=batch.target_mask[[row], :target],
        rows=(batch.rows[row],),
    )


def padding_shares(pairs: Sequence[Example], seed: int) -> dict[str, float]:
    """Return the share of padding in batches of similar length and of any length."""
    vocabularies = Vocabularies.fit(pairs)
    sources = vocabularies.source.read_all([pair.source for pair in pairs])
    targets = vocabularies.target.read_all([pair.target for pair in pairs])
    fields = (vocabularies.source, vocabularies.target)
    configs = {name: BatchConfig(max_tokens=MAX_TOKENS, pool=pool) for name, pool in POOLS.items()}
    return {
        name: Batches(sources, targets, config, fields=fields, seed=seed).padding_share()
        for name, config in configs.items()
    }


def num_crossings(pairs: Sequence[tuple[int, int]]) -> int:
    """Return the number of pairs of links that cross: their order differs on the two sides."""
    return sum(
        (first[0] - second[0]) * (first[1] - second[1]) < 0
        for number, first in enumerate(pairs)
        for second in pairs[:number]
    )


def _line_table(pair: Example, field: TextField) -> dict[str, dict[str, str]]:
    ids = field.read(pair.target)
    return {
        "1. line of the file": {"value": LINE.replace("\t", " ⇥ ")},
        "2. source": {"value": pair.source},
        "3. target": {"value": pair.target},
        "4. target tokens": {"value": " ".join(field.tokenizer.tokens(ids))},
        "5. target ids": {"value": " ".join(map(str, ids))},
        "6. decoded again": {"value": field.write(ids[1:])},
    }


def _claims(
    japanese: Example,
    field: TextField,
    batch: Batch,
    *,
    padding: Mapping[str, float],
    losses: tuple[float, float],
) -> tuple[Claim, ...]:
    ids = field.read(japanese.target)
    tokenizer = field.tokenizer
    lengths = batch.target_mask.sum(1).tolist()
    ends = [int(row[length - 1]) for row, length in zip(batch.target, lengths, strict=True)]
    source, target = (split_words(text) for text in PAIRS[0])
    padded, single = losses
    return (
        Claim(
            "A line is English, tab, other language, tab, attribution.",
            f"The reader returns '{japanese.source}' and '{japanese.target}', without the "
            "attribution.",
            (japanese.source, japanese.target) == tuple(LINE.split("\t")[:2]),
        ),
        Claim(
            "A target starts with <sos> and ends with <eos>.",
            f"{len(ids)} tokens, {tokenizer.token(ids[0])} … {tokenizer.token(ids[-1])}; decoded "
            f"again: {field.write(ids[1:])}",
            (ids[0], ids[-1]) == (tokenizer.sos, tokenizer.eos)
            and field.write(ids[1:]) == japanese.target,
        ),
        Claim(
            "Mini-batches are made by truncation and <pad> at the end.",
            f"Rows of {lengths} tokens become one tensor {tuple(batch.target.shape)}; the longest "
            f"is truncated to {MAX_LENGTH} and keeps <eos>.",
            max(lengths) == MAX_LENGTH == batch.target.shape[1] and len(set(ends)) == 1,
        ),
        Claim(
            "The mask takes padding out of the loss.",
            f"Loss of an untrained model: {padded:.4f} for the padded batch, {single:.4f} as the "
            "sum of its sentences one by one.",
            abs(padded - single) < 1e-3 * single,
        ),
        Claim(
            "Sentences of similar length in one batch need less padding.",
            f"{100 * padding[SIMILAR]:.1f} % padding instead of {100 * padding[MIXED]:.1f} %.",
            padding[SIMILAR] < 0.5 * padding[MIXED],
        ),
        Claim(
            "Source and target differ in length and in word order.",
            f"'{PAIRS[0][0]}' has {len(source)} words and marks, '{PAIRS[0][1]}' {len(target)}; "
            f"{num_crossings(LINKS)} pairs of links cross.",
            len(source) != len(target) and num_crossings(LINKS) > 0,
        ),
    )


def _plot_batch(rows: Sequence[Sequence[str]]) -> Plot:
    groups = {"start and end": ("<sos>", "<eos>"), "padding, masked": ("<pad>",)}
    caption = (
        f"Targets of a mini-batch, the longest first: <sos> … <eos>, truncated to {MAX_LENGTH} "
        "tokens and padded at the end to one length."
    )
    return Plot(token_rows(rows, groups), caption)


def _plot_links() -> Plot:
    source, target = (split_words(text) for text in PAIRS[0])
    caption = (
        "Aligned words of the lecture's pair: lengths differ, two words become one, and 'lernen' "
        "is the last word."
    )
    return Plot(links(source, target, LINKS), caption)


def _plot_lengths(pairs: Sequence[Example]) -> Plot:
    counts = {
        "English": Counter(len(split_words(pair.source)) for pair in pairs),
        "German": Counter(len(split_words(pair.target)) for pair in pairs),
    }
    longest = max(max(count) for count in counts.values())
    series = {
        name: [(float(length), float(count[length])) for length in range(1, longest + 1)]
        for name, count in counts.items()
    }
    figure = lines(series, x_label="words and punctuation marks", y_label="sentences")
    caption = f"Lengths of {len(pairs):,} sentence pairs of the phrasebook."
    return Plot(figure, caption)
