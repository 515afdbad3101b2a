"""What an encoder knows layer by layer: its embeddings, and the states after each of its layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from regard.core.errors import ConfigError
from regard.core.tables import one_of
from regard.models.encoders.bert import AlbertEncoder, BertEncoder
from regard.models.encoders.bottleneck import BottleneckEncoder
from regard.models.encoders.convolutional import ConvolutionEncoder
from regard.models.encoders.rnn import RnnEncoder, reading_order
from regard.models.encoders.transformer import TransformerEncoder
from regard.models.interfaces import Encoder
from regard.models.recurrent import run_packed

Found = dict[str, list[Tensor]]
"""What passed through parts of a model, by the name of the part, in the order of the calls."""


def layer_states(encoder: Encoder, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Read sources and return the states of every layer, (B, S, D) each, embeddings first.

    The last are those that a decoder sees, before neighbours share a state or a bottleneck makes
    them narrow. To be called in evaluation mode, where dropout does nothing.

    Args:
        encoder: One of `LAYERS`, with or without a bottleneck after it.
        values: (B, S) token ids.
        mask: (B, S), True = a real position.
    """
    check_layers(encoder)
    wide = _before_bottleneck(encoder)
    return LAYERS[type(wide)](wide, values, mask)


def check_layers(encoder: Encoder) -> None:
    """Raise a `ConfigError` if the layers of an encoder cannot be told apart."""
    wide = _before_bottleneck(encoder)
    if type(wide) not in LAYERS:
        known = one_of(kind.__name__ for kind in LAYERS)
        raise ConfigError(
            f"Single layers can be looked at in encoders of text ({known}), but this run has the "
            f"encoder {type(wide).__name__}. Use what it ends in."
        )


def _before_bottleneck(encoder: Encoder) -> Encoder:
    return encoder.encoder if isinstance(encoder, BottleneckEncoder) else encoder


def _of_blocks(encoder: Any, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Return what goes into the first block and out of each; a norm may follow the last one."""
    first = getattr(encoder, "widen", encoder.dropout)
    blocks = {f"block {number}": block for number, block in enumerate(encoder.blocks)}
    with _outputs({"first": first, **blocks, "norm": encoder.norm}) as found:
        encoder(values, mask)
    # One block that is run several times is several layers.
    after = [states for name in blocks for states in found[name]]
    return [found["first"][0], *after[:-1], found["norm"][-1]]


def _of_convolutions(encoder: ConvolutionEncoder, values: Tensor, mask: Tensor) -> list[Tensor]:
    """Dropout sees the embeddings, then what each layer reads; the last states follow it."""
    with _outputs({"dropout": encoder.dropout, "output": encoder.output_map}) as found:
        encoder(values, mask)
    embedded, _, *read = found["dropout"]
    return [embedded, *read, found["output"][0]]


def _of_recurrence(encoder: RnnEncoder, values: Tensor, mask: Tensor) -> list[Tensor]:
    """One kernel runs all layers, so they are run once more, each alone."""
    with _outputs({"dropout": encoder.dropout}) as found:
        encoder(values, mask)
    lengths = mask.sum(1).cpu()
    states = found["dropout"][0]
    layers = [states]
    for number in range(encoder.config.num_layers):
        states, _ = run_packed(_single_layer(encoder.recurrence, number), states, lengths)
        layers.append(states)
    if not encoder.config.is_reversed:
        return layers
    order = reading_order(lengths, values.shape[1]).to(values.device)[..., None]  # (B, S, 1)
    return [states.gather(1, order.expand_as(states)) for states in layers]


def _single_layer(recurrence: nn.RNNBase, number: int) -> nn.RNNBase:
    """Return one layer of a stack as a stack of its own."""
    directions = 2 if recurrence.bidirectional else 1
    width = recurrence.hidden_size * directions if number else recurrence.input_size
    # Without weights first: drawing them would change what chance gives afterwards.
    kind: Any = type(recurrence)
    alone: nn.RNNBase = kind(
        width,
        recurrence.hidden_size,
        batch_first=True,
        bidirectional=recurrence.bidirectional,
        device="meta",
    )
    weights = recurrence.state_dict()
    own = {name: weights[name.replace("_l0", f"_l{number}")] for name in alone.state_dict()}
    alone.to_empty(device=own["weight_hh_l0"].device).load_state_dict(own)
    return alone


@contextmanager
def _outputs(parts: dict[str, nn.Module]) -> Iterator[Found]:
    """Keep what parts of a model return for as long as the block lasts."""
    found: Found = {name: [] for name in parts}
    handles = [
        part.register_forward_hook(
            lambda _part, _inputs, output, name=name: found[name].append(output)
        )
        for name, part in parts.items()
    ]
    try:
        yield found
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
"""Encoders whose layers can be told apart, and how."""
