"""Steps that write the data files of plans before training."""

import gzip
import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.toys import generate_by_length
from regard.data.example import Example
from regard.data.splits import Splits, drop_overlap, split_by_source
from regard.data.text.readers import write_examples
from regard.data.text.word_aligner import align_words
from regard.metrics.text.alignment import Link, write_pharaoh

Pairs = list[tuple[list[str], list[str]]]
"""Words of sources and targets."""

NUM_TESTED = 200
"""Test examples of each length."""
MAX_JOINED = 3_000
"""Test examples of joined sentences."""


def joined_sentences(folder: Path, argument: Mapping[str, Any]) -> None:
    """Write single and joined sentences up to each limit of words, and test files up to 60."""
    splits = find_data(argument["data"])
    for side in ("valid", "test"):
        # Several ways to join the same test sentences give more long examples.
        joined: list[Example] = []
        for seed in range(3 if side == "test" else 1):
            examples = getattr(splits, side)
            joined += join_neighbours(examples, max_words=60, seed=seed, max_joined=6)
        write_examples(folder / f"{side}.jsonl", joined[:MAX_JOINED])
    for limit in argument["limits"]:
        single = join_neighbours(splits.train, max_words=limit, max_joined=1)
        joined = join_neighbours(splits.train, max_words=limit)
        write_examples(folder / f"train-{limit}.jsonl", [*single, *joined])


def join_neighbours(
    examples: Sequence[Example], *, max_words: int, seed: int = 0, max_joined: int = 5
) -> list[Example]:
    """Join 1 to `max_joined` consecutive examples into one, so that a corpus gets long examples.

    Every example is used once; one that is too long by itself is left out. Alignments, tags and
    further references are dropped.
    """
    generator = random.Random(seed)
    joined: list[Example] = []
    start = 0
    while start < len(examples):
        group = examples[start : start + generator.randint(1, max_joined)]
        while len(group) > 1 and _longest(group) > max_words:
            group = group[:-1]
        if _longest(group) <= max_words:
            source = " ".join(example.source for example in group)
            joined.append(Example(source, " ".join(example.target for example in group)))
        start += len(group)
    return joined


def _longest(group: Sequence[Example]) -> int:
    sources = sum(len(example.source.split()) for example in group)
    return max(sources, sum(len(example.target.split()) for example in group))


def length_generalisation(folder: Path, problems: Mapping[str, Mapping[str, Any]]) -> None:
    """Write for each problem a training file of short sources and a test file of all lengths.

    The held-out parts of the data set are trained on as well, since they hold most of the few
    sources of short lengths. Training drops every source of the test file.
    """
    for name, problem in problems.items():
        splits = find_data(problem["data"], seed=0)
        train = [*splits.train, *splits.valid, *splits.test]
        write_examples(folder / f"{name}.train.jsonl", train)
        tested = []
        for length in problem["tested"]:
            num = problem.get("fewer", {}).get(str(length), NUM_TESTED)
            found = generate_by_length(name, lengths=(length,), num=num, seed=1)[length]
            tested += [Example(one.source, one.target, tags=(str(length),)) for one in found]
        write_examples(folder / f"{name}.test.jsonl", tested)


def paraphrases(folder: Path, argument: Mapping[str, Any]) -> None:
    """Write German → English pairs, split so that no test sentence of either side is trained on."""
    splits = paraphrase_splits(argument["data"])
    sides = {"train": splits.train, "valid": splits.valid[:1000], "test": splits.test[:1000]}
    for side, examples in sides.items():
        write_examples(folder / f"{side}.jsonl", examples)


def paraphrase_splits(data: str, *, max_held_out: int = 3_000) -> Splits:
    """Split English → German pairs by their English side and reverse them.

    A German sentence that is held out is not trained on with another English one either.
    """
    everything = find_data(data)
    pairs = [*everything.train, *everything.valid, *everything.test]
    split = split_by_source(pairs, max_examples=max_held_out)
    sides = (split.train, split.valid, split.test)
    train, valid, test = ([Example(one.target, one.source) for one in side] for side in sides)
    train, num_dropped = drop_overlap(train, valid + test)
    note = f"{split.note}; German → English, {num_dropped:,} pairs with held-out German dropped"
    return Splits(train, valid, test, note)


def shuffled_sources(folder: Path, argument: Mapping[str, str]) -> None:
    """Write a data set whose sources are those of other examples, split by split.

    A model trained on it cannot use the source: it is a language model of the targets with the
    same size, the same texts and so the same vocabulary.
    """
    splits = find_data(argument["data"])
    # Dropped before shuffling, as a run with the original sources drops them, so that both runs
    # have the same training targets and learn the same vocabulary.
    train, _ = drop_overlap(splits.train, [*splits.valid, *splits.test])
    sides = {"train": train, "valid": splits.valid, "test": splits.test}
    for side, examples in sides.items():
        write_examples(folder / f"{side}.jsonl", shuffle_sources(examples))


def shuffle_sources(examples: Sequence[Example]) -> list[Example]:
    """Return examples with the sources of other examples, in a random order of fixed seed."""
    sources = [example.source for example in examples]
    random.Random(1).shuffle(sources)
    pairs = zip(sources, examples, strict=True)
    return [Example(source, example.target) for source, example in pairs]


def pretraining_corpus(_folder: Path, argument: Mapping[str, Sequence[str]]) -> None:
    """Write texts to pre-train on into `$REGARD_DATA/pretraining`, one a line, if missing."""
    for file, names in argument.items():
        path = Path(os.environ["REGARD_DATA"]) / "pretraining" / f"{file}.txt.gz"
        if path.exists():
            continue
        splits = [find_data(name) for name in names]
        examples = [e for one in splits for e in (one.valid if file == "valid" else one.train)]
        texts = [" ".join(example.source.split()) for example in examples]
        if file == "bilingual":  # both sides, each sentence once
            sides = [text for example in examples for text in (example.source, example.target)]
            texts = list(dict.fromkeys(sides))
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(f"{text}\n" for text in texts if text)


def word_links(folder: Path, argument: Mapping[str, Any]) -> None:
    """Write pairs with source and target swapped, and word links of the training pairs.

    `num_pairs` and `max_words` of the argument limit the training pairs to the first short ones.
    The links are estimated on all pairs, also those of the test pairs, `test.links`.
    """
    splits = find_data(argument["data"])
    train, valid, test = (
        [Example(example.target, example.source) for example in side]
        for side in (splits.train, splits.valid, splits.test)
    )
    limit = argument.get("max_words", 10**6)
    kept = [row for row, example in enumerate(train) if _longest([example]) <= limit]
    kept = kept[: argument.get("num_pairs")]
    sides = {"train": [train[row] for row in kept], "valid": valid, "test": test}
    for side, examples in sides.items():
        write_examples(folder / f"{side}.jsonl", examples)
    links = align_both(split_pairs([*train, *test]))
    write_pharaoh(folder / "target.links", [links["per target word"][row] for row in kept])
    write_pharaoh(folder / "both.links", [links["in both"][row] for row in kept])
    write_pharaoh(folder / "test.links", links["in both"][len(train) :])


def split_pairs(examples: Sequence[Example]) -> Pairs:
    """Return the words of pairs, separated by whitespace."""
    return [(example.source.split(), example.target.split()) for example in examples]


def align_both(pairs: Pairs) -> dict[str, list[set[Link]]]:
    """Return a source word for each target word, the reverse, and the links in both."""
    forward = [set(links) for links in align_words(pairs)]
    swapped = align_words([(target, source) for source, target in pairs])
    backward = [{(i, j) for j, i in links} for links in swapped]
    both = [one & other for one, other in zip(forward, backward, strict=True)]
    return {"per target word": forward, "per source word": backward, "in both": both}


_ALL = (
    joined_sentences, length_generalisation, paraphrases, shuffled_sources, pretraining_corpus,
    word_links,
)  # fmt: skip
STEPS: dict[str, Callable[[Path, Any], None]] = {one.__name__: one for one in _ALL}
"""Steps by name: (folder of the experiment's runs, argument of the plan)."""
