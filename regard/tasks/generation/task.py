"""A trained model with all that surrounds it: raw text in, predictions out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self
from zlib import crc32

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.data.batch import Batch, Values, change_values
from regard.data.batching import BatchConfig, Batches, Items, Sequences, limit_lengths
from regard.data.example import Example
from regard.data.modality import (
    JoinedField,
    SourceField,
    load_source,
)
from regard.data.text.columns import split_columns
from regard.data.text.field import TOKENIZER, Text, TextField, texts_of
from regard.data.text.tokenizers import Tokenizer
from regard.data.text_image import JOINED_COLUMNS
from regard.metrics.text.perplexity import exp_or_infinity
from regard.models.bottlenecks import restart_annealing
from regard.models.build import build_model
from regard.models.interfaces import Memory
from regard.models.seq2seq import EncoderDecoder
from regard.search.ctc import CtcScorer
from regard.search.hypothesis import Hypothesis
from regard.search.search import search as find_targets
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation import ctc
from regard.tasks.generation import forced as forcing
from regard.tasks.generation.evaluation import Evaluation, as_text, evaluate
from regard.tasks.generation.lengths import check_positions, limit_targets, warn_of_long
from regard.tasks.generation.parts import Parts, learn_parts, take_parts
from regard.tasks.metrics import LOSS, PERPLEXITY, goodness, measure
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.recipe import Recipe
from regard.training.loop import Validation
from regard.training.losses import Loss, cross_entropy, log_probs_of, sum_term


class Predictor(Task[Recipe]):
    """Writes a target for a source: fields, an encoder–decoder and a search."""

    model: EncoderDecoder
    learn: ClassVar[Callable[..., Parts]] = staticmethod(learn_parts)
    """Learns from `(recipe, examples)` what a task is built of."""
    take: ClassVar[Callable[..., Parts]] = staticmethod(take_parts)
    """Takes it from a run: `(recipe, init_from, examples)`."""

    def __init__(
        self,
        recipe: Recipe,
        model: EncoderDecoder,
        *,
        source: SourceField,
        target: TextField,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.source = source
        self.target = target
        self._has_warned = False
        self.kept: list[int] = []  # the training examples that are not too long

    @classmethod
    def fresh(
        cls, recipe: Recipe, *, source: SourceField, target: TextField, device: torch.device
    ) -> Self:
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = build_model(
            recipe.model,
            source=source.spec,
            target_vocab_size=target.size,
        )
        return cls(recipe, model, source=source, target=target, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: Recipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> Self:
        """Learn vocabularies from training pairs, or take over a run's, and build a model."""
        if init_from is None:
            return cls.build(cls.learn(recipe, examples), device=device)
        return cls.build(cls.take(recipe, init_from, examples), device=device)

    @classmethod
    def build(cls, parts: Parts, *, device: torch.device) -> Self:
        """Put parts together; weights that they do not hold begin afresh."""
        task = cls.fresh(parts.recipe, source=parts.source, target=parts.target, device=device)
        task.model.load_state_dict({**task.model.state_dict(), **parts.weights})
        restart_annealing(task.model)
        return task

    @classmethod
    def open(cls, recipe: Recipe, folder: Path, *, device: torch.device) -> Self:
        """Build the task from what `save` left in a folder, with fresh weights."""
        source = load_source(recipe.data.source, folder)
        target = TextField(Tokenizer.load(folder / TOKENIZER.format("target")), has_start=True)
        return cls.fresh(recipe, source=source, target=target, device=device)

    def save(self, folder: Path) -> None:
        """Write the vocabularies, and how images are brought into one form."""
        self.source.save(folder, "source")
        self.target.save(folder, "target")

    def training_batches(self, examples: Sequence[Example]) -> Batches:
        """Return the batches to learn from, pairs beyond the limit dropped or shortened."""
        config = self.recipe.data.batch
        sources, targets, self.kept = limit_lengths(
            self.source.read_all([example.source for example in examples]),
            self.target.read_all([example.target for example in examples]),
            config,
            shorten=None if isinstance(self.source, TextField) else self.source.shorten,
        )
        check_positions(self.recipe.model, sources, targets)
        batches = self.pair(sources, targets)
        logger.info(
            "Model: %s parameters, %s and %s target tokens; %.0f %% of a batch is padding.",
            f"{self.num_parameters:,}",
            self.source.spec,
            f"{self.target.size:,}",
            100 * batches.padded_share(),
        )
        return batches

    def pair(self, sources: Items, targets: Sequences) -> Batches:
        """Return the batches of read sources and targets to learn from."""
        return Batches(
            sources,
            targets,
            self.recipe.data.batch,
            fields=(self.source, self.target),
            seed=self.recipe.seed,
            is_pinned=self.device.type == "cuda",
        )

    def loss(self, batch: Batch) -> Loss:
        """Return the cross entropy of the next token."""
        config = self.recipe.train
        batch = batch.to(self.device)
        with self.autocast():
            output = self.model(
                self.inputs(batch),
                batch.source_mask,
                self.history(batch.target[:, :-1]),
                teacher_forcing=config.teacher_forcing if self.model.training else 1.0,
            )
        mask = batch.target_mask[:, 1:]
        loss = cross_entropy(
            output.logits,
            batch.target[:, 1:],
            mask,
            smoothing=config.label_smoothing if self.model.training else 0.0,
        )
        terms = list(output.losses.values())
        if output.reinforce is not None:
            told = log_probs_of(output.logits.detach(), batch.target[:, 1:])
            terms.append(output.reinforce(told, batch.target[:, 1:], mask))
        for term in terms:
            loss = replace(loss, total=loss.total + sum_term(term, mask))
        return ctc.weigh(loss, output, batch, weight=self.recipe.model.ctc_weight)

    def history(self, tokens: Tensor) -> Tensor:
        """Return what the decoder reads of the right tokens (B, T) while it learns: all of them."""
        return tokens

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure greedy answers and the loss."""
        config = self.recipe.validation
        batches = self.batches(examples)
        # Evenly from the whole set, which may be sorted by length.
        asked = examples[:: -(-len(examples) // config.max_examples)]
        sources = [example.source for example in asked]
        references = [[example.target, *example.references] for example in asked]
        greedy = replace(self.recipe.search, beams=1, consensus=0)

        def validate() -> Validation:
            numbers = {LOSS: self.mean_nll(batches)}
            if config.metric == PERPLEXITY:
                numbers[PERPLEXITY] = exp_or_infinity(numbers[LOSS])
            elif config.metric != LOSS:
                # Not `predict`, which would say of the same sources each time what is odd in them.
                found = self._answer(sources, greedy)
                answers = [[best[0].text] for best in found]
                score = measure((config.metric,), answers, references)[config.metric]
                numbers[config.metric] = score.value
            return Validation(goodness(config.metric, numbers[config.metric]), numbers)

        return validate

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Translate a test set and measure the answers."""
        return evaluate(self, examples, search=search, num_bootstrap=num_bootstrap)

    def predict(
        self,
        sources: Sequence[Text],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Answer every source with its best predictions, in the order given.

        An empty source has one answer, the empty one. Where answers are drawn, those of a source
        depend on it and the seed alone: asked twice, it is answered twice the same.

        Args:
            sources: One text each, or several that are read side by side; where the recipe names
                several source columns, a line's tabs part them.
            search: How to search; the recipe's way if not given.
            num_best: How many predictions a source.
            prefix: What every answer must begin with; its last token is whole, so that the model
                goes on with the next one.
        """
        at_least("nbest", num_best, 1)
        config = search or self.recipe.search
        given = self._read_prefix(prefix)
        asked = [self.split(source) for source in sources]
        self._warn_of_odd(asked)
        return self._answer(asked, config, num_best=num_best, prefix=given)

    def _answer(
        self,
        sources: Sequence[Text],
        config: SearchConfig,
        *,
        num_best: int = 1,
        prefix: Sequence[int] = (),
    ) -> list[list[Prediction]]:
        answers = [[Prediction("", 0.0, (), ())] for _ in sources]
        filled = [row for row, source in enumerate(sources) if as_text(source).strip()]
        examples = [Example(sources[row]) for row in filled]
        for batch in self.batches(examples):
            numbers = [crc32(as_text(examples[row].source).encode()) for row in batch.rows]
            found = self._search(batch, config, num_best=num_best, prefix=prefix, numbers=numbers)
            for row, best in zip(batch.rows, found, strict=True):
                answers[filled[row]] = [self._prediction(hypothesis) for hypothesis in best]
        return answers

    def answer(self, source: Text, target: str | None = None) -> tuple[Example, str]:
        """Return what `regard show` draws; a line's tabs part its columns, as in `predict`."""
        return super().answer(self.split(source), target)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of every example's own target, as a prediction of it."""
        self.target.warn_of_unknown([example.target for example in examples], "targets")
        return forcing.score(self, examples)

    def foretell(self, examples: Sequence[Example]) -> list[tuple[bool, ...]]:
        """Tell for each word of every example's own target whether the model foretells it."""
        return forcing.foretell(self, examples)

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where the model looks while it writes each example's own target."""
        return forcing.attend(self, examples)

    def batches(
        self, examples: Sequence[Example], config: BatchConfig | None = None
    ) -> list[Batch]:
        """Cut examples into batches of similar length; `rows` says which is which."""
        if not examples:
            return []
        limits = config or self.recipe.data.batch
        batches = Batches(
            self.source.read_all([example.source for example in examples]),
            self.target.read_all([example.target for example in examples]),
            limits,
            fields=(self.source, self.target),
            is_shuffled=False,
        )
        return list(batches.epoch(0))

    def _search(
        self,
        batch: Batch,
        config: SearchConfig,
        *,
        num_best: int,
        prefix: Sequence[int] = (),
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        ctc.check_ctc(self.recipe.model, config)
        with torch.inference_mode():
            return self.find(
                self.read_memory(batch),
                config,
                max_lengths=self.max_lengths(batch.source_mask, config),
                num_best=num_best,
                prefix=prefix,
                numbers=numbers,
            )

    def max_lengths(self, source_mask: Tensor, config: SearchConfig) -> Tensor:
        """Return how many tokens the answer to each source (B, S) may have at most, (B,)."""
        return limit_targets(config.max_lengths(source_mask), self.recipe.model)

    def find(
        self,
        memory: Memory,
        config: SearchConfig,
        *,
        max_lengths: Tensor,
        num_best: int = 1,
        prefix: Sequence[int] = (),
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Search for the best targets of what is remembered.

        Args:
            memory: Of so many sources.
            config: How to search.
            max_lengths: (B,), how many tokens each may have.
            num_best: How many a source.
            prefix: Tokens that each begins with.
            numbers: What tells the sources apart where targets are drawn.
        """
        roles = self.target.tokenizer
        with torch.inference_mode():
            scorer = ctc.build_scorer(self.model, memory, roles, weight=config.ctc_weight)
            if isinstance(scorer, CtcScorer) and ctc.takes_best_path(config, prefix):
                return ctc.find_best_path(scorer, self.model, memory)
            found = find_targets(
                scorer,
                start=roles.sos,
                end=roles.eos,
                max_lengths=max_lengths,
                config=config,
                num_best=num_best,
                prefixes=[prefix] * len(max_lengths),
                numbers=numbers,
            )
            return ctc.own_log_probs(scorer, found, start=roles.sos)

    def inputs(self, batch: Batch) -> Values:
        """Return what the encoder reads of a batch, on the model's device."""
        values = change_values(batch.source, lambda part: part.to(self.device, non_blocking=True))
        return self.source.finish(values, is_training=self.model.training)

    def read_memory(self, batch: Batch) -> Memory:
        """Read the sources of a batch."""
        return self.model.encode(self.inputs(batch), batch.source_mask)

    def _warn_of_odd(self, sources: Sequence[Text]) -> None:
        """Say what of some texts the vocabulary does not hold, and how many are long."""
        field: SourceField = self.source
        if isinstance(field, JoinedField):
            field, sources = field.text, [texts_of(source)[0] for source in sources]
        if not isinstance(field, TextField):
            return
        field.warn_of_unknown(sources, "sources")
        if not self._has_warned:
            ids = field.read_all(sources)
            self._has_warned = warn_of_long(ids, self.recipe.data.batch.max_length)

    def split(self, source: Text) -> Text:
        """Return the parts of a line: texts by the recipe's columns, or a text and an image."""
        columns = self.recipe.data.columns
        if isinstance(self.source, JoinedField):
            columns = columns or JOINED_COLUMNS
        return split_columns(source, columns) if isinstance(source, str) else source

    def _read_prefix(self, prefix: str) -> list[int]:
        ids = self.target.tokenizer.encode(prefix)
        if self.target.tokenizer.unk in ids:
            raise ConfigError(
                f"`prefix` must be of tokens that the target vocabulary holds, but '{prefix}' "
                f"reads as '{self.target.tokenizer.decode(ids)}'."
            )
        return ids

    def _prediction(self, hypothesis: Hypothesis) -> Prediction:
        return Prediction(
            text=self.target.write(hypothesis.tokens),
            log_prob=hypothesis.log_prob,
            tokens=self.target.tokenizer.tokens(hypothesis.tokens),
            token_log_probs=hypothesis.step_log_probs,
        )
