import math
from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.batching import BatchConfig
from regard.data.example import Example
from regard.models.build import ModelConfig
from regard.models.decoders.xu2015 import HardXuDecoderConfig
from regard.runs.folder import WEIGHTS
from regard.runs.train import train
from regard.tasks.generation.guided_alignment import alignment_loss, find_attention, token_links
from regard.tasks.generation.recipe import AlignmentConfig, Recipe, RewardConfig
from regard.training.checkpoint import read_weights

GUIDED = ("alignment.weight=1", "train.max_epochs=3")
EXAMPLES = [
    Example("a b c", "c b a", alignment=((0, 2), (1, 1), (2, 0))),
    Example("a b", "b a", alignment=((0, 1), (1, 0))),
]


@pytest.fixture(scope="module")
def guided(tiny_run):
    """The tiny run with the setting, and batches of two pairs with links."""
    task = tiny_run.predictor
    recipe = replace(task.recipe, alignment=AlignmentConfig(weight=1.0))
    task = type(task)(recipe, task.model, task.fields, device=task.device)
    task.model.eval()
    return task


def batches(task, examples, **settings):
    task = type(task)(
        replace(
            task.recipe,
            data=replace(task.recipe.data, batch=BatchConfig(max_tokens=400, **settings)),
        ),
        task.model,
        task.fields,
        device=task.device,
    )
    return list(task.training_batches(examples).epoch(0))


def test_loss_is_the_cross_entropy_of_the_links():
    weights = torch.tensor([[[[0.25, 0.75], [0.5, 0.5]]]])
    links = torch.tensor([[[0.5, 0.5], [0.0, 0.0]]])
    expected = -(0.5 * math.log(0.25) + 0.5 * math.log(0.75))
    assert alignment_loss(weights, links).tolist() == [[pytest.approx(expected), 0.0]]


def test_loss_of_a_position_outside_a_window_is_finite():
    assert alignment_loss(torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 2) / 2).isfinite().all()


def test_links_of_a_batch_are_rows_that_sum_to_one(guided):
    (batch,) = batches(guided, EXAMPLES)
    rows = batch.links[batch.rows.index(0)]
    assert rows.shape == (batch.target.shape[1] - 1, batch.source.shape[1])
    assert rows.argmax(-1)[:3].tolist() == [2, 1, 0]
    assert rows.sum(-1).tolist() == [1, 1, 1, 0]  # the end token has no link


def test_loss_of_a_pair_does_not_depend_on_the_others(guided):
    (both,) = batches(guided, EXAMPLES)
    alone = batches(guided, EXAMPLES, max_sentences=1)
    total = sum(guided.loss(batch).total for batch in alone)
    assert float(guided.loss(both).total.detach()) == pytest.approx(float(total.detach()), rel=1e-5)


def test_loss_adds_the_term_and_leaves_the_likelihood(guided):
    (batch,) = batches(guided, EXAMPLES)
    plain = guided.loss(replace(batch, links=None))
    with_links = guided.loss(batch)
    assert with_links.total > plain.total
    assert with_links.nll == plain.nll


def test_tokens_of_a_word_share_its_links(guided, monkeypatch):
    tokenizer = guided.source.tokenizer
    indices = {"a b": [0, 0, 1], "b a": [0, 1, 1]}
    monkeypatch.setattr(type(tokenizer), "word_index", lambda self, text: indices[text])
    (links,) = token_links(guided, EXAMPLES, [1], sources=[[0] * 4], targets=[[0] * 5])
    assert set(links) == {(0, 1), (0, 2), (1, 1), (1, 2), (2, 0)}


def test_links_of_truncated_tokens_are_dropped(guided):
    (links,) = token_links(guided, EXAMPLES, [0], sources=[[0] * 3], targets=[[0] * 5])
    assert set(links) == {(0, 2), (1, 1)}


def test_training_improves_the_alignment(reverse_files, tmp_path):
    errors = [
        train(reverse_files.request(tmp_path / str(weight), *GUIDED, f"alignment.weight={weight}"))
        .evaluation.results["aer"]
        .value
        for weight in (0, 1)
    ]
    assert errors[1] < errors[0]


def test_resumed_weights_equal_those_of_an_uninterrupted_run(
    reverse_files, interrupted_at, tmp_path
):
    whole = train(reverse_files.request(tmp_path / "whole", *GUIDED))
    request = reverse_files.request(tmp_path / "parts", *GUIDED)
    train(request, display=interrupted_at(4))
    train(replace(request, is_resumed=True, recipe=None, settings=()))
    theirs = read_weights(tmp_path / "parts" / WEIGHTS)
    for name, tensor in read_weights(whole.folder / WEIGHTS).items():
        assert torch.equal(tensor, theirs[name]), name


@pytest.mark.parametrize("kind", ["luong", "xu_soft", "transformer", "convolution"])
def test_every_decoder_with_attention_can_be_guided(reverse_files, tmp_path, kind):
    settings = (
        "data.batch.max_tokens=200",
        "model.encoder.dim=16",
        f"model.decoder.kind={kind}",
        "model.decoder.dim=16",
        "train.max_steps=2",
        "validation.metric=loss",
        "alignment.weight=1",
    )
    settings += ("model.decoder.num_heads=2", "alignment.heads=[1,2]") * (kind == "transformer")
    request = replace(reverse_files.request(tmp_path), settings=settings)
    assert train(request).summary.progress.step == 2


def test_default_layer_is_the_last_but_one(reverse_files, tmp_path):
    settings = ("model.decoder.kind=transformer", "model.decoder.dim=16", "model.encoder.dim=16")
    settings += ("model.decoder.num_layers=3", "train.max_steps=1", "model.decoder.num_heads=2")
    task = train(replace(reverse_files.request(tmp_path), settings=settings)).predictor
    assert find_attention(task) is task.model.decoder.blocks[1].cross_attention


def test_decoder_without_attention_is_refused(reverse_files, tmp_path):
    settings = ("model.decoder.kind=sutskever", "alignment.weight=1", "model.decoder.dim=256")
    with pytest.raises(ConfigError, match="needs a decoder with attention.*'sutskever'"):
        train(replace(reverse_files.request(tmp_path), settings=settings))


def test_checkpointed_activations_are_refused(reverse_files, tmp_path):
    settings = ("alignment.weight=1", "train.checkpoint_activations=true")
    with pytest.raises(ConfigError, match="`train.checkpoint_activations` must be false"):
        train(reverse_files.request(tmp_path, *settings))


def test_pairs_without_links_are_refused(guided):
    with pytest.raises(ConfigError, match="they have none. Name a Pharaoh file"):
        guided.training_batches([Example("a b", "b a")])


def test_layer_that_does_not_exist_is_refused(reverse_files, tmp_path):
    with pytest.raises(ConfigError, match="`alignment.layer` must be at most 1"):
        train(reverse_files.request(tmp_path, *GUIDED, "alignment.layer=2"))


def test_head_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="heads from 1 to 1, but is \\[2\\]"):
        Recipe(alignment=AlignmentConfig(weight=1, heads=(2,)))


def test_sampled_attention_is_refused():
    model = ModelConfig(decoder=HardXuDecoderConfig())
    with pytest.raises(ConfigError, match="'xu_hard' are sampled"):
        Recipe(alignment=AlignmentConfig(weight=1), model=model)


def test_reward_alone_is_refused():
    with pytest.raises(ConfigError, match="`reward.share` must be below 1"):
        Recipe(alignment=AlignmentConfig(weight=1), reward=RewardConfig(metric="bleu"))
