"""Terms of a glossary, and parts of a source to keep, found in texts."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.core.errors import ConfigError, DataError
from regard.core.tables import one_of
from regard.data.text.lines import file_name, read_lines

MAX_TERMS = 100_000
"""Maximum number of terms of a glossary."""

MAX_TERM_LENGTH = 200
"""Maximum number of characters of a term."""

# Thai, Lao, Burmese, Khmer, Japanese and Chinese have no whitespace between words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]")

KEPT_PATTERNS = {
    "url": re.compile(r"(?:https?://|www\.)[^\s<>\"'„“”«»]*[^\s<>\"'„“”«».,;:!?)\]]"),
    "email": re.compile(r"[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+"),
    "number": re.compile(r"(?<!\w)\d+(?:[.,:/-]\d+)*(?!\w)"),
    "placeholder": re.compile(r"\{[^{}\s]*\}|%\w|<\w+/?>|\$\w+"),
}
"""Named patterns of parts of a source to keep."""


@dataclass(frozen=True, slots=True)
class Match:
    """Part of a source that requires a phrase in the target."""

    start: int
    end: int
    source: str
    """The part of the source."""
    target: str
    """The required phrase."""
    is_kept: bool
    """Whether the part is kept, rather than translated by the glossary."""


class Glossary:
    """Terms with their translations.

    A term occurs in a text as whole words. A term with a capital letter occurs in this spelling
    only; others occur in any.

    Args:
        terms: Translations by term.
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        self.terms = {_normalize(source): _normalize(target) for source, target in terms.items()}
        for source, target in self.terms.items():
            _check_sides((source, target), "A glossary")

    @cached_property
    def _targets(self) -> dict[tuple[str, ...], str]:
        """Translations by the words of a term."""
        return {tuple(_WORD.findall(source)): target for source, target in self.terms.items()}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._targets), default=0)

    def find(self, text: str) -> list[Match]:
        """Return all occurrences of terms in a text, the longest first; they may overlap."""
        words = list(_WORD.finditer(text))
        exact = [word.group() for word in words]
        lower = [word.lower() for word in exact]
        found = []
        for size in range(min(self._longest, len(words)), 0, -1):
            for first in range(len(words) - size + 1):
                span = slice(first, first + size)
                # A term without capitals is equal to its lower-cased spelling.
                key = tuple(exact[span])
                target = self._targets.get(key, self._targets.get(tuple(lower[span])))
                if target is not None:
                    start, end = words[first].start(), words[first + size - 1].end()
                    found.append(Match(start, end, text[start:end], target, is_kept=False))
        return found

    def translate(self, word: str) -> str | None:
        """Return the translation of a whole text, if it is a term."""
        exact, lower = (tuple(_WORD.findall(text)) for text in (word, word.lower()))
        return self._targets.get(exact, self._targets.get(lower))


def read_glossary(path: str | Path) -> Glossary:
    """Read a glossary: lines with a source term, a tab and a target term; empty lines are skipped.

    Args:
        path: UTF-8 text, `.gz` or not.
    """
    terms: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        location = f"{file_name(path)}, line {number:,},"
        sides = [side.strip() for side in line.split("\t")]
        if len(sides) != 2:
            raise DataError(
                f"{location} must have two columns, a source term and a target term separated by "
                f"a tab, but has {len(sides)}."
            )
        source, target = sides
        _check_sides((source, target), location)
        if terms.get(source, target) != target:
            raise DataError(
                f"{location} translates '{source}' as '{target}', but line {lines[source]:,} as "
                f"'{terms[source]}'. Leave one of them out."
            )
        if len(terms) == MAX_TERMS:
            raise DataError(
                f"{file_name(path)} has more than {MAX_TERMS:,} terms, the maximum of a glossary. "
                "Leave out the terms that the sources do not contain."
            )
        terms[source], lines[source] = target, number
    if not terms:
        raise DataError(f"{file_name(path)} must have at least one term, but is empty.")
    return Glossary(terms)


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _check_sides(sides: tuple[str, str], location: str) -> None:
    for side, name in zip(sides, ("source", "target"), strict=True):
        if not side:
            raise DataError(f"{location} must have a {name} term, but it is empty.")
        if len(side) > MAX_TERM_LENGTH:
            raise DataError(
                f"{location} must have a {name} term of at most {MAX_TERM_LENGTH} characters, but "
                f"it has {len(side):,}."
            )


def compile_patterns(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the patterns of parts to keep, by name or as regular expressions."""
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(KEPT_PATTERNS.get(pattern) or re.compile(pattern))
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(
                f"`keep` must be {one_of(list(KEPT_PATTERNS))} or a regular expression, but is "
                f"'{pattern}' ({error})."
            ) from None
    return compiled


def find_matches(
    text: str, glossary: Glossary | None, patterns: Sequence[re.Pattern[str]]
) -> list[Match]:
    """Return the terms and kept parts of a text in order; of those that overlap, the longest.

    Args:
        text: The source.
        glossary: The terms.
        patterns: Patterns of the parts to keep.
    """
    text = unicodedata.normalize("NFC", text)
    found = glossary.find(text) if glossary else []
    for pattern in patterns:
        for match in pattern.finditer(text):
            part = match.group().strip()
            if part:
                found.append(Match(match.start(), match.end(), part, part, is_kept=True))
    found.sort(key=lambda one: (one.start - one.end, one.start, one.is_kept))
    is_taken = [False] * len(text)
    kept = []
    for one in found:
        span = slice(one.start, one.end)
        if not any(is_taken[span]):
            is_taken[span] = [True] * (one.end - one.start)
            kept.append(one)
    return sorted(kept, key=lambda one: one.start)


def is_word_character(character: str) -> bool:
    """Return whether a character is inside words that whitespace separates."""
    return character.isalnum() and not _UNSPACED_CHARACTER.match(character)


def count_phrase(text: str, phrase: str) -> int:
    """Return the number of occurrences of a phrase as whole words that do not overlap."""
    pattern = re.compile(r"\s+".join(map(re.escape, phrase.split())))
    num = 0
    for match in pattern.finditer(text):
        before, after = text[: match.start()][-1:], text[match.end() : match.end() + 1]
        num += not (_joins(before, phrase[0]) or _joins(phrase[-1], after))
    return num


def _joins(left: str, right: str) -> bool:
    """Return whether two neighbouring characters are inside one word."""
    return bool(left and right) and is_word_character(left) and is_word_character(right)
