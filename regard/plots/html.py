"""Self-contained HTML reports: headings, cards, key-value lists, tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.plots.inputs import Markup, escape

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class Section:
    """Section of a report."""

    title: str
    """Heading; empty for none."""
    html: Markup
    """Content, made by the functions of this module."""


def report(title: str, sections: Sequence[Section]) -> Markup:
    """Render a self-contained page: no scripts, fonts or links to other files.

    Args:
        title: Heading of the page.
        sections: Sections in order.
    """
    titles = [f"<h2>{escape(s.title)}</h2>\n" if s.title else "" for s in sections]
    body = "\n".join(
        f"<section>\n{heading}{section.html}\n</section>"
        for heading, section in zip(titles, sections, strict=True)
    )
    return Markup(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n"
        f'<body>\n<main>\n<h1 dir="auto">{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n'
    )


def join(*parts: Markup) -> Markup:
    """Join elements of a page, one below the other."""
    return Markup("\n".join(parts))


def paragraph(text: str) -> Markup:
    """Render plain text as a paragraph."""
    return Markup(f'<p dir="auto">{escape(text)}</p>')


def cards(values: Mapping[str, object]) -> Markup:
    """Render a few main results in large type, each with its name."""
    return _pairs("cards", values)


def facts(values: Mapping[str, object]) -> Markup:
    """Render a list of names and values, such as settings."""
    return _pairs("facts", values)


def table(
    head: Sequence[str], rows: Sequence[Sequence[object]], *, float_format: str = ",.2f"
) -> Markup:
    """Render a table; numbers are right-aligned, text follows the direction of its script.

    Args:
        head: Names of the columns.
        rows: Numbers or text.
        float_format: Format of floats; two decimals by default.
    """
    # A heading is aligned like the first value of its column.
    pairs = zip(head, rows[0] if rows else head, strict=True)
    heads = "".join(_cell("th", name, value) for name, value in pairs)
    body = "\n".join(
        f"<tr>{''.join(_cell('td', show_value(v, float_format), v) for v in row)}</tr>"
        for row in rows
    )
    return Markup(
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def figure(svg: Markup, caption: str = "") -> Markup:
    """Render an SVG as a figure; if wider than the page, it can be scrolled.

    Args:
        svg: SVG made by this package.
        caption: Caption below the figure.
    """
    below = f'\n<figcaption dir="auto">{escape(caption)}</figcaption>' if caption else ""
    return Markup(f'<figure><div class="wide">\n{svg}</div>{below}</figure>')


@dataclass(frozen=True)
class Entry:
    """Entry of a gallery: a page and an image that represents it."""

    title: str
    href: str
    """Path of the page, relative to the gallery."""
    image: str
    """Path of the image, likewise; empty for none."""
    text: str
    note: str


def gallery(entries: Sequence[Entry]) -> Markup:
    """Render a grid of linked images with titles and texts."""
    return Markup(f'<div class="gallery">\n{chr(10).join(map(_entry, entries))}\n</div>')


def page(svg: Markup, title: str) -> Markup:
    """Render a page with a single plot."""
    return report(title, [Section("", figure(svg))])


def _entry(entry: Entry) -> str:
    # Attributes are quoted with ", which `escape` replaces.
    image = f'<img src="{escape(entry.image)}" alt="" loading="lazy">' if entry.image else ""
    return (
        f'<a href="{escape(entry.href)}"><span class="image">{image}</span>'
        f"<strong>{escape(entry.title)}</strong><span>{escape(entry.text)}</span>"
        f"<small>{escape(entry.note)}</small></a>"
    )


def _pairs(kind: str, values: Mapping[str, object]) -> Markup:
    items = "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in values.items()
    )
    return Markup(f'<dl class="{kind}">\n{items}\n</dl>')


def _cell(tag: str, value: object, like: object) -> str:
    """Render a table cell, aligned for a value of the type of `like`."""
    attribute = 'class="number"' if isinstance(like, int | float) else 'dir="auto"'
    return f"<{tag} {attribute}>{escape(value)}</{tag}>"


def show_value(value: object, float_format: str = ",.2f") -> object:
    """Format a number, a float with two decimals by default; return other values unchanged."""
    if isinstance(value, float):
        return format(value, float_format)
    return f"{value:,}" if isinstance(value, int) else value


if __name__ == "__main__":
    samples = [["ein Hund läuft .", "a dog runs .", "a dog is running ."]]
    sections = [
        Section("", cards({"BLEU": "37.92", "parameters": "12.4 M"})),
        Section("Samples", table(["source", "reference", "output"], samples)),
    ]
    print(report("Example", sections))
