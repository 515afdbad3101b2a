"""Phrases that must be in a target, and phrases that must not be in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import State
from regard.search.scorer import Scorer

SEPARATOR = -2
"""In a form of a phrase: any token after which a word begins, such as whitespace or a bracket."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Phrase that a target must contain."""

    forms: tuple[tuple[int, ...], ...]
    """Token sequences that spell the phrase. Search generates the first one if the model does not
    generate any. The first element may be `SEPARATOR`."""
    text: str
    """The phrase, for messages."""
    count: int = 1
    """Number of occurrences; they must not overlap."""

    @property
    def num_tokens(self) -> int:
        """Number of tokens that the occurrences take."""
        return self.count * len(self.forms[0])


@dataclass(frozen=True, slots=True)
class ForbiddenPhrase:
    """Phrase that a target must not contain, as an automaton over its characters.

    An edge `(i, token, j)` means that the token spells the characters i to j.
    """

    edges: tuple[tuple[int, int, int], ...]
    """Edges; character 0 is the whitespace before the phrase."""
    length: int
    """Number of characters, with the whitespace."""
    is_free: bool
    """Whether the phrase may begin after any token, without whitespace; otherwise at the beginning
    of a word only."""
    text: str
    """The phrase, for messages."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Positions of words in sequences of tokens."""

    begins: Tensor
    """(V,), whether a token cannot continue a word: a word starts or ends before it."""
    opens: Tensor
    """(V,), whether a token without mark of whitespace begins a word after this one."""
    space: int = -1
    """Token that search generates for `SEPARATOR`; -1 if no phrase has it."""

    def to(self, device: torch.device) -> "Vocabulary":
        """Return a copy on a device."""
        return Vocabulary(self.begins.to(device), self.opens.to(device), self.space)


@dataclass(frozen=True, slots=True)
class LexicalConstraints:
    """Constraints of one sentence."""

    required: tuple[Phrase, ...] = ()
    forbidden: tuple[ForbiddenPhrase, ...] = ()

    @property
    def num_tokens(self) -> int:
        """Number of tokens that the required phrases take."""
        return sum(phrase.num_tokens for phrase in self.required)


class LexicalScorer:
    """Scorer that forbids the last token of forbidden phrases; search finds the required ones.

    If all tokens of a hypothesis would be forbidden, none is at that step.

    Args:
        scorer: Scorer of next tokens.
        constraints: The constraints of each sentence.
        vocabulary: Positions of words in sequences of tokens.
    """

    def __init__(
        self, scorer: Scorer, constraints: Sequence[LexicalConstraints], vocabulary: Vocabulary
    ) -> None:
        self.scorer = scorer
        self.constraints = constraints
        self.vocabulary = vocabulary.to(scorer.device)
        self.batch = scorer.batch
        self.device = scorer.device

    @property
    def has_required(self) -> bool:
        """Whether a sentence has required phrases."""
        return any(one.required for one in self.constraints)

    @property
    def has_forbidden(self) -> bool:
        """Whether a sentence has forbidden phrases."""
        return any(one.forbidden for one in self.constraints)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        state = self.scorer.start(beams, max_length)
        if not self.has_forbidden:
            return state
        tables = _edge_tables(self.constraints, self.device)
        num_phrases, num_characters = tables["is_free"].shape[1], int(tables["length"].max())
        reached = torch.zeros(
            self.batch * beams, num_phrases, num_characters, dtype=torch.bool, device=self.device
        )
        return State(
            {"scorer": state.per_source, "tables": tables},
            {"scorer": state.per_hypothesis, "reached": reached},
        )

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token per hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        if not self.has_forbidden:
            return self.scorer.step(tokens, state)
        tables = state.per_source["tables"]
        log_probs, inner = self.scorer.step(
            tokens, State(state.per_source["scorer"], state.per_hypothesis["scorer"])
        )
        beams = len(tokens) // len(tables["is_free"])
        rows = {name: table.repeat_interleave(beams, 0) for name, table in tables.items()}
        reached = self._advance(tokens, state.per_hypothesis["reached"], rows)
        # An edge to the end of a phrase whose beginning was generated.
        is_last = reached.gather(2, rows["begin"]) & (rows["end"] == rows["length"][..., None])
        is_last &= rows["token"] >= 0
        marks = torch.zeros(
            len(log_probs), log_probs.shape[1] + 1, dtype=torch.bool, device=self.device
        )
        # An additional column receives the tokens that are not forbidden.
        forbidden = rows["token"].masked_fill(~is_last, log_probs.shape[1]).flatten(1)
        marks.scatter_(1, forbidden, True)
        changed = log_probs.masked_fill(marks[:, :-1], -torch.inf)
        is_stuck = (changed == -torch.inf).all(1, keepdim=True)
        return torch.where(is_stuck, log_probs, changed), State(
            {"scorer": inner.per_source, "tables": tables},
            {"scorer": inner.per_hypothesis, "reached": reached},
        )

    def _advance(self, tokens: Tensor, reached: Tensor, rows: dict[str, Tensor]) -> Tensor:
        """Return which characters of each phrase are generated after a token, (B·W, F, L)."""
        is_taken = reached.gather(2, rows["begin"]) & (rows["token"] == tokens[:, None, None])
        is_taken &= rows["end"] < rows["length"][..., None]
        ends = rows["end"].clamp(max=reached.shape[2] - 1)
        counts = torch.zeros(reached.shape, dtype=torch.int32, device=self.device)
        following = counts.scatter_add_(2, ends, is_taken.int()) > 0
        following[..., 0] = True
        if reached.shape[2] > 1:
            following[..., 1] |= rows["is_free"] | self.vocabulary.opens[tokens][:, None]
        return following


def _edge_tables(
    constraints: Sequence[LexicalConstraints], device: torch.device
) -> dict[str, Tensor]:
    """Return the edges of forbidden phrases, (B, F, E) each; padding has the token -1."""
    num_phrases = max(len(one.forbidden) for one in constraints)
    num_edges = max(len(phrase.edges) for one in constraints for phrase in one.forbidden)
    edges = torch.zeros(len(constraints), num_phrases, num_edges, 3, dtype=torch.long)
    edges[..., 1] = -1
    length = torch.ones(len(constraints), num_phrases, dtype=torch.long)
    is_free = torch.zeros(len(constraints), num_phrases, dtype=torch.bool)
    for row, one in enumerate(constraints):
        for column, phrase in enumerate(one.forbidden):
            edges[row, column, : len(phrase.edges)] = torch.tensor(phrase.edges)
            length[row, column] = phrase.length
            is_free[row, column] = phrase.is_free
    begin, token, end = edges.to(device).unbind(-1)
    return {
        "begin": begin,
        "token": token,
        "end": end,
        "length": length.to(device),
        "is_free": is_free.to(device),
    }


def check_lengths(constraints: Sequence[LexicalConstraints], max_lengths: Sequence[int]) -> None:
    """Raise `ConfigError` if the required phrases of a sentence do not fit into its target."""
    for one, limit in zip(constraints, max_lengths, strict=True):
        # One token is the end token.
        if one.required and one.num_tokens >= limit:
            texts = ", ".join(f"'{phrase.text}'" for phrase in one.required)
            noun = "phrase" if len(one.required) == 1 else "phrases"
            raise ConfigError(
                f"Required phrases and the end token must fit into the maximum target length "
                f"({limit} tokens), but the {noun} {texts[:200]} and the end token have "
                f"{one.num_tokens + 1} tokens. Require less, or allow longer targets "
                "(`search.max_extra`)."
            )
