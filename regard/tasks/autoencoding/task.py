"""The autoencoder of texts with all that surrounds it: it writes a text anew from its code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import DataError
from regard.data.batch import Batch
from regard.data.batching import Batches, Items, Sequences
from regard.data.example import Example
from regard.data.text.corruption import CorruptedBatches
from regard.data.text.field import Text, TextField
from regard.data.text.noise import WordNoise
from regard.data.text.tokenizers import with_mask
from regard.models.bottlenecks import VariationalBottleneck
from regard.models.encoders.bottleneck import BottleneckEncoder, remember
from regard.search.settings import SearchConfig
from regard.tasks.autoencoding.metrics import measure_bound, measure_restoring, measure_tokens
from regard.tasks.autoencoding.reading import read_own_text_side, read_own_texts
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.generation.lengths import limit_targets
from regard.tasks.generation.parts import Parts, learn_joint_parts, take_parts
from regard.tasks.generation.task import Predictor
from regard.tasks.recipe import AutoencodingRecipe
from regard.tasks.warm_start import as_run_of
from regard.training.loop import Validation

CHUNK = 64
"""Codes that are written out at once."""


class AutoencodingTask(Predictor):
    """Writes texts anew from their codes (Dai & Le 2015; Hill et al. 2016; Bowman et al. 2016).

    An answer may be as long as the longest text to learn from, whatever the source, since codes
    do not tell how long it was: `search.max_ratio` and `search.max_extra` are not asked.
    """

    recipe: AutoencodingRecipe
    source: TextField

    read = staticmethod(read_own_texts)
    read_side = staticmethod(read_own_text_side)

    @property
    def narrow(self) -> BottleneckEncoder:
        """What makes the codes."""
        encoder = self.model.encoder
        assert isinstance(encoder, BottleneckEncoder)
        return encoder

    @staticmethod
    def learn(recipe: Any, examples: Sequence[Example]) -> Parts:
        """Learn one vocabulary from training texts."""
        config = recipe.data.source
        if recipe.data.noise.mask:
            config = with_mask(config)
        return learn_joint_parts(recipe, config, examples)

    @staticmethod
    def take(recipe: Any, init_from: Task[Any], examples: Sequence[Example]) -> Parts:
        """Take over all of a run of the same kind: others have no codes."""
        which = "of an autoencoder of texts"
        return take_parts(recipe, as_run_of(AutoencodingTask, init_from, which=which), examples)

    def pair(self, sources: Items, targets: Sequences) -> Batches:
        """Return the batches to learn from, the sources spoilt otherwise in every epoch."""
        if not self.recipe.data.noise.is_any:
            return super().pair(sources, targets)
        return self._spoil(sources, targets, seed=self.recipe.seed, is_shuffled=True)

    def spoilt_batches(self, examples: Sequence[Example]) -> list[Batch]:
        """Cut texts into batches, spoilt always in the same way, whatever the run's seed."""
        texts = [example.source for example in examples]
        sources, targets = self.source.read_all(texts), self.target.read_all(texts)
        seed = self.recipe.data.seed
        return list(self._spoil(sources, targets, seed=seed, is_shuffled=False).epoch(0))

    def _spoil(
        self, sources: Sequences, targets: Sequences, *, seed: int, is_shuffled: bool
    ) -> CorruptedBatches:
        noise = WordNoise(self.recipe.data.noise, self.source.tokenizer, seed=seed)
        return CorruptedBatches(
            sources,
            targets,
            self.recipe.data.batch,
            change=noise.change,
            fields=(self.source, self.target),
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def history(self, tokens: Tensor) -> Tensor:
        """Return right tokens (B, T), some of them unknown while the model trains."""
        share = self.recipe.data.word_dropout
        if not self.model.training or not share:
            return tokens
        is_lost = torch.rand(tokens.shape, device=tokens.device) < share
        is_lost[:, 0] = False  # the start token
        return tokens.masked_fill(is_lost, self.target.tokenizer.unk)

    def mean_nll(self, batches: Any) -> float:
        """Return what a token costs on average, with its share of what the code costs, in nats."""
        losses = [self.loss(batch) for batch in batches]
        total = sum(found.total.detach() for found in losses)
        return float(total / sum(found.count for found in losses))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure texts as long as those to learn from; no other can be written."""
        lengths = map(len, self.target.read_all([example.target for example in examples]))
        most = self.recipe.data.batch.max_length
        short = [example for example, own in zip(examples, lengths, strict=True) if own <= most]
        return super().validation(short or examples)

    def max_lengths(self, source_mask: Tensor, config: SearchConfig) -> Tensor:
        """Return how many tokens each answer may have at most, (B,): as many as any text had."""
        return self._longest(len(source_mask))

    def _longest(self, num: int) -> Tensor:
        return limit_targets(
            torch.full((num,), self.recipe.data.batch.max_length), self.recipe.model
        )

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Write test texts anew from their codes, and measure these and the codes."""
        found = super().evaluate(examples, search=search, num_bootstrap=num_bootstrap)
        results, more = dict(found.results), {"num_bootstrap": num_bootstrap}
        results["token_accuracy"] = measure_tokens(self, examples, **more)
        if isinstance(self.narrow.bottleneck, VariationalBottleneck):
            results |= measure_bound(self, examples, **more)
        if self.recipe.data.noise.is_any:
            how = search or self.recipe.search
            results |= measure_restoring(self, examples, search=how, **more)
        return replace(found, results=results)

    def encode(self, sources: Sequence[Text]) -> Tensor:
        """Return the codes of texts, (B, D), in 32 bits and on the host."""
        codes = torch.zeros(len(sources), self.narrow.memory_dim)
        for batch in self.batches([Example(source) for source in sources]):
            with torch.inference_mode():
                codes[list(batch.rows)] = self.read_memory(batch).summary.float().cpu()
        return codes

    def decode(self, codes: Tensor, *, search: SearchConfig | None = None) -> list[str]:
        """Write what codes (B, D) stand for.

        Args:
            codes: As `encode` returns them, or any others.
            search: How to search; the recipe's way if not given.
        """
        width = self.narrow.memory_dim
        if codes.dim() != 2 or codes.shape[1] != width:
            raise DataError(
                f"`codes` must have {width} numbers each, but has the shape {tuple(codes.shape)}."
            )
        texts: list[str] = []
        for part in torch.split(codes, CHUNK) if len(codes) else ():
            found = self.find(
                remember(part.to(self.device, torch.float32)),
                search or self.recipe.search,
                max_lengths=self._longest(len(part)),
                numbers=range(len(texts), len(texts) + len(part)),
            )
            texts += [self.target.write(best[0].tokens) for best in found]
        return texts
