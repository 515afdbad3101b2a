"""The number of tokens in a batch of a run with `data.batch.max_tokens=auto`."""

from dataclasses import replace
from typing import Any, TypeVar

from regard.core.logging import logger
from regard.data.batching import PairBatches
from regard.tasks.base import Task
from regard.tasks.recipe import BaseRecipe
from regard.training.batch_size import MIN_TOKENS, MemoryTrial, find_max_tokens, is_measurable
from regard.training.plan import Batches

AnyRecipe = TypeVar("AnyRecipe", bound=BaseRecipe)


def choose_max_tokens(task: Task[Any], batches: Batches) -> Batches:
    """Choose the largest batches that fit, and write their number of tokens into the recipe.

    Args:
        task: The task before training; only its recipe changes.
        batches: Its training batches.

    Returns:
        Batches of that size.
    """
    config = task.recipe.data.batch
    num, reason = config.token_budget, "memory is measured on CUDA GPUs only"
    if not isinstance(batches, PairBatches):
        logger.warning("`data.batch.max_tokens` has no effect on the batches of this training")
    else:
        if is_measurable(task.device):
            trial = MemoryTrial(task.model, task.loss, config=task.recipe.train)
            num = find_max_tokens(batches, trial.fits, at_least=max(MIN_TOKENS, config.max_length))
            reason = "found by trial steps"
        logger.info("Batches: at most %s tokens (`max_tokens` is 'auto': %s).", f"{num:,}", reason)
        batches = batches.with_max_tokens(num)
    task.recipe = with_max_tokens(task.recipe, num)
    return batches


def with_max_tokens(recipe: AnyRecipe, num: Any) -> AnyRecipe:
    """Return a recipe with another maximum number of tokens in a batch."""
    batch = replace(recipe.data.batch, max_tokens=num)
    return replace(recipe, data=replace(recipe.data, batch=batch))
