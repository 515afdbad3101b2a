"""The layout of Marian: the transformer that translates in the OPUS-MT folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from tokenizers import processors
from torch import Tensor

from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import read_json
from regard.core.logging import logger
from regard.data.text.field import TOKENIZER, TextField
from regard.data.text.tokenizers import Tokenizer
from regard.interop.huggingface.layout import Layout, misfits_of, rename
from regard.interop.huggingface.sentencepiece import build_unigram, read_pieces
from regard.interop.huggingface.vocabularies import load_tokenizer, settle, write_tokenizer
from regard.models.decoders import TransformerDecoderConfig
from regard.models.encoders import TransformerEncoderConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor

ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
OUTPUT_BIAS = "decoder.output.bias"
SOURCE, TARGET = (TOKENIZER.format(side) for side in ("source", "target"))
TARGET_TOKENIZER = TARGET
"""Where we write the target's vocabulary if it is another than the source's."""


class MarianLayout(Layout):
    """Marian (Junczys-Dowmunt et al. 2018), as OPUS-MT trained it (Tiedemann et al. 2020)."""

    model_type = "marian"
    architecture = "MarianMTModel"
    task = "generation"
    defaults: ClassVar[Mapping[str, Any]] = {
        "d_model": 1024,
        "vocab_size": 58101,
        "decoder_vocab_size": None,
        **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (
            ("layers", 12), ("ffn_dim", 4096), ("attention_heads", 16))},
        "max_position_embeddings": 1024,
        "activation_function": "gelu",
        "dropout": 0.1,
        "scale_embedding": False,
        "pad_token_id": 58100,
        "decoder_start_token_id": 58100,
        "share_encoder_decoder_embeddings": True,
        "num_beams": 4,
    }  # fmt: skip
    required: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "activation_function": tuple(ACTIVATIONS),
        "scale_embedding": (True,),
        "tie_word_embeddings": (True,),
        "static_position_embeddings": (True,),
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "add_final_layer_norm": (False,),
    }
    # Their places are a formula, whether or not the table was saved.
    unused = r"\.embed_positions\.weight$"
    parts = ("encoder", "decoder")
    allows_pickle = True

    names: ClassVar[Mapping[str, str]] = {
        "self_attention.": "self_attn.",
        "cross_attention.": "encoder_attn.",
        "query_map.": "q_proj.",
        "key_map.": "k_proj.",
        "value_map.": "v_proj.",
        "feed_forward.hidden_map.": "fc1.",
        "feed_forward.output_map.": "fc2.",
        "output_map.": "out_proj.",
        "self_residual.norm.": "self_attn_layer_norm.",
        "cross_residual.norm.": "encoder_attn_layer_norm.",
        "feed_residual.norm.": "final_layer_norm.",
        "blocks.": "layers.",
        "embedding.": "embed_tokens.",
    }

    def read_vocabularies(self, folder: Path, config: dict[str, Any]) -> dict[str, Tokenizer]:
        """Read both sides' vocabularies: SentencePiece models, or what we once wrote."""
        sizes = {SOURCE: config["vocab_size"], TARGET: _target_size(config)}
        if (folder / "source.spm").exists():
            found = _read_sides(folder, sizes)
        elif (folder / "tokenizer.json").exists():
            names = ("tokenizer.json", TARGET_TOKENIZER)
            target = names[(folder / TARGET_TOKENIZER).exists()]
            found = {
                SOURCE: settle(load_tokenizer(folder / names[0]), sizes[SOURCE], folder),
                TARGET: settle(load_tokenizer(folder / target), sizes[TARGET], folder),
            }
        else:
            raise CheckpointError(
                f"{folder} must hold source.spm, target.spm and vocab.json, or tokenizer.json, "
                "but has neither."
            )
        if found[TARGET].sos != config["decoder_start_token_id"]:
            raise ConfigError(
                "`decoder_start_token_id` must be the token that starts a sentence "
                f"({found[TARGET].sos}), but is {config['decoder_start_token_id']}."
            )
        return found

    def to_recipe(
        self, config: dict[str, Any], vocabularies: dict[str, Tokenizer]
    ) -> dict[str, Any]:
        """Return our recipe of the model, as plain values."""
        is_joint = bool(config["share_encoder_decoder_embeddings"])
        sides = {
            side: {
                "kind": "transformer",
                "dim": config["d_model"],
                "num_layers": config[f"{side}_layers"],
                "num_heads": config[f"{side}_attention_heads"],
                "feed_forward_dim": config[f"{side}_ffn_dim"],
                "feed_forward": ACTIVATIONS[config["activation_function"]],
                "positions": "sinusoidal_halves",
                "max_length": config["max_position_embeddings"],
                "dropout": float(config["dropout"]),
            }
            for side in ("encoder", "decoder")
        }
        return {
            "task": self.task,
            "data": {"is_joint": is_joint},
            "model": {**sides, "ties": "all" if is_joint else "output"},
            "search": {"beams": config["num_beams"]},
        }

    def spellings(self, name: str, config: dict[str, Any]) -> tuple[str, ...]:
        """Return what our weight may be called there; the first is what we write."""
        if name == OUTPUT_BIAS:
            return ("final_logits_bias",)
        spelling = f"model.{rename(name, self.names)}"
        if not name.endswith("coder.embedding.weight"):
            return (spelling,)
        if config["share_encoder_decoder_embeddings"]:
            sides = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
            return ("model.shared.weight", *sides, "lm_head.weight")
        return (spelling, "lm_head.weight") if name.startswith("decoder") else (spelling,)

    def to_ours(self, name: str, tensor: Tensor, config: dict[str, Any]) -> Tensor:
        """Turn a weight of theirs into ours, which we call by this name."""
        return tensor[0] if name == OUTPUT_BIAS and tensor.dim() == 2 else tensor

    def absent(self, name: str, like: Tensor) -> Tensor | None:
        """Return zeros for the output's bias, which a folder may leave out."""
        return torch.zeros_like(like) if name == OUTPUT_BIAS else None

    def misfits(self, task: Task[Any]) -> list[str]:
        """List all that keeps a task of ours from being written in this layout."""
        model = task.recipe.model
        kinds = {"encoder": TransformerEncoderConfig, "decoder": TransformerDecoderConfig}
        faults = [
            f"`model.{side}.kind` must be 'transformer', but is '{getattr(model, side).kind}'"
            for side, kind in kinds.items()
            if type(getattr(model, side)) is not kind
        ]
        if faults:
            return faults
        first = model.encoder.feed_forward
        wanted = {
            "positions": "sinusoidal_halves",
            "feed_forward": first if first in ACTIVATIONS.values() else "relu",
        }
        for side in kinds:
            faults += misfits_of(getattr(model, side), wanted, place=f"model.{side}")
        if model.decoder.dim != model.encoder.dim:
            faults.append(
                f"`model.decoder.dim` must be the encoder's ({model.encoder.dim}), "
                f"but is {model.decoder.dim}"
            )
        if model.ties == "none":
            faults.append("`model.ties` must be 'output' or 'all', but is 'none'")
        if model.copies:
            faults.append(f"`model.copying.kind` must be 'none', but is '{model.copying.kind}'")
        return faults

    def to_config(self, task: Task[Any]) -> dict[str, Any]:
        """Return the `config.json` of a task that fits."""
        assert isinstance(task, Predictor)
        model, roles = task.recipe.model, task.target.tokenizer
        encoder, decoder = _sides(task)
        config = {
            "model_type": self.model_type,
            "architectures": [self.architecture],
            "is_encoder_decoder": True,
            "d_model": encoder.dim,
            "vocab_size": task.source.spec.vocab_size,
            "decoder_vocab_size": roles.vocab_size,
            "max_position_embeddings": encoder.max_length,
            "activation_function": encoder.feed_forward,
            "dropout": encoder.dropout,
            "attention_dropout": encoder.dropout,
            "activation_dropout": encoder.dropout,
            "scale_embedding": True,
            "static_position_embeddings": True,
            "share_encoder_decoder_embeddings": model.ties == "all",
            "pad_token_id": roles.pad,
            "eos_token_id": roles.eos,
            "decoder_start_token_id": roles.sos,
            "forced_eos_token_id": None,
        }
        for side, settings in (("encoder", encoder), ("decoder", decoder)):
            config[f"{side}_layers"] = settings.num_layers
            config[f"{side}_ffn_dim"] = settings.feed_forward_dim
            config[f"{side}_attention_heads"] = settings.num_heads
        return config

    def to_theirs(self, task: Task[Any], config: dict[str, Any]) -> dict[str, Tensor]:
        """Return the weights of a task that fits, under their names."""
        theirs: dict[str, Tensor] = {
            self.spellings(name, config)[0]: tensor
            for name, tensor in task.model.named_parameters()
        }
        theirs["final_logits_bias"] = theirs["final_logits_bias"][None]  # (1, V)
        return theirs

    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write the source's vocabulary, and the target's beside it if it is another."""
        assert isinstance(task, Predictor)
        assert isinstance(task.source, TextField)
        source, target = task.source.tokenizer, task.target.tokenizer
        end = source.token(source.eos)
        template = processors.TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, source.eos)]
        )
        settings = {"model_max_length": _sides(task)[0].max_length}
        write_tokenizer(source, folder, template, special={"eos_token": end}, settings=settings)
        target.save(folder / TARGET_TOKENIZER)

    def difference(self, task: Task[Any], theirs: Any) -> float:
        """Return how far apart the logits are at most, for two pairs of which one is padded."""
        options = theirs.config
        length = min(8, options.max_position_embeddings)
        ids = torch.arange(2 * length).view(2, length) % options.vocab_size
        mask = torch.arange(length) < torch.tensor([[length], [(length + 1) // 2]])
        ids = ids.masked_fill(~mask, options.pad_token_id)
        targets = torch.arange(2 * length).view(2, length) % options.decoder_vocab_size
        targets[:, 0] = options.decoder_start_token_id
        with torch.inference_mode():
            expected = theirs(
                input_ids=ids, attention_mask=mask.long(), decoder_input_ids=targets
            ).logits
            return float((task.model(ids, mask, targets).logits - expected).abs().max())


def _sides(task: Predictor) -> tuple[TransformerEncoderConfig, TransformerDecoderConfig]:
    encoder, decoder = task.recipe.model.encoder, task.recipe.model.decoder
    assert isinstance(encoder, TransformerEncoderConfig)
    assert isinstance(decoder, TransformerDecoderConfig)
    return encoder, decoder


def _target_size(config: dict[str, Any]) -> int:
    if config["share_encoder_decoder_embeddings"]:
        return int(config["vocab_size"])
    return int(config["decoder_vocab_size"] or config["vocab_size"])


def _read_sides(folder: Path, sizes: dict[str, int]) -> dict[str, Tokenizer]:
    """Read the two SentencePiece models over their vocabulary, or over one each."""
    has_two = (folder / "target_vocab.json").exists()
    files = {
        SOURCE: ("source.spm", "vocab.json"),
        TARGET: ("target.spm", "target_vocab.json" if has_two else "vocab.json"),
    }
    found = {}
    for side, (model, vocabulary) in files.items():
        ids = read_json(folder / vocabulary)
        if "<unk>" not in ids or sorted(ids.values()) != list(range(len(ids))):
            raise CheckpointError(
                f"{folder / vocabulary} must number its tokens from 0 without a gap, '<unk>' among "
                "them, but does not."
            )
        trained, num_lacking = build_unigram(read_pieces(folder / model), ids)
        if num_lacking:
            logger.info(
                "%s knows %s pieces that %s lacks; they are spelled by smaller ones.",
                model,
                f"{num_lacking:,}",
                vocabulary,
            )
        found[side] = settle(trained, sizes[side], folder)
    return found
