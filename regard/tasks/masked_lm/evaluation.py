"""Evaluation of masked language models: accuracy and perplexity of masked tokens."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.example import Example
from regard.data.text.masked_batches import MaskedBatch
from regard.metrics.result import Result
from regard.tasks.evaluation import Evaluation, check_texts, evaluate_tokens

if TYPE_CHECKING:
    from regard.tasks.masked_lm.task import MaskedLmTask

Texts = list[tuple[str, str, str]]
"""Each text with its gaps, with the predicted tokens, and with the true ones."""


def evaluate_masked(
    task: "MaskedLmTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> Evaluation:
    """Mask tokens of texts, always the same ones, and measure the predictions.

    Args:
        task: The task.
        examples: Lines of text.
        num_bootstrap: Bootstrap samples of each confidence interval; 0 = no intervals.
    """
    check_texts(examples)
    return evaluate_tokens(
        (_predict_masked(task, batch) for batch in task.held_out_batches(examples)),
        lambda sums: {
            **_measure(sums, task, num_bootstrap=num_bootstrap),
            **_measure_pairs(sums, task),
        },
    )


def _predict_masked(task: "MaskedLmTask", batch: MaskedBatch) -> tuple[Tensor, Texts]:
    """Return sums for each text, and the texts.

    The sums are hits, loss and number of masked tokens, and whether its pair is predicted right.
    """
    on_device = batch.to(task.device)
    with torch.inference_mode():
        states = task.model.encode(on_device.values, batch.mask).states
        log_probs = task.model.tell(states, on_device.hidden).log_softmax(-1)
        is_right = torch.zeros(len(batch.rows))
        if task.model.next_sentence is not None and batch.belongs is not None:
            is_right = task.model.next_sentence(states).argmax(-1).cpu() == batch.belongs
    predicted = log_probs.argmax(-1).cpu()
    losses = -log_probs.gather(1, on_device.labels[:, None])[:, 0].cpu()
    rows = batch.hidden // batch.values.shape[1]
    columns = torch.stack([(predicted == batch.labels).float(), losses, torch.ones_like(losses)], 1)
    sums = torch.zeros(len(batch.rows), 3).index_add(0, rows, columns)
    sums = torch.cat([sums, is_right.float()[:, None]], 1)
    return sums, _write_texts(task, batch, predicted)


def _write_texts(task: "MaskedLmTask", batch: MaskedBatch, predicted: Tensor) -> Texts:
    """Return each text with its gaps, with the predicted tokens, and with the true ones."""
    masked, filled, whole = (batch.values.flatten().clone() for _ in range(3))
    masked[batch.hidden] = task.tokenizer.mask
    filled[batch.hidden] = predicted
    whole[batch.hidden] = batch.labels
    texts = []
    for values in (masked, filled, whole):
        lines = values.view(batch.values.shape).tolist()
        texts.append([task.tokenizer.decode(line) for line in lines])
    return list(zip(*texts, strict=True))


def _measure(sums: Tensor, task: "MaskedLmTask", *, num_bootstrap: int) -> dict[str, Result]:
    config = task.recipe.data
    how = (
        f"hidden:{config.masking.kind},{config.masking.share:g}|shown:as trained|"
        f"packing:{config.packing},{config.batch.max_length}|seed:{config.seed}|"
        f"vocab:{task.tokenizer.vocab_size}"
    )

    measures: dict[str, Callable[[Tensor], Tensor]] = {
        "accuracy": lambda parts: 100 * parts[..., 0] / parts[..., 2],
        "perplexity": lambda parts: (parts[..., 1] / parts[..., 2]).exp(),
    }
    whole = sums.sum(0)
    resampled = None
    # A single text cannot be resampled.
    if num_bootstrap and len(sums) > 1:
        generator = torch.Generator().manual_seed(0)
        samples = torch.randint(len(sums), (num_bootstrap, len(sums)), generator=generator)
        resampled = torch.stack([sums[rows].sum(0) for rows in samples])
        how += f"|bs:{num_bootstrap}"
    detail = {"tokens": float(whole[2]), "loss": float(whole[1] / whole[2])}
    details = {"accuracy": {**detail, "right": float(whole[0])}, "perplexity": detail}
    return {
        name: Result(
            f"masked {name}",
            float(measure(whole)),
            how,
            interval=None if resampled is None else _interval(measure(resampled)),
            detail=details[name],
        )
        for name, measure in measures.items()
    }


def _measure_pairs(sums: Tensor, task: "MaskedLmTask") -> dict[str, Result]:
    if task.model.next_sentence is None:
        return {}
    how = f"packing:{task.recipe.data.packing}|seed:{task.recipe.data.seed}|chance:50"
    return {"pairs": Result("pair accuracy", 100 * float(sums[:, 3].mean()), how)}


def _interval(values: Tensor) -> tuple[float, float]:
    low, high = values.quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return low, high
