"""How good the codes of texts are: tokens told by them, spoilt texts restored, and the ELBO."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

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
from regard.search.settings import SearchConfig
from regard.tasks.latents import tell_bound
from regard.training.losses import log_probs_of

if TYPE_CHECKING:
    from regard.tasks.autoencoding.task import AutoencodingTask


def measure_tokens(
    task: "AutoencodingTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Result:
    """Measure how many tokens are the likeliest after the right ones before them, ends included."""
    right = [0.0] * len(examples)
    lengths = [0] * len(examples)
    for batch in task.batches(examples):
        target = batch.target.to(task.device)
        with torch.inference_mode():
            output = task.model.decoder(target[:, :-1], task.read_memory(batch))
        hits = (output.logits.argmax(-1) == target[:, 1:]).cpu() & batch.target_mask[:, 1:]
        for place, row in enumerate(batch.rows):
            right[row] = float(hits[place].sum())
            lengths[row] = int(batch.target_mask[place, 1:].sum())
    vocab_size = task.target.tokenizer.vocab_size
    return ratio(
        "token accuracy",
        right,
        lengths,
        signature=f"tokens:{sum(lengths)}|vocab:{vocab_size}|ends:counted|teacher-forced",
        num_bootstrap=num_bootstrap,
    )


def measure_bound(
    task: "AutoencodingTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> dict[str, Result]:
    """Measure the evidence lower bound, its divergence, and how many numbers of a code are in use.

    The reconstruction is that of one code drawn for each text, always the same one. The bound is of
    the model itself: neither weight nor free bits change it.
    """
    encoder, seed = task.narrow, task.recipe.data.seed
    assert isinstance(encoder.bottleneck, VariationalBottleneck)
    noise = torch.randn(
        len(examples), encoder.memory_dim, generator=torch.Generator().manual_seed(seed)
    )  # (B, D)
    told, divergence = torch.zeros(2, len(examples))
    means = torch.zeros_like(noise)
    num_tokens = 0
    for batch in task.batches(examples):
        rows = torch.tensor(batch.rows)
        with torch.inference_mode():
            wide = encoder.widen(task.inputs(batch), batch.source_mask)
            mean, log_variance = encoder.bottleneck.posterior(wide.summary)  # (B, D)
            code = draw_code(mean, log_variance, noise[rows])
            log_probs = _force(task, code, batch.target.to(task.device))
        mask = batch.target_mask[:, 1:]
        told[rows] = log_probs.cpu().where(mask, 0.0).sum(1)
        divergence[rows] = divergence_from_prior(mean, log_variance).sum(-1).cpu()
        means[rows] = mean.cpu()
        num_tokens += int(mask.sum())
    return tell_bound(
        told,
        divergence,
        means,
        how=f"nats a text|texts:{len(examples)}|vocab:{task.target.tokenizer.vocab_size}",
        seed=seed,
        num_bootstrap=num_bootstrap,
        detail={
            "per_token": float((told - divergence).sum()) / num_tokens,
            "tokens": float(num_tokens),
        },
    )


def _force(task: "AutoencodingTask", code: Tensor, target: Tensor) -> Tensor:
    """Return the log-probability of each right token of targets (B, T), given codes: (B, T - 1)."""
    output = task.model.decoder(target[:, :-1], remember(code))
    return log_probs_of(output.logits, target[:, 1:])


def measure_restoring(
    task: "AutoencodingTask",
    examples: Sequence[Example],
    *,
    search: SearchConfig,
    num_bootstrap: int = 0,
) -> dict[str, Result]:
    """Measure how well texts are written that were spoilt, always in the same way."""
    spoilt = [""] * len(examples)
    answers = [""] * len(examples)
    for batch in task.spoilt_batches(examples):
        with torch.inference_mode():
            found = task.find(
                task.read_memory(batch),
                search,
                max_lengths=task.max_lengths(batch.source_mask, search),
            )
        for place, row in enumerate(batch.rows):
            spoilt[row] = task.source.write(batch.source[place].tolist())
            answers[row] = task.target.write(found[place][0].tokens)
    references = [[example.target] for example in examples]
    noise = task.recipe.data.noise
    how = f"drop:{noise.drop:g}|swap:{noise.swap:g}|mask:{noise.mask:g}"
    results = {}
    for key, name, texts in (
        ("restored_bleu", "BLEU of texts restored", answers),
        ("spoilt_bleu", "BLEU of the spoilt texts", spoilt),
    ):
        found_score = bleu(texts, references, num_bootstrap=num_bootstrap)
        results[key] = Result(
            name, found_score.value, f"{how}|{found_score.signature}", found_score.interval
        )
    return results
