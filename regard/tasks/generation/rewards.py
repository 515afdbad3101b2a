"""Learning from rewards: answers that are better than others of the same model become likelier."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example
from regard.metrics.text.rewards import REWARDS
from regard.models.interfaces import Memory
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import as_text
from regard.tasks.generation.task import Predictor
from regard.training.losses import Loss, log_probs_of
from regard.training.optimizers import set_training


def find_objective(task: Task[Any], examples: Sequence[Example]) -> Callable[[Any], Loss]:
    """Return what a batch costs in training: likelihood, or what the recipe rewards.

    Args:
        task: What learns; its training batches have been made.
        examples: What it learns from.
    """
    if isinstance(task, Predictor) and task.recipe.reward.metric != "none":
        return Rewarded(task, examples)
    return task.loss


class Rewarded:
    """Draws several answers to each source, and makes those likelier that beat the others.

    Self-critical training (Rennie et al. 2017), by the baseline of Kool et al. 2019: an answer is
    as good as its reward is above the mean reward of the other draws, so that nothing is learned
    where all are alike. Sources are read once, as in any training; answers are drawn by a decoder
    without dropout and judged as text. All targets that training has for a source are right ones.

    Args:
        task: What learns.
        examples: What it learns from.
    """

    def __init__(self, task: Predictor, examples: Sequence[Example]) -> None:
        self._task = task
        self._config = task.recipe.reward
        right: dict[str, list[str]] = {}
        for example in examples:
            own = right.setdefault(as_text(example.source), [])
            own += [example.target, *example.references]
        self._right = [right[as_text(examples[row].source)] for row in task.kept]
        self._reward = REWARDS[self._config.metric]([*right.values()])

    def __call__(self, batch: Batch) -> Loss:
        """Return what a batch costs: less, the likelier good answers are."""
        task, width = self._task, self._config.num_draws
        batch = batch.to(task.device)
        with task.autocast():
            memory = task.read_memory(batch)
            drawn = self._draw(batch, memory)
        tokens, mask = self._stack([one.tokens for several in drawn for one in several])
        # Anew: older torch keeps weights as they were cast while drawing, without gradients.
        with task.autocast():
            state = task.model.start(memory, beams=width)
            logits, _ = task.model.step(tokens[:, :-1], state)
        told = log_probs_of(logits, tokens[:, 1:]).where(mask, 0.0)  # (B·W, T)
        better = self.judge(drawn, batch.rows).to(task.device)  # (B, W)
        loss = Loss(
            total=-(better.view(-1, 1) * told).sum(), nll=-told.detach().sum(), count=mask.sum()
        )
        return loss if self._config.share == 1 else self._join(loss, task.loss(batch))

    def _draw(self, batch: Batch, memory: Memory) -> list[list[Hypothesis]]:
        task, asked = self._task, self._task.recipe.search
        # Each batch has draws of its own, which go on where a resumed training left off.
        seed = int(torch.randint(2**31, ()))
        config = SearchConfig(
            beams=1,
            temperature=1.0,
            max_ratio=asked.max_ratio,
            max_extra=asked.max_extra,
            seed=seed,
        )
        lengths = task.max_lengths(batch.source_mask, config)
        task.model.eval()
        try:
            return task.find(memory, config, max_lengths=lengths, num_best=self._config.num_draws)
        finally:
            set_training(task.model)

    def judge(self, drawn: Sequence[Sequence[Hypothesis]], rows: Sequence[int]) -> Tensor:
        """Return how much better each draw is than the others of its source, (B, W)."""
        write, width = self._task.target.write, self._config.num_draws
        rewards = torch.tensor(
            [
                [self._reward(write(one.tokens), self._right[row]) for one in several]
                for row, several in zip(rows, drawn, strict=True)
            ]
        )
        return (rewards - rewards.mean(1, keepdim=True)) * width / (width - 1)

    def _stack(self, drawn: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return draws behind the start token, (B·W, T + 1), and where there are any, (B·W, T)."""
        roles = self._task.target.tokenizer
        longest = max(map(len, drawn))
        rows = [[roles.sos, *tokens, *[roles.pad] * (longest - len(tokens))] for tokens in drawn]
        lengths = torch.tensor([len(tokens) for tokens in drawn])
        mask = torch.arange(longest) < lengths[:, None]
        return torch.tensor(rows).to(self._task.device), mask.to(self._task.device)

    def _join(self, rewarded: Loss, likely: Loss) -> Loss:
        share = self._config.share
        scaled = likely.total * (rewarded.count / likely.count)
        return replace(rewarded, total=share * rewarded.total + (1 - share) * scaled)
