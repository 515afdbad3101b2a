"""Short training of small models on sentence pairs, in a plain loop that students can read."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice

import torch
from torch import nn

from regard.data.batch import Batch
from regard.data.batching import BatchConfig, Batches
from regard.data.datasets.synthetic.phrasebook import splits
from regard.data.example import Example
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig, split_words
from regard.models.build import ModelConfig, build_model
from regard.models.decoders.cho import ChoDecoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.init import InitConfig
from regard.models.seq2seq import EncoderDecoder
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.training.losses import Loss, cross_entropy

WORDS = TokenizerConfig(kind="word")
CLIP_NORM = 1.0


def short_sentences(
    num_train: int, num_test: int, *, max_words: int
) -> tuple[list[Example], list[Example]]:
    """Return training and test pairs of the phrasebook whose targets have few words.

    Test pairs consist of words of the training pairs.

    Args:
        num_train: Number of training pairs before long ones are dropped.
        num_test: Number of test pairs to return at most.
        max_words: Maximum number of words of a target.
    """
    train, _, test = splits(num_train=num_train, num_valid=0, num_test=4 * num_test)
    short, held_out = (
        [pair for pair in part if len(split_words(pair.target)) <= max_words]
        for part in (train, test)
    )
    known = {word for pair in short for word in split_words(f"{pair.source} {pair.target}")}
    fits = [pair for pair in held_out if {*split_words(f"{pair.source} {pair.target}")} <= known]
    return short, fits[:num_test]


@dataclass(frozen=True)
class Vocabularies:
    """Fields of source and target words."""

    source: TextField
    target: TextField

    @classmethod
    def fit(cls, examples: Sequence[Example], config: TokenizerConfig = WORDS) -> "Vocabularies":
        """Collect the words of both sides; targets have a start token."""
        source = TextField.fit(config, [example.source for example in examples])
        target = TextField.fit(config, [example.target for example in examples])
        target.add_start()
        return cls(source, target)

    def batches(
        self, examples: Sequence[Example], *, max_tokens: int = 1000, seed: int | None = None
    ) -> Batches:
        """Return padded batches: shuffled with a seed, or sorted by length without one."""
        return Batches(
            self.source.read_all([example.source for example in examples]),
            self.target.read_all([example.target for example in examples]),
            BatchConfig(max_tokens=max_tokens),
            fields=(self.source, self.target),
            seed=seed or 0,
            is_shuffled=seed is not None,
        )

    def build(self, config: ModelConfig) -> EncoderDecoder:
        """Build an encoder–decoder of these vocabularies."""
        return build_model(config, source=self.source.spec, target_vocab_size=self.target.size)


def fixed_context_model(dim: int) -> ModelConfig:
    """Return the settings of a small encoder–decoder of Cho et al.: a fixed context, GRU cells."""
    return ModelConfig(
        encoder=RnnEncoderConfig(
            cell="gru", num_layers=1, is_bidirectional=True, embedding_dim=dim, dim=dim, dropout=0.0
        ),
        decoder=ChoDecoderConfig(
            cell="gru", num_layers=1, embedding_dim=dim, dim=2 * dim, dropout=0.0
        ),
        init=InitConfig(embedding="normal", scale=0.1),
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch inside the block and restore its generator afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def train(
    model: nn.Module,
    batches: Batches,
    loss: Callable[[Batch], Loss],
    *,
    num_steps: int,
    learning_rate: float = 0.004,
) -> Iterator[int]:
    """Train with Adam and yield the number of updates after each one.

    Args:
        model: The model, changed in place.
        batches: Training batches; epochs follow each other until all updates are made.
        loss: Loss of a batch as a sum over its tokens.
        num_steps: Number of updates.
        learning_rate: Learning rate at the start; it falls linearly to 0.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    endless = (batch for epoch in count() for batch in batches.epoch(epoch))
    for step, batch in enumerate(islice(endless, num_steps)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (1 - step / num_steps)
        model.train()
        optimizer.zero_grad()
        result = loss(batch)
        (result.total / result.count).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        model.eval()
        yield step + 1


def translation_loss(model: EncoderDecoder, batch: Batch, *, teacher_forcing: float = 1.0) -> Loss:
    """Compute −Σ log p(y_t | y_<t, x) of a batch."""
    inputs, labels = batch.target[:, :-1], batch.target[:, 1:]
    output = model(batch.source, batch.source_mask, inputs, teacher_forcing=teacher_forcing)
    return cross_entropy(output.logits, labels, batch.target_mask[:, 1:])


def decode(
    model: EncoderDecoder,
    vocabularies: Vocabularies,
    pairs: Sequence[Example],
    *,
    beams: int,
    length_penalty: float,
) -> list[Hypothesis]:
    """Return the best hypothesis of each pair's source by beam search; 1 beam is greedy search."""
    config = SearchConfig(beams=beams, length_penalty=length_penalty)
    tokenizer = vocabularies.target.tokenizer
    hypotheses: dict[int, Hypothesis] = {}
    for batch in vocabularies.batches(pairs, max_tokens=1500).epoch(0):
        with torch.inference_mode():
            memory = model.encode(batch.source, batch.source_mask)
            results = search(
                ModelScorer(model, memory, banned=(tokenizer.pad, tokenizer.sos, tokenizer.unk)),
                start=tokenizer.sos,
                end=tokenizer.eos,
                max_lengths=config.max_lengths(batch.source_mask),
                config=config,
            )
        hypotheses |= {row: best for row, (best,) in zip(batch.rows, results, strict=True)}
    return [hypotheses[row] for row in range(len(pairs))]
