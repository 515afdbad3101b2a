"""The layouts of BERT, RoBERTa and DistilBERT: one encoder under three sets of names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.text.tokenizers import Tokenizer
from regard.interop.huggingface.layout import Layout, misfits_of, rename
from regard.interop.huggingface.vocabularies import read_vocabulary, write_vocabulary
from regard.models.encoders.bert import BertEncoderConfig, segment
from regard.tasks.base import Task
from regard.tasks.masked_lm.task import TOKENIZER, MaskedTask

POSITIONS = "encoder.positions.embedding.weight"
SEGMENTS = "encoder.segment_embedding.weight"
TOKENS = "encoder.embedding.weight"


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
        "layer_norm_eps": 1e-12,
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
    # The pooler and the judge of sentence pairs belong to no masked language model.
    unused = r"\bpooler\.|^cls\.seq_relationship\.|\.position_ids$"
    head = "head."
    parts = ("encoder", "head")

    prefix: ClassVar[str] = "bert."
    """How the encoder's names begin where there is a head beside it."""
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
    """How parts of our names are spelled there."""
    head_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head.dense.": ("cls.predictions.transform.dense.",),
        "head.norm.": ("cls.predictions.transform.LayerNorm.",),
        "head.output.": ("cls.predictions.", "cls.predictions.decoder."),
    }
    """How the head's parts are spelled; the last is where the tied matrix may lie once more."""

    def read_vocabularies(self, folder: Path, config: dict[str, Any]) -> dict[str, Tokenizer]:
        """Read the vocabulary, filled up to as many tokens as there are embeddings."""
        tokenizer = read_vocabulary(folder, config["vocab_size"])
        if tokenizer.pad != config["pad_token_id"]:
            raise ConfigError(
                f"`pad_token_id` must be the vocabulary's padding token ({tokenizer.pad}), "
                f"but is {config['pad_token_id']}."
            )
        return {TOKENIZER: tokenizer}

    def to_recipe(
        self, config: dict[str, Any], vocabularies: dict[str, Tokenizer]
    ) -> dict[str, Any]:
        """Return our recipe of the model, as plain values."""
        encoder = {
            "kind": "bert",
            "dim": config["hidden_size"],
            "num_layers": config["num_hidden_layers"],
            "num_heads": config["num_attention_heads"],
            "feed_forward_dim": config["intermediate_size"],
            "norm_epsilon": float(config["layer_norm_eps"]),
            "max_length": config["max_position_embeddings"] - self._num_skipped(config),
            "dropout": float(config["hidden_dropout_prob"]),
            "num_segments": self._num_segments(config),
            "separator": vocabularies[TOKENIZER].eos,
        }
        batch = {"max_length": encoder["max_length"]}
        return {"task": self.task, "data": {"batch": batch}, "model": {"encoder": encoder}}

    def spellings(self, name: str, config: dict[str, Any]) -> tuple[str, ...]:
        """Return what our weight may be called there; the first is what we write."""
        for ours, theirs in self.head_names.items():
            if name.startswith(ours):
                return tuple(spelling + name.removeprefix(ours) for spelling in theirs)
        bare = rename(name, self.names)
        tied = (self.head_names["head.output."][-1] + "weight",) if name == TOKENS else ()
        return (self.prefix + bare, bare, *tied)

    def to_ours(self, name: str, tensor: Tensor, config: dict[str, Any]) -> Tensor:
        """Turn a weight of theirs into ours, which we call by this name."""
        if name == POSITIONS:
            return tensor[self._num_skipped(config) :]
        return tensor[: self._num_segments(config)] if name == SEGMENTS else tensor

    def misfits(self, task: Task[Any]) -> list[str]:
        """List all that keeps a task of ours from being written in this layout."""
        encoder = task.recipe.model.encoder
        if not isinstance(encoder, BertEncoderConfig):
            return [f"`model.encoder.kind` must be 'bert', but is '{encoder.kind}'"]
        # Their tokenizer counts the segments, by the end of the first text.
        end = _tokenizer(task).eos if encoder.num_segments > 1 else encoder.separator
        wanted = {"separator": end, "norm_epsilon": encoder.norm_epsilon, **self._wanted(encoder)}
        return misfits_of(encoder, wanted, place="model.encoder")

    def to_config(self, task: Task[Any]) -> dict[str, Any]:
        """Return the `config.json` of a task that fits."""
        encoder, tokenizer = task.recipe.model.encoder, _tokenizer(task)
        config = {
            "model_type": self.model_type,
            "architectures": [self.architecture],
            "vocab_size": tokenizer.vocab_size,
            "pad_token_id": tokenizer.pad,
            **self._sizes(encoder),
        }
        config["max_position_embeddings"] = encoder.max_length + self._num_skipped(config)
        return config

    def to_theirs(self, task: Task[Any], config: dict[str, Any]) -> dict[str, Tensor]:
        """Return the weights of a task that fits, under their names."""
        weights: dict[str, Tensor] = {
            name: tensor
            for name, tensor in task.model.named_parameters()
            if name.split(".")[0] in self.parts
        }
        theirs = {self.spellings(name, config)[0]: tensor for name, tensor in weights.items()}
        skipped, places = self._num_skipped(config), weights[POSITIONS]
        empty = places.new_zeros(skipped, places.shape[1])
        theirs[self.spellings(POSITIONS, config)[0]] = torch.cat([empty, places])
        if SEGMENTS not in weights and "type_vocab_size" in config:
            # They always tell a segment; one that adds nothing is none.
            theirs[self.spellings(SEGMENTS, config)[0]] = places.new_zeros(1, places.shape[1])
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
        """Return how far apart the logits are at most, for two texts of which one is padded."""
        encoder = task.recipe.model.encoder
        vocab_size, pad = theirs.config.vocab_size, theirs.config.pad_token_id
        length = min(8, encoder.max_length)
        ids = torch.arange(2 * length).view(2, length) % vocab_size
        ids[ids == pad] = (pad + 1) % vocab_size
        mask = torch.arange(length) < torch.tensor([[length], [(length + 1) // 2]])
        ids = ids.masked_fill(~mask, pad)
        extra = {}
        if getattr(theirs.config, "type_vocab_size", 1) > 1:
            extra = {"token_type_ids": segment(ids, encoder.separator).clamp(max=1)}
        with torch.inference_mode():
            expected = theirs(input_ids=ids, attention_mask=mask.long(), **extra).logits
            return float((task.model(ids, mask) - expected)[mask].abs().max())

    def _num_skipped(self, config: dict[str, Any]) -> int:
        """Return how many rows of the table of places are never looked up."""
        return 0

    def _num_segments(self, config: dict[str, Any]) -> int:
        found: int = config["type_vocab_size"]
        return found

    def _wanted(self, encoder: BertEncoderConfig) -> dict[str, Any]:
        """Return further settings without which a model does not fit."""
        return {"num_segments": min(encoder.num_segments, 2)}

    def _sizes(self, encoder: BertEncoderConfig) -> dict[str, Any]:
        return {
            "hidden_size": encoder.dim,
            "num_hidden_layers": encoder.num_layers,
            "num_attention_heads": encoder.num_heads,
            "intermediate_size": encoder.feed_forward_dim,
            "hidden_act": "gelu",
            "hidden_dropout_prob": encoder.dropout,
            "attention_probs_dropout_prob": encoder.dropout,
            "type_vocab_size": max(encoder.num_segments, 1),
            "layer_norm_eps": encoder.norm_epsilon,
        }


def _tokenizer(task: Task[Any]) -> Tokenizer:
    assert isinstance(task, MaskedTask)
    return task.tokenizer
