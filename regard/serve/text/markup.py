"""Translation of HTML: texts are translated, tags keep their position."""

import html
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import TypeAlias

UNTRANSLATED = frozenset(("code", "kbd", "pre", "samp", "script", "style", "textarea", "var"))
"""Elements whose texts stay as they are."""

VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track")
    + ("wbr",)
)
"""Elements without an end tag."""

Part: TypeAlias = tuple[str, bool]
"""A part of a page, and whether it is a text to translate."""


class Markup:
    """An HTML text as tags, which stay, and texts, which are replaced by their translations."""

    def __init__(self, source: str) -> None:
        parser = _Splitter()
        parser.feed(source)
        parser.close()
        self._parts = parser.parts

    @property
    def texts(self) -> list[str]:
        """The texts to translate, without the whitespace around them."""
        return [_strip(part)[1] for part, is_text in self._parts if is_text]

    def with_texts(self, translations: Sequence[str]) -> str:
        """Return the page with translations in place of its texts."""
        remaining = iter(translations)
        return "".join(
            _surround(part, next(remaining)) if is_text else part for part, is_text in self._parts
        )


class _Splitter(HTMLParser):
    """Parser that keeps everything but texts exactly as it was written."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[Part] = []
        self._kept: list[tuple[str, bool]] = []  # open elements, and whether their texts stay

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a start tag."""
        self._add(self.get_starttag_text() or "")
        if tag not in VOID:
            is_kept = tag in UNTRANSLATED or ("translate", "no") in attrs
            self._kept.append((tag, is_kept or self._is_kept))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag that is its own end."""
        self._add(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        """Keep an end tag, and close the elements inside it."""
        self._add(f"</{tag}>")
        for index in range(len(self._kept) - 1, -1, -1):
            if self._kept[index][0] == tag:
                del self._kept[index:]
                break

    def handle_data(self, data: str) -> None:
        """Add a text."""
        if self._is_kept:
            # Scripts and styles have no entities.
            is_raw = self._kept[-1][0] in ("script", "style")
            self._add(data if is_raw else html.escape(data, quote=False))
        elif data.strip():
            self.parts.append((data, True))
        else:
            self._add(data)

    def handle_comment(self, data: str) -> None:
        """Keep a comment."""
        self._add(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """Keep a declaration."""
        self._add(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        """Keep a processing instruction."""
        self._add(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        """Keep a marked section."""
        self._add(f"<![{data}]>")

    @property
    def _is_kept(self) -> bool:
        return bool(self._kept) and self._kept[-1][1]

    def _add(self, part: str) -> None:
        self.parts.append((part, False))


def _strip(text: str) -> tuple[str, str, str]:
    """Return the whitespace before a text, the text and the whitespace after it."""
    content = text.strip()
    before, _, after = text.partition(content)
    return before, content, after


def _surround(text: str, translation: str) -> str:
    before, _, after = _strip(text)
    return f"{before}{html.escape(translation, quote=False)}{after}"
