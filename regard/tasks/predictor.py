"""A trained model with all that surrounds it: raw text in, predictions out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.record import record
from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.data.batches import Batch
from regard.data.batching import BatchConfig, Batches
from regard.data.examples import Example
from regard.data.fields import TextField
from regard.data.tokenizers import Tokenizer
from regard.models.build import build_model
from regard.models.seq2seq import EncoderDecoder
from regard.search.beam import SearchConfig, beam_search
from regard.search.force import force
from regard.search.greedy import greedy
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import ModelScorer
from regard.tasks.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer to one source."""

    text: str
    """The answer as text."""
    log_prob: float
    """Its log-probability."""
    tokens: tuple[str, ...]
    """Its pieces as the model wrote them, the end token included."""
    token_log_probs: tuple[float, ...]
    """The log-probability of each piece."""


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Where the model looked while it wrote a given target."""

    source: tuple[str, ...]
    """The source's pieces."""
    target: tuple[str, ...]
    """The target's pieces."""
    weights: Tensor
    """(N, H, T, S), on the host."""

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """Target and source pieces as people read them, without the mark of a word's start."""
        return [_label(piece) for piece in self.target], [_label(piece) for piece in self.source]

    def mean(self) -> Tensor:
        """Average layers and heads: (T, S)."""
        return self.weights.mean((0, 1))  # (T, S)


class Predictor:
    """Fields, model and search around one another; shared by every command and the server."""

    def __init__(
        self,
        recipe: Recipe,
        model: EncoderDecoder,
        *,
        source: Tokenizer,
        target: Tokenizer,
        device: torch.device,
    ) -> None:
        self.recipe = recipe
        self.model = model.to(device).eval()
        self.source = TextField(source, has_start=False)
        self.target = TextField(target, has_start=True)
        self.device = device

    @classmethod
    def fresh(
        cls, recipe: Recipe, *, source: Tokenizer, target: Tokenizer, device: torch.device
    ) -> "Predictor":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = build_model(
            recipe.model,
            source_vocab_size=source.vocab_size,
            target_vocab_size=target.vocab_size,
        )
        return cls(recipe, model, source=source, target=target, device=device)

    @property
    def num_parameters(self) -> int:
        """Number of weights, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def predict(
        self,
        sources: Sequence[str],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
    ) -> list[list[Prediction]]:
        """Answer every source with its best predictions, in the order given.

        An empty source has one answer, the empty one.

        Args:
            sources: One sentence each.
            search: How to search; the recipe's way if not given.
            num_best: How many predictions a source.
        """
        at_least("nbest", num_best, 1)
        config = search or self.recipe.search
        answers = [[Prediction("", 0.0, (), ())] for _ in sources]
        filled = [row for row, source in enumerate(sources) if source.strip()]
        examples = [Example(sources[row]) for row in filled]
        for batch in self.batches(examples):
            for row, found in zip(
                batch.rows, self._search(batch, config, num_best=num_best), strict=True
            ):
                answers[filled[row]] = [self._prediction(hypothesis) for hypothesis in found]
        return answers

    def translate(self, sources: Sequence[str], *, search: SearchConfig | None = None) -> list[str]:
        """Answer every source with the text of its best prediction."""
        return [found[0].text for found in self.predict(sources, search=search)]

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of every example's own target, as a prediction of it."""
        scored: list[Prediction | None] = [None] * len(examples)
        for batch in self.batches(examples):
            on_device = batch.to(self.device)
            with torch.inference_mode():
                log_probs = force(
                    self.model, on_device.source, batch.source_mask, targets=on_device.target
                ).cpu()
            for place, row in enumerate(batch.rows):
                length = int(batch.target_mask[place].sum()) - 1
                said = tuple(log_probs[place, :length].tolist())
                pieces = batch.target[place, 1 : length + 1].tolist()
                tokens = tuple(self.target.tokenizer.token(piece) for piece in pieces)
                scored[row] = Prediction(examples[row].target, sum(said), tokens, said)
        return [prediction for prediction in scored if prediction is not None]

    def foretell(self, examples: Sequence[Example]) -> list[tuple[bool, ...]]:
        """Tell for each word of every example's own target whether the model foretells it.

        It does if each piece of the word is the likeliest after the right ones before it, in one
        teacher-forced pass. A word that the vocabulary does not know is never foretold.
        """
        told: list[tuple[bool, ...]] = [()] * len(examples)
        roles = self.target.tokenizer
        for batch in self.batches(examples):
            on_device = batch.to(self.device)
            labels = on_device.target[:, 1:]  # (B, T - 1)
            with torch.inference_mode():
                output = self.model(on_device.source, batch.source_mask, on_device.target[:, :-1])
            hits = (output.logits.argmax(-1) == labels) & (labels != roles.unk)
            for row, pieces in zip(batch.rows, hits.tolist(), strict=True):
                words = roles.word_index(examples[row].target)
                right = [True] * (max(words, default=-1) + 1)
                # The end token and padding belong to no word.
                for word, is_hit in zip(words, pieces, strict=False):
                    right[word] &= is_hit
                told[row] = tuple(right)
        return told

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where the model looks while it writes each example's own target.

        One teacher-forced pass; a model without attention gives maps without layers.
        """
        maps: list[AttentionMap | None] = [None] * len(examples)
        for batch in self.batches(examples):
            on_device = batch.to(self.device)
            with torch.inference_mode(), record(self.model) as recorded:
                self.model(on_device.source, batch.source_mask, on_device.target[:, :-1])
            for place, row in enumerate(batch.rows):
                num_source = int(batch.source_mask[place].sum())
                num_target = int(batch.target_mask[place].sum()) - 1
                weights = torch.zeros(0, 1, num_target, num_source)
                if recorded.num_layers:
                    weights = recorded.stack()[place, :, :, :num_target, :num_source].cpu().float()
                maps[row] = AttentionMap(
                    source=self._pieces(self.source, batch.source[place, :num_source]),
                    target=self._pieces(self.target, batch.target[place, 1 : num_target + 1]),
                    weights=weights,
                )
        return [found for found in maps if found is not None]

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
        self, batch: Batch, config: SearchConfig, *, num_best: int
    ) -> list[list[Hypothesis]]:
        roles = self.target.tokenizer
        with torch.inference_mode():
            memory = self.model.encode(batch.source.to(self.device), batch.source_mask)
            scorer = ModelScorer(self.model, memory, banned=(roles.pad, roles.sos))
            limits = config.max_lengths(batch.source_mask)
            if config.beams == 1 and num_best == 1:
                found = greedy(scorer, start=roles.sos, end=roles.eos, max_lengths=limits)
                return [[hypothesis] for hypothesis in found]
            return beam_search(
                scorer,
                start=roles.sos,
                end=roles.eos,
                max_lengths=limits,
                config=config,
                num_best=num_best,
            )

    def _prediction(self, hypothesis: Hypothesis) -> Prediction:
        return Prediction(
            text=self.target.write(hypothesis.tokens),
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.target.tokenizer.token(token) for token in hypothesis.tokens),
            token_log_probs=hypothesis.step_log_probs,
        )

    def _pieces(self, field: TextField, tokens: Tensor) -> tuple[str, ...]:
        return tuple(field.tokenizer.token(token) for token in tokens.tolist())


def _label(piece: str) -> str:
    return piece.removeprefix("▁") or piece
