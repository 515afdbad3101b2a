"""Matrix products of a training step, counted from the sizes of the model."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from regard.models.build import ModelConfig
from regard.models.decoders.bahdanau import BahdanauDecoderConfig
from regard.models.decoders.convolutional import ConvolutionDecoderConfig
from regard.models.decoders.transformer import TransformerDecoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.transformer import BlockConfig

PASSES = 3
"""Products of a training step per product of the forward pass: itself, and the gradients of both
of its factors."""

GATES = {"vanilla": 1, "gru": 3, "lstm": 4}
"""Matrices of a recurrent cell."""


@dataclass(frozen=True)
class Product:
    """Products of matrices of one shape: (rows, inner) by (inner, columns)."""

    rows: int
    inner: int
    columns: int
    batch: int = 1
    """Matrices in one call."""
    count: int = 1
    """Calls in a forward pass."""

    @property
    def flops(self) -> int:
        """Floating-point operations of a forward pass: two per multiplication and sum."""
        return 2 * self.rows * self.inner * self.columns * self.batch * self.count

    def times(self, num: int) -> "Product":
        """Return the product, called `num` times as often."""
        return replace(self, count=self.count * num)


@dataclass(frozen=True)
class Shape:
    """Shape of a batch, with the width of the memory and the size of the vocabulary."""

    num_pairs: int
    source_length: int
    target_length: int
    vocab_size: int
    memory_dim: int

    @property
    def num_sources(self) -> int:
        """Number of source positions."""
        return self.num_pairs * self.source_length

    @property
    def num_targets(self) -> int:
        """Number of target positions."""
        return self.num_pairs * self.target_length


def step_flops(products: list[Product]) -> int:
    """Return the floating-point operations of a training step: forward and backward."""
    return PASSES * sum(product.flops for product in products)


def forward_products(
    config: ModelConfig, *, num_pairs: int, length: int, vocab_size: int
) -> list[Product]:
    """Return the matrix products of a forward pass over unpadded sources and targets.

    Attention is counted in full: causal masks save nothing. Element-wise operations, softmax and
    the lookup of embeddings are left out.
    """
    encoder, decoder = config.encoder, config.decoder
    shape = Shape(num_pairs, length, length, vocab_size, memory_dim=_memory_dim(encoder))
    return ENCODERS[type(encoder)](encoder, shape) + DECODERS[type(decoder)](decoder, shape)


def _memory_dim(encoder: object) -> int:
    if isinstance(encoder, RnnEncoderConfig):
        return encoder.dim * (2 if encoder.is_bidirectional else 1)
    if isinstance(encoder, ConvolutionEncoderConfig):
        return encoder.embedding_dim
    assert isinstance(encoder, TransformerEncoderConfig)
    return encoder.dim


def _attention(config: BlockConfig, shape: Shape, *, queries: int, keys: int) -> list[Product]:
    """Return the products of one multi-head attention."""
    head_dim = config.dim // config.num_heads
    num_heads = shape.num_pairs * config.num_heads
    key_dim = head_dim * (config.num_key_heads or config.num_heads)
    return [
        Product(shape.num_pairs * queries, config.dim, config.dim, count=2),
        Product(shape.num_pairs * keys, config.dim, key_dim, count=2),
        Product(queries, head_dim, keys, batch=num_heads),
        Product(queries, keys, head_dim, batch=num_heads),
    ]


def _feed_forward(config: BlockConfig, positions: int) -> list[Product]:
    num_inputs = 2 if config.feed_forward == "gated" else 1
    return [
        Product(positions, config.dim, config.feed_forward_dim, count=num_inputs),
        Product(positions, config.feed_forward_dim, config.dim),
    ]


def _times(num: int, products: list[Product]) -> list[Product]:
    return [product.times(num) for product in products]


def _transformer_encoder(config: TransformerEncoderConfig, shape: Shape) -> list[Product]:
    length = shape.source_length
    block = _attention(config, shape, queries=length, keys=length)
    return _times(config.num_layers, block + _feed_forward(config, shape.num_sources))


def _transformer_decoder(config: TransformerDecoderConfig, shape: Shape) -> list[Product]:
    source, target = shape.source_length, shape.target_length
    block = [
        *_attention(config, shape, queries=target, keys=target),
        *_attention(config, shape, queries=target, keys=source),
        *_feed_forward(config, shape.num_targets),
    ]
    output = Product(shape.num_targets, config.dim, shape.vocab_size)
    return [*_times(config.num_layers, block), output]


def _rnn_encoder(config: RnnEncoderConfig, shape: Shape) -> list[Product]:
    num_directions = 2 if config.is_bidirectional else 1
    gates = GATES[config.cell] * config.dim
    products = []
    for layer in range(config.num_layers):
        input_dim = num_directions * config.dim if layer else config.embedding_dim
        products += [
            Product(shape.num_sources, input_dim, gates, count=num_directions),
            Product(shape.num_pairs, config.dim, gates, count=num_directions * shape.source_length),
        ]
    return products


def _bahdanau_decoder(config: BahdanauDecoderConfig, shape: Shape) -> list[Product]:
    num, source, memory_dim = shape.num_pairs, shape.source_length, shape.memory_dim
    gates, hidden = GATES[config.cell] * config.dim, config.attention_dim
    input_dim = config.embedding_dim + memory_dim
    lower_dims = [input_dim, *[config.dim] * (config.num_layers - 1)]
    step = [
        Product(num, config.dim, hidden),  # query of the additive score
        Product(num * source, hidden, 1),  # scores
        Product(1, source, memory_dim, batch=num),  # context
        *(Product(num, lower_dim, gates) for lower_dim in lower_dims),
        Product(num, config.dim, gates, count=config.num_layers),
    ]
    readout_dim = config.dim + input_dim
    return [
        Product(num, memory_dim, config.dim, count=config.num_layers),  # initial states
        Product(shape.num_sources, memory_dim, hidden),  # keys of the additive score
        *_times(shape.target_length, step),
        Product(shape.num_targets, readout_dim, 2 * config.embedding_dim),
        Product(shape.num_targets, config.embedding_dim, shape.vocab_size),
    ]


def _convolution_encoder(config: ConvolutionEncoderConfig, shape: Shape) -> list[Product]:
    num, dim, embedding_dim = shape.num_sources, config.dim, config.embedding_dim
    return [
        Product(num, embedding_dim, dim),
        Product(num, config.kernel * dim, 2 * dim, count=config.num_layers),
        Product(num, dim, embedding_dim),
    ]


def _convolution_decoder(config: ConvolutionDecoderConfig, shape: Shape) -> list[Product]:
    num, source, target = shape.num_pairs, shape.source_length, shape.target_length
    dim, embedding_dim, memory_dim = config.dim, config.embedding_dim, shape.memory_dim
    block = [
        Product(shape.num_targets, config.kernel * dim, 2 * dim),
        Product(shape.num_targets, dim, embedding_dim),  # queries
        Product(shape.num_sources, memory_dim, embedding_dim),  # keys of the general score
        Product(target, embedding_dim, source, batch=num),  # scores
        Product(target, source, memory_dim, batch=num),  # contexts
        Product(shape.num_targets, memory_dim, dim),
    ]
    return [
        Product(shape.num_targets, embedding_dim, dim),
        *_times(config.num_layers, block),
        Product(shape.num_targets, dim, embedding_dim),
        Product(shape.num_targets, embedding_dim, shape.vocab_size),
    ]


ENCODERS: dict[type, Callable[..., list[Product]]] = {
    TransformerEncoderConfig: _transformer_encoder,
    RnnEncoderConfig: _rnn_encoder,
    ConvolutionEncoderConfig: _convolution_encoder,
}
DECODERS: dict[type, Callable[..., list[Product]]] = {
    TransformerDecoderConfig: _transformer_decoder,
    BahdanauDecoderConfig: _bahdanau_decoder,
    ConvolutionDecoderConfig: _convolution_decoder,
}
