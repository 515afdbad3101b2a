"""The masked language model with all that surrounds it: it fills gaps and judges texts."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from regard.attention.recording import record
from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.text.field import TextField
from regard.data.text.masked_batches import MaskedBatch, MaskedBatches
from regard.data.text.masking import MASKINGS
from regard.data.text.packing import PACKINGS
from regard.data.text.tokenizers import Tokenizer, with_mask
from regard.data.text.vocabulary import train_tokenizer
from regard.models.masked_lm import MaskedModel
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.masked_lm.distillation import Teacher
from regard.tasks.masked_lm.gaps import (
    Gaps,
    check_gaps,
    fill_all,
    rank_fillings,
    read_gaps,
    refuse_target,
)
from regard.tasks.masked_lm.log_probs import Asked, tell
from regard.tasks.masked_lm.metrics import evaluate_masked
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.recipe import MaskedRecipe
from regard.tasks.warm_start import as_run_of
from regard.training.loop import Validation
from regard.training.losses import Loss, cross_entropy

TOKENIZER = "tokenizer.json"


class MaskedTask(Task[MaskedRecipe]):
    """Tells tokens that are hidden from it."""

    read = staticmethod(reading.read_texts)
    read_side = staticmethod(reading.read_text_side)

    model: MaskedModel

    def __init__(
        self,
        recipe: MaskedRecipe,
        model: MaskedModel,
        *,
        tokenizer: Tokenizer,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.field = TextField(tokenizer, has_start=True)
        # Beside the model, not in it: a teacher is neither trained nor saved.
        self._teacher: Teacher | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts text into tokens."""
        return self.field.tokenizer

    @classmethod
    def fresh(
        cls, recipe: MaskedRecipe, *, tokenizer: Tokenizer, device: torch.device
    ) -> "MaskedTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = MaskedModel(recipe.model, tokenizer.vocab_size)
        return cls(recipe, model, tokenizer=tokenizer, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: MaskedRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> "MaskedTask":
        """Learn a vocabulary, or take over the teacher's or the start's, and build a model."""
        if init_from is not None:
            return cls._begin(recipe, init_from, device=device)
        if recipe.teacher:
            teacher = Teacher.load(recipe.teacher, recipe, device=device)
            begun = cls.fresh(recipe, tokenizer=teacher.tokenizer, device=device)
            teacher.hand_down(begun.model)
            begun._teacher = teacher
            return begun
        config = with_mask(recipe.data.tokenizer)
        tokenizer = train_tokenizer(config, [example.source for example in examples])
        return cls.fresh(recipe, tokenizer=tokenizer, device=device)

    @classmethod
    def _begin(
        cls, recipe: MaskedRecipe, init_from: Task[Any], *, device: torch.device
    ) -> "MaskedTask":
        """Go on with another run's encoder and head; further heads begin anew if it had none."""
        before = as_run_of(MaskedTask, init_from, which="of a masked language model")
        model = replace(recipe.model, encoder=before.recipe.model.encoder)
        recipe = replace(recipe, model=model)
        begun = cls.fresh(recipe, tokenizer=before.tokenizer, device=device)
        own = begun.model.state_dict()
        known = {name: value for name, value in before.model.state_dict().items() if name in own}
        begun.model.load_state_dict(known, strict=False)
        return begun

    @classmethod
    def open(cls, recipe: MaskedRecipe, folder: Path, *, device: torch.device) -> "MaskedTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        return cls.fresh(recipe, tokenizer=Tokenizer.load(folder / TOKENIZER), device=device)

    def save(self, folder: Path) -> None:
        """Write the vocabulary."""
        self.tokenizer.save(folder / TOKENIZER)

    def training_batches(self, examples: Sequence[Example]) -> MaskedBatches:
        """Return the batches to learn from; the teacher, if there is one, comes in."""
        if self.recipe.teacher and self._teacher is None:
            self._teacher = Teacher.load(self.recipe.teacher, self.recipe, device=self.device)
            self._teacher.check_vocabulary(self.tokenizer)
        batches = self._batches(examples, seed=self.recipe.seed, is_shuffled=True)
        logger.info(
            "Model: %s parameters, %s tokens; %s batches an epoch.",
            f"{self.num_parameters:,}",
            f"{self.tokenizer.vocab_size:,}",
            f"{batches.num_batches(0):,}",
        )
        return batches

    def held_out_batches(self, examples: Sequence[Example]) -> list[MaskedBatch]:
        """Cut texts into batches with always the same tokens hidden, whatever the run's seed."""
        batches = self._batches(examples, seed=self.recipe.data.seed, is_shuffled=False)
        return list(batches.epoch(0))

    def _batches(
        self, examples: Sequence[Example], *, seed: int, is_shuffled: bool
    ) -> MaskedBatches:
        config = self.recipe.data
        lines = self.tokenizer.encode_batch([example.source for example in examples])
        return MaskedBatches(
            PACKINGS[config.packing](
                lines, config.batch.max_length, tokenizer=self.tokenizer, seed=seed
            ),
            config.batch,
            field=self.field,
            masking=MASKINGS[type(config.masking)](config.masking, self.tokenizer, seed=seed),
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def loss(self, batch: MaskedBatch) -> Loss:
        """Return what telling the hidden tokens costs, and what else the recipe asks for."""
        batch = batch.to(self.device)
        with self.autocast():
            states = self.model.encode(batch.values, batch.mask).states
            logits = self.model.tell(states, batch.hidden)
            loss = token_loss(logits, batch.labels)
            if self.model.training and self._teacher is not None:
                loss = self._teacher.teach(loss, batch, states=states, logits=logits)
            return self._with_further_terms(loss, batch, states)

    def _with_further_terms(self, loss: Loss, batch: MaskedBatch, states: Tensor) -> Loss:
        total = loss.total
        if self.model.boundary is not None:
            logits = self.model.tell_from_boundaries(states, batch.hidden)
            total = total + self.recipe.model.boundary * token_loss(logits, batch.labels).total
        if self.model.next_sentence is not None and batch.belongs is not None:
            judged = self.model.next_sentence(states).float()
            term = F.cross_entropy(judged, batch.belongs)
            total = total + self.recipe.model.next_sentence * term * loss.count
        return replace(loss, total=total)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure the loss on hidden tokens, always the same ones."""
        return self.watch_loss(self.held_out_batches(examples))

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Hide tokens of a test set, always the same ones, and measure how well they are told."""
        return evaluate_masked(self, examples, num_bootstrap=num_bootstrap)

    def predict(
        self,
        sources: Sequence[str],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Fill the gaps of every line, `<mask>`, `[MASK]` or `___`; an empty line stays empty.

        Each gap is one token. The tokens of several gaps are told independently; a prediction's
        `tokens` are what fills them, one after the other.

        Args:
            sources: Lines with at least one gap each.
            search: Not used: nothing is searched for.
            num_best: How many fillings a line, the likeliest first.
            prefix: Not used: nothing is written.
        """
        at_least("nbest", num_best, 1)
        check_gaps(sources)
        found = [self._read_gaps(line) for line in sources]
        told = self.tell((gaps.values, gaps.places) for gaps in found if gaps.places)
        return [
            rank_fillings(gaps, next(told), self.tokenizer, num_best=num_best)
            if gaps.places
            else [Prediction("", 0.0, (), ())]
            for gaps in found
        ]

    def _read_gaps(self, line: str) -> Gaps:
        return read_gaps(line, self.tokenizer, itertools.repeat(self.tokenizer.mask))

    def translate(self, sources: Sequence[Any], *, search: SearchConfig | None = None) -> list[str]:
        """Fill the gaps of every line; a line without any is its own answer."""
        return fill_all(sources, self.predict)

    def answer(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the line and how its gaps are filled; no other filling can be looked at."""
        refuse_target(target)
        return super().answer(source)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the pseudo-log-likelihood of every line: each token is hidden in turn.

        Salazar et al. 2020, eq. 1.
        """
        rows = [self.field.read(example.source) for example in examples]
        told = self.tell(
            ([*ids[:place], self.tokenizer.mask, *ids[place + 1 :]], [place])
            for ids in rows
            for place in range(1, len(ids) - 1)
        )
        scored = []
        for example, ids in zip(examples, rows, strict=True):
            said = tuple(float(next(told)[0, token]) for token in ids[1:-1])
            pieces = self.tokenizer.tokens(ids[1:-1])
            scored.append(Prediction(example.source.strip(), sum(said), pieces, said))
        return scored

    def tell(self, asked: Iterable[Asked]) -> Iterator[Tensor]:
        """Yield how likely every token is at the asked places of each text, (L, V)."""
        max_tokens = self.recipe.data.batch.max_tokens
        return tell(self.model, asked, field=self.field, max_tokens=max_tokens)

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where each token of each line looks, layer by layer."""
        return [self._attend(example.source) for example in examples]

    def _attend(self, line: str) -> AttentionMap:
        ids = self._read_gaps(line).values
        values = torch.tensor([ids], device=self.device)
        with torch.inference_mode(), record(self.model.encoder, is_self=True) as recorded:
            self.model.encode(values, torch.ones_like(values, dtype=torch.bool))
        return AttentionMap.within(self.tokenizer.tokens(ids), recorded)


def token_loss(logits: Tensor, labels: Tensor) -> Loss:
    """Return the cross entropy of hidden tokens: logits (L, V), labels (L,)."""
    everywhere = torch.ones_like(labels, dtype=torch.bool)
    return cross_entropy(logits[None], labels[None], everywhere[None])
