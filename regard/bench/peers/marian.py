"""Marian of Hugging Face `transformers`, with the sizes of an encoder–decoder of this package."""

import importlib

from torch import Tensor, nn

from regard.models.build import ModelConfig
from regard.models.decoders.transformer import TransformerDecoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig


class Marian(nn.Module):
    """`MarianMTModel` with `sdpa` attention and the interface of peers.

    Args:
        config: Hyperparameters of a Transformer.
        vocab_size: Size of the joint vocabulary.
        pad: Id of the padding token.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, pad: int) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        assert isinstance(encoder, TransformerEncoderConfig)
        assert isinstance(decoder, TransformerDecoderConfig)
        transformers = importlib.import_module("transformers")
        settings = transformers.MarianConfig(
            vocab_size=vocab_size,
            d_model=encoder.dim,
            encoder_layers=encoder.num_layers,
            decoder_layers=decoder.num_layers,
            encoder_attention_heads=encoder.num_heads,
            decoder_attention_heads=decoder.num_heads,
            encoder_ffn_dim=encoder.feed_forward_dim,
            decoder_ffn_dim=decoder.feed_forward_dim,
            max_position_embeddings=encoder.max_length,
            activation_function="relu",
            dropout=encoder.dropout,
            attention_dropout=encoder.dropout,
            activation_dropout=encoder.dropout,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            tie_word_embeddings=True,
            pad_token_id=pad,
            decoder_start_token_id=pad,
            attn_implementation="sdpa",
        )
        self.model = transformers.MarianMTModel(settings)

    def forward(self, source: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Return the logits (B, T, V) of source (B, S), decoder inputs (B, T), mask (B, S)."""
        logits: Tensor = self.model(
            input_ids=source, attention_mask=mask, decoder_input_ids=targets, use_cache=False
        ).logits
        return logits
