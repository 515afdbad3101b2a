"""Generation: a source in, a target of tokens out, by an encoder–decoder and a search."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.data.batch import Batch
from regard.data.batching import (
    AlignedBatches,
    BatchConfig,
    Batches,
    Items,
    Sequences,
    limit_lengths,
)
from regard.data.example import Alignment, Example, require_examples, require_list
from regard.data.image.field import ImageConfig
from regard.data.text.columns import split_columns
from regard.data.text.corruption import Change, CorruptedBatches
from regard.data.text.field import Text, TextField, texts_of
from regard.data.text.token_cache import encode_pairs
from regard.data.text.tokenizers import Tokenizer
from regard.data.text_image import TEXT_IMAGE_COLUMNS
from regard.metrics.text.perplexity import exp_or_infinity
from regard.models.build import build_model
from regard.models.interfaces import Memory
from regard.models.seq2seq import EncoderDecoder
from regard.search.cuda_graphs import encode
from regard.search.hypothesis import Hypothesis
from regard.search.lexical.constraints import LexicalConstraints
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.tasks.base import Fields, Generates, Task, WarmStart
from regard.tasks.evaluation import Evaluation
from regard.tasks.generation import attention, ctc, finding, forced_decoding
from regard.tasks.generation.coverage import check_coverage
from regard.tasks.generation.evaluation import evaluate
from regard.tasks.generation.fields import fit_pair, fit_target, load_pair, read_prefix
from regard.tasks.generation.guided_alignment import token_links
from regard.tasks.generation.lexical import LexicalControl, LexicalOptions
from regard.tasks.generation.likelihood import likelihood_loss
from regard.tasks.generation.recipe import Recipe, check_ctc, check_positions, limit_targets
from regard.tasks.generation.rewards import RewardLoss
from regard.tasks.generation.unknown import warn_of_unknown_tokens
from regard.tasks.metrics import LOSS, PERPLEXITY, measure, to_objective
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.source_task import MAX_TOKENS, EncoderTask, warn_if_long
from regard.tasks.warm_start import encoder_weights, find_image_encoder, matching_image_field
from regard.training.losses import Loss
from regard.training.validation import Validation

LONG_SOURCES = (
    "%s of %s sources have over %d tokens, the maximum length in training "
    f"(`data.batch.max_length`); up to {MAX_TOKENS:,} tokens, they are not truncated."
)


class Predictor(Generates[Recipe], EncoderTask[Recipe]):
    """Generates a target for a source with an encoder–decoder."""

    model: EncoderDecoder
    target: TextField
    kept: Iterable[int] = ()
    """Indices of the training examples that are not too long."""
    lexical: LexicalControl | None = None
    """Words that predictions must contain or must not contain."""
    num_workers = 1
    """Number of threads that search batches side by side."""
    _has_warned = False

    @classmethod
    def fit_fields(cls, recipe: Recipe, examples: Sequence[Example]) -> Fields:
        """Fit the fields of source and target, or one vocabulary for both."""
        return fit_pair(recipe.data, examples)

    @classmethod
    def load_fields(cls, recipe: Recipe, folder: Path) -> Fields:
        """Load the fields of source and target."""
        return load_pair(recipe.data, folder)

    @classmethod
    def build_model(cls, recipe: Recipe, fields: Fields) -> EncoderDecoder:
        """Build the encoder–decoder."""
        source, target = fields["source"], fields["target"]
        return build_model(recipe.model, source=source.spec, target_vocab_size=target.size)

    @classmethod
    def warm_start(
        cls, recipe: Recipe, init_from: Task[Any], examples: Sequence[Example]
    ) -> WarmStart:
        """Start from a whole encoder–decoder, or from the image encoder of another run."""
        config = recipe.data.source
        if cls.run_description:
            cls.require_same_task(init_from)
        if isinstance(init_from, Predictor):
            source = init_from.source
            if isinstance(config, ImageConfig):
                source = matching_image_field(init_from, config)
            # The vocabularies are those of the other run, joint or separate.
            data = replace(recipe.data, is_joint=init_from.recipe.data.is_joint)
            recipe = replace(recipe, model=init_from.recipe.model, data=data)
            fields = {"source": source, "target": init_from.target}
            return WarmStart(recipe, fields, init_from.model.state_dict())
        if not isinstance(config, ImageConfig):
            raise ConfigError(
                "`init_from` must be a run of an encoder–decoder, but is one for the task "
                f"'{init_from.recipe.task}'."
            )
        settings, encoder = find_image_encoder(init_from)
        recipe = replace(recipe, model=replace(recipe.model, encoder=settings))
        fields = {
            "source": matching_image_field(init_from, config),
            "target": fit_target(recipe.data, examples),
        }
        return WarmStart(recipe, fields, encoder_weights(encoder))

    def training_batches(self, examples: Sequence[Example]) -> Batches:
        """Return the training batches; pairs beyond the limit are dropped or truncated."""
        shorten = None if self.reads_text else self.source.shorten
        sources, targets, self.kept = limit_lengths(
            *encode_pairs(examples, source=self.source, target=self.target),
            self.recipe.data.batch,
            shorten=shorten,
        )
        check_positions(self.recipe.model, sources, targets)
        change = self.change_pairs(self.recipe.seed)
        links = token_links(self, examples, self.kept, sources=sources, targets=targets)
        batches = self.pair_batches(sources, targets, change=change, links=links)
        self.log_model(
            f"{self.source.spec} and {self.target.size:,} target tokens; "
            f"{100 * batches.padding_share():.0f} % of a batch is padding"
        )
        return batches

    def change_pairs(self, seed: int) -> Change | None:
        """Return a function that changes encoded pairs in every epoch, such as noise, or None."""
        return None

    def pair_batches(
        self,
        sources: Items,
        targets: Sequences,
        *,
        change: Change | None = None,
        links: Sequence[Alignment] | None = None,
        seed: int | None = None,
        config: BatchConfig | None = None,
        is_shuffled: bool = True,
    ) -> Batches:
        """Return encoded sources and targets as batches.

        Args:
            sources: Items of the source field.
            targets: Token ids of the targets.
            change: Changes pairs in every epoch.
            links: Links between the tokens of each pair, for guided alignment.
            seed: Seed of the order; that of the recipe if not given.
            config: Batching settings; those of the recipe if not given.
            is_shuffled: Whether to shuffle in every epoch.
        """
        build: Callable[..., Batches] = Batches
        if links is not None:
            build = partial(AlignedBatches, links=links)
        elif change is not None:
            build = partial(CorruptedBatches, change=change)
        return build(
            sources,
            targets,
            config or self.recipe.data.batch,
            fields=(self.source, self.target),
            seed=self.recipe.seed if seed is None else seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def batches(
        self, examples: Sequence[Example], config: BatchConfig | None = None
    ) -> list[Batch]:
        """Return batches of similar length; `rows` are the indices of the examples."""
        if not examples:
            return []
        pairs = encode_pairs(examples, source=self.source, target=self.target)
        sources, targets = self.limit_pairs(*pairs)
        return list(self.pair_batches(sources, targets, config=config, is_shuffled=False).epoch(0))

    def loss(self, batch: Batch) -> Loss:
        """Compute the cross entropy of the next token, plus the auxiliary losses of the model."""
        return likelihood_loss(self, batch)

    def training_loss(self, examples: Sequence[Example]) -> Callable[[Batch], Loss]:
        """Return the likelihood loss, or the reward loss if the recipe has a reward."""
        if self.recipe.reward.metric == "none":
            return self.loss
        return RewardLoss(self, examples)

    def decoder_inputs(self, tokens: Tensor) -> Tensor:
        """Return the decoder inputs from the true tokens (B, T)."""
        return tokens

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the loss and, by greedy search, the metric."""
        config = self.recipe.validation
        batches = self.batches(examples)
        warn_of_unknown_tokens(batches, self.recipe, source=self.source, target=self.target)
        # Evenly spaced, since the set may be sorted by length.
        subset = examples[:: -(-len(examples) // config.max_examples)]
        sources = [example.source for example in subset]
        references = [[example.target, *example.references] for example in subset]

        def validate() -> Validation:
            numbers = {LOSS: self.mean_nll(batches)}
            if config.metric == PERPLEXITY:
                numbers[PERPLEXITY] = exp_or_infinity(numbers[LOSS])
            elif config.metric != LOSS:
                # Not `predict`, which would repeat its warnings about the sources each time.
                greedy = self.recipe.search.greedy()
                outputs = [[best[0].text] for best in self._predict(sources, greedy)]
                score = measure((config.metric,), outputs, references)[config.metric]
                numbers[config.metric] = score.value
            objective = to_objective(config.metric, numbers[config.metric])
            return Validation(objective, numbers, config.metric)

        return validate

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Generate the targets of a test set and measure them."""
        return evaluate(self, examples, num_bootstrap=num_bootstrap)

    def predict(
        self,
        sources: Sequence[Text],
        *,
        num_best: int = 1,
        search: SearchConfig | None = None,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Return the best predictions of each source, in the order given.

        An empty source has one prediction, the empty one. Samples depend only on the source and
        the seed.

        Args:
            sources: One text each, or several; a line is split at tabs if the recipe names several
                source columns.
            num_best: Number of predictions per source.
            search: The search settings; those of the recipe if not given.
            prefix: Text that every target begins with; it ends at a token boundary.
        """
        at_least("nbest", num_best, 1)
        require_list(sources, "sources")
        config = search or self.search
        check_ctc(self.recipe.model, config)
        check_coverage(self.model, config)
        tokens = read_prefix(prefix, self.target.tokenizer)
        if self.lexical is not None:
            self.lexical.check_prefix(prefix)
            self.lexical.check_search(config)
        parsed = [self.parse_source(source) for source in sources]
        self._warn_of_sources(parsed)
        return finding.predict_packed(self, parsed, config, num_best=num_best, prefix=tokens)

    def _predict(
        self,
        sources: Sequence[Text],
        config: SearchConfig,
        *,
        num_best: int = 1,
        prefix: Sequence[int] = (),
    ) -> list[list[Prediction]]:
        """Search for the targets of parsed sources, with settings that are checked."""
        return finding.predict(self, sources, config, num_best=num_best, prefix=prefix)

    def with_lexical(self, options: LexicalOptions) -> Self:
        """Return the same task with lexical control of its predictions."""
        changed = copy.copy(self)
        changed.lexical = LexicalControl(self, options)
        return changed

    def example_to_show(self, source: Text, target: str | None = None) -> tuple[Example, str]:
        """Return the example that `regard show` plots, and its target."""
        source = self.parse_source(source)
        text = self.translate([source])[0] if target is None else target
        return Example(source, text), text

    @property
    def output_tokenizer(self) -> Tokenizer:
        """The tokeniser of targets."""
        return self.target.tokenizer

    @property
    def start_token(self) -> int:
        """The start token of targets."""
        return self.target.tokenizer.sos

    def scorers(
        self, sources: Sequence[Text], search: SearchConfig
    ) -> Iterator[tuple[Sequence[int], Scorer]]:
        """Yield the indices of the sources of each batch, and the scorer of their search."""
        tokenizer, weight = self.target.tokenizer, search.ctc_weight
        task = self.with_packed_model(search.precision)
        for batch in self.batches([Example(self.parse_source(one)) for one in sources]):
            memory = task.encode_batch(batch)
            yield batch.rows, ctc.build_scorer(task.model, memory, tokenizer, weight=weight)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each example's target, as a prediction of it."""
        require_examples(examples)
        self.target.warn_of_unknown([example.target for example in examples], "targets")
        return forced_decoding.score(self, examples)

    def correct_words(self, examples: Sequence[Example]) -> list[tuple[bool, ...]]:
        """Return for each word of each example's target whether the model predicts it."""
        return forced_decoding.correct_words(self, examples)

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the attention weights of each example's target over its source."""
        require_examples(examples)
        return attention.attend(self, examples)

    def max_lengths(self, source_mask: Tensor, config: SearchConfig) -> Tensor:
        """Return the maximum number of target tokens of each source (B, S), (B,)."""
        return limit_targets(config.max_lengths(source_mask), self.recipe.model)

    def generate(
        self,
        memory: Memory,
        config: SearchConfig,
        *,
        max_lengths: Tensor,
        num_best: int = 1,
        prefix: Sequence[int] = (),
        numbers: Sequence[int] | None = None,
        constraints: Sequence[LexicalConstraints] = (),
    ) -> list[list[Hypothesis]]:
        """Search for the best targets of encoded sources.

        Args:
            memory: The encoded sources.
            config: The search settings.
            max_lengths: (B,), the maximum number of tokens of each target.
            num_best: Number of hypotheses per source.
            prefix: Tokens that each target begins with.
            numbers: Keys of the sources' random numbers, for sampling.
            constraints: Lexical constraints of each source, for a task with lexical control.
        """
        with torch.inference_mode():
            return finding.find_targets(
                self,
                memory,
                config,
                max_lengths=max_lengths,
                num_best=num_best,
                prefix=prefix,
                numbers=numbers,
                constraints=constraints,
            )

    def encode_batch(self, batch: Batch) -> Memory:
        """Encode the sources of a batch."""
        return encode(self.model, self.inputs(batch), batch.source_mask)

    def parse_source(self, source: Text) -> Text:
        """Split a line into texts by the recipe's columns, or into a text and an image."""
        columns = self.recipe.data.columns
        if not self.reads_text and self.source.text is not None:
            columns = columns or TEXT_IMAGE_COLUMNS
        return split_columns(source, columns) if isinstance(source, str) else source

    def _warn_of_sources(self, sources: Sequence[Text]) -> None:
        """Log how many texts have unknown tokens, and how many are long."""
        field = self.source.text
        if field is None:
            return
        if not self.reads_text:
            sources = [texts_of(source)[0] for source in sources]
        ids = field.warn_of_unknown(sources, "sources")
        if not self._has_warned:
            self._has_warned = warn_if_long(ids, self.recipe.data.batch.max_length, LONG_SOURCES)
