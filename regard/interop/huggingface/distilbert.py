"""The layout of DistilBERT: BERT with fewer layers, no segments, and names of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar

from regard.interop.huggingface.bert import BertLayout
from regard.models.encoders.bert import BertEncoderConfig

EPSILON = 1e-12
"""What its norms add to the variance; no option says so."""


class DistilBertLayout(BertLayout):
    """DistilBERT (Sanh et al. 2019)."""

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
    # `sinusoidal_pos_embds` only says how the table of places began.
    required: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "activation": ("gelu",),
        "tie_word_embeddings": (True,),
    }
    unused = r"\.position_ids$"
    prefix = "distilbert."
    names: ClassVar[Mapping[str, str]] = {
        "encoder.embedding.": "embeddings.word_embeddings.",
        "encoder.positions.embedding.": "embeddings.position_embeddings.",
        "encoder.embedding_norm.": "embeddings.LayerNorm.",
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

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Fill up what a `config.json` leaves out, and say the same in BERT's words."""
        config = super().complete(given)
        return config | {
            "hidden_size": config["dim"],
            "num_hidden_layers": config["n_layers"],
            "num_attention_heads": config["n_heads"],
            "intermediate_size": config["hidden_dim"],
            "hidden_dropout_prob": config["dropout"],
            "layer_norm_eps": EPSILON,
        }

    def _num_segments(self, config: dict[str, Any]) -> int:
        return 0

    def _wanted(self, encoder: BertEncoderConfig) -> dict[str, Any]:
        return {"num_segments": 0, "norm_epsilon": EPSILON}

    def _sizes(self, encoder: BertEncoderConfig) -> dict[str, Any]:
        return {
            "dim": encoder.dim,
            "n_layers": encoder.num_layers,
            "n_heads": encoder.num_heads,
            "hidden_dim": encoder.feed_forward_dim,
            "activation": "gelu",
            "dropout": encoder.dropout,
            "attention_dropout": encoder.dropout,
        }
