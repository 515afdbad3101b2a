"""Bag of words, perceptron, convolution and recurrent net on sentences that differ in word order.

A sentence states who does what to whom, in the active or the passive voice: "anna sees ben today",
"ben is seen by anna today". The label is the agent, here anna. Both orders of two names have the
same words, so the words alone leave two possible agents.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.core.specs import TextSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.mlp import MultiLayerPerceptron
from regard.plots.curves import bars
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import (
    accuracy,
    batches_of,
    count_parameters,
    fit,
    seeded,
)

NAMES = "anna ben clara david emma felix greta henry".split()
ACTIONS = {"sees": "seen", "helps": "helped", "follows": "followed", "calls": "called"}
"""Third person and participle of each action."""
DAYS = "today yesterday tomorrow".split()

PADDING = "<pad>"
OUTLINE = ("I am happy today", "Today I am happy")
"""The lecture's example of a shifted text."""
VOCABULARY = [
    PADDING,
    *("is", "by", "i", "am", "happy"),
    *NAMES,
    *(form for forms in ACTIONS.items() for form in forms),
    *DAYS,
]
LENGTH = 6
"""Words of the longest sentence."""

DIM = 32
NUM_STEPS, BATCH_SIZE, RATE = 400, 64, 0.005
TEST_SHARE = 5
"""One of so many pairs of names occurs only in test sentences."""

BAG, MLP, CNN, RNN = "bag of words", "MLP over positions", "convolution", "recurrent (GRU)"
SAME, SHIFTED, CHANGE = "day at the end %", "day in front %", "change by the shift"


@dataclass(frozen=True)
class Sentence:
    """Someone does something to someone on a day, in the active or the passive voice."""

    agent: str
    patient: str
    action: str
    day: str
    is_passive: bool

    @property
    def clause(self) -> list[str]:
        """Words without the day."""
        if self.is_passive:
            return [self.patient, "is", ACTIONS[self.action], "by", self.agent]
        return [self.agent, self.action, self.patient]

    @property
    def at_end(self) -> list[str]:
        """Words with the day at the end."""
        return [*self.clause, self.day]

    @property
    def in_front(self) -> list[str]:
        """Words with the day in front, which shifts the others by one position."""
        return [self.day, *self.clause]


class PositionalPerceptron(nn.Module):
    """MLP over the concatenated embeddings of all positions."""

    def __init__(self, num_labels: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), DIM, padding_idx=0)
        self.hidden = MultiLayerPerceptron(LENGTH * DIM, (DIM,))
        self.output = nn.Linear(DIM, num_labels)

    def encode(self, tokens: Tensor) -> Tensor:
        """Return the hidden activations (B, D) of token ids (B, S)."""
        return self.hidden(self.embedding(tokens).flatten(1))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) of token ids (B, S)."""
        output: Tensor = self.output(self.encode(tokens))
        return output


class PooledClassifier(nn.Module):
    """Classifier of the package for padded token ids."""

    def __init__(self, config: ClassifierConfig, num_labels: int) -> None:
        super().__init__()
        self.classifier = Classifier(config, TextSpec(len(VOCABULARY)), num_labels)

    def encode(self, tokens: Tensor) -> Tensor:
        """Return the pooled states (B, D) of token ids (B, S)."""
        return self.classifier.pooling(self.classifier.encoder(tokens, tokens != 0))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) of token ids (B, S)."""
        return self.classifier(tokens, tokens != 0)


POOLED = {
    BAG: ClassifierConfig(encoder=EmbeddingEncoderConfig(dim=DIM), pooling="mean", dropout=0.0),
    CNN: ClassifierConfig(
        encoder=ConvolutionEncoderConfig(
            embedding_dim=DIM, dim=DIM, num_layers=1, kernel=3, positions="none", dropout=0.0
        ),
        pooling="max",
        dropout=0.0,
    ),
    RNN: ClassifierConfig(
        encoder=RnnEncoderConfig(cell="gru", embedding_dim=DIM, dim=DIM),
        pooling="summary",
        dropout=0.0,
    ),
}


def word_order(seed: int, _folder: Path) -> Findings:
    """Train four classifiers, and test them on new pairs of names and with shifted words.

    Args:
        seed: Seed of the initial weights and of the division of the pairs of names.
    """
    train, test = divide_pairs(seed)
    inputs, labels = to_tensors([(one.at_end, one.agent) for one in train])
    models = {name: build(name, seed) for name in (BAG, MLP, CNN, RNN)}
    rows = {}
    for name, model in models.items():
        sample = batches_of(inputs, labels, size=BATCH_SIZE)
        fit(model, sample, num_steps=NUM_STEPS, rate=RATE, seed=seed)
        rows[name] = {
            "parameters": count_parameters(model),
            SAME: accuracy(model, *to_tensors([(one.at_end, one.agent) for one in test])),
            SHIFTED: accuracy(model, *to_tensors([(one.in_front, one.agent) for one in test])),
            CHANGE: change_by_shift(model),
        }
    return Findings(
        tables={
            "Accuracy on new pairs of names": rows,
            "Predicted agents": _predictions(models),
        },
        claims=_claims(rows),
        plots={"word-order": _plot(rows)},
    )


def divide_pairs(seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """Return training and test sentences, which have no pair of names in common."""
    pairs = list(itertools.combinations(NAMES, 2))
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed)).tolist()
    num_test = len(pairs) // TEST_SHARE
    chosen = [{pairs[index] for index in part} for part in (order[num_test:], order[:num_test])]
    train, test = (
        [
            Sentence(roles[0], roles[1], action, day, is_passive)
            for pair in sorted(part)
            for roles in (pair, pair[::-1])
            for action, day, is_passive in itertools.product(ACTIONS, DAYS, (False, True))
        ]
        for part in chosen
    )
    return train, test


def to_tokens(words: Sequence[str]) -> list[int]:
    """Return the token ids of words, padded to `LENGTH`."""
    tokens = [VOCABULARY.index(word.lower()) for word in words]
    return tokens + [0] * (LENGTH - len(tokens))


def to_tensors(examples: Sequence[tuple[Sequence[str], str]]) -> tuple[Tensor, Tensor]:
    """Return the token ids (B, S) of sentences and the indices of their agents (B,)."""
    tokens = torch.tensor([to_tokens(words) for words, _ in examples])
    return tokens, torch.tensor([NAMES.index(agent) for _, agent in examples])


def build(name: str, seed: int) -> PositionalPerceptron | PooledClassifier:
    """Return a classifier with newly initialised weights."""
    with seeded(seed):
        if name == MLP:
            return PositionalPerceptron(len(NAMES))
        return PooledClassifier(POOLED[name], len(NAMES))


@torch.no_grad()
def change_by_shift(model: PositionalPerceptron | PooledClassifier) -> float:
    """Return the distance of the representations of `OUTLINE`, relative to their norm."""
    first, second = model.encode(torch.tensor([to_tokens(text.split()) for text in OUTLINE]))
    return float(2 * (first - second).norm() / (first.norm() + second.norm()))


def _predictions(
    models: dict[str, PositionalPerceptron | PooledClassifier],
) -> dict[str, dict[str, str]]:
    texts = (
        "anna sees ben today",
        "ben sees anna today",
        "ben is seen by anna today",
        "today anna sees ben",
    )
    tokens = torch.tensor([to_tokens(text.split()) for text in texts])
    with torch.no_grad():
        found = {name: model(tokens).argmax(-1).tolist() for name, model in models.items()}
    return {
        text: {name: NAMES[indices[row]] for name, indices in found.items()}
        for row, text in enumerate(texts)
    }


def _claims(rows: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    bag, mlp, cnn, rnn = (rows[name] for name in (BAG, MLP, CNN, RNN))
    return (
        Claim(
            "A bag of words does not determine who does what to whom: two agents are possible.",
            f"{bag[SAME]:.1f} % of the agents are correct.",
            40 < bag[SAME] < 60,
        ),
        Claim(
            "A recurrent net uses the order of the words.",
            f"{rnn[SAME]:.1f} % are correct, on pairs of names that it was not trained on.",
            rnn[SAME] > 95,
        ),
        Claim(
            "A shift of the words makes the MLP fail, whose weights belong to positions.",
            f"With the day in front: {mlp[SHIFTED]:.1f} %, at the end: {mlp[SAME]:.1f} %.",
            mlp[SHIFTED] < mlp[SAME] - 20,
        ),
        Claim(
            "The convolution is not affected by the shift; the recurrent net less than the MLP.",
            f"With the day in front: convolution {cnn[SHIFTED]:.1f} %, recurrent net "
            f"{rnn[SHIFTED]:.1f} %, MLP {mlp[SHIFTED]:.1f} %.",
            cnn[SHIFTED] > 95 and rnn[SHIFTED] > mlp[SHIFTED],
        ),
        Claim(
            '"I am happy today" and "Today I am happy" are the same bag of words, but not the '
            "same input of an MLP.",
            f"The relative distance of their representations is {bag[CHANGE]:.2f} for the bag of "
            f"words, {mlp[CHANGE]:.2f} for the MLP, {cnn[CHANGE]:.2f} for the convolution and "
            f"{rnn[CHANGE]:.2f} for the recurrent net.",
            bag[CHANGE] < 1e-5 and mlp[CHANGE] > 0.1,
        ),
    )


def _plot(rows: dict[str, dict[str, float]]) -> Plot:
    values = {
        f"{name}, {title}": row[column]
        for name, row in rows.items()
        for title, column in (("day at the end", SAME), ("day in front", SHIFTED))
    }
    caption = (
        "Agents of test sentences predicted correctly, in %. All models were trained on sentences "
        "with the day at the end. Words without order leave two possible agents: 50 %."
    )
    return Plot(bars(values, x_label="accuracy in %"), caption)
