"""Layouts of BERT, RoBERTa and DistilBERT checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.text.field import tokenizer_file
from regard.data.text.tokenizers import Tokenizer
from regard.interop.huggingface.layout import Config, Layout, example_tokens, unsupported_settings
from regard.interop.huggingface.vocabularies import read_vocabulary, write_vocabulary
from regard.models.encoders.bert import segment
from regard.tasks.base import Task
from regard.tasks.masked_lm.task import MaskedLmTask

POSITIONS = "encoder.positions.embedding.weight"
SEGMENTS = "encoder.segment_embedding.weight"
TOKENS = "encoder.embedding.weight"

EPSILON = 1e-12
"""Default epsilon of layer normalisation."""


@dataclass(frozen=True, kw_only=True)
class BertLayout(Layout):
    """BERT, RoBERTa and DistilBERT: encoders with a head for masked tokens."""

    roles: Mapping[str, str]
    """Options with ids of special tokens → roles of these tokens."""
    num_segments: int | None = None
    """Number of segments that its tokenizers distinguish; None for `type_vocab_size`."""
    skips_padding: bool = False
    """Whether positions start after the padding token's id."""

    def read_vocabularies(self, folder: Path, config: Config) -> dict[str, Tokenizer]:
        """Read the vocabulary, padded to the number of embeddings."""
        tokenizer = read_vocabulary(folder, config["vocab_size"])
        if tokenizer.pad != config["pad_token_id"]:
            raise ConfigError(
                f"`pad_token_id` must be the vocabulary's padding token ({tokenizer.pad}), "
                f"but is {config['pad_token_id']}."
            )
        return {tokenizer_file("text"): tokenizer}

    def to_recipe(self, config: Config, vocabularies: dict[str, Tokenizer]) -> dict[str, Any]:
        """Return the recipe of the model as a dictionary."""
        encoder = {
            "kind": "bert",
            "norm_epsilon": EPSILON,
            **self.encoder_settings(config),
            "max_length": config["max_position_embeddings"] - self._num_skipped(config),
            "num_segments": self._num_segments(config),
            "separator": vocabularies[tokenizer_file("text")].eos,
        }
        batch = {"max_length": encoder["max_length"]}
        return {"task": self.task, "data": {"batch": batch}, "model": {"encoder": encoder}}

    def checkpoint_names(self, name: str, config: Config) -> tuple[str, ...]:
        """Return the possible names of a weight in a checkpoint; exports use the first."""
        tied = (self.head_names["head.output."][-1] + "weight",) if name == TOKENS else ()
        return super().checkpoint_names(name, config) + tied

    def import_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert a checkpoint's weight to the weight `name` of the run."""
        if name == POSITIONS:
            return tensor[self._num_skipped(config) :]
        return tensor[: self._num_segments(config)] if name == SEGMENTS else tensor

    def unsupported_values(self, task: Task[Any]) -> list[str]:
        """List all settings of a task that this layout does not support."""
        encoder = task.recipe.model.encoder
        max_segments = 2 if self.num_segments is None else self.num_segments
        has_epsilon = "norm_epsilon" in self.settings
        wanted = {
            # Hugging Face tokenizers start a new segment after the end token of the first text.
            "separator": _tokenizer(task).eos if encoder.num_segments > 1 else encoder.separator,
            "norm_epsilon": encoder.norm_epsilon if has_epsilon else EPSILON,
            "num_segments": min(encoder.num_segments, max_segments),
        }
        return unsupported_settings(encoder, wanted, section="model.encoder")

    def to_config(self, task: Task[Any]) -> Config:
        """Return the `config.json` of a task that this layout supports."""
        encoder, tokenizer = task.recipe.model.encoder, _tokenizer(task)
        config = {
            **super().to_config(task),
            "vocab_size": tokenizer.vocab_size,
            **{option: getattr(tokenizer, role) for option, role in self.roles.items()},
        }
        if "type_vocab_size" in self.defaults:
            config["type_vocab_size"] = max(encoder.num_segments, 1)
        config["max_position_embeddings"] = encoder.max_length + self._num_skipped(config)
        return config

    def export_weights(self, task: Task[Any], config: Config) -> dict[str, Tensor]:
        """Return the weights of a task by their names in a checkpoint."""
        weights = super().export_weights(task, config)
        positions = self.checkpoint_names(POSITIONS, config)[0]
        empty = weights[positions].new_zeros(self._num_skipped(config), weights[positions].shape[1])
        weights[positions] = torch.cat([empty, weights[positions]])
        if "type_vocab_size" in config:
            # `transformers` always adds a segment embedding; zeros have no effect.
            none = weights[positions].new_zeros(1, weights[positions].shape[1])
            weights.setdefault(self.checkpoint_names(SEGMENTS, config)[0], none)
        return weights

    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write the vocabulary."""
        write_vocabulary(
            _tokenizer(task),
            folder,
            max_length=task.recipe.model.encoder.max_length,
            has_segments=task.recipe.model.encoder.num_segments > 1,
        )

    def max_difference(self, task: Task[Any], reference: Any) -> float:
        """Return the maximum absolute difference of the logits for two texts."""
        encoder = task.recipe.model.encoder
        vocab_size, pad = reference.config.vocab_size, reference.config.pad_token_id
        ids, mask = example_tokens(encoder.max_length, vocab_size=vocab_size, pad=pad)
        ids[mask & (ids == pad)] = (pad + 1) % vocab_size
        extra = {}
        if getattr(reference.config, "type_vocab_size", 1) > 1:
            extra = {"token_type_ids": segment(ids, encoder.separator).clamp(max=1)}
        with torch.inference_mode():
            expected = reference(input_ids=ids, attention_mask=mask.long(), **extra).logits
            return float((task.model(ids, mask) - expected)[mask].abs().max())

    def _num_skipped(self, config: Config) -> int:
        """Return the number of rows of the position table that are never used."""
        return int(config["pad_token_id"]) + 1 if self.skips_padding else 0

    def _num_segments(self, config: Config) -> int:
        return int(config["type_vocab_size"]) if self.num_segments is None else self.num_segments


def _tokenizer(task: Task[Any]) -> Tokenizer:
    assert isinstance(task, MaskedLmTask)
    return task.tokenizer
