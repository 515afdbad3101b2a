"""Evaluation of generated targets by metric, source length and tag; alignment and pointing."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from regard.data.datasets.synthetic.scenes import find_scene, word_regions
from regard.data.datasets.synthetic.scenes.captions import caption
from regard.data.datasets.synthetic.scenes.rendering import SIZE
from regard.data.example import Example
from regard.data.image.builtin import split_reference
from regard.data.text.field import Text, as_text
from regard.metrics.grouping import by_length, by_tag
from regard.metrics.result import Group, Metric, References, Result, Texts
from regard.metrics.table import METRICS
from regard.metrics.text.alignment import alignment_error_rate, links_from_weights, merge_to_words
from regard.metrics.text.error_rates import Unit, by_unit, edits
from regard.metrics.text.perplexity import perplexity
from regard.metrics.vision.regions import Region, pointing_accuracy
from regard.search.settings import SearchConfig
from regard.tasks.evaluation import Evaluation, check_examples
from regard.tasks.generation import forced_decoding
from regard.tasks.metrics import PERPLEXITY, measure, num_candidates

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor

UNITS: dict[str, Unit] = {"per": "word", "wer": "word", "cer": "character"}
"""Units of error rates, by metric; phones and words are separated by whitespace."""

CAPTIONED = ("scenes", "pairs")
"""Kinds of rendered images whose captions name objects with known positions."""

CHARACTER_EDGES = (4, 6, 8, 10, 12, 16, 20)
"""Upper limits, in characters, of the length groups if sources are single words."""


def evaluate(
    predictor: "Predictor",
    examples: Sequence[Example],
    *,
    search: SearchConfig | None = None,
    num_bootstrap: int = 0,
) -> Evaluation:
    """Generate the targets of a test set and measure them.

    Args:
        predictor: The task.
        examples: Sources with their targets.
        search: The search settings; those of the recipe if not given.
        num_bootstrap: Bootstrap samples of each confidence interval; 0 = no intervals.
    """
    check_examples(examples)
    predictor.target.warn_of_unknown([example.target for example in examples], "targets")
    names = predictor.recipe.metrics
    # There are no more candidates than beams; the name of the metric has their actual number.
    num_best = min(num_candidates(names), (search or predictor.recipe.search).beams)
    started = time.perf_counter()
    predictions = predictor.predict([e.source for e in examples], search=search, num_best=num_best)
    seconds = time.perf_counter() - started
    candidates = [[prediction.text for prediction in best] for best in predictions]
    outputs = [texts[0] for texts in candidates]
    references = [[example.target, *example.references] for example in examples]
    sources = [as_text(example.source) for example in examples]
    text_metrics = [name for name in names if name != PERPLEXITY]
    results = measure(text_metrics, candidates, references, num_bootstrap=num_bootstrap)
    if PERPLEXITY in names:
        results[PERPLEXITY] = measure_perplexity(predictor, examples, num_bootstrap=num_bootstrap)
    results = {name: results[name] for name in names}
    optional = {
        "aer": measure_alignment(predictor, examples),
        "pointing": measure_pointing(predictor, examples, num_bootstrap=num_bootstrap),
    }
    results |= {name: result for name, result in optional.items() if result is not None}
    first = next((name for name in names if name in METRICS), "accuracy")
    unit = next((UNITS[name] for name in names if name in UNITS), None)
    main, exact = {first: METRICS[first]}, {"accuracy": METRICS["accuracy"]}
    has_length = predictor.reads_text  # an image has no length
    tags = [example.tags for example in examples]
    return Evaluation(
        results=results,
        by_length=_by_length(sources, outputs, references, metrics=main) if has_length else [],
        by_tag=by_tag(tags, outputs, references, metrics=main | exact) if any(tags) else [],
        by_unit=by_unit(outputs, references, unit=unit) if unit else [],
        edits=edits(outputs, references, unit=unit) if unit else [],
        sources=sources,
        outputs=outputs,
        references=[example.target for example in examples],
        num_tokens=sum(len(best[0].tokens) for best in predictions),
        seconds=seconds,
    )


def _by_length(
    sources: Texts, outputs: Texts, references: References, *, metrics: Mapping[str, Metric]
) -> list[Group]:
    if 2 * sum(len(source.split()) == 1 for source in sources) <= len(sources):
        return by_length(sources, outputs, references, metrics=metrics)
    return by_length(
        sources, outputs, references, metrics=metrics, unit="character", edges=CHARACTER_EDGES
    )


def measure_perplexity(
    predictor: "Predictor", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Result:
    """Measure the perplexity of the targets, end tokens included, by forced decoding.

    Only the first reference counts. Perplexities are comparable only between models with the same
    target vocabulary.

    Args:
        predictor: The task.
        examples: Sources with their targets.
        num_bootstrap: Bootstrap samples of the confidence interval; 0 = no interval.
    """
    forced = forced_decoding.score(predictor, examples)
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
    """Return the alignment error rate of the attention weights; None without gold alignments.

    Each target word is linked to the source word with the largest weight or, if the source is
    several texts, to the text. None without attention.
    """
    aligned = [example for example in examples if example.alignment is not None]
    if not aligned or not predictor.reads_text:
        return None
    maps = predictor.attend(aligned)
    if not maps[0].weights.shape[0]:
        return None
    predicted = []
    for example, attention in zip(aligned, maps, strict=True):
        source_words = _source_index(predictor, example.source, num_columns=len(attention.source))
        target_words = predictor.target.tokenizer.word_index(example.target)
        # The end tokens on both sides belong to no word.
        weights = attention.mean()[: len(target_words), : len(source_words)]
        words = merge_to_words(weights.numpy(), target_words, source_words)
        predicted.append(links_from_weights(words))
    return alignment_error_rate(predicted, [set(example.alignment or ()) for example in aligned])


def _source_index(predictor: "Predictor", source: Text, *, num_columns: int) -> list[int]:
    """Return the index of the source word, or of the text among several, of each map column."""
    field = predictor.source.text
    assert field is not None
    if isinstance(source, str):
        return field.tokenizer.word_index(source)
    if len(source) == num_columns:
        return list(range(num_columns))  # one memory position per text
    # Each text is followed by its end token.
    lengths = [len(ids) + 1 for ids in field.tokenizer.encode_batch(source)]
    return [text for text, length in enumerate(lengths) for _ in range(length)]


def measure_pointing(
    predictor: "Predictor", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Result | None:
    """Measure how often the attention of words falls on the objects that they name.

    Each word points at the cell with the largest weight. The positions of objects are known for
    rendered scenes only. None without such examples or without attention over a grid.

    Args:
        predictor: The task.
        examples: Images with their captions.
        num_bootstrap: Bootstrap samples of the confidence interval; 0 = no interval.
    """
    known = [(example, regions) for example in examples if (regions := _regions(example))]
    if not known:
        return None
    maps = predictor.attend([example for example, _ in known])
    weights = []
    for (example, _), attention in zip(known, maps, strict=True):
        if attention.grid is None or not attention.weights.shape[0]:
            return None
        rows, columns = attention.grid
        words = predictor.target.tokenizer.word_index(example.target)
        # The end token belongs to no word; the cells come after the text, if there is one.
        cells = attention.mean()[: len(words), -rows * columns :].numpy()
        by_word = merge_to_words(cells, words, range(rows * columns))
        weights.append([word.reshape(rows, columns) for word in by_word])
    return pointing_accuracy(
        weights, [regions for _, regions in known], num_bootstrap=num_bootstrap
    )


def _regions(example: Example) -> list[Region | None]:
    """Return the region that each word of an example's target names; empty if unknown."""
    source = example.source
    numbered = split_reference(source) if isinstance(source, str) else None
    if numbered is None or numbered[0] not in CAPTIONED:
        return []
    if caption(find_scene(source)) != example.target:
        return []
    return word_regions(source, size=SIZE)
