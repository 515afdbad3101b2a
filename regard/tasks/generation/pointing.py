"""Whether a captioner's words look at what they name, where that is known: in drawn scenes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.data.datasets.synthetic.scenes import find_scene, word_regions
from regard.data.datasets.synthetic.scenes.captions import caption
from regard.data.datasets.synthetic.scenes.rendering import SIZE
from regard.data.example import Example
from regard.data.image.builtin import split_reference
from regard.metrics.result import Result
from regard.metrics.text.alignment import merge_to_words
from regard.metrics.vision.pointing import Region, pointing_accuracy

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def measure_pointing(
    predictor: "Predictor", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Result | None:
    """Measure whether words look at what they name, where examples are scenes with their captions.

    Each word of the right caption points at the cell that the model looks at most while it writes
    it. Elsewhere, and without attention over a grid, there is nothing to measure.

    Args:
        predictor: What writes captions.
        examples: Images with their captions.
        num_bootstrap: Samples behind the confidence interval; 0 = none.
    """
    known = [(example, regions) for example in examples if (regions := _regions(example))]
    if not known:
        return None
    maps = predictor.attend([example for example, _ in known])
    weights = []
    for (example, _), found in zip(known, maps, strict=True):
        if found.grid is None or not found.weights.shape[0]:
            return None
        rows, columns = found.grid
        words = predictor.target.tokenizer.word_index(example.target)
        # The end token belongs to no word; the cells come last, where there is text before them.
        looks = found.mean()[: len(words), -rows * columns :].numpy()
        by_word = merge_to_words(looks, words, range(rows * columns))
        weights.append([look.reshape(rows, columns) for look in by_word])
    return pointing_accuracy(
        weights, [regions for _, regions in known], num_bootstrap=num_bootstrap
    )


def _regions(example: Example) -> list[Region | None]:
    """Return what each word of an example's target names; nothing where that is not known."""
    source = example.source
    numbered = split_reference(source) if isinstance(source, str) else None
    if numbered is None or numbered[0] != "scenes" or caption(find_scene(source)) != example.target:
        return []
    return word_regions(source, size=SIZE)
