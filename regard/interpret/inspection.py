"""A prediction with what a page shows of it: tokens, alternatives and attention weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.text.tokenizers import Tokenizer
from regard.interpret.passes import forced_batch
from regard.search.settings import SearchConfig
from regard.tasks.base import Attends, Generates, GeneratesImages, Task
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.decoding.alternatives import HasScorers, add_alternatives
from regard.tasks.denoising import DenoisingTask
from regard.tasks.generation.attention import attend_batches
from regard.tasks.generation.finding import predict_packed
from regard.tasks.generation.task import Predictor
from regard.tasks.language_modeling import LanguageModelingTask
from regard.tasks.prediction import AttentionMap, Prediction

NUM_LABELS = 5
"""Number of labels of a classifier that are shown."""


@dataclass(frozen=True)
class Inspection:
    """Predictions for one source, and the attention weights of the best one."""

    predictions: list[Prediction]
    """The predictions, the best one first; several labels of a classifier."""
    attention: AttentionMap | None
    """Attention weights, without layers if the model has no attention; None for tasks without."""


def inspect_source(
    task: Task[Any],
    source: Any,
    *,
    search: SearchConfig | None = None,
    tokens: Sequence[str] = (),
    num_alternatives: int = 5,
) -> Inspection:
    """Predict for one source, with alternatives at each position and attention weights.

    Args:
        task: The run.
        source: The raw source.
        search: The search settings; those of the recipe if not given.
        tokens: First tokens of the prediction in their printable form, such as the beginning of an
            earlier prediction and one of its alternatives; the search continues after them.
        num_alternatives: Number of most likely tokens at each position.
    """
    config = (search or task.search) if isinstance(task, Generates) else None
    if tokens:
        predictions = _continue(task, source, config, tokens=tokens)
    elif isinstance(task, Generates):
        (predictions,) = task.predict([source], search=config)
    else:
        num = min(NUM_LABELS, len(task.label_names) or 1)
        (predictions,) = task.predict([source], num_best=num)
    if config is not None and isinstance(task, HasScorers) and predictions[0].token_ids:
        (predictions,) = add_alternatives(
            task, [source], [predictions], num=num_alternatives, search=config
        )
    return Inspection(predictions, _attend(task, source, predictions[0]))


def _continue(
    task: Task[Any], source: Any, config: SearchConfig | None, *, tokens: Sequence[str]
) -> list[Prediction]:
    """Return the prediction that begins with given tokens."""
    # The target of a denoiser is a part of its prediction.
    if config is None or not isinstance(task, Predictor) or isinstance(task, DenoisingTask):
        raise ConfigError(
            "`tokens` are for encoder–decoders whose prediction is the target, but the task of "
            f"this run is '{task.recipe.task}'. Leave them out."
        )
    prefix = find_tokens(task.output_tokenizer, tokens)
    (predictions,) = predict_packed(task, [task.parse_source(source)], config, prefix=prefix)
    return predictions


def attend_to_tokens(task: Predictor, source: Any, ids: Sequence[int]) -> AttentionMap:
    """Return the attention weights of the given tokens of a target, perhaps not its last ones."""
    (found,) = attend_batches(task, [forced_batch(task, source, ids)])
    return found


def find_tokens(tokenizer: Tokenizer, tokens: Sequence[str]) -> list[int]:
    """Return the ids of tokens by their printable form."""
    if not tokens:
        return []
    ids = {tokenizer.token(index): index for index in reversed(range(tokenizer.vocab_size))}
    unknown = next((token for token in tokens if token not in ids), None)
    if unknown is not None:
        raise ConfigError(
            f"A token must be in the vocabulary of the target, but '{unknown}' is not. "
            "Take one of the alternatives, or force a word."
        )
    found = [ids[token] for token in tokens]
    if tokenizer.eos in found:
        raise ConfigError(
            "`tokens` must not contain the end token, since nothing follows it. Leave it out."
        )
    return found


def _attend(task: Task[Any], source: Any, best: Prediction) -> AttentionMap | None:
    if not isinstance(task, Attends) or isinstance(task, GeneratesImages):
        return None
    if isinstance(task, Predictor) and not isinstance(task, DenoisingTask):
        return attend_to_tokens(task, source, best.token_ids) if best.token_ids else None
    if isinstance(task, LanguageModelingTask):
        example = Example(best.text)
    else:
        # A label is given, so that it is not predicted again; other tasks take no target.
        target = best.text if isinstance(task, ClassificationTask) else None
        example, _ = task.example_to_show(source, target)
    (found,) = task.attend([example])
    return found
