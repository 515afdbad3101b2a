"""Memory of recurrent nets: recall and gradient by the lag between an input and its use."""

from collections.abc import Sequence
from pathlib import Path

import torch
from matplotlib.ticker import FuncFormatter, NullFormatter
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.models.recurrent import SEQUENCES, Cell
from regard.plots.curves import lines
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import accuracy, fit, seeded

NUM_SYMBOLS, NUM_FILLERS = 8, 8
"""Symbols to be recalled, and symbols without meaning that follow."""

LAGS = (5, 10, 20, 40, 80)
GRADIENT_LENGTH = 80
SMALLEST = 1e-12
"""Lower end of the axis of gradient norms."""
DIM = 32
NUM_STEPS, BATCH_SIZE, RATE = 400, 64, 0.01
NUM_TEST = 512

VANILLA, GRU, LSTM, LSTM_OPEN = "vanilla RNN", "GRU", "LSTM", "LSTM, forget bias 3"
MODELS: dict[str, tuple[Cell, float]] = {
    VANILLA: ("vanilla", 0.0),
    GRU: ("gru", 0.0),
    LSTM: ("lstm", 0.0),
    LSTM_OPEN: ("lstm", 3.0),
}
"""Cell, and the value added to the bias of the forget gates."""

CAUSES = {
    "I apologize for being late ,": "sorry",
    "I have won the first prize ,": "happy",
    "I have worked for ten hours ,": "tired",
    "I walk alone at night ,": "afraid",
}
"""First clauses, and the word that completes the sentence."""

FILLERS = ("and so", "as you see ,", "you know ,")
ENDING = "I am very"
MAX_FILLERS = 4
NUM_SENTENCES = 400
WORDS = sorted({word for text in (*CAUSES, *FILLERS, ENDING) for word in text.split()})
WINDOW = 3
"""Number of words before the blank that the second LSTM is given."""


class Recurrent(nn.Module):
    """Embedding, recurrent layer, and a linear layer on the last state.

    Args:
        cell: Recurrent cell.
        num_tokens: Size of the vocabulary.
        num_labels: Number of labels.
        forget_bias: Value added to the bias of the forget gates of an LSTM.
    """

    def __init__(
        self, cell: Cell, num_tokens: int, *, num_labels: int, forget_bias: float = 0.0
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_tokens, DIM)
        self.recurrence = SEQUENCES[cell](DIM, DIM, batch_first=True)
        self.output = nn.Linear(DIM, num_labels)
        if forget_bias:
            bias = dict(self.recurrence.named_parameters())["bias_ih_l0"]
            # The gates are ordered: input, forget, cell, output.
            bias.data[DIM : 2 * DIM] += forget_bias

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (B, V) of token ids (B, S)."""
        return self.predict(self.embedding(tokens))

    def predict(self, embedded: Tensor) -> Tensor:
        """Return the logits (B, V) of embeddings (B, S, D)."""
        states, _ = self.recurrence(embedded)
        output: Tensor = self.output(states[:, -1])
        return output


def memory_by_lag(seed: int, _folder: Path) -> Findings:
    """Train recurrent nets to recall a symbol, and measure gradients by lag.

    Args:
        seed: Seed of the sequences and of the initial weights.
    """
    recall = {name: {lag: recall_accuracy(name, lag, seed) for lag in LAGS} for name in MODELS}
    gradients = {name: gradient_by_lag(build(name, seed), seed) for name in MODELS}
    sentences = complete_sentences(seed)
    return Findings(
        tables={
            "Recall in % by lag": {
                name: {f"lag {lag}": value for lag, value in row.items()}
                for name, row in recall.items()
            },
            "Gradient norm by lag, relative to lag 0, before training": {
                name: {f"lag {lag}": row[lag] for lag in (0, *LAGS) if lag < GRADIENT_LENGTH}
                for name, row in gradients.items()
            },
            "I apologize for being late, I am very _____": sentences,
        },
        claims=_claims(recall, gradients, sentences),
        plots={
            "memory-by-lag": _recall_plot(recall),
            "memory-by-lag-gradient": _gradient_plot(gradients),
        },
    )


def build(name: str, seed: int) -> Recurrent:
    """Return a net for the recall task with newly initialised weights."""
    cell, forget_bias = MODELS[name]
    with seeded(seed):
        return Recurrent(
            cell, NUM_SYMBOLS + NUM_FILLERS, num_labels=NUM_SYMBOLS, forget_bias=forget_bias
        )


def sample_sequences(
    num_sequences: int, lag: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Sample a symbol to be recalled, followed by `lag` fillers.

    Returns:
        Sequences (B, S) and their first symbols (B,).
    """
    labels = torch.randint(NUM_SYMBOLS, (num_sequences, 1), generator=generator)
    fillers = torch.randint(NUM_FILLERS, (num_sequences, lag), generator=generator)
    return torch.cat([labels, NUM_SYMBOLS + fillers], dim=1), labels[:, 0]


def recall_accuracy(name: str, lag: int, seed: int) -> float:
    """Train a net to recall the first symbol after a lag, and return its accuracy in percent."""
    model = build(name, seed)
    fit(
        model,
        lambda generator: sample_sequences(BATCH_SIZE, lag, generator),
        num_steps=NUM_STEPS,
        rate=RATE,
        seed=seed,
    )
    test = sample_sequences(NUM_TEST, lag, torch.Generator().manual_seed(seed + 1_000))
    return accuracy(model, *test)


def gradient_by_lag(model: Recurrent, seed: int) -> list[float]:
    """Return the norm of the loss gradient of each input, from the last to the first.

    The norms are means over sequences, divided by that of the last input.
    """
    generator = torch.Generator().manual_seed(seed)
    tokens, labels = sample_sequences(BATCH_SIZE, GRADIENT_LENGTH - 1, generator)
    embedded = model.embedding(tokens).detach().requires_grad_()
    loss = cross_entropy(model.predict(embedded), labels)
    (gradient,) = torch.autograd.grad(loss, embedded)
    norms = gradient.norm(dim=-1).mean(0).flip(0)  # (S,)
    return [float(norm) for norm in norms / norms[0]]


def sample_sentences(num_sentences: int, generator: torch.Generator) -> list[tuple[list[str], str]]:
    """Sample words before the blank, and the word that completes the sentence."""

    def index(size: int) -> int:
        return int(torch.randint(size, (), generator=generator))

    causes = list(CAUSES.items())
    sentences = []
    for _ in range(num_sentences):
        first, answer = causes[index(len(causes))]
        fillers = [FILLERS[index(len(FILLERS))] for _ in range(index(MAX_FILLERS + 1))]
        sentences.append((" ".join([first, *fillers, ENDING]).split(), answer))
    return sentences


def encode(sentences: Sequence[Sequence[str]], num_read: int) -> Tensor:
    """Return the token ids (B, S) of the last words of sentences, with padding in front."""
    ids = [[1 + WORDS.index(word) for word in sentence[-num_read:]] for sentence in sentences]
    return torch.tensor([[0] * (num_read - len(row)) + row for row in ids])


def complete(train: Sequence[tuple[list[str], str]], num_read: int, seed: int) -> dict[str, float]:
    """Train an LSTM on sentences and return the probability of each word for the blank.

    Args:
        train: Words before the blank, and the word for it.
        num_read: Number of words before the blank that the LSTM is given.
        seed: Seed of the initial weights.
    """
    answers = list(CAUSES.values())
    inputs = encode([sentence for sentence, _ in train], num_read)
    labels = torch.tensor([answers.index(answer) for _, answer in train])
    with seeded(seed):
        model = Recurrent("lstm", 1 + len(WORDS), num_labels=len(answers))
    fit(model, lambda _: (inputs, labels), num_steps=150, rate=0.01, seed=seed)
    asked = f"{next(iter(CAUSES))} {ENDING}".split()
    with torch.no_grad():
        probabilities = model(encode([asked], num_read)).softmax(-1)[0]
    return dict(zip(answers, probabilities.tolist(), strict=True))


def complete_sentences(seed: int) -> dict[str, dict[str, float]]:
    """Return the probability of each word for the blank, with all words and with the last ones."""
    train = sample_sentences(NUM_SENTENCES, torch.Generator().manual_seed(seed))
    length = max(len(sentence) for sentence, _ in train)
    return {
        "LSTM": complete(train, length, seed),
        f"LSTM, last {WINDOW} words": complete(train, WINDOW, seed),
    }


def _claims(
    recall: dict[str, dict[int, float]],
    gradients: dict[str, list[float]],
    sentences: dict[str, dict[str, float]],
) -> tuple[Claim, ...]:
    chance = 100 / NUM_SYMBOLS
    last = {name: row[LAGS[3]] for name, row in gradients.items()}
    read, window = sentences.values()
    longest = {
        name: max([0, *(lag for lag in LAGS if row[lag] > 90)]) for name, row in recall.items()
    }
    return (
        Claim(
            "A recurrent net keeps earlier inputs in its state.",
            f"Every net recalls a symbol after {LAGS[0]} inputs: "
            + ", ".join(f"{name} {row[LAGS[0]]:.0f} %" for name, row in recall.items())
            + f" (chance {chance:.1f} %).",
            min(row[LAGS[0]] for row in recall.values()) > 90,
        ),
        Claim(
            "The gradient of a vanilla RNN vanishes with the lag.",
            f"At lag {LAGS[3]} its norm is {last[VANILLA]:.1g} of that at lag 0.",
            last[VANILLA] < 1e-6,
        ),
        Claim(
            "Gates keep inputs longer: a GRU, and an LSTM whose forget gates start open, recall "
            "after longer lags than a vanilla RNN.",
            "Longest lag with more than 90 %: "
            + ", ".join(f"{name} {lag}" for name, lag in longest.items())
            + ".",
            min(longest[GRU], longest[LSTM_OPEN]) > longest[VANILLA],
        ),
        Claim(
            "A forget gate that starts open keeps the gradient of an LSTM.",
            f"At lag {LAGS[3]}: {last[LSTM_OPEN]:.2g} with a bias of 3, {last[LSTM]:.1g} without.",
            last[LSTM_OPEN] > 100 * last[LSTM],
        ),
        Claim(
            'The memory decides how "I apologize for being late, I am very _____" ends.',
            f"sorry has the probability {read['sorry']:.2f}; with the last {WINDOW} words only, "
            f"{window['sorry']:.2f}.",
            read["sorry"] > 0.9 and window["sorry"] < 0.5,
        ),
    )


def _recall_plot(recall: dict[str, dict[int, float]]) -> Plot:
    figure = lines(
        {name: [(float(lag), value) for lag, value in row.items()] for name, row in recall.items()},
        x_label="lag: inputs between the symbol and its recall",
        y_label="accuracy in %",
    )
    figure.axes[0].set_ylim(0, 103)
    caption = (
        f"Recall of the first of {NUM_SYMBOLS} symbols after a number of other inputs, each net "
        f"trained for {NUM_STEPS} steps; chance is {100 / NUM_SYMBOLS:.1f} %."
    )
    return Plot(figure, caption)


def _gradient_plot(gradients: dict[str, list[float]]) -> Plot:
    series = {
        name: [(float(lag), value) for lag, value in enumerate(row)]
        for name, row in gradients.items()
    }
    figure = lines(
        series, x_label="lag: inputs between the input and the loss", y_label="gradient norm"
    )
    axes = figure.axes[0]
    axes.set_yscale("log")
    axes.set_ylim(SMALLEST, 3)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    caption = (
        "Norm of the gradient of the loss with respect to an input, by its distance from the end, "
        "divided by the norm at the last input; untrained nets, logarithmic axis."
    )
    return Plot(figure, caption)
