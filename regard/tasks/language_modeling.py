"""Language modelling: a text in, its continuation out."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import torch
from torch import Tensor

from regard.attention.recording import record
from regard.core.config import Positive, at_least
from regard.core.errors import ConfigError, DataError
from regard.core.progress import track
from regard.data.corpus import MAX_FITTED, sample
from regard.data.example import Example, require_examples, require_list
from regard.data.text.field import TextField, tokenizer_file
from regard.data.text.token_cache import encode_stream
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.data.text.windows import StreamField, WindowBatch, Windows, group_by_length
from regard.metrics.text.perplexity import TextSize, perplexities
from regard.models.interfaces import Encoder
from regard.models.language_model import (
    LanguageModel,
    LanguageModelConfig,
    LanguageModelEncoder,
    TransformerLanguageConfig,
    build_language_model,
    token_log_probs,
)
from regard.search.forced import describe_context, score_text
from regard.search.scorer import ModelScorer, Scorer
from regard.search.search import search as find_targets
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Fields, Generates, Task, WarmStart
from regard.tasks.decoding.consensus import find_candidates, rank_texts
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelled import label_loss
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.recipe import BaseDataConfig, BaseRecipe
from regard.tasks.source_task import EncoderTask, limit_texts
from regard.training.losses import Loss
from regard.training.validation import Validation


@dataclass(frozen=True, kw_only=True)
class LanguageDataConfig(BaseDataConfig):
    """Data settings of language models: a text is cut into windows."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="byte"))
    """The tokeniser; 'byte' is lossless."""
    window: Positive = 256
    """Number of tokens of a training example, and of a window of a test text."""
    num_windows: Positive = 64
    """Number of windows in a batch."""


@dataclass(frozen=True, kw_only=True)
class LanguageRecipe(BaseRecipe):
    """An autoregressive language model."""

    task: Literal["language_model"] = "language_model"
    """The task."""
    data: LanguageDataConfig = field(default_factory=LanguageDataConfig)
    """Data and batching."""
    model: LanguageModelConfig = field(default_factory=TransformerLanguageConfig)
    """The model."""
    search: SearchConfig = field(
        default_factory=lambda: SearchConfig(beams=1, max_ratio=1.0, max_extra=200, temperature=0.8)
    )
    """Search for continuations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search.precision == "auto":
            raise ConfigError(
                "`search.precision` must be 'fp32', 'bf16' or 'int8' for a language model, but is "
                "'auto'."
            )
        model = self.model
        if not isinstance(model, TransformerLanguageConfig) or model.positions != "learned":
            return
        if model.max_length < self.data.window:
            raise ConfigError(
                f"`model.max_length` must be at least `data.window` ({self.data.window}) with "
                f"learned positions, but is {model.max_length}."
            )


class LanguageModelingTask(Generates[LanguageRecipe], EncoderTask[LanguageRecipe]):
    """Continues texts with an autoregressive language model."""

    model: LanguageModel
    text: StreamField
    read = staticmethod(reading.read_texts)
    read_split = staticmethod(reading.read_text_split)
    run_description = "of a language model"

    @classmethod
    def fit_fields(cls, recipe: LanguageRecipe, examples: Sequence[Example]) -> Fields:
        """Fit the vocabulary."""
        examples = sample(examples, MAX_FITTED, "The tokenizer is fitted")
        lines = [example.source for example in examples]
        return _fields(recipe, train_tokenizer(recipe.data.tokenizer, lines))

    @classmethod
    def load_fields(cls, recipe: LanguageRecipe, folder: Path) -> Fields:
        """Load the vocabulary."""
        return _fields(recipe, Tokenizer.load(folder / tokenizer_file("text")))

    @classmethod
    def build_model(cls, recipe: LanguageRecipe, fields: Fields) -> LanguageModel:
        """Build the language model."""
        return build_language_model(recipe.model, vocab_size=fields["text"].tokenizer.vocab_size)

    @classmethod
    def warm_start(
        cls, recipe: LanguageRecipe, init_from: Task[Any], examples: Sequence[Example]
    ) -> WarmStart:
        """Start from the settings, the vocabulary and the weights of another language model."""
        start = cls.require_same_task(init_from)
        data = replace(recipe.data, tokenizer=start.recipe.data.tokenizer)
        recipe = replace(recipe, model=start.recipe.model, data=data)
        return WarmStart(recipe, start.fields, start.model.state_dict())

    @property
    def source_field(self) -> TextField:
        """The field of texts that are encoded one by one."""
        return TextField(self.text.tokenizer, has_start=False)

    @property
    def encoder(self) -> Encoder:
        """The language model as an encoder: the states of its last layer."""
        return LanguageModelEncoder(self.model).eval()

    @property
    def max_source_length(self) -> int:
        """Maximum number of tokens of the model; 0 = no limit."""
        return self.model.max_length

    def read_sources(self, sources: Sequence[str]) -> list[Any]:
        """Return the tokens of texts, with a line end before each text."""
        return [[self.text.line_end, *ids] for ids in self.text.read_all(sources)]

    def shorten_item(self, item: list[int], max_length: int) -> list[int]:
        """Truncate a text to `max_length` tokens."""
        return item[:max_length]

    def training_batches(self, examples: Sequence[Example]) -> Windows:
        """Return windows of the training text."""
        ids = encode_stream(examples, self.text)
        vocab_size = self.text.tokenizer.vocab_size
        self.log_model(f"{vocab_size:,} tokens; the text has {len(ids) - 1:,} of them")
        return Windows(
            ids,
            window=self.recipe.data.window,
            num_windows=self.recipe.data.num_windows,
            seed=self.recipe.seed,
            is_pinned=self.device.type == "cuda",
        )

    def loss(self, batch: WindowBatch) -> Loss:
        """Compute the cross entropy of the next token."""
        tokens = batch.to(self.device).tokens
        with self.autocast():
            logits = self.model(tokens[:, :-1]).logits
        return label_loss(logits, tokens[:, 1:], smoothing=self.smoothing)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the loss of the validation text."""
        tokens = self._stream(examples)

        def validate() -> Validation:
            nll = -float(self._log_probs(tokens, is_quick=True).mean())
            return Validation(value=-nll, metrics={"loss": nll}, metric="loss")

        return validate

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Measure the perplexity of a text. It is one sample, so there is no confidence interval.

        A recurrent model reads the text in one pass and keeps its hidden state; other models read
        it in windows that overlap by half.
        """
        require_examples(examples)
        lines = [example.source for example in examples]
        tokens = self._stream(examples)
        started = time.perf_counter()
        with torch.inference_mode():
            nll = -float(self._log_probs(tokens, is_quick=False).cpu().double().sum())
        seconds = time.perf_counter() - started
        num_unknown = int((tokens == self.text.tokenizer.unk).sum())
        size = TextSize.of(lines, num_tokens=len(tokens) - 1, num_unknown=num_unknown)
        context = describe_context(self.model, window=self.recipe.data.window)
        return Evaluation(
            results=perplexities(nll, size, context=context),
            num_tokens=len(tokens) - 1,
            seconds=seconds,
        )

    def predict(
        self,
        sources: Sequence[str],
        *,
        num_best: int = 1,
        search: SearchConfig | None = None,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Continue each text, in the order given; a prediction begins with the text.

        An empty text is continued from the start of a line. Samples depend on the text and the
        seed alone.

        Args:
            sources: Texts to continue.
            num_best: Number of continuations per text.
            search: The search settings; those of the recipe if not given.
            prefix: Text that every continuation begins with.
        """
        at_least("nbest", num_best, 1)
        require_list(sources, "sources")
        config = search or self.search
        if config.coverage_penalty:
            raise ConfigError(
                "`search.coverage_penalty` above 0 needs a decoder with cross-attention, but is "
                f"{config.coverage_penalty:g} for a language model. Set it to 0."
            )
        prompts = limit_texts(
            self.text.read_all([source + prefix for source in sources]),
            self.recipe.data.window,
            noun="texts",
            shorten=self.shorten_item,
        )
        predictions: dict[int, list[Prediction]] = {}
        groups = group_by_length(prompts, self._max_tokens)
        task = self.with_packed_model(config.precision)
        for rows in track(groups, "Predicting", total=len(prompts), size=len):
            numbers = [crc32(sources[row].encode()) for row in rows]
            chunk = [prompts[row] for row in rows]
            best = task.continue_tokens(chunk, config, num_best=num_best, numbers=numbers)
            predictions.update(zip(rows, best, strict=True))
        return [predictions[row] for row in range(len(sources))]

    @property
    def output_tokenizer(self) -> Tokenizer:
        """The tokeniser of texts."""
        return self.text.tokenizer

    @property
    def start_token(self) -> int:
        """The line end, after which texts start."""
        return self.text.line_end

    def scorers(
        self, sources: Sequence[str], search: SearchConfig
    ) -> Iterator[tuple[Sequence[int], Scorer]]:
        """Yield the index of each text and its scorer: texts are a part of predictions."""
        model = self.with_packed_model(search.precision).model
        for row in range(len(sources)):
            yield (row,), ModelScorer(model, 1, banned=self._banned)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each line, after a line end."""
        require_examples(examples)
        texts = self.text.read_all([example.source for example in examples])
        log_probs: dict[int, list[float]] = {}
        groups = group_by_length(texts, self._max_tokens)
        for rows in track(groups, "Scoring", total=len(texts), size=len):
            tokens = self.text.stack([texts[row] for row in rows]).to(self.device)
            # The log-probability of a text without tokens is 0.
            if tokens.shape[1] > 1:
                with torch.inference_mode():
                    logits = self.model(tokens[:, :-1]).logits
                    values = token_log_probs(logits, tokens[:, 1:]).tolist()
                log_probs.update(zip(rows, values, strict=True))
        names = self.text.tokenizer.tokens
        return [
            Prediction.from_tokens(example.source, names(ids), log_probs.get(row, [])[: len(ids)])
            for row, (example, ids) in enumerate(zip(examples, texts, strict=True))
        ]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the self-attention weights of each line; no layers if the model has none."""
        require_examples(examples)
        maps = []
        for tokens in self.read_sources([example.source for example in examples]):
            with torch.inference_mode(), record(self.model, is_self=True) as recorded:
                self.model(torch.tensor([tokens], device=self.device))
            maps.append(
                AttentionMap.of_self_attention(self.text.tokenizer.tokens(tokens), recorded)
            )
        return maps

    def example_to_show(self, source: str, target: str | None = None) -> tuple[Example, str]:
        """Return the text, and the most probable next tokens with their probabilities."""
        if target is not None:
            raise ConfigError(
                "`--target` is for models with a source and a target, but a language model has "
                f"only a text. Write '{target}' at the end of the sentence."
            )
        tokens = [f"{token} {prob:.3f}" for token, prob in self.next_tokens(source)]
        return Example(source), f"Next: {'  '.join(tokens)}"

    def next_tokens(self, prompt: str, num: int = 10) -> list[tuple[str, float]]:
        """Return the most probable next tokens of a text with their probabilities."""
        at_least("num", num, 1)
        tokens = torch.tensor(self.read_sources([prompt]), device=self.device)
        with torch.inference_mode():
            log_probs = self.model(tokens).logits[0, -1].float().log_softmax(-1)
        best = log_probs.topk(min(num, len(log_probs)))
        names = self.text.tokenizer.tokens(best.indices.tolist())
        return list(zip(names, best.values.exp().tolist(), strict=True))

    def continue_tokens(
        self,
        prompts: Sequence[list[int]],
        config: SearchConfig,
        *,
        num_best: int,
        numbers: Sequence[int],
    ) -> list[list[Prediction]]:
        """Continue tokenised texts of similar length, in one batch.

        Args:
            prompts: Token ids of the texts.
            config: The search settings.
            num_best: Number of continuations per text.
            numbers: Keys of the random numbers of each text, for sampling.
        """
        tokenizer, write = self.text.tokenizer, self.text.write
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        limits = (lengths * config.max_ratio).long().clamp(min=lengths) + config.max_extra
        if self.model.max_length:
            limits = limits.clamp(max=self.model.max_length).maximum(lengths + 1)
        settings, num_candidates = find_candidates(config, num_best)
        with torch.inference_mode():
            hypotheses = find_targets(
                ModelScorer(self.model, len(prompts), banned=self._banned),
                start=self.text.line_end,
                end=tokenizer.eos,
                max_lengths=limits,
                config=settings,
                num_best=num_candidates,
                prefixes=prompts,
                sample_keys=numbers,
            )
        hypotheses = rank_texts(hypotheses, config, num_best=num_best, write=write)
        return [
            [
                Prediction.from_hypothesis(write(one.tokens).removesuffix("\n"), one, tokenizer)
                for one in best
            ]
            for best in hypotheses
        ]

    def _stream(self, examples: Sequence[Example]) -> Tensor:
        ids = self.text.stream([example.source for example in examples])
        if len(ids) < 2:
            raise DataError("There is nothing to evaluate: the text has no token.")
        return torch.from_numpy(ids).long().to(self.device)

    def _log_probs(self, tokens: Tensor, *, is_quick: bool) -> Tensor:
        """Return the log-probability of every token of a text but the first."""
        data = self.recipe.data
        return score_text(
            self.model, tokens, window=data.window, batch=data.num_windows, is_quick=is_quick
        )

    @property
    def _banned(self) -> tuple[int, ...]:
        """Tokens that are never generated."""
        tokenizer = self.text.tokenizer
        return tokenizer.pad, tokenizer.sos, tokenizer.unk

    @property
    def _max_tokens(self) -> int:
        return self.recipe.data.window * self.recipe.data.num_windows


def _fields(recipe: LanguageRecipe, tokenizer: Tokenizer) -> Fields:
    return {"text": StreamField(tokenizer, is_exact=recipe.data.tokenizer.kind == "byte")}
