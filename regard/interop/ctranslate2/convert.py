"""Conversion of translation runs to the format of CTranslate2, kept in the cache."""

import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.attention.positions import POSITIONS
from regard.core.cached_folder import cache_folder, find_or_build
from regard.core.errors import ConfigError, ExportError
from regard.interop.huggingface.export import find_layout
from regard.interop.huggingface.layout import Config
from regard.interop.huggingface.marian import HALVES
from regard.models.ensemble import Ensemble
from regard.models.layers import EPSILON
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor
from regard.tasks.source_task import MAX_TOKENS

VERSION = 1
"""Number of the conversion, part of the key of the cache."""

Weights = Mapping[str, NDArray[Any]]
"""Weights by their names in a Marian checkpoint of Hugging Face."""


def import_ctranslate2(name: str = "ctranslate2") -> Any:
    """Import a module of CTranslate2; raise `ConfigError` if the package is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"`--engine ctranslate2` needs the package ctranslate2 ({error}). Install it: "
            "`pip install 'regard[ctranslate2]'`."
        ) from None


def convert(task: Predictor) -> Path:
    """Return the folder of a run in the format of CTranslate2, converted on first use.

    The weights are those of the export to Hugging Face, so the same runs are supported; neither
    `transformers` nor pickle is used. The vocabulary holds the token ids as text. Weights are
    stored in float32: quantisation is a choice of `ctranslate2.Translator`.

    Args:
        task: The run; `ExportError` names its settings that CTranslate2 lacks.
    """
    import_ctranslate2()
    try:
        layout = find_layout(task)
    except ExportError as error:
        raise ExportError(
            f"CTranslate2 takes runs that can be exported to Hugging Face. {error}"
        ) from None
    if isinstance(task.model, Ensemble):
        raise ConfigError(
            "`--engine ctranslate2` takes a single model, but several runs are given as an "
            "ensemble. Name one run."
        )
    config = layout.to_config(task)
    config |= {"num_positions": max_positions(task), "unk_token_id": task.target.tokenizer.unk}
    exported = layout.export_weights(task, config)
    weights = {name: one.detach().cpu().float().numpy() for name, one in exported.items()}
    folder = cache_folder() / "ctranslate2" / _checksum(weights, config)
    return find_or_build(folder, lambda path: _save(weights, config, path)).path


def max_positions(task: Task[Any]) -> int:
    """Return the maximum number of positions of a converted run."""
    longest: int = task.recipe.data.batch.max_length
    return max(MAX_TOKENS, longest)


def _checksum(weights: Weights, config: Config) -> str:
    """Return the SHA-256 checksum of weights and configuration."""
    version = import_ctranslate2().__version__
    digest = hashlib.sha256(json.dumps([VERSION, version, config], sort_keys=True).encode())
    for name, values in sorted(weights.items()):
        digest.update(f"{name} {values.shape} {values.dtype}".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _save(weights: Weights, config: Config, folder: Path) -> None:
    spec = _build_spec(weights, config)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def _build_spec(weights: Weights, config: Config) -> Any:
    """Return a specification of CTranslate2 with the weights of a Marian checkpoint."""
    specs = import_ctranslate2("ctranslate2.specs")
    activations = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}
    activation = getattr(
        import_ctranslate2("ctranslate2.specs.common_spec").Activation,
        activations[config["activation_function"]],
    )
    sides = {
        "encoder": specs.transformer_spec.TransformerEncoderSpec,
        "decoder": specs.transformer_spec.TransformerDecoderSpec,
    }
    built = {
        side: kind(
            config[f"{side}_layers"],
            config[f"{side}_attention_heads"],
            pre_norm=False,
            activation=activation,
        )
        for side, kind in sides.items()
    }
    spec = specs.TransformerSpec(built["encoder"], built["decoder"])
    size = config["vocab_size"]
    spec.register_source_vocabulary([str(index) for index in range(size)])
    spec.register_target_vocabulary([str(index) for index in range(config["decoder_vocab_size"])])
    spec.config.unk_token = str(config["unk_token_id"])
    spec.config.bos_token = spec.config.decoder_start_token = str(config["decoder_start_token_id"])
    spec.config.eos_token = str(config["eos_token_id"])
    spec.config.layer_norm_epsilon = EPSILON
    for side in sides:
        _fill_side(getattr(spec, side), weights, config, side=side)
    spec.decoder.projection.weight = _embedding(weights, "decoder")
    if "final_logits_bias" in weights:
        spec.decoder.projection.bias = weights["final_logits_bias"][0]
    return spec


def _embedding(weights: Weights, side: str) -> NDArray[Any]:
    own = f"model.{side}.embed_tokens.weight"
    return weights[own if own in weights else "model.shared.weight"]


def _fill_side(spec: Any, weights: Weights, config: Config, *, side: str) -> None:
    """Set the weights of the encoder or the decoder."""
    dim = config["d_model"]
    spec.scale_embeddings = dim**0.5
    positions = POSITIONS[HALVES](dim=dim, num_heads=1).embed(torch.arange(config["num_positions"]))
    assert positions is not None
    spec.position_encodings.encodings = positions.numpy()
    embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    embeddings.weight = _embedding(weights, side)
    attentions = {"self_attn": "self_attention"}
    if side == "decoder":
        attentions["encoder_attn"] = "attention"
    for index, layer in enumerate(spec.layer):
        prefix = f"model.{side}.layers.{index}"
        for theirs, ours in attentions.items():
            attention = getattr(layer, ours)
            _fill_attention(attention, weights, f"{prefix}.{theirs}")
            _fill_norm(attention.layer_norm, weights, f"{prefix}.{theirs}_layer_norm")
        for name, linear in (("fc1", layer.ffn.linear_0), ("fc2", layer.ffn.linear_1)):
            linear.weight = weights[f"{prefix}.{name}.weight"]
            linear.bias = weights[f"{prefix}.{name}.bias"]
        _fill_norm(layer.ffn.layer_norm, weights, f"{prefix}.final_layer_norm")


def _fill_attention(spec: Any, weights: Weights, prefix: str) -> None:
    """Set the projections: queries, keys and values joined, or keys and values alone."""
    groups = [["q_proj", "k_proj", "v_proj"], ["out_proj"]]
    if len(spec.linear) == 3:  # cross-attention
        groups = [["q_proj"], ["k_proj", "v_proj"], ["out_proj"]]
    for linear, names in zip(spec.linear, groups, strict=True):
        for kind in ("weight", "bias"):
            parts = [weights[f"{prefix}.{name}.{kind}"] for name in names]
            setattr(linear, kind, np.concatenate(parts))


def _fill_norm(spec: Any, weights: Weights, prefix: str) -> None:
    spec.gamma = weights[f"{prefix}.weight"]
    spec.beta = weights[f"{prefix}.bias"]
