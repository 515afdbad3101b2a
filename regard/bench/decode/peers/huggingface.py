"""Predictor whose search is `generate` of Hugging Face `transformers`."""

import math
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from regard.core.device import find_dtype
from regard.core.errors import RegardError
from regard.data.batch import Batch
from regard.interop.batch_search import BatchSearchPredictor
from regard.interop.huggingface.export import export_run
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig
from regard.tasks.base import Task


class HuggingFacePredictor(BatchSearchPredictor):
    """Predictor that searches with `MarianMTModel.generate`, on the exported checkpoint."""

    _generator: Any

    @classmethod
    def of(cls, task: Task[Any], run: Path, *, precision: Any = "fp32") -> Self:
        """Export a run, which compares the logits, and load the checkpoint.

        Args:
            task: The run.
            run: Its folder.
            precision: fp32 or bf16, of weights and activations.
        """
        try:
            transformers: Any = import_module("transformers")
        except ImportError:
            raise RegardError("`transformers` is not installed.") from None
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        with tempfile.TemporaryDirectory() as folder:
            export_run(run, Path(folder, "exported"))
            model = transformers.MarianMTModel.from_pretrained(
                Path(folder, "exported"),
                dtype=find_dtype(precision, task.device),
                attn_implementation="sdpa",
                use_safetensors=True,
            )
        predictor = cls.copy_of(task)
        predictor._generator = model.to(task.device).eval()
        return predictor

    def search_batch(
        self, batch: Batch, config: SearchConfig, *, max_lengths: list[int], num_best: int
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each source of a batch, best first.

        All sentences have the largest limit of the batch. Beam search stops when `beams` hypotheses
        have ended, which is faster than the default of `generate`.
        """
        tokenizer = self.target.tokenizer
        is_beam_search = config.beams > 1
        options = {"length_penalty": config.length_penalty, "early_stopping": True}
        outputs: Tensor = self._generator.generate(
            input_ids=batch.source.to(self.device),
            attention_mask=batch.source_mask.long().to(self.device),
            do_sample=False,
            num_beams=config.beams,
            num_return_sequences=num_best,
            max_new_tokens=max(max_lengths),
            suppress_tokens=sorted({tokenizer.pad, tokenizer.sos}),
            use_cache=True,
            **(options if is_beam_search else {}),
        )
        rows = outputs[:, 1:].tolist()  # Without the start token.
        found = [_to_hypothesis(row, end=tokenizer.eos, pad=tokenizer.pad) for row in rows]
        return [found[first : first + num_best] for first in range(0, len(found), num_best)]


def _to_hypothesis(row: list[int], *, end: int, pad: int) -> Hypothesis:
    """Return the tokens up to the end token; the log-probability is not computed."""
    if end in row:
        row = row[: row.index(end) + 1]
    while row and row[-1] == pad != end:
        row = row[:-1]
    return Hypothesis(tuple(row), math.nan, (), math.nan)
