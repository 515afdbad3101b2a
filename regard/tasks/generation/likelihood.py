"""Likelihood loss of an encoder–decoder, with all auxiliary terms."""

from dataclasses import replace
from typing import TYPE_CHECKING

from regard.data.batch import Batch
from regard.tasks.generation import ctc
from regard.tasks.generation.guided_alignment import guided_term, record_guided
from regard.training.losses import Loss, cross_entropy, log_probs_of, sum_term

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def likelihood_loss(task: "Predictor", batch: Batch) -> Loss:
    """Compute the cross entropy of the next token, plus the auxiliary losses of the model."""
    batch = batch.to(task.device)
    forcing = task.recipe.train.teacher_forcing if task.model.training else 1.0
    with task.autocast(), record_guided(task, batch.links) as recorded:
        output = task.model(
            task.inputs(batch),
            batch.source_mask,
            task.decoder_inputs(batch.target[:, :-1]),
            teacher_forcing=forcing,
        )
    labels, mask = batch.target[:, 1:], batch.target_mask[:, 1:]
    loss = cross_entropy(output.logits, labels, mask, smoothing=task.smoothing)
    terms = list(output.losses.values())
    if output.reinforce is not None:
        log_probs = log_probs_of(output.logits.detach(), labels)
        terms.append(output.reinforce(log_probs, labels, mask))
    if recorded is not None and batch.links is not None:
        terms.append(guided_term(task, recorded, batch.links))
    for term in terms:
        loss = replace(loss, total=loss.total + sum_term(term, mask))
    return ctc.add_ctc_loss(loss, output, batch, weight=task.recipe.model.ctc_weight)
