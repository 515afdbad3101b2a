"""Comparison of several runs on one test set: scores, differences, groups, disagreements."""

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
from regard.runs.folder import load_as
from regard.runs.provenance import describe_provenance
from regard.studies.compare.finished_runs import FinishedRun, read_finished_runs
from regard.tasks.generation.task import Predictor

EDGES = tuple(range(5, 61, 5))
"""Maximum number of words of each group of source lengths."""

VERB_LAST = "verb_last"
"""Tag of sentences with a German dependent clause, whose verb comes last."""


@dataclass(frozen=True)
class Disagreement:
    """One test sentence and the output of every run."""

    source: str
    """The source."""
    reference: str
    """The target."""
    outputs: tuple[str, ...]
    """Output of each run."""
    values: tuple[float, ...]
    """chrF of each output."""

    @property
    def spread(self) -> float:
        """Difference between the best and the worst output."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class RunScores:
    """Scores of one run."""

    run: FinishedRun
    """The run."""
    results: dict[str, Result]
    """Scores by name."""
    differences: dict[str, Difference]
    """Differences to the first run by the name of the score; empty for the first run."""
    by_length: list[Group]
    """BLEU by the number of source words."""
    by_position: list[Group]
    """Accuracy of predicted reference words by tenths of the target; empty if no reference has a
    word."""
    by_tag: list[Group]
    """BLEU and exact matches by phenomenon, if the data has tags."""
    verbs: Result | None
    """Misplaced verbs, if the data has the tag `verb_last`."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON."""
        metrics = self.run.metrics
        keys = ("command", "commit", "hardware", "regard", "torch", "seed", "parameters")
        return {
            "name": self.run.name,
            "folder": str(self.run.folder),
            "decoder": self.run.decoder,
            **{key: metrics[key] for key in keys},
            "training": metrics["training"],
            "scores": {name: result.to_dict() for name, result in self.results.items()},
            "differences": {name: value.to_dict() for name, value in self.differences.items()},
            "by_length": _to_dicts(self.by_length),
            "by_position": _to_dicts(self.by_position),
            "by_tag": _to_dicts(self.by_tag),
            "verbs": self.verbs.to_dict() if self.verbs else None,
        }


@dataclass(frozen=True)
class Comparison:
    """Several runs on one test set; the first is the baseline."""

    runs: list[RunScores]
    """Scores of each run."""
    disagreements: list[Disagreement]
    """Sentences with the largest differences between runs."""
    provenance: dict[str, Any]
    """Command, versions, commit and hardware of the comparison."""

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [scored.run.name for scored in self.runs]

    @property
    def num_examples(self) -> int:
        """Number of sentences in the test set."""
        return len(self.runs[0].run.examples)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON."""
        return {
            **self.provenance,
            "num_examples": self.num_examples,
            "runs": [scored.to_dict() for scored in self.runs],
            "disagreements": [
                {
                    "source": sentence.source,
                    "reference": sentence.reference,
                    "outputs": dict(zip(self.names, sentence.outputs, strict=True)),
                    "chrf": dict(zip(self.names, sentence.values, strict=True)),
                }
                for sentence in self.disagreements
            ],
        }


def compare(
    folders: Sequence[Path], *, device: str = "auto", num_samples: int = 1000
) -> Comparison:
    """Compare runs with the same test set.

    Args:
        folders: Run folders; the first is the baseline.
        device: Device of the models.
        num_samples: Number of bootstrap samples per confidence interval and p-value.
    """
    finished_runs = read_finished_runs(folders)
    outputs = [run.outputs for run in finished_runs]
    return Comparison(
        runs=[
            _score_run(run, finished_runs[0], device=device, num_samples=num_samples)
            for run in finished_runs
        ],
        disagreements=find_disagreements(finished_runs[0].examples, outputs),
        provenance=describe_provenance(find_device(device)),
    )


def find_disagreements(
    examples: Sequence[Example], outputs: Sequence[Sequence[str]], *, num: int = 10
) -> list[Disagreement]:
    """Return the sentences with the largest spread of chrF, in descending order.

    Args:
        examples: The test set.
        outputs: Outputs of each run.
        num: Maximum number of sentences.
    """
    disagreements = []
    for example, texts in zip(examples, zip(*outputs, strict=True), strict=True):
        if len(set(texts)) == 1:
            continue
        references = [[example.target, *example.references]]
        values = tuple(chrf([text], references).value for text in texts)
        disagreements.append(Disagreement(example.source, example.target, texts, values))
    return sorted(disagreements, key=lambda sentence: -sentence.spread)[:num]


def _score_run(run: FinishedRun, first: FinishedRun, *, device: str, num_samples: int) -> RunScores:
    logger.info("Evaluating %s.", run.name)
    outputs, references = run.outputs, run.references
    sources = [example.source for example in run.examples]
    tags = [example.tags for example in run.examples]
    differences = {}
    if run is not first:
        differences = {
            metric: paired_bootstrap(
                first.outputs, outputs, references, metric=metric, num_samples=num_samples
            )
            for metric in PAIRED
        }
    return RunScores(
        run=run,
        results={
            "bleu": bleu(outputs, references, num_bootstrap=num_samples),
            "chrf": chrf(outputs, references, num_bootstrap=num_samples),
            "accuracy": accuracy(outputs, references),
        },
        differences=differences,
        by_length=by_length(sources, outputs, references, edges=EDGES),
        by_position=_predicted_words(run, device),
        by_tag=by_tag(tags, outputs, references) if any(tags) else [],
        verbs=_verbs(run),
    )


def _predicted_words(run: FinishedRun, device: str) -> list[Group]:
    predicted = load_as(Predictor, run.folder, device).correct_words(run.examples)
    hits = [
        _without_punctuation(unicodedata.normalize("NFC", example.target), is_predicted)
        for example, is_predicted in zip(run.examples, predicted, strict=True)
    ]
    return by_position(hits) if any(hits) else []


def _without_punctuation(target: str, predicted: Sequence[bool]) -> list[bool]:
    """Drop punctuation: the full stop is easy to predict and would raise the last tenth."""
    return [
        is_predicted
        for word, is_predicted in zip(split_words(target), predicted, strict=False)
        if any(map(str.isalnum, word))
    ]


def _verbs(run: FinishedRun) -> Result | None:
    rows = [
        row
        for row, example in enumerate(run.examples)
        if VERB_LAST in example.tags and clause_verbs(example.target)
    ]
    if not rows:
        return None
    return misplaced_verbs(
        [run.outputs[row] for row in rows], [run.examples[row].target for row in rows]
    )


def _to_dicts(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "count": group.count,
            **({"position": group.position} if group.position is not None else {}),
            **{name: result.value for name, result in group.results.items()},
        }
        for group in groups
    ]
