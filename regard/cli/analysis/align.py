"""`regard align`: word alignments of attention weights, and their error rate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from regard.cli.arguments import split_arguments, split_columns
from regard.cli.options import OUT, Columns, Device, Json, OneRun, TestData
from regard.cli.output import output_to, print_json, print_table
from regard.core.errors import ConfigError
from regard.core.logging import logger

if TYPE_CHECKING:
    from regard.data.example import Example
    from regard.interpret.alignment import Alignments, Gold, Head, WordSplit
    from regard.metrics.text.alignment import Link
    from regard.tasks.base import Task

MAX_NAMED = 10
"""Maximum number of dropped links that a message names."""

GoldFile = Annotated[
    str | None,
    Option("--gold", help="Gold links, one line per pair: 0-0 sure, 0p1 possible."),
]
GoldOffset = Annotated[
    int | None,
    Option("--gold-offset", help="Index of the first word in --gold; detected if not given."),
]
Words = Annotated[
    str | None,
    Option(
        metavar="whitespace|punctuation",
        help="The words that links count; by the data if not given.",
    ),
]
Swap = Annotated[bool, Option("--swap", help="Swap source and target of data and gold links.")]


def align(
    run: OneRun,
    data: TestData = None,
    gold: GoldFile = None,
    gold_offset: GoldOffset = None,
    layer: Annotated[int | None, Option(help="A layer from 1; the mean if not given.")] = None,
    head: Annotated[int | None, Option(help="A head from 1; the mean if not given.")] = None,
    step: Annotated[
        str,
        Option(
            metavar="output|input",
            help="The decoder step whose weights align a word: the one that outputs it, or the "
            "next one, whose input it is.",
        ),
    ] = "output",
    words: Words = None,
    swap: Swap = False,
    columns: Columns = None,
    as_json: Json = False,
    out: Annotated[
        Path | None, Option(*OUT, help="A file for the links in Pharaoh format, or for --json.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Align the words of sentence pairs by attention weights.

    Each target word is linked to the source word with the largest weight under teacher forcing.
    Without gold links, the links are printed in Pharaoh format. With gold links, from --gold or
    from data with alignments such as phrasebook, the alignment error rate (AER), precision and
    recall of each layer and head are printed, and --out takes the links.
    """
    from regard.interpret.alignment import align as align_pairs
    from regard.interpret.alignment import check_task
    from regard.runs.folder import load_one
    from regard.runs.provenance import describe_provenance

    task = check_task(load_one(run, device))
    examples, links, split = read_aligned(
        task, run, data, gold=gold, gold_offset=gold_offset, words=words, swap=swap, columns=columns
    )
    aligned = align_pairs(task, examples, split=split, step=step)
    is_chosen = layer is not None or head is not None
    report = _report(aligned, links, aligned.find(layer, head) if is_chosen else None)
    if as_json:
        with output_to(out):
            settings = {"step": step, "words": split.name, "pairs": len(examples)}
            print_json({**describe_provenance(task.device), **settings, **report})
        return
    if links is None:
        with output_to(out):
            print(*report["links"], sep="\n")
        log_unknown(aligned)
        return
    print_rates(aligned, links, step=step)
    print(describe_best(aligned, links, chosen=aligned.find(layer, head) if is_chosen else None))
    log_unknown(aligned)
    if out is not None:
        with output_to(out):
            print(*report["links"], sep="\n")


def read_aligned(
    task: "Task[Any]",
    run: str,
    data: list[str] | None,
    *,
    gold: str | None,
    gold_offset: int | None,
    words: str | None,
    swap: bool,
    columns: str | None,
) -> "tuple[list[Example], Gold | None, WordSplit]":
    """Read pairs and their gold links, if there are any, and choose how words are split."""
    from regard.interpret.alignment import swap_sides
    from regard.interpret.alignment_data import read_separated
    from regard.runs.evaluate import read_test_data
    from regard.runs.folder import read_test_set

    paths = tuple(split_arguments(data, max_paths=2)[0]) if data else ()
    separated = read_separated(paths)
    if separated is not None:
        examples = separated
    elif paths:
        examples = read_test_data(task, paths, columns=split_columns(columns))
    else:
        examples = read_test_set(run)
        logger.info("Test set of the run: %s examples.", f"{len(examples):,}")
    require_texts(examples)
    links, split = find_gold(
        examples, gold, gold_offset, words=words, is_separated=separated is not None
    )
    if swap:
        from regard.interpret.alignment import swap_gold

        examples = swap_sides(examples)
        links = None if links is None else swap_gold(links)
    return examples, links, split


def require_texts(examples: "list[Example]") -> None:
    """Raise a `ConfigError` unless every source is one text."""
    if any(not isinstance(example.source, str) for example in examples):
        raise ConfigError("Word alignment needs sources of one text, but these have several.")


def find_gold(
    examples: "list[Example]",
    gold: str | None,
    gold_offset: int | None,
    *,
    words: str | None,
    is_separated: bool,
) -> "tuple[Gold | None, WordSplit]":
    """Return the gold links of a file or of the examples, and the words that they count."""
    from regard.core.tables import pick
    from regard.interpret.alignment import PUNCTUATION, WHITESPACE, WORD_SPLITS, fit_gold, gold_of
    from regard.interpret.alignment_data import read_gold

    split = WHITESPACE if gold is not None or is_separated else PUNCTUATION
    if words is not None:
        split = pick(WORD_SPLITS, words, "--words")
    if gold is None:
        return (gold_of(examples) if split is PUNCTUATION else None), split
    links, dropped = fit_gold(read_gold(gold, gold_offset), examples, split=split, name=gold)
    if dropped:
        named = "; ".join(dropped[:MAX_NAMED])
        more = f"; and {len(dropped) - MAX_NAMED:,} more" if len(dropped) > MAX_NAMED else ""
        logger.warning(
            "%s: dropped %d links outside their pair, counted from 0 (%s%s).",
            gold,
            len(dropped),
            named,
            more,
        )
    return links, split


def print_rates(aligned: "Alignments", gold: "Gold", *, step: str) -> None:
    """Print the AER, precision and recall of every head."""
    from regard.interpret.alignment import as_row

    num_sure, num_possible = (sum(map(len, side)) for side in (gold.sure, gold.possible))
    rows = [(str(head), *as_row(rate)) for head, rate in aligned.error_rates(gold).items()]
    print_table(("attention", "AER", "precision", "recall"), rows)
    print(
        f"{len(gold.sure):,} pairs; {num_sure:,} sure links (recall), {num_possible:,} sure or "
        f"possible ones (precision); weights of the {step} step."
    )


def describe_best(aligned: "Alignments", gold: "Gold", *, chosen: "Head | None") -> str:
    """Return the best head, the pairs that selected it, and its result on the others."""
    from regard.interpret.alignment import as_row, halves

    select, report = halves(len(gold.sure))
    if chosen is not None or len(aligned.links) == 1 or not any(gold.sure[select]):
        head = chosen or aligned.mean
        rate = as_row(gold.error_rate(aligned.links[head]))
        return f"Links: {head}: AER {rate[0]}."
    best = aligned.select(gold, select)
    aer, _, _ = as_row(gold.rows(select).error_rate(aligned.links[best][select]))
    line = f"Best: {best}, selected on the first {select.stop:,} pairs (AER {aer})"
    if not any(gold.sure[report]):
        return f"{line}."
    rate = as_row(gold.rows(report).error_rate(aligned.links[best][report]))
    others = len(gold.sure) - select.stop
    return f"{line}; on the other {others:,}: AER {rate[0]}, precision {rate[1]}, recall {rate[2]}."


def log_unknown(aligned: "Alignments") -> None:
    """Log the share of words that the vocabularies do not have."""
    if any(aligned.num_unknown):
        source, target = (100 * share for share in aligned.unknown_shares)
        logger.warning(
            "Unknown words: %.1f %% of the source words and %.1f %% of the target words.",
            source,
            target,
        )


def _report(aligned: "Alignments", gold: "Gold | None", chosen: "Head | None") -> dict[str, Any]:
    """Return results and links for JSON."""
    from regard.interpret.alignment import halves
    from regard.metrics.text.alignment import format_links

    head = chosen or aligned.mean
    heads: list[dict[str, Any]] = []
    best = None
    if gold is not None:
        heads = [_rate(one, gold, links) for one, links in aligned.links.items()]
        select, report = halves(len(gold.sure))
        if chosen is None and any(gold.sure[select]) and any(gold.sure[report]):
            head = aligned.select(gold, select)
            links = aligned.links[head]
            best = {
                "selected_on": _rate(head, gold.rows(select), links[select]),
                "reported_on": _rate(head, gold.rows(report), links[report]),
            }
    source, target = aligned.unknown_shares
    return {
        "unknown_share": {"source": source, "target": target},
        "heads": heads,
        "best": best,
        "links_of": {"layer": head.layer, "head": head.head},
        "links": [format_links(pair) for pair in aligned.links[head]],
    }


def _rate(head: "Head", gold: "Gold", links: "list[set[Link]]") -> dict[str, Any]:
    rate = gold.error_rate(links)
    numbers = {"pairs": len(links), "aer": rate.value, **rate.detail}
    return {"layer": head.layer, "head": head.head, **numbers}
