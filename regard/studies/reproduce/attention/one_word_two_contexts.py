"""One word in two contexts: self-attention by similarity, and with learned W_q and W_k."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from regard.attention.attend import masked_softmax, scaled_dot, weighted_sum
from regard.core.module import Linear, Module
from regard.plots.scatter import projections
from regard.plots.word_maps import WordMap, word_maps
from regard.studies.reproduce.findings import Claim, Findings, Plot

WORD = "bank"
SENSES = {"river": ("river", "water", "shore"), "money": ("money", "loan", "cash")}
"""Words that decide the sense of the word, by sense."""
FILLERS = ("the", "of", "near", "keeps", "old", "house", "street")
EMBEDDINGS = {
    # A building; rivers; money; grammar.
    "bank": (2.0, 0.0, 0.0, 0.0),
    "house": (1.5, 0.0, 0.0, 0.0),
    "street": (1.2, 0.0, 0.0, 0.0),
    "old": (1.0, 0.0, 0.0, 0.0),
    "river": (0.0, 1.5, 0.0, 0.0),
    "water": (0.0, 1.2, 0.0, 0.0),
    "shore": (0.0, 1.4, 0.0, 0.0),
    "money": (0.0, 0.0, 1.5, 0.0),
    "loan": (0.0, 0.0, 1.2, 0.0),
    "cash": (0.0, 0.0, 1.4, 0.0),
    "the": (0.0, 0.0, 0.0, 0.5),
    "of": (0.0, 0.0, 0.0, 0.7),
    "near": (0.0, 0.0, 0.0, 1.0),
    "keeps": (0.0, 0.0, 0.0, 0.8),
}
"""Embeddings, set by hand. The dot product of bank with river and with money is 0."""
DIM = 4
NOISE = 0.2
"""Standard deviation of the noise on the embedding of each token."""

SENTENCES = ("the old bank near the river", "the old bank keeps the money")
NUM_SENTENCES, LENGTH, NUM_STEPS, RATE = 1_000, 6, 200, 0.05
"""Sentences for training and for test, their words, training steps and learning rate."""
NUM_PLOTTED = 200

SIMPLIFIED, LEARNED = "simplified, x_i · x_j", "learned W_q, W_k"


@dataclass(frozen=True)
class Corpus:
    """Sentences with one ambiguous word each."""

    inputs: Tensor
    """(B, L, D), embeddings with noise."""
    word: Tensor
    """(B,), position of the ambiguous word."""
    clue: Tensor
    """(B,), position of the word that decides its sense."""
    senses: Tensor
    """(B,), index of the sense."""


class Simplified(Module):
    """Self-attention without parameters: a_ij = softmax_j(x_i · x_j), y_i = Σ_j a_ij x_j."""

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return contextual embeddings (B, L, D) and weights (B, L, L) of inputs (B, L, D)."""
        weights = masked_softmax(inputs @ inputs.mT)
        return weighted_sum(weights, inputs), weights


class Learned(Module):
    """Self-attention with q_i = W_q x_i and k_j = W_k x_j; the values are the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.query_map = Linear(DIM, DIM, bias=False)
        self.key_map = Linear(DIM, DIM, bias=False)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return contextual embeddings (B, L, D) and weights (B, L, L) of inputs (B, L, D)."""
        weights = masked_softmax(scaled_dot(self.query_map(inputs), self.key_map(inputs)))
        return weighted_sum(weights, inputs), weights


def one_word_two_contexts(seed: int, _folder: Path | None = None) -> Findings:
    """Compare the contextual embeddings of one word with both kinds of self-attention.

    Args:
        seed: Seed of the sentences and of the parameters.
    """
    train, test = (sample_corpus(seed, part) for part in ("train", "test"))
    numbers: dict[str, dict[str, float]] = {}
    maps: dict[str, WordMap] = {}
    points: dict[str, Tensor] = {}
    for name, kind in (("simplified", Simplified), ("learned", Learned)):
        title = {"simplified": SIMPLIFIED, "learned": LEARNED}[name]
        attention, classifier = fit(kind, train, seed)
        numbers[title] = measure(attention, classifier, test)
        points[title] = _embeddings(attention, test)[:NUM_PLOTTED]
        for sentence in SENTENCES:
            words = sentence.split()
            _, weights = attention(embed(words)[None])
            maps[f"{title}: … {words[-1]}"] = WordMap(weights[0].detach(), words, words)
    return Findings(
        tables={"The word bank in test sentences": numbers},
        claims=_claims(numbers),
        plots={
            "one-word-two-contexts": _plot_points(points, test),
            "one-word-two-contexts-weights": Plot(
                word_maps(maps, columns=2, has_values=True),
                "Attention weights of two sentences, one row per query. By similarity, bank "
                "attends to itself and to old; with learned W_q and W_k, to river and to money.",
            ),
        },
    )


def embed(words: Sequence[str]) -> Tensor:
    """Return the embeddings of words, (L, D), without noise."""
    return torch.tensor([EMBEDDINGS[word] for word in words])


def sample_corpus(seed: int, part: str) -> Corpus:
    """Sample sentences: the ambiguous word, one word of a sense and fillers, in random order."""
    random = Random(f"{part} {seed}")
    sentences, positions, clues, senses = [], [], [], []
    for _ in range(NUM_SENTENCES):
        sense = random.randrange(len(SENSES))
        clue = random.choice(list(SENSES.values())[sense])
        words = [WORD, clue, *random.choices(FILLERS, k=LENGTH - 2)]
        random.shuffle(words)
        sentences.append(embed(words))
        positions.append(words.index(WORD))
        clues.append(words.index(clue))
        senses.append(sense)
    inputs = torch.stack(sentences)
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    inputs = inputs + NOISE * torch.randn(inputs.shape, generator=generator)
    return Corpus(inputs, *(torch.tensor(values) for values in (positions, clues, senses)))


def fit(kind: type[Module], corpus: Corpus, seed: int) -> tuple[Module, Linear]:
    """Train a classifier of the sense from the contextual embedding, and the attention below."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        attention, classifier = kind(), Linear(DIM, len(SENSES))
    parameters = [*attention.parameters(), *classifier.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        loss = cross_entropy(classifier(_embeddings(attention, corpus)), corpus.senses)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return attention.requires_grad_(False), classifier.requires_grad_(False)


def measure(attention: Module, classifier: Linear, corpus: Corpus) -> dict[str, float]:
    """Measure weights, accuracy and similarity of the contextual embeddings of the word."""
    rows = torch.arange(len(corpus.inputs))
    _, weights = attention(corpus.inputs)
    embedded = _embeddings(attention, corpus)
    predicted = classifier(embedded).argmax(-1)
    first, second = (embedded[corpus.senses == sense] for sense in range(2))
    return {
        "weight on itself": float(weights[rows, corpus.word, corpus.word].mean()),
        "weight on the word of the sense": float(weights[rows, corpus.word, corpus.clue].mean()),
        "accuracy of the sense %": 100 * float((predicted == corpus.senses).double().mean()),
        "cosine, same sense": _mean_cosine(first, first.roll(1, 0)),
        "cosine, other sense": _mean_cosine(first, second),
    }


def _embeddings(attention: Module, corpus: Corpus) -> Tensor:
    """Return the contextual embedding y_i of the ambiguous word of each sentence, (B, D)."""
    outputs: Tensor = attention(corpus.inputs)[0]
    return outputs[torch.arange(len(outputs)), corpus.word]  # (B, D)


def _mean_cosine(first: Tensor, second: Tensor) -> float:
    num = min(len(first), len(second))
    return float(cosine_similarity(first[:num], second[:num]).mean())


def _claims(numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    simple, learned = numbers[SIMPLIFIED], numbers[LEARNED]
    clue, right = "weight on the word of the sense", "accuracy of the sense %"
    other = "cosine, other sense"
    return (
        Claim(
            "Similarity is not enough: bank attends to itself, not to river or money.",
            f"mean weight {simple['weight on itself']:.2f} on itself, {simple[clue]:.3f} on the "
            f"word of the sense; uniform {1 / LENGTH:.2f}",
            simple[clue] < 1 / LENGTH < simple["weight on itself"],
        ),
        Claim(
            "Its contextual embeddings are then nearly equal in both contexts.",
            f"mean cosine {simple[other]:.3f}; sense predicted for {simple[right]:.0f} % "
            "of the test sentences",
            simple[other] > 0.9,
        ),
        Claim(
            "With learned W_q and W_k, bank attends to the word that decides its sense.",
            f"mean weight {learned[clue]:.2f}",
            learned[clue] > 0.5,
        ),
        Claim(
            "Its contextual embedding then depends on the context.",
            f"mean cosine {learned[other]:.2f} between senses, "
            f"{learned['cosine, same sense']:.2f} within one; sense predicted for "
            f"{learned[right]:.0f} %",
            learned[right] > 95 and learned[other] < 0.5 * learned["cosine, same sense"],
        ),
    )


def _plot_points(points: dict[str, Tensor], corpus: Corpus) -> Plot:
    names = list(SENSES)
    labels = [names[sense] for sense in corpus.senses[:NUM_PLOTTED].tolist()]
    # The axes of rivers and of money.
    positions = {name: embedded[:, 1:3].numpy() for name, embedded in points.items()}
    notes = dict.fromkeys(points, "x: rivers, y: money")
    caption = (
        f"Contextual embeddings y of bank in {NUM_PLOTTED} test sentences, coloured by sense: "
        "their second and third coordinate, centred and scaled in each panel."
    )
    return Plot(projections(positions, labels, notes=notes), caption)
