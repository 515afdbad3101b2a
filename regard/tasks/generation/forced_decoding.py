"""Forced decoding: log-probabilities and predicted tokens of given targets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from regard.data.batch import Batch
from regard.data.example import Example
from regard.search.forced import stepwise_log_probs, target_log_probs
from regard.tasks.batches import map_batches
from regard.tasks.generation.ctc import build_scorer
from regard.tasks.prediction import Prediction

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def score(task: "Predictor", examples: Sequence[Example]) -> list[Prediction]:
    """Return the log-probability of each example's target, as a prediction of it.

    If the decoder is not trained, CTC scores the target.
    """

    def score_batch(batch: Batch) -> list[Prediction]:
        target = batch.target.to(task.device)
        with torch.inference_mode():
            if task.recipe.model.ctc_weight == 1:
                tokenizer, memory = task.target.tokenizer, task.encode_batch(batch)
                scorer = build_scorer(task.model, memory, tokenizer, weight=1.0)
                log_probs = stepwise_log_probs(scorer, target).cpu()
            else:
                inputs = task.inputs(batch)
                log_probs = target_log_probs(
                    task.model, inputs, batch.source_mask, targets=target
                ).cpu()
        scored = []
        for index, row in enumerate(batch.rows):
            length = int(batch.target_mask[index].sum()) - 1
            tokens = task.target.tokenizer.tokens(batch.target[index, 1 : length + 1].tolist())
            values = log_probs[index, :length].tolist()
            scored.append(Prediction.from_tokens(examples[row].target, tokens, values))
        return scored

    return map_batches(score_batch, task.batches(examples), description="Scoring")


def correct_words(task: "Predictor", examples: Sequence[Example]) -> list[tuple[bool, ...]]:
    """Return for each word of each example's target whether the model predicts it.

    A word is predicted if each of its tokens is the most probable one after the true tokens
    before it. A word with an unknown token is never predicted.
    """
    tokenizer = task.target.tokenizer

    def check_batch(batch: Batch) -> list[tuple[bool, ...]]:
        target = batch.target.to(task.device)
        labels = target[:, 1:]  # (B, T - 1)
        with torch.inference_mode():
            output = task.model(task.inputs(batch), batch.source_mask, target[:, :-1])
        hits = (output.logits.argmax(-1) == labels) & (labels != tokenizer.unk)
        correct = []
        for row, token_hits in zip(batch.rows, hits.tolist(), strict=True):
            words = tokenizer.word_index(examples[row].target)
            word_hits = [True] * (max(words, default=-1) + 1)
            # The end token and padding belong to no word.
            for word, is_hit in zip(words, token_hits, strict=False):
                word_hits[word] &= is_hit
            correct.append(tuple(word_hits))
        return correct

    return map_batches(check_batch, task.batches(examples), description="Scoring")
