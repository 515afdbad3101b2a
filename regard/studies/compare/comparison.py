"""Measure several runs on one test set: scores, differences, groups, disagreements."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.device import find_device
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.text.tokenizers import split_words
from regard.metrics.grouping import by_length, by_position, by_tag
from regard.metrics.result import Group, Result
from regard.metrics.significance import PAIRED, Difference, paired_bootstrap
from regard.metrics.text.bleu import bleu, chrf
from regard.metrics.text.error_rates import accuracy
from regard.metrics.text.verb_position import clause_verbs, misplaced_verbs
from regard.runs.folder import describe_provenance, load_as
from regard.studies.compare.contenders import Contender, read_contenders
from regard.tasks.generation.task import Predictor

EDGES = tuple(range(5, 61, 5))
"""The most words of each group of source lengths."""

VERB_LAST = "verb_last"
"""The tag of sentences with a German dependent clause, whose verb comes last."""


@dataclass(frozen=True)
class Disagreement:
    """One test sentence and the output of every run."""

    source: str
    """The source."""
    reference: str
    """The target."""
    outputs: tuple[str, ...]
    """The output of each run."""
    values: tuple[float, ...]
    """The chrF of each output."""

    @property
    def spread(self) -> float:
        """Difference between the best and the worst output."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class Standing:
    """What was measured of one run."""

    contender: Contender
    """The run."""
    results: dict[str, Result]
    """Each score by its name."""
    differences: dict[str, Difference]
    """By the name of a score, how far this run is from the first; empty for the first itself."""
    by_length: list[Group]
    """BLEU by the number of source words."""
    by_position: list[Group]
    """Words of the reference that the model predicts, by tenths of the target; empty where no
    reference has a word."""
    by_tag: list[Group]
    """BLEU and exact matches by phenomenon, where the data carries tags."""
    verbs: Result | None
    """Misplaced verbs, where the data has the tag `verb_last`."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        metrics = self.contender.metrics
        making = ("command", "commit", "hardware", "regard", "torch", "seed", "parameters")
        return {
            "name": self.contender.name,
            "folder": str(self.contender.folder),
            "decoder": self.contender.decoder,
            **{key: metrics[key] for key in making},
            "training": metrics["training"],
            "scores": {name: result.to_dict() for name, result in self.results.items()},
            "differences": {name: found.to_dict() for name, found in self.differences.items()},
            "by_length": _plain(self.by_length),
            "by_position": _plain(self.by_position),
            "by_tag": _plain(self.by_tag),
            "verbs": self.verbs.to_dict() if self.verbs else None,
        }


@dataclass(frozen=True)
class Comparison:
    """Several runs on one test set; the first is what the others are held against."""

    standings: list[Standing]
    """What was measured of each run."""
    disagreements: list[Disagreement]
    """The sentences on which the runs are furthest apart."""
    making: dict[str, Any]
    """Command, versions, commit and hardware of the comparison itself."""

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return [standing.contender.name for standing in self.standings]

    @property
    def num_examples(self) -> int:
        """Number of sentences in the test set."""
        return len(self.standings[0].contender.examples)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            **self.making,
            "num_examples": self.num_examples,
            "runs": [standing.to_dict() for standing in self.standings],
            "disagreements": [
                {
                    "source": found.source,
                    "reference": found.reference,
                    "outputs": dict(zip(self.names, found.outputs, strict=True)),
                    "chrf": dict(zip(self.names, found.values, strict=True)),
                }
                for found in self.disagreements
            ],
        }


def compare(
    folders: Sequence[Path], *, device: str = "auto", num_samples: int = 1000
) -> Comparison:
    """Compare runs that were tested on the same sentences.

    Args:
        folders: Run folders; the first is what the others are held against.
        device: Where the models run.
        num_samples: Resamples behind every interval and every p-value.
    """
    contenders = read_contenders(folders)
    outputs = [contender.outputs for contender in contenders]
    return Comparison(
        standings=[
            _measure(contender, contenders[0], device=device, num_samples=num_samples)
            for contender in contenders
        ],
        disagreements=find_disagreements(contenders[0].examples, outputs),
        making=describe_provenance(find_device(device)),
    )


def find_disagreements(
    examples: Sequence[Example], outputs: Sequence[Sequence[str]], *, num: int = 10
) -> list[Disagreement]:
    """Return the sentences with the greatest spread of chrF, greatest first; equal outputs never.

    Args:
        examples: The test set.
        outputs: The outputs of each run.
        num: At most how many.
    """
    found = []
    for example, answers in zip(examples, zip(*outputs, strict=True), strict=True):
        if len(set(answers)) == 1:
            continue
        references = [[example.target, *example.references]]
        values = tuple(chrf([answer], references).value for answer in answers)
        found.append(Disagreement(example.source, example.target, answers, values))
    return sorted(found, key=lambda one: -one.spread)[:num]


def _measure(contender: Contender, first: Contender, *, device: str, num_samples: int) -> Standing:
    logger.info("Measuring %s.", contender.name)
    outputs, references = contender.outputs, contender.references
    sources = [example.source for example in contender.examples]
    tags = [example.tags for example in contender.examples]
    differences = {}
    if contender is not first:
        differences = {
            metric: paired_bootstrap(
                first.outputs, outputs, references, metric=metric, num_samples=num_samples
            )
            for metric in PAIRED
        }
    return Standing(
        contender=contender,
        results={
            "bleu": bleu(outputs, references, num_bootstrap=num_samples),
            "chrf": chrf(outputs, references, num_bootstrap=num_samples),
            "accuracy": accuracy(outputs, references),
        },
        differences=differences,
        by_length=by_length(sources, outputs, references, edges=EDGES),
        by_position=_predicted_words(contender, device),
        by_tag=by_tag(tags, outputs, references) if any(tags) else [],
        verbs=_verbs(contender),
    )


def _predicted_words(contender: Contender, device: str) -> list[Group]:
    predicted = load_as(Predictor, contender.folder, device).correct_words(contender.examples)
    hits = [
        _without_punctuation(unicodedata.normalize("NFC", example.target), own)
        for example, own in zip(contender.examples, predicted, strict=True)
    ]
    return by_position(hits) if any(hits) else []


def _without_punctuation(target: str, predicted: Sequence[bool]) -> list[bool]:
    """Leave out punctuation: the full stop is easy and would raise the last tenth."""
    return [
        is_predicted
        for word, is_predicted in zip(split_words(target), predicted, strict=False)
        if any(map(str.isalnum, word))
    ]


def _verbs(contender: Contender) -> Result | None:
    rows = [
        row
        for row, example in enumerate(contender.examples)
        if VERB_LAST in example.tags and clause_verbs(example.target)
    ]
    if not rows:
        return None
    return misplaced_verbs(
        [contender.outputs[row] for row in rows], [contender.examples[row].target for row in rows]
    )


def _plain(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "count": group.count,
            **({"place": group.place} if group.place is not None else {}),
            **{name: result.value for name, result in group.results.items()},
        }
        for group in groups
    ]
