"""Peers of the benchmark compute the same function as our models, given the same weights."""

import pytest
import torch

from regard.bench.peers.convolutional import PlainConvolutional
from regard.bench.peers.recurrent import PlainRecurrent
from regard.bench.peers.table import PEERS
from regard.bench.peers.transformer import PlainTransformer
from regard.bench.sizes import SIZES, RandomBatches, build_task
from regard.core.specs import TextSpec
from regard.models.build import build_model
from tests.bench_sizes import CONVOLUTIONAL, RECURRENT, TRANSFORMER

CPU = torch.device("cpu")


def copy_transformer(ours, peer):
    """Copy blocks, one by one; queries, keys and values are one matrix in torch."""
    for side in ("encoder", "decoder"):
        layers = getattr(peer.transformer, side).layers
        for block, layer in zip(getattr(ours, side).blocks, layers, strict=True):
            copy_attention(block.self_attention, layer.self_attn)
            copy(block.feed_forward.hidden_map, layer.linear1)
            copy(block.feed_forward.output_map, layer.linear2)
            residuals = [block.self_residual, block.feed_residual]
            if side == "decoder":
                copy_attention(block.cross_attention, layer.multihead_attn)
                residuals.insert(1, block.cross_residual)
            for number, residual in enumerate(residuals, start=1):
                copy(residual.norm, getattr(layer, f"norm{number}"))
    copy(ours.decoder.output, peer.output)


def copy_attention(ours, peer):
    maps = (ours.query_map, ours.key_map, ours.value_map)
    peer.in_proj_weight.data.copy_(torch.cat([one.weight for one in maps]))
    peer.in_proj_bias.data.copy_(torch.cat([one.bias for one in maps]))
    copy(ours.output_map, peer.out_proj)


def copy_recurrent(ours, peer):
    encoder, decoder = ours.encoder, ours.decoder
    copy(encoder.recurrence, peer.encoder)
    copy(decoder.bridge.maps[0], peer.bridge)
    score = decoder.attention.score
    for name in ("query_map", "key_map"):
        copy(getattr(score, name), getattr(peer, name))
    copy(score.weight, peer.score)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        weights = getattr(decoder.recurrence.sequence, f"{name}_l0")
        getattr(peer.cell, name).data.copy_(weights)
    copy(decoder.readout.joint_map, peer.readout)
    copy(decoder.output, peer.output)


def copy_convolutional(ours, peer):
    for name in ("encoder", "decoder"):
        side, theirs = getattr(ours, name), getattr(peer, name)
        theirs.positions.weight.data.copy_(next(side.positions.parameters()))
        copy(side.input_map, theirs.input_map)
        copy(side.output_map, theirs.output_map)
    for block, theirs in zip(ours.encoder.blocks, peer.encoder.convolutions, strict=True):
        copy(block.convolution, theirs)
    for number, block in enumerate(ours.decoder.blocks):
        copy(block.convolution.convolution, peer.decoder.convolutions[number])
        copy(block.query_map, peer.decoder.query_maps[number])
        copy(block.attention.score.key_map, peer.decoder.key_maps[number])
        copy(block.context_map, peer.decoder.context_maps[number])
    copy(ours.decoder.output, peer.output)


def copy(ours, peer):
    """Copy the weights of a layer; those of the output layer are those of the embeddings."""
    peer.load_state_dict(ours.state_dict())


COPIES = {
    "transformer": (TRANSFORMER, PlainTransformer, copy_transformer),
    "recurrent": (RECURRENT, PlainRecurrent, copy_recurrent),
    "convolutional": (CONVOLUTIONAL, PlainConvolutional, copy_convolutional),
}


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("kind", COPIES)
def test_peer_with_our_weights_has_our_logits(kind, is_padded):
    size, build, copy_weights = COPIES[kind]
    task = build_task(size, size.load("fp32"), device=CPU)
    batches = RandomBatches(size, seed=1, is_padded=is_padded)
    batch = next(batches.epoch(0))
    peer = build(task.recipe.model, size.vocab_size, batches.pad).eval()
    copy_weights(task.model, peer)
    inputs, mask = batch.target[:, :-1], batch.source_mask
    # With gradients, since torch has another implementation of encoders without.
    ours = task.model(batch.source, mask, inputs).logits
    theirs = peer(batch.source, inputs, mask if is_padded else None)
    torch.testing.assert_close(theirs, ours, atol=2e-4, rtol=1e-3)


def count(model):
    return sum(one.numel() for one in model.parameters() if one.requires_grad)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("peer", PEERS)
def test_peer_has_as_many_parameters_as_our_model(name, peer):
    if peer == "hf":
        pytest.importorskip("transformers")
    size = SIZES[name]
    config = size.load().model
    build = PEERS[peer].models.get(type(config.encoder))
    if build is None:
        assert (name, peer) in {("bahdanau2015", "hf"), ("gehring2017", "hf")}
        return
    with torch.device("meta"):
        ours = build_model(
            config, source=TextSpec(size.vocab_size), target_vocab_size=size.vocab_size
        )
        theirs = build(config, size.vocab_size, 0)
    assert count(theirs) == pytest.approx(count(ours), rel=0.01)
