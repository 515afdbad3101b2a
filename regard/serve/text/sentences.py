"""Texts as sentences, which models translate one by one, and back."""

import re
from collections.abc import Iterator, Sequence

_ENDS = re.compile(r"(?<=\w\w[^\W\d][.!?])(\s+)(?=[^\W\d_a-zß-ÿ])|(?<=[。！？])")
"""Whitespace between sentences. A word before it has three letters: `Dr. Who` is one sentence."""


class Sentences:
    """A text as sentences, separated by whitespace that stays as it is."""

    def __init__(self, text: str) -> None:
        self._parts = list(_split(text))

    @property
    def texts(self) -> list[str]:
        """The sentences."""
        return [part for part, is_text in self._parts if is_text]

    def with_texts(self, translations: Sequence[str]) -> str:
        """Return the text with translations in place of its sentences."""
        remaining = iter(translations)
        return "".join(next(remaining) if is_text else part for part, is_text in self._parts)


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Yield sentences and the whitespace around them."""
    for line in text.splitlines(keepends=True):
        content = line.strip()
        if not content:
            yield line, False
            continue
        before, _, after = line.partition(content)
        yield before, False
        for number, part in enumerate(_ENDS.split(content)):
            # Every second part is the whitespace between two sentences.
            if part:
                yield part, number % 2 == 0
        yield after, False
