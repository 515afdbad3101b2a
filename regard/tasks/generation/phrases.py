"""Phrases as token sequences: their beginnings and ends in words, and all their tokenisations."""

from functools import cached_property

import torch

from regard.data.text.tokenizers import SPECIAL_TOKENS, Tokenizer
from regard.search.lexical.constraints import SEPARATOR, ForbiddenPhrase, Phrase, Vocabulary
from regard.tasks.generation.term_matching import is_word_character

OPENING = "("
"""Text before a phrase without whitespace, to encode it as the tokenizer does after a bracket."""


class PhraseEncoder:
    """Encoder of phrases for search, for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._mark = " " if tokenizer.is_byte_level else "▁"
        special = {tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos}
        spellings = tokenizer.tokens_in_order()
        if tokenizer.is_byte_level:
            first = len(SPECIAL_TOKENS)
            spellings[first : first + 256] = map(chr, range(256))
        self._spellings = [
            "" if index in special else spelling for index, spelling in enumerate(spellings)
        ]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Positions of words in sequences of tokens."""
        begins = [not self._continues(spelling) for spelling in self._spellings]
        opens = [bool(text) and not self._is_inside(text[-1]) for text in self._spellings]
        # Elsewhere, the first word of a text has a mark of whitespace like all others.
        opens[self.tokenizer.sos] = self.tokenizer.is_byte_level
        space = self._ids.get(self._mark, -1)
        return Vocabulary(torch.tensor(begins), torch.tensor(opens), space)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {spelling: index for index, spelling in enumerate(self._spellings) if spelling}

    def required(self, text: str, *, count: int = 1) -> Phrase | None:
        """Return a phrase that a target must contain; None if it has tokens without an id.

        Its forms are the tokens of the tokenizer after whitespace and those after a bracket.

        Args:
            text: The phrase.
            count: Number of occurrences.
        """
        ids = self.tokenizer.encode(text)
        if not ids or self.tokenizer.unk in ids:
            return None
        forms = [self._form(ids), self._after_bracket(text)]
        if self.tokenizer.is_byte_level:
            forms = [(SEPARATOR, *ids), self._form(ids)]
        if text[0].isalnum() and not is_word_character(text[0]):
            # In scripts without whitespace between words, phrases have none before them.
            forms.reverse()
        return Phrase(tuple(dict.fromkeys(form for form in forms if form)), text, count)

    def forbidden(self, text: str) -> ForbiddenPhrase | None:
        """Return a phrase that a target must not contain; None if no tokens can spell it.

        Args:
            text: The phrase.
        """
        spelling = self._spell(text)
        edges = [
            (begin, self._ids[spelling[begin:end]], end)
            for begin in range(len(spelling))
            for end in range(begin + 1, min(len(spelling), begin + self._longest) + 1)
            if spelling[begin:end] in self._ids
        ]
        # Edges that are on a path from the beginning to the end.
        from_start, to_end = {0, 1}, {len(spelling)}
        for begin, _, end in edges:
            if begin in from_start:
                from_start.add(end)
        for begin, _, end in reversed(edges):
            if end in to_end:
                to_end.add(begin)
        kept = tuple(edge for edge in edges if edge[0] in from_start and edge[2] in to_end)
        if not kept:
            return None
        is_free = not self._is_inside(spelling[1])
        return ForbiddenPhrase(kept, len(spelling), is_free, text)

    def _spell(self, text: str) -> str:
        """Return the spelling of a phrase in tokens, with whitespace before it."""
        normal = " ".join(self.tokenizer.normalize(text).split())
        if self.tokenizer.is_byte_level:
            return " " + normal.encode().decode("latin-1")
        return "▁" + normal.replace(" ", "▁")

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._spellings))

    def _form(self, ids: list[int]) -> tuple[int, ...]:
        """Return the tokens of a phrase as a form."""
        if ids[0] == self.vocabulary.space and len(ids) > 1:
            return (SEPARATOR, *ids[1:])
        # A token without mark continues a word, unless a word begins after the token before it.
        is_unmarked = self._continues(self._spellings[ids[0]])
        return (SEPARATOR, *ids) if is_unmarked else tuple(ids)

    def _after_bracket(self, text: str) -> tuple[int, ...] | None:
        """Return the tokens of a phrase after a bracket; None if they are unknown."""
        normal = self.tokenizer.normalize(text)
        spans = self.tokenizer.spans(OPENING + normal)
        first = next((index for index, (start, _) in enumerate(spans) if start == 1), None)
        ids = self.tokenizer.encode(OPENING + normal)[first:]
        if first is None or self.tokenizer.unk in ids:
            return None
        return self._form(ids)

    def _continues(self, spelling: str) -> bool:
        """Return whether a token without mark continues a word."""
        return bool(spelling) and self._is_inside(spelling[0])

    def _is_inside(self, character: str) -> bool:
        """Return whether a character is inside words: a letter, a digit or a byte of one."""
        if self.tokenizer.is_byte_level and ord(character) >= 0x80:
            # These bytes start characters of East Asian scripts without whitespace between words.
            return not 0xE3 <= ord(character) <= 0xE9
        return is_word_character(character)
