"""Layout of Marian checkpoints: the transformers of OPUS-MT."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import processors
from torch import Tensor

from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import read_record
from regard.core.logging import logger
from regard.data.text.field import TOKENIZER, TextField
from regard.data.text.tokenizer_file import library_errors, read_tokenizer
from regard.data.text.tokenizers import Tokenizer
from regard.interop.huggingface.layout import (
    Config,
    Layout,
    example_tokens,
    list_unsupported,
    unsupported_settings,
)
from regard.interop.huggingface.sentencepiece import build_unigram, read_sentencepiece
from regard.interop.huggingface.vocabularies import wrap_tokenizer, write_tokenizer
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor

ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
OUTPUT_BIAS = "decoder.output.bias"
SOURCE, TARGET = (TOKENIZER.format(side) for side in ("source", "target"))
SIDES = {
    "num_layers": "layers",
    "feed_forward_dim": "ffn_dim",
    "num_heads": "attention_heads",
}
"""Settings of encoder or decoder → options, without the prefix `encoder_` or `decoder_`."""
HALVES, INTERLEAVED = "sinusoidal_halves", "sinusoidal"
"""Positions of Marian, and the same ones in another column order."""
READERS = re.compile(r"\b(embedding|(query|key|value|hidden)_map)\.weight$")
"""Weights whose columns are columns of the states."""
WRITERS = re.compile(r"\b(output_map|norm)\.(weight|bias)$")
"""Weights whose rows are columns of the states."""


@dataclass(frozen=True, kw_only=True)
class MarianLayout(Layout):
    """Marian: encoder and decoder with sinusoidal positions and tied embeddings.

    The columns of the states of models with `sinusoidal` positions are exported in another order,
    sines before cosines, which changes no result.
    """

    def read_vocabularies(self, folder: Path, config: Config) -> dict[str, Tokenizer]:
        """Read both vocabularies: SentencePiece models, or the files of an exported run."""
        sizes = {SOURCE: config["vocab_size"], TARGET: _target_size(config)}
        if (folder / "source.spm").exists():
            tokenizers = _read_sides(folder, sizes)
        elif (folder / "tokenizer.json").exists():
            # Exports write the target's vocabulary under its name in a run folder.
            target = TARGET if (folder / TARGET).exists() else "tokenizer.json"
            files = {SOURCE: "tokenizer.json", TARGET: target}
            tokenizers = {
                side: wrap_tokenizer(read_tokenizer(folder / file), sizes[side], folder)
                for side, file in files.items()
            }
        else:
            raise CheckpointError(
                f"{folder} must hold source.spm, target.spm and vocab.json, or tokenizer.json, "
                "but has neither."
            )
        if tokenizers[TARGET].sos != config["decoder_start_token_id"]:
            raise ConfigError(
                "`decoder_start_token_id` must be the token that starts a sentence "
                f"({tokenizers[TARGET].sos}), but is {config['decoder_start_token_id']}."
            )
        return tokenizers

    def to_recipe(self, config: Config, vocabularies: dict[str, Tokenizer]) -> dict[str, Any]:
        """Return the recipe of the model as a dictionary."""
        is_joint = bool(config["share_encoder_decoder_embeddings"])
        sides = {
            side: {
                "kind": "transformer",
                "positions": HALVES,
                **self.encoder_settings(config),
                **{setting: config[f"{side}_{option}"] for setting, option in SIDES.items()},
                "feed_forward": ACTIVATIONS[config["activation_function"]],
            }
            for side in ("encoder", "decoder")
        }
        return {
            "task": self.task,
            "data": {"is_joint": is_joint},
            "model": {**sides, "ties": "all" if is_joint else "output"},
            "search": {"beams": config["num_beams"]},
        }

    def checkpoint_names(self, name: str, config: Config) -> tuple[str, ...]:
        """Return the possible names of a weight in a checkpoint; exports use the first."""
        if name == OUTPUT_BIAS:
            return ("final_logits_bias",)
        spelling = self.prefix + self.rename(name)
        if not name.endswith("coder.embedding.weight"):
            return (spelling,)
        if config["share_encoder_decoder_embeddings"]:
            sides = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
            return ("model.shared.weight", *sides, "lm_head.weight")
        return (spelling, "lm_head.weight") if name.startswith("decoder") else (spelling,)

    def import_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert a checkpoint's weight to the weight `name` of the run."""
        return tensor[0] if name == OUTPUT_BIAS and tensor.dim() == 2 else tensor

    def export_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert the weight `name` of the run to the checkpoint's."""
        return tensor[None] if name == OUTPUT_BIAS else tensor  # (1, V)

    def export_weights(self, task: Task[Any], config: Config) -> dict[str, Tensor]:
        """Return the weights of a task by their names in a checkpoint."""
        encoder = task.recipe.model.encoder
        if encoder.positions == HALVES:
            return super().export_weights(task, config)
        order = torch.arange(encoder.dim)
        order = torch.cat([order[0::2], order[1::2]])  # (D,), sines before cosines
        return {
            self.checkpoint_names(name, config)[0]: self.export_weight(
                name, order_columns(name, tensor, order), config
            )
            for name, tensor in task.model.named_parameters()
            if name.split(".")[0] in self.parts
        }

    def default_weight(self, name: str, like: Tensor) -> Tensor | None:
        """Return zeros for the bias of the output, which a checkpoint may omit."""
        return torch.zeros(like.shape) if name == OUTPUT_BIAS else None

    def unsupported_values(self, task: Task[Any]) -> list[str]:
        """List all settings of a task that this layout does not support."""
        model = task.recipe.model
        activation, positions = model.encoder.feed_forward, model.encoder.positions
        wanted = {
            "positions": positions if positions == INTERLEAVED else HALVES,
            "feed_forward": activation if activation in ACTIVATIONS.values() else "relu",
        }
        faults = []
        for side in self.kinds:
            faults += unsupported_settings(getattr(model, side), wanted, section=f"model.{side}")
        if model.decoder.dim != model.encoder.dim:
            faults.append(
                f"`model.decoder.dim` must be the encoder's ({model.encoder.dim}), "
                f"but is {model.decoder.dim}"
            )
        actual = {"model.ties": model.ties, "model.copying.kind": model.copying.kind}
        supported = {"model.ties": ["output", "all"], "model.copying.kind": ["none"]}
        return faults + list_unsupported(actual, supported)

    def to_config(self, task: Task[Any]) -> Config:
        """Return the `config.json` of a task that this layout supports."""
        assert isinstance(task, Predictor)
        model, tokenizer = task.recipe.model, task.target.tokenizer
        config = {
            **super().to_config(task),
            "vocab_size": task.source.spec.vocab_size,
            "decoder_vocab_size": tokenizer.vocab_size,
            "share_encoder_decoder_embeddings": model.ties == "all",
            "pad_token_id": tokenizer.pad,
            "eos_token_id": tokenizer.eos,
            "decoder_start_token_id": tokenizer.sos,
            "forced_eos_token_id": None,
        }
        for side in ("encoder", "decoder"):
            for setting, option in SIDES.items():
                config[f"{side}_{option}"] = getattr(getattr(model, side), setting)
        return config

    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write the vocabularies of source and target."""
        assert isinstance(task, Predictor)
        assert isinstance(task.source, TextField)
        assert isinstance(task.recipe.model.encoder, TransformerEncoderConfig)
        source, target = task.source.tokenizer, task.target.tokenizer
        end = source.token(source.eos)
        template = processors.TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, source.eos)]
        )
        settings = {"model_max_length": task.recipe.model.encoder.max_length}
        write_tokenizer(source, folder, template, special={"eos_token": end}, settings=settings)
        target.save(folder / TARGET)

    def max_difference(self, task: Task[Any], reference: Any) -> float:
        """Return the maximum absolute difference of the logits for two pairs."""
        options = reference.config
        max_length, pad = options.max_position_embeddings, options.pad_token_id
        ids, mask = example_tokens(max_length, vocab_size=options.vocab_size, pad=pad)
        targets = torch.arange(ids.numel()).view(ids.shape) % options.decoder_vocab_size
        targets[:, 0] = options.decoder_start_token_id
        with torch.inference_mode():
            expected = reference(
                input_ids=ids, attention_mask=mask.long(), decoder_input_ids=targets
            ).logits
            return float((task.model(ids, mask, targets).logits - expected).abs().max())


def order_columns(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """Return a weight of a transformer whose states have their columns in the order (D,)."""
    order = order.to(tensor.device)
    if READERS.search(name):
        return tensor[:, order]
    return tensor[order] if WRITERS.search(name) else tensor


def _target_size(config: Config) -> int:
    if config["share_encoder_decoder_embeddings"]:
        return int(config["vocab_size"])
    return int(config.get("decoder_vocab_size") or config["vocab_size"])


def _read_sides(folder: Path, sizes: dict[str, int]) -> dict[str, Tokenizer]:
    """Read the two SentencePiece models and their shared or separate vocabularies."""
    has_two = (folder / "target_vocab.json").exists()
    files = {
        SOURCE: ("source.spm", "vocab.json"),
        TARGET: ("target.spm", "target_vocab.json" if has_two else "vocab.json"),
    }
    tokenizers = {}
    for side, (model, vocabulary) in files.items():
        ids = read_record(folder / vocabulary, dict[str, int])
        if "<unk>" not in ids or sorted(ids.values()) != list(range(len(ids))):
            raise CheckpointError(
                f"{folder / vocabulary} must number its tokens consecutively from 0, '<unk>' among "
                "them, but does not."
            )
        read = read_sentencepiece(folder / model)
        with library_errors(folder / model):
            trained, num_missing = build_unigram(read, ids)
        if num_missing:
            logger.info(
                f"{model} has {num_missing:,} tokens that {vocabulary} lacks; they are split into "
                "smaller ones."
            )
        tokenizers[side] = wrap_tokenizer(trained, sizes[side], folder)
    return tokenizers
