"""Self-critical training: raise the probability of samples with an above-average reward."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example
from regard.data.text.field import as_text
from regard.metrics.text.rewards import REWARDS
from regard.models.interfaces import Memory
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig
from regard.training.losses import Loss, log_probs_of
from regard.training.optimizers import set_training

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


class RewardLoss:
    """The loss of self-critical training (Rennie et al. 2017).

    Several targets are sampled for each source by a decoder without dropout. The advantage of a
    sample is its reward minus the mean reward of the source's other samples (Kool et al. 2019).
    All training targets of a source are its references.

    Args:
        task: The task to train, after `training_batches`.
        examples: The training data.
    """

    def __init__(self, task: "Predictor", examples: Sequence[Example]) -> None:
        self._task = task
        self._config = task.recipe.reward
        references: dict[str, list[str]] = {}
        for example in examples:
            targets = references.setdefault(as_text(example.source), [])
            targets += [example.target, *example.references]
        self._references = [references[as_text(examples[row].source)] for row in task.kept]
        self._reward = REWARDS[self._config.metric]([*references.values()])

    def __call__(self, batch: Batch) -> Loss:
        """Compute the loss of a batch."""
        task, num_samples = self._task, self._config.num_draws
        batch = batch.to(task.device)
        with task.autocast():
            memory = task.encode_batch(batch)
            samples = self._sample(batch, memory)
        tokens, mask = self._stack([one.tokens for several in samples for one in several])
        # A new context: older torch caches the weights cast while sampling, without gradients.
        with task.autocast():
            state = task.model.start(memory, beams=num_samples)
            logits, _ = task.model.step(tokens[:, :-1], state)
        log_probs = log_probs_of(logits, tokens[:, 1:]).where(mask, 0.0)  # (B·W, T)
        advantages = self.advantages(samples, batch.rows).to(task.device)  # (B, W)
        loss = Loss(
            total=-(advantages.view(-1, 1) * log_probs).sum(),
            nll=-log_probs.detach().sum(),
            count=mask.sum(),
        )
        return loss if self._config.share == 1 else self._join(loss, task.loss(batch))

    def _sample(self, batch: Batch, memory: Memory) -> list[list[Hypothesis]]:
        task, search = self._task, self._task.recipe.search
        config = SearchConfig(
            beams=1,
            temperature=1.0,
            max_ratio=search.max_ratio,
            max_extra=search.max_extra,
            # A new seed per batch; the state of the global generator is part of a checkpoint.
            seed=int(torch.randint(2**31, ())),
        )
        lengths = task.max_lengths(batch.source_mask, config)
        task.model.eval()
        try:
            return task.generate(
                memory, config, max_lengths=lengths, num_best=self._config.num_draws
            )
        finally:
            set_training(task.model)

    def advantages(self, samples: Sequence[Sequence[Hypothesis]], rows: Sequence[int]) -> Tensor:
        """Return the reward of each sample minus the mean of the others of its source, (B, W)."""
        write, num_samples = self._task.target.write, self._config.num_draws
        rewards = torch.tensor(
            [
                [self._reward(write(one.tokens), self._references[row]) for one in several]
                for row, several in zip(rows, samples, strict=True)
            ]
        )
        return (rewards - rewards.mean(1, keepdim=True)) * num_samples / (num_samples - 1)

    def _stack(self, samples: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return samples with the start token, (B·W, T + 1), and their mask, (B·W, T)."""
        start = self._task.target.tokenizer.sos
        tokens, mask = self._task.target.stack([[start, *sample] for sample in samples])
        return tokens.to(self._task.device), mask[:, 1:].to(self._task.device)

    def _join(self, reward: Loss, likelihood: Loss) -> Loss:
        share = self._config.share
        scaled = likelihood.total * (reward.count / likelihood.count)
        return replace(reward, total=share * reward.total + (1 - share) * scaled)
