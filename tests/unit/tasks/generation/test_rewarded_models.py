"""Self-critical training of various encoders and decoders."""

from dataclasses import replace

import pytest
import torch

from regard.core.config import from_dict
from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.search.hypothesis import Hypothesis
from regard.tasks.autoencoding.recipe import AutoencodingRecipe
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.rewards import RewardLoss
from regard.tasks.table import task_class

EXAMPLES = [Example("a b c", "c b a"), Example("d e", "e d"), Example("e", "e")]
TEXTS = [("c b a", "a", "d e e"), ("e d", "d", ""), ("e", "a e", "b")]

SMALL = {"embedding_dim": 8, "dim": 8, "dropout": 0.0}
RNN = {"kind": "rnn", **SMALL}
BAHDANAU = {"kind": "bahdanau", "attention_dim": 8, **SMALL}
BLOCKS = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 8, "dropout": 0.0}
TRANSFORMER = {"kind": "transformer", **BLOCKS}
POINTER = {"kind": "pointer", "dim": 8}
JOINT = {"is_joint": True}
IMAGE = {"kind": "image", "size": 8, "fit": "squash"}
BOTH = {"kind": "joined", "num_layers": 1, "num_heads": 2, "dropout": 0.0, "text": TRANSFORMER}
BOTH["image"] = {"kind": "vit", "patch": 4, **BLOCKS}
TWO_TEXTS = [replace(one, source=(one.source, "b a")) for one in EXAMPLES]
TEXT_AND_IMAGE = [replace(one, source=(one.source, "shapes/0/1")) for one in EXAMPLES]
LONG = [EXAMPLES[0], Example("a b c d e a b", "b"), *EXAMPLES[1:]]

MODELS = {
    "copying rnn": ({"encoder": RNN, "decoder": BAHDANAU, "copying": POINTER}, JOINT, EXAMPLES),
    "copying transformer": (
        {"encoder": TRANSFORMER, "decoder": TRANSFORMER, "copying": {**POINTER, "coverage": 1.0}},
        JOINT,
        EXAMPLES,
    ),
    "tied": ({"encoder": TRANSFORMER, "decoder": TRANSFORMER, "ties": "all"}, JOINT, EXAMPLES),
    "prefix": (
        {"encoder": {"kind": "embedding", "dim": 8}, "decoder": {"kind": "prefix", **BLOCKS}},
        {},
        EXAMPLES,
    ),
    "luong": ({"encoder": RNN, "decoder": {"kind": "luong", **SMALL}}, {}, EXAMPLES),
    "sutskever": ({"encoder": RNN, "decoder": {"kind": "sutskever", **SMALL}}, {}, EXAMPLES),
    "convolution": ({"encoder": RNN, "decoder": {"kind": "convolution", **SMALL}}, {}, EXAMPLES),
    "soft": (
        {"encoder": RNN, "decoder": {"kind": "xu_soft", "attention_dim": 8, **SMALL}},
        {},
        EXAMPLES,
    ),
    "two texts": ({"encoder": RNN, "decoder": BAHDANAU}, {}, TWO_TEXTS),
    "text and image": (
        {"encoder": BOTH, "decoder": TRANSFORMER},
        {"source": {"kind": "joined", "text": {"kind": "word"}, "image": IMAGE}},
        TEXT_AND_IMAGE,
    ),
    "one too long": ({"encoder": RNN, "decoder": BAHDANAU}, {"batch": {"max_length": 6}}, LONG),
}


def build(kind, examples, *, share=1.0, precision="fp32", **sections):
    """Return a reward loss, its task and the only batch."""
    reward = {"metric": "bleu", "num_draws": 3, "share": share}
    recipe = from_dict(kind, {"reward": reward, "train": {"precision": precision}, **sections})
    task = task_class(recipe).prepare(recipe, examples, device=torch.device("cpu"))
    (batch,) = task.training_batches(examples).epoch(0)
    return RewardLoss(task, examples), task, batch


def to_samples(task, *texts):
    tokenizer = task.target.tokenizer
    return [Hypothesis((*tokenizer.encode(text), tokenizer.eos), 0.0, (), 0.0) for text in texts]


def gradients(task):
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in task.model.named_parameters()
    }


@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_those_of_single_samples(name, monkeypatch):
    model, data, examples = MODELS[name]
    objective, task, batch = build(Recipe, examples, model=model, data=data)
    found = [to_samples(task, *TEXTS[row]) for row in batch.rows]
    monkeypatch.setattr(task, "generate", lambda *_, **__: found)
    objective(batch).total.backward()
    together = gradients(task)
    task.model.zero_grad()
    # Compute the same gradients from each sample alone, as if it were a target.
    kept = [examples[row].source for row in task.kept]
    for row, several in zip(batch.rows, found, strict=True):
        (advantages,) = objective.advantages([several], [row])
        for text, weight in zip(TEXTS[row], advantages, strict=True):
            (pair,) = task.batches([Example(kept[row], text)])
            output = task.model(task.inputs(pair), pair.source_mask, pair.target[:, :-1])
            log_probs = output.logits.log_softmax(-1).gather(-1, pair.target[:, 1:, None])
            (-weight * log_probs.sum()).backward()
    alone = gradients(task)
    assert any(gradient.any() for gradient in alone.values())
    for key, gradient in alone.items():
        torch.testing.assert_close(together[key], gradient, atol=1e-5, rtol=1e-4, msg=key)


@pytest.mark.parametrize("name", ["copying rnn", "prefix", "text and image", "one too long"])
def test_loss_uses_the_log_probabilities_of_the_samples(name):
    model, data, examples = MODELS[name]
    objective, task, batch = build(Recipe, examples, model=model, data=data)
    found = []
    generate = task.generate
    task.generate = lambda *args, **kwargs: found.extend(generate(*args, **kwargs)) or found
    loss = objective(batch)
    log_probs = [one.log_prob for several in found for one in several]
    assert len(log_probs) == 3 * len(batch.rows)
    assert -sum(log_probs) == pytest.approx(float(loss.nll), rel=1e-4)


def test_every_weight_has_a_gradient_in_half_precision():
    model = {"encoder": RNN, "decoder": BAHDANAU}
    objective, task, batch = build(Recipe, EXAMPLES, model=model, precision="bf16")
    found = [to_samples(task, *TEXTS[row]) for row in batch.rows]
    generate = task.generate
    task.generate = lambda *args, **kwargs: generate(*args, **kwargs) and found
    objective(batch).total.backward()
    assert [name for name, p in task.model.named_parameters() if p.grad is None] == []


BOTTLENECK = {"kind": "bottleneck", "encoder": RNN, "bottleneck": {"kind": "plain", "dim": 4}}
VARIATIONAL = {**BOTTLENECK, "bottleneck": {"kind": "variational", "dim": 4}}
SUTSKEVER = {"kind": "sutskever", **SMALL}
HARD = {"encoder": RNN, "decoder": {"kind": "xu_hard", "attention_dim": 8, **SMALL}}
CTC = {"encoder": RNN, "decoder": BAHDANAU, "ctc": {"kind": "head"}}
OWN_LOSSES = {
    "hard": (Recipe, HARD, "`model.decoder.kind` 'xu_hard'"),
    "ctc": (Recipe, CTC, "`model.ctc.kind` 'head'"),
    "variational": (
        AutoencodingRecipe,
        {"encoder": VARIATIONAL, "decoder": SUTSKEVER},
        "a variational bottleneck",
    ),
}


@pytest.mark.parametrize("name", OWN_LOSSES)
def test_parts_with_their_own_loss_are_trained_beside_rewards(name):
    kind, model, _ = OWN_LOSSES[name]
    torch.manual_seed(0)
    objective, task, batch = build(kind, EXAMPLES, share=0.5, model=model)
    found = [to_samples(task, *TEXTS[row]) for row in batch.rows]
    task.generate = lambda *_, **__: found
    objective(batch).total.backward()
    for key, gradient in gradients(task).items():
        assert gradient.isfinite().all(), key
        assert gradient.any(), key


@pytest.mark.parametrize("name", OWN_LOSSES)
def test_rewards_alone_are_refused_for_parts_with_their_own_loss(name):
    kind, model, title = OWN_LOSSES[name]
    message = f"`reward.share` must be below 1 with {title}, which has a loss of its own"
    with pytest.raises(ConfigError, match=message):
        from_dict(kind, {"reward": {"metric": "bleu"}, "model": model})
    assert from_dict(kind, {"model": model}).reward.share == 1


def test_autoencoders_can_be_trained_with_rewards():
    model = {"encoder": BOTTLENECK, "decoder": SUTSKEVER}
    texts = [Example(one.target, one.target) for one in EXAMPLES]
    data = {"noise": {"drop": 0.3}}
    objective, task, batch = build(AutoencodingRecipe, texts, model=model, data=data)
    objective(batch).total.backward()
    (advantages,) = objective.advantages([to_samples(task, "e d", "e", "b")], [1])
    assert advantages[0] > advantages[1] > advantages[2]


def test_reward_of_an_untrained_decoder_is_refused():
    model, search = {**CTC, "ctc": {"kind": "head", "weight": 1.0}}, {"ctc_weight": 1.0}
    message = "`reward.metric` must be 'none' where `model.ctc.weight` is 1"
    with pytest.raises(ConfigError, match=message):
        from_dict(Recipe, {"reward": {"metric": "bleu"}, "model": model, "search": search})
