"""Greedy and beam search on a small tree, and on random trees, against exhaustive search."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.models.interfaces import State
from regard.plots.curves import scaling
from regard.plots.tree import Branch, Status, trees
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.studies.reproduce.findings import Claim, Findings, Plot

WORDS = ("the", "a", "cat", "dog", "mouse", "sleeps", "runs")
TREE: dict[tuple[str, ...], dict[str, float]] = {
    (): {"the": 0.6, "a": 0.4},
    ("the",): {"cat": 0.4, "dog": 0.35, "mouse": 0.25},
    ("a",): {"cat": 0.9, "dog": 0.1},
    ("the", "cat"): {"sleeps": 0.55, "runs": 0.45},
    ("the", "dog"): {"sleeps": 0.4, "runs": 0.6},
    ("the", "mouse"): {"sleeps": 0.5, "runs": 0.5},
    ("a", "cat"): {"sleeps": 0.8, "runs": 0.2},
    ("a", "dog"): {"sleeps": 0.7, "runs": 0.3},
}
"""Probabilities of the next word after each prefix. The numbers are ours."""

GREEDY, BEAM, EXHAUSTIVE = "greedy search", "beam 2", "exhaustive search"
NUM_WORDS = 3
"""Length of every sentence of the tree."""

NUM_TREES, NUM_TOKENS, DEPTH = 200, 6, 4
SPREAD = 1.2
"""Standard deviation of the scores of random trees, before the softmax."""

SIZES = (1, 2, 3, 5, 10, 25, NUM_TOKENS ** (DEPTH - 1))
"""Beam sizes; the last one keeps every path, so beam search is exhaustive."""

VOCAB_SIZE, LENGTH = 10_000, 10
"""Sizes of a usual search, for the number of paths."""

Prefix = tuple[str, ...]


class TreeScorer:
    """Scorer of next tokens with given probabilities, in place of a model.

    Args:
        levels: For each step the probabilities (B, V^t, V) of the next token after each prefix; a
            prefix is the number whose digits of base V are its tokens.
    """

    def __init__(self, levels: Sequence[Tensor]) -> None:
        self.batch = len(levels[0])
        self.device = torch.device("cpu")
        self._log_probs = [level.log() for level in levels]

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token: the empty prefix."""
        return State({"step": 0}, torch.zeros(self.batch * beams, dtype=torch.long))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Append one token per hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        step, prefixes = state.per_source["step"], state.per_hypothesis
        table = self._log_probs[step]
        if step:
            prefixes = prefixes * table.shape[-1] + tokens
        trees = torch.arange(self.batch).repeat_interleave(len(prefixes) // self.batch)
        return table[trees, prefixes], State({"step": step + 1}, prefixes)


def beam_search(seed: int, _folder: Path | None = None) -> Findings:
    """Search the tree and random trees.

    Args:
        seed: Seed of the random trees.
    """
    levels = as_levels(TREE, WORDS, NUM_WORDS)
    kept = {
        name: [search_tree(levels, beams=beams, length=t + 1) for t in range(NUM_WORDS)]
        for name, beams in ((GREEDY, 1), (BEAM, 2))
    }
    results = {name: steps[-1][0] for name, steps in kept.items()}
    results[EXHAUSTIVE] = exhaustive_search(levels)[0]
    num_compared = {name: len(steps[-1]) for name, steps in kept.items()}
    num_compared[EXHAUSTIVE] = int(levels[-1].count_nonzero())
    shares = measure_random_trees(seed)
    return Findings(
        tables={
            "The small tree": {
                name: {
                    "result": " ".join(WORDS[token] for token in tokens),
                    "probability": probability,
                    "sentences compared at the end": num_compared[name],
                }
                for name, (tokens, probability) in results.items()
            },
            f"{NUM_TREES} random trees": {
                f"beam {size}": {"most probable sentence found, %": share}
                for size, share in shares.items()
            },
        },
        claims=_claims(results, shares),
        plots={
            "beam-search": _plot_trees(kept),
            "beam-search-random": _plot_shares(shares),
        },
    )


def as_levels(
    tree: Mapping[Prefix, Mapping[str, float]], words: Sequence[str], length: int
) -> list[Tensor]:
    """Return the probabilities of a tree as tensors for `TreeScorer`, with a batch of one."""
    size = len(words)
    levels = [torch.zeros(1, size**step, size) for step in range(length)]
    for prefix, probabilities in tree.items():
        row = 0
        for word in prefix:
            row = row * size + words.index(word)
        for word, probability in probabilities.items():
            levels[len(prefix)][0, row, words.index(word)] = probability
    return levels


Found = tuple[tuple[int, ...], float]
"""Tokens and probability of a hypothesis."""


def search_tree(levels: Sequence[Tensor], *, beams: int, length: int) -> list[Found]:
    """Return the hypotheses in the beam of the first tree after `length` steps, best first."""
    return _search(levels, beams=beams, length=length, num_best=beams)[0]


def _search(
    levels: Sequence[Tensor], *, beams: int, length: int, num_best: int = 1
) -> list[list[Found]]:
    scorer = TreeScorer(levels)
    found = search(
        scorer,
        start=0,
        end=levels[0].shape[-1],  # no token ends a sentence before the last step
        max_lengths=torch.full((scorer.batch,), length),
        config=SearchConfig(beams=beams, length_penalty=0.0),
        num_best=num_best,
    )
    return [
        [(one.tokens, float(torch.tensor(one.log_prob).exp())) for one in best] for best in found
    ]


def exhaustive_search(levels: Sequence[Tensor]) -> list[Found]:
    """Return the most probable path of each tree by comparing all V^T paths."""
    batch, _, size = levels[0].shape
    totals = torch.ones(batch, 1)
    for level in levels:
        totals = (totals[:, :, None] * level).flatten(1)
    best, paths = totals.max(1)
    tokens = [paths // size**power % size for power in reversed(range(len(levels)))]
    rows = torch.stack(tokens, 1).tolist()
    return [(tuple(row), value) for row, value in zip(rows, best.tolist(), strict=True)]


def measure_random_trees(seed: int) -> dict[int, float]:
    """Return the percentage of random trees whose best path is found, by beam size."""
    generator = torch.Generator().manual_seed(seed)
    levels = [
        (SPREAD * torch.randn(NUM_TREES, NUM_TOKENS**step, NUM_TOKENS, generator=generator))
        .double()
        .log_softmax(-1)
        .exp()
        for step in range(DEPTH)
    ]
    best = [tokens for tokens, _ in exhaustive_search(levels)]
    shares = {}
    for size in SIZES:
        found = [paths[0][0] for paths in _search(levels, beams=size, length=DEPTH)]
        num_found = sum(one == other for one, other in zip(found, best, strict=True))
        shares[size] = 100 * num_found / NUM_TREES
    return shares


def _claims(results: Mapping[str, Found], shares: Mapping[int, float]) -> tuple[Claim, ...]:
    (greedy, greedy_prob), (beam, beam_prob), (best, best_prob) = results.values()
    sentences = [" ".join(WORDS[token] for token in tokens) for tokens in (greedy, beam, best)]
    num_greedy, num_two = LENGTH * VOCAB_SIZE, 2 * LENGTH * VOCAB_SIZE
    values = list(shares.values())
    return (
        Claim(
            "Greedy search misses the best solution.",
            f"'{sentences[0]}' has probability {greedy_prob:.3f}, '{sentences[2]}' "
            f"{best_prob:.3f}.",
            greedy != best and greedy_prob < best_prob,
        ),
        Claim(
            "Beam 2 finds it: its result is that of exhaustive search.",
            f"'{sentences[1]}' with probability {beam_prob:.3f}.",
            beam == best,
        ),
        Claim(
            "Keeping all paths is impossible.",
            f"With {VOCAB_SIZE:,} words and {LENGTH} steps there are 10^"
            f"{len(str(VOCAB_SIZE**LENGTH)) - 1} sentences; greedy search compares {num_greedy:,} "
            f"continuations, beam 2 at most {num_two:,}.",
            VOCAB_SIZE**LENGTH > 10**30 * num_two,
        ),
        Claim(
            "A wider beam misses the best solution less often; a beam of 2 still does.",
            f"On {NUM_TREES} random trees of depth {DEPTH}, greedy search finds it in "
            f"{values[0]:.0f} %, beam 2 in {values[1]:.0f} %, beam 10 in {shares[10]:.0f} %.",
            values == sorted(values) and values[0] < values[1] < 100,
        ),
        Claim(
            "A beam that keeps every path is exhaustive search.",
            f"Beam {SIZES[-1]} finds the best of all {NUM_TOKENS**DEPTH:,} sentences in "
            f"{values[-1]:.0f} % of the trees.",
            values[-1] == 100,
        ),
    )


def _plot_trees(kept: Mapping[str, Sequence[Sequence[Found]]]) -> Plot:
    panels = {
        f"{name}: probability {steps[-1][0][1]:.3f}": _branches((), 1.0, steps)
        for name, steps in kept.items()
    }
    caption = (
        "The tree of our example. Edges: p(word | previous words). Below a word: probability of "
        "the words so far. Dotted: dropped, or never reached. The most probable sentence begins "
        "with the less probable first word."
    )
    return Plot(trees(panels), caption)


def _branches(prefix: Prefix, total: float, steps: Sequence[Sequence[Found]]) -> tuple[Branch, ...]:
    branches = []
    for word, probability in TREE.get(prefix, {}).items():
        words = (*prefix, word)
        value = total * probability
        branches.append(
            Branch(word, probability, value, _status(words, steps), _branches(words, value, steps))
        )
    return tuple(branches)


def _status(words: Prefix, steps: Sequence[Sequence[Found]]) -> Status:
    tokens = tuple(WORDS.index(word) for word in words)
    result = steps[-1][0][0]
    if result[: len(tokens)] == tokens:
        return "result"
    is_kept = tokens in [path for path, _ in steps[len(tokens) - 1]]
    return "kept" if is_kept else "pruned"


def _plot_shares(shares: Mapping[int, float]) -> Plot:
    figure = scaling(
        {"most probable sentence found": [(size, share) for size, share in shares.items()]},
        x_label="beam size",
        y_label="% of random trees",
    )
    caption = (
        f"Share of {NUM_TREES} random trees, {NUM_TOKENS} words and {DEPTH} steps each, whose most "
        "probable sentence beam search finds (logarithmic axis). The last beam keeps every path."
    )
    return Plot(figure, caption)
