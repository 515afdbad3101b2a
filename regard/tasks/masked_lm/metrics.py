"""How well a masked language model tells what is hidden from it."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.text.masked_batches import MaskedBatch
from regard.metrics.result import Result
from regard.tasks.generation.evaluation import Evaluation

if TYPE_CHECKING:
    from regard.tasks.masked_lm.task import MaskedTask


def evaluate_masked(
    task: "MaskedTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Evaluation:
    """Hide tokens of texts, always the same ones, and measure how well they are told.

    Args:
        task: What answers.
        examples: Lines of text.
        num_bootstrap: Samples behind each confidence interval; 0 = none.
    """
    if not any(example.source.strip() for example in examples):
        raise DataError("There is nothing to evaluate: the test set has no text.")
    started = time.perf_counter()
    parts: list[Tensor] = []
    samples: list[tuple[str, str, str]] = []
    for batch in task.held_out_batches(examples):
        found, guesses = _tell(task, batch)
        parts.append(found)
        samples += _read_back(task, batch, guesses)
    sums = torch.cat(parts).double()  # (B, C)
    sources, outputs, references = map(list, zip(*samples, strict=True))
    return Evaluation(
        results={
            **_measure(sums, task, num_bootstrap=num_bootstrap),
            **_measure_pairs(sums, task),
        },
        sources=sources,
        outputs=outputs,
        references=references,
        num_tokens=int(sums[:, 2].sum()),
        seconds=time.perf_counter() - started,
    )


def _tell(task: "MaskedTask", batch: MaskedBatch) -> tuple[Tensor, Tensor]:
    """Return what is summed up over texts, and the likeliest tokens.

    Summed up are hits, loss and number of hidden tokens, and whether its pair was judged rightly.
    """
    on_device = batch.to(task.device)
    with torch.inference_mode():
        states = task.model.encode(on_device.values, batch.mask).states
        log_probs = task.model.tell(states, on_device.hidden).log_softmax(-1)
        judged = torch.zeros(len(batch.rows))
        if task.model.next_sentence is not None and batch.belongs is not None:
            judged = task.model.next_sentence(states).argmax(-1).cpu() == batch.belongs
    guesses = log_probs.argmax(-1).cpu()
    losses = -log_probs.gather(1, on_device.labels[:, None])[:, 0].cpu()
    rows = batch.hidden // batch.values.shape[1]
    columns = torch.stack([(guesses == batch.labels).float(), losses, torch.ones_like(losses)], 1)
    sums = torch.zeros(len(batch.rows), 3).index_add(0, rows, columns)
    return torch.cat([sums, judged.float()[:, None]], 1), guesses


def _read_back(
    task: "MaskedTask", batch: MaskedBatch, guesses: Tensor
) -> list[tuple[str, str, str]]:
    """Write each text with its gaps, as it was filled, and as it was."""
    masked, filled, whole = (batch.values.flatten().clone() for _ in range(3))
    masked[batch.hidden] = task.tokenizer.mask
    filled[batch.hidden] = guesses
    whole[batch.hidden] = batch.labels
    texts = []
    for values in (masked, filled, whole):
        lines = values.view(batch.values.shape).tolist()
        texts.append([task.tokenizer.decode(line) for line in lines])
    return list(zip(*texts, strict=True))


def _measure(sums: Tensor, task: "MaskedTask", *, num_bootstrap: int) -> dict[str, Result]:
    config = task.recipe.data
    how = (
        f"hidden:{config.masking.kind},{config.masking.share:g}|shown:as trained|"
        f"packing:{config.packing},{config.batch.max_length}|seed:{config.seed}|"
        f"vocab:{task.tokenizer.vocab_size}"
    )

    def accuracy(parts: Tensor) -> Tensor:
        return 100 * parts[..., 0] / parts[..., 2]

    def perplexity(parts: Tensor) -> Tensor:
        return (parts[..., 1] / parts[..., 2]).exp()

    whole = sums.sum(0)
    intervals: dict[str, tuple[float, float] | None] = {"accuracy": None, "perplexity": None}
    # Of a single text there is nothing to draw.
    if num_bootstrap and len(sums) > 1:
        generator = torch.Generator().manual_seed(0)
        again = torch.randint(len(sums), (num_bootstrap, len(sums)), generator=generator)
        drawn = torch.stack([sums[rows].sum(0) for rows in again])
        intervals = {"accuracy": _spread(accuracy(drawn)), "perplexity": _spread(perplexity(drawn))}
        how += f"|bs:{num_bootstrap}"
    detail = {"tokens": float(whole[2]), "loss": float(whole[1] / whole[2])}
    return {
        "accuracy": Result(
            "masked accuracy",
            float(accuracy(whole)),
            how,
            interval=intervals["accuracy"],
            detail={**detail, "right": float(whole[0])},
        ),
        "perplexity": Result(
            "masked perplexity",
            min(float(perplexity(whole)), math.inf),
            how,
            interval=intervals["perplexity"],
            detail=detail,
        ),
    }


def _measure_pairs(sums: Tensor, task: "MaskedTask") -> dict[str, Result]:
    if task.model.next_sentence is None:
        return {}
    how = f"packing:{task.recipe.data.packing}|seed:{task.recipe.data.seed}|chance:50"
    return {"pairs": Result("pair accuracy", 100 * float(sums[:, 3].mean()), how)}


def _spread(values: Tensor) -> tuple[float, float]:
    low, high = values.quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return low, high
