"""How good a run is: every score with its signature, by length and by phenomenon."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.text.field import Text, TextField, texts_of
from regard.metrics.grouping import Group, by_length, by_tag
from regard.metrics.result import Result
from regard.metrics.table import METRICS
from regard.metrics.text.alignment import alignment_error_rate, links_from_weights, merge_to_words
from regard.metrics.text.edits import Edit, by_unit, edits
from regard.metrics.text.perplexity import perplexity
from regard.metrics.text.units import Unit
from regard.search.settings import SearchConfig
from regard.tasks.generation import forced as forcing
from regard.tasks.generation.pointing import measure_pointing
from regard.tasks.metrics import PERPLEXITY, measure, num_candidates

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor

UNITS: dict[str, Unit] = {"per": "word", "wer": "word", "cer": "character"}
"""What answers are made of, where a metric says so: phones and words stand between blanks."""

CHARACTER_EDGES = (4, 6, 8, 10, 12, 16, 20)
"""The most characters of each group of words."""

MOST_EDITS = 50
"""Kinds of errors that are written down."""


@dataclass(frozen=True)
class Evaluation:
    """What was measured on a test set."""

    results: dict[str, Result]
    """Each score by its name."""
    by_length: list[Group] = field(default_factory=list)
    """The first score by the length of the source, in words or, where it is a word, characters."""
    by_tag: list[Group] = field(default_factory=list)
    """The first score and exact matches by phenomenon, where the data carries tags."""
    by_unit: list[Group] = field(default_factory=list)
    """For exact answers: how often each phone, letter or word of the right ones is missed."""
    edits: list[Edit] = field(default_factory=list)
    """For exact answers: what was written in place of what, the most frequent first."""
    sources: list[str] = field(default_factory=list)
    """What was given."""
    outputs: list[str] = field(default_factory=list)
    """What was answered."""
    references: list[str] = field(default_factory=list)
    """What was right."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    """For labels: right label → predicted label → how often."""
    num_tokens: int = 0
    """Target tokens written."""
    seconds: float = 0.0
    """Time that answering took."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without the sentences."""
        return {
            "scores": {name: result.to_dict() for name, result in self.results.items()},
            "by_length": [_group(group) for group in self.by_length],
            "by_tag": [_group(group) for group in self.by_tag],
            **({"by_unit": [_group(group) for group in self.by_unit]} if self.by_unit else {}),
            **({"edits": [vars(edit) for edit in self.edits[:MOST_EDITS]]} if self.edits else {}),
            **({"confusion": self.confusion} if self.confusion else {}),
            "num_examples": len(self.outputs),
            "seconds": round(self.seconds, 3),
            "tokens_per_second": round(self.num_tokens / self.seconds, 1) if self.seconds else 0.0,
        }


def evaluate(
    predictor: "Predictor",
    examples: Sequence[Example],
    *,
    search: SearchConfig | None = None,
    num_bootstrap: int = 0,
) -> Evaluation:
    """Translate a test set and measure the answers.

    Args:
        predictor: What answers.
        examples: What is asked, with the right answers.
        search: How to search; the recipe's way if not given.
        num_bootstrap: Samples behind each confidence interval; 0 = none.
    """
    if not examples:
        raise DataError("There is nothing to evaluate: the test set has no example.")
    predictor.target.warn_of_unknown([example.target for example in examples], "targets")
    names = predictor.recipe.metrics
    # There are no more candidates than beams; the name of the score tells how many there were.
    num_best = min(num_candidates(names), (search or predictor.recipe.search).beams)
    started = time.perf_counter()
    found = predictor.predict([e.source for e in examples], search=search, num_best=num_best)
    seconds = time.perf_counter() - started
    candidates = [[prediction.text for prediction in best] for best in found]
    outputs = [texts[0] for texts in candidates]
    references = [[example.target, *example.references] for example in examples]
    sources = [as_text(example.source) for example in examples]
    of_answers = [name for name in names if name != PERPLEXITY]
    results = measure(of_answers, candidates, references, num_bootstrap=num_bootstrap)
    if PERPLEXITY in names:
        results[PERPLEXITY] = measure_perplexity(predictor, examples, num_bootstrap=num_bootstrap)
    results = {name: results[name] for name in names}
    error_rate = measure_alignment(predictor, examples)
    if error_rate is not None:
        results["aer"] = error_rate
    pointing = measure_pointing(predictor, examples, num_bootstrap=num_bootstrap)
    if pointing is not None:
        results["pointing"] = pointing
    first = next((name for name in names if name in METRICS), "accuracy")
    has_text = predictor.source.modality == "text"
    unit = next((UNITS[name] for name in names if name in UNITS), None)
    tags = [example.tags for example in examples]
    return Evaluation(
        results=results,
        # Where a source is an image, it has no length.
        by_length=_by_length(sources, outputs, references, metric=first) if has_text else [],
        by_tag=_by_tag(tags, outputs, references, metric=first) if any(tags) else [],
        by_unit=by_unit(outputs, references, unit=unit) if unit else [],
        edits=edits(outputs, references, unit=unit) if unit else [],
        sources=sources,
        outputs=outputs,
        references=[example.target for example in examples],
        num_tokens=sum(len(best[0].tokens) for best in found),
        seconds=seconds,
    )


def as_text(source: Text) -> str:
    """Return a source as one line: several texts stand side by side, a tab between them."""
    return "\t".join(texts_of(source))


def _by_length(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metric: str,
) -> list[Group]:
    measures = {metric: METRICS[metric]}
    if 2 * sum(len(source.split()) == 1 for source in sources) <= len(sources):
        return by_length(sources, outputs, references, measures=measures)
    return by_length(
        sources, outputs, references, measures=measures, unit="character", edges=CHARACTER_EDGES
    )


def _by_tag(
    tags: Sequence[Sequence[str]],
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metric: str,
) -> list[Group]:
    measures = {name: METRICS[name] for name in dict.fromkeys((metric, "accuracy"))}
    return by_tag(tags, outputs, references, measures=measures)


def measure_perplexity(
    predictor: "Predictor", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Result:
    """Measure how surprised the model is by each token of the right targets, ends included.

    Of several right answers only the first counts. Models can be compared by it where they cut
    targets into the same tokens.

    Args:
        predictor: What foretells the tokens, given the right ones before them.
        examples: Sources with their targets.
        num_bootstrap: Samples behind the confidence interval; 0 = none.
    """
    forced = forcing.score(predictor, examples)
    tokenizer = predictor.target.tokenizer
    unknown = tokenizer.token(tokenizer.unk)
    num_unknown = sum(target.tokens.count(unknown) for target in forced)
    context = f"vocab:{tokenizer.vocab_size}|ends:counted|targets:first|teacher-forced"
    return perplexity(
        [-target.log_prob for target in forced],
        [len(target.tokens) for target in forced],
        context=f"{context}|unknown:{num_unknown}" if num_unknown else context,
        num_bootstrap=num_bootstrap,
    )


def measure_alignment(predictor: "Predictor", examples: Sequence[Example]) -> Result | None:
    """Measure the attention against gold alignments, where there are both.

    Each word of the right target is linked to the source word that the model looks at most
    while it writes it; where the source is several texts, to the text.
    """
    aligned = [example for example in examples if example.alignment is not None]
    if not aligned or not isinstance(predictor.source, TextField):
        return None
    maps = predictor.attend(aligned)
    if not maps[0].weights.shape[0]:
        return None
    predicted = []
    for example, found in zip(aligned, maps, strict=True):
        source_words = _source_index(predictor, example.source, num_columns=len(found.source))
        target_words = predictor.target.tokenizer.word_index(example.target)
        # The end tokens on both sides belong to no word.
        weights = found.mean()[: len(target_words), : len(source_words)]
        words = merge_to_words(weights.numpy(), target_words, source_words)
        predicted.append(links_from_weights(words))
    return alignment_error_rate(predicted, [set(example.alignment or ()) for example in aligned])


def _source_index(predictor: "Predictor", source: Text, *, num_columns: int) -> list[int]:
    """Return for each column of a map the word it belongs to or, among several texts, the text."""
    field = predictor.source
    assert isinstance(field, TextField)
    if isinstance(source, str):
        return field.tokenizer.word_index(source)
    if len(source) == num_columns:
        return list(range(num_columns))  # the encoder has made one position of each
    pieces = field.tokenizer.encode_batch(source)
    return [text for text, ids in enumerate(pieces) for _ in (*ids, "its end")]


def _group(group: Group) -> dict[str, Any]:
    values = {name: round(result.value, 4) for name, result in group.results.items()}
    return {"name": group.name, "count": group.count, **values}
