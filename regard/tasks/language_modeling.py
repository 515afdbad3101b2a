"""Language models as a task: text in, what comes next out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from regard.attention.recording import record
from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.vocabulary import train_tokenizer
from regard.data.text.windows import StreamField, WindowBatch, Windows, group_by_length
from regard.metrics.text.perplexity import TextSize, perplexities
from regard.models.language_model import LanguageModel, build_language_model, next_log_probs
from regard.search.forced import describe_context, score_text
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import LanguageScorer
from regard.search.search import search as find_targets
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.recipe import LanguageRecipe
from regard.tasks.warm_start import as_run_of
from regard.training.loop import Validation
from regard.training.losses import Loss, cross_entropy

TOKENIZER = "tokenizer.json"


class LanguageTask(Task[LanguageRecipe]):
    """Foretells texts: a tokenizer, a language model and a search."""

    model: LanguageModel
    read = staticmethod(reading.read_texts)
    read_side = staticmethod(reading.read_text_side)

    def __init__(
        self,
        recipe: LanguageRecipe,
        model: LanguageModel,
        *,
        tokenizer: Tokenizer,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.field = StreamField(tokenizer, is_exact=recipe.data.tokenizer.kind == "byte")

    @classmethod
    def fresh(
        cls, recipe: LanguageRecipe, *, tokenizer: Tokenizer, device: torch.device
    ) -> "LanguageTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = build_language_model(recipe.model, vocab_size=tokenizer.vocab_size)
        return cls(recipe, model, tokenizer=tokenizer, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: LanguageRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> "LanguageTask":
        """Learn a vocabulary from a training text, and build a model over it."""
        if init_from is None:
            lines = [example.source for example in examples]
            tokenizer = train_tokenizer(recipe.data.tokenizer, lines)
            return cls.fresh(recipe, tokenizer=tokenizer, device=device)
        init_from = as_run_of(LanguageTask, init_from, which="of a language model")
        data = replace(recipe.data, tokenizer=init_from.recipe.data.tokenizer)
        recipe = replace(recipe, model=init_from.recipe.model, data=data)
        begun = cls.fresh(recipe, tokenizer=init_from.field.tokenizer, device=device)
        begun.model.load_state_dict(init_from.model.state_dict())
        return begun

    @classmethod
    def open(cls, recipe: LanguageRecipe, folder: Path, *, device: torch.device) -> "LanguageTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        return cls.fresh(recipe, tokenizer=Tokenizer.load(folder / TOKENIZER), device=device)

    def save(self, folder: Path) -> None:
        """Write the vocabulary."""
        self.field.tokenizer.save(folder / TOKENIZER)

    def training_batches(self, examples: Sequence[Example]) -> Windows:
        """Return windows of the text to learn from."""
        ids = self.field.stream([example.source for example in examples])
        logger.info(
            "Model: %s parameters, %s tokens; the text has %s of them.",
            f"{self.num_parameters:,}",
            f"{self.field.tokenizer.vocab_size:,}",
            f"{len(ids) - 1:,}",
        )
        return Windows(
            ids,
            window=self.recipe.data.window,
            num_windows=self.recipe.data.num_windows,
            seed=self.recipe.seed,
            is_pinned=self.device.type == "cuda",
        )

    def loss(self, batch: WindowBatch) -> Loss:
        """Return the cross entropy of the next token."""
        tokens = batch.to(self.device).tokens
        with self.autocast():
            logits = self.model(tokens[:, :-1]).logits
        labels = tokens[:, 1:]
        smoothing = self.recipe.train.label_smoothing if self.model.training else 0.0
        return cross_entropy(logits, labels, torch.ones_like(labels).bool(), smoothing=smoothing)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure the loss on the validation text."""
        tokens = self._stream(examples)

        def validate() -> Validation:
            nll = -float(self._log_probs(tokens, is_quick=True).mean())
            return Validation(value=-nll, numbers={"loss": nll})

        return validate

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Measure how surprised the model is by a text.

        A recurrent model reads the text from end to end and carries its state on; another one
        reads it in windows that overlap by half.
        """
        lines = [example.source for example in examples]
        tokens = self._stream(examples)
        started = time.perf_counter()
        with torch.inference_mode():
            nll = -float(self._log_probs(tokens, is_quick=False).double().sum())
        seconds = time.perf_counter() - started
        num_unknown = int((tokens == self.field.tokenizer.unk).sum())
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
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Continue every text, in the order given; an answer begins with what it continues.

        An empty text is continued from the start of a line. What is drawn for a text depends on
        it and the seed alone.

        Args:
            sources: What to continue.
            search: How to search or draw; the recipe's way if not given.
            num_best: How many continuations a text.
            prefix: What every continuation must begin with.
        """
        at_least("nbest", num_best, 1)
        config = search or self.recipe.search
        prompts = self.field.read_all([source + prefix for source in sources])
        answers: list[list[Prediction]] = [[] for _ in sources]
        for rows in group_by_length(prompts, self._max_tokens):
            numbers = [crc32(sources[row].encode()) for row in rows]
            found = self._continue(
                [prompts[row] for row in rows], config, num_best=num_best, numbers=numbers
            )
            for row, best in zip(rows, found, strict=True):
                answers[row] = best
        return answers

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each line, read from the start of a line on."""
        texts = self.field.read_all([example.source for example in examples])
        # A text of no tokens is certain.
        scored = [Prediction(example.source, 0.0, (), ()) for example in examples]
        for rows in group_by_length(texts, self._max_tokens):
            tokens = self.field.stack([texts[row] for row in rows]).to(self.device)
            if tokens.shape[1] == 1:
                continue
            with torch.inference_mode():
                logits = self.model(tokens[:, :-1]).logits
                log_probs = next_log_probs(logits, tokens[:, 1:]).tolist()
            for row, values in zip(rows, log_probs, strict=True):
                said = tuple(values[: len(texts[row])])
                pieces = self.field.tokenizer.tokens(texts[row])
                scored[row] = Prediction(examples[row].source, sum(said), pieces, said)
        return scored

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where each place of a line looks back; maps without layers where it cannot."""
        maps = []
        for text in self.field.read_all([example.source for example in examples]):
            tokens = [self.field.line_end, *text]
            with torch.inference_mode(), record(self.model, is_self=True) as recorded:
                self.model(torch.tensor([tokens], device=self.device))
            maps.append(AttentionMap.within(self.field.tokenizer.tokens(tokens), recorded))
        return maps

    def answer(self, source: str, target: str | None = None) -> tuple[Example, str]:
        """Return the text itself, and the likeliest tokens after it with their probabilities."""
        if target is not None:
            raise ConfigError(
                "`--target` is for models that answer a source, but a language model has only its "
                f"text. Write '{target}' at the end of the sentence."
            )
        found = [f"{piece} {share:.3f}" for piece, share in self.next_tokens(source)]
        return Example(source), f"Next: {'  '.join(found)}"

    def next_tokens(self, prompt: str, num: int = 10) -> list[tuple[str, float]]:
        """Return the likeliest tokens after a text with their probabilities, likeliest first."""
        at_least("num", num, 1)
        tokens = torch.tensor([[self.field.line_end, *self.field.read(prompt)]], device=self.device)
        with torch.inference_mode():
            log_probs = self.model(tokens).logits[0, -1].float().log_softmax(-1)
        found = log_probs.topk(min(num, len(log_probs)))
        pieces = self.field.tokenizer.tokens(found.indices.tolist())
        return list(zip(pieces, found.values.exp().tolist(), strict=True))

    def _continue(
        self,
        prompts: Sequence[list[int]],
        config: SearchConfig,
        *,
        num_best: int,
        numbers: Sequence[int],
    ) -> list[list[Prediction]]:
        roles = self.field.tokenizer
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        limits = (lengths * config.max_ratio).long().clamp(min=lengths) + config.max_extra
        if self.model.max_length:
            limits = limits.clamp(max=self.model.max_length).maximum(lengths + 1)
        with torch.inference_mode():
            found = find_targets(
                LanguageScorer(self.model, len(prompts), banned=(roles.pad, roles.sos, roles.unk)),
                start=self.field.line_end,
                end=roles.eos,
                max_lengths=limits,
                config=config,
                num_best=num_best,
                prefixes=prompts,
                numbers=numbers,
            )
        return [[self._prediction(hypothesis) for hypothesis in best] for best in found]

    def _prediction(self, hypothesis: Hypothesis) -> Prediction:
        return Prediction(
            text=self.field.write(hypothesis.tokens).removesuffix("\n"),
            log_prob=hypothesis.log_prob,
            tokens=self.field.tokenizer.tokens(hypothesis.tokens),
            token_log_probs=hypothesis.step_log_probs,
        )

    def _stream(self, examples: Sequence[Example]) -> Tensor:
        ids = self.field.stream([example.source for example in examples])
        if len(ids) < 2:
            raise DataError("There is nothing to measure: the text has no token.")
        return torch.from_numpy(ids).long().to(self.device)

    def _log_probs(self, tokens: Tensor, *, is_quick: bool) -> Tensor:
        """Return the log-probability of every token of a text but the first."""
        data = self.recipe.data
        return score_text(
            self.model, tokens, window=data.window, batch=data.num_windows, is_quick=is_quick
        )

    @property
    def _max_tokens(self) -> int:
        return self.recipe.data.window * self.recipe.data.num_windows
