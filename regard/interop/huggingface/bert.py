"""Layouts of BERT, RoBERTa and DistilBERT checkpoints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.text.tokenizers import Tokenizer
from regard.interop.huggingface.layout import (
    Config,
    Layout,
    example_tokens,
    unsupported_settings,
)
from regard.interop.huggingface.vocabularies import read_vocabulary, write_vocabulary
from regard.models.encoders.bert import BertEncoderConfig, segment
from regard.tasks.base import Task
from regard.tasks.masked_lm.task import TOKENIZER, MaskedTask

POSITIONS = "encoder.positions.embedding.weight"
SEGMENTS = "encoder.segment_embedding.weight"
TOKENS = "encoder.embedding.weight"

EPSILON = 1e-12
"""What norms add to the variance where no option says so."""


class BertLayout(Layout):
    """BERT (Devlin et al. 2019)."""

    model_type = "bert"
    architecture = "BertForMaskedLM"
    task = "masked_language_model"
    defaults: ClassVar[Mapping[str, Any]] = {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "layer_norm_eps": EPSILON,
        "vocab_size": 30522,
        "pad_token_id": 0,
    }
    required: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu",),
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    }
    written: ClassVar[Mapping[str, Any]] = {"hidden_act": "gelu"}
    settings: ClassVar[Mapping[str, str]] = {
        "dim": "hidden_size",
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "feed_forward_dim": "intermediate_size",
        "dropout": "hidden_dropout_prob",
        "norm_epsilon": "layer_norm_eps",
    }
    dropouts = ("attention_probs_dropout_prob",)
    # The pooler and the head for sentence pairs belong to no masked language model.
    unused = r"\bpooler\.|^cls\.seq_relationship\.|\.position_ids$"
    head = "head."
    parts = ("encoder", "head")
    prefix = "bert."
    names: ClassVar[Mapping[str, str]] = {
        "encoder.embedding.": "embeddings.word_embeddings.",
        "encoder.positions.embedding.": "embeddings.position_embeddings.",
        "encoder.segment_embedding.": "embeddings.token_type_embeddings.",
        "encoder.embedding_norm.": "embeddings.LayerNorm.",
        "encoder.blocks.": "encoder.layer.",
        "self_attention.query_map.": "attention.self.query.",
        "self_attention.key_map.": "attention.self.key.",
        "self_attention.value_map.": "attention.self.value.",
        "self_attention.output_map.": "attention.output.dense.",
        "self_residual.norm.": "attention.output.LayerNorm.",
        "feed_forward.hidden_map.": "intermediate.dense.",
        "feed_forward.output_map.": "output.dense.",
        "feed_residual.norm.": "output.LayerNorm.",
    }
    # The last name of the output is where the tied matrix may be stored once more.
    head_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head.dense.": ("cls.predictions.transform.dense.",),
        "head.norm.": ("cls.predictions.transform.LayerNorm.",),
        "head.output.": ("cls.predictions.", "cls.predictions.decoder."),
    }
    roles: ClassVar[Mapping[str, str]] = {"pad_token_id": "pad"}
    """Options → roles of the tokens whose ids they are."""
    num_segments: ClassVar[int | None] = None
    """Segments that its tokenizers distinguish; None = `type_vocab_size`."""
    skips_padding: ClassVar[bool] = False
    """Whether positions are counted from the padding token's id on."""

    def read_vocabularies(self, folder: Path, config: Config) -> dict[str, Tokenizer]:
        """Read the vocabulary, filled up to as many tokens as there are embeddings."""
        tokenizer = read_vocabulary(folder, config["vocab_size"])
        if tokenizer.pad != config["pad_token_id"]:
            raise ConfigError(
                f"`pad_token_id` must be the vocabulary's padding token ({tokenizer.pad}), "
                f"but is {config['pad_token_id']}."
            )
        return {TOKENIZER: tokenizer}

    def to_recipe(self, config: Config, vocabularies: dict[str, Tokenizer]) -> dict[str, Any]:
        """Return our recipe of the model, as plain values."""
        encoder = {
            "kind": "bert",
            "norm_epsilon": EPSILON,
            **self.encoder_settings(config),
            "max_length": config["max_position_embeddings"] - self._num_skipped(config),
            "num_segments": self._num_segments(config),
            "separator": vocabularies[TOKENIZER].eos,
        }
        batch = {"max_length": encoder["max_length"]}
        return {"task": self.task, "data": {"batch": batch}, "model": {"encoder": encoder}}

    def checkpoint_names(self, name: str, config: Config) -> tuple[str, ...]:
        """Return the names that our weight may have in a checkpoint; we write the first."""
        tied = (self.head_names["head.output."][-1] + "weight",) if name == TOKENS else ()
        return super().checkpoint_names(name, config) + tied

    def import_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert a weight of a checkpoint to ours, which has this name."""
        if name == POSITIONS:
            return tensor[self._num_skipped(config) :]
        return tensor[: self._num_segments(config)] if name == SEGMENTS else tensor

    def unsupported(self, task: Task[Any]) -> list[str]:
        """List all settings of a task that cannot be written in this layout."""
        encoder = task.recipe.model.encoder
        if not isinstance(encoder, BertEncoderConfig):
            return [f"`model.encoder.kind` must be 'bert', but is '{encoder.kind}'"]
        most = 2 if self.num_segments is None else self.num_segments
        has_epsilon = "norm_epsilon" in self.settings
        wanted = {
            # Their tokenizers count segments by the end of the first text.
            "separator": _tokenizer(task).eos if encoder.num_segments > 1 else encoder.separator,
            "norm_epsilon": encoder.norm_epsilon if has_epsilon else EPSILON,
            "num_segments": min(encoder.num_segments, most),
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
        """Return the weights of a task under their names in a checkpoint."""
        theirs = super().export_weights(task, config)
        positions = self.checkpoint_names(POSITIONS, config)[0]
        empty = theirs[positions].new_zeros(self._num_skipped(config), theirs[positions].shape[1])
        theirs[positions] = torch.cat([empty, theirs[positions]])
        if "type_vocab_size" in config:
            # They always add a segment; zeros are the same as none.
            none = theirs[positions].new_zeros(1, theirs[positions].shape[1])
            theirs.setdefault(self.checkpoint_names(SEGMENTS, config)[0], none)
        return theirs

    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write the vocabulary."""
        write_vocabulary(
            _tokenizer(task),
            folder,
            max_length=task.recipe.model.encoder.max_length,
            has_segments=task.recipe.model.encoder.num_segments > 1,
        )

    def difference(self, task: Task[Any], theirs: Any) -> float:
        """Return the largest difference between the logits, for two texts."""
        encoder = task.recipe.model.encoder
        vocab_size, pad = theirs.config.vocab_size, theirs.config.pad_token_id
        ids, mask = example_tokens(encoder.max_length, vocab_size=vocab_size, pad=pad)
        ids[mask & (ids == pad)] = (pad + 1) % vocab_size
        extra = {}
        if getattr(theirs.config, "type_vocab_size", 1) > 1:
            extra = {"token_type_ids": segment(ids, encoder.separator).clamp(max=1)}
        with torch.inference_mode():
            expected = theirs(input_ids=ids, attention_mask=mask.long(), **extra).logits
            return float((task.model(ids, mask) - expected)[mask].abs().max())

    def _num_skipped(self, config: Config) -> int:
        """Return how many rows of the position table are never looked up."""
        return int(config["pad_token_id"]) + 1 if self.skips_padding else 0

    def _num_segments(self, config: Config) -> int:
        return int(config["type_vocab_size"]) if self.num_segments is None else self.num_segments


class RobertaLayout(BertLayout):
    """RoBERTa (Liu et al. 2019): no segments, and positions start after the padding token's id."""

    model_type = "roberta"
    architecture = "RobertaForMaskedLM"
    defaults: ClassVar[Mapping[str, Any]] = {
        **BertLayout.defaults,
        "vocab_size": 50265,
        "pad_token_id": 1,
    }
    unused = r"\bpooler\.|\.position_ids$"
    prefix = "roberta."
    head_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head.dense.": ("lm_head.dense.",),
        "head.norm.": ("lm_head.layer_norm.",),
        "head.output.": ("lm_head.", "lm_head.decoder."),
    }
    roles: ClassVar[Mapping[str, str]] = {
        **BertLayout.roles,
        "bos_token_id": "sos",
        "eos_token_id": "eos",
    }
    # A second row may be there, but their tokenizers put every token into the first segment.
    num_segments = 1
    skips_padding = True


class DistilBertLayout(BertLayout):
    """DistilBERT (Sanh et al. 2019): fewer layers, no segments, and names of its own."""

    model_type = "distilbert"
    architecture = "DistilBertForMaskedLM"
    defaults: ClassVar[Mapping[str, Any]] = {
        "dim": 768,
        "n_layers": 6,
        "n_heads": 12,
        "hidden_dim": 3072,
        "dropout": 0.1,
        "max_position_embeddings": 512,
        "vocab_size": 30522,
        "pad_token_id": 0,
    }
    # `sinusoidal_pos_embds` only says how the position table was initialised.
    required: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "activation": ("gelu",),
        "tie_word_embeddings": (True,),
    }
    written: ClassVar[Mapping[str, Any]] = {"activation": "gelu"}
    settings: ClassVar[Mapping[str, str]] = {
        "dim": "dim",
        "num_layers": "n_layers",
        "num_heads": "n_heads",
        "feed_forward_dim": "hidden_dim",
        "dropout": "dropout",
    }
    dropouts = ("attention_dropout",)
    unused = r"\.position_ids$"
    prefix = "distilbert."
    names: ClassVar[Mapping[str, str]] = {
        **BertLayout.names,
        "encoder.blocks.": "transformer.layer.",
        "self_attention.query_map.": "attention.q_lin.",
        "self_attention.key_map.": "attention.k_lin.",
        "self_attention.value_map.": "attention.v_lin.",
        "self_attention.output_map.": "attention.out_lin.",
        "self_residual.norm.": "sa_layer_norm.",
        "feed_forward.hidden_map.": "ffn.lin1.",
        "feed_forward.output_map.": "ffn.lin2.",
        "feed_residual.norm.": "output_layer_norm.",
    }
    head_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head.dense.": ("vocab_transform.",),
        "head.norm.": ("vocab_layer_norm.",),
        "head.output.": ("vocab_projector.",),
    }
    num_segments = 0


def _tokenizer(task: Task[Any]) -> Tokenizer:
    assert isinstance(task, MaskedTask)
    return task.tokenizer
