"""Word alignments of attention weights, against the gold links of the phrasebook.

Bahdanau et al. 2015, figure 3: the weights of a trained model are an alignment of two sentences,
although no alignment was given in training.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.datasets.synthetic.phrasebook import splits
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.data.text.tokenizers import split_words
from regard.data.text.word_aligner import align_words
from regard.interpret.alignment import (
    PUNCTUATION,
    Alignments,
    Gold,
    Head,
    align,
    check_task,
    gold_of,
    halves,
    head_weights,
)
from regard.interpret.probes import untrained_copy
from regard.metrics.text.alignment import Link
from regard.plots.alignment import AlignmentMap, alignment_maps
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

NUM_TRAIN, NUM_VALID, NUM_TEST = 5_000, 100, 200
MAX_WORDS = 9
"""Maximum number of words and punctuation marks of a sentence, so that training is short."""

RECURRENT = ("bahdanau2015-laptop", ("train.max_epochs=8", "data.batch.max_tokens=500"))
TRANSFORMER = (
    "modern-laptop",
    (
        "data.source.kind=word",
        "data.batch.max_tokens=700",
        "model.encoder.dim=64",
        "model.encoder.num_layers=2",
        "model.encoder.feed_forward_dim=128",
        "model.decoder.dim=64",
        "model.decoder.num_layers=2",
        "model.decoder.feed_forward_dim=128",
        "train.max_steps=400",
        "train.validate_every=100",
    ),
)
"""Recipes with their overrides."""

BAHDANAU, TINY = "Bahdanau", "tiny Transformer"
DIAGONAL, UNTRAINED, EM = "the diagonal", "Bahdanau, not trained", "IBM model 1"
AER, PRECISION, RECALL = "AER", "precision", "recall"
NUM_SHOWN = 4


def alignments(seed: int, folder: Path) -> Findings:
    """Train both models without links and measure the alignments of their attention.

    Args:
        seed: Seed of the models; the sentences are always the same.
        folder: Folder of the runs.
    """
    train, test = write_pairs(folder)
    gold = gold_of(test)
    assert gold is not None
    recurrent = train_model(RECURRENT, seed, folder / "bahdanau")
    transformer = train_model(TRANSFORMER, seed, folder / "transformer")
    aligned = {
        BAHDANAU: align(recurrent, test, split=PUNCTUATION),
        UNTRAINED: align(check_task(untrained_copy(recurrent)), test, split=PUNCTUATION),
    }
    heads = align(transformer, test, split=PUNCTUATION)
    numbers = {name: rates(gold, found.links[found.mean]) for name, found in aligned.items()} | {
        DIAGONAL: rates(gold, diagonal(test)),
        EM: rates(gold, em_links(train, test)),
    }
    by_head = {str(head): rates(gold, links) for head, links in heads.links.items()}
    return Findings(
        tables={"Alignment error": numbers, f"Heads of the {TINY}": by_head},
        claims=(
            *_claims(numbers, links=aligned[BAHDANAU].links[Head(1, 1)], test=test),
            *_head_claims(heads, gold),
        ),
        plots={
            "alignments": _maps(recurrent, test),
            "alignments-heads": _head_maps(transformer, test, heads),
        },
    )


def write_pairs(folder: Path, num_train: int = NUM_TRAIN) -> tuple[list[Example], list[Example]]:
    """Write short pairs of the phrasebook with gold links; return training and test pairs."""
    # About a fifth of the sentences are short enough.
    parts = splits(num_train=6 * num_train, num_valid=8 * NUM_VALID, num_test=8 * NUM_TEST)
    sizes = {"train": num_train, "valid": NUM_VALID, "test": NUM_TEST}
    kept = {}
    for (side, size), examples in zip(sizes.items(), parts, strict=True):
        kept[side] = [one for one in examples if _num_words(one) <= MAX_WORDS][:size]
        write_examples(folder / "data" / f"{side}.jsonl", kept[side])
    return kept["train"], kept["test"]


def _num_words(example: Example) -> int:
    return max(len(split_words(example.source)), len(split_words(example.target)))


def train_model(
    recipe: tuple[str, Sequence[str]], seed: int, folder: Path, *, more: Sequence[str] = ()
) -> Any:
    """Train a recipe with overrides on the pairs that `write_pairs` wrote."""
    name, settings = recipe
    paths = [
        (str(folder.parent / "data" / f"{side}.jsonl"),) for side in ("train", "valid", "test")
    ]
    request = Request(
        data=paths[0],
        valid=paths[1],
        test=paths[2],
        recipe=name,
        settings=(*settings, "search.beams=1", *more),
        out=folder,
    )
    return train_run(request, seed)


def rates(gold: Gold, links: Sequence[set[Link]]) -> dict[str, float]:
    """Return the AER, precision and recall of links."""
    found = gold.error_rate(links)
    return {AER: found.value, **found.detail}


def diagonal(examples: Sequence[Example]) -> list[set[Link]]:
    """Link each target word to the source word at the same relative position."""
    sizes = [(len(split_words(one.source)), len(split_words(one.target))) for one in examples]
    return [{(j * num // size, j) for j in range(size)} for num, size in sizes]


def em_links(train: Sequence[Example], test: Sequence[Example]) -> list[set[Link]]:
    """Align the test pairs without a network, estimated on training and test pairs."""
    words = [(split_words(one.source), split_words(one.target)) for one in (*test, *train)]
    return [set(links) for links in align_words(words)[: len(test)]]


def far_links(examples: Sequence[Example]) -> list[set[Link]]:
    """Return the gold links that are at least two words away from the diagonal."""
    found = []
    for one in examples:
        ratio = len(split_words(one.source)) / len(split_words(one.target))
        found.append({(i, j) for i, j in one.alignment or () if abs(i - j * ratio) >= 2})
    return found


def share_found(links: Sequence[set[Link]], wanted: Sequence[set[Link]]) -> float:
    """Return the share of the wanted links that were found."""
    num = sum(map(len, wanted))
    return sum(len(a & b) for a, b in zip(links, wanted, strict=True)) / max(num, 1)


def _claims(
    numbers: dict[str, dict[str, float]], *, links: list[set[Link]], test: Sequence[Example]
) -> tuple[Claim, ...]:
    found, baseline = numbers[BAHDANAU][AER], numbers[DIAGONAL][AER]
    wanted = far_links(test)
    far, far_diagonal = share_found(links, wanted), share_found(diagonal(test), wanted)
    return (
        Claim(
            "Attention learns an alignment without any links: its AER is below that of the "
            "diagonal and of the untrained model.",
            f"{found:.3f}; diagonal {baseline:.3f}, untrained {numbers[UNTRAINED][AER]:.3f}",
            found < min(baseline, numbers[UNTRAINED][AER]),
        ),
        Claim(
            "Attention follows the reordering of words: it finds most of the links that are two or "
            "more words from the diagonal.",
            f"{100 * far:.0f} % of {sum(map(len, wanted))} links; the diagonal finds "
            f"{100 * far_diagonal:.0f} %",
            far > 0.5,
        ),
    )


def _head_claims(heads: Alignments, gold: Gold) -> tuple[Claim, ...]:
    select, report = halves(len(gold.sure))
    single = Alignments(
        {head: links for head, links in heads.links.items() if head.head},
        heads.num_words,
        heads.num_unknown,
    )
    best = single.select(gold, select)
    part = gold.rows(report)
    values = {head: part.error_rate(links[report]).value for head, links in heads.links.items()}
    errors = [values[head] for head in single.links]
    mean = values[heads.mean]
    return (
        Claim(
            "The heads of a Transformer differ: some align, others do not.",
            f"AER {min(errors):.3f} to {max(errors):.3f} on the second "
            f"{len(gold.sure) - select.stop} pairs",
            max(errors) - min(errors) > 0.1,
        ),
        Claim(
            "Heads complement each other: their mean aligns better than the best single head.",
            f"AER of the mean {mean:.3f}; {best}, selected on the first {select.stop} pairs, "
            f"{values[best]:.3f}, both on the others",
            mean < values[best],
        ),
    )


def shown(test: Sequence[Example], num: int = NUM_SHOWN) -> list[Example]:
    """Return the test pairs with the most links away from the diagonal, of those fully linked."""
    distance = [len(links) for links in far_links(test)]
    order = sorted(range(len(test)), key=lambda row: -distance[row])
    return [test[row] for row in order[:num]]


def draw(task: Any, example: Example, head: Head | None = None) -> AlignmentMap:
    """Return the map of a pair with its gold links; the mean over heads if none is named."""
    return AlignmentMap(
        head_weights(task, example, split=PUNCTUATION, head=head),
        split_words(example.target),
        split_words(example.source),
        example.alignment or (),
    )


def _maps(task: Any, test: Sequence[Example]) -> Plot:
    maps = {f"{number}": draw(task, one) for number, one in enumerate(shown(test), start=1)}
    caption = (
        "Attention weights of the Bahdanau model, one row per German word, for the test pairs with "
        "the most reordering; white is 0, the darkest blue 1. Orange: gold links."
    )
    return Plot(alignment_maps(maps), caption)


def _head_maps(task: Any, test: Sequence[Example], heads: Alignments) -> Plot:
    (example,) = shown(test, 1)
    maps = {str(head): draw(task, example, head) for head in heads.links if head.head}
    caption = "The same pair in every head of the tiny Transformer. Orange: gold links."
    return Plot(alignment_maps(maps), caption)
