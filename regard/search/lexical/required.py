"""Progress of hypotheses in the phrases that their targets must contain."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.search.lexical.constraints import SEPARATOR, LexicalConstraints, Vocabulary

PADDING = -1


@dataclass(frozen=True)
class Progress:
    """Progress of hypotheses, (B, W, ...)."""

    matched: Tensor
    """(B, W, C, L), bool: whether the latest tokens are the first 1 … L tokens of a form."""
    counts: Tensor
    """(B, W, N), number of occurrences of each phrase, at most the required number."""
    is_complete: Tensor
    """(B, W), whether the last token completed a required occurrence."""

    def select(self, indices: Tensor) -> "Progress":
        """Select hypotheses (B, K) of each sentence."""
        rows = torch.arange(len(indices), device=indices.device)[:, None]
        return Progress(*(part[rows, indices] for part in vars(self).values()))


class RequiredPhrases:
    """Required phrases of a batch as tensors.

    A phrase is in a target if its tokens are: phrases may overlap, occurrences of one phrase may
    not. A required occurrence ends at the end of a word: no token that continues the word may
    follow it.

    All tensors are padded to N phrases, C forms and L tokens per form; the first N forms are those
    that search generates.

    Args:
        constraints: The constraints of each sentence.
        vocabulary: Positions of words in sequences of tokens, on the device of the search.
        start: The start token.
    """

    def __init__(
        self, constraints: Sequence[LexicalConstraints], vocabulary: Vocabulary, *, start: int
    ) -> None:
        self.vocabulary = vocabulary
        device = vocabulary.begins.device
        phrases = [one.required for one in constraints]
        num_phrases = max(map(len, phrases))
        others = [
            [(number, form) for number, phrase in enumerate(group) for form in phrase.forms[1:]]
            for group in phrases
        ]
        num_forms = num_phrases + max(map(len, others))
        longest = max(len(form) for group in phrases for one in group for form in one.forms)
        forms = torch.full((len(phrases), num_forms, longest), PADDING)
        groups = torch.zeros(len(phrases), num_forms, dtype=torch.long)
        needed = torch.zeros(len(phrases), num_phrases, dtype=torch.long)
        for row, (group, alternatives) in enumerate(zip(phrases, others, strict=True)):
            first = [(number, phrase.forms[0]) for number, phrase in enumerate(group)]
            columns = [*range(len(first)), *range(num_phrases, num_phrases + len(alternatives))]
            for column, (number, form) in zip(columns, [*first, *alternatives], strict=True):
                forms[row, column, : len(form)] = torch.tensor(form)
                groups[row, column] = number
            needed[row, : len(group)] = torch.tensor([phrase.count for phrase in group])
        self.forms = forms.to(device)  # (B, C, L)
        self.lengths = (self.forms != PADDING).sum(2)  # (B, C)
        self.needed = needed.to(device)  # (B, N)
        self.sizes = self.lengths[:, :num_phrases]  # (B, N)
        self.totals = (self.needed * self.sizes).sum(1)  # (B,)
        is_separator = self.forms == SEPARATOR
        self._generated = self.forms[:, :num_phrases].masked_fill(
            is_separator[:, :num_phrases], vocabulary.space
        )  # (B, N, L)
        self._is_separator = is_separator
        member = torch.nn.functional.one_hot(groups, num_phrases).bool()  # (B, C, N)
        self._member = member.to(device) & (self.lengths > 0)[..., None]
        self._groups = groups.to(device)
        self._opens_first = bool(vocabulary.opens[start])

    def start(self, beams: int) -> Progress:
        """Return the progress of empty hypotheses."""
        batch, num_forms, longest = self.forms.shape
        device = self.forms.device
        matched = torch.zeros(batch, beams, num_forms, longest, dtype=torch.bool, device=device)
        if self._opens_first:
            matched |= self._is_separator[:, None]
        counts = torch.zeros(batch, beams, self.needed.shape[1], dtype=torch.long, device=device)
        return Progress(matched, counts, torch.zeros(batch, beams, dtype=torch.bool, device=device))

    def advance(self, progress: Progress, tokens: Tensor) -> Progress:
        """Return the progress of hypotheses (B, K) after another token, (B, K)."""
        opens = self.vocabulary.opens[tokens][..., None, None]  # (B, K, 1, 1)
        is_equal = self.forms[:, None] == tokens[..., None, None]  # (B, K, C, L)
        is_equal |= self._is_separator[:, None] & opens
        begun = torch.ones_like(is_equal[..., :1])
        matched = torch.cat([begun, progress.matched[..., :-1]], -1) & is_equal
        last = (self.lengths - 1).clamp(min=0)[:, None, :, None].expand(*matched.shape[:3], 1)
        is_whole = matched.gather(3, last)[..., 0]  # (B, K, C)
        has_occurred = (is_whole[..., None] & self._member[:, None]).any(2)  # (B, K, N)
        is_new = has_occurred & (progress.counts < self.needed[:, None])
        groups = self._groups[:, None].expand(*matched.shape[:3])
        # The next occurrence begins after this one.
        matched &= ~has_occurred.gather(2, groups)[..., None]
        return Progress(matched, progress.counts + is_new, is_new.any(2))

    def is_met(self, progress: Progress) -> Tensor:
        """Return whether all required phrases have occurred, (B, K)."""
        return (progress.counts >= self.needed[:, None]).all(2)

    def num_met(self, progress: Progress) -> Tensor:
        """Return the number of required occurrences, (B, K)."""
        return progress.counts.sum(2)

    def num_tokens(self, progress: Progress) -> Tensor:
        """Return the number of tokens of met phrases and of the longest begun phrase, (B, K)."""
        begun = self._num_begun(progress).masked_fill(~self._is_open(progress), 0)  # (B, K, N)
        return (progress.counts * self.sizes[:, None]).sum(2) + begun.amax(2)

    def next_tokens(self, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the next token of each phrase, (B, K, N), and whether the phrase is not met."""
        index = self._num_begun(progress)[..., None]
        forms = self._generated[:, None].expand(*index.shape[:3], -1)
        tokens = forms.gather(3, index)[..., 0]
        return tokens.clamp(min=0), self._is_open(progress)

    def is_inside_word(self, progress: Progress, tokens: Tensor) -> Tensor:
        """Return whether hypotheses must end a word after a complete phrase, (B, K).

        Args:
            progress: The progress of hypotheses.
            tokens: (B, K), the last token of each hypothesis.
        """
        return progress.is_complete & ~self.vocabulary.opens[tokens]

    def _is_open(self, progress: Progress) -> Tensor:
        return progress.counts < self.needed[:, None]

    def _num_begun(self, progress: Progress) -> Tensor:
        """Return the number of tokens of each phrase that have been generated, (B, K, N)."""
        num_phrases, longest = self.sizes.shape[1], self.forms.shape[2]
        numbers = torch.arange(1, longest + 1, device=self.forms.device)
        return (progress.matched[:, :, :num_phrases] * numbers).amax(3)
