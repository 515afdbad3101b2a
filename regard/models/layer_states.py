"""Hidden states of every layer of an encoder, embeddings included."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from regard.core.errors import ConfigError
from regard.core.tables import one_of
from regard.models.encoders.bert import AlbertEncoder, BertEncoder
from regard.models.encoders.bottleneck import BottleneckEncoder
from regard.models.encoders.convolutional import ConvolutionEncoder
from regard.models.encoders.rnn import RnnEncoder, reversed_order
from regard.models.encoders.transformer import TransformerEncoder
from regard.models.interfaces import Encoder
from regard.models.recurrent import run_padded, take_positions

Outputs = dict[str, list[Tensor]]
"""Outputs of modules by name, in the order of the calls."""


def layer_states(encoder: Encoder, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Encode sources and return the states of every layer, (B, S, D) each, embeddings first.

    The last states are those of the memory, before pooling or a bottleneck. The encoder must be in
    eval mode.

    Args:
        encoder: One of `LAYERS`, with or without a bottleneck.
        values: (B, S) token ids.
        mask: (B, S), True = a real position.
    """
    check_layers(encoder)
    inner = _before_bottleneck(encoder)
    return LAYERS[type(inner)](inner, values, mask)


def check_layers(encoder: Encoder) -> None:
    """Raise `ConfigError` if the layers of an encoder are not supported."""
    inner = _before_bottleneck(encoder)
    if type(inner) not in LAYERS:
        known = one_of(kind.__name__ for kind in LAYERS)
        raise ConfigError(
            f"Single layers can be inspected in encoders of text ({known}), but this run has the "
            f"encoder {type(inner).__name__}. Use the states of its last layer."
        )


def _before_bottleneck(encoder: Encoder) -> Encoder:
    return encoder.encoder if isinstance(encoder, BottleneckEncoder) else encoder


def _of_blocks(encoder: Any, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Return the input of the first block and the output of each, the last after the final norm."""
    first = getattr(encoder, "widen", encoder.dropout)
    blocks = {f"block {index}": block for index, block in enumerate(encoder.blocks)}
    with _record_outputs({"first": first, **blocks, "norm": encoder.norm}) as outputs:
        encoder(values, mask)
    # A block that is applied several times counts as several layers.
    block_states = [states for name in blocks for states in outputs[name]]
    return [outputs["first"][0], *block_states[:-1], outputs["norm"][-1]]


def _of_convolutions(encoder: ConvolutionEncoder, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Return the inputs of dropout (embeddings, then the inputs of each layer) and the output."""
    with _record_outputs({"dropout": encoder.dropout, "output": encoder.output_map}) as outputs:
        encoder(values, mask)
    embedded, _, *inputs = outputs["dropout"]
    return [embedded, *inputs, outputs["output"][0]]


def _of_recurrence(encoder: RnnEncoder, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Run each layer separately, since one kernel runs all layers of the encoder."""
    with _record_outputs({"dropout": encoder.dropout}) as outputs:
        encoder(values, mask)
    mask = mask.to(values.device)
    states = outputs["dropout"][0]
    layers = [states]
    for number in range(encoder.config.num_layers):
        states, _ = run_padded(_single_layer(encoder.recurrence, number), states, mask)
        layers.append(states)
    if not encoder.config.is_reversed:
        return layers
    order = reversed_order(mask)
    return [take_positions(states, order) for states in layers]


def _single_layer(recurrence: nn.RNNBase, number: int) -> nn.RNNBase:
    """Return one layer of a recurrent stack as a separate module."""
    directions = 2 if recurrence.bidirectional else 1
    width = recurrence.hidden_size * directions if number else recurrence.input_size
    # On the meta device, since initialising weights would advance the random number generator.
    kind: Any = type(recurrence)
    layer: nn.RNNBase = kind(
        width,
        recurrence.hidden_size,
        batch_first=True,
        bidirectional=recurrence.bidirectional,
        device="meta",
    )
    weights = recurrence.state_dict()
    selected = {name: weights[name.replace("_l0", f"_l{number}")] for name in layer.state_dict()}
    layer.to_empty(device=selected["weight_hh_l0"].device).load_state_dict(selected)
    return layer


@contextmanager
def _record_outputs(modules: dict[str, nn.Module]) -> Iterator[Outputs]:
    """Record the outputs of modules while the block runs."""
    outputs: Outputs = {name: [] for name in modules}
    handles = [
        module.register_forward_hook(
            lambda _module, _inputs, output, name=name: outputs[name].append(output)
        )
        for name, module in modules.items()
    ]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


LAYERS: dict[type[Encoder], Callable[[Any, Tensor, Tensor], list[Tensor]]] = {
    RnnEncoder: _of_recurrence,
    ConvolutionEncoder: _of_convolutions,
    TransformerEncoder: _of_blocks,
    BertEncoder: _of_blocks,
    AlbertEncoder: _of_blocks,
}
"""Functions that return the states of every layer, by encoder class."""
