"""Knowledge distillation of masked language models (Hinton et al. 2015; Sanh et al. 2019)."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from regard.core.config import from_dict
from regard.core.errors import ConfigError
from regard.core.files import read_record
from regard.core.records import shown
from regard.data.text.masked_batches import MaskedBatch
from regard.data.text.tokenizers import Tokenizer
from regard.models.masked_lm import MaskedModel
from regard.tasks.masked_lm.recipe import DistillationConfig, MaskedRecipe
from regard.training.loading import load_model
from regard.training.losses import Loss


class _Config(TypedDict):
    recipe: dict[str, Any]


class Teacher:
    """A trained model whose predictions a student learns from; its weights are frozen."""

    def __init__(
        self, model: MaskedModel, tokenizer: Tokenizer, *, config: DistillationConfig
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self._config = config

    @classmethod
    def load(cls, folder: str, student: MaskedRecipe, *, device: torch.device) -> "Teacher":
        """Load a run folder and check that it fits the student."""
        path = Path(folder)
        values = read_record(path / "config.json", _Config)["recipe"]
        if values.get("task") != MaskedRecipe.task:
            raise ConfigError(
                "`teacher` must be a run of a masked language model, but is one for the task "
                f"{shown(values.get('task'))}."
            )
        recipe = from_dict(MaskedRecipe, values)
        tokenizer = Tokenizer.load(path / "tokenizer.json")
        build = partial(MaskedModel, recipe.model, tokenizer.vocab_size)
        model = load_model(build, path / "model.safetensors")
        expected, encoder = recipe.model.encoder, student.model.encoder
        if type(expected) is not type(encoder) or expected.dim != encoder.dim:
            raise ConfigError(
                "`model.encoder` must have the teacher's kind and dim "
                f"('{expected.kind}', {expected.dim}), but has '{encoder.kind}' and {encoder.dim}."
            )
        return cls(model.to(device), tokenizer, config=student.distillation)

    def check_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Raise a `ConfigError` if the student has another vocabulary."""
        if tokenizer.tokens_in_order() != self.tokenizer.tokens_in_order():
            raise ConfigError(
                f"`teacher` must have the student's vocabulary ({tokenizer.vocab_size:,} tokens), "
                f"but has another ({self.tokenizer.vocab_size:,} tokens). Leave out `init_from`, "
                "or name a run with this vocabulary."
            )

    def initialize(self, student: MaskedModel) -> None:
        """Copy the teacher's embeddings, head, and evenly spaced layers to a student."""
        weights = self.model.state_dict()
        ratio = _count_blocks(self.model) / max(_count_blocks(student), 1)

        def teacher_name(name: str) -> str:
            return re.sub(
                r"(?<=\bblocks\.)\d+", lambda match: str(int(int(match.group()) * ratio)), name
            )

        names = {name: teacher_name(name) for name in student.state_dict()}
        copied = {name: weights[origin] for name, origin in names.items() if origin in weights}
        student.load_state_dict(copied, strict=False)

    def add_loss(self, loss: Loss, batch: MaskedBatch, *, states: Tensor, logits: Tensor) -> Loss:
        """Add the distillation losses to the masked-token loss.

        Args:
            loss: The student's masked-token loss.
            batch: The batch, on its device.
            states: (B, S, D), the student's last hidden states.
            logits: (L, V), the student's logits of the masked tokens.
        """
        config = self._config
        with torch.no_grad():
            teacher_states = self.model.encode(batch.values, batch.mask).states
            teacher_logits = self.model.predict(teacher_states, batch.masked_positions)
        distance = F.kl_div(
            (logits.float() / config.temperature).log_softmax(-1),
            (teacher_logits.float() / config.temperature).log_softmax(-1),
            reduction="sum",
            log_target=True,
        )
        # The gradients of soft targets scale with 1 / temperature² (Hinton et al. 2015, section 2).
        distance = distance * config.temperature**2
        cosine = F.cosine_similarity(states.float(), teacher_states.float(), dim=-1)  # (B, S)
        mask = batch.mask.to(cosine.device, non_blocking=True)
        cosine_loss = (1 - cosine).where(mask, 0.0).sum() / mask.sum()
        total = config.truth * loss.total + config.teacher * distance
        return replace(loss, total=total + config.states * cosine_loss * loss.count)


def _count_blocks(model: MaskedModel) -> int:
    names = (re.match(r"encoder\.blocks\.(\d+)\.", name) for name in model.state_dict())
    return max((int(match[1]) + 1 for match in names if match), default=0)
