"""Extractors of word alignments: error rates of attention weights, and of EM without a model."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from gather import Finished, Together
from prepare import Pairs, align_both, split_pairs
from results import Row

from regard.data.datasets.catalog import find_data
from regard.data.datasets.download import local_folder
from regard.data.example import Example
from regard.interpret.alignment import (
    STEPS,
    WHITESPACE,
    Alignments,
    Gold,
    align,
    fit_gold,
    halves,
)
from regard.interpret.alignment_data import read_gold, read_separated
from regard.metrics.text.alignment import Link, read_pharaoh


def read_gold_set(name: str) -> tuple[list[Example], Gold, list[str]]:
    """Read a gold set of `word_alignment`: pairs, links, and the links dropped from it."""
    folder = local_folder("word_alignment")
    path = folder / f"{name}.gold.gz"
    examples = read_separated((str(folder / f"{name}.src-tgt.gz"),))
    assert examples is not None
    gold, dropped = fit_gold(
        read_gold(str(path), offset=1), examples, split=WHITESPACE, name=str(path)
    )
    return examples, gold, dropped


def word_alignment(run: Finished, name: str) -> Row:
    """Align a gold set with the attention of a run, by the output step and by the input step."""
    examples, gold, _ = read_gold_set(name)
    rows: Row = {}
    scores: Row = {}
    for step in STEPS:
        aligned = align(run.task, examples, split=WHITESPACE, step=step)
        rows[step] = _describe(aligned, gold)
        for key in ("mean", "best"):
            scores[f"aer_{step}_{key}"] = {"name": "AER", "value": rows[step][key]["aer"]}
    rows["unknown_share"] = dict(zip(("source", "target"), aligned.unknown_shares, strict=True))
    return {"alignment": rows, "test_scores": scores}


def _describe(aligned: Alignments, gold: Gold) -> Row:
    """Return the rates of all heads, of the mean and of the head selected on the first half."""
    select, report = halves(len(gold.sure))
    best = aligned.select(gold, select)
    by_head = {str(head): rate(gold, links) for head, links in aligned.links.items()}
    found = rate(gold.rows(report), aligned.links[best][report])
    # The mean on the same half, so that both can be compared.
    mean = rate(gold.rows(report), aligned.links[aligned.mean][report])
    return {"heads": by_head, "mean": mean, "best": {"name": str(best), **found}}


def rate(gold: Gold, links: Sequence[set[Link]]) -> Row:
    """Return AER, precision and recall."""
    found = gold.error_rate(links)
    return {"aer": found.value, **found.detail}


def alignment_by_domain(run: Finished, argument: Mapping[str, Any]) -> Row:
    """Align the run's own test pairs and a gold set, by length, beside links without a model.

    The test pairs have no gold links: theirs are those of expectation maximisation in both
    directions. The argument has the name of the gold set, `gold`, and the most words of a short
    pair, `max_words`.
    """
    silver, _ = read_pharaoh(run.folder.parent / "test.links")
    examples, gold, _ = read_gold_set(argument["gold"])
    most = argument["max_words"]
    sets = {"test": (run.test, Gold(silver, silver)), "gold": (examples, gold)}
    rows: list[Row] = []
    for name, (pairs, links) in sets.items():
        sizes = [(len(one.source.split()), len(one.target.split())) for one in pairs]
        short = [row for row, size in enumerate(sizes) if max(size) <= most]
        long = [row for row, size in enumerate(sizes) if max(size) > most]
        parts = {f"≤ {most}": short, f"> {most}": long, "all": list(range(len(pairs)))}
        for length, chosen in parts.items():
            part = Gold(*([side[row] for row in chosen] for side in (links.sure, links.possible)))
            aligned = align(run.task, [pairs[row] for row in chosen], split=WHITESPACE)
            found = {
                "model": aligned.links[aligned.mean],
                "diagonal": [diagonal_links(*sizes[row]) for row in chosen],
                "random": [random_links(*sizes[row], seed=row) for row in chosen],
            }
            shares = dict(zip(("source", "target"), aligned.unknown_shares, strict=True))
            rates = {kind: rate(part, one) for kind, one in found.items()}
            rows.append(
                {"set": name, "words": length, "pairs": len(chosen), "unknown": shares, **rates}
            )
    return {"by_domain": rows}


def diagonal_links(num_sources: int, num_targets: int) -> set[Link]:
    """Link each target word to the source word at the same relative position."""
    return {(j * num_sources // num_targets, j) for j in range(num_targets)}


def random_links(num_sources: int, num_targets: int, *, seed: int) -> set[Link]:
    """Link each target word to any source word."""
    generator = random.Random(seed)
    return {(generator.randrange(num_sources), j) for j in range(num_targets)}


def em_baseline(_context: Together | None, argument: Any) -> Row:
    """Align gold sets by expectation maximisation on their own text, and on further pairs.

    The argument names, for each gold set, the built-in data set whose training pairs, swapped, are
    added, or an empty text.
    """
    baseline: list[Row] = []
    for name, data in argument.items():
        examples, gold, dropped = read_gold_set(name)
        own = split_pairs(examples)
        texts: dict[str, Pairs] = {"its own text": []}
        if data:
            train = find_data(data).train
            texts[f"and {len(train):,} pairs of {data.partition(':')[0]}"] = [
                (target, source) for source, target in split_pairs(train)
            ]
        select, report = halves(len(gold.sure))
        for trained_on, more in texts.items():
            for direction, links in align_both(own + more).items():
                rates = {
                    "all": rate(gold, links[: len(own)]),
                    "report": rate(gold.rows(report), links[: len(own)][report]),
                }
                baseline.append(
                    {"set": name, "trained_on": trained_on, "links": direction, **rates}
                )
        baseline[-1] |= {"pairs": len(examples), "dropped": dropped}
    return {"em": baseline}


EVERY_SEED = (word_alignment, alignment_by_domain)
JOINED = (em_baseline,)
