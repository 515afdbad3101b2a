"""Self-critical training: advantages, gradients, sampling and settings."""

from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.runs.folder import WEIGHTS
from regard.runs.train import train
from regard.search.hypothesis import Hypothesis
from regard.tasks.generation.rewards import RewardLoss
from regard.tasks.table import task_class
from regard.training.checkpoint import read_weights

EXAMPLES = [
    Example("a b c", "c b a"),
    Example("d e", "e d"),
    Example("a b c", "c b a d"),
    Example("e", "e"),
]
REWARD = ("reward.metric=bleu", "reward.num_draws=3")
EXACT = ("train.label_smoothing=0", "model.encoder.dropout=0", "model.decoder.dropout=0")


@pytest.fixture
def rewarded(reverse_files, tmp_path):
    """A reward loss, its task and a batch."""
    recipe, splits = reverse_files.request(tmp_path, *REWARD, *EXACT).resolve()
    task = task_class(recipe).prepare(recipe, splits.train, device=torch.device("cpu"))
    batches = task.training_batches(EXAMPLES)
    return RewardLoss(task, EXAMPLES), task, next(iter(batches.epoch(0)))


def to_samples(task, *texts):
    tokenizer = task.target.tokenizer
    return [Hypothesis((*tokenizer.encode(text), tokenizer.eos), 0.0, (), 0.0) for text in texts]


def test_advantage_is_the_reward_minus_the_mean_of_the_others(rewarded):
    objective, task, _ = rewarded
    (advantages,) = objective.advantages([to_samples(task, "e d", "e", "b")], [1])
    rewards = torch.tensor([objective._reward(text, ["e d"]) for text in ("e d", "e", "b")])
    others = [rewards[[1, 2]].mean(), rewards[[0, 2]].mean(), rewards[[0, 1]].mean()]
    torch.testing.assert_close(advantages, rewards - torch.stack(others))
    assert advantages[0] > 0 > advantages[2]


def test_all_targets_of_a_source_are_references(rewarded):
    objective, task, _ = rewarded
    for row in (0, 2):
        (advantages,) = objective.advantages([to_samples(task, "c b a", "c b a d", "e")], [row])
        assert advantages[0] == advantages[1] > advantages[2]


def test_equal_samples_have_no_gradient(rewarded, monkeypatch):
    objective, task, batch = rewarded
    monkeypatch.setattr(
        task,
        "generate",
        lambda *_, **__: [to_samples(task, "c b", "c b", "c b") for _ in batch.rows],
    )
    objective(batch).total.backward()
    assert all(not p.grad.any() for p in task.model.parameters() if p.grad is not None)


def test_gradients_equal_those_of_single_samples(rewarded, monkeypatch):
    objective, task, batch = rewarded
    texts = [("c b a", "a", "d e e"), ("e d", "d", "b"), ("c", "c b a d", ""), ("e", "a e", "d")]
    found = {row: to_samples(task, *texts[row]) for row in range(4)}
    monkeypatch.setattr(task, "generate", lambda *_, **__: [found[row] for row in batch.rows])
    objective(batch).total.backward()
    together = [p.grad.clone() for p in task.model.parameters()]
    task.model.zero_grad()
    # Compute the same gradients from each source and sample, as if they were a training pair.
    for row, source in enumerate(example.source for example in EXAMPLES):
        (advantages,) = objective.advantages([found[row]], [row])
        for text, weight in zip(texts[row], advantages, strict=True):
            (pair,) = task.batches([Example(source, text)])
            (weight * task.loss(pair).total).backward()
    for gradient, parameter in zip(together, task.model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-5, rtol=1e-4)


def test_share_mixes_reward_and_likelihood(rewarded, monkeypatch):
    objective, task, batch = rewarded
    found = [to_samples(task, "c b", "a", "d") for _ in batch.rows]
    monkeypatch.setattr(task, "generate", lambda *_, **__: found)
    reward = objective(batch)
    likelihood = task.loss(batch)
    monkeypatch.setattr(
        objective, "_config", objective._config.__class__(metric="bleu", num_draws=3, share=0.25)
    )
    mixed = objective(batch)
    expected = 0.25 * reward.total / reward.count + 0.75 * likelihood.total / likelihood.count
    torch.testing.assert_close(mixed.total / mixed.count, expected)


def test_sampling_keeps_the_training_mode_and_uses_the_global_generator(rewarded):
    objective, task, batch = rewarded
    task.model.train()
    torch.manual_seed(0)
    first = objective(batch).total
    assert task.model.training
    torch.manual_seed(0)
    assert torch.equal(objective(batch).total, first)
    assert not torch.equal(objective(batch).total, first)


def test_without_a_reward_the_loss_is_the_likelihood(reverse_files, tmp_path):
    recipe, splits = reverse_files.request(tmp_path).resolve()
    task = task_class(recipe).prepare(recipe, splits.train, device=torch.device("cpu"))
    assert task.training_loss(splits.train) == task.loss


def test_resumed_training_equals_uninterrupted(reverse_files, interrupted_at, tmp_path):
    settings = (*REWARD, "train.max_epochs=2", "model.decoder.dropout=0.3")
    train(reverse_files.request(tmp_path / "whole", *settings))
    request = reverse_files.request(tmp_path / "parts", *settings)
    train(request, display=interrupted_at(3))
    train(replace(request, is_resumed=True, recipe=None, settings=()))
    whole, parts = (read_weights(tmp_path / name / WEIGHTS) for name in ("whole", "parts"))
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("reward.num_draws=1", "`reward.num_draws` must be at least 2, but is 1"),
        ("reward.share=2", "`reward.share` must be between 0.0 and 1.0, but is 2"),
        ("reward.metric=meteor", "`reward.metric` must be one of"),
    ],
)
def test_wrong_settings_are_refused(reverse_files, tmp_path, setting, message):
    with pytest.raises(ConfigError, match=message):
        reverse_files.request(tmp_path, setting).resolve()
