"""Evaluation of text autoencoders: token accuracy, restored texts, and the ELBO."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result
from regard.metrics.text.bleu import bleu
from regard.models.bottlenecks import (
    VariationalBottleneck,
    divergence_from_prior,
    draw_code,
)
from regard.models.encoders.bottleneck import remember
from regard.tasks import latents
from regard.tasks.batches import map_batches
from regard.training.losses import log_probs_of

if TYPE_CHECKING:
    from regard.tasks.autoencoding.task import AutoencodingTask


def measure_tokens(
    task: "AutoencodingTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Result:
    """Measure the accuracy of the next token under teacher forcing, end tokens included."""

    @torch.inference_mode()
    def count(batch: Batch) -> list[tuple[float, int]]:
        target, mask = batch.target.to(task.device), batch.target_mask[:, 1:]
        output = task.model.decoder(target[:, :-1], task.encode_batch(batch))
        hits = (output.logits.argmax(-1) == target[:, 1:]).cpu() & mask
        return list(zip(hits.sum(1).float().tolist(), mask.sum(1).tolist(), strict=True))

    hits, lengths = zip(*map_batches(count, task.batches(examples)), strict=True)
    vocab_size = task.target.tokenizer.vocab_size
    return ratio(
        "token accuracy",
        hits,
        lengths,
        signature=f"tokens:{sum(lengths)}|vocab:{vocab_size}|ends:counted|teacher-forced",
        num_bootstrap=num_bootstrap,
    )


def measure_bound(
    task: "AutoencodingTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> dict[str, Result]:
    """Measure the evidence lower bound, its divergence, and the number of active units.

    The reconstruction is that of one sample per text, always the same one. The bound is that of
    the model itself: neither weight nor free bits change it.
    """
    encoder, seed = task.bottleneck_encoder, task.recipe.data.seed
    bottleneck = encoder.bottleneck
    assert isinstance(bottleneck, VariationalBottleneck)
    noise = torch.randn(
        len(examples), encoder.memory_dim, generator=torch.Generator().manual_seed(seed)
    )  # (B, D)

    @torch.inference_mode()
    def measure(batch: Batch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        wide = encoder.widen(task.inputs(batch), batch.source_mask)
        mean, log_variance = bottleneck.posterior(wide.summary)  # (B, D)
        sample = draw_code(mean, log_variance, noise[list(batch.rows)])
        target, mask = batch.target.to(task.device), batch.target_mask[:, 1:]
        output = task.model.decoder(target[:, :-1], remember(sample))
        log_probs = log_probs_of(output.logits, target[:, 1:]).cpu().where(mask, 0.0).sum(1)
        divergence = divergence_from_prior(mean, log_variance).sum(-1).cpu()
        return zip(log_probs, divergence, mean.cpu(), strict=True)

    num_tokens = sum(len(ids) - 1 for ids in task.target.read_all([e.target for e in examples]))
    results = latents.measure_bound(
        measure,
        task.batches(examples),
        how=f"nats a text|texts:{len(examples)}|vocab:{task.target.tokenizer.vocab_size}",
        seed=seed,
        per={"per_token": num_tokens},
        num_bootstrap=num_bootstrap,
    )
    results["elbo"].detail["tokens"] = float(num_tokens)
    return results


def measure_restoring(
    task: "AutoencodingTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> dict[str, Result]:
    """Measure the reconstruction of corrupted texts, always with the same noise."""
    config = task.search

    @torch.inference_mode()
    def restore(batch: Batch) -> list[tuple[str, str]]:
        lengths = task.max_lengths(batch.source_mask, config)
        found = task.generate(task.encode_batch(batch), config, max_lengths=lengths)
        return [
            (task.target.write(best[0].tokens), task.source.write(source))
            for best, source in zip(found, batch.source.tolist(), strict=True)
        ]

    restored, corrupted = zip(*map_batches(restore, task.corrupted_batches(examples)), strict=True)
    references = [[example.target] for example in examples]
    noise = task.recipe.data.noise
    how = f"drop:{noise.drop:g}|swap:{noise.swap:g}|mask:{noise.mask:g}"
    results = {}
    for key, name, texts in (
        ("restored_bleu", "BLEU of texts restored", restored),
        ("spoilt_bleu", "BLEU of the spoilt texts", corrupted),
    ):
        found = bleu(texts, references, num_bootstrap=num_bootstrap)
        results[key] = Result(name, found.value, f"{how}|{found.signature}", found.interval)
    return results
